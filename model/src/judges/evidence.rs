//! What an attempt's evidence and its classification are, beside its values (EaR 3.1, 3.3,
//! 8.7, 8.10): whose they are, how old, and what came after them.

use bronzeward_core::attempt::Attempt;
use bronzeward_core::comparison::{ArtifactCheck, Comparison};
use bronzeward_core::plan::Binding;
use bronzeward_core::problem::Member;
use bronzeward_engine::ports::store::EntryRow;
use bronzeward_engine::rows::OperationRow;

use super::case::{Case, SEEN};
use super::{Verdict, dispatch, violation};
use crate::change::Change;
use crate::store::execution::AttemptRow;

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        if let Change::Entry(_, changed) = change
            && let Some(entry) = &changed.after
            && entry.kind == "refusal"
        {
            refused(case, entry)?;
        }
        let Change::Attempt(changed) = change else {
            continue;
        };
        let Some(row) = &changed.after else { continue };
        let operation = case.operation(row.attempt.operation);
        let plan = operation.and_then(|operation| operation.row.plan);
        if let Some(binding) = plan.and_then(|plan| case.binding(plan)) {
            gathered(case, binding, row)?;
        }
        classified(case, &row.attempt)?;
    }
    Ok(())
}

/// A publication after the commitment leaves the operation alone: an attempt is not refused
/// because another release is Desired by now (EaR 3.3).
fn refused(case: &Case<'_>, entry: &EntryRow) -> Verdict {
    let binding = entry.plan.and_then(|plan| case.binding(plan));
    let (Some(_), Some(binding), Member::Object(members)) = (entry.operation, binding, &entry.data)
    else {
        return Ok(());
    };
    let compared = Member::Number(i64::from(Comparison::Binding.number()));
    let named = members
        .values()
        .any(|member| matches!(member, Member::List(failed) if failed.contains(&compared)));
    match named && dispatch::unchanged(case, binding, false).is_ok() {
        true => violation(
            "a publication after the commitment leaves its operation alone",
            format!("{:?}", entry.operation),
        ),
        false => Ok(()),
    }
}

const FRESH: &str = "an attempt rests on fresh evidence";

fn gathered(case: &Case<'_>, binding: &Binding, row: &AttemptRow) -> Verdict {
    let attempt = &row.attempt;
    let said = |what: &str| format!("{}: {what}", attempt.id);
    let execution = &case.tables.execution;
    let seen = execution.observations.get(SEEN, &attempt.evidence);
    let check = execution.checks.get(SEEN, &(binding.machine, row.check.0));
    let (Some(seen), Some(check)) = (seen, check.map(|row| &row.check)) else {
        return violation(FRESH, said("no evidence or no check"));
    };
    let owner = &attempt.fence.owner;
    if seen.started.controller.owner != *owner || check.controller.owner != *owner {
        return violation(FRESH, said("another controller's"));
    }
    if check.plan != binding.id || check.artifact != ArtifactCheck::Matches {
        return violation(FRESH, said("a check of something else"));
    }
    if attempt.at - check.at > binding.check_validity {
        return violation(FRESH, said("a check that has run out"));
    }
    if check.access.value() != Some(&attempt.access) {
        return violation(FRESH, said("a check of another access version"));
    }
    let minor = seen.values.running_version.value();
    if minor.is_none_or(|running| running.contract != binding.renderer.contract) {
        return violation(FRESH, said("another minor"));
    }
    let mut newer = execution.observations.values(SEEN).filter(|one| {
        one.started.machine == binding.machine && one.started.basis > seen.started.basis
    });
    let differs = newer.any(|one| {
        matches!(one.identity_mismatch(&binding.identity), Ok(Some(_)))
            || one.started.assignment != binding.assignment
    });
    match differs || seen.started.assignment != binding.assignment {
        true => violation(FRESH, said("another identity or assignment")),
        false => Ok(()),
    }
}

/// What makes a classification stale.
const SINCE: [&str; 3] = ["response", "ownership-transition", "classification"];

/// An unresolved operation sends only what its owner classified as safe, and nothing came
/// after the classification.
fn classified(case: &Case<'_>, attempt: &Attempt) -> Verdict {
    let before = case.changes.iter().find_map(|change| match change {
        Change::Operation(changed) => changed
            .before
            .as_ref()
            .filter(|before| before.row.id == attempt.operation),
        _ => None,
    });
    let Some(row) = before.map(|before| &before.row) else {
        return Ok(());
    };
    if row.state != "unresolved" {
        return Ok(());
    }
    let id = attempt.id;
    let Some((revision, generation)) = row.classified else {
        return violation("a retry was classified as safe", format!("{id}"));
    };
    if generation != attempt.fence.generation.0 {
        let said = format!("{id}: by another owner");
        return violation("a retry was classified as safe", said);
    }
    if attempt.number > 1 && since(case, row, revision.0, attempt.revision.0) {
        return violation(
            "nothing came between a classification and its retry",
            format!("{id}"),
        );
    }
    Ok(())
}

fn since(case: &Case<'_>, row: &OperationRow, after: i64, before: i64) -> bool {
    let Some(machine) = row.machine.filter(|_| after < before) else {
        return false;
    };
    let timeline = &case.tables.execution.timelines;
    let mut between = timeline.range(SEEN, (machine, after + 1)..(machine, before));
    between
        .any(|(_, entry)| entry.operation == Some(row.id) && SINCE.contains(&entry.kind.as_str()))
}
