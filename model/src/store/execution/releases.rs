//! Releases and the heads they move (PA §6.2, IC §9).
//!
//! A machine of a release is one row with its provenance and its dependencies: they are
//! written by the same transaction and never change. That a release is whole is checked at
//! the commit.

mod write;

use std::collections::BTreeSet;

use bronzeward_core::dependency::Classification;
use bronzeward_core::id::{
    ClusterId, DependencyId, EpochId, HeadId, ImportBaseRevisionId, MachineId, OperationId,
    ReleaseId,
};
use bronzeward_core::release::{BoundDraft, StatusRow};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    Dependency, NewReleaseMachine, Page, Paged, ProvenanceRow, ReleaseMachineRow, ReleaseReads,
    ReleaseRow, ReleaseSourceRow,
};

use super::super::LEAST;
use super::statement::{after, kept, overfetch};
use super::{Out, holds};
use crate::change::watched;
use crate::pg::session::Session;
use crate::pg::{Eye, Row, Tables};

#[derive(Clone, Debug)]
pub struct Release {
    pub row: ReleaseRow,
    pub epoch: EpochId,
}

/// A machine of a release with its provenance and its dependencies.
#[derive(Clone, Debug)]
pub struct MachineOfRelease {
    pub release: ReleaseId,
    pub new: NewReleaseMachine,
}

/// A provider's version, as it was first classified or since.
#[derive(Clone, Debug)]
pub struct Status {
    pub row: StatusRow,
    pub kv: bool,
    pub classification: Classification,
    pub first_retained_at: DbTime,
    pub observed_from: DbTime,
}

impl Row<(ReleaseId, MachineId)> for MachineOfRelease {}
impl Row<(ReleaseId, HeadId)> for ReleaseSourceRow {}
impl Row<DependencyId> for Status {}
impl Row<Dependency> for DependencyId {}
watched!(Release, ReleaseId, Release);

kept!(
    Release, ReleaseId => execution.releases;
    MachineOfRelease, (ReleaseId, MachineId) => execution.release_machines;
    ReleaseSourceRow, (ReleaseId, HeadId) => execution.release_sources;
    Status, DependencyId => execution.statuses;
    DependencyId, Dependency => execution.versions;
);

/// The rows of one release, in the order of the second part of their keys.
pub(super) fn machines(
    tables: &Tables,
    eye: Eye,
    of: ReleaseId,
) -> impl Iterator<Item = &MachineOfRelease> {
    let first = (of, MachineId::from_bits(LEAST));
    let rows = tables.execution.release_machines.range(eye, first..);
    rows.take_while(move |((release, _), _)| *release == of)
        .map(|(_, row)| row)
}

pub(super) fn sources(
    tables: &Tables,
    eye: Eye,
    of: ReleaseId,
) -> impl Iterator<Item = &ReleaseSourceRow> {
    // Assignments are the first kind of heads.
    let first = (
        of,
        HeadId::Assignment(bronzeward_core::id::AssignmentId::from_bits(LEAST)),
    );
    let rows = tables.execution.release_sources.range(eye, first..);
    rows.take_while(move |((release, _), _)| *release == of)
        .map(|(_, row)| row)
}

/// The status rows of objects, by identifier.
fn of_objects(tables: &Tables, eye: Eye, objects: &BTreeSet<String>) -> Vec<DependencyId> {
    let mut ids: Vec<DependencyId> = Vec::new();
    for object in objects {
        let first = Dependency {
            object: object.clone(),
            version: i64::MIN,
            created: String::new(),
        };
        let versions = tables.execution.versions.range(eye, first..);
        let versions = versions.take_while(|(key, _)| key.object == *object);
        ids.extend(versions.map(|(_, id)| *id));
    }
    ids.sort();
    ids
}

fn machine_row(of: &MachineOfRelease) -> ReleaseMachineRow {
    let new = &of.new;
    ReleaseMachineRow {
        release: of.release,
        machine: new.machine,
        import_base: new.import_base,
        assignment: new.assignment,
        machine_type: new.machine_type,
        platform: new.platform,
        configuration_digest: new.configuration_digest,
        ciphertext: new.ciphertext.clone(),
        key_name: new.key.name.clone(),
        key_version: new.key.version,
        review: new.review.clone().map_err(str::to_owned),
        observation: new.observation,
    }
}

impl ReleaseReads for Session {
    async fn release(&mut self, of: ReleaseId) -> Out<Option<ReleaseRow>> {
        self.read("read release", |tables, eye| {
            let found = tables.execution.releases.get(eye, &of);
            found.map(|release| release.row.clone())
        })
        .await
    }

    async fn releases(&mut self, page: &Page<ReleaseId>) -> Out<Paged<ReleaseRow>> {
        self.read("list releases", |tables, eye| {
            let rows = tables.execution.releases.range(eye, after(page));
            let rows = rows.take(overfetch(page)).map(|(_, of)| of.row.clone());
            Paged::from_overfetched(rows.collect(), page.limit)
        })
        .await
    }

    async fn release_sources(&mut self, of: ReleaseId) -> Out<Vec<ReleaseSourceRow>> {
        let mut rows: Vec<ReleaseSourceRow> = self
            .read("read release's sources", |tables, eye| {
                sources(tables, eye, of).cloned().collect()
            })
            .await?;
        rows.sort_by(|a, b| (a.kind, &a.subject).cmp(&(b.kind, &b.subject)));
        Ok(rows)
    }

    async fn release_machines(&mut self, of: ReleaseId) -> Out<Vec<ReleaseMachineRow>> {
        self.read("read release's machines", |tables, eye| {
            machines(tables, eye, of).map(machine_row).collect()
        })
        .await
    }

    async fn release_machine(
        &mut self,
        of: ReleaseId,
        machine: MachineId,
    ) -> Out<Option<ReleaseMachineRow>> {
        self.read("read release's machine", |tables, eye| {
            let rows = &tables.execution.release_machines;
            rows.get(eye, &(of, machine)).map(machine_row)
        })
        .await
    }

    async fn provenance(&mut self, of: ReleaseId, machine: MachineId) -> Out<Vec<ProvenanceRow>> {
        self.read("read provenance", |tables, eye| {
            let row = tables.execution.release_machines.get(eye, &(of, machine));
            row.map_or_else(Vec::new, |row| row.new.provenance.clone())
        })
        .await
    }

    async fn release_of(&mut self, bound: BoundDraft) -> Out<Option<ReleaseRow>> {
        self.read("read a draft's release", |tables, eye| {
            let mut rows = tables.execution.releases.values(eye);
            let found = rows
                .find(|of| of.row.draft == bound.draft && of.row.draft_revision == bound.revision);
            found.map(|of| of.row.clone())
        })
        .await
    }

    async fn applied_bases(
        &mut self,
        cluster: ClusterId,
    ) -> Out<Vec<(MachineId, ImportBaseRevisionId)>> {
        self.read("read applied bases", |tables, eye| {
            let machines = tables.authoring.machines.iter(eye);
            let machines = machines.filter(|(_, machine)| machine.cluster == cluster);
            let bases = machines.filter_map(|(id, _)| {
                let state = tables.authoring.machine_states.get(eye, id)?;
                let key = (state.applied?.release, *id);
                let of = tables.execution.release_machines.get(eye, &key)?;
                Some((*id, of.new.import_base))
            });
            bases.collect()
        })
        .await
    }

    async fn scope_holders(&mut self, cluster: ClusterId) -> Out<Vec<(MachineId, OperationId)>> {
        self.read("read scope holders", |tables, eye| {
            let rows = tables.execution.operations.values(eye);
            // A retired one is counted as the adapter counts it: by its state.
            let holding = rows.filter(|of| {
                of.row.cluster == cluster && of.row.kind == "apply-config" && holds(&of.row.state)
            });
            holding
                .filter_map(|of| Some((of.row.machine?, of.row.id)))
                .collect()
        })
        .await
    }

    async fn statuses(&mut self, objects: &BTreeSet<String>) -> Out<Vec<StatusRow>> {
        self.read("read statuses", |tables, eye| {
            let ids = of_objects(tables, eye, objects).into_iter();
            let rows = ids.filter_map(|id| tables.execution.statuses.get(eye, &id));
            rows.map(|status| status.row.clone()).collect()
        })
        .await
    }
}
