//! The lock calls of the store port, as SELECT … FOR … in identifier order.
//!
//! PostgreSQL takes one mode per statement: where modes differ by row (heads, principals)
//! one statement goes out per run of equal modes, in identifier order (PA §6.2).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

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
use diesel::prelude::*;

use crate::advisory::{AdvisoryLock, Class, Hold};
use crate::convert::Out;
use crate::load_locked;
use crate::lock::runs;
use crate::records;
use crate::schema;
use crate::store::PgTx;
use crate::time::{Stamp, clock_timestamp, transaction_timestamp};

pub(crate) fn texts<T: Display>(ids: impl IntoIterator<Item = T>) -> Vec<String> {
    ids.into_iter().map(|id| id.to_string()).collect()
}

impl Locks for PgTx {
    async fn lock_key(&mut self, principal: PrincipalId, key: &IdempotencyKey) -> Out<()> {
        let lock = AdvisoryLock::named(
            Class::IdempotencyKey,
            &[&principal.to_string(), key.as_str()],
        );
        self.tx.lock(lock, Hold::Exclusive).await
    }

    async fn lock_installation(&mut self, mode: Option<LockMode>) -> Out<Installation> {
        if let Some(mode) = mode {
            let hold = match mode {
                LockMode::Update => Hold::Exclusive,
                LockMode::KeyShare | LockMode::Share | LockMode::NoKeyUpdate => Hold::Shared,
            };
            self.tx
                .lock(AdvisoryLock::of(Class::Installation), hold)
                .await?;
        }
        use schema::installation_state::dsl;
        let query = dsl::installation_state.select((dsl::current_epoch, dsl::recovery_mode));
        let mut rows: Vec<(String, bool)> = load_locked!(self, query, mode)?;
        let (epoch, recovery_mode) = rows.pop().ok_or_else(crate::convert::fault)?;
        Ok(Installation {
            epoch: crate::convert::id(&epoch)?,
            recovery_mode,
        })
    }

    async fn lock_machines(
        &mut self,
        select: &Select,
        row_mode: Option<LockMode>,
        state_mode: Option<LockMode>,
    ) -> Out<Vec<MachineRow>> {
        use schema::{machine, machine_state};
        let fields = records::Machine::as_select();
        let machines = match select {
            Select::Ids(ids) => load_locked!(
                self,
                machine::table
                    .filter(machine::id.eq_any(texts(ids)))
                    .order(machine::id)
                    .select(fields),
                row_mode
            ),
            Select::Cluster(cluster) => load_locked!(
                self,
                machine::table
                    .filter(machine::cluster_id.eq(cluster.to_string()))
                    .order(machine::id)
                    .select(fields),
                row_mode
            ),
            Select::All => load_locked!(
                self,
                machine::table.order(machine::id).select(fields),
                row_mode
            ),
        }?;
        // States are read by a statement after the machines' locks: under READ COMMITTED a
        // join would return what it read before it waited (PA §6.2).
        let ids: Vec<String> = machines.iter().map(|machine| machine.id.clone()).collect();
        let states = load_locked!(
            self,
            machine_state::table
                .filter(machine_state::machine_id.eq_any(ids))
                .order(machine_state::machine_id)
                .select(records::MachineState::as_select()),
            state_mode
        )?;
        self.with_clusters(machines, states).await
    }

    async fn lock_heads(
        &mut self,
        heads: &BTreeMap<HeadId, Option<LockMode>>,
    ) -> Out<Vec<HeadRow>> {
        use schema::head::dsl;
        let mut rows = Vec::new();
        for (mode, ids) in runs(heads) {
            let query = dsl::head
                .filter(dsl::id.eq_any(texts(ids)))
                .order(dsl::id)
                .select(records::Head::as_select());
            rows.extend(load_locked!(self, query, mode)?);
        }
        rows.into_iter().map(HeadRow::try_from).collect()
    }

    async fn lock_draft(&mut self, draft: DraftId, mode: LockMode) -> Out<Option<DraftRow>> {
        use schema::draft::dsl;
        let query = dsl::draft
            .filter(dsl::id.eq(draft.to_string()))
            .select(records::Draft::as_select());
        let mut rows = load_locked!(self, query, Some(mode))?;
        rows.pop().map(DraftRow::try_from).transpose()
    }

    async fn lock_claims(
        &mut self,
        claims: &BTreeSet<IngestionId>,
        mode: Option<LockMode>,
    ) -> Out<Vec<ClaimRow>> {
        use schema::staging_claim::dsl;
        let query = dsl::staging_claim
            .filter(dsl::id.eq_any(texts(claims)))
            .order(dsl::id)
            .select(records::Claim::as_select());
        let rows = load_locked!(self, query, mode)?;
        rows.into_iter().map(ClaimRow::try_from).collect()
    }

    async fn lock_principals(
        &mut self,
        principals: &BTreeMap<PrincipalId, Option<LockMode>>,
    ) -> Out<Vec<PrincipalRow>> {
        use schema::principal::dsl;
        let mut rows = Vec::new();
        for (mode, ids) in runs(principals) {
            let query = dsl::principal
                .filter(dsl::id.eq_any(texts(ids)))
                .order(dsl::id)
                .select(records::PrincipalRecord::as_select());
            rows.extend(load_locked!(self, query, mode)?);
        }
        self.with_tokens(rows).await
    }

    async fn lock_approvals(
        &mut self,
        approvals: &BTreeSet<ApprovalId>,
        mode: Option<LockMode>,
    ) -> Out<Vec<ApprovalRow>> {
        use schema::approval::dsl;
        let query = dsl::approval
            .filter(dsl::id.eq_any(texts(approvals)))
            .order(dsl::id)
            .select(records::Approval::as_select());
        let rows = load_locked!(self, query, mode)?;
        self.with_revocations(rows).await
    }

    async fn lock_plan_states(
        &mut self,
        plans: &BTreeSet<PlanId>,
        mode: Option<LockMode>,
    ) -> Out<Vec<PlanStateRow>> {
        use schema::plan_state::dsl;
        let query = dsl::plan_state
            .filter(dsl::plan_id.eq_any(texts(plans)))
            .order(dsl::plan_id)
            .select(records::PlanState::as_select());
        let rows = load_locked!(self, query, mode)?;
        rows.into_iter().map(PlanStateRow::try_from).collect()
    }

    async fn lock_operations(
        &mut self,
        operations: &BTreeSet<OperationId>,
        mode: Option<LockMode>,
    ) -> Out<Vec<OperationRow>> {
        use schema::operation::dsl;
        let query = dsl::operation
            .filter(dsl::id.eq_any(texts(operations)))
            .order(dsl::id)
            .select(records::Operation::as_select());
        let rows = load_locked!(self, query, mode)?;
        rows.into_iter().map(OperationRow::try_from).collect()
    }

    async fn lock_rollout(&mut self, cluster: ClusterId) -> Out<()> {
        use schema::rollout::dsl;
        let query = dsl::rollout
            .filter(dsl::cluster_id.eq(cluster.to_string()))
            .select(dsl::cluster_id);
        let rows: Vec<String> = load_locked!(self, query, Some(LockMode::Update))?;
        if rows.len() == 1 {
            Ok(())
        } else {
            Err(crate::convert::fault())
        }
    }

    async fn lock_acts(&mut self, ordered: bool) -> Out<DbTime> {
        if ordered {
            self.tx
                .lock(AdvisoryLock::of(Class::ActOrder), Hold::Exclusive)
                .await?;
        }
        self.now().await
    }

    async fn now(&mut self) -> Result<DbTime, StoreError> {
        let at: Stamp = self.one(diesel::select(clock_timestamp())).await?;
        Ok(at.0)
    }

    async fn began(&mut self) -> Result<DbTime, StoreError> {
        let at: Stamp = self.one(diesel::select(transaction_timestamp())).await?;
        Ok(at.0)
    }
}
