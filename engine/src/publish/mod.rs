//! The publish worker: from a queued operation to a release, or to a recorded failure
//! (PA §6).
//!
//! The server runs one per process, with one job at a time. What it may do is what its
//! fields name: it reads pinned values and encrypts as the compiler, reads nodes through
//! the observer, and holds no client that changes one. Never in this module: a release
//! written outside T3.

mod commit;
mod compile;
pub mod job;
mod pins;
mod refusal;
mod seal;
mod snapshot;
mod together;
mod unit;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bronzeward_core::inventory::MachineIdentity;
use bronzeward_core::inventory::Platform;
use bronzeward_core::machinery::Mode;
use bronzeward_core::observation::{Observation, Purpose, publication_reading};
use bronzeward_core::problem::Problem;
use bronzeward_core::time::{DbTime, Span};

use crate::ingest::unless;
use crate::observe::{Observer, Refusal as NotObserved, Wanted};
use crate::ports::node::Asked;
use crate::ports::provider::KeyName;
use crate::ports::store::{Store, StoreError};
use crate::ports::{Notifier, Timer, Wake};
use crate::tx::Failure;
use crate::world::{Db, World};

use job::{NotOwned, Owned};
use snapshot::{CoveredMachine, Snapshot};

/// The timers that staging claims have too (PA choice §17.34).
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub lease: Span,
    pub heartbeat: Duration,
}

/// What a publication needs of the world.
pub struct Worker<W: World> {
    pub db: Db<W>,
    pub compiler: Arc<W::Compiler>,
    pub metadata: Arc<W::Metadata>,
    pub renderer: Arc<W::Renderer>,
    pub observer: Observer<W>,
    pub notifier: Arc<W::Notifier>,
    pub timer: Arc<W::Timer>,
    /// The Transit key that artifacts are encrypted under, by its name.
    pub artifact_key: KeyName,
    pub settings: Settings,
}

/// Why a pass ended without a release.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Recorded as the operation's failure.
    Refused(Box<Problem>),
    /// Nothing is recorded: the job is another worker's, or is claimed again once its lease
    /// has lapsed.
    Left(&'static str),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Refused(Box::new(problem))
    }
}

impl From<StoreError> for Stop {
    /// A read that failed.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fault | StoreError::Unique(_) | StoreError::Integrity(_) => {
                Problem::internal("The server failed. Nothing was committed.").into()
            }
            StoreError::Deadlock | StoreError::Unavailable | StoreError::CommitUnknown => {
                Self::Left("the database did not answer")
            }
        }
    }
}

impl<W: World> Worker<W> {
    /// Claims and runs jobs until `shutdown` ends. A job that is under way then is left where
    /// it stands: its lease lapses, and the next claim runs it again.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) {
        unless(self.work(), shutdown).await;
    }

    async fn work(&self) {
        loop {
            match job::claim(&self.db, self.settings.lease).await {
                Ok(owned) => self.run_job(&owned).await,
                Err(Failure::Refused(NotOwned::Superseded)) => {
                    tracing::warn!(
                        event = "publish-worker-superseded",
                        "a recovery entry replaced this process's epoch; it publishes nothing more"
                    );
                    // Nothing changes that but a restart.
                    std::future::pending::<()>().await;
                }
                Err(Failure::Refused(NotOwned::Nothing | NotOwned::Lost | NotOwned::Ended)) => {
                    let heartbeat = self.settings.heartbeat;
                    self.notifier.wait(Wake::Publication, heartbeat).await;
                }
                Err(_) => {
                    tracing::warn!(event = "publish-claim-failed", "a job claim failed");
                    self.timer.sleep(self.settings.heartbeat).await;
                }
            }
        }
    }

    /// Runs one claimed job to its end, under heartbeats. A worker that lost its job stops
    /// where it stands and records nothing.
    pub async fn run_job(&self, owned: &Owned) {
        let operation = owned.operation;
        let ended = unless(self.pass(owned), self.heartbeats(owned)).await;
        let problem = match ended {
            None => {
                tracing::warn!(event = "publication-lost", %operation, "the lease was lost");
                return;
            }
            Some(Ok(release)) => {
                tracing::info!(event = "published", %operation, %release, "a release was published");
                return;
            }
            Some(Err(Stop::Left(why))) => {
                tracing::warn!(event = "publication-left", %operation, why, "a publication was left");
                return;
            }
            Some(Err(Stop::Refused(problem))) => *problem,
        };
        tracing::info!(event = "publication-failed", %operation, code = %problem.code, "a publication failed");
        if let Err(failure) = job::fail(&self.db, owned, &problem).await {
            let lost = matches!(failure, Failure::Refused(_));
            tracing::warn!(
                event = "publication-failure-unrecorded",
                %operation,
                lost,
                "a publication's failure could not be recorded"
            );
        }
    }

    async fn heartbeats(&self, owned: &Owned) {
        loop {
            self.timer.sleep(self.settings.heartbeat).await;
            match job::extend(&self.db, owned, self.settings.lease).await {
                Ok(()) => {}
                // A heartbeat that waited for T3's locks can be answered before T3's COMMIT is.
                Err(Failure::Refused(NotOwned::Ended)) => std::future::pending().await,
                Err(Failure::Refused(_)) => return,
                Err(_) => {
                    let operation = owned.operation;
                    tracing::warn!(event = "publication-heartbeat-failed", %operation, "a heartbeat failed");
                }
            }
        }
    }

    /// PA §6.1's steps, in order.
    async fn pass(&self, owned: &Owned) -> Result<bronzeward_core::id::ReleaseId, Stop> {
        let snapshot = snapshot::take(&self.db, owned).await?;
        let evidence = self.observations(owned, &snapshot).await?;
        let pinned = pins::read(self, &snapshot).await?;
        let compiled = compile::machines(self, &snapshot, &pinned).await?;
        let sealed = seal::machines(self, &compiled).await?;
        let unit = unit::unit(self, owned, &snapshot, &evidence, pinned, compiled, sealed)?;
        commit::t3(self, owned, &snapshot, &evidence, &unit).await
    }

    /// One fresh observation per covered machine, in the machines' order (PA §6.1.1). All of
    /// them are judged before anything is decrypted.
    async fn observations(
        &self,
        owned: &Owned,
        snapshot: &Snapshot,
    ) -> Result<Vec<Observation>, Stop> {
        let machines = snapshot.machines.iter();
        let work = machines.map(|machine| self.observed(owned, snapshot, machine));
        together::in_order(work.collect()).await
    }

    async fn observed(
        &self,
        owned: &Owned,
        snapshot: &Snapshot,
        machine: &CoveredMachine,
    ) -> Result<Observation, Stop> {
        let wanted = Wanted {
            id: self.db.mint(),
            machine: machine.row.id,
            purpose: Purpose::Publication,
            plan: None,
            operation: Some(owned.operation),
            route: None,
            fence: Some(owned.fence.clone()),
            asked: Asked::CONFIGURATION,
        };
        let (observation, _) =
            self.observer
                .observe(&wanted)
                .await
                .map_err(|failure| match failure {
                    Failure::Refused(NotObserved::NoMachine) => {
                        Problem::internal("A covered machine is not there.").into()
                    }
                    Failure::Refused(NotObserved::Superseded | NotObserved::NotOwner) => {
                        Stop::Left("the job is another worker's")
                    }
                    failure => stop(&failure),
                })?;
        let identity = identity(&machine.row);
        let contract = snapshot.contract;
        publication_reading(&self.db.rules(), &identity, contract, &observation.values)
            .map_err(|refused| refusal::evidence(&observation, refused))?;
        Ok(observation)
    }

    /// The database's time now, for what is classified next.
    pub(crate) async fn now(&self) -> Result<DbTime, Stop> {
        Ok(self.db.store().clock().await?)
    }
}

/// A transaction of the job that ended without its effect.
pub(crate) fn stop<R>(failure: &Failure<R>) -> Stop {
    match failure {
        Failure::Unavailable => Stop::Left("the database was lost"),
        Failure::Unknown => Stop::Left("a commit's outcome is unknown"),
        Failure::Deadlock
        | Failure::Refused(_)
        | Failure::Unique(_)
        | Failure::Integrity(_)
        | Failure::Fault => crate::request::request_problem(failure).into(),
    }
}

pub(crate) fn identity(machine: &crate::rows::MachineRow) -> MachineIdentity {
    MachineIdentity {
        key: machine.key.clone(),
        talos_cluster: machine.talos_cluster.clone(),
    }
}

pub(crate) const fn mode(platform: Platform) -> Mode {
    match platform {
        Platform::Metal => Mode::Metal,
        Platform::Container => Mode::Container,
        Platform::Cloud => Mode::Cloud,
    }
}
