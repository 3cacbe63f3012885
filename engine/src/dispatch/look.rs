//! What a pass finds to do: approved plans that may gather evidence, operations that this
//! process owns, may take over, or observes, and machines due to be read for drift (EaR 3.1,
//! 3.4, 5.2, 6.1).
//!
//! Everything here is read from one snapshot and may be stale; whatever an errand then does
//! is decided again under locks.

use std::collections::BTreeMap;

use bronzeward_core::comparison::{Current, Facts, Stage, Standing, may_gather};
use bronzeward_core::id::{EpochId, MachineId};
use bronzeward_core::installation::{Installation, StartMode};
use bronzeward_core::operation::OperationState;
use bronzeward_core::plan::{AnyPlan, Approved, Plan, PlanOperation};
use bronzeward_core::principal::Controller as By;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::{DbTime, Span};

use super::{Controller, Stop};
use crate::ports::store::{PlanRow, Snapshot, Store, StoreError};
use crate::rows::OperationRow;
use crate::tx::dispatch::Owned;
use crate::tx::plans::{applied, scope};
use crate::world::World;

/// What one machine needs of this process.
pub(super) enum Errand {
    Plan(Box<Plan<Approved>>),
    /// This process owns it and works on it.
    Carry(Box<Owned>),
    /// Its owner's lease has lapsed.
    TakeOver(Box<OperationRow>),
    /// This process owns it and nothing is due: the lease is extended.
    Keep(Box<Owned>),
    /// It is unresolved and not this process's to work on: the machine is observed.
    Observe(Box<OperationRow>),
    /// Nothing is under way, and it is due to be read for drift.
    Drift,
    /// What was sent to the machine before a restore is unaccounted: it is observed.
    Settle,
}

impl Errand {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Plan(_) => "plan",
            Self::Carry(_) => "carry",
            Self::TakeOver(_) => "take-over",
            Self::Keep(_) => "keep",
            Self::Observe(_) => "observe",
            Self::Drift => "drift",
            Self::Settle => "settle",
        }
    }
}

/// A pass's snapshot.
pub(super) struct Seen {
    pub now: DbTime,
    epoch: EpochId,
    operations: Vec<OperationRow>,
    /// The machines whose scope is pre-restore unaccounted.
    unaccounted: Vec<MachineId>,
    plans: Vec<Plan<Approved>>,
    unread: Vec<MachineId>,
}

impl<W: World> Controller<W> {
    pub(super) async fn look(&self) -> Result<Seen, Stop> {
        let store = self.parts.db.store();
        let mut snapshot = store.snapshot().await.map_err(unread)?;
        let read = self.read(&mut snapshot).await;
        snapshot.close().await;
        let seen = read.map_err(unread)?;
        match self.parts.db.admits(seen.epoch) {
            true => Ok(seen),
            false => Err(Stop::Superseded),
        }
    }

    async fn read<S: Snapshot>(&self, snapshot: &mut S) -> Result<Seen, StoreError> {
        let now = snapshot.clock().await?;
        let installation = snapshot.installation().await?;
        let scopes = snapshot.scopes().await?;
        let unaccounted = |scope: &(_, _)| scope.1 == ScopeState::PreRestoreUnaccounted;
        let mut plans = Vec::new();
        for row in snapshot.approved_plans(now).await? {
            if let Some(plan) = self.due(snapshot, row, installation, now).await? {
                plans.push(plan);
            }
        }
        Ok(Seen {
            now,
            epoch: installation.epoch,
            operations: snapshot.open_operations().await?,
            unread: self.unread_for_drift(snapshot, now).await?,
            unaccounted: scopes
                .into_iter()
                .filter(unaccounted)
                .map(|(machine, _)| machine)
                .collect(),
            plans,
        })
    }

    /// A plan that reads as approved in the current epoch. One that applies must also pass
    /// comparisons 1 and 6 before an artifact or a credential is read for it.
    async fn due<S: Snapshot>(
        &self,
        snapshot: &mut S,
        row: PlanRow,
        installation: Installation,
        now: DbTime,
    ) -> Result<Option<Plan<Approved>>, StoreError> {
        let revoked = row.approver_revoked_at;
        let AnyPlan::Approved(plan) = row.plan.read_at(now, revoked).plan else {
            return Ok(None);
        };
        let binding = plan.binding();
        let of_epoch = plan.authorised_in(installation.epoch);
        if matches!(binding.operation, PlanOperation::Adopt { .. }) || !of_epoch {
            return Ok(of_epoch.then_some(plan));
        }
        let Some(machine) = snapshot.machine(binding.machine).await? else {
            return Ok(None);
        };
        let drift = snapshot.open_drift(machine.id).await?;
        let scope = scope(&machine, drift.map(|drift| drift.opened));
        let process = self.parts.db.process();
        let any = AnyPlan::Approved(plan.clone());
        let facts = Facts {
            binding,
            now,
            epoch: installation.epoch,
            recovery_mode: installation.recovery_mode,
            process: process.epoch,
            controller: &By::unowned(process.owner.clone(), process.epoch),
            standing: Standing {
                plan: &any,
                // A plan whose approval is revoked does not read as approved.
                approval_revoked: false,
                approver_revoked: revoked.is_some(),
            },
            current: Current {
                assignment: snapshot.assignment_at(machine.id).await?,
                desired: machine.state.desired,
                baseline: applied(&machine).map(|applied| applied.baseline),
            },
            evidence: None,
            scope: &scope,
            stage: Stage::Commitment {
                existing: None,
                scope_holder: None,
                rollout_holder: None,
            },
        };
        Ok(may_gather(&self.parts.db.rules(), &facts).then_some(plan))
    }

    /// Each machine's errand; an operation of its own comes before a plan for it.
    pub(super) fn errands(&self, seen: Seen) -> BTreeMap<MachineId, Errand> {
        let mut errands = BTreeMap::new();
        let open: Vec<_> = seen.operations.iter().map(|row| row.id).collect();
        let mut memory = self.memory();
        memory
            .looked
            .retain(|operation, _| open.contains(operation));
        for row in seen.operations {
            let due = Span::from(self.settings.recovery_interval);
            let due = memory
                .looked
                .get(&row.id)
                .is_none_or(|at| seen.now >= *at + due);
            let machine = row.machine;
            if let (Some(machine), Some(errand)) = (machine, self.errand(row, due, seen.now)) {
                if matches!(errand, Errand::Carry(_) | Errand::Observe(_))
                    && let Some(operation) = errand.operation()
                {
                    memory.looked.insert(operation, seen.now);
                }
                errands.insert(machine, errand);
            }
        }
        let due = Span::from(self.settings.recovery_interval);
        let unaccounted = &seen.unaccounted;
        memory
            .settled
            .retain(|machine, _| unaccounted.contains(machine));
        for machine in &seen.unaccounted {
            let at = memory.settled.get(machine);
            if at.is_none_or(|at| seen.now >= *at + due) && !errands.contains_key(machine) {
                memory.settled.insert(*machine, seen.now);
                errands.insert(*machine, Errand::Settle);
            }
        }
        // Under the recovery-start flag nothing is carried out (PA §12.2).
        if !self.executes() {
            return errands;
        }
        let tried = |plan: &Plan<Approved>| (plan.binding().id, plan.state().approval.id);
        let standing: Vec<_> = seen.plans.iter().map(tried).collect();
        memory.pauses.retain(|tried, _| standing.contains(tried));
        for plan in seen.plans {
            let pause = memory.pauses.get(&tried(&plan));
            if pause.is_some_and(|pause| seen.now < pause.until) {
                continue;
            }
            let machine = plan.binding().machine;
            errands
                .entry(machine)
                .or_insert_with(|| Errand::Plan(Box::new(plan)));
        }
        for machine in seen.unread {
            errands.entry(machine).or_insert(Errand::Drift);
        }
        errands
    }

    /// Whether this process works on operations and plans at all.
    fn executes(&self) -> bool {
        self.parts.db.start_mode() == StartMode::Normal
    }

    fn errand(&self, row: OperationRow, due: bool, now: DbTime) -> Option<Errand> {
        let state = OperationState::parse(&row.state)?;
        let unresolved = state == OperationState::Unresolved;
        let fence = row.fence.clone()?;
        if !self.executes() {
            return (unresolved && due).then(|| Errand::Observe(Box::new(row)));
        }
        if row.lease_until.is_none_or(|until| until <= now) {
            return Some(Errand::TakeOver(Box::new(row)));
        }
        if fence.owner != self.parts.db.process().owner {
            return (unresolved && due).then(|| Errand::Observe(Box::new(row)));
        }
        let owned = Box::new(Owned {
            operation: row.id,
            plan: row.plan?,
            machine: row.machine?,
            cluster: row.cluster,
            fence,
        });
        match state {
            OperationState::Committed | OperationState::Verifying => Some(Errand::Carry(owned)),
            OperationState::Unresolved if due => Some(Errand::Carry(owned)),
            OperationState::Unresolved => Some(Errand::Keep(owned)),
            // Its answer could not be recorded: it stays so until its lease has lapsed.
            OperationState::Sending => None,
            OperationState::Completed
            | OperationState::Rejected
            | OperationState::Failed
            | OperationState::Cancelled => None,
        }
    }
}

impl Errand {
    fn operation(&self) -> Option<bronzeward_core::id::OperationId> {
        match self {
            Self::Plan(_) | Self::Drift | Self::Settle => None,
            Self::Carry(owned) | Self::Keep(owned) => Some(owned.operation),
            Self::TakeOver(row) | Self::Observe(row) => Some(row.id),
        }
    }
}

const fn unread(_: StoreError) -> Stop {
    Stop::Later("what there is to do could not be read")
}
