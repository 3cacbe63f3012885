//! Operations of plans, their attempts and what came of them (EaR 3 to 6).

mod write;

use std::collections::BTreeMap;

use bronzeward_core::attempt::{Accounting, Attempt, Response};
use bronzeward_core::comparison::UseTimeCheck;
use bronzeward_core::drift::{OpenDrift, Resolution};
use bronzeward_core::fence::Fence;
use bronzeward_core::id::{AttemptId, ClusterId, MachineId, OperationId};
use bronzeward_core::observation::Read;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    AccountedRow, Marks, NewAccounting, OperationExtras, OperationReads, StoreError,
};
use bronzeward_engine::rows::{MachineStateRow, OperationRow};

use super::Out;
use super::jobs::Operation;
use super::observations::first_read;
use super::statement::{kept, owned};
use super::timeline::entries_of;
use crate::change::watched;
use crate::pg::session::Session;
use crate::pg::{Eye, Row, Tables};

/// A use-time check with what its row names.
#[derive(Clone, Debug)]
pub struct Check {
    pub check: UseTimeCheck,
    pub operation: Option<OperationId>,
}

/// An attempt as it was recorded: without an answer, which is another row.
#[derive(Clone, Debug)]
pub struct AttemptRow {
    pub attempt: Attempt,
    pub check: TimelineRevision,
}

/// The answer to an attempt, and whose record it is.
#[derive(Clone, Debug)]
pub struct Answer {
    pub attempt: AttemptId,
    pub operation: OperationId,
    pub machine: MachineId,
    pub response: Response,
    pub by: Fence,
}

#[derive(Clone, Copy, Debug)]
pub struct Closed {
    pub resolution: Resolution,
    pub revision: TimelineRevision,
    pub at: DbTime,
}

/// A drift record, open until it is closed.
#[derive(Clone, Debug)]
pub struct Drift {
    pub drift: OpenDrift,
    pub opened_at: DbTime,
    pub closed: Option<Closed>,
}

impl Row<(MachineId, i64)> for Check {}
impl Row<(OperationId, u8)> for AttemptId {}
watched!(AttemptRow, AttemptId, Attempt);
watched!(Answer, (AttemptId, i64), Response);
watched!(NewAccounting, AttemptId, Accounting);
watched!(Drift, (MachineId, i64), Drift);

kept!(
    Check, (MachineId, i64) => execution.checks;
    AttemptRow, AttemptId => execution.attempts;
    AttemptId, (OperationId, u8) => execution.tries;
    Answer, (AttemptId, i64) => execution.responses;
    NewAccounting, AttemptId => execution.accountings;
    Drift, (MachineId, i64) => execution.drifts;
    MachineStateRow, MachineId => authoring.machine_states;
);

/// The machine's open drift record.
pub(super) fn open_record(tables: &Tables, eye: Eye, of: MachineId) -> Option<&OpenDrift> {
    let mut rows = owned(&tables.execution.drifts, eye, of, i64::MIN, i64::MAX).rev();
    let open = rows.find(|(_, row)| row.closed.is_none());
    open.map(|(_, row)| &row.drift)
}

/// An attempt joined with its check, its answer and its accounting: a row per answer, which is
/// one where the schema has its key. None where the check read no access, of which there is
/// no attempt.
fn whole(tables: &Tables, eye: Eye, id: &AttemptId) -> Option<Vec<Attempt>> {
    let rows = &tables.execution;
    let row = rows.attempts.get(eye, id)?;
    let check = rows.checks.get(eye, &(row.attempt.machine, row.check.0))?;
    let Read::Value(access) = &check.check.access else {
        return None;
    };
    let accounting = rows.accountings.get(eye, id).map(|new| Accounting {
        by: new.by,
        start: new.start,
        end: new.end,
        facts: new.facts.clone(),
        revision: new.revision,
        at: new.at,
    });
    let joined = |response| Attempt {
        access: access.clone(),
        response,
        accounting: accounting.clone(),
        ..row.attempt.clone()
    };
    let answers = owned(&rows.responses, eye, *id, 0, i64::MAX);
    let mut found: Vec<Attempt> = answers
        .map(|(_, answer)| joined(Some(answer.response)))
        .collect();
    if found.is_empty() {
        found.push(joined(None));
    }
    Some(found)
}

fn tries(tables: &Tables, eye: Eye, of: OperationId) -> Option<Vec<Attempt>> {
    let mut found = Vec::new();
    for (_, id) in tables.execution.tries.range(eye, (of, 0)..=(of, u8::MAX)) {
        found.extend(whole(tables, eye, id)?);
    }
    Some(found)
}

/// The entries that say what an operation completed with.
const OUTCOMES: [&str; 2] = ["adoption-record", "applied-change"];

/// The entries that put an operation in a state.
pub(super) const MOVES: [&str; 5] = [
    "commitment",
    "attempt",
    "response",
    "ownership-transition",
    "operation-state",
];

/// The entries that make a classification stale (comparison 8).
const OUTDATE: [&str; 3] = ["response", "ownership-transition", "classification"];

impl Session {
    async fn latest_entry(
        &mut self,
        of: OperationId,
        kinds: &'static [&'static str],
    ) -> Out<TimelineRevision> {
        self.read("read latest entry", |tables, eye| {
            let mut entries = entries_of(tables, eye, of, 0).rev();
            let latest = entries.find(|entry| kinds.contains(&entry.kind.as_str()));
            TimelineRevision(latest.map_or(0, |entry| entry.number))
        })
        .await
    }
}

impl OperationReads for Session {
    async fn attempts(&mut self, of: OperationId) -> Out<Vec<Attempt>> {
        let found = self
            .read("read attempts", |tables, eye| tries(tables, eye, of))
            .await?;
        found.ok_or(StoreError::Fault)
    }

    async fn operation_extras(
        &mut self,
        of: &[OperationId],
    ) -> Out<BTreeMap<OperationId, OperationExtras>> {
        let mut found: BTreeMap<OperationId, OperationExtras> = BTreeMap::new();
        self.statement("read attempts of operations").await?;
        for id in of {
            let attempts = self.look(|tables, eye| tries(tables, eye, *id));
            let attempts = attempts.ok_or(StoreError::Fault)?;
            if !attempts.is_empty() {
                found.entry(*id).or_default().attempts = attempts;
            }
        }
        self.statement("read last entries of operations").await?;
        for id in of {
            let last = self.look(|tables, eye| {
                let last = entries_of(tables, eye, *id, 0).next_back();
                last.map(|entry| entry.number)
            });
            if last.is_some() {
                found.entry(*id).or_default().last_entry = last;
            }
        }
        self.statement("read outcomes of operations").await?;
        for id in of {
            let outcome = self.look(|tables, eye| {
                let mut entries = entries_of(tables, eye, *id, 0);
                entries
                    .find(|entry| OUTCOMES.contains(&entry.kind.as_str()))
                    .cloned()
            });
            if outcome.is_some() {
                found.entry(*id).or_default().outcome = outcome;
            }
        }
        Ok(found)
    }

    async fn operation_marks(&mut self, of: OperationId) -> Out<Marks> {
        Ok(Marks {
            since: self.latest_entry(of, &MOVES).await?,
            outdating: self.latest_entry(of, &OUTDATE).await?,
        })
    }

    async fn open_operations(&mut self) -> Out<Vec<OperationRow>> {
        self.read("read open operations", |tables, eye| {
            let rows = tables.execution.operations.values(eye);
            let open = rows.filter(|of| of.row.kind == "apply-config" && of.holds_scope());
            open.map(|of| of.row.clone()).collect()
        })
        .await
    }

    async fn rollout_holder(&mut self, of: ClusterId) -> Out<Option<OperationId>> {
        let is = |operation: &Operation| operation.row.cluster == of && operation.holds_scope();
        self.operation_where("read rollout holder", is).await
    }

    async fn scope_held_since(&mut self, of: MachineId, since: TimelineRevision) -> Out<bool> {
        self.read("read holders since", |tables, eye| {
            let mut operations = tables.execution.operations.values(eye);
            let held = operations.any(|one| {
                one.row.machine == Some(of) && !one.retired && super::holds(&one.row.state)
            });
            let timelines = &tables.execution.timelines;
            let mut entries = owned(timelines, eye, of, since.0, i64::MAX);
            // One that holds nothing any more ended by an entry since, or ended before.
            held || entries.any(|(_, entry)| MOVES.contains(&entry.kind.as_str()))
        })
        .await
    }

    async fn drift_record(&mut self, of: MachineId) -> Out<Option<OpenDrift>> {
        self.read("read drift record", |tables, eye| {
            open_record(tables, eye, of).copied()
        })
        .await
    }

    async fn accounted_operation(&mut self, of: MachineId) -> Out<Option<AccountedRow>> {
        let found = self
            .read("read accounted operation", |tables, eye| {
                let rows = &tables.execution;
                let accounted = rows.accountings.values(eye).filter(|new| new.machine == of);
                let operations = accounted.filter_map(|new| {
                    let attempt = rows.attempts.get(eye, &new.attempt)?;
                    rows.operations.get(eye, &attempt.attempt.operation)
                });
                let latest = operations.max_by_key(|operation| operation.seq)?;
                let plan = rows.plans.get(eye, &latest.row.plan?)?;
                Some((latest.row.id, plan.binding.artifact_digest))
            })
            .await?;
        let Some((operation, artifact)) = found else {
            return Ok(None);
        };
        Ok(Some(AccountedRow {
            operation,
            artifact,
            attempts: self.attempts(operation).await?,
        }))
    }

    async fn ownership_moved_after(
        &mut self,
        of: OperationId,
        after: TimelineRevision,
    ) -> Out<Option<DbTime>> {
        self.read("read ownership's move", |tables, eye| {
            let mut entries = entries_of(tables, eye, of, after.0.saturating_add(1));
            let moved = entries.find(|entry| entry.kind == "ownership-transition");
            moved.map(|entry| entry.at)
        })
        .await
    }

    async fn first_read_after(&mut self, of: MachineId, after: DbTime) -> Out<Option<DbTime>> {
        self.read("read first reading", |tables, eye| {
            first_read(tables, eye, of, after)
        })
        .await
    }
}
