//! References and their declarations (IC §5.1, §5.2).
//!
//! Authoring checks, resolution and the records of a release speak these types. Never in
//! this module: a node of a document, or a default for a version.

use std::collections::BTreeMap;

use crate::path::{Format, Path};
use crate::secret::Kind;

/// A logical name: segments of lowercase letters, digits and inner hyphens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    pub fn parse(text: &str) -> Option<Name> {
        let segments = text.split('/').all(|segment| {
            let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            let bytes = segment.as_bytes();
            match (bytes.first(), bytes.last()) {
                (Some(first), Some(last)) => {
                    inside(*first)
                        && inside(*last)
                        && bytes.iter().all(|byte| inside(*byte) || *byte == b'-')
                }
                _ => false,
            }
        });
        segments.then(|| Name(text.to_string()))
    }

    /// The name of a value extracted under `random`, 128 bits from the entropy port: it
    /// says nothing of the value and is never given twice (IC §5.1).
    pub fn minted(random: [u8; 16]) -> Name {
        let text = data_encoding::BASE32_NOPAD.encode(&random).to_lowercase();
        Name(format!("ingested/{text}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How a string is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encoding {
    Base64,
}

impl Encoding {
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Base64 => "base64",
        }
    }

    pub fn parse(text: &str) -> Option<Encoding> {
        (text == "base64").then_some(Encoding::Base64)
    }
}

/// What a source says of one of its names. The version is exact (choice §16.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Declaration {
    pub kind: Kind,
    pub version: u64,
    pub encoding: Option<Encoding>,
}

/// Everything a source declares beside its text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Declarations {
    pub references: BTreeMap<Name, Declaration>,
    pub embedded: BTreeMap<Path, Format>,
}

/// One name at one version: what is pinned, depended upon and shown in a token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub name: Name,
    pub version: u64,
}

impl Version {
    /// `name@version`, as tokens and records write it.
    pub fn written(&self) -> String {
        format!("{}@{}", self.name.as_str(), self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_lowercase_segments_with_inner_hyphens() {
        for good in ["a", "registry/example-pass", "0/1-2/b", "a--b"] {
            assert!(Name::parse(good).is_some(), "{good}");
        }
        for bad in [
            "", "/", "a/", "/a", "a//b", "-a", "a-", "A", "a_b", "a.b", "a b", "ä",
        ] {
            assert!(Name::parse(bad).is_none(), "{bad}");
        }
        let minted = Name::minted([7; 16]);
        assert!(Name::parse(minted.as_str()).is_some());
    }
}
