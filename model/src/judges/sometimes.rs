//! Sometimes-properties: what a sweep must see at least once, so that a quiet run fails.

use bronzeward_core::attempt::ResponseClass;
use bronzeward_core::observation::Purpose;
use bronzeward_core::problem::Member;
use bronzeward_core::scope::ScopeState;
use bronzeward_engine::ports::store::EntryRow;

use super::case::{Case, SEEN, changes_hands};
use crate::change::{Change, Outside};
use crate::pg::Tables;
use crate::ports::Seen;
use crate::store::execution::{Drift, holds};

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
    "an approval revoked",
    "a plan cancelled",
    "a revocation that stopped a plan",
    "a machine frozen",
    "a machine unfrozen",
    "a freeze that refused a dispatch",
    "an operation resolved",
    "a late landing after its operation ended",
    "a late landing linked to its operation",
    "a database restored",
    "recovery entered",
    "recovery left",
    "a recovery exit blocked",
    "scopes accounted for",
    "a scope blocked",
    "a scope unresolved",
    "a scope ready",
    "a scope released",
    "a machine decommissioned",
    "orphans reported",
    "a stale instance of an earlier epoch refused",
    "a request that waited for its double",
];

/// What sweeps of the gate's length do not reach yet: each is a schedule still to be written.
pub const NOT_YET: &[&str] = &[];

/// Acts that are counted as they are recorded.
const ACTS: &[(&str, &str)] = &[
    ("approval-revoked", "an approval revoked"),
    ("plan-cancelled", "a plan cancelled"),
    ("machine-frozen", "a machine frozen"),
    ("machine-unfrozen", "a machine unfrozen"),
    ("operation-resolved", "an operation resolved"),
    ("recovery-entered", "recovery entered"),
    ("recovery-exited", "recovery left"),
    ("scopes-accounted", "scopes accounted for"),
    ("machine-decommissioned", "a machine decommissioned"),
];

/// A refusal's comparison of the gate (EaR 3.2).
const GATE: Member = Member::Number(6);

fn refused_by_gate(entry: &EntryRow) -> bool {
    let Member::Object(members) = &entry.data else {
        return false;
    };
    matches!(members.get("comparisons"), Some(Member::List(failed)) if failed.contains(&GATE))
}

/// What no commit shows.
pub fn outside(tables: &Tables, event: &Outside, seen: &mut Seen) {
    match event {
        Outside::Restored => seen.show("a database restored"),
        Outside::Orphans(paths) if !paths.is_empty() => seen.show("orphans reported"),
        Outside::InForce {
            attempt: Some(attempt),
            ..
        } => {
            let attempt = tables.execution.attempts.get(SEEN, attempt);
            let operation = attempt.map(|row| row.attempt.operation);
            let operation = operation.and_then(|id| tables.execution.operations.get(SEEN, &id));
            if operation.is_some_and(|one| !holds(&one.row.state)) {
                seen.show("a late landing after its operation ended");
            }
        }
        Outside::InForce { .. }
        | Outside::Circle(_)
        | Outside::Orphans(_)
        | Outside::Answered(_)
        | Outside::Sent { .. }
        | Outside::Heard { .. }
        | Outside::Alerted { .. } => {}
    }
}

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
                let taken = changes_hands(changed);
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
            Change::Entry(of, changed) => {
                let kind = changed.after.as_ref().map(|entry| entry.kind.as_str());
                match kind {
                    Some("refusal") => {
                        seen.show("a refusal entry");
                        let gate = changed.after.as_deref().is_some_and(refused_by_gate);
                        let machine = case.tables.authoring.machines.get(SEEN, of);
                        if gate && machine.is_some_and(|machine| machine.frozen) {
                            seen.show("a freeze that refused a dispatch");
                        }
                    }
                    Some("endpoint-change") => seen.show("an endpoint changed"),
                    _ => {}
                }
            }
            Change::Act(changed) => {
                let action = changed.after.as_ref().map(|act| act.row.action.as_str());
                let mut named = ACTS.iter().filter(|(name, _)| Some(*name) == action);
                if let Some((_, words)) = named.next() {
                    seen.show(words);
                }
            }
            Change::PlanState(changed) => {
                let after = changed.after.as_ref();
                if after.is_some_and(|row| row.state == "revoked") {
                    seen.show("a revocation that stopped a plan");
                }
            }
            Change::Machine(changed) => {
                let before = changed.before.as_ref().map(|row| row.scope);
                let after = changed.after.as_ref().map(|row| row.scope);
                if before != after {
                    match after {
                        Some(ScopeState::Blocked) => seen.show("a scope blocked"),
                        Some(ScopeState::Unresolved) => seen.show("a scope unresolved"),
                        Some(ScopeState::Ready) => seen.show("a scope ready"),
                        Some(ScopeState::Released { .. }) => seen.show("a scope released"),
                        _ => {}
                    }
                }
            }
            Change::Drift(changed) => {
                let late = |drift: &Drift| drift.drift.late_landing.is_some();
                if changed.after.as_deref().is_some_and(late) {
                    seen.show("a late landing linked to its operation");
                }
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
