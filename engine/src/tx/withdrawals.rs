//! What takes a plan's authority back: an approval's revocation (T5b) and a plan's
//! cancellation (T11).
//!
//! Called by http. Both are accepted in recovery mode, since they only remove authority
//! (PA §12.2), and both reach a committed plan's operation through comparison 1 of its next
//! attempt (EaR 3.3): never in this module is an operation.

use std::collections::BTreeSet;

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::authority::cancelling_role;
use bronzeward_core::id::{ApprovalId, PlanId};
use bronzeward_core::plan::{AnyPlan, CancelRefusal, PlanRead};
use bronzeward_core::principal::{By, Roles, Signed};
use bronzeward_core::problem::Problem;
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::DbTime;
use bronzeward_core::timeline::{Counter, Data};

use super::actor::standing_actor;
use super::{Abort, ActsTx, lock_by};
use crate::ports::store::{
    Condition, Guard, LockMode, NewApprovalRevocation, NewCancellation, NewEntry, PlanReads,
    PlanRow, PlanWrites, StoreError, StoreTx, TimelineWrites, Written,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::world::World;

impl<W: World> Requests<'_, W> {
    /// Revokes an approval, whatever its plan has come to. The plan reads revoked only where
    /// it was approved by this one and nothing ended it before.
    pub async fn revoke_approval(
        &self,
        admitted: &Admitted,
        approval: ApprovalId,
        reason: &str,
        render: impl Fn(&NewApprovalRevocation) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (rules, act) = (self.db.rules(), self.db.mint());
        let outcome = self.run(
            admitted,
            Some(LockMode::Share),
            async |mut tx, installation| {
                let missing = || Problem::not_found("No such approval.");
                let Some(given) = tx.peek().approval(approval).await? else {
                    return tx.refuse(missing()).await;
                };
                let Some(machine) = tx.peek().plan_machine(given.plan).await? else {
                    return Err(Abort::Store(StoreError::Fault));
                };
                let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
                let (tx, machine) = tx.lock_machine(machine, lock).await?;
                let Some(machine) = machine else {
                    return tx.refuse(missing()).await;
                };
                let tx = standing_actor(&rules, tx, admitted).await?;
                // Waits for a commitment or an attempt that holds the row FOR SHARE.
                let approvals = BTreeSet::from([approval]);
                let (tx, held) = tx.lock_approvals(&approvals, LockMode::Update).await?;
                if held.iter().any(|row| row.revoked) {
                    let problem = Problem::conflict("The approval is revoked already.");
                    return tx.refuse(problem.naming("approval", approval)).await;
                }
                let plans = BTreeSet::from([given.plan]);
                let state = lock_by(&rules, Rule::PlanStateLock, LockMode::Update);
                let (tx, _) = tx.lock_plan_states(&plans, state).await?;
                let mut open = tx.open();
                let Some(row) = open.rows().plan(given.plan).await? else {
                    return open.refuse(missing()).await;
                };
                let (mut acts, at) = open.lock_acts(&rules).await?;
                let revocation = NewApprovalRevocation {
                    approval,
                    plan: given.plan,
                    machine: machine.id,
                    revision: Counter(machine.timeline.0).allocate().0,
                    by: Signed::from(admitted.actor),
                    reason: reason.to_owned(),
                    epoch: installation.epoch,
                    act,
                    at,
                };
                acts.rows().insert_approval_revocation(&revocation).await?;
                let before = row.plan.revision().0;
                let after = revoked(&rules, row, approval, at);
                if after.unwritten
                    && write_state(&rules, &mut acts, &after.plan, before).await? == Written::Stale
                {
                    return acts.refuse(moved()).await;
                }
                let data = Data::ApprovalRevocation {
                    approval,
                    plan: given.plan,
                    reason: revocation.reason.clone(),
                };
                let by = By::Signed(revocation.by);
                let entry = NewEntry::of(&data, by, installation.epoch, Some(act), at);
                let entry = entry.about(given.plan);
                acts.rows().append_entry(machine.id, &entry).await?;
                Ok(Settled {
                    acts,
                    rendered: render(&revocation),
                    act: ActDraft::new(act, Action::APPROVAL_REVOKED)
                        .on(approval)
                        .on(given.plan)
                        .on(machine.id),
                })
            },
        );
        outcome.await.map_err(NotDone::refused)
    }

    /// Cancels a plan. `held` are the roles of the one who asks: whether `publisher` counts
    /// is decided here, and the act is recorded under the role that does (PA §10.3). A
    /// committed plan stays committed, and its operation makes no further attempt.
    pub async fn cancel_plan(
        &self,
        admitted: &Admitted,
        plan: PlanId,
        held: &Roles,
        reason: &str,
        render: impl Fn(&NewCancellation) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (rules, act) = (self.db.rules(), self.db.mint());
        let outcome = self.run(
            admitted,
            Some(LockMode::Share),
            async |mut tx, installation| {
                let missing = || Problem::not_found("No such plan.");
                let Some(machine) = tx.peek().plan_machine(plan).await? else {
                    return tx.refuse(missing()).await;
                };
                let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
                let (tx, machine) = tx.lock_machine(machine, lock).await?;
                let Some(machine) = machine else {
                    return tx.refuse(missing()).await;
                };
                let tx = standing_actor(&rules, tx, admitted).await?;
                let plans = BTreeSet::from([plan]);
                let state = lock_by(&rules, Rule::PlanStateLock, LockMode::Update);
                let (tx, _) = tx.lock_plan_states(&plans, state).await?;
                let mut open = tx.open();
                let Some(row) = open.rows().plan(plan).await? else {
                    return open.refuse(missing()).await;
                };
                let (principal, creator) =
                    (admitted.actor.principal, row.plan.binding().created_by);
                let role = match cancelling_role(&rules, plan, &creator, principal, held) {
                    Ok(role) => role,
                    Err(forbidden) => return open.refuse(forbidden.problem()).await,
                };
                let (mut acts, at) = open.lock_acts(&rules).await?;
                let before = row.plan.revision().0;
                let after = match cancelled(row, at) {
                    Ok(after) => after,
                    Err(problem) => return acts.refuse(*problem).await,
                };
                let cancellation = NewCancellation {
                    plan,
                    machine: machine.id,
                    revision: Counter(machine.timeline.0).allocate().0,
                    by: Signed { principal, role },
                    reason: reason.to_owned(),
                    epoch: installation.epoch,
                    act,
                    at,
                };
                acts.rows().insert_cancellation(&cancellation).await?;
                // A committed plan's state is the same: the row says that it is cancelled.
                if !matches!(after, AnyPlan::Committed(_))
                    && write_state(&rules, &mut acts, &after, before).await? == Written::Stale
                {
                    return acts.refuse(moved()).await;
                }
                let data = Data::Cancellation {
                    plan,
                    reason: cancellation.reason.clone(),
                };
                let by = By::Signed(cancellation.by);
                let entry = NewEntry::of(&data, by, installation.epoch, Some(act), at).about(plan);
                acts.rows().append_entry(machine.id, &entry).await?;
                Ok(Settled {
                    acts,
                    rendered: render(&cancellation),
                    act: ActDraft::new(act, Action::PLAN_CANCELLED)
                        .under(role)
                        .on(plan)
                        .on(machine.id),
                })
            },
        );
        outcome.await.map_err(NotDone::refused)
    }
}

/// The plan after the revocation. One that had already expired, or been revoked with its
/// approver, becomes what it reads (PA §8.1).
fn revoked<R: Rules>(rules: &R, row: PlanRow, approval: ApprovalId, at: DbTime) -> PlanRead {
    let read = row.plan.read_at(at, row.approver_revoked_at);
    match read.unwritten {
        true => read,
        false => read.plan.revoke_approval(rules, approval),
    }
}

fn cancelled(row: PlanRow, at: DbTime) -> Result<AnyPlan, Box<Problem>> {
    let plan = row.plan.binding().id;
    let read = row.plan.read_at(at, row.approver_revoked_at).plan;
    read.cancel().map_err(|refused| {
        let words = match refused.reason {
            CancelRefusal::AlreadyCancelled => "The plan's cancellation is recorded already.",
            CancelRefusal::State => "The plan's state refuses a cancellation.",
        };
        let problem = Problem::conflict(words).naming("plan", plan);
        Box::new(problem.naming("state", refused.unchanged.state_name()))
    })
}

async fn write_state<R: Rules, T: StoreTx>(
    rules: &R,
    acts: &mut ActsTx<T>,
    plan: &AnyPlan,
    before: i64,
) -> Result<Written, StoreError> {
    let unmoved = Condition::Revision(before);
    let guard = Guard::new().when(rules, Rule::RevisionUnchanged, unmoved);
    acts.rows().write_plan_state(plan, &guard).await
}

fn moved() -> Problem {
    Problem::conflict("The plan's state moved.")
}
