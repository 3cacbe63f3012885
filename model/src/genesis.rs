//! The world every seed begins in: made once, by the same workflows, in a quiet world.
//!
//! A cluster with machines that were imported, published and adopted, a release beyond it that
//! is Desired and not applied, and an approved plan for each machine. A seed begins with a copy, so that it spends its steps on
//! what may go wrong. Never in this module: a row written by hand, but for the empty
//! installation.

use std::sync::{Arc, Mutex, PoisonError};

use bronzeward_core::claim::{ClaimKind, StagingMode};
use bronzeward_core::head::{AssignmentContent, Name};
use bronzeward_core::id::{ClusterId, DraftId, Kind, MachineId, OperationId, PlanId, kind};
use bronzeward_core::time::{DbTime, Span};
use bronzeward_without::Without;

use crate::judges::Judges;
use crate::people::acts::made;
use crate::people::hand::{Ended, Hand, Person};
use crate::people::view::View;
use crate::pg::Tables;
use crate::ports::Outside;
use crate::run::{Run, Stepped};
use crate::sched::ProcessId;
use crate::seed::{BEGINNING, start};
use crate::server::{LEASE, Loops, bring_up};
use crate::sim::Sim;

/// How many machines the world has, all of one cluster.
pub const MACHINES: u16 = 3;
/// How many processes the genesis has.
const PROCESSES: u32 = 2;
/// What it draws from: no sweep's seed, which would draw the same identifiers again.
const SEED: u64 = u64::MAX;
/// More steps than a genesis takes.
const LIMIT: u64 = 200_000;

pub struct Genesis {
    tables: Tables,
    outside: Outside,
    now: DbTime,
    judges: Judges,
}

/// Lines of the trace that a failed genesis shows.
const LAST: usize = 60;

type Slot<T> = Arc<Mutex<Option<Result<T, String>>>>;

impl Genesis {
    /// Makes it; what failed is said in words.
    pub fn make() -> Result<Self, String> {
        let sim = Sim::new(SEED, Without::nothing(), true);
        {
            let mut state = sim.state();
            let passed = Span::micros(BEGINNING.as_micros());
            state.sched.advance(passed);
            let state = &mut *state;
            let epoch = bronzeward_core::id::EpochId::from_bits(state.rng.u128(..));
            crate::store::authoring::found(state, epoch, [7; 32])
                .map_err(|error| error.to_string())?;
            crate::furniture::furnish(state, MACHINES);
        }
        let mut run = Run::new(Arc::clone(&sim));
        let mut judges = Judges::default();
        let first = start(&mut run, &sim);
        let plans = carry(&mut run, &mut judges, prepared(Arc::clone(&sim)))?;
        // The plans are approved where nothing carries them out: that is each seed's own.
        sim.state().house.up.remove(&first);
        run.kill(first);
        let second = sim.state().house.next_process();
        run.spawn(
            second,
            bring_up(Arc::clone(&sim), second, false, Loops::NONE),
        );
        carry(&mut run, &mut judges, approved(Arc::clone(&sim), plans))?;
        let state = sim.state();
        Ok(Self {
            tables: state.db.tables.settled(),
            outside: state.outside.clone(),
            now: state.sched.now(),
            judges,
        })
    }

    /// Puts a fresh world where the genesis ended.
    pub fn begin(&self, sim: &Arc<Sim>) -> Judges {
        let mut state = sim.state();
        state.db.tables = self.tables.clone();
        state.outside = self.outside.clone();
        state.outside.seen = crate::ports::Seen::default();
        // A process of the genesis may have left a lease; it has lapsed.
        let passed = Span::micros(self.now.as_micros()) + LEASE + Span::seconds(1);
        state.sched.advance(passed);
        state.house.last = PROCESSES;
        self.judges.clone()
    }
}

/// Carries a part of the script out, under every judge.
fn carry<T: Send + 'static>(
    run: &mut Run,
    judges: &mut Judges,
    work: impl Future<Output = Result<T, String>> + Send + 'static,
) -> Result<T, String> {
    let sim = Arc::clone(&run.sim);
    let slot: Slot<T> = Arc::default();
    let filled = Arc::clone(&slot);
    run.spawn(ProcessId::WORLD, async move {
        let ended = work.await;
        *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
    });
    loop {
        if run.step() == Stepped::Still || run.steps > LIMIT {
            return Err("the genesis does not end".to_owned());
        }
        let mut state = sim.state();
        let events = state.journal.take();
        if let Err(violation) = judges.look(&mut state, &events) {
            return Err(format!("{}: {}", violation.invariant, violation.said));
        }
        let ended = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        match ended {
            None => {}
            Some(Err(error)) => {
                let lines: Vec<&str> = state.trace.text().lines().collect();
                let last = lines.len().saturating_sub(LAST);
                return Err(format!("{}\n{error}", lines[last..].join("\n")));
            }
            Some(Ok(value)) => return Ok(value),
        }
    }
}

fn hand(sim: &Arc<Sim>, name: &'static str, groups: &'static [&'static str]) -> Hand {
    Hand {
        calm: true,
        ..Hand::new(sim, Person { name, groups })
    }
}

fn need<K: Kind>(what: &str, ended: &Ended) -> Result<bronzeward_core::id::Id<K>, String> {
    made::<K>(ended).ok_or_else(|| format!("{what}: {ended:?}"))
}

/// Everything up to the plans of the last release, one a machine.
async fn prepared(sim: Arc<Sim>) -> Result<Vec<PlanId>, String> {
    let sim = &sim;
    let author = hand(sim, "ann", &["author"]);
    let publisher = hand(sim, "pam", &["publisher"]);
    let approver = hand(sim, "vic", &["approver"]);
    let keeper = hand(sim, crate::people::view::KEEPER, &["recovery-admin"]);
    keeper.sleep(Span::seconds(5), Span::seconds(5)).await;
    if !keeper.issue_token().await {
        return Err("the automation has no token".to_owned());
    }
    let (cluster, inputs) = crate::furniture::inventory(MACHINES);
    let cluster = need::<kind::Cluster>("cluster", &author.create_cluster(cluster).await)?;
    crate::furniture::grant_access(&mut sim.state(), cluster);
    let mut machines = Vec::new();
    for input in inputs {
        let input = bronzeward_engine::tx::MachineInput { cluster, ..input };
        let made = author.create_machine(input).await;
        machines.push(need::<kind::Machine>("machine", &made)?);
    }
    crate::furniture::name_nodes(&mut sim.state());
    let draft = bring_in(sim, &author, cluster, &machines).await?;
    publish(sim, &publisher, draft).await?;
    for machine in &machines {
        adopt(sim, &publisher, &approver, *machine).await?;
    }
    let draft = edit(sim, &author, cluster, &machines).await?;
    publish(sim, &publisher, draft).await?;
    let mut plans = Vec::new();
    for machine in &machines {
        plans.push(planned(sim, &publisher, *machine, false).await?);
    }
    Ok(plans)
}

/// The plans' approvals.
async fn approved(sim: Arc<Sim>, plans: Vec<PlanId>) -> Result<(), String> {
    let approver = hand(&sim, "vic", &["approver"]);
    approver.sleep(Span::seconds(5), Span::seconds(5)).await;
    for plan in plans {
        need::<kind::Approval>("approval", &approver.approve(plan).await)?;
    }
    Ok(())
}

/// A plan of the machine's Desired release.
async fn planned(
    sim: &Arc<Sim>,
    publisher: &Hand,
    machine: MachineId,
    adopt: bool,
) -> Result<PlanId, String> {
    let seen = View(&sim.state().db.tables).machine(machine);
    let release = seen.and_then(|seen| seen.state.desired);
    let release = release.ok_or("a machine without a Desired release")?;
    let planned = publisher.plan(release, machine, adopt).await;
    need::<kind::Plan>("plan", &planned)
}

async fn bring_in(
    sim: &Arc<Sim>,
    author: &Hand,
    cluster: ClusterId,
    machines: &[MachineId],
) -> Result<DraftId, String> {
    let draft = need::<kind::Draft>("draft", &author.open_draft(cluster).await)?;
    for machine in machines {
        let etag = etag(sim, draft)?;
        let marks = crate::furniture::marks();
        let started = author
            .import(
                *machine,
                draft,
                etag,
                StagingMode::Encrypted,
                ClaimKind::Import,
                marks,
            )
            .await;
        let operation = need::<kind::Operation>("import", &started)?;
        succeeded(author, operation).await?;
    }
    Ok(draft)
}

fn etag(sim: &Arc<Sim>, draft: DraftId) -> Result<bronzeward_core::revision::Etag, String> {
    let seen = View(&sim.state().db.tables).draft(draft);
    seen.map(|draft| draft.etag)
        .ok_or_else(|| "no such draft".to_owned())
}

/// Looks again and again until there is an outcome.
async fn until(
    hand: &Hand,
    look: impl Fn(&View<'_>) -> Option<Result<(), String>>,
) -> Result<(), String> {
    for _ in 0..600 {
        hand.sleep(Span::millis(500), Span::millis(500)).await;
        if let Some(outcome) = look(&View(&hand.sim.state().db.tables)) {
            return outcome;
        }
    }
    Err("the genesis waits for something that does not come".to_owned())
}

/// Waits until a job has succeeded.
async fn succeeded(hand: &Hand, job: OperationId) -> Result<(), String> {
    until(hand, |view| {
        let row = view.operation(job)?;
        match row.state.as_str() {
            "succeeded" => Some(Ok(())),
            "failed" => Some(Err(format!("a job failed: {row:?}"))),
            _ => None,
        }
    })
    .await
}

async fn publish(sim: &Arc<Sim>, publisher: &Hand, draft: DraftId) -> Result<(), String> {
    let etag = etag(sim, draft)?;
    let queued = publisher.publish(draft, etag).await;
    let operation = need::<kind::Operation>("publication", &queued)?;
    succeeded(publisher, operation).await
}

async fn adopt(
    sim: &Arc<Sim>,
    publisher: &Hand,
    approver: &Hand,
    machine: MachineId,
) -> Result<(), String> {
    let plan = planned(sim, publisher, machine, true).await?;
    need::<kind::Approval>("approval", &approver.approve(plan).await)?;
    until(approver, |view| {
        let seen = view.machine(machine);
        let adopted = seen.is_some_and(|seen| seen.state.applied.is_some());
        adopted.then_some(Ok(()))
    })
    .await
}

async fn edit(
    sim: &Arc<Sim>,
    author: &Hand,
    cluster: ClusterId,
    machines: &[MachineId],
) -> Result<DraftId, String> {
    let name = |text| Name::parse(text).map_err(|error| error.to_string());
    let draft = need::<kind::Draft>("draft", &author.open_draft(cluster).await)?;
    let text = crate::furniture::fragment(0);
    let put = author
        .put_fragment(draft, etag(sim, draft)?, name("labels")?, text)
        .await;
    need::<kind::Draft>("fragment", &put)?;
    let fragments = View(&sim.state().db.tables).fragments_of(cluster, draft);
    let put = author
        .put_profile(draft, etag(sim, draft)?, name("workers")?, fragments)
        .await;
    need::<kind::Draft>("profile", &put)?;
    for machine in machines {
        let content = AssignmentContent {
            profiles: vec![name("workers")?],
            ..AssignmentContent::default()
        };
        let put = author
            .put_assignment(draft, etag(sim, draft)?, *machine, content)
            .await;
        need::<kind::Draft>("assignment", &put)?;
    }
    Ok(draft)
}
