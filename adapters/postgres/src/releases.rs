//! Releases and the heads they move (PA §6.2, IC §9).
//!
//! The checks that a release is whole are the schema's, at the commit.

mod write;

use std::collections::BTreeSet;

use bronzeward_core::canonical::Digest;
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{ClusterId, ImportBaseRevisionId, MachineId, OperationId, ReleaseId};
use bronzeward_core::inventory::Platform;
use bronzeward_core::reference::{Encoding, Name, Version};
use bronzeward_core::release::{BoundDraft, Contract, MachineType, RendererRecord, StatusRow};
use bronzeward_core::revision::Revision;
use bronzeward_engine::ports::provider::Ciphertext;
use bronzeward_engine::ports::store::{
    HeadKind, Outcome, Page, Paged, ProvenanceRow, ReleaseMachineRow, ReleaseReads, ReleaseRow,
    ReleaseSourceRow,
};
use diesel::prelude::*;

use crate::convert::{Out, digest, fault, head_id, id, signed, source_revision};
use crate::schema::{
    machine_state, operation, provenance, release, release_machine, release_source,
};
use crate::store::{Access, PgRows};
use crate::time::Stamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = release)]
struct Release {
    id: String,
    cluster_id: String,
    draft_id: String,
    draft_revision: i64,
    operation_id: String,
    digest: Vec<u8>,
    contract: String,
    machinery_version: String,
    machinery_checksum: String,
    kubernetes_version: String,
    published_by: String,
    published_role: String,
    published_at: Stamp,
}

impl Release {
    fn row(self) -> Out<ReleaseRow> {
        Ok(ReleaseRow {
            id: id(&self.id)?,
            cluster: id(&self.cluster_id)?,
            draft: id(&self.draft_id)?,
            draft_revision: Revision(self.draft_revision),
            operation: id(&self.operation_id)?,
            digest: digest(&self.digest)?,
            renderer: RendererRecord {
                contract: Contract::parse(&self.contract).ok_or_else(fault)?,
                machinery_version: self.machinery_version,
                machinery_checksum: self.machinery_checksum,
                kubernetes_version: self.kubernetes_version,
            },
            by: signed(&self.published_by, &self.published_role)?,
            at: self.published_at.0,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = release_machine)]
struct Machine {
    release_id: String,
    machine_id: String,
    import_base_revision_id: String,
    assignment_head_id: Option<String>,
    assignment_revision_id: Option<String>,
    machine_type: String,
    platform: String,
    configuration_digest: Vec<u8>,
    ciphertext: String,
    key_name: String,
    key_version: i64,
    review_configuration: Option<String>,
    review_notice: Option<String>,
    observation_id: String,
}

impl Machine {
    fn row(self) -> Out<ReleaseMachineRow> {
        let revision = self.assignment_revision_id.as_deref().map(id).transpose()?;
        let assignment = match self.assignment_head_id {
            Some(head) => Some((head_id(&head)?, revision)),
            None => None,
        };
        Ok(ReleaseMachineRow {
            release: id(&self.release_id)?,
            machine: id(&self.machine_id)?,
            import_base: id(&self.import_base_revision_id)?,
            assignment,
            machine_type: MachineType::parse(&self.machine_type).ok_or_else(fault)?,
            platform: Platform::parse(&self.platform).map_err(|_| fault())?,
            configuration_digest: ConfigDigest::from_bytes(digest(&self.configuration_digest)?),
            ciphertext: Ciphertext::parse(&self.ciphertext).ok_or_else(fault)?,
            key_name: self.key_name,
            key_version: self.key_version,
            review: match (self.review_configuration, self.review_notice) {
                (Some(configuration), None) => Ok(configuration),
                (None, Some(notice)) => Err(notice),
                _ => return Err(fault()),
            },
            observation: id(&self.observation_id)?,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = provenance)]
struct Provenance {
    reference: String,
    version: i64,
    encoding: Option<String>,
    member: Option<i32>,
    source_revision_id: String,
    source_digest: Vec<u8>,
    source_path: String,
    occurrence: i32,
    output: Option<String>,
    overridden_by: Option<String>,
    overridden_digest: Option<Vec<u8>>,
}

impl Provenance {
    fn row(self) -> Out<ProvenanceRow> {
        let encoding = self.encoding.as_deref();
        Ok(ProvenanceRow {
            version: Version {
                name: Name::parse(&self.reference).ok_or_else(fault)?,
                version: u64::try_from(self.version).map_err(|_| fault())?,
            },
            encoding: encoding
                .map(|text| Encoding::parse(text).ok_or_else(fault))
                .transpose()?,
            member: self.member,
            source: source_revision(&self.source_revision_id)?,
            source_digest: Digest(digest(&self.source_digest)?),
            path: self.source_path,
            occurrence: self.occurrence,
            outcome: match (self.output, self.overridden_by, self.overridden_digest) {
                (Some(output), None, None) => Outcome::Output(output),
                (None, Some(by), Some(bytes)) => {
                    Outcome::Overridden(id(&by)?, Digest(digest(&bytes)?))
                }
                _ => return Err(fault()),
            },
        })
    }
}

/// Head, kind, subject, revision and head revision of a source.
type SourceRecord = (String, String, String, Option<String>, i64);

fn source_row(
    (head, kind, subject, revision, head_revision): SourceRecord,
) -> Out<ReleaseSourceRow> {
    Ok(ReleaseSourceRow {
        head: head_id(&head)?,
        kind: match kind.as_str() {
            "fragment" => HeadKind::Fragment,
            "profile" => HeadKind::Profile,
            "assignment" => HeadKind::Assignment,
            _ => return Err(fault()),
        },
        subject,
        revision: revision.as_deref().map(source_revision).transpose()?,
        head_revision: Revision(head_revision),
    })
}

fn number(version: u64) -> Out<i64> {
    i64::try_from(version).map_err(|_| fault())
}

impl<M: Access> ReleaseReads for PgRows<M> {
    async fn release(&mut self, of: ReleaseId) -> Out<Option<ReleaseRow>> {
        let query = release::table
            .find(of.to_string())
            .select(Release::as_select());
        let found: Option<Release> = self.optional(query).await?;
        found.map(Release::row).transpose()
    }

    async fn releases(&mut self, page: &Page<ReleaseId>) -> Out<Paged<ReleaseRow>> {
        let after = page.after.map(|after| after.to_string());
        let query = release::table
            .filter(release::id.gt(after.unwrap_or_default()))
            .select(Release::as_select())
            .order(release::id)
            .limit(i64::from(page.limit) + 1);
        let rows: Vec<Release> = self.load(query).await?;
        let rows = rows
            .into_iter()
            .map(Release::row)
            .collect::<Out<Vec<_>>>()?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn release_sources(&mut self, of: ReleaseId) -> Out<Vec<ReleaseSourceRow>> {
        let query = release_source::table
            .filter(release_source::release_id.eq(of.to_string()))
            .select((
                release_source::head_id,
                release_source::kind,
                release_source::subject,
                release_source::revision_id,
                release_source::head_revision,
            ));
        let rows: Vec<SourceRecord> = self.load(query).await?;
        let mut rows = rows.into_iter().map(source_row).collect::<Out<Vec<_>>>()?;
        rows.sort_by(|a, b| (a.kind, &a.subject).cmp(&(b.kind, &b.subject)));
        Ok(rows)
    }

    async fn release_machines(&mut self, of: ReleaseId) -> Out<Vec<ReleaseMachineRow>> {
        let query = release_machine::table
            .filter(release_machine::release_id.eq(of.to_string()))
            .select(Machine::as_select())
            .order(release_machine::machine_id);
        let rows: Vec<Machine> = self.load(query).await?;
        rows.into_iter().map(Machine::row).collect()
    }

    async fn release_machine(
        &mut self,
        of: ReleaseId,
        machine: MachineId,
    ) -> Out<Option<ReleaseMachineRow>> {
        let query = release_machine::table
            .find((of.to_string(), machine.to_string()))
            .select(Machine::as_select());
        let found: Option<Machine> = self.optional(query).await?;
        found.map(Machine::row).transpose()
    }

    async fn provenance(&mut self, of: ReleaseId, machine: MachineId) -> Out<Vec<ProvenanceRow>> {
        let query = provenance::table
            .filter(provenance::release_id.eq(of.to_string()))
            .filter(provenance::machine_id.eq(machine.to_string()))
            .select(Provenance::as_select())
            .order(provenance::ordinal);
        let rows: Vec<Provenance> = self.load(query).await?;
        rows.into_iter().map(Provenance::row).collect()
    }

    async fn release_of(&mut self, bound: BoundDraft) -> Out<Option<ReleaseRow>> {
        let query = release::table
            .filter(release::draft_id.eq(bound.draft.to_string()))
            .filter(release::draft_revision.eq(bound.revision.0))
            .select(Release::as_select());
        let found: Option<Release> = self.optional(query).await?;
        found.map(Release::row).transpose()
    }

    async fn applied_bases(
        &mut self,
        cluster: ClusterId,
    ) -> Out<Vec<(MachineId, ImportBaseRevisionId)>> {
        use crate::schema::machine;
        let query = machine_state::table
            .inner_join(machine::table.on(machine::id.eq(machine_state::machine_id)))
            .inner_join(
                release_machine::table.on(release_machine::machine_id
                    .eq(machine_state::machine_id)
                    .and(
                        release_machine::release_id
                            .nullable()
                            .eq(machine_state::applied_release),
                    )),
            )
            .filter(machine::cluster_id.eq(cluster.to_string()))
            .order(machine_state::machine_id)
            .select((
                machine_state::machine_id,
                release_machine::import_base_revision_id,
            ));
        let rows: Vec<(String, String)> = self.load(query).await?;
        rows.into_iter()
            .map(|(machine, base)| Ok((id(&machine)?, id(&base)?)))
            .collect()
    }

    async fn scope_holders(&mut self, cluster: ClusterId) -> Out<Vec<(MachineId, OperationId)>> {
        use operation::dsl;
        let query = dsl::operation
            .filter(dsl::cluster_id.eq(cluster.to_string()))
            .filter(dsl::kind.eq("apply-config"))
            .filter(dsl::state.eq_any(["committed", "sending", "verifying", "unresolved"]))
            .order(dsl::id)
            .select((dsl::machine_id, dsl::id));
        let rows: Vec<(Option<String>, String)> = self.load(query).await?;
        rows.into_iter()
            .map(|(machine, operation)| {
                let machine = machine.ok_or_else(fault)?;
                Ok((id(&machine)?, id(&operation)?))
            })
            .collect()
    }

    async fn statuses(&mut self, objects: &BTreeSet<String>) -> Out<Vec<StatusRow>> {
        self.status_rows(objects, false).await
    }
}
