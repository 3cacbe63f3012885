//! Drafts and their entries.

use bronzeward_core::id::{DraftId, OperationId};
use bronzeward_core::revision::{Etag, EtagToken};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    DraftReads, DraftWrites, EntryKind, EntryOfDraft, Guard, LockMode, NewDraft, Page, Paged,
    StoreError, Written,
};
use bronzeward_engine::rows::{DraftRow, DraftStateRow, SourceRevisionId};

use super::inventory::MACHINES;
use super::locks::HEADS;
use super::principals::PRINCIPALS;
use super::rows::{digest, following, of, overfetch};
use crate::pg::session::Session;
use crate::pg::{Eye, Relation, Tables, Taken, TxId};
use crate::store::guard::Columns;

of!(DRAFTS: drafts, DraftId => DraftRow, Draft, |id| id.bits());

/// What guards see of a draft.
pub(super) fn columns(row: &DraftRow) -> Columns<'_> {
    Columns {
        revision: Some(row.etag.revision.0),
        state: Some(match row.state {
            DraftStateRow::Open => "open",
            DraftStateRow::Published(_) => "published",
            DraftStateRow::Discarded => "discarded",
        }),
        ..Columns::default()
    }
}

fn advance(row: &mut DraftRow, token: EtagToken) {
    row.etag = Etag::new(row.etag.revision.next(), token);
}

impl DraftReads for Session {
    async fn draft(&mut self, id: DraftId) -> Result<Option<DraftRow>, StoreError> {
        self.read("read draft", |tables, eye| {
            tables.authoring.drafts.get(eye, &id).cloned()
        })
        .await
    }

    async fn drafts(&mut self, page: &Page<DraftId>) -> Result<Paged<DraftRow>, StoreError> {
        let rows = self
            .read("read drafts", |tables, eye| {
                let rows = tables.authoring.drafts.range(eye, following(page));
                let rows = rows.take(overfetch(page.limit));
                rows.map(|(_, row)| row.clone()).collect()
            })
            .await?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn draft_entries(&mut self, id: DraftId) -> Result<Vec<EntryOfDraft>, StoreError> {
        self.read("read draft entries", |tables, eye| {
            let first = (id, EntryKind::ImportBase, String::new());
            let rows = tables.authoring.draft_entries.range(eye, first..);
            let own = rows.take_while(|((draft, ..), _)| *draft == id);
            own.map(|(_, entry)| entry.clone()).collect()
        })
        .await
    }

    async fn active_publication(
        &mut self,
        draft: DraftId,
    ) -> Result<Option<OperationId>, StoreError> {
        self.read("read active publication", |tables, eye| {
            let operations = tables.execution.operations.values(eye);
            let active = operations.filter(|operation| {
                let row = &operation.row;
                row.kind == "publish"
                    && row.draft.is_some_and(|(of, _)| of == draft)
                    && matches!(row.state.as_str(), "queued" | "running")
            });
            let latest = active.max_by_key(|operation| operation.seq);
            latest.map(|operation| operation.row.id)
        })
        .await
    }
}

impl DraftWrites for Session {
    async fn insert_draft(&mut self, new: &NewDraft, at: DbTime) -> Result<(), StoreError> {
        self.statement("insert draft").await?;
        let row = DraftRow {
            id: new.id,
            cluster: new.cluster,
            title: new.title.clone(),
            state: DraftStateRow::Open,
            etag: new.etag,
            created_by: new.by.into(),
            created_at: at,
        };
        self.insert_row(&DRAFTS, "draft_pkey", new.id, row).await?;
        self.stands(
            |tables| &tables.authoring.clusters,
            &new.cluster,
            "draft_cluster_id_fkey",
        )?;
        self.parent(&PRINCIPALS, &new.by.principal, "draft_created_by_fkey")
            .await
    }

    async fn set_draft_entry(
        &mut self,
        draft: DraftId,
        entry: &EntryOfDraft,
    ) -> Result<(), StoreError> {
        self.statement("set draft entry").await?;
        let removal = entry.revision.is_none();
        let import = entry.kind == EntryKind::ImportBase;
        self.check(
            "draft_entry_import_base",
            !import || (entry.base.is_none() && !removal),
        )?;
        let key = (draft, entry.kind, entry.subject.clone());
        let taken = |tables: &Tables, me: TxId| -> Taken {
            tables.authoring.draft_entries.key_taken(me, &key)
        };
        if self.meets(taken).await? {
            let bits = digest(&[
                &draft.bits().to_be_bytes(),
                entry.kind.as_str().as_bytes(),
                entry.subject.as_bytes(),
            ]);
            self.lock_row(Relation::DraftEntry, bits, LockMode::NoKeyUpdate)
                .await?;
            self.write(|db, me, _| db.locks.writes(me, (Relation::DraftEntry, bits)))?;
        }
        let before = self.look(|tables, eye| {
            let row = tables.authoring.draft_entries.get(eye, &key);
            row.cloned()
        });
        let row = entry.clone();
        self.write(|db, me, _| db.put(me, |t| &mut t.authoring.draft_entries, key, row))?;
        self.entry_parents(draft, before.as_ref(), entry).await
    }

    async fn advance_draft(
        &mut self,
        draft: DraftId,
        guard: &Guard,
        token: EtagToken,
    ) -> Result<Written, StoreError> {
        self.statement("advance draft").await?;
        let fits = |row: &DraftRow, now| columns(row).satisfy(guard, now);
        self.update_row(&DRAFTS, draft, fits, |row| advance(row, token))
            .await
    }

    async fn discard_draft(
        &mut self,
        draft: DraftId,
        guard: &Guard,
        token: EtagToken,
    ) -> Result<Written, StoreError> {
        self.statement("discard draft").await?;
        let fits = |row: &DraftRow, now| columns(row).satisfy(guard, now);
        let discard = |row: &mut DraftRow| {
            row.state = DraftStateRow::Discarded;
            advance(row, token);
        };
        self.update_row(&DRAFTS, draft, fits, discard).await
    }
}

/// Whether a revision that an entry names is of its kind and stands.
fn revision_stands(tables: &Tables, eye: Eye, kind: EntryKind, of: SourceRevisionId) -> bool {
    let family = &tables.authoring;
    match (kind, of) {
        (EntryKind::ImportBase, SourceRevisionId::ImportBase(id)) => {
            family.import_bases.get(eye, &id).is_some()
        }
        (EntryKind::Fragment, SourceRevisionId::Fragment(id)) => {
            family.fragments.get(eye, &id).is_some()
        }
        (EntryKind::Profile, SourceRevisionId::Profile(id)) => {
            family.profiles.get(eye, &id).is_some()
        }
        (EntryKind::Assignment, SourceRevisionId::Assignment(id)) => {
            family.assignments.get(eye, &id).is_some()
        }
        _ => false,
    }
}

impl Session {
    /// An entry's foreign keys; of a row that was replaced, those that changed.
    async fn entry_parents(
        &mut self,
        draft: DraftId,
        before: Option<&EntryOfDraft>,
        entry: &EntryOfDraft,
    ) -> Result<(), StoreError> {
        if before.is_none() {
            self.parent(&DRAFTS, &draft, "draft_entry_draft_id_fkey")
                .await?;
        }
        let head = entry.base.map(|(head, _)| head);
        let head_before = before.and_then(|entry| entry.base).map(|(head, _)| head);
        if let Some(head) = head.filter(|head| head_before != Some(*head)) {
            self.parent(&HEADS, &head, "draft_entry_head_id_fkey")
                .await?;
        }
        let of_machine = matches!(entry.kind, EntryKind::ImportBase | EntryKind::Assignment);
        if before.is_none() && of_machine {
            let machine = bronzeward_core::id::MachineId::parse(&entry.subject);
            let Ok(machine) = machine else {
                return self.fail(StoreError::Integrity("mch_id_check"));
            };
            self.parent(&MACHINES, &machine, "draft_entry_machine_id_fkey")
                .await?;
        }
        let Some(revision) = entry.revision else {
            return Ok(());
        };
        let name = match entry.kind {
            EntryKind::ImportBase => "draft_entry_import_base_revision_id_fkey",
            EntryKind::Fragment => "draft_entry_fragment_revision_id_fkey",
            EntryKind::Profile => "draft_entry_profile_revision_id_fkey",
            EntryKind::Assignment => "draft_entry_assignment_revision_id_fkey",
        };
        let stands = self.look(|tables, eye| revision_stands(tables, eye, entry.kind, revision));
        self.check(name, stands)
    }
}
