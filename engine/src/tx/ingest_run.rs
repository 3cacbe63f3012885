//! The transactions of an ingestion's run, each under its claim's fence (T1, T7, T8): they
//! lock the claim first, so that a time that passes during a wait is seen (PA §5.1).
//!
//! The runs of `ingest` call these. Never in this module: a provider or node call.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::canonical::Digest;
use bronzeward_core::claim::{AnyClaim, ClaimRefusal};
use bronzeward_core::draft::Precondition;
use bronzeward_core::envelope::{Baseline, Envelope};
use bronzeward_core::fence::Fence;
use bronzeward_core::id::{EpochId, ImportBaseRevisionId, IngestionId, MachineId, OperationId};
use bronzeward_core::job::Event;
use bronzeward_core::principal::{By, Controller, Signed};
use bronzeward_core::problem::Problem;
use bronzeward_core::release::BoundDraft;
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::{DbTime, Span};

use super::claims::{claim_of, event, fail_operation, owned, running, writable};
use super::drafts::unmoved;
use super::{Abort, Failure, Kind, OpenTx, lock_by, transact};
use crate::ports::provider::Ciphertext;
use crate::ports::store::{
    Authorship, ClaimEnd, ClaimWrites, DraftReads, DraftWrites, EntryKind, EntryOfDraft, JobEnd,
    JobWrites, LockMode, NewImportBase, ReferenceRow, Select, SourceWrites, StoreTx,
    TimelineWrites, Written,
};
use crate::rows::SourceRevisionId;
use crate::world::{Db, RawTx, World};

/// A run's identity to its transactions: the claim it owns and the fence it was issued.
#[derive(Clone, Debug)]
pub struct Owned {
    pub claim: IngestionId,
    /// None for a draft entry's claim.
    pub operation: Option<OperationId>,
    pub fence: Fence,
}

/// What an import's draft transaction writes, beside its envelope.
#[derive(Clone, Copy, Debug)]
pub struct ImportTarget {
    pub machine: MachineId,
    pub bound: BoundDraft,
    pub by: Signed,
    pub adoption: bool,
}

/// Why a draft transaction wrote nothing.
#[derive(Clone, Debug)]
pub enum Unwritten {
    /// The run no longer owns its claim.
    Claim(ClaimRefusal),
    /// The draft refuses it: the ingestion fails with this problem.
    Draft(Problem),
}

/// A claim and its operation, held and opened at the database's time.
struct Under<T> {
    open: OpenTx<T>,
    claim: AnyClaim,
    current: EpochId,
    now: DbTime,
}

type Run<V> = Result<V, Failure<ClaimRefusal>>;

impl Owned {
    fn by(&self) -> By {
        By::Controller(Controller::owning(&self.fence))
    }

    /// Locks installation state, claim and operation, and opens.
    async fn lock<T: StoreTx, R: Rules>(
        &self,
        rules: &R,
        tx: super::Tx<T, super::level::Start>,
    ) -> Result<Under<T>, Abort<ClaimRefusal>> {
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        let current = installation.epoch;
        let first = lock_by(rules, Rule::FencedRowLockedFirst, LockMode::Update);
        let (tx, mut claims) = tx.lock_claims(&BTreeSet::from([self.claim]), first).await?;
        let operations = self.operation.into_iter().collect();
        let (tx, _) = tx.lock_operations(&operations, first).await?;
        let (open, now) = tx.open_at().await?;
        let Some(row) = claims.pop() else {
            return open.refuse(ClaimRefusal::Ended).await;
        };
        let claim = claim_of(&row, self.operation)?;
        Ok(Under {
            open,
            claim,
            current,
            now,
        })
    }

    /// A heartbeat: both leases from the time the rows are held. Never retried.
    pub async fn extend<W: World>(&self, db: &Db<W>, lease: Span) -> Run<()> {
        let rules = db.rules();
        transact(db.store(), Kind::Heartbeat, async |tx| {
            let mut under = self.lock(&rules, tx).await?;
            let extended =
                match under
                    .claim
                    .extend(&rules, &self.fence, under.current, under.now, lease)
                {
                    Ok(claim) => claim,
                    Err(refused) => return under.open.refuse(refused.reason).await,
                };
            let until = extended.common().lease_until;
            let guard = owned(&rules, &self.fence, under.current);
            let rows = under.open.rows();
            if rows.extend_claim(self.claim, &guard, until).await? == Written::Stale {
                return under.open.refuse(ClaimRefusal::Ended).await;
            }
            if let Some(operation) = self.operation {
                let moved = rows
                    .own_job(operation, &running(), &self.fence, until)
                    .await?;
                if moved == Written::Stale {
                    return under.open.refuse(ClaimRefusal::Ended).await;
                }
            }
            under.open.done(())
        })
        .await
        .map(super::Committed::into_inner)
    }

    /// Records an event of a run that still owns its claim.
    pub async fn record<W: World>(&self, db: &Db<W>, what: &Event) -> Run<()> {
        let rules = db.rules();
        transact(db.store(), Kind::Job, async |tx| {
            let mut under = self.lock(&rules, tx).await?;
            // An extension of nothing: it asks whether the run still owns the claim.
            let owns =
                under
                    .claim
                    .extend(&rules, &self.fence, under.current, under.now, Span::ZERO);
            if let Err(refused) = owns {
                return under.open.refuse(refused.reason).await;
            }
            if let Some(operation) = self.operation {
                let entry = event(what, self.by(), under.current, None, under.now);
                under.open.rows().append_event(operation, &entry).await?;
            }
            under.open.done(())
        })
        .await
        .map(super::Committed::into_inner)
    }

    /// Stores the envelope's ciphertext, with its event.
    pub async fn stage<W: World>(
        &self,
        db: &Db<W>,
        payload: &Ciphertext,
        digest: Digest,
    ) -> Run<()> {
        let rules = db.rules();
        transact(db.store(), Kind::Job, async |tx| {
            let mut under = self.lock(&rules, tx).await?;
            let stored = under
                .claim
                .store_payload(&rules, &self.fence, under.current, under.now);
            if let Err(refused) = stored {
                return under.open.refuse(refused.reason).await;
            }
            let guard = owned(&rules, &self.fence, under.current);
            let rows = under.open.rows();
            let written = rows
                .stage_claim(self.claim, &guard, payload, digest)
                .await?;
            if written == Written::Stale {
                return under.open.refuse(ClaimRefusal::Ended).await;
            }
            if let Some(operation) = self.operation {
                let entry = event(&Event::Staged, self.by(), under.current, None, under.now);
                under.open.rows().append_event(operation, &entry).await?;
            }
            under.open.done(())
        })
        .await
        .map(super::Committed::into_inner)
    }

    /// The owner's refusal: the claim abandoned and its operation failed with `problem`, in
    /// one transaction (IC §2.3, PA §8.2).
    pub async fn refuse<W: World>(&self, db: &Db<W>, problem: &Problem) -> Run<()> {
        let rules = db.rules();
        transact(db.store(), Kind::Job, async |tx| {
            let mut under = self.lock(&rules, tx).await?;
            let refused = under
                .claim
                .refuse(&rules, &self.fence, under.current, under.now);
            if let Err(refused) = refused {
                return under.open.refuse(refused.reason).await;
            }
            let guard = owned(&rules, &self.fence, under.current);
            let rows = under.open.rows();
            let ended = rows
                .end_claim(self.claim, &guard, ClaimEnd::Abandoned)
                .await?;
            if ended == Written::Stale {
                return under.open.refuse(ClaimRefusal::Ended).await;
            }
            if let Some(operation) = self.operation {
                let failed = Event::Failed {
                    code: problem.code,
                    cause: None,
                };
                let entry = event(&failed, self.by(), under.current, None, under.now);
                fail_operation(rows, operation, problem, &entry).await?;
            }
            under.open.done(())
        })
        .await
        .map(super::Committed::into_inner)
    }

    /// An ingest job's draft transaction (T1): revision, references, entry, the draft's next
    /// revision, the claim released and the operation succeeded, all or nothing.
    pub async fn commit_import<W: World>(
        &self,
        db: &Db<W>,
        target: &ImportTarget,
        envelope: &Envelope,
        baseline: &Baseline,
    ) -> Result<ImportBaseRevisionId, Failure<Unwritten>> {
        let id: ImportBaseRevisionId = db.mint();
        let token = db.mint_token();
        transact(db.store(), Kind::Job, async |tx| {
            self.import_body(db, target, envelope, baseline, id, token, tx)
                .await
        })
        .await
        .map(super::Committed::into_inner)
    }

    #[allow(clippy::too_many_arguments)]
    async fn import_body<W: World>(
        &self,
        db: &Db<W>,
        target: &ImportTarget,
        envelope: &Envelope,
        baseline: &Baseline,
        id: ImportBaseRevisionId,
        token: bronzeward_core::revision::EtagToken,
        tx: super::Tx<RawTx<W>, super::level::Start>,
    ) -> Result<super::Ended<RawTx<W>, ImportBaseRevisionId>, Abort<Unwritten>> {
        let rules = db.rules();
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        // Rows that foreign keys will lock, at their own levels.
        let machines = Select::Ids(BTreeSet::from([target.machine]));
        let (tx, _) = tx
            .lock_machines(&machines, LockMode::KeyShare, None)
            .await?;
        let (mut tx, draft) = tx.lock_draft(target.bound.draft, LockMode::Update).await?;
        let active = tx.peek().active_publication(target.bound.draft).await?;
        let first = lock_by(&rules, Rule::FencedRowLockedFirst, LockMode::Update);
        let (tx, mut claims) = tx.lock_claims(&BTreeSet::from([self.claim]), first).await?;
        let author = BTreeMap::from([(target.by.principal, Some(LockMode::KeyShare))]);
        let (tx, _) = tx.lock_principals(&author).await?;
        let operations: BTreeSet<OperationId> = self.operation.into_iter().collect();
        let (tx, _) = tx.lock_operations(&operations, first).await?;
        let (mut open, now) = tx.open_at().await?;
        let (Some(claim), Some(draft)) = (claims.pop(), draft) else {
            return open.refuse(Unwritten::Claim(ClaimRefusal::Ended)).await;
        };
        let claim = claim_of(&claim, self.operation)?;
        if let Err(refused) = claim.release(&rules, &self.fence, installation.epoch, now) {
            return open.refuse(Unwritten::Claim(refused.reason)).await;
        }
        let bound = Precondition::Bound(target.bound.revision);
        if let Err(problem) = writable(&rules, &draft, active, Some(bound)) {
            return open.refuse(Unwritten::Draft(problem)).await;
        }
        let new = NewImportBase {
            id,
            machine: target.machine,
            adoption: target.adoption,
            baseline: baseline.clone(),
            claim: self.claim,
            written: Authorship {
                cluster: draft.cluster,
                draft: draft.id,
                by: target.by,
                epoch: installation.epoch,
                at: now,
            },
        };
        let revision = SourceRevisionId::ImportBase(id);
        let rows = open.rows();
        rows.insert_import_base(&new, &envelope.sanitized).await?;
        rows.insert_references(revision, draft.cluster, &references(envelope))
            .await?;
        let entry = EntryOfDraft {
            kind: EntryKind::ImportBase,
            subject: target.machine.to_string(),
            base: None,
            revision: Some(revision),
        };
        rows.set_draft_entry(draft.id, &entry).await?;
        let advanced = rows
            .advance_draft(draft.id, &unmoved(&rules, &draft), token)
            .await?;
        let guard = owned(&rules, &self.fence, installation.epoch);
        let released = rows
            .end_claim(self.claim, &guard, ClaimEnd::Released)
            .await?;
        if advanced == Written::Stale || released == Written::Stale {
            return open.refuse(Unwritten::Claim(ClaimRefusal::Ended)).await;
        }
        if let Some(operation) = self.operation {
            let rows = open.rows();
            let end = JobEnd::Ingested(id);
            if rows.finish_job(operation, &running(), &end).await? == Written::Stale {
                return open.refuse(Unwritten::Claim(ClaimRefusal::Ended)).await;
            }
            let ingested = Event::Ingested { import_base: id };
            let entry = event(&ingested, self.by(), installation.epoch, None, now);
            open.rows().append_event(operation, &entry).await?;
        }
        open.done(id)
    }
}

/// An envelope's references as rows, by name.
pub(crate) fn references(envelope: &Envelope) -> Vec<ReferenceRow> {
    let declared = &envelope.sanitized.declarations().references;
    declared
        .iter()
        .filter_map(|(name, declaration)| {
            let kept = envelope.generations.get(name)?;
            Some(ReferenceRow {
                name: name.clone(),
                declaration: *declaration,
                kept: kept.clone(),
            })
        })
        .collect()
}
