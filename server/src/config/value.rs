//! Durations (`30s`) and sizes (`512MiB`) as a configuration spells them.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};

/// A whole number with a unit: `ms`, `s`, `m` or `h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lasting(pub Duration);

/// A whole number with a unit: `KiB`, `MiB` or `GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A number and the factor of its unit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

impl Lasting {
    pub fn parse(text: &str) -> Option<Self> {
        let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
        scaled(text, &units).map(|millis| Self(Duration::from_millis(millis)))
    }
}

impl Bytes {
    pub fn parse(text: &str) -> Option<Self> {
        scaled(
            text,
            &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)],
        )
        .map(Self)
    }
}

impl<'de> Deserialize<'de> for Lasting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not a duration"))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not a size"))
    }
}
