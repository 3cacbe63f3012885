//! The attempt transaction (EaR 3.3): what every request is preceded by.
//!
//! Its value is what the mutating client consumes, and only its commit makes that value.

use bronzeward_core::attempt::{Attempt, Recorded};
use bronzeward_core::comparison::{self, Admission, AttemptFrom, Stage};
use bronzeward_core::id::AttemptId;
use bronzeward_core::operation::{Operation, OperationState};
use bronzeward_core::principal::{By, Controller};
use bronzeward_core::rules::Rule;
use bronzeward_core::timeline::{Counter, Data};

use super::{Evidence, Last, Log, Owned, Refused, Scene, facts, own_move, scene, unowned};
use crate::ports::store::{ObservationReads, OperationWrites, StoreError, Written};
use crate::tx::level::Start;
use crate::tx::{Abort, Committed, Ended, Failure, Kind, Tx, transact};
use crate::world::{Db, RawTx, World};

/// Records an attempt of an owned operation on this evidence. `id` is minted by the caller.
pub async fn record_attempt<W: World>(
    db: &Db<W>,
    owned: &Owned,
    evidence: &Evidence,
    id: AttemptId,
) -> Result<Committed<Recorded>, Failure<Refused>> {
    transact(db.store(), Kind::Job, async |tx| {
        recorded(db, owned, evidence, id, tx).await
    })
    .await
}

async fn recorded<W: World>(
    db: &Db<W>,
    owned: &Owned,
    evidence: &Evidence,
    id: AttemptId,
    tx: Tx<RawTx<W>, Start>,
) -> Result<Ended<RawTx<W>, Recorded>, Abort<Refused>> {
    let rules = db.rules();
    let mut scene = scene(db, tx, owned.plan, Last::Operation(owned.operation)).await?;
    let admission = match admit(db, &mut scene, owned, evidence).await? {
        Ok(admission) => admission,
        Err(refused) => return scene.open.refuse(refused).await,
    };
    let Some((operation, _)) = scene.held.take() else {
        return scene.open.refuse(Refused::Gone).await;
    };
    let Some(attempt) = attempt(&scene, owned, &operation, evidence, id) else {
        return scene.open.refuse(Refused::Gone).await;
    };
    let recorded = Recorded::admitted(&admission, attempt);
    let revision = recorded.attempt().revision;
    let from = operation.state();
    let sending = match operation {
        Operation::Committed(operation) => operation.send(recorded.clone(), revision),
        Operation::Unresolved(operation) => operation.send(recorded.clone(), revision),
        _ => return scene.open.refuse(Refused::NotOwner).await,
    };
    let (epoch, at, machine) = (scene.installation.epoch, scene.now, owned.machine);
    let guard = own_move(&rules, Rule::AttemptByOwner, &owned.fence, epoch, from);
    let rows = scene.open.rows();
    let moved = rows
        .move_operation(owned.operation, &guard, OperationState::Sending)
        .await?;
    if moved == Written::Stale {
        return scene.open.refuse(Refused::NotOwner).await;
    }
    let attempt = recorded.attempt();
    rows.insert_attempt(attempt, evidence.check.revision)
        .await?;
    let mut log = Log {
        rows,
        machine,
        plan: Some(owned.plan),
        by: By::Controller(Controller::owning(&owned.fence)),
        epoch,
        at,
    };
    let data = Data::Attempt {
        operation: owned.operation,
        attempt: id,
        number: attempt.number,
        route: attempt.route,
        transport_deadline: attempt.transport_deadline,
        verification_deadline: attempt.verification_deadline,
    };
    log.append(&data).await?;
    log.append(&Data::OperationState {
        operation: sending.common.id,
        from: Some(from),
        to: OperationState::Sending,
        cause: None,
        observation: None,
        reason: None,
    })
    .await?;
    scene.open.done(recorded)
}

fn attempt<T>(
    scene: &Scene<T>,
    owned: &Owned,
    operation: &Operation,
    evidence: &Evidence,
    id: AttemptId,
) -> Option<Attempt> {
    let binding = scene.binding();
    let deadlines = binding.deadlines()?;
    let number = u8::try_from(operation.common().attempts.len() + 1).ok()?;
    let (revision, _) = Counter(scene.machine.timeline.0).allocate();
    Some(Attempt {
        id,
        operation: owned.operation,
        machine: owned.machine,
        number,
        fence: owned.fence.clone(),
        route: binding.route,
        evidence: evidence.observation.started.id,
        access: evidence.access.clone()?,
        revision,
        at: scene.now,
        transport_deadline: scene.now + deadlines.transport,
        verification_deadline: scene.now + deadlines.verification,
        response: None,
        accounting: None,
    })
}

async fn admit<W: World>(
    db: &Db<W>,
    scene: &mut Scene<RawTx<W>>,
    owned: &Owned,
    evidence: &Evidence,
) -> Result<Result<Admission, Refused>, StoreError> {
    let basis = evidence.observation.started.basis;
    let recorded = scene
        .open
        .rows()
        .observations_after(owned.machine, basis)
        .await?;
    let Some((operation, marks)) = &scene.held else {
        return Ok(Err(Refused::Gone));
    };
    let common = operation.common();
    let state = match operation {
        Operation::Committed(_) => AttemptFrom::Committed,
        Operation::Unresolved(unresolved) => AttemptFrom::Unresolved {
            classified: unresolved.classified.as_ref(),
            latest: marks.outdating,
        },
        Operation::Sending(_)
        | Operation::Verifying(_)
        | Operation::Completed(_)
        | Operation::Rejected(_)
        | Operation::Failed(_)
        | Operation::Cancelled(_) => AttemptFrom::Other,
    };
    let stage = Stage::Attempt {
        operation: common.id,
        state,
        held: &common.fence,
        token: &owned.fence,
        attempts: &common.attempts,
    };
    let controller = unowned(db);
    let facts = facts(db, scene, &controller, evidence, &recorded, stage);
    Ok(comparison::compare(&db.rules(), &facts)
        .map_err(|refused| Refused::NotAdmitted(Box::new(refused))))
}
