//! Source revisions and their references, as a draft's transaction inserts them.
//!
//! A text is kept as it comes, sanitized. Never in this module: an input, a value.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::id::{
    AssignmentRevisionId, ClusterId, FragmentRevisionId, ImportBaseRevisionId, MachineId,
    ProfileRevisionId,
};
use bronzeward_core::reference::Declarations;
use bronzeward_core::sanitized::Sanitized;
use bronzeward_core::secret::Kind;
use bronzeward_engine::ports::store::{
    AssignmentRevisionRow, Authorship, FragmentRevisionRow, ImportBaseRow, NewAssignment,
    NewFragment, NewImportBase, NewProfile, ProfileRevisionRow, ReferenceRow, SourceWrites,
    StoreError,
};
use bronzeward_engine::rows::SourceRevisionId;

use super::claims::CLAIMS;
use super::drafts::DRAFTS;
use super::inventory::MACHINES;
use super::principals::PRINCIPALS;
use super::rows::of;
use super::{Fragment, Import, References};
use crate::pg::session::Session;
use crate::pg::{Eye, Table};

of!(
    FRAGMENTS: fragments, FragmentRevisionId => Fragment, FragmentRevision, |id| id.bits()
);
of!(
    IMPORT_BASES: import_bases, ImportBaseRevisionId => ImportBaseRow, ImportBaseRevision,
    |id| id.bits()
);
of!(
    PROFILES: profiles, ProfileRevisionId => ProfileRevisionRow, ProfileRevision, |id| id.bits()
);
of!(
    ASSIGNMENTS: assignments, AssignmentRevisionId => AssignmentRevisionRow, AssignmentRevision,
    |id| id.bits()
);

/// What a text declares but its references, which come as rows.
fn embedded(text: &Sanitized) -> Declarations {
    Declarations {
        references: BTreeMap::new(),
        embedded: text.declarations().embedded.clone(),
    }
}

fn declare(declarations: &mut Declarations, rows: &[ReferenceRow]) {
    let rows = rows.iter().map(|row| (row.name.clone(), row.declaration));
    declarations.references.extend(rows);
}

impl SourceWrites for Session {
    async fn insert_fragment(
        &mut self,
        new: &NewFragment,
        text: &Sanitized,
    ) -> Result<(), StoreError> {
        self.statement("insert fragment revision").await?;
        let row = FragmentRevisionRow {
            id: new.id,
            cluster: new.written.cluster,
            name: new.name.clone(),
            layer: new.layer,
            document: text.document().to_owned(),
            declarations: embedded(text),
            author: new.written.by,
            created_at: new.written.at,
        };
        let fragment = Fragment {
            row,
            draft: new.written.draft,
            claim: new.claim,
        };
        self.insert_row(&FRAGMENTS, "fragment_revision_pkey", new.id, fragment)
            .await?;
        let written = &new.written;
        self.stands(
            |tables| &tables.authoring.clusters,
            &written.cluster,
            "fragment_revision_cluster_id_fkey",
        )?;
        self.parent(&DRAFTS, &written.draft, "fragment_revision_draft_id_fkey")
            .await?;
        self.parent(&CLAIMS, &new.claim, "fragment_revision_claim_id_fkey")
            .await?;
        let author = written.by.principal;
        self.parent(&PRINCIPALS, &author, "fragment_revision_author_id_fkey")
            .await
    }

    async fn insert_import_base(
        &mut self,
        new: &NewImportBase,
        text: &Sanitized,
    ) -> Result<(), StoreError> {
        self.statement("insert import base").await?;
        let written = &new.written;
        let row = ImportBaseRow {
            id: new.id,
            cluster: written.cluster,
            machine: new.machine,
            document: text.document().to_owned(),
            declarations: embedded(text),
            configuration_digest: *new.baseline.configuration_digest.as_bytes(),
            author: written.by,
            created_at: written.at,
        };
        self.insert_row(&IMPORT_BASES, "import_base_revision_pkey", new.id, row)
            .await?;
        let import = Import {
            draft: written.draft,
            claim: new.claim,
            adoption: new.adoption,
            baseline: new.baseline.clone(),
        };
        self.write(|db, me, _| db.put(me, |t| &mut t.authoring.imports, new.id, import))?;
        self.parent(
            &DRAFTS,
            &written.draft,
            "import_base_revision_draft_id_fkey",
        )
        .await?;
        self.parent(&CLAIMS, &new.claim, "import_base_revision_claim_id_fkey")
            .await?;
        let author = written.by.principal;
        self.parent(&PRINCIPALS, &author, "import_base_revision_author_id_fkey")
            .await?;
        let name = "import_base_revision_cluster_id_machine_id_fkey";
        self.machine_of(written, new.machine, name).await
    }

    async fn insert_profile(&mut self, new: &NewProfile) -> Result<(), StoreError> {
        self.statement("insert profile revision").await?;
        let written = &new.written;
        let row = ProfileRevisionRow {
            id: new.id,
            cluster: written.cluster,
            name: new.name.clone(),
            content: new.content.clone(),
            author: written.by,
            created_at: written.at,
        };
        self.insert_row(&PROFILES, "profile_revision_pkey", new.id, row)
            .await?;
        self.stands(
            |tables| &tables.authoring.clusters,
            &written.cluster,
            "profile_revision_cluster_id_fkey",
        )?;
        self.parent(&DRAFTS, &written.draft, "profile_revision_draft_id_fkey")
            .await?;
        let author = written.by.principal;
        self.parent(&PRINCIPALS, &author, "profile_revision_author_id_fkey")
            .await?;
        if new.content.fragments.is_empty() {
            return Ok(());
        }
        self.statement("insert profile pins").await?;
        for pin in &new.content.fragments {
            let name = "profile_pin_fragment_revision_id_fkey";
            self.stands(|tables| &tables.authoring.fragments, pin, name)?;
        }
        Ok(())
    }

    async fn insert_assignment(&mut self, new: &NewAssignment) -> Result<(), StoreError> {
        self.statement("insert assignment revision").await?;
        let written = &new.written;
        let row = AssignmentRevisionRow {
            id: new.id,
            cluster: written.cluster,
            machine: new.machine,
            content: new.content.clone(),
            author: written.by,
            created_at: written.at,
        };
        self.insert_row(&ASSIGNMENTS, "assignment_revision_pkey", new.id, row)
            .await?;
        self.parent(&DRAFTS, &written.draft, "assignment_revision_draft_id_fkey")
            .await?;
        let author = written.by.principal;
        self.parent(&PRINCIPALS, &author, "assignment_revision_author_id_fkey")
            .await?;
        let name = "assignment_revision_cluster_id_machine_id_fkey";
        self.machine_of(written, new.machine, name).await?;
        let profiles = &new.content.profiles;
        if !profiles.is_empty() {
            self.statement("insert assigned profiles").await?;
            if profiles.iter().collect::<BTreeSet<_>>().len() < profiles.len() {
                let name = "assignment_profile_assignment_revision_id_name_key";
                return self.fail(StoreError::Unique(name));
            }
        }
        if new
            .content
            .fragments
            .values()
            .any(|names| !names.is_empty())
        {
            self.statement("insert assigned fragments").await?;
        }
        Ok(())
    }

    async fn insert_references(
        &mut self,
        revision: SourceRevisionId,
        cluster: ClusterId,
        rows: &[ReferenceRow],
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.statement("insert references").await?;
        self.declare_references(revision, rows)?;
        for row in rows {
            let string = row.declaration.kind == Kind::String;
            let encoding = row.declaration.encoding.is_none() || string;
            self.check("reference_row_encoding", encoding)?;
            let own = row.kept.generation.cluster == cluster;
            self.check("reference_row_path", own)?;
        }
        let before = self.look(|tables, eye| {
            let found = tables.authoring.references.get(eye, &revision);
            found.cloned()
        });
        let mut all = before.unwrap_or(References {
            cluster,
            rows: BTreeMap::new(),
        });
        for row in rows {
            if all.rows.insert(row.name.clone(), row.clone()).is_some() {
                return self.fail(StoreError::Unique("reference_row_pkey"));
            }
        }
        self.write(|db, me, _| db.put(me, |t| &mut t.authoring.references, revision, all))
    }
}

impl Session {
    /// Completes a revision's row by its references, which its own transaction inserts and
    /// no other may.
    fn declare_references(
        &mut self,
        revision: SourceRevisionId,
        rows: &[ReferenceRow],
    ) -> Result<(), StoreError> {
        const WRITER: &str = "reference_row_same_writer";
        match revision {
            SourceRevisionId::Fragment(id) => {
                let own = self.look(|tables, eye| own(&tables.authoring.fragments, eye, &id));
                let Some(mut fragment) = own else {
                    return self.fail(StoreError::Integrity(WRITER));
                };
                declare(&mut fragment.row.declarations, rows);
                self.write(|db, me, _| db.put(me, |t| &mut t.authoring.fragments, id, fragment))
            }
            SourceRevisionId::ImportBase(id) => {
                let own = self.look(|tables, eye| own(&tables.authoring.import_bases, eye, &id));
                let Some(mut base) = own else {
                    return self.fail(StoreError::Integrity(WRITER));
                };
                declare(&mut base.declarations, rows);
                self.write(|db, me, _| db.put(me, |t| &mut t.authoring.import_bases, id, base))
            }
            SourceRevisionId::Assignment(_) | SourceRevisionId::Profile(_) => {
                self.fail(StoreError::Integrity(WRITER))
            }
        }
    }

    /// The foreign key to a machine of the revision's cluster.
    async fn machine_of(
        &mut self,
        written: &Authorship,
        machine: MachineId,
        constraint: &'static str,
    ) -> Result<(), StoreError> {
        let here = self.look(|tables, eye| {
            let row = tables.authoring.machines.get(eye, &machine);
            row.is_some_and(|row| row.cluster == written.cluster)
        });
        self.check(constraint, here)?;
        self.parent(&MACHINES, &machine, constraint).await
    }
}

/// A row that the looking transaction has inserted itself.
fn own<K: Ord + Clone, V: Clone>(table: &Table<K, V>, eye: Eye, key: &K) -> Option<V> {
    let committed = table.get(Eye::COMMITTED, key);
    match committed {
        Some(_) => None,
        None => table.get(eye, key).cloned(),
    }
}
