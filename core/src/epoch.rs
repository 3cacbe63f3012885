//! The recovery epoch (PA §12.1): a random identity, compared by equality and by
//! nothing else.
//!
//! Called wherever ownership is issued or something authorises. Never in this
//! module: an order of epochs. A restore rewinds counters, so "later" would be a
//! guess.

pub use crate::id::EpochId;
use crate::rules::{Rule, Rules};

/// The epoch a process may act in: the one it read at its start, or the one its own
/// recovery entry minted (PA §5.1). It is not the epoch of the installation, which is
/// read under a lock by each transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEpoch(pub EpochId);

/// The process started before the current epoch and may issue no ownership
/// (503 `epoch-superseded`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochSuperseded {
    pub current: EpochId,
}

impl ProcessEpoch {
    /// Whether this process may issue ownership (a takeover, a job claim, a commitment,
    /// an ingestion start) in the epoch the transaction read.
    pub fn admits<R: Rules>(self, rules: &R, current: EpochId) -> Result<(), EpochSuperseded> {
        if rules.holds(Rule::ProcessEpoch, self.0 == current) {
            Ok(())
        } else {
            Err(EpochSuperseded { current })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    #[test]
    fn a_process_of_another_epoch_issues_nothing() {
        let (old, new) = (EpochId::from_bits(9), EpochId::from_bits(1));
        assert_eq!(ProcessEpoch(new).admits(&Enforced, new), Ok(()));
        assert_eq!(
            ProcessEpoch(old).admits(&Enforced, new),
            Err(EpochSuperseded { current: new })
        );
        let control = Without(&[Rule::ProcessEpoch]);
        assert_eq!(ProcessEpoch(old).admits(&control, new), Ok(()));
    }
}
