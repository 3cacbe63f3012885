//! The things of a world: its nodes, what its provider is given, its documents.
//!
//! What the genesis sets up and people write. Never in this module: a behaviour.

use std::net::{IpAddr, Ipv4Addr};

use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{ClusterId, MachineId};
use bronzeward_core::inventory::{
    Endpoint, IdentityKey, Platform, SmbiosUuid, TALOS_PORT, TalosClusterId, TalosNodeId,
};
use bronzeward_core::observation::NodeIdentity;
use bronzeward_core::path::Path;
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::tx::{ClusterInput, MachineInput};

use crate::change::Outside;
use crate::pg::Eye;
use crate::ports::node::{Node, node_id_text, uuid_text};
use crate::ports::provider::{Data, KvPath, talosconfig};
use crate::sim::State;

/// Words that are secret on every node, beside the node's number.
pub const SECRETS: [&str; 2] = ["rw-machine-token", "pass-through-word"];

fn endpoint(number: u16) -> Endpoint {
    let [high, low] = number.to_be_bytes();
    Endpoint {
        address: IpAddr::V4(Ipv4Addr::new(10, 0, high, low)),
        port: TALOS_PORT,
    }
}

fn talos_cluster() -> TalosClusterId {
    TalosClusterId::parse("Y2x1c3RlciBvbmUgb2YgdGhlIHdvcmxkIG9mIHNpbXM=")
        .expect("a legal cluster identifier")
}

fn identity(number: u16) -> NodeIdentity {
    NodeIdentity {
        smbios_uuid: Some(SmbiosUuid::parse(&uuid_text(u128::from(number))).expect("a legal uuid")),
        node_id: TalosNodeId::parse(&node_id_text(u128::from(number))).expect("a legal node id"),
        talos_cluster: talos_cluster(),
    }
}

fn configuration(number: u16) -> Plaintext {
    let [token, word] = SECRETS;
    Plaintext::new(format!(
        concat!(
            r#"{{"version":"v1alpha1","machine":{{"type":"worker","token":"{token}-{number}","#,
            r#""network":{{"hostname":"w{number}"}},"env":{{"proxy":"{word}-{number}"}}}},"#,
            r#""cluster":{{"clusterName":"one"}}}}"#,
            "\n"
        ),
        token = token,
        word = word,
        number = number,
    ))
}

/// A fragment's text: a plain value, told apart by its number.
pub fn fragment(number: u32) -> String {
    format!("{{\"machine\":{{\"sysctls\":{{\"vm.max\":\"{number}\"}}}}}}\n")
}

/// The secret of a node that no schema knows.
pub fn marks() -> Vec<Path> {
    vec![Path::parse("doc[0]/machine/env/proxy").expect("a legal path")]
}

/// Nodes, before anything is recorded of them.
pub fn furnish(state: &mut State, machines: u16) {
    let now = state.sched.now();
    for number in 1..=machines {
        let node = Node::new(identity(number), configuration(number), now);
        state.outside.nodes.place(endpoint(number), node);
    }
}

/// What an author records of the world.
pub fn inventory(machines: u16) -> (ClusterInput, Vec<MachineInput>) {
    let cluster = ClusterInput {
        name: "one".to_owned(),
        endpoint: "https://one.sim.test:6443".to_owned(),
        contract: "v1.13".to_owned(),
        talos_cluster: talos_cluster(),
    };
    let machines = (1..=machines).map(|number| MachineInput {
        cluster: ClusterId::from_bits(0),
        key: IdentityKey::SmbiosUuid(
            identity(number)
                .smbios_uuid
                .expect("every node has a uuid here"),
        ),
        serial: None,
        platform: Platform::Metal,
        endpoint: endpoint(number),
    });
    (cluster, machines.collect())
}

/// The operator writes the cluster's Talos access into the provider.
pub fn grant_access(state: &mut State, cluster: ClusterId) {
    let now = state.sched.now();
    let data = Data::Talosconfig(talosconfig(cluster, 1));
    state
        .outside
        .vault
        .write(KvPath::Access(cluster), data, now);
}

/// Tells the nodes which machines they are recorded as.
pub fn name_nodes(state: &mut State) {
    let machines: Vec<(MachineId, Endpoint)> = {
        let rows = state.db.tables.authoring.machines.values(Eye::COMMITTED);
        rows.map(|row| (row.id, row.endpoint)).collect()
    };
    for (machine, endpoint) in machines {
        let Some(node) = state.outside.nodes.at_mut(endpoint) else {
            continue;
        };
        node.machine = Some(machine);
        let event = Outside::InForce {
            endpoint,
            machine: Some(machine),
            attempt: None,
            digest: node.digest(),
        };
        state.journal.outside(event);
    }
}

/// An endpoint a machine might be given: its own, or another's by mistake.
pub fn some_endpoint(state: &mut State) -> Option<Endpoint> {
    let all: Vec<Endpoint> = state.outside.nodes.all().map(|(at, _)| at).collect();
    let place = (!all.is_empty()).then(|| state.rng.usize(0..all.len()))?;
    all.get(place).copied()
}

/// What is in force on a machine's node, and whether it is still that machine.
pub fn in_force(state: &State, machine: MachineId) -> Option<ConfigDigest> {
    let mut nodes = state.outside.nodes.all();
    let found = nodes.find(|(_, node)| node.machine == Some(machine));
    found.map(|(_, node)| node.digest())
}
