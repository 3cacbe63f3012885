//! Draft entries (T1): fragments under their ingestion's claim, profiles, assignments and
//! removals, each one entry and one revision of the draft (PA §3.1).

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::claim::{ClaimKind, StagingMode, Timers};
use bronzeward_core::draft::{Precondition, Removal, remove};
use bronzeward_core::envelope::Envelope;
use bronzeward_core::fence::{Fence, Generation};
use bronzeward_core::head::{
    AssignmentContent, Layer, Name, Names, PinTarget, ProfileContent, Standing, check_assignment,
    check_profile, names_of,
};
use bronzeward_core::id::{
    ClusterId, DraftId, FragmentRevisionId, HeadId, IngestionId, MachineId, ProfileRevisionId,
};
use bronzeward_core::idempotency::{Lookup, look_up};
use bronzeward_core::problem::Problem;
use bronzeward_core::revision::{Etag, Revision};
use bronzeward_core::rules::{Rule, Rules};

use super::claims::{claim_of, owned, superseded, unended, writable};
use super::drafts::{moved, unmoved};
use super::ingest::{foreign_machine, unknown};
use super::ingest_run::{Owned, references};
use super::level::{Draft, InstallationState};
use super::{Abort, Failure, Held, Kind, Tx, lock_by, transact};
use crate::ports::store::{
    Authorship, ClaimEnd, ClaimReads, ClaimSource, ClaimWrites, DraftReads, DraftWrites, EntryKind,
    EntryOfDraft, HeadKind, IdempotencyRecord, LockMode, NewAssignment, NewClaim, NewFragment,
    NewProfile, RequestReads, Select, SourceReads, SourceWrites, StoreError, StoreTx, Written,
};
use crate::request::{
    Admitted, Answer, EpochRead, NotDone, Refused, Rendered, Requests, Settled,
    before_request_problem, epoch_mismatch,
};
use crate::rows::{DraftRow, HeadRow, SourceRevisionId};
use crate::world::World;

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

/// What a fragment's draft transaction writes.
pub struct FragmentWrite<'a> {
    pub draft: DraftId,
    pub name: &'a Name,
    pub layer: Layer,
    pub envelope: &'a Envelope,
    pub if_match: Option<Etag>,
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

/// What a draft entry's request found before its ingestion.
pub(crate) enum EntryClaim {
    /// A record of the key answers.
    Answered(Answer),
    Claimed(Owned, ClusterId),
}

/// Which entry an update is of.
struct Aim {
    draft: DraftId,
    kind: EntryKind,
    subject: String,
    machine: Option<MachineId>,
    if_match: Option<Etag>,
    /// The names that pins and selections are checked against.
    fragments: BTreeSet<String>,
    profiles: BTreeSet<String>,
}

/// A draft that takes the update, with the heads it is checked against, all held.
struct Under<T> {
    tx: Tx<T, Draft>,
    draft: Held<DraftRow>,
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
    async fn lock<R: Rules>(
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

    fn base(&self, aim: &Aim) -> Option<(HeadId, i64)> {
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

enum NotClaimed {
    Found(Box<IdempotencyRecord>),
    Problem(Problem),
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
        let rules = self.db.rules();
        let act = self.db.mint();
        let token = self.db.mint_token();
        let (profile_id, assignment_id) = (self.db.mint(), self.db.mint());
        self.run(
            admitted,
            Some(LockMode::Share),
            async |mut tx, installation| {
                let (kind, subject, machine) = proposal.aim();
                let mut aim = Aim {
                    draft,
                    kind,
                    subject,
                    machine,
                    if_match,
                    fragments: BTreeSet::new(),
                    profiles: BTreeSet::new(),
                };
                let mut pins = BTreeMap::new();
                match proposal {
                    Proposal::Profile(_, content) => {
                        let ids = content.fragments.iter().copied().collect();
                        let of = tx.peek().draft(draft).await?.map(|row| row.cluster);
                        for row in tx.peek().fragment_revisions(&ids).await? {
                            if Some(row.cluster) == of {
                                aim.fragments.insert(row.name.to_string());
                                let (name, layer) = (row.name, row.layer);
                                pins.insert(row.id, PinTarget { name, layer });
                            }
                        }
                    }
                    Proposal::Assignment(_, content) => {
                        let (profiles, fragments) = names_of(content);
                        aim.profiles = profiles.iter().map(Name::to_string).collect();
                        aim.fragments = fragments.iter().map(Name::to_string).collect();
                    }
                    Proposal::RemoveFragment(_)
                    | Proposal::RemoveProfile(_)
                    | Proposal::RemoveAssignment(_) => {}
                }
                let mut under = Under::lock(&rules, tx, &aim).await?;
                let names = under.names(&aim, pins).await?;
                let checked = match proposal {
                    Proposal::Profile(_, content) => check_profile(&rules, content, &names),
                    Proposal::Assignment(_, content) => check_assignment(&rules, content, &names),
                    Proposal::RemoveFragment(_)
                    | Proposal::RemoveProfile(_)
                    | Proposal::RemoveAssignment(_) => Ok(()),
                };
                if let Err(unselectable) = checked {
                    let problem = Problem::validation(unselectable.rule)
                        .say("A pin or a selection does not stand.")
                        .naming("path", unselectable.path);
                    return under.tx.refuse(problem).await;
                }
                let base = under.base(&aim);
                let revision = match proposal {
                    Proposal::Profile(..) => Some(SourceRevisionId::Profile(profile_id)),
                    Proposal::Assignment(..) => Some(SourceRevisionId::Assignment(assignment_id)),
                    Proposal::RemoveFragment(_)
                    | Proposal::RemoveProfile(_)
                    | Proposal::RemoveAssignment(_) => {
                        let has_entry = under.entry(aim.kind, &aim.subject).is_some();
                        let head = base.map(|(head, revision)| (head, Revision(revision)));
                        if remove(head, has_entry) == Removal::Unknown {
                            let problem = Problem::not_found("Nothing of this name to remove.");
                            return under.tx.refuse(problem).await;
                        }
                        None
                    }
                };
                let draft_row = under.draft;
                let author = BTreeMap::from([(admitted.actor.principal, Some(LockMode::KeyShare))]);
                let (tx, _) = under.tx.lock_principals(&author).await?;
                let (mut acts, at) = tx.open().lock_acts(&rules).await?;
                let written = Authorship {
                    cluster: draft_row.cluster,
                    draft,
                    by: admitted.actor.into(),
                    epoch: installation.epoch,
                    at,
                };
                match proposal {
                    Proposal::Profile(name, content) => {
                        let new = NewProfile {
                            id: profile_id,
                            name: name.clone(),
                            content: content.clone(),
                            written,
                        };
                        acts.rows().insert_profile(&new).await?;
                    }
                    Proposal::Assignment(machine, content) => {
                        let new = NewAssignment {
                            id: assignment_id,
                            machine: *machine,
                            content: content.clone(),
                            written,
                        };
                        acts.rows().insert_assignment(&new).await?;
                    }
                    Proposal::RemoveFragment(_)
                    | Proposal::RemoveProfile(_)
                    | Proposal::RemoveAssignment(_) => {}
                }
                let entry = EntryOfDraft {
                    kind: aim.kind,
                    subject: aim.subject,
                    base,
                    revision,
                };
                acts.rows().set_draft_entry(draft, &entry).await?;
                let guard = unmoved(&rules, &draft_row);
                if acts.rows().advance_draft(draft, &guard, token).await? == Written::Stale {
                    return acts.refuse(moved()).await;
                }
                let update = EntryUpdate {
                    draft,
                    etag: Etag::new(draft_row.etag.revision.next(), token),
                    entry,
                    document: None,
                    ingestion: None,
                };
                Ok(Settled {
                    acts,
                    rendered: render(&update),
                    act: ActDraft::new(act, Action::DRAFT_UPDATED).on(draft),
                })
            },
        )
        .await
        .map_err(NotDone::refused)
    }

    /// Commits a draft entry's claim before its ingestion, with the checks that need no input
    /// (PA §7.2). A claim of the same key that is due is abandoned; a live one is a conflict.
    pub(crate) async fn claim_entry(
        &self,
        admitted: &Admitted,
        draft: DraftId,
        if_match: Option<Etag>,
        timers: Timers,
    ) -> Result<EntryClaim, Refused> {
        let rules = self.db.rules();
        let process = self.db.process();
        let issued = Owned {
            claim: self.db.mint(),
            operation: None,
            fence: Fence {
                owner: process.owner.clone(),
                generation: Generation(1),
                epoch: process.epoch.0,
            },
        };
        let principal = admitted.actor.principal;
        let outcome = transact(self.db.store(), Kind::BeforeRequest, async |tx| {
            let key_lock = lock_by(&rules, Rule::IdempotencyKeyLock, LockMode::Update);
            let (mut tx, installation) = if key_lock.is_some() {
                let tx = tx.lock_key(principal, &admitted.key).await?;
                tx.lock_installation(LockMode::Share).await?
            } else {
                tx.lock_installation(LockMode::Share).await?
            };
            let read = EpochRead::from(&*installation);
            let refuse = |problem| (NotClaimed::Problem(problem), read);
            let record = tx.peek().idempotency_record(principal, &admitted.key);
            if let Some(record) = record.await? {
                return tx.refuse((NotClaimed::Found(Box::new(record)), read)).await;
            }
            if let Lookup::EpochMismatch { current } =
                look_up(&rules, None, read.epoch, admitted.expected_epoch)
            {
                return tx.refuse(refuse(epoch_mismatch(current))).await;
            }
            if !self.db.admits(installation.epoch) {
                return tx.refuse(refuse(superseded())).await;
            }
            let live = tx.peek().claim_of_key(principal, &admitted.key).await?;
            let (mut tx, row) = tx.lock_draft(draft, LockMode::Share).await?;
            let Some(row) = row else {
                let problem = Problem::not_found("No such draft.");
                return tx.refuse(refuse(problem)).await;
            };
            let active = tx.peek().active_publication(draft).await?;
            let if_match = if_match.map(Precondition::IfMatch);
            if let Err(problem) = writable(&rules, &row, active, if_match) {
                return tx.refuse(refuse(problem)).await;
            }
            let claims = live.into_iter().collect();
            let (tx, mut claims) = tx.lock_claims(&claims, LockMode::Update).await?;
            let author = BTreeMap::from([(principal, Some(LockMode::KeyShare))]);
            let (tx, _) = tx.lock_principals(&author).await?;
            let (mut open, at) = tx.open_at().await?;
            if let Some(held) = claims.pop() {
                let claim = claim_of(&held, None)?;
                if !claim.reads_as(&rules, at).is_terminal() {
                    let problem = Problem::conflict("The key's first request is in progress.")
                        .naming("ingestion", held.id);
                    return open.refuse(refuse(problem)).await;
                }
                let rows = open.rows();
                let ended = rows
                    .end_claim(held.id, &unended(), ClaimEnd::Abandoned)
                    .await?;
                // One that ended meanwhile is as good.
                let (Written::Written | Written::Stale) = ended;
            }
            let new = NewClaim {
                id: issued.claim,
                kind: ClaimKind::DraftUpdate,
                mode: StagingMode::Transient,
                source: ClaimSource::Document,
                review: None,
                cluster: row.cluster,
                draft,
                machine: None,
                drift: None,
                by: admitted.actor.into(),
                key: Some(admitted.key.clone()),
                fence: issued.fence.clone(),
                lease_until: at + timers.lease,
                expires_at: at + timers.absolute_expiry,
                created_at: at,
            };
            open.rows().insert_claim(&new).await?;
            open.done(row.cluster)
        })
        .await;
        match outcome {
            Ok(cluster) => Ok(EntryClaim::Claimed(issued, cluster.into_inner())),
            Err(Failure::Refused((NotClaimed::Found(record), read))) => {
                let answer = self.answer_found(admitted, *record, read).await?;
                Ok(EntryClaim::Answered(answer))
            }
            Err(Failure::Refused((NotClaimed::Problem(problem), read))) => Err(Refused {
                problem,
                read: Some(read),
            }),
            Err(Failure::Unique("staging_claim_live_key")) => {
                Err(Problem::conflict("The key's first request is in progress.").into())
            }
            Err(failure) => Err(before_request_problem(&failure).into()),
        }
    }

    /// A fragment's draft transaction: revision, references, entry, the draft's next revision
    /// and the claim released, all or nothing.
    pub(crate) async fn write_fragment(
        &self,
        admitted: &Admitted,
        claimed: &Owned,
        write: &FragmentWrite<'_>,
        render: impl Fn(&EntryUpdate) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let rules = self.db.rules();
        let (id, act): (FragmentRevisionId, _) = (self.db.mint(), self.db.mint());
        let token = self.db.mint_token();
        let draft = write.draft;
        self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            let aim = Aim {
                draft,
                kind: EntryKind::Fragment,
                subject: write.name.to_string(),
                machine: None,
                if_match: write.if_match,
                fragments: BTreeSet::new(),
                profiles: BTreeSet::new(),
            };
            let under = Under::lock(&rules, tx, &aim).await?;
            let base = under.base(&aim);
            let row = under.draft;
            let (tx, mut claims) = under
                .tx
                .lock_claims(&BTreeSet::from([claimed.claim]), LockMode::Update)
                .await?;
            let author = BTreeMap::from([(admitted.actor.principal, Some(LockMode::KeyShare))]);
            let (tx, _) = tx.lock_principals(&author).await?;
            let (mut acts, at) = tx.open().lock_acts(&rules).await?;
            let lost = || Problem::internal("The entry's claim ended before it was written.");
            let Some(held) = claims.pop() else {
                return acts.refuse(lost()).await;
            };
            let claim = claim_of(&held, None)?;
            let released = claim.release(&rules, &claimed.fence, installation.epoch, at);
            if released.is_err() {
                return acts.refuse(lost()).await;
            }
            let new = NewFragment {
                id,
                name: write.name.clone(),
                layer: write.layer,
                claim: claimed.claim,
                written: Authorship {
                    cluster: row.cluster,
                    draft,
                    by: admitted.actor.into(),
                    epoch: installation.epoch,
                    at,
                },
            };
            let revision = SourceRevisionId::Fragment(id);
            let rows = acts.rows();
            rows.insert_fragment(&new, &write.envelope.sanitized)
                .await?;
            rows.insert_references(revision, row.cluster, &references(write.envelope))
                .await?;
            let entry = EntryOfDraft {
                kind: EntryKind::Fragment,
                subject: aim.subject,
                base,
                revision: Some(revision),
            };
            rows.set_draft_entry(draft, &entry).await?;
            let guard = unmoved(&rules, &row);
            if rows.advance_draft(draft, &guard, token).await? == Written::Stale {
                return acts.refuse(moved()).await;
            }
            let guard = owned(&rules, &claimed.fence, installation.epoch);
            let released = acts
                .rows()
                .end_claim(claimed.claim, &guard, ClaimEnd::Released)
                .await?;
            if released == Written::Stale {
                return acts.refuse(lost()).await;
            }
            let update = EntryUpdate {
                draft,
                etag: Etag::new(row.etag.revision.next(), token),
                entry,
                document: Some(write.envelope.sanitized.document().to_owned()),
                ingestion: Some(claimed.claim),
            };
            Ok(Settled {
                acts,
                rendered: render(&update),
                act: ActDraft::new(act, Action::DRAFT_UPDATED)
                    .on(draft)
                    .on(claimed.claim),
            })
        })
        .await
        .map_err(NotDone::refused)
    }

    /// A 4xx refusal after the claim exists: its outcome, the stored refusal and the act in
    /// one transaction, so that a retry replays it (PA §7.2).
    pub(crate) async fn refuse_entry(
        &self,
        admitted: &Admitted,
        draft: DraftId,
        claimed: &Owned,
        rendered: &Rendered,
    ) -> Result<Answer, Refused> {
        let rules = self.db.rules();
        let act = self.db.mint();
        self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            let (tx, mut claims) = tx
                .lock_claims(&BTreeSet::from([claimed.claim]), LockMode::Update)
                .await?;
            let (mut acts, at) = tx.open().lock_acts(&rules).await?;
            let lost = || Problem::internal("The entry's claim ended before it was refused.");
            let Some(held) = claims.pop() else {
                return acts.refuse(lost()).await;
            };
            let claim = claim_of(&held, None)?;
            if let Err(refused) = claim.refuse(&rules, &claimed.fence, installation.epoch, at) {
                tracing::info!(ingestion = %claimed.claim, reason = ?refused.reason, "not refused");
                let problem = Problem::internal("The entry's claim ended before it was refused.");
                return acts.refuse(problem).await;
            }
            let guard = owned(&rules, &claimed.fence, installation.epoch);
            let ended = acts
                .rows()
                .end_claim(claimed.claim, &guard, ClaimEnd::Abandoned)
                .await?;
            if ended == Written::Stale {
                return acts.refuse(lost()).await;
            }
            Ok(Settled {
                acts,
                rendered: rendered.clone(),
                act: ActDraft::new(act, Action::DRAFT_UPDATE_REFUSED)
                    .on(draft)
                    .on(claimed.claim),
            })
        })
        .await
        .map_err(NotDone::refused)
    }
}
