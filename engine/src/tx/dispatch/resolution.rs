//! A recovery-admin's decision that an operation which never sent anything is cancelled
//! (EaR 4, PA §9.2), by a request.
//!
//! It is the only end a human decides: completing or failing one by decision does not exist,
//! since absence of evidence classifies nothing (EaR 8, 6).

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::classify::Cancellation;
use bronzeward_core::id::OperationId;
use bronzeward_core::operation::{Operation, OperationState, Unresolved};
use bronzeward_core::principal::{By, Signed};
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::timeline::{Counter, Data};

use super::held;
use crate::ports::store::{
    Condition, EntryRow, Guard, JobReads, LockMode, NewEntry, ObservationReads, OperationWrites,
    StoreError, TimelineWrites, Written,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::rows::OperationRow;
use crate::tx::actor::standing_actor;
use crate::tx::{Abort, lock_by};
use crate::world::World;

/// What the state's entry gives as its cause.
const RESOLVED: &str = "resolution";

/// A resolution as it is answered. The operation has no attempt.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub operation: OperationRow,
    pub entry: EntryRow,
}

impl<W: World> Requests<'_, W> {
    /// Cancels an unresolved operation with no recorded attempt. Its scope and its cluster's
    /// slot are free then, so the caller wakes dispatch.
    pub async fn resolve_operation(
        &self,
        admitted: &Admitted,
        id: OperationId,
        reason: &str,
        render: impl Fn(&Resolved) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (db, rules, act) = (self.db, self.db.rules(), self.db.mint());
        let outcome = self.run(
            admitted,
            Some(LockMode::Share),
            async |mut tx, installation| {
                if !db.admits(installation.epoch) {
                    return tx.refuse(superseded()).await;
                }
                let missing = || Problem::not_found("No such operation.");
                let row = tx.peek().operation(id).await?;
                let Some(machine) = row.and_then(|row| row.machine.filter(|_| row.plan.is_some()))
                else {
                    return tx.refuse(missing()).await;
                };
                let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
                let (tx, locked) = tx.lock_machine(machine, lock).await?;
                let tx = standing_actor(&rules, tx, admitted).await?;
                let (mut open, _, operation) = held(tx, id).await?;
                let (Some(locked), Some((operation, _))) = (locked, operation) else {
                    return open.refuse(missing()).await;
                };
                let plan = operation.common().plan;
                let (unresolved, proof) = match resolvable(&rules, operation) {
                    Ok(resolvable) => resolvable,
                    Err(problem) => return open.refuse(*problem).await,
                };
                let seen = open.rows().highest_observation(machine).await?;
                let (mut acts, at) = open.lock_acts(&rules).await?;
                let _cancelled = unresolved.cancel(proof, Counter(locked.timeline.0).allocate().0);
                let (from, to) = (OperationState::Unresolved, OperationState::Cancelled);
                let guard = Guard::new().and(Condition::StateIn(vec![from.as_str()]));
                let rows = acts.rows();
                if rows.move_operation(id, &guard, to).await? == Written::Stale {
                    return acts.refuse(not_unresolved()).await;
                }
                // The evidence relied on: no attempt, and the machine's latest reading.
                let data = Data::OperationState {
                    operation: id,
                    from: Some(from),
                    to,
                    cause: Some(RESOLVED),
                    observation: seen.map(|seen| seen.started.id),
                    reason: Some(reason.to_owned()),
                };
                let by = By::Signed(Signed::from(admitted.actor));
                let entry = NewEntry::of(&data, by, installation.epoch, Some(act), at).about(plan);
                let revision = rows.append_entry(machine, &entry).await?;
                let Some(operation) = rows.operation(id).await? else {
                    return Err(Abort::Store(StoreError::Fault));
                };
                let resolved = Resolved {
                    operation,
                    entry: EntryRow::of(revision, &entry),
                };
                Ok(Settled {
                    acts,
                    rendered: render(&resolved),
                    act: ActDraft::new(act, Action::OPERATION_RESOLVED)
                        .on(id)
                        .on(machine),
                })
            },
        );
        outcome.await.map_err(NotDone::refused)
    }
}

/// The operation and the decision's value, where both the state and the rule allow it.
fn resolvable<R: Rules>(
    rules: &R,
    operation: Operation,
) -> Result<(Unresolved, Cancellation), Box<Problem>> {
    let unresolved = match operation {
        Operation::Unresolved(unresolved) => unresolved,
        Operation::Committed(_)
        | Operation::Sending(_)
        | Operation::Verifying(_)
        | Operation::Completed(_)
        | Operation::Rejected(_)
        | Operation::Failed(_)
        | Operation::Cancelled(_) => return Err(Box::new(not_unresolved())),
    };
    match Cancellation::by_decision(rules, &unresolved.common.attempts) {
        Some(proof) => Ok((unresolved, proof)),
        None => Err(Box::new(Problem::conflict(
            "An attempt of the operation is recorded; only evidence ends it.",
        ))),
    }
}

fn not_unresolved() -> Problem {
    Problem::conflict("The operation is not unresolved.")
}

/// 503: a recovery entry has replaced this process's epoch (PA §5.1).
fn superseded() -> Problem {
    Problem::new(ProblemCode::EpochSuperseded)
        .say("This process is of an earlier epoch and resolves no operation.")
}
