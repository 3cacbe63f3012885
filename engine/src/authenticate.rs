//! Who a request is from (PA §10), and the rows a first admitted request makes.
//!
//! Called by http for every request but liveness. Never in this module: which roles a
//! route asks for, or a credential in an error or a log.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::id::PrincipalId;
use bronzeward_core::principal::{Principal, PrincipalKind, Role, Roles, Subject};
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::DbTime;
use bronzeward_core::token::{OwnerStanding, TokenRefusal, TokenText, admit};

use crate::ports::store::{
    PrincipalReads, PrincipalWrites, RequestReads, Snapshot, Store, StoreError,
};
use crate::ports::{HumanTokenRefusal, HumanTokens};
use crate::request::{EpochRead, Refused, before_request_problem};
use crate::tx::{Kind, transact};
use crate::world::{Db, World};

/// One `deniedSubjects` entry (PA §10.4). It survives a database restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    Human {
        issuer: String,
        subject: String,
    },
    Service {
        identity: Option<PrincipalId>,
        name: Option<String>,
    },
}

/// What the deployment says of who may be whom.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub denied: Vec<Denied>,
    /// The groups that give each role.
    pub roles: BTreeMap<Role, BTreeSet<String>>,
}

impl Access {
    pub fn denies_human(&self, issuer: &str, subject: &str) -> bool {
        self.denied.iter().any(|entry| match entry {
            Denied::Human {
                issuer: i,
                subject: s,
            } => i == issuer && s == subject,
            Denied::Service { .. } => false,
        })
    }

    pub fn denies_service(&self, identity: Option<PrincipalId>, name: &str) -> bool {
        self.denied.iter().any(|entry| match entry {
            Denied::Human { .. } => false,
            Denied::Service {
                identity: listed,
                name: listed_name,
            } => (listed.is_some() && *listed == identity) || listed_name.as_deref() == Some(name),
        })
    }

    /// Whether one entry lists a service identity by identifier and name both.
    pub fn lists_service_fully(&self, identity: PrincipalId, name: &str) -> bool {
        self.denied.iter().any(|entry| match entry {
            Denied::Human { .. } => false,
            Denied::Service {
                identity: listed,
                name: listed_name,
            } => *listed == Some(identity) && listed_name.as_deref() == Some(name),
        })
    }

    fn roles_of(&self, groups: &BTreeSet<String>) -> Roles {
        self.roles
            .iter()
            .filter(|(_, giving)| !giving.is_disjoint(groups))
            .map(|(role, _)| *role)
            .collect()
    }
}

/// A verified credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    /// None for a human with no row yet.
    pub principal: Option<PrincipalId>,
    pub kind: PrincipalKind,
    pub subject: WhoAmI,
    pub roles: Roles,
    pub expires_at: DbTime,
    /// The display name its token carries, where its row has another.
    pub display: Option<String>,
    /// The installation state read once it authenticated.
    pub read: EpochRead,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhoAmI {
    Human { issuer: String, subject: String },
    Service { name: String },
}

/// Why a credential gives nobody.
#[derive(Debug)]
pub enum NotAuthenticated {
    /// 401.
    Refused,
    /// 403 `identity-revoked`.
    Revoked,
    /// 503: nobody could tell.
    Unavailable(Problem),
}

fn unreadable(_: StoreError) -> NotAuthenticated {
    NotAuthenticated::Unavailable(Problem::dependency_unavailable(
        "The database could not be read.",
    ))
}

/// Authenticates credentials against one database and one identity provider.
pub struct Authenticator<'w, W: World> {
    pub db: &'w Db<W>,
    pub humans: &'w W::Humans,
    pub access: &'w Access,
}

impl<W: World> Authenticator<'_, W> {
    /// Verifies a bearer credential at the database's time.
    pub async fn authenticate(&self, credential: &str) -> Result<Authenticated, NotAuthenticated> {
        if credential.starts_with("bwt_") {
            let presented = TokenText::parse(credential).ok_or(NotAuthenticated::Refused)?;
            return self.service(&presented).await;
        }
        let now = self.db.store().clock().await.map_err(unreadable)?;
        let claims = match self.humans.verify(credential, now).await {
            Ok(claims) => claims,
            Err(HumanTokenRefusal::Refused) => return Err(NotAuthenticated::Refused),
            Err(HumanTokenRefusal::Unavailable) => {
                return Err(NotAuthenticated::Unavailable(
                    Problem::dependency_unavailable("The identity provider could not be reached."),
                ));
            }
        };
        let mut snapshot = self.db.store().snapshot().await.map_err(unreadable)?;
        let row = snapshot
            .human(&claims.issuer, &claims.subject)
            .await
            .map_err(unreadable)?;
        let read = EpochRead::from(&snapshot.installation().await.map_err(unreadable)?);
        snapshot.close().await;
        let denied = self.access.denies_human(&claims.issuer, &claims.subject);
        let revoked = row.as_ref().is_some_and(|row| row.revoked_at.is_some());
        if revoked || !self.db.rules().holds(Rule::DeniedSubjects, !denied) {
            return Err(NotAuthenticated::Revoked);
        }
        let told = row.as_ref().and_then(|row| row.display.clone());
        Ok(Authenticated {
            principal: row.map(|row| row.id),
            kind: PrincipalKind::Human,
            roles: self.access.roles_of(&claims.groups),
            subject: WhoAmI::Human {
                issuer: claims.issuer,
                subject: claims.subject,
            },
            expires_at: claims.expires_at,
            display: claims.display.filter(|name| told.as_ref() != Some(name)),
            read,
        })
    }

    async fn service(&self, presented: &TokenText) -> Result<Authenticated, NotAuthenticated> {
        let mut snapshot = self.db.store().snapshot().await.map_err(unreadable)?;
        let found = snapshot.token(presented.id()).await.map_err(unreadable)?;
        let now = snapshot.clock().await.map_err(unreadable)?;
        let read = EpochRead::from(&snapshot.installation().await.map_err(unreadable)?);
        snapshot.close().await;
        let (token, owner) = found.ok_or(NotAuthenticated::Refused)?;
        let name = match &owner.subject {
            Subject::Service { name, .. } => name.clone(),
            Subject::Human { .. } => return Err(NotAuthenticated::Refused),
        };
        let standing = OwnerStanding {
            revoked: owner.revoked_at.is_some(),
            denied: self.access.denies_service(Some(owner.id), &name),
        };
        match admit(
            &self.db.rules(),
            presented,
            &token,
            standing,
            read.epoch,
            now,
        ) {
            Ok(()) => Ok(Authenticated {
                principal: Some(owner.id),
                kind: PrincipalKind::Service,
                subject: WhoAmI::Service { name },
                roles: token.roles,
                expires_at: token.expires_at,
                display: None,
                read,
            }),
            Err(TokenRefusal::IdentityRevoked) => Err(NotAuthenticated::Revoked),
            Err(
                TokenRefusal::Unknown
                | TokenRefusal::Expired
                | TokenRefusal::EarlierEpoch
                | TokenRefusal::Rotated,
            ) => Err(NotAuthenticated::Refused),
        }
    }

    /// The principal of an admitted mutating request: a human's row is made on first use, in
    /// a transaction of its own, and its display name follows the token (PA §10); a name that
    /// stands there already is not written again.
    pub async fn principal(&self, who: &Authenticated) -> Result<PrincipalId, Refused> {
        let (issuer, subject) = match (&who.subject, who.principal) {
            (WhoAmI::Service { .. }, Some(id)) => return Ok(id),
            (WhoAmI::Service { .. }, None) => return Err(unavailable()),
            (WhoAmI::Human { issuer, subject }, _) => (issuer, subject),
        };
        let id = match who.principal {
            Some(id) => id,
            None => self.first_use(issuer, subject).await?.id,
        };
        if let Some(display) = &who.display {
            transact(self.db.store(), Kind::BeforeRequest, async |tx| {
                let mut open = tx.open();
                open.rows().refresh_display(id, display).await?;
                open.done::<_, ()>(())
            })
            .await
            .map_err(|failure| Refused::from(before_request_problem(&failure)))?
            .into_inner();
        }
        Ok(id)
    }

    /// Of two concurrent first requests one inserts, and both read the committed row.
    pub async fn first_use(&self, issuer: &str, subject: &str) -> Result<Principal, Refused> {
        let minted = self.db.mint();
        let row = transact(self.db.store(), Kind::BeforeRequest, async |tx| {
            let mut open = tx.open();
            open.rows().ensure_human(minted, issuer, subject).await?;
            let row = open.rows().human(issuer, subject).await?;
            open.done::<_, ()>(row)
        })
        .await
        .map_err(|failure| Refused::from(before_request_problem(&failure)))?
        .into_inner();
        row.ok_or_else(unavailable)
    }
}

fn unavailable() -> Refused {
    Problem::new(ProblemCode::DependencyUnavailable)
        .say("The principal's row could not be made.")
        .into()
}
