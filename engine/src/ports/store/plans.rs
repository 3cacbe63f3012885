//! Plans, their approvals, and what both rest on (EaR 2, PA §5 T4 to T5c).
//!
//! `tx::plans` and `tx::approvals` write here; dispatch and adoption read. A binding and
//! an approval never change; a plan's state is the one mutable row. Never in this
//! module: how a plan reads at a time, which is `core::plan`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use bronzeward_core::authority::Contained;
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{
    ActId, ApprovalId, AssignmentId, DraftId, ImportBaseRevisionId, MachineId, PlanId, PrincipalId,
    ReleaseId,
};
use bronzeward_core::plan::{AnyPlan, Approval, Binding};
use bronzeward_core::principal::Signed;
use bronzeward_core::problem::Member;
use bronzeward_core::release::RendererRecord;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;

pub use bronzeward_core::plan::ReleaseMachineFacts;

use super::{Guard, Page, StoreError, Written};
use crate::rows::HeadId;

/// What planning reads of a release; releases are immutable, so no lock is taken.
#[derive(Clone, Debug)]
pub struct PlannedRelease {
    pub id: ReleaseId,
    pub cluster: bronzeward_core::id::ClusterId,
    pub renderer: RendererRecord,
    /// None where the release does not cover the machine.
    pub machine: Option<PlannedMachine>,
}

/// A release's record of one machine.
#[derive(Clone, Debug)]
pub struct PlannedMachine {
    pub facts: ReleaseMachineFacts,
    /// The head it was compiled from, whether or not it then had a revision.
    pub assignment_head: Option<AssignmentId>,
    pub platform: String,
    pub validation: String,
    pub validated_at: DbTime,
    /// The redacted whole configuration; none where review data was withheld.
    pub review: Option<String>,
}

/// A plan as stored. `approval` is the state row's, which a revoked or expired plan keeps.
#[derive(Clone, Debug)]
pub struct PlanRow {
    pub plan: AnyPlan,
    pub approval: Option<ApprovalId>,
    /// When the identity of that approval was revoked.
    pub approver_revoked_at: Option<DbTime>,
    /// The plan-time evidence in the API's spelling; it holds no digest.
    pub evidence: Member,
}

/// What an approval's mark is derived from (PA §10.5).
#[derive(Clone, Debug)]
pub struct ReleaseOrigins {
    pub publisher: PrincipalId,
    pub draft: DraftId,
    pub contained: Vec<Contained>,
}

/// Which plans a list holds, as they are stored; how they read is decided after.
#[derive(Clone, Debug, Default)]
pub struct PlanFilter {
    pub machine: Option<MachineId>,
    /// Stored states that may read as the one asked for; empty for any.
    pub states: Vec<&'static str>,
}

/// The open drift record of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenDrift {
    pub opened: TimelineRevision,
    pub observed: ConfigDigest,
}

pub trait PlanReads {
    /// A plan with its state, approval, cancellation and approver's revocation.
    fn plan(
        &mut self,
        id: PlanId,
    ) -> impl Future<Output = Result<Option<PlanRow>, StoreError>> + Send;

    /// The machine a plan is for: immutable, so that it can be locked next.
    fn plan_machine(
        &mut self,
        id: PlanId,
    ) -> impl Future<Output = Result<Option<MachineId>, StoreError>> + Send;

    /// At most `page.limit` plans after `page.after`, by identifier.
    fn plans(
        &mut self,
        filter: &PlanFilter,
        page: &Page<PlanId>,
    ) -> impl Future<Output = Result<Vec<PlanRow>, StoreError>> + Send;

    /// The plans stored as approved that have not expired at `at`, by identifier: what a
    /// controller looks through. How each reads is decided after.
    fn approved_plans(
        &mut self,
        at: DbTime,
    ) -> impl Future<Output = Result<Vec<PlanRow>, StoreError>> + Send;

    fn approval(
        &mut self,
        id: ApprovalId,
    ) -> impl Future<Output = Result<Option<Approval>, StoreError>> + Send;

    /// A release as planning needs it, with its record of `machine`.
    fn planned_release(
        &mut self,
        release: ReleaseId,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<PlannedRelease>, StoreError>> + Send;

    fn release_origins(
        &mut self,
        release: ReleaseId,
    ) -> impl Future<Output = Result<Option<ReleaseOrigins>, StoreError>> + Send;

    /// The responsible human of each service identity among `principals`.
    fn responsible_humans(
        &mut self,
        principals: &BTreeSet<PrincipalId>,
    ) -> impl Future<Output = Result<BTreeMap<PrincipalId, PrincipalId>, StoreError>> + Send;

    /// A machine's assignment head, where it ever had one.
    fn assignment_head_of(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<HeadId>, StoreError>> + Send;

    /// Read under the machine's lock.
    fn open_drift(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<OpenDrift>, StoreError>> + Send;

    /// The plans an identity approved that are approved and unexpired at `at`, or
    /// committed to an operation that is not terminal, by machine (T5c).
    fn live_plans_approved_by(
        &mut self,
        approver: PrincipalId,
        at: DbTime,
    ) -> impl Future<Output = Result<BTreeMap<MachineId, Vec<PlanId>>, StoreError>> + Send;
}

/// An identity's revocation as it is recorded (PA §10.4).
#[derive(Clone, Debug)]
pub struct NewIdentityRevocation {
    pub identity: PrincipalId,
    pub by: Signed,
    pub reason: String,
    pub epoch: bronzeward_core::id::EpochId,
    pub act: ActId,
    pub at: DbTime,
}

/// An approval's revocation as it is recorded (T5b).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApprovalRevocation {
    pub approval: ApprovalId,
    pub plan: PlanId,
    pub machine: MachineId,
    /// Of its timeline entry.
    pub revision: TimelineRevision,
    pub by: Signed,
    pub reason: String,
    pub epoch: bronzeward_core::id::EpochId,
    pub act: ActId,
    pub at: DbTime,
}

/// A plan's cancellation as it is recorded (T11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCancellation {
    pub plan: PlanId,
    pub machine: MachineId,
    /// Of its timeline entry.
    pub revision: TimelineRevision,
    pub by: Signed,
    pub reason: String,
    pub epoch: bronzeward_core::id::EpochId,
    pub act: ActId,
    pub at: DbTime,
}

pub trait PlanWrites {
    /// The binding, its evidence, and its state `proposed` at revision 1. `import_base` is
    /// the one the release was compiled from for the machine.
    fn insert_plan(
        &mut self,
        binding: &Binding,
        import_base: ImportBaseRevisionId,
        evidence: &Member,
        act: ActId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// `Unique("approval_plan_epoch_key")` for a second approval in one epoch.
    fn insert_approval(
        &mut self,
        approval: &Approval,
        machine: MachineId,
        act: ActId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Writes a plan's state as it now is, where the stored one satisfies `guard`. A
    /// revoked or expired plan keeps the approval it had; a cancelled one loses it.
    fn write_plan_state(
        &mut self,
        plan: &AnyPlan,
        guard: &Guard,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// The revocation row alone: the plan's state is written beside it where it moves.
    /// `Unique("approval_revocation_pkey")` for a second one.
    fn insert_approval_revocation(
        &mut self,
        revocation: &NewApprovalRevocation,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The cancellation row alone: from it a committed plan reads as cancelled, while
    /// another's state is written beside it. `Unique("plan_cancellation_pkey")` for a second.
    fn insert_cancellation(
        &mut self,
        cancellation: &NewCancellation,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The revocation row, the principal revoked, and its unrevoked token with it. The
    /// principal is held FOR UPDATE.
    fn revoke_identity(
        &mut self,
        revocation: &NewIdentityRevocation,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
