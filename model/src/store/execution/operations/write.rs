//! What dispatch and the accounting act write.

use bronzeward_core::attempt::{Attempt, Response};
use bronzeward_core::comparison::UseTimeCheck;
use bronzeward_core::drift::{OpenDrift, Resolution};
use bronzeward_core::fence::Fence;
use bronzeward_core::id::{EpochId, MachineId, OperationId, ReleaseId};
use bronzeward_core::observation::Observation;
use bronzeward_core::operation::{Common, OperationState};
use bronzeward_core::plan::Binding;
use bronzeward_core::release::{Applied, AppliedSource};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{Guard, NewAccounting, OperationWrites, Written};
use bronzeward_engine::rows::{self, AppliedRow, MachineRow, MachineStateRow, OperationRow};

use super::{Answer, AttemptRow, Check, Closed, Drift};
use crate::pg::session::Session;
use crate::pg::{Relation, Tables, TxId};
use crate::store::execution::Out;
use crate::store::execution::releases::MachineOfRelease;
use crate::store::execution::statement::{maybe, one, row};
use crate::store::writes::Index;

/// The lock of a drift record: its key is a machine and a revision.
fn drift_lock(machine: MachineId, opened: TimelineRevision) -> (Relation, u128) {
    let (relation, bits) = row(Relation::Drift, machine);
    (relation, bits ^ u128::from(opened.0.unsigned_abs()))
}

impl Session {
    /// Selects a machine's Desired, and counts its state's revision where `counted`.
    pub(in crate::store::execution) async fn desire(
        &mut self,
        what: &'static str,
        machine: MachineId,
        release: ReleaseId,
        counted: bool,
    ) -> Out<()> {
        self.statement(what).await?;
        self.desire_within(machine, release, counted).await
    }

    pub(in crate::store::execution) async fn desire_within(
        &mut self,
        machine: MachineId,
        release: ReleaseId,
        counted: bool,
    ) -> Out<()> {
        let lock = row(Relation::MachineState, machine);
        let state = self.target_kept(lock, &machine, |_: &MachineStateRow, _| true);
        let mut state = one(state.await?)?;
        state.desired = Some(release);
        state.revision += i64::from(counted);
        self.put_kept(machine, state)?;
        let constraint = "machine_state_desired_release_machine_id_fkey";
        self.refers_to_kept::<_, MachineOfRelease>(&(release, machine), constraint)
    }

    /// The drift record of an UPDATE that finds open ones only, locked.
    async fn open_drift_row(&mut self, machine: MachineId, opened: TimelineRevision) -> Out<Drift> {
        let lock = drift_lock(machine, opened);
        let key = (machine, opened.0);
        let open = |row: &Drift, _| row.closed.is_none();
        one(self.target_kept(lock, &key, open).await?)
    }
}

impl OperationWrites for Session {
    async fn insert_operation(&mut self, new: &Common, epoch: EpochId) -> Out<()> {
        self.statement("insert operation").await?;
        self.insert_operation_row(OperationRow {
            id: new.id,
            kind: "apply-config".to_owned(),
            state: OperationState::Committed.as_str().to_owned(),
            fence: Some(new.fence.clone()),
            lease_until: Some(new.lease_until),
            cluster: new.cluster,
            machine: Some(new.machine),
            plan: Some(new.plan),
            draft: None,
            claim: None,
            classified: None,
            last_event: 0,
            result_release: None,
            result_import_base: None,
            error: None,
            created_by: None,
            epoch,
            created_at: new.created_at,
        })
        .await
    }

    async fn insert_check(
        &mut self,
        check: &UseTimeCheck,
        binding: &Binding,
        of: Option<OperationId>,
    ) -> Out<()> {
        self.statement("insert check").await?;
        let new = Check {
            check: check.clone(),
            operation: of,
        };
        let key = (binding.machine, check.revision.0);
        self.insert_kept(key, new, "use_time_check_pkey").await?;
        let named = [
            Some(row(Relation::Machine, binding.machine)),
            maybe(Relation::Operation, of),
        ];
        self.refer(named.into_iter().flatten()).await
    }

    async fn insert_attempt(&mut self, new: &Attempt, check: TimelineRevision) -> Out<()> {
        self.statement("insert attempt").await?;
        let deadlines =
            new.transport_deadline > new.at && new.verification_deadline >= new.transport_deadline;
        self.check("attempt_deadlines", deadlines)?;
        let attempt = AttemptRow {
            attempt: Attempt {
                response: None,
                accounting: None,
                ..new.clone()
            },
            check,
        };
        let taken = |tables: &Tables, me: TxId| tables.execution.attempts.key_taken(me, &new.id);
        self.unique("attempt_pkey", taken).await?;
        let number = (new.operation, new.number);
        self.insert_kept(number, new.id, "attempt_operation_id_number_key")
            .await?;
        self.insert_kept(new.id, attempt, "attempt_pkey").await?;
        self.refer([
            row(Relation::Operation, new.operation),
            row(Relation::Machine, new.machine),
        ])
        .await?;
        self.refers_to_kept::<_, Observation>(&new.evidence, "attempt_observation_id_fkey")?;
        let key = (new.machine, check.0);
        self.refers_to_kept::<_, Check>(&key, "attempt_machine_id_check_revision_fkey")
    }

    async fn insert_response(&mut self, of: &Attempt, answer: &Response, by: &Fence) -> Out<()> {
        self.statement("insert response").await?;
        let new = Answer {
            attempt: of.id,
            operation: of.operation,
            machine: of.machine,
            response: *answer,
            by: by.clone(),
        };
        self.unique("response_attempt_key", |tables, me| {
            let responses = &tables.execution.responses;
            responses.taken(me, None, 0, |answer| answer.attempt == of.id)
        })
        .await?;
        let place = self.write(|db, _, _| db.tables.next_number())?;
        self.put_kept((of.id, place), new)?;
        self.refers_to_kept::<_, AttemptRow>(&of.id, "response_attempt_id_fkey")?;
        self.refer([row(Relation::Machine, of.machine)]).await
    }

    async fn insert_accounting(&mut self, new: &NewAccounting) -> Out<()> {
        self.statement("insert accounting").await?;
        self.insert_kept(new.attempt, new.clone(), "accounting_pkey")
            .await?;
        self.refers_to_kept::<_, AttemptRow>(&new.attempt, "accounting_attempt_id_fkey")?;
        self.refers_to_readings([
            (new.start, "accounting_start_observation_fkey"),
            (new.end, "accounting_end_observation_fkey"),
        ])?;
        self.await_act_of(new.act, "accounting_act_id_fkey")?;
        self.refer([
            row(Relation::Machine, new.machine),
            row(Relation::Principal, new.by.principal),
        ])
        .await
    }

    async fn move_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        to: OperationState,
    ) -> Out<Written> {
        self.update_operation("move operation", id, guard, |row| {
            to.as_str().clone_into(&mut row.state);
            row.classified = None;
        })
        .await
    }

    async fn classify_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        revision: TimelineRevision,
        fence: &Fence,
    ) -> Out<Written> {
        self.update_operation("classify operation", id, guard, |row| {
            row.classified = Some((revision, fence.generation.0));
        })
        .await
    }

    async fn take_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        fence: &Fence,
        lease_until: DbTime,
    ) -> Out<Written> {
        self.update_operation("take operation over", id, guard, |row| {
            OperationState::Unresolved
                .as_str()
                .clone_into(&mut row.state);
            row.fence = Some(fence.clone());
            row.lease_until = Some(lease_until);
            row.classified = None;
        })
        .await
    }

    async fn extend_operation(
        &mut self,
        id: OperationId,
        guard: &Guard,
        lease_until: DbTime,
    ) -> Out<Written> {
        self.update_operation("extend operation", id, guard, |row| {
            row.lease_until = Some(lease_until);
        })
        .await
    }

    async fn write_applied(
        &mut self,
        machine: MachineId,
        applied: &Applied,
        operation: OperationId,
    ) -> Out<()> {
        self.statement("write applied").await?;
        let lock = row(Relation::MachineState, machine);
        let state = self.target_kept(lock, &machine, |_: &MachineStateRow, _| true);
        let mut state = one(state.await?)?;
        let before = state.applied.map(|applied| applied.operation);
        state.applied = Some(AppliedRow {
            release: applied.release,
            digest: *applied.digest.as_bytes(),
            source: match applied.source {
                AppliedSource::Operation => rows::AppliedSource::Operation,
                AppliedSource::Adoption => rows::AppliedSource::Adoption,
            },
            operation,
            baseline: applied.baseline,
        });
        state.revision += 1;
        self.put_kept(machine, state)?;
        if before != Some(operation) {
            self.refer([row(Relation::Operation, operation)]).await?;
        }
        let constraint = "machine_state_applied_release_machine_id_fkey";
        self.refers_to_kept::<_, MachineOfRelease>(&(applied.release, machine), constraint)
    }

    async fn insert_drift(&mut self, new: &OpenDrift, at: DbTime) -> Out<()> {
        self.statement("insert drift").await?;
        let machine = new.machine;
        let key = (machine, new.revision.0);
        let opened = Drift {
            drift: *new,
            opened_at: at,
            closed: None,
        };
        let same = |row: &Drift| row.drift.machine == machine && row.closed.is_none();
        let open: Index<'_, Drift> = ("drift_open", &same);
        self.insert_unique_kept(key, opened, "drift_record_pkey", &[open])
            .await?;
        let constraint = "drift_record_machine_id_fkey";
        self.parent_kept::<_, MachineRow>(Some(machine), Relation::Machine, constraint)
            .await?;
        self.refers_to_readings([
            (new.observation, "drift_record_observation_id_fkey"),
            (
                new.last_observation,
                "drift_record_last_observation_id_fkey",
            ),
        ])?;
        let landing = maybe(Relation::Operation, new.late_landing);
        self.refer(landing).await
    }

    async fn extend_drift(&mut self, drift: &OpenDrift) -> Out<()> {
        self.statement("extend drift").await?;
        let mut open = self.open_drift_row(drift.machine, drift.revision).await?;
        let before = open.drift.late_landing;
        open.drift.observed_digest = drift.observed_digest;
        open.drift.last_observation = drift.last_observation;
        open.drift.late_landing = drift.late_landing;
        self.put_kept((drift.machine, drift.revision.0), open)?;
        let constraint = "drift_record_last_observation_id_fkey";
        self.refers_to_kept::<_, Observation>(&drift.last_observation, constraint)?;
        let landing = drift.late_landing.filter(|_| before != drift.late_landing);
        self.refer(maybe(Relation::Operation, landing)).await
    }

    async fn close_drift(
        &mut self,
        machine: MachineId,
        opened: TimelineRevision,
        resolution: Resolution,
        closed: TimelineRevision,
        at: DbTime,
    ) -> Out<()> {
        self.statement("close drift").await?;
        let mut open = self.open_drift_row(machine, opened).await?;
        open.closed = Some(Closed {
            resolution,
            revision: closed,
            at,
        });
        self.put_kept((machine, opened.0), open)
    }
}
