//! When a lost answer's attempt is accounted for (EaR 5.2, 8.11).

use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_engine::ports::store::NewAccounting;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::Change;
use crate::server::SETTLE_FLOOR;

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        if let Change::Accounting(changed) = change
            && let Some(after) = &changed.after
        {
            if changed.before.is_some() {
                return violation(SETTLED, format!("{}: twice", after.attempt));
            }
            settled(case, after)?;
        }
    }
    Ok(())
}

const SETTLED: &str = "an attempt is accounted for when it can land no more";

fn settled(case: &Case<'_>, new: &NewAccounting) -> Verdict {
    let id = new.attempt;
    let said = |what: &str| format!("{id}: {what}");
    let Some(attempt) = case.attempt(id) else {
        return violation(SETTLED, said("no such attempt"));
    };
    let response = attempt.response;
    if response.is_some_and(|response| response.class.accounts()) {
        return violation(SETTLED, said("the node answered it"));
    }
    let operation = case.operation(attempt.operation);
    let fence = operation.and_then(|operation| operation.row.fence.as_ref());
    let moved = fence.is_some_and(|fence| fence.generation > attempt.fence.generation);
    if response.is_none() && !moved {
        return violation(SETTLED, said("its executor may still send"));
    }
    let observations = &case.tables.execution.observations;
    let (start, end) = (
        observations.get(SEEN, &new.start),
        observations.get(SEEN, &new.end),
    );
    let (Some(start), Some(end)) = (start, end) else {
        return violation(SETTLED, said("no such observation"));
    };
    let reads = |seen: &Observation| {
        seen.started.machine == new.machine
            && seen.started.purpose == Purpose::Recovery
            && seen.digest().is_some()
            && seen.values.identity.value().is_some()
    };
    if !reads(start) || !reads(end) {
        return violation(SETTLED, said("a bracket that read nothing"));
    }
    if start.started.started_at <= attempt.transport_deadline {
        return violation(SETTLED, said("the first reading began before the deadline"));
    }
    if end.started.started_at < start.at + SETTLE_FLOOR {
        return violation(SETTLED, said("the second reading began before the floor"));
    }
    if new.at < attempt.transport_deadline + SETTLE_FLOOR {
        return violation(SETTLED, said("before the floor"));
    }
    let resource = |seen: &Observation| {
        let read = seen.values.configuration.value();
        read.map(|read| (read.resource_version.clone(), read.resource_created.clone()))
    };
    let words = new.facts.get("explanation");
    let explained = words.is_some_and(|words| !words.trim().is_empty());
    match resource(start) == resource(end) || explained {
        true => Ok(()),
        false => violation(SETTLED, said("an unexplained change")),
    }
}
