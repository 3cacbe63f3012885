//! The decision that a lost answer's request can no longer land (EaR 5.2), by a request.
//!
//! It is a judgement: it stands in for the answer and completes nothing.

use std::collections::BTreeMap;

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::attempt::{
    AccountingFacts, Attempt, NotAccountable, ResponseClass, accountable,
};
use bronzeward_core::id::{AttemptId, MachineId, ObservationId, OperationId};
use bronzeward_core::observation::Observation;
use bronzeward_core::principal::{By, Signed};
use bronzeward_core::problem::Problem;
use bronzeward_core::rules::Rule;
use bronzeward_core::time::{DbTime, Span};
use bronzeward_core::timeline::{Counter, Data};

use super::held;
use crate::ports::store::{
    EntryRow, JobReads, LockMode, NewAccounting, NewEntry, OperationExtras, OperationReads,
    OperationWrites, StoreError, StoreReads, TimelineWrites,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::rows::OperationRow;
use crate::tx::{Abort, lock_by};
use crate::world::World;

/// The member of `facts` that accounts for a changed resource (PA §9.2).
const EXPLANATION: &str = "explanation";

/// Whether the facts account for a changed resource.
pub(in crate::tx) fn explained(facts: &BTreeMap<String, String>) -> bool {
    facts
        .get(EXPLANATION)
        .is_some_and(|words| !words.trim().is_empty())
}

/// An accounting as it is answered.
#[derive(Clone, Debug)]
pub struct Accounted {
    pub operation: OperationRow,
    pub extras: OperationExtras,
    pub entry: EntryRow,
}

/// What a request gives for its decision.
#[derive(Clone, Debug)]
pub struct AccountingInput {
    pub operation: OperationId,
    pub attempt: AttemptId,
    pub start: ObservationId,
    pub end: ObservationId,
    pub facts: BTreeMap<String, String>,
}

impl<W: World> Requests<'_, W> {
    /// Accounts for an attempt whose answer was lost. `settle_floor` is the deployment's.
    pub async fn account_attempt(
        &self,
        admitted: &Admitted,
        input: &AccountingInput,
        settle_floor: Span,
        render: impl Fn(&Accounted) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (rules, act) = (self.db.rules(), self.db.mint());
        self.run(
            admitted,
            Some(LockMode::Share),
            async |mut tx, installation| {
                let row = tx.peek().operation(input.operation).await?;
                let Some(machine) = row.and_then(|row| row.machine.filter(|_| row.plan.is_some()))
                else {
                    return tx.refuse(Problem::not_found("No such operation.")).await;
                };
                let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
                let (tx, locked) = tx.lock_machine(machine, lock).await?;
                let (mut open, now, operation) = held(tx, input.operation).await?;
                let (Some(locked), Some((operation, _))) = (locked, operation) else {
                    return open.refuse(Problem::not_found("No such operation.")).await;
                };
                let common = operation.common();
                let attempt = common.attempts.iter().find(|one| one.id == input.attempt);
                let Some(attempt) = attempt.cloned() else {
                    return open.refuse(Problem::not_found("No such attempt.")).await;
                };
                let (plan, epoch) = (common.plan, installation.epoch);
                let read = facts(open.rows(), machine, input, &attempt).await?;
                let Some(read) = read else {
                    return open
                        .refuse(Problem::not_found("No such observation."))
                        .await;
                };
                let decided = accountable(&rules, &read.decide(&attempt, input, settle_floor, now));
                if let Err(refusal) = decided {
                    return open.refuse(not_accountable(refusal)).await;
                }
                let (mut acts, at) = open.lock_acts(&rules).await?;
                let signed = Signed::from(admitted.actor);
                let data = Data::Accounting {
                    attempt: Some((input.operation, input.attempt)),
                    start: input.start,
                    end: input.end,
                    facts: input.facts.clone(),
                };
                let entry = NewEntry::of(&data, By::Signed(signed), epoch, Some(act), at);
                let entry = entry.about(plan);
                let accounting = NewAccounting {
                    attempt: input.attempt,
                    machine,
                    revision: Counter(locked.timeline.0).allocate().0,
                    start: input.start,
                    end: input.end,
                    facts: input.facts.clone(),
                    by: signed,
                    epoch,
                    act,
                    at,
                };
                let rows = acts.rows();
                rows.insert_accounting(&accounting).await?;
                let revision = rows.append_entry(machine, &entry).await?;
                let Some(operation) = rows.operation(input.operation).await? else {
                    return Err(Abort::Store(StoreError::Fault));
                };
                let mut extras = rows.operation_extras(&[input.operation]).await?;
                let accounted = Accounted {
                    operation,
                    extras: extras.remove(&input.operation).unwrap_or_default(),
                    entry: EntryRow::of(revision, &entry),
                };
                Ok(Settled {
                    acts,
                    rendered: render(&accounted),
                    act: ActDraft::new(act, Action::ATTEMPT_ACCOUNTED)
                        .on(input.operation)
                        .on(input.attempt)
                        .on(machine),
                })
            },
        )
        .await
        .map_err(NotDone::refused)
    }
}

/// What the decision is compared with, as it was recorded.
struct Recorded {
    stopped_at: Option<DbTime>,
    first_read: Option<DbTime>,
    start: Observation,
    end: Observation,
}

/// None where an observation is not one of this machine's.
async fn facts<T: StoreReads>(
    rows: &mut T,
    machine: MachineId,
    input: &AccountingInput,
    attempt: &Attempt,
) -> Result<Option<Recorded>, StoreError> {
    let start = rows.observation(input.start).await?;
    let end = rows.observation(input.end).await?;
    let ours = |seen: &Observation| seen.started.machine == machine;
    let (Some(start), Some(end)) = (start.filter(ours), end.filter(ours)) else {
        return Ok(None);
    };
    let moved = rows
        .ownership_moved_after(attempt.operation, attempt.revision)
        .await?;
    let answered = attempt
        .response
        .filter(|response| response.class == ResponseClass::Transport)
        .map(|response| response.at);
    let first_read = rows
        .first_read_after(machine, attempt.transport_deadline)
        .await?;
    Ok(Some(Recorded {
        // Its owner's own word that it waits no more, or the loss of its ownership.
        stopped_at: answered.or(moved),
        first_read,
        start,
        end,
    }))
}

impl Recorded {
    fn decide<'a>(
        &'a self,
        attempt: &Attempt,
        input: &AccountingInput,
        settle_floor: Span,
        now: DbTime,
    ) -> AccountingFacts<'a> {
        AccountingFacts {
            transport_deadline: attempt.transport_deadline,
            stopped_at: self.stopped_at,
            first_read_after_deadline: self.first_read,
            settle_floor,
            start: &self.start,
            end: &self.end,
            explained: explained(&input.facts),
            accounted: attempt.accounted_at().is_some(),
            now,
        }
    }
}

/// The condition of EaR 5.2 that does not hold.
pub(in crate::tx) fn not_accountable(refusal: NotAccountable) -> Problem {
    Problem::conflict(match refusal {
        NotAccountable::AlreadyAccounted => "The attempt is accounted for.",
        NotAccountable::ExecutorNotStopped => "The attempt's executor may still run.",
        NotAccountable::NotRecoveryObservations => "Both observations are recovery observations.",
        NotAccountable::StartTooEarly => {
            "The first observation began before the attempt's deadline or its executor's stop."
        }
        NotAccountable::EndTooEarly => {
            "The second observation began before the settle floor after the first had passed."
        }
        NotAccountable::SettleFloor => "The settle floor has not passed.",
        NotAccountable::Unread => "An observation read no configuration or no identity.",
        NotAccountable::Unexplained => {
            "The configuration's resource changed between the observations, unexplained."
        }
    })
}
