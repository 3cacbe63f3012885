//! One transaction: statements, then COMMIT or ROLLBACK, on a session of the pool or on a
//! pinned one.
//!
//! The statements of the store's families run through it. It keeps two rules. A transaction
//! that saw an error, or whose statement was dropped half-way, never sends COMMIT: the
//! server would answer ROLLBACK and the library would call it success. A transaction
//! dropped open takes its connection out of the pool: it would go back with its locks.
//! Never in here: which locks an act takes.

use bronzeward_engine::ports::store::StoreError;
use diesel_async::methods::{ExecuteDsl, LoadQuery};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};

use crate::session::wire::Wire;
use crate::session::{Pool, Pooled, Session, error};

/// How a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Read committed, writing (PA §5 rule 3).
    Write,
    /// Repeatable read, read only: one state of the database.
    Snapshot,
}

impl Mode {
    const fn begin(self) -> &'static str {
        match self {
            Self::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            Self::Snapshot => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }
}

enum Holder {
    Pooled(Box<Pooled>),
    Pinned(Box<Session>),
}

impl Holder {
    fn session(&mut self) -> &mut Session {
        match self {
            Self::Pooled(session) => session,
            Self::Pinned(session) => session,
        }
    }

    /// Ends the session instead of giving it back.
    fn discard(self) {
        match self {
            Self::Pooled(session) => drop(Pooled::take(*session)),
            Self::Pinned(session) => drop(session),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Open,
    /// A statement was sent and its answer not read: the server's state is not known.
    UnderWay,
    Failed,
}

/// An open transaction.
#[must_use]
pub struct Transaction {
    /// None once it ended.
    holder: Option<Holder>,
    progress: Progress,
}

impl Pool {
    /// Begins a transaction on a session of the pool.
    pub async fn begin(&self, mode: Mode) -> Result<Transaction, StoreError> {
        Transaction::begin(Holder::Pooled(Box::new(self.session().await?)), mode).await
    }

    /// One row of one statement that is a transaction by itself: BEGIN and its end would be
    /// two more answers to wait for. A read that failed or was dropped half-way ends the
    /// session, as it does in a longer transaction.
    pub(crate) async fn read_one<'q, U, Q>(&self, query: Q) -> Result<U, StoreError>
    where
        U: Send + 'q,
        Q: LoadQuery<'q, AsyncPgConnection, U> + 'q,
    {
        let mut alone = Transaction {
            holder: Some(Holder::Pooled(Box::new(self.session().await?))),
            progress: Progress::Open,
        };
        let row = alone.one(query).await?;
        drop(alone.release()?);
        Ok(row)
    }
}

impl Session {
    /// Begins a transaction on a pinned session; [`Transaction::commit_pinned`] gives it back.
    pub async fn begin(self, mode: Mode) -> Result<Transaction, StoreError> {
        Transaction::begin(Holder::Pinned(Box::new(self)), mode).await
    }

    /// One statement outside a transaction.
    pub(crate) async fn load<'q, U, Q>(&mut self, query: Q) -> Result<Vec<U>, StoreError>
    where
        U: Send + 'q,
        Q: LoadQuery<'q, AsyncPgConnection, U> + 'q,
    {
        self.wire.expect_answer();
        let answer = query.load(&mut self.connection).await;
        answer.map_err(|failed| error::statement(&failed, &self.wire))
    }
}

impl Transaction {
    async fn begin(holder: Holder, mode: Mode) -> Result<Self, StoreError> {
        let mut transaction = Self {
            holder: Some(holder),
            progress: Progress::Open,
        };
        transaction.batch(mode.begin()).await?;
        Ok(transaction)
    }

    /// Runs a query and reads every row.
    pub async fn load<'q, U, Q>(&mut self, query: Q) -> Result<Vec<U>, StoreError>
    where
        U: Send + 'q,
        Q: LoadQuery<'q, AsyncPgConnection, U> + 'q,
    {
        let session = self.send()?;
        let wire = session.wire.clone();
        let answer = query.load(&mut session.connection).await;
        self.received(answer, &wire)
    }

    /// The first row, or none. The query limits itself where more could match.
    pub async fn optional<'q, U, Q>(&mut self, query: Q) -> Result<Option<U>, StoreError>
    where
        U: Send + 'q,
        Q: LoadQuery<'q, AsyncPgConnection, U> + 'q,
    {
        let mut rows = self.load(query).await?;
        Ok(if rows.is_empty() {
            None
        } else {
            Some(rows.swap_remove(0))
        })
    }

    /// Exactly one row; none is a fault, since the caller has just locked or written it.
    pub async fn one<'q, U, Q>(&mut self, query: Q) -> Result<U, StoreError>
    where
        U: Send + 'q,
        Q: LoadQuery<'q, AsyncPgConnection, U> + 'q,
    {
        match self.optional(query).await? {
            Some(row) => Ok(row),
            None => Err(self.fault("a row that must exist does not")),
        }
    }

    /// Runs a statement; answers how many rows it touched.
    pub async fn execute<'q, Q>(&mut self, query: Q) -> Result<usize, StoreError>
    where
        Q: ExecuteDsl<AsyncPgConnection> + 'q,
    {
        let session = self.send()?;
        let wire = session.wire.clone();
        let answer = query.execute(&mut session.connection).await;
        self.received(answer, &wire)
    }

    /// Statements without parameters, in one message.
    pub async fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        let session = self.send()?;
        let wire = session.wire.clone();
        let answer = session.connection.batch_execute(sql).await;
        self.received(answer, &wire)
    }

    /// Refuses to go on: what was read cannot be. COMMIT is refused from here on.
    pub fn fault(&mut self, what: &'static str) -> StoreError {
        self.progress = Progress::Failed;
        error::fault(what)
    }

    fn send(&mut self) -> Result<&mut Session, StoreError> {
        if self.progress != Progress::Open {
            return Err(error::fault("a statement after a failed one"));
        }
        self.progress = Progress::UnderWay;
        match &mut self.holder {
            Some(holder) => {
                let session = holder.session();
                session.wire.expect_answer();
                Ok(session)
            }
            None => Err(error::fault("a statement after the transaction's end")),
        }
    }

    fn received<T>(
        &mut self,
        answer: diesel::QueryResult<T>,
        wire: &Wire,
    ) -> Result<T, StoreError> {
        match answer {
            Ok(value) => {
                self.progress = Progress::Open;
                Ok(value)
            }
            Err(failed) => {
                self.progress = Progress::Failed;
                Err(error::statement(&failed, wire))
            }
        }
    }

    /// Sends COMMIT and gives the session back.
    pub async fn commit(self) -> Result<(), StoreError> {
        self.end_committed().await.map(drop)
    }

    /// [`Self::commit`] for a transaction begun on a pinned session, which comes back.
    pub async fn commit_pinned(self) -> Result<Session, StoreError> {
        match self.end_committed().await? {
            Holder::Pinned(session) => Ok(*session),
            Holder::Pooled(_) => Err(error::fault("a pooled session is not pinned")),
        }
    }

    async fn end_committed(mut self) -> Result<Holder, StoreError> {
        if self.progress != Progress::Open {
            self.rollback().await;
            return Err(error::fault("COMMIT after a failed statement"));
        }
        // Until its answer is read the transaction counts as open, so that a commit that is
        // dropped half-way ends the session.
        let session = self.send()?;
        let wire = session.wire.clone();
        let answer = session.connection.batch_execute("COMMIT").await;
        let tag = wire.tag();
        match (answer, tag.as_deref()) {
            (Ok(()), Some("COMMIT")) => self.release(),
            // The server rolled back and the library calls it success.
            (Ok(()), Some("ROLLBACK")) => {
                self.release()?;
                Err(error::fault("ROLLBACK answered to COMMIT"))
            }
            (Ok(()), _) => Err(StoreError::CommitUnknown),
            (Err(_), _) => {
                let failed = error::commit(&wire);
                if failed != StoreError::CommitUnknown {
                    self.release()?;
                }
                Err(failed)
            }
        }
    }

    /// Sends ROLLBACK and gives the session back, or ends it where that is not certain.
    pub async fn rollback(mut self) {
        if self.progress == Progress::UnderWay {
            return;
        }
        self.progress = Progress::Open;
        // A failed ROLLBACK leaves the value open, and dropping it ends the session.
        if self.batch("ROLLBACK").await.is_ok() {
            drop(self.release());
        }
    }

    fn release(&mut self) -> Result<Holder, StoreError> {
        self.holder
            .take()
            .ok_or_else(|| error::fault("a transaction ended twice"))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(holder) = self.holder.take() {
            holder.discard();
        }
    }
}

#[cfg(test)]
#[path = "tests/tx.rs"]
mod tests;
