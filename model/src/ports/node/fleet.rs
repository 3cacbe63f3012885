//! The simulated nodes: who they are, what is in force on them, and what happens to them.
//!
//! Never in this module: a caller, or a deadline.

use std::collections::BTreeMap;

use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{AttemptId, MachineId};
use bronzeward_core::inventory::{Endpoint, SmbiosUuid, TalosNodeId};
use bronzeward_core::observation::NodeIdentity;
use bronzeward_core::secret::Plaintext;
use bronzeward_core::time::{DbTime, Span};

use super::super::{renderer, times};
use crate::change::Outside;
use crate::sim::State;

/// The version that nodes run unless a schedule says another.
pub const RUNNING: &str = "v1.13.6";

/// How long a boot takes at most, and how long a node is not ready after a change.
const BOOT: Span = Span::seconds(12);
const UNREADY: Span = Span::seconds(3);

/// One node, as its endpoint shows it.
#[derive(Clone)]
pub struct Node {
    /// The machine it was inventoried as, where it was.
    pub machine: Option<MachineId>,
    pub identity: NodeIdentity,
    pub running_version: String,
    configuration: Plaintext,
    digest: ConfigDigest,
    /// What was in force before: what a hand may put back.
    before: Plaintext,
    /// In the node's memory: 1 again after a boot (T7).
    resource_version: u64,
    resource_created: String,
    down_until: Option<DbTime>,
    unready_until: Option<DbTime>,
}

impl Node {
    pub fn new(identity: NodeIdentity, configuration: Plaintext, now: DbTime) -> Self {
        Self {
            machine: None,
            identity,
            running_version: RUNNING.to_owned(),
            digest: ConfigDigest::of(configuration.expose().as_bytes()),
            before: configuration.clone(),
            configuration,
            resource_version: 1,
            resource_created: times::created(now, 0),
            down_until: None,
            unready_until: None,
        }
    }

    pub fn up(&self, now: DbTime) -> bool {
        self.down_until.is_none_or(|until| until <= now)
    }

    pub fn ready(&self, now: DbTime) -> bool {
        self.unready_until.is_none_or(|until| until <= now)
    }

    pub const fn configuration(&self) -> &Plaintext {
        &self.configuration
    }

    /// What was in force before.
    pub const fn before(&self) -> &Plaintext {
        &self.before
    }

    pub const fn digest(&self) -> ConfigDigest {
        self.digest
    }

    pub const fn resource_version(&self) -> u64 {
        self.resource_version
    }

    pub fn resource_created(&self) -> &str {
        &self.resource_created
    }
}

#[derive(Clone)]
pub struct Nodes {
    by_endpoint: BTreeMap<Endpoint, Node>,
    /// How long after its caller's deadline a held request lands at most.
    pub held_most: Span,
    /// A schedule written by hand holds every request for so long after its deadline.
    pub held_for: Option<Span>,
    /// Keeps what hands write apart.
    count: u64,
}

impl Default for Nodes {
    fn default() -> Self {
        Self {
            by_endpoint: BTreeMap::new(),
            held_most: Span::seconds(25),
            held_for: None,
            count: 0,
        }
    }
}

impl Nodes {
    pub fn place(&mut self, endpoint: Endpoint, node: Node) {
        self.by_endpoint.insert(endpoint, node);
    }

    pub fn at(&self, endpoint: Endpoint) -> Option<&Node> {
        self.by_endpoint.get(&endpoint)
    }

    pub fn at_mut(&mut self, endpoint: Endpoint) -> Option<&mut Node> {
        self.by_endpoint.get_mut(&endpoint)
    }

    pub fn all(&self) -> impl Iterator<Item = (Endpoint, &Node)> {
        self.by_endpoint.iter().map(|(at, node)| (*at, node))
    }

    pub fn heal(&mut self) {
        for node in self.by_endpoint.values_mut() {
            node.down_until = None;
            node.unready_until = None;
        }
    }
}

/// A configuration comes to be in force: by an attempt's request, or by a hand.
pub fn install(
    state: &mut State,
    endpoint: Endpoint,
    configuration: Plaintext,
    attempt: Option<AttemptId>,
) {
    let now = state.sched.now();
    let unready = match state.rng.bool() {
        true => Some(now + Span::micros(state.rng.i64(0..UNREADY.as_micros()))),
        false => None,
    };
    let Some(node) = state.outside.nodes.at_mut(endpoint) else {
        return;
    };
    node.digest = ConfigDigest::of(configuration.expose().as_bytes());
    node.before = std::mem::replace(&mut node.configuration, configuration);
    // Also for the same bytes (T6).
    node.resource_version += 1;
    node.unready_until = unready;
    let event = Outside::InForce {
        endpoint,
        machine: node.machine,
        attempt,
        digest: node.digest,
    };
    state.journal.outside(event);
    let what = match attempt {
        Some(_) => "a request lands",
        None => "a hand changes the configuration",
    };
    state
        .trace
        .say(now, format_args!("node {endpoint}: {what}"));
}

/// A boot: unreachable for a while, and the resource begins anew.
pub fn reboot(state: &mut State, endpoint: Endpoint) {
    let now = state.sched.now();
    let up = now + Span::micros(state.rng.i64(1..BOOT.as_micros()));
    let nodes = &mut state.outside.nodes;
    nodes.count += 1;
    let count = nodes.count;
    if let Some(node) = nodes.at_mut(endpoint) {
        node.down_until = Some(up);
        node.unready_until = Some(up + UNREADY);
        node.resource_version = 1;
        node.resource_created = times::created(up, count);
    }
    let until = up.as_micros();
    let line = format_args!("node {endpoint}: boots until {until}");
    state.trace.say(now, line);
}

/// Somebody writes a configuration of their own, or puts the one before back.
pub fn edit(state: &mut State, endpoint: Endpoint) {
    let back = state.rng.u8(0..3) == 0;
    let nodes = &mut state.outside.nodes;
    nodes.count += 1;
    let count = nodes.count;
    let Some(node) = nodes.at(endpoint) else {
        return;
    };
    let configuration = match back {
        true => node.before.clone(),
        false => renderer::edited(&node.configuration, count),
    };
    install(state, endpoint, configuration, None);
}

/// Another node answers at the endpoint, with the configuration of the one before it.
pub fn replace(state: &mut State, endpoint: Endpoint) {
    let now = state.sched.now();
    let bits = state.rng.u128(..);
    let nodes = &mut state.outside.nodes;
    nodes.count += 1;
    let count = nodes.count;
    let Some(node) = nodes.at_mut(endpoint) else {
        return;
    };
    if let Some(uuid) = &mut node.identity.smbios_uuid
        && let Ok(other) = SmbiosUuid::parse(&uuid_text(bits))
    {
        *uuid = other;
    }
    if let Ok(other) = TalosNodeId::parse(&node_id_text(bits)) {
        node.identity.node_id = other;
    }
    node.machine = None;
    node.resource_version = 1;
    node.resource_created = times::created(now, count);
    state
        .trace
        .say(now, format_args!("node {endpoint}: is another node"));
}

/// A UUID's text of 128 bits.
pub fn uuid_text(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    let groups = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    groups.join("-")
}

/// A node id's text of 128 bits.
pub fn node_id_text(bits: u128) -> String {
    format!("node{bits:039}")
}

fn one(state: &mut State) -> Option<Endpoint> {
    let count = state.outside.nodes.by_endpoint.len();
    let nth = (count > 0).then(|| state.rng.usize(0..count))?;
    state.outside.nodes.by_endpoint.keys().nth(nth).copied()
}

pub fn reboot_one(state: &mut State) {
    if let Some(endpoint) = one(state) {
        reboot(state, endpoint);
    }
}

pub fn edit_one(state: &mut State) {
    if let Some(endpoint) = one(state) {
        edit(state, endpoint);
    }
}

pub fn replace_one(state: &mut State) {
    if let Some(endpoint) = one(state) {
        replace(state, endpoint);
    }
}
