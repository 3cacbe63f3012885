//! Operations as rows, and publish and ingest jobs' beginnings and ends (PA §5.1, §8).
//!
//! A publication's and an ingestion's transactions write here; a plan's operation is
//! written by dispatch. Every write is on a row held FOR UPDATE or inserted by the same
//! transaction. Never in this module: what a job does, or an operation's timeline.

use std::future::Future;

use bronzeward_core::fence::Fence;
use bronzeward_core::id::{
    ClusterId, DraftId, EpochId, ImportBaseRevisionId, IngestionId, MachineId, OperationId, PlanId,
    ReleaseId,
};
use bronzeward_core::principal::Signed;
use bronzeward_core::problem::Problem;
use bronzeward_core::release::BoundDraft;
use bronzeward_core::revision::Revision;
use bronzeward_core::time::DbTime;

use super::{Guard, Page, Paged, StoreError, Written};
use crate::rows::OperationRow;

/// A job to be recorded. Its first event is appended beside it.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub id: OperationId,
    pub cluster: ClusterId,
    pub bound: BoundDraft,
    pub work: NewWork,
    pub by: Signed,
    pub epoch: EpochId,
}

/// What kind of job, with what only that kind has.
#[derive(Clone, Debug)]
pub enum NewWork {
    /// Queued; nobody owns it yet.
    Publish,
    /// Running under its staging claim's fence and lease.
    Ingest {
        machine: MachineId,
        claim: IngestionId,
        fence: Fence,
        lease_until: DbTime,
    },
}

/// How a job ended.
#[derive(Clone, Debug)]
pub enum JobEnd {
    Published(ReleaseId),
    Ingested(ImportBaseRevisionId),
    /// The problem is stored as the operation's error.
    Failed(Problem),
}

/// What a list of operations holds; every given member must match.
#[derive(Clone, Debug, Default)]
pub struct OperationFilter {
    pub plan: Option<PlanId>,
    pub machine: Option<MachineId>,
    pub state: Option<String>,
    pub kind: Option<String>,
}

pub trait JobReads {
    fn operation(
        &mut self,
        id: OperationId,
    ) -> impl Future<Output = Result<Option<OperationRow>, StoreError>> + Send;

    fn operations(
        &mut self,
        filter: &OperationFilter,
        page: &Page<OperationId>,
    ) -> impl Future<Output = Result<Paged<OperationRow>, StoreError>> + Send;

    fn operation_of_claim(
        &mut self,
        claim: IngestionId,
    ) -> impl Future<Output = Result<Option<OperationId>, StoreError>> + Send;

    /// The publish job to claim next: the oldest that is queued or whose lease has lapsed, as
    /// a read sees it. It is locked and looked at again before it is claimed.
    fn publish_candidate(
        &mut self,
    ) -> impl Future<Output = Result<Option<OperationId>, StoreError>> + Send;

    /// The running ingest operation that holds a draft revision's natural key (PA §7.3).
    fn active_ingestion(
        &mut self,
        draft: DraftId,
        revision: Revision,
    ) -> impl Future<Output = Result<Option<OperationRow>, StoreError>> + Send;
}

pub trait JobWrites {
    /// `Unique("operation_active_ingest")` or `Unique("operation_active_publish")` where the
    /// draft revision has an active job of that kind.
    fn insert_job(
        &mut self,
        job: &NewJob,
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Moves a job to `running` under `fence` until `lease_until`: a claim, an extension, or
    /// an ingest job that follows its staging claim.
    fn own_job(
        &mut self,
        id: OperationId,
        guard: &Guard,
        fence: &Fence,
        lease_until: DbTime,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Moves a job to its terminal state. Its terminal event is appended beside it.
    fn finish_job(
        &mut self,
        id: OperationId,
        guard: &Guard,
        end: &JobEnd,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;
}
