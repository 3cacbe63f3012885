//! A run loop small enough for the tests of ports: one task at a time, chosen by the seed.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bronzeward_core::time::{DbTime, Span};
use bronzeward_without::Without;

use crate::faults::Faults;
use crate::sched::{ProcessId, TaskId};
use crate::sim::Sim;

pub const PROCESS: ProcessId = ProcessId(1);

/// A second of the year 2026, as a run begins.
pub const START: Span = Span::seconds(1_795_996_860);

pub fn sim(seed: u64, faults: Faults) -> Arc<Sim> {
    let sim = Sim::new(seed, Without::nothing(), false);
    sim.state().faults = faults;
    sim.state().sched.advance(START);
    sim
}

pub fn now(sim: &Sim) -> DbTime {
    sim.state().sched.now()
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs work, whatever it spawns, and every timed action to their end.
pub fn run<T: Send + 'static>(sim: &Arc<Sim>, work: impl Future<Output = T> + Send + 'static) -> T {
    let given = Arc::new(Mutex::new(None));
    let gives = Arc::clone(&given);
    let work = async move {
        let value = work.await;
        *gives.lock().expect("one thread") = Some(value);
    };
    let mut tasks: Vec<Option<Work>> = Vec::new();
    begin(sim, &mut tasks, Box::pin(work));
    loop {
        due(sim);
        if step(sim, &mut tasks) || sim.state().sched.jump() {
            continue;
        }
        break;
    }
    let value = given.lock().expect("one thread").take();
    value.expect("the work came to its end")
}

/// Runs work until a time and then drops it, as a process that dies drops its tasks; what is
/// under way without it goes on to its end.
pub fn kill_at(sim: &Arc<Sim>, at: DbTime, work: impl Future<Output = ()> + Send + 'static) {
    let mut tasks: Vec<Option<Work>> = Vec::new();
    begin(sim, &mut tasks, Box::pin(work));
    loop {
        due(sim);
        if now(sim) >= at {
            for task in &mut tasks {
                drop(task.take());
            }
        }
        if step(sim, &mut tasks) || sim.state().sched.jump() {
            continue;
        }
        break;
    }
}

fn due(sim: &Sim) {
    let mut state = sim.state();
    while let Some(action) = state.sched.due() {
        action(&mut state);
    }
}

fn begin(sim: &Sim, tasks: &mut Vec<Option<Work>>, work: Work) {
    sim.state().sched.start(TaskId(tasks.len()));
    tasks.push(Some(work));
}

/// Fires one ready leaf; false where none is.
fn step(sim: &Sim, tasks: &mut Vec<Option<Work>>) -> bool {
    let task = {
        let mut state = sim.state();
        let ready = state.sched.ready();
        if ready == 0 {
            return false;
        }
        let place = state.rng.usize(0..ready);
        let (task, _) = state.sched.fire(place);
        state.sched.current = Some(task);
        task
    };
    let mut context = Context::from_waker(Waker::noop());
    if let Some(work) = &mut tasks[task.0]
        && let Poll::Ready(()) = work.as_mut().poll(&mut context)
    {
        tasks[task.0] = None;
    }
    let spawned = {
        let mut state = sim.state();
        state.sched.current = None;
        std::mem::take(&mut state.sched.spawned)
    };
    for one in spawned {
        begin(sim, tasks, one.work);
    }
    true
}
