//! Which state transitions a sweep reached, counted as they are committed.

use std::collections::BTreeMap;

use super::case::Case;
use crate::change::{Change, Changed};

/// Whose transition, from which state, to which.
pub type Moves = BTreeMap<(&'static str, String, String), u64>;

const NEW: &str = "new";

/// The states before and after.
fn states<'a, V>(changed: &'a Changed<V>, of: impl Fn(&'a V) -> &'a str) -> [Option<&'a str>; 2] {
    [&changed.before, &changed.after].map(|row| row.as_deref().map(&of))
}

pub fn look(case: &Case<'_>, moves: &mut Moves) {
    for change in case.changes {
        let (what, [before, after]) = match change {
            Change::Operation(changed) => {
                let after = changed.after.as_ref();
                let what = match after.map(|one| one.row.kind.as_str()) {
                    Some("publish") => "publish operation",
                    Some("ingest") => "ingest operation",
                    Some("adopt") => "adopt operation",
                    _ => "apply-config operation",
                };
                (what, states(changed, |one| &one.row.state))
            }
            Change::PlanState(changed) => ("plan", states(changed, |row| &row.state)),
            Change::Claim(changed) => ("claim", states(changed, |row| &row.state)),
            Change::Machine(changed) => ("scope", states(changed, |row| row.scope.as_str())),
            _ => continue,
        };
        if let Some(after) = after.filter(|_| before != after) {
            let before = before.unwrap_or(NEW);
            let key = (what, before.to_owned(), after.to_owned());
            *moves.entry(key).or_default() += 1;
        }
    }
}
