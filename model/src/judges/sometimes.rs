//! Sometimes-properties: what a sweep must see at least once, so that a quiet run fails.

use bronzeward_core::attempt::ResponseClass;
use bronzeward_core::observation::Purpose;

use super::case::Case;
use crate::change::Change;
use crate::ports::Seen;

/// Every property, by its words.
pub const SOMETIMES: &[&str] = &[
    "a commitment",
    "an attempt",
    "a retry",
    "an accepted answer",
    "a refused answer",
    "an answer that decides nothing",
    "a lost answer recorded",
    "a takeover by lapse",
    "a takeover by request",
    "an accounting",
    "completed",
    "failed",
    "rejected",
    "cancelled",
    "unresolved",
    "safe to retry",
    "an adoption",
    "a refusal entry",
    "a drift opened",
    "a drift extended",
    "a drift closed",
    "a release",
    "a publication failed",
    "an import",
    "an ingestion failed",
    "a claim taken over",
    "a claim abandoned",
    "a draft discarded",
    "an identity revoked",
    "an endpoint changed",
    "an observation of nothing",
    "a recovery observation",
];

/// What sweeps of the gate's length do not reach yet: each is a schedule still to be written.
pub const NOT_YET: &[&str] = &["a deadlock's victim", "a claim taken over"];

fn of_operation(
    before: Option<&str>,
    after: &str,
    taken: bool,
    asked: bool,
) -> &'static [&'static str] {
    match (before, after) {
        (None, "committed") => &["a commitment"],
        (Some(_), "unresolved") if taken && asked => &["a takeover by request", "unresolved"],
        (Some(_), "unresolved") if taken => &["a takeover by lapse", "unresolved"],
        (Some(from), "unresolved") if from != "unresolved" => &["unresolved"],
        (Some(_), "completed") => &["completed"],
        (Some("verifying" | "unresolved"), "failed") => &["failed"],
        (Some(_), "rejected") => &["rejected"],
        (Some(_), "cancelled") => &["cancelled"],
        _ => &[],
    }
}

pub fn look(case: &Case<'_>, seen: &mut Seen) {
    for change in case.changes {
        match change {
            Change::Operation(changed) => {
                let Some(after) = &changed.after else {
                    continue;
                };
                let before = changed.before.as_ref();
                let generation = |row: &bronzeward_engine::rows::OperationRow| {
                    row.fence.as_ref().map(|fence| fence.generation)
                };
                let taken =
                    before.is_some_and(|before| generation(&before.row) != generation(&after.row));
                let from = before.map(|before| before.row.state.as_str());
                if after.row.plan.is_some() {
                    let state = after.row.state.as_str();
                    for what in of_operation(from, state, taken, case.is_act()) {
                        seen.show(what);
                    }
                    let classified = before.is_some_and(|before| before.row.classified.is_none());
                    if classified && after.row.classified.is_some() {
                        seen.show("safe to retry");
                    }
                } else if after.row.state == "failed" {
                    seen.show(match after.row.kind.as_str() {
                        "publish" => "a publication failed",
                        _ => "an ingestion failed",
                    });
                } else if after.row.state == "succeeded" && after.row.kind == "ingest" {
                    seen.show("an import");
                }
            }
            Change::Attempt(changed) => {
                let retry = changed
                    .after
                    .as_ref()
                    .is_some_and(|row| row.attempt.number > 1);
                seen.show(if retry { "a retry" } else { "an attempt" });
            }
            Change::Response(changed) => {
                let Some(after) = &changed.after else {
                    continue;
                };
                seen.show(match after.response.class {
                    ResponseClass::Accepted => "an accepted answer",
                    ResponseClass::RefusedValidation | ResponseClass::RefusedImmediate => {
                        "a refused answer"
                    }
                    ResponseClass::Answered => "an answer that decides nothing",
                    ResponseClass::Transport => "a lost answer recorded",
                });
            }
            Change::Accounting(_) => seen.show("an accounting"),
            Change::Adoption(_) => seen.show("an adoption"),
            Change::Entry(_, changed) => {
                let kind = changed.after.as_ref().map(|entry| entry.kind.as_str());
                match kind {
                    Some("refusal") => seen.show("a refusal entry"),
                    Some("endpoint-change") => seen.show("an endpoint changed"),
                    _ => {}
                }
            }
            Change::Drift(changed) => {
                let closed = changed
                    .after
                    .as_ref()
                    .is_some_and(|drift| drift.closed.is_some());
                seen.show(match (&changed.before, closed) {
                    (None, _) => "a drift opened",
                    (Some(_), true) => "a drift closed",
                    (Some(_), false) => "a drift extended",
                });
            }
            Change::Release(_) => seen.show("a release"),
            Change::Claim(changed) => {
                let state = changed.after.as_ref().map(|claim| claim.state.as_str());
                match state {
                    Some("resumed") => seen.show("a claim taken over"),
                    Some("abandoned") => seen.show("a claim abandoned"),
                    _ => {}
                }
            }
            Change::Draft(changed) => {
                let state = changed.after.as_ref().map(|draft| draft.state);
                if state == Some(bronzeward_engine::rows::DraftStateRow::Discarded) {
                    seen.show("a draft discarded");
                }
            }
            Change::Principal(changed) => {
                let revoked = changed
                    .after
                    .as_ref()
                    .is_some_and(|row| row.revoked_at.is_some());
                let before = changed.before.as_ref();
                if revoked && before.is_some_and(|row| row.revoked_at.is_none()) {
                    seen.show("an identity revoked");
                }
            }
            Change::Observation(changed) => {
                let Some(after) = &changed.after else {
                    continue;
                };
                if after.digest().is_none() {
                    seen.show("an observation of nothing");
                }
                if after.started.purpose == Purpose::Recovery {
                    seen.show("a recovery observation");
                }
            }
            _ => {}
        }
    }
}
