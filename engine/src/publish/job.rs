//! A publish job's ownership: its claim, its lease and its failure (PA §5.1, T8).
//!
//! Each locks the job's row before the statement that writes it, so that the lease is
//! compared after any wait for the row. Never in this module: what a job does.

use bronzeward_core::fence::{Fence, lease_from};
use bronzeward_core::id::{EpochId, OperationId};
use bronzeward_core::job::Event;
use bronzeward_core::principal::{By, Controller};
use bronzeward_core::problem::Problem;
use bronzeward_core::release::BoundDraft;
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::{DbTime, Span};

use crate::ports::store::{
    Condition, Guard, JobEnd, JobReads, JobWrites, LockMode, StoreTx, TimelineWrites, Written,
};
use crate::rows::{OperationRow, Signed};
use crate::tx::claims::event;
use crate::tx::level::Operations;
use crate::tx::{Abort, Failure, Held, Kind, Tx, lock_by, transact};
use crate::world::{Db, World};

/// A publication that this worker owns.
#[derive(Clone, Debug)]
pub struct Owned {
    pub operation: OperationId,
    pub bound: BoundDraft,
    pub fence: Fence,
    /// Who asked for the publication: the release's publisher.
    pub by: Signed,
}

/// Why a job's transaction wrote nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOwned {
    /// Nothing is eligible.
    Nothing,
    /// A recovery entry has replaced this process's epoch; it claims nothing any more.
    Superseded,
    /// The job is not this worker's any more.
    Lost,
    /// This worker itself has ended it.
    Ended,
}

/// What an owner's write depends on (PA §5.1): the fence, the state and a live lease.
pub(crate) fn owner(rules: &impl Rules, token: &Fence, current: EpochId) -> Guard {
    Guard::new()
        .when(rules, Rule::FenceState, Condition::StateIn(vec!["running"]))
        .fenced(rules, token, current)
        .when(rules, Rule::LeaseLive, Condition::LeaseLive)
}

/// The controller that a job's events are by.
pub(crate) fn controller(fence: &Fence) -> By {
    By::Controller(Controller {
        owner: fence.owner.clone(),
        generation: Some(fence.generation),
        epoch: fence.epoch,
    })
}

/// What makes a job eligible again, in its own UPDATE: queued, or running with a lapsed
/// lease. The held row says which of the two is tested.
fn eligible(rules: &impl Rules, row: &OperationRow) -> Guard {
    let state = match row.state.as_str() {
        "queued" => "queued",
        _ => "running",
    };
    let seen = Condition::StateIn(vec![state]);
    let guard = Guard::new().when(rules, Rule::JobEligible, seen);
    match state {
        "queued" => guard,
        _ => guard.when(rules, Rule::JobEligible, Condition::LeaseLapsed),
    }
}

/// Whether nobody's lease on the job was live at `at`.
fn lapsed_by(row: &OperationRow, at: DbTime) -> bool {
    row.state != "running" || row.lease_until.is_none_or(|until| until < at)
}

async fn locked<T: StoreTx>(
    rules: &impl Rules,
    tx: Tx<T, crate::tx::level::InstallationState>,
    operation: OperationId,
) -> Result<(Tx<T, Operations>, Option<Held<OperationRow>>), Abort<NotOwned>> {
    let ids = std::iter::once(operation).collect();
    let first = lock_by(rules, Rule::FencedRowLockedFirst, LockMode::Update);
    let (tx, mut rows) = tx.lock_operations(&ids, first).await?;
    Ok((tx, rows.pop()))
}

/// Claims the oldest eligible publication.
pub async fn claim<W: World>(db: &Db<W>, lease: Span) -> Result<Owned, Failure<NotOwned>> {
    let rules = db.rules();
    let claimed = transact(db.store(), Kind::Job, async |tx| {
        let (mut tx, installation) = tx.lock_installation(LockMode::Share).await?;
        if !db.admits(installation.epoch) {
            return tx.refuse(NotOwned::Superseded).await;
        }
        let Some(candidate) = tx.peek().publish_candidate().await? else {
            return tx.refuse(NotOwned::Nothing).await;
        };
        let (tx, row) = locked(&rules, tx, candidate).await?;
        let (mut open, at) = tx.open_at().await?;
        let Some(row) = row else {
            return open.refuse(NotOwned::Nothing).await;
        };
        let (Some((draft, revision)), Some(by)) = (row.draft, row.created_by) else {
            return open.refuse(NotOwned::Nothing).await;
        };
        // The UPDATE asks again, a moment later than the time this lease counts from: a lease
        // that lapses between the two is the next claim's.
        if !rules.holds(Rule::JobEligible, lapsed_by(&row, at)) {
            return open.refuse(NotOwned::Nothing).await;
        }
        let me = db.process().owner.clone();
        let fence = match &row.fence {
            Some(before) => before.taken_by(me, installation.epoch),
            None => Fence {
                owner: me,
                generation: bronzeward_core::fence::Generation::FIRST,
                epoch: installation.epoch,
            },
        };
        let guard = eligible(&rules, &row);
        let until = lease_from(at, lease);
        let rows = open.rows();
        if rows.own_job(candidate, &guard, &fence, until).await? == Written::Stale {
            return open.refuse(NotOwned::Nothing).await;
        }
        let claimed = Event::Claimed {
            generation: fence.generation,
        };
        let entry = event(&claimed, controller(&fence), installation.epoch, None, at);
        open.rows().append_event(candidate, &entry).await?;
        open.done(Owned {
            operation: candidate,
            bound: BoundDraft { draft, revision },
            fence,
            by,
        })
    })
    .await?;
    Ok(claimed.into_inner())
}

/// Extends the lease while it is live and this worker's.
pub async fn extend<W: World>(
    db: &Db<W>,
    owned: &Owned,
    lease: Span,
) -> Result<(), Failure<NotOwned>> {
    let rules = db.rules();
    transact(db.store(), Kind::Job, async |tx| {
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        let (tx, row) = locked(&rules, tx, owned.operation).await?;
        let (mut open, at) = tx.open_at().await?;
        let guard = owner(&rules, &owned.fence, installation.epoch);
        let until = lease_from(at, lease);
        let rows = open.rows();
        let written = rows
            .own_job(owned.operation, &guard, &owned.fence, until)
            .await?;
        match written {
            Written::Written => open.done(()),
            Written::Stale if row.is_some_and(|row| ended_by(&row, &owned.fence)) => {
                open.refuse(NotOwned::Ended).await
            }
            Written::Stale => open.refuse(NotOwned::Lost).await,
        }
    })
    .await
    .map(|committed| committed.into_inner())
}

/// Whether the run under this fence ended the job: no other run can have.
fn ended_by(row: &OperationRow, fence: &Fence) -> bool {
    matches!(row.state.as_str(), "succeeded" | "failed") && row.fence.as_ref() == Some(fence)
}

/// Records how the job failed, with its terminal event.
pub async fn fail<W: World>(
    db: &Db<W>,
    owned: &Owned,
    problem: &Problem,
) -> Result<(), Failure<NotOwned>> {
    let rules = db.rules();
    transact(db.store(), Kind::Job, async |tx| {
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        let (tx, _) = locked(&rules, tx, owned.operation).await?;
        let (mut open, at) = tx.open_at().await?;
        let guard = owner(&rules, &owned.fence, installation.epoch);
        let end = JobEnd::Failed(problem.clone());
        let written = open
            .rows()
            .finish_job(owned.operation, &guard, &end)
            .await?;
        if written == Written::Stale {
            return open.refuse(NotOwned::Lost).await;
        }
        let failed = Event::Failed {
            code: problem.code,
            cause: None,
        };
        let by = controller(&owned.fence);
        let entry = event(&failed, by, installation.epoch, None, at);
        open.rows().append_event(owned.operation, &entry).await?;
        open.done(())
    })
    .await
    .map(|committed| committed.into_inner())
}
