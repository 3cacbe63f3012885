//! What a plan binds for good (EaR 2).

use crate::digest::ConfigDigest;
use crate::head::AssignmentAt;
use crate::id::{
    AssignmentRevisionId, ClusterId, EpochId, ImportBaseRevisionId, MachineId, PlanId, ReleaseId,
};
use crate::inventory::{Endpoint, MachineIdentity};
use crate::principal::Signed;
use crate::release::{RendererRecord, TransitKey};
use crate::revision::{BaselineRevision, TimelineRevision};
use crate::time::{DbTime, Span};

/// The bounds of one request that may be sent, and of what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    pub transport: Span,
    pub verification: Span,
    pub max_attempts: u8,
}

/// What the plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanOperation {
    /// Mode `no-reboot`, the only one.
    ApplyConfig(Deadlines),
    /// Records the import base as Applied; sends nothing.
    Adopt {
        import_base: ImportBaseRevisionId,
        import_base_digest: ConfigDigest,
    },
}

impl PlanOperation {
    pub const fn as_str(&self) -> &'static str {
        match self {
            PlanOperation::ApplyConfig(_) => "apply-config",
            PlanOperation::Adopt { .. } => "adopt",
        }
    }
}

/// Everything a plan names. It never changes; what it names may, and then the plan
/// cannot commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub id: PlanId,
    pub cluster: ClusterId,
    pub machine: MachineId,
    pub release: ReleaseId,
    pub operation: PlanOperation,
    /// The machine's artifact of the release.
    pub artifact_digest: ConfigDigest,
    pub renderer: RendererRecord,
    /// The key version the artifact was encrypted under.
    pub key: TransitKey,
    pub identity: MachineIdentity,
    /// The assignment head, and the revision the release was compiled from.
    pub assignment: Option<AssignmentAt>,
    pub assignment_revision: Option<AssignmentRevisionId>,
    /// None for a first adoption.
    pub baseline: Option<BaselineRevision>,
    pub desired: Option<ReleaseId>,
    /// The release of Applied at creation: what the plan's evidence compares with.
    pub applied_release: Option<ReleaseId>,
    /// What the node must show before anything is sent.
    pub pre_dispatch_digest: ConfigDigest,
    /// The open drift record, by its opening entry: an apply-config plan with one is a
    /// revert.
    pub drift: Option<TimelineRevision>,
    /// The machine's endpoint at creation; requests and observations dial it.
    pub route: Endpoint,
    pub max_observation_age: Span,
    pub check_validity: Span,
    pub created_by: Signed,
    pub epoch: EpochId,
    /// The revision of the plan's own entry.
    pub timeline_revision: TimelineRevision,
    pub created_at: DbTime,
    pub expires_at: DbTime,
}

impl Binding {
    /// How many machines of the cluster may change at once.
    pub const ROLLOUT_LIMIT: i64 = 1;
    pub const APPROVAL_POLICY: &'static str = "one-approver";

    pub const fn deadlines(&self) -> Option<Deadlines> {
        match self.operation {
            PlanOperation::ApplyConfig(deadlines) => Some(deadlines),
            PlanOperation::Adopt { .. } => None,
        }
    }

    /// Whether carrying it out overwrites a configuration no reviewer has seen.
    pub const fn is_revert(&self) -> bool {
        matches!(self.operation, PlanOperation::ApplyConfig(_)) && self.drift.is_some()
    }
}

/// A request's durations, in whole seconds; none takes the deployment's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    pub expires_in: Option<i64>,
    pub max_observation_age: Option<i64>,
    pub check_validity: Option<i64>,
    pub transport_deadline: Option<i64>,
    pub verification_deadline: Option<i64>,
    pub max_attempts: Option<i64>,
}

/// `execution.planDefaults` (PA choice 17.37).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanDefaults {
    pub expires_in: i64,
    pub max_observation_age: i64,
    pub check_validity: i64,
    pub transport_deadline: i64,
    pub verification_deadline: i64,
    pub max_attempts: i64,
}

impl PlanDefaults {
    pub const CONTRACT: PlanDefaults = PlanDefaults {
        expires_in: 24 * 3_600,
        max_observation_age: 300,
        check_validity: 300,
        transport_deadline: 60,
        verification_deadline: 600,
        max_attempts: 3,
    };
}

/// The deployment's values a creation reads inside its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanLimits {
    pub defaults: PlanDefaults,
    /// The maximum transport deadline recovery counts on (EaR 7.2), in seconds.
    pub max_transport: i64,
}
