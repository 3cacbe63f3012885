//! What a publication is made of, read in one state of the database (PA §6.1 step 1).
//!
//! The worker calls it once per pass. Coverage, pins, selections and the order of fragments
//! are core's decisions; this module reads what they are made on. Never in this module: a
//! lock, a provider, a value.

mod names;

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::canonical::Digest;
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::head::{
    AssignmentContent, check_assignment, check_profile, composition_order,
};
use bronzeward_core::id::{
    AssignmentRevisionId, FragmentRevisionId, HeadId, ImportBaseRevisionId, MachineId,
};
use bronzeward_core::problem::Problem;
use bronzeward_core::reference::{Declarations, Version};
use bronzeward_core::release::{
    Candidate, Contract, Covered, StatusRow, coverage, unchanged_heads,
};
use bronzeward_core::revision::{Etag, Revision};
use bronzeward_core::scope::ScopeState;
use bronzeward_core::secret::Plaintext;

use super::job::Owned;
use super::{Stop, refusal};
use crate::ports::store::{
    ClusterRow, DraftReads, EntryKind, EntryOfDraft, HeadKind, InventoryReads, NewHead, Page,
    ReleaseReads, ReleaseSourceRow, Snapshot as _, SourceReads, Store, StoreError,
};
use crate::rows::{DraftStateRow, MachineRow, SourceRevisionId};
use crate::world::{Db, RawSnapshot, World};

use names::Sources;

/// A source's stored text with what it declares.
pub(crate) struct Text {
    pub text: Plaintext,
    pub digest: Digest,
    pub declarations: Declarations,
}

/// A machine the release covers, with its sources in composition order: its import base,
/// then its fragments.
pub(crate) struct CoveredMachine {
    pub row: MachineRow,
    pub covered: Covered,
    pub assignment_head: Option<HeadId>,
    pub fragments: Vec<FragmentRevisionId>,
}

impl CoveredMachine {
    /// The source of a composition by its position: 0 is the import base.
    pub fn source(&self, position: usize) -> Option<SourceRevisionId> {
        match position.checked_sub(1) {
            None => Some(SourceRevisionId::ImportBase(self.covered.import_base)),
            Some(index) => self
                .fragments
                .get(index)
                .copied()
                .map(SourceRevisionId::Fragment),
        }
    }
}

/// A head that the draft changes: its base, and where it goes.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub base: Revision,
    pub revision: Option<SourceRevisionId>,
}

pub(crate) struct Snapshot {
    pub cluster: ClusterRow,
    pub contract: Contract,
    pub machines: Vec<CoveredMachine>,
    /// Machines whose assignment the draft changes or removes.
    pub assignment_changed: BTreeSet<MachineId>,
    pub texts: BTreeMap<SourceRevisionId, Text>,
    /// The generation of every pinned version.
    pub generations: BTreeMap<Version, GenerationPath>,
    /// The status rows of those generations.
    pub statuses: Vec<StatusRow>,
    pub changed: BTreeMap<HeadId, Change>,
    /// Each head used without a draft entry, at the revision read here.
    pub unchanged: BTreeMap<HeadId, Revision>,
    pub introduced: Vec<NewHead>,
    pub sources: Vec<ReleaseSourceRow>,
}

/// Reads it all in one snapshot and closes that.
pub(crate) async fn take<W: World>(db: &Db<W>, owned: &Owned) -> Result<Snapshot, Stop> {
    let mut reads = db.store().snapshot().await?;
    let taken = read::<W>(db, &mut reads, owned).await;
    reads.close().await;
    taken
}

async fn read<W: World>(
    db: &Db<W>,
    reads: &mut RawSnapshot<W>,
    owned: &Owned,
) -> Result<Snapshot, Stop> {
    let rules = db.rules();
    let draft = reads.draft(owned.bound.draft).await?.ok_or_else(fault)?;
    if draft.state != DraftStateRow::Open || draft.etag.revision != owned.bound.revision {
        return Err(refusal::draft_moved(draft.id).into());
    }
    let cluster = reads.cluster(draft.cluster).await?.ok_or_else(fault)?;
    let contract = Contract::parse(&cluster.contract).ok_or_else(fault)?;
    let entries = reads.draft_entries(draft.id).await?;
    let rows = machines_of::<W>(reads, &cluster).await?;
    let sources = Sources::read(reads, &cluster, &entries, &rows).await?;
    let (candidates, assignment_changed) =
        candidates::<W>(reads, &entries, &rows, &sources).await?;
    let covered =
        coverage(&rules, &candidates).map_err(|refused| refusal::coverage(cluster.id, &refused))?;

    let names = sources.names();
    for (name, revision) in sources.named_profiles() {
        check_profile(&rules, &revision.content, &names)
            .map_err(|it| refusal::selection("profile", name, revision.id, &it))?;
    }
    let mut machines = Vec::with_capacity(covered.len());
    for row in rows {
        let Some(covered) = covered.get(&row.id).copied() else {
            continue;
        };
        let content = sources.assignment(covered.assignment)?;
        if let (Some(content), Some(revision)) = (&content, covered.assignment) {
            check_assignment(&rules, content, &names)
                .map_err(|it| refusal::selection("machine", row.id, revision, &it))?;
        }
        machines.push(CoveredMachine {
            assignment_head: sources.assignment_head(row.id),
            fragments: composition(&sources, content.as_ref())?,
            row,
            covered,
        });
    }
    finish(
        reads,
        cluster,
        contract,
        machines,
        assignment_changed,
        sources,
        db,
    )
    .await
}

/// A machine's fragments in composition order; one selected twice stands at its first
/// position (choice §16.31).
fn composition(
    sources: &Sources,
    content: Option<&AssignmentContent>,
) -> Result<Vec<FragmentRevisionId>, Stop> {
    let Some(content) = content else {
        return Ok(Vec::new());
    };
    let mut pins = Vec::new();
    for profile in &content.profiles {
        let mut own = Vec::new();
        for pin in sources.pins_of(profile)? {
            own.push((sources.fragment(pin)?.layer, pin));
        }
        pins.push(own);
    }
    let mut selected = BTreeMap::new();
    for (layer, fragments) in &content.fragments {
        let revisions = fragments.iter().map(|name| sources.standing_fragment(name));
        selected.insert(*layer, revisions.collect::<Result<Vec<_>, Stop>>()?);
    }
    let mut seen = BTreeSet::new();
    let order = composition_order(&pins, &selected).into_iter();
    let order = order.map(|placed| placed.revision);
    Ok(order.filter(|revision| seen.insert(*revision)).collect())
}

async fn finish<W: World>(
    reads: &mut RawSnapshot<W>,
    cluster: ClusterRow,
    contract: Contract,
    machines: Vec<CoveredMachine>,
    assignment_changed: BTreeSet<MachineId>,
    sources: Sources,
    db: &Db<W>,
) -> Result<Snapshot, Stop> {
    let used = sources.used(&machines)?;
    let (changed, introduced) = sources.moved(db, cluster.id)?;
    let named: BTreeSet<HeadId> = changed.keys().copied().collect();
    let mut unchanged = BTreeMap::new();
    for head in unchanged_heads(&used, &named) {
        unchanged.insert(head, sources.head(head)?.etag.revision);
    }
    let release_sources = sources.release_sources(&changed, &unchanged, &introduced)?;
    let machines = with_introduced(machines, &introduced);
    let mut texts = BTreeMap::new();
    let mut generations = BTreeMap::new();
    for machine in &machines {
        for position in 0..=machine.fragments.len() {
            let Some(source) = machine.source(position) else {
                continue;
            };
            if texts.contains_key(&source) {
                continue;
            }
            texts.insert(source, text::<W>(reads, source, &sources).await?);
            for row in reads.references(source).await? {
                let version = Version {
                    name: row.name,
                    version: row.declaration.version,
                };
                let path = row.kept.generation;
                // One name at one version is one generation of the cluster (IC §5.2).
                if *generations.entry(version).or_insert(path) != path {
                    return Err(fault());
                }
            }
        }
    }
    let objects = generations.values().map(ToString::to_string).collect();
    let statuses = reads.statuses(&objects).await?;
    Ok(Snapshot {
        cluster,
        contract,
        machines,
        assignment_changed,
        texts,
        generations,
        statuses,
        changed,
        unchanged,
        introduced,
        sources: release_sources,
    })
}

/// A machine whose first assignment the draft proposes gets the head that is introduced
/// for it.
fn with_introduced(
    mut machines: Vec<CoveredMachine>,
    introduced: &[NewHead],
) -> Vec<CoveredMachine> {
    for machine in machines
        .iter_mut()
        .filter(|it| it.assignment_head.is_none())
    {
        let subject = machine.row.id.to_string();
        let own = introduced
            .iter()
            .find(|head| head.kind == HeadKind::Assignment && head.subject == subject);
        machine.assignment_head = own.map(|head| head.id);
    }
    machines
}

async fn text<W: World>(
    reads: &mut RawSnapshot<W>,
    source: SourceRevisionId,
    sources: &Sources,
) -> Result<Text, Stop> {
    let (document, declarations) = match source {
        SourceRevisionId::ImportBase(id) => {
            let row = reads.import_base(id).await?.ok_or_else(fault)?;
            (row.document, row.declarations)
        }
        SourceRevisionId::Fragment(id) => {
            let row = sources.fragment(id)?;
            (row.document.clone(), row.declarations.clone())
        }
        SourceRevisionId::Profile(_) | SourceRevisionId::Assignment(_) => return Err(fault()),
    };
    Ok(Text {
        digest: Digest::of(document.as_bytes()),
        text: Plaintext::new(document),
        declarations,
    })
}

async fn machines_of<W: World>(
    reads: &mut RawSnapshot<W>,
    cluster: &ClusterRow,
) -> Result<Vec<MachineRow>, StoreError> {
    let mut rows = Vec::new();
    let mut page = Page {
        after: None,
        limit: 500,
    };
    loop {
        let next = reads.machines(Some(cluster.id), &page).await?;
        page.after = next.items.last().map(|machine| machine.id);
        rows.extend(next.items);
        if !next.more {
            return Ok(rows);
        }
    }
}

/// Every machine of the cluster as coverage looks at it, and those whose assignment the
/// draft changes.
async fn candidates<W: World>(
    reads: &mut RawSnapshot<W>,
    entries: &[EntryOfDraft],
    rows: &[MachineRow],
    sources: &Sources,
) -> Result<(BTreeMap<MachineId, Candidate>, BTreeSet<MachineId>), Stop> {
    let Some(cluster) = rows.first().map(|row| row.cluster) else {
        return Ok((BTreeMap::new(), BTreeSet::new()));
    };
    let applied: BTreeMap<MachineId, ImportBaseRevisionId> =
        reads.applied_bases(cluster).await?.into_iter().collect();
    let mut changed = BTreeSet::new();
    let mut candidates = BTreeMap::new();
    for row in rows {
        let subject = row.id.to_string();
        let entry = |kind: EntryKind| {
            let mut own = entries.iter();
            own.find(|entry| entry.kind == kind && entry.subject == subject)
        };
        let draft_base = match entry(EntryKind::ImportBase).and_then(|entry| entry.revision) {
            Some(SourceRevisionId::ImportBase(base)) => Some(base),
            _ => None,
        };
        // A removal of an assignment that was never published changes nothing.
        let assignment_changed = entry(EntryKind::Assignment)
            .is_some_and(|entry| entry.base.is_some() || entry.revision.is_some());
        if assignment_changed {
            changed.insert(row.id);
        }
        let candidate = Candidate {
            applied_base: applied.get(&row.id).copied(),
            draft_base,
            assignment: sources.standing_assignment(row.id),
            assignment_changed,
            retired: row.scope == ScopeState::Retired,
        };
        candidates.insert(row.id, candidate);
    }
    Ok((candidates, changed))
}

/// Rows that do not fit together: stored otherwise than they are written.
pub(super) fn fault() -> Stop {
    Problem::internal("The stored sources do not fit together. Nothing was committed.").into()
}

/// The assignment of a covered machine as its release row keeps it.
pub(crate) fn assignment_of(
    machine: &CoveredMachine,
) -> Option<(HeadId, Option<AssignmentRevisionId>)> {
    machine
        .assignment_head
        .map(|head| (head, machine.covered.assignment))
}

/// The ETag of a head's first revision.
pub(super) fn first(token: bronzeward_core::revision::EtagToken) -> Etag {
    Etag::new(Revision::FIRST, token)
}
