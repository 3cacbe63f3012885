//! What an operation's ends and its classification as safe rest on (EaR 4, 5, 8.2, 8.11).
//!
//! An observation counts as of its beginning. Read from the rows, beside `core::classify`.

use bronzeward_core::attempt::{Attempt, ResponseClass};
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_core::plan::Binding;
use bronzeward_core::problem::Member;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::EntryRow;
use bronzeward_engine::rows::OperationRow;

use super::case::{Case, SEEN};
use super::{Verdict, dispatch, violation};
use crate::change::Change;

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        if let Change::Entry(_, changed) = change
            && let Some(entry) = &changed.after
            && entry.kind == "ownership-transition"
        {
            transition(entry)?;
        }
        let Change::Operation(changed) = change else {
            continue;
        };
        let (Some(before), Some(after)) = (&changed.before, &changed.after) else {
            continue;
        };
        let Some(binding) = after.row.plan.and_then(|plan| case.binding(plan)) else {
            continue;
        };
        let end = End {
            case,
            binding,
            row: &after.row,
            attempts: case.attempts(after.row.id),
        };
        if before.row.classified != after.row.classified && after.row.classified.is_some() {
            end.safe()?;
        }
        if before.row.state != after.row.state {
            match after.row.state.as_str() {
                "completed" => end.completed()?,
                "failed" => end.failed()?,
                "cancelled" => end.cancelled()?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// An ownership goes to the generation after the one that its taker saw (EaR 3.4).
fn transition(entry: &EntryRow) -> Verdict {
    let number = |name: &str| match &entry.data {
        Member::Object(members) => match members.get(name) {
            Some(Member::Number(number)) => Some(*number),
            _ => None,
        },
        _ => None,
    };
    match (number("from"), number("to")) {
        (Some(from), Some(to)) if to == from + 1 => Ok(()),
        _ => violation(
            "a takeover follows the owner it saw",
            format!("{:?}", entry.operation),
        ),
    }
}

struct End<'a> {
    case: &'a Case<'a>,
    binding: &'a Binding,
    row: &'a OperationRow,
    attempts: Vec<Attempt>,
}

impl End<'_> {
    /// The machine's readings, begun after every attempt was accounted for.
    fn readings(&self) -> impl Iterator<Item = &Observation> {
        let accounted = self.attempts.iter().filter_map(Attempt::accounted_at).max();
        let from = accounted.unwrap_or(TimelineRevision(0));
        let all = self.case.tables.execution.observations.values(SEEN);
        all.filter(move |seen| {
            seen.started.machine == self.binding.machine && seen.started.basis > from
        })
    }

    fn is_this_machine(&self, seen: &Observation) -> bool {
        matches!(seen.identity_mismatch(&self.binding.identity), Ok(None))
    }

    /// What a reading says against the artifact's being in force on the machine.
    fn speaks_against(&self, seen: &Observation) -> bool {
        let digest = seen.digest();
        matches!(seen.identity_mismatch(&self.binding.identity), Ok(Some(_)))
            || seen.started.assignment != self.binding.assignment
            || digest.is_some_and(|digest| digest != self.binding.artifact_digest)
    }

    fn completed(&self) -> Verdict {
        let rests = self.readings().any(|seen| {
            let healthy = seen.values.health.value();
            seen.started.purpose == Purpose::Completion
                && self.is_this_machine(seen)
                && seen.digest() == Some(self.binding.artifact_digest)
                && seen.started.assignment == self.binding.assignment
                && healthy.is_some_and(|health| health.is_bound())
                && !self.readings().any(|other| {
                    other.started.basis > seen.started.basis && self.speaks_against(other)
                })
        });
        match rests {
            true => Ok(()),
            false => violation(
                "a completion rests on a later reading of what was bound",
                format!("{}", self.row.id),
            ),
        }
    }

    fn failed(&self) -> Verdict {
        let last = self.attempts.last();
        let deadline = last.map(|attempt| attempt.verification_deadline);
        let over = deadline.is_some_and(|deadline| self.case.now >= deadline);
        let rests = self.readings().any(|seen| {
            let unhealthy = seen.values.health.value();
            let unhealthy = unhealthy.is_some_and(|health| !health.is_bound());
            seen.started.purpose == Purpose::Completion
                && (self.speaks_against(seen) || (unhealthy && over))
        });
        match rests {
            true => Ok(()),
            false => violation(
                "a failure rests on a later reading that contradicts",
                format!("{}", self.row.id),
            ),
        }
    }

    /// By a person, or because nobody can stand behind the plan again.
    fn cancelled(&self) -> Verdict {
        if self.case.is_act() {
            return Ok(());
        }
        let at = self.decided_at("operation-state");
        match dispatch::authorised(self.case, self.binding, self.row.id, at) {
            Err(_) => Ok(()),
            Ok(()) => violation(
                "an operation is cancelled for good only",
                format!("{}", self.row.id),
            ),
        }
    }

    /// When this commit decided, by its entry.
    fn decided_at(&self, kind: &str) -> DbTime {
        let entries = self.case.changes.iter().filter_map(|change| match change {
            Change::Entry(_, changed) => changed.after.as_ref(),
            _ => None,
        });
        let mut of_kind = entries.filter(|entry| entry.kind == kind);
        of_kind.next().map_or(self.case.now, |entry| entry.at)
    }

    /// One more request is safe: the node is as it was, nothing is under way, and it would be
    /// admitted.
    fn safe(&self) -> Verdict {
        const SAFE: &str = "one more request is safe where it is said to be";
        let said = |what: &str| format!("{}: {what}", self.row.id);
        let decided = self.attempts.iter().any(|attempt| {
            matches!(
                attempt.class(),
                Some(
                    ResponseClass::Accepted
                        | ResponseClass::RefusedValidation
                        | ResponseClass::RefusedImmediate
                )
            )
        });
        if decided {
            return violation(SAFE, said("an attempt was decided"));
        }
        let open = self.attempts.iter().any(|one| one.accounted_at().is_none());
        if open {
            return violation(SAFE, said("an attempt is unaccounted"));
        }
        let most = self.binding.deadlines().map(|most| most.max_attempts);
        if most.is_none_or(|most| self.attempts.len() >= usize::from(most)) {
            return violation(SAFE, said("no attempt is left"));
        }
        let readings = self.readings().filter(|seen| seen.digest().is_some());
        let mut last: Vec<&Observation> = readings.collect();
        last.sort_by_key(|seen| seen.started.basis);
        let before = Some(self.binding.pre_dispatch_digest);
        let shown = last.iter().any(|seen| {
            let purpose = seen.started.purpose;
            matches!(purpose, Purpose::Completion | Purpose::Recovery)
                && seen.digest() == before
                && self.is_this_machine(seen)
        });
        let as_it_was = shown && last.last().is_some_and(|seen| seen.digest() == before);
        if !as_it_was {
            return violation(SAFE, said("the node is not as it was"));
        }
        let at = self.decided_at("classification");
        dispatch::authorised(self.case, self.binding, self.row.id, at)?;
        dispatch::gate(self.case, self.binding)
    }
}
