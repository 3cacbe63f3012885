//! A serde deserializer over a parsed value that knows where it is.
//!
//! `json` alone uses it. serde_json's own carries no place in its errors, quotes
//! what it read, and takes `3600.0` for no integer (all spellings of a whole number
//! are one number here). Never in this module: text of the body in an error.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Number, Value};

use crate::json::BodyError;

/// The largest whole number a JSON reader keeps exactly (RFC 8259 §6).
const EXACT: f64 = 9_007_199_254_740_991.0;

pub(crate) struct Tree<'a>(pub(crate) &'a Value);

fn whole(number: &Number) -> Option<i64> {
    if let Some(value) = number.as_i64() {
        return (value.unsigned_abs() <= EXACT as u64).then_some(value);
    }
    let value = number.as_f64()?;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

impl<'de> Deserializer<'de> for Tree<'_> {
    type Error = BodyError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match whole(number) {
                Some(value) => match u64::try_from(value) {
                    Ok(value) => visitor.visit_u64(value),
                    Err(_) => visitor.visit_i64(value),
                },
                None => Err(BodyError::new("", "not-a-whole-number")),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::Array(items) => visitor.visit_seq(Items { items, next: 0 }),
            Value::Object(members) => visitor.visit_map(Members {
                members: members.iter(),
                current: None,
                keys_are_data: true,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        match self.0 {
            // The derived visitor would take an array for a struct.
            Value::Object(members) => visitor.visit_map(Members {
                members: members.iter(),
                current: None,
                keys_are_data: false,
            }),
            _ => Err(BodyError::new("", "wrong-type")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(Variant(text)),
            _ => Err(BodyError::new("", "wrong-type")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes
        byte_buf unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'a> {
    items: &'a [Value],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = BodyError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, BodyError> {
        let Some(item) = self.items.get(self.next) else {
            return Ok(None);
        };
        let segment = self.next.to_string();
        self.next += 1;
        seed.deserialize(Tree(item))
            .map(Some)
            .map_err(|error| error.under(&segment))
    }
}

struct Members<'a> {
    members: serde_json::map::Iter<'a>,
    current: Option<(&'a str, &'a Value)>,
    /// A map's keys are the caller's; a struct's are ours.
    keys_are_data: bool,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = BodyError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, BodyError> {
        let Some((key, value)) = self.members.next() else {
            return Ok(None);
        };
        self.current = Some((key, value));
        let key: StrDeserializer<'_, BodyError> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, BodyError> {
        let Some((key, value)) = self.current.take() else {
            return Err(BodyError::custom("value before key"));
        };
        let segment = if self.keys_are_data { "*" } else { key };
        seed.deserialize(Tree(value))
            .map_err(|error| error.under(segment))
    }
}

struct Variant<'a>(&'a str);

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = BodyError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), BodyError> {
        let name: StrDeserializer<'_, BodyError> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = BodyError;

    fn unit_variant(self) -> Result<(), BodyError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, BodyError> {
        Err(BodyError::new("", "wrong-type"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, BodyError> {
        Err(BodyError::new("", "wrong-type"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, BodyError> {
        Err(BodyError::new("", "wrong-type"))
    }
}
