//! A world whose only inhabited ports are the database and randomness: what a workflow's
//! transactions run in here. A port that nobody can make cannot be called.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bronzeward_core::dependency::{Answer, KvFacts, TransitFacts};
use bronzeward_core::document::{Node, Stream};
use bronzeward_core::epoch::ProcessEpoch;
use bronzeward_core::fence::Owner;
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::ClusterId;
use bronzeward_core::idempotency::DigestKey;
use bronzeward_core::inventory::Endpoint;
use bronzeward_core::rules::Rules;
use bronzeward_core::secret::{Plaintext, Value};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::node::{
    ApplyAnswer, Asked, NodeObservation, NodeReader, NodeWriter, NotUsable, ReadLimits, TalosAccess,
};
use bronzeward_engine::ports::provider::{
    self, Ciphertext, CompilerSecrets, Creation, DependencyMetadata, ExecutorSecrets, Failure,
    Generation, IngestionSecrets, KeyedDigest,
};
use bronzeward_engine::ports::renderer::{
    EmbeddedFormat, Machinery, PlatformMode, RenderError, Renderer, SecretField, SourceRole,
    Validation,
};
use bronzeward_engine::ports::{
    Alert, AlertSink, Entropy, HumanClaims, HumanTokenRefusal, HumanTokens, Notifier, Tasks, Timer,
    Wake,
};
use bronzeward_engine::world::{Db, Process, World};

use super::support::epoch;
use crate::session::Pool;
use crate::store::PgStore;

/// The database alone, under a rule set.
pub struct Stored<R>(PhantomData<fn() -> R>);

impl<R: Rules> World for Stored<R> {
    type Rules = R;
    type Store = PgStore;
    type Entropy = Counting;
    type Timer = Nobody;
    type Tasks = Nobody;
    type Notifier = Nobody;
    type Alerts = Nobody;
    type Humans = Nobody;
    type Ingestion = Nobody;
    type Compiler = Nobody;
    type Executor = Nobody;
    type Metadata = Nobody;
    type Reader = Nobody;
    type Writer = Nobody;
    type Renderer = Nobody;
}

/// The database of a process by name.
pub fn process<R: Rules>(pool: &Pool, rules: R, name: &str) -> Db<Stored<R>> {
    let owner = Owner::new(name, 1, 1).expect("an owner");
    let process = Process {
        owner,
        epoch: ProcessEpoch(epoch()),
    };
    let store = Arc::new(PgStore::new(pool.clone()));
    Db::new(store, Arc::new(Counting), rules, process)
}

/// Bits that never repeat within a test's process.
#[derive(Debug, Default)]
pub struct Counting;

impl Entropy for Counting {
    fn bits(&self) -> u128 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64
    }
}

/// A part that is not there.
pub enum Nobody {}

impl Timer for Nobody {
    async fn sleep(&self, _: Duration) {
        match *self {}
    }
}

impl Tasks for Nobody {
    fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) {
        match *self {}
    }
}

impl Notifier for Nobody {
    fn wake(&self, _: Wake) {
        match *self {}
    }

    async fn wait(&self, _: Wake, _: Duration) {
        match *self {}
    }
}

impl AlertSink for Nobody {
    fn raise(&self, _: Alert) {
        match *self {}
    }
}

impl HumanTokens for Nobody {
    async fn verify(&self, _: &str, _: DbTime) -> Result<HumanClaims, HumanTokenRefusal> {
        match *self {}
    }
}

impl IngestionSecrets for Nobody {
    async fn read_talos_access(&self, _: ClusterId) -> Result<provider::TalosAccess, Failure> {
        match *self {}
    }

    async fn create_generation(&self, _: &GenerationPath, _: &Value) -> Creation {
        match *self {}
    }

    async fn encrypt_baseline(&self, _: &Plaintext) -> Result<Ciphertext, Failure> {
        match *self {}
    }

    async fn encrypt_staging(&self, _: &Plaintext) -> Result<Ciphertext, Failure> {
        match *self {}
    }

    async fn decrypt_staging(&self, _: &Ciphertext) -> Result<Plaintext, Failure> {
        match *self {}
    }

    async fn keyed_digests(&self, _: &[Plaintext]) -> Result<Vec<KeyedDigest>, Failure> {
        match *self {}
    }

    async fn recompute_digest(&self, _: &DigestKey, _: &Plaintext) -> Result<KeyedDigest, Failure> {
        match *self {}
    }
}

impl CompilerSecrets for Nobody {
    async fn read_generation(&self, _: &GenerationPath, _: u64) -> Result<Generation, Failure> {
        match *self {}
    }

    async fn encrypt_artifact(&self, _: &Plaintext) -> Result<Ciphertext, Failure> {
        match *self {}
    }
}

impl ExecutorSecrets for Nobody {
    async fn read_talos_access(&self, _: ClusterId) -> Result<provider::TalosAccess, Failure> {
        match *self {}
    }

    async fn decrypt_artifact(&self, _: &Ciphertext, _: u64) -> Result<Plaintext, Failure> {
        match *self {}
    }
}

impl DependencyMetadata for Nobody {
    async fn kv_metadata(&self, _: &str) -> Answer<KvFacts> {
        match *self {}
    }

    async fn transit_key(&self, _: &str) -> Answer<TransitFacts> {
        match *self {}
    }
}

impl NodeReader for Nobody {
    fn access(&self, _: &[u8]) -> Result<TalosAccess, NotUsable> {
        match *self {}
    }

    async fn observe(
        &self,
        _: &TalosAccess,
        _: Endpoint,
        _: Asked,
        _: ReadLimits,
    ) -> NodeObservation {
        match *self {}
    }
}

impl NodeWriter for Nobody {
    type Permit = bronzeward_engine::world::Permit;

    async fn apply(
        &self,
        _: Self::Permit,
        _: &TalosAccess,
        _: Endpoint,
        _: &[u8],
        _: Duration,
    ) -> ApplyAnswer {
        match *self {}
    }
}

impl Renderer for Nobody {
    async fn describe(&self) -> Result<Machinery, RenderError> {
        match *self {}
    }

    async fn parse(&self, _: &Plaintext) -> Result<Stream, RenderError> {
        match *self {}
    }

    async fn encode(&self, _: &Stream) -> Result<Plaintext, RenderError> {
        match *self {}
    }

    async fn parse_embedded(&self, _: EmbeddedFormat, _: &Plaintext) -> Result<Node, RenderError> {
        match *self {}
    }

    async fn encode_embedded(&self, _: EmbeddedFormat, _: &Node) -> Result<Plaintext, RenderError> {
        match *self {}
    }

    async fn secret_fields(
        &self,
        _: SourceRole,
        _: &Plaintext,
    ) -> Result<Vec<SecretField>, RenderError> {
        match *self {}
    }

    async fn check(&self, _: SourceRole, _: &Plaintext) -> Result<(), RenderError> {
        match *self {}
    }

    async fn compose(&self, _: &Plaintext, _: &[Plaintext]) -> Result<Plaintext, RenderError> {
        match *self {}
    }

    async fn validate(&self, _: &Plaintext, _: PlatformMode) -> Result<Validation, RenderError> {
        match *self {}
    }
}
