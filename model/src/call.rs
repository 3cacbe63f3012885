//! A request from outside to a server process: the work runs there and dies there.
//!
//! Who asked waits for the answer, or hears that the process is gone. Never in this module:
//! what is asked.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use crate::sched::{Leaf, LeafId, ProcessId, Spawned};
use crate::sim::Sim;

enum Slot<T> {
    Waiting(Option<LeafId>),
    Answered(T),
    /// The process ended with the work.
    Lost,
}

struct Reply<T> {
    sim: Arc<Sim>,
    slot: Arc<Mutex<Slot<T>>>,
}

impl<T> Reply<T> {
    fn fill(&self, with: Slot<T>) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Slot::Waiting(leaf) = &*slot {
            let leaf = *leaf;
            *slot = with;
            drop(slot);
            if let Some(leaf) = leaf {
                self.sim.state().sched.wake(leaf);
            }
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.fill(Slot::Lost);
    }
}

/// Runs `work` in a process, and nobody waits for what it answers.
pub fn send(sim: &Sim, process: ProcessId, work: impl Future<Output: Send> + Send + 'static) {
    let spawned = Spawned {
        process,
        work: Box::pin(async move { drop(work.await) }),
    };
    sim.state().sched.spawned.push(spawned);
}

/// Runs `work` in a process and waits for what it answers; none where the process ended
/// first.
pub async fn call<T: Send + 'static>(
    sim: &Arc<Sim>,
    process: ProcessId,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let slot = Arc::new(Mutex::new(Slot::Waiting(None)));
    let reply = Reply {
        sim: Arc::clone(sim),
        slot: Arc::clone(&slot),
    };
    let spawned = Spawned {
        process,
        work: Box::pin(async move {
            let value = work.await;
            reply.fill(Slot::Answered(value));
        }),
    };
    let leaf = {
        let mut state = sim.state();
        state.sched.spawned.push(spawned);
        let (leaf, name) = Leaf::parked(sim, &mut state.sched);
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Slot::Waiting(Some(name));
        leaf
    };
    leaf.await;
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    match std::mem::replace(&mut *slot, Slot::Lost) {
        Slot::Answered(value) => Some(value),
        Slot::Waiting(_) | Slot::Lost => None,
    }
}
