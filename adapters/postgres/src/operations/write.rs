//! What dispatch and the accounting act write.

use bronzeward_core::attempt::{Attempt, Response};
use bronzeward_core::comparison::{ArtifactCheck, UseTimeCheck};
use bronzeward_core::drift::{OpenDrift, Resolution};
use bronzeward_core::fence::Fence;
use bronzeward_core::id::{EpochId, MachineId, OperationId};
use bronzeward_core::operation::{Common, OperationState};
use bronzeward_core::plan::Binding;
use bronzeward_core::release::Applied;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{Guard, NewAccounting, OperationWrites, StoreError, Written};
use diesel::prelude::*;

use crate::convert::{Out, fault};
use crate::guard::{predicate, written};
use crate::schema::{
    accounting, attempt, drift_record, machine_state, operation, response, use_time_check,
};
use crate::store::PgTx;
use crate::time::Stamp;

/// One row by key; another count is a fault, since the machine's lock is held.
pub(crate) fn one(rows: usize) -> Result<(), StoreError> {
    match written(rows)? {
        Written::Written => Ok(()),
        Written::Stale => Err(fault()),
    }
}

type Cleared = (
    diesel::dsl::Eq<operation::classification, Option<&'static str>>,
    diesel::dsl::Eq<operation::classified_revision, Option<i64>>,
    diesel::dsl::Eq<operation::classified_gen, Option<i64>>,
);

/// No classification: it was of the state that the operation leaves.
fn unclassified() -> Cleared {
    (
        operation::classification.eq(None),
        operation::classified_revision.eq(None),
        operation::classified_gen.eq(None),
    )
}

impl OperationWrites for PgTx {
    async fn insert_operation(&mut self, new: &Common, epoch: EpochId) -> Out<()> {
        use operation::dsl;
        let insert = diesel::insert_into(dsl::operation).values((
            dsl::id.eq(new.id.to_string()),
            dsl::kind.eq("apply-config"),
            dsl::state.eq(OperationState::Committed.as_str()),
            dsl::owner.eq(new.fence.owner.as_str().to_owned()),
            dsl::owner_gen.eq(new.fence.generation.0),
            dsl::owner_epoch.eq(new.fence.epoch.to_string()),
            dsl::lease_until.eq(Stamp(new.lease_until)),
            dsl::cluster_id.eq(new.cluster.to_string()),
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::plan_id.eq(new.plan.to_string()),
            dsl::epoch.eq(epoch.to_string()),
            dsl::created_at.eq(Stamp(new.created_at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_check(
        &mut self,
        check: &UseTimeCheck,
        binding: &Binding,
        of: Option<OperationId>,
    ) -> Out<()> {
        use use_time_check::dsl;
        let access = check.access.value();
        let passed = check.artifact == ArtifactCheck::Matches && access.is_some();
        let cause = check
            .access
            .cause()
            .map_or(check.artifact.as_str(), |unread| unread.as_str());
        let insert = diesel::insert_into(dsl::use_time_check).values((
            dsl::machine_id.eq(binding.machine.to_string()),
            dsl::revision.eq(check.revision.0),
            dsl::plan_id.eq(check.plan.to_string()),
            dsl::operation_id.eq(of.map(|of| of.to_string())),
            dsl::key_name.eq(binding.key.name.clone()),
            dsl::key_version.eq(binding.key.version),
            dsl::access_path.eq(access.map(|access| access.path.clone())),
            dsl::access_version.eq(access.map(|access| access.version)),
            dsl::access_created.eq(access.map(|access| access.created.clone())),
            dsl::outcome.eq(if passed { "passed" } else { "failed" }),
            dsl::cause.eq((!passed).then_some(cause)),
            dsl::controller.eq(check.controller.owner.as_str().to_owned()),
            dsl::epoch.eq(check.controller.epoch.to_string()),
            dsl::at.eq(Stamp(check.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_attempt(&mut self, new: &Attempt, check: TimelineRevision) -> Out<()> {
        use attempt::dsl;
        let insert = diesel::insert_into(dsl::attempt).values((
            dsl::id.eq(new.id.to_string()),
            dsl::operation_id.eq(new.operation.to_string()),
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::number.eq(i32::from(new.number)),
            dsl::revision.eq(new.revision.0),
            dsl::owner.eq(new.fence.owner.as_str().to_owned()),
            dsl::owner_gen.eq(new.fence.generation.0),
            dsl::owner_epoch.eq(new.fence.epoch.to_string()),
            dsl::route.eq(new.route.to_string()),
            dsl::observation_id.eq(new.evidence.to_string()),
            dsl::check_revision.eq(check.0),
            dsl::transport_deadline.eq(Stamp(new.transport_deadline)),
            dsl::verification_deadline.eq(Stamp(new.verification_deadline)),
            dsl::recorded_at.eq(Stamp(new.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_response(&mut self, of: &Attempt, answer: &Response, by: &Fence) -> Out<()> {
        use response::dsl;
        let insert = diesel::insert_into(dsl::response).values((
            dsl::attempt_id.eq(of.id.to_string()),
            dsl::machine_id.eq(of.machine.to_string()),
            dsl::revision.eq(answer.revision.0),
            dsl::class.eq(answer.class.as_str()),
            dsl::code.eq(answer.code),
            dsl::controller.eq(by.owner.as_str().to_owned()),
            dsl::owner_gen.eq(by.generation.0),
            dsl::epoch.eq(by.epoch.to_string()),
            dsl::at.eq(Stamp(answer.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_accounting(&mut self, new: &NewAccounting) -> Out<()> {
        use accounting::dsl;
        let facts: serde_json::Map<String, serde_json::Value> = new
            .facts
            .iter()
            .map(|(name, text)| (name.clone(), text.clone().into()))
            .collect();
        let insert = diesel::insert_into(dsl::accounting).values((
            dsl::attempt_id.eq(new.attempt.to_string()),
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::revision.eq(new.revision.0),
            dsl::start_observation.eq(new.start.to_string()),
            dsl::end_observation.eq(new.end.to_string()),
            dsl::facts.eq(serde_json::Value::Object(facts)),
            dsl::principal_id.eq(new.by.principal.to_string()),
            dsl::role.eq(new.by.role.as_str()),
            dsl::epoch.eq(new.epoch.to_string()),
            dsl::act_id.eq(new.act.to_string()),
            dsl::at.eq(Stamp(new.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn move_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        to: OperationState,
    ) -> Out<Written> {
        let row = operation::table
            .find(id.to_string())
            .filter(predicate(guard)?);
        let update = diesel::update(row).set((operation::state.eq(to.as_str()), unclassified()));
        written(self.execute(update).await?)
    }

    async fn classify_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        revision: TimelineRevision,
        fence: &Fence,
    ) -> Out<Written> {
        let row = operation::table
            .find(id.to_string())
            .filter(predicate(guard)?);
        let update = diesel::update(row).set((
            operation::classification.eq("safe-to-retry"),
            operation::classified_revision.eq(revision.0),
            operation::classified_gen.eq(fence.generation.0),
        ));
        written(self.execute(update).await?)
    }

    async fn take_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        fence: &Fence,
        lease_until: DbTime,
    ) -> Out<Written> {
        let row = operation::table
            .find(id.to_string())
            .filter(predicate(guard)?);
        let update = diesel::update(row).set((
            operation::state.eq(OperationState::Unresolved.as_str()),
            operation::owner.eq(fence.owner.as_str().to_owned()),
            operation::owner_gen.eq(fence.generation.0),
            operation::owner_epoch.eq(fence.epoch.to_string()),
            operation::lease_until.eq(Stamp(lease_until)),
            unclassified(),
        ));
        written(self.execute(update).await?)
    }

    async fn extend_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        lease_until: DbTime,
    ) -> Out<Written> {
        let row = operation::table
            .find(id.to_string())
            .filter(predicate(guard)?);
        let update = diesel::update(row).set(operation::lease_until.eq(Stamp(lease_until)));
        written(self.execute(update).await?)
    }

    async fn write_applied(
        &mut self,
        machine: MachineId,
        applied: &Applied,
        operation: OperationId,
    ) -> Out<()> {
        let update = diesel::update(machine_state::table.find(machine.to_string())).set((
            machine_state::applied_release.eq(applied.release.to_string()),
            machine_state::applied_digest.eq(applied.digest.as_bytes().to_vec()),
            machine_state::applied_source.eq(applied.source.as_str()),
            machine_state::applied_operation.eq(operation.to_string()),
            machine_state::baseline_revision.eq(applied.baseline.0),
            machine_state::revision.eq(machine_state::revision + 1),
        ));
        one(self.execute(update).await?)
    }

    async fn insert_drift(&mut self, new: &OpenDrift, at: DbTime) -> Out<()> {
        use drift_record::dsl;
        let insert = diesel::insert_into(dsl::drift_record).values((
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::opened_revision.eq(new.revision.0),
            dsl::state.eq("open"),
            dsl::applied_digest.eq(new.applied_digest.as_bytes().to_vec()),
            dsl::observed_digest.eq(new.observed_digest.as_bytes().to_vec()),
            dsl::observation_id.eq(new.observation.to_string()),
            dsl::last_observation_id.eq(new.last_observation.to_string()),
            dsl::late_landing.eq(new.late_landing.map(|of| of.to_string())),
            dsl::opened_at.eq(Stamp(at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn extend_drift(&mut self, drift: &OpenDrift) -> Out<()> {
        let key = (drift.machine.to_string(), drift.revision.0);
        let row = drift_record::table
            .find(key)
            .filter(drift_record::state.eq("open"));
        let update = diesel::update(row).set((
            drift_record::observed_digest.eq(drift.observed_digest.as_bytes().to_vec()),
            drift_record::last_observation_id.eq(drift.last_observation.to_string()),
            drift_record::late_landing.eq(drift.late_landing.map(|of| of.to_string())),
        ));
        one(self.execute(update).await?)
    }

    async fn close_drift(
        &mut self,
        machine: MachineId,
        opened: TimelineRevision,
        resolution: Resolution,
        closed: TimelineRevision,
        at: DbTime,
    ) -> Out<()> {
        let row = drift_record::table
            .find((machine.to_string(), opened.0))
            .filter(drift_record::state.eq("open"));
        let update = diesel::update(row).set((
            drift_record::state.eq("closed"),
            drift_record::resolution.eq(resolution.as_str()),
            drift_record::closed_revision.eq(closed.0),
            drift_record::closed_at.eq(Stamp(at)),
        ));
        one(self.execute(update).await?)
    }
}
