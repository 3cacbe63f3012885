//! Drift records (EaR 6.1, 8.12), and the times of acts (PA §5 rule 4, §10.5).
//!
//! A record is opened, extended or closed by a reading that still speaks of the Applied it was
//! compared with, of a machine on which nothing was under way.

use std::ops::Bound;

use bronzeward_core::drift::{OpenDrift, Resolution};
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_engine::rows::AppliedRow;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::{Change, Changed};
use crate::store::authoring::Act;
use crate::store::execution::{Drift, holds};

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        match change {
            Change::Drift(changed) => drift(case, changed)?,
            Change::Observation(changed) => {
                if let Some(seen) = &changed.after {
                    returned(case, seen)?;
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

/// A reading that was taken for drift and shows Applied leaves no record open.
fn returned(case: &Case<'_>, seen: &Observation) -> Verdict {
    let machine = seen.started.machine;
    let states = &case.tables.authoring.machine_states;
    let applied = states.get(SEEN, &machine).and_then(|state| state.applied);
    let shows = |applied: &AppliedRow| {
        let digest = seen.digest();
        digest.is_some_and(|digest| *digest.as_bytes() == applied.digest)
            && seen.started.baseline == Some(applied.baseline)
    };
    if seen.started.purpose != Purpose::Drift
        || !applied.as_ref().is_some_and(shows)
        || superseded(case, seen)
    {
        return Ok(());
    }
    let drifts = &case.tables.execution.drifts;
    let mut of = drifts.range(SEEN, (machine, 0)..=(machine, i64::MAX));
    match of.any(|(_, drift)| drift.closed.is_none()) {
        true => violation(
            "a machine that shows Applied has no open drift",
            format!("{machine}"),
        ),
        false => Ok(()),
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
