//! One seed: a safety phase under faults, a healed phase in which everything must end, and
//! the verdict.
//!
//! A run is a function of its seed, the rules and the genesis. Never in this module: what is
//! judged.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bronzeward_core::time::{DbTime, Span};
use bronzeward_without::Without;

use crate::faults::{Fault, Faults};
use crate::genesis::Genesis;
use crate::hazard::Hazard;
use crate::judges::{Judges, Violation};
use crate::nemesis::Nemesis;
use crate::people::{self, Doing};
use crate::planted::Defect;
use crate::ports::Seen;
use crate::run::{Run, Stepped};
use crate::sched::ProcessId;
use crate::server::boot;
use crate::sim::Sim;

/// How a seed is run.
#[derive(Clone, Debug)]
pub struct Setting {
    pub rules: Without,
    pub traced: bool,
    /// Steps of the safety phase.
    pub steps: u64,
    /// The healed phase follows; without, a seed is as long as its steps, for a figure of speed.
    pub heals: bool,
    /// How many servers there are.
    pub servers: u32,
    /// Faults are drawn; without, the world is quiet.
    pub faults: bool,
    /// Faults that never strike, acts that nobody does: what a shrunk seed leaves out.
    pub off: BTreeSet<Fault>,
    pub idle: BTreeSet<Doing>,
    /// What the seed is about; without, it draws that too.
    pub hazard: Option<Hazard>,
    /// A defect of the ports, where one is planted.
    pub planted: Option<Defect>,
}

impl Setting {
    /// What a shrunk seed leaves out, in words.
    pub fn said(&self) -> String {
        let faults: Vec<&str> = self.off.iter().map(|fault| fault.name()).collect();
        let steps = self.steps;
        format!(
            "{steps} steps, without {faults:?}, nobody does {:?}",
            self.idle
        )
    }
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            rules: Without::nothing(),
            traced: false,
            steps: 3_000,
            heals: true,
            servers: 2,
            faults: true,
            off: BTreeSet::new(),
            idle: BTreeSet::new(),
            hazard: None,
            planted: None,
        }
    }
}

/// How a seed ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Clean,
    Violated(Violation),
    /// The run itself failed: a panic, or a world that stands still. It proves nothing.
    Error(String),
    /// The healed world does not come to rest: what still goes on. It proves nothing either.
    Restless(String),
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub seed: u64,
    pub end: End,
    pub steps: u64,
    pub commits: u64,
    pub struck: BTreeMap<Fault, u64>,
    pub seen: Seen,
    pub trace: String,
}

thread_local! {
    /// Where this thread's last panic was, while a world runs on it.
    static PANICKED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A panic of a world is its outcome: it is kept, with its place, and not printed. One outside
/// of a world goes on to whoever printed panics before.
pub fn keep_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic
            .location()
            .map(|at| format!("at {}:{}", at.file(), at.line()));
        let of_a_world = PANICKED.with_borrow_mut(|kept| {
            let kept = kept.as_mut()?;
            *kept = place.unwrap_or_default();
            Some(())
        });
        if of_a_world.is_none() {
            before(panic);
        }
    }));
}

/// Runs a world on this thread; what it panicked with, and where, if it did.
pub fn in_a_world<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    PANICKED.set(Some(String::new()));
    let ended = catch_unwind(AssertUnwindSafe(act));
    let place = PANICKED.take().unwrap_or_default();
    ended.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panicked: {} {place}", text.unwrap_or("without words"))
    })
}

/// The most steps of the healed phase.
const HEALING: u64 = 20_000;
/// How often the healed world is looked at for being at rest, in steps.
const GLANCE: u64 = 100;
/// How long the healed world is left to itself at most.
const QUIET: Span = Span::seconds(900);

/// Runs a seed.
pub fn run(genesis: &Genesis, seed: u64, setting: &Setting) -> Outcome {
    let sim = Sim::new(seed, setting.rules, setting.traced);
    let ended = in_a_world(|| phases(genesis, &sim, setting));
    let (end, steps) = ended.unwrap_or_else(|panic| (End::Error(panic), 0));
    let state = sim.state();
    Outcome {
        seed,
        end,
        steps,
        commits: state.db.commits,
        struck: state.faults.struck.clone(),
        seen: state.outside.seen.clone(),
        trace: state.trace.text().to_owned(),
    }
}

fn phases(genesis: &Genesis, sim: &Arc<Sim>, setting: &Setting) -> (End, u64) {
    let mut run = Run::new(Arc::clone(sim));
    let mut judges = genesis.begin(sim);
    {
        let mut state = sim.state();
        state.db.planted = setting.planted;
        if setting.faults {
            let state = &mut *state;
            let drawn = Hazard::drawn(&mut state.rng);
            state.hazard = setting.hazard.unwrap_or(drawn);
            if let Some(most) = state.hazard.held_most() {
                state.outside.nodes.held_most = most;
            }
            let faults = Faults::drawn(&mut state.rng);
            state.faults = state.hazard.on(faults).but(&setting.off);
        }
    }
    for _ in 0..setting.servers {
        start(&mut run, sim);
    }
    people::come(&mut run, sim, &setting.idle, setting.servers);
    let mut nemesis = Nemesis::default();
    let patience = match setting.heals {
        true => sim.state().hazard.patience(),
        false => 1,
    };
    let steps = setting.steps * patience;
    while run.steps < steps {
        if let Some(end) = step(&mut run, sim, &mut judges) {
            return (end, run.steps);
        }
        nemesis.act(&mut run, sim);
    }
    if !setting.heals {
        return (End::Clean, run.steps);
    }
    let end = heal(&mut run, sim, &mut judges, &mut nemesis, setting);
    (end, run.steps)
}

/// Starts a server under a name of its own.
pub fn start(run: &mut Run, sim: &Arc<Sim>) -> ProcessId {
    let id = sim.state().house.next_process();
    start_as(run, sim, id, false);
    id
}

/// The same under a name that was given out, for recovery or not.
pub fn start_as(run: &mut Run, sim: &Arc<Sim>, id: ProcessId, recovery: bool) {
    {
        let mut state = sim.state();
        state.house.alive.insert(id);
        if recovery {
            state.house.recovering.insert(id);
        }
    }
    run.spawn(id, boot(Arc::clone(sim), id, recovery));
}

fn step(run: &mut Run, sim: &Arc<Sim>, judges: &mut Judges) -> Option<End> {
    if run.step() == Stepped::Still {
        return Some(End::Error("the world stands still".to_owned()));
    }
    judge(sim, judges)
}

fn judge(sim: &Arc<Sim>, judges: &mut Judges) -> Option<End> {
    let mut state = sim.state();
    let events = state.journal.take();
    if events.is_empty() {
        return None;
    }
    judges.look(&mut state, &events).err().map(End::Violated)
}

/// Heals the world and lets it come to rest: every operation ends, or waits for a human act
/// that has a name.
fn heal(
    run: &mut Run,
    sim: &Arc<Sim>,
    judges: &mut Judges,
    nemesis: &mut Nemesis,
    setting: &Setting,
) -> End {
    nemesis.heal(run, sim);
    let missing = {
        let mut state = sim.state();
        let up = u32::try_from(state.house.alive.len()).unwrap_or(u32::MAX);
        state.people_rest = true;
        match state.house.closed {
            // Whoever keeps them stopped starts them.
            true => 0,
            false => setting.servers.saturating_sub(up).max(1),
        }
    };
    for _ in 0..missing {
        start(run, sim);
    }
    let (from, until) = (run.steps, run.now() + QUIET);
    while run.now() < until {
        let rested = run.steps - from;
        if rested > 0 && rested.is_multiple_of(GLANCE) && judges.at_the_end(&sim.state()).is_ok() {
            return End::Clean;
        }
        if run.steps - from > HEALING {
            return End::Restless(restless(judges, sim));
        }
        if let Some(end) = step(run, sim, judges) {
            return end;
        }
        nemesis.obey(run, sim);
    }
    match judges.at_the_end(&sim.state()) {
        Ok(()) => End::Clean,
        Err(violation) => End::Violated(violation),
    }
}

/// What still goes on in a healed world.
fn restless(judges: &Judges, sim: &Arc<Sim>) -> String {
    match judges.at_the_end(&sim.state()) {
        Ok(()) => "nothing that a judge names".to_owned(),
        Err(found) => format!("{}: {}", found.invariant, found.said),
    }
}

/// The times a world begins at.
pub const BEGINNING: DbTime = DbTime::from_seconds(1_795_996_860);
