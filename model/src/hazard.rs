//! What a seed is about: a schedule for each hazard, and one for none in particular.
//!
//! A world in which everything happens now and then rarely meets what needs several things at
//! once. Each seed draws one of these, which raises some rates and some habits. Never in this
//! module: what a fault or an act does.

use bronzeward_core::time::Span;

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
    /// Nodes edited by hand, adopted as they are.
    Drifts,
    /// Requests that land when their operation has long been accounted for.
    Landings,
    /// The database or the provider is restored from a backup.
    Restores,
}

impl Hazard {
    pub const ALL: [Hazard; 8] = [
        Hazard::Uniform,
        Hazard::Withdrawals,
        Hazard::Freezes,
        Hazard::Leases,
        Hazard::Locks,
        Hazard::Drifts,
        Hazard::Landings,
        Hazard::Restores,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Hazard::Uniform => "uniform",
            Hazard::Withdrawals => "withdrawals",
            Hazard::Freezes => "freezes",
            Hazard::Leases => "leases",
            Hazard::Locks => "locks",
            Hazard::Drifts => "drifts",
            Hazard::Landings => "landings",
            Hazard::Restores => "restores",
        }
    }

    pub fn named(name: &str) -> Option<Hazard> {
        Hazard::ALL.into_iter().find(|hazard| hazard.name() == name)
    }

    /// A sixth of the seeds is about nothing in particular, another about leases, a quarter
    /// about restores.
    pub fn drawn(rng: &mut fastrand::Rng) -> Self {
        match rng.u32(0..12) {
            0..=1 => Hazard::Uniform,
            3 => Hazard::Drifts,
            4 => Hazard::Withdrawals,
            5 => Hazard::Freezes,
            2 | 6 => Hazard::Leases,
            7 => Hazard::Locks,
            8 => Hazard::Landings,
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
            Hazard::Drifts => Faults::none().with(Fault::OutOfBand, 6),
            // A landing late enough needs a world in which little else happens.
            Hazard::Landings => Faults::none()
                .with(Fault::NodeHeld, 5_000)
                .with(Fault::AnswerLost, 200),
            // A mark rests on a reading, which may fail.
            Hazard::Restores => faults.with(Fault::NodeSilent, 500),
            Hazard::Locks => faults.with(Fault::NodeRefuses, 4_000),
            Hazard::Uniform | Hazard::Withdrawals | Hazard::Freezes => faults,
        }
    }

    /// How long after its deadline a held request lands at most, where the seed says it.
    pub const fn held_most(self) -> Option<Span> {
        match self {
            Hazard::Landings => Some(Span::seconds(45)),
            _ => None,
        }
    }

    /// How many times longer the safety phase lasts: a request that is held lands after its
    /// settle, an accounting and an end; a lease lapses.
    pub const fn patience(self) -> u64 {
        match self {
            Hazard::Landings | Hazard::Drifts | Hazard::Leases => 4,
            _ => 1,
        }
    }

    /// How much more often than its habit somebody does this.
    pub const fn zeal(self, doing: Doing) -> u32 {
        match (self, doing) {
            (Hazard::Withdrawals, Doing::RevokeApproval | Doing::Cancel | Doing::Resolve)
            | (Hazard::Freezes, Doing::Freeze | Doing::Unfreeze)
            | (Hazard::Leases, Doing::TakeOverOperation) => 8,
            (Hazard::Leases, Doing::Import) | (Hazard::Landings, Doing::Account) => 12,
            (Hazard::Leases, Doing::TakeOverIngestion) => 40,
            (Hazard::Leases, Doing::ReportOrphans) => 4,
            (Hazard::Withdrawals, Doing::RevokeIdentity) => 2,
            (Hazard::Landings, Doing::PlanApply | Doing::Approve) => 1,
            // What takes the authority for a retry back.
            (Hazard::Landings, Doing::RevokeApproval | Doing::Cancel) => 2,
            (
                Hazard::Drifts,
                Doing::Import | Doing::Publish | Doing::PlanAdopt | Doing::Approve,
            ) => 6,
            (Hazard::Drifts, Doing::OpenDraft | Doing::PutFragment) => 1,
            (Hazard::Landings | Hazard::Drifts, _) => 0,
            _ => 1,
        }
    }
}
