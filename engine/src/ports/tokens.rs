//! Verification of a human's access token (PA §10.1).

use std::collections::BTreeSet;
use std::future::Future;

use bronzeward_core::time::DbTime;

/// What a verified token says. It holds no token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HumanClaims {
    pub issuer: String,
    pub subject: String,
    pub groups: BTreeSet<String>,
    /// A usable display name, if the token carries one.
    pub display: Option<String>,
    pub expires_at: DbTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HumanTokenRefusal {
    /// 401, whatever the defect.
    Refused,
    /// 503: the token may be good, but nobody can tell.
    Unavailable,
}

pub trait HumanTokens: Send + Sync + 'static {
    fn verify(
        &self,
        token: &str,
        now: DbTime,
    ) -> impl Future<Output = Result<HumanClaims, HumanTokenRefusal>> + Send;
}
