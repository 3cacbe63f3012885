//! The run loop: one leaf fired at a time, its task polled, the judges asked.
//!
//! Tasks belong to processes; a process that is killed loses its tasks where they stand, one
//! that is paused has none of them polled for a while. Never in this module: what a task does.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use bronzeward_core::time::{DbTime, Span};

use crate::faults::Fault;
use crate::sched::{ProcessId, Spawned, TaskId};
use crate::sim::{Sim, State};

struct Task {
    process: ProcessId,
    work: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// How long one step takes at most.
const STEP: Span = Span::millis(12);
/// How long a pause lasts at most: longer than any lease of the world.
const PAUSE: Span = Span::seconds(25);
/// Most pauses are short.
const HICCUP: Span = Span::seconds(2);

/// A world that runs.
pub struct Run {
    pub sim: Arc<Sim>,
    tasks: Vec<Option<Task>>,
    free: Vec<usize>,
    paused: BTreeMap<ProcessId, DbTime>,
    /// Processes of which nothing moves until they are let go: a schedule written by hand.
    held: BTreeSet<ProcessId>,
    /// How long one step takes at most.
    longest_step: Span,
    pub steps: u64,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    Moved,
    /// Nothing waits for anything: the world is over.
    Still,
}

enum Chosen {
    Task(TaskId, ProcessId, Option<Waker>),
    /// Something that was due by time has happened.
    Acted,
    Nothing,
}

impl Run {
    pub fn new(sim: Arc<Sim>) -> Self {
        Self {
            sim,
            tasks: Vec::new(),
            free: Vec::new(),
            paused: BTreeMap::new(),
            held: BTreeSet::new(),
            longest_step: STEP,
            steps: 0,
        }
    }

    /// A world whose steps take no time: what passes is what is waited for.
    #[cfg(test)]
    pub fn timeless(sim: Arc<Sim>) -> Self {
        Self {
            longest_step: Span::micros(1),
            ..Self::new(sim)
        }
    }

    /// Adds a task of a process.
    pub fn spawn(&mut self, process: ProcessId, work: impl Future<Output = ()> + Send + 'static) {
        let spawned = Spawned {
            process,
            work: Box::pin(work),
        };
        let sim = Arc::clone(&self.sim);
        self.adopt(&mut sim.state(), spawned);
    }

    fn adopt(&mut self, state: &mut State, spawned: Spawned) {
        let task = Task {
            process: spawned.process,
            work: spawned.work,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.tasks[place] = Some(task);
                place
            }
            None => {
                self.tasks.push(Some(task));
                self.tasks.len() - 1
            }
        };
        state.sched.start(TaskId(place));
    }

    /// Fires one leaf.
    pub fn step(&mut self) -> Stepped {
        let sim = Arc::clone(&self.sim);
        let mut state = sim.state();
        let (task, process, waker) = match self.choose(&mut state) {
            Chosen::Task(task, process, waker) => (task, process, waker),
            Chosen::Acted => return Stepped::Moved,
            Chosen::Nothing => return Stepped::Still,
        };
        state.sched.current = Some(task);
        drop(state);
        self.steps += 1;
        if let Some(waker) = waker {
            waker.wake();
        }
        let done = self.poll(task);
        let mut state = sim.state();
        state.sched.current = None;
        let took = Span::micros(state.rng.i64(0..self.longest_step.as_micros()));
        state.sched.advance(took);
        for spawned in std::mem::take(&mut state.sched.spawned) {
            self.adopt(&mut state, spawned);
        }
        if process != ProcessId::WORLD && state.strikes(Fault::Pause) {
            let most = match state.rng.u32(0..3) {
                0 => PAUSE,
                _ => HICCUP,
            };
            let length = Span::micros(state.rng.i64(0..most.as_micros()));
            let until = state.sched.now() + length;
            self.paused.insert(process, until);
        }
        drop(state);
        if done {
            // Dropped without the state's lock: what it held may want it.
            self.tasks[task.0] = None;
            self.free.push(task.0);
        }
        Stepped::Moved
    }

    /// The task whose leaf is fired now; leaves of paused processes are put off. An action
    /// that is due is a step of its own, so that no step makes two commits.
    fn choose(&mut self, state: &mut State) -> Chosen {
        loop {
            if let Some(action) = state.sched.due() {
                action(state);
                return Chosen::Acted;
            }
            let Some(place) = self.place(state) else {
                if state.sched.jump() {
                    continue;
                }
                return Chosen::Nothing;
            };
            let task = state.sched.task_at(place);
            let process = match &self.tasks[task.0] {
                Some(task) => task.process,
                None => unreachable!("a leaf goes with its task"),
            };
            match self.paused.get(&process) {
                Some(until) if *until > state.sched.now() && !state.faults.healed => {
                    state.sched.postpone(place, *until);
                }
                _ => {
                    let (fired, waker) = state.sched.fire(place);
                    return Chosen::Task(fired, process, waker);
                }
            }
        }
    }

    /// The place of a ready leaf that the seed picks, of those that no schedule holds.
    fn place(&self, state: &mut State) -> Option<usize> {
        let ready = state.sched.ready();
        if self.held.is_empty() {
            return (ready > 0).then(|| state.rng.usize(0..ready));
        }
        let free = |place: &usize| {
            let task = state.sched.task_at(*place);
            let task = self.tasks[task.0].as_ref();
            task.is_none_or(|task| !self.held.contains(&task.process))
        };
        let free: Vec<usize> = (0..ready).filter(free).collect();
        (!free.is_empty()).then(|| free[state.rng.usize(0..free.len())])
    }

    /// Nothing of this process moves until it is let go.
    pub fn hold(&mut self, process: ProcessId) {
        self.held.insert(process);
    }

    pub fn holds(&self, process: ProcessId) -> bool {
        self.held.contains(&process)
    }

    pub fn let_go(&mut self, process: ProcessId) {
        self.held.remove(&process);
    }

    /// Polls a task; true when it is done.
    fn poll(&mut self, task: TaskId) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let entry = self.tasks[task.0].as_mut();
        entry.is_none_or(|task| task.work.as_mut().poll(&mut context).is_ready())
    }

    /// Kills a process: its tasks end where they stand.
    pub fn kill(&mut self, process: ProcessId) {
        let mut gone = Vec::new();
        for (place, entry) in self.tasks.iter_mut().enumerate() {
            if entry.as_ref().is_some_and(|task| task.process == process) {
                gone.push((place, entry.take()));
            }
        }
        let sim = Arc::clone(&self.sim);
        let places: Vec<usize> = gone.iter().map(|(place, _)| *place).collect();
        sim.state().sched.unstart(&|task| places.contains(&task.0));
        drop(gone);
        self.free.extend(places);
        self.paused.remove(&process);
        self.held.remove(&process);
    }

    /// Stops a process's tasks from being polled until a time.
    pub fn pause(&mut self, process: ProcessId, until: DbTime) {
        self.paused.insert(process, until);
    }

    pub fn now(&self) -> DbTime {
        self.sim.state().sched.now()
    }
}
