//! Drift records (EaR 6.1, 8.12), and the times of acts (PA §5 rule 4, §10.5).
//!
//! A record is opened, extended or closed by a reading that still speaks of the Applied it was
//! compared with, of a machine on which nothing was under way.

use std::ops::Bound;

use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::drift::{OpenDrift, Resolution};
use bronzeward_core::id::{MachineId, ObservationId};
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_core::plan::PlanOperation;
use bronzeward_core::problem::Member;
use bronzeward_engine::ports::store::EntryRow;
use bronzeward_engine::rows::AppliedRow;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::{Change, Changed};
use crate::store::authoring::Act;
use crate::store::execution::{Drift, Operation, holds};

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        match change {
            Change::Drift(changed) => {
                drift(case, changed)?;
                closed(case, changed)?;
                linked(changed)?;
            }
            Change::Operation(changed) => reverted(case, changed)?,
            Change::Observation(changed) => {
                if let Some(seen) = &changed.after {
                    detected(case, seen)?;
                }
            }
            Change::Entry(machine, changed) => {
                if let Some(entry) = &changed.after {
                    refused(case, *machine, entry)?;
                    failed(case, entry)?;
                }
            }
            Change::Act(changed) => act(case, changed)?,
            _ => {}
        }
    }
    Ok(())
}

const RECORD: &str = "a drift record says what a machine last showed";

fn drift(case: &Case<'_>, changed: &Changed<Drift>) -> Verdict {
    let Some(after) = &changed.after else {
        return violation(RECORD, "a record is gone");
    };
    let record = &after.drift;
    let closed = after.closed.as_ref();
    if closed.is_some_and(|closed| closed.resolution != Resolution::Returned) {
        // By a completion or an adoption, which have judges of their own.
        return Ok(());
    }
    let said = |what: &str| format!("{} of {}: {what}", record.revision.0, record.machine);
    let all = &case.tables.execution.drifts;
    let mut of = all.range(SEEN, (record.machine, 0)..=(record.machine, i64::MAX));
    if of.by_ref().filter(|(_, one)| one.closed.is_none()).count() > 1 {
        return violation("one open drift record per machine", said("another is open"));
    }
    if closed.is_some() {
        return Ok(());
    }
    landed(case, record)?;
    let observations = &case.tables.execution.observations;
    let Some(seen) = observations.get(SEEN, &record.last_observation) else {
        return violation(RECORD, said("no such reading"));
    };
    let Some(applied) = applied(case, record) else {
        return violation(RECORD, said("nothing is Applied"));
    };
    if seen.digest() != Some(record.observed_digest) {
        return violation(RECORD, said("another digest than the reading's"));
    }
    if seen
        .digest()
        .is_some_and(|digest| *digest.as_bytes() == applied.digest)
    {
        return violation(RECORD, said("the machine shows Applied"));
    }
    if seen.started.baseline != Some(applied.baseline) {
        return violation(RECORD, said("the reading began under another baseline"));
    }
    if superseded(case, seen) {
        return violation(RECORD, said("a newer reading decided"));
    }
    match matches!(seen.started.purpose, Purpose::Drift | Purpose::Evidence) && held(case, seen) {
        true => violation(RECORD, said("an operation was under way")),
        false => Ok(()),
    }
}

/// A landing after its accounting is its operation's: the machine's latest with an attempt
/// accounted for by decision, where its artifact is what the machine shows (EaR 5.2).
fn landed(case: &Case<'_>, record: &OpenDrift) -> Verdict {
    let execution = &case.tables.execution;
    let accounted = execution.accountings.values(SEEN);
    let of_machine = accounted.filter(|one| one.machine == record.machine);
    let operations = of_machine.filter_map(|one| {
        let attempt = execution.attempts.get(SEEN, &one.attempt)?;
        case.operation(attempt.attempt.operation)
    });
    let latest = operations.max_by_key(|operation| operation.seq);
    let artifact = latest
        .and_then(|operation| case.binding(operation.row.plan?))
        .map(|binding| binding.artifact_digest);
    let operation = latest.map(|operation| operation.row.id);
    match artifact == Some(record.observed_digest) && record.late_landing != operation {
        false => Ok(()),
        true => violation(
            "a late landing is linked to its operation",
            format!("{} of {}", record.revision.0, record.machine),
        ),
    }
}

/// A record is closed as reverted or adopted by the end of the operation whose plan binds it,
/// and as returned by a reading (EaR 6.1, 6.3, 6.4).
fn closed(case: &Case<'_>, changed: &Changed<Drift>) -> Verdict {
    let was_open = changed
        .before
        .as_ref()
        .is_none_or(|before| before.closed.is_none());
    let Some(after) = changed.after.as_ref().filter(|_| was_open) else {
        return Ok(());
    };
    let Some(closed) = after.closed else {
        return Ok(());
    };
    let record = &after.drift;
    let ended = case.changes.iter().find_map(|change| match change {
        Change::Operation(changed) => {
            let row = &changed.after.as_ref()?.row;
            let binding = row.plan.and_then(|plan| case.binding(plan))?;
            let binds = binding.machine == record.machine && binding.drift == Some(record.revision);
            (binds && row.state == "completed").then_some(row.kind.as_str())
        }
        _ => None,
    });
    let resolution = match ended {
        Some("adopt") => Resolution::Adopted,
        Some(_) => Resolution::Reverted,
        None => Resolution::Returned,
    };
    match closed.resolution == resolution {
        true => Ok(()),
        false => {
            let how = closed.resolution.as_str();
            let said = format!("{} of {}: {how}", record.revision.0, record.machine);
            violation("a drift record says how it ended", said)
        }
    }
}

/// What a completed operation's plan binds is open no more (EaR 6.4).
fn reverted(case: &Case<'_>, changed: &Changed<Operation>) -> Verdict {
    let Some(row) = changed.after.as_ref().map(|one| &one.row) else {
        return Ok(());
    };
    let before = changed.before.as_ref();
    let ended = row.state == "completed" && before.is_none_or(|one| one.row.state != row.state);
    let binding = row.plan.and_then(|plan| case.binding(plan));
    let bound = binding.filter(|_| ended).and_then(|binding| {
        let record = (binding.machine, binding.drift?.0);
        case.tables.execution.drifts.get(SEEN, &record)
    });
    match bound.is_some_and(|bound| bound.closed.is_none()) {
        false => Ok(()),
        true => violation(
            "a completion closes the drift record it binds",
            format!("{}", row.id),
        ),
    }
}

/// A record that was linked to a landing after its accounting stays linked to one (EaR 5.2).
fn linked(changed: &Changed<Drift>) -> Verdict {
    let link = |drift: &Option<std::sync::Arc<Drift>>| {
        let drift = drift.as_ref();
        drift.and_then(|drift| drift.drift.late_landing)
    };
    match (link(&changed.before), link(&changed.after)) {
        (Some(was), None) => violation(
            "a late landing is linked to its operation",
            format!("{was} no more"),
        ),
        _ => Ok(()),
    }
}

fn applied(case: &Case<'_>, record: &OpenDrift) -> Option<AppliedRow> {
    let states = &case.tables.authoring.machine_states;
    states.get(SEEN, &record.machine)?.applied
}

fn superseded(case: &Case<'_>, seen: &Observation) -> bool {
    let mut all = case.tables.execution.observations.values(SEEN);
    all.any(|other| {
        other.started.machine == seen.started.machine
            && other.started.basis > seen.started.basis
            && other.digest().is_some()
    })
}

/// Whether an operation holds the machine's scope, or took it since the reading began.
fn held(case: &Case<'_>, seen: &Observation) -> bool {
    let machine = seen.started.machine;
    let holder = case.operations().any(|one| {
        one.row.machine == Some(machine)
            && one.row.plan.is_some()
            && holds(&one.row.state)
            && !one.retired
    });
    let timeline = &case.tables.execution.timelines;
    let mut since = timeline.range(SEEN, (machine, seen.started.basis.0)..=(machine, i64::MAX));
    holder || since.any(|(_, entry)| entry.kind == "commitment")
}

/// Whether an operation of the machine did anything since the reading began.
fn moved(case: &Case<'_>, seen: &Observation) -> bool {
    const MOVES: [&str; 4] = [
        "attempt",
        "response",
        "ownership-transition",
        "operation-state",
    ];
    let machine = seen.started.machine;
    let timeline = &case.tables.execution.timelines;
    let mut since = timeline.range(SEEN, (machine, seen.started.basis.0)..=(machine, i64::MAX));
    since.any(|(_, entry)| MOVES.contains(&entry.kind.as_str()))
}

/// A reading that was taken for drift, or after a restore, leaves no record open where it
/// shows Applied, and one that says what it showed where it does not (EaR 6.1).
fn detected(case: &Case<'_>, seen: &Observation) -> Verdict {
    let under_way = match seen.started.purpose {
        Purpose::Drift => held(case, seen) || moved(case, seen),
        Purpose::Restoration => false,
        Purpose::Publication | Purpose::Evidence | Purpose::Completion | Purpose::Recovery => {
            return Ok(());
        }
    };
    left(case, seen, under_way)
}

/// The text of an entry's member.
fn text<'a>(entry: &'a EntryRow, name: &str) -> Option<&'a str> {
    match &entry.data {
        Member::Object(members) => match members.get(name) {
            Some(Member::Text(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The reading that fails an operation is one that was taken for drift too: the operation holds
/// the scope no more (EaR 6.1).
fn failed(case: &Case<'_>, entry: &EntryRow) -> Verdict {
    if entry.kind != "operation-state" || text(entry, "to") != Some("failed") {
        return Ok(());
    }
    let seen = text(entry, "observation").and_then(|id| ObservationId::parse(id).ok());
    let seen = seen.and_then(|id| case.tables.execution.observations.get(SEEN, &id));
    seen.map_or(Ok(()), |seen| left(case, seen, false))
}

/// So is the evidence that a commitment was refused on, where it is not the configuration that
/// its plan binds (EaR 3.2, 6.1).
fn refused(case: &Case<'_>, machine: MachineId, entry: &EntryRow) -> Verdict {
    let (Some(plan), Some(by)) = (entry.plan, &entry.controller) else {
        return Ok(());
    };
    let binding = case.binding(plan).filter(|binding| {
        let applies = matches!(binding.operation, PlanOperation::ApplyConfig(_));
        entry.kind == "refusal" && entry.operation.is_none() && applies
    });
    let Some(binding) = binding else {
        return Ok(());
    };
    let all = case.tables.execution.observations.values(SEEN);
    let own = all.filter(|seen| {
        seen.started.machine == machine
            && seen.started.plan == Some(plan)
            && seen.started.purpose == Purpose::Evidence
            && seen.started.controller.owner == by.owner
    });
    let last = own.max_by_key(|seen| seen.started.basis);
    let other = last.filter(|seen| seen.digest() != Some(binding.pre_dispatch_digest));
    other.map_or(Ok(()), |seen| {
        left(case, seen, held(case, seen) || moved(case, seen))
    })
}

/// What a reading leaves of the machine's record, where it speaks of the Applied there is.
fn left(case: &Case<'_>, seen: &Observation, under_way: bool) -> Verdict {
    let machine = seen.started.machine;
    let states = &case.tables.authoring.machine_states;
    let applied = states.get(SEEN, &machine).and_then(|state| state.applied);
    let compared = applied.filter(|applied| seen.started.baseline == Some(applied.baseline));
    let (Some(applied), Some(digest)) = (compared, seen.digest()) else {
        return Ok(());
    };
    if superseded(case, seen) {
        return Ok(());
    }
    let drifts = &case.tables.execution.drifts;
    let of = drifts.range(SEEN, (machine, 0)..=(machine, i64::MAX));
    let open = of.filter(|(_, drift)| drift.closed.is_none());
    let open: Vec<ConfigDigest> = open.map(|(_, one)| one.drift.observed_digest).collect();
    match *digest.as_bytes() == applied.digest {
        true if !open.is_empty() => violation(
            "a machine that shows Applied has no open drift",
            format!("{machine}"),
        ),
        false if !under_way && !open.contains(&digest) => violation(
            "a reading that differs from Applied leaves a record open",
            format!("{machine}"),
        ),
        _ => Ok(()),
    }
}

/// An act's time is read after the lock that orders acts, so times follow places.
fn act(case: &Case<'_>, changed: &Changed<Act>) -> Verdict {
    let Some(after) = &changed.after else {
        return violation("acts are kept", "an act is gone");
    };
    let authoring = &case.tables.authoring;
    let Some(place) = authoring.act_order.get(SEEN, &after.row.id) else {
        return Ok(());
    };
    let range = (Bound::Unbounded, Bound::Excluded(place.0));
    let before = authoring.acts.range(SEEN, range).next_back();
    if before.is_some_and(|(_, before)| before.row.at > after.row.at) {
        return violation("acts are timed in their order", format!("{}", after.row.id));
    }
    match case.last_wait().is_some_and(|over| after.row.at < over) {
        true => violation(
            "a time follows the last wait",
            format!("act {}", after.row.id),
        ),
        false => Ok(()),
    }
}
