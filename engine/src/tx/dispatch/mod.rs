//! The transactions of dispatch (T6, T8): what an apply-config plan's operation goes
//! through, each under the machine's lock.
//!
//! The controller calls them between its reads of the world; what they decide is
//! `core::comparison`'s, `core::operation`'s and `core::classify`'s. Never in this module: a
//! node, a provider, or a request's own transaction.

mod accounting;
mod attempt;
mod check;
mod commitment;
pub(crate) mod drift;
mod lease;
mod refusal;
mod resolution;
mod response;
mod takeover;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::comparison::{
    self, Current, Facts, NotAdmitted, SafeToRetryEntry, Stage, Standing, UseTimeCheck,
};
use bronzeward_core::fence::{Fence, Generation};
use bronzeward_core::head::AssignmentAt;
use bronzeward_core::id::{ClusterId, MachineId, OperationId, PlanId};
use bronzeward_core::installation::Installation;
use bronzeward_core::observation::{AccessVersion, Observation};
use bronzeward_core::operation::{Common, Operation, OperationState};
use bronzeward_core::plan::Binding;
use bronzeward_core::principal::{By, Controller};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::scope::Scope;
use bronzeward_core::time::DbTime;
use bronzeward_core::timeline::Data;

pub use accounting::{Accounted, AccountingInput};
pub(in crate::tx) use accounting::{explained, not_accountable};
pub use attempt::record_attempt;
pub use check::{Checked, record_check};
pub use commitment::commit;
pub use lease::extend;
pub use refusal::record_not_admitted;
pub use resolution::Resolved;
pub use response::record_response;
pub(in crate::tx) use takeover::{ByAct, take_over_by_act};
pub use takeover::{TakenOver, take_over_lapsed};
pub use verdict::{Judged, judge};

use super::plans::{applied, assignment_at, scope};
use super::{Abort, OpenTx, Tx, lock_by};
use crate::ports::store::{
    Condition, Guard, LockMode, Marks, NewEntry, PlanReads, PlanRow, StoreError, StoreReads,
    StoreTx,
};
use crate::rows::{ApprovalRow, MachineRow, OperationRow, PrincipalRow};
use crate::tx::level::Start;
use crate::world::{Db, RawTx, World};

/// An operation as its owner works on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub operation: OperationId,
    pub plan: PlanId,
    pub machine: MachineId,
    pub cluster: ClusterId,
    pub fence: Fence,
}

/// Evidence as it was gathered for one plan: what was recorded, and the version of the
/// access that a request would be sent with.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub observation: Observation,
    pub check: UseTimeCheck,
    /// None where the access could not be read: then nothing is admitted on it.
    pub access: Option<AccessVersion>,
}

/// Why a transaction of dispatch left everything as it was.
#[derive(Debug)]
pub enum Refused {
    /// The plan, its machine or its operation is not there, or not in a state for this.
    Gone,
    /// The operation is another owner's, or its state moved.
    NotOwner,
    /// A recovery entry has replaced this process's epoch.
    Superseded,
    /// Comparisons failed; [`record_not_admitted`] records which.
    NotAdmitted(Box<NotAdmitted>),
}

impl From<Refused> for Abort<Refused> {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// What the comparisons and the classification look at, read under its locks.
pub(super) struct Scene<T> {
    pub(super) open: OpenTx<T>,
    pub(super) now: DbTime,
    pub(super) installation: Installation,
    pub(super) machine: MachineRow,
    pub(super) row: PlanRow,
    pub(super) approval_revoked: bool,
    pub(super) approver_revoked: bool,
    pub(super) assignment: Option<AssignmentAt>,
    pub(super) scope: Scope,
    pub(super) held: Option<(Operation, Marks)>,
}

impl<T> Scene<T> {
    fn binding(&self) -> &Binding {
        self.row.plan.binding()
    }

    pub(super) fn standing(&self) -> Standing<'_> {
        Standing {
            plan: &self.row.plan,
            approval_revoked: self.approval_revoked,
            approver_revoked: self.approver_revoked,
        }
    }

    fn current(&self) -> Current {
        Current {
            assignment: self.assignment,
            desired: self.machine.state.desired,
            baseline: applied(&self.machine).map(|applied| applied.baseline),
        }
    }
}

/// What a scene locks last.
#[derive(Clone, Copy, Debug)]
pub(super) enum Last {
    /// The cluster's rollout, which only commitments take.
    Rollout,
    Operation(OperationId),
    /// Nothing: an adoption is made in one transaction and holds no slot.
    PlanState,
}

/// Takes the locks of EaR 3.2 in their order and reads what they hold still.
pub(super) async fn scene<W: World>(
    db: &Db<W>,
    tx: Tx<RawTx<W>, Start>,
    plan: PlanId,
    last: Last,
) -> Result<Scene<RawTx<W>>, Abort<Refused>> {
    let rules = db.rules();
    let (mut tx, installation) = tx.lock_installation(LockMode::Share).await?;
    let Some(machine) = tx.peek().plan_machine(plan).await? else {
        return tx.refuse(Refused::Gone).await;
    };
    let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
    let (mut tx, machine) = tx.lock_machine(machine, lock).await?;
    // A plan's state, and the approval it rests on, move only under its machine's lock.
    let (Some(machine), Some(row)) = (machine, tx.peek().plan(plan).await?) else {
        return tx.refuse(Refused::Gone).await;
    };
    let head = tx.peek().assignment_head_of(machine.id).await?;
    let mode = lock_by(&rules, Rule::AssignmentHeadShared, LockMode::Share);
    let heads: BTreeMap<_, _> = head.map(|head| (head, mode)).into_iter().collect();
    let (tx, heads) = tx.lock_heads(&heads).await?;
    let approval = row.plan.approval().cloned();
    let mode = lock_by(&rules, Rule::ApproverShared, LockMode::Share);
    let principals: BTreeMap<_, _> = approval
        .iter()
        .map(|approval| (approval.approver.principal, mode))
        .collect();
    let (tx, approvers) = tx.lock_principals(&principals).await?;
    let mode = lock_by(&rules, Rule::ApprovalShared, LockMode::Share);
    let approvals: BTreeSet<_> = approval.iter().map(|approval| approval.id).collect();
    let (tx, approvals) = tx.lock_approvals(&approvals, mode).await?;
    let mode = lock_by(&rules, Rule::PlanStateLock, LockMode::Update);
    let (tx, _) = tx.lock_plan_states(&BTreeSet::from([plan]), mode).await?;
    let (mut open, now, held) = match last {
        Last::Rollout if rules.enforced(Rule::RolloutLock) => {
            let tx = tx.lock_rollout(machine.cluster).await?;
            let (open, now) = tx.open_at().await?;
            (open, now, None)
        }
        Last::Rollout | Last::PlanState => {
            let (open, now) = tx.open_at().await?;
            (open, now, None)
        }
        Last::Operation(operation) => {
            let (open, now, held) = held(tx, operation).await?;
            if held.is_none() {
                return open.refuse(Refused::Gone).await;
            }
            (open, now, held)
        }
    };
    let drift = open.rows().open_drift(machine.id).await?;
    let machine = machine.into_row();
    Ok(Scene {
        now,
        installation: installation.into_row(),
        approval_revoked: revoked(&approvals, |row: &ApprovalRow| row.revoked),
        approver_revoked: revoked(&approvers, |row: &PrincipalRow| {
            row.principal.revoked_at.is_some()
        }),
        assignment: heads
            .first()
            .and_then(|head| assignment_at(head))
            .map(|(at, _)| at),
        scope: scope(&machine, drift.map(|drift| drift.opened)),
        machine,
        row,
        held,
        open,
    })
}

fn revoked<R>(rows: &[super::Held<R>], is: impl Fn(&R) -> bool) -> bool {
    rows.iter().any(|row| is(row))
}

/// The operation FOR UPDATE, with everything of it and its place in the timeline, and the
/// time after that lock.
async fn held<T: StoreTx, L: super::Before<super::Operations>>(
    tx: Tx<T, L>,
    operation: OperationId,
) -> Result<(OpenTx<T>, DbTime, Option<(Operation, Marks)>), StoreError> {
    let operations = BTreeSet::from([operation]);
    let (tx, rows) = tx.lock_operations(&operations, LockMode::Update).await?;
    let (mut open, now) = tx.open_at().await?;
    let Some(row) = rows.into_iter().next() else {
        return Ok((open, now, None));
    };
    let operation = whole(open.rows(), &row).await?;
    Ok((open, now, operation))
}

/// An operation of a plan as its row and its attempts have it; none for a job.
pub(crate) async fn whole<T: StoreReads>(
    rows: &mut T,
    row: &OperationRow,
) -> Result<Option<(Operation, Marks)>, StoreError> {
    let (Some(plan), Some(machine), Some(fence)) = (row.plan, row.machine, row.fence.clone())
    else {
        return Ok(None);
    };
    let Some(state) = OperationState::parse(&row.state) else {
        return Ok(None);
    };
    let marks = rows.operation_marks(row.id).await?;
    let common = Common {
        id: row.id,
        plan,
        machine,
        cluster: row.cluster,
        fence,
        // An adoption's operation never had one; a terminal one is no lease's.
        lease_until: row.lease_until.unwrap_or(row.created_at),
        attempts: rows.attempts(row.id).await?,
        since: marks.since,
        created_at: row.created_at,
    };
    let classified = row
        .classified
        .map(|(revision, generation)| SafeToRetryEntry {
            revision,
            generation: Generation(generation),
        });
    let operation = Operation::from_row(common, state, classified);
    Ok(Some((operation, marks)))
}

/// An owner's own move under `rule` (PA §5.1): the fence's terms and the state it leaves.
fn own_move<R: Rules>(
    rules: &R,
    rule: Rule,
    token: &Fence,
    current: bronzeward_core::id::EpochId,
    from: OperationState,
) -> Guard {
    let guard = Guard::new().and(Condition::StateIn(vec![from.as_str()]));
    if rules.enforced(rule) {
        guard.fenced(rules, token, current)
    } else {
        guard
    }
}

/// Appends a machine's entries of one transaction.
pub(crate) struct Log<'a, T> {
    pub(crate) rows: &'a mut T,
    pub(crate) machine: MachineId,
    /// The plan on whose behalf they are written.
    pub(crate) plan: Option<PlanId>,
    pub(crate) by: By,
    pub(crate) epoch: bronzeward_core::id::EpochId,
    pub(crate) at: DbTime,
}

impl<T: StoreTx> Log<'_, T> {
    pub(crate) async fn append(&mut self, data: &Data) -> Result<TimelineRevision, StoreError> {
        let mut entry = NewEntry::of(data, self.by.clone(), self.epoch, None, self.at);
        entry.plan = self.plan;
        self.rows.append_entry(self.machine, &entry).await
    }
}

/// What the comparisons compare for this process, on this evidence.
fn facts<'a, W: World, T>(
    db: &Db<W>,
    scene: &'a Scene<T>,
    controller: &'a Controller,
    evidence: &'a Evidence,
    recorded: &'a [Observation],
    stage: Stage<'a>,
) -> Facts<'a> {
    Facts {
        binding: scene.row.plan.binding(),
        now: scene.now,
        epoch: scene.installation.epoch,
        recovery_mode: scene.installation.recovery_mode,
        process: db.process().epoch,
        controller,
        standing: scene.standing(),
        current: scene.current(),
        evidence: evidence
            .access
            .as_ref()
            .map(|access_used| comparison::Evidence {
                observation: &evidence.observation,
                check: &evidence.check,
                access_used,
                recorded,
            }),
        scope: &scene.scope,
        stage,
    }
}

/// The controller of this process, for an entry about no operation of its own.
fn unowned<W: World>(db: &Db<W>) -> Controller {
    let process = db.process();
    Controller::unowned(process.owner.clone(), process.epoch)
}
