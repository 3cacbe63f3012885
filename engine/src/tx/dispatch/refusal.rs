//! The record of a refused commitment or attempt (EaR 3.2, 3.3).
//!
//! A transaction of its own, after the refused one rolled back. Its entry authorises
//! nothing, so a process of any epoch may append it; it moves an operation only for the
//! owner.

use bronzeward_core::comparison::NotAdmitted;
use bronzeward_core::id::PlanId;
use bronzeward_core::operation::{Operation, OperationState};
use bronzeward_core::principal::{By, Controller};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::rules::Rule;
use bronzeward_core::timeline::Data;

use super::{Evidence, Log, Owned, Refused, drift, own_move, unowned, whole};
use crate::ports::Alert;
use crate::ports::store::{LockMode, Marks, OperationWrites, PlanReads, Written};
use crate::tx::{Failure, Kind, lock_by, transact};
use crate::world::{Db, World};

/// Appends every failed comparison, ascending. Where the digest failed, the evidence is
/// applied to the machine's drift record; where the attempt of a committed operation was
/// refused by comparison 1, 2, 3 or 6, its owner moves it to `unresolved`.
pub async fn record_not_admitted<W: World>(
    db: &Db<W>,
    plan: PlanId,
    owned: Option<&Owned>,
    evidence: &Evidence,
    refused: &NotAdmitted,
) -> Result<Option<Alert>, Failure<Refused>> {
    let rules = db.rules();
    let controller = owned.map_or_else(|| unowned(db), |owned| Controller::owning(&owned.fence));
    let committed = transact(db.store(), Kind::Job, async |tx| {
        let (mut tx, installation) = tx.lock_installation(LockMode::Share).await?;
        let Some(machine) = tx.peek().plan_machine(plan).await? else {
            return tx.refuse(Refused::Gone).await;
        };
        let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
        let (tx, machine) = tx.lock_machine(machine, lock).await?;
        let operations = owned.iter().map(|owned| owned.operation).collect();
        let (tx, operations) = tx.lock_operations(&operations, LockMode::Update).await?;
        let (mut open, at) = tx.open_at().await?;
        let Some(machine) = machine else {
            return open.refuse(Refused::Gone).await;
        };
        let operation = match operations.into_iter().next() {
            Some(row) => whole(open.rows(), &row).await?,
            None => None,
        };
        let epoch = installation.epoch;
        let mut log = Log {
            rows: open.rows(),
            machine: machine.id,
            plan: Some(plan),
            by: By::Controller(controller.clone()),
            epoch,
            at,
        };
        let entry = Data::Refusal {
            plan,
            operation: owned.map(|owned| owned.operation),
            comparisons: refused.failed.clone(),
            process_epoch: refused.process_epoch,
        };
        let revision = log.append(&entry).await?;
        let moves = unresolves(owned, operation, refused, revision);
        if let Some((owned, cause)) = moves {
            let rule = Rule::AttemptByOwner;
            let from = OperationState::Committed;
            let guard = own_move(&rules, rule, &owned.fence, epoch, from);
            let to = OperationState::Unresolved;
            let moved = log.rows.move_operation(owned.operation, &guard, to).await?;
            if moved == Written::Written {
                log.append(&Data::OperationState {
                    operation: owned.operation,
                    from: Some(from),
                    to,
                    cause: Some(cause),
                    observation: None,
                    reason: None,
                })
                .await?;
            }
        }
        let mut alert = None;
        if refused.on_digest {
            let observation = &evidence.observation;
            alert = drift::observed(&rules, &mut log, &machine, observation).await?;
        }
        open.done(alert)
    })
    .await?;
    Ok(committed.into_inner())
}

/// The owner's move of a committed operation whose attempt was refused, with its cause.
fn unresolves<'a>(
    owned: Option<&'a Owned>,
    operation: Option<(Operation, Marks)>,
    refused: &NotAdmitted,
    revision: TimelineRevision,
) -> Option<(&'a Owned, &'static str)> {
    let (Some(owned), Some((Operation::Committed(operation), _))) = (owned, operation) else {
        return None;
    };
    let moved = operation.refuse_attempt(refused.clone(), revision);
    moved.ok().map(|(_, cause)| (owned, cause.as_str()))
}
