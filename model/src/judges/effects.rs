//! What an act says was done, was done (PA §10.5, §15.9, EaR 2, 6.2): the rows that it is about
//! are, as it commits, what its action makes of them.
//!
//! Never in this module: who may do it, which is `authority`'s.

use bronzeward_core::id::{
    ApprovalId, AttemptId, DraftId, Id, MachineId, OperationId, PlanId, PrincipalId,
};
use bronzeward_core::scope::ScopeState;
use bronzeward_engine::ports::store::ActRow;
use bronzeward_engine::rows::{DraftStateRow, MachineRow};

use super::case::{Case, SEEN, changes_hands};
use super::{Verdict, violation};
use crate::change::Change;
use crate::store::execution::holds;

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        if let Change::Act(changed) = change
            && let Some(act) = &changed.after
        {
            acted(case, &act.row)?;
        }
    }
    Ok(())
}

/// The subject of this kind that an act names.
fn named<K: bronzeward_core::id::Kind>(act: &ActRow) -> Option<Id<K>> {
    let mut subjects = act.subjects.iter();
    subjects.find_map(|subject| Id::parse(subject).ok())
}

fn acted(case: &Case<'_>, act: &ActRow) -> Verdict {
    let machine = |is: fn(&MachineRow) -> bool| {
        let id: Option<MachineId> = named(act);
        let row = id.and_then(|id| case.tables.authoring.machines.get(SEEN, &id));
        row.is_some_and(is)
    };
    let done = match act.action.as_str() {
        "machine-frozen" => machine(|row| row.frozen),
        "machine-unfrozen" => machine(|row| !row.frozen),
        "scope-released" => machine(|row| matches!(row.scope, ScopeState::Released { .. })),
        "machine-decommissioned" => {
            machine(|row| row.scope == ScopeState::Retired) && taken_from_its_owner(case, act)
        }
        "attempt-accounted" => {
            let id: Option<AttemptId> = named(act);
            id.is_some_and(|id| case.tables.execution.accountings.get(SEEN, &id).is_some())
        }
        "operation-taken-over" => operation(case, act) == Some("unresolved"),
        "operation-resolved" => operation(case, act) == Some("cancelled"),
        "plan-approved" => approved(case, act),
        "plan-cancelled" => cancelled(case, act),
        "approval-revoked" => revoked(case, act),
        "identity-revoked" => {
            let id: Option<PrincipalId> = named(act);
            let row = id.and_then(|id| case.tables.authoring.principals.get(SEEN, &id));
            row.is_some_and(|row| row.revoked_at.is_some())
        }
        "draft-discarded" => {
            let id: Option<DraftId> = named(act);
            let row = id.and_then(|id| case.tables.authoring.drafts.get(SEEN, &id));
            row.is_some_and(|row| row.state == DraftStateRow::Discarded)
        }
        _ => true,
    };
    match done {
        true => Ok(()),
        false => violation(
            "an act has its effect",
            format!("{} {:?}", act.action, act.subjects),
        ),
    }
}

fn operation<'a>(case: &Case<'a>, act: &ActRow) -> Option<&'a str> {
    let id: OperationId = named(act)?;
    let operation = case.tables.execution.operations.get(SEEN, &id)?;
    Some(&operation.row.state)
}

/// Nobody works on a machine that is written off: what it holds goes to another generation,
/// unresolved (EaR 7.3).
fn taken_from_its_owner(case: &Case<'_>, act: &ActRow) -> bool {
    let of: Option<MachineId> = named(act);
    let mut held = case
        .operations()
        .filter(|one| one.row.plan.is_some() && one.row.machine == of && holds(&one.row.state));
    held.all(|one| {
        let taken = case.changes.iter().any(|change| match change {
            Change::Operation(changed) => {
                let before = changed.before.as_ref();
                before.is_some_and(|before| before.row.id == one.row.id) && changes_hands(changed)
            }
            _ => false,
        });
        taken && one.row.state == "unresolved"
    })
}

fn approved(case: &Case<'_>, act: &ActRow) -> bool {
    let plan: Option<PlanId> = named(act);
    let states = &case.tables.execution.plan_states;
    let state = plan.and_then(|plan| states.get(SEEN, &plan));
    let approval: Option<ApprovalId> = named(act);
    state.is_some_and(|state| state.state == "approved" && state.approval == approval)
}

/// The cancellation is recorded, and of a plan that was not committed its state says so.
fn cancelled(case: &Case<'_>, act: &ActRow) -> bool {
    let execution = &case.tables.execution;
    let plan: Option<PlanId> = named(act);
    plan.is_some_and(|plan| {
        let state = execution.plan_states.get(SEEN, &plan);
        execution.cancellations.get(SEEN, &plan).is_some()
            && state.is_some_and(|state| matches!(state.state.as_str(), "cancelled" | "committed"))
    })
}

/// The revocation is recorded, and no plan goes on as approved by what it takes back (PA §5
/// T5b).
fn revoked(case: &Case<'_>, act: &ActRow) -> bool {
    let execution = &case.tables.execution;
    let approval: Option<ApprovalId> = named(act);
    approval.is_some_and(|id| {
        let record = execution.approvals.get(SEEN, &id);
        let plan = record.map(|record| record.approval.plan);
        let state = plan.and_then(|plan| execution.plan_states.get(SEEN, &plan));
        execution.approval_revocations.get(SEEN, &id).is_some()
            && state.is_some_and(|state| state.state != "approved" || state.approval != Some(id))
    })
}
