//! What a commitment and an attempt rest on, when they committed (EaR 3.2, 3.3, 8.7 to 8.10).
//!
//! Read from the rows themselves, beside `core`'s own comparisons.

use bronzeward_core::attempt::{Attempt, ResponseClass};
use bronzeward_core::id::{ApprovalId, OperationId, PlanId};
use bronzeward_core::observation::Purpose;
use bronzeward_core::plan::{Binding, PlanOperation};
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::DbTime;
use bronzeward_engine::rows::OperationRow;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::Change;

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        match change {
            Change::Operation(changed) => {
                if let (None, Some(after)) = (&changed.before, &changed.after)
                    && let Some(plan) = after.row.plan
                {
                    commitment(case, &after.row, plan)?;
                }
            }
            Change::Attempt(changed) => {
                if let Some(after) = &changed.after {
                    attempt(case, &after.attempt)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn commitment(case: &Case<'_>, row: &OperationRow, plan: PlanId) -> Verdict {
    let Some(binding) = case.binding(plan) else {
        return violation("an operation has its plan", format!("{}", row.id));
    };
    authorised(case, binding, row.id, row.created_at)?;
    gate(case, binding)?;
    unchanged(case, binding, row.kind == "adopt")?;
    let state = case
        .tables
        .authoring
        .machine_states
        .get(SEEN, &binding.machine);
    let desired = state.and_then(|state| state.desired);
    if row.kind != "adopt" && desired != binding.desired {
        return violation("Desired stands at the commitment", format!("{}", row.id));
    }
    if row.fence.as_ref().map(|fence| fence.epoch) != case.epoch() {
        return violation("only the current epoch commits", format!("{}", row.id));
    }
    Ok(())
}

fn attempt(case: &Case<'_>, attempt: &Attempt) -> Verdict {
    let id = attempt.id;
    let Some(operation) = case.operation(attempt.operation) else {
        return violation("an attempt has its operation", format!("{id}"));
    };
    if operation.row.fence.as_ref() != Some(&attempt.fence) {
        return violation("an attempt is its owner's", format!("{id}"));
    }
    if Some(attempt.fence.epoch) != case.epoch() {
        return violation("only the current epoch attempts", format!("{id}"));
    }
    if case
        .owner
        .is_some_and(|owner| *owner != attempt.fence.owner)
    {
        return violation("an attempt is its owner's", format!("{id}"));
    }
    let plan = operation.row.plan.and_then(|plan| case.binding(plan));
    let Some(binding) = plan else {
        return violation("an attempt has its plan", format!("{id}"));
    };
    authorised(case, binding, attempt.operation, attempt.at)?;
    gate(case, binding)?;
    unchanged(case, binding, false)?;
    earlier(case, binding, attempt)?;
    waits(binding, attempt)?;
    evidence(case, binding, attempt)
}

/// An attempt waits as long as its plan was approved for, from when it was recorded (EaR 3.3):
/// accountings count from the end of that wait.
fn waits(binding: &Binding, attempt: &Attempt) -> Verdict {
    let bound = binding.deadlines();
    let waits = bound.is_some_and(|bound| {
        attempt.transport_deadline == attempt.at + bound.transport
            && attempt.verification_deadline == attempt.at + bound.verification
    });
    match waits {
        true => Ok(()),
        false => violation(
            "an attempt's deadlines are its plan's",
            format!("{}", attempt.id),
        ),
    }
}

/// Somebody stands behind the plan now (comparison 1).
pub(super) fn authorised(
    case: &Case<'_>,
    binding: &Binding,
    operation: OperationId,
    at: DbTime,
) -> Verdict {
    let plan = binding.id;
    let execution = &case.tables.execution;
    let state = execution.plan_states.get(SEEN, &plan);
    let committed = state.is_some_and(|state| state.operation == Some(operation));
    if !committed {
        return violation("a plan is committed to its operation", format!("{plan}"));
    }
    if at >= binding.expires_at {
        return violation("an expired plan authorises nothing", format!("{plan}"));
    }
    if execution.cancellations.get(SEEN, &plan).is_some() {
        return violation("a cancelled plan authorises nothing", format!("{plan}"));
    }
    let approval: Option<ApprovalId> = state.and_then(|state| state.approval);
    let approval = approval.and_then(|id| execution.approvals.get(SEEN, &id));
    let Some(approval) = approval.map(|record| &record.approval) else {
        return violation("an approval stands behind the plan", format!("{plan}"));
    };
    if execution
        .approval_revocations
        .get(SEEN, &approval.id)
        .is_some()
    {
        return violation("a revoked approval authorises nothing", format!("{plan}"));
    }
    if Some(approval.epoch) != case.epoch() {
        return violation("nothing from another epoch authorises", format!("{plan}"));
    }
    let approver = case
        .tables
        .authoring
        .principals
        .get(SEEN, &approval.approver.principal);
    if approver.is_none_or(|row| row.revoked_at.is_some()) {
        return violation("a revoked approver authorises nothing", format!("{plan}"));
    }
    Ok(())
}

/// Comparison 6.
pub(super) fn gate(case: &Case<'_>, binding: &Binding) -> Verdict {
    let machine = case.tables.authoring.machines.get(SEEN, &binding.machine);
    let Some(machine) = machine else {
        return violation("a plan has its machine", format!("{}", binding.id));
    };
    if machine.scope == ScopeState::Retired {
        let said = format!("{} is written off", machine.id);
        return violation("no mutation through a closed gate", said);
    }
    // A freeze stops what would be sent, and no adoption record (EaR 6.2).
    let sends = matches!(binding.operation, PlanOperation::ApplyConfig(_));
    if sends && machine.frozen {
        return violation(
            "no mutation through a closed gate",
            format!("{} is frozen", machine.id),
        );
    }
    let recovering = case.tables.authoring.installation.get(SEEN, &());
    let recovering = recovering.is_some_and(|row| row.recovery_mode);
    let released =
        matches!(machine.scope, ScopeState::Released { epoch } if Some(epoch) == case.epoch());
    if recovering && !released {
        return violation(
            "no mutation through a closed gate",
            format!("{}", machine.id),
        );
    }
    let open = open_drift(case, binding.machine);
    let closed_now = case.changes.iter().any(|change| {
        matches!(change, Change::Drift(changed)
            if changed.after.as_ref().is_some_and(|drift| drift.closed.is_some()))
    });
    if !closed_now && open != binding.drift {
        let said = format!("{}: a drift record the plan does not bind", machine.id);
        return violation("no mutation through a closed gate", said);
    }
    Ok(())
}

fn open_drift(
    case: &Case<'_>,
    machine: bronzeward_core::id::MachineId,
) -> Option<bronzeward_core::revision::TimelineRevision> {
    let drifts = &case.tables.execution.drifts;
    let mut of = drifts.range(SEEN, (machine, 0)..=(machine, i64::MAX));
    of.find(|(_, drift)| drift.closed.is_none())
        .map(|((_, opened), _)| bronzeward_core::revision::TimelineRevision(*opened))
}

/// Comparison 2, but for Desired. An adoption changes the baseline itself.
pub(super) fn unchanged(case: &Case<'_>, binding: &Binding, adopt: bool) -> Verdict {
    let authoring = &case.tables.authoring;
    let state = authoring.machine_states.get(SEEN, &binding.machine);
    let baseline = state
        .and_then(|state| state.applied)
        .map(|applied| applied.baseline);
    if !adopt && baseline != binding.baseline {
        return violation("the baseline is the bound one", format!("{}", binding.id));
    }
    let heads = authoring.heads.values(SEEN);
    let mut of = heads.filter(|head| head.row.subject == binding.machine.to_string());
    let current = of.find(|head| matches!(head.row.id, bronzeward_core::id::HeadId::Assignment(_)));
    let bound = binding.assignment_revision;
    let now = current.and_then(|head| match head.row.revision {
        Some(bronzeward_engine::rows::SourceRevisionId::Assignment(id)) => Some(id),
        _ => None,
    });
    if now != bound {
        return violation("the assignment is the bound one", format!("{}", binding.id));
    }
    Ok(())
}

/// What a retry needs of the attempts before it (comparisons 8 and 9, EaR 5).
fn earlier(case: &Case<'_>, binding: &Binding, attempt: &Attempt) -> Verdict {
    let all = case.attempts(attempt.operation);
    let before: Vec<&Attempt> = all
        .iter()
        .filter(|one| one.number < attempt.number)
        .collect();
    let id = attempt.id;
    let PlanOperation::ApplyConfig(deadlines) = binding.operation else {
        return violation("only an apply-config plan sends", format!("{id}"));
    };
    if attempt.number > deadlines.max_attempts {
        return violation("no more attempts than the plan allows", format!("{id}"));
    }
    if all
        .iter()
        .filter(|one| one.number == attempt.number)
        .count()
        > 1
    {
        return violation("attempts are numbered once", format!("{id}"));
    }
    if before.iter().any(|one| one.accounted_at().is_none()) {
        return violation(
            "nothing is sent beside an unaccounted attempt",
            format!("{id}"),
        );
    }
    let decided = before.iter().any(|one| {
        matches!(
            one.class(),
            Some(
                ResponseClass::Accepted
                    | ResponseClass::RefusedValidation
                    | ResponseClass::RefusedImmediate
            )
        )
    });
    if decided {
        return violation("nothing is sent after a decided attempt", format!("{id}"));
    }
    Ok(())
}

/// Comparison 3.
fn evidence(case: &Case<'_>, binding: &Binding, attempt: &Attempt) -> Verdict {
    let id = attempt.id;
    let seen = case
        .tables
        .execution
        .observations
        .get(SEEN, &attempt.evidence);
    let Some(seen) = seen else {
        return violation("an attempt rests on evidence", format!("{id}"));
    };
    let said = |what: &str| format!("{id}: {what}");
    const FRESH: &str = "an attempt rests on fresh evidence";
    if seen.started.purpose != Purpose::Evidence || seen.started.plan != Some(binding.id) {
        return violation(FRESH, said("another purpose or plan"));
    }
    if seen.started.machine != binding.machine || seen.started.endpoint != binding.route {
        return violation(FRESH, said("another machine or route"));
    }
    let age = attempt.at.as_micros() - seen.started.started_at.as_micros();
    let most = binding.max_observation_age.as_micros();
    // The age counts from the recording; the reading began before it.
    let recorded = attempt.at.as_micros() - seen.at.as_micros();
    if age.min(recorded) > most {
        return violation(FRESH, said("too old"));
    }
    if seen.values.access.value() != Some(&attempt.access) {
        return violation(FRESH, said("another access version"));
    }
    match seen.identity_mismatch(&binding.identity) {
        Ok(None) => {}
        _ => return violation(FRESH, said("another machine's identity")),
    }
    let retry = attempt.number > 1;
    let digest = seen.digest();
    let expected = digest == Some(binding.pre_dispatch_digest)
        || (retry && digest == Some(binding.artifact_digest));
    if !expected {
        return violation(FRESH, said("another configuration"));
    }
    let observations = case.tables.execution.observations.values(SEEN);
    let newer = observations.filter(|one| {
        one.started.machine == binding.machine && one.started.basis > seen.started.basis
    });
    for one in newer {
        let differs = one.digest().is_some_and(|other| Some(other) != digest);
        if differs {
            return violation(FRESH, said("a newer reading contradicts it"));
        }
    }
    Ok(())
}
