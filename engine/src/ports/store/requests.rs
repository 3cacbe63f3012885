//! Idempotency records and acts: what every request's transaction reads and writes.

use std::future::Future;

use bronzeward_core::act::ActEntry;
use bronzeward_core::id::{ActId, EpochId, OperationId, PrincipalId, RequestId};
use bronzeward_core::idempotency::{Fingerprint, IdempotencyKey};
use bronzeward_core::installation::Installation;
use bronzeward_core::time::DbTime;

use super::StoreError;

/// A committed request's stored answer (PA §7.1). `body` is the JSON text that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    pub fingerprint: Fingerprint,
    pub method: String,
    /// The route's template.
    pub route: String,
    pub epoch: EpochId,
    pub request: RequestId,
    pub act: ActId,
    pub status: u16,
    pub location: Option<String>,
    pub etag: Option<String>,
    pub body: String,
    pub operation: Option<OperationId>,
}

pub trait RequestReads {
    /// The installation's row, unlocked.
    fn installation(&mut self) -> impl Future<Output = Result<Installation, StoreError>> + Send;

    /// The record of a principal's key, if one was committed.
    fn idempotency_record(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> impl Future<Output = Result<Option<IdempotencyRecord>, StoreError>> + Send;
}

pub trait RequestWrites {
    fn insert_idempotency_record(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
        record: &IdempotencyRecord,
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Writes the act, at the time read after the act-order lock (PA §10.5).
    fn insert_act(
        &mut self,
        act: &ActEntry,
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
