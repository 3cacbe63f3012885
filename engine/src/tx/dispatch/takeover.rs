//! Taking an operation over (EaR 3.4, PA §5.1): one conditional write with its entry.
//!
//! A controller's pass takes lapsed ones, a recovery-admin's request any. It sends nothing
//! and classifies nothing.

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::fence::{Generation, lease_from};
use bronzeward_core::id::{EpochId, OperationId};
use bronzeward_core::operation::{
    Operation, OperationState, Takeover, TakeoverRefusal, Taker, Unresolved, UnresolvedCause,
};
use bronzeward_core::principal::{By, Controller, Signed};
use bronzeward_core::problem::Problem;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::{DbTime, Span};
use bronzeward_core::timeline::{Counter, Data};

use super::{Owned, Refused, held, whole};
use crate::ports::store::{
    Condition, Decided, EntryRow, Guard, JobReads, LockMode, NewEntry, OperationExtras,
    OperationReads, StoreError, StoreTx, TimelineWrites, Written,
};
use crate::request::{
    Admitted, Answer, NotDone, Refused as RequestRefused, Rendered, Requests, Settled,
};
use crate::rows::OperationRow;
use crate::tx::claims::superseded;
use crate::tx::{Abort, Failure, Kind, lock_by, transact};
use crate::world::{Db, RawTx, World};

/// A takeover that was asked for: the operation, and the transition's entry.
#[derive(Clone, Debug)]
pub struct TakenOver {
    pub operation: OperationRow,
    pub extras: OperationExtras,
    pub entry: EntryRow,
}

/// Takes over an operation whose lease has lapsed, for this process. `row` is as a snapshot
/// had it: its generation is the one that was seen.
pub async fn take_over_lapsed<W: World>(
    db: &Db<W>,
    row: &OperationRow,
    lease: Span,
) -> Result<Owned, Failure<Refused>> {
    let rules = db.rules();
    let (Some(machine), Some(seen)) = (row.machine, row.fence.as_ref()) else {
        return Err(Failure::Refused(Refused::Gone));
    };
    let seen = seen.generation;
    let committed = transact(db.store(), Kind::Job, async |tx| {
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        if !db.admits(installation.epoch) {
            return tx.refuse(Refused::Superseded).await;
        }
        let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
        let (tx, locked) = tx.lock_machine(machine, lock).await?;
        let (mut open, now, operation) = held(tx, row.id).await?;
        let (Some(locked), Some((operation, _))) = (locked, operation) else {
            return open.refuse(Refused::Gone).await;
        };
        let taking = Taking {
            seen,
            epoch: installation.epoch,
            taker: Taker::Pass { now },
            lease_until: lease_from(now, lease),
            revision: Counter(locked.timeline.0).allocate().0,
        };
        let from = operation.state();
        let Ok(taken) = decide(db, operation, &taking) else {
            return open.refuse(Refused::NotOwner).await;
        };
        let rows = open.rows();
        if write(&rules, rows, &taken, &taking).await? == Written::Stale {
            return open.refuse(Refused::NotOwner).await;
        }
        let by = By::Controller(Controller::owning(&taken.common.fence));
        for data in entries(&taken, from, seen, None) {
            let entry = NewEntry::of(&data, by.clone(), installation.epoch, None, now);
            rows.append_entry(machine, &entry.about(taken.common.plan))
                .await?;
        }
        open.done(Owned {
            operation: taken.common.id,
            plan: taken.common.plan,
            machine,
            cluster: taken.common.cluster,
            fence: taken.common.fence,
        })
    })
    .await?;
    Ok(committed.into_inner())
}

/// A takeover before its transaction's entry says who takes.
struct Taking {
    seen: Generation,
    epoch: EpochId,
    taker: Taker,
    lease_until: DbTime,
    revision: TimelineRevision,
}

fn decide<W: World>(
    db: &Db<W>,
    operation: Operation,
    taking: &Taking,
) -> Result<Unresolved, TakeoverRefusal> {
    let takeover = Takeover {
        owner: db.process().owner.clone(),
        seen: taking.seen,
        epoch: taking.epoch,
        taker: taking.taker,
        lease_until: taking.lease_until,
        revision: taking.revision,
    };
    operation
        .take_over(&db.rules(), takeover)
        .map_err(|refused| refused.reason)
}

/// The conditional UPDATE: the generation that was seen, a state that can be taken, and for
/// a pass a lapsed lease.
async fn write<R: Rules, T: StoreTx>(
    rules: &R,
    rows: &mut T,
    taken: &Unresolved,
    taking: &Taking,
) -> Result<Written, StoreError> {
    let holding = OperationState::HOLDING.map(OperationState::as_str).to_vec();
    let mut guard = Guard::new()
        .when(rules, Rule::TakeoverState, Condition::StateIn(holding))
        .when(
            rules,
            Rule::TakeoverGeneration,
            Condition::Generation(taking.seen),
        );
    if matches!(taking.taker, Taker::Pass { .. }) {
        guard = guard.when(rules, Rule::TakeoverLapsed, Condition::LeaseLapsed);
    }
    let common = &taken.common;
    rows.take_operation(common.id, &guard, &common.fence, common.lease_until)
        .await
}

/// The transition, and the state's entry where it changed.
fn entries(
    taken: &Unresolved,
    from: OperationState,
    seen: Generation,
    requested: Option<(Signed, String)>,
) -> Vec<Data> {
    let common = &taken.common;
    let mut entries = vec![Data::OwnershipTransition {
        operation: common.id,
        from: seen,
        to: common.fence.generation,
        epoch: common.fence.epoch,
        requested,
    }];
    if from != OperationState::Unresolved {
        entries.push(Data::OperationState {
            operation: common.id,
            from: Some(from),
            to: OperationState::Unresolved,
            cause: Some(UnresolvedCause::Takeover.as_str()),
            observation: None,
            reason: None,
        });
    }
    entries
}

/// A takeover inside another act's transaction: a recovery entry takes every operation into
/// the epoch it mints, a decommission its machine's (EaR 7.1, 7.3).
pub(in crate::tx) struct ByAct<'a> {
    pub decided: &'a Decided,
    pub reason: &'a str,
    /// The revision its ownership-transition entry will have.
    pub revision: TimelineRevision,
}

/// Takes an operation over for good of its earlier owner, whose every write then fails. The
/// lease has lapsed as soon as it is given: this process does not carry the operation on, and
/// a controller that may takes it over at once.
pub(in crate::tx) async fn take_over_by_act<W: World>(
    db: &Db<W>,
    rows: &mut RawTx<W>,
    row: &OperationRow,
    act_of: &ByAct<'_>,
) -> Result<(), StoreError> {
    let fault = StoreError::Fault;
    let (Some((operation, _)), Some(machine)) = (whole(rows, row).await?, row.machine) else {
        return Err(fault);
    };
    let Decided { by, epoch, act, at } = *act_of.decided;
    let seen = operation.common().fence.generation;
    let taking = Taking {
        seen,
        epoch,
        taker: Taker::Decision,
        lease_until: at,
        revision: act_of.revision,
    };
    let from = operation.state();
    let taken = decide(db, operation, &taking).map_err(|_| fault)?;
    if write(&db.rules(), rows, &taken, &taking).await? == Written::Stale {
        return Err(fault);
    }
    let requested = Some((by, act_of.reason.to_owned()));
    for data in entries(&taken, from, seen, requested) {
        let mut appended = NewEntry::of(&data, By::Signed(by), epoch, Some(act), at);
        appended.controller = Some(Controller::owning(&taken.common.fence));
        let appended = appended.about(taken.common.plan);
        rows.append_entry(machine, &appended).await?;
    }
    Ok(())
}

impl<W: World> Requests<'_, W> {
    /// Takes an operation over for the serving process's controller, whoever owns it
    /// (PA §9.2). `lease` is none in a process without a controller.
    pub async fn take_over_operation(
        &self,
        admitted: &Admitted,
        id: OperationId,
        seen: Generation,
        reason: &str,
        lease: Option<Span>,
        render: impl Fn(&TakenOver) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, RequestRefused> {
        let (db, rules, act) = (self.db, self.db.rules(), self.db.mint());
        self.run(
            admitted,
            Some(LockMode::Share),
            async |mut tx, installation| {
                let lease = lease.filter(|_| db.admits(installation.epoch));
                let Some(lease) = lease else {
                    return tx.refuse(superseded()).await;
                };
                let row = tx.peek().operation(id).await?;
                let Some(machine) = row.and_then(|row| row.machine.filter(|_| row.plan.is_some()))
                else {
                    return tx.refuse(Problem::not_found("No such operation.")).await;
                };
                let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
                let (tx, locked) = tx.lock_machine(machine, lock).await?;
                let (open, _, operation) = held(tx, id).await?;
                let (Some(locked), Some((operation, _))) = (locked, operation) else {
                    return open.refuse(Problem::not_found("No such operation.")).await;
                };
                let (mut acts, at) = open.lock_acts(&rules).await?;
                let taking = Taking {
                    seen,
                    epoch: installation.epoch,
                    taker: Taker::Decision,
                    lease_until: lease_from(at, lease),
                    revision: Counter(locked.timeline.0).allocate().0,
                };
                let from = operation.state();
                let taken = match decide(db, operation, &taking) {
                    Ok(taken) => taken,
                    Err(refusal) => return acts.refuse(not_taken(refusal)).await,
                };
                let rows = acts.rows();
                if write(&rules, rows, &taken, &taking).await? == Written::Stale {
                    let refusal = TakeoverRefusal::Generation;
                    return acts.refuse(not_taken(refusal)).await;
                }
                let signed = Signed::from(admitted.actor);
                let requested = Some((signed, reason.to_owned()));
                let mut transition = None;
                for data in entries(&taken, from, seen, requested) {
                    let by = By::Signed(signed);
                    let mut entry = NewEntry::of(&data, by, installation.epoch, Some(act), at);
                    entry.controller = Some(Controller::owning(&taken.common.fence));
                    let entry = entry.about(taken.common.plan);
                    let revision = rows.append_entry(machine, &entry).await?;
                    transition.get_or_insert_with(|| EntryRow::of(revision, &entry));
                }
                let operation = rows.operation(id).await?;
                let extras = rows.operation_extras(&[id]).await?.remove(&id);
                let (Some(operation), Some(entry)) = (operation, transition) else {
                    return Err(Abort::Store(StoreError::Fault));
                };
                let taken = TakenOver {
                    operation,
                    extras: extras.unwrap_or_default(),
                    entry,
                };
                Ok(Settled {
                    acts,
                    rendered: render(&taken),
                    act: ActDraft::new(act, Action::OPERATION_TAKEN_OVER)
                        .on(id)
                        .on(machine),
                })
            },
        )
        .await
        .map_err(NotDone::refused)
    }
}

fn not_taken(refusal: TakeoverRefusal) -> Problem {
    Problem::conflict(match refusal {
        TakeoverRefusal::Generation => "The operation's ownership has moved.",
        TakeoverRefusal::Terminal => "The operation has ended.",
        TakeoverRefusal::Live => "The operation's owner is live.",
    })
}
