//! Tasks moved on by hand: no run loop, no faults, no judges.
//!
//! The conformance list holds the simulated store against PostgreSQL with it: a step is asked
//! of a session, and everything that can move moves until nothing can. What stands then,
//! waits. Never in this module: a statement, or an order of its own: the seed chooses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use bronzeward_core::time::Span;

use crate::sched::TaskId;
use crate::sim::Sim;

/// How long one step takes: no two of a run happen at the same time.
const STEP: Span = Span::micros(10);

/// Tasks of one world.
pub struct Hand {
    sim: Arc<Sim>,
    tasks: Vec<Option<Pin<Box<dyn Future<Output = ()>>>>>,
}

impl Hand {
    pub fn new(sim: &Arc<Sim>) -> Self {
        Self {
            sim: Arc::clone(sim),
            tasks: Vec::new(),
        }
    }

    /// Adds a task; it moves with the next [`Self::settle`].
    pub fn spawn(&mut self, work: impl Future<Output = ()> + 'static) {
        self.tasks.push(Some(Box::pin(work)));
        let task = TaskId(self.tasks.len() - 1);
        self.sim.state().sched.start(task);
    }

    /// Moves one after the other of those that can move, until none can.
    pub fn settle(&mut self) {
        while let Some(task) = self.fire() {
            let Some(work) = self.tasks[task.0].as_mut() else {
                continue;
            };
            let mut context = Context::from_waker(Waker::noop());
            if work.as_mut().poll(&mut context).is_ready() {
                self.tasks[task.0] = None;
            }
            self.sim.state().sched.current = None;
        }
    }

    fn fire(&mut self) -> Option<TaskId> {
        let mut state = self.sim.state();
        let ready = state.sched.ready();
        if ready == 0 {
            return None;
        }
        let place = state.rng.usize(0..ready);
        let task = state.sched.fire(place);
        state.sched.current = Some(task);
        state.sched.advance(STEP);
        Some(task)
    }
}

impl Drop for Hand {
    /// Tasks go before the state they use.
    fn drop(&mut self) {
        self.tasks.clear();
    }
}
