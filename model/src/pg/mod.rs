//! A database that behaves as PostgreSQL does where the engine depends on it.
//!
//! Read committed transactions, row locks, unique indexes that wait, foreign keys that lock,
//! constraints deferred to the commit, advisory locks, snapshots, and two clocks. The store
//! port is carried out on it, in [`crate::store`]; the conformance list holds it against
//! PostgreSQL. Never in this module: what a table means.

mod lock;
pub mod restore;
pub mod session;
pub mod table;
pub mod tables;

use std::collections::BTreeMap;

use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::StoreError;

pub use lock::{Asked, Class, Knot, Lockable, Locks, Released, RowId};
pub use table::{EVERY, Eye, Table, Taken};
pub use tables::{Relation, Row, Tables};

use crate::journal::{Held, Journal, Waited};
use crate::sched::ProcessId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TxId(pub u64);

type Effect = Box<dyn FnOnce(&mut Tables, bool, &mut Journal) + Send>;
type Check = Box<dyn FnOnce(&Tables, Eye) -> Result<(), &'static str> + Send>;

/// An open transaction.
pub struct Transaction {
    pub process: ProcessId,
    /// `now()`: when it began.
    pub began: DbTime,
    pub(crate) waits: Vec<Waited>,
    effects: Vec<Effect>,
    /// What the commit checks first.
    deferred: Vec<Check>,
    /// Why its statements fail, once one has.
    pub(crate) failed: Option<StoreError>,
}

#[derive(Default)]
pub struct Database {
    pub tables: Tables,
    pub(crate) locks: Locks,
    open: BTreeMap<TxId, Transaction>,
    next: u64,
    /// False while the database's server is down.
    pub down: bool,
    /// How often every connection ended, and those of one process besides: a snapshot goes with
    /// the connection that it is read through.
    crashes: u64,
    cuts: BTreeMap<ProcessId, u64>,
    /// How many transactions committed, for a sweep's figures.
    pub commits: u64,
    /// A defect of the ports, where a setting plants one.
    pub planted: Option<crate::planted::Defect>,
}

impl Database {
    /// How often the connections of a process have ended.
    pub(crate) fn ends(&self, process: ProcessId) -> u64 {
        self.crashes + self.cuts.get(&process).copied().unwrap_or(0)
    }

    /// The connections of a process end, or everybody's.
    pub(crate) fn end_connections(&mut self, of: Option<ProcessId>) {
        match of {
            Some(process) => *self.cuts.entry(process).or_default() += 1,
            None => self.crashes += 1,
        }
    }

    pub fn begin(&mut self, process: ProcessId, now: DbTime) -> TxId {
        self.next += 1;
        let id = TxId(self.next);
        let transaction = Transaction {
            process,
            began: now,
            waits: Vec::new(),
            effects: Vec::new(),
            deferred: Vec::new(),
            failed: None,
        };
        self.open.insert(id, transaction);
        self.locks.begin(id);
        id
    }

    pub fn transaction(&mut self, id: TxId) -> Option<&mut Transaction> {
        self.open.get_mut(&id)
    }

    /// Whether somebody's own session holds this, or waits for whatever.
    pub fn strange(&self, what: Lockable) -> bool {
        let open = self.open.iter();
        let mut sessions = open.filter(|(_, of)| of.process == ProcessId::WORLD);
        sessions.any(|(id, _)| self.locks.holds(*id, what) || self.locks.leaf_of(*id).is_some())
    }

    pub fn is_open(&self, id: TxId) -> bool {
        self.open.contains_key(&id)
    }

    pub fn open_transactions(&self) -> Vec<(TxId, ProcessId)> {
        let open = self.open.iter();
        open.map(|(id, transaction)| (*id, transaction.process))
            .collect()
    }

    /// Writes a row's version, to be committed or forgotten with the transaction. The
    /// caller holds the row's lock or has found its key free.
    pub fn put<K, V>(
        &mut self,
        id: TxId,
        table: fn(&mut Tables) -> &mut Table<K, V>,
        key: K,
        row: impl Into<Option<V>>,
    ) where
        K: Ord + Clone + Send + 'static,
        V: Row<K>,
    {
        self.put_entering(id, table, key, row, EVERY);
    }

    /// The same for a row that stands in the first `entered` of its table's unique indexes, in
    /// their order; [`Table::enter`] says when it is in the next.
    pub fn put_entering<K, V>(
        &mut self,
        id: TxId,
        table: fn(&mut Tables) -> &mut Table<K, V>,
        key: K,
        row: impl Into<Option<V>>,
        entered: u8,
    ) where
        K: Ord + Clone + Send + 'static,
        V: Row<K>,
    {
        let mut row = row.into();
        if let Some(defect) = self.planted {
            let before = table(&mut self.tables).get(Eye(Some(id)), &key);
            if !defect.write(before, &mut row) {
                return;
            }
        }
        let first = table(&mut self.tables).put(id, key.clone(), row, entered);
        if !first {
            return;
        }
        let transaction = self
            .open
            .get_mut(&id)
            .expect("only an open transaction writes");
        transaction
            .effects
            .push(Box::new(move |tables, commit, journal| {
                let (before, after) = table(tables).settle(&key, commit);
                if commit {
                    V::committed(&key, before.as_ref(), after.as_ref(), journal);
                }
            }));
    }

    /// Checks something at the commit.
    pub fn defer(
        &mut self,
        id: TxId,
        check: impl FnOnce(&Tables, Eye) -> Result<(), &'static str> + Send + 'static,
    ) {
        if let Some(transaction) = self.open.get_mut(&id) {
            transaction.deferred.push(Box::new(check));
        }
    }

    /// Commits; a deferred check that fails rolls back instead.
    pub fn commit(
        &mut self,
        id: TxId,
        journal: &mut Journal,
        rng: &mut fastrand::Rng,
    ) -> (Result<(), StoreError>, Released) {
        let Some(mut transaction) = self.open.remove(&id) else {
            return (Err(StoreError::Unavailable), Released::default());
        };
        let checks = std::mem::take(&mut transaction.deferred);
        let mut outcome = match transaction.failed {
            Some(_) => Err(StoreError::Fault),
            None => Ok(()),
        };
        for check in checks {
            if outcome.is_ok() {
                outcome = check(&self.tables, Eye(Some(id))).map_err(StoreError::Integrity);
            }
        }
        let commit = outcome.is_ok();
        if commit {
            self.commits += 1;
            let held = Held {
                began: transaction.began,
                waits: transaction.waits,
            };
            journal.begin_commit(transaction.process, held);
        }
        for effect in transaction.effects {
            effect(&mut self.tables, commit, journal);
        }
        if commit {
            journal.end_commit();
        }
        let released = self.locks.release(id, commit, |among| rng.usize(0..among));
        (outcome, released)
    }

    /// Rolls back.
    pub fn rollback(
        &mut self,
        id: TxId,
        journal: &mut Journal,
        rng: &mut fastrand::Rng,
    ) -> Released {
        let Some(transaction) = self.open.remove(&id) else {
            return Released::default();
        };
        for effect in transaction.effects {
            effect(&mut self.tables, false, journal);
        }
        self.locks.release(id, false, |among| rng.usize(0..among))
    }

    /// An error of a statement: the transaction's writes and locks are gone at once, and
    /// every later statement of it fails.
    pub fn fail(
        &mut self,
        id: TxId,
        why: StoreError,
        journal: &mut Journal,
        rng: &mut fastrand::Rng,
    ) -> Released {
        let Some(transaction) = self.open.get_mut(&id) else {
            return Released::default();
        };
        transaction.failed = Some(why);
        transaction.deferred.clear();
        for effect in std::mem::take(&mut transaction.effects) {
            effect(&mut self.tables, false, journal);
        }
        self.locks.release(id, false, |among| rng.usize(0..among))
    }
}
