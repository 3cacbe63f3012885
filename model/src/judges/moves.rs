//! Which state transitions a sweep reached, counted as they are committed.

use std::collections::BTreeMap;

use super::case::Case;
use crate::change::Change;

/// Whose transition, from which state, to which.
pub type Moves = BTreeMap<(&'static str, String, String), u64>;

const NEW: &str = "new";

pub fn look(case: &Case<'_>, moves: &mut Moves) {
    let mut count = |what, before: Option<&str>, after: Option<&str>| {
        if let Some(after) = after
            && before != Some(after)
        {
            let before = before.unwrap_or(NEW);
            let key = (what, before.to_owned(), after.to_owned());
            *moves.entry(key).or_default() += 1;
        }
    };
    for change in case.changes {
        match change {
            Change::Operation(changed) => {
                let (before, after) = (changed.before.as_ref(), changed.after.as_ref());
                let what = match after.map(|one| one.row.kind.as_str()) {
                    Some("publish") => "publish operation",
                    Some("ingest") => "ingest operation",
                    Some("adopt") => "adopt operation",
                    _ => "apply-config operation",
                };
                count(
                    what,
                    before.map(|one| one.row.state.as_str()),
                    after.map(|one| one.row.state.as_str()),
                );
            }
            Change::PlanState(changed) => count(
                "plan",
                changed.before.as_ref().map(|row| row.state.as_str()),
                changed.after.as_ref().map(|row| row.state.as_str()),
            ),
            Change::Claim(changed) => count(
                "claim",
                changed.before.as_ref().map(|row| row.state.as_str()),
                changed.after.as_ref().map(|row| row.state.as_str()),
            ),
            Change::Machine(changed) => count(
                "scope",
                changed.before.as_ref().map(|row| row.scope.as_str()),
                changed.after.as_ref().map(|row| row.scope.as_str()),
            ),
            _ => {}
        }
    }
}
