//! Drafts and their entries (PA §3.1, §4).

use bronzeward_core::id::{DraftId, OperationId};
use bronzeward_core::revision::EtagToken;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    DraftReads, DraftWrites, EntryKind, EntryOfDraft, Guard, NewDraft, Page, Paged, Written,
};
use bronzeward_engine::rows::DraftRow;
use diesel::prelude::*;

use crate::convert::{Out, fault, head_id, opt_id, source_revision};
use crate::guard::{predicate, written};
use crate::records::Draft;
use crate::schema::{draft, draft_entry, operation};
use crate::store::{Access, PgRows, PgTx};
use crate::time::Stamp;

/// Kind, subject, head, base and revision of an entry.
type EntryRecord = (String, String, Option<String>, Option<i64>, Option<String>);

impl<M: Access> DraftReads for PgRows<M> {
    async fn draft(&mut self, id: DraftId) -> Out<Option<DraftRow>> {
        let query = draft::table.find(id.to_string()).select(Draft::as_select());
        let found: Option<Draft> = self.optional(query).await?;
        found.map(DraftRow::try_from).transpose()
    }

    async fn drafts(&mut self, page: &Page<DraftId>) -> Out<Paged<DraftRow>> {
        let mut query = draft::table.select(Draft::as_select()).into_boxed();
        if let Some(after) = page.after {
            query = query.filter(draft::id.gt(after.to_string()));
        }
        let rows: Vec<Draft> = self
            .load(query.order(draft::id).limit(i64::from(page.limit) + 1))
            .await?;
        let rows = rows
            .into_iter()
            .map(DraftRow::try_from)
            .collect::<Out<Vec<_>>>()?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn draft_entries(&mut self, id: DraftId) -> Out<Vec<EntryOfDraft>> {
        use draft_entry::dsl;
        let query = dsl::draft_entry
            .filter(dsl::draft_id.eq(id.to_string()))
            .select((
                dsl::kind,
                dsl::subject,
                dsl::head_id,
                dsl::base,
                dsl::revision_id,
            ));
        let rows: Vec<EntryRecord> = self.load(query).await?;
        let mut entries = rows
            .into_iter()
            .map(|(kind, subject, head, base, revision)| {
                let kind = match kind.as_str() {
                    "import-base" => EntryKind::ImportBase,
                    "fragment" => EntryKind::Fragment,
                    "profile" => EntryKind::Profile,
                    "assignment" => EntryKind::Assignment,
                    _ => return Err(fault()),
                };
                let base = match (head, base) {
                    (Some(head), Some(base)) => Some((head_id(&head)?, base)),
                    (None, None) => None,
                    _ => return Err(fault()),
                };
                let revision = revision.as_deref().map(source_revision).transpose()?;
                Ok(EntryOfDraft {
                    kind,
                    subject,
                    base,
                    revision,
                })
            })
            .collect::<Out<Vec<_>>>()?;
        // The order of an answer (PA §9.3), whatever the database's collation.
        entries.sort_by(|a, b| (a.kind, &a.subject).cmp(&(b.kind, &b.subject)));
        Ok(entries)
    }

    async fn active_publication(&mut self, id: DraftId) -> Out<Option<OperationId>> {
        use operation::dsl;
        let query = dsl::operation
            .filter(dsl::draft_id.eq(id.to_string()))
            .filter(dsl::kind.eq("publish"))
            .filter(dsl::state.eq_any(["queued", "running"]))
            .select(dsl::id)
            .order(dsl::seq.desc())
            .limit(1);
        let found: Option<String> = self.optional(query).await?;
        opt_id(found.as_deref())
    }
}

impl DraftWrites for PgTx {
    async fn insert_draft(&mut self, new: &NewDraft, at: DbTime) -> Out<()> {
        use draft::dsl;
        let insert = diesel::insert_into(dsl::draft).values((
            dsl::id.eq(new.id.to_string()),
            dsl::cluster_id.eq(new.cluster.to_string()),
            dsl::title.eq(&new.title),
            dsl::revision.eq(new.etag.revision.0),
            dsl::etag_token.eq(new.etag.token.to_string()),
            dsl::created_by.eq(new.by.principal.to_string()),
            dsl::created_role.eq(new.by.role.as_str()),
            dsl::epoch.eq(new.epoch.to_string()),
            dsl::created_at.eq(Stamp(at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn set_draft_entry(&mut self, id: DraftId, entry: &EntryOfDraft) -> Out<()> {
        use draft_entry::dsl;
        let head = entry.base.map(|(head, _)| head.to_string());
        let base = entry.base.map(|(_, base)| base);
        let revision = entry.revision.map(|revision| revision.to_string());
        let upsert = diesel::insert_into(dsl::draft_entry)
            .values((
                dsl::draft_id.eq(id.to_string()),
                dsl::kind.eq(entry.kind.as_str()),
                dsl::subject.eq(&entry.subject),
                dsl::head_id.eq(&head),
                dsl::base.eq(base),
                dsl::revision_id.eq(&revision),
            ))
            .on_conflict((dsl::draft_id, dsl::kind, dsl::subject))
            .do_update()
            .set((
                dsl::head_id.eq(&head),
                dsl::base.eq(base),
                dsl::revision_id.eq(&revision),
            ));
        self.execute(upsert).await.map(drop)
    }

    async fn advance_draft(
        &mut self,
        id: DraftId,
        guard: &Guard,
        token: EtagToken,
    ) -> Out<Written> {
        let update = diesel::update(draft::table.find(id.to_string()).filter(predicate(guard)?))
            .set((
                draft::revision.eq(draft::revision + 1),
                draft::etag_token.eq(token.to_string()),
            ));
        written(self.execute(update).await?)
    }

    async fn discard_draft(
        &mut self,
        id: DraftId,
        guard: &Guard,
        token: EtagToken,
    ) -> Out<Written> {
        let update = diesel::update(draft::table.find(id.to_string()).filter(predicate(guard)?))
            .set((
                draft::state.eq("discarded"),
                draft::revision.eq(draft::revision + 1),
                draft::etag_token.eq(token.to_string()),
            ));
        written(self.execute(update).await?)
    }
}
