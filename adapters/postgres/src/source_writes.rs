//! Source revisions and references as the draft transaction inserts them (PA §5 T1). The
//! database stamps each revision's writer, and refuses rows of another transaction's.

use bronzeward_core::canonical::Digest;
use bronzeward_core::id::ClusterId;
use bronzeward_core::reference::{Declarations, Encoding};
use bronzeward_core::sanitized::Sanitized;
use bronzeward_engine::ports::store::{
    NewAssignment, NewFragment, NewImportBase, NewProfile, ReferenceRow, SourceWrites,
};
use bronzeward_engine::rows::SourceRevisionId;
use diesel::prelude::*;

use crate::convert::{Out, fault};
use crate::requests::digest_key_text;
use crate::schema::{
    assignment_fragment, assignment_profile, assignment_revision, fragment_revision,
    import_base_revision, profile_pin, profile_revision, reference_row,
};
use crate::store::PgTx;
use crate::time::Stamp;

/// The embedded documents of a revision, as `[{"path", "format"}]`.
fn embedded_json(declarations: &Declarations) -> serde_json::Value {
    declarations
        .embedded
        .iter()
        .map(|(path, format)| serde_json::json!({"path": path.written(), "format": format.name()}))
        .collect()
}

impl SourceWrites for PgTx {
    async fn insert_fragment(&mut self, new: &NewFragment, text: &Sanitized) -> Out<()> {
        use fragment_revision::dsl;
        let insert = diesel::insert_into(dsl::fragment_revision).values((
            dsl::id.eq(new.id.to_string()),
            dsl::cluster_id.eq(new.written.cluster.to_string()),
            dsl::name.eq(new.name.as_str().to_owned()),
            dsl::layer.eq(new.layer.as_str()),
            dsl::document.eq(text.document().to_owned()),
            dsl::document_sha256.eq(Digest::of(text.document().as_bytes()).0.to_vec()),
            // The pinned encoder's text is its own canonical form (IC §2.3 step 5).
            dsl::canonical.eq(text.document().to_owned()),
            dsl::embedded.eq(embedded_json(text.declarations())),
            dsl::draft_id.eq(new.written.draft.to_string()),
            dsl::claim_id.eq(new.claim.to_string()),
            dsl::author_id.eq(new.written.by.principal.to_string()),
            dsl::author_role.eq(new.written.by.role.as_str()),
            dsl::epoch.eq(new.written.epoch.to_string()),
            dsl::created_at.eq(Stamp(new.written.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_import_base(&mut self, new: &NewImportBase, text: &Sanitized) -> Out<()> {
        use import_base_revision::dsl;
        let baseline = &new.baseline;
        let stored = (
            dsl::document.eq(text.document().to_owned()),
            dsl::document_sha256.eq(Digest::of(text.document().as_bytes()).0.to_vec()),
            // The pinned encoder's text is its own canonical form (IC §2.3 step 5).
            dsl::canonical.eq(text.document().to_owned()),
            dsl::embedded.eq(embedded_json(text.declarations())),
            dsl::baseline_ciphertext.eq(baseline.ciphertext.clone()),
            dsl::baseline_keyed_digest.eq(baseline.keyed_digest.to_vec()),
            dsl::baseline_digest_key.eq(digest_key_text(&baseline.digest_key)),
            dsl::configuration_digest.eq(baseline.configuration_digest.as_bytes().to_vec()),
        );
        let insert = diesel::insert_into(dsl::import_base_revision).values((
            dsl::id.eq(new.id.to_string()),
            dsl::cluster_id.eq(new.written.cluster.to_string()),
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::kind.eq(if new.adoption {
                "drift-adoption"
            } else {
                "import"
            }),
            stored,
            dsl::draft_id.eq(new.written.draft.to_string()),
            dsl::claim_id.eq(new.claim.to_string()),
            dsl::author_id.eq(new.written.by.principal.to_string()),
            dsl::author_role.eq(new.written.by.role.as_str()),
            dsl::epoch.eq(new.written.epoch.to_string()),
            dsl::created_at.eq(Stamp(new.written.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_profile(&mut self, new: &NewProfile) -> Out<()> {
        use profile_revision::dsl;
        let insert = diesel::insert_into(dsl::profile_revision).values((
            dsl::id.eq(new.id.to_string()),
            dsl::cluster_id.eq(new.written.cluster.to_string()),
            dsl::name.eq(new.name.as_str().to_owned()),
            dsl::draft_id.eq(new.written.draft.to_string()),
            dsl::author_id.eq(new.written.by.principal.to_string()),
            dsl::author_role.eq(new.written.by.role.as_str()),
            dsl::epoch.eq(new.written.epoch.to_string()),
            dsl::created_at.eq(Stamp(new.written.at)),
        ));
        self.execute(insert).await?;
        let pins: Vec<_> = (0_i32..)
            .zip(&new.content.fragments)
            .map(|(position, pin)| {
                (
                    profile_pin::profile_revision_id.eq(new.id.to_string()),
                    profile_pin::position.eq(position),
                    profile_pin::fragment_revision_id.eq(pin.to_string()),
                )
            })
            .collect();
        if pins.is_empty() {
            return Ok(());
        }
        let insert = diesel::insert_into(profile_pin::table).values(pins);
        self.execute(insert).await.map(drop)
    }

    async fn insert_assignment(&mut self, new: &NewAssignment) -> Out<()> {
        use assignment_revision::dsl;
        let insert = diesel::insert_into(dsl::assignment_revision).values((
            dsl::id.eq(new.id.to_string()),
            dsl::cluster_id.eq(new.written.cluster.to_string()),
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::draft_id.eq(new.written.draft.to_string()),
            dsl::author_id.eq(new.written.by.principal.to_string()),
            dsl::author_role.eq(new.written.by.role.as_str()),
            dsl::epoch.eq(new.written.epoch.to_string()),
            dsl::created_at.eq(Stamp(new.written.at)),
        ));
        self.execute(insert).await?;
        let profiles: Vec<_> = (0_i32..)
            .zip(&new.content.profiles)
            .map(|(position, selected)| {
                (
                    assignment_profile::assignment_revision_id.eq(new.id.to_string()),
                    assignment_profile::position.eq(position),
                    assignment_profile::name.eq(selected.as_str().to_owned()),
                )
            })
            .collect();
        if !profiles.is_empty() {
            let insert = diesel::insert_into(assignment_profile::table).values(profiles);
            self.execute(insert).await?;
        }
        let mut fragments = Vec::new();
        for (layer, selected) in &new.content.fragments {
            for (position, selected) in (0_i32..).zip(selected) {
                fragments.push((
                    assignment_fragment::assignment_revision_id.eq(new.id.to_string()),
                    assignment_fragment::layer.eq(layer.as_str()),
                    assignment_fragment::position.eq(position),
                    assignment_fragment::name.eq(selected.as_str().to_owned()),
                ));
            }
        }
        if fragments.is_empty() {
            return Ok(());
        }
        let insert = diesel::insert_into(assignment_fragment::table).values(fragments);
        self.execute(insert).await.map(drop)
    }

    async fn insert_references(
        &mut self,
        revision: SourceRevisionId,
        cluster: ClusterId,
        rows: &[ReferenceRow],
    ) -> Out<()> {
        use reference_row::dsl;
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            let version = i64::try_from(row.declaration.version).map_err(|_| fault())?;
            values.push((
                dsl::revision_id.eq(revision.to_string()),
                dsl::name.eq(row.name.as_str().to_owned()),
                dsl::kind.eq(row.declaration.kind.name()),
                dsl::version.eq(version),
                dsl::encoding.eq(row.declaration.encoding.map(Encoding::name)),
                dsl::cluster_id.eq(cluster.to_string()),
                dsl::generation_path.eq(row.kept.generation.to_string()),
                dsl::keyed_digest.eq(row.kept.keyed_digest.to_vec()),
                dsl::digest_key.eq(digest_key_text(&row.kept.digest_key)),
            ));
        }
        if values.is_empty() {
            return Ok(());
        }
        let insert = diesel::insert_into(dsl::reference_row).values(values);
        self.execute(insert).await.map(drop)
    }
}
