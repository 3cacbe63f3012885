//! Locks as values: which rows, and how. Called through [`crate::tx`] only, which
//! owns the order.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use bronzeward_core::id::{
    ApprovalId, ClusterId, DraftId, IngestionId, MachineId, OperationId, PlanId, PrincipalId,
};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::installation::Installation;
use bronzeward_core::time::DbTime;

use super::StoreError;
use crate::rows::{
    ApprovalRow, ClaimRow, DraftRow, HeadId, HeadRow, MachineRow, OperationRow, PlanStateRow,
    PrincipalRow,
};

/// A row lock's strength; `None` where a caller passes `Option<LockMode>` reads unlocked,
/// which only a dropped rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

/// Which machines a transaction locks. The query orders them by identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    Ids(BTreeSet<MachineId>),
    Cluster(ClusterId),
    All,
}

type Rows<T> = Result<Vec<T>, StoreError>;

/// Every lock call returns the rows as they are once the lock is held, by identifier;
/// an identifier without a row has no entry.
pub trait Locks {
    /// The advisory lock on a principal's idempotency key, to the transaction's end (PA §7.2).
    fn lock_key(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The installation's advisory lock (shared, or exclusive for `Update`), then its row:
    /// the lock manager's queue is fair where row locks are not (architecture, engine).
    fn lock_installation(
        &mut self,
        mode: Option<LockMode>,
    ) -> impl Future<Output = Result<Installation, StoreError>> + Send;

    /// Machine rows, and each one's state row when `state_mode` is given.
    fn lock_machines(
        &mut self,
        select: &Select,
        row_mode: Option<LockMode>,
        state_mode: Option<LockMode>,
    ) -> impl Future<Output = Rows<MachineRow>> + Send;

    /// Heads of every kind in one pass by identifier, each in its own mode.
    fn lock_heads(
        &mut self,
        heads: &BTreeMap<HeadId, Option<LockMode>>,
    ) -> impl Future<Output = Rows<HeadRow>> + Send;

    fn lock_draft(
        &mut self,
        draft: DraftId,
        mode: LockMode,
    ) -> impl Future<Output = Result<Option<DraftRow>, StoreError>> + Send;

    fn lock_claims(
        &mut self,
        claims: &BTreeSet<IngestionId>,
        mode: Option<LockMode>,
    ) -> impl Future<Output = Rows<ClaimRow>> + Send;

    fn lock_principals(
        &mut self,
        principals: &BTreeMap<PrincipalId, Option<LockMode>>,
    ) -> impl Future<Output = Rows<PrincipalRow>> + Send;

    fn lock_approvals(
        &mut self,
        approvals: &BTreeSet<ApprovalId>,
        mode: Option<LockMode>,
    ) -> impl Future<Output = Rows<ApprovalRow>> + Send;

    fn lock_plan_states(
        &mut self,
        plans: &BTreeSet<PlanId>,
        mode: Option<LockMode>,
    ) -> impl Future<Output = Rows<PlanStateRow>> + Send;

    fn lock_operations(
        &mut self,
        operations: &BTreeSet<OperationId>,
        mode: Option<LockMode>,
    ) -> impl Future<Output = Rows<OperationRow>> + Send;

    /// The cluster's rollout row, which only commitments take (EaR 3.2).
    fn lock_rollout(
        &mut self,
        cluster: ClusterId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The act-order lock, to the transaction's end; the time is `clock_timestamp()` after it.
    /// `None` lock (a dropped rule) still reads the time.
    fn lock_acts(
        &mut self,
        ordered: bool,
    ) -> impl Future<Output = Result<DbTime, StoreError>> + Send;

    /// `clock_timestamp()` now; after the last lock of a transaction that records no act.
    fn now(&mut self) -> impl Future<Output = Result<DbTime, StoreError>> + Send;

    /// When the transaction began, which no wait of its own moves: what a time is taken from
    /// where the rule that reads it later is dropped.
    fn began(&mut self) -> impl Future<Output = Result<DbTime, StoreError>> + Send;
}
