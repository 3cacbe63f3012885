//! Sessions: one transaction or one snapshot, statement by statement.
//!
//! Each statement begins at a scheduling point; its effect, or its first wait, follows in the
//! poll after it. A statement may be lost with its connection, a commit with its answer, and
//! a process that dies leaves the database to find out. Never in this module: a table.

use std::sync::Arc;

use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::ports::store::{LockMode, Store, StoreError};

use super::{Asked, Database, Eye, Lockable, Relation, RowId, Tables, Taken, TxId};
use crate::journal::Waited;
use crate::sched::{Leaf, ProcessId, Wait};
use crate::sim::{Sim, State};

/// The store of one process.
pub struct SimStore {
    sim: Arc<Sim>,
    process: ProcessId,
}

impl SimStore {
    pub fn new(sim: &Arc<Sim>, process: ProcessId) -> Self {
        Self {
            sim: Arc::clone(sim),
            process,
        }
    }
}

enum Kind {
    Transaction(TxId),
    /// A snapshot before its first statement, which fixes the state that it sees.
    Beginning,
    Snapshot(Box<Tables>),
}

/// What a process holds of its connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Up,
    /// COMMIT is on its way.
    Committing,
    /// Ended by commit or rollback.
    Ended,
    /// The connection is lost.
    Lost,
}

/// One open transaction, or one state of the database.
pub struct Session {
    sim: Arc<Sim>,
    process: ProcessId,
    kind: Kind,
    /// How often the process's connections had ended when this one was made.
    ends: u64,
    link: Link,
    /// A statement has failed, and its caller knows: what follows is a fault of the caller, as
    /// the adapter has it.
    told: bool,
}

impl Store for SimStore {
    type Tx = Session;
    type Snapshot = Session;

    async fn begin(&self) -> Result<Session, StoreError> {
        Leaf::new(&self.sim, Wait::Point).await;
        let mut state = self.sim.state();
        state.trace(self.process, "begin");
        if state.db.down || state.loses_connection(self.process) {
            return Err(StoreError::Unavailable);
        }
        let now = state.sched.now();
        let id = state.db.begin(self.process, now);
        let ends = state.db.ends(self.process);
        Ok(self.session(Kind::Transaction(id), ends))
    }

    async fn snapshot(&self) -> Result<Session, StoreError> {
        Leaf::new(&self.sim, Wait::Point).await;
        let mut state = self.sim.state();
        state.trace(self.process, "snapshot");
        if state.db.down || state.loses_connection(self.process) {
            return Err(StoreError::Unavailable);
        }
        Ok(self.session(Kind::Beginning, state.db.ends(self.process)))
    }
}

impl SimStore {
    fn session(&self, kind: Kind, ends: u64) -> Session {
        Session {
            sim: Arc::clone(&self.sim),
            process: self.process,
            kind,
            ends,
            link: Link::Up,
            told: false,
        }
    }
}

impl Session {
    fn id(&self) -> Result<TxId, StoreError> {
        match self.kind {
            Kind::Transaction(id) => Ok(id),
            // A snapshot has no write of the port; the types of the engine see to it.
            Kind::Beginning | Kind::Snapshot(_) => Err(StoreError::Fault),
        }
    }

    /// The scheduling point of a statement, and what may end it before it begins.
    pub(crate) async fn statement(&mut self, what: &'static str) -> Result<(), StoreError> {
        Leaf::new(&self.sim, Wait::Point).await;
        let sim = Arc::clone(&self.sim);
        let mut state = sim.state();
        state.trace(self.process, what);
        if self.told {
            return Err(StoreError::Fault);
        }
        if state.loses_connection(self.process) {
            self.lose(&mut state);
            return Err(StoreError::Unavailable);
        }
        self.usable(&mut state)?;
        if matches!(self.kind, Kind::Beginning) {
            self.kind = Kind::Snapshot(Box::new(state.db.tables.clone()));
        }
        Ok(())
    }

    fn usable(&mut self, state: &mut State) -> Result<(), StoreError> {
        let usable = self.standing(state);
        self.told |= usable.is_err();
        usable
    }

    fn standing(&mut self, state: &mut State) -> Result<(), StoreError> {
        let Kind::Transaction(id) = self.kind else {
            return match state.db.down || state.db.ends(self.process) != self.ends {
                true => Err(StoreError::Unavailable),
                false => Ok(()),
            };
        };
        match state.db.transaction(id) {
            None => {
                self.link = Link::Lost;
                Err(StoreError::Unavailable)
            }
            Some(transaction) => transaction.failed.map_or(Ok(()), Err),
        }
    }

    /// The connection is gone. The server finds out at once or later, and holds the locks
    /// until then.
    fn lose(&mut self, state: &mut State) {
        self.link = Link::Lost;
        self.told = true;
        if let Kind::Transaction(id) = self.kind {
            let late = state.rng.bool();
            state.end_transaction(id, false, late);
        }
    }

    /// Reads from what this session sees.
    pub(crate) async fn read<T>(
        &mut self,
        what: &'static str,
        look: impl FnOnce(&Tables, Eye) -> T,
    ) -> Result<T, StoreError> {
        self.statement(what).await?;
        Ok(self.look(look))
    }

    /// The same within a statement that has begun.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Tables, Eye) -> T) -> T {
        match &self.kind {
            Kind::Beginning => look(&self.sim.state().db.tables, Eye::COMMITTED),
            Kind::Snapshot(tables) => look(tables, Eye::COMMITTED),
            Kind::Transaction(id) => look(&self.sim.state().db.tables, Eye(Some(*id))),
        }
    }

    /// Writes, within a statement that has begun and holds what it needs. The time is
    /// `clock_timestamp()`.
    pub(crate) fn write<T>(
        &mut self,
        write: impl FnOnce(&mut Database, TxId, DbTime) -> T,
    ) -> Result<T, StoreError> {
        let id = self.id()?;
        let sim = Arc::clone(&self.sim);
        let mut state = sim.state();
        self.usable(&mut state)?;
        let now = state.sched.now();
        Ok(write(&mut state.db, id, now))
    }

    /// Fails the statement, and the transaction with it.
    pub(crate) fn fail<T>(&mut self, why: StoreError) -> Result<T, StoreError> {
        let id = self.id()?;
        self.told = true;
        self.sim.state().fail_transaction(id, why);
        Err(why)
    }

    pub(crate) fn now(&self) -> DbTime {
        self.sim.state().sched.now()
    }

    pub(crate) fn began_at(&self) -> Result<DbTime, StoreError> {
        let id = self.id()?;
        let mut state = self.sim.state();
        let transaction = state.db.transaction(id);
        transaction.map_or(Err(StoreError::Unavailable), |tx| Ok(tx.began))
    }

    /// Takes a lock, waiting for it. A deadlock's victim fails.
    pub(crate) async fn lock(&mut self, what: Lockable, mode: LockMode) -> Result<(), StoreError> {
        let seen = self.seen();
        self.lock_seen(what, mode, seen).await
    }

    /// The changes of rows that a statement which looks now knows of.
    pub(crate) fn seen(&self) -> u64 {
        self.sim.state().db.locks.seen()
    }

    async fn lock_seen(
        &mut self,
        what: Lockable,
        mode: LockMode,
        seen: u64,
    ) -> Result<(), StoreError> {
        let id = self.id()?;
        let sim = Arc::clone(&self.sim);
        let (mut leaf, strange) = {
            let mut state = sim.state();
            self.usable(&mut state)?;
            let state = &mut *state;
            let mut parked: Option<Leaf<'_>> = None;
            let State { sched, db, .. } = state;
            let asked = db.locks.ask(id, what, mode, seen, || {
                let (leaf, name) = Leaf::parked(&sim, sched);
                parked = Some(leaf);
                name
            });
            match (asked, parked) {
                (Asked::Waits, Some(leaf)) => {
                    state.waited(self.process, what);
                    let strange = state.db.strange(what);
                    state.break_circle(id);
                    (leaf, strange)
                }
                (Asked::Deadlock, _) => {
                    self.told = true;
                    state.outside.seen.deadlocks += 1;
                    state.fail_transaction(id, StoreError::Deadlock);
                    return Err(StoreError::Deadlock);
                }
                _ => return Ok(()),
            }
        };
        loop {
            leaf.await;
            let again = {
                let mut state = sim.state();
                self.usable(&mut state)?;
                state.resume(&sim, id)
            };
            match again {
                Some(parked) => leaf = parked,
                None => break,
            }
        }
        let mut state = sim.state();
        let now = state.sched.now();
        if let Some(transaction) = state.db.transaction(id) {
            transaction.waits.push(Waited {
                what,
                over: now,
                strange,
            });
        }
        Ok(())
    }

    /// A row's lock.
    pub(crate) async fn lock_row(
        &mut self,
        relation: Relation,
        key: u128,
        mode: LockMode,
    ) -> Result<(), StoreError> {
        self.lock(Lockable::Row(relation, key), mode).await
    }

    /// The same for a row of those that a statement found when [`Self::seen`] was this.
    pub(crate) async fn lock_found(
        &mut self,
        (relation, key): RowId,
        mode: LockMode,
        seen: u64,
    ) -> Result<(), StoreError> {
        self.lock_seen(Lockable::Row(relation, key), mode, seen)
            .await
    }

    /// Gives the transaction its number, as its first write does.
    pub(crate) fn number(&mut self) -> Result<(), StoreError> {
        self.write(|db, id, _| db.locks.number(id))
    }

    /// What a foreign key does to the row it names, which must stand.
    pub(crate) async fn refer(
        &mut self,
        rows: impl IntoIterator<Item = (Relation, u128)>,
    ) -> Result<(), StoreError> {
        for (relation, key) in rows {
            let stands = self.look(|tables, eye| tables.stands(eye, (relation, key)));
            self.check(relation.foreign_key(), stands)?;
            self.lock_row(relation, key, LockMode::KeyShare).await?;
        }
        Ok(())
    }

    /// A unique index: waits for whoever may yet take or free the value, then refuses it or
    /// lets it pass. An index that a test has dropped passes everything.
    pub(crate) async fn unique(
        &mut self,
        index: &'static str,
        taken: impl Fn(&Tables, TxId) -> Taken,
    ) -> Result<(), StoreError> {
        let id = self.id()?;
        self.number()?;
        loop {
            let found = {
                let state = self.sim.state();
                if state.dropped(index) {
                    return Ok(());
                }
                taken(&state.db.tables, id)
            };
            match found {
                Taken::Free => return Ok(()),
                Taken::Taken => return self.fail(StoreError::Unique(index)),
                Taken::Awaits(other) => self.lock(Lockable::End(other), LockMode::Share).await?,
            }
        }
    }

    /// A check or trigger of the schema by its name; one that a test has dropped holds.
    pub(crate) fn check(&mut self, object: &'static str, holds: bool) -> Result<(), StoreError> {
        if holds || self.sim.state().dropped(object) {
            return Ok(());
        }
        self.fail(StoreError::Integrity(object))
    }

    /// COMMIT: its answer may be lost, whether it arrived or not.
    pub(crate) async fn send_commit(&mut self) -> Result<(), StoreError> {
        let id = self.id()?;
        if self.told {
            self.send_rollback().await;
            return Err(StoreError::Fault);
        }
        self.link = Link::Committing;
        Leaf::new(&self.sim, Wait::Point).await;
        let sim = Arc::clone(&self.sim);
        let mut state = sim.state();
        state.trace(self.process, "commit");
        if !state.db.is_open(id) {
            self.link = Link::Ended;
            return Err(StoreError::CommitUnknown);
        }
        if state.loses_commit(self.process) {
            self.link = Link::Ended;
            let arrived = state.rng.bool();
            let late = state.rng.bool();
            state.end_transaction(id, arrived, late);
            return Err(StoreError::CommitUnknown);
        }
        self.link = Link::Ended;
        state.commit(id)
    }

    pub(crate) async fn send_rollback(&mut self) {
        let Ok(id) = self.id() else { return };
        Leaf::new(&self.sim, Wait::Point).await;
        if self.link == Link::Up {
            self.link = Link::Ended;
            let mut state = self.sim.state();
            state.trace(self.process, "rollback");
            state.end_transaction(id, false, false);
        }
    }
}

impl Drop for Session {
    /// A process that ends with a transaction open leaves the server to find out; a COMMIT on
    /// its way may arrive all the same.
    fn drop(&mut self) {
        let Kind::Transaction(id) = self.kind else {
            return;
        };
        let sim = Arc::clone(&self.sim);
        let mut state = sim.state();
        match self.link {
            Link::Ended | Link::Lost => {}
            Link::Up => {
                let late = state.rng.bool();
                state.end_transaction(id, false, late);
            }
            Link::Committing => {
                let (arrived, late) = (state.rng.bool(), state.rng.bool());
                state.end_transaction(id, arrived, late);
            }
        }
    }
}

/// How long a server may take to find out that its client is gone.
pub(crate) const FINDING_OUT: Span = Span::seconds(3);
