//! The one place that begins, retries and commits transactions (PA §5 rules 5 and 6).

use std::future::Future;

use super::Tx;
use super::level::Start;
use crate::ports::store::{Store, StoreError, StoreTx};

/// Whose transaction this is, which decides how often a deadlock is retried (PA §5 rule 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request's own transaction.
    Request,
    /// A transaction a route runs before the request's own.
    BeforeRequest,
    /// A key's lookup repeated under its lock.
    Lookup,
    /// A publication's commit, T3.
    Publication,
    /// A transaction of a job or of the controller.
    Job,
    /// The staging claim's heartbeat and the sweep: never retried.
    Heartbeat,
}

impl Kind {
    /// How many attempts a deadlock may cost in all.
    const fn attempts(self) -> u32 {
        match self {
            Self::Request | Self::BeforeRequest | Self::Lookup | Self::Publication | Self::Job => 4,
            Self::Heartbeat => 1,
        }
    }
}

/// Why a body ended without a value.
#[derive(Debug)]
pub enum Abort<R> {
    Refused(R),
    Store(StoreError),
}

impl<R> From<StoreError> for Abort<R> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A body's successful end: the transaction still open, and its value.
#[must_use]
pub struct Ended<T, V> {
    raw: T,
    value: V,
}

impl<T, V> Ended<T, V> {
    pub(super) fn new(raw: T, value: V) -> Self {
        Self { raw, value }
    }
}

/// A value whose transaction committed. Only [`transact`] makes one, so a function that
/// takes `Committed<Attempt>` cannot run before that attempt's commit (EaR 3.3).
#[derive(Debug)]
#[must_use]
pub struct Committed<V>(V);

impl<V> Committed<V> {
    pub fn get(&self) -> &V {
        &self.0
    }

    pub fn into_inner(self) -> V {
        self.0
    }
}

/// How a transaction ended without its effect, or without knowing it.
#[derive(Debug)]
pub enum Failure<R> {
    /// The body refused; nothing committed.
    Refused(R),
    /// Deadlock retries are exhausted; nothing committed.
    Deadlock,
    /// The database could not be reached, or was lost before COMMIT; nothing committed.
    Unavailable,
    /// COMMIT was sent and its answer lost: resolved by reading, never assumed.
    Unknown,
    /// A unique index refused; nothing committed.
    Unique(&'static str),
    /// Another constraint or trigger refused; nothing committed.
    Integrity(&'static str),
    /// A fault; nothing committed.
    Fault,
}

impl<R> Failure<R> {
    fn from_store(error: StoreError) -> Self {
        match error {
            StoreError::Deadlock => Self::Deadlock,
            StoreError::Unavailable => Self::Unavailable,
            StoreError::CommitUnknown => Self::Unknown,
            StoreError::Unique(name) => Self::Unique(name),
            StoreError::Integrity(name) => Self::Integrity(name),
            StoreError::Fault => Self::Fault,
        }
    }
}

/// Runs `body` in a transaction and commits it. A deadlock runs the whole body again, as
/// often as `kind` allows; `Clone` makes that replay safe by type. A lost COMMIT answer is
/// returned as [`Failure::Unknown`], except for T3, whose body begins by looking for its own
/// effect and is therefore run again (PA §6.2).
pub async fn transact<S, V, R, F, Fut>(
    store: &S,
    kind: Kind,
    body: F,
) -> Result<Committed<V>, Failure<R>>
where
    S: Store,
    F: FnOnce(Tx<S::Tx, Start>) -> Fut + Clone + Send,
    Fut: Future<Output = Result<Ended<S::Tx, V>, Abort<R>>> + Send,
{
    let mut unknown_left = u32::from(kind == Kind::Publication);
    let mut attempts_left = kind.attempts();
    loop {
        attempts_left -= 1;
        let error = match attempt(store, body.clone()).await {
            Ok(value) => return Ok(Committed(value)),
            Err(Abort::Refused(refusal)) => return Err(Failure::Refused(refusal)),
            Err(Abort::Store(error)) => error,
        };
        match error {
            StoreError::Deadlock if attempts_left > 0 => {}
            StoreError::CommitUnknown if unknown_left > 0 => {
                unknown_left -= 1;
                attempts_left = attempts_left.max(1);
            }
            error => return Err(Failure::from_store(error)),
        }
    }
}

async fn attempt<S, V, R, F, Fut>(store: &S, body: F) -> Result<V, Abort<R>>
where
    S: Store,
    F: FnOnce(Tx<S::Tx, Start>) -> Fut + Send,
    Fut: Future<Output = Result<Ended<S::Tx, V>, Abort<R>>> + Send,
{
    let raw = store.begin().await?;
    let Ended { raw, value } = body(Tx::start(raw)).await?;
    raw.commit().await?;
    Ok(value)
}
