//! The one strict way from bytes to a request body (PA §9.1, choice §17.14).
//!
//! `http` calls [`Json::read`] and [`Json::body`]; nothing else parses a request.
//! A refusal names a place and a rule. It never holds what the caller sent: a body
//! can carry a secret, and so can a key of a map or a misspelled member. Never in
//! this module: a lenient mode.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::tree::Tree;

/// The largest request body, source documents included.
pub const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Why a body was refused: the place as an RFC 6901 pointer and the name of the
/// rule. A map's key is written `*`, an unknown member is named by its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyError {
    pub pointer: String,
    pub rule: &'static str,
    /// Members the object knows, where the rule is about one it does not know.
    pub known: &'static [&'static str],
}

impl BodyError {
    pub fn new(pointer: impl Into<String>, rule: &'static str) -> Self {
        Self {
            pointer: pointer.into(),
            rule,
            known: &[],
        }
    }

    pub(crate) fn under(mut self, segment: &str) -> Self {
        self.pointer = format!("/{}{}", escaped(segment), self.pointer);
        self
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "body refused at '{}' by {}", self.pointer, self.rule)
    }
}

impl std::error::Error for BodyError {}

/// A request body's own checks beyond the form of its members, for example
/// "exactly one of". Called by [`Json::body`].
pub trait Checked {
    fn check(&self) -> Result<(), BodyError> {
        Ok(())
    }
}

/// A body that is JSON by the strict rules but not yet of a type. No Debug: it
/// holds what the caller sent.
pub struct Json(Value);

impl Json {
    /// Reads bytes, refusing an empty or oversized body, malformed JSON, repeated
    /// members at every level, NUL and lone surrogates.
    pub fn read(bytes: &[u8]) -> Result<Self, BodyError> {
        if bytes.len() > MAX_BODY_BYTES {
            return Err(BodyError::new("", "body-too-large"));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(BodyError::new("", "body-missing"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| BodyError::new("", "not-utf8"))?;
        let place = Place::default();
        let mut reader = serde_json::Deserializer::from_str(text);
        let value = Strict { place: &place }.deserialize(&mut reader);
        match value.and_then(|value| reader.end().map(|()| value)) {
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(place.refusal(&error)),
        }
    }

    /// The body as `T`, refusing unknown and differently cased members.
    pub fn body<T: DeserializeOwned + Checked>(&self) -> Result<T, BodyError> {
        let body = T::deserialize(Tree(&self.0))?;
        body.check()?;
        Ok(body)
    }

    /// The parsed value, for the canonical form of a fingerprint (PA §7.1).
    pub fn value(&self) -> &Value {
        &self.0
    }
}

/// Bytes to a request body in one step.
pub fn parse_body<T: DeserializeOwned + Checked>(bytes: &[u8]) -> Result<T, BodyError> {
    Json::read(bytes)?.body()
}

fn escaped(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

/// Where the reader is, and the rule that stopped it. Members are named here only
/// if they are plain words; any other key is written `*`, as its text may be data.
#[derive(Default)]
struct Place {
    segments: RefCell<Vec<String>>,
    rule: RefCell<Option<&'static str>>,
}

impl Place {
    fn refusal(&self, error: &serde_json::Error) -> BodyError {
        let pointer: String = self
            .segments
            .borrow()
            .iter()
            .map(|segment| format!("/{segment}"))
            .collect();
        let rule = self.rule.borrow().unwrap_or_else(|| {
            // serde_json has no code for this; its text is compared here and goes
            // no further. A missed match would only name the general rule.
            let text = error.to_string();
            if text.starts_with("lone leading surrogate")
                || text.starts_with("unexpected end of hex escape")
            {
                "lone-surrogate"
            } else {
                "malformed-json"
            }
        });
        BodyError::new(pointer, rule)
    }

    fn refuse<E: serde::de::Error>(&self, rule: &'static str) -> E {
        *self.rule.borrow_mut() = Some(rule);
        E::custom(rule)
    }

    fn enter(&self, segment: String) {
        self.segments.borrow_mut().push(segment);
    }

    fn leave(&self) {
        self.segments.borrow_mut().pop();
    }
}

/// A member name that is safe to show: one that some body of ours declares. Any
/// other key may be data, or a value put in the wrong place.
fn shown(key: &str) -> String {
    if crate::bodies::MEMBERS.binary_search(&key).is_ok() {
        key.to_owned()
    } else {
        "*".to_owned()
    }
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    place: &'a Place,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| self.place.refuse("number-range"))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        if text.contains('\0') {
            return Err(self.place.refuse("nul"));
        }
        Ok(Value::String(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            self.place.enter(items.len().to_string());
            match access.next_element_seed(self)? {
                Some(item) => items.push(item),
                None => break,
            }
            self.place.leave();
        }
        self.place.leave();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.place.enter(shown(&key));
            if key.contains('\0') {
                return Err(self.place.refuse("nul"));
            }
            if members.contains_key(&key) {
                return Err(self.place.refuse("repeated-member"));
            }
            let value = access.next_value_seed(self)?;
            members.insert(key, value);
            self.place.leave();
        }
        Ok(Value::Object(members))
    }
}

impl serde::de::Error for BodyError {
    /// A form's own message is the rule's name; any other text is not passed on.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        let rule = crate::value::RULES
            .iter()
            .find(|rule| **rule == message)
            .copied();
        BodyError::new("", rule.unwrap_or("malformed-value"))
    }

    fn invalid_type(_: serde::de::Unexpected<'_>, _: &dyn serde::de::Expected) -> Self {
        BodyError::new("", "wrong-type")
    }

    fn invalid_value(_: serde::de::Unexpected<'_>, _: &dyn serde::de::Expected) -> Self {
        BodyError::new("", "number-range")
    }

    fn invalid_length(_: usize, _: &dyn serde::de::Expected) -> Self {
        BodyError::new("", "wrong-length")
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        BodyError::new("", "not-of-the-enumeration")
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let cased = expected
            .iter()
            .find(|known| known.eq_ignore_ascii_case(field));
        let mut error = match cased {
            Some(known) => BodyError::new("", "member-case").under(known),
            None => BodyError::new("", "unknown-member"),
        };
        error.known = expected;
        error
    }

    fn missing_field(field: &'static str) -> Self {
        BodyError::new("", "missing-member").under(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        BodyError::new("", "repeated-member").under(field)
    }
}
