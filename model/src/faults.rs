//! What may go wrong, how often: drawn once per seed, some of it off.
//!
//! A seed that has every fault at once explores little: each seed leaves some out, so that
//! what needs a quiet world to happen happens too. Never in this module: what a fault does.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A connection to the database is lost at a statement.
    Connection,
    /// COMMIT is sent and its answer lost.
    CommitReply,
    /// The database's server crashes and starts again.
    DatabaseCrash,
    /// The answer to a request is lost on its way to who asked.
    AnswerLost,
    /// A process is killed, and later another started.
    Kill,
    /// A process stops for a while at a scheduling point.
    Pause,
    /// A call of a provider is not answered, or refused for a while.
    ProviderLost,
    ProviderSealed,
    ProviderDenied,
    /// A call of a provider takes long.
    ProviderSlow,
    /// Somebody deletes, destroys or rewrites a version.
    VersionGone,
    /// A node's reading is not answered.
    NodeSilent,
    /// A request is answered late, or its answer is lost.
    NodeSlow,
    NodeAnswerLost,
    /// A request lands after its answer was given up on.
    NodeHeld,
    NodeReset,
    /// A node refuses a configuration.
    NodeRefuses,
    NodeReboot,
    /// Somebody edits a node's configuration by hand.
    OutOfBand,
    /// A node is replaced behind its endpoint.
    NodeReplaced,
    /// The renderer gives no answer, or refuses what it would take.
    RendererUnavailable,
    RendererRefuses,
}

impl Fault {
    pub const ALL: [Fault; 22] = [
        Fault::Connection,
        Fault::CommitReply,
        Fault::DatabaseCrash,
        Fault::AnswerLost,
        Fault::Kill,
        Fault::Pause,
        Fault::ProviderLost,
        Fault::ProviderSealed,
        Fault::ProviderDenied,
        Fault::ProviderSlow,
        Fault::VersionGone,
        Fault::NodeSilent,
        Fault::NodeSlow,
        Fault::NodeAnswerLost,
        Fault::NodeHeld,
        Fault::NodeReset,
        Fault::NodeRefuses,
        Fault::NodeReboot,
        Fault::OutOfBand,
        Fault::NodeReplaced,
        Fault::RendererUnavailable,
        Fault::RendererRefuses,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Fault::Connection => "connection lost",
            Fault::CommitReply => "commit's answer lost",
            Fault::DatabaseCrash => "database crashed",
            Fault::AnswerLost => "answer lost",
            Fault::Kill => "process killed",
            Fault::Pause => "process paused",
            Fault::ProviderLost => "provider's answer lost",
            Fault::ProviderSealed => "provider sealed",
            Fault::ProviderDenied => "provider denied",
            Fault::ProviderSlow => "provider slow",
            Fault::VersionGone => "version gone",
            Fault::NodeSilent => "node silent",
            Fault::NodeSlow => "node slow",
            Fault::NodeAnswerLost => "node's answer lost",
            Fault::NodeHeld => "request held",
            Fault::NodeReset => "node reset the connection",
            Fault::NodeRefuses => "node refused",
            Fault::NodeReboot => "node rebooted",
            Fault::OutOfBand => "edited out of band",
            Fault::NodeReplaced => "node replaced",
            Fault::RendererUnavailable => "renderer unavailable",
            Fault::RendererRefuses => "renderer refused",
        }
    }

    /// The highest rate, per ten thousand chances. The chance of a call's fault is a call,
    /// of the world's a step.
    const fn highest(self) -> u32 {
        match self {
            Fault::Connection => 60,
            Fault::CommitReply => 400,
            Fault::DatabaseCrash => 8,
            Fault::AnswerLost => 500,
            Fault::Kill | Fault::Pause => 25,
            Fault::ProviderLost | Fault::ProviderDenied | Fault::ProviderSlow => 500,
            Fault::ProviderSealed => 10,
            Fault::VersionGone => 4,
            Fault::NodeSilent | Fault::NodeSlow => 600,
            Fault::NodeAnswerLost | Fault::NodeHeld => 5_000,
            Fault::NodeReset | Fault::NodeRefuses => 5_000,
            Fault::NodeReboot => 10,
            Fault::OutOfBand => 10,
            Fault::NodeReplaced => 2,
            // A publication asks some twenty questions a machine.
            Fault::RendererUnavailable => 40,
            Fault::RendererRefuses => 20,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Per ten thousand chances.
    rates: BTreeMap<Fault, u32>,
    /// How often each struck.
    pub struck: BTreeMap<Fault, u64>,
    /// The world heals: nothing strikes any more.
    pub healed: bool,
}

impl Faults {
    pub fn none() -> Self {
        Self::default()
    }

    /// Rates for one seed: a third of the faults is off, the others between nothing and
    /// their highest.
    pub fn drawn(rng: &mut fastrand::Rng) -> Self {
        let mut faults = Self::default();
        for fault in Fault::ALL {
            if rng.u32(0..3) > 0 {
                let rate = rng.u32(0..=fault.highest());
                faults.rates.insert(fault, rate);
            }
        }
        faults
    }

    /// The same without some; what the seed draws stays what it was.
    #[must_use]
    pub fn but(mut self, off: &std::collections::BTreeSet<Fault>) -> Self {
        self.rates.retain(|fault, _| !off.contains(fault));
        self
    }

    #[must_use]
    pub fn with(mut self, fault: Fault, rate: u32) -> Self {
        self.rates.insert(fault, rate);
        self
    }

    pub fn rate(&self, fault: Fault) -> u32 {
        match self.healed {
            true => 0,
            false => self.rates.get(&fault).copied().unwrap_or(0),
        }
    }

    pub fn strikes(&mut self, fault: Fault, rng: &mut fastrand::Rng) -> bool {
        let rate = self.rate(fault);
        let struck = rate > 0 && rng.u32(0..10_000) < rate;
        if struck {
            *self.struck.entry(fault).or_default() += 1;
        }
        struck
    }
}
