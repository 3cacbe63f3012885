//! The adoption record (EaR 6.3): an operation created in `completed`, Applied and
//! Desired, the record, and the bound drift record closed.

use bronzeward_core::drift::Resolution;
use bronzeward_core::id::{MachineId, OperationId, PlanId};
use bronzeward_core::observation::Observation;
use bronzeward_core::plan::PlanOperation;
use bronzeward_engine::ports::store::{
    AdoptionReads, AdoptionWrites, NewAdoption, OperationWrites, StoreError,
};
use bronzeward_engine::rows::OperationRow;

use super::Out;
use super::jobs::Operation;
use super::statement::{kept, row};
use crate::change::watched;
use crate::pg::Relation;
use crate::pg::session::Session;

watched!(NewAdoption, PlanId, Adoption);
kept!(NewAdoption, PlanId => execution.adoptions;);

impl AdoptionReads for Session {
    async fn operation_of_plan(&mut self, of: PlanId) -> Out<Option<OperationId>> {
        let is = |operation: &Operation| operation.row.plan == Some(of);
        self.operation_where("read a plan's operation", is).await
    }

    async fn scope_holder(&mut self, of: MachineId) -> Out<Option<OperationId>> {
        let is =
            |operation: &Operation| operation.row.machine == Some(of) && operation.holds_scope();
        self.operation_where("read scope holder", is).await
    }
}

impl AdoptionWrites for Session {
    async fn insert_adoption(&mut self, new: &NewAdoption) -> Out<()> {
        let bound = &new.binding;
        let PlanOperation::Adopt { .. } = bound.operation else {
            return Err(StoreError::Fault);
        };
        self.statement("insert adoption's operation").await?;
        self.insert_operation_row(OperationRow {
            id: new.operation,
            kind: "adopt".to_owned(),
            state: "completed".to_owned(),
            fence: Some(new.fence.clone()),
            lease_until: None,
            cluster: bound.cluster,
            machine: Some(bound.machine),
            plan: Some(bound.id),
            draft: None,
            claim: None,
            classified: None,
            last_event: 0,
            result_release: None,
            result_import_base: None,
            error: None,
            created_by: None,
            epoch: new.fence.epoch,
            created_at: new.at,
        })
        .await?;
        self.statement("insert adoption record").await?;
        self.insert_kept(bound.id, new.clone(), "adoption_record_pkey")
            .await?;
        let constraint = "adoption_record_observation_id_fkey";
        self.refers_to_kept::<_, Observation>(&new.observation, constraint)?;
        self.refer([
            row(Relation::Operation, new.operation),
            row(Relation::Machine, bound.machine),
        ])
        .await?;
        self.desire(
            "adopt as desired",
            bound.machine,
            new.applied.release,
            false,
        )
        .await?;
        self.write_applied(bound.machine, &new.applied, new.operation)
            .await?;
        let Some((drift, closed)) = new.closed else {
            return Ok(());
        };
        self.close_drift(bound.machine, drift, Resolution::Adopted, closed, new.at)
            .await
    }
}
