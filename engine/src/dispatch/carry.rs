//! One operation, from its commitment to its end or to what only a human decides.
//!
//! Every step is a transaction; between two of them the process may die and another
//! continues from what is recorded (EaR 5.3). Never in this module: a send that is not
//! made by the value of a committed attempt.

use std::sync::Arc;

use bronzeward_core::attempt::all_accounted_at;
use bronzeward_core::id::MachineId;
use bronzeward_core::observation::Purpose;
use bronzeward_core::operation::{Operation, OperationState};
use bronzeward_core::plan::{Approved, Binding, Plan};
use bronzeward_core::time::DbTime;

use super::gather::{Gathered, Ready, not_observed};
use super::{Controller, Stop};
use crate::ingest::unless;
use crate::observe::Wanted;
use crate::ports::node::{ApplyAnswer, Asked, NodeWriter};
use crate::ports::store::{JobReads, PlanReads, Snapshot, Store, StoreError};
use crate::ports::{Notifier, Timer, Wake};
use crate::rows::OperationRow;
use crate::tx::Failure;
use crate::tx::dispatch::{
    Evidence, Judged, Owned, Refused, commit, extend, judge, record_attempt, record_not_admitted,
    record_response, take_over_lapsed, whole,
};
use crate::world::{Permit, World};

impl<W: World> Controller<W> {
    /// An approved apply-config plan: evidence, commitment, and its operation.
    pub(super) async fn apply(&self, plan: &Plan<Approved>) -> Result<(), Stop> {
        let binding = plan.binding();
        let gathered = self.gather(binding, None).await?;
        let id = self.parts.db.mint();
        let lease = self.settings.lease;
        let committed = commit(&self.parts.db, binding.id, &gathered.evidence, id, lease).await;
        let owned = match committed {
            Ok(owned) => owned,
            Err(failure) => {
                return self
                    .refused(binding, None, &gathered.evidence, failure)
                    .await;
            }
        };
        tracing::info!(
            event = "committed",
            plan = %owned.plan,
            operation = %owned.operation,
            machine = %owned.machine,
            "a plan was committed"
        );
        // What becomes of the operation is no refusal of the plan.
        if let Err(Stop::Later(why)) = self.carry(&owned, Some(gathered)).await {
            let operation = owned.operation;
            tracing::warn!(event = "operation-left", %operation, why, "an operation was left");
        }
        Ok(())
    }

    /// Records a refusal that names comparisons; every other failure is the caller's.
    async fn refused(
        &self,
        binding: &Binding,
        owned: Option<&Owned>,
        evidence: &Evidence,
        failure: Failure<Refused>,
    ) -> Result<(), Stop> {
        let Failure::Refused(Refused::NotAdmitted(refused)) = failure else {
            return Err(failure.into());
        };
        let db = &self.parts.db;
        let alert = record_not_admitted(db, binding.id, owned, evidence, &refused).await?;
        self.raise(alert);
        match refused.process_epoch {
            true => Err(Stop::Superseded),
            false => Err(Stop::Later("comparisons failed")),
        }
    }

    pub(super) async fn take_over(&self, row: &OperationRow) -> Result<(), Stop> {
        let owned = take_over_lapsed(&self.parts.db, row, self.settings.lease).await?;
        tracing::warn!(
            event = "taken-over",
            operation = %owned.operation,
            machine = %owned.machine,
            generation = owned.fence.generation.0,
            "an operation whose lease had lapsed was taken over"
        );
        self.carry(&owned, None).await
    }

    pub(super) async fn keep(&self, owned: &Owned) -> Result<(), Stop> {
        let kept = extend(&self.parts.db, owned, self.settings.lease).await;
        kept.map_err(Stop::from)
    }

    /// A recovery reading of a machine whose unresolved operation is another process's.
    pub(super) async fn watch(&self, row: &OperationRow) -> Result<(), Stop> {
        let Some(plan) = row.plan else {
            return Ok(());
        };
        let binding = self.binding(plan).await?;
        let purpose = Purpose::Recovery;
        self.observe_operation(&binding, row.id, purpose, None)
            .await
    }

    /// A recovery reading of a machine whose scope is unaccounted after a restore (EaR 5.2).
    pub(super) async fn settle(&self, machine: MachineId) -> Result<(), Stop> {
        let id = self.parts.db.mint();
        let wanted = Wanted::of_machine(id, machine, Purpose::Recovery, Asked::EVERYTHING);
        let observed = self.parts.observer.observe(&wanted).await;
        observed.map(drop).map_err(not_observed)
    }

    /// Works on an owned operation under heartbeats, as far as it goes by itself.
    pub(super) async fn carry(
        &self,
        owned: &Owned,
        gathered: Option<Gathered>,
    ) -> Result<(), Stop> {
        // What was gathered may have taken a while, and so may what comes.
        self.keep(owned).await?;
        let binding = self.binding(owned.plan).await?;
        let work = self.progress(owned, &binding, gathered);
        match unless(work, self.heartbeats(owned)).await {
            Some(ended) => ended,
            None => Err(Stop::Later("the lease was lost")),
        }
    }

    async fn heartbeats(&self, owned: &Owned) {
        loop {
            self.parts.timer.sleep(self.settings.heartbeat()).await;
            match extend(&self.parts.db, owned, self.settings.lease).await {
                Ok(()) => {}
                Err(Failure::Refused(_)) => return,
                Err(_) => {
                    let operation = owned.operation;
                    tracing::warn!(event = "operation-heartbeat-failed", %operation, "a heartbeat failed");
                }
            }
        }
    }

    async fn progress(
        &self,
        owned: &Owned,
        binding: &Binding,
        mut gathered: Option<Gathered>,
    ) -> Result<(), Stop> {
        let mut looked = false;
        let mut settling = self.settings.settling;
        loop {
            match self.operation(owned).await? {
                Some(Operation::Committed(_)) => {
                    let gathered = match gathered.take() {
                        Some(gathered) => gathered,
                        None => self.gather(binding, Some(owned)).await?,
                    };
                    self.attempt(owned, binding, gathered).await?;
                }
                Some(Operation::Verifying(_)) => {
                    let purpose = Purpose::Completion;
                    self.observe_operation(binding, owned.operation, purpose, Some(&owned.fence))
                        .await?;
                    let judged = self.judge(owned).await?;
                    if judged.state == OperationState::Verifying {
                        // Each look adds to the timeline, so that looks grow rarer.
                        self.parts.timer.sleep(settling).await;
                        settling = (settling * 2).min(self.settings.recovery_interval);
                    }
                }
                Some(Operation::Unresolved(operation)) if !looked => {
                    looked = true;
                    let attempts = &operation.common.attempts;
                    let accounted = all_accounted_at(attempts).is_some();
                    if !self.resolve(owned, binding, accounted).await? {
                        return Ok(());
                    }
                    let gathered = self.gather(binding, Some(owned)).await?;
                    self.attempt(owned, binding, gathered).await?;
                }
                // It ended, it waits for a human, or its answer is not recorded.
                _ => return Ok(()),
            }
        }
    }

    /// Looks at an unresolved operation's machine and judges; whether a request is safe now.
    async fn resolve(
        &self,
        owned: &Owned,
        binding: &Binding,
        accounted: bool,
    ) -> Result<bool, Stop> {
        let operation = owned.operation;
        self.observe_operation(binding, operation, Purpose::Recovery, None)
            .await?;
        if accounted {
            let purpose = Purpose::Completion;
            self.observe_operation(binding, operation, purpose, Some(&owned.fence))
                .await?;
        }
        let judged = self.judge(owned).await?;
        Ok(judged.retry)
    }

    async fn judge(&self, owned: &Owned) -> Result<Judged, Stop> {
        let judged = judge(&self.parts.db, owned).await?;
        self.raise(judged.alert.clone());
        if judged.state.is_terminal() {
            tracing::info!(
                event = "operation-ended",
                operation = %owned.operation,
                machine = %owned.machine,
                state = judged.state.as_str(),
                "an operation ended"
            );
            // Its scope and its cluster's slot are free: what was refused for them is due.
            self.memory().pauses.clear();
            self.parts.notifier.wake(Wake::Dispatch);
        }
        Ok(judged)
    }

    /// The attempt's transaction, the request, and the record of its answer.
    async fn attempt(
        &self,
        owned: &Owned,
        binding: &Binding,
        gathered: Gathered,
    ) -> Result<(), Stop> {
        let id = self.parts.db.mint();
        let recorded = record_attempt(&self.parts.db, owned, &gathered.evidence, id).await;
        let permit = match recorded {
            Ok(permit) => permit,
            Err(failure) => {
                return self
                    .refused(binding, Some(owned), &gathered.evidence, failure)
                    .await;
            }
        };
        // Evidence that was admitted was gathered with both.
        let Some(ready) = gathered.ready else {
            return Err(Stop::Later("the evidence holds no artifact"));
        };
        let answer = self.send(permit, &ready).await;
        drop(ready);
        tracing::info!(
            event = "answered",
            operation = %owned.operation,
            attempt = %id,
            class = answer.class.as_str(),
            code = answer.code.as_str(),
            "a request was answered, or its wait ended"
        );
        self.answered(owned, id, answer).await
    }

    /// Sends the one request of a committed attempt, waiting until its recorded deadline.
    async fn send(&self, permit: Permit, ready: &Ready) -> ApplyAnswer {
        let attempt = permit.get().attempt();
        let (route, deadline, recorded) = (attempt.route, attempt.transport_deadline, attempt.at);
        // Where the time cannot be read the whole wait is left: a recorded attempt is sent.
        let now = self.now().await.unwrap_or(recorded);
        let left = (deadline - now).as_duration();
        let access = &ready.accessed.access;
        self.parts
            .writer
            .apply(
                permit,
                access,
                route,
                ready.artifact.expose().as_bytes(),
                left,
            )
            .await
    }

    /// Records an answer. A lost connection is tried again for as long as the lease is kept;
    /// otherwise the operation stays `sending` until it is taken over.
    async fn answered(
        &self,
        owned: &Owned,
        attempt: bronzeward_core::id::AttemptId,
        answer: ApplyAnswer,
    ) -> Result<(), Stop> {
        loop {
            match record_response(&self.parts.db, owned, attempt, answer).await {
                Ok(_) => return Ok(()),
                Err(Failure::Unavailable | Failure::Unknown) => {
                    self.parts.timer.sleep(self.settings.settling).await;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    async fn now(&self) -> Option<DbTime> {
        self.parts.db.store().clock().await.ok()
    }

    async fn binding(&self, plan: bronzeward_core::id::PlanId) -> Result<Arc<Binding>, Stop> {
        let store = self.parts.db.store();
        let mut snapshot = store.snapshot().await.map_err(unread)?;
        let row = snapshot.plan(plan).await;
        snapshot.close().await;
        let row = row.map_err(unread)?.ok_or(Stop::Later("no such plan"))?;
        Ok(Arc::clone(row.plan.binding()))
    }

    /// The operation as it is recorded; none once it is another owner's.
    async fn operation(&self, owned: &Owned) -> Result<Option<Operation>, Stop> {
        let store = self.parts.db.store();
        let mut snapshot = store.snapshot().await.map_err(unread)?;
        let read = match snapshot.operation(owned.operation).await {
            Ok(Some(row)) => whole(&mut snapshot, &row).await,
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        snapshot.close().await;
        let operation = read.map_err(unread)?.map(|(operation, _)| operation);
        Ok(operation.filter(|operation| operation.common().fence == owned.fence))
    }
}

const fn unread(_: StoreError) -> Stop {
    Stop::Later("the operation could not be read")
}
