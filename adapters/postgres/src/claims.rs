//! Staging claims (IC §3).

use std::collections::BTreeMap;

use bronzeward_core::canonical::Digest;
use bronzeward_core::claim::{ClaimState, Review};
use bronzeward_core::fence::Fence;
use bronzeward_core::id::{IngestionId, MachineId, OperationId, PrincipalId};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::provider::Ciphertext;
use bronzeward_engine::ports::store::{
    ClaimEnd, ClaimFilter, ClaimReads, ClaimWrites, Guard, NewClaim, Page, Paged, Written,
};
use bronzeward_engine::rows::ClaimRow;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::Bool;

use crate::convert::{Out, id};
use crate::guard::{predicate, written};
use crate::records::Claim;
use crate::schema::{drift_record, operation, staging_claim};
use crate::store::{Access, PgRows, PgTx};
use crate::time::{Stamp, clock_timestamp};

/// The states of a claim that has not ended.
pub(crate) const LIVE: [&str; 3] = ["held", "paused", "resumed"];

type Condition = Box<dyn BoxableExpression<staging_claim::table, Pg, SqlType = Bool>>;

/// Live, and due at `now` (IC §3.5): past its absolute expiry, or transient past its lease.
fn due(now: DbTime) -> Condition {
    use staging_claim::dsl;
    Box::new(
        dsl::state.eq_any(LIVE).and(
            dsl::expires_at.le(Stamp(now)).or(dsl::mode
                .eq("transient")
                .and(dsl::lease_until.le(Stamp(now)))),
        ),
    )
}

/// Reads as `state` at `now`.
fn reads_as(state: ClaimState, now: DbTime) -> Condition {
    use staging_claim::dsl;
    match state {
        ClaimState::Abandoned => Box::new(dsl::state.eq("abandoned").or(due(now))),
        ClaimState::Released => Box::new(dsl::state.eq("released")),
        ClaimState::Held | ClaimState::Paused | ClaimState::Resumed => Box::new(
            dsl::state
                .eq(state.as_str())
                .and(diesel::dsl::not(due(now))),
        ),
    }
}

impl<M: Access> PgRows<M> {
    async fn operations_of(&mut self, claims: &[Claim]) -> Out<BTreeMap<IngestionId, OperationId>> {
        let ids: Vec<String> = claims.iter().map(|claim| claim.id.clone()).collect();
        let query = operation::table
            .filter(operation::claim_id.eq_any(ids))
            .select((operation::claim_id.assume_not_null(), operation::id));
        let rows: Vec<(String, String)> = self.load(query).await?;
        rows.iter()
            .map(|(claim, operation)| Ok((id(claim)?, id(operation)?)))
            .collect()
    }

    async fn with_operations(
        &mut self,
        rows: Vec<Claim>,
    ) -> Out<Vec<(ClaimRow, Option<OperationId>)>> {
        let operations = self.operations_of(&rows).await?;
        rows.into_iter()
            .map(|row| {
                let row = ClaimRow::try_from(row)?;
                let operation = operations.get(&row.id).copied();
                Ok((row, operation))
            })
            .collect()
    }
}

impl<M: Access> ClaimReads for PgRows<M> {
    async fn claim(&mut self, of: IngestionId) -> Out<Option<(ClaimRow, Option<OperationId>)>> {
        let query = staging_claim::table
            .find(of.to_string())
            .select(Claim::as_select());
        let rows: Vec<Claim> = self.load(query).await?;
        Ok(self.with_operations(rows).await?.pop())
    }

    async fn claims(
        &mut self,
        filter: &ClaimFilter,
        page: &Page<IngestionId>,
    ) -> Out<Paged<(ClaimRow, Option<OperationId>)>> {
        use staging_claim::dsl;
        let mut query = dsl::staging_claim.select(Claim::as_select()).into_boxed();
        if let Some(state) = filter.state {
            query = query.filter(reads_as(state, filter.now));
        }
        if let Some(machine) = filter.machine {
            query = query.filter(dsl::machine_id.eq(machine.to_string()));
        }
        if let Some(after) = page.after {
            query = query.filter(dsl::id.gt(after.to_string()));
        }
        let rows: Vec<Claim> = self
            .load(query.order(dsl::id).limit(i64::from(page.limit) + 1))
            .await?;
        let rows = self.with_operations(rows).await?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn claim_of_key(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Out<Option<IngestionId>> {
        use staging_claim::dsl;
        let query = dsl::staging_claim
            .filter(dsl::principal_id.eq(principal.to_string()))
            .filter(dsl::idempotency_key.eq(key.as_str().to_owned()))
            .filter(dsl::state.eq_any(LIVE))
            .select(dsl::id);
        let found: Option<String> = self.optional(query).await?;
        found.as_deref().map(id).transpose()
    }

    async fn due_claims(&mut self) -> Out<Vec<IngestionId>> {
        use staging_claim::dsl;
        let lapsed = dsl::expires_at.le(clock_timestamp()).or(dsl::mode
            .eq("transient")
            .and(dsl::lease_until.le(clock_timestamp())));
        let query = dsl::staging_claim
            .filter(dsl::state.eq_any(LIVE))
            .filter(lapsed)
            .order(dsl::id)
            .select(dsl::id);
        let rows: Vec<String> = self.load(query).await?;
        rows.iter().map(|row| id(row)).collect()
    }

    async fn open_drift_revision(&mut self, machine: MachineId) -> Out<Option<TimelineRevision>> {
        use drift_record::dsl;
        let query = dsl::drift_record
            .filter(dsl::machine_id.eq(machine.to_string()))
            .filter(dsl::state.eq("open"))
            .select(dsl::opened_revision);
        let found: Option<i64> = self.optional(query).await?;
        Ok(found.map(TimelineRevision))
    }
}

impl ClaimWrites for PgTx {
    async fn insert_claim(&mut self, new: &NewClaim) -> Out<()> {
        use staging_claim::dsl;
        let about = (
            dsl::id.eq(new.id.to_string()),
            dsl::kind.eq(new.kind.as_str()),
            dsl::mode.eq(new.mode.as_str()),
            dsl::source.eq(new.source.as_str()),
            dsl::state.eq(ClaimState::Held.as_str()),
            dsl::review.eq(new.review.map(Review::as_str)),
            dsl::cluster_id.eq(new.cluster.to_string()),
            dsl::draft_id.eq(new.draft.to_string()),
            dsl::machine_id.eq(new.machine.map(|machine| machine.to_string())),
            dsl::drift_revision.eq(new.drift.map(|revision| revision.0)),
            dsl::principal_id.eq(new.by.principal.to_string()),
            dsl::role.eq(new.by.role.as_str()),
            dsl::idempotency_key.eq(new.key.as_ref().map(|key| key.as_str().to_owned())),
        );
        let owned = (
            dsl::owner.eq(new.fence.owner.as_str().to_owned()),
            dsl::owner_gen.eq(new.fence.generation.0),
            dsl::owner_epoch.eq(new.fence.epoch.to_string()),
            dsl::epoch.eq(new.fence.epoch.to_string()),
            dsl::lease_until.eq(Stamp(new.lease_until)),
            dsl::expires_at.eq(Stamp(new.expires_at)),
            dsl::created_at.eq(Stamp(new.created_at)),
        );
        let insert = diesel::insert_into(dsl::staging_claim).values((about, owned));
        self.execute(insert).await.map(drop)
    }

    async fn extend_claim(
        &mut self,
        of: IngestionId,
        guard: &Guard,
        lease_until: DbTime,
    ) -> Out<Written> {
        let row = staging_claim::table.find(of.to_string());
        let update = diesel::update(row.filter(predicate(guard)?))
            .set(staging_claim::lease_until.eq(Stamp(lease_until)));
        written(self.execute(update).await?)
    }

    async fn stage_claim(
        &mut self,
        of: IngestionId,
        guard: &Guard,
        payload: &Ciphertext,
        digest: Digest,
    ) -> Out<Written> {
        let row = staging_claim::table.find(of.to_string());
        let update = diesel::update(row.filter(predicate(guard)?)).set((
            staging_claim::payload.eq(payload.as_str().to_owned()),
            staging_claim::payload_digest.eq(digest.0.to_vec()),
        ));
        written(self.execute(update).await?)
    }

    async fn take_over_claim(
        &mut self,
        of: IngestionId,
        guard: &Guard,
        fence: &Fence,
        lease_until: DbTime,
    ) -> Out<Written> {
        let row = staging_claim::table.find(of.to_string());
        let update = diesel::update(row.filter(predicate(guard)?)).set((
            staging_claim::state.eq(ClaimState::Resumed.as_str()),
            staging_claim::owner.eq(fence.owner.as_str().to_owned()),
            staging_claim::owner_gen.eq(fence.generation.0),
            staging_claim::owner_epoch.eq(fence.epoch.to_string()),
            staging_claim::lease_until.eq(Stamp(lease_until)),
        ));
        written(self.execute(update).await?)
    }

    async fn end_claim(&mut self, of: IngestionId, guard: &Guard, end: ClaimEnd) -> Out<Written> {
        let state = match end {
            ClaimEnd::Released => ClaimState::Released,
            ClaimEnd::Abandoned => ClaimState::Abandoned,
        };
        let row = staging_claim::table.find(of.to_string());
        let update = diesel::update(row.filter(predicate(guard)?)).set((
            staging_claim::state.eq(state.as_str()),
            staging_claim::payload.eq(None::<String>),
            staging_claim::payload_digest.eq(None::<Vec<u8>>),
        ));
        written(self.execute(update).await?)
    }
}
