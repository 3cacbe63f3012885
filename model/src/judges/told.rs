//! What is told: each change of what a machine's timeline keeps has its entry in the same commit,
//! and a job's end its event (EaR 4.1, PA §5 T4 to T11, §8.2, §12.2).
//!
//! A reader of the timeline, and whatever looks at what came after a reading, sees nothing else.
//! Never in this module: whether an entry is true of what it names.

use bronzeward_core::id::{MachineId, PrincipalId};
use bronzeward_core::scope::ScopeState;
use bronzeward_engine::ports::store::{ActRow, EntryRow};
use bronzeward_engine::rows::MachineRow;

use super::case::{Case, SEEN, changes_hands};
use super::{Verdict, violation};
use crate::change::{Change, Changed};
use crate::store::execution::{Drift, Operation, holds};

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        match change {
            Change::Operation(changed) => operation(case, changed)?,
            Change::Machine(changed) => machine(case, changed)?,
            Change::Drift(changed) => drift(case, changed)?,
            Change::Act(changed) => {
                if let Some(act) = &changed.after {
                    acted(case, &act.row)?;
                }
            }
            _ => recorded(case, change)?,
        }
    }
    Ok(())
}

/// That this commit appends such an entry to the machine's timeline.
fn told(case: &Case<'_>, of: MachineId, kind: &str, is: impl Fn(&EntryRow) -> bool) -> Verdict {
    match case.appends(of, kind, is) {
        true => Ok(()),
        false => violation(
            "what changes is in its machine's timeline",
            format!("no {kind} of {of}"),
        ),
    }
}

/// Records that are made once, each at its entry's revision or of its own name.
fn recorded(case: &Case<'_>, change: &Change) -> Verdict {
    match change {
        Change::Plan(changed) => {
            let Some(plan) = changed.after.as_ref().map(|record| &record.binding) else {
                return Ok(());
            };
            told(case, plan.machine, "plan", |entry| {
                entry.number == plan.timeline_revision.0 && entry.plan == Some(plan.id)
            })
        }
        Change::Observation(changed) => match &changed.after {
            Some(seen) => told(case, seen.started.machine, "observation", |entry| {
                entry.number == seen.revision.0
            }),
            None => Ok(()),
        },
        Change::Response(changed) => match &changed.after {
            Some(answer) => told(case, answer.machine, "response", |entry| {
                let own = entry.operation == Some(answer.operation);
                own && entry.number == answer.response.revision.0
            }),
            None => Ok(()),
        },
        Change::Accounting(changed) => match &changed.after {
            Some(accounting) => told(case, accounting.machine, "accounting", |entry| {
                entry.number == accounting.revision.0 && entry.operation.is_some()
            }),
            None => Ok(()),
        },
        Change::MachineState(machine, changed) => {
            let applied = |state: &Option<std::sync::Arc<_>>| {
                let state: Option<&bronzeward_engine::rows::MachineStateRow> = state.as_deref();
                state.and_then(|state| state.applied)
            };
            let (before, after) = (applied(&changed.before), applied(&changed.after));
            match after.filter(|_| before != after) {
                Some(after) => told(case, *machine, "applied-change", |entry| {
                    entry.operation == Some(after.operation)
                }),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn operation(case: &Case<'_>, changed: &Changed<Operation>) -> Verdict {
    let Some(after) = changed.after.as_ref().map(|one| &one.row) else {
        return Ok(());
    };
    let before = changed.before.as_ref().map(|one| &one.row);
    let moved = before.is_none_or(|before| before.state != after.state);
    let (Some(_), Some(of)) = (after.plan, after.machine) else {
        return match moved && matches!(after.state.as_str(), "succeeded" | "failed") {
            true => job_ended(case, after.id, &after.state),
            false => Ok(()),
        };
    };
    let own = |entry: &EntryRow| entry.operation == Some(after.id);
    if before.is_none() {
        let kind = match after.kind.as_str() {
            "adopt" => "adoption-record",
            _ => "commitment",
        };
        told(case, of, kind, own)?;
    }
    if moved {
        told(case, of, "operation-state", own)?;
    }
    if changes_hands(changed) {
        told(case, of, "ownership-transition", own)?;
    }
    match (
        before.and_then(|before| before.classified),
        after.classified,
    ) {
        (was, Some(is)) if was != Some(is) => told(case, of, "classification", |entry| {
            own(entry) && entry.number == is.0.0
        }),
        _ => Ok(()),
    }
}

/// A job that ends has its terminal event as its last (PA §8.2).
fn job_ended(case: &Case<'_>, job: bronzeward_core::id::OperationId, state: &str) -> Verdict {
    let events = &case.tables.execution.events;
    let last = events.range(SEEN, (job, 0)..=(job, i64::MAX)).next_back();
    match last.is_some_and(|(_, event)| event.kind == state) {
        true => Ok(()),
        false => violation("a job's end is its last event", format!("{job} {state}")),
    }
}

/// A machine's endpoint, its freeze, and its scope with what moved it.
fn machine(case: &Case<'_>, changed: &Changed<MachineRow>) -> Verdict {
    let (Some(before), Some(after)) = (&changed.before, &changed.after) else {
        return Ok(());
    };
    let of = after.id;
    let any = |_: &EntryRow| true;
    if before.endpoint != after.endpoint {
        told(case, of, "endpoint-change", any)?;
    }
    match (before.frozen, after.frozen) {
        (false, true) => told(case, of, "freeze", any)?,
        (true, false) => told(case, of, "unfreeze", any)?,
        _ => {}
    }
    if before.scope == after.scope {
        return Ok(());
    }
    told(case, of, "scope-state", any)?;
    match (before.scope, after.scope) {
        (ScopeState::PreRestoreUnaccounted, ScopeState::Blocked | ScopeState::Unresolved) => {
            told(case, of, "accounting", |entry| entry.operation.is_none())
        }
        (_, ScopeState::PreRestoreUnaccounted) => told(case, of, "recovery-entry", any),
        (_, ScopeState::Released { .. }) => told(case, of, "scope-release", any),
        (_, ScopeState::Retired) => told(case, of, "decommission", any),
        _ => Ok(()),
    }
}

fn drift(case: &Case<'_>, changed: &Changed<Drift>) -> Verdict {
    let Some(after) = &changed.after else {
        return Ok(());
    };
    let (of, opened) = (after.drift.machine, after.drift.revision.0);
    if changed.before.is_none() {
        told(case, of, "drift-opened", |entry| entry.number == opened)?;
    }
    let before = changed.before.as_ref();
    let was_open = before.is_none_or(|before| before.closed.is_none());
    match after.closed.filter(|_| was_open) {
        Some(closed) => told(case, of, "drift-closed", |entry| {
            entry.number == closed.revision.0
        }),
        None if before.is_some() => told(case, of, "drift-extended", |_| true),
        None => Ok(()),
    }
}

/// What takes authority back is read from the timelines alone (PA §5 T5b, T5c, T11).
fn acted(case: &Case<'_>, act: &ActRow) -> Verdict {
    let kind = match act.action.as_str() {
        "approval-revoked" => "approval-revocation",
        "plan-cancelled" => "cancellation",
        "identity-revoked" => return identity_revoked(case, act),
        _ => return Ok(()),
    };
    let machines = case.tables.authoring.machines.values(SEEN);
    let mut named = machines.filter(|row| act.subjects.contains(&row.id.to_string()));
    match named.next() {
        Some(machine) => told(case, machine.id, kind, |entry| entry.act == Some(act.id)),
        None => violation(
            "what changes is in its machine's timeline",
            format!("{} names no machine", act.action),
        ),
    }
}

/// Each machine with a plan that this identity approved, where the plan or its operation has not
/// ended, is told of it.
fn identity_revoked(case: &Case<'_>, act: &ActRow) -> Verdict {
    let named = |subject: &String| PrincipalId::parse(subject).ok();
    let Some(identity) = act.subjects.iter().find_map(named) else {
        return Ok(());
    };
    let execution = &case.tables.execution;
    for record in execution.approvals.values(SEEN) {
        let approval = &record.approval;
        let state = execution.plan_states.get(SEEN, &approval.plan);
        let (Some(state), Some(binding)) = (state, case.binding(approval.plan)) else {
            continue;
        };
        let live = match state.state.as_str() {
            "approved" => binding.expires_at > act.at,
            "committed" => {
                let operation = state.operation.and_then(|of| case.operation(of));
                operation.is_some_and(|one| holds(&one.row.state) && !one.retired)
            }
            _ => false,
        };
        if approval.approver.principal == identity && live {
            told(case, record.machine, "identity-revocation", |entry| {
                entry.act == Some(act.id)
            })?;
        }
    }
    Ok(())
}
