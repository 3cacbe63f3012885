//! T3: the whole release, or nothing (PA §6.2).
//!
//! Locks in rule 5's order, then every comparison under them, then the inserts. Its body
//! begins by looking for its own effect, so it can be run again after a lost COMMIT answer.
//! Never in this module: a provider, a node, or a plaintext.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::id::{HeadId, ImportBaseRevisionId, MachineId, OperationId, ReleaseId};
use bronzeward_core::installation::Installation;
use bronzeward_core::job::Event;
use bronzeward_core::observation::{Observation, PublicationContext, publication_evidence};
use bronzeward_core::problem::Problem;
use bronzeward_core::release::{
    ExistingRelease, HeadCheck, MachineCheck, RecheckRefusal, StaleInput, commit_checks,
    existing_release, recheck,
};
use bronzeward_core::revision::Revision;
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::DbTime;

use super::job::{Owned, controller, owner};
use super::snapshot::Snapshot;
use super::unit::Unit;
use super::{Stop, Worker, identity, refusal, stop};
use crate::observe::owns;
use crate::ports::store::{
    Condition, Guard, HeadKind, JobEnd, LockMode, ReleaseReads, Select, Snapshot as _, SourceReads,
    Store, StoreTx, Written,
};
use crate::rows::{DraftRow, DraftStateRow, HeadRow, MachineRow, OperationRow};
use crate::tx::claims::event;
use crate::tx::level::Start;
use crate::tx::{Abort, Ended, Failure, Held, Kind, OpenTx, Tx, lock_by, transact};
use crate::world::{RawTx, World};

/// Why T3 committed nothing.
#[derive(Debug)]
enum Refused {
    Problem(Problem),
    /// The job is not this worker's any more.
    Lost,
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// What T3 commits, and on what.
struct Commit<'a, W: World> {
    worker: &'a Worker<W>,
    owned: &'a Owned,
    snapshot: &'a Snapshot,
    evidence: &'a [Observation],
    unit: &'a Unit,
}

/// Everything T3 holds locked.
struct Under<T> {
    open: OpenTx<T>,
    installation: Installation,
    machines: Vec<Held<MachineRow>>,
    heads: Vec<Held<HeadRow>>,
    draft: DraftRow,
    operation: OperationRow,
    at: DbTime,
}

pub(super) async fn t3<W: World>(
    worker: &Worker<W>,
    owned: &Owned,
    snapshot: &Snapshot,
    evidence: &[Observation],
    unit: &Unit,
) -> Result<ReleaseId, Stop> {
    let commit = Commit {
        worker,
        owned,
        snapshot,
        evidence,
        unit,
    };
    let ended = transact(worker.db.store(), Kind::Publication, async |tx| {
        commit.body(tx).await
    })
    .await;
    match ended {
        Ok(committed) => Ok(committed.into_inner()),
        Err(Failure::Refused(Refused::Problem(problem))) => Err(problem.into()),
        Err(Failure::Refused(Refused::Lost)) => Err(Stop::Left("the job is another worker's")),
        Err(Failure::Unique("head_name_key")) => Err(commit.introduced_first().await),
        Err(failure) => Err(stop(&failure)),
    }
}

impl<W: World> Commit<'_, W> {
    async fn body(
        &self,
        tx: Tx<RawTx<W>, Start>,
    ) -> Result<Ended<RawTx<W>, ReleaseId>, Abort<Refused>> {
        let rules = self.worker.db.rules();
        let mut under = self.lock(tx).await?;
        let existing = under.open.rows().release_of(self.owned.bound).await?;
        let release = &self.unit.release;
        let found = existing.map(|row| (row.id, row.digest == release.digest.0));
        match existing_release(&rules, found, under.operation.result_release) {
            ExistingRelease::Done(id) => return under.open.done(id),
            ExistingRelease::Differs(id) => {
                let problem = Problem::conflict("The draft revision has another release.")
                    .naming("release", id);
                return under.open.refuse(problem.into()).await;
            }
            ExistingRelease::Finish(id) => {
                if !self.owned_now(&under) {
                    return under.open.refuse(Refused::Lost).await;
                }
                return self.finish(under, id).await;
            }
            ExistingRelease::Absent => {}
        }
        if !self.owned_now(&under) {
            return under.open.refuse(Refused::Lost).await;
        }
        if let Err(problem) = self.compare(&mut under).await? {
            return under.open.refuse(problem.into()).await;
        }
        if let Err(problem) = self.dependencies(&mut under).await? {
            return under.open.refuse(problem.into()).await;
        }
        self.write(under).await
    }

    /// The locks of PA §6.2, in rule 5's order.
    async fn lock<T: StoreTx>(&self, tx: Tx<T, Start>) -> Result<Under<T>, Abort<Refused>> {
        let rules = self.worker.db.rules();
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        // Every machine of the cluster is held with its state, so that neither what is covered
        // nor what was read of it can change before the commit.
        let select = Select::Cluster(self.snapshot.cluster.id);
        let rows = lock_by(&rules, Rule::PublicationMachinesShared, LockMode::Share);
        let states = lock_by(&rules, Rule::MachineStatesOfCluster, LockMode::Update);
        let (mut tx, machines) = tx.lock_machines(&select, rows, states).await?;
        let unchanged = lock_by(&rules, Rule::UnchangedHeadsShared, LockMode::Share);
        let shared = self
            .snapshot
            .unchanged
            .keys()
            .map(|head| (*head, unchanged));
        let mut modes: BTreeMap<HeadId, Option<LockMode>> = shared.collect();
        let changed = self.snapshot.changed.keys();
        modes.extend(changed.map(|head| (*head, Some(LockMode::Update))));
        if !rules.enforced(Rule::HeadsInOnePass) {
            // The changed heads in a pass of their own, as no publication may.
            let mut first = modes.clone();
            first.retain(|_, mode| *mode == Some(LockMode::Update));
            tx.peek().lock_heads(&first).await?;
        }
        let (tx, heads) = tx.lock_heads(&modes).await?;
        let bound = self.owned.bound;
        let (tx, draft) = tx.lock_draft(bound.draft, LockMode::Update).await?;
        let Some(draft) = draft else {
            return tx.refuse(refusal::draft_moved(bound.draft).into()).await;
        };
        let ids = std::iter::once(self.owned.operation).collect();
        let first = lock_by(&rules, Rule::FencedRowLockedFirst, LockMode::Update);
        let (tx, mut operations) = tx.lock_operations(&ids, first).await?;
        let (open, at) = tx.open_at().await?;
        let Some(operation) = operations.pop() else {
            return open.refuse(Refused::Lost).await;
        };
        Ok(Under {
            open,
            installation: installation.into_row(),
            machines,
            heads,
            draft: draft.into_row(),
            operation: operation.into_row(),
            at,
        })
    }

    fn owned_now<T>(&self, under: &Under<T>) -> bool {
        let rules = self.worker.db.rules();
        let current = under.installation.epoch;
        owns(
            &rules,
            &under.operation,
            &self.owned.fence,
            current,
            under.at,
        )
    }

    /// Compares every input with what the snapshot read and the draft was edited from.
    async fn compare<T: StoreTx>(
        &self,
        under: &mut Under<T>,
    ) -> Result<Result<(), Problem>, Abort<Refused>> {
        let rules = self.worker.db.rules();
        let open = under.draft.state == DraftStateRow::Open
            && under.draft.etag.revision == self.owned.bound.revision;
        if !rules.holds(Rule::DraftOpen, open) {
            return Ok(Err(refusal::draft_moved(under.draft.id)));
        }
        let actual: BTreeMap<HeadId, Revision> = under
            .heads
            .iter()
            .map(|head| (head.id, head.etag.revision))
            .collect();
        let mut heads: Vec<HeadCheck> = Vec::new();
        let changed = self.snapshot.changed.iter();
        heads.extend(changed.map(|(head, change)| HeadCheck {
            head: *head,
            expected: change.base,
            actual: actual.get(head).copied(),
            changed: true,
        }));
        let unchanged = self.snapshot.unchanged.iter();
        heads.extend(unchanged.map(|(head, revision)| HeadCheck {
            head: *head,
            expected: *revision,
            actual: actual.get(head).copied(),
            changed: false,
        }));
        heads.sort_by_key(|check| check.head);
        let machines = self.machine_checks(under).await?;
        Ok(commit_checks(&rules, &heads, &machines).map_err(|refused| refusal::commit(&refused)))
    }

    async fn machine_checks<T: StoreTx>(
        &self,
        under: &mut Under<T>,
    ) -> Result<Vec<MachineCheck>, Abort<Refused>> {
        let cluster = self.snapshot.cluster.id;
        // Read by a statement after the states' locks (PA §6.2).
        let bases = under.open.rows().applied_bases(cluster).await?;
        let bases: BTreeMap<MachineId, ImportBaseRevisionId> = bases.into_iter().collect();
        let holders = under.open.rows().scope_holders(cluster).await?;
        let holders: BTreeMap<MachineId, OperationId> = holders.into_iter().collect();
        let recovery = under.installation.recovery_mode;
        let epoch = under.installation.epoch;
        let mut checks = Vec::with_capacity(under.machines.len());
        for row in &under.machines {
            let own = self
                .snapshot
                .machines
                .iter()
                .position(|it| it.row.id == row.id);
            let covered = own.and_then(|position| self.snapshot.machines.get(position));
            let from_draft = covered.is_some_and(|it| it.covered.from_draft);
            let evidence_holds = match own.and_then(|position| self.evidence.get(position)) {
                Some(chosen) => self.evidence_holds(&mut under.open, row, chosen).await?,
                None => covered.is_none(),
            };
            checks.push(MachineCheck {
                machine: row.id,
                compiled_on: covered
                    .filter(|_| !from_draft)
                    .map(|it| it.covered.import_base),
                actual: bases.get(&row.id).copied(),
                covered: covered.is_some(),
                from_draft,
                retired: row.scope == ScopeState::Retired,
                assignment_changed: self.snapshot.assignment_changed.contains(&row.id),
                holder: holders.get(&row.id).copied(),
                recovery_closed: recovery && !row.scope.lets_exit(epoch),
                evidence_holds,
            });
        }
        Ok(checks)
    }

    async fn evidence_holds<T: StoreTx>(
        &self,
        open: &mut OpenTx<T>,
        row: &MachineRow,
        chosen: &Observation,
    ) -> Result<bool, Abort<Refused>> {
        let rows = open.rows();
        let recorded = rows
            .observations_after(row.id, chosen.started.basis)
            .await?;
        let endpoint_changed = rows.endpoint_changed(row.id).await?;
        let fence = &self.owned.fence;
        let by = bronzeward_core::principal::Controller {
            owner: fence.owner.clone(),
            generation: Some(fence.generation),
            epoch: fence.epoch,
        };
        let context = PublicationContext {
            machine: row.id,
            operation: self.owned.operation,
            controller: &by,
            epoch: fence.epoch,
            generation: fence.generation,
            identity: &identity(row),
            contract: self.snapshot.contract,
            access_path: &format!("access/talos/{}", self.snapshot.cluster.id),
            endpoint: row.endpoint,
            endpoint_changed,
        };
        let rules = self.worker.db.rules();
        Ok(publication_evidence(&rules, &context, chosen, &recorded))
    }

    /// Seeds the versions' statuses and looks at them again, a concurrent publication's
    /// included (DM §5.2).
    async fn dependencies<T: StoreTx>(
        &self,
        under: &mut Under<T>,
    ) -> Result<Result<(), Problem>, Abort<Refused>> {
        let rows = under.open.rows();
        rows.seed_statuses(&self.unit.seeds, under.at).await?;
        let objects = self.unit.named.iter().map(|named| named.object.clone());
        let statuses = rows.hold_statuses(&objects.collect()).await?;
        let rules = self.worker.db.rules();
        let Err(refused) = recheck(&rules, &self.unit.named, &statuses) else {
            return Ok(Ok(()));
        };
        let (dependency, changed) = match refused {
            RecheckRefusal::IdentityChanged { dependency } => (dependency, true),
            RecheckRefusal::NotRetained { dependency } => (dependency, false),
        };
        let row = statuses.iter().find(|row| row.id == dependency);
        let seed = row.and_then(|row| {
            let mut seeds = self.unit.seeds.iter();
            seeds.find(|seed| {
                seed.dependency.object == row.object && seed.dependency.version == row.version
            })
        });
        Ok(Err(match seed {
            Some(seed) => refusal::rechecked(seed.kv, &seed.dependency, changed),
            None => Problem::internal("A status row fits no version of the release."),
        }))
    }

    async fn write<T: StoreTx>(
        &self,
        mut under: Under<T>,
    ) -> Result<Ended<T, ReleaseId>, Abort<Refused>> {
        let rules = self.worker.db.rules();
        let release = &self.unit.release;
        let at = under.at;
        let rows = under.open.rows();
        rows.insert_release(release, at).await?;
        for (head, change) in &self.snapshot.changed {
            let guard = Guard::new().when(
                &rules,
                Rule::ChangedHeadGuard,
                Condition::Revision(change.base.0),
            );
            let token = self.worker.db.mint_token();
            let moved = rows
                .advance_head(*head, &guard, change.revision, token)
                .await?;
            if moved == Written::Stale {
                let stale = StaleInput::Head {
                    head: *head,
                    expected: Some(change.base),
                    actual: None,
                };
                return under.open.refuse(refusal::stale(&[stale]).into()).await;
            }
        }
        for head in &self.snapshot.introduced {
            rows.insert_head(head, at).await?;
        }
        let covered: BTreeSet<MachineId> = release.machines.iter().map(|it| it.machine).collect();
        rows.set_desired(&covered, release.id).await?;
        let draft = Guard::new().and(Condition::StateIn(vec!["open"])).when(
            &rules,
            Rule::RevisionUnchanged,
            Condition::Revision(self.owned.bound.revision.0),
        );
        let token = self.worker.db.mint_token();
        let published = rows
            .publish_draft(self.owned.bound.draft, &draft, release.id, token)
            .await?;
        if published == Written::Stale {
            let problem = refusal::draft_moved(self.owned.bound.draft);
            return under.open.refuse(problem.into()).await;
        }
        self.finish(under, release.id).await
    }

    /// The operation's end, in the release's transaction.
    async fn finish<T: StoreTx>(
        &self,
        mut under: Under<T>,
        release: ReleaseId,
    ) -> Result<Ended<T, ReleaseId>, Abort<Refused>> {
        let rules = self.worker.db.rules();
        let guard = owner(&rules, &self.owned.fence, under.installation.epoch);
        let operation = self.owned.operation;
        let end = JobEnd::Published(release);
        let rows = under.open.rows();
        if rows.finish_job(operation, &guard, &end).await? == Written::Stale {
            return under.open.refuse(Refused::Lost).await;
        }
        let by = controller(&self.owned.fence);
        let epoch = under.installation.epoch;
        let entry = event(&Event::Published { release }, by, epoch, None, under.at);
        under.open.rows().append_event(operation, &entry).await?;
        under.open.done(release)
    }

    /// Another publication introduced a name first: the unique index refused this one's head
    /// (PA §6.2). The conflict names that head as it is now.
    async fn introduced_first(&self) -> Stop {
        let mut reads = match self.worker.db.store().snapshot().await {
            Ok(reads) => reads,
            Err(error) => return error.into(),
        };
        let mut stale = Vec::new();
        for kind in [HeadKind::Fragment, HeadKind::Profile, HeadKind::Assignment] {
            let own = self.snapshot.introduced.iter();
            let own = own.filter(|head| head.kind == kind);
            let subjects = own.map(|head| head.subject.clone()).collect();
            let cluster = self.snapshot.cluster.id;
            match reads.heads_of(cluster, kind, &subjects).await {
                Ok(rows) => stale.extend(rows.into_iter().map(|row| StaleInput::Head {
                    head: row.id,
                    expected: None,
                    actual: Some(row.etag.revision),
                })),
                Err(error) => {
                    reads.close().await;
                    return error.into();
                }
            }
        }
        reads.close().await;
        refusal::stale(&stale).into()
    }
}
