//! A server process: composed as the real one is, of the same workflows over simulated ports.
//!
//! It reads the installation at its start, keeps that epoch, and runs its loops until it is
//! killed. Never in this module: a workflow of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bronzeward_core::claim::Timers;
use bronzeward_core::epoch::ProcessEpoch;
use bronzeward_core::fence::Owner;
use bronzeward_core::id::{EpochId, RequestId, TokenId};
use bronzeward_core::installation::StartMode;
use bronzeward_core::plan::{PlanDefaults, PlanLimits};
use bronzeward_core::principal::{Role, Roles};
use bronzeward_core::revision::Etag;
use bronzeward_core::time::Span;
use bronzeward_engine::authenticate::{Access, Denied};
use bronzeward_engine::dispatch::{Controller, Parts, Settings as Dispatching};
use bronzeward_engine::ingest::{Ingester, Settings as Ingesting};
use bronzeward_engine::observe::Observer;
use bronzeward_engine::ports::node::ReadLimits;
use bronzeward_engine::ports::provider::KeyName;
use bronzeward_engine::ports::store::{RequestReads, Snapshot, Store};
use bronzeward_engine::ports::{Entropy, Timer};
use bronzeward_engine::publish::{Settings as Publishing, Worker};
use bronzeward_engine::recover::{Eyes, Recoverer};
use bronzeward_engine::world::{Db, Process};

use crate::ports::provider::{Key, SimOrphans};
use crate::ports::renderer::SimRenderer;
use crate::ports::runtime::{ISSUER, SimBells, SimHumans};
use crate::sched::ProcessId;
use crate::sim::Sim;
use crate::world::{Model, Ports};

/// The deployment's lengths: shorter than a real one's by the same measure, so that leases
/// lapse and floors pass within a seed's steps.
pub const LEASE: Span = Span::seconds(10);
pub const CLAIM_LEASE: Span = Span::seconds(10);
pub const CLAIM_EXPIRY: Span = Span::seconds(60);
pub const HEARTBEAT: Duration = Duration::from_secs(3);
pub const SETTLE_FLOOR: Span = Span::seconds(6);
pub const LIMITS: ReadLimits = ReadLimits {
    connect: Duration::from_secs(2),
    call: Duration::from_secs(4),
};
pub const PLANS: PlanLimits = PlanLimits {
    defaults: PlanDefaults {
        expires_in: 240,
        max_observation_age: 20,
        check_validity: 20,
        transport_deadline: 5,
        verification_deadline: 20,
        max_attempts: 3,
    },
    max_transport: 8,
};

/// What a request is served with.
pub struct Server {
    pub id: ProcessId,
    pub db: Db<Model>,
    pub humans: Arc<SimHumans>,
    pub access: Access,
    pub ingester: Ingester<Model>,
    pub observer: Observer<Model>,
    pub recoverer: Recoverer<Model>,
    /// The report is a tool of the operator's; the world runs it beside a server.
    pub orphans: Arc<SimOrphans>,
    pub renderer: Arc<SimRenderer>,
    pub notifier: Arc<SimBells>,
}

/// The servers that are up, as a client finds them.
#[derive(Default)]
pub struct House {
    pub up: BTreeMap<ProcessId, Arc<Server>>,
    /// The owner string of every process there was.
    pub owners: BTreeMap<ProcessId, Owner>,
    /// Who asked for each request, and what they expected, for the judges.
    pub asked: BTreeMap<RequestId, Asking>,
    /// The key of everybody's latest request.
    pub keys: BTreeMap<&'static str, bronzeward_core::idempotency::IdempotencyKey>,
    /// What a schedule written by hand has the next request carry.
    pub insisted: Insisted,
    /// The revision that each request named, for the judges.
    pub expected: BTreeMap<RequestId, Etag>,
    /// The epoch that each process read at its start, for the judges.
    pub began_in: BTreeMap<ProcessId, EpochId>,
    /// Whom the deployment denies; a process denies whom it was started with.
    pub denying: BTreeSet<&'static str>,
    pub denied: BTreeMap<ProcessId, BTreeSet<&'static str>>,
    pub last: u32,
    /// The processes that were started and not killed, whether they are up yet or not.
    pub alive: BTreeSet<ProcessId>,
    /// Those that were started for recovery.
    pub recovering: BTreeSet<ProcessId>,
    /// The operator keeps servers stopped: what is killed is not started again.
    pub closed: bool,
    /// What the operator asks of the machines that servers run on.
    pub orders: Vec<Order>,
}

/// Who asked for a request.
#[derive(Clone, Debug)]
pub struct Asking {
    pub name: &'static str,
    pub roles: Roles,
    /// The epoch that the request expected.
    pub epoch: Option<EpochId>,
    /// The automation's token that it presented.
    pub token: Option<TokenId>,
    pub at: bronzeward_core::time::DbTime,
}

/// A key and an expected epoch, each once.
#[derive(Clone, Debug, Default)]
pub struct Insisted {
    pub key: Option<bronzeward_core::idempotency::IdempotencyKey>,
    pub expected: Option<EpochId>,
}

/// What an operator does with a process.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Start { id: ProcessId, recovery: bool },
    Kill(ProcessId),
    Pause(ProcessId, bronzeward_core::time::DbTime),
}

impl House {
    pub fn next_process(&mut self) -> ProcessId {
        self.last += 1;
        ProcessId(self.last)
    }
}

fn access(denied: &BTreeSet<&'static str>) -> Access {
    let human = |name: &&str| Denied::Human {
        issuer: ISSUER.to_owned(),
        subject: (*name).to_owned(),
    };
    let service = |name: &&str| Denied::Service {
        identity: None,
        name: Some((*name).to_owned()),
    };
    let group = |role: Role| (role, BTreeSet::from([role.as_str().to_owned()]));
    let roles = [
        Role::Viewer,
        Role::Author,
        Role::Publisher,
        Role::Approver,
        Role::RecoveryAdmin,
    ];
    Access {
        denied: denied
            .iter()
            .flat_map(|name| [human(name), service(name)])
            .collect(),
        roles: roles.into_iter().map(group).collect(),
    }
}

/// The loops that a server runs beside the requests it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loops {
    pub sweeps: bool,
    pub publications: bool,
    pub dispatch: bool,
}

impl Loops {
    pub const ALL: Loops = Loops {
        sweeps: true,
        publications: true,
        dispatch: true,
    };
    /// It answers requests and does what it is told.
    pub const NONE: Loops = Loops {
        sweeps: false,
        publications: false,
        dispatch: false,
    };
}

/// Starts a server: a task of its process.
pub async fn boot(sim: Arc<Sim>, id: ProcessId, recovery: bool) {
    bring_up(sim, id, recovery, Loops::ALL).await;
}

/// The same with some of its loops.
pub async fn bring_up(sim: Arc<Sim>, id: ProcessId, recovery: bool, loops: Loops) {
    let ports = Ports::of(&sim, id);
    let epoch = loop {
        let read = async {
            let mut snapshot = ports.store.snapshot().await?;
            let installation = snapshot.installation().await;
            snapshot.close().await;
            installation
        };
        match read.await {
            Ok(installation) => break installation.epoch,
            Err(_) => ports.timer.sleep(Duration::from_secs(1)).await,
        }
    };
    let owner = Owner::new("model", id.0, ports.entropy.bits()).expect("a legal owner");
    let (rules, denied) = {
        let mut state = sim.state();
        let denied = state.house.denying.clone();
        state.house.owners.insert(id, owner.clone());
        state.house.began_in.insert(id, epoch);
        state.house.denied.insert(id, denied.clone());
        (state.rules, denied)
    };
    let process = Process {
        owner,
        epoch: ProcessEpoch(epoch),
    };
    let (store, entropy) = (Arc::clone(&ports.store), Arc::clone(&ports.entropy));
    let db: Db<Model> = Db::new(store, entropy, rules, process);
    let db = match recovery {
        true => db.for_recovery(),
        false => db,
    };
    let server = Arc::new(compose(id, &ports, db, &denied));
    run(&sim, &ports, &server, loops);
    let mut state = sim.state();
    state.trace(id, "is up");
    state.house.up.insert(id, server);
}

fn compose(id: ProcessId, ports: &Ports, db: Db<Model>, denied: &BTreeSet<&'static str>) -> Server {
    let timers = Timers::ordered(Span::from(HEARTBEAT), CLAIM_LEASE, CLAIM_EXPIRY);
    let (executor, reader) = (Arc::clone(&ports.executor), Arc::clone(&ports.reader));
    let observer = Observer::new(db.clone(), executor, reader, LIMITS);
    Server {
        id,
        humans: Arc::clone(&ports.humans),
        access: access(denied),
        ingester: Ingester {
            db: db.clone(),
            ingestion: Arc::clone(&ports.ingestion),
            reader: Arc::clone(&ports.reader),
            renderer: Arc::clone(&ports.renderer),
            timer: Arc::clone(&ports.timer),
            tasks: Arc::clone(&ports.tasks),
            settings: Ingesting {
                timers: timers.expect("timers in their order"),
                limits: LIMITS,
            },
        },
        recoverer: Recoverer {
            db: db.clone(),
            eyes: Some(Eyes {
                observer: observer.clone(),
                executor: Arc::clone(&ports.executor),
                metadata: Arc::clone(&ports.metadata),
                alerts: Arc::clone(&ports.alerts),
            }),
        },
        orphans: Arc::clone(&ports.orphans),
        observer,
        renderer: Arc::clone(&ports.renderer),
        notifier: Arc::clone(&ports.notifier),
        db,
    }
}

/// The loops of a server.
fn run(sim: &Arc<Sim>, ports: &Ports, server: &Server, loops: Loops) {
    let id = server.id;
    let key = KeyName::parse(Key::Artifact.name()).expect("a legal key name");
    let worker = Worker::<Model> {
        db: server.db.clone(),
        compiler: Arc::clone(&ports.compiler),
        metadata: Arc::clone(&ports.metadata),
        renderer: Arc::clone(&ports.renderer),
        observer: server.observer.clone(),
        notifier: Arc::clone(&ports.notifier),
        timer: Arc::clone(&ports.timer),
        artifact_key: key,
        settings: Publishing {
            lease: LEASE,
            heartbeat: HEARTBEAT,
        },
    };
    let parts = Parts::<Model> {
        db: server.db.clone(),
        observer: server.observer.clone(),
        executor: Arc::clone(&ports.executor),
        metadata: Arc::clone(&ports.metadata),
        writer: Arc::clone(&ports.writer),
        timer: Arc::clone(&ports.timer),
        tasks: Arc::clone(&ports.tasks),
        notifier: Arc::clone(&ports.notifier),
        alerts: Arc::clone(&ports.alerts),
    };
    let settings = Dispatching {
        interval: Duration::from_secs(2),
        longest_pause: Duration::from_secs(16),
        lease: LEASE,
        recovery_interval: Duration::from_secs(4),
        drift_interval: Duration::from_secs(10),
        settling: Duration::from_millis(500),
    };
    let controller = Arc::new(Controller::new(parts, settings));
    let ingester = server.ingester.clone();
    if loops.sweeps {
        spawn(sim, id, async move {
            ingester.sweeps(Duration::from_secs(12)).await;
        });
    }
    // A recovery start runs no job worker; its controller only observes (PA §12.2).
    if loops.publications && server.db.start_mode() == StartMode::Normal {
        spawn(sim, id, async move {
            worker.run(std::future::pending()).await;
        });
    }
    if loops.dispatch {
        spawn(sim, id, async move {
            controller.run(std::future::pending()).await;
        });
    }
}

fn spawn(sim: &Arc<Sim>, process: ProcessId, work: impl Future<Output = ()> + Send + 'static) {
    sim.state().sched.spawned.push(crate::sched::Spawned {
        process,
        work: Box::pin(work),
    });
}
