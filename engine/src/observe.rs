//! Reads a node and records what it showed (EaR 4.1, PA §3.3, §6.1.1).
//!
//! Publication, dispatch, drift and recovery call it. A read is two transactions with the
//! node between them: the beginning is recorded before anything is dialled, so that a
//! read counts as of its beginning and an interrupted one can be seen. Never in this
//! module: a judgement of what was read, or the mutating client.

use std::sync::Arc;

use bronzeward_core::fence::Fence;
use bronzeward_core::id::{ClusterId, MachineId, ObservationId, OperationId, PlanId};
use bronzeward_core::inventory::Endpoint;
use bronzeward_core::observation::{
    AccessVersion, Observation, Purpose, Read, Started, Unread, Values,
};
use bronzeward_core::principal::{By, Controller};
use bronzeward_core::time::DbTime;
use bronzeward_core::timeline::Data;

use crate::ports::Alert;
use crate::ports::node::{Asked, NodeReader, ReadLimits, TalosAccess};
use crate::ports::provider::ExecutorSecrets;
use crate::ports::store::{LockMode, NewEntry, StoreTx};
use crate::rows::{MachineRow, OperationRow};
use crate::tx::dispatch::{Log, drift};
use crate::tx::{Abort, Failure, Kind, OpenTx, transact};
use crate::world::{Db, World};

/// What an observation is to be made for.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub id: ObservationId,
    pub machine: MachineId,
    pub purpose: Purpose,
    pub plan: Option<PlanId>,
    pub operation: Option<OperationId>,
    /// The route a plan bound; the machine's current endpoint where it is none.
    pub route: Option<Endpoint>,
    /// The ownership under which the observation's own operation is worked on. A publish
    /// job's must be running with a live lease, before the read and after it (PA §6.1.1).
    pub fence: Option<Fence>,
    pub asked: Asked,
}

impl Wanted {
    /// A reading of a machine by its current endpoint, for no plan and no operation.
    pub const fn of_machine(
        id: ObservationId,
        machine: MachineId,
        purpose: Purpose,
        asked: Asked,
    ) -> Self {
        Self {
            id,
            machine,
            purpose,
            plan: None,
            operation: None,
            route: None,
            fence: None,
            asked,
        }
    }
}

/// A cluster's Talos access as one use reads it, with the version that is recorded. It has
/// no Debug.
pub struct Accessed {
    pub access: TalosAccess,
    pub version: AccessVersion,
}

/// A reading that was taken to detect drift.
pub struct Detected {
    pub observation: Observation,
    pub accessed: Option<Accessed>,
    pub alert: Option<Alert>,
}

/// Why an observation was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoMachine,
    /// A recovery entry has replaced this process's epoch.
    Superseded,
    /// The operation is not this worker's any more.
    NotOwner,
}

/// What observing needs: a transaction, the executor's read of the access, and the
/// read-only client.
pub struct Observer<W: World> {
    db: Db<W>,
    executor: Arc<W::Executor>,
    reader: Arc<W::Reader>,
    limits: ReadLimits,
}

impl<W: World> Clone for Observer<W> {
    fn clone(&self) -> Self {
        Self {
            db: self.db.clone(),
            executor: Arc::clone(&self.executor),
            reader: Arc::clone(&self.reader),
            limits: self.limits,
        }
    }
}

impl<W: World> Observer<W> {
    pub fn new(
        db: Db<W>,
        executor: Arc<W::Executor>,
        reader: Arc<W::Reader>,
        limits: ReadLimits,
    ) -> Self {
        Self {
            db,
            executor,
            reader,
            limits,
        }
    }

    /// The whole of it: begin, read the access, read the node, record. The access is given
    /// back for the attempt that may be made on this evidence (PA §3.3), where it was read.
    pub async fn observe(
        &self,
        wanted: &Wanted,
    ) -> Result<(Observation, Option<Accessed>), Failure<Refusal>> {
        let (started, cluster) = self.begin(wanted).await?;
        let (values, accessed) = self.reading(&started, cluster, wanted.asked).await;
        let observation = self
            .complete(started, values, wanted.fence.as_ref())
            .await?;
        Ok((observation, accessed))
    }

    /// The same for a reading that is taken to detect drift (EaR 6.1): the machine's record
    /// is opened, extended or closed by it in the transaction that records it. The alert is
    /// the caller's to raise.
    pub async fn detect(&self, wanted: &Wanted) -> Result<Detected, Failure<Refusal>> {
        let (started, cluster) = self.begin(wanted).await?;
        let (values, accessed) = self.reading(&started, cluster, wanted.asked).await;
        let (observation, alert) = self
            .record_detecting(started, values, wanted.fence.as_ref())
            .await?;
        Ok(Detected {
            observation,
            accessed,
            alert,
        })
    }

    /// Records such a reading and what it makes of the machine's record, in one transaction.
    pub async fn record_detecting(
        &self,
        started: Started,
        values: Values,
        fence: Option<&Fence>,
    ) -> Result<(Observation, Option<Alert>), Failure<Refusal>> {
        let committed = transact(self.db.store(), Kind::Job, async |tx| {
            let (mut open, machine, at) =
                self.admitted(tx, &Admitting::of(&started, fence)).await?;
            let observation = record_completion(&mut open, &machine, &started, &values, at).await?;
            let mut log = Log {
                rows: open.rows(),
                machine: machine.id,
                plan: started.plan,
                by: By::Controller(started.controller.clone()),
                epoch: started.controller.epoch,
                at,
            };
            let alert = drift::observed(&self.db.rules(), &mut log, &machine, &observation).await?;
            open.done((observation, alert))
        })
        .await?;
        Ok(committed.into_inner())
    }

    /// Records that a read begins. The *started* entry's revision is the read's basis.
    pub async fn begin(&self, wanted: &Wanted) -> Result<(Started, ClusterId), Failure<Refusal>> {
        let committed = transact(self.db.store(), Kind::Job, async |tx| {
            let (open, machine, at) = self.admitted(tx, &Admitting::wanted(wanted)).await?;
            self.record_start(open, wanted, &machine, at).await
        })
        .await?;
        Ok(committed.into_inner())
    }

    async fn record_start<T: StoreTx>(
        &self,
        mut open: OpenTx<T>,
        wanted: &Wanted,
        machine: &MachineRow,
        at: DbTime,
    ) -> Result<crate::tx::Ended<T, (Started, ClusterId)>, Abort<Refusal>> {
        let endpoint = wanted.route.unwrap_or(machine.endpoint);
        let controller = self.controller(wanted.fence.as_ref());
        let data = Data::ObservationStarted {
            observation: wanted.id,
            purpose: wanted.purpose,
            endpoint,
            plan: wanted.plan,
            operation: wanted.operation,
        };
        let by = By::Controller(controller.clone());
        let mut entry = NewEntry::of(&data, by, controller.epoch, None, at);
        entry.plan = wanted.plan;
        let basis = open.rows().append_entry(machine.id, &entry).await?;
        let assignment = open.rows().assignment_at(machine.id).await?;
        let publication = wanted.purpose == Purpose::Publication;
        let started = Started {
            id: wanted.id,
            machine: machine.id,
            purpose: wanted.purpose,
            basis,
            started_at: at,
            endpoint,
            publication_generation: controller.generation.filter(|_| publication),
            controller,
            plan: wanted.plan,
            operation: wanted.operation,
            assignment,
            baseline: machine.state.applied.map(|applied| applied.baseline),
        };
        open.rows().insert_observation_start(&started).await?;
        open.done((started, machine.cluster))
    }

    /// Reads the cluster's latest Talos access as the executor. A read that gives nothing
    /// usable gives the values to record instead.
    pub async fn access(&self, cluster: ClusterId) -> Result<Accessed, Box<Values>> {
        let none = || Box::new(Values::none(Unread::TalosAccessUnavailable));
        let read = match self.executor.read_talos_access(cluster).await {
            Ok(read) => read,
            Err(failure) => {
                tracing::warn!(
                    event = "talos-access-unread",
                    %cluster,
                    code = failure.code(),
                    "a cluster's Talos access could not be read"
                );
                return Err(none());
            }
        };
        let version = AccessVersion {
            path: read.version.path,
            version: i64::try_from(read.version.version).map_err(|_| none())?,
            created: read.version.created,
        };
        match self.reader.access(read.talosconfig.expose().as_bytes()) {
            Ok(access) => Ok(Accessed { access, version }),
            // The version was read and is recorded; what it holds opens no node.
            Err(unusable) => {
                tracing::warn!(
                    event = "talos-access-unusable",
                    %cluster,
                    member = unusable.member,
                    rule = unusable.rule,
                    "a cluster's Talos access is no usable talosconfig"
                );
                Err(Box::new(Values {
                    access: Read::Value(version),
                    ..Values::none(Unread::TalosAccessUnavailable)
                }))
            }
        }
    }

    /// The access and the node's values; where the access gives none, what is recorded instead.
    async fn reading(
        &self,
        started: &Started,
        cluster: ClusterId,
        asked: Asked,
    ) -> (Values, Option<Accessed>) {
        match self.access(cluster).await {
            Ok(accessed) => {
                let values = self.read(started, &accessed, asked).await;
                (values, Some(accessed))
            }
            Err(values) => (*values, None),
        }
    }

    /// Dials the endpoint the beginning recorded, over one connection.
    pub async fn read(&self, started: &Started, accessed: &Accessed, asked: Asked) -> Values {
        self.reader
            .observe(&accessed.access, started.endpoint, asked, self.limits)
            .await
            .into_values(accessed.version.clone())
    }

    /// Records what was read, beside its entry.
    pub async fn complete(
        &self,
        started: Started,
        values: Values,
        fence: Option<&Fence>,
    ) -> Result<Observation, Failure<Refusal>> {
        let committed = transact(self.db.store(), Kind::Job, async |tx| {
            let (mut open, machine, at) =
                self.admitted(tx, &Admitting::of(&started, fence)).await?;
            let observation = record_completion(&mut open, &machine, &started, &values, at).await?;
            open.done(observation)
        })
        .await?;
        Ok(committed.into_inner())
    }

    /// The locks and the ownership of both transactions: the epoch, the machine, and the
    /// operation where this worker owns one.
    async fn admitted<T: StoreTx>(
        &self,
        tx: crate::tx::Tx<T, crate::tx::level::Start>,
        admitting: &Admitting<'_>,
    ) -> Result<(OpenTx<T>, MachineRow, DbTime), Abort<Refusal>> {
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        // Whether evidence admits anything is the commitment's and the attempt's to compare:
        // a process of any epoch gathers it, and its refusal names the epoch (EaR 3.2).
        let compared = admitting.purpose == Purpose::Evidence;
        if !compared && !self.db.admits(installation.epoch) {
            return tx.refuse(Refusal::Superseded).await;
        }
        let (tx, row) = tx.lock_machine(admitting.machine, LockMode::Update).await?;
        let Some(row) = row else {
            return tx.refuse(Refusal::NoMachine).await;
        };
        let (Some(fence), Some(operation)) = (admitting.fence, admitting.operation) else {
            let (open, at) = tx.open_at().await?;
            return Ok((open, row.into_row(), at));
        };
        let operations = std::iter::once(operation).collect();
        let (tx, held) = tx.lock_operations(&operations, LockMode::Update).await?;
        let (open, at) = tx.open_at().await?;
        let owned = held
            .first()
            .is_some_and(|held| owns(&self.db.rules(), held, fence, installation.epoch, at));
        if !owned {
            return open.refuse(Refusal::NotOwner).await;
        }
        Ok((open, row.into_row(), at))
    }

    fn controller(&self, fence: Option<&Fence>) -> Controller {
        let process = self.db.process();
        match fence {
            Some(fence) => Controller {
                owner: fence.owner.clone(),
                generation: Some(fence.generation),
                epoch: fence.epoch,
            },
            None => Controller::unowned(process.owner.clone(), process.epoch),
        }
    }
}

/// What admits a reading's transactions: its purpose, its machine, and the operation that its
/// worker owns.
struct Admitting<'a> {
    purpose: Purpose,
    machine: MachineId,
    operation: Option<OperationId>,
    fence: Option<&'a Fence>,
}

impl<'a> Admitting<'a> {
    const fn of(started: &Started, fence: Option<&'a Fence>) -> Self {
        Self {
            purpose: started.purpose,
            machine: started.machine,
            operation: started.operation,
            fence,
        }
    }

    const fn wanted(wanted: &'a Wanted) -> Self {
        Self {
            purpose: wanted.purpose,
            machine: wanted.machine,
            operation: wanted.operation,
            fence: wanted.fence.as_ref(),
        }
    }
}

/// Whether a worker still owns an operation under its row's lock: the fence, and for a job
/// that it runs with a live lease.
pub(crate) fn owns<R: bronzeward_core::rules::Rules>(
    rules: &R,
    operation: &OperationRow,
    token: &Fence,
    current: bronzeward_core::id::EpochId,
    at: DbTime,
) -> bool {
    use bronzeward_core::rules::Rule;
    let Some(own) = &operation.fence else {
        return false;
    };
    let job = operation.draft.is_some();
    if !job {
        return own.admits(rules, token, current).is_ok();
    }
    let running = rules.holds(Rule::FenceState, operation.state == "running");
    let lease = operation.lease_until.unwrap_or(at);
    running && own.admits_live(rules, token, current, lease, at).is_ok()
}

/// Appends a completion's entry and writes its row, in a transaction that holds the machine
/// FOR UPDATE: the part a drift or a completion embeds in its own.
pub(crate) async fn record_completion<T: StoreTx>(
    open: &mut OpenTx<T>,
    machine: &MachineRow,
    started: &Started,
    values: &Values,
    at: DbTime,
) -> Result<Observation, crate::ports::store::StoreError> {
    let data = Data::Observation {
        observation: started.id,
        purpose: started.purpose,
        basis: started.basis,
        access: values.access.clone(),
        unread: unread(values),
    };
    let by = By::Controller(started.controller.clone());
    let mut entry = NewEntry::of(&data, by, started.controller.epoch, None, at);
    entry.plan = started.plan;
    let revision = open.rows().append_entry(machine.id, &entry).await?;
    let observation = Observation {
        started: started.clone(),
        revision,
        at,
        values: values.clone(),
    };
    open.rows().insert_observation(&observation).await?;
    Ok(observation)
}

/// What was not read, by its member.
pub fn unread(values: &Values) -> Vec<(&'static str, Unread)> {
    [
        ("access", values.access.cause()),
        ("identity", values.identity.cause()),
        ("runningVersion", values.running_version.cause()),
        ("configuration", values.configuration.cause()),
        ("health", values.health.cause()),
    ]
    .into_iter()
    .filter_map(|(what, cause)| cause.map(|cause| (what, cause)))
    .collect()
}
