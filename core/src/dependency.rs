//! What an answer of the provider says about one version a release depends on (DM §3).
//!
//! The dependency monitor and publication call the same function: one answer to one
//! request by name is one classification. The rows of DM §3 stand here in order, and
//! the first that matches decides. Never in this module: a clock (a deletion time is
//! compared with the answer's own `Date`), a value, or a class from anything but an
//! answer, such as an age or a count of failures.

pub mod date;

use std::collections::BTreeMap;

/// One version of a KV secret. Path and version are no identity: deleting the path's
/// metadata lets the same numbers be given again, so the creation time belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KvVersion {
    /// Below the mount, such as `gen/<cluster>/<claim>/<value>`.
    pub path: String,
    pub version: i64,
    /// The provider's own text, which has nanoseconds and no trailing zeros. None in
    /// publication's first look at a version, which has no recorded one to compare.
    pub created: Option<String>,
}

/// One version of a Transit key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransitVersion {
    pub key: String,
    pub version: i64,
    /// Whole seconds since 1970, as the key's `keys` map gives them. None as above.
    pub created: Option<i64>,
}

/// What came back for one request by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<F> {
    /// No connection, or no answer in time.
    Unreachable,
    Answered {
        status: u16,
        /// The `Date` header, if there was exactly one.
        date: Option<String>,
        /// What the body says; None when it does not parse.
        facts: Option<F>,
    },
}

/// A KV path's metadata, without its custom metadata, which is not ours to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvFacts {
    pub current_version: i64,
    /// 0 until something was pruned.
    pub oldest_version: i64,
    pub versions: BTreeMap<i64, KvVersionFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvVersionFacts {
    pub created: Option<String>,
    /// None when the provider gives an empty one.
    pub deletion: Option<String>,
    pub destroyed: bool,
}

/// A Transit key's state. A field the answer lacks is None.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransitFacts {
    /// Only versions at or above the provider's own floors stand here, and none at all
    /// for a key type without creation times.
    pub keys: BTreeMap<i64, i64>,
    pub latest_version: Option<i64>,
    pub min_available_version: Option<i64>,
    pub min_decryption_version: Option<i64>,
    pub soft_deleted: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    Retained,
    Blocked,
    Lost,
    Unknown,
}

impl Class {
    pub const ALL: [Class; 4] = [Class::Retained, Class::Blocked, Class::Lost, Class::Unknown];

    pub const fn name(self) -> &'static str {
        match self {
            Class::Retained => "retained",
            Class::Blocked => "blocked",
            Class::Lost => "lost",
            Class::Unknown => "unknown",
        }
    }

    pub fn parse(text: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == text)
    }
}

/// Why a class was given; each belongs to exactly one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    Malformed,
    Denied,
    Absent,
    Unavailable,
    Unreachable,
    Unreadable,
    Destroyed,
    Pruned,
    InsufficientEvidence,
    IdentityMismatch,
    DeletionTimeUndecidable,
    SoftDeleted,
    DeletionScheduled,
    SoftDeleteUnobserved,
    TrimmedUnverified,
    BelowDecryptionFloorUnverified,
    Trimmed,
    BelowDecryptionFloor,
}

impl Reason {
    pub const ALL: [Reason; 18] = [
        Reason::Malformed,
        Reason::Denied,
        Reason::Absent,
        Reason::Unavailable,
        Reason::Unreachable,
        Reason::Unreadable,
        Reason::Destroyed,
        Reason::Pruned,
        Reason::InsufficientEvidence,
        Reason::IdentityMismatch,
        Reason::DeletionTimeUndecidable,
        Reason::SoftDeleted,
        Reason::DeletionScheduled,
        Reason::SoftDeleteUnobserved,
        Reason::TrimmedUnverified,
        Reason::BelowDecryptionFloorUnverified,
        Reason::Trimmed,
        Reason::BelowDecryptionFloor,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Reason::Malformed => "malformed",
            Reason::Denied => "denied",
            Reason::Absent => "absent",
            Reason::Unavailable => "unavailable",
            Reason::Unreachable => "unreachable",
            Reason::Unreadable => "unreadable",
            Reason::Destroyed => "destroyed",
            Reason::Pruned => "pruned",
            Reason::InsufficientEvidence => "insufficient-evidence",
            Reason::IdentityMismatch => "identity-mismatch",
            Reason::DeletionTimeUndecidable => "deletion-time-undecidable",
            Reason::SoftDeleted => "soft-deleted",
            Reason::DeletionScheduled => "deletion-scheduled",
            Reason::SoftDeleteUnobserved => "soft-delete-unobserved",
            Reason::TrimmedUnverified => "trimmed-unverified",
            Reason::BelowDecryptionFloorUnverified => "below-decryption-floor-unverified",
            Reason::Trimmed => "trimmed",
            Reason::BelowDecryptionFloor => "below-decryption-floor",
        }
    }

    pub fn parse(text: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.name() == text)
    }

    /// The only class the reason is given with.
    pub const fn class(self) -> Class {
        match self {
            Reason::DeletionScheduled => Class::Retained,
            Reason::SoftDeleted | Reason::BelowDecryptionFloor => Class::Blocked,
            Reason::Destroyed | Reason::Pruned | Reason::Trimmed => Class::Lost,
            Reason::Malformed
            | Reason::Denied
            | Reason::Absent
            | Reason::Unavailable
            | Reason::Unreachable
            | Reason::Unreadable
            | Reason::InsufficientEvidence
            | Reason::IdentityMismatch
            | Reason::DeletionTimeUndecidable
            | Reason::SoftDeleteUnobserved
            | Reason::TrimmedUnverified
            | Reason::BelowDecryptionFloorUnverified => Class::Unknown,
        }
    }

    /// How an operator undoes a block; None where nothing does or nothing is known.
    pub const fn undo(self) -> Option<&'static str> {
        match self {
            Reason::SoftDeleted => Some("undelete the version"),
            Reason::BelowDecryptionFloor => Some("lower min_decryption_version"),
            _ => None,
        }
    }
}

/// A class with its reason, and the provider's deletion time where one is scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classification {
    pub class: Class,
    /// None for a version simply there.
    pub reason: Option<Reason>,
    /// The provider's text, only with `deletion-scheduled`.
    pub scheduled: Option<String>,
}

impl Classification {
    const RETAINED: Classification = Classification {
        class: Class::Retained,
        reason: None,
        scheduled: None,
    };

    fn because(reason: Reason) -> Classification {
        Classification {
            class: reason.class(),
            reason: Some(reason),
            scheduled: None,
        }
    }
}

/// Rows 1 to 14 of DM §3.
pub fn classify_kv(recorded: &KvVersion, answer: &Answer<KvFacts>) -> Classification {
    let (facts, date) = match common(recorded.version, answer) {
        Ok(read) => read,
        Err(reason) => return Classification::because(reason),
    };
    let entry = facts.versions.get(&recorded.version);
    // Destroyed and pruned stand before the identity on purpose: whoever's version it
    // is now, the recorded one is gone.
    if entry.is_some_and(|entry| entry.destroyed) {
        return Classification::because(Reason::Destroyed);
    }
    if facts.oldest_version > 0 && recorded.version < facts.oldest_version {
        return Classification::because(Reason::Pruned);
    }
    let Some(entry) = entry.filter(|_| recorded.version <= facts.current_version) else {
        return Classification::because(Reason::InsufficientEvidence);
    };
    let known = match (&recorded.created, &entry.created) {
        (Some(recorded), Some(given)) => recorded == given,
        (None, given) => given.is_some(),
        (Some(_), None) => false,
    };
    if !known {
        return Classification::because(Reason::IdentityMismatch);
    }
    match &entry.deletion {
        None => Classification::RETAINED,
        Some(deletion) => classify_deletion(deletion, date),
    }
}

/// Rows 11 to 13: only a deletion time in another second than `Date` decides anything.
fn classify_deletion(deletion: &str, date: Option<&str>) -> Classification {
    let Some(at) = date::rfc3339_second(deletion) else {
        return Classification::because(Reason::Unreadable);
    };
    match date.and_then(date::http_date).map(|now| at.cmp(&now)) {
        None | Some(std::cmp::Ordering::Equal) => {
            Classification::because(Reason::DeletionTimeUndecidable)
        }
        Some(std::cmp::Ordering::Less) => Classification::because(Reason::SoftDeleted),
        Some(std::cmp::Ordering::Greater) => Classification {
            scheduled: Some(deletion.to_owned()),
            ..Classification::because(Reason::DeletionScheduled)
        },
    }
}

/// Rows 1 to 6 and 15 to 24 of DM §3.
pub fn classify_transit(
    recorded: &TransitVersion,
    answer: &Answer<TransitFacts>,
) -> Classification {
    let facts = match common(recorded.version, answer) {
        Ok((facts, _)) => facts,
        Err(reason) => return Classification::because(reason),
    };
    match transit_reason(recorded, facts) {
        Some(reason) => Classification::because(reason),
        None => Classification::RETAINED,
    }
}

fn transit_reason(recorded: &TransitVersion, facts: &TransitFacts) -> Option<Reason> {
    let listed = facts.keys.get(&recorded.version);
    if let (Some(given), Some(created)) = (listed, recorded.created)
        && *given != created
    {
        return Some(Reason::IdentityMismatch);
    }
    if facts.soft_deleted != Some(false) {
        return Some(Reason::SoftDeleteUnobserved);
    }
    let (Some(available), Some(decryption), Some(latest)) = (
        facts.min_available_version,
        facts.min_decryption_version,
        facts.latest_version,
    ) else {
        return Some(Reason::InsufficientEvidence);
    };
    if recorded.version > latest {
        return Some(Reason::InsufficientEvidence);
    }
    // The provider hides versions below a floor from `keys`. A hidden version has no
    // identity to compare, so it is unknown, and the reason names the floor.
    let trimmed = available > 0 && recorded.version < available;
    let below = recorded.version < decryption;
    match (listed.is_some(), trimmed, below) {
        (false, true, _) => Some(Reason::TrimmedUnverified),
        (false, false, true) => Some(Reason::BelowDecryptionFloorUnverified),
        (false, false, false) => Some(Reason::InsufficientEvidence),
        (true, true, _) => Some(Reason::Trimmed),
        (true, false, true) => Some(Reason::BelowDecryptionFloor),
        (true, false, false) => None,
    }
}

/// Rows 1 to 6, which are every provider object's.
fn common<F>(version: i64, answer: &Answer<F>) -> Result<(&F, Option<&str>), Reason> {
    if version < 1 {
        return Err(Reason::Malformed);
    }
    match answer {
        Answer::Unreachable => Err(Reason::Unreachable),
        Answer::Answered {
            status,
            date,
            facts,
        } => match (status, facts) {
            (403, _) => Err(Reason::Denied),
            (404, _) => Err(Reason::Absent),
            (503, _) => Err(Reason::Unavailable),
            (200, Some(facts)) => Ok((facts, date.as_deref())),
            _ => Err(Reason::Unreadable),
        },
    }
}

/// The creation time an answer gives a KV version: publication's own identity of it.
pub fn kv_created(version: i64, answer: &Answer<KvFacts>) -> Option<&str> {
    let (facts, _) = common(version, answer).ok()?;
    facts.versions.get(&version)?.created.as_deref()
}

/// The creation time an answer gives a key version.
pub fn transit_created(version: i64, answer: &Answer<TransitFacts>) -> Option<i64> {
    let (facts, _) = common(version, answer).ok()?;
    facts.keys.get(&version).copied()
}

/// The creation time of the key version that an artifact was encrypted under, if the two
/// reads around the encryption prove it (IC §11): both give the same one, and it lies in
/// a second before the first answer's `Date`. A key made in that second could have been
/// deleted and made again within it under the same identity.
pub fn proven_created(
    version: i64,
    before: &Answer<TransitFacts>,
    after: &Answer<TransitFacts>,
) -> Option<i64> {
    let first = transit_created(version, before)?;
    let Answer::Answered { date, .. } = before else {
        return None;
    };
    let asked = date::http_date(date.as_deref()?)?;
    (first < asked && transit_created(version, after) == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests;
