//! Accountings of lost responses: who sent has stopped, and two readings bracket the settle
//! (EaR 5.2).

use bronzeward_core::attempt::{Attempt, ResponseClass};
use bronzeward_core::id::{MachineId, ObservationId};
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::NewAccounting;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::Change;
use crate::server::SETTLE_FLOOR;

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        if let Change::Response(changed) = change {
            let Some(after) = &changed.after else {
                return violation("answers are kept", "an answer is gone");
            };
            let of = (after.attempt, 0)..=(after.attempt, i64::MAX);
            if case.tables.execution.responses.range(SEEN, of).count() > 1 {
                return violation("an attempt is answered once", format!("{}", after.attempt));
            }
        }
        if let Change::Accounting(changed) = change {
            let Some(after) = &changed.after else {
                return violation("accountings are kept", "an accounting is gone");
            };
            if changed.before.is_some() {
                return violation(
                    "an attempt is accounted for once",
                    format!("{}", after.attempt),
                );
            }
            accounting(case, after)?;
        }
    }
    Ok(())
}

fn accounting(case: &Case<'_>, of: &NewAccounting) -> Verdict {
    let id = of.attempt;
    let Some(attempt) = case.attempt(id) else {
        return violation("an accounting has its attempt", format!("{id}"));
    };
    // Whatever the node answered, nothing of the request lands any more.
    let class = attempt.class();
    if class.is_some_and(|class| class != ResponseClass::Transport) {
        return violation(
            "an attempt is accounted for once",
            format!("{id} was answered"),
        );
    }
    let Some(stopped) = stopped_at(case, &attempt) else {
        return violation(
            "only a stopped executor's attempt is accounted for",
            format!("{id}"),
        );
    };
    const WORDS: &str = "an attempt is accounted for once it has settled";
    let from = attempt.transport_deadline.max(stopped);
    bracketed(
        case,
        WORDS,
        attempt.machine,
        (of.start, of.end),
        from,
        of.at,
    )?;
    explained(case, of)
}

/// When its executor is known to have stopped: it said so, or its ownership moved.
fn stopped_at(case: &Case<'_>, attempt: &Attempt) -> Option<DbTime> {
    let response = attempt.response.as_ref();
    let said = response.filter(|one| one.class == ResponseClass::Transport);
    let said = said.map(|one| one.at);
    let of = attempt.machine;
    let after = (of, attempt.revision.0 + 1)..=(of, i64::MAX);
    let mut entries = case.tables.execution.timelines.range(SEEN, after);
    let moved = entries.find(|(_, entry)| {
        entry.kind == "ownership-transition" && entry.operation == Some(attempt.operation)
    });
    let moved = moved.map(|(_, entry)| entry.at);
    said.into_iter().chain(moved).min()
}

/// Two recovery observations that read the machine: the first began after all that is waited
/// for, the second a settle floor later, and the decision is no earlier.
pub(super) fn bracketed(
    case: &Case<'_>,
    words: &'static str,
    machine: MachineId,
    (start, end): (ObservationId, ObservationId),
    from: DbTime,
    at: DbTime,
) -> Verdict {
    let observations = &case.tables.execution.observations;
    let (Some(start), Some(end)) = (observations.get(SEEN, &start), observations.get(SEEN, &end))
    else {
        return violation(words, format!("{machine}: without its readings"));
    };
    let reads = |one: &Observation| {
        one.started.machine == machine
            && one.started.purpose == Purpose::Recovery
            && one.values.identity.value().is_some()
            && one.values.configuration.value().is_some()
    };
    let said = |what: &str| format!("{machine}: {what}");
    if !reads(start) || !reads(end) {
        return violation(words, said("a reading that read nothing"));
    }
    if start.started.started_at <= from {
        return violation(words, said("the first began too early"));
    }
    if end.started.started_at < start.at + SETTLE_FLOOR {
        return violation(words, said("the second began too early"));
    }
    match at >= from + SETTLE_FLOOR {
        true => Ok(()),
        false => violation(words, said("decided too early")),
    }
}

/// A resource that changed between the two is explained.
fn explained(case: &Case<'_>, of: &NewAccounting) -> Verdict {
    let observations = &case.tables.execution.observations;
    let resource = |id: &ObservationId| {
        let seen = observations.get(SEEN, id)?;
        let read = seen.values.configuration.value()?;
        Some((read.resource_version.clone(), read.resource_created.clone()))
    };
    let words = of.facts.get("explanation");
    let explained = words.is_some_and(|words| !words.trim().is_empty());
    match explained || resource(&of.start) == resource(&of.end) {
        true => Ok(()),
        false => violation("a changed resource is explained", format!("{}", of.attempt)),
    }
}
