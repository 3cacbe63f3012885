//! The lock calls of the store port.
//!
//! A statement takes one mode: where modes differ by row, one goes out per run of equal modes,
//! in the order of the identifiers. Never in this module: which rows an act locks.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::id::{
    ApprovalId, ClusterId, DraftId, IngestionId, OperationId, PlanId, PrincipalId,
};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::installation::Installation;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{LockMode, Locks, Select, StoreError};
use bronzeward_engine::rows::{
    ApprovalRow, ClaimRow, DraftRow, HeadId, HeadRow, MachineRow, OperationRow, PlanStateRow,
    PrincipalRow,
};

use super::Head;
use super::claims::CLAIMS;
use super::drafts::DRAFTS;
use super::inventory::{MACHINE_STATES, MACHINES, with_states};
use super::principals::PRINCIPALS;
use super::rows::{digest, head_bits, of};
use crate::pg::session::Session;
use crate::pg::{Class, Lockable, Relation};

of!(INSTALLATION: installation, () => Installation, Installation, |()| 0);
of!(HEADS: heads, HeadId => Head, Head, head_bits);

/// Cuts rows into runs of one mode, keeping the order of the identifiers.
fn runs<K: Ord + Copy>(rows: &BTreeMap<K, Option<LockMode>>) -> Vec<(Option<LockMode>, Vec<K>)> {
    let mut runs: Vec<(Option<LockMode>, Vec<K>)> = Vec::new();
    for (key, mode) in rows {
        match runs.last_mut() {
            Some((last, keys)) if last == mode => keys.push(*key),
            _ => runs.push((*mode, vec![*key])),
        }
    }
    runs
}

impl Locks for Session {
    async fn lock_key(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Result<(), StoreError> {
        self.statement("lock key").await?;
        let name = digest(&[&principal.bits().to_be_bytes(), key.as_str().as_bytes()]);
        let lock = Lockable::Advisory(Class::Key, name);
        self.lock(lock, LockMode::Update).await
    }

    async fn lock_installation(
        &mut self,
        mode: Option<LockMode>,
    ) -> Result<Installation, StoreError> {
        if let Some(mode) = mode {
            let hold = match mode {
                LockMode::Update => LockMode::Update,
                LockMode::KeyShare | LockMode::Share | LockMode::NoKeyUpdate => LockMode::Share,
            };
            self.statement("queue for installation").await?;
            let lock = Lockable::Advisory(Class::Installation, 0);
            self.lock(lock, hold).await?;
        }
        self.statement("lock installation").await?;
        let mut rows = self.select_keys(&INSTALLATION, [()], mode).await?;
        rows.pop().ok_or(StoreError::Fault)
    }

    async fn lock_machines(
        &mut self,
        select: &Select,
        row_mode: Option<LockMode>,
        state_mode: Option<LockMode>,
    ) -> Result<Vec<MachineRow>, StoreError> {
        self.statement("lock machines").await?;
        let machines = match select {
            Select::Ids(ids) => {
                let ids = ids.iter().copied();
                self.select_keys(&MACHINES, ids, row_mode).await?
            }
            Select::Cluster(cluster) => {
                let of = |row: &MachineRow| row.cluster == *cluster;
                self.select_rows(
                    &MACHINES,
                    |table, eye| {
                        let rows = table.iter(eye).filter(|(_, row)| of(row));
                        rows.map(|(id, _)| *id).collect()
                    },
                    row_mode,
                )
                .await?
            }
            Select::All => {
                self.select_rows(
                    &MACHINES,
                    |table, eye| table.iter(eye).map(|(id, _)| *id).collect(),
                    row_mode,
                )
                .await?
            }
        };
        // By a statement of its own: a join would give what it saw before it waited.
        self.statement("lock machine states").await?;
        let ids: Vec<_> = machines.iter().map(|machine| machine.id).collect();
        let states = self.select_keys(&MACHINE_STATES, ids, state_mode).await?;
        self.statement("read clusters of machines").await?;
        with_states(machines, states)
    }

    async fn lock_heads(
        &mut self,
        heads: &BTreeMap<HeadId, Option<LockMode>>,
    ) -> Result<Vec<HeadRow>, StoreError> {
        let mut rows = Vec::new();
        for (mode, ids) in runs(heads) {
            self.statement("lock heads").await?;
            rows.extend(self.select_keys(&HEADS, ids, mode).await?);
        }
        Ok(rows.into_iter().map(|head| head.row).collect())
    }

    async fn lock_draft(
        &mut self,
        draft: DraftId,
        mode: LockMode,
    ) -> Result<Option<DraftRow>, StoreError> {
        self.statement("lock draft").await?;
        let mut rows = self.select_keys(&DRAFTS, [draft], Some(mode)).await?;
        Ok(rows.pop())
    }

    async fn lock_claims(
        &mut self,
        claims: &BTreeSet<IngestionId>,
        mode: Option<LockMode>,
    ) -> Result<Vec<ClaimRow>, StoreError> {
        self.statement("lock claims").await?;
        let ids = claims.iter().copied();
        self.select_keys(&CLAIMS, ids, mode).await
    }

    async fn lock_principals(
        &mut self,
        principals: &BTreeMap<PrincipalId, Option<LockMode>>,
    ) -> Result<Vec<PrincipalRow>, StoreError> {
        let mut rows = Vec::new();
        for (mode, ids) in runs(principals) {
            self.statement("lock principals").await?;
            rows.extend(self.select_keys(&PRINCIPALS, ids, mode).await?);
        }
        self.with_tokens(rows).await
    }

    async fn lock_approvals(
        &mut self,
        approvals: &BTreeSet<ApprovalId>,
        mode: Option<LockMode>,
    ) -> Result<Vec<ApprovalRow>, StoreError> {
        self.lock_approval_rows(approvals, mode).await
    }

    async fn lock_plan_states(
        &mut self,
        plans: &BTreeSet<PlanId>,
        mode: Option<LockMode>,
    ) -> Result<Vec<PlanStateRow>, StoreError> {
        self.lock_plan_state_rows(plans, mode).await
    }

    async fn lock_operations(
        &mut self,
        operations: &BTreeSet<OperationId>,
        mode: Option<LockMode>,
    ) -> Result<Vec<OperationRow>, StoreError> {
        self.lock_operation_rows(operations, mode).await
    }

    async fn lock_rollout(&mut self, cluster: ClusterId) -> Result<(), StoreError> {
        self.statement("lock rollout").await?;
        // The row is made with its cluster and never written.
        let stands = |tables: &crate::pg::Tables, eye| {
            let clusters = &tables.authoring.clusters;
            clusters.get(eye, &cluster).is_some()
        };
        if !self.look(stands) {
            return Err(StoreError::Fault);
        }
        self.lock_row(Relation::Rollout, cluster.bits(), LockMode::Update)
            .await
    }

    async fn lock_acts(&mut self, ordered: bool) -> Result<DbTime, StoreError> {
        if ordered {
            self.statement("queue to record").await?;
            let lock = Lockable::Advisory(Class::Acts, 0);
            self.lock(lock, LockMode::Update).await?;
        }
        Locks::now(self).await
    }

    async fn now(&mut self) -> Result<DbTime, StoreError> {
        self.statement("read the time").await?;
        Ok(Session::now(self))
    }

    async fn began(&mut self) -> Result<DbTime, StoreError> {
        self.statement("read the beginning").await?;
        self.began_at()
    }
}
