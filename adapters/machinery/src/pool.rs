//! The workers of a server: each answers one request at a time.
//!
//! [`Pool`] gives a request to a free worker. A worker that overruns its deadline or
//! its memory, or ends, is killed, reaped and replaced, and its request is answered
//! [`Unavailable`] once: nothing is asked twice, since what killed one worker would kill
//! the next. Other requests go on meanwhile. Who waits for a worker, and who gets the next
//! one, is `bronzeward-wake`'s. Never in this module: a text.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bronzeward_engine::ports::renderer::Unavailable;
use bronzeward_wake::{Lease, NoLease};
use prost::Message;
use tracing::Instrument;
use zeroize::Zeroizing;

use crate::confine::{Cage, Confined};
use crate::process::{Printed, Worker, resident};
use crate::settings::Settings;
use crate::wire;
use crate::{PROTOCOL, StartError};

/// A worker that holds more than this part of its memory while idle is replaced.
const IDLE_PART: u64 = 2;

pub(crate) struct Pool {
    inner: Arc<Inner>,
    workers: bronzeward_wake::Pool<Worker>,
}

struct Inner {
    settings: Settings,
    cage: Arc<Cage>,
    printed: Arc<Printed>,
    ended: AtomicU64,
}

impl Pool {
    /// Starts all workers and asks each who it is.
    pub(crate) async fn start(settings: Settings) -> Result<(Pool, wire::Description), StartError> {
        if !settings.worker.is_file() {
            return Err(StartError::Missing(settings.worker));
        }
        let cage = Arc::new(Cage::prepare(&settings.worker, settings.confinement)?);
        report(cage.confined());
        let count = settings.count.max(1);
        let inner = Arc::new(Inner {
            settings,
            cage,
            printed: Arc::new(Printed::default()),
            ended: AtomicU64::new(0),
        });
        let mut workers = Vec::new();
        let mut description = None;
        for _ in 0..count {
            let (worker, answer) = inner.introduced().await?;
            workers.push(worker);
            description = Some(answer);
        }
        let description = description.ok_or(StartError::NotAWorker)?;
        let workers = bronzeward_wake::Pool::new(workers);
        Ok((Pool { inner, workers }, description))
    }

    /// Asks a free worker. The request runs to its end even if the caller stops waiting:
    /// a worker in the middle of a request could answer nobody else.
    pub(crate) async fn ask(&self, request: wire::Request) -> Result<wire::Response, Unavailable> {
        let inner = Arc::clone(&self.inner);
        let frame = Zeroizing::new(request.encode_to_vec());
        wipe(request);
        let leased = self.workers.lease_within(inner.settings.deadline).await;
        let lease = leased.map_err(|why| match why {
            NoLease::Busy => Unavailable::Busy,
            NoLease::Stopped => Unavailable::Stopped,
        })?;
        // Its length is the worker's and its pipe's; waiting for a free worker is not in it.
        let span = tracing::debug_span!("answering");
        tokio::spawn(async move { inner.run(frame, lease).await }.instrument(span))
            .await
            .map_err(|_| Unavailable::Stopped)?
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.inner.settings.deadline
    }

    pub(crate) fn confined(&self) -> Confined {
        self.inner.cage.confined()
    }

    /// What workers printed: its length.
    pub(crate) fn printed(&self) -> &Printed {
        &self.inner.printed
    }

    /// Workers that were ended and replaced since the start.
    pub(crate) fn ended(&self) -> u64 {
        self.inner.ended.load(Ordering::Relaxed)
    }

    /// The process numbers of the workers that are idle now.
    pub(crate) fn idle(&self) -> Vec<u32> {
        self.workers.idle(Worker::pid)
    }

    /// Waits for the requests under way, then ends and reaps all workers.
    pub(crate) async fn stop(&self) {
        for worker in self.workers.stop().await {
            worker.end().await;
        }
    }
}

impl Inner {
    async fn run(
        &self,
        frame: Zeroizing<Vec<u8>>,
        mut lease: Lease<Worker>,
    ) -> Result<wire::Response, Unavailable> {
        let mut worker = self.ready(lease.take()).await?;
        let Settings {
            deadline, memory, ..
        } = self.settings;
        let answer = worker
            .exchange(&frame, deadline, memory)
            .await
            .and_then(|answer| {
                wire::Response::decode(answer.as_slice()).map_err(|_| Unavailable::Protocol)
            });
        let grown = resident(worker.pid()).is_some_and(|bytes| bytes > memory / IDLE_PART);
        match &answer {
            Ok(_) if !grown => lease.keep(worker),
            Ok(_) => self.replace(lease, worker, "memory").await,
            Err(why) => self.replace(lease, worker, why.code()).await,
        }
        answer
    }

    /// The idle worker, or a new one where there is none: one that ended while idle was
    /// asked nothing, so replacing it is no second try.
    async fn ready(&self, idle: Option<Worker>) -> Result<Worker, Unavailable> {
        if let Some(mut worker) = idle {
            if worker.lives() {
                return Ok(worker);
            }
            self.ended.fetch_add(1, Ordering::Relaxed);
            worker.end().await;
        }
        self.introduced()
            .await
            .map(|(worker, _)| worker)
            .map_err(|_| Unavailable::Start)
    }

    async fn replace(&self, lease: Lease<Worker>, worker: Worker, why: &'static str) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(why, "a renderer worker was ended");
        worker.end().await;
        // A failure leaves the slot empty and shows at the next request, which tries again.
        if let Ok((worker, _)) = self.introduced().await {
            lease.keep(worker);
        }
    }

    /// Starts a worker and has it say who it is.
    async fn introduced(&self) -> Result<(Worker, wire::Description), StartError> {
        let mut worker = Worker::start(&self.settings, &self.cage, &self.printed)
            .map_err(|error| StartError::Spawn(error.kind()))?;
        let request = wire::Request {
            deadline_ms: millis(self.settings.deadline),
            act: Some(wire::request::Act::Describe(wire::Describe {})),
        };
        let answer = worker
            .exchange(
                &request.encode_to_vec(),
                self.settings.deadline,
                self.settings.memory,
            )
            .await;
        let described = match answer {
            Ok(frame) => wire::Response::decode(frame.as_slice())
                .ok()
                .and_then(|response| response.outcome),
            Err(_) => None,
        };
        match described {
            Some(wire::response::Outcome::Description(description))
                if description.protocol == PROTOCOL =>
            {
                Ok((worker, description))
            }
            _ => {
                worker.end().await;
                Err(StartError::NotAWorker)
            }
        }
    }
}

pub(crate) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// The message's own copies of texts; the frame is wiped when it is dropped.
fn wipe(mut request: wire::Request) {
    use wire::request::Act;
    use zeroize::Zeroize;
    match &mut request.act {
        Some(Act::Parse(act)) => act.text.zeroize(),
        Some(Act::ListSecretFields(act)) => act.text.zeroize(),
        Some(Act::Check(act)) => act.text.zeroize(),
        Some(Act::Validate(act)) => act.config.zeroize(),
        Some(Act::Compose(act)) => {
            act.base.zeroize();
            act.patches.zeroize();
        }
        Some(Act::Encode(act)) => {
            for document in act.tree.iter_mut().flat_map(|tree| &mut tree.documents) {
                for node in &mut document.nodes {
                    node.text.zeroize();
                }
            }
        }
        Some(Act::Describe(_)) | None => {}
    }
}

fn report(confined: Confined) {
    if confined.wholly() {
        tracing::info!("renderer workers are confined by seccomp and Landlock");
    } else {
        tracing::warn!(
            seccomp = confined.filter,
            landlock = confined.landlock,
            "this kernel confines renderer workers in part only"
        );
    }
}
