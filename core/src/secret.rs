//! The types a value passes through: unresolved input, plaintext, resolved values.
//!
//! The reader, the ingestion, the compiler and the provider adapters hold them. None of
//! them has `Debug`, `Display` or a serialised form, and all wipe what they held, so a
//! value reaches a log or a row only by somebody calling [`Plaintext::expose`] by name
//! (IC §2.1). Never in this module: a value's text in an error.
//!
//! An input cannot be shown, copied or serialised, and neither can plaintext be shown or
//! serialised. Each pair differs in what is done to the value and nothing else:
//!
//! ```compile_fail
//! let input = bronzeward_core::secret::Unresolved::new(b"machine: {}".to_vec());
//! println!("{:?}", input);
//! ```
//!
//! ```
//! let input = bronzeward_core::secret::Unresolved::new(b"machine: {}".to_vec());
//! println!("{:?}", input.length());
//! ```
//!
//! ```compile_fail
//! let input = bronzeward_core::secret::Unresolved::new(b"machine: {}".to_vec());
//! let text = format!("{}", input);
//! ```
//!
//! ```
//! let input = bronzeward_core::secret::Unresolved::new(b"machine: {}".to_vec());
//! let text = format!("{}", input.length());
//! ```
//!
//! ```compile_fail
//! let input = bronzeward_core::secret::Unresolved::new(b"machine: {}".to_vec());
//! let copy = input.clone();
//! ```
//!
//! ```
//! let input = bronzeward_core::secret::Unresolved::new(b"machine: {}".to_vec());
//! let copy = input.length().clone();
//! ```
//!
//! ```compile_fail
//! let input = bronzeward_core::secret::Unresolved::new(b"machine: {}".to_vec());
//! let text = serde_json::to_string(&input);
//! ```
//!
//! ```
//! let input = bronzeward_core::secret::Unresolved::new(b"machine: {}".to_vec());
//! let text = serde_json::to_string(&input.length());
//! ```
//!
//! ```compile_fail
//! let text = bronzeward_core::secret::Plaintext::new("machine: {}".to_string());
//! println!("{:?} {}", text, serde_json::to_string(&text).is_ok());
//! ```
//!
//! ```
//! let text = bronzeward_core::secret::Plaintext::new("machine: {}".to_string());
//! println!("{:?} {}", text.expose().len(), serde_json::to_string(&text.expose().len()).is_ok());
//! ```

// covers: IC-ING-8 (with the examples of `sanitized`, which show what persistence takes)

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// An input as it was read, before anything looked at it. It can be measured, digested
/// as a whole and handed to the parser, and nothing else.
pub struct Unresolved(Zeroizing<Vec<u8>>);

/// The input is not UTF-8, so no document can be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotText;

impl Unresolved {
    pub fn new(bytes: Vec<u8>) -> Unresolved {
        Unresolved(Zeroizing::new(bytes))
    }

    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// The only way on: into the text the ingestion parses and the baseline key encrypts.
    pub fn into_plaintext(mut self) -> Result<Plaintext, NotText> {
        let bytes = std::mem::take(&mut *self.0);
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Plaintext::new(text)),
            Err(refused) => {
                drop(Zeroizing::new(refused.into_bytes()));
                Err(NotText)
            }
        }
    }
}

/// Text that may hold values. Copies share one allocation, wiped with the last of them.
#[derive(Clone)]
pub struct Plaintext(Arc<Zeroizing<String>>);

impl Plaintext {
    pub fn new(text: String) -> Plaintext {
        Plaintext(Arc::new(Zeroizing::new(text)))
    }

    /// The text itself. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether two hold the same text; an `Eq` would let it be a map's key by accident.
    pub fn same(&self, other: &Plaintext) -> bool {
        self.expose() == other.expose()
    }
}

/// What a reference's value is (IC §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    String,
    Integer,
    Boolean,
    Mapping,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Boolean => "boolean",
            Kind::Mapping => "mapping",
        }
    }

    pub fn parse(text: &str) -> Option<Kind> {
        match text {
            "string" => Some(Kind::String),
            "integer" => Some(Kind::Integer),
            "boolean" => Some(Kind::Boolean),
            "mapping" => Some(Kind::Mapping),
            _ => None,
        }
    }
}

/// One scalar value.
#[derive(Clone)]
pub enum Scalar {
    String(Plaintext),
    /// Within what a 64-bit integer, signed or not, holds.
    Integer(i128),
    Boolean(bool),
}

/// One resolved value, as a generation of the provider holds it.
#[derive(Clone)]
pub enum Value {
    Scalar(Scalar),
    /// In key order, which names the members (IC §8.1).
    Mapping(BTreeMap<String, Scalar>),
}

impl Scalar {
    pub fn string(text: impl Into<String>) -> Scalar {
        Scalar::String(Plaintext::new(text.into()))
    }

    pub fn kind(&self) -> Kind {
        match self {
            Scalar::String(_) => Kind::String,
            Scalar::Integer(_) => Kind::Integer,
            Scalar::Boolean(_) => Kind::Boolean,
        }
    }

    /// The text a document writes for the value.
    pub fn written(&self) -> Zeroizing<String> {
        Zeroizing::new(match self {
            Scalar::String(text) => text.expose().to_string(),
            Scalar::Integer(number) => number.to_string(),
            Scalar::Boolean(true) => "true".to_string(),
            Scalar::Boolean(false) => "false".to_string(),
        })
    }
}

impl Value {
    pub fn kind(&self) -> Kind {
        match self {
            Value::Scalar(scalar) => scalar.kind(),
            Value::Mapping(_) => Kind::Mapping,
        }
    }

    /// The string texts of the value: itself, or the string members of a mapping.
    pub fn strings(&self) -> Vec<&Plaintext> {
        let scalars: Vec<&Scalar> = match self {
            Value::Scalar(scalar) => vec![scalar],
            Value::Mapping(members) => members.values().collect(),
        };
        scalars
            .into_iter()
            .filter_map(|scalar| match scalar {
                Scalar::String(text) => Some(text),
                Scalar::Integer(_) | Scalar::Boolean(_) => None,
            })
            .collect()
    }

    /// The keys of a mapping, which the provider holds like values (IC §4.2).
    pub fn keys(&self) -> Vec<&str> {
        match self {
            Value::Scalar(_) => Vec::new(),
            Value::Mapping(members) => members.keys().map(String::as_str).collect(),
        }
    }
}

/// Standard base64 with padding, the one encoding a declaration can name (IC §5.2).
pub fn base64(text: &str) -> String {
    STANDARD.encode(text.as_bytes())
}

/// What a byte field of the machinery writes for `text`: its base64, decoded with line
/// breaks skipped and encoded again. `None` when the text is no standard base64.
pub fn canonical_base64(text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    decode_base64(text).map(|bytes| STANDARD.encode(bytes.as_slice()))
}

/// Decodes as the machinery does: padding required, stray bits in the last character
/// and line breaks let pass.
pub fn decode_base64(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    use base64::alphabet;
    use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(&byte);
    if !text.bytes().all(inside) {
        return None;
    }
    let joined: Zeroizing<Vec<u8>> = Zeroizing::new(
        text.bytes()
            .filter(|byte| *byte != b'\n' && *byte != b'\r')
            .collect(),
    );
    LENIENT.decode(joined.as_slice()).ok().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_line_breaks_and_stray_bits_and_written_canonically() {
        assert_eq!(canonical_base64("cnct\nYQ==").as_deref(), Some("cnctYQ=="));
        // The last character's low bits are not part of the byte.
        assert_eq!(canonical_base64("YR==").as_deref(), Some("YQ=="));
        assert_eq!(canonical_base64("not base64"), None);
        assert_eq!(canonical_base64("YQ"), None);
        assert_eq!(canonical_base64(""), None);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_and_text_comes_through_unchanged() {
        assert!(Unresolved::new(vec![0xff, 0xfe]).into_plaintext().is_err());
        let text = Unresolved::new("a\r\n\u{feff}b".into()).into_plaintext();
        assert_eq!(text.expect("text").expose(), "a\r\n\u{feff}b");
    }
}
