//! Advisory locks: one table of classes, so that no two uses meet by accident.
//!
//! A lock is a pair `(class, key)`, as `pg_locks` shows it (`classid`, `objid`). A key made
//! of a name is a hash: two names that collide wait for each other, which costs time and
//! decides nothing. Called by the lock calls, the migrator and the dependency monitor.

use bronzeward_engine::ports::store::StoreError;
use diesel::sql_types::{Bool, Integer};
use sha2::{Digest, Sha256};

use crate::session::{Session, error};
use crate::tx::Transaction;

/// What a lock protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// One migration run at a time (PA §11).
    Migration,
    /// Before the installation's row: shared by requests, exclusive for what must not be
    /// passed by them (architecture, "engine").
    Installation,
    /// A principal's idempotency key (PA §7.2).
    IdempotencyKey,
    /// Acts become visible in recording order (PA §5 rule 5).
    ActOrder,
    /// One logger of dependency alerts at a time (DM §7).
    AlertLog,
    /// One classification of a dependency at a time (DM §6); held by a session.
    Dependency,
}

impl Class {
    pub const ALL: [Class; 6] = [
        Class::Migration,
        Class::Installation,
        Class::IdempotencyKey,
        Class::ActOrder,
        Class::AlertLog,
        Class::Dependency,
    ];

    pub const fn number(self) -> i32 {
        match self {
            Self::Migration => 1,
            Self::Installation => 2,
            Self::IdempotencyKey => 3,
            Self::ActOrder => 4,
            Self::AlertLog => 5,
            Self::Dependency => 6,
        }
    }
}

/// A class with a key in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvisoryLock {
    class: Class,
    key: i32,
}

impl AdvisoryLock {
    /// The only lock of its class.
    pub const fn of(class: Class) -> Self {
        Self { class, key: 0 }
    }

    /// The lock of a name; its parts are hashed with their lengths.
    pub fn named(class: Class, parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize();
        let key = i32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
        Self { class, key }
    }
}

/// How a transaction holds an advisory lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Exclusive,
    Shared,
}

#[derive(diesel::QueryableByName)]
struct Taken {
    #[diesel(sql_type = Bool)]
    taken: bool,
}

impl Transaction {
    /// Waits for the lock and holds it to the transaction's end.
    pub async fn lock(&mut self, lock: AdvisoryLock, hold: Hold) -> Result<(), StoreError> {
        let sql = match hold {
            Hold::Exclusive => "SELECT pg_advisory_xact_lock($1, $2)",
            Hold::Shared => "SELECT pg_advisory_xact_lock_shared($1, $2)",
        };
        let query = diesel::sql_query(sql)
            .bind::<Integer, _>(lock.class.number())
            .bind::<Integer, _>(lock.key);
        self.execute(query).await.map(drop)
    }

    /// Takes the lock to the transaction's end if nobody holds it.
    pub async fn try_lock(&mut self, lock: AdvisoryLock) -> Result<bool, StoreError> {
        let query = diesel::sql_query("SELECT pg_try_advisory_xact_lock($1, $2) AS taken")
            .bind::<Integer, _>(lock.class.number())
            .bind::<Integer, _>(lock.key);
        self.one(query).await.map(|row: Taken| row.taken)
    }
}

impl Session {
    /// Takes the lock for the session if nobody holds it; it goes with the session.
    pub async fn try_lock(&mut self, lock: AdvisoryLock) -> Result<bool, StoreError> {
        self.advisory("SELECT pg_try_advisory_lock($1, $2) AS taken", lock)
            .await
    }

    /// Gives the session's lock back; false when it did not hold it.
    pub async fn unlock(&mut self, lock: AdvisoryLock) -> Result<bool, StoreError> {
        self.advisory("SELECT pg_advisory_unlock($1, $2) AS taken", lock)
            .await
    }

    async fn advisory(&mut self, sql: &str, lock: AdvisoryLock) -> Result<bool, StoreError> {
        let query = diesel::sql_query(sql.to_owned())
            .bind::<Integer, _>(lock.class.number())
            .bind::<Integer, _>(lock.key);
        let rows: Vec<Taken> = self.load(query).await?;
        match rows.first() {
            Some(row) => Ok(row.taken),
            None => Err(error::fault("an advisory lock gave no answer")),
        }
    }
}
