//! Principals with their tokens, approvals with their revocations (PA §10).

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::id::{ActId, PrincipalId, TokenId};
use bronzeward_core::principal::{Principal, PrincipalKind, Roles};
use bronzeward_core::time::DbTime;
use bronzeward_core::token::{Token, TokenDigest};
use bronzeward_engine::ports::store::{ActRow, Page, Paged, PrincipalReads, PrincipalWrites};
use bronzeward_engine::rows::{ApprovalRow, PrincipalRow};
use diesel::prelude::*;

use crate::convert::{Out, digest, fault, id, opt_id, role};
use crate::records::{Approval, PrincipalRecord};
use crate::schema::{act, approval_revocation, automation_token, installation_state, principal};
use crate::store::{Access, PgRows, PgTx};
use crate::time::{Stamp, clock_timestamp};

impl<M: Access> PgRows<M> {
    /// Each principal with its unrevoked token, in the order given.
    pub(crate) async fn with_tokens(
        &mut self,
        records: Vec<PrincipalRecord>,
    ) -> Out<Vec<PrincipalRow>> {
        use automation_token::dsl;
        let ids: Vec<String> = records.iter().map(|record| record.id.clone()).collect();
        let query = dsl::automation_token
            .filter(dsl::principal_id.eq_any(ids))
            .filter(dsl::revoked_at.is_null())
            .select((dsl::principal_id, dsl::id));
        let rows: Vec<(String, String)> = self.load(query).await?;
        let tokens: BTreeMap<String, String> = rows.into_iter().collect();
        records
            .into_iter()
            .map(|record| {
                let token = tokens.get(&record.id).map(String::as_str);
                record.row(token)
            })
            .collect()
    }

    /// Each approval with whether it was revoked, in the order given.
    pub(crate) async fn with_revocations(
        &mut self,
        records: Vec<Approval>,
    ) -> Out<Vec<ApprovalRow>> {
        use approval_revocation::dsl;
        let ids: Vec<String> = records.iter().map(|record| record.id.clone()).collect();
        let query = dsl::approval_revocation
            .filter(dsl::approval_id.eq_any(ids))
            .select(dsl::approval_id);
        let rows: Vec<String> = self.load(query).await?;
        let revoked: BTreeSet<String> = rows.into_iter().collect();
        records
            .into_iter()
            .map(|record| {
                let revoked = revoked.contains(&record.id);
                record.row(revoked)
            })
            .collect()
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = automation_token)]
struct TokenRecord {
    id: String,
    principal_id: String,
    secret_sha256: Vec<u8>,
    roles: Vec<Option<String>>,
    epoch: String,
    expires_at: Stamp,
    revoked_at: Option<Stamp>,
}

impl TokenRecord {
    fn token(self) -> Out<Token> {
        let roles = self
            .roles
            .iter()
            .flatten()
            .map(|text| role(text))
            .collect::<Out<Roles>>()?;
        Ok(Token {
            id: id(&self.id)?,
            owner: id(&self.principal_id)?,
            digest: TokenDigest::from_bytes(digest(&self.secret_sha256)?),
            roles,
            expires_at: self.expires_at.0,
            epoch: id(&self.epoch)?,
            revoked_at: self.revoked_at.map(|at| at.0),
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = act)]
struct ActRecord {
    id: String,
    principal_id: String,
    principal_kind: String,
    role: Option<String>,
    action: String,
    subjects: serde_json::Value,
    request_id: Option<String>,
    epoch: String,
    at: Stamp,
}

impl ActRecord {
    fn row(self) -> Out<ActRow> {
        let subjects = match self.subjects {
            serde_json::Value::Array(items) => items
                .into_iter()
                .map(|item| match item {
                    serde_json::Value::String(text) => Ok(text),
                    _ => Err(fault()),
                })
                .collect::<Out<_>>()?,
            _ => return Err(fault()),
        };
        Ok(ActRow {
            id: id(&self.id)?,
            principal: id(&self.principal_id)?,
            kind: PrincipalKind::parse(&self.principal_kind).ok_or_else(fault)?,
            role: self.role.as_deref().map(role).transpose()?,
            action: self.action,
            subjects,
            request: opt_id(self.request_id.as_deref())?,
            epoch: id(&self.epoch)?,
            at: self.at.0,
        })
    }
}

impl<M: Access> PrincipalReads for PgRows<M> {
    async fn principal(&mut self, of: PrincipalId) -> Out<Option<Principal>> {
        let query = principal::table
            .find(of.to_string())
            .select(PrincipalRecord::as_select());
        let found: Option<PrincipalRecord> = self.optional(query).await?;
        found.map(PrincipalRecord::principal).transpose()
    }

    async fn human(&mut self, issuer: &str, subject: &str) -> Out<Option<Principal>> {
        let query = principal::table
            .filter(principal::iss.eq(issuer.to_owned()))
            .filter(principal::sub.eq(subject.to_owned()))
            .select(PrincipalRecord::as_select());
        let found: Option<PrincipalRecord> = self.optional(query).await?;
        found.map(PrincipalRecord::principal).transpose()
    }

    async fn service(&mut self, name: &str) -> Out<Option<Principal>> {
        let query = principal::table
            .filter(principal::name.eq(name.to_owned()))
            .select(PrincipalRecord::as_select());
        let found: Option<PrincipalRecord> = self.optional(query).await?;
        found.map(PrincipalRecord::principal).transpose()
    }

    async fn token(&mut self, of: TokenId) -> Out<Option<(Token, Principal)>> {
        let query = automation_token::table
            .inner_join(principal::table)
            .filter(automation_token::id.eq(of.to_string()))
            .select((TokenRecord::as_select(), PrincipalRecord::as_select()));
        let found: Option<(TokenRecord, PrincipalRecord)> = self.optional(query).await?;
        found
            .map(|(token, owner)| Ok((token.token()?, owner.principal()?)))
            .transpose()
    }

    async fn clock(&mut self) -> Out<DbTime> {
        let at: Stamp = self.one(diesel::select(clock_timestamp())).await?;
        Ok(at.0)
    }

    async fn acts(&mut self, page: &Page<ActId>) -> Out<Paged<ActRow>> {
        let mut query = act::table.select(ActRecord::as_select()).into_boxed();
        if let Some(after) = page.after {
            let seq: Option<i64> = self
                .optional(act::table.find(after.to_string()).select(act::seq))
                .await?;
            // An act of a cursor is never deleted, so a missing one is of another database
            // state; nothing follows it.
            query = query.filter(act::seq.gt(seq.unwrap_or(i64::MAX)));
        }
        let rows: Vec<ActRecord> = self
            .load(query.order(act::seq).limit(i64::from(page.limit) + 1))
            .await?;
        let rows = rows
            .into_iter()
            .map(ActRecord::row)
            .collect::<Out<Vec<_>>>()?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn cursor_key(&mut self) -> Out<[u8; 32]> {
        let key: Vec<u8> = self
            .one(installation_state::table.select(installation_state::cursor_key))
            .await?;
        digest(&key)
    }
}

impl PrincipalWrites for PgTx {
    async fn ensure_human(&mut self, new: PrincipalId, issuer: &str, subject: &str) -> Out<()> {
        use principal::dsl;
        let insert = diesel::insert_into(dsl::principal)
            .values((
                dsl::id.eq(new.to_string()),
                dsl::kind.eq("human"),
                dsl::iss.eq(issuer.to_owned()),
                dsl::sub.eq(subject.to_owned()),
            ))
            .on_conflict((dsl::iss, dsl::sub))
            .do_nothing();
        self.execute(insert).await.map(drop)
    }

    async fn refresh_display(&mut self, of: PrincipalId, display: &str) -> Out<()> {
        use principal::dsl;
        let update = diesel::update(
            dsl::principal
                .filter(dsl::id.eq(of.to_string()))
                .filter(dsl::kind.eq("human"))
                .filter(dsl::revoked.eq(false))
                .filter(dsl::display.is_distinct_from(display.to_owned())),
        )
        .set(dsl::display.eq(display.to_owned()));
        self.execute(update).await.map(drop)
    }
}
