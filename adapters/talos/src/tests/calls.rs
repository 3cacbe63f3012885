//! The closed lists of calls: by what is generated, by what the connection lets through,
//! and by what the node counted.

use prost::Message as _;
use prost_types::FileDescriptorSet;

use super::{EVERYTHING, Machine, PATIENT};
use crate::connection::{Connection, Outcome, READ_CALLS, WRITE_CALLS};
use crate::dial;
use crate::wire::write::machine::apply_configuration_request::Mode;
use crate::wire::write::machine::machine_service_client::MachineServiceClient;
use crate::wire::write::machine::{ApplyConfigurationRequest, ApplyConfigurationResponse};
use bronzeward_engine::ports::node::NodeReader as _;

const READ: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/read/descriptors.bin"));
const WRITE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/write/descriptors.bin"));

/// Every call that a set of sources generates a client for.
fn generated(sources: &FileDescriptorSet) -> Vec<String> {
    let mut calls = Vec::new();
    for file in &sources.file {
        for service in &file.service {
            for method in &service.method {
                let (package, service) = (file.package(), service.name());
                calls.push(format!("/{package}.{service}/{}", method.name()));
            }
        }
    }
    calls.sort();
    calls
}

fn sorted(calls: &[&str]) -> Vec<String> {
    let mut calls: Vec<String> = calls.iter().map(|call| (*call).to_owned()).collect();
    calls.sort();
    calls
}

/// What a list of observed calls holds beside the read-only ones.
fn beyond_reading<'a>(methods: &[&'a str]) -> Vec<&'a str> {
    let mut beyond = methods.to_vec();
    beyond.retain(|method| !READ_CALLS.contains(method));
    beyond
}

// covers: PA-TAL-6
#[tokio::test]
async fn the_read_only_client_has_its_two_calls_and_an_added_one_is_noticed() {
    // By type: the sources of its generated clients.
    let mut sources = FileDescriptorSet::decode(READ).unwrap();
    assert_eq!(generated(&sources), sorted(READ_CALLS));
    // Control: the mutating call added to them.
    let write = FileDescriptorSet::decode(WRITE).unwrap();
    sources.file.extend(write.file);
    assert_ne!(generated(&sources), sorted(READ_CALLS));

    // By test: a whole observation, as the node counted it.
    let machine = Machine::worker();
    machine.observe().await;
    let counters = machine.node.control().counters().await.unwrap();
    assert_eq!(beyond_reading(&counters.methods()), [""; 0]);
    assert_eq!(counters.methods().len(), READ_CALLS.len());
    assert_eq!(counters.of("routing-metadata"), 0);
    assert_eq!(counters.of("forbidden"), 0);

    // Control: a mutating call over the read-only connection does not leave it, and over
    // one without the list the node counts it.
    let text = machine.text().await;
    refused_here(&machine, &text).await;
    let counters = machine.node.control().counters().await.unwrap();
    assert_eq!(beyond_reading(&counters.methods()), [""; 0]);
    let sent = mutate(&machine, &text, WRITE_CALLS, Mode::NoReboot).await;
    assert!(matches!(sent, Outcome::Answer(_)));
    let counters = machine.node.control().counters().await.unwrap();
    assert_eq!(beyond_reading(&counters.methods()), [WRITE_CALLS[0]]);
}

async fn refused_here(machine: &Machine, text: &str) {
    let refused = mutate(machine, text, READ_CALLS, Mode::NoReboot).await;
    assert!(matches!(refused, Outcome::Ours(_)));
}

#[test]
fn the_mutating_client_has_one_call() {
    let sources = FileDescriptorSet::decode(WRITE).unwrap();
    assert_eq!(generated(&sources), sorted(WRITE_CALLS));
}

async fn mutate(
    machine: &Machine,
    text: &str,
    allowed: &'static [&'static str],
    mode: Mode,
) -> Outcome<ApplyConfigurationResponse> {
    let stream = dial::dial(&machine.access("admin"), machine.endpoint).await;
    let opened = Connection::open(stream.unwrap(), machine.endpoint, allowed).await;
    let connection = opened.unwrap();
    let mut client = MachineServiceClient::with_origin(connection.clone(), connection.origin());
    let request = ApplyConfigurationRequest {
        data: text.as_bytes().to_vec(),
        mode: mode.into(),
    };
    let result = client.apply_configuration(request).await;
    connection.outcome(result)
}

// T1, T2: what the mutating client's fixed mode keeps from happening.
#[tokio::test]
async fn a_request_whose_mode_is_left_at_zero_or_automatic_reboots_the_node() {
    for mode in [Mode::Reboot, Mode::Auto] {
        let machine = Machine::worker();
        let text = machine.text().await;
        let wanted = super::in_machine(&text, "    env: {A: b}\n");
        let answer = mutate(&machine, &wanted, WRITE_CALLS, mode).await;
        assert!(matches!(answer, Outcome::Answer(_)));
        let control = machine.node.control();
        control.wait_for("reboots", 1).await.unwrap();
        assert_eq!(machine.count("forbidden").await, 1);
    }
    assert!(ApplyConfigurationRequest::default().mode() == Mode::Reboot);
}

// covers-part: PA-TAL-6 (no node metadata; its control sends some)
#[tokio::test]
async fn the_node_counts_routing_metadata_when_a_request_carries_it() {
    let machine = Machine::worker();
    let seen = ReadOnlyObserver(&machine).observe().await;
    assert_eq!(seen, 0);
    let stream = dial::dial(&machine.access("admin"), machine.endpoint).await;
    let opened = Connection::open(stream.unwrap(), machine.endpoint, READ_CALLS).await;
    let connection = opened.unwrap();
    let mut client =
        crate::wire::read::machine::machine_service_client::MachineServiceClient::with_origin(
            connection.clone(),
            connection.origin(),
        );
    let mut request = tonic::Request::new(());
    let host = machine.endpoint.address.to_string();
    request.metadata_mut().insert("node", host.parse().unwrap());
    assert!(client.version(request).await.is_ok());
    assert_eq!(machine.count("routing-metadata").await, 1);
}

struct ReadOnlyObserver<'a>(&'a Machine);

impl ReadOnlyObserver<'_> {
    /// Observes, and tells how many requests carried routing metadata.
    async fn observe(&self) -> u64 {
        let access = self.0.access("admin");
        let seen = crate::ReadOnlyTalos
            .observe(&access, self.0.endpoint, EVERYTHING, PATIENT)
            .await;
        assert!(seen.identity.is_ok());
        self.0.count("routing-metadata").await
    }
}
