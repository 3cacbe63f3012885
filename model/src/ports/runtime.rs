//! Time, randomness, tasks, wake-ups, alerts and humans of one simulated process.
//!
//! Made with a process and gone with it; what they change stands in the world's state. Never
//! in this module: a clock, a runtime, or randomness beside the seed's.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::ports::{
    Alert, AlertSink, Entropy, HumanClaims, HumanTokenRefusal, HumanTokens, Notifier, Tasks, Timer,
    Wake,
};

use crate::change::Outside;
use crate::sched::{Leaf, LeafId, ProcessId, Spawned, Wait};
use crate::sim::Sim;

/// A port that is the world and who asks it.
macro_rules! port {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub struct $name {
            sim: std::sync::Arc<$crate::sim::Sim>,
            process: $crate::sched::ProcessId,
        }

        impl $name {
            pub fn new(sim: &std::sync::Arc<$crate::sim::Sim>, process: $crate::sched::ProcessId) -> Self {
                Self {
                    sim: std::sync::Arc::clone(sim),
                    process,
                }
            }
        }
    };
}
pub(super) use port;

port!(
    /// Bits of the seed.
    SimEntropy
);

impl Entropy for SimEntropy {
    fn bits(&self) -> u128 {
        let mut state = self.sim.state();
        state.trace(self.process, "draws bits");
        state.rng.u128(..)
    }
}

port!(
    /// Waits of simulated time.
    SimTimer
);

impl Timer for SimTimer {
    async fn sleep(&self, length: Duration) {
        let until = {
            let mut state = self.sim.state();
            state.trace(self.process, "sleeps");
            state.sched.now() + Span::from(length)
        };
        Leaf::new(&self.sim, Wait::Until(until)).await;
    }
}

port!(
    /// Tasks that end with their process.
    SimTasks
);

impl Tasks for SimTasks {
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let work = Box::pin(work);
        let process = self.process;
        let spawned = Spawned { process, work };
        self.sim.state().sched.spawned.push(spawned);
    }
}

/// The bells of every process. One that rang before anybody waited wakes the next wait at
/// once, and any number of rings are one, as in `adapters/wake`.
#[derive(Clone, Default)]
pub struct Bells {
    waiting: BTreeMap<(ProcessId, Wake), Vec<LeafId>>,
    rung: BTreeSet<(ProcessId, Wake)>,
}

port!(
    /// Wake-ups within one process.
    SimBells
);

impl Notifier for SimBells {
    fn wake(&self, what: Wake) {
        let bell = (self.process, what);
        let mut state = self.sim.state();
        let leaves = state.outside.bells.waiting.remove(&bell);
        if leaves.is_none() {
            state.outside.bells.rung.insert(bell);
        }
        for leaf in leaves.unwrap_or_default() {
            state.sched.wake(leaf);
        }
    }

    async fn wait(&self, what: Wake, at_most: Duration) {
        let bell = (self.process, what);
        let (leaf, name) = {
            let mut state = self.sim.state();
            let state = &mut *state;
            let rung = state.outside.bells.rung.remove(&bell);
            let now = state.sched.now();
            let until = match rung {
                true => now,
                false => now + Span::from(at_most),
            };
            let (leaf, name) = Leaf::until(&self.sim, &mut state.sched, until);
            let waiting = state.outside.bells.waiting.entry(bell).or_default();
            waiting.push(name);
            (leaf, name)
        };
        let _waiter = Waiter {
            sim: &self.sim,
            bell,
            name,
        };
        leaf.await;
    }
}

/// Leaves the bell's waiters however the wait ends, so that a later ring is not given to
/// somebody who is gone.
struct Waiter<'s> {
    sim: &'s Sim,
    bell: (ProcessId, Wake),
    name: LeafId,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.sim.state();
        let all = &mut state.outside.bells.waiting;
        if let Some(waiting) = all.get_mut(&self.bell) {
            waiting.retain(|other| *other != self.name);
            if waiting.is_empty() {
                all.remove(&self.bell);
            }
        }
    }
}

port!(
    /// Alerts, as the journal hears them.
    SimAlerts
);

impl AlertSink for SimAlerts {
    fn raise(&self, alert: Alert) {
        let process = self.process;
        let mut state = self.sim.state();
        state.journal.outside(Outside::Alerted { process, alert });
    }
}

/// Who vouches for the humans of the world.
pub const ISSUER: &str = "https://identity.sim.test";

/// How long a human's token is good.
const TOKEN_LIFE: Span = Span::seconds(3_600);

const HUMAN: &str = "human";

/// A human's token: it names who it is, which groups they are in, and when it was made.
pub fn human_token(subject: &str, groups: &[&str], made: DbTime) -> String {
    format!(
        "{HUMAN}:{subject}:{}:{}",
        groups.join(","),
        made.as_micros()
    )
}

fn claims(token: &str) -> Option<HumanClaims> {
    let mut parts = token.split(':');
    let (HUMAN, subject, groups, made) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?)
    else {
        return None;
    };
    let whole = parts.next().is_none() && !subject.is_empty();
    let groups = groups.split(',').filter(|group| !group.is_empty());
    let made = DbTime::from_micros(made.parse().ok()?);
    whole.then(|| HumanClaims {
        issuer: ISSUER.to_owned(),
        subject: subject.to_owned(),
        groups: groups.map(str::to_owned).collect(),
        display: None,
        expires_at: made + TOKEN_LIFE,
    })
}

port!(
    /// The verification of humans' tokens.
    SimHumans
);

impl HumanTokens for SimHumans {
    async fn verify(&self, token: &str, now: DbTime) -> Result<HumanClaims, HumanTokenRefusal> {
        Leaf::new(&self.sim, Wait::Point).await;
        self.sim.state().trace(self.process, "verifies a token");
        claims(token)
            .filter(|claims| claims.expires_at > now)
            .ok_or(HumanTokenRefusal::Refused)
    }
}

#[cfg(test)]
mod tests;
