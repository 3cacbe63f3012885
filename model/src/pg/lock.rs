//! The lock manager: row locks and advisory locks as PostgreSQL grants them.
//!
//! A row is held by transactions ([`rows`]); whoever it conflicts with waits for their ends, and
//! before that for its turn, of which a row's version has one queue. Turns and advisory locks
//! are fair: nobody passes a waiter that it conflicts with. Who shares a row already takes no
//! turn. A wait that closes a circle is [`circle`]'s. Never in this module: a statement.

mod circle;
mod fair;
mod rows;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bronzeward_engine::ports::store::LockMode;

pub use circle::Knot;

use super::TxId;
use super::tables::Relation;
use crate::sched::LeafId;
use fair::{Fair, Joined};
use rows::Rows;

/// A row by its table and its key's bits.
pub type RowId = (Relation, u128);

/// What a session asks for.
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

/// What is waited for in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Queue {
    Advisory(Class, u128),
    /// The turn at a version of a row: PostgreSQL's tuple lock.
    Turn(RowId, u64),
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

/// What a transaction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Queue(Queue),
    End(TxId),
    /// It goes on as soon as it is looked at.
    Nothing,
}

#[derive(Debug)]
struct Waiting {
    mode: LockMode,
    leaf: LeafId,
    on: On,
    /// For a row, how far the request has come.
    row: Option<Request>,
}

/// A request for a row.
#[derive(Debug)]
struct Request {
    row: RowId,
    /// The changes that it knows of; a row changed since is followed to its newest version.
    seen: u64,
    turn: Option<Queue>,
    /// The ends that it still waits for, one after the other.
    left: VecDeque<TxId>,
    follows: bool,
}

enum Step {
    Granted,
    Waits(On),
    Follows,
}

/// What a request for a lock came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Granted,
    /// Whoever waits is woken under this lock's name.
    Waits,
    Deadlock,
}

/// What an end, or another order of a queue, has set free.
#[derive(Debug, Default)]
pub struct Released {
    pub woken: Vec<LeafId>,
    /// Who waits for somebody else now: a circle may have closed.
    pub moved: Vec<TxId>,
}

#[derive(Debug, Default)]
pub struct Locks {
    open: BTreeSet<TxId>,
    rows: Rows,
    queues: BTreeMap<Queue, Fair>,
    /// The fair locks of each transaction.
    taken: BTreeMap<TxId, BTreeSet<Queue>>,
    waiting: BTreeMap<TxId, Waiting>,
}

impl Locks {
    pub fn begin(&mut self, tx: TxId) {
        self.open.insert(tx);
    }

    /// The changes of rows until now, for [`Self::ask`].
    pub fn seen(&self) -> u64 {
        self.rows.changes
    }

    /// Gives a transaction its number, if it has none: who is waited for first goes by it.
    pub fn number(&mut self, tx: TxId) {
        self.rows.number(tx);
    }

    /// A transaction that holds a row is about to write its next version.
    pub fn writes(&mut self, tx: TxId, row: RowId) {
        self.rows.writes(tx, row);
    }

    /// Takes a lock, or begins to wait under `leaf`. A row is one that was found when `seen`
    /// was [`Self::seen`].
    pub fn ask(
        &mut self,
        tx: TxId,
        what: Lockable,
        mode: LockMode,
        seen: u64,
        leaf: impl FnOnce() -> LeafId,
    ) -> Asked {
        let (on, row) = match what {
            Lockable::End(other) if self.open.contains(&other) => (On::End(other), None),
            Lockable::End(_) => return Asked::Granted,
            Lockable::Advisory(class, key) => {
                let queue = Queue::Advisory(class, key);
                match self.join(tx, queue, mode) {
                    Joined::Granted => return Asked::Granted,
                    Joined::Deadlock => return Asked::Deadlock,
                    Joined::Waits => (On::Queue(queue), None),
                }
            }
            Lockable::Row(relation, key) => {
                let mut request = Request {
                    row: (relation, key),
                    seen,
                    turn: None,
                    left: VecDeque::new(),
                    follows: false,
                };
                match self.begin_row(tx, mode, &mut request) {
                    None => return Asked::Granted,
                    Some(on) => (on, Some(request)),
                }
            }
        };
        let leaf = leaf();
        let waiting = Waiting {
            mode,
            leaf,
            on,
            row,
        };
        self.waiting.insert(tx, waiting);
        Asked::Waits
    }

    /// The first wait of a request, or none.
    fn begin_row(&mut self, tx: TxId, mode: LockMode, request: &mut Request) -> Option<On> {
        // A turn that was granted is kept through the wait for which it was asked.
        let mut freed = Vec::new();
        loop {
            let step = self.advance(tx, mode, request, &mut freed);
            debug_assert!(freed.is_empty(), "nobody's turn comes by a request");
            match step {
                Step::Granted => return None,
                Step::Waits(on) => return Some(on),
                Step::Follows => {}
            }
        }
    }

    fn join(&mut self, tx: TxId, queue: Queue, mode: LockMode) -> Joined {
        let joined = self.queues.entry(queue).or_default().ask(tx, mode);
        if matches!(joined, Joined::Granted) {
            self.taken.entry(tx).or_default().insert(queue);
        }
        joined
    }

    /// Takes a request for a row as far as it comes. Who got its turn by that is `freed`.
    fn advance(
        &mut self,
        tx: TxId,
        mode: LockMode,
        request: &mut Request,
        freed: &mut Vec<TxId>,
    ) -> Step {
        let row = request.row;
        loop {
            while let Some(other) = request.left.pop_front() {
                if self.open.contains(&other) {
                    return Step::Waits(On::End(other));
                }
            }
            if request.follows {
                // The newest version is waited for out of turn while somebody replaces it.
                if let Some(writer) = self.rows.writer(row).filter(|writer| *writer != tx) {
                    return Step::Waits(On::End(writer));
                }
                request.follows = false;
                request.seen = self.rows.changes;
            } else if self.rows.version(row) > request.seen {
                self.leave_turn(tx, request, freed);
                request.follows = true;
                return Step::Follows;
            }
            let conflicts = match self.rows.holds(tx, row, mode) {
                true => Vec::new(),
                false => self.rows.conflicts(tx, row, mode),
            };
            if conflicts.is_empty() {
                self.rows.hold(tx, row, mode);
                self.leave_turn(tx, request, freed);
                return Step::Granted;
            }
            if request.turn.is_none() && !self.rows.is_held_by(tx, row) {
                let queue = Queue::Turn(row, self.rows.version(row));
                if !matches!(self.join(tx, queue, mode), Joined::Granted) {
                    return Step::Waits(On::Queue(queue));
                }
                request.turn = Some(queue);
            }
            request.left = conflicts.into();
        }
    }

    fn leave_turn(&mut self, tx: TxId, request: &mut Request, freed: &mut Vec<TxId>) {
        let Some(queue) = request.turn.take() else {
            return;
        };
        if let Some(taken) = self.taken.get_mut(&tx) {
            taken.remove(&queue);
        }
        self.leave(tx, queue, freed);
    }

    /// A transaction is no holder of a fair lock any more, nor waits for it.
    fn leave(&mut self, tx: TxId, queue: Queue, freed: &mut Vec<TxId>) {
        if let Some(fair) = self.queues.get_mut(&queue) {
            fair.holders.retain(|(holder, _)| *holder != tx);
            fair.queue.retain(|(waiter, _)| *waiter != tx);
        }
        self.pass_on(queue, freed);
    }

    fn pass_on(&mut self, queue: Queue, freed: &mut Vec<TxId>) {
        let Some(fair) = self.queues.get_mut(&queue) else {
            return;
        };
        for tx in fair.pass_on() {
            self.taken.entry(tx).or_default().insert(queue);
            if let Some(waiting) = self.waiting.get_mut(&tx) {
                waiting.on = On::Nothing;
                if let Some(request) = &mut waiting.row {
                    request.turn = Some(queue);
                }
            }
            freed.push(tx);
        }
        if fair.holders.is_empty() && fair.queue.is_empty() {
            self.queues.remove(&queue);
        }
    }

    /// Whether a transaction holds a row in any mode.
    pub fn holds(&self, tx: TxId, what: Lockable) -> bool {
        match what {
            Lockable::Row(relation, key) => self.rows.is_held_by(tx, (relation, key)),
            Lockable::Advisory(..) | Lockable::End(_) => false,
        }
    }

    /// The leaf of a waiting transaction.
    pub fn leaf_of(&self, tx: TxId) -> Option<LeafId> {
        self.waiting.get(&tx).map(|waiting| waiting.leaf)
    }

    /// Ends a transaction's waits and holds. Of those that may go on at once, `choose` says who
    /// does first.
    pub fn release(
        &mut self,
        tx: TxId,
        committed: bool,
        choose: impl FnMut(usize) -> usize,
    ) -> Released {
        let mut freed = Vec::new();
        self.open.remove(&tx);
        let waited = self.waiting.remove(&tx);
        if let Some(On::Queue(queue)) = waited.map(|waiting| waiting.on) {
            self.leave(tx, queue, &mut freed);
        }
        self.rows.end(tx, committed);
        for queue in self.taken.remove(&tx).unwrap_or_default() {
            self.leave(tx, queue, &mut freed);
        }
        let waiting = self.waiting.iter();
        let awaited = waiting.filter(|(_, waiting)| waiting.on == On::End(tx));
        freed.extend(awaited.map(|(waiter, _)| *waiter));
        self.go_on(freed, choose)
    }

    /// Goes on with a request for a row that was woken before it had looked at the row.
    pub fn resume(
        &mut self,
        tx: TxId,
        leaf: impl FnOnce() -> LeafId,
        choose: impl FnMut(usize) -> usize,
    ) -> (Asked, Released) {
        let mut freed = Vec::new();
        let Some(mut waiting) = self.waiting.remove(&tx) else {
            return (Asked::Granted, Released::default());
        };
        let mut asked = Asked::Granted;
        if let Some(request) = &mut waiting.row {
            loop {
                match self.advance(tx, waiting.mode, request, &mut freed) {
                    Step::Granted => break,
                    Step::Follows => {}
                    Step::Waits(on) => {
                        waiting.on = on;
                        waiting.leaf = leaf();
                        self.waiting.insert(tx, waiting);
                        asked = Asked::Waits;
                        break;
                    }
                }
            }
        }
        (asked, self.go_on(freed, choose))
    }

    /// Takes those that have been set free as far as they come.
    fn go_on(&mut self, mut freed: Vec<TxId>, mut choose: impl FnMut(usize) -> usize) -> Released {
        let mut released = Released::default();
        while !freed.is_empty() {
            let tx = freed.swap_remove(choose(freed.len()));
            let Some(mut waiting) = self.waiting.remove(&tx) else {
                continue;
            };
            let Some(request) = &mut waiting.row else {
                released.woken.push(waiting.leaf);
                continue;
            };
            // It may look at its row only when it runs: others may come before it.
            if choose(2) == 0 {
                released.woken.push(waiting.leaf);
                waiting.on = On::Nothing;
                self.waiting.insert(tx, waiting);
                continue;
            }
            match self.advance(tx, waiting.mode, request, &mut freed) {
                Step::Granted => released.woken.push(waiting.leaf),
                Step::Waits(on) => {
                    waiting.on = on;
                    self.waiting.insert(tx, waiting);
                    released.moved.push(tx);
                }
                Step::Follows => {
                    waiting.on = On::Nothing;
                    self.waiting.insert(tx, waiting);
                    freed.push(tx);
                }
            }
        }
        released
    }
}
