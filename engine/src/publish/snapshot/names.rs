//! Heads and revisions of a cluster as a draft leaves them: the draft's own entry for a
//! name decides over its head (PA §3.1).

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::head::{AssignmentContent, Name, Names, PinTarget, Standing};
use bronzeward_core::id::{
    AssignmentRevisionId, ClusterId, FragmentRevisionId, HeadId, MachineId, ProfileRevisionId,
};
use bronzeward_core::revision::Revision;

use super::{Change, CoveredMachine, Stop, fault, first};
use crate::ports::store::{
    AssignmentRevisionRow, ClusterRow, EntryKind, EntryOfDraft, FragmentRevisionRow, HeadKind,
    NewHead, ProfileRevisionRow, ReleaseSourceRow, SourceReads, StoreError,
};
use crate::rows::{HeadRow, MachineRow, SourceRevisionId};
use crate::world::{Db, World};

pub(super) struct Sources {
    entries: Vec<EntryOfDraft>,
    heads: BTreeMap<(HeadKind, String), HeadRow>,
    fragments: BTreeMap<FragmentRevisionId, FragmentRevisionRow>,
    profiles: BTreeMap<ProfileRevisionId, ProfileRevisionRow>,
    assignments: BTreeMap<AssignmentRevisionId, AssignmentRevisionRow>,
}

const fn kind_of(entry: EntryKind) -> Option<HeadKind> {
    match entry {
        EntryKind::ImportBase => None,
        EntryKind::Fragment => Some(HeadKind::Fragment),
        EntryKind::Profile => Some(HeadKind::Profile),
        EntryKind::Assignment => Some(HeadKind::Assignment),
    }
}

fn fragment(revision: SourceRevisionId) -> Option<FragmentRevisionId> {
    match revision {
        SourceRevisionId::Fragment(id) => Some(id),
        _ => None,
    }
}

fn profile(revision: SourceRevisionId) -> Option<ProfileRevisionId> {
    match revision {
        SourceRevisionId::Profile(id) => Some(id),
        _ => None,
    }
}

fn assignment(revision: SourceRevisionId) -> Option<AssignmentRevisionId> {
    match revision {
        SourceRevisionId::Assignment(id) => Some(id),
        _ => None,
    }
}

impl Sources {
    /// Reads downwards: the machines' assignments, the profiles they name, the fragments
    /// both name, and whatever the draft proposes of each.
    pub async fn read<R: SourceReads>(
        reads: &mut R,
        cluster: &ClusterRow,
        entries: &[EntryOfDraft],
        machines: &[MachineRow],
    ) -> Result<Self, StoreError> {
        let mut sources = Self {
            entries: entries.to_vec(),
            heads: BTreeMap::new(),
            fragments: BTreeMap::new(),
            profiles: BTreeMap::new(),
            assignments: BTreeMap::new(),
        };
        let subjects = machines.iter().map(|machine| machine.id.to_string());
        sources
            .read_heads(reads, cluster, HeadKind::Assignment, subjects.collect())
            .await?;
        let ids = machines
            .iter()
            .filter_map(|machine| sources.standing_assignment(machine.id));
        for row in reads.assignment_revisions(&ids.collect()).await? {
            sources.assignments.insert(row.id, row);
        }

        let mut subjects = sources.proposed(EntryKind::Profile);
        let mut selected = sources.proposed(EntryKind::Fragment);
        for row in sources.assignments.values() {
            subjects.extend(row.content.profiles.iter().map(ToString::to_string));
            let fragments = row.content.fragments.values().flatten();
            selected.extend(fragments.map(ToString::to_string));
        }
        sources
            .read_heads(reads, cluster, HeadKind::Profile, subjects.clone())
            .await?;
        let ids = subjects.iter().filter_map(|name| {
            sources
                .standing(EntryKind::Profile, name, profile)
                .revision()
        });
        for row in reads.profile_revisions(&ids.collect()).await? {
            sources.profiles.insert(row.id, row);
        }

        let pins = sources.profiles.values();
        let pins: BTreeSet<FragmentRevisionId> =
            pins.flat_map(|row| row.content.fragments.clone()).collect();
        for row in reads.fragment_revisions(&pins).await? {
            // A pin of another cluster's fragment is no pin of this one's.
            if row.cluster == cluster.id {
                selected.insert(row.name.to_string());
                sources.fragments.insert(row.id, row);
            }
        }
        sources
            .read_heads(reads, cluster, HeadKind::Fragment, selected.clone())
            .await?;
        let ids = selected
            .iter()
            .filter_map(|name| {
                sources
                    .standing(EntryKind::Fragment, name, fragment)
                    .revision()
            })
            .filter(|id| !sources.fragments.contains_key(id));
        for row in reads.fragment_revisions(&ids.collect()).await? {
            sources.fragments.insert(row.id, row);
        }
        Ok(sources)
    }

    async fn read_heads<R: SourceReads>(
        &mut self,
        reads: &mut R,
        cluster: &ClusterRow,
        kind: HeadKind,
        subjects: BTreeSet<String>,
    ) -> Result<(), StoreError> {
        for row in reads.heads_of(cluster.id, kind, &subjects).await? {
            self.heads.insert((kind, row.subject.clone()), row);
        }
        Ok(())
    }

    fn proposed(&self, kind: EntryKind) -> BTreeSet<String> {
        let own = self.entries.iter().filter(|entry| entry.kind == kind);
        own.map(|entry| entry.subject.clone()).collect()
    }

    fn standing<R: Copy>(
        &self,
        kind: EntryKind,
        subject: &str,
        pick: fn(SourceRevisionId) -> Option<R>,
    ) -> Standing<R> {
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.kind == kind && entry.subject == subject);
        let head = kind_of(kind).and_then(|kind| self.heads.get(&(kind, subject.to_owned())));
        Standing::of(
            entry.map(|entry| entry.revision.and_then(pick)),
            head.and_then(|head| head.revision).and_then(pick),
        )
    }

    pub fn standing_assignment(&self, machine: MachineId) -> Option<AssignmentRevisionId> {
        self.standing(EntryKind::Assignment, &machine.to_string(), assignment)
            .revision()
    }

    pub fn assignment_head(&self, machine: MachineId) -> Option<HeadId> {
        let key = (HeadKind::Assignment, machine.to_string());
        self.heads.get(&key).map(|head| head.id)
    }

    pub fn assignment(
        &self,
        revision: Option<AssignmentRevisionId>,
    ) -> Result<Option<AssignmentContent>, Stop> {
        let Some(revision) = revision else {
            return Ok(None);
        };
        let row = self.assignments.get(&revision).ok_or_else(fault)?;
        Ok(Some(row.content.clone()))
    }

    pub fn fragment(&self, revision: FragmentRevisionId) -> Result<&FragmentRevisionRow, Stop> {
        self.fragments.get(&revision).ok_or_else(fault)
    }

    /// A selected name's revision; the selection was checked.
    pub fn standing_fragment(&self, name: &Name) -> Result<FragmentRevisionId, Stop> {
        self.standing(EntryKind::Fragment, name.as_str(), fragment)
            .revision()
            .ok_or_else(fault)
    }

    /// A selected profile's pins; the selection was checked.
    pub fn pins_of(&self, name: &Name) -> Result<Vec<FragmentRevisionId>, Stop> {
        let revision = self
            .standing(EntryKind::Profile, name.as_str(), profile)
            .revision();
        let row = revision.and_then(|revision| self.profiles.get(&revision));
        Ok(row.ok_or_else(fault)?.content.fragments.clone())
    }

    /// Every profile the release names, changed or not, by name.
    pub fn named_profiles(&self) -> BTreeMap<&Name, &ProfileRevisionRow> {
        let rows = self.profiles.values();
        rows.map(|row| (&row.name, row)).collect()
    }

    /// What pins and selections are checked against.
    pub fn names(&self) -> Names {
        let mut names = Names::default();
        let mut fragments = self.proposed(EntryKind::Fragment);
        let mut profiles = self.proposed(EntryKind::Profile);
        for (kind, subject) in self.heads.keys() {
            match kind {
                HeadKind::Fragment => drop(fragments.insert(subject.clone())),
                HeadKind::Profile => drop(profiles.insert(subject.clone())),
                HeadKind::Assignment => {}
            }
        }
        for subject in fragments {
            let Ok(name) = Name::parse(&subject) else {
                continue;
            };
            let standing = self.standing(EntryKind::Fragment, &subject, fragment);
            let row = standing.revision().and_then(|id| self.fragments.get(&id));
            names
                .fragments
                .insert(name, (standing, row.map(|row| row.layer)));
        }
        for subject in profiles {
            if let Ok(name) = Name::parse(&subject) {
                let standing = self.standing(EntryKind::Profile, &subject, profile);
                names.profiles.insert(name, standing);
            }
        }
        for row in self.fragments.values() {
            let target = PinTarget {
                name: row.name.clone(),
                layer: row.layer,
            };
            names.pins.insert(row.id, target);
        }
        names
    }

    pub fn head(&self, id: HeadId) -> Result<&HeadRow, Stop> {
        self.heads
            .values()
            .find(|head| head.id == id)
            .ok_or_else(fault)
    }

    fn head_named(&self, kind: HeadKind, subject: &str) -> Option<HeadId> {
        let head = self.heads.get(&(kind, subject.to_owned()));
        head.map(|head| head.id)
    }

    /// The heads the release uses: each covered machine's assignment, the profiles and
    /// fragments it selects, and the fragments that named profiles pin.
    pub fn used(&self, machines: &[CoveredMachine]) -> Result<BTreeSet<HeadId>, Stop> {
        let mut used = BTreeSet::new();
        for machine in machines {
            used.extend(machine.assignment_head);
            let Some(content) = self.assignment(machine.covered.assignment)? else {
                continue;
            };
            for name in &content.profiles {
                used.extend(self.head_named(HeadKind::Profile, name.as_str()));
            }
            for name in content.fragments.values().flatten() {
                used.extend(self.head_named(HeadKind::Fragment, name.as_str()));
            }
        }
        for row in self.profiles.values() {
            for pin in &row.content.fragments {
                let name = &self.fragment(*pin)?.name;
                used.extend(self.head_named(HeadKind::Fragment, name.as_str()));
            }
        }
        Ok(used)
    }

    /// The heads the draft moves, and those it introduces.
    pub fn moved<W: World>(
        &self,
        db: &Db<W>,
        cluster: ClusterId,
    ) -> Result<(BTreeMap<HeadId, Change>, Vec<NewHead>), Stop> {
        let mut changed = BTreeMap::new();
        let mut introduced = Vec::new();
        for entry in &self.entries {
            let Some(kind) = kind_of(entry.kind) else {
                continue;
            };
            match (entry.base, entry.revision) {
                (Some((head, base)), revision) => {
                    let base = Revision(base);
                    changed.insert(head, Change { base, revision });
                }
                (None, Some(revision)) => introduced.push(NewHead {
                    id: match kind {
                        HeadKind::Fragment => HeadId::Fragment(db.mint()),
                        HeadKind::Profile => HeadId::Profile(db.mint()),
                        HeadKind::Assignment => HeadId::Assignment(db.mint()),
                    },
                    cluster,
                    kind,
                    subject: entry.subject.clone(),
                    layer: match fragment(revision) {
                        Some(id) => Some(self.fragment(id)?.layer),
                        None => None,
                    },
                    revision,
                    etag: first(db.mint_token()),
                }),
                // A name introduced and removed again in the same draft.
                (None, None) => {}
            }
        }
        Ok((changed, introduced))
    }

    /// Every head the release used or moved, as it leaves it.
    pub fn release_sources(
        &self,
        changed: &BTreeMap<HeadId, Change>,
        unchanged: &BTreeMap<HeadId, Revision>,
        introduced: &[NewHead],
    ) -> Result<Vec<ReleaseSourceRow>, Stop> {
        let mut rows = Vec::new();
        for entry in &self.entries {
            let (Some(kind), Some((head, _))) = (kind_of(entry.kind), entry.base) else {
                continue;
            };
            let change = changed.get(&head).ok_or_else(fault)?;
            rows.push(ReleaseSourceRow {
                head,
                kind,
                subject: entry.subject.clone(),
                revision: change.revision,
                head_revision: change.base.next(),
            });
        }
        for ((kind, subject), head) in &self.heads {
            if let Some(revision) = unchanged.get(&head.id) {
                rows.push(ReleaseSourceRow {
                    head: head.id,
                    kind: *kind,
                    subject: subject.clone(),
                    revision: head.revision,
                    head_revision: *revision,
                });
            }
        }
        rows.extend(introduced.iter().map(|head| ReleaseSourceRow {
            head: head.id,
            kind: head.kind,
            subject: head.subject.clone(),
            revision: Some(head.revision),
            head_revision: Revision::FIRST,
        }));
        rows.sort_by(|a, b| (a.kind, &a.subject).cmp(&(b.kind, &b.subject)));
        Ok(rows)
    }
}
