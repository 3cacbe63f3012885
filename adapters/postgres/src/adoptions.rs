//! The adoption record (EaR 6.3): an operation created in `completed`, Applied and
//! Desired, the record, and the bound drift record closed.

use bronzeward_core::id::{MachineId, OperationId, PlanId};
use bronzeward_core::plan::PlanOperation;
use bronzeward_engine::ports::store::{
    AdoptionReads, AdoptionWrites, NewAdoption, StoreError, Written,
};
use diesel::prelude::*;

use crate::convert::{Out, fault, opt_id};
use crate::guard::written;
use crate::schema::{adoption_record, drift_record, machine_state, operation};
use crate::store::{Access, PgRows, PgTx};
use crate::time::Stamp;

impl<M: Access> AdoptionReads for PgRows<M> {
    async fn operation_of_plan(&mut self, of: PlanId) -> Out<Option<OperationId>> {
        let query = operation::table
            .filter(operation::plan_id.eq(of.to_string()))
            .select(operation::id);
        let found: Option<String> = self.optional(query).await?;
        opt_id(found.as_deref())
    }

    async fn scope_holder(&mut self, of: MachineId) -> Out<Option<OperationId>> {
        let query = operation::table
            .filter(operation::machine_id.eq(of.to_string()))
            .filter(operation::state.eq_any(crate::plans::HOLDING))
            .filter(operation::retired.eq(false))
            .select(operation::id);
        let found: Option<String> = self.optional(query).await?;
        opt_id(found.as_deref())
    }
}

/// One row by key; another count is a fault, since the machine's lock is held.
fn one(rows: usize) -> Result<(), StoreError> {
    match written(rows)? {
        Written::Written => Ok(()),
        Written::Stale => Err(fault()),
    }
}

impl AdoptionWrites for PgTx {
    async fn insert_adoption(&mut self, new: &NewAdoption) -> Out<()> {
        let bound = &new.binding;
        let PlanOperation::Adopt {
            import_base,
            import_base_digest,
        } = bound.operation
        else {
            return Err(fault());
        };
        let machine = bound.machine.to_string();
        let created = diesel::insert_into(operation::table).values((
            operation::id.eq(new.operation.to_string()),
            operation::kind.eq("adopt"),
            operation::state.eq("completed"),
            operation::owner.eq(new.fence.owner.as_str().to_owned()),
            operation::owner_gen.eq(new.fence.generation.0),
            operation::owner_epoch.eq(new.fence.epoch.to_string()),
            operation::cluster_id.eq(bound.cluster.to_string()),
            operation::machine_id.eq(&machine),
            operation::plan_id.eq(bound.id.to_string()),
            operation::epoch.eq(new.fence.epoch.to_string()),
            operation::created_at.eq(Stamp(new.at)),
        ));
        self.execute(created).await?;
        let record = diesel::insert_into(adoption_record::table).values((
            adoption_record::plan_id.eq(bound.id.to_string()),
            adoption_record::operation_id.eq(new.operation.to_string()),
            adoption_record::machine_id.eq(&machine),
            adoption_record::revision.eq(new.revision.0),
            adoption_record::release_id.eq(bound.release.to_string()),
            adoption_record::import_base_revision_id.eq(import_base.to_string()),
            adoption_record::baseline_digest.eq(import_base_digest.as_bytes().to_vec()),
            adoption_record::observation_id.eq(new.observation.to_string()),
            adoption_record::controller.eq(new.fence.owner.as_str().to_owned()),
            adoption_record::epoch.eq(new.fence.epoch.to_string()),
            adoption_record::at.eq(Stamp(new.at)),
        ));
        self.execute(record).await?;
        let applied = diesel::update(machine_state::table.find(&machine)).set((
            machine_state::desired_release.eq(new.applied.release.to_string()),
            machine_state::applied_release.eq(new.applied.release.to_string()),
            machine_state::applied_digest.eq(new.applied.digest.as_bytes().to_vec()),
            machine_state::applied_source.eq(new.applied.source.as_str()),
            machine_state::applied_operation.eq(new.operation.to_string()),
            machine_state::baseline_revision.eq(new.applied.baseline.0),
            machine_state::revision.eq(machine_state::revision + 1),
        ));
        one(self.execute(applied).await?)?;
        let Some((drift, closed)) = new.closed else {
            return Ok(());
        };
        let close = diesel::update(
            drift_record::table
                .find((&machine, drift.0))
                .filter(drift_record::state.eq("open")),
        )
        .set((
            drift_record::state.eq("closed"),
            drift_record::resolution.eq("adopted"),
            drift_record::closed_revision.eq(closed.0),
            drift_record::closed_at.eq(Stamp(new.at)),
        ));
        one(self.execute(close).await?)
    }
}
