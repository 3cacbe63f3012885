//! Source revisions, their references, and heads as they are read.
//!
//! Never in this module: an input, a value.

use std::collections::BTreeSet;

use bronzeward_core::id::{
    AssignmentRevisionId, ClusterId, FragmentRevisionId, HeadId, ImportBaseRevisionId, MachineId,
    ProfileRevisionId,
};
use bronzeward_core::reference;
use bronzeward_engine::ports::store::{
    AssignmentRevisionRow, FragmentRevisionRow, HeadKind, ImportBaseRow, Page, Paged,
    ProfileRevisionRow, ReferenceRow, SourceReads, StoreError,
};
use bronzeward_engine::rows::{HeadRow, SourceRevisionId};

use super::Fragment;
use super::rows::{following, overfetch};
use crate::pg::session::Session;
use crate::pg::{Eye, Table, Tables};

/// The rows of the given keys that exist, by key.
fn rows_of<K: Ord + Clone, V: Clone>(table: &Table<K, V>, eye: Eye, ids: &BTreeSet<K>) -> Vec<V> {
    let rows = ids.iter().filter_map(|id| table.get(eye, id));
    rows.cloned().collect()
}

impl SourceReads for Session {
    async fn head(&mut self, id: HeadId) -> Result<Option<HeadRow>, StoreError> {
        self.read("read head", |tables, eye| {
            let head = tables.authoring.heads.get(eye, &id);
            head.map(|head| head.row.clone())
        })
        .await
    }

    async fn heads(
        &mut self,
        kind: HeadKind,
        page: &Page<HeadId>,
    ) -> Result<Paged<HeadRow>, StoreError> {
        let rows = self
            .read("read heads", |tables, eye| {
                let heads = tables.authoring.heads.range(eye, following(page));
                let heads = heads.map(|(_, head)| head).filter(|head| head.kind == kind);
                let heads = heads.take(overfetch(page.limit));
                heads.map(|head| head.row.clone()).collect()
            })
            .await?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn heads_of(
        &mut self,
        cluster: ClusterId,
        kind: HeadKind,
        subjects: &BTreeSet<String>,
    ) -> Result<Vec<HeadRow>, StoreError> {
        self.read("read heads by subject", |tables, eye| {
            let heads = tables.authoring.heads.values(eye);
            let heads = heads.filter(|head| {
                let row = &head.row;
                head.kind == kind && row.cluster == cluster && subjects.contains(&row.subject)
            });
            heads.map(|head| head.row.clone()).collect()
        })
        .await
    }

    async fn fragment_revisions(
        &mut self,
        ids: &BTreeSet<FragmentRevisionId>,
    ) -> Result<Vec<FragmentRevisionRow>, StoreError> {
        let rows: Vec<Fragment> = self
            .read("read fragment revisions", |tables, eye| {
                rows_of(&tables.authoring.fragments, eye, ids)
            })
            .await?;
        // A revision's references came with it, so that its row is whole.
        self.statement("read references").await?;
        Ok(rows.into_iter().map(|fragment| fragment.row).collect())
    }

    async fn import_base(
        &mut self,
        id: ImportBaseRevisionId,
    ) -> Result<Option<ImportBaseRow>, StoreError> {
        let row = self
            .read("read import base", |tables, eye| {
                tables.authoring.import_bases.get(eye, &id).cloned()
            })
            .await?;
        if row.is_some() {
            self.statement("read references").await?;
        }
        Ok(row)
    }

    async fn profile_revisions(
        &mut self,
        ids: &BTreeSet<ProfileRevisionId>,
    ) -> Result<Vec<ProfileRevisionRow>, StoreError> {
        let rows = self
            .read("read profile revisions", |tables, eye| {
                rows_of(&tables.authoring.profiles, eye, ids)
            })
            .await?;
        self.statement("read profile pins").await?;
        Ok(rows)
    }

    async fn assignment_revisions(
        &mut self,
        ids: &BTreeSet<AssignmentRevisionId>,
    ) -> Result<Vec<AssignmentRevisionRow>, StoreError> {
        let rows = self
            .read("read assignment revisions", |tables, eye| {
                rows_of(&tables.authoring.assignments, eye, ids)
            })
            .await?;
        self.statement("read assigned profiles").await?;
        self.statement("read assigned fragments").await?;
        Ok(rows)
    }

    async fn revisions_of(
        &mut self,
        head: &HeadRow,
        after: Option<SourceRevisionId>,
        limit: u16,
    ) -> Result<Paged<SourceRevisionId>, StoreError> {
        let rows = self
            .read("read revisions of head", |tables, eye| {
                let mut rows = revisions(tables, eye, head);
                rows.retain(|id| after.is_none_or(|after| *id > after));
                rows.truncate(overfetch(limit));
                rows
            })
            .await?;
        Ok(Paged::from_overfetched(rows, limit))
    }

    async fn references(
        &mut self,
        revision: SourceRevisionId,
    ) -> Result<Vec<ReferenceRow>, StoreError> {
        self.read("read references", |tables, eye| {
            let found = tables.authoring.references.get(eye, &revision);
            found.map_or_else(Vec::new, |found| found.rows.values().cloned().collect())
        })
        .await
    }

    async fn references_named(
        &mut self,
        cluster: ClusterId,
        names: &BTreeSet<reference::Name>,
    ) -> Result<Vec<ReferenceRow>, StoreError> {
        self.read("read references by name", |tables, eye| {
            let found = tables.authoring.references.values(eye);
            let found = found.filter(|found| found.cluster == cluster);
            let rows = found.flat_map(|found| names.iter().filter_map(|n| found.rows.get(n)));
            rows.cloned().collect()
        })
        .await
    }
}

/// Every revision of a head's name or machine, by identifier.
fn revisions(tables: &Tables, eye: Eye, head: &HeadRow) -> Vec<SourceRevisionId> {
    let family = &tables.authoring;
    let named = |cluster, name: &str| cluster == head.cluster && name == head.subject;
    match head.id {
        HeadId::Fragment(_) => {
            let rows = family.fragments.values(eye).map(|fragment| &fragment.row);
            let own = rows.filter(|row| named(row.cluster, row.name.as_str()));
            own.map(|row| SourceRevisionId::Fragment(row.id)).collect()
        }
        HeadId::Profile(_) => {
            let rows = family.profiles.values(eye);
            let own = rows.filter(|row| named(row.cluster, row.name.as_str()));
            own.map(|row| SourceRevisionId::Profile(row.id)).collect()
        }
        HeadId::Assignment(_) => {
            let machine = MachineId::parse(&head.subject).ok();
            let rows = family.assignments.values(eye);
            let own = rows.filter(|row| Some(row.machine) == machine);
            own.map(|row| SourceRevisionId::Assignment(row.id))
                .collect()
        }
    }
}
