//! Disclosure: no secret of the world in a row that is not its ciphertext or its reference
//! (PA §15.10, IC §14.1, §14.8).
//!
//! Small rows are looked at as they commit, documents once at the end: a document never
//! changes.

use std::fmt::Debug;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::Change;
use crate::furniture::SECRETS;
use crate::pg::Tables;

fn holds(text: &str) -> bool {
    SECRETS.iter().any(|secret| text.contains(secret))
}

fn shows(row: &impl Debug) -> bool {
    holds(&format!("{row:?}"))
}

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        let (what, shown) = match change {
            Change::Act(changed) => ("an act", shows(&changed.after)),
            Change::Idempotency(changed) => ("an idempotency record", shows(&changed.after)),
            Change::Entry(_, changed) => ("a timeline entry", shows(&changed.after)),
            Change::Operation(changed) => {
                let error = changed
                    .after
                    .as_ref()
                    .and_then(|one| one.row.error.as_deref());
                ("an operation's problem", error.is_some_and(holds))
            }
            Change::Claim(changed) => {
                let payload = changed.after.as_ref().and_then(|row| row.payload.as_ref());
                ("a claim", payload.is_some_and(|(text, _)| holds(text)))
            }
            Change::Release(changed) => ("a release", shows(&changed.after)),
            Change::Response(changed) => ("a response", shows(&changed.after)),
            _ => continue,
        };
        if shown {
            return violation("no secret is in a row", what);
        }
    }
    Ok(())
}

/// Documents, what a reviewer is shown, and what a plan says of a node.
pub fn at_the_end(tables: &Tables) -> Verdict {
    let authoring = &tables.authoring;
    let mut fragments = authoring.fragments.values(SEEN);
    let mut bases = authoring.import_bases.values(SEEN);
    let mut machines = tables.execution.release_machines.values(SEEN);
    let mut plans = tables.execution.plans.values(SEEN);
    let found = [
        ("a fragment", fragments.any(|row| holds(&row.row.document))),
        ("an import base", bases.any(|row| holds(&row.document))),
        ("a machine of a release", machines.any(shows)),
        ("a plan", plans.any(|plan| shows(&plan.evidence))),
    ];
    match found.iter().find(|(_, shown)| *shown) {
        None => Ok(()),
        Some((what, _)) => violation("no secret is in a row", *what),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bronzeward_core::id::{ActId, EpochId, PrincipalId};
    use bronzeward_core::principal::PrincipalKind;
    use bronzeward_core::time::DbTime;
    use bronzeward_engine::ports::store::ActRow;

    use super::*;
    use crate::change::Changed;
    use crate::journal::Held;
    use crate::sched::ProcessId;
    use crate::store::authoring::Act;

    fn verdict(subject: &str) -> Verdict {
        let row = ActRow {
            id: ActId::from_bits(1),
            principal: PrincipalId::from_bits(1),
            kind: PrincipalKind::Human,
            role: None,
            action: "draft-updated".to_owned(),
            subjects: vec![subject.to_owned()],
            request: None,
            epoch: EpochId::from_bits(1),
            at: DbTime::from_seconds(1),
        };
        let act = Changed {
            before: None,
            after: Some(Arc::new(Act { row, key: None })),
        };
        look(&Case {
            tables: &Tables::default(),
            now: DbTime::from_seconds(1),
            process: ProcessId::WORLD,
            recovering: false,
            owner: None,
            began_in: None,
            denied: None,
            held: &Held {
                began: DbTime::from_seconds(0),
                waits: Vec::new(),
            },
            changes: &[Change::Act(act)],
        })
    }

    #[test]
    fn a_secret_planted_in_an_act_is_a_violation() {
        assert_eq!(verdict("drf_1"), Ok(()));
        let planted = format!("the {}-1 of a node", SECRETS[1]);
        let found = verdict(&planted).expect_err("planted");
        assert_eq!(found.invariant, "no secret is in a row");
    }
}
