//! Canonical JSON and the digests taken over what ordinary persistence holds.
//!
//! A release's content digest, a source's text digest, a request's fingerprint: one
//! function each (PA §6.2, §7.1). Never in this module: an unkeyed digest of a single
//! value (IC §4.1); a configuration's own digest is `digest`'s.

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::digest::ConfigDigest;

/// A SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    pub fn hex(&self) -> String {
        data_encoding::HEXLOWER.encode(&self.0)
    }

    pub fn from_hex(text: &str) -> Option<Digest> {
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).ok()?;
        Some(Digest(bytes.try_into().ok()?))
    }
}

/// The JSON has no canonical form: a number outside what RFC 8785 writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotCanonical;

/// RFC 8785.
pub fn canonical_json(json: &Json) -> Result<String, NotCanonical> {
    serde_json_canonicalizer::to_string(json).map_err(|_| NotCanonical)
}

/// A release's content digest (PA §6.2): over its metadata and each machine's
/// configuration digest, and over no ciphertext, since encrypting again changes that.
pub fn release_content_digest(
    metadata: &Json,
    machines: &[(String, ConfigDigest)],
) -> Result<Digest, NotCanonical> {
    let mut machines: Vec<(&str, ConfigDigest)> = machines
        .iter()
        .map(|(machine, digest)| (machine.as_str(), *digest))
        .collect();
    machines.sort();
    let machines: serde_json::Map<String, Json> = machines
        .into_iter()
        .map(|(machine, digest)| {
            (
                machine.to_string(),
                Json::from(Digest(*digest.as_bytes()).hex()),
            )
        })
        .collect();
    let whole = serde_json::json!({ "metadata": metadata, "machines": machines });
    Ok(Digest::of(canonical_json(&whole)?.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_json_orders_members_by_utf_16_and_writes_numbers_shortest() {
        let json =
            json!({"b": 1.0, "a": [true, null, "\u{20ac}\n"], "\u{10000}": 1, "\u{e000}": 2});
        let text = canonical_json(&json).expect("canonical");
        assert_eq!(
            text,
            "{\"a\":[true,null,\"\u{20ac}\\n\"],\"b\":1,\"\u{10000}\":1,\"\u{e000}\":2}"
        );
    }

    #[test]
    fn a_release_digest_depends_on_content_and_not_on_the_order_of_machines() {
        let one = ("m_a".to_string(), ConfigDigest::of(b"1"));
        let two = ("m_b".to_string(), ConfigDigest::of(b"2"));
        let of = |machines: &[(String, ConfigDigest)]| {
            release_content_digest(&json!({"contract": "v1.13"}), machines).expect("canonical")
        };
        assert_eq!(
            of(&[one.clone(), two.clone()]),
            of(&[two.clone(), one.clone()])
        );
        assert_ne!(of(std::slice::from_ref(&one)), of(&[one.clone(), two]));
        let renamed =
            release_content_digest(&json!({"contract": "v1.14"}), std::slice::from_ref(&one));
        assert_ne!(renamed.expect("canonical"), of(&[one]));
    }
}
