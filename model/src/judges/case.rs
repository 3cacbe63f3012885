//! What a judge is given: a commit with its changes, in the database as it now stands.

use std::collections::BTreeSet;

use bronzeward_core::attempt::Attempt;
use bronzeward_core::fence::Owner;
use bronzeward_core::id::{EpochId, MachineId, OperationId, PlanId};
use bronzeward_core::plan::Binding;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::EntryRow;

use crate::change::{Change, Changed};
use crate::journal::Held;
use crate::pg::{Eye, Lockable, RowId, Tables};
use crate::sched::ProcessId;
use crate::store::execution::Operation;

pub const SEEN: Eye = Eye::COMMITTED;

/// Whether an operation that was there has another owner now.
pub fn changes_hands(changed: &Changed<Operation>) -> bool {
    let generation = |operation: &Operation| {
        let fence = operation.row.fence.as_ref();
        fence.map(|fence| fence.generation)
    };
    match (&changed.before, &changed.after) {
        (Some(before), Some(after)) => generation(before) != generation(after),
        _ => false,
    }
}

#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub tables: &'a Tables,
    pub now: DbTime,
    /// Who committed.
    pub process: ProcessId,
    /// Whether that process was started for recovery.
    pub recovering: bool,
    /// The owner string of the committing process, where it is a server.
    pub owner: Option<&'a Owner>,
    /// The epoch it read at its start, and whom its deployment denied then.
    pub began_in: Option<EpochId>,
    pub denied: Option<&'a BTreeSet<&'static str>>,
    pub held: &'a Held,
    pub changes: &'a [Change],
}

impl Case<'_> {
    pub fn epoch(&self) -> Option<EpochId> {
        let installation = self.tables.authoring.installation.get(SEEN, &());
        installation.map(|row| row.epoch)
    }

    /// A time before which the transaction did not hold this row: it had not begun, or waited.
    pub fn held_from(&self, (relation, key): RowId) -> DbTime {
        let waits = self.held.waits.iter();
        let of_row = waits.filter(|wait| wait.what == Lockable::Row(relation, key));
        let last = of_row.map(|wait| wait.over).max();
        last.unwrap_or(self.held.began)
    }

    /// When the transaction waited last for a lock of the product's own.
    pub fn last_wait(&self) -> Option<DbTime> {
        let waits = self.held.waits.iter();
        let own = waits.filter(|wait| !wait.strange && !matches!(wait.what, Lockable::End(_)));
        own.map(|wait| wait.over).max()
    }

    /// Whether a person asked for it: the commit records an act.
    pub fn is_act(&self) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|change| matches!(change, Change::Act(_)))
    }

    /// Whether this commit appends such an entry to the machine's timeline.
    pub fn appends(&self, of: MachineId, kind: &str, is: impl Fn(&EntryRow) -> bool) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Entry(machine, changed) => {
                let entry = changed.after.as_ref().filter(|_| *machine == of);
                entry.is_some_and(|entry| entry.kind == kind && is(entry))
            }
            _ => false,
        })
    }

    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.tables.execution.operations.values(SEEN)
    }

    pub fn operation(&self, id: OperationId) -> Option<&Operation> {
        self.tables.execution.operations.get(SEEN, &id)
    }

    pub fn binding(&self, plan: PlanId) -> Option<&Binding> {
        let plan = self.tables.execution.plans.get(SEEN, &plan)?;
        Some(&plan.binding)
    }

    /// An operation's attempts with their answers and accountings, in order.
    pub fn attempts(&self, operation: OperationId) -> Vec<Attempt> {
        let tries = &self.tables.execution.tries;
        let ids = tries.range(SEEN, (operation, 0)..=(operation, u8::MAX));
        ids.filter_map(|(_, id)| self.attempt(*id)).collect()
    }

    pub fn attempt(&self, id: bronzeward_core::id::AttemptId) -> Option<Attempt> {
        let execution = &self.tables.execution;
        let mut attempt = execution.attempts.get(SEEN, &id)?.attempt.clone();
        let mut answers = execution.responses.range(SEEN, (id, 0)..=(id, i64::MAX));
        attempt.response = answers.next().map(|(_, answer)| answer.response);
        let accounted = execution.accountings.get(SEEN, &id);
        attempt.accounting = accounted.map(|accounting| bronzeward_core::attempt::Accounting {
            by: accounting.by,
            start: accounting.start,
            end: accounting.end,
            facts: accounting.facts.clone(),
            revision: accounting.revision,
            at: accounting.at,
        });
        Some(attempt)
    }
}
