//! Ingestion: from an input to a sanitized revision in a draft (IC §2.3, §3; PA §5 T1).
//!
//! A request commits a staging claim and answers; a run goes on from it, in this order:
//! read, extract and guard, create generations, encrypt, draft transaction. Draft entries
//! run the same pipeline before they answer. Never in this module: a value in an error or
//! a log, a provider call inside a transaction, a text before it is sanitized in a row.

mod entry;
mod pipeline;
mod read;
pub(crate) mod refusal;
mod run;

pub use entry::FragmentPut;
pub use pipeline::Said;
pub use run::{Input, Start};

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bronzeward_core::claim::{ClaimState, Timers};
use bronzeward_core::id::OperationId;
use bronzeward_core::problem::Problem;
use bronzeward_core::rules::Rules;
use bronzeward_core::time::DbTime;

use crate::ports::Timer;
use crate::ports::node::ReadLimits;
use crate::ports::store::StoreError;
use crate::rows::ClaimRow;
use crate::tx::{ClaimRead, Failure, Owned, claim_of, sweep};
use crate::world::{Db, World};

/// What the deployment says of ingestions.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub timers: Timers,
    pub limits: ReadLimits,
}

/// The ingestion workflow: the one that may create and encrypt, and that reads a node.
pub struct Ingester<W: World> {
    pub db: Db<W>,
    pub ingestion: Arc<W::Ingestion>,
    pub reader: Arc<W::Reader>,
    pub renderer: Arc<W::Renderer>,
    pub timer: Arc<W::Timer>,
    pub tasks: Arc<W::Tasks>,
    pub settings: Settings,
}

impl<W: World> Clone for Ingester<W> {
    fn clone(&self) -> Self {
        Self {
            db: self.db.clone(),
            ingestion: Arc::clone(&self.ingestion),
            reader: Arc::clone(&self.reader),
            renderer: Arc::clone(&self.renderer),
            timer: Arc::clone(&self.timer),
            tasks: Arc::clone(&self.tasks),
            settings: self.settings,
        }
    }
}

/// Why a run ends without its draft transaction.
pub(crate) enum Stop {
    /// The owner refuses its own ingestion: claim abandoned, operation failed.
    Refused(Problem),
    /// The run stops and its claim is left to the lease, the sweep or a takeover.
    Left(&'static str),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl Stop {
    /// A transaction of the run that did not commit, or is not known to have.
    pub(crate) fn of<R>(failure: &Failure<R>) -> Self {
        Self::Left(match failure {
            Failure::Refused(_) => "the claim is no longer this run's",
            Failure::Deadlock => "deadlock",
            Failure::Unavailable => "the database is unavailable",
            Failure::Unknown => "the outcome of a commit is unknown",
            Failure::Unique(_) | Failure::Integrity(_) | Failure::Fault => "a fault",
        })
    }
}

/// Runs `work` until it ends or `lost` does, polled in this order. None when `lost` ended
/// first: the work is dropped where it stands.
pub(crate) async fn unless<A: Future, B: Future<Output = ()>>(
    work: A,
    lost: B,
) -> Option<A::Output> {
    let mut work = pin!(work);
    let mut lost = pin!(lost);
    poll_fn(|cx| {
        if let Poll::Ready(value) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(value));
        }
        lost.as_mut().poll(cx).map(|()| None)
    })
    .await
}

impl<W: World> Ingester<W> {
    /// Extends the lease every heartbeat, and returns once that is refused: the claim is no
    /// longer this run's. An extension that failed otherwise is tried again at the next one.
    pub(crate) async fn heartbeats(&self, owned: &Owned) {
        let timers = self.settings.timers;
        loop {
            self.timer.sleep(timers.heartbeat.as_duration()).await;
            match owned.extend(&self.db, timers.lease).await {
                Ok(()) => {}
                Err(Failure::Refused(_)) => return,
                Err(_) => {
                    tracing::warn!(ingestion = %owned.claim, "a heartbeat failed");
                }
            }
        }
    }

    /// Sweeps at once and then every `interval`, for as long as it is polled. A process in
    /// its recovery start sweeps nothing until its entry has committed (IC §3.5).
    pub async fn sweeps(&self, interval: std::time::Duration) {
        loop {
            if self.db.start_mode().serves(&self.db.rules()) {
                match self.sweep().await {
                    Ok(0) => {}
                    Ok(claims) => tracing::info!(claims, "abandoned claims that were due"),
                    Err(_) => tracing::warn!("a sweep of staging claims failed"),
                }
            }
            self.timer.sleep(interval).await;
        }
    }

    /// One sweep; the number of claims it wrote abandoned.
    pub async fn sweep(&self) -> Result<usize, StoreError> {
        sweep(&self.db).await
    }
}

/// A claim as a read at `now` treats it.
pub fn read_claim<R: Rules>(
    rules: &R,
    row: ClaimRow,
    operation: Option<OperationId>,
    now: DbTime,
) -> Result<ClaimRead, StoreError> {
    let state: ClaimState = claim_of(&row, operation)?.reads_as(rules, now);
    Ok(ClaimRead {
        row,
        state,
        operation,
    })
}
