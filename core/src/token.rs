//! Automation tokens (PA §10.2): their text, their bounds, and what admits one.
//!
//! The token tool issues, authentication admits. Never in this module: a token's
//! secret in anything that prints. Only SHA-256 of it is kept, and comparison is
//! constant-time.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::id::{EpochId, PrincipalId, TokenId};
use crate::principal::{Role, Roles};
use crate::rules::{Rule, Rules};
use crate::time::{DbTime, Span};

const PREFIX: &str = "bwt_";
const SECRET_BYTES: usize = 32;

/// A presented or freshly issued token: `bwt_<token id>.<256 bits, base64url>`. It has no
/// Display, and its Debug shows the identifier alone.
pub struct TokenText {
    id: TokenId,
    secret: Zeroizing<[u8; SECRET_BYTES]>,
}

impl TokenText {
    /// A token of 256 bits from the caller's random source.
    pub fn issued(id: TokenId, secret: [u8; SECRET_BYTES]) -> Self {
        Self {
            id,
            secret: Zeroizing::new(secret),
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('.')?;
        let id = TokenId::parse(id).ok()?;
        let decoded = Zeroizing::new(
            data_encoding::BASE64URL_NOPAD
                .decode(secret.as_bytes())
                .ok()?,
        );
        let secret = <[u8; SECRET_BYTES]>::try_from(decoded.as_slice()).ok()?;
        Some(Self::issued(id, secret))
    }

    pub const fn id(&self) -> TokenId {
        self.id
    }

    /// What is stored of it.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest(Sha256::digest(self.secret.as_slice()).into())
    }

    /// The text itself, to print once.
    pub fn expose(&self) -> Zeroizing<String> {
        let secret = Zeroizing::new(data_encoding::BASE64URL_NOPAD.encode(self.secret.as_slice()));
        Zeroizing::new(format!("{PREFIX}{}.{}", self.id, secret.as_str()))
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenText({}, withheld)", self.id)
    }
}

/// SHA-256 of a token's secret. Digests are compared by [`TokenDigest::is`] alone:
///
/// ```
/// # use bronzeward_core::token::TokenDigest;
/// let digest = TokenDigest::from_bytes([7; 32]);
/// assert!(digest.is(&digest));
/// ```
///
/// A comparison that ends at the first byte that differs does not compile:
///
/// ```compile_fail,E0369
/// # use bronzeward_core::token::TokenDigest;
/// let digest = TokenDigest::from_bytes([7; 32]);
/// assert!(digest == digest);
/// ```
#[derive(Clone, Copy)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// In constant time.
    pub fn is(&self, other: &TokenDigest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(..)")
    }
}

/// A token's row.
#[derive(Clone, Debug)]
pub struct Token {
    pub id: TokenId,
    pub owner: PrincipalId,
    pub digest: TokenDigest,
    pub roles: Roles,
    pub expires_at: DbTime,
    pub epoch: EpochId,
    pub revoked_at: Option<DbTime>,
}

/// Why a presented token is not admitted. All but the last are one 401; a revoked or
/// denied identity is 403 `identity-revoked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenRefusal {
    Unknown,
    Expired,
    EarlierEpoch,
    Rotated,
    IdentityRevoked,
}

/// Its owner as authentication reads it, in one query with the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerStanding {
    pub revoked: bool,
    /// A `deniedSubjects` entry lists its identifier or its name.
    pub denied: bool,
}

/// Whether a presented token authenticates its owner. The secret is compared first: what
/// a stranger learns of an identity is nothing.
pub fn admit<R: Rules>(
    rules: &R,
    presented: &TokenText,
    stored: &Token,
    owner: OwnerStanding,
    current: EpochId,
    now: DbTime,
) -> Result<(), TokenRefusal> {
    if presented.id != stored.id || !stored.digest.is(&presented.digest()) {
        return Err(TokenRefusal::Unknown);
    }
    let denied = rules.enforced(Rule::DeniedSubjects) && owner.denied;
    if owner.revoked || denied {
        return Err(TokenRefusal::IdentityRevoked);
    }
    if !rules.holds(Rule::TokenNotRevoked, stored.revoked_at.is_none()) {
        return Err(TokenRefusal::Rotated);
    }
    if !rules.holds(Rule::TokenEpoch, stored.epoch == current) {
        return Err(TokenRefusal::EarlierEpoch);
    }
    if !rules.holds(Rule::TokenExpires, now < stored.expires_at) {
        return Err(TokenRefusal::Expired);
    }
    Ok(())
}

/// The default and the longest life of a token.
pub const DEFAULT_DAYS: i64 = 30;
pub const MAX_DAYS: i64 = 90;

/// Why the tool refuses to issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IssueRefusal {
    /// A role automation never holds, or none at all.
    Roles,
    /// Not from 1 to 90 days.
    Expiry,
    IdentityRevoked,
    /// A `deniedSubjects` entry lists the identifier or the name.
    Denied,
    /// The responsible human or the operator is revoked.
    HumanRevoked,
}

/// What issuing or rotating decides on, under the principal's lock.
#[derive(Clone, Copy, Debug)]
pub struct IssueFacts<'a> {
    pub roles: &'a Roles,
    pub days: Option<i64>,
    pub owner: OwnerStanding,
    pub human_revoked: bool,
    pub now: DbTime,
}

/// Decides an issue or a rotation; the answer is the token's expiry. The unrevoked token,
/// expired or not, is revoked in the same transaction.
pub fn issue<R: Rules>(rules: &R, facts: &IssueFacts<'_>) -> Result<DbTime, IssueRefusal> {
    let allowed = facts.roles.iter().all(|role| role.automation_may_hold());
    if facts.roles.is_empty() || !rules.holds(Rule::AutomationRoles, allowed) {
        return Err(IssueRefusal::Roles);
    }
    let days = facts.days.unwrap_or(DEFAULT_DAYS);
    if !(1..=MAX_DAYS).contains(&days) {
        return Err(IssueRefusal::Expiry);
    }
    if facts.owner.revoked {
        return Err(IssueRefusal::IdentityRevoked);
    }
    if rules.enforced(Rule::DeniedSubjects) && facts.owner.denied {
        return Err(IssueRefusal::Denied);
    }
    if facts.human_revoked {
        return Err(IssueRefusal::HumanRevoked);
    }
    Ok(facts.now + Span::seconds(days * 86_400))
}

/// The roles a service identity may hold.
pub const AUTOMATION_ROLES: [Role; 3] = [Role::Viewer, Role::Author, Role::Publisher];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    fn text() -> TokenText {
        TokenText::issued(TokenId::from_bits(1), [7; 32])
    }

    fn stored() -> Token {
        Token {
            id: TokenId::from_bits(1),
            owner: PrincipalId::from_bits(1),
            digest: text().digest(),
            roles: [Role::Publisher].into(),
            expires_at: DbTime::from_seconds(100),
            epoch: EpochId::from_bits(1),
            revoked_at: None,
        }
    }

    const FINE: OwnerStanding = OwnerStanding {
        revoked: false,
        denied: false,
    };

    #[test]
    fn a_token_reads_back_and_shows_nothing_of_its_secret() {
        let exposed = text().expose();
        let parsed = TokenText::parse(&exposed).unwrap();
        assert!(parsed.digest().is(&text().digest()));
        let shown = format!("{:?} {:?}", text(), stored());
        let secret = exposed.split_once('.').unwrap().1;
        assert!(!shown.contains(secret));
        for wrong in [
            "",
            "bwt_",
            "bwt_x.y",
            &exposed[..exposed.len() - 1],
            &exposed[4..],
        ] {
            assert!(TokenText::parse(wrong).is_none());
        }
    }

    #[test]
    fn each_reason_refuses_a_token_alone() {
        let judge = |stored: &Token, owner, epoch: u128, now| {
            admit(
                &Enforced,
                &text(),
                stored,
                owner,
                EpochId::from_bits(epoch),
                DbTime::from_seconds(now),
            )
        };
        assert_eq!(judge(&stored(), FINE, 1, 99), Ok(()));
        let other = Token {
            digest: TokenText::issued(TokenId::from_bits(1), [8; 32]).digest(),
            ..stored()
        };
        assert_eq!(judge(&other, FINE, 1, 99), Err(TokenRefusal::Unknown));
        let rotated = Token {
            revoked_at: Some(DbTime::from_seconds(1)),
            ..stored()
        };
        let denied = OwnerStanding {
            denied: true,
            ..FINE
        };
        let revoked = OwnerStanding {
            revoked: true,
            ..FINE
        };
        assert_eq!(
            judge(&rotated, revoked, 2, 100),
            Err(TokenRefusal::IdentityRevoked)
        );
        for (stored, owner, epoch, now, refusal, rule) in [
            (
                rotated,
                FINE,
                1,
                99,
                TokenRefusal::Rotated,
                Rule::TokenNotRevoked,
            ),
            (
                stored(),
                FINE,
                2,
                99,
                TokenRefusal::EarlierEpoch,
                Rule::TokenEpoch,
            ),
            (
                stored(),
                FINE,
                1,
                100,
                TokenRefusal::Expired,
                Rule::TokenExpires,
            ),
            (
                stored(),
                denied,
                1,
                99,
                TokenRefusal::IdentityRevoked,
                Rule::DeniedSubjects,
            ),
        ] {
            assert_eq!(judge(&stored, owner, epoch, now), Err(refusal));
            let rules: &'static [Rule] = vec![rule].leak();
            let epoch = EpochId::from_bits(epoch);
            let now = DbTime::from_seconds(now);
            assert!(admit(&Without(rules), &text(), &stored, owner, epoch, now).is_ok());
        }
    }

    #[test]
    fn a_token_is_issued_for_automations_roles_and_for_at_most_ninety_days() {
        let publisher: Roles = [Role::Publisher].into();
        let approver: Roles = [Role::Publisher, Role::Approver].into();
        let none = Roles::new();
        let now = DbTime::from_seconds(0);
        let issue_for = |roles, days, owner, human_revoked| {
            issue(
                &Enforced,
                &IssueFacts {
                    roles,
                    days,
                    owner,
                    human_revoked,
                    now,
                },
            )
        };
        let day = |days: i64| Ok(DbTime::from_seconds(days * 86_400));
        assert_eq!(issue_for(&publisher, None, FINE, false), day(30));
        assert_eq!(issue_for(&publisher, Some(90), FINE, false), day(90));
        for days in [0, 91, -1] {
            let refused = issue_for(&publisher, Some(days), FINE, false);
            assert_eq!(refused, Err(IssueRefusal::Expiry));
        }
        for roles in [&approver, &none] {
            let refused = issue_for(roles, None, FINE, false);
            assert_eq!(refused, Err(IssueRefusal::Roles));
        }
        let denied = OwnerStanding {
            denied: true,
            ..FINE
        };
        let revoked = OwnerStanding {
            revoked: true,
            ..FINE
        };
        assert_eq!(
            issue_for(&publisher, None, denied, false),
            Err(IssueRefusal::Denied)
        );
        assert_eq!(
            issue_for(&publisher, None, revoked, false),
            Err(IssueRefusal::IdentityRevoked)
        );
        assert_eq!(
            issue_for(&publisher, None, FINE, true),
            Err(IssueRefusal::HumanRevoked)
        );
    }
}
