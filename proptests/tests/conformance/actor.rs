//! A session: one step after the other on a store, whichever it is.
//!
//! Both sides run this code, so what differs is the store. Never in this module: a side.

use std::fmt::Debug;

use bronzeward_core::drift::{OpenDrift, Resolution};
use bronzeward_core::operation::OperationState;
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    ClaimEnd, Condition, EndpointChange, EntryKind, EntryOfDraft, Guard, JobEnd, LockMode, Order,
    Page, Select, Snapshot, Store, StoreError, StoreReads, StoreTx, Written,
};
use bronzeward_engine::rows::{MachineRow, MachineStateRow, PrincipalRow, SourceRevisionId};

use crate::furniture::{self as rows, FUTURE, PAST, id};
use crate::op::{If, Lease, Op, Row};

/// What a step came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Text(String),
    /// Something with a time, which is compared with the case's earlier ones.
    At(String, DbTime),
}

type Answered = Result<Answer, StoreError>;

fn text(of: impl Debug) -> Answered {
    Ok(Answer::Text(format!("{of:?}")))
}

/// A session with its open transaction or snapshot.
pub struct Actor<S: Store> {
    store: S,
    open: Open<S>,
}

enum Open<S: Store> {
    Nothing,
    Tx(S::Tx),
    Snapshot(S::Snapshot),
}

impl<S: Store> Actor<S> {
    pub fn new(store: S) -> Self {
        Self {
            store,
            open: Open::Nothing,
        }
    }

    /// Carries a step out; a refusal is an answer like another.
    pub async fn act(&mut self, op: &Op) -> Answer {
        match self.answer(op).await {
            Ok(answer) => answer,
            Err(error) => Answer::Text(format!("{error:?}")),
        }
    }

    /// Ends what is open.
    pub async fn end(&mut self) {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => {}
            Open::Tx(tx) => tx.rollback().await,
            Open::Snapshot(snapshot) => snapshot.close().await,
        }
    }

    async fn answer(&mut self, op: &Op) -> Answered {
        let open = std::mem::replace(&mut self.open, Open::Nothing);
        match (op, open) {
            (Op::Begin, Open::Nothing) => {
                self.open = Open::Tx(self.store.begin().await?);
                text(())
            }
            (Op::Snapshot, Open::Nothing) => {
                self.open = Open::Snapshot(self.store.snapshot().await?);
                text(())
            }
            (Op::Commit, Open::Tx(tx)) => text(tx.commit().await?),
            (Op::Rollback, Open::Tx(tx)) => {
                tx.rollback().await;
                text(())
            }
            (Op::Close, Open::Snapshot(snapshot)) => {
                snapshot.close().await;
                text(())
            }
            // A generated beginning after an end that was not reached.
            (Op::Begin, Open::Tx(tx)) => {
                self.open = Open::Tx(tx);
                text("open already")
            }
            (op, Open::Tx(mut tx)) => {
                let answer = in_tx(&mut tx, op).await;
                self.open = Open::Tx(tx);
                answer
            }
            (op, Open::Snapshot(mut snapshot)) => {
                let answer = match read(&mut snapshot, op).await {
                    Some(answer) => answer,
                    None => panic!("{op:?} in a snapshot"),
                };
                self.open = Open::Snapshot(snapshot);
                answer
            }
            // A generated step whose transaction never began or has ended.
            (_, Open::Nothing) => text("no transaction"),
        }
    }
}

/// A machine without its state, which a lock call reads without a lock.
fn bare(mut machines: Vec<MachineRow>) -> Vec<MachineRow> {
    for machine in &mut machines {
        machine.state = MachineStateRow::default();
    }
    machines
}

/// A principal without its creation, which is the database's own time.
fn timeless(mut principals: Vec<PrincipalRow>) -> Vec<PrincipalRow> {
    for row in &mut principals {
        row.principal.created_at = PAST;
    }
    principals
}

fn page<K>() -> Page<K> {
    Page {
        after: None,
        limit: 100,
    }
}

/// A read of either kind of session; none where the step is no read.
async fn read<R: StoreReads>(on: &mut R, op: &Op) -> Option<Answered> {
    let answer = match op {
        Op::Read(row) => read_row(on, *row).await,
        Op::ReadDrafts => on.drafts(&page()).await.and_then(|drafts| {
            let drafts = drafts.items.iter();
            let seen: Vec<_> = drafts.map(|row| (row.id, row.etag.revision)).collect();
            text(seen)
        }),
        Op::ReadTimeline(machine) => {
            let of = id(*machine);
            let timeline = on.machine_timeline(of, Order::Newest, &page()).await;
            timeline.and_then(|timeline| {
                let items = timeline.items.iter();
                let seen: Vec<_> = items.map(|row| (row.number, row.act)).collect();
                text((seen, timeline.tail))
            })
        }
        _ => return None,
    };
    Some(answer)
}

async fn read_row<R: StoreReads>(on: &mut R, row: Row) -> Answered {
    match row {
        Row::Machine(of) => text(bare(on.machine(id(of)).await?.into_iter().collect())),
        Row::State(of) => text(on.machine(id(of)).await?.map(|machine| machine.state)),
        Row::Draft(of) => text(on.draft(id(of)).await?),
        Row::Claim(of) => text(timeless_claim(on.claim(id(of)).await?.map(|found| found.0))),
        Row::Principal(of) => {
            let found = on.principal(id(of)).await?;
            text(found.map(|row| (row.id, row.subject, row.revoked_at)))
        }
        Row::Operation(of) => text(on.operation(id(of)).await?),
        Row::Head(of) => text(on.head(rows::head(of)).await?),
        Row::Plan(_) => panic!("a plan's state is only locked"),
    }
}

/// A claim; a short lease is the case's own time.
fn timeless_claim(
    claim: Option<bronzeward_engine::rows::ClaimRow>,
) -> Option<bronzeward_engine::rows::ClaimRow> {
    claim.map(|mut row| {
        if row.lease_until != PAST && row.lease_until != FUTURE {
            row.lease_until = DbTime::from_micros(0);
        }
        row
    })
}

async fn in_tx<T: StoreTx>(tx: &mut T, op: &Op) -> Answered {
    if let Some(answer) = read(tx, op).await {
        return answer;
    }
    if let Some(answer) = lock(tx, op).await {
        return answer;
    }
    if let Some(answer) = update(tx, op).await {
        return answer.map(|written| Answer::Text(format!("{written:?}")));
    }
    insert(tx, op).await
}

async fn lock<T: StoreTx>(tx: &mut T, op: &Op) -> Option<Answered> {
    Some(match op {
        Op::Lock(row, mode) => lock_row(tx, *row, *mode).await,
        Op::LockCluster(mode) => {
            let select = Select::Cluster(id(1));
            let machines = tx.lock_machines(&select, Some(*mode), None);
            machines.await.and_then(|machines| text(bare(machines)))
        }
        Op::LockMachines(numbers, mode) => {
            let ids = numbers.iter().map(|number| id(*number)).collect();
            let select = Select::Ids(ids);
            let machines = tx.lock_machines(&select, Some(*mode), None);
            machines.await.and_then(|machines| text(bare(machines)))
        }
        Op::LockPrincipals(modes) => {
            let modes = modes
                .iter()
                .map(|(number, mode)| (id(*number), Some(*mode)));
            let found = tx.lock_principals(&modes.collect()).await;
            found.and_then(|found| text(timeless(found)))
        }
        Op::LockInstallation(mode) => match tx.lock_installation(Some(*mode)).await {
            Ok(found) => text(found),
            Err(error) => Err(error),
        },
        Op::LockKey(number) => match tx.lock_key(id(1), &rows::key(*number)).await {
            Ok(()) => text(()),
            Err(error) => Err(error),
        },
        Op::LockRollout => match tx.lock_rollout(id(1)).await {
            Ok(()) => text(()),
            Err(error) => Err(error),
        },
        Op::LockActs => at("acts", tx.lock_acts(true).await),
        Op::Now => at("now", tx.now().await),
        Op::Began => at("began", tx.began().await),
        _ => return None,
    })
}

fn at(what: &str, time: Result<DbTime, StoreError>) -> Answered {
    time.map(|time| Answer::At(what.to_owned(), time))
}

async fn lock_row<T: StoreTx>(tx: &mut T, row: Row, mode: LockMode) -> Answered {
    match row {
        Row::Machine(of) => {
            let select = Select::Ids([id(of)].into());
            text(bare(tx.lock_machines(&select, Some(mode), None).await?))
        }
        Row::State(of) => {
            let select = Select::Ids([id(of)].into());
            let machines = tx.lock_machines(&select, None, Some(mode)).await?;
            let states = machines.into_iter().map(|machine| machine.state);
            text(states.collect::<Vec<_>>())
        }
        Row::Draft(of) => text(tx.lock_draft(id(of), mode).await?),
        Row::Claim(of) => {
            let mut claims = tx.lock_claims(&[id(of)].into(), Some(mode)).await?;
            text(timeless_claim(claims.pop()))
        }
        Row::Principal(of) => {
            let modes = [(id(of), Some(mode))].into();
            text(timeless(tx.lock_principals(&modes).await?))
        }
        Row::Operation(of) => text(tx.lock_operations(&[id(of)].into(), Some(mode)).await?),
        Row::Head(of) => {
            let heads = [(rows::head(of), Some(mode))].into();
            text(tx.lock_heads(&heads).await?)
        }
        Row::Plan(of) => text(tx.lock_plan_states(&[id(of)].into(), Some(mode)).await?),
    }
}

fn guard(of: If) -> Guard {
    let condition = match of {
        If::Always => return Guard::new(),
        If::Revision(revision) => Condition::Revision(revision),
        If::State(state) => Condition::StateIn(vec![state]),
        If::Generation(generation) => Condition::Generation(rows::fence(generation).generation),
        If::Live => Condition::LeaseLive,
        If::Lapsed => Condition::LeaseLapsed,
        If::Unexpired => Condition::Unexpired,
        If::False => Condition::Given(false),
    };
    Guard::new().and(condition)
}

fn operation_state(name: &str) -> OperationState {
    let mut all = OperationState::ALL.into_iter();
    all.find(|state| state.as_str() == name)
        .expect("a state of a plan's operation")
}

async fn update<T: StoreTx>(tx: &mut T, op: &Op) -> Option<Result<Written, StoreError>> {
    Some(match *op {
        Op::Advance(of, when) => {
            let next = rows::token_of(100 + of);
            tx.advance_draft(id(of), &guard(when), next).await
        }
        Op::Discard(of, when) => {
            let next = rows::token_of(110 + of);
            tx.discard_draft(id(of), &guard(when), next).await
        }
        Op::Extend(of, when, lease) => {
            let until = match lease {
                Lease::Past => PAST,
                Lease::Future => FUTURE,
                Lease::Soon => match tx.now().await {
                    Ok(now) => now + rows::SOON,
                    Err(error) => return Some(Err(error)),
                },
            };
            tx.extend_claim(id(of), &guard(when), until).await
        }
        Op::TakeOver(of, when, generation) => {
            let fence = rows::fence(generation);
            tx.take_over_claim(id(of), &guard(when), &fence, FUTURE)
                .await
        }
        Op::EndClaim(of, when) => {
            let guard = guard(when);
            tx.end_claim(id(of), &guard, ClaimEnd::Abandoned).await
        }
        Op::Own(of, when, generation) => {
            let fence = rows::fence(generation);
            tx.own_job(id(of), &guard(when), &fence, FUTURE).await
        }
        Op::Fail(of, when) => {
            let end = JobEnd::Failed(Problem::new(ProblemCode::InternalError));
            tx.finish_job(id(of), &guard(when), &end).await
        }
        Op::Move(of, when, state) => {
            let state = operation_state(state);
            tx.move_operation(id(of), &guard(when), state).await
        }
        Op::AdvanceHead(of, when) => {
            let revision = Some(SourceRevisionId::Profile(id(1)));
            let next = rows::token_of(120 + of);
            tx.advance_head(rows::head(of), &guard(when), revision, next)
                .await
        }
        Op::RevokeToken(of) => tx.revoke_token(id(of), PAST).await,
        _ => return None,
    })
}

async fn insert<T: StoreTx>(tx: &mut T, op: &Op) -> Answered {
    match *op {
        Op::NewDraft(of, by) => text(tx.insert_draft(&rows::draft(of, by), PAST).await?),
        Op::NewMachine(of, uuid) => {
            let machine = rows::machine(of, uuid);
            text(tx.insert_machine(&machine, PAST).await?)
        }
        Op::NewCluster(of, talos) => {
            text(tx.insert_cluster(&rows::cluster(of, talos), PAST).await?)
        }
        Op::NewClaim(of, draft, key) => text(tx.insert_claim(&rows::claim(of, draft, key)).await?),
        Op::NewJob(of, draft, revision) => {
            let job = rows::job(of, draft, revision);
            text(tx.insert_job(&job, PAST).await?)
        }
        Op::NewOperation(of, plan, cluster) => {
            let new = rows::commitment(of, plan, cluster);
            text(tx.insert_operation(&new, rows::epoch()).await?)
        }
        Op::NewDrift(machine, revision) => {
            let drift = rows::drift(machine, revision);
            text(tx.insert_drift(&drift, PAST).await?)
        }
        Op::ExtendDrift(machine, revision, observation) => {
            let drift = OpenDrift {
                last_observation: id(observation),
                ..rows::drift(machine, revision)
            };
            text(tx.extend_drift(&drift).await?)
        }
        Op::CloseDrift(machine, revision) => {
            let opened = TimelineRevision(revision);
            let closed = TimelineRevision(revision + 1);
            let close = tx.close_drift(id(machine), opened, Resolution::Returned, closed, PAST);
            text(close.await?)
        }
        Op::NewService(of, name) => text(tx.insert_service(id(of), name, id(1)).await?),
        Op::NewToken(of, owner) => {
            let token = rows::token(of, owner);
            text(tx.insert_token(&token, PAST).await?)
        }
        Op::Human(of, subject) => {
            tx.ensure_human(id(of), "https://issuer", subject).await?;
            text(tx.human("https://issuer", subject).await?.map(|row| row.id))
        }
        Op::Display(of, display) => text(tx.refresh_display(id(of), display).await?),
        Op::Entry(draft, name) => {
            let entry = EntryOfDraft {
                kind: EntryKind::Fragment,
                subject: name.to_owned(),
                base: None,
                revision: None,
            };
            text(tx.set_draft_entry(id(draft), &entry).await?)
        }
        Op::EntryOf(draft, head) => {
            let entry = EntryOfDraft {
                kind: EntryKind::Profile,
                subject: rows::name(head).as_str().to_owned(),
                base: Some((rows::head(head), 1)),
                revision: None,
            };
            text(tx.set_draft_entry(id(draft), &entry).await?)
        }
        Op::NewHead(of, named) => text(tx.insert_head(&rows::new_head(of, named), PAST).await?),
        Op::NewAct(of) => text(tx.insert_act(&rows::act(of), PAST).await?),
        Op::Record(of, act) => {
            let record = rows::record(act);
            let key = rows::key(of);
            let insert = tx.insert_idempotency_record(id(1), &key, &record, PAST);
            text(insert.await?)
        }
        Op::Append(machine, act) => {
            let entry = rows::entry("freeze", act);
            text(tx.append_entry(id(machine), &entry).await?)
        }
        Op::Event(operation) => {
            let entry = rows::entry("claimed", None);
            text(tx.append_event(id(operation), &entry).await?)
        }
        Op::Seed(first, versions) => {
            let seeds = versions.iter().zip(first..);
            let seeds: Vec<_> = seeds.map(|(v, of)| rows::seed(of, *v)).collect();
            tx.seed_statuses(&seeds, PAST).await?;
            text(())
        }
        Op::Endpoint(machine, number) => {
            let change = EndpointChange {
                machine: id(machine),
                revision: TimelineRevision(1),
                previous: rows::endpoint(machine),
                next: rows::endpoint(number),
                reason: None,
                by: rows::actor(1),
                epoch: rows::epoch(),
                act: id(number),
                at: PAST,
            };
            text(tx.change_endpoint(&change).await?)
        }
        _ => panic!("{op:?} is no step of a transaction"),
    }
}
