//! The lock manager: row locks as PostgreSQL grants them, and advisory locks.
//!
//! A request for a row that is compatible with its holders passes the queue; conflicting ones
//! wait in the order of their coming. An advisory lock's queue is fair. A wait that closes a
//! circle makes one transaction of it a victim. Never in this module: a statement.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bronzeward_engine::ports::store::LockMode;

use super::TxId;
use super::tables::Relation;
use crate::sched::LeafId;

/// What can be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lockable {
    Row(Relation, u128),
    Advisory(Class, u128),
    /// A transaction's own end: who waits for it wants nothing else.
    End(TxId),
}

/// The classes of advisory locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Installation,
    Key,
    Acts,
}

const fn conflict(one: LockMode, other: LockMode) -> bool {
    use LockMode::{KeyShare, NoKeyUpdate, Share, Update};
    match (one, other) {
        (Update, _) | (_, Update) => true,
        (KeyShare, _) | (_, KeyShare) => false,
        (Share, Share) => false,
        (NoKeyUpdate, _) | (_, NoKeyUpdate) => true,
    }
}

#[derive(Debug)]
struct Waiter {
    tx: TxId,
    mode: LockMode,
    leaf: LeafId,
}

#[derive(Debug, Default)]
struct Lock {
    holders: Vec<(TxId, LockMode)>,
    queue: VecDeque<Waiter>,
}

impl Lock {
    fn free_for(&self, tx: TxId, mode: LockMode) -> bool {
        let mut others = self.holders.iter().filter(|(holder, _)| *holder != tx);
        !others.any(|(_, held)| conflict(mode, *held))
    }

    fn hold(&mut self, tx: TxId, mode: LockMode) {
        if !self.holders.contains(&(tx, mode)) {
            self.holders.push((tx, mode));
        }
    }
}

/// What a request for a lock came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Granted,
    /// Whoever waits is woken under this lock's name.
    Waits,
}

#[derive(Debug, Default)]
pub struct Locks {
    locks: BTreeMap<Lockable, Lock>,
    held: BTreeMap<TxId, BTreeSet<Lockable>>,
    waiting: BTreeMap<TxId, Lockable>,
}

impl Locks {
    /// Takes a lock, or joins its queue under `leaf`.
    pub fn ask(
        &mut self,
        tx: TxId,
        what: Lockable,
        mode: LockMode,
        leaf: impl FnOnce() -> LeafId,
    ) -> Asked {
        let lock = self.locks.entry(what).or_default();
        let fair = matches!(what, Lockable::Advisory(..));
        let holds = lock.holders.iter().any(|(holder, _)| *holder == tx);
        let passes = !fair || holds || lock.queue.is_empty();
        if passes && lock.free_for(tx, mode) {
            lock.hold(tx, mode);
            self.held.entry(tx).or_default().insert(what);
            return Asked::Granted;
        }
        let leaf = leaf();
        lock.queue.push_back(Waiter { tx, mode, leaf });
        self.waiting.insert(tx, what);
        Asked::Waits
    }

    pub fn holds(&self, tx: TxId, what: Lockable, mode: LockMode) -> bool {
        let lock = self.locks.get(&what);
        lock.is_some_and(|lock| {
            let mine = lock.holders.iter().filter(|(holder, _)| *holder == tx);
            mine.map(|(_, held)| *held).any(|held| held >= mode)
        })
    }

    /// The leaf of a waiting transaction.
    pub fn leaf_of(&self, tx: TxId) -> Option<LeafId> {
        let lock = self.locks.get(self.waiting.get(&tx)?)?;
        let mut queue = lock.queue.iter();
        queue
            .find(|waiter| waiter.tx == tx)
            .map(|waiter| waiter.leaf)
    }

    /// Whom a waiting transaction waits for: conflicting holders and, in a fair queue, who
    /// stands before it.
    fn waits_for(&self, tx: TxId) -> Vec<TxId> {
        let Some(what) = self.waiting.get(&tx) else {
            return Vec::new();
        };
        let lock = &self.locks[what];
        let Some(place) = lock.queue.iter().position(|waiter| waiter.tx == tx) else {
            return Vec::new();
        };
        let mode = lock.queue[place].mode;
        let holders = lock.holders.iter().copied();
        let before = lock.queue.iter().take(place);
        let before = before.map(|waiter| (waiter.tx, waiter.mode));
        holders
            .chain(before)
            .filter(|(other, held)| *other != tx && conflict(mode, *held))
            .map(|(other, _)| other)
            .collect()
    }

    /// The transactions of a circle of waits through `tx`, if it closed one.
    pub fn circle(&self, tx: TxId) -> Option<Vec<TxId>> {
        let mut path = vec![tx];
        let mut seen = BTreeSet::new();
        self.reach(tx, tx, &mut path, &mut seen).then_some(path)
    }

    fn reach(&self, from: TxId, to: TxId, path: &mut Vec<TxId>, seen: &mut BTreeSet<TxId>) -> bool {
        for next in self.waits_for(from) {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                path.push(next);
                if self.reach(next, to, path, seen) {
                    return true;
                }
                path.pop();
            }
        }
        false
    }

    /// Ends a transaction's waits and holds; gives back the leaves that may go on.
    pub fn release(&mut self, tx: TxId) -> Vec<LeafId> {
        let mut woken = Vec::new();
        if let Some(what) = self.waiting.remove(&tx) {
            let lock = self.locks.entry(what).or_default();
            lock.queue.retain(|waiter| waiter.tx != tx);
            self.grant(what, &mut woken);
        }
        for what in self.held.remove(&tx).unwrap_or_default() {
            if let Some(lock) = self.locks.get_mut(&what) {
                lock.holders.retain(|(holder, _)| *holder != tx);
            }
            self.grant(what, &mut woken);
        }
        woken
    }

    fn grant(&mut self, what: Lockable, woken: &mut Vec<LeafId>) {
        let Some(lock) = self.locks.get_mut(&what) else {
            return;
        };
        let fair = matches!(what, Lockable::Advisory(..));
        let mut place = 0;
        while place < lock.queue.len() {
            let (tx, mode) = (lock.queue[place].tx, lock.queue[place].mode);
            if lock.free_for(tx, mode) {
                lock.hold(tx, mode);
                if let Some(waiter) = lock.queue.remove(place) {
                    woken.push(waiter.leaf);
                }
                self.waiting.remove(&tx);
                self.held.entry(tx).or_default().insert(what);
            } else if fair {
                break;
            } else {
                place += 1;
            }
        }
        if lock.holders.is_empty() && lock.queue.is_empty() {
            self.locks.remove(&what);
        }
    }
}
