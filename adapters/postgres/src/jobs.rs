//! Operations as rows, and publish and ingest jobs' writes (PA §5.1, §8).

use bronzeward_core::fence::Fence;
use bronzeward_core::id::{DraftId, IngestionId, OperationId};
use bronzeward_core::revision::Revision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    Guard, JobEnd, JobReads, JobWrites, NewJob, NewWork, OperationFilter, Page, Paged, Written,
};
use bronzeward_engine::rows::OperationRow;
use diesel::prelude::*;

use crate::convert::{Out, json, opt_id};
use crate::guard::{predicate, written};
use crate::records::Operation;
use crate::schema::operation;
use crate::store::{Access, PgRows, PgTx};
use crate::time::{Stamp, clock_timestamp};

impl<M: Access> JobReads for PgRows<M> {
    async fn operation(&mut self, id: OperationId) -> Out<Option<OperationRow>> {
        let query = operation::table
            .find(id.to_string())
            .select(Operation::as_select());
        let found: Option<Operation> = self.optional(query).await?;
        found.map(OperationRow::try_from).transpose()
    }

    async fn operations(
        &mut self,
        filter: &OperationFilter,
        page: &Page<OperationId>,
    ) -> Out<Paged<OperationRow>> {
        use operation::dsl;
        let mut query = dsl::operation.select(Operation::as_select()).into_boxed();
        if let Some(plan) = filter.plan {
            query = query.filter(dsl::plan_id.eq(plan.to_string()));
        }
        if let Some(machine) = filter.machine {
            query = query.filter(dsl::machine_id.eq(machine.to_string()));
        }
        if let Some(state) = &filter.state {
            query = query.filter(dsl::state.eq(state.clone()));
        }
        if let Some(kind) = &filter.kind {
            query = query.filter(dsl::kind.eq(kind.clone()));
        }
        if let Some(after) = page.after {
            query = query.filter(dsl::id.gt(after.to_string()));
        }
        let rows: Vec<Operation> = self
            .load(query.order(dsl::id).limit(i64::from(page.limit) + 1))
            .await?;
        let rows = rows.into_iter().map(OperationRow::try_from);
        Ok(Paged::from_overfetched(
            rows.collect::<Out<Vec<_>>>()?,
            page.limit,
        ))
    }

    async fn operation_of_claim(&mut self, claim: IngestionId) -> Out<Option<OperationId>> {
        let query = operation::table
            .filter(operation::claim_id.eq(claim.to_string()))
            .select(operation::id);
        let found: Option<String> = self.optional(query).await?;
        opt_id(found.as_deref())
    }

    async fn publish_candidate(&mut self) -> Out<Option<OperationId>> {
        use operation::dsl;
        let lapsed = dsl::lease_until.assume_not_null().le(clock_timestamp());
        let query = dsl::operation
            .filter(dsl::kind.eq("publish"))
            .filter(
                dsl::state
                    .eq("queued")
                    .or(dsl::state.eq("running").and(lapsed)),
            )
            .select(dsl::id)
            .order(dsl::seq)
            .limit(1);
        let found: Option<String> = self.optional(query).await?;
        opt_id(found.as_deref())
    }

    async fn active_ingestion(
        &mut self,
        draft: DraftId,
        revision: Revision,
    ) -> Out<Option<OperationRow>> {
        use operation::dsl;
        let query = dsl::operation
            .filter(dsl::draft_id.eq(draft.to_string()))
            .filter(dsl::draft_revision.eq(revision.0))
            .filter(dsl::kind.eq("ingest"))
            .filter(dsl::state.eq("running"))
            .select(Operation::as_select());
        let found: Option<Operation> = self.optional(query).await?;
        found.map(OperationRow::try_from).transpose()
    }
}

impl JobWrites for PgTx {
    async fn insert_job(&mut self, job: &NewJob, at: DbTime) -> Out<()> {
        use operation::dsl;
        let common = (
            dsl::id.eq(job.id.to_string()),
            dsl::cluster_id.eq(job.cluster.to_string()),
            dsl::draft_id.eq(job.bound.draft.to_string()),
            dsl::draft_revision.eq(job.bound.revision.0),
            dsl::created_by.eq(job.by.principal.to_string()),
            dsl::created_role.eq(job.by.role.as_str()),
            dsl::epoch.eq(job.epoch.to_string()),
            dsl::created_at.eq(Stamp(at)),
        );
        let insert = diesel::insert_into(dsl::operation);
        match &job.work {
            NewWork::Publish => {
                let kind = (dsl::kind.eq("publish"), dsl::state.eq("queued"));
                self.execute(insert.values((common, kind))).await.map(drop)
            }
            NewWork::Ingest {
                machine,
                claim,
                fence,
                lease_until,
            } => {
                let own = (
                    dsl::kind.eq("ingest"),
                    dsl::state.eq("running"),
                    dsl::machine_id.eq(machine.to_string()),
                    dsl::claim_id.eq(claim.to_string()),
                    dsl::owner.eq(fence.owner.as_str().to_owned()),
                    dsl::owner_gen.eq(fence.generation.0),
                    dsl::owner_epoch.eq(fence.epoch.to_string()),
                    dsl::lease_until.eq(Stamp(*lease_until)),
                );
                self.execute(insert.values((common, own))).await.map(drop)
            }
        }
    }

    async fn own_job(
        &mut self,
        id: OperationId,
        guard: &Guard,
        fence: &Fence,
        lease_until: DbTime,
    ) -> Out<Written> {
        let row = operation::table.find(id.to_string());
        let update = diesel::update(row.filter(predicate(guard)?)).set((
            operation::state.eq("running"),
            operation::owner.eq(fence.owner.as_str().to_owned()),
            operation::owner_gen.eq(fence.generation.0),
            operation::owner_epoch.eq(fence.epoch.to_string()),
            operation::lease_until.eq(Stamp(lease_until)),
        ));
        written(self.execute(update).await?)
    }

    async fn finish_job(&mut self, id: OperationId, guard: &Guard, end: &JobEnd) -> Out<Written> {
        let (state, release, base, error) = match end {
            JobEnd::Published(release) => ("succeeded", Some(release.to_string()), None, None),
            JobEnd::Ingested(base) => ("succeeded", None, Some(base.to_string()), None),
            JobEnd::Failed(problem) => ("failed", None, None, Some(json(&problem.to_member()))),
        };
        let row = operation::table.find(id.to_string());
        let update = diesel::update(row.filter(predicate(guard)?)).set((
            operation::state.eq(state),
            operation::result_release.eq(release),
            operation::result_import_base.eq(base),
            operation::error.eq(error),
        ));
        written(self.execute(update).await?)
    }
}
