//! Verification of a human's access token (PA §10.1), and nothing of what follows.
//!
//! `http` calls [`Provider::verify`] with the database's time for each request; the
//! composition root makes the [`Provider`] from configuration. Never in this crate: a
//! session, a clock, a token or a claim in an error or a log, and whether the subject
//! is revoked or denied (the engine knows that).

mod claims;
mod fetch;
mod jwt;
mod keys;
mod roles;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use bronzeward_core::rules::{Enforced, Rule, Rules};
use bronzeward_core::time::{DbTime, Span};
use bronzeward_wake::{Bounds, Cache};

pub use claims::TokenClaims;
pub use roles::RoleMap;

use fetch::Fetcher;
use keys::KeySet;

/// Keys younger than this are used without a look at the provider.
const FRESH: Span = Span::seconds(5 * 60);
/// Keys older than this are used no more, even while the provider is away.
const USABLE: Span = Span::seconds(60 * 60);
/// Early refreshes that may follow each other at once: a token that names an unknown key
/// makes one.
const BURST: i64 = 4;
/// The time after which one more is allowed.
const REFILL: Span = Span::seconds(15);

/// What the deployment says of its identity provider (PA §10.1).
#[derive(Clone, Debug)]
pub struct Settings {
    pub issuer: String,
    pub audience: String,
    /// The claim that lists groups.
    pub groups_claim: String,
    /// The claim that holds a display name; unset: `name`, else `preferred_username`.
    pub display_claim: Option<String>,
    /// The longest `exp - iat`, 15 minutes unless configured.
    pub max_token_lifetime: Span,
    /// Hosts that may be reached over plain http, bare names compared exactly. The
    /// server's own host always may.
    pub plain_http_hosts: BTreeSet<String>,
}

impl Settings {
    /// The defaults of PA §10.1 for an issuer and an audience.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            audience: audience.into(),
            groups_claim: "groups".to_owned(),
            display_claim: None,
            max_token_lifetime: Span::seconds(15 * 60),
            plain_http_hosts: BTreeSet::new(),
        }
    }
}

/// Why a token is no credential: each defect of PA §10.1 by a name of its own. All
/// are 401; the name is for the log and for tests, and quotes nothing of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Defect {
    /// Not three base64url parts of JSON objects, or too long.
    Malformed,
    /// `none`, a shared-secret algorithm, or one that is not known.
    Algorithm,
    /// The header names an extension that must be understood (RFC 7515 §4.1.11).
    CriticalHeader,
    /// No published key has this identifier, or none is fit for this algorithm.
    UnknownKey,
    Signature,
    Issuer,
    Audience,
    /// Past its `exp`, or without one.
    Expired,
    NotYetValid,
    IssuedAtMissing,
    IssuedInFuture,
    Lifetime,
    /// `sub` missing, empty or not a string.
    Subject,
    /// It carries `nonce` or `at_hash`.
    IdToken,
    /// `jti` missing, empty or not a string.
    Identifier,
}

impl Defect {
    pub const fn as_str(self) -> &'static str {
        match self {
            Defect::Malformed => "malformed",
            Defect::Algorithm => "algorithm",
            Defect::CriticalHeader => "critical-header",
            Defect::UnknownKey => "unknown-key",
            Defect::Signature => "signature",
            Defect::Issuer => "issuer",
            Defect::Audience => "audience",
            Defect::Expired => "expired",
            Defect::NotYetValid => "not-yet-valid",
            Defect::IssuedAtMissing => "issued-at-missing",
            Defect::IssuedInFuture => "issued-in-future",
            Defect::Lifetime => "lifetime",
            Defect::Subject => "subject",
            Defect::IdToken => "id-token",
            Defect::Identifier => "identifier",
        }
    }
}

/// Why the provider's keys could not be had. Never its address or its own text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outage {
    Unreachable,
    TimedOut,
    /// It answered with a status that is no success.
    Status,
    /// An answer that is too large, no JSON or lacks what it must have.
    NotUnderstood,
    /// A plain-http host that is not listed, or a scheme that is neither.
    HostRefused,
    /// The discovery document is another issuer's.
    OtherIssuer,
    TooManyRedirects,
}

impl Outage {
    pub const fn as_str(self) -> &'static str {
        match self {
            Outage::Unreachable => "unreachable",
            Outage::TimedOut => "timed-out",
            Outage::Status => "status",
            Outage::NotUnderstood => "not-understood",
            Outage::HostRefused => "host-refused",
            Outage::OtherIssuer => "other-issuer",
            Outage::TooManyRedirects => "too-many-redirects",
        }
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Outage {}

/// A token that gives no claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 401 `unauthenticated`.
    #[error("token refused: {}", .0.as_str())]
    Token(Defect),
    /// 503 `dependency-unavailable`: the token may be good, but nobody can tell.
    #[error("identity provider not available: {}", .0.as_str())]
    Unavailable(Outage),
}

/// The identity provider: verifies tokens against its keys, which are fetched at the
/// first token, kept, and fetched again as they age or when a token names a new one.
pub struct Provider<R: Rules = Enforced> {
    settings: Settings,
    fetcher: Fetcher<R>,
    kept: Cache<KeySet, Outage>,
    rules: R,
}

impl Provider<Enforced> {
    /// Fails on an issuer that may not be reached. Nothing is fetched yet.
    pub fn new(settings: Settings) -> Result<Self, Outage> {
        Self::with_rules(settings, Enforced)
    }
}

impl<R: Rules> Provider<R> {
    /// As [`Provider::new`], under rules a test chose.
    pub fn with_rules(settings: Settings, rules: R) -> Result<Self, Outage> {
        let fetcher = Fetcher::new(settings.plain_http_hosts.clone(), rules)?;
        fetcher.admit(&settings.issuer)?;
        Ok(Self {
            settings,
            fetcher,
            kept: Cache::new(Bounds {
                fresh: FRESH.as_micros(),
                usable: USABLE.as_micros(),
                burst: BURST,
                refill: REFILL.as_micros(),
            }),
            rules,
        })
    }

    /// The claims of a token that passes every check of PA §10.1 at `now`, the
    /// database's time.
    pub async fn verify(&self, token: &str, now: DbTime) -> Result<TokenClaims, Refusal> {
        let outcome = self.verified(token, now).await;
        match &outcome {
            Ok(_) => {}
            Err(Refusal::Token(defect)) => {
                tracing::debug!(defect = defect.as_str(), "access token refused");
            }
            Err(Refusal::Unavailable(outage)) => {
                tracing::warn!(outage = outage.as_str(), "identity provider not available");
            }
        }
        outcome
    }

    async fn verified(&self, token: &str, now: DbTime) -> Result<TokenClaims, Refusal> {
        let token = jwt::Token::parse(token).map_err(Refusal::Token)?;
        let asymmetric = token.algorithm().is_some();
        if !self.rules.holds(Rule::JwtAlgorithm, asymmetric) {
            return Err(Refusal::Token(Defect::Algorithm));
        }
        let signed = self.signed(&token, now).await?;
        if !self.rules.holds(Rule::JwtSignature, signed.is_ok()) {
            return Err(Refusal::Token(signed.err().unwrap_or(Defect::Signature)));
        }
        claims::check(&self.rules, &self.settings, token.claims(), now).map_err(Refusal::Token)
    }

    /// Whether a published key signed the token; an identifier that is not among the
    /// kept keys is looked for among the provider's, within a bound.
    async fn signed(
        &self,
        token: &jwt::Token<'_>,
        now: DbTime,
    ) -> Result<Result<(), Defect>, Refusal> {
        let fetch = || keys::fetch(&self.fetcher, &self.settings.issuer);
        let now = now.as_micros();
        let kept = self.kept.value(now, fetch).await;
        let kept = kept.map_err(Refusal::Unavailable)?;
        if kept.knows(token) {
            return Ok(verdict(&kept, token));
        }
        let newer = self.kept.newer_than(&kept, now, fetch).await;
        match newer.map_err(Refusal::Unavailable)? {
            Some(newer) => Ok(verdict(&newer, token)),
            None => Ok(Err(Defect::UnknownKey)),
        }
    }
}

fn verdict(keys: &KeySet, token: &jwt::Token<'_>) -> Result<(), Defect> {
    if !keys.knows(token) {
        return Err(Defect::UnknownKey);
    }
    if keys.verify(token) {
        Ok(())
    } else {
        Err(Defect::Signature)
    }
}
