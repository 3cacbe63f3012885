//! Drift (EaR 6.1): what an observation makes of a machine's open drift record.
//!
//! Recording an observation asks here, in the same transaction. Detection opens,
//! extends or closes a record and raises an alert; it never freezes and never applies.

use crate::attempt::Attempt;
use crate::digest::ConfigDigest;
use crate::id::{MachineId, ObservationId, OperationId};
use crate::observation::{Observation, Purpose};
use crate::release::Applied;
use crate::revision::{BaselineRevision, TimelineRevision};
use crate::rules::{Rule, Rules};

/// Why a drift record was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resolution {
    Adopted,
    Reverted,
    Returned,
}

impl Resolution {
    pub const fn as_str(self) -> &'static str {
        match self {
            Resolution::Adopted => "adopted",
            Resolution::Reverted => "reverted",
            Resolution::Returned => "returned",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "adopted" => Some(Resolution::Adopted),
            "reverted" => Some(Resolution::Reverted),
            "returned" => Some(Resolution::Returned),
            _ => None,
        }
    }
}

/// A machine's open drift record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenDrift {
    pub machine: MachineId,
    /// Its opening entry, by which plans bind it.
    pub revision: TimelineRevision,
    pub applied_digest: ConfigDigest,
    /// The digest last observed.
    pub observed_digest: ConfigDigest,
    pub observation: ObservationId,
    pub last_observation: ObservationId,
    pub late_landing: Option<OperationId>,
}

/// What detection looks at, read under the machine's lock.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub observation: &'a Observation,
    /// Applied now.
    pub applied: Option<&'a Applied>,
    /// The baseline revision that held at the observation's basis.
    pub baseline_at_basis: Option<BaselineRevision>,
    /// Whether a recorded observation with a higher basis read the digest.
    pub superseded: bool,
    /// Whether an operation holds the scope, or took it at or after the basis. The
    /// operation that a completion observation fails is not counted by its caller.
    pub held_since_basis: bool,
    pub open: Option<&'a OpenDrift>,
    /// The machine's latest operation with an attempt accounted by decision, its artifact's
    /// digest, and those attempts.
    pub accounted: Option<AccountedOperation<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub struct AccountedOperation<'a> {
    pub operation: OperationId,
    pub artifact: ConfigDigest,
    pub attempts: &'a [Attempt],
}

/// What becomes of the record. Opening and extending raise an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Detection {
    Nothing,
    Open {
        applied: ConfigDigest,
        observed: ConfigDigest,
        late_landing: Option<OperationId>,
    },
    /// A further differing observation is recorded on the open record.
    Extend {
        observed: ConfigDigest,
        late_landing: Option<OperationId>,
    },
    /// The machine shows Applied again.
    Return,
}

/// Whether observations of this purpose detect drift at all. Evidence does only for a
/// commitment refused on its digest, completion only where it fails an operation; their
/// callers ask only then.
pub const fn detects(purpose: Purpose) -> bool {
    match purpose {
        Purpose::Drift | Purpose::Restoration | Purpose::Evidence | Purpose::Completion => true,
        Purpose::Publication | Purpose::Recovery => false,
    }
}

/// Decides what an observation does to a machine's drift record.
pub fn detect<R: Rules>(rules: &R, facts: &Facts<'_>) -> Detection {
    let purpose = facts.observation.started.purpose;
    let (Some(applied), Some(observed)) = (facts.applied, facts.observation.digest()) else {
        return Detection::Nothing;
    };
    let unmoved = facts.baseline_at_basis == Some(applied.baseline);
    if !detects(purpose)
        || !rules.holds(Rule::DriftBaselineUnmoved, unmoved)
        || !rules.holds(Rule::DriftNotSuperseded, !facts.superseded)
    {
        return Detection::Nothing;
    }
    let differs = observed != applied.digest;
    let late_landing = late_landing(rules, facts, observed);
    match (facts.open, differs) {
        (None, false) => Detection::Nothing,
        (Some(_), false) if rules.enforced(Rule::DriftReturns) => Detection::Return,
        (Some(_), false) => Detection::Nothing,
        (open, true) => {
            let free = match purpose {
                Purpose::Drift | Purpose::Evidence => !facts.held_since_basis,
                Purpose::Restoration
                | Purpose::Completion
                | Purpose::Publication
                | Purpose::Recovery => true,
            };
            if !rules.holds(Rule::DriftScopeFree, free) {
                return Detection::Nothing;
            }
            let opens = open.is_none() || !rules.enforced(Rule::DriftOpensOnce);
            if opens {
                Detection::Open {
                    applied: applied.digest,
                    observed,
                    late_landing,
                }
            } else {
                Detection::Extend {
                    observed,
                    late_landing,
                }
            }
        }
    }
}

/// The operation whose request, accounted for as lost, shows on the node after all
/// (EaR 5.2).
fn late_landing<R: Rules>(
    rules: &R,
    facts: &Facts<'_>,
    observed: ConfigDigest,
) -> Option<OperationId> {
    let accounted = facts.accounted?;
    let decided = accounted
        .attempts
        .iter()
        .any(|attempt| attempt.accounting.is_some());
    (rules.enforced(Rule::LateLandingLinked) && decided && accounted.artifact == observed)
        .then_some(accounted.operation)
}
