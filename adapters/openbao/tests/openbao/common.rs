//! A server, the five clients on it, and names of a test's own.

use std::path::Path;
use std::time::Duration;

use bronzeward_core::generation::{GenerationPath, ValueId};
use bronzeward_core::id::{ClusterId, IngestionId};
use bronzeward_core::secret::{Plaintext, Scalar, Value};
use bronzeward_engine::ports::provider::{Creation, IngestionSecrets, KeyName};
use bronzeward_harness::openbao::{Identity, OpenBao, random_name};
use bronzeward_openbao::{
    Compiler, Endpoint, Executor, Ingestion, IngestionKeys, Metadata, OrphanReport, Settings,
};

/// The run's server, which a test neither seals nor stops.
pub fn shared() -> &'static OpenBao {
    bronzeward_harness::shared().openbao().unwrap()
}

pub struct Clients {
    pub ingestion: Ingestion,
    pub compiler: Compiler,
    pub executor: Executor,
    pub metadata: Metadata,
    pub orphans: OrphanReport,
}

impl Clients {
    pub fn of(bao: &OpenBao) -> Clients {
        let patient = Duration::from_secs(20);
        Clients::with(bao.address(), patient, |identity| bao.token_file(identity))
    }

    /// Clients whose token files are chosen by identity.
    pub fn with<P: AsRef<Path>>(
        address: &str,
        timeout: Duration,
        file: impl Fn(Identity) -> P,
    ) -> Clients {
        let settings = Settings {
            timeout,
            ..Settings::new(address)
        };
        let endpoint = Endpoint::new(&settings).unwrap();
        let file = |identity| file(identity).as_ref().to_owned();
        Clients {
            ingestion: Ingestion::new(&endpoint, file(Identity::Ingestion), ingestion_keys()),
            compiler: Compiler::new(&endpoint, file(Identity::Compiler), key("bw-artifact")),
            executor: Executor::new(&endpoint, file(Identity::Executor), key("bw-artifact")),
            metadata: Metadata::new(&endpoint, file(Identity::Metadata)),
            orphans: OrphanReport::new(&endpoint, file(Identity::OrphanReport)),
        }
    }
}

pub fn ingestion_keys() -> IngestionKeys {
    IngestionKeys {
        baseline: key("bw-baseline"),
        staging: key("bw-staging"),
        digest: key("bw-digest"),
    }
}

/// An ingestion client under another token file, for what a control grants.
pub fn ingestion_under(bao: &OpenBao, token_file: impl AsRef<Path>) -> Ingestion {
    Clients::with(bao.address(), Duration::from_secs(20), |_| {
        token_file.as_ref().to_owned()
    })
    .ingestion
}

pub fn key(name: &str) -> KeyName {
    KeyName::parse(name).unwrap()
}

pub fn bits() -> u128 {
    u128::from_str_radix(&random_name(), 16).unwrap()
}

pub fn cluster() -> ClusterId {
    ClusterId::from_bits(bits())
}

pub fn path_in(cluster: ClusterId) -> GenerationPath {
    GenerationPath {
        cluster,
        claim: IngestionId::from_bits(bits()),
        value: ValueId::from_bits(bits()),
    }
}

pub fn text(text: &str) -> Plaintext {
    Plaintext::new(text.to_owned())
}

pub fn string(text: &str) -> Value {
    Value::Scalar(Scalar::string(text))
}

/// A generation that exists, with its creation time.
pub async fn created(ingestion: &Ingestion, value: &Value) -> (GenerationPath, String) {
    let path = path_in(cluster());
    match ingestion.create_generation(&path, value).await {
        Creation::Created { created } => (path, created),
        other => panic!("not created: {other:?}"),
    }
}
