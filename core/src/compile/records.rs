//! What a compilation tells of its references: provenance and dependencies (IC §8.2, §9).
//!
//! Publication stores the records and holds them to the sources' declarations before it
//! commits (PA §6.2). Every path in them is already redacted. Never in this module: a
//! value.

use std::collections::BTreeSet;

use crate::canonical::Digest;
use crate::path::ShownPath;
use crate::redact::message::View;
use crate::reference::{Encoding, Version};
use crate::refusal::Origin;
use crate::secret::Kind;

/// What became of one reference occurrence, or of one member of its mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reached these leaves of the output, an alias more than one.
    Effective(Vec<ShownPath>),
    /// The fragment, by its position, that overrode it.
    Overridden(usize),
    /// Nothing was composed.
    NotComposed,
}

/// One provenance record (IC §8.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub version: Version,
    pub encoding: Option<Encoding>,
    /// For a mapping, the member's position in key order.
    pub member: Option<usize>,
    pub origin: Origin,
    /// SHA-256 of the source's text.
    pub source_digest: Digest,
    pub path: ShownPath,
    /// The occurrence's position among its source's occurrences.
    pub position: usize,
    pub fate: Fate,
    /// Handed to publication and not stored: the kind it was compiled as, and for a
    /// mapping how many members there are.
    pub kind: Kind,
    pub members: usize,
}

/// One reproduction dependency (IC §9): a reference that compiling again would need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reproduction {
    pub version: Version,
    pub origin: Origin,
    pub source_digest: Digest,
    pub path: ShownPath,
    pub position: usize,
}

/// The redacted configuration, or why there is none to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Review {
    Shown(String),
    /// A rendering that could still show a value is not kept (IC §8.3).
    Withheld,
    NotComposed,
}

/// Everything that may be shown of a compilation, published or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub provenance: Vec<Record>,
    pub effective: BTreeSet<Version>,
    pub reproduction: Vec<Reproduction>,
    pub compose: View,
    pub validate: View,
    pub review: Review,
}

impl Default for Report {
    fn default() -> Report {
        Report {
            provenance: Vec::new(),
            effective: BTreeSet::new(),
            reproduction: Vec::new(),
            compose: View::Skipped,
            validate: View::Skipped,
            review: Review::NotComposed,
        }
    }
}
