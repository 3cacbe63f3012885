//! Principals, service identities and their tokens, and acts as they are read.

use bronzeward_core::id::{ActId, PrincipalId, TokenId};
use bronzeward_core::principal::{Principal, PrincipalKind, Role, Roles, Subject};
use bronzeward_core::time::{DbTime, Span};
use bronzeward_core::token::Token;
use bronzeward_engine::ports::store::{
    ActRow, ListedToken, Page, Paged, PrincipalReads, PrincipalWrites, StoreError, TokenReads,
    TokenWrites, Written,
};
use bronzeward_engine::rows::PrincipalRow;

use super::TokenOf;
use super::rows::{of, overfetch};
use crate::pg::session::Session;
use crate::pg::{Tables, Taken, TxId};
use crate::store::writes::Index;

of!(PRINCIPALS: principals, PrincipalId => Principal, Principal, |id| id.bits());
of!(TOKENS: tokens, TokenId => TokenOf, Token, |id| id.bits(), failed);

/// The checks of `automation_token` that a row fails.
fn failed(row: &TokenOf) -> Vec<&'static str> {
    let roles = &row.token.roles;
    let automation = |role: &Role| matches!(role, Role::Viewer | Role::Author | Role::Publisher);
    let length = row.token.expires_at - row.issued_at;
    let days = Span::seconds(90 * 24 * 60 * 60);
    let mut failed = Vec::new();
    if length <= Span::ZERO || length > days {
        failed.push("automation_token_expiry");
    }
    if roles.is_empty() || !roles.iter().all(automation) {
        failed.push("automation_token_roles_check");
    }
    failed
}

fn is_human(principal: &Principal, iss: &str, sub: &str) -> bool {
    let Subject::Human { issuer, subject } = &principal.subject else {
        return false;
    };
    issuer == iss && subject == sub
}

fn is_service(principal: &Principal, called: &str) -> bool {
    matches!(&principal.subject, Subject::Service { name, .. } if name == called)
}

impl Session {
    /// Each principal with its unrevoked token.
    pub(super) async fn with_tokens(
        &mut self,
        principals: Vec<Principal>,
    ) -> Result<Vec<PrincipalRow>, StoreError> {
        self.read("read tokens of principals", |tables, eye| {
            let token_of = |owner: PrincipalId| {
                let mut tokens = tables.authoring.tokens.values(eye).map(|row| &row.token);
                let token = tokens.find(|t| t.owner == owner && t.revoked_at.is_none());
                token.map(|token| token.id)
            };
            let rows = principals.into_iter().map(|principal| PrincipalRow {
                token: match principal.kind() {
                    PrincipalKind::Human => None,
                    PrincipalKind::Service => token_of(principal.id),
                },
                principal,
            });
            rows.collect()
        })
        .await
    }

    async fn find_principal(
        &mut self,
        matches: impl Fn(&Principal) -> bool,
    ) -> Result<Option<Principal>, StoreError> {
        self.read("read principal", |tables, eye| {
            let mut principals = tables.authoring.principals.values(eye);
            principals.find(|row| matches(row)).cloned()
        })
        .await
    }
}

impl PrincipalReads for Session {
    async fn principal(&mut self, id: PrincipalId) -> Result<Option<Principal>, StoreError> {
        self.read("read principal", |tables, eye| {
            tables.authoring.principals.get(eye, &id).cloned()
        })
        .await
    }

    async fn human(
        &mut self,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<Principal>, StoreError> {
        self.find_principal(|row| is_human(row, issuer, subject))
            .await
    }

    async fn service(&mut self, name: &str) -> Result<Option<Principal>, StoreError> {
        self.find_principal(|row| is_service(row, name)).await
    }

    async fn token(&mut self, id: TokenId) -> Result<Option<(Token, Principal)>, StoreError> {
        self.read("read token", |tables, eye| {
            let token = &tables.authoring.tokens.get(eye, &id)?.token;
            let owner = tables.authoring.principals.get(eye, &token.owner)?;
            Some((token.clone(), owner.clone()))
        })
        .await
    }

    async fn clock(&mut self) -> Result<DbTime, StoreError> {
        self.statement("read the time").await?;
        Ok(Session::now(self))
    }

    async fn acts(&mut self, page: &Page<ActId>) -> Result<Paged<ActRow>, StoreError> {
        let mut after = 0;
        if let Some(act) = page.after {
            let place = self
                .read("read an act's place", |tables, eye| {
                    tables.authoring.act_order.get(eye, &act).copied()
                })
                .await?;
            // Nothing follows an act of another state of the database.
            let Some(place) = place else {
                self.statement("read acts").await?;
                return Ok(Paged::from_overfetched(Vec::new(), page.limit));
            };
            after = place.0;
        }
        let most = overfetch(page.limit);
        let rows = self
            .read("read acts", |tables, eye| {
                let acts = tables.authoring.acts.range(eye, after + 1..);
                acts.take(most).map(|(_, act)| act.row.clone()).collect()
            })
            .await?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn cursor_key(&mut self) -> Result<[u8; 32], StoreError> {
        let key = self
            .read("read cursor key", |tables, eye| {
                tables.authoring.cursor_key.get(eye, &()).map(|key| key.0)
            })
            .await?;
        key.ok_or(StoreError::Fault)
    }
}

impl PrincipalWrites for Session {
    async fn ensure_human(
        &mut self,
        id: PrincipalId,
        issuer: &str,
        subject: &str,
    ) -> Result<(), StoreError> {
        self.statement("ensure human").await?;
        let taken = |tables: &Tables, me: TxId| -> Taken {
            let principals = &tables.authoring.principals;
            principals.taken(me, None, 1, |row| is_human(row, issuer, subject))
        };
        loop {
            if self.meets(taken).await? {
                return Ok(());
            }
            let key = |tables: &Tables, me: TxId| tables.authoring.principals.key_taken(me, &id);
            self.unique("principal_pkey", key).await?;
            // While the key was waited for, the name may have been taken.
            if self.write(|db, me, _| taken(&db.tables, me))? == Taken::Free {
                break;
            }
        }
        let row = Principal {
            id,
            subject: Subject::Human {
                issuer: issuer.to_owned(),
                subject: subject.to_owned(),
            },
            display: None,
            created_at: self.began_at()?,
            revoked_at: None,
        };
        self.insert_row(&PRINCIPALS, "principal_pkey", id, row)
            .await
    }

    async fn refresh_display(&mut self, id: PrincipalId, display: &str) -> Result<(), StoreError> {
        self.statement("refresh display").await?;
        let differs = |row: &Principal| {
            row.kind() == PrincipalKind::Human
                && row.revoked_at.is_none()
                && row.display.as_deref() != Some(display)
        };
        let _of_a_row_or_none = self
            .update_row(
                &PRINCIPALS,
                id,
                |row, _| differs(row),
                |row| row.display = Some(display.to_owned()),
            )
            .await?;
        Ok(())
    }
}

impl TokenReads for Session {
    async fn tokens(&mut self) -> Result<Vec<ListedToken>, StoreError> {
        let mut listed: Vec<ListedToken> = self
            .read("read tokens", |tables, eye| {
                let tokens = tables.authoring.tokens.values(eye);
                let listed = tokens.filter_map(|TokenOf { token, issued_at }| {
                    let owner = tables.authoring.principals.get(eye, &token.owner)?;
                    let Subject::Service { name, responsible } = &owner.subject else {
                        return None;
                    };
                    Some(ListedToken {
                        id: token.id,
                        identity: token.owner,
                        name: name.clone(),
                        responsible: *responsible,
                        roles: token.roles.clone(),
                        epoch: token.epoch,
                        issued_at: *issued_at,
                        expires_at: token.expires_at,
                        revoked_at: token.revoked_at,
                        identity_revoked: owner.revoked_at.is_some(),
                    })
                });
                listed.collect()
            })
            .await?;
        listed.sort_by(|a, b| (&a.name, b.issued_at).cmp(&(&b.name, a.issued_at)));
        Ok(listed)
    }

    async fn latest_roles(&mut self, identity: PrincipalId) -> Result<Option<Roles>, StoreError> {
        self.read("read latest roles", |tables, eye| {
            let tokens = tables.authoring.tokens.values(eye);
            let own = tokens.filter(|row| row.token.owner == identity);
            let latest = own.max_by_key(|row| row.issued_at);
            latest.map(|row| row.token.roles.clone())
        })
        .await
    }
}

impl TokenWrites for Session {
    async fn insert_service(
        &mut self,
        id: PrincipalId,
        name: &str,
        responsible: PrincipalId,
    ) -> Result<(), StoreError> {
        self.statement("insert service identity").await?;
        let row = Principal {
            id,
            subject: Subject::Service {
                name: name.to_owned(),
                responsible,
            },
            display: None,
            created_at: self.began_at()?,
            revoked_at: None,
        };
        let same = |row: &Principal| is_service(row, name);
        let named: Index<'_, Principal> = ("principal_name_key", &same);
        self.insert_unique(&PRINCIPALS, "principal_pkey", id, row, &[named])
            .await?;
        self.parent(&PRINCIPALS, &responsible, "principal_responsible_fkey")
            .await
    }

    async fn insert_token(&mut self, token: &Token, issued_at: DbTime) -> Result<(), StoreError> {
        self.statement("insert token").await?;
        let row = TokenOf {
            token: Token {
                revoked_at: None,
                ..token.clone()
            },
            issued_at,
        };
        let owner = token.owner;
        let same = |row: &TokenOf| row.token.owner == owner && row.token.revoked_at.is_none();
        let unrevoked: Index<'_, TokenOf> = ("automation_token_unrevoked", &same);
        self.insert_unique(
            &TOKENS,
            "automation_token_pkey",
            token.id,
            row,
            &[unrevoked],
        )
        .await?;
        self.parent(&PRINCIPALS, &owner, "automation_token_principal_id_fkey")
            .await
    }

    async fn revoke_token(&mut self, id: TokenId, at: DbTime) -> Result<Written, StoreError> {
        self.statement("revoke token").await?;
        let unrevoked = |row: &TokenOf, _| row.token.revoked_at.is_none();
        self.update_row(&TOKENS, id, unrevoked, |row| {
            row.token.revoked_at = Some(at)
        })
        .await
    }
}
