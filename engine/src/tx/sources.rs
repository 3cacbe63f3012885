//! Draft entries that need no ingestion (T1): profiles, assignments and removals, each one
//! entry and one revision of the draft (PA §3.1). A fragment's is `entries`.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::draft::{Precondition, Removal, remove};
use bronzeward_core::head::{
    AssignmentContent, Name, Names, PinTarget, ProfileContent, Standing, Unselectable,
    check_assignment, check_profile, names_of,
};
use bronzeward_core::id::{
    AssignmentRevisionId, DraftId, FragmentRevisionId, HeadId, IngestionId, MachineId,
    ProfileRevisionId,
};
use bronzeward_core::installation::Installation;
use bronzeward_core::problem::Problem;
use bronzeward_core::revision::{Etag, EtagToken, Revision};
use bronzeward_core::rules::Rules;

use super::actor::held_actor;
use super::claims::writable;
use super::drafts::{moved, unmoved};
use super::ingest::{foreign_machine, unknown};
use super::level::{Draft, InstallationState};
use super::{Abort, ActsTx, Held, Tx};
use crate::ports::store::{
    Authorship, DraftWrites, EntryKind, EntryOfDraft, HeadKind, LockMode, NewAssignment,
    NewProfile, Select, StoreError, StoreTx, Written,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::rows::{DraftRow, HeadRow, SourceRevisionId};
use crate::world::{RawTx, World};

/// What a proposal is minted, whichever kind it is.
struct Minted {
    profile: ProfileRevisionId,
    assignment: AssignmentRevisionId,
    token: EtagToken,
}

impl Minted {
    /// The revision it proposes; none for a removal.
    fn revision(&self, proposal: &Proposal) -> Option<SourceRevisionId> {
        match proposal {
            Proposal::Profile(..) => Some(SourceRevisionId::Profile(self.profile)),
            Proposal::Assignment(..) => Some(SourceRevisionId::Assignment(self.assignment)),
            Proposal::RemoveFragment(_)
            | Proposal::RemoveProfile(_)
            | Proposal::RemoveAssignment(_) => None,
        }
    }

    async fn insert<T: StoreTx>(
        &self,
        rows: &mut T,
        proposal: &Proposal,
        written: Authorship,
    ) -> Result<(), StoreError> {
        match proposal {
            Proposal::Profile(name, content) => {
                let new = NewProfile {
                    id: self.profile,
                    name: name.clone(),
                    content: content.clone(),
                    written,
                };
                rows.insert_profile(&new).await
            }
            Proposal::Assignment(machine, content) => {
                let new = NewAssignment {
                    id: self.assignment,
                    machine: *machine,
                    content: content.clone(),
                    written,
                };
                rows.insert_assignment(&new).await
            }
            Proposal::RemoveFragment(_)
            | Proposal::RemoveProfile(_)
            | Proposal::RemoveAssignment(_) => Ok(()),
        }
    }
}

/// A changed entry, as it is answered.
#[derive(Clone, Debug)]
pub struct EntryUpdate {
    pub draft: DraftId,
    pub etag: Etag,
    pub entry: EntryOfDraft,
    /// A fragment's sanitized text.
    pub document: Option<String>,
    pub ingestion: Option<IngestionId>,
}

/// What an entry that needs no ingestion proposes.
#[derive(Clone, Debug)]
pub enum Proposal {
    Profile(Name, ProfileContent),
    Assignment(MachineId, AssignmentContent),
    RemoveFragment(Name),
    RemoveProfile(Name),
    RemoveAssignment(MachineId),
}

impl Proposal {
    fn check<R: Rules>(&self, rules: &R, names: &Names) -> Result<(), Unselectable> {
        match self {
            Self::Profile(_, content) => check_profile(rules, content, names),
            Self::Assignment(_, content) => check_assignment(rules, content, names),
            Self::RemoveFragment(_) | Self::RemoveProfile(_) | Self::RemoveAssignment(_) => Ok(()),
        }
    }

    fn aim(&self) -> (EntryKind, String, Option<MachineId>) {
        match self {
            Self::Profile(name, _) | Self::RemoveProfile(name) => {
                (EntryKind::Profile, name.to_string(), None)
            }
            Self::RemoveFragment(name) => (EntryKind::Fragment, name.to_string(), None),
            Self::Assignment(machine, _) | Self::RemoveAssignment(machine) => {
                (EntryKind::Assignment, machine.to_string(), Some(*machine))
            }
        }
    }
}

/// Which entry an update is of.
pub(super) struct Aim {
    pub draft: DraftId,
    pub kind: EntryKind,
    pub subject: String,
    pub machine: Option<MachineId>,
    pub if_match: Option<Etag>,
    /// The names that pins and selections are checked against.
    pub fragments: BTreeSet<String>,
    pub profiles: BTreeSet<String>,
}

impl Aim {
    fn of(draft: DraftId, proposal: &Proposal, if_match: Option<Etag>) -> Self {
        let (kind, subject, machine) = proposal.aim();
        let mut aim = Self {
            draft,
            kind,
            subject,
            machine,
            if_match,
            fragments: BTreeSet::new(),
            profiles: BTreeSet::new(),
        };
        if let Proposal::Assignment(_, content) = proposal {
            let (profiles, fragments) = names_of(content);
            aim.profiles = profiles.iter().map(Name::to_string).collect();
            aim.fragments = fragments.iter().map(Name::to_string).collect();
        }
        aim
    }

    /// The pins of a profile that exist in the draft's cluster, whose names are checked with
    /// it. Revisions are immutable, so they may be read before any lock.
    async fn pins<T: StoreTx>(
        &mut self,
        proposal: &Proposal,
        rows: &mut T,
    ) -> Result<BTreeMap<FragmentRevisionId, PinTarget>, StoreError> {
        let mut pins = BTreeMap::new();
        let Proposal::Profile(_, content) = proposal else {
            return Ok(pins);
        };
        let ids = content.fragments.iter().copied().collect();
        let cluster = rows.draft(self.draft).await?.map(|row| row.cluster);
        for row in rows.fragment_revisions(&ids).await? {
            if Some(row.cluster) == cluster {
                self.fragments.insert(row.name.to_string());
                let (name, layer) = (row.name, row.layer);
                pins.insert(row.id, PinTarget { name, layer });
            }
        }
        Ok(pins)
    }
}

/// A draft that takes the update, with the heads it is checked against, all held.
pub(super) struct Under<T> {
    pub tx: Tx<T, Draft>,
    pub draft: Held<DraftRow>,
    entries: Vec<EntryOfDraft>,
    heads: Vec<HeadRow>,
}

fn head_kind(kind: EntryKind) -> Option<HeadKind> {
    match kind {
        EntryKind::ImportBase => None,
        EntryKind::Fragment => Some(HeadKind::Fragment),
        EntryKind::Profile => Some(HeadKind::Profile),
        EntryKind::Assignment => Some(HeadKind::Assignment),
    }
}

fn is_of(kind: EntryKind, head: &HeadRow) -> bool {
    match head.id {
        HeadId::Fragment(_) => kind == EntryKind::Fragment,
        HeadId::Profile(_) => kind == EntryKind::Profile,
        HeadId::Assignment(_) => kind == EntryKind::Assignment,
    }
}

impl<T: StoreTx> Under<T> {
    /// Takes T1's locks: the entry's own head against a publication's, the named heads FOR
    /// SHARE, the draft FOR UPDATE. A head created after this is no head.
    pub async fn lock<R: Rules>(
        rules: &R,
        mut tx: Tx<T, InstallationState>,
        aim: &Aim,
    ) -> Result<Self, Abort<Problem>> {
        let Some(draft) = tx.peek().draft(aim.draft).await? else {
            return tx.refuse(Problem::not_found("No such draft.")).await;
        };
        let own = BTreeSet::from([aim.subject.clone()]);
        let mut modes = BTreeMap::new();
        for (kind, subjects, mode) in [
            (head_kind(aim.kind), &own, LockMode::KeyShare),
            (Some(HeadKind::Fragment), &aim.fragments, LockMode::Share),
            (Some(HeadKind::Profile), &aim.profiles, LockMode::Share),
        ] {
            let Some(kind) = kind.filter(|_| !subjects.is_empty()) else {
                continue;
            };
            for head in tx.peek().heads_of(draft.cluster, kind, subjects).await? {
                modes.insert(head.id, Some(mode));
            }
        }
        let machines = Select::Ids(aim.machine.into_iter().collect());
        let (tx, held) = tx
            .lock_machines(&machines, LockMode::KeyShare, None)
            .await?;
        if let Some(machine) = aim.machine {
            match held.first() {
                None => return tx.refuse(unknown("machine", machine)).await,
                Some(row) if row.cluster != draft.cluster => {
                    return tx.refuse(foreign_machine(machine)).await;
                }
                Some(_) => {}
            }
        }
        let (tx, heads) = tx.lock_heads(&modes).await?;
        let (mut tx, row) = tx.lock_draft(aim.draft, LockMode::Update).await?;
        let Some(row) = row else {
            return tx.refuse(Problem::not_found("No such draft.")).await;
        };
        let active = tx.peek().active_publication(aim.draft).await?;
        let if_match = aim.if_match.map(Precondition::IfMatch);
        if let Err(problem) = writable(rules, &row, active, if_match) {
            return tx.refuse(problem).await;
        }
        let entries = tx.peek().draft_entries(aim.draft).await?;
        Ok(Self {
            tx,
            draft: row,
            entries,
            heads: heads.into_iter().map(Held::into_row).collect(),
        })
    }

    fn head(&self, kind: EntryKind, subject: &str) -> Option<&HeadRow> {
        self.heads
            .iter()
            .find(|head| is_of(kind, head) && head.subject == subject)
    }

    fn entry(&self, kind: EntryKind, subject: &str) -> Option<&EntryOfDraft> {
        self.entries
            .iter()
            .find(|entry| entry.kind == kind && entry.subject == subject)
    }

    pub fn base(&self, aim: &Aim) -> Option<(HeadId, i64)> {
        let head = self.head(aim.kind, &aim.subject)?;
        Some((head.id, head.etag.revision.0))
    }

    fn standing<R: Copy>(
        &self,
        kind: EntryKind,
        subject: &str,
        pick: fn(SourceRevisionId) -> Option<R>,
    ) -> Standing<R> {
        let entry = self.entry(kind, subject);
        let head = self.head(kind, subject).and_then(|head| head.revision);
        Standing::of(
            entry.map(|entry| entry.revision.and_then(pick)),
            head.and_then(pick),
        )
    }

    /// What pins and selections are checked against.
    async fn names(
        &mut self,
        aim: &Aim,
        pins: BTreeMap<FragmentRevisionId, PinTarget>,
    ) -> Result<Names, StoreError> {
        let mut names = Names {
            pins,
            ..Names::default()
        };
        for subject in &aim.profiles {
            let standing = self.standing(EntryKind::Profile, subject, profile);
            if let Ok(name) = Name::parse(subject) {
                names.profiles.insert(name, standing);
            }
        }
        let mut standings = BTreeMap::new();
        for subject in &aim.fragments {
            let standing = self.standing(EntryKind::Fragment, subject, fragment);
            if let Ok(name) = Name::parse(subject) {
                standings.insert(name, standing);
            }
        }
        let current = standings
            .values()
            .filter_map(|one| one.revision())
            .collect();
        let rows = self.tx.peek().fragment_revisions(&current).await?;
        let layers: BTreeMap<_, _> = rows.iter().map(|row| (row.id, row.layer)).collect();
        for (name, standing) in standings {
            let layer = standing.revision().and_then(|of| layers.get(&of).copied());
            names.fragments.insert(name, (standing, layer));
        }
        Ok(names)
    }
}

fn fragment(revision: SourceRevisionId) -> Option<FragmentRevisionId> {
    match revision {
        SourceRevisionId::Fragment(id) => Some(id),
        SourceRevisionId::Assignment(_)
        | SourceRevisionId::ImportBase(_)
        | SourceRevisionId::Profile(_) => None,
    }
}

fn profile(revision: SourceRevisionId) -> Option<ProfileRevisionId> {
    match revision {
        SourceRevisionId::Profile(id) => Some(id),
        SourceRevisionId::Assignment(_)
        | SourceRevisionId::ImportBase(_)
        | SourceRevisionId::Fragment(_) => None,
    }
}

impl<W: World> Requests<'_, W> {
    /// Proposes an entry that needs no ingestion: one transaction.
    pub async fn propose(
        &self,
        admitted: &Admitted,
        draft: DraftId,
        proposal: &Proposal,
        if_match: Option<Etag>,
        render: impl Fn(&EntryUpdate) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let act = self.db.mint();
        let minted = Minted {
            profile: self.db.mint(),
            assignment: self.db.mint(),
            token: self.db.mint_token(),
        };
        self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            let aim = Aim::of(draft, proposal, if_match);
            let proposed = self.propose_in(admitted, proposal, &minted, aim, tx, &installation);
            let (acts, update) = proposed.await?;
            Ok(Settled {
                acts,
                rendered: render(&update),
                act: ActDraft::new(act, Action::DRAFT_UPDATED).on(draft),
            })
        })
        .await
        .map_err(NotDone::refused)
    }

    async fn propose_in(
        &self,
        admitted: &Admitted,
        proposal: &Proposal,
        minted: &Minted,
        mut aim: Aim,
        mut tx: Tx<RawTx<W>, InstallationState>,
        installation: &Installation,
    ) -> Result<(ActsTx<RawTx<W>>, EntryUpdate), Abort<Problem>> {
        let rules = self.db.rules();
        let draft = aim.draft;
        let pins = aim.pins(proposal, tx.peek()).await?;
        let mut under = Under::lock(&rules, tx, &aim).await?;
        let names = under.names(&aim, pins).await?;
        if let Err(unselectable) = proposal.check(&rules, &names) {
            let problem = Problem::validation(unselectable.rule)
                .say("A pin or a selection does not stand.")
                .naming("path", unselectable.path);
            return under.tx.refuse(problem).await;
        }
        let base = under.base(&aim);
        let revision = minted.revision(proposal);
        if revision.is_none() {
            let has_entry = under.entry(aim.kind, &aim.subject).is_some();
            let head = base.map(|(head, revision)| (head, Revision(revision)));
            if remove(head, has_entry) == Removal::Unknown {
                let problem = Problem::not_found("Nothing of this name to remove.");
                return under.tx.refuse(problem).await;
            }
        }
        let row = under.draft;
        let tx = held_actor(&rules, under.tx, admitted).await?;
        let (mut acts, at) = tx.open().lock_acts(&rules).await?;
        let written = Authorship {
            cluster: row.cluster,
            draft,
            by: admitted.actor.into(),
            epoch: installation.epoch,
            at,
        };
        minted.insert(acts.rows(), proposal, written).await?;
        let entry = EntryOfDraft {
            kind: aim.kind,
            subject: aim.subject,
            base,
            revision,
        };
        acts.rows().set_draft_entry(draft, &entry).await?;
        let guard = unmoved(&rules, &row);
        let advanced = acts
            .rows()
            .advance_draft(draft, &guard, minted.token)
            .await?;
        if advanced == Written::Stale {
            return acts.refuse(moved()).await;
        }
        let update = EntryUpdate {
            draft,
            etag: Etag::new(row.etag.revision.next(), minted.token),
            entry,
            document: None,
            ingestion: None,
        };
        Ok((acts, update))
    }
}
