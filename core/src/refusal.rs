//! What an ingestion or a compilation refused, and where: never a value (IC §13).
//!
//! The engine turns a [`Refusal`] into a problem; paths in it are already redacted.
//! Never in this module: a text of a peer.

use crate::path::ShownPath;

/// Where it stopped (IC §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Reading, marking, extracting and guarding an input.
    Ingestion,
    /// The source is not well formed.
    Authoring,
    /// Pins, kinds, encodings, scopes.
    Resolution,
    /// The machinery composed nothing, or the passes disagree.
    Compose,
    /// The composed output broke a rule of ours.
    Output,
    /// The machinery refused the composed configuration.
    Validate,
}

impl Stage {
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Ingestion => "ingestion",
            Stage::Authoring => "authoring",
            Stage::Resolution => "resolution",
            Stage::Compose => "compose",
            Stage::Output => "output",
            Stage::Validate => "validate",
        }
    }
}

/// Which source of a composition: the import base, or a fragment by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    Base,
    Fragment(usize),
}

/// One place a refusal names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The source at fault; `None` when it is the output or the one input there is.
    pub origin: Option<Origin>,
    pub path: Option<ShownPath>,
    /// The mark at fault by its position in the request (IC §3.6 item 4).
    pub mark: Option<usize>,
    /// The line of the input at fault, where the parser names one; 0 where it does not.
    pub line: u32,
}

impl Site {
    pub fn path(origin: Option<Origin>, path: ShownPath) -> Site {
        Site {
            origin,
            path: Some(path),
            mark: None,
            line: 0,
        }
    }

    pub fn origin(origin: Origin) -> Site {
        Site {
            origin: Some(origin),
            path: None,
            mark: None,
            line: 0,
        }
    }
}

/// A refusal: the stage, the rule's name and the places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub stage: Stage,
    pub rule: &'static str,
    /// For `fragment`, the fragment's position: the rule then reads `fragment[n]`.
    pub sites: Vec<Site>,
}

impl Refusal {
    pub fn new(stage: Stage, rule: &'static str, sites: Vec<Site>) -> Refusal {
        Refusal { stage, rule, sites }
    }

    /// The rule as problems name it: `fragment[n]` for a fragment the machinery refused.
    pub fn rule_name(&self) -> String {
        match (self.rule, self.sites.first().and_then(|site| site.origin)) {
            ("fragment", Some(Origin::Fragment(index))) => format!("fragment[{index}]"),
            _ => self.rule.to_string(),
        }
    }
}
