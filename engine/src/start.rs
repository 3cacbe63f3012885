//! How a process was started, as its entry moves it on (PA §5.1, §12.2).
//!
//! The world keeps one per process and every copy of its database half shares it. Never in
//! this module: what a start serves, which is `core::installation`'s, or anything a restart
//! should find again.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bronzeward_core::id::EpochId;
use bronzeward_core::installation::StartMode;

/// A process's start. The default is a normal one, which nothing moves.
#[derive(Debug, Default)]
pub(crate) struct Start {
    recovery: bool,
    entries: Mutex<Entries>,
}

/// The epochs this process's entries were to mint, and the one that was committed.
#[derive(Debug, Default)]
struct Entries {
    /// Each is noted before its transaction, so that a record found later tells this start's
    /// own entry from another's although its answer was lost (PA §12.4).
    minted: BTreeSet<EpochId>,
    entered: Option<EpochId>,
}

impl Start {
    pub fn recovery() -> Self {
        Self {
            recovery: true,
            ..Self::default()
        }
    }

    pub fn mode(&self, started_in: EpochId) -> StartMode {
        if !self.recovery {
            return StartMode::Normal;
        }
        StartMode::Recovery {
            started_in,
            entered: self.entries().entered,
        }
    }

    /// An entry of this start is about to be tried under this epoch.
    pub fn minting(&self, epoch: EpochId) {
        self.entries().minted.insert(epoch);
    }

    /// This start's own entry is known to have committed.
    pub fn entered(&self, epoch: EpochId) {
        self.entries().entered = Some(epoch);
    }

    /// Whether a stored record of this epoch is not this start's own entry: until that has
    /// committed, no record is (PA §12.4).
    pub fn is_foreign(&self, epoch: EpochId) -> bool {
        let entries = self.entries();
        self.recovery && entries.entered.is_none() && !entries.minted.contains(&epoch)
    }

    /// Whether this start tried an entry under this epoch.
    pub fn minted(&self, epoch: EpochId) -> bool {
        self.entries().minted.contains(&epoch)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // A panic while it was held leaves a set and a value, both whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_recovery_starts_own_only_where_that_start_minted_its_epoch() {
        let (before, own) = (EpochId::from_bits(1), EpochId::from_bits(2));
        let start = Start::recovery();
        assert!(start.is_foreign(before));
        start.minting(own);
        assert!(!start.is_foreign(own));
        assert!(start.is_foreign(before));
        start.entered(own);
        assert_eq!(
            start.mode(before),
            StartMode::Recovery {
                started_in: before,
                entered: Some(own)
            }
        );
        assert!(!Start::default().is_foreign(before));
        assert_eq!(Start::default().mode(before), StartMode::Normal);
    }
}
