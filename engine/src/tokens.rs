//! The operator's token tool (PA §10.2): issue, rotate, revoke and list.
//!
//! Called by the server's `token` subcommand, and by no route: the API issues no token.
//! Every change takes the installation FOR SHARE, the service identity FOR UPDATE and the
//! humans it records FOR SHARE, in this order. Never in this module: a token's text in an
//! act, an error or a log.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::id::{EpochId, PrincipalId, TokenId};
use bronzeward_core::principal::{Actor, Principal, PrincipalKind, Role, Roles, Subject};
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::DbTime;
use bronzeward_core::token::{IssueFacts, IssueRefusal, OwnerStanding, Token, TokenText, issue};

use crate::authenticate::Access;
use crate::ports::store::{
    ListedToken, LockMode, Snapshot, Store, StoreTx, TokenReads, TokenWrites, Written,
};
use crate::rows::PrincipalRow;
use crate::tx::level::{InstallationState, Principals};
use crate::tx::{Abort, ActsTx, Failure, Held, Kind, Tx, lock_by, transact};
use crate::world::{Db, World};

/// A human as the tool is told of one: known already, or by issuer and subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Human {
    Identity(PrincipalId),
    Subject { issuer: String, subject: String },
}

/// A service identity as the tool is told of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    Identity(PrincipalId),
    Name(String),
}

/// A new service identity and what its token may do.
#[derive(Clone, Debug)]
pub struct NewService {
    pub name: String,
    pub responsible: Human,
    pub roles: Roles,
    pub days: Option<i64>,
}

/// A token as it is printed, once.
#[derive(Debug)]
pub struct Issued {
    pub identity: PrincipalId,
    pub token: TokenText,
    pub expires_at: DbTime,
}

/// Why the tool refuses. Nothing was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("a service identity's name is 1 to 128 printable characters without spaces")]
    Name,
    #[error("a service identity has this name already")]
    NameTaken,
    #[error("roles are one or more of viewer, author and publisher")]
    Roles,
    #[error("a token's life is from 1 to 90 days")]
    Expiry,
    #[error("there is no such service identity")]
    UnknownService,
    #[error("there is no such human")]
    UnknownHuman,
    #[error("the identity is revoked")]
    IdentityRevoked,
    #[error("auth.deniedSubjects lists the identity or its name")]
    Denied,
    #[error("the responsible human or the operator is revoked")]
    HumanRevoked,
    #[error("the identity has no unrevoked token")]
    NoToken,
    #[error("the database could not be used; nothing was committed")]
    Unavailable,
    #[error("the connection was lost at commit; list the tokens and rotate")]
    Unknown,
}

impl From<IssueRefusal> for Refusal {
    fn from(refusal: IssueRefusal) -> Self {
        match refusal {
            IssueRefusal::Roles => Self::Roles,
            IssueRefusal::Expiry => Self::Expiry,
            IssueRefusal::IdentityRevoked => Self::IdentityRevoked,
            IssueRefusal::Denied => Self::Denied,
            IssueRefusal::HumanRevoked => Self::HumanRevoked,
        }
    }
}

impl From<Failure<Refusal>> for Refusal {
    fn from(failure: Failure<Refusal>) -> Self {
        match failure {
            Failure::Refused(refusal) => refusal,
            Failure::Unknown => Self::Unknown,
            Failure::Unique("principal_name_key") => Self::NameTaken,
            Failure::Deadlock
            | Failure::Unavailable
            | Failure::Unique(_)
            | Failure::Integrity(_)
            | Failure::Fault => Self::Unavailable,
        }
    }
}

/// The tool, against one database and the deployment's list.
pub struct Tokens<'w, W: World> {
    pub db: &'w Db<W>,
    pub access: &'w Access,
}

impl<W: World> Tokens<'_, W> {
    /// Creates a service identity and issues its first token.
    pub async fn issue(&self, new: &NewService, operator: &Human) -> Result<Issued, Refusal> {
        named(&new.name)?;
        let rules = self.db.rules();
        let (identity, text) = (self.db.mint(), self.text());
        let (created, issued) = (self.db.mint(), self.db.mint());
        let minted = (self.db.mint(), self.db.mint());
        let expires_at = transact(self.db.store(), Kind::Job, async |tx| {
            let (mut tx, installation) = tx.lock_installation(LockMode::Share).await?;
            let responsible = human(&mut tx, minted.0, &new.responsible).await?;
            let operator = human(&mut tx, minted.1, operator).await?;
            let humans = BTreeSet::from([responsible, operator]);
            let (tx, rows) = tx.lock_principals(&shared(&humans)).await?;
            let human_revoked = standing(&rows, &humans)?;
            let (mut acts, at) = tx.open().lock_acts(&rules).await?;
            let facts = IssueFacts {
                roles: &new.roles,
                days: new.days,
                owner: OwnerStanding {
                    revoked: false,
                    denied: self.access.denies_service(Some(identity), &new.name),
                },
                human_revoked,
                now: at,
            };
            let expires_at = match issue(&rules, &facts) {
                Ok(expires_at) => expires_at,
                Err(refusal) => return acts.refuse(refusal.into()).await,
            };
            let rows = acts.rows();
            rows.insert_service(identity, &new.name, responsible)
                .await?;
            let epoch = installation.epoch;
            let token = token(&text, identity, &new.roles, expires_at, epoch);
            rows.insert_token(&token, at).await?;
            let act = ActDraft::new(created, Action::SERVICE_IDENTITY_CREATED).on(identity);
            record(&mut acts, act, operator, epoch).await?;
            let act = ActDraft::new(issued, Action::TOKEN_ISSUED)
                .on(identity)
                .on(text.id());
            record(&mut acts, act, operator, epoch).await?;
            acts.done(expires_at)
        })
        .await
        .map_err(Refusal::from)?
        .into_inner();
        Ok(Issued {
            identity,
            token: text,
            expires_at,
        })
    }

    /// Replaces an identity's unrevoked token, expired or not, by a new one. Without roles it
    /// keeps those of the latest.
    pub async fn rotate(
        &self,
        service: &Service,
        roles: Option<&Roles>,
        days: Option<i64>,
        operator: &Human,
    ) -> Result<Issued, Refusal> {
        let rules = self.db.rules();
        let (text, act) = (self.text(), self.db.mint());
        let minted = self.db.mint();
        let (identity, expires_at) = transact(self.db.store(), Kind::Job, async |tx| {
            let (mut tx, installation) = tx.lock_installation(LockMode::Share).await?;
            let operator = human(&mut tx, minted, operator).await?;
            let (mut tx, row, human_revoked) = locked(&rules, tx, service, operator).await?;
            let identity = row.principal.id;
            let kept = match roles {
                Some(roles) => Some(roles.clone()),
                None => tx.peek().latest_roles(identity).await?,
            };
            let kept = kept.unwrap_or_default();
            let (mut acts, at) = tx.open().lock_acts(&rules).await?;
            let facts = IssueFacts {
                roles: &kept,
                days,
                owner: self.standing(&row.principal),
                human_revoked,
                now: at,
            };
            let expires_at = match issue(&rules, &facts) {
                Ok(expires_at) => expires_at,
                Err(refusal) => return acts.refuse(refusal.into()).await,
            };
            // The one read under the principal's lock: a rotation replaces no other.
            if let Some(seen) = row.token {
                let _ = acts.rows().revoke_token(seen, at).await?;
            }
            let epoch = installation.epoch;
            let token = token(&text, identity, &kept, expires_at, epoch);
            acts.rows().insert_token(&token, at).await?;
            let act = ActDraft::new(act, Action::TOKEN_ROTATED)
                .on(identity)
                .on(text.id());
            record(&mut acts, act, operator, epoch).await?;
            acts.done((identity, expires_at))
        })
        .await
        .map_err(Refusal::from)?
        .into_inner();
        Ok(Issued {
            identity,
            token: text,
            expires_at,
        })
    }

    /// Revokes an identity's unrevoked token and leaves the identity as it is. It removes
    /// authority only, so a revoked or listed identity is no reason to refuse.
    pub async fn revoke(&self, service: &Service, operator: &Human) -> Result<TokenId, Refusal> {
        let rules = self.db.rules();
        let (act, minted) = (self.db.mint(), self.db.mint());
        let revoked = transact(self.db.store(), Kind::Job, async |tx| {
            let (mut tx, installation) = tx.lock_installation(LockMode::Share).await?;
            let operator = human(&mut tx, minted, operator).await?;
            let (tx, row, operator_revoked) = locked(&rules, tx, service, operator).await?;
            if operator_revoked {
                return tx.refuse(Refusal::HumanRevoked).await;
            }
            let Some(seen) = row.token else {
                return tx.refuse(Refusal::NoToken).await;
            };
            let (mut acts, at) = tx.open().lock_acts(&rules).await?;
            if acts.rows().revoke_token(seen, at).await? == Written::Stale {
                return acts.refuse(Refusal::NoToken).await;
            }
            let identity = row.principal.id;
            let act = ActDraft::new(act, Action::TOKEN_REVOKED)
                .on(identity)
                .on(seen);
            record(&mut acts, act, operator, installation.epoch).await?;
            acts.done(seen)
        })
        .await
        .map_err(Refusal::from)?;
        Ok(revoked.into_inner())
    }

    /// Every token ever issued; no secret, and nothing is recorded.
    pub async fn list(&self) -> Result<Vec<ListedToken>, Refusal> {
        let snapshot = self.db.store().snapshot().await;
        let mut snapshot = snapshot.map_err(|_| Refusal::Unavailable)?;
        let tokens = snapshot.tokens().await;
        snapshot.close().await;
        tokens.map_err(|_| Refusal::Unavailable)
    }

    fn text(&self) -> TokenText {
        TokenText::issued(self.db.mint(), self.db.secret())
    }

    /// The deny list's word on the identity, its name read from the locked row.
    fn standing(&self, owner: &Principal) -> OwnerStanding {
        let denied = match &owner.subject {
            Subject::Service { name, .. } => self.access.denies_service(Some(owner.id), name),
            Subject::Human { .. } => false,
        };
        OwnerStanding {
            revoked: owner.revoked_at.is_some(),
            denied,
        }
    }
}

fn named(name: &str) -> Result<(), Refusal> {
    let printable = name.chars().all(|c| !c.is_control() && !c.is_whitespace());
    match printable && (1..=128).contains(&name.len()) {
        true => Ok(()),
        false => Err(Refusal::Name),
    }
}

fn token(
    text: &TokenText,
    owner: PrincipalId,
    roles: &Roles,
    expires_at: DbTime,
    epoch: EpochId,
) -> Token {
    Token {
        id: text.id(),
        owner,
        digest: text.digest(),
        roles: roles.clone(),
        expires_at,
        epoch,
        revoked_at: None,
    }
}

/// A human's row; one that never signed in is made under `minted`.
async fn human<T: StoreTx>(
    tx: &mut Tx<T, InstallationState>,
    minted: PrincipalId,
    named: &Human,
) -> Result<PrincipalId, Abort<Refusal>> {
    match named {
        Human::Identity(id) => Ok(*id),
        Human::Subject { issuer, subject } => {
            tx.peek().ensure_human(minted, issuer, subject).await?;
            let row = tx.peek().human(issuer, subject).await?;
            row.map(|row| row.id)
                .ok_or(Abort::Refused(Refusal::UnknownHuman))
        }
    }
}

fn shared(humans: &BTreeSet<PrincipalId>) -> BTreeMap<PrincipalId, Option<LockMode>> {
    humans
        .iter()
        .map(|id| (*id, Some(LockMode::Share)))
        .collect()
}

/// Whether one of the humans is revoked; each of them must be there and be one.
fn standing(
    rows: &[Held<PrincipalRow>],
    humans: &BTreeSet<PrincipalId>,
) -> Result<bool, Abort<Refusal>> {
    let mut revoked = false;
    for id in humans {
        let found = rows
            .iter()
            .map(|row| &row.principal)
            .find(|row| row.id == *id);
        match found {
            Some(row) if row.kind() == PrincipalKind::Human => {
                revoked |= row.revoked_at.is_some();
            }
            _ => return Err(Abort::Refused(Refusal::UnknownHuman)),
        }
    }
    Ok(revoked)
}

/// The service identity FOR UPDATE with the humans it records FOR SHARE, in id order, and
/// whether one of those humans is revoked.
async fn locked<T: StoreTx, R: Rules>(
    rules: &R,
    mut tx: Tx<T, InstallationState>,
    service: &Service,
    operator: PrincipalId,
) -> Result<(Tx<T, Principals>, PrincipalRow, bool), Abort<Refusal>> {
    let found = match service {
        Service::Identity(id) => tx.peek().principal(*id).await?,
        Service::Name(name) => tx.peek().service(name).await?,
    };
    let Some(Principal {
        id,
        subject: Subject::Service { responsible, .. },
        ..
    }) = found
    else {
        return tx.refuse(Refusal::UnknownService).await;
    };
    let humans = BTreeSet::from([responsible, operator]);
    let mut principals = shared(&humans);
    principals.insert(
        id,
        lock_by(rules, Rule::TokenPrincipalLock, LockMode::Update),
    );
    let (tx, rows) = tx.lock_principals(&principals).await?;
    let human_revoked = standing(&rows, &humans)?;
    let row = rows.into_iter().map(Held::into_row);
    match row.into_iter().find(|row| row.principal.id == id) {
        Some(row) => Ok((tx, row, human_revoked)),
        None => tx.refuse(Refusal::UnknownService).await,
    }
}

/// An act of the tool: by the operator, under no role and no request.
async fn record<T: StoreTx>(
    acts: &mut ActsTx<T>,
    act: ActDraft,
    operator: PrincipalId,
    epoch: EpochId,
) -> Result<(), Abort<Refusal>> {
    let at = acts.at();
    // Stored without a role, since no request carries it.
    let actor = Actor {
        principal: operator,
        role: Role::Viewer,
        kind: PrincipalKind::Human,
    };
    let entry = act.by(actor, None, None, epoch);
    acts.rows().insert_act(&entry, at).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_identitys_name_is_short_and_printable() {
        assert_eq!(named("ci-publisher"), Ok(()));
        for refused in ["", "two words", "line\nbreak", &"x".repeat(129)] {
            assert_eq!(named(refused), Err(Refusal::Name));
        }
    }
}
