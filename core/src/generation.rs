//! A secret generation at the provider: where it is, and the text form of its value.
//!
//! Ingestion names and writes one, the compiler reads one back (IC §2.3 step 7, §5.2).
//! The value is kept as a string whatever its kind, since the provider rounds large
//! integers, writes numbers, booleans and mapping keys in clear into its audit log and
//! refuses large mappings (docs/decisions: generation values are strings). Never in
//! this module: a value's text in an error.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value as Json};

use crate::id::{ClusterId, Id, IngestionId, Kind as IdKind};
use crate::secret::{Kind, Plaintext, Scalar, Value};

/// The marker of a value's identifier in a generation path.
#[derive(Debug)]
pub enum GeneratedValue {}

impl IdKind for GeneratedValue {
    const PREFIX: &'static str = "val";
}

/// One extracted value of one staging claim.
pub type ValueId = Id<GeneratedValue>;

/// `gen/<cluster>/<claim>/<value>`: no part of it is issued by the database, so a restore
/// never gives it out again (PA §6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GenerationPath {
    pub cluster: ClusterId,
    pub claim: IngestionId,
    pub value: ValueId,
}

impl fmt::Display for GenerationPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gen/{}/{}/{}", self.cluster, self.claim, self.value)
    }
}

impl GenerationPath {
    /// Reads the path back from its text, as a reference row keeps it.
    pub fn parse(text: &str) -> Option<GenerationPath> {
        let mut parts = text.split('/');
        let path = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("gen"), Some(cluster), Some(claim), Some(value)) => GenerationPath {
                cluster: cluster.parse().ok()?,
                claim: claim.parse().ok()?,
                value: value.parse().ok()?,
            },
            _ => return None,
        };
        parts.next().is_none().then_some(path)
    }
}

/// What is stored is not what ingestion writes: an integrity failure, whose content is
/// not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a generation is not in the form that ingestion writes")]
pub struct NotAGeneration;

/// The `value` member's text: a string as itself, every other kind as its canonical JSON.
///
/// The canonical form is RFC 8785's but for one thing: an integer keeps all its digits,
/// where RFC 8785 would write the nearest double.
pub fn stored_text(value: &Value) -> Plaintext {
    match value {
        Value::Scalar(Scalar::String(text)) => text.clone(),
        Value::Scalar(scalar) => Plaintext::new(canonical_scalar(scalar)),
        Value::Mapping(members) => {
            // RFC 8785 orders members by UTF-16 code units, which for characters beyond
            // the basic plane is not the order of the bytes.
            let mut ordered: Vec<(&String, &Scalar)> = members.iter().collect();
            ordered.sort_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()));
            let mut text = String::from("{");
            for (key, scalar) in ordered {
                if text.len() > 1 {
                    text.push(',');
                }
                text.push_str(&Json::from(key.as_str()).to_string());
                text.push(':');
                text.push_str(&canonical_scalar(scalar));
            }
            text.push('}');
            Plaintext::new(text)
        }
    }
}

fn canonical_scalar(scalar: &Scalar) -> String {
    match scalar {
        // serde_json escapes exactly what RFC 8785 does: quote, backslash and controls.
        Scalar::String(text) => Json::from(text.expose()).to_string(),
        Scalar::Integer(number) => number.to_string(),
        Scalar::Boolean(truth) => truth.to_string(),
    }
}

/// Reads a generation's two members back. Nothing is coerced, and a text that this module
/// would have written otherwise is refused, so one value has one form.
pub fn read_stored(kind: &str, text: Plaintext) -> Result<Value, NotAGeneration> {
    let kind = Kind::parse(kind).ok_or(NotAGeneration)?;
    let value = match kind {
        Kind::String => return Ok(Value::Scalar(Scalar::String(text))),
        Kind::Integer | Kind::Boolean | Kind::Mapping => {
            match serde_json::from_str::<Json>(text.expose()).map_err(|_| NotAGeneration)? {
                Json::Object(members) => Value::Mapping(scalars(members)?),
                scalar => Value::Scalar(scalar_of(scalar)?),
            }
        }
    };
    if value.kind() == kind && stored_text(&value).same(&text) {
        Ok(value)
    } else {
        Err(NotAGeneration)
    }
}

fn scalars(members: Map<String, Json>) -> Result<BTreeMap<String, Scalar>, NotAGeneration> {
    members
        .into_iter()
        .map(|(key, member)| Ok((key, scalar_of(member)?)))
        .collect()
}

fn scalar_of(json: Json) -> Result<Scalar, NotAGeneration> {
    match json {
        Json::String(text) => Ok(Scalar::String(Plaintext::new(text))),
        Json::Bool(truth) => Ok(Scalar::Boolean(truth)),
        Json::Number(number) => {
            let signed = number.as_i64().map(i128::from);
            let integer = signed.or_else(|| number.as_u64().map(i128::from));
            integer.map(Scalar::Integer).ok_or(NotAGeneration)
        }
        Json::Null | Json::Array(_) | Json::Object(_) => Err(NotAGeneration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(a: &Value, b: &Value) -> bool {
        let scalar = |a: &Scalar, b: &Scalar| match (a, b) {
            (Scalar::String(a), Scalar::String(b)) => a.same(b),
            (Scalar::Integer(a), Scalar::Integer(b)) => a == b,
            (Scalar::Boolean(a), Scalar::Boolean(b)) => a == b,
            _ => false,
        };
        match (a, b) {
            (Value::Scalar(a), Value::Scalar(b)) => scalar(a, b),
            (Value::Mapping(a), Value::Mapping(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .zip(b)
                        .all(|((k, v), (l, w))| k == l && scalar(v, w))
            }
            _ => false,
        }
    }

    /// What a value is made of; the value itself has no Debug to report a failure with.
    #[derive(Clone, Debug)]
    enum Raw {
        String(String),
        Integer(i128),
        Boolean(bool),
        Mapping(Vec<(String, Raw)>),
    }

    fn scalar_from(raw: &Raw) -> Option<Scalar> {
        match raw {
            Raw::String(text) => Some(Scalar::string(text.as_str())),
            Raw::Integer(number) => Some(Scalar::Integer(*number)),
            Raw::Boolean(truth) => Some(Scalar::Boolean(*truth)),
            Raw::Mapping(_) => None,
        }
    }

    fn value_from(raw: &Raw) -> Value {
        match raw {
            Raw::Mapping(members) => Value::Mapping(
                members
                    .iter()
                    .filter_map(|(k, v)| Some((k.clone(), scalar_from(v)?)))
                    .collect(),
            ),
            scalar => Value::Scalar(scalar_from(scalar).unwrap_or(Scalar::Boolean(false))),
        }
    }

    fn any_scalar() -> impl Strategy<Value = Raw> {
        prop_oneof![
            any::<String>().prop_map(Raw::String),
            (i128::from(i64::MIN)..=i128::from(u64::MAX)).prop_map(Raw::Integer),
            any::<bool>().prop_map(Raw::Boolean),
        ]
    }

    fn any_value() -> impl Strategy<Value = Raw> {
        prop_oneof![
            any_scalar(),
            prop::collection::vec((any::<String>(), any_scalar()), 0..8).prop_map(Raw::Mapping),
        ]
    }

    proptest! {
        #[test]
        fn a_stored_value_reads_back_exactly(raw in any_value()) {
            let value = value_from(&raw);
            let read = read_stored(value.kind().name(), stored_text(&value));
            prop_assert!(read.is_ok_and(|read| same(&read, &value)));
        }

        /// RFC 8785 and this form agree on everything but integers a double cannot hold.
        #[test]
        fn the_text_is_canonical_json(
            members in prop::collection::btree_map(any::<String>(), any::<String>(), 0..8),
            number in -(1i64 << 53)..(1i64 << 53),
            truth in any::<bool>(),
        ) {
            let mut mapping: BTreeMap<String, Scalar> =
                members.iter().map(|(k, v)| (k.clone(), Scalar::string(v.as_str()))).collect();
            mapping.insert("n".into(), Scalar::Integer(number.into()));
            mapping.insert("t".into(), Scalar::Boolean(truth));
            let mut json: Map<String, Json> =
                members.into_iter().map(|(k, v)| (k, Json::from(v))).collect();
            json.insert("n".into(), number.into());
            json.insert("t".into(), truth.into());
            let canonical = serde_json_canonicalizer::to_string(&json).unwrap();
            let text = stored_text(&Value::Mapping(mapping));
            prop_assert_eq!(text.expose(), canonical.as_str());
        }
    }

    #[test]
    fn integers_beyond_what_a_double_holds_keep_every_digit() {
        for number in [
            9_007_199_254_740_993,
            i128::from(u64::MAX),
            i128::from(i64::MIN),
        ] {
            let value = Value::Scalar(Scalar::Integer(number));
            assert_eq!(stored_text(&value).expose(), number.to_string());
        }
    }

    #[test]
    fn another_form_is_an_integrity_failure_and_nothing_is_coerced() {
        for (kind, text) in [
            ("integer", "\"1\""),
            ("integer", "1.0"),
            ("integer", "1e2"),
            ("integer", "01"),
            ("integer", " 1"),
            ("integer", "-0"),
            ("integer", "18446744073709551616"),
            ("integer", "true"),
            ("boolean", "1"),
            ("boolean", "True"),
            ("mapping", "{\"b\":1,\"a\":2}"),
            ("mapping", "{\"a\":1,\"a\":1}"),
            ("mapping", "{ \"a\":1}"),
            ("mapping", "{\"a\":{}}"),
            ("mapping", "{\"a\":null}"),
            ("mapping", "{\"a\":[]}"),
            ("mapping", "{\"\\u0061\":1}"),
            ("mapping", "[]"),
            ("mapping", ""),
            ("list", "[]"),
            ("String", "a"),
        ] {
            let read = read_stored(kind, Plaintext::new(text.into()));
            assert!(read.is_err(), "{kind} {text}");
        }
    }

    #[test]
    fn a_path_is_three_random_identifiers_and_reads_back() {
        let path = GenerationPath {
            cluster: ClusterId::from_bits(1),
            claim: IngestionId::from_bits(2),
            value: ValueId::from_bits(3),
        };
        let text = path.to_string();
        assert_eq!(GenerationPath::parse(&text), Some(path));
        for bad in [
            text.replace("gen/", "gen//"),
            text.replace("val_", "cl_"),
            format!("{text}/"),
            format!("/{text}"),
            text.replace("gen", "access"),
        ] {
            assert_eq!(GenerationPath::parse(&bad), None, "{bad}");
        }
    }
}
