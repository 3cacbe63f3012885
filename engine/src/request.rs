//! The one wrapper around a mutating request's transaction (PA §7.2, §9.1, §10.5).
//!
//! It looks the key up, opens the transaction with key lock, installation lock, the
//! repeated lookup and the epoch comparison, runs the act's body, and closes it with the
//! idempotency record and the act. Commit-unknown is resolved here by reading. Never in
//! this module: what a particular act checks or writes.

use std::future::Future;

use bronzeward_core::act::ActDraft;
use bronzeward_core::id::{EpochId, OperationId, RequestId};
use bronzeward_core::idempotency::{Fingerprint, Found, IdempotencyKey, Lookup, look_up};
use bronzeward_core::installation::Installation;
use bronzeward_core::principal::Actor;
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::rules::Rule;

use crate::fingerprints::{Recomputed, same_request};
use crate::ports::store::{
    IdempotencyRecord, LockMode, RequestReads, RequestWrites, Snapshot, Store,
};
use crate::tx::level::{InstallationState, Start};
use crate::tx::{Abort, ActsTx, Failure, Held, Kind, Tx, lock_by, transact};
use crate::world::{Db, RawTx, World};

/// A request that passed every check that needs no transaction (PA §10): authenticated,
/// its role checked, its headers and body accepted, its principal known.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub actor: Actor,
    pub key: IdempotencyKey,
    pub fingerprint: Fingerprint,
    /// On a keyed route, the fingerprint under the version that the key's record names,
    /// where that is not the current one (PA §7.1).
    pub recomputed: Option<Recomputed>,
    pub expected_epoch: Option<EpochId>,
    pub request: RequestId,
    /// Method and route template, as the record keeps them.
    pub method: &'static str,
    pub route: &'static str,
}

/// The installation state an answer's epoch headers report (PA §9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochRead {
    pub epoch: EpochId,
    pub recovery_mode: bool,
}

impl From<&Installation> for EpochRead {
    fn from(row: &Installation) -> Self {
        Self {
            epoch: row.epoch,
            recovery_mode: row.recovery_mode,
        }
    }
}

/// An answer as it is stored and replayed: the edge renders it inside the transaction,
/// from what the body wrote. `body` is the JSON text; it never holds a secret value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub status: u16,
    pub location: Option<String>,
    pub etag: Option<String>,
    pub body: String,
    pub operation: Option<OperationId>,
}

/// What a request answers once its effect is committed, now or earlier.
#[derive(Clone, Debug)]
pub struct Answer {
    pub rendered: Rendered,
    pub replayed: bool,
    pub read: EpochRead,
}

/// A refusal, with the installation state that decided it where one was read.
#[derive(Clone, Debug)]
pub struct Refused {
    pub problem: Problem,
    pub read: Option<EpochRead>,
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            read: None,
        }
    }
}

/// Why a request's transaction did not end in an answer.
#[derive(Clone, Debug)]
pub enum NotDone {
    Refused(Refused),
    /// A unique index refused the effect; the act says what that means (PA §7.3).
    Unique(&'static str),
}

impl From<Refused> for NotDone {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl NotDone {
    /// The refusal, where no index of the act's own was expected to refuse.
    pub fn refused(self) -> Refused {
        match self {
            Self::Refused(refused) => refused,
            Self::Unique(_) => {
                Problem::internal("The request broke a constraint. Nothing was committed.").into()
            }
        }
    }
}

/// A body's end: its transaction under the act-order lock, what to answer and what to record.
pub struct Settled<T> {
    pub acts: ActsTx<T>,
    pub rendered: Rendered,
    pub act: ActDraft,
}

/// What a body returns; it refuses with `tx.refuse(problem)`.
pub type BodyResult<T> = Result<Settled<T>, Abort<Problem>>;

/// Inside the wrapper: the body's own refusal, or a stored record found under the lock.
#[derive(Debug)]
enum Inner {
    Problem(Problem),
    Found(Box<IdempotencyRecord>),
}

/// A refusal inside the transaction with the installation state it held.
type InnerRefusal = (Inner, EpochRead);

/// Runs mutating requests against one database.
///
/// The database is all it has: every act of [`crate::tx`] is a method of this type or takes a
/// [`Db`], so none can call a provider or a node while its transaction is open (PA §5 rule 1).
/// The pattern names every field, and a field of another port would stop it from compiling:
///
/// ```
/// use bronzeward_engine::request::Requests;
/// use bronzeward_engine::world::{Db, World};
///
/// fn all_it_has<'w, W: World>(requests: &Requests<'w, W>) -> &'w Db<W> {
///     let Requests { db } = requests;
///     db
/// }
/// ```
///
/// A provider or a node cannot be handed in beside it:
///
/// ```compile_fail,E0560
/// // covers: PA-TX-11
/// use bronzeward_engine::request::Requests;
/// use bronzeward_engine::world::{Db, World};
///
/// fn more<'w, W: World>(db: &'w Db<W>, secrets: &'w W::Ingestion) -> Requests<'w, W> {
///     Requests { db, ingestion: secrets }
/// }
/// ```
pub struct Requests<'w, W: World> {
    pub db: &'w Db<W>,
}

impl<W: World> Requests<'_, W> {
    /// Runs `body` under the key's lock with the installation state locked in `mode`.
    /// A record found before or under the lock answers instead, and nothing executes.
    pub(crate) async fn run<F, Fut>(
        &self,
        admitted: &Admitted,
        mode: Option<LockMode>,
        body: F,
    ) -> Result<Answer, NotDone>
    where
        F: FnOnce(Tx<RawTx<W>, InstallationState>, Held<Installation>) -> Fut + Clone + Send + Sync,
        Fut: Future<Output = BodyResult<RawTx<W>>> + Send,
    {
        self.run_leaving(admitted, mode, |read| read, body).await
    }

    /// [`Self::run`] for an act that changes the installation's state: its answer, its record
    /// and its act are of the state it leaves in place (PA §9.1).
    pub(crate) async fn run_leaving<F, Fut>(
        &self,
        admitted: &Admitted,
        mode: Option<LockMode>,
        leaves: impl Fn(EpochRead) -> EpochRead + Copy + Send + Sync,
        body: F,
    ) -> Result<Answer, NotDone>
    where
        F: FnOnce(Tx<RawTx<W>, InstallationState>, Held<Installation>) -> Fut + Clone + Send + Sync,
        Fut: Future<Output = BodyResult<RawTx<W>>> + Send,
    {
        if let Some(answer) = self.first_lookup(admitted).await? {
            return Ok(answer);
        }
        let outcome = transact(self.db.store(), Kind::Request, async |tx| {
            self.in_transaction(admitted, mode, leaves, body.clone(), tx)
                .await
        })
        .await;
        match outcome {
            Ok(committed) => Ok(committed.into_inner()),
            Err(Failure::Refused((Inner::Problem(problem), read))) => Err(Refused {
                problem,
                read: Some(read),
            }
            .into()),
            Err(Failure::Refused((Inner::Found(record), read))) => {
                Ok(self.answer_found(admitted, *record, read)?)
            }
            Err(Failure::Unique(index)) => Err(NotDone::Unique(index)),
            Err(Failure::Unknown) => Ok(self.resolve_unknown(admitted).await?),
            Err(failure) => Err(Refused::from(request_problem(&failure)).into()),
        }
    }

    async fn in_transaction<F, Fut>(
        &self,
        admitted: &Admitted,
        mode: Option<LockMode>,
        leaves: impl Fn(EpochRead) -> EpochRead + Send,
        body: F,
        tx: Tx<RawTx<W>, Start>,
    ) -> Result<crate::tx::Ended<RawTx<W>, Answer>, Abort<InnerRefusal>>
    where
        F: FnOnce(Tx<RawTx<W>, InstallationState>, Held<Installation>) -> Fut + Send,
        Fut: Future<Output = BodyResult<RawTx<W>>> + Send,
    {
        let principal = admitted.actor.principal;
        let (mut tx, installation) =
            if lock_by(&self.db.rules(), Rule::IdempotencyKeyLock, LockMode::Update).is_some() {
                tx.lock_key(principal, &admitted.key)
                    .await?
                    .lock_installation(mode)
                    .await?
            } else {
                tx.lock_installation(mode).await?
            };
        let read = EpochRead::from(&*installation);
        if let Some(record) = tx
            .peek()
            .idempotency_record(principal, &admitted.key)
            .await?
        {
            return tx.refuse((Inner::Found(Box::new(record)), read)).await;
        }
        if let Lookup::EpochMismatch { current } =
            look_up(&self.db.rules(), None, read.epoch, admitted.expected_epoch)
        {
            return tx
                .refuse((Inner::Problem(epoch_mismatch(current)), read))
                .await;
        }
        let Settled {
            mut acts,
            rendered,
            act,
        } = match body(tx, installation).await {
            Ok(settled) => settled,
            Err(Abort::Refused(problem)) => {
                return Err(Abort::Refused((Inner::Problem(problem), read)));
            }
            Err(Abort::Store(error)) => return Err(Abort::Store(error)),
        };
        let at = acts.at();
        let read = leaves(read);
        let entry = act.by(
            admitted.actor,
            Some(admitted.key.clone()),
            Some(admitted.request),
            read.epoch,
        );
        let record = IdempotencyRecord {
            fingerprint: admitted.fingerprint.clone(),
            method: admitted.method.to_owned(),
            route: admitted.route.to_owned(),
            epoch: read.epoch,
            request: admitted.request,
            act: entry.id,
            status: rendered.status,
            location: rendered.location.clone(),
            etag: rendered.etag.clone(),
            body: rendered.body.clone(),
            operation: rendered.operation,
        };
        acts.rows().insert_act(&entry, at).await?;
        acts.rows()
            .insert_idempotency_record(principal, &admitted.key, &record, at)
            .await?;
        acts.done(Answer {
            rendered,
            replayed: false,
            read,
        })
    }

    /// The lookup before anything else of the route runs. Without a record, only a lookup
    /// under the key's lock may refuse the epoch (PA §7.2), so a mismatch is read again there.
    pub(crate) async fn first_lookup(
        &self,
        admitted: &Admitted,
    ) -> Result<Option<Answer>, Refused> {
        let mut snapshot = self.db.store().snapshot().await.map_err(|_| unreadable())?;
        let installation = snapshot.installation().await.map_err(|_| unreadable())?;
        let read = EpochRead::from(&installation);
        let record = snapshot
            .idempotency_record(admitted.actor.principal, &admitted.key)
            .await
            .map_err(|_| unreadable())?;
        snapshot.close().await;
        match record {
            Some(record) => Ok(Some(self.answer_found(admitted, record, read)?)),
            None if admitted
                .expected_epoch
                .is_none_or(|expected| expected == read.epoch) =>
            {
                Ok(None)
            }
            None => self.lookup_under_lock(admitted).await,
        }
    }

    /// The lookup under the key's lock, in a transaction of its own.
    async fn lookup_under_lock(&self, admitted: &Admitted) -> Result<Option<Answer>, Refused> {
        let principal = admitted.actor.principal;
        let looked = transact::<_, _, (), _, _>(self.db.store(), Kind::Lookup, async |tx| {
            let tx = tx.lock_key(principal, &admitted.key).await?;
            let (mut tx, installation) = tx.lock_installation(LockMode::Share).await?;
            let record = tx
                .peek()
                .idempotency_record(principal, &admitted.key)
                .await?;
            tx.open().done((record, EpochRead::from(&*installation)))
        })
        .await;
        let (record, read) = looked.map_err(|_| unreadable())?.into_inner();
        if let Some(record) = record {
            return Ok(Some(self.answer_found(admitted, record, read)?));
        }
        match look_up(&self.db.rules(), None, read.epoch, admitted.expected_epoch) {
            Lookup::EpochMismatch { current } => Err(Refused {
                problem: epoch_mismatch(current),
                read: Some(read),
            }),
            _ => Ok(None),
        }
    }

    /// Answers from a stored record, or refuses it (PA §7.2's table).
    pub(crate) fn answer_found(
        &self,
        admitted: &Admitted,
        record: IdempotencyRecord,
        read: EpochRead,
    ) -> Result<Answer, Refused> {
        // What is left open matters only to a record that would be compared at all.
        let (same_request, open) = match same_request(admitted, &record) {
            Ok(same) => (same, None),
            Err(problem) => (None, Some(problem)),
        };
        let found = Found {
            same_request,
            epoch: record.epoch,
            foreign_entry: self.db.start().is_foreign(record.epoch),
        };
        let refusal = match look_up(
            &self.db.rules(),
            Some(found),
            read.epoch,
            admitted.expected_epoch,
        ) {
            Lookup::Replay | Lookup::Execute => {
                return Ok(Answer {
                    rendered: Rendered {
                        status: record.status,
                        location: record.location,
                        etag: record.etag,
                        body: record.body,
                        operation: record.operation,
                    },
                    replayed: true,
                    read,
                });
            }
            Lookup::OtherRequest => open.unwrap_or_else(|| {
                Problem::new(ProblemCode::IdempotencyKeyReused)
                    .say("The key was used for another request.")
            }),
            Lookup::EarlierEpoch { stored } => Problem::conflict(
                "The key's request was answered in an earlier epoch; use a new key.",
            )
            .naming("request", record.request)
            .naming("epoch", stored),
            Lookup::EpochMismatch { current } => epoch_mismatch(current),
        };
        Err(Refused {
            problem: refusal,
            read: Some(read),
        })
    }

    /// A lost COMMIT answer: the key's lock waits for the lost transaction to end, and the
    /// record says whether it committed (PA §5 rule 6).
    async fn resolve_unknown(&self, admitted: &Admitted) -> Result<Answer, Refused> {
        match self.lookup_under_lock(admitted).await {
            Ok(Some(answer)) => Ok(Answer {
                replayed: false,
                ..answer
            }),
            Ok(None) => Err(Problem::dependency_unavailable(
                "The connection was lost at commit. Nothing was committed.",
            )
            .into()),
            Err(Refused { read: Some(read), problem }) => Err(Refused { problem, read: Some(read) }),
            Err(_) => Err(Problem::internal(
                "The connection was lost at commit and the outcome is unknown. Retry under the same key.",
            )
            .into()),
        }
    }
}

/// 503 for a read that failed.
pub(crate) fn unreadable() -> Refused {
    Problem::dependency_unavailable("The database could not be read.").into()
}

/// 412, naming the current epoch.
pub(crate) fn epoch_mismatch(current: EpochId) -> Problem {
    Problem::new(ProblemCode::EpochMismatch)
        .say("The expected epoch is not the current one.")
        .naming("epoch", current)
}

/// What a request's own transaction answers when it ended without its effect (PA §14 "Any").
pub fn request_problem<R>(failure: &Failure<R>) -> Problem {
    match failure {
        Failure::Deadlock => Problem::new(ProblemCode::TransientConflict)
            .say("The transaction was a deadlock's victim too often. Nothing was committed."),
        Failure::Unavailable => {
            Problem::dependency_unavailable("The database was lost. Nothing was committed.")
        }
        Failure::Unknown => Problem::internal("The outcome is unknown. Retry under the same key."),
        Failure::Refused(_) | Failure::Unique(_) | Failure::Integrity(_) | Failure::Fault => {
            Problem::internal("The server failed. Nothing was committed.")
        }
    }
}

/// What a transaction that a route runs before its own answers (PA §14 "Any").
pub fn before_request_problem<R>(failure: &Failure<R>) -> Problem {
    match failure {
        Failure::Deadlock => Problem::internal("The server failed. Nothing was committed."),
        Failure::Refused(_)
        | Failure::Unavailable
        | Failure::Unknown
        | Failure::Unique(_)
        | Failure::Integrity(_)
        | Failure::Fault => request_problem(failure),
    }
}
