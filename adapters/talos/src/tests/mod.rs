//! The clients against the real node fixture. One place starts nodes and names callers.

mod access;
mod calls;
mod classes;
mod reader;
mod wire;
mod writer;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use bronzeward_core::inventory::Endpoint;
use bronzeward_engine::ports::node::{
    ApplyAnswer, Asked, NodeObservation, NodeReader as _, NodeWriter as _, ReadLimits, TalosAccess,
};
use bronzeward_harness::node::{Options, TalosNode};
use bronzeward_harness::run_dir::RunDir;

use crate::{MutatingTalos, ReadOnlyTalos};

const PATIENT: ReadLimits = ReadLimits {
    connect: Duration::from_secs(20),
    call: Duration::from_secs(20),
};

/// For the tests in which nothing answers: the wait is part of the test.
const IMPATIENT: ReadLimits = ReadLimits {
    connect: Duration::from_millis(1_500),
    call: Duration::from_millis(700),
};

const EVERYTHING: Asked = Asked {
    configuration: true,
    health: true,
};

const DEADLINE: Duration = Duration::from_secs(20);

/// The secrets of the one cluster that these tests' nodes belong to: making them is slow.
fn shared_secrets() -> PathBuf {
    static DIR: OnceLock<RunDir> = OnceLock::new();
    DIR.get_or_init(|| RunDir::new("cluster").unwrap())
        .path()
        .join("secrets.yaml")
}

fn of_the_shared_cluster() -> Options {
    Options {
        secrets: Some(shared_secrets()),
        ..Options::default()
    }
}

struct Machine {
    node: TalosNode,
    endpoint: Endpoint,
}

impl Machine {
    fn start(options: &Options) -> Self {
        let node = TalosNode::start(options).unwrap();
        let endpoint = Endpoint::parse(&node.ready().endpoint).unwrap();
        Self { node, endpoint }
    }

    fn worker() -> Self {
        Self::start(&of_the_shared_cluster())
    }

    fn access(&self, caller: &str) -> TalosAccess {
        let document = self.node.talosconfig(caller).unwrap();
        ReadOnlyTalos.access(&document).unwrap()
    }

    async fn observe(&self) -> NodeObservation {
        self.observe_as("admin", PATIENT).await
    }

    async fn observe_as(&self, caller: &str, limits: ReadLimits) -> NodeObservation {
        ReadOnlyTalos
            .observe(&self.access(caller), self.endpoint, EVERYTHING, limits)
            .await
    }

    /// The configuration in force, as text.
    async fn text(&self) -> String {
        let configuration = self.observe().await.configuration.unwrap();
        let bytes = configuration.ok().unwrap().into_bytes();
        String::from_utf8(bytes).unwrap()
    }

    async fn apply(&self, configuration: &str) -> ApplyAnswer {
        self.apply_as("admin", configuration, DEADLINE).await
    }

    async fn apply_as(&self, caller: &str, configuration: &str, deadline: Duration) -> ApplyAnswer {
        MutatingTalos::new()
            .apply(
                Permit,
                &self.access(caller),
                self.endpoint,
                configuration.as_bytes(),
                deadline,
            )
            .await
    }

    async fn count(&self, counter: &str) -> u64 {
        self.node.control().counters().await.unwrap().of(counter)
    }
}

/// Stands for the engine's proof of a committed attempt.
struct Permit;

/// The configuration with a line added that changes nothing but its bytes.
fn commented(text: &str, comment: &str) -> String {
    format!("{text}# {comment}\n")
}

/// The configuration with lines added at the top of `machine`.
fn in_machine(text: &str, lines: &str) -> String {
    let changed = text.replacen("\nmachine:\n", &format!("\nmachine:\n{lines}"), 1);
    assert_ne!(changed, text, "the configuration has a machine section");
    changed
}
