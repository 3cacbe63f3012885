//! The lock under everything here: the standard library's, or loom's in a build that loom
//! checks. Never in this module: a lock that loom cannot see.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// Mistakes that a build under loom makes when the environment names one: the controls of
/// the tests under loom, each of which must fail with its mistakes made. In any other
/// build [`made`](Flaw::made) is a constant `false`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A change of a room wakes nobody.
    ChangeWakesNobody,
    /// Who finds nothing to take lets go of the lock before standing in line.
    LooksBeforeItStandsInLine,
    /// Who takes what it waited for does not wake the next in line.
    TakerWakesNobody,
    /// Who gives up waiting does not wake the next in line.
    LeaverWakesNobody,
    /// Who gives up waiting stays in the line.
    LeaverStays,
    /// A wait for a bell forgets what rang before it.
    WaitForgetsEarlierRings,
    /// The first who sees a shutdown takes it away.
    ShutdownIsTaken,
    /// A refresh of a cache does not say that it is under way.
    RefreshIsNotMarked,
    /// A refresh that is dropped half-way stays marked as under way.
    DroppedRefreshStays,
    /// A refresh that failed stays marked as under way.
    FailedRefreshStays,
    /// Who waited for a refresh makes one more.
    OutcomeIsNotShared,
    /// A cache serves what it has, however old.
    AgeIsIgnored,
    /// A lease of a pool leaves its slot free.
    SlotStaysFree,
    /// A lease that is dropped keeps its slot.
    DroppedLeaseKeepsItsSlot,
    /// A lease that is dropped drops a worker that was not taken out of it.
    DroppedLeaseLosesItsWorker,
    /// A stop does not wait for workers that are leased.
    StopDoesNotWait,
    /// A stopped pool goes on as if it were not.
    StopLeavesOpen,
}

impl Flaw {
    #[cfg(not(loom))]
    pub(crate) const fn made(self) -> bool {
        false
    }

    #[cfg(loom)]
    pub(crate) fn made(self) -> bool {
        use std::sync::OnceLock;
        static MADE: OnceLock<Option<String>> = OnceLock::new();
        let made = MADE.get_or_init(|| std::env::var(Self::VARIABLE).ok());
        made.as_deref()
            .is_some_and(|name| name == format!("{self:?}"))
    }

    /// The variable of the environment that names the mistake to make.
    #[cfg(loom)]
    pub const VARIABLE: &'static str = "BRONZEWARD_FLAW";
}
