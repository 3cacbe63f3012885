//! A lock with a queue: nobody passes a waiter that it conflicts with.
//!
//! Turns at a row and advisory locks are such. Never in this module: what is locked.

use std::collections::VecDeque;

use bronzeward_engine::ports::store::LockMode;

use super::conflict;
use crate::pg::TxId;

/// A fair lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Fair {
    pub holders: Vec<(TxId, LockMode)>,
    pub queue: VecDeque<(TxId, LockMode)>,
}

/// What asking a fair lock comes to.
pub(super) enum Joined {
    Granted,
    Waits,
    /// It waits for one who waits for it.
    Deadlock,
}

impl Fair {
    fn free_for(&self, tx: TxId, mode: LockMode) -> bool {
        let mut others = self.holders.iter().filter(|(holder, _)| *holder != tx);
        !others.any(|(_, held)| conflict(mode, *held))
    }

    fn held_by(&self, tx: TxId) -> impl Iterator<Item = LockMode> + '_ {
        let own = self.holders.iter().filter(move |(holder, _)| *holder == tx);
        own.map(|(_, mode)| *mode)
    }

    pub fn ask(&mut self, tx: TxId, mode: LockMode) -> Joined {
        if self.held_by(tx).any(|held| held >= mode) {
            return Joined::Granted;
        }
        let mut waiters = self.queue.iter();
        let passes = !waiters.any(|(_, asked)| conflict(mode, *asked));
        if passes && self.free_for(tx, mode) {
            self.holders.push((tx, mode));
            return Joined::Granted;
        }
        let mut place = self.queue.len();
        for (at, (other, asked)) in self.queue.iter().enumerate() {
            if !self.held_by(tx).any(|held| conflict(*asked, held)) {
                continue;
            }
            // That one waits for this transaction, which therefore goes before it.
            if self.held_by(*other).any(|held| conflict(mode, held)) {
                return Joined::Deadlock;
            }
            let mut ahead = self.queue.iter().take(at);
            if !ahead.any(|(_, asked)| conflict(mode, *asked)) && self.free_for(tx, mode) {
                self.holders.push((tx, mode));
                return Joined::Granted;
            }
            place = at;
            break;
        }
        self.queue.insert(place, (tx, mode));
        Joined::Waits
    }

    /// Those of the queue that may go on now, who are then holders.
    pub fn pass_on(&mut self) -> Vec<TxId> {
        let mut granted = Vec::new();
        let mut ahead: Vec<LockMode> = Vec::new();
        for (tx, mode) in std::mem::take(&mut self.queue) {
            if !ahead.iter().any(|asked| conflict(mode, *asked)) && self.free_for(tx, mode) {
                self.holders.push((tx, mode));
                granted.push(tx);
            } else {
                ahead.push(mode);
                self.queue.push_back((tx, mode));
            }
        }
        granted
    }
}
