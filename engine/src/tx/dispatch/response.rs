//! The record of an answer (EaR 3.5), by the owner that sent the request.

use bronzeward_core::attempt::Response;
use bronzeward_core::id::AttemptId;
use bronzeward_core::operation::{AfterResponse, Operation, OperationState};
use bronzeward_core::principal::{By, Controller};
use bronzeward_core::rules::{Rule, Rules as _};
use bronzeward_core::timeline::{Counter, Data};

use super::{Log, Owned, Refused, held, own_move};
use crate::ports::node::ApplyAnswer;
use crate::ports::store::{LockMode, OperationWrites, Written};
use crate::tx::{Failure, Kind, lock_by, transact};
use crate::world::{Db, World};

/// Records the answer to the attempt under way and moves the operation by it. A superseded
/// owner's answer is refused: it stays unrecorded.
pub async fn record_response<W: World>(
    db: &Db<W>,
    owned: &Owned,
    id: AttemptId,
    answer: ApplyAnswer,
) -> Result<OperationState, Failure<Refused>> {
    let rules = db.rules();
    let committed = transact(db.store(), Kind::Job, async |tx| {
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
        let (tx, machine) = tx.lock_machine(owned.machine, lock).await?;
        let (mut open, at, operation) = held(tx, owned.operation).await?;
        let (Some(machine), Some(Operation::Sending(sending))) =
            (machine, operation.map(|(operation, _)| operation))
        else {
            return open.refuse(Refused::NotOwner).await;
        };
        let common = &sending.common;
        let epoch = installation.epoch;
        let owns = common.fence.admits(&rules, &owned.fence, epoch).is_ok();
        let last = common.attempts.last().cloned();
        let Some(attempt) = last.filter(|last| last.id == id) else {
            return open.refuse(Refused::NotOwner).await;
        };
        if !rules.holds(Rule::ResponseByOwner, owns) {
            return open.refuse(Refused::NotOwner).await;
        }
        let (revision, _) = Counter(machine.timeline.0).allocate();
        let response = Response {
            class: answer.class,
            code: answer.code.as_str(),
            revision,
            at,
        };
        let (to, cause) = match sending.respond(&rules, response) {
            AfterResponse::Verifying(_) => (OperationState::Verifying, None),
            AfterResponse::Rejected(_) => (OperationState::Rejected, None),
            AfterResponse::Unresolved(_, cause) => {
                (OperationState::Unresolved, Some(cause.as_str()))
            }
        };
        let (rule, from) = (Rule::ResponseByOwner, OperationState::Sending);
        let guard = own_move(&rules, rule, &owned.fence, epoch, from);
        let rows = open.rows();
        if rows.move_operation(owned.operation, &guard, to).await? == Written::Stale {
            return open.refuse(Refused::NotOwner).await;
        }
        rows.insert_response(&attempt, &response, &owned.fence)
            .await?;
        let mut log = Log {
            rows,
            machine: owned.machine,
            plan: Some(owned.plan),
            by: By::Controller(Controller::owning(&owned.fence)),
            epoch,
            at,
        };
        let data = Data::Response {
            operation: owned.operation,
            attempt: id,
            class: response.class,
            code: response.code,
        };
        log.append(&data).await?;
        log.append(&Data::OperationState {
            operation: owned.operation,
            from: Some(from),
            to,
            cause,
            observation: None,
            reason: None,
        })
        .await?;
        open.done(to)
    })
    .await?;
    Ok(committed.into_inner())
}
