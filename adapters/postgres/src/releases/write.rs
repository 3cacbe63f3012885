//! What a publication writes (PA §6.2).

use std::collections::BTreeSet;

use bronzeward_core::canonical::Digest;
use bronzeward_core::id::{DraftId, HeadId, MachineId, ReleaseId};
use bronzeward_core::reference::Encoding;
use bronzeward_core::release::StatusRow;
use bronzeward_core::revision::EtagToken;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    Guard, NewHead, NewRelease, NewReleaseMachine, Outcome, ReleaseSourceRow, ReleaseWrites, Seed,
    Written,
};
use bronzeward_engine::rows::SourceRevisionId;
use diesel::prelude::*;

use super::number;
use crate::convert::{Out, fault};
use crate::guard::{predicate, written};
use crate::schema::{
    dependency_effective, dependency_encryption, dependency_reproduction, draft, head,
    machine_state, provenance, release, release_machine, release_source,
};
use crate::store::PgTx;
use crate::time::Stamp;

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
