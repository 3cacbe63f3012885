//! Where records stand in their machine's timeline (PA §5, T7): their revisions are what readings
//! are ordered by.
//!
//! Asked last: whatever else is wrong with a record says more.

use bronzeward_core::id::MachineId;
use bronzeward_core::revision::TimelineRevision;

use super::case::Case;
use super::{Verdict, violation};
use crate::change::Change;

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        match change {
            Change::Approval(changed) => {
                if let Some(after) = &changed.after {
                    placed(case, after.machine, after.approval.revision, "approval")?;
                }
            }
            Change::Attempt(changed) => {
                if let Some(after) = &changed.after {
                    let attempt = &after.attempt;
                    placed(case, attempt.machine, attempt.revision, "attempt")?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A record's revision is that of its own entry.
fn placed(case: &Case<'_>, machine: MachineId, at: TimelineRevision, kind: &str) -> Verdict {
    match case.appends(machine, kind, |entry| entry.number == at.0) {
        true => Ok(()),
        false => violation(
            "a record says its place in the timeline",
            format!("{kind} of {machine} at {}", at.0),
        ),
    }
}
