//! A machine's timeline (EaR 4.1): what an entry says, and who it is by.
//!
//! Every act on a machine's scope appends one of these under the machine's row lock;
//! reads serve them. A new kind cannot be forgotten by a reader: the data is one enum.
//! Never in this module: an artifact's or a configuration's digest, text of a response,
//! a secret.

mod members;

use std::collections::BTreeMap;

use crate::attempt::ResponseClass;
use crate::authority::SelfApproval;
use crate::comparison::{ArtifactCheck, Comparison};
use crate::drift::Resolution;
use crate::fence::Generation;
use crate::id::{
    ActId, ApprovalId, AttemptId, EpochId, MachineId, ObservationId, OperationId, PlanId,
    PrincipalId, ReleaseId,
};
use crate::inventory::Endpoint;
use crate::observation::{AccessVersion, Purpose, Read, Unread};
use crate::operation::OperationState;
use crate::principal::{By, Signed};
use crate::release::AppliedSource;
use crate::revision::{BaselineRevision, TimelineRevision};
use crate::scope::{Missing, ScopeState};
use crate::time::DbTime;

/// An entry of a machine's timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub machine: MachineId,
    /// Allocated under the machine row's lock: its order is commit order.
    pub revision: TimelineRevision,
    pub at: DbTime,
    pub by: By,
    /// The act it belongs to, where a request made it.
    pub act: Option<ActId>,
    pub data: Data,
}

/// A classification's outcome as its entry names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    Completed,
    Rejected,
    Failed,
    SafeToRetry,
    Unresolved,
    Cancelled,
}

impl Outcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Rejected => "rejected",
            Outcome::Failed => "failed",
            Outcome::SafeToRetry => "safe-to-retry",
            Outcome::Unresolved => "unresolved",
            Outcome::Cancelled => "cancelled",
        }
    }
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    Plan {
        plan: PlanId,
        operation: &'static str,
        release: ReleaseId,
    },
    Approval {
        approval: ApprovalId,
        plan: PlanId,
        self_approval: Vec<SelfApproval>,
        unseen_overwrite: bool,
    },
    ApprovalRevocation {
        approval: ApprovalId,
        plan: PlanId,
        reason: String,
    },
    IdentityRevocation {
        identity: PrincipalId,
        /// The live plans of this machine that identity approved.
        plans: Vec<PlanId>,
        reason: String,
    },
    Cancellation {
        plan: PlanId,
        reason: String,
    },
    ObservationStarted {
        observation: ObservationId,
        purpose: Purpose,
        endpoint: Endpoint,
        plan: Option<PlanId>,
        operation: Option<OperationId>,
    },
    Observation {
        observation: ObservationId,
        purpose: Purpose,
        basis: TimelineRevision,
        access: Read<AccessVersion>,
        /// What was not read, by its member, and why.
        unread: Vec<(&'static str, Unread)>,
    },
    UseTimeCheck {
        plan: PlanId,
        access: Read<AccessVersion>,
        artifact: ArtifactCheck,
    },
    Commitment {
        plan: PlanId,
        operation: OperationId,
    },
    /// A refused commitment, attempt or adoption: every failed comparison, ascending.
    Refusal {
        plan: PlanId,
        operation: Option<OperationId>,
        comparisons: Vec<Comparison>,
        process_epoch: bool,
    },
    Attempt {
        operation: OperationId,
        attempt: AttemptId,
        number: u8,
        route: Endpoint,
        transport_deadline: DbTime,
        verification_deadline: DbTime,
    },
    Response {
        operation: OperationId,
        attempt: AttemptId,
        class: ResponseClass,
        code: &'static str,
    },
    OwnershipTransition {
        operation: OperationId,
        from: Generation,
        to: Generation,
        epoch: EpochId,
        /// Who asked for it, and why, where it was asked for.
        requested: Option<(Signed, String)>,
    },
    Accounting {
        /// None for an attempt the restore erased.
        attempt: Option<(OperationId, AttemptId)>,
        start: ObservationId,
        end: ObservationId,
        facts: BTreeMap<String, String>,
    },
    Classification {
        operation: OperationId,
        outcome: Outcome,
        observation: Option<ObservationId>,
    },
    OperationState {
        operation: OperationId,
        /// None for the state an operation is created in.
        from: Option<OperationState>,
        to: OperationState,
        cause: Option<&'static str>,
        observation: Option<ObservationId>,
        /// What a human gave, where a human decided it.
        reason: Option<String>,
    },
    AppliedChange {
        release: ReleaseId,
        source: AppliedSource,
        baseline: BaselineRevision,
        operation: OperationId,
        observation: ObservationId,
    },
    DriftOpened {
        observation: ObservationId,
        late_landing: Option<OperationId>,
    },
    DriftExtended {
        drift: TimelineRevision,
        observation: ObservationId,
        late_landing: Option<OperationId>,
    },
    DriftClosed {
        drift: TimelineRevision,
        resolution: Resolution,
        observation: Option<ObservationId>,
    },
    Freeze {
        reason: Option<String>,
    },
    Unfreeze {
        reason: String,
    },
    AdoptionRecord {
        plan: PlanId,
        operation: OperationId,
        release: ReleaseId,
        observation: ObservationId,
    },
    EndpointChange {
        from: Endpoint,
        to: Endpoint,
        reason: Option<String>,
    },
    RecoveryEntry {
        epoch: EpochId,
    },
    ScopeState {
        from: ScopeState,
        to: ScopeState,
        observation: Option<ObservationId>,
        missing: Vec<Missing>,
        /// The Desired release a mark checked.
        desired: Option<ReleaseId>,
        facts: BTreeMap<String, String>,
    },
    ScopeRelease {
        epoch: EpochId,
        /// The mark it rests on.
        mark: TimelineRevision,
    },
    /// The machine can never be observed again (EaR 7.3).
    Decommission {
        reason: String,
    },
}

impl Data {
    /// The entry's `type`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Data::Plan { .. } => "plan",
            Data::Approval { .. } => "approval",
            Data::ApprovalRevocation { .. } => "approval-revocation",
            Data::IdentityRevocation { .. } => "identity-revocation",
            Data::Cancellation { .. } => "cancellation",
            Data::ObservationStarted { .. } => "observation-started",
            Data::Observation { .. } => "observation",
            Data::UseTimeCheck { .. } => "use-time-check",
            Data::Commitment { .. } => "commitment",
            Data::Refusal { .. } => "refusal",
            Data::Attempt { .. } => "attempt",
            Data::Response { .. } => "response",
            Data::OwnershipTransition { .. } => "ownership-transition",
            Data::Accounting { .. } => "accounting",
            Data::Classification { .. } => "classification",
            Data::OperationState { .. } => "operation-state",
            Data::AppliedChange { .. } => "applied-change",
            Data::DriftOpened { .. } => "drift-opened",
            Data::DriftExtended { .. } => "drift-extended",
            Data::DriftClosed { .. } => "drift-closed",
            Data::Freeze { .. } => "freeze",
            Data::Unfreeze { .. } => "unfreeze",
            Data::AdoptionRecord { .. } => "adoption-record",
            Data::EndpointChange { .. } => "endpoint-change",
            Data::RecoveryEntry { .. } => "recovery-entry",
            Data::ScopeState { .. } => "scope-state",
            Data::ScopeRelease { .. } => "scope-release",
            Data::Decommission { .. } => "decommission",
        }
    }

    /// The operation whose events the entry belongs to (PA §8.3): from its commitment on.
    pub const fn operation(&self) -> Option<OperationId> {
        match self {
            Data::Commitment { operation, .. }
            | Data::Attempt { operation, .. }
            | Data::Response { operation, .. }
            | Data::OwnershipTransition { operation, .. }
            | Data::Classification { operation, .. }
            | Data::OperationState { operation, .. }
            | Data::AppliedChange { operation, .. }
            | Data::AdoptionRecord { operation, .. } => Some(*operation),
            Data::Accounting { attempt, .. } => match attempt {
                Some((operation, _)) => Some(*operation),
                None => None,
            },
            Data::Refusal { operation, .. } => *operation,
            Data::Plan { .. }
            | Data::Approval { .. }
            | Data::ApprovalRevocation { .. }
            | Data::IdentityRevocation { .. }
            | Data::Cancellation { .. }
            | Data::ObservationStarted { .. }
            | Data::Observation { .. }
            | Data::UseTimeCheck { .. }
            | Data::DriftOpened { .. }
            | Data::DriftExtended { .. }
            | Data::DriftClosed { .. }
            | Data::Freeze { .. }
            | Data::Unfreeze { .. }
            | Data::EndpointChange { .. }
            | Data::RecoveryEntry { .. }
            | Data::ScopeState { .. }
            | Data::ScopeRelease { .. }
            | Data::Decommission { .. } => None,
        }
    }

    /// Whether recording it after a classification makes that classification stale
    /// (comparison 8): a response, an ownership transition, a reclassification.
    pub const fn outdates_classification(&self) -> bool {
        match self {
            Data::Response { .. }
            | Data::OwnershipTransition { .. }
            | Data::Classification { .. } => true,
            Data::Plan { .. }
            | Data::Approval { .. }
            | Data::ApprovalRevocation { .. }
            | Data::IdentityRevocation { .. }
            | Data::Cancellation { .. }
            | Data::ObservationStarted { .. }
            | Data::Observation { .. }
            | Data::UseTimeCheck { .. }
            | Data::Commitment { .. }
            | Data::Refusal { .. }
            | Data::Attempt { .. }
            | Data::Accounting { .. }
            | Data::OperationState { .. }
            | Data::AppliedChange { .. }
            | Data::DriftOpened { .. }
            | Data::DriftExtended { .. }
            | Data::DriftClosed { .. }
            | Data::Freeze { .. }
            | Data::Unfreeze { .. }
            | Data::AdoptionRecord { .. }
            | Data::EndpointChange { .. }
            | Data::RecoveryEntry { .. }
            | Data::ScopeState { .. }
            | Data::ScopeRelease { .. }
            | Data::Decommission { .. } => false,
        }
    }
}

/// Where a machine's counter stands; entries of one transaction take the next ones in
/// turn (PA §5, T7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counter(pub i64);

impl Counter {
    #[must_use]
    pub const fn allocate(self) -> (TimelineRevision, Counter) {
        (TimelineRevision(self.0 + 1), Counter(self.0 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_gives_dense_revisions_in_turn() {
        let (first, counter) = Counter(4).allocate();
        let (second, counter) = counter.allocate();
        assert_eq!(
            (first, second, counter),
            (TimelineRevision(5), TimelineRevision(6), Counter(6))
        );
    }

    #[test]
    fn what_belongs_to_an_operation_is_on_its_events_and_the_rest_is_not() {
        let operation = OperationId::from_bits(1);
        let state = Data::OperationState {
            operation,
            from: None,
            to: OperationState::Committed,
            cause: None,
            observation: None,
            reason: None,
        };
        assert_eq!(state.operation(), Some(operation));
        assert_eq!(Data::Freeze { reason: None }.operation(), None);
    }
}
