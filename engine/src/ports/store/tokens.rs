//! Service identities and their tokens (PA §10.2), for the operator's own tool.
//!
//! Never in this module: a token's secret. Only its digest is stored.

use std::future::Future;

use bronzeward_core::id::{EpochId, PrincipalId, TokenId};
use bronzeward_core::principal::Roles;
use bronzeward_core::time::DbTime;
use bronzeward_core::token::Token;

use super::{StoreError, Written};

/// A service identity's token as the tool lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedToken {
    pub id: TokenId,
    pub identity: PrincipalId,
    pub name: String,
    pub responsible: PrincipalId,
    pub roles: Roles,
    pub epoch: EpochId,
    pub issued_at: DbTime,
    pub expires_at: DbTime,
    pub revoked_at: Option<DbTime>,
    pub identity_revoked: bool,
}

pub trait TokenReads {
    /// Every token ever issued, by identity's name, newest first within one.
    fn tokens(&mut self) -> impl Future<Output = Result<Vec<ListedToken>, StoreError>> + Send;

    /// The roles of the identity's latest token, revoked or not.
    fn latest_roles(
        &mut self,
        identity: PrincipalId,
    ) -> impl Future<Output = Result<Option<Roles>, StoreError>> + Send;
}

pub trait TokenWrites {
    /// `Unique("principal_name_key")` where a service identity has the name.
    fn insert_service(
        &mut self,
        id: PrincipalId,
        name: &str,
        responsible: PrincipalId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// `Unique("automation_token_unrevoked")` where the identity has an unrevoked token.
    fn insert_token(
        &mut self,
        token: &Token,
        issued_at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Revokes an unrevoked token.
    fn revoke_token(
        &mut self,
        id: TokenId,
        at: DbTime,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;
}
