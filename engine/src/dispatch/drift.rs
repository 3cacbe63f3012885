//! The drift pass (EaR 6.1): which machines are due to be read, and one machine's reading.
//!
//! A pass of the controller takes a bounded number of them, the longest unread first. Any
//! number of controllers may do so: two that look at one moment may read a machine twice,
//! which records one reading more and changes nothing. Never in this module: what a reading
//! makes of a drift record, which is decided where it is recorded.

use bronzeward_core::drift::due;
use bronzeward_core::id::MachineId;
use bronzeward_core::observation::Purpose;
use bronzeward_core::time::{DbTime, Span};

use super::gather::not_observed;
use super::{Controller, Stop};
use crate::observe::Wanted;
use crate::ports::node::Asked;
use crate::ports::store::{Snapshot, StoreError};
use crate::world::World;

/// How many machines one pass reads at most.
const AT_ONCE: u16 = 32;

impl<W: World> Controller<W> {
    /// The machines to read now: with an Applied, held by no operation, and due.
    pub(super) async fn unread_for_drift<S: Snapshot>(
        &self,
        snapshot: &mut S,
        now: DbTime,
    ) -> Result<Vec<MachineId>, StoreError> {
        let interval = Span::from(self.settings.drift_interval);
        let reads = snapshot.drift_reads(now - interval, AT_ONCE).await?;
        Ok(reads
            .into_iter()
            .filter(|read| due(interval, read.machine, read.last, now))
            .map(|read| read.machine)
            .collect())
    }

    /// One reading, by the machine's current endpoint, with what it makes of the record.
    pub(super) async fn read_for_drift(&self, machine: MachineId) -> Result<(), Stop> {
        let id = self.parts.db.mint();
        let wanted = Wanted::of_machine(id, machine, Purpose::Drift, Asked::EVERYTHING);
        let detected = self.parts.observer.detect(&wanted).await;
        self.raise(detected.map_err(not_observed)?.alert);
        Ok(())
    }
}
