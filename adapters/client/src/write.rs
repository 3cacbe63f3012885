//! What a write carries beside its body: its key, its ETag, the epoch it expects.

use std::fmt;

/// A key that does not fit PA §7.1's grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an idempotency key of 16 to 128 characters of A-Z a-z 0-9 _ -")]
pub struct MalformedKey;

/// An idempotency key. The caller keeps it until it has the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    pub fn parse(text: &str) -> Result<Self, MalformedKey> {
        let spelled = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if spelled && (16..=128).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(MalformedKey)
        }
    }

    /// A key of 128 bits from the caller's random source.
    pub fn from_bits(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The headers of a write.
#[derive(Clone, Debug)]
pub struct Write {
    pub(crate) key: IdempotencyKey,
    pub(crate) if_match: Option<String>,
    pub(crate) expected_epoch: Option<String>,
}

impl Write {
    pub fn new(key: IdempotencyKey) -> Self {
        Self {
            key,
            if_match: None,
            expected_epoch: None,
        }
    }

    /// The draft's current ETag, as an answer gave it.
    #[must_use]
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.if_match = Some(etag.into());
        self
    }

    /// The epoch the caller decided in (PA §7.2).
    #[must_use]
    pub fn expecting(mut self, epoch: impl Into<String>) -> Self {
        self.expected_epoch = Some(epoch.into());
        self
    }
}
