//! What an adoption rests on (EaR 6.3), and what a plan is made of (EaR 2, PA §9.3).

use bronzeward_core::plan::{Binding, PlanOperation};
use bronzeward_core::release::MachineType;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::Span;
use bronzeward_engine::ports::store::NewAdoption;
use bronzeward_engine::rows::{MachineRow, MachineStateRow, SourceRevisionId};

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::Change;
use crate::server::PLANS;

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        match change {
            Change::Adoption(changed) => {
                if let Some(after) = &changed.after {
                    adopted(case, after)?;
                }
            }
            Change::Plan(changed) => {
                if let (None, Some(after)) = (&changed.before, &changed.after) {
                    planned(case, &after.binding)?;
                }
            }
            Change::Approval(changed) => {
                if let Some(after) = &changed.after {
                    approved(case, after)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A machine's state before this commit changed it.
fn before<'a>(case: &'a Case<'_>, binding: &Binding) -> Option<&'a MachineStateRow> {
    let changed = case.changes.iter().find_map(|change| match change {
        Change::MachineState(machine, changed) if *machine == binding.machine => {
            changed.before.as_deref()
        }
        _ => None,
    });
    let states = &case.tables.authoring.machine_states;
    changed.or_else(|| states.get(SEEN, &binding.machine))
}

const ADOPTED: &str = "an adoption rests on what the node last showed";

fn adopted(case: &Case<'_>, new: &NewAdoption) -> Verdict {
    let binding = &*new.binding;
    let said = |what: &str| format!("{}: {what}", binding.id);
    let PlanOperation::Adopt {
        import_base_digest, ..
    } = binding.operation
    else {
        return violation(ADOPTED, said("not an adopt plan"));
    };
    let execution = &case.tables.execution;
    let of_machine = execution
        .observations
        .values(SEEN)
        .filter(|seen| seen.started.machine == binding.machine);
    let Some(last) = of_machine.max_by_key(|seen| seen.started.basis) else {
        return violation(ADOPTED, said("nothing was read"));
    };
    let approval = execution
        .plan_states
        .get(SEEN, &binding.id)
        .and_then(|state| execution.approvals.get(SEEN, &state.approval?));
    let approved = approval.map(|record| record.approval.revision);
    if approved.is_none_or(|approved| last.started.basis <= approved) {
        return violation(ADOPTED, said("the last reading began before the approval"));
    }
    if new.at - last.started.started_at > binding.max_observation_age {
        return violation(ADOPTED, said("the last reading is too old"));
    }
    if last.digest() != Some(import_base_digest) || new.applied.digest != import_base_digest {
        return violation(ADOPTED, said("another configuration"));
    }
    if !matches!(last.identity_mismatch(&binding.identity), Ok(None)) {
        return violation(ADOPTED, said("another node"));
    }
    if last.started.assignment != binding.assignment {
        return violation(ADOPTED, said("another assignment"));
    }
    stands(case, new)
}

/// What the plan compared itself with is as it was.
fn stands(case: &Case<'_>, new: &NewAdoption) -> Verdict {
    let binding = &*new.binding;
    let said = |what: &str| format!("{}: {what}", binding.id);
    let state = before(case, binding);
    let applied = state.and_then(|state| state.applied);
    if applied.map(|applied| applied.baseline) != binding.baseline {
        return violation(ADOPTED, said("another baseline"));
    }
    if state.and_then(|state| state.desired) != binding.desired {
        return violation(ADOPTED, said("another release is Desired"));
    }
    let closed = case.changes.iter().find_map(|change| match change {
        Change::Drift(changed) => {
            let was_open = changed.before.as_ref();
            let was_open = was_open.is_some_and(|before| before.closed.is_none());
            let after = changed.after.as_ref().filter(|_| was_open)?;
            after.closed.map(|_| after.drift.revision)
        }
        _ => None,
    });
    match closed == binding.drift {
        true => Ok(()),
        false => violation(ADOPTED, said("another drift record")),
    }
}

/// The longest length of time that a plan may ask for (PA §9.3).
const LONGEST: Span = Span::seconds(604_800);
const MADE: &str = "a plan is made of what is selected and known";

fn planned(case: &Case<'_>, binding: &Binding) -> Verdict {
    let said = |what: &str| format!("{}: {what}", binding.id);
    let authoring = &case.tables.authoring;
    let state = authoring.machine_states.get(SEEN, &binding.machine);
    let applied = state.and_then(|state| state.applied);
    let key = (binding.release, binding.machine);
    let Some(of) = case.tables.execution.release_machines.get(SEEN, &key) else {
        return violation(MADE, said("the release does not cover the machine"));
    };
    let assigned = of.new.assignment.and_then(|(_, revision)| revision);
    let mut heads = authoring.heads.values(SEEN);
    let machine = binding.machine.to_string();
    let head = heads.find(|head| head.row.subject == machine);
    let current = head.and_then(|head| match head.row.revision {
        Some(SourceRevisionId::Assignment(id)) => Some(id),
        _ => None,
    });
    if assigned != current {
        return violation(MADE, said("compiled from another assignment"));
    }
    let machine = authoring.machines.get(SEEN, &binding.machine);
    let unaccounted = |machine: &MachineRow| machine.scope == ScopeState::PreRestoreUnaccounted;
    if machine.is_none_or(unaccounted) {
        return violation(MADE, said("lost attempts may still land"));
    }
    if binding.expires_at - binding.created_at > LONGEST {
        return violation(MADE, said("a length beyond its bounds"));
    }
    match binding.operation {
        PlanOperation::Adopt { .. } => {
            if applied.is_some() && binding.drift.is_none() {
                return violation(MADE, said("adopts what is known"));
            }
        }
        PlanOperation::ApplyConfig(deadlines) => {
            if state.and_then(|state| state.desired) != Some(binding.release) {
                return violation(MADE, said("another release is Desired"));
            }
            if applied.is_none() {
                return violation(MADE, said("nothing to compare the node with"));
            }
            if of.new.machine_type != MachineType::Worker {
                return violation(MADE, said("not a worker"));
            }
            let most = Span::seconds(PLANS.max_transport);
            if deadlines.transport > most || deadlines.transport > deadlines.verification {
                return violation(MADE, said("a deadline beyond its bounds"));
            }
        }
    }
    Ok(())
}

fn approved(case: &Case<'_>, record: &crate::store::execution::ApprovalRecord) -> Verdict {
    let approval = &record.approval;
    let all = case.tables.execution.approvals.values(SEEN);
    let same = all
        .filter(|one| one.approval.plan == approval.plan && one.approval.epoch == approval.epoch);
    if same.count() > 1 {
        return violation(
            "one approval per plan and epoch",
            format!("{}", approval.id),
        );
    }
    let binding = case.binding(approval.plan);
    if binding.is_none_or(|binding| approval.at >= binding.expires_at) {
        return violation(
            "an expired plan is not approved",
            format!("{}", approval.id),
        );
    }
    Ok(())
}
