//! The ports beside the store: providers, nodes, the renderer's stand-in, time, randomness,
//! wake-ups, alerts, humans.
//!
//! Each is a small struct that holds the world and its process; what they act on stands in
//! [`Outside`]. Never in this module: a decision of the product, or a rule.

pub mod node;
pub mod provider;
pub mod renderer;
pub mod runtime;
#[cfg(test)]
mod testing;
mod times;

use std::collections::BTreeMap;

use crate::faults::Fault;
use crate::sim::State;

/// What is outside the database: provider, nodes, and what was seen of the run.
#[derive(Clone, Default)]
pub struct Outside {
    pub vault: provider::Vault,
    pub nodes: node::Nodes,
    pub bells: runtime::Bells,
    /// The token that each automation presents.
    pub credentials: BTreeMap<&'static str, String>,
    pub seen: Seen,
}

/// Sometimes-properties: how often something happened that a quiet run would not show.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub deadlocks: u64,
    /// A request that landed after its caller had stopped waiting.
    pub late_landings: u64,
    /// A request that a node refused.
    pub refusals: u64,
    /// A request that was lost on its way and never landed.
    pub lost_requests: u64,
    /// A provider's call that was carried out though its caller was told of a failure.
    pub unheard_calls: u64,
    /// What commits showed, by its words.
    pub shown: BTreeMap<&'static str, u64>,
    /// State transitions that were committed.
    pub moves: crate::judges::Moves,
}

/// The faults of the world itself, each with its chance of this step. The run loop calls it.
pub fn disturb(state: &mut State) {
    for (fault, strike) in [
        (Fault::ProviderSealed, provider::seal as fn(&mut State)),
        (Fault::VersionGone, provider::spoil),
        (Fault::NodeReboot, node::reboot_one),
        (Fault::OutOfBand, node::edit_one),
        (Fault::NodeReplaced, node::replace_one),
    ] {
        if state.strikes(fault) {
            strike(state);
        }
    }
}

/// Undoes what undoes itself in time: the liveness phase begins with it. What was destroyed
/// or replaced stays so, and what is on its way still lands.
pub fn heal(state: &mut State) {
    state.faults.healed = true;
    state.outside.vault.heal();
    state.outside.nodes.heal();
}

impl Seen {
    pub fn show(&mut self, what: &'static str) {
        *self.shown.entry(what).or_default() += 1;
    }

    /// Each property by its words.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let own = [
            ("a deadlock's victim", self.deadlocks),
            ("a late landing", self.late_landings),
            ("a request refused by its node", self.refusals),
            ("a request lost on its way", self.lost_requests),
            ("a provider's call carried out unheard", self.unheard_calls),
        ];
        let shown = crate::judges::SOMETIMES.iter();
        let shown = shown.map(|what| (*what, self.shown.get(what).copied().unwrap_or(0)));
        own.into_iter().chain(shown).collect()
    }

    pub fn add(&mut self, other: &Self) {
        self.deadlocks += other.deadlocks;
        self.late_landings += other.late_landings;
        self.refusals += other.refusals;
        self.lost_requests += other.lost_requests;
        self.unheard_calls += other.unheard_calls;
        for (what, times) in &other.shown {
            *self.shown.entry(what).or_default() += times;
        }
        for (which, times) in &other.moves {
            *self.moves.entry(which.clone()).or_default() += times;
        }
    }

    /// Whether a sweep of so many seeds saw everything at least once; what it did not see is
    /// said. What no sweep has reached yet is a known gap, which is said as well.
    pub fn all(&self, seeds: u64, say: &dyn Fn(std::fmt::Arguments<'_>)) -> bool {
        let mut whole = true;
        for (what, times) in self.counts() {
            let known = crate::judges::NOT_YET.contains(&what);
            match (times, known) {
                (0, true) => say(format_args!("not reached yet: {what}")),
                (0, false) if seeds >= 300 => {
                    say(format_args!("never seen: {what}"));
                    whole = false;
                }
                _ => {}
            }
        }
        whole
    }
}
