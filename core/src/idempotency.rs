//! Idempotency keys, fingerprints and what a lookup decides (PA §7).
//!
//! The request wrapper of the engine asks with what it found; http parses the header.
//! Never in this module: a request's body. A fingerprint is all that is kept of it.

use std::fmt;

use crate::id::EpochId;
use crate::rules::{Rule, Rules};

/// A client's key: 16 to 128 characters of `[A-Za-z0-9_-]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String);

/// A header that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an idempotency key of 16 to 128 characters of A-Z a-z 0-9 _ -")]
pub struct KeyError;

impl IdempotencyKey {
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let spelled = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if spelled && (16..=128).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(KeyError)
        }
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

/// A request's fingerprint: SHA-256, or the provider's HMAC under a named key version
/// where the body can hold unextracted text (PA §7.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub digest: [u8; 32],
    /// The digest key's name and version, for a keyed fingerprint.
    pub key: Option<DigestKey>,
}

/// The digest key a keyed fingerprint was computed under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestKey {
    pub name: String,
    pub version: i64,
}

/// What a lookup found, reduced to what it decides on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether the stored fingerprint is this request's: none where the provider can no
    /// longer compute under the stored key version, which is answered as another request.
    pub same_request: Option<bool>,
    pub epoch: EpochId,
    /// The record is of a recovery entry, and not of the one this start committed.
    pub foreign_entry: bool,
}

/// What a lookup answers (PA §7.2's table).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// No record, and the client expects this epoch or none: the request executes.
    Execute,
    /// The stored answer, replayed.
    Replay,
    /// 422 `idempotency-key-reused`.
    OtherRequest,
    /// 409, naming the stored request and its epoch.
    EarlierEpoch { stored: EpochId },
    /// 412 `epoch-mismatch`, naming the current epoch.
    EpochMismatch { current: EpochId },
}

/// Decides a lookup. An earlier epoch's record is refused before its fingerprint is
/// compared: neither answer executes anything, and a keyed fingerprint of an earlier
/// epoch need not be computed.
pub fn look_up<R: Rules>(
    rules: &R,
    found: Option<Found>,
    current: EpochId,
    expected: Option<EpochId>,
) -> Lookup {
    let Some(found) = found else {
        let expected = expected.is_none_or(|expected| expected == current);
        return if rules.holds(Rule::ExpectedEpoch, expected) {
            Lookup::Execute
        } else {
            Lookup::EpochMismatch { current }
        };
    };
    if !rules.holds(Rule::EntryRecordOfThisStart, !found.foreign_entry)
        || !rules.holds(Rule::IdempotencyEpoch, found.epoch == current)
    {
        return Lookup::EarlierEpoch {
            stored: found.epoch,
        };
    }
    let same = found.same_request == Some(true);
    if rules.holds(Rule::IdempotencyFingerprint, same) {
        Lookup::Replay
    } else {
        Lookup::OtherRequest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    fn epoch(bits: u128) -> EpochId {
        EpochId::from_bits(bits)
    }

    const FOUND: fn() -> Found = || Found {
        same_request: Some(true),
        epoch: EpochId::from_bits(1),
        foreign_entry: false,
    };

    #[test]
    fn a_key_has_its_length_and_its_alphabet() {
        assert!(IdempotencyKey::parse(&"a".repeat(15)).is_err());
        assert!(IdempotencyKey::parse(&"a".repeat(16)).is_ok());
        assert!(IdempotencyKey::parse(&"Z-_9".repeat(32)).is_ok());
        assert!(IdempotencyKey::parse(&"a".repeat(129)).is_err());
        assert!(IdempotencyKey::parse("0123456789abcde ").is_err());
        assert!(IdempotencyKey::parse("0123456789abcdeé").is_err());
    }

    #[test]
    fn every_row_of_the_table_is_answered() {
        let look = |found, expected| look_up(&Enforced, found, epoch(1), expected);
        assert_eq!(look(None, None), Lookup::Execute);
        assert_eq!(look(None, Some(epoch(1))), Lookup::Execute);
        assert_eq!(
            look(None, Some(epoch(2))),
            Lookup::EpochMismatch { current: epoch(1) }
        );
        assert_eq!(look(Some(FOUND()), None), Lookup::Replay);
        assert_eq!(look(Some(FOUND()), Some(epoch(2))), Lookup::Replay);
        for same_request in [Some(false), None] {
            let other = Found {
                same_request,
                ..FOUND()
            };
            assert_eq!(look(Some(other), None), Lookup::OtherRequest);
        }
        let earlier = Found {
            epoch: epoch(3),
            ..FOUND()
        };
        assert_eq!(
            look(Some(earlier), Some(epoch(3))),
            Lookup::EarlierEpoch { stored: epoch(3) }
        );
        let entry = Found {
            foreign_entry: true,
            ..FOUND()
        };
        assert_eq!(
            look(Some(entry), None),
            Lookup::EarlierEpoch { stored: epoch(1) }
        );
    }

    #[test]
    fn each_rule_of_a_lookup_lets_its_case_through_when_it_is_dropped() {
        let earlier = Found {
            epoch: epoch(3),
            ..FOUND()
        };
        let other = Found {
            same_request: Some(false),
            ..FOUND()
        };
        let entry = Found {
            foreign_entry: true,
            ..FOUND()
        };
        for (rule, found, expected, answer) in [
            (Rule::IdempotencyEpoch, Some(earlier), None, Lookup::Replay),
            (
                Rule::IdempotencyFingerprint,
                Some(other),
                None,
                Lookup::Replay,
            ),
            (
                Rule::EntryRecordOfThisStart,
                Some(entry),
                None,
                Lookup::Replay,
            ),
            (Rule::ExpectedEpoch, None, Some(epoch(2)), Lookup::Execute),
        ] {
            let rules: &'static [Rule] = vec![rule].leak();
            assert_eq!(look_up(&Without(rules), found, epoch(1), expected), answer);
        }
    }
}
