//! The checks that the schema makes of a release at its commit: `release_complete`, and the
//! foreign keys that wait for it.
//!
//! Read by nobody else. Never in here: a decision of a publication.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::id::{DraftId, MachineId, OperationId, ReleaseId};
use bronzeward_core::observation::Purpose;
use bronzeward_engine::ports::store::{
    Dependency, EntryKind, EntryOfDraft, HeadKind, ReleaseSourceRow,
};
use bronzeward_engine::rows::SourceRevisionId;

use super::releases::{MachineOfRelease, machines, sources};
use crate::pg::{Eye, Tables};

/// A draft's entries.
pub(super) fn entries(
    tables: &Tables,
    eye: Eye,
    of: DraftId,
) -> impl Iterator<Item = &EntryOfDraft> {
    let first = (of, EntryKind::ImportBase, String::new());
    let rows = tables.authoring.draft_entries.range(eye, first..);
    rows.take_while(move |((draft, ..), _)| *draft == of)
        .map(|(_, entry)| entry)
}

/// A release's rows as one check sees them.
struct Whole<'t> {
    tables: &'t Tables,
    eye: Eye,
    operation: OperationId,
    machines: Vec<&'t MachineOfRelease>,
    sources: Vec<&'t ReleaseSourceRow>,
    /// The revision that each name is left at.
    named: BTreeMap<(HeadKind, &'t str), Option<SourceRevisionId>>,
}

/// The name of the object that refuses the release, if one does.
pub(super) fn complete(
    tables: &Tables,
    eye: Eye,
    of: ReleaseId,
    operation: OperationId,
) -> Result<(), &'static str> {
    let sources: Vec<&ReleaseSourceRow> = sources(tables, eye, of).collect();
    let named = sources.iter();
    let whole = Whole {
        tables,
        eye,
        operation,
        machines: machines(tables, eye, of).collect(),
        named: named
            .map(|source| ((source.kind, source.subject.as_str()), source.revision))
            .collect(),
        sources,
    };
    let heads = &tables.authoring.heads;
    let headed = whole
        .sources
        .iter()
        .all(|of| heads.get(eye, &of.head).is_some());
    let complete = !whole.machines.is_empty()
        && whole
            .sources
            .iter()
            .all(|source| whole.names_its_own(source))
        && whole.machines.iter().all(|machine| whole.admits(machine));
    match (complete, headed) {
        (false, _) => Err("release_complete"),
        (true, false) => Err("release_source_head_id_fkey"),
        (true, true) => Ok(()),
    }
}

impl Whole<'_> {
    fn has(&self, kind: HeadKind, name: &str) -> bool {
        let named = self.named.get(&(kind, name));
        matches!(named, Some(Some(_)))
    }

    /// What a profile pins, and what an assignment selects, is among the sources.
    fn names_its_own(&self, source: &ReleaseSourceRow) -> bool {
        let authored = &self.tables.authoring;
        match source.revision {
            Some(SourceRevisionId::Profile(id)) => {
                let profile = authored.profiles.get(self.eye, &id);
                profile.is_none_or(|profile| {
                    profile.content.fragments.iter().all(|pin| {
                        let pin = Some(SourceRevisionId::Fragment(*pin));
                        let mut sources = self.sources.iter();
                        sources.any(|of| of.kind == HeadKind::Fragment && of.revision == pin)
                    })
                })
            }
            Some(SourceRevisionId::Assignment(id)) => {
                let assignment = authored.assignments.get(self.eye, &id);
                assignment.is_none_or(|assignment| {
                    let content = &assignment.content;
                    let mut profiles = content.profiles.iter();
                    let mut fragments = content.fragments.values().flatten();
                    profiles.all(|name| self.has(HeadKind::Profile, name.as_str()))
                        && fragments.all(|name| self.has(HeadKind::Fragment, name.as_str()))
                })
            }
            _ => true,
        }
    }

    fn admits(&self, of: &MachineOfRelease) -> bool {
        self.is_assigned(of)
            && self.is_encrypted(of)
            && self.reproduces(of)
            && self.is_effective(of)
            && self.is_observed(of)
    }

    /// The machine's assignment revision is its assignment source's.
    fn is_assigned(&self, of: &MachineOfRelease) -> bool {
        let Some((head, revision)) = of.new.assignment else {
            return true;
        };
        let mut sources = self.sources.iter();
        let source = sources.find(|source| source.head == head);
        source.is_some_and(|source| {
            source.kind == HeadKind::Assignment
                && MachineId::parse(&source.subject) == Ok(of.new.machine)
                && source.revision == revision.map(SourceRevisionId::Assignment)
        })
    }

    /// It has an encryption dependency on its own key version.
    fn is_encrypted(&self, of: &MachineOfRelease) -> bool {
        let key = Dependency {
            object: of.new.key.name.clone(),
            version: of.new.key.version,
            created: of.new.key.created.to_string(),
        };
        let rows = &self.tables.execution;
        let id = rows.versions.get(self.eye, &key);
        let status = id.and_then(|id| rows.statuses.get(self.eye, id));
        status.is_some_and(|status| !status.kv)
    }

    /// The revisions that a machine is composed of.
    fn composition(&self, of: &MachineOfRelease) -> BTreeSet<SourceRevisionId> {
        let mut composed = BTreeSet::from([SourceRevisionId::ImportBase(of.new.import_base)]);
        let authored = &self.tables.authoring;
        let assignment = of.new.assignment.and_then(|(_, revision)| revision);
        let Some(assignment) = assignment.and_then(|id| authored.assignments.get(self.eye, &id))
        else {
            return composed;
        };
        for name in &assignment.content.profiles {
            let profile = self.named.get(&(HeadKind::Profile, name.as_str()));
            let Some(Some(SourceRevisionId::Profile(id))) = profile else {
                continue;
            };
            let Some(profile) = authored.profiles.get(self.eye, id) else {
                continue;
            };
            let pins = profile.content.fragments.iter();
            composed.extend(pins.map(|pin| SourceRevisionId::Fragment(*pin)));
        }
        for name in assignment.content.fragments.values().flatten() {
            let fragment = self.named.get(&(HeadKind::Fragment, name.as_str()));
            composed.extend(fragment.copied().flatten());
        }
        composed
    }

    /// Its reproduction dependencies are what its own sources declare.
    fn reproduces(&self, of: &MachineOfRelease) -> bool {
        let composed = self.composition(of);
        of.new.reproduction.iter().all(|record| {
            let references = &self.tables.authoring.references;
            let references = references.get(self.eye, &record.source);
            let declared = references.and_then(|of| of.rows.get(&record.version.name));
            let as_declared = declared.is_some_and(|row| {
                row.declaration.version == record.version.version
                    && row.kept.generation.to_string() == record.dependency.object
            });
            as_declared && composed.contains(&record.source)
        })
    }

    /// Its effective dependencies have reproduction dependencies.
    fn is_effective(&self, of: &MachineOfRelease) -> bool {
        of.new.effective.iter().all(|(version, dependency)| {
            let mut reproduction = of.new.reproduction.iter();
            reproduction
                .any(|record| record.version == *version && record.dependency == *dependency)
        })
    }

    /// Its observation is of its own publication.
    fn is_observed(&self, of: &MachineOfRelease) -> bool {
        let start = self
            .tables
            .execution
            .starts
            .get(self.eye, &of.new.observation);
        start.is_none_or(|start| {
            start.machine == of.new.machine
                && start.purpose == Purpose::Publication
                && start.operation == Some(self.operation)
        })
    }
}
