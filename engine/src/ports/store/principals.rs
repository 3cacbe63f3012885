//! Principals and automation tokens (PA §10), and acts as they are read (PA §10.5).

use std::future::Future;

use bronzeward_core::id::{ActId, EpochId, PrincipalId, RequestId, TokenId};
use bronzeward_core::principal::{Principal, PrincipalKind, Role};
use bronzeward_core::time::DbTime;
use bronzeward_core::token::Token;

use super::{Page, Paged, StoreError};

/// An act as stored. `role` is none for an act of the operator's own tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActRow {
    pub id: ActId,
    pub principal: PrincipalId,
    pub kind: PrincipalKind,
    pub role: Option<Role>,
    pub action: String,
    pub subjects: Vec<String>,
    pub request: Option<RequestId>,
    pub epoch: EpochId,
    pub at: DbTime,
}

pub trait PrincipalReads {
    fn principal(
        &mut self,
        id: PrincipalId,
    ) -> impl Future<Output = Result<Option<Principal>, StoreError>> + Send;

    fn human(
        &mut self,
        issuer: &str,
        subject: &str,
    ) -> impl Future<Output = Result<Option<Principal>, StoreError>> + Send;

    fn service(
        &mut self,
        name: &str,
    ) -> impl Future<Output = Result<Option<Principal>, StoreError>> + Send;

    /// A token with its owner, in one query.
    fn token(
        &mut self,
        id: TokenId,
    ) -> impl Future<Output = Result<Option<(Token, Principal)>, StoreError>> + Send;

    /// The database's time, for a read that compares a credential's.
    fn clock(&mut self) -> impl Future<Output = Result<DbTime, StoreError>> + Send;

    /// In recording order; a page ends before nothing that commits later.
    fn acts(
        &mut self,
        page: &Page<ActId>,
    ) -> impl Future<Output = Result<Paged<ActRow>, StoreError>> + Send;

    /// The key cursors are sealed with (PA §9.1).
    fn cursor_key(&mut self) -> impl Future<Output = Result<[u8; 32], StoreError>> + Send;
}

pub trait PrincipalWrites {
    /// Inserts a human unless another request has; the caller reads the row after.
    fn ensure_human(
        &mut self,
        id: PrincipalId,
        issuer: &str,
        subject: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Writes a human's display name where it differs and the human is not revoked.
    fn refresh_display(
        &mut self,
        id: PrincipalId,
        display: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
