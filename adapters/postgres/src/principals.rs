//! Principals with their tokens, approvals with their revocations (PA §10).

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_engine::rows::{ApprovalRow, PrincipalRow};
use diesel::prelude::*;

use crate::convert::Out;
use crate::records::{Approval, PrincipalRecord};
use crate::schema::{approval_revocation, automation_token};
use crate::store::{Access, PgRows};

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
