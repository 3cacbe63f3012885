//! Operations of plans: their attempts, their answers, and what follows (EaR 3 to 6).
//!
//! Dispatch's transactions and the accounting act write here; the API reads. Every write is
//! made under the machine's lock. Never in this module: what an operation may become, which
//! is `core::operation`'s.

use std::collections::BTreeMap;
use std::future::Future;

use bronzeward_core::attempt::{Attempt, Response};
use bronzeward_core::comparison::UseTimeCheck;
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::drift::{OpenDrift as Drift, Resolution};
use bronzeward_core::fence::Fence;
use bronzeward_core::id::{
    ActId, AttemptId, ClusterId, EpochId, MachineId, ObservationId, OperationId,
};
use bronzeward_core::operation::{Common, OperationState};
use bronzeward_core::plan::Binding;
use bronzeward_core::principal::Signed;
use bronzeward_core::release::Applied;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;

use super::{EntryRow, Guard, StoreError, Written};
use crate::rows::OperationRow;

/// Two positions in a machine's timeline that an operation's decisions turn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The entry that put the operation in its state.
    pub since: TimelineRevision,
    /// The latest response, ownership transition or classification (comparison 8).
    pub outdating: TimelineRevision,
}

/// What is recorded of a plan's operation beside its row.
#[derive(Clone, Debug, Default)]
pub struct OperationExtras {
    /// In the order they were recorded, each with its answer and its accounting.
    pub attempts: Vec<Attempt>,
    /// The entry that says what it completed with: an adoption record or a change of Applied.
    pub outcome: Option<EntryRow>,
    /// The number of its latest entry, as its events count: the machine's revision.
    pub last_entry: Option<i64>,
}

/// The latest operation of a machine that has an attempt accounted by decision.
#[derive(Clone, Debug)]
pub struct AccountedRow {
    pub operation: OperationId,
    pub artifact: ConfigDigest,
    pub attempts: Vec<Attempt>,
}

/// A decision on a lost answer, as it is recorded (EaR 5.2).
#[derive(Clone, Debug)]
pub struct NewAccounting {
    pub attempt: AttemptId,
    pub machine: MachineId,
    pub revision: TimelineRevision,
    pub start: ObservationId,
    pub end: ObservationId,
    pub facts: BTreeMap<String, String>,
    pub by: Signed,
    pub epoch: EpochId,
    pub act: ActId,
    pub at: DbTime,
}

pub trait OperationReads {
    /// In the order they were recorded, each with its answer and its accounting.
    fn attempts(
        &mut self,
        operation: OperationId,
    ) -> impl Future<Output = Result<Vec<Attempt>, StoreError>> + Send;

    /// What is beside each of these plan operations; one without any has no place in it. As
    /// many statements for a page as for one operation.
    fn operation_extras(
        &mut self,
        of: &[OperationId],
    ) -> impl Future<Output = Result<BTreeMap<OperationId, OperationExtras>, StoreError>> + Send;

    fn operation_marks(
        &mut self,
        operation: OperationId,
    ) -> impl Future<Output = Result<Marks, StoreError>> + Send;

    /// The apply-config operations in a holding state and not retired, by identifier.
    fn open_operations(
        &mut self,
    ) -> impl Future<Output = Result<Vec<OperationRow>, StoreError>> + Send;

    /// The operation of the cluster that is in a holding state and not retired.
    fn rollout_holder(
        &mut self,
        cluster: ClusterId,
    ) -> impl Future<Output = Result<Option<OperationId>, StoreError>> + Send;

    /// Whether an operation holds the machine's scope, or held or took it at or after this
    /// revision (EaR 6.1). One that ended since has an entry since.
    fn scope_held_since(
        &mut self,
        machine: MachineId,
        revision: TimelineRevision,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// The machine's open drift record, in full.
    fn drift_record(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<Drift>, StoreError>> + Send;

    fn accounted_operation(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<AccountedRow>, StoreError>> + Send;

    /// When ownership of the operation first moved after this revision.
    fn ownership_moved_after(
        &mut self,
        operation: OperationId,
        revision: TimelineRevision,
    ) -> impl Future<Output = Result<Option<DbTime>, StoreError>> + Send;

    /// When the first observation that read the machine's configuration and identity, of
    /// those that began after this time, was recorded.
    fn first_read_after(
        &mut self,
        machine: MachineId,
        at: DbTime,
    ) -> impl Future<Output = Result<Option<DbTime>, StoreError>> + Send;
}

pub trait OperationWrites {
    /// A commitment's operation, in `committed`. `Unique("operation_plan_key")`,
    /// `Unique("operation_scope_holder")` or `Unique("operation_rollout_holder")` where a
    /// comparison was let go.
    fn insert_operation(
        &mut self,
        operation: &Common,
        epoch: EpochId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Beside its entry. `operation` is the one a retry's check is made for.
    fn insert_check(
        &mut self,
        check: &UseTimeCheck,
        binding: &Binding,
        operation: Option<OperationId>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// `check` is the revision of the check it rests on.
    fn insert_attempt(
        &mut self,
        attempt: &Attempt,
        check: TimelineRevision,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// `Unique("response_attempt_key")` for a second answer to one attempt.
    fn insert_response(
        &mut self,
        attempt: &Attempt,
        response: &Response,
        by: &Fence,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn insert_accounting(
        &mut self,
        accounting: &NewAccounting,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Moves an operation to a state; a classification does not survive that.
    fn move_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        to: OperationState,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Keeps a safe-to-retry classification beside an unresolved operation.
    fn classify_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        revision: TimelineRevision,
        fence: &Fence,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Takes an operation over: its owner, its lease, and its state `unresolved`.
    fn take_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        fence: &Fence,
        lease_until: DbTime,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    fn extend_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        lease_until: DbTime,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Applied and the baseline revision; the machine's state is held FOR UPDATE.
    fn write_applied(
        &mut self,
        machine: MachineId,
        applied: &Applied,
        operation: OperationId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// `Unique("drift_open")` where the machine has an open record.
    fn insert_drift(
        &mut self,
        drift: &Drift,
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Records a further differing observation on the open record.
    fn extend_drift(
        &mut self,
        drift: &Drift,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// `closed` is the revision of the closing entry.
    fn close_drift(
        &mut self,
        machine: MachineId,
        opened: TimelineRevision,
        resolution: Resolution,
        closed: TimelineRevision,
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
