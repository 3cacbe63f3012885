//! The store port on the simulated database, a family a file, as `adapters/postgres` has them.
//!
//! Each method is the statements that the adapter sends for it: one scheduling point, then
//! locks in the adapter's order, unique indexes and foreign keys as the schema has them, and
//! the effect. Never in this module: a decision; what a write depends on comes in as a guard.

pub mod authoring;
pub mod execution;
mod guard;
#[cfg(test)]
mod testing;
mod writes;

use bronzeward_engine::ports::store::{Snapshot, StoreError, StoreReads, StoreTx};

use crate::pg::session::Session;

/// The bits of the identifier that sorts before every other: identifiers are in the order of
/// their text, where digits stand before letters (and the last place ends in two zeros).
pub(crate) const LEAST: u128 = {
    let (mut bits, mut place) = (0, 0);
    while place < 25 {
        bits = (bits << 5) | 26;
        place += 1;
    }
    (bits << 3) | (28 >> 2)
};

impl StoreReads for Session {}

impl Snapshot for Session {
    async fn close(self) {}
}

impl StoreTx for Session {
    async fn commit(mut self) -> Result<(), StoreError> {
        self.send_commit().await
    }

    async fn rollback(mut self) {
        self.send_rollback().await;
    }
}

#[cfg(test)]
mod tests {
    use bronzeward_core::id::MachineId;

    use super::LEAST;

    #[test]
    fn the_least_identifier_sorts_before_the_ends_of_the_numbers_and_their_middle() {
        let least = MachineId::from_bits(LEAST);
        for place in 0..128 {
            for bits in [1 << place, !(1 << place), u128::MAX << place, 0, u128::MAX] {
                assert!(MachineId::from_bits(bits) >= least);
            }
        }
    }
}
