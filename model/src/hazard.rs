//! What a seed is about: a schedule for each hazard, and one for none in particular.
//!
//! A world in which everything happens now and then rarely meets what needs several things at
//! once. Each seed draws one of these, which raises some rates and some habits. Never in this
//! module: what a fault or an act does.

use crate::faults::{Fault, Faults};
use crate::people::Doing;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hazard {
    Uniform,
    /// Approvals revoked, plans cancelled, identities revoked.
    Withdrawals,
    /// Machines frozen and opened again.
    Freezes,
    /// Processes that outlive their leases, and people who take over.
    Leases,
    /// Somebody's own session locks rows in whatever order.
    Locks,
    /// The database or the provider is restored from a backup.
    Restores,
}

impl Hazard {
    pub const ALL: [Hazard; 6] = [
        Hazard::Uniform,
        Hazard::Withdrawals,
        Hazard::Freezes,
        Hazard::Leases,
        Hazard::Locks,
        Hazard::Restores,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Hazard::Uniform => "uniform",
            Hazard::Withdrawals => "withdrawals",
            Hazard::Freezes => "freezes",
            Hazard::Leases => "leases",
            Hazard::Locks => "locks",
            Hazard::Restores => "restores",
        }
    }

    pub fn named(name: &str) -> Option<Hazard> {
        Hazard::ALL.into_iter().find(|hazard| hazard.name() == name)
    }

    /// A third of the seeds is about nothing in particular, as many are about restores.
    pub fn drawn(rng: &mut fastrand::Rng) -> Self {
        match rng.u32(0..12) {
            0..=3 => Hazard::Uniform,
            4 => Hazard::Withdrawals,
            5 => Hazard::Freezes,
            6 => Hazard::Leases,
            7 => Hazard::Locks,
            _ => Hazard::Restores,
        }
    }

    /// Raises what this seed is about.
    #[must_use]
    pub fn on(self, faults: Faults) -> Faults {
        match self {
            Hazard::Leases => faults
                .with(Fault::Pause, 40)
                .with(Fault::Kill, 40)
                .with(Fault::ProviderSlow, 900),
            // A late landing needs a request that is held.
            Hazard::Freezes => faults.with(Fault::NodeHeld, 2_500),
            Hazard::Uniform | Hazard::Withdrawals | Hazard::Locks | Hazard::Restores => faults,
        }
    }

    /// How much more often than its habit somebody does this.
    pub const fn zeal(self, doing: Doing) -> u32 {
        match (self, doing) {
            (Hazard::Withdrawals, Doing::RevokeApproval | Doing::Cancel | Doing::Resolve)
            | (Hazard::Freezes, Doing::Freeze | Doing::Unfreeze)
            | (Hazard::Leases, Doing::TakeOverOperation) => 8,
            (Hazard::Leases, Doing::TakeOverIngestion | Doing::Import) => 12,
            (Hazard::Withdrawals, Doing::RevokeIdentity) => 2,
            _ => 1,
        }
    }
}
