//! The caller's identity, what principal identifiers name, and identity revocation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::common::Role;
use crate::id::{ActId, EpochId, PrincipalId};
use crate::json::{BodyError, Checked};
use crate::value::{Text, Timestamp, form};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CallerKind {
    Human,
    Service,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    pub kind: CallerKind,
    pub issuer: Option<String>,
    pub subject: Option<String>,
    pub service: Option<String>,
    pub principal: Option<PrincipalId>,
    pub roles: Vec<Role>,
    pub expires_at: Timestamp,
    pub epoch: EpochId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrincipalKind {
    Human,
    Service,
    Unknown,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Principal {
    pub id: PrincipalId,
    pub kind: PrincipalKind,
    pub issuer: Option<String>,
    pub subject: Option<String>,
    pub display: Option<String>,
    pub service: Option<String>,
}

/// Principals in the order first asked for; not a page.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Principals {
    pub items: Vec<Principal>,
}

/// Names an identity by `identity`, or by `iss` and `sub`, never both.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeIdentity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<PrincipalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iss: Option<Text<form::Subject>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<Text<form::Subject>>,
    pub reason: Text<form::Reason>,
}

impl Checked for RevokeIdentity {
    fn check(&self) -> Result<(), BodyError> {
        match (&self.identity, &self.iss, &self.sub) {
            (Some(_), None, None) | (None, Some(_), Some(_)) => Ok(()),
            (None, Some(_), None) => Err(BodyError::new("/sub", "missing-member")),
            (None, None, Some(_)) => Err(BodyError::new("/iss", "missing-member")),
            (None, None, None) | (Some(_), _, _) => Err(BodyError::new("", "one-identity")),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityRevocation {
    pub identity: PrincipalId,
    pub revoked_by: PrincipalId,
    pub role: Role,
    pub reason: String,
    pub act: ActId,
    pub epoch: EpochId,
    pub at: Timestamp,
    pub denied_subjects_listed: bool,
    pub note: String,
}
