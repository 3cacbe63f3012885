//! Staging claims (IC §3): the one ownership of an ingestion.
//!
//! Ingestion start, the runs behind it, the sweep and recovery entry write here, each on a
//! claim held FOR UPDATE. Never in this module: a payload that is not the staging key's
//! ciphertext.

use std::future::Future;

use bronzeward_core::canonical::Digest;
use bronzeward_core::claim::{ClaimKind, ClaimState, Review, StagingMode};
use bronzeward_core::fence::Fence;
use bronzeward_core::id::{ClusterId, DraftId, IngestionId, MachineId, OperationId, PrincipalId};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::principal::Signed;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;

use super::{Guard, Page, Paged, StoreError, Written};
use crate::ports::provider::Ciphertext;
use crate::rows::ClaimRow;

/// Where an ingestion's input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimSource {
    Machine,
    Document,
}

impl ClaimSource {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Document => "document",
        }
    }
}

/// A claim as its start commits it: held at generation 1, in the fence's epoch.
#[derive(Clone, Debug)]
pub struct NewClaim {
    pub id: IngestionId,
    pub kind: ClaimKind,
    pub mode: StagingMode,
    pub source: ClaimSource,
    pub review: Option<Review>,
    pub cluster: ClusterId,
    pub draft: DraftId,
    pub machine: Option<MachineId>,
    /// The open drift record that an adoption ingests for.
    pub drift: Option<TimelineRevision>,
    pub by: Signed,
    /// A draft entry's request (PA §7.2).
    pub key: Option<IdempotencyKey>,
    pub fence: Fence,
    pub lease_until: DbTime,
    pub expires_at: DbTime,
    pub created_at: DbTime,
}

/// What a list of claims holds; every given member must match. `state` is the state a read
/// at `now` treats a claim as (IC §3.5).
#[derive(Clone, Copy, Debug)]
pub struct ClaimFilter {
    pub state: Option<ClaimState>,
    pub machine: Option<MachineId>,
    pub now: DbTime,
}

/// A claim's end clears its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimEnd {
    Released,
    Abandoned,
}

pub trait ClaimReads {
    /// A claim with its ingest operation.
    fn claim(
        &mut self,
        id: IngestionId,
    ) -> impl Future<Output = Result<Option<(ClaimRow, Option<OperationId>)>, StoreError>> + Send;

    fn claims(
        &mut self,
        filter: &ClaimFilter,
        page: &Page<IngestionId>,
    ) -> impl Future<Output = Result<Paged<(ClaimRow, Option<OperationId>)>, StoreError>> + Send;

    /// The claim of a principal's key that has not ended, whatever its times.
    fn claim_of_key(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> impl Future<Output = Result<Option<IngestionId>, StoreError>> + Send;

    /// The claims that a sweep writes abandoned now: past their absolute expiry, or transient
    /// and past their lease.
    fn due_claims(&mut self) -> impl Future<Output = Result<Vec<IngestionId>, StoreError>> + Send;

    /// The revision that opened a machine's open drift record, if it has one.
    fn open_drift_revision(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<TimelineRevision>, StoreError>> + Send;
}

pub trait ClaimWrites {
    /// `Unique("staging_claim_live_key")` where the request has a live claim already.
    fn insert_claim(
        &mut self,
        claim: &NewClaim,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn extend_claim(
        &mut self,
        id: IngestionId,
        guard: &Guard,
        lease_until: DbTime,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Stores the envelope's ciphertext beside the digest of its plaintext.
    fn stage_claim(
        &mut self,
        id: IngestionId,
        guard: &Guard,
        payload: &Ciphertext,
        digest: Digest,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// A takeover: `resumed` under its new owner.
    fn take_over_claim(
        &mut self,
        id: IngestionId,
        guard: &Guard,
        fence: &Fence,
        lease_until: DbTime,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    fn end_claim(
        &mut self,
        id: IngestionId,
        guard: &Guard,
        end: ClaimEnd,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;
}
