//! A fragment's draft update in its transactions (PA §5 T1, §7.2): the claim before its
//! ingestion, the draft transaction after it, and a refusal that is recorded.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::claim::{ClaimKind, StagingMode, Timers};
use bronzeward_core::draft::Precondition;
use bronzeward_core::envelope::Envelope;
use bronzeward_core::fence::{Fence, Generation};
use bronzeward_core::head::{Layer, Name};
use bronzeward_core::id::{ClusterId, DraftId, FragmentRevisionId};
use bronzeward_core::idempotency::{Lookup, look_up};
use bronzeward_core::installation::Installation;
use bronzeward_core::problem::Problem;
use bronzeward_core::revision::{Etag, EtagToken};
use bronzeward_core::rules::Rule;
use bronzeward_core::time::DbTime;

use super::actor::held_actor;
use super::claims::{claim_of, owned, superseded, unended, writable};
use super::drafts::{moved, unmoved};
use super::ingest_run::{Owned, references};
use super::level::{InstallationState, Start};
use super::sources::{Aim, EntryUpdate, Under};
use super::{Abort, ActsTx, Ended, Failure, Kind, Tx, lock_by, transact};
use crate::ports::store::{
    Authorship, ClaimEnd, ClaimReads, ClaimSource, ClaimWrites, DraftReads, DraftWrites, EntryKind,
    EntryOfDraft, IdempotencyRecord, LockMode, NewClaim, NewFragment, RequestReads, SourceWrites,
    Written,
};
use crate::request::{
    Admitted, Answer, EpochRead, NotDone, Refused, Rendered, Requests, Settled,
    before_request_problem, epoch_mismatch,
};
use crate::rows::SourceRevisionId;
use crate::world::{RawTx, World};

/// What a fragment's draft transaction writes.
pub struct FragmentWrite<'a> {
    pub draft: DraftId,
    pub name: &'a Name,
    pub layer: Layer,
    pub envelope: &'a Envelope,
    pub if_match: Option<Etag>,
}

/// What a draft entry's request found before its ingestion.
pub(crate) enum EntryClaim {
    /// A record of the key answers.
    Answered(Answer),
    Claimed(Owned, ClusterId),
}

/// What a fragment's draft transaction is minted.
struct Minted {
    id: FragmentRevisionId,
    token: EtagToken,
}

enum NotClaimed {
    Found(Box<IdempotencyRecord>),
    Problem(Problem),
}

/// A draft entry's claim: transient, of the request's key.
fn entry_claim(
    admitted: &Admitted,
    issued: &Owned,
    draft: DraftId,
    cluster: ClusterId,
    (created_at, lease_until, expires_at): (DbTime, DbTime, DbTime),
) -> NewClaim {
    NewClaim {
        id: issued.claim,
        kind: ClaimKind::DraftUpdate,
        mode: StagingMode::Transient,
        source: ClaimSource::Document,
        review: None,
        cluster,
        draft,
        machine: None,
        drift: None,
        by: admitted.actor.into(),
        key: Some(admitted.key.clone()),
        fence: issued.fence.clone(),
        lease_until,
        expires_at,
        created_at,
    }
}

impl<W: World> Requests<'_, W> {
    /// Commits a draft entry's claim before its ingestion, with the checks that need no input
    /// (PA §7.2). A claim of the same key that is due is abandoned; a live one is a conflict.
    pub(crate) async fn claim_entry(
        &self,
        admitted: &Admitted,
        draft: DraftId,
        if_match: Option<Etag>,
        timers: Timers,
    ) -> Result<EntryClaim, Refused> {
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
        let outcome = transact(self.db.store(), Kind::BeforeRequest, async |tx| {
            self.claim_in(admitted, &issued, draft, if_match, timers, tx)
                .await
        })
        .await;
        match outcome {
            Ok(cluster) => Ok(EntryClaim::Claimed(issued, cluster.into_inner())),
            Err(Failure::Refused((NotClaimed::Found(record), read))) => {
                let answer = self.answer_found(admitted, *record, read)?;
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

    async fn claim_in(
        &self,
        admitted: &Admitted,
        issued: &Owned,
        draft: DraftId,
        if_match: Option<Etag>,
        timers: Timers,
        tx: Tx<RawTx<W>, Start>,
    ) -> Result<Ended<RawTx<W>, ClusterId>, Abort<(NotClaimed, EpochRead)>> {
        let rules = self.db.rules();
        let principal = admitted.actor.principal;
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
        let times = (at, at + timers.lease, at + timers.absolute_expiry);
        let new = entry_claim(admitted, issued, draft, row.cluster, times);
        open.rows().insert_claim(&new).await?;
        open.done(row.cluster)
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
        let (id, act): (FragmentRevisionId, _) = (self.db.mint(), self.db.mint());
        let token = self.db.mint_token();
        let minted = Minted { id, token };
        self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            let written = self.fragment_in(admitted, claimed, write, &minted, tx, &installation);
            let (acts, update) = written.await?;
            Ok(Settled {
                acts,
                rendered: render(&update),
                act: ActDraft::new(act, Action::DRAFT_UPDATED)
                    .on(write.draft)
                    .on(claimed.claim),
            })
        })
        .await
        .map_err(NotDone::refused)
    }

    async fn fragment_in(
        &self,
        admitted: &Admitted,
        claimed: &Owned,
        write: &FragmentWrite<'_>,
        minted: &Minted,
        tx: Tx<RawTx<W>, InstallationState>,
        installation: &Installation,
    ) -> Result<(ActsTx<RawTx<W>>, EntryUpdate), Abort<Problem>> {
        let rules = self.db.rules();
        let Minted { id, token } = *minted;
        let draft = write.draft;
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
        let tx = held_actor(&rules, tx, admitted).await?;
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
        Ok((acts, update))
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
            let tx = held_actor(&rules, tx, admitted).await?;
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
