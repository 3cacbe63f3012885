//! Ingestion start, abandonment and takeover (T11): what a request commits of an ingestion.
//! The run that follows is `ingest`'s, its transactions `ingest_run`'s.

use std::collections::BTreeSet;

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::claim::{ClaimKind, ClaimState, StagingMode, Take, TakenOver, Timers};
use bronzeward_core::draft::Precondition;
use bronzeward_core::fence::{Fence, Generation};
use bronzeward_core::id::{ActId, ClusterId, DraftId, IngestionId, MachineId, OperationId};
use bronzeward_core::installation::Installation;
use bronzeward_core::job::Event;
use bronzeward_core::principal::By;
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::release::BoundDraft;
use bronzeward_core::revision::{Etag, TimelineRevision};
use bronzeward_core::rules::Rule;
use bronzeward_core::time::DbTime;

use super::actor::held_actor;
use super::claims::{
    ABANDONED, abandoned, claim_conflict, claim_of, event, fail_operation, running, superseded,
    unended, writable,
};
use super::level::InstallationState;
use super::{Abort, ActsTx, Tx};
use crate::ports::store::{
    ClaimEnd, ClaimReads, ClaimSource, ClaimWrites, Condition, DraftReads, Guard, JobReads,
    JobWrites, LockMode, NewClaim, NewJob, NewWork, Select, TimelineWrites, Written,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::rows::ClaimRow;
use crate::world::{RawTx, World};

/// What an ingestion start asks for.
#[derive(Clone, Copy, Debug)]
pub struct IngestionStart {
    /// An import or a drift adoption.
    pub kind: ClaimKind,
    pub machine: MachineId,
    pub draft: DraftId,
    pub source: ClaimSource,
    pub mode: StagingMode,
    pub if_match: Option<Etag>,
}

/// What a committed start issued; the run behind the answer goes on from it.
#[derive(Clone, Debug)]
pub struct Issued {
    pub claim: IngestionId,
    pub operation: OperationId,
    pub fence: Fence,
}

/// A claim as it is answered.
#[derive(Clone, Debug)]
pub struct ClaimRead {
    pub row: ClaimRow,
    /// The state a read treats it as (IC §3.5).
    pub state: ClaimState,
    pub operation: Option<OperationId>,
}

/// An import's or adoption's claim, held from `at`; its times are still the caller's.
fn claim_at(
    admitted: &Admitted,
    start: &IngestionStart,
    issued: &Issued,
    drift: Option<TimelineRevision>,
    cluster: ClusterId,
    at: DbTime,
) -> NewClaim {
    NewClaim {
        id: issued.claim,
        kind: start.kind,
        mode: start.mode,
        source: start.source,
        review: None,
        cluster,
        draft: start.draft,
        machine: Some(start.machine),
        drift,
        by: admitted.actor.into(),
        key: None,
        fence: issued.fence.clone(),
        lease_until: at,
        expires_at: at,
        created_at: at,
    }
}

impl<W: World> Requests<'_, W> {
    /// Commits the claim and its running operation. A second value only where this request
    /// committed them.
    pub async fn start_ingestion(
        &self,
        admitted: &Admitted,
        start: &IngestionStart,
        timers: Timers,
        render: impl Fn(OperationId, IngestionId) -> Rendered + Clone + Send + Sync,
    ) -> Result<(Answer, Option<Issued>), Refused> {
        let process = self.db.process();
        let issued = Issued {
            claim: self.db.mint(),
            operation: self.db.mint(),
            fence: Fence {
                owner: process.owner.clone(),
                generation: Generation(1),
                epoch: process.epoch.0,
            },
        };
        let act = self.db.mint();
        let outcome = self
            .run(admitted, Some(LockMode::Share), async |tx, installation| {
                let started =
                    self.start_in(admitted, start, &issued, timers, act, tx, &installation);
                Ok(Settled {
                    acts: started.await?,
                    rendered: render(issued.operation, issued.claim),
                    act: ActDraft::new(act, Action::INGESTION_STARTED)
                        .on(issued.claim)
                        .on(issued.operation)
                        .on(start.draft)
                        .on(start.machine),
                })
            })
            .await;
        match outcome {
            Ok(answer) => {
                let own = (!answer.replayed).then_some(issued);
                Ok((answer, own))
            }
            Err(NotDone::Unique("operation_active_ingest")) => {
                Err(Problem::conflict("The draft revision is being ingested.").into())
            }
            Err(not_done) => Err(not_done.refused()),
        }
    }

    #[allow(clippy::too_many_arguments)]
    async fn start_in(
        &self,
        admitted: &Admitted,
        start: &IngestionStart,
        issued: &Issued,
        timers: Timers,
        act: ActId,
        tx: Tx<RawTx<W>, InstallationState>,
        installation: &Installation,
    ) -> Result<ActsTx<RawTx<W>>, Abort<Problem>> {
        let rules = self.db.rules();
        if !self.db.admits(installation.epoch) {
            return tx.refuse(superseded()).await;
        }
        let machines = Select::Ids(BTreeSet::from([start.machine]));
        let (tx, mut machines) = tx
            .lock_machines(&machines, LockMode::KeyShare, None)
            .await?;
        let Some(machine) = machines.pop() else {
            return tx.refuse(unknown("machine", start.machine)).await;
        };
        let (mut tx, draft) = tx.lock_draft(start.draft, LockMode::Share).await?;
        let Some(draft) = draft else {
            return tx.refuse(unknown("draft", start.draft)).await;
        };
        let active = tx.peek().active_publication(start.draft).await?;
        let if_match = start.if_match.map(Precondition::IfMatch);
        if let Err(problem) = writable(&rules, &draft, active, if_match) {
            return tx.refuse(problem).await;
        }
        if machine.cluster != draft.cluster {
            return tx.refuse(foreign_machine(start.machine)).await;
        }
        let open_drift = tx.peek().open_drift_revision(start.machine).await?;
        let drift = open_drift.filter(|_| start.kind == ClaimKind::DriftAdoption);
        if start.kind == ClaimKind::DriftAdoption && drift.is_none() {
            let problem = Problem::conflict("The machine has no open drift record.")
                .naming("machine", start.machine);
            return tx.refuse(problem).await;
        }
        // The natural key's holder: refused while its claim lives, ended where it is due.
        let bound = BoundDraft {
            draft: draft.id,
            revision: draft.etag.revision,
        };
        let holder = tx
            .peek()
            .active_ingestion(bound.draft, bound.revision)
            .await?;
        let holder = holder.and_then(|row| Some((row.id, row.claim?)));
        let claims = holder.iter().map(|(_, claim)| *claim).collect();
        let (tx, mut claims) = tx.lock_claims(&claims, LockMode::Update).await?;
        let tx = held_actor(&rules, tx, admitted).await?;
        let operations = holder.iter().map(|(operation, _)| *operation).collect();
        let (tx, _) = tx.lock_operations(&operations, LockMode::Update).await?;
        let (mut acts, at) = tx.open().lock_acts(&rules).await?;
        if let (Some(held), Some((operation, claim))) = (claims.pop(), holder) {
            let held = claim_of(&held, Some(operation))?;
            if !held.reads_as(&rules, at).is_terminal() {
                let problem = Problem::conflict("The draft revision is being ingested.")
                    .naming("operation", operation);
                return acts.refuse(problem).await;
            }
            let by = By::Signed(admitted.actor.into());
            let entry = event(&ABANDONED, by, installation.epoch, Some(act), at);
            let rows = acts.rows();
            let ended = rows
                .end_claim(claim, &unended(), ClaimEnd::Abandoned)
                .await?;
            if ended == Written::Written {
                fail_operation(rows, operation, &abandoned(), &entry).await?;
            }
        }
        let claim = NewClaim {
            lease_until: at + timers.lease,
            expires_at: at + timers.absolute_expiry,
            ..claim_at(admitted, start, issued, drift, draft.cluster, at)
        };
        acts.rows().insert_claim(&claim).await?;
        let job = NewJob {
            id: issued.operation,
            cluster: draft.cluster,
            bound,
            work: NewWork::Ingest {
                machine: start.machine,
                claim: issued.claim,
                fence: issued.fence.clone(),
                lease_until: claim.lease_until,
            },
            by: admitted.actor.into(),
            epoch: installation.epoch,
        };
        acts.rows().insert_job(&job, at).await?;
        let by = By::Signed(admitted.actor.into());
        let started = event(&Event::Started, by, installation.epoch, Some(act), at);
        acts.rows().append_event(issued.operation, &started).await?;
        Ok(acts)
    }

    /// Abandons an ingestion that has not ended, as a read treats it, and fails its operation.
    pub async fn abandon_ingestion(
        &self,
        admitted: &Admitted,
        ingestion: IngestionId,
        render: impl Fn(&ClaimRead) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let act = self.db.mint();
        let rules = self.db.rules();
        self.run(
            admitted,
            Some(LockMode::Share),
            async |mut tx, installation| {
                let operation = tx.peek().operation_of_claim(ingestion).await?;
                let (tx, mut claims) = tx
                    .lock_claims(&BTreeSet::from([ingestion]), LockMode::Update)
                    .await?;
                let operations = operation.into_iter().collect();
                let (tx, _) = tx.lock_operations(&operations, LockMode::Update).await?;
                let Some(row) = claims.pop() else {
                    return tx.refuse(Problem::not_found("No such ingestion.")).await;
                };
                let (mut acts, at) = tx.open().lock_acts(&rules).await?;
                if let Err(refused) = claim_of(&row, operation)?.abandon(&rules, at, true) {
                    return acts.refuse(claim_conflict(refused.reason)).await;
                }
                let rows = acts.rows();
                let ended = rows
                    .end_claim(ingestion, &unended(), ClaimEnd::Abandoned)
                    .await?;
                if ended == Written::Stale {
                    let problem = Problem::conflict("The ingestion has ended.");
                    return acts.refuse(problem).await;
                }
                if let Some(operation) = operation {
                    let by = By::Signed(admitted.actor.into());
                    let entry = event(&ABANDONED, by, installation.epoch, Some(act), at);
                    fail_operation(rows, operation, &abandoned(), &entry).await?;
                }
                let mut row = row.into_row();
                row.payload = None;
                let read = ClaimRead {
                    row,
                    state: ClaimState::Abandoned,
                    operation,
                };
                Ok(Settled {
                    acts,
                    rendered: render(&read),
                    act: ActDraft::new(act, Action::INGESTION_ABANDONED).on(ingestion),
                })
            },
        )
        .await
        .map_err(NotDone::refused)
    }

    /// Takes an encrypted claim whose lease lapsed (IC §3.4). One with nothing to decrypt is
    /// abandoned.
    pub async fn take_over_ingestion(
        &self,
        admitted: &Admitted,
        ingestion: IngestionId,
        timers: Timers,
        render: impl Fn(OperationId, IngestionId) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let act = self.db.mint();
        let rules = self.db.rules();
        self.run(
            admitted,
            Some(LockMode::Share),
            async |mut tx, installation| {
                if !self.db.admits(installation.epoch) {
                    return tx.refuse(superseded()).await;
                }
                let operation = tx.peek().operation_of_claim(ingestion).await?;
                let (tx, mut claims) = tx
                    .lock_claims(&BTreeSet::from([ingestion]), LockMode::Update)
                    .await?;
                let operations = operation.into_iter().collect();
                let (tx, _) = tx.lock_operations(&operations, LockMode::Update).await?;
                let Some(row) = claims.pop() else {
                    return tx.refuse(Problem::not_found("No such ingestion.")).await;
                };
                let (mut acts, at) = tx.open().lock_acts(&rules).await?;
                let take = Take {
                    owner: self.db.process().owner.clone(),
                    seen: row.fence.generation,
                    current: installation.epoch,
                    now: at,
                    lease: timers.lease,
                };
                let taken = match claim_of(&row, operation)?.take_over(&rules, &take) {
                    Ok(taken) => taken,
                    Err(refused) => return acts.refuse(claim_conflict(refused.reason)).await,
                };
                // A claim that can be taken over has an operation: a draft entry's is transient.
                let Some(operation) = operation else {
                    return acts
                        .refuse(Problem::conflict("The ingestion has no operation."))
                        .await;
                };
                let by = By::Signed(admitted.actor.into());
                let rows = acts.rows();
                match taken {
                    TakenOver::Resumed { claim, pauses: _ } => {
                        let guard = Guard::new()
                            .and(Condition::StateIn(vec!["held", "resumed"]))
                            .when(
                                &rules,
                                Rule::TakeoverGeneration,
                                Condition::Generation(row.fence.generation),
                            );
                        let (fence, until) = (&claim.common.fence, claim.common.lease_until);
                        let moved = rows.take_over_claim(ingestion, &guard, fence, until);
                        if moved.await? == Written::Stale {
                            let problem = Problem::conflict("The ingestion changed hands.");
                            return acts.refuse(problem).await;
                        }
                        let own = rows.own_job(operation, &running(), fence, until).await?;
                        if own == Written::Stale {
                            let problem = Problem::conflict("The ingestion's operation has ended.");
                            return acts.refuse(problem).await;
                        }
                        let taken = Event::TakenOver {
                            generation: fence.generation,
                        };
                        let entry = event(&taken, by, installation.epoch, Some(act), at);
                        acts.rows().append_event(operation, &entry).await?;
                    }
                    TakenOver::Abandoned(_) => {
                        let ended = rows
                            .end_claim(ingestion, &unended(), ClaimEnd::Abandoned)
                            .await?;
                        if ended == Written::Stale {
                            let problem = Problem::conflict("The ingestion has ended.");
                            return acts.refuse(problem).await;
                        }
                        let failed = Event::Failed {
                            code: ProblemCode::IngestionAbandoned,
                            cause: Some(Event::NOTHING_TO_DECRYPT),
                        };
                        let entry = event(&failed, by, installation.epoch, Some(act), at);
                        fail_operation(rows, operation, &abandoned(), &entry).await?;
                    }
                }
                Ok(Settled {
                    acts,
                    rendered: render(operation, ingestion),
                    act: ActDraft::new(act, Action::INGESTION_TAKEN_OVER)
                        .on(ingestion)
                        .on(operation),
                })
            },
        )
        .await
        .map_err(NotDone::refused)
    }
}

/// 404 for a record that a body names.
pub(crate) fn unknown<K: bronzeward_core::id::Kind>(
    member: &str,
    id: bronzeward_core::id::Id<K>,
) -> Problem {
    Problem::not_found("A record that the request names does not exist.").naming(member, id)
}

/// 422 for a machine of another cluster than the draft's.
pub(crate) fn foreign_machine(machine: MachineId) -> Problem {
    Problem::validation("foreign-machine")
        .say("The machine is of another cluster.")
        .naming("machine", machine)
}
