//! A world of one process for the tests of ports, run by the run loop of every seed.

use std::future::Future;
use std::sync::{Arc, Mutex};

use bronzeward_core::time::{DbTime, Span};
use bronzeward_without::Without;

use crate::faults::Faults;
use crate::run::{Run, Stepped};
use crate::sched::ProcessId;
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

/// Runs work, whatever it spawns, and every timed action to their end.
pub fn run<T: Send + 'static>(sim: &Arc<Sim>, work: impl Future<Output = T> + Send + 'static) -> T {
    let given = Arc::new(Mutex::new(None));
    let gives = Arc::clone(&given);
    let mut run = Run::timeless(Arc::clone(sim));
    run.spawn(PROCESS, async move {
        let value = work.await;
        *gives.lock().expect("one thread") = Some(value);
    });
    while run.step() == Stepped::Moved {}
    let value = given.lock().expect("one thread").take();
    value.expect("the work came to its end")
}

/// Runs work until a time and then kills its process; what is under way without it goes on
/// to its end.
pub fn kill_at(sim: &Arc<Sim>, at: DbTime, work: impl Future<Output = ()> + Send + 'static) {
    let mut run = Run::timeless(Arc::clone(sim));
    run.spawn(PROCESS, work);
    while run.now() < at && run.step() == Stepped::Moved {}
    run.kill(PROCESS);
    while run.step() == Stepped::Moved {}
}
