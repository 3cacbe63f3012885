//! What the comparisons compare, and their numbers.

use crate::attempt::Attempt;
use crate::epoch::ProcessEpoch;
use crate::fence::{Fence, Generation};
use crate::head::AssignmentAt;
use crate::id::{EpochId, OperationId, PlanId, ReleaseId};
use crate::observation::{AccessVersion, Observation, Read};
use crate::plan::{AnyPlan, Binding};
use crate::principal::Controller;
use crate::revision::{BaselineRevision, TimelineRevision};
use crate::scope::Scope;
use crate::time::DbTime;

/// One comparison, by its number in EaR 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    NoOperation,
    Authority,
    Binding,
    Evidence,
    ScopeFree,
    RolloutFree,
    Gate,
    Owner,
    SinceClassification,
    AttemptsLeft,
}

impl Comparison {
    pub const ALL: [Comparison; 10] = [
        Comparison::NoOperation,
        Comparison::Authority,
        Comparison::Binding,
        Comparison::Evidence,
        Comparison::ScopeFree,
        Comparison::RolloutFree,
        Comparison::Gate,
        Comparison::Owner,
        Comparison::SinceClassification,
        Comparison::AttemptsLeft,
    ];

    pub const fn number(self) -> u8 {
        self as u8
    }

    pub fn from_number(number: i64) -> Option<Self> {
        usize::try_from(number)
            .ok()
            .and_then(|number| Self::ALL.get(number).copied())
    }
}

/// The use-time check: the executor decrypted the bound artifact under the bound key
/// version, and read the cluster's access (EaR 3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UseTimeCheck {
    pub plan: PlanId,
    pub controller: Controller,
    pub revision: TimelineRevision,
    pub at: DbTime,
    pub access: Read<AccessVersion>,
    pub artifact: ArtifactCheck,
}

/// What decrypting the bound artifact under the bound key version gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArtifactCheck {
    /// The plaintext hashes to the bound configuration digest.
    Matches,
    Differs,
    /// The key version has another creation time than the bound one.
    KeyChanged,
    /// The provider refused, did not answer, or the key version is gone.
    Unavailable,
    /// Nothing was decrypted: the access could not be read.
    NotTried,
}

impl ArtifactCheck {
    pub const ALL: [ArtifactCheck; 5] = [
        ArtifactCheck::Matches,
        ArtifactCheck::Differs,
        ArtifactCheck::KeyChanged,
        ArtifactCheck::Unavailable,
        ArtifactCheck::NotTried,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            ArtifactCheck::Matches => "matches",
            ArtifactCheck::Differs => "differs",
            ArtifactCheck::KeyChanged => "key-changed",
            ArtifactCheck::Unavailable => "unavailable",
            ArtifactCheck::NotTried => "not-tried",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.as_str() == text)
    }
}

/// Evidence gathered for one plan by one controller.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    pub observation: &'a Observation,
    pub check: &'a UseTimeCheck,
    /// The version of the access this process would dial with.
    pub access_used: &'a AccessVersion,
    /// The machine's observations as recorded under its lock.
    pub recorded: &'a [Observation],
}

/// The plan's standing, read FOR SHARE.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// As its row has it; expiry and revocations are compared here.
    pub plan: &'a AnyPlan,
    /// Whether the approval it rests on has a revocation row.
    pub approval_revoked: bool,
    pub approver_revoked: bool,
}

/// The machine as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    pub assignment: Option<AssignmentAt>,
    pub desired: Option<ReleaseId>,
    pub baseline: Option<BaselineRevision>,
}

/// What is being admitted.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    Commitment {
        /// The plan's operation, if one exists.
        existing: Option<OperationId>,
        scope_holder: Option<OperationId>,
        rollout_holder: Option<OperationId>,
    },
    Attempt {
        operation: OperationId,
        state: AttemptFrom<'a>,
        /// The operation's fence as its row holds it, and this owner's token.
        held: &'a Fence,
        token: &'a Fence,
        attempts: &'a [Attempt],
    },
}

/// The operation's state as far as an attempt asks for it.
#[derive(Clone, Copy, Debug)]
pub enum AttemptFrom<'a> {
    Committed,
    /// Unresolved, with the classification recorded last, and the revision of the latest
    /// response, ownership transition or classification of the operation.
    Unresolved {
        classified: Option<&'a SafeToRetryEntry>,
        latest: TimelineRevision,
    },
    /// Every other state: nothing is sent from it.
    Other,
}

/// A recorded safe-to-retry classification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SafeToRetryEntry {
    pub revision: TimelineRevision,
    /// The generation of the owner that classified.
    pub generation: Generation,
}

/// Everything the comparisons compare.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub binding: &'a Binding,
    pub now: DbTime,
    /// The installation's epoch and mode, read FOR SHARE.
    pub epoch: EpochId,
    pub recovery_mode: bool,
    pub process: ProcessEpoch,
    pub controller: &'a Controller,
    pub standing: Standing<'a>,
    pub current: Current,
    /// None before any was gathered: then comparison 3 fails.
    pub evidence: Option<Evidence<'a>>,
    pub scope: &'a Scope,
    pub stage: Stage<'a>,
}
