//! What the evidence makes of an operation, recorded by its owner (EaR 4, 5).

use bronzeward_core::attempt::all_accounted_at;
use bronzeward_core::classify::{self, Classification};
use bronzeward_core::comparison::standing;
use bronzeward_core::drift::Resolution;
use bronzeward_core::id::ObservationId;
use bronzeward_core::observation::Observation;
use bronzeward_core::operation::{Operation, OperationState};
use bronzeward_core::plan::AnyPlan;
use bronzeward_core::principal::{By, Controller};
use bronzeward_core::release::{Applied, AppliedSource};
use bronzeward_core::revision::BaselineRevision;
use bronzeward_core::rules::{Rule, Rules as _};
use bronzeward_core::timeline::{Counter, Data, Outcome};

use super::{Last, Log, Owned, Refused, Scene, drift, own_move, scene};
use crate::ports::Alert;
use crate::ports::store::{ObservationReads, OperationWrites, StoreError, StoreTx, Written};
use crate::tx::plans::applied;
use crate::tx::{Abort, Ended, Failure, Kind, Tx, level::Start, transact};
use crate::world::{Db, RawTx, World};

/// What a judgement left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub state: OperationState,
    /// Whether one more request is classified as safe, by this owner.
    pub retry: bool,
    /// To be raised now that the transaction has committed.
    pub alert: Option<Alert>,
}

/// Classifies an owned operation on everything recorded and writes what follows: an end, a
/// safe-to-retry classification, `unresolved`, or nothing.
pub async fn judge<W: World>(db: &Db<W>, owned: &Owned) -> Result<Judged, Failure<Refused>> {
    let committed = transact(db.store(), Kind::Job, async |tx| {
        judged(db, owned, tx).await
    })
    .await?;
    Ok(committed.into_inner())
}

async fn judged<W: World>(
    db: &Db<W>,
    owned: &Owned,
    tx: Tx<RawTx<W>, Start>,
) -> Result<Ended<RawTx<W>, Judged>, Abort<Refused>> {
    let rules = db.rules();
    let mut scene = scene(db, tx, owned.plan, Last::Operation(owned.operation)).await?;
    let Some((operation, marks)) = scene.held.take() else {
        return scene.open.refuse(Refused::Gone).await;
    };
    let epoch = scene.installation.epoch;
    let common = operation.common();
    let owns = common.fence.admits(&rules, &owned.fence, epoch).is_ok();
    if !rules.holds(Rule::VerdictByOwner, owns) {
        return scene.open.refuse(Refused::NotOwner).await;
    }
    // No reading begun before the last answer, and none before the state, says anything.
    let from = all_accounted_at(&common.attempts).unwrap_or(common.since);
    let rows = scene.open.rows();
    let observations = rows.observations_after(owned.machine, from).await?;
    let classification = classification(&rules, &scene, &operation, &observations);
    let verdict = match verdict(&scene, operation, marks.outdating, classification) {
        Ok(verdict) => verdict,
        Err(state) => {
            let nothing = Judged {
                state,
                retry: matches!(classification, Classification::SafeToRetry(_)),
                alert: None,
            };
            return scene.open.done(nothing);
        }
    };
    let alert = match write(db, &mut scene, owned, &verdict, &observations).await? {
        Some(alert) => alert,
        None => return scene.open.refuse(Refused::NotOwner).await,
    };
    scene.open.done(Judged {
        state: verdict.to,
        retry: verdict.outcome == Outcome::SafeToRetry,
        alert,
    })
}

fn classification<R: bronzeward_core::rules::Rules, T>(
    rules: &R,
    scene: &Scene<T>,
    operation: &Operation,
    observations: &[Observation],
) -> Classification {
    let common = operation.common();
    let (epoch, now) = (scene.installation.epoch, scene.now);
    let bound = scene.binding();
    let mode = scene.installation.recovery_mode;
    let gate = scene.scope.gate(rules, mode, epoch, bound.drift, false);
    classify::classify(
        rules,
        &classify::Evidence {
            binding: bound,
            attempts: &common.attempts,
            observations,
            since: common.since,
            authorised: standing(rules, &scene.standing(), Some(common.id), epoch, now),
            authority_gone: gone(scene),
            gate_open: gate.is_ok(),
            now,
        },
    )
}

/// Whether comparison 1 can never pass again (EaR 4).
fn gone<T>(scene: &Scene<T>) -> bool {
    let plan = &scene.row.plan;
    let ended = match plan {
        AnyPlan::Committed(committed) => committed.state().cancelled,
        AnyPlan::Approved(_) | AnyPlan::Proposed(_) => false,
        AnyPlan::Revoked(_) | AnyPlan::Cancelled(_) | AnyPlan::Expired(_) => true,
    };
    let other_epoch = plan
        .approval()
        .is_none_or(|approval| approval.epoch != scene.installation.epoch);
    ended
        || scene.approval_revoked
        || scene.approver_revoked
        || other_epoch
        || scene.now >= plan.binding().expires_at
}

/// What is to be written: the move, what it rests on, and what Applied becomes.
struct Verdict {
    from: OperationState,
    to: OperationState,
    outcome: Outcome,
    cause: Option<&'static str>,
    observation: Option<ObservationId>,
    applied: Option<Applied>,
}

/// The transition the classification asks for; the operation's state where it asks for
/// none, or for one that its state does not have.
fn verdict<T>(
    scene: &Scene<T>,
    operation: Operation,
    outdating: bronzeward_core::revision::TimelineRevision,
    classification: Classification,
) -> Result<Verdict, OperationState> {
    let from = operation.state();
    let (revision, _) = Counter(scene.machine.timeline.0).allocate();
    let moves = |to: OperationState, outcome, observation| Verdict {
        from,
        to,
        outcome,
        cause: None,
        observation,
        applied: None,
    };
    match (operation, classification) {
        (Operation::Verifying(operation), Classification::Completed(proof)) => {
            let _completed = operation.complete(proof, revision);
            Ok(completes(scene, from, proof))
        }
        (Operation::Unresolved(operation), Classification::Completed(proof)) => {
            let _completed = operation.complete(proof, revision);
            Ok(completes(scene, from, proof))
        }
        (Operation::Verifying(operation), Classification::Failed(proof)) => {
            let _failed = operation.fail(proof, revision);
            let observation = Some(proof.observation());
            Ok(moves(OperationState::Failed, Outcome::Failed, observation))
        }
        (Operation::Unresolved(operation), Classification::Failed(proof)) => {
            let _failed = operation.fail(proof, revision);
            let observation = Some(proof.observation());
            Ok(moves(OperationState::Failed, Outcome::Failed, observation))
        }
        (Operation::Unresolved(operation), Classification::Rejected(proof)) => {
            let _rejected = operation.reject(proof, revision);
            Ok(moves(OperationState::Rejected, Outcome::Rejected, None))
        }
        (Operation::Unresolved(operation), Classification::Cancelled(proof)) => {
            let _cancelled = operation.cancel(proof, revision);
            Ok(moves(OperationState::Cancelled, Outcome::Cancelled, None))
        }
        (Operation::Unresolved(operation), Classification::SafeToRetry(proof)) => {
            // One that stands is not recorded again at every look.
            let generation = operation.common.fence.generation;
            let stands = operation
                .classified
                .is_some_and(|entry| entry.generation == generation && outdating <= entry.revision);
            if stands {
                return Err(from);
            }
            let _classified = operation.classify(proof, revision);
            let observation = Some(proof.observation());
            Ok(moves(from, Outcome::SafeToRetry, observation))
        }
        (Operation::Verifying(operation), Classification::Unresolved(_)) => {
            let given_up = operation.give_up(scene.now, revision);
            let (_, cause) = given_up.map_err(|_| from)?;
            Ok(Verdict {
                cause: Some(cause.as_str()),
                ..moves(OperationState::Unresolved, Outcome::Unresolved, None)
            })
        }
        _ => Err(from),
    }
}

fn completes<T>(scene: &Scene<T>, from: OperationState, proof: classify::Completion) -> Verdict {
    let before = applied(&scene.machine).map(|applied| applied.baseline);
    Verdict {
        from,
        to: OperationState::Completed,
        outcome: Outcome::Completed,
        cause: None,
        observation: Some(proof.observation()),
        applied: Some(Applied {
            release: scene.binding().release,
            digest: proof.digest(),
            source: AppliedSource::Operation,
            baseline: BaselineRevision::after(before),
        }),
    }
}

/// Writes a verdict and its entries; `None` where the operation is not the owner's any more.
async fn write<W: World>(
    db: &Db<W>,
    scene: &mut Scene<RawTx<W>>,
    owned: &Owned,
    verdict: &Verdict,
    observations: &[Observation],
) -> Result<Option<Option<Alert>>, StoreError> {
    let (rules, epoch, at) = (db.rules(), scene.installation.epoch, scene.now);
    let guard = own_move(
        &rules,
        Rule::VerdictByOwner,
        &owned.fence,
        epoch,
        verdict.from,
    );
    let drift = scene.binding().drift;
    let mut log = Log {
        rows: scene.open.rows(),
        machine: owned.machine,
        plan: Some(owned.plan),
        by: By::Controller(Controller::owning(&owned.fence)),
        epoch,
        at,
    };
    let entry = Data::Classification {
        operation: owned.operation,
        outcome: verdict.outcome,
        observation: verdict.observation,
    };
    let classified = log.append(&entry).await?;
    let (id, rows) = (owned.operation, &mut *log.rows);
    let moved = match verdict.outcome {
        Outcome::SafeToRetry => {
            rows.classify_operation(id, &guard, classified, &owned.fence)
                .await?
        }
        _ => rows.move_operation(id, &guard, verdict.to).await?,
    };
    if moved == Written::Stale {
        return Ok(None);
    }
    if verdict.outcome == Outcome::SafeToRetry {
        return Ok(Some(None));
    }
    log.append(&Data::OperationState {
        operation: id,
        from: Some(verdict.from),
        to: verdict.to,
        cause: verdict.cause,
        observation: verdict.observation,
        reason: None,
    })
    .await?;
    if let (Some(applied), Some(observation)) = (&verdict.applied, verdict.observation) {
        apply(&mut log, id, applied, observation, drift).await?;
    }
    if verdict.to != OperationState::Failed {
        return Ok(Some(None));
    }
    let failing = observations
        .iter()
        .find(|seen| Some(seen.started.id) == verdict.observation);
    match failing {
        // The operation that this reading fails holds the scope no more.
        Some(failing) => drift::apply(&rules, &mut log, &scene.machine, failing, false)
            .await
            .map(Some),
        None => Ok(Some(None)),
    }
}

/// Applied becomes what was verified, and the drift record that a revert bound closes.
async fn apply<T: StoreTx>(
    log: &mut Log<'_, T>,
    operation: bronzeward_core::id::OperationId,
    applied: &Applied,
    observation: ObservationId,
    bound: Option<bronzeward_core::revision::TimelineRevision>,
) -> Result<(), StoreError> {
    log.rows
        .write_applied(log.machine, applied, operation)
        .await?;
    log.append(&Data::AppliedChange {
        release: applied.release,
        source: applied.source,
        baseline: applied.baseline,
        operation,
        observation,
    })
    .await?;
    let open = log.rows.drift_record(log.machine).await?;
    match open.filter(|open| Some(open.revision) == bound) {
        Some(open) => drift::close(log, &open, Resolution::Reverted, Some(observation)).await,
        None => Ok(()),
    }
}
