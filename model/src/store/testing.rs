//! Tasks on the simulated database that a test moves on by hand: who waits, for whom.
//!
//! Each family's tests found a database and say what is then so. Never in this module: a row.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bronzeward_engine::ports::store::{Store, StoreError};

use crate::pg::session::{Session, SimStore};
use crate::sched::{ProcessId, TaskId};
use crate::sim::Sim;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tasks that a test moves on until none can.
pub struct Run {
    pub sim: Arc<Sim>,
    tasks: Vec<Option<Work>>,
}

/// What a task came to, once it has.
pub struct Came<T>(Arc<Mutex<Option<T>>>);

impl<T> Came<T> {
    pub fn done(&self) -> bool {
        self.0.lock().expect("one thread").is_some()
    }

    pub fn take(&self) -> T {
        let mut slot = self.0.lock().expect("one thread");
        slot.take().expect("the task is done")
    }
}

impl Run {
    pub fn on(sim: Arc<Sim>) -> Self {
        Self {
            sim,
            tasks: Vec::new(),
        }
    }

    /// Begins a transaction's work; it stands at its first scheduling point.
    pub fn begin<T: Send + 'static, F>(&mut self, work: impl FnOnce(Session) -> F) -> Came<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let store = SimStore::new(&self.sim, ProcessId(1));
        let session = self.now(async move { store.begin().await });
        self.spawn(work(session.expect("it begins")))
    }

    pub fn spawn<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Came<T> {
        let slot = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&slot);
        self.tasks.push(Some(Box::pin(async move {
            let outcome = work.await;
            *kept.lock().expect("one thread") = Some(outcome);
        })));
        let task = TaskId(self.tasks.len() - 1);
        self.sim.state().sched.start(task);
        Came(slot)
    }

    /// Moves whatever can move, the earliest task first.
    pub fn settle(&mut self) {
        loop {
            let fired = {
                let mut state = self.sim.state();
                let places = 0..state.sched.ready();
                let first = places.min_by_key(|place| state.sched.task_at(*place));
                let Some(place) = first else { return };
                let (task, _) = state.sched.fire(place);
                state.sched.current = Some(task);
                task
            };
            let Some(work) = self.tasks[fired.0].as_mut() else {
                continue;
            };
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(()) = work.as_mut().poll(&mut context) {
                self.tasks[fired.0] = None;
            }
        }
    }

    pub fn now<T: Send + 'static>(&mut self, work: impl Future<Output = T> + Send + 'static) -> T {
        let came = self.spawn(work);
        self.settle();
        came.take()
    }

    /// A whole transaction that waits for nobody.
    pub fn all<T: Send + 'static, F>(&mut self, work: impl FnOnce(Session) -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let came = self.begin(work);
        self.settle();
        came.take()
    }

    pub fn commit(&mut self, mut tx: Session) -> Result<(), StoreError> {
        self.now(async move { tx.send_commit().await })
    }

    pub fn rollback(&mut self, mut tx: Session) {
        self.now(async move { tx.send_rollback().await });
    }
}
