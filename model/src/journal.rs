//! What happened, for the judges: commits with what they changed, requests, landings.
//!
//! Written by the simulated parts, read after every step and then forgotten. Never in this
//! module: a judgement.

use bronzeward_core::time::DbTime;

use crate::change::Change;
use crate::pg::Lockable;
use crate::sched::ProcessId;

/// One thing that happened.
#[derive(Debug)]
pub enum Event {
    /// A commit by a process, with its changes in the order in which they were written.
    Commit {
        process: ProcessId,
        held: Held,
        changes: Vec<Change>,
    },
    /// Something beside the database.
    Outside(crate::change::Outside),
}

/// Since when a transaction had what it held.
#[derive(Clone, Debug)]
pub struct Held {
    /// `now()`: when it began.
    pub began: DbTime,
    pub waits: Vec<Waited>,
}

/// A wait of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    pub what: Lockable,
    /// When it was over for who waited.
    pub over: DbTime,
    /// Somebody's own session was in the way.
    pub strange: bool,
}

#[derive(Default)]
pub struct Journal {
    events: Vec<Event>,
    open: Option<(ProcessId, Held, Vec<Change>)>,
}

impl Journal {
    pub(crate) fn begin_commit(&mut self, process: ProcessId, held: Held) {
        self.open = Some((process, held, Vec::new()));
    }

    /// A row's change, told by its table while its commit is made.
    pub fn changed(&mut self, change: Change) {
        if let Some((_, _, changes)) = &mut self.open {
            changes.push(change);
        }
    }

    pub(crate) fn end_commit(&mut self) {
        if let Some((process, held, changes)) = self.open.take() {
            let commit = Event::Commit {
                process,
                held,
                changes,
            };
            self.events.push(commit);
        }
    }

    pub fn outside(&mut self, event: crate::change::Outside) {
        self.events.push(Event::Outside(event));
    }

    pub fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}
