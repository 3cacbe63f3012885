//! The store port on PostgreSQL: a pool of sessions, and transactions over them.

use std::marker::PhantomData;

use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{Snapshot, Store, StoreError, StoreReads, StoreTx};

use diesel_async::AsyncPgConnection;
use diesel_async::methods::{ExecuteDsl, LoadQuery};
use futures::future::BoxFuture;

use crate::session::Pool;
use crate::time::{Stamp, clock_timestamp};
use crate::tx::{Mode, Transaction};

/// What a transaction may do.
pub trait Access: Send + 'static {}

/// Read committed, writing.
#[derive(Debug)]
pub enum Writing {}
impl Access for Writing {}

/// Repeatable read, read only.
#[derive(Debug)]
pub enum Reading {}
impl Access for Reading {}

/// One open transaction; every family of reads is written once for both accesses.
pub struct PgRows<M> {
    pub(crate) tx: Transaction,
    access: PhantomData<fn() -> M>,
}

pub type PgTx = PgRows<Writing>;
pub type PgSnapshot = PgRows<Reading>;

/// Statements as boxed futures: a query's type holds borrowed text, and a future that keeps
/// such a type over an await cannot be shown to be Send where the store port asks for it.
impl<M: Access> PgRows<M> {
    pub(crate) fn load<'a, U, Q>(
        &'a mut self,
        query: Q,
    ) -> BoxFuture<'a, Result<Vec<U>, StoreError>>
    where
        U: Send + 'a,
        Q: LoadQuery<'a, AsyncPgConnection, U> + Send + 'a,
    {
        Box::pin(self.tx.load(query))
    }

    pub(crate) fn optional<'a, U, Q>(
        &'a mut self,
        query: Q,
    ) -> BoxFuture<'a, Result<Option<U>, StoreError>>
    where
        U: Send + 'a,
        Q: LoadQuery<'a, AsyncPgConnection, U> + Send + 'a,
    {
        Box::pin(self.tx.optional(query))
    }

    pub(crate) fn one<'a, U, Q>(&'a mut self, query: Q) -> BoxFuture<'a, Result<U, StoreError>>
    where
        U: Send + 'a,
        Q: LoadQuery<'a, AsyncPgConnection, U> + Send + 'a,
    {
        Box::pin(self.tx.one(query))
    }

    pub(crate) fn execute<'a, Q>(&'a mut self, query: Q) -> BoxFuture<'a, Result<usize, StoreError>>
    where
        Q: ExecuteDsl<AsyncPgConnection> + Send + 'a,
    {
        Box::pin(self.tx.execute(query))
    }
}

/// Where the engine's transactions begin.
#[derive(Clone)]
pub struct PgStore {
    pool: Pool,
}

impl PgStore {
    pub fn new(pool: Pool) -> Self {
        Self { pool }
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl Store for PgStore {
    type Tx = PgTx;
    type Snapshot = PgSnapshot;

    async fn begin(&self) -> Result<PgTx, StoreError> {
        Ok(PgRows {
            tx: self.pool.begin(Mode::Write).await?,
            access: PhantomData,
        })
    }

    async fn snapshot(&self) -> Result<PgSnapshot, StoreError> {
        Ok(PgRows {
            tx: self.pool.begin(Mode::Snapshot).await?,
            access: PhantomData,
        })
    }

    async fn clock(&self) -> Result<DbTime, StoreError> {
        let query = diesel::select(clock_timestamp());
        let read: BoxFuture<'_, Result<Stamp, StoreError>> = Box::pin(self.pool.read_one(query));
        Ok(read.await?.0)
    }
}

impl<M: Access> StoreReads for PgRows<M> {}

impl StoreTx for PgTx {
    async fn commit(self) -> Result<(), StoreError> {
        self.tx.commit().await
    }

    async fn rollback(self) {
        self.tx.rollback().await;
    }
}

impl Snapshot for PgSnapshot {
    async fn close(self) {
        self.tx.rollback().await;
    }
}
