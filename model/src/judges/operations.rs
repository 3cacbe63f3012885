//! Operations: their states, their holders, their ends (EaR 4, 8.1, 8.5, 8.11), and the leases
//! of jobs, which count from when the job's row is held (PA §5.1).

use bronzeward_core::attempt::ResponseClass;
use bronzeward_engine::rows::OperationRow;

use super::case::Case;
use super::{Verdict, violation};
use crate::change::{Change, Changed};
use crate::pg::Relation;
use crate::server::{CLAIM_LEASE, LEASE};
use crate::store::execution::{Operation, holds};

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        if let Change::Operation(changed) = change {
            look_at(case, changed)?;
        }
    }
    Ok(())
}

fn look_at(case: &Case<'_>, changed: &Changed<Operation>) -> Verdict {
    let Some(after) = &changed.after else {
        return violation("operations are kept", "an operation is gone");
    };
    let id = after.row.id;
    match &changed.before {
        None => begun(case, &after.row)?,
        Some(before) => {
            moved(case, &before.row, &after.row)?;
        }
    }
    leased(
        case,
        changed.before.as_ref().map(|one| &one.row),
        &after.row,
    )?;
    if after.row.plan.is_some() && holds(&after.row.state) && !after.retired {
        holder(case, after)?;
    }
    if after.row.plan.is_some() && !holds(&after.row.state) && after.row.kind != "adopt" {
        ended(case, &after.row)?;
    }
    if let Some(plan) = after.row.plan {
        let same = case.operations().filter(|one| one.row.plan == Some(plan));
        if same.count() > 1 {
            return violation("one operation per plan", format!("{id} of {plan}"));
        }
    }
    Ok(())
}

/// Nobody is given more than the one length (PA §5.1): for as long as that, nobody else takes
/// what its owner left.
fn leased(case: &Case<'_>, before: Option<&OperationRow>, after: &OperationRow) -> Verdict {
    let was = before.and_then(|before| before.lease_until);
    let length = match after.kind.as_str() {
        "ingest" => CLAIM_LEASE,
        _ => LEASE,
    };
    let given = after.lease_until.filter(|until| Some(*until) != was);
    match given.is_some_and(|until| until > case.now + length) {
        true => violation("a lease has its length", format!("{}", after.id)),
        false => Ok(()),
    }
}

fn begun(case: &Case<'_>, row: &OperationRow) -> Verdict {
    let legal = match row.kind.as_str() {
        "publish" => row.state == "queued",
        "ingest" => row.state == "running",
        "apply-config" => row.state == "committed",
        "adopt" => row.state == "completed",
        _ => false,
    };
    if !legal {
        let said = format!("{} begins {} as {}", row.id, row.kind, row.state);
        return violation("an operation's states", said);
    }
    if row.draft.is_some() && matches!(row.kind.as_str(), "publish" | "ingest") {
        let same = case.operations().filter(|one| {
            one.row.draft == row.draft
                && one.row.kind == row.kind
                && matches!(one.row.state.as_str(), "queued" | "running")
        });
        if same.count() > 1 {
            return violation("one active job per draft revision", format!("{}", row.id));
        }
    }
    Ok(())
}

const MOVES: &[(&str, &[&str])] = &[
    ("committed", &["sending", "unresolved"]),
    ("sending", &["verifying", "rejected", "unresolved"]),
    ("verifying", &["completed", "failed", "unresolved"]),
    (
        "unresolved",
        &["completed", "failed", "rejected", "sending", "cancelled"],
    ),
    ("queued", &["running", "failed"]),
    ("running", &["succeeded", "failed"]),
];

fn moved(case: &Case<'_>, before: &OperationRow, after: &OperationRow) -> Verdict {
    let (from, to) = (before.state.as_str(), after.state.as_str());
    let mut moves = MOVES.iter().filter(|(state, _)| *state == from);
    let listed = moves.next().is_some_and(|(_, states)| states.contains(&to));
    if from != to && !listed {
        let said = format!("{}: {from} to {to}", before.id);
        return violation("an operation's states", said);
    }
    if to == "verifying" && from != to {
        let attempts = case.attempts(before.id);
        let last = attempts.last().and_then(|attempt| attempt.class());
        if last != Some(ResponseClass::Accepted) {
            let said = format!("{}", before.id);
            return violation("only what was accepted is verified", said);
        }
    }
    if (before.plan, before.machine, before.cluster) != (after.plan, after.machine, after.cluster) {
        return violation(
            "what an operation is for never changes",
            format!("{}", before.id),
        );
    }
    let end = |row: &OperationRow| {
        let ended = !matches!(row.state.as_str(), "queued" | "running") && !holds(&row.state);
        let results = (
            row.result_release,
            row.result_import_base,
            row.error.clone(),
        );
        ended.then(|| (row.state.clone(), row.lease_until, results))
    };
    if end(before).is_some_and(|ended| end(after) != Some(ended)) {
        return violation("what has ended stays as it ended", format!("{}", before.id));
    }
    owners(case, before, after)?;
    job(case, before, after)
}

/// A publication is ended by an owner whose lease is live once it holds the row, and claimed
/// from then on (PA §5.1). A recovery entry ends it too, by an act.
fn job(case: &Case<'_>, before: &OperationRow, after: &OperationRow) -> Verdict {
    if before.kind != "publish" {
        return Ok(());
    }
    let id = before.id;
    let held = case.held_from((Relation::Operation, id.bits()));
    let same = before.fence == after.fence;
    let ended = before.state == "running" && after.state != "running";
    if same && ended && !case.is_act() && before.lease_until.is_none_or(|until| until <= held) {
        return violation("a lapsed owner ends nothing", format!("{id}"));
    }
    let leased = after.lease_until.filter(|_| after.state == "running");
    let counted = leased.filter(|_| after.lease_until != before.lease_until);
    match counted.is_some_and(|until| until - LEASE < held) {
        true => violation("a lease counts from when its row is held", format!("{id}")),
        false => Ok(()),
    }
}

/// Ownership goes one generation at a time, from a lapsed lease or by a person's act, and
/// only the owner moves what it owns (PA §5.1, EaR 3.4).
fn owners(case: &Case<'_>, before: &OperationRow, after: &OperationRow) -> Verdict {
    let (Some(was), Some(is)) = (&before.fence, &after.fence) else {
        return Ok(());
    };
    let id = before.id;
    let generations = is.generation.0 - was.generation.0;
    if !(0..=1).contains(&generations) {
        let said = format!("{id}: {} to {}", was.generation, is.generation);
        return violation("generations go up by one", said);
    }
    let asked = case.is_act();
    if generations == 1 {
        // An ingestion's job follows its claim, whose own lapse is judged there.
        let at = after.lease_until.map(|until| until - LEASE);
        let live = before
            .lease_until
            .zip(at)
            .is_some_and(|(until, at)| until > at);
        if live && !asked && before.kind != "ingest" {
            return violation("a live owner is not replaced", format!("{id}"));
        }
        if after.plan.is_some() && after.state != "unresolved" {
            return violation("a takeover decides nothing", format!("{id}"));
        }
        return Ok(());
    }
    if was.owner != is.owner || was.epoch != is.epoch {
        return violation("an owner changes with its generation", format!("{id}"));
    }
    if !asked && before.kind != "ingest" && case.owner.is_some_and(|owner| *owner != was.owner) {
        let said = format!("{id}: {} to {}", before.state, after.state);
        return violation("only the owner moves its operation", said);
    }
    if after.lease_until > before.lease_until && before.kind != "ingest" {
        let held = case.held_from((Relation::Operation, id.bits()));
        let at = after.lease_until.map(|until| held.max(until - LEASE));
        if before
            .lease_until
            .zip(at)
            .is_some_and(|(until, at)| until <= at)
        {
            return violation("a lapsed lease is not extended", format!("{id}"));
        }
    }
    Ok(())
}

fn holder(case: &Case<'_>, held: &Operation) -> Verdict {
    let others = || {
        let all = case.operations();
        all.filter(|one| one.row.plan.is_some() && holds(&one.row.state) && !one.retired)
    };
    let id = held.row.id;
    if others()
        .filter(|one| one.row.machine == held.row.machine)
        .count()
        > 1
    {
        return violation("one holder per scope", format!("{id}"));
    }
    if others()
        .filter(|one| one.row.cluster == held.row.cluster)
        .count()
        > 1
    {
        return violation("one holder per rollout", format!("{id}"));
    }
    Ok(())
}

/// What each terminal state says of its attempts (EaR 4).
fn ended(case: &Case<'_>, row: &OperationRow) -> Verdict {
    let attempts = case.attempts(row.id);
    let id = row.id;
    if attempts.iter().any(|one| one.accounted_at().is_none()) {
        let said = format!("{id} is {} with an attempt unaccounted", row.state);
        return violation("an end accounts for every attempt", said);
    }
    let refused = |one: &bronzeward_core::attempt::Attempt| {
        one.class() == Some(ResponseClass::RefusedValidation)
    };
    let good = match row.state.as_str() {
        "completed" | "failed" => !attempts.is_empty(),
        "rejected" => !attempts.is_empty() && attempts.iter().all(refused),
        "cancelled" => attempts.is_empty(),
        _ => true,
    };
    match good {
        true => Ok(()),
        false => {
            let said = format!("{id} is {} after {} attempts", row.state, attempts.len());
            violation("an end fits its attempts", said)
        }
    }
}
