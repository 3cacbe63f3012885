//! The world a workflow runs in: one type per port, and the rules.
//!
//! The server names the real adapters and [`bronzeward_core::rules::Enforced`]; the
//! harness and the simulator name theirs. A workflow is a struct over `W: World` that
//! holds just the ports it may use, so its authority is its field list.

use std::sync::Arc;

use bronzeward_core::attempt::Recorded;
use bronzeward_core::epoch::ProcessEpoch;
use bronzeward_core::fence::Owner;
use bronzeward_core::id::{EpochId, Id};
use bronzeward_core::installation::StartMode;
use bronzeward_core::revision::EtagToken;
use bronzeward_core::rules::Rules;

use crate::ports::node::{NodeReader, NodeWriter};
use crate::ports::provider::{
    CompilerSecrets, DependencyMetadata, ExecutorSecrets, IngestionSecrets,
};
use crate::ports::renderer::Renderer;
use crate::ports::store::Store;
use crate::ports::{AlertSink, Entropy, HumanTokens, Notifier, Tasks, Timer};
use crate::start::Start;
use crate::tx::Committed;

/// A world's transactions and snapshots.
pub type RawTx<W> = <<W as World>::Store as Store>::Tx;
pub type RawSnapshot<W> = <<W as World>::Store as Store>::Snapshot;

/// What the mutating client consumes for its one request: an attempt that its transaction
/// committed. Nothing else makes one (EaR 3.3), so a request without an attempt does not
/// compile:
///
/// ```compile_fail
/// // covers-part: EaR-DIS-2 (by type)
/// # use bronzeward_core::attempt::Recorded;
/// # use bronzeward_engine::world::Permit;
/// fn permit(uncommitted: Recorded) -> Permit { uncommitted.into() }
/// ```
///
/// ```
/// # use bronzeward_core::attempt::Recorded;
/// # use bronzeward_engine::world::Permit;
/// fn recorded(permit: Permit) -> Recorded { permit.into_inner() }
/// ```
pub type Permit = Committed<Recorded>;

/// Names a type per port and the rules.
pub trait World: Send + Sync + 'static {
    type Rules: Rules;
    type Store: Store;
    type Entropy: Entropy;
    type Timer: Timer;
    type Tasks: Tasks;
    type Notifier: Notifier;
    type Alerts: AlertSink;
    type Humans: HumanTokens;
    type Ingestion: IngestionSecrets;
    type Compiler: CompilerSecrets;
    type Executor: ExecutorSecrets;
    type Metadata: DependencyMetadata;
    type Reader: NodeReader;
    type Writer: NodeWriter<Permit = Permit>;
    type Renderer: Renderer + 'static;
}

/// Who this process is to the fences (PA §5.1): its owner string and the epoch it may issue
/// ownership in, which is the one it read at its start until its own recovery entry commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub owner: Owner,
    pub epoch: ProcessEpoch,
}

/// The database half of a world: what transactions are made of, and nothing that leaves
/// the database. Transaction code is given this and no more, so no provider or node call
/// can stand inside one (PA-TX-11).
///
/// It is made of the store, randomness, the rules and who this process is; what an act mints
/// and decides on comes from it:
///
/// ```
/// use bronzeward_core::id::ActId;
/// use bronzeward_engine::world::{Db, World};
///
/// fn an_acts_own<W: World>(db: &Db<W>) -> (ActId, &W::Store) {
///     (db.mint(), db.store())
/// }
/// ```
///
/// A provider is none of it, nor is a node:
///
/// ```compile_fail,E0599
/// use bronzeward_engine::world::{Db, World};
///
/// fn a_providers<W: World>(db: &Db<W>) -> &W::Executor {
///     db.executor()
/// }
/// ```
///
/// ```compile_fail,E0308
/// use std::sync::Arc;
/// use bronzeward_engine::world::{Db, Process, World};
///
/// fn made_of_a_node<W: World>(
///     writer: Arc<W::Writer>,
///     entropy: Arc<W::Entropy>,
///     rules: W::Rules,
///     process: Process,
/// ) -> Db<W> {
///     Db::new(writer, entropy, rules, process)
/// }
/// ```
pub struct Db<W: World> {
    store: Arc<W::Store>,
    entropy: Arc<W::Entropy>,
    rules: W::Rules,
    process: Arc<Process>,
    start: Arc<Start>,
}

impl<W: World> Clone for Db<W> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            entropy: Arc::clone(&self.entropy),
            rules: self.rules,
            process: Arc::clone(&self.process),
            start: Arc::clone(&self.start),
        }
    }
}

impl<W: World> Db<W> {
    pub fn new(
        store: Arc<W::Store>,
        entropy: Arc<W::Entropy>,
        rules: W::Rules,
        process: Process,
    ) -> Self {
        Self {
            store,
            entropy,
            rules,
            process: Arc::new(process),
            start: Arc::default(),
        }
    }

    /// The same of a process started for recovery (PA §12.2). Copies made of the result
    /// share its start: the entry of one is the entry of all.
    #[must_use]
    pub fn for_recovery(self) -> Self {
        Self {
            start: Arc::new(Start::recovery()),
            ..self
        }
    }

    /// How this process was started, and what its recovery entry minted.
    pub fn start_mode(&self) -> StartMode {
        self.start.mode(self.process.epoch.0)
    }

    pub(crate) fn start(&self) -> &Start {
        &self.start
    }

    pub fn store(&self) -> &W::Store {
        &self.store
    }

    pub fn rules(&self) -> W::Rules {
        self.rules
    }

    /// This process as it may act now: the epoch is its entry's once that has committed.
    pub fn process(&self) -> Process {
        Process {
            owner: self.process.owner.clone(),
            epoch: self.epoch(),
        }
    }

    fn epoch(&self) -> ProcessEpoch {
        let read_at_start = self.process.epoch.0;
        self.start.mode(read_at_start).process_epoch(read_at_start)
    }

    /// A fresh identifier.
    pub fn mint<K: bronzeward_core::id::Kind>(&self) -> Id<K> {
        Id::from_bits(self.entropy.bits())
    }

    /// 128 fresh random bits, for a name that core mints.
    pub fn mint_bits(&self) -> [u8; 16] {
        self.entropy.bits().to_be_bytes()
    }

    /// A fresh ETag token.
    pub fn mint_token(&self) -> EtagToken {
        EtagToken::from_bits(self.entropy.bits())
    }

    /// 256 random bits, for a token's secret.
    pub fn secret(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let (low, high) = bytes.split_at_mut(16);
        low.copy_from_slice(&self.entropy.bits().to_le_bytes());
        high.copy_from_slice(&self.entropy.bits().to_le_bytes());
        bytes
    }

    /// Whether this process may issue ownership in `current` (PA §5.1).
    pub fn admits(&self, current: EpochId) -> bool {
        self.epoch().admits(&self.rules, current).is_ok()
    }
}
