//! Releases and the heads they move (PA §6.2, IC §9).
//!
//! The checks that a release is whole are the schema's, at the commit.

use std::collections::BTreeSet;

use bronzeward_core::canonical::Digest;
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{
    ClusterId, DraftId, HeadId, ImportBaseRevisionId, MachineId, OperationId, ReleaseId,
};
use bronzeward_core::inventory::Platform;
use bronzeward_core::reference::{Encoding, Name, Version};
use bronzeward_core::release::{BoundDraft, Contract, MachineType, RendererRecord, StatusRow};
use bronzeward_core::revision::{EtagToken, Revision};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::provider::Ciphertext;
use bronzeward_engine::ports::store::{
    Guard, HeadKind, NewHead, NewRelease, NewReleaseMachine, Outcome, Page, Paged, ProvenanceRow,
    ReleaseMachineRow, ReleaseReads, ReleaseRow, ReleaseSourceRow, ReleaseWrites, Seed, Written,
};
use bronzeward_engine::rows::SourceRevisionId;
use diesel::prelude::*;

use crate::convert::{Out, digest, fault, head_id, id, signed, source_revision};
use crate::guard::{predicate, written};
use crate::schema::{
    dependency_effective, dependency_encryption, dependency_reproduction, draft, head,
    machine_state, operation, provenance, release, release_machine, release_source,
};
use crate::store::{Access, PgRows, PgTx};
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

impl ReleaseWrites for PgTx {
    async fn seed_statuses(&mut self, seeds: &[Seed], at: DbTime) -> Out<()> {
        self.seed(seeds, at).await
    }

    async fn hold_statuses(&mut self, objects: &BTreeSet<String>) -> Out<Vec<StatusRow>> {
        self.status_rows(objects, true).await
    }

    async fn insert_release(&mut self, new: &NewRelease, at: DbTime) -> Out<()> {
        use release::dsl;
        let renderer = &new.renderer;
        let insert = diesel::insert_into(dsl::release).values((
            dsl::id.eq(new.id.to_string()),
            dsl::cluster_id.eq(new.cluster.to_string()),
            dsl::draft_id.eq(new.bound.draft.to_string()),
            dsl::draft_revision.eq(new.bound.revision.0),
            dsl::operation_id.eq(new.operation.to_string()),
            dsl::digest.eq(new.digest.0.to_vec()),
            dsl::contract.eq(renderer.contract.to_string()),
            dsl::machinery_version.eq(renderer.machinery_version.clone()),
            dsl::machinery_checksum.eq(renderer.machinery_checksum.clone()),
            dsl::kubernetes_version.eq(renderer.kubernetes_version.clone()),
            dsl::published_by.eq(new.by.principal.to_string()),
            dsl::published_role.eq(new.by.role.as_str()),
            dsl::epoch.eq(new.epoch.to_string()),
            dsl::published_at.eq(Stamp(at)),
        ));
        self.execute(insert).await?;
        for machine in &new.machines {
            self.insert_machine_of(new.id, machine).await?;
        }
        for source in &new.sources {
            self.insert_source_of(new.id, source).await?;
        }
        for machine in &new.machines {
            self.insert_records_of(new.id, machine).await?;
        }
        Ok(())
    }

    async fn insert_head(&mut self, new: &NewHead, at: DbTime) -> Out<()> {
        use head::dsl;
        let insert = diesel::insert_into(dsl::head).values((
            dsl::id.eq(new.id.to_string()),
            dsl::kind.eq(new.kind.as_str()),
            dsl::cluster_id.eq(new.cluster.to_string()),
            dsl::subject.eq(new.subject.clone()),
            dsl::layer.eq(new.layer.map(|layer| layer.as_str())),
            dsl::revision_id.eq(Some(new.revision.to_string())),
            dsl::head_revision.eq(new.etag.revision.0),
            dsl::etag_token.eq(new.etag.token.to_string()),
            dsl::created_at.eq(Stamp(at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn advance_head(
        &mut self,
        of: HeadId,
        guard: &Guard,
        revision: Option<SourceRevisionId>,
        token: EtagToken,
    ) -> Out<Written> {
        let row = head::table.find(of.to_string());
        let update = diesel::update(row.filter(predicate(guard)?)).set((
            head::revision_id.eq(revision.map(|revision| revision.to_string())),
            head::head_revision.eq(head::head_revision + 1),
            head::etag_token.eq(token.to_string()),
        ));
        written(self.execute(update).await?)
    }

    async fn set_desired(&mut self, machines: &BTreeSet<MachineId>, of: ReleaseId) -> Out<()> {
        let ids: Vec<String> = machines.iter().map(ToString::to_string).collect();
        let rows = machine_state::table.filter(machine_state::machine_id.eq_any(ids));
        let update = diesel::update(rows).set((
            machine_state::desired_release.eq(of.to_string()),
            machine_state::revision.eq(machine_state::revision + 1),
        ));
        match self.execute(update).await? == machines.len() {
            true => Ok(()),
            false => Err(fault()),
        }
    }

    async fn publish_draft(
        &mut self,
        of: DraftId,
        guard: &Guard,
        release: ReleaseId,
        token: EtagToken,
    ) -> Out<Written> {
        let row = draft::table.find(of.to_string());
        let update = diesel::update(row.filter(predicate(guard)?)).set((
            draft::state.eq("published"),
            draft::release_id.eq(release.to_string()),
            draft::revision.eq(draft::revision + 1),
            draft::etag_token.eq(token.to_string()),
        ));
        written(self.execute(update).await?)
    }
}

impl PgTx {
    async fn insert_machine_of(&mut self, of: ReleaseId, new: &NewReleaseMachine) -> Out<()> {
        use release_machine::dsl;
        let ciphertext = new.ciphertext.as_str();
        let (head, revision) = match new.assignment {
            Some((head, revision)) => (Some(head), revision),
            None => (None, None),
        };
        let (configuration, notice) = match &new.review {
            Ok(configuration) => (Some(configuration.clone()), None),
            Err(notice) => (None, Some(*notice)),
        };
        let compiled = (
            dsl::configuration_digest.eq(new.configuration_digest.as_bytes().to_vec()),
            dsl::ciphertext.eq(ciphertext.to_owned()),
            dsl::ciphertext_digest.eq(Digest::of(ciphertext.as_bytes()).0.to_vec()),
            dsl::key_name.eq(new.key.name.clone()),
            dsl::key_version.eq(new.key.version),
            dsl::review_configuration.eq(configuration),
            dsl::review_notice.eq(notice),
            dsl::validation_result.eq("passed"),
            dsl::validated_at.eq(Stamp(new.validated_at)),
        );
        let insert = diesel::insert_into(dsl::release_machine).values((
            dsl::release_id.eq(of.to_string()),
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::import_base_revision_id.eq(new.import_base.to_string()),
            dsl::assignment_head_id.eq(head.map(|head| head.to_string())),
            dsl::assignment_revision_id.eq(revision.map(|revision| revision.to_string())),
            dsl::machine_type.eq(new.machine_type.as_str()),
            dsl::platform.eq(new.platform.as_str()),
            compiled,
            dsl::observation_id.eq(new.observation.to_string()),
        ));
        self.execute(insert).await?;
        let encryption = diesel::insert_into(dependency_encryption::table).values((
            dependency_encryption::release_id.eq(of.to_string()),
            dependency_encryption::machine_id.eq(new.machine.to_string()),
            dependency_encryption::provider_object.eq(new.key.name.clone()),
            dependency_encryption::version.eq(new.key.version),
            dependency_encryption::created.eq(new.key.created.to_string()),
        ));
        self.execute(encryption).await.map(drop)
    }

    async fn insert_source_of(&mut self, of: ReleaseId, source: &ReleaseSourceRow) -> Out<()> {
        use release_source::dsl;
        let insert = diesel::insert_into(dsl::release_source).values((
            dsl::release_id.eq(of.to_string()),
            dsl::head_id.eq(source.head.to_string()),
            dsl::kind.eq(source.kind.as_str()),
            dsl::subject.eq(source.subject.clone()),
            dsl::revision_id.eq(source.revision.map(|revision| revision.to_string())),
            dsl::head_revision.eq(source.head_revision.0),
        ));
        self.execute(insert).await.map(drop)
    }

    /// Provenance and both dependency records of a machine.
    async fn insert_records_of(&mut self, of: ReleaseId, new: &NewReleaseMachine) -> Out<()> {
        let release = of.to_string();
        let machine = new.machine.to_string();
        for chunk in numbered(&new.provenance).chunks(ROWS) {
            use provenance::dsl;
            let mut rows = Vec::with_capacity(chunk.len());
            for (ordinal, record) in chunk {
                let (output, by, by_digest) = match &record.outcome {
                    Outcome::Output(path) => (Some(path.clone()), None, None),
                    Outcome::Overridden(by, of) => {
                        (None, Some(by.to_string()), Some(of.0.to_vec()))
                    }
                };
                rows.push((
                    dsl::release_id.eq(release.clone()),
                    dsl::machine_id.eq(machine.clone()),
                    dsl::ordinal.eq(*ordinal),
                    dsl::reference.eq(record.version.name.as_str().to_owned()),
                    dsl::version.eq(number(record.version.version)?),
                    dsl::encoding.eq(record.encoding.map(Encoding::name)),
                    dsl::member.eq(record.member),
                    dsl::source_revision_id.eq(record.source.to_string()),
                    dsl::source_digest.eq(record.source_digest.0.to_vec()),
                    dsl::source_path.eq(record.path.clone()),
                    dsl::occurrence.eq(record.occurrence),
                    dsl::output.eq(output),
                    dsl::overridden_by.eq(by),
                    dsl::overridden_digest.eq(by_digest),
                ));
            }
            self.execute(diesel::insert_into(dsl::provenance).values(rows))
                .await?;
        }
        for chunk in new.reproduction.chunks(ROWS) {
            use dependency_reproduction::dsl;
            let mut rows = Vec::with_capacity(chunk.len());
            for record in chunk {
                rows.push((
                    dsl::release_id.eq(release.clone()),
                    dsl::machine_id.eq(machine.clone()),
                    dsl::source_revision_id.eq(record.source.to_string()),
                    dsl::occurrence.eq(record.occurrence),
                    dsl::source_digest.eq(record.source_digest.0.to_vec()),
                    dsl::source_path.eq(record.path.clone()),
                    dsl::reference.eq(record.version.name.as_str().to_owned()),
                    dsl::version.eq(number(record.version.version)?),
                    dsl::provider_object.eq(record.dependency.object.clone()),
                    dsl::created.eq(record.dependency.created.clone()),
                ));
            }
            self.execute(diesel::insert_into(dsl::dependency_reproduction).values(rows))
                .await?;
        }
        for chunk in new.effective.chunks(ROWS) {
            use dependency_effective::dsl;
            let mut rows = Vec::with_capacity(chunk.len());
            for (version, dependency) in chunk {
                rows.push((
                    dsl::release_id.eq(release.clone()),
                    dsl::machine_id.eq(machine.clone()),
                    dsl::reference.eq(version.name.as_str().to_owned()),
                    dsl::version.eq(number(version.version)?),
                    dsl::provider_object.eq(dependency.object.clone()),
                    dsl::created.eq(dependency.created.clone()),
                ));
            }
            self.execute(diesel::insert_into(dsl::dependency_effective).values(rows))
                .await?;
        }
        Ok(())
    }
}

/// Rows of one INSERT: its parameters stay far below the protocol's 65535.
const ROWS: usize = 1000;

fn numbered<T>(rows: &[T]) -> Vec<(i32, &T)> {
    (0_i32..).zip(rows).collect()
}
