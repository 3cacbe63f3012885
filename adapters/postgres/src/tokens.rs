//! Service identities and their tokens (PA §10.2).

use bronzeward_core::id::{PrincipalId, TokenId};
use bronzeward_core::principal::Roles;
use bronzeward_core::time::DbTime;
use bronzeward_core::token::Token;
use bronzeward_engine::ports::store::{ListedToken, TokenReads, TokenWrites, Written};
use diesel::prelude::*;

use crate::convert::{Out, fault, id, role};
use crate::guard::written;
use crate::schema::{automation_token, principal};
use crate::store::{Access, PgRows, PgTx};
use crate::time::Stamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = automation_token)]
struct Listed {
    id: String,
    principal_id: String,
    roles: Vec<Option<String>>,
    epoch: String,
    issued_at: Stamp,
    expires_at: Stamp,
    revoked_at: Option<Stamp>,
}

fn roles(texts: &[Option<String>]) -> Out<Roles> {
    texts.iter().flatten().map(|text| role(text)).collect()
}

impl<M: Access> TokenReads for PgRows<M> {
    async fn tokens(&mut self) -> Out<Vec<ListedToken>> {
        let query = automation_token::table
            .inner_join(principal::table)
            .order((principal::name, automation_token::issued_at.desc()))
            .select((
                Listed::as_select(),
                principal::name,
                principal::responsible,
                principal::revoked,
            ));
        let rows: Vec<(Listed, Option<String>, Option<String>, bool)> = self.load(query).await?;
        rows.into_iter()
            .map(|(token, name, responsible, identity_revoked)| {
                Ok(ListedToken {
                    id: id(&token.id)?,
                    identity: id(&token.principal_id)?,
                    name: name.ok_or_else(fault)?,
                    responsible: id(&responsible.ok_or_else(fault)?)?,
                    roles: roles(&token.roles)?,
                    epoch: id(&token.epoch)?,
                    issued_at: token.issued_at.0,
                    expires_at: token.expires_at.0,
                    revoked_at: token.revoked_at.map(|at| at.0),
                    identity_revoked,
                })
            })
            .collect()
    }

    async fn latest_roles(&mut self, identity: PrincipalId) -> Out<Option<Roles>> {
        let query = automation_token::table
            .filter(automation_token::principal_id.eq(identity.to_string()))
            .order(automation_token::issued_at.desc())
            .limit(1)
            .select(automation_token::roles);
        let found: Option<Vec<Option<String>>> = self.optional(query).await?;
        found.as_deref().map(roles).transpose()
    }
}

impl TokenWrites for PgTx {
    async fn insert_service(
        &mut self,
        new: PrincipalId,
        name: &str,
        responsible: PrincipalId,
    ) -> Out<()> {
        use principal::dsl;
        let insert = diesel::insert_into(dsl::principal).values((
            dsl::id.eq(new.to_string()),
            dsl::kind.eq("service"),
            dsl::name.eq(name.to_owned()),
            dsl::responsible.eq(responsible.to_string()),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_token(&mut self, token: &Token, issued_at: DbTime) -> Out<()> {
        use automation_token::dsl;
        let roles: Vec<Option<String>> = token
            .roles
            .iter()
            .map(|role| Some(role.as_str().to_owned()))
            .collect();
        let insert = diesel::insert_into(dsl::automation_token).values((
            dsl::id.eq(token.id.to_string()),
            dsl::principal_id.eq(token.owner.to_string()),
            dsl::secret_sha256.eq(token.digest.as_bytes().to_vec()),
            dsl::roles.eq(roles),
            dsl::epoch.eq(token.epoch.to_string()),
            dsl::issued_at.eq(Stamp(issued_at)),
            dsl::expires_at.eq(Stamp(token.expires_at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn revoke_token(&mut self, of: TokenId, at: DbTime) -> Out<Written> {
        use automation_token::dsl;
        let update = diesel::update(
            dsl::automation_token
                .filter(dsl::id.eq(of.to_string()))
                .filter(dsl::revoked_at.is_null()),
        )
        .set(dsl::revoked_at.eq(Stamp(at)));
        written(self.execute(update).await?)
    }
}
