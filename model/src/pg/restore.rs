//! Backups of the whole database, and the restore of one.
//!
//! The operator of a world calls it, with the server stopped as a restore stops it. Never in
//! this module: who may be connected meanwhile, or what a restored state means.

use bronzeward_core::time::DbTime;

use super::Tables;
use crate::change::Outside;
use crate::sim::State;

/// What was committed at one moment.
#[derive(Clone)]
pub struct Backup {
    tables: Tables,
    pub taken_at: DbTime,
}

impl State {
    pub fn back_up(&self) -> Backup {
        Backup {
            tables: self.db.tables.settled(),
            taken_at: self.sched.now(),
        }
    }

    /// Puts the database back to a backup: rows, identity columns, everything it answers.
    /// Transactions that were open are gone, and the server is down until it is started.
    pub fn restore(&mut self, backup: &Backup) {
        self.crash_database();
        self.db.tables = backup.tables.clone();
        self.journal.outside(Outside::Restored);
        let (now, then) = (self.sched.now(), backup.taken_at.as_micros());
        self.trace
            .say(now, format_args!("the database is restored to {then}"));
    }
}
