//! Observations: what a read of a node was made for, and what it gave (EaR 4.1).
//!
//! An observation is two rows: its beginning, written before the node is dialled, and its
//! completion. Where observations are compared, they stand in the order of their
//! beginnings. Never in this module: a text a node sent.

use std::future::Future;

use bronzeward_core::head::AssignmentAt;
use bronzeward_core::id::{MachineId, ObservationId};
use bronzeward_core::observation::{Observation, Started};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;

use super::{Page, Paged, StoreError};

/// A machine that may be due to be read for drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriftRead {
    pub machine: MachineId,
    /// The later of two times: when its latest reading of purpose `drift` began, and when
    /// the operation that set its Applied was made.
    pub last: DbTime,
}

pub trait ObservationReads {
    /// A completed observation.
    fn observation(
        &mut self,
        id: ObservationId,
    ) -> impl Future<Output = Result<Option<Observation>, StoreError>> + Send;

    /// A machine's completed observations, by identifier.
    fn observations(
        &mut self,
        machine: MachineId,
        page: &Page<ObservationId>,
    ) -> impl Future<Output = Result<Paged<Observation>, StoreError>> + Send;

    /// The completed observations of a machine that began after `basis`, by basis.
    fn observations_after(
        &mut self,
        machine: MachineId,
        basis: TimelineRevision,
    ) -> impl Future<Output = Result<Vec<Observation>, StoreError>> + Send;

    /// The completed observation that began last.
    fn highest_observation(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<Observation>, StoreError>> + Send;

    /// The completed observation that began last of those that read a configuration.
    fn observed_configuration(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<Observation>, StoreError>> + Send;

    /// The machines with an Applied, not retired, that no operation holds, whose
    /// [`DriftRead::last`] is `before` or earlier: the earliest first, at most `limit`.
    fn drift_reads(
        &mut self,
        before: DbTime,
        limit: u16,
    ) -> impl Future<Output = Result<Vec<DriftRead>, StoreError>> + Send;

    /// The machine's assignment head, if it ever had one.
    fn assignment_at(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<AssignmentAt>, StoreError>> + Send;

    /// The revision of the machine's latest endpoint change.
    fn endpoint_changed(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<TimelineRevision>, StoreError>> + Send;
}

pub trait ObservationWrites {
    /// Beside its *started* entry, whose revision is its basis; the machine row is held FOR
    /// UPDATE.
    fn insert_observation_start(
        &mut self,
        started: &Started,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Beside its entry, under the machine's lock.
    fn insert_observation(
        &mut self,
        observation: &Observation,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
