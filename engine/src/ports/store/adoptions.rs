//! The adoption record (EaR 6.3) and what holds a machine's scope.

use std::future::Future;
use std::sync::Arc;

use bronzeward_core::fence::Fence;
use bronzeward_core::id::{MachineId, ObservationId, OperationId, PlanId};
use bronzeward_core::plan::Binding;
use bronzeward_core::release::Applied;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;

use super::StoreError;

/// An adoption to be recorded under its machine's lock.
#[derive(Clone, Debug)]
pub struct NewAdoption {
    pub operation: OperationId,
    /// The first ownership; the operation is created in `completed` and keeps it.
    pub fence: Fence,
    /// An adopt plan's.
    pub binding: Arc<Binding>,
    /// Of the adoption record's own timeline entry.
    pub revision: TimelineRevision,
    /// Desired becomes its release too.
    pub applied: Applied,
    pub observation: ObservationId,
    /// The bound drift record and the revision of the entry that closes it.
    pub closed: Option<(TimelineRevision, TimelineRevision)>,
    pub at: DbTime,
}

pub trait AdoptionReads {
    fn operation_of_plan(
        &mut self,
        plan: PlanId,
    ) -> impl Future<Output = Result<Option<OperationId>, StoreError>> + Send;

    /// The operation of the machine that is in a holding state and not retired.
    fn scope_holder(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<OperationId>, StoreError>> + Send;
}

pub trait AdoptionWrites {
    /// The operation, the record, Applied and Desired, and the drift record closed as
    /// adopted. `Unique("operation_plan_key")` where the plan has an operation.
    fn insert_adoption(
        &mut self,
        adoption: &NewAdoption,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
