//! The configuration digest (EaR 1): one function, used by everything that compares
//! configurations.
//!
//! Never in this module: keyed digests (they need the provider's key) and a text
//! form in an answer. A configuration's digest confirms a guess at the whole of it,
//! so no route serves one (PA choice 17.38), and Debug withholds it.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// SHA-256 over a configuration's bytes with trailing line feeds stripped and one
/// appended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigDigest([u8; 32]);

impl ConfigDigest {
    /// Of an artifact's plaintext, an imported input, or a node's configuration
    /// (`proto_spec` field 1, never the re-quoted text).
    pub fn of(configuration: &[u8]) -> Self {
        let end = configuration
            .iter()
            .rposition(|byte| *byte != b'\n')
            .map_or(0, |last| last + 1);
        let mut hash = Sha256::new();
        hash.update(&configuration[..end]);
        hash.update(b"\n");
        Self(hash.finalize().into())
    }

    /// As a store keeps it.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for ConfigDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigDigest(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_line_feeds_do_not_change_a_configurations_digest_and_others_do() {
        let digest = ConfigDigest::of(b"machine: {}");
        assert_eq!(ConfigDigest::of(b"machine: {}\n"), digest);
        assert_eq!(ConfigDigest::of(b"machine: {}\n\n\n"), digest);
        assert_ne!(ConfigDigest::of(b"\nmachine: {}"), digest);
        assert_ne!(ConfigDigest::of(b"machine: {}\r\n"), digest);
        assert_ne!(ConfigDigest::of(b"machine: {} \n"), digest);
        assert_eq!(ConfigDigest::of(b""), ConfigDigest::of(b"\n\n"));
    }

    #[test]
    fn the_digest_is_plain_sha_256_of_the_text_with_one_line_feed() {
        assert_eq!(
            ConfigDigest::of(b"").as_bytes()[..4],
            [0x01, 0xba, 0x47, 0x19]
        );
    }

    #[test]
    fn debug_shows_no_digest() {
        assert_eq!(format!("{:?}", ConfigDigest::of(b"x")), "ConfigDigest(..)");
    }
}
