//! What happened, for the judges: commits with what they changed, requests, landings.
//!
//! Written by the simulated parts, read after every step and then forgotten. Never in this
//! module: a judgement.

use crate::change::Change;
use crate::sched::ProcessId;

/// One thing that happened.
#[derive(Debug)]
pub enum Event {
    /// A commit by a process, with its changes in the order in which they were written.
    Commit {
        process: ProcessId,
        changes: Vec<Change>,
    },
    /// Something beside the database.
    Outside(crate::change::Outside),
}

#[derive(Default)]
pub struct Journal {
    events: Vec<Event>,
    open: Option<(ProcessId, Vec<Change>)>,
}

impl Journal {
    pub(crate) fn begin_commit(&mut self, process: ProcessId) {
        self.open = Some((process, Vec::new()));
    }

    /// A row's change, told by its table while its commit is made.
    pub fn changed(&mut self, change: Change) {
        if let Some((_, changes)) = &mut self.open {
            changes.push(change);
        }
    }

    pub(crate) fn end_commit(&mut self) {
        if let Some((process, changes)) = self.open.take() {
            self.events.push(Event::Commit { process, changes });
        }
    }

    pub fn outside(&mut self, event: crate::change::Outside) {
        self.events.push(Event::Outside(event));
    }

    pub fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}
