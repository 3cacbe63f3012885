//! The adoption record (EaR 6.3): an operation created in `completed`, Applied and
//! Desired, the record, and the bound drift record closed.

use bronzeward_core::drift::Resolution;
use bronzeward_core::id::{MachineId, OperationId, PlanId};
use bronzeward_core::plan::PlanOperation;
use bronzeward_engine::ports::store::{
    AdoptionReads, AdoptionWrites, NewAdoption, OperationWrites,
};
use diesel::prelude::*;

use crate::convert::{Out, fault, opt_id};
use crate::operations::one;
use crate::schema::{adoption_record, machine_state, operation};
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
        let desired = diesel::update(machine_state::table.find(&machine))
            .set(machine_state::desired_release.eq(new.applied.release.to_string()));
        one(self.execute(desired).await?)?;
        self.write_applied(bound.machine, &new.applied, new.operation)
            .await?;
        let Some((drift, closed)) = new.closed else {
            return Ok(());
        };
        self.close_drift(bound.machine, drift, Resolution::Adopted, closed, new.at)
            .await
    }
}
