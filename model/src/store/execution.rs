//! Tables of what is carried out: operations, timelines, observations, releases, plans.
//!
//! A file a family, each with its rows and its part of the store port. Never in this module:
//! a decision; what a write depends on comes in as a guard.

mod adoptions;
mod authored;
mod drifts;
mod jobs;
mod observations;
mod operations;
mod plans;
mod recovery;
mod release_check;
mod releases;
mod standing;
mod statement;
#[cfg(test)]
mod tests;
mod timeline;

use bronzeward_core::id::{
    ApprovalId, AttemptId, DependencyId, EpochId, HeadId, MachineId, ObservationId, OperationId,
    PlanId, ReleaseId,
};
use bronzeward_core::observation::{Observation, Started};
use bronzeward_engine::ports::store::{
    Dependency, EntryRow, Frozen, NewAccounting, NewAdoption, NewDecommission, NewScopeAccounting,
    NewScopeMark, NewScopeRelease, ReleaseSourceRow,
};
use bronzeward_engine::rows::PlanStateRow;

pub use jobs::Operation;
pub use operations::{Answer, AttemptRow, Check, Closed, Drift};
pub use plans::{ApprovalRecord, ApprovalRevocation, Cancellation, PlanRecord};
pub use recovery::{Entry, Exit};
pub use releases::{MachineOfRelease, Release, Status};
pub use timeline::Named;

use crate::pg::tables::tables;

tables! {
    /// Operations, timelines, observations, releases and plans.
    Execution {
        operations: OperationId => Operation,
        timelines: (MachineId, i64) => EntryRow,
        events: (OperationId, i64) => EntryRow,
        /// The entries that name an operation: its own, or a machine's.
        named: (OperationId, i64, Option<MachineId>) => Named,
        starts: ObservationId => Started,
        observations: ObservationId => Observation,
        /// Beginnings by basis.
        bases: (MachineId, i64) => ObservationId,
        statuses: DependencyId => Status,
        /// Versions by what tells them apart.
        versions: Dependency => DependencyId,
        releases: ReleaseId => Release,
        release_machines: (ReleaseId, MachineId) => MachineOfRelease,
        release_sources: (ReleaseId, HeadId) => ReleaseSourceRow,
        plans: PlanId => PlanRecord,
        plan_states: PlanId => PlanStateRow,
        approvals: ApprovalId => ApprovalRecord,
        approval_revocations: ApprovalId => ApprovalRevocation,
        cancellations: PlanId => Cancellation,
        checks: (MachineId, i64) => Check,
        attempts: AttemptId => AttemptRow,
        /// Attempts by operation and number.
        tries: (OperationId, u8) => AttemptId,
        /// By a sequence: one an attempt, where the schema has its key.
        responses: (AttemptId, i64) => Answer,
        accountings: AttemptId => NewAccounting,
        drifts: (MachineId, i64) => Drift,
        adoptions: PlanId => NewAdoption,
        entries: EpochId => Entry,
        exits: EpochId => Exit,
        scope_accountings: (MachineId, i64) => NewScopeAccounting,
        scope_marks: (MachineId, i64) => NewScopeMark,
        scope_releases: (MachineId, i64) => NewScopeRelease,
        decommissions: MachineId => NewDecommission,
        freezes: (MachineId, i64) => Frozen,
    }
}

/// What a method of the port answers.
type Out<T> = Result<T, bronzeward_engine::ports::store::StoreError>;

/// States of a plan's operation that still hold its scope.
pub(crate) fn holds(state: &str) -> bool {
    matches!(state, "committed" | "sending" | "verifying" | "unresolved")
}
