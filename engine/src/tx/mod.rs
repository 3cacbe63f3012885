//! Transactions with a typed lock order, and what the acts of PA §5 do in them.
//!
//! [`transact`] begins, retries and commits; nothing else commits. A body receives
//! `Tx<_, Start>`, takes its locks level by level, opens the transaction for loads and
//! writes, and ends with `done` or `refuse`. Never in this module: a provider, a node,
//! a clock, or any await but the store's (PA §5 rule 1, PA-TX-11).

mod actor;
pub mod adoption;
mod approvals;
pub(crate) mod claims;
pub mod dispatch;
mod drafts;
mod entries;
mod freezes;
mod ingest;
mod ingest_run;
mod inventory;
pub mod level;
pub mod plans;
mod publication;
pub mod recovery;
mod sources;
mod sweep;
mod transact;
mod withdrawals;

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::ops::Deref;

use bronzeward_core::id::{
    ApprovalId, ClusterId, DraftId, IngestionId, MachineId, OperationId, PlanId, PrincipalId,
};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::installation::Installation;
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::DbTime;

pub use approvals::{IdentityRevoked, Named};
pub(crate) use claims::claim_of;
pub(crate) use entries::EntryClaim;
pub use entries::FragmentWrite;
pub use freezes::FreezeFact;
pub use ingest::{ClaimRead, IngestionStart, Issued};
pub use ingest_run::{ImportTarget, Owned, Unwritten};
pub use inventory::{ClusterInput, MachineInput};
pub use sources::{EntryUpdate, Proposal};
pub use sweep::sweep;
pub use transact::{Abort, Committed, Ended, Failure, Kind, transact};

use crate::ports::store::{LockMode, Select, StoreError, StoreTx};
use crate::rows::{
    ApprovalRow, ClaimRow, DraftRow, HeadId, HeadRow, MachineRow, OperationRow, PlanStateRow,
    PrincipalRow,
};
use level::{
    Approvals, Before, Claims, Draft, Heads, InstallationState, Key, Machines, Operations,
    PlanStates, Principals, Rollout, Start,
};

/// A transaction in its locking phase, at level `L` of the lock order.
#[must_use]
pub struct Tx<T, L> {
    raw: T,
    level: PhantomData<fn() -> L>,
}

/// A row read under a lock this transaction holds to its end.
#[derive(Debug)]
pub struct Held<R> {
    row: R,
}

impl<R> Deref for Held<R> {
    type Target = R;
    fn deref(&self) -> &R {
        &self.row
    }
}

impl<R> Held<R> {
    pub fn into_row(self) -> R {
        self.row
    }
}

fn held<R>(rows: Vec<R>) -> Vec<Held<R>> {
    rows.into_iter().map(|row| Held { row }).collect()
}

/// The lock mode a rule asks for, or none when that rule is dropped.
pub fn lock_by(rules: &impl Rules, rule: Rule, mode: LockMode) -> Option<LockMode> {
    rules.enforced(rule).then_some(mode)
}

impl<T: StoreTx> Tx<T, Start> {
    pub(crate) fn start(raw: T) -> Self {
        Self {
            raw,
            level: PhantomData,
        }
    }
}

impl<T: StoreTx, L> Tx<T, L> {
    fn down<N>(self) -> Tx<T, N> {
        Tx {
            raw: self.raw,
            level: PhantomData,
        }
    }

    /// Ends the locking phase: loads, decisions and writes follow.
    pub fn open(self) -> OpenTx<T> {
        OpenTx { raw: self.raw }
    }

    /// Ends the locking phase with the database's time after the last lock (PA §5 rule 4),
    /// for a transaction that records no act.
    pub async fn open_at(mut self) -> Result<(OpenTx<T>, DbTime), StoreError> {
        let at = self.raw.now().await?;
        Ok((self.open(), at))
    }

    /// What must be discovered before a later level can be locked (T1's named heads, an
    /// approval's replaced one). It is read again under its level before it is relied on.
    pub fn peek(&mut self) -> &mut T {
        &mut self.raw
    }

    /// Rolls back and refuses.
    pub async fn refuse<V, R>(self, refusal: R) -> Result<V, Abort<R>> {
        self.raw.rollback().await;
        Err(Abort::Refused(refusal))
    }
}

impl<T: StoreTx, L> Tx<T, L> {
    pub async fn lock_key(
        mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Result<Tx<T, Key>, StoreError>
    where
        L: Before<Key>,
    {
        self.raw.lock_key(principal, key).await?;
        Ok(self.down())
    }

    pub async fn lock_installation(
        mut self,
        mode: impl Into<Option<LockMode>>,
    ) -> Result<(Tx<T, InstallationState>, Held<Installation>), StoreError>
    where
        L: Before<InstallationState>,
    {
        let row = self.raw.lock_installation(mode.into()).await?;
        Ok((self.down(), Held { row }))
    }

    pub async fn lock_machines(
        mut self,
        select: &Select,
        row_mode: impl Into<Option<LockMode>>,
        state_mode: Option<LockMode>,
    ) -> Result<(Tx<T, Machines>, Vec<Held<MachineRow>>), StoreError>
    where
        L: Before<Machines>,
    {
        let rows = self
            .raw
            .lock_machines(select, row_mode.into(), state_mode)
            .await?;
        Ok((self.down(), held(rows)))
    }

    /// One machine with its state, both in `mode`; `None` where it does not exist.
    pub async fn lock_machine(
        self,
        machine: MachineId,
        mode: impl Into<Option<LockMode>>,
    ) -> Result<(Tx<T, Machines>, Option<Held<MachineRow>>), StoreError>
    where
        L: Before<Machines>,
    {
        let mode = mode.into();
        let select = Select::Ids(BTreeSet::from([machine]));
        let (tx, mut rows) = self.lock_machines(&select, mode, mode).await?;
        Ok((tx, rows.pop()))
    }

    pub async fn lock_heads(
        mut self,
        heads: &BTreeMap<HeadId, Option<LockMode>>,
    ) -> Result<(Tx<T, Heads>, Vec<Held<HeadRow>>), StoreError>
    where
        L: Before<Heads>,
    {
        let rows = self.raw.lock_heads(heads).await?;
        Ok((self.down(), held(rows)))
    }

    pub async fn lock_draft(
        mut self,
        draft: DraftId,
        mode: LockMode,
    ) -> Result<(Tx<T, Draft>, Option<Held<DraftRow>>), StoreError>
    where
        L: Before<Draft>,
    {
        let row = self.raw.lock_draft(draft, mode).await?;
        Ok((self.down(), row.map(|row| Held { row })))
    }

    pub async fn lock_claims(
        mut self,
        claims: &BTreeSet<IngestionId>,
        mode: impl Into<Option<LockMode>>,
    ) -> Result<(Tx<T, Claims>, Vec<Held<ClaimRow>>), StoreError>
    where
        L: Before<Claims>,
    {
        let rows = self.raw.lock_claims(claims, mode.into()).await?;
        Ok((self.down(), held(rows)))
    }

    pub async fn lock_principals(
        mut self,
        principals: &BTreeMap<PrincipalId, Option<LockMode>>,
    ) -> Result<(Tx<T, Principals>, Vec<Held<PrincipalRow>>), StoreError>
    where
        L: Before<Principals>,
    {
        let rows = self.raw.lock_principals(principals).await?;
        Ok((self.down(), held(rows)))
    }

    pub async fn lock_approvals(
        mut self,
        approvals: &BTreeSet<ApprovalId>,
        mode: impl Into<Option<LockMode>>,
    ) -> Result<(Tx<T, Approvals>, Vec<Held<ApprovalRow>>), StoreError>
    where
        L: Before<Approvals>,
    {
        let rows = self.raw.lock_approvals(approvals, mode.into()).await?;
        Ok((self.down(), held(rows)))
    }

    pub async fn lock_plan_states(
        mut self,
        plans: &BTreeSet<PlanId>,
        mode: impl Into<Option<LockMode>>,
    ) -> Result<(Tx<T, PlanStates>, Vec<Held<PlanStateRow>>), StoreError>
    where
        L: Before<PlanStates>,
    {
        let rows = self.raw.lock_plan_states(plans, mode.into()).await?;
        Ok((self.down(), held(rows)))
    }

    pub async fn lock_operations(
        mut self,
        operations: &BTreeSet<OperationId>,
        mode: impl Into<Option<LockMode>>,
    ) -> Result<(Tx<T, Operations>, Vec<Held<OperationRow>>), StoreError>
    where
        L: Before<Operations>,
    {
        let rows = self.raw.lock_operations(operations, mode.into()).await?;
        Ok((self.down(), held(rows)))
    }

    pub async fn lock_rollout(mut self, cluster: ClusterId) -> Result<Tx<T, Rollout>, StoreError>
    where
        L: Before<Rollout>,
    {
        self.raw.lock_rollout(cluster).await?;
        Ok(self.down())
    }
}

/// A transaction whose row locks are taken. One lock remains: the act order.
#[must_use]
pub struct OpenTx<T> {
    raw: T,
}

impl<T: StoreTx> OpenTx<T> {
    /// Loads and writes. A failed statement poisons the transaction: its commit is refused.
    pub fn rows(&mut self) -> &mut T {
        &mut self.raw
    }

    /// The act-order lock, the last wait of a request's transaction; the time is the only
    /// source of a rule-4 time in a request (PA §5 rules 4 and 5).
    pub async fn lock_acts(
        mut self,
        rules: &impl Rules,
    ) -> Result<(ActsTx<T>, DbTime), StoreError> {
        let ordered = rules.enforced(Rule::ActOrderLock);
        let mut at = self.raw.lock_acts(ordered).await?;
        if !rules.enforced(Rule::TimeAfterLastLock) {
            at = self.raw.began().await?;
        }
        Ok((ActsTx { raw: self.raw, at }, at))
    }

    /// Ends the body; [`transact`] commits.
    pub fn done<V, R>(self, value: V) -> Result<Ended<T, V>, Abort<R>> {
        Ok(Ended::new(self.raw, value))
    }

    /// Rolls back and refuses.
    pub async fn refuse<V, R>(self, refusal: R) -> Result<V, Abort<R>> {
        self.raw.rollback().await;
        Err(Abort::Refused(refusal))
    }
}

/// A transaction that holds the act-order lock: only writes and the act follow.
#[must_use]
pub struct ActsTx<T> {
    raw: T,
    at: DbTime,
}

impl<T: StoreTx> ActsTx<T> {
    pub fn rows(&mut self) -> &mut T {
        &mut self.raw
    }

    /// The time read after the act-order lock.
    pub fn at(&self) -> DbTime {
        self.at
    }

    pub fn done<V, R>(self, value: V) -> Result<Ended<T, V>, Abort<R>> {
        Ok(Ended::new(self.raw, value))
    }

    pub async fn refuse<V, R>(self, refusal: R) -> Result<V, Abort<R>> {
        self.raw.rollback().await;
        Err(Abort::Refused(refusal))
    }
}
