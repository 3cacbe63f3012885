//! Records that never change, and what changes one step at a time: plans, timelines, acts and
//! idempotency records (EaR 8.4, 8.8, 8.13, PA §4, §7, §10.5).

use std::collections::BTreeMap;

use bronzeward_core::id::MachineId;
use bronzeward_engine::rows::PlanStateRow;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::{Change, Changed};
use crate::pg::Tables;

#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The last revision of each machine's timeline.
    timelines: BTreeMap<MachineId, i64>,
    /// The last act's place.
    acts: i64,
}

impl Records {
    pub fn look(&mut self, case: &Case<'_>) -> Verdict {
        let mut acts = false;
        for change in case.changes {
            match change {
                Change::Plan(changed) if changed.before.is_some() => {
                    return violation("plans never change", "a plan was written again");
                }
                Change::PlanState(changed) => {
                    plan_state(changed)?;
                    revoked(case, changed)?;
                }
                Change::Entry(machine, changed) => {
                    let Some(entry) = &changed.after else {
                        return violation("timelines only grow", format!("{machine}"));
                    };
                    let last = self.timelines.entry(*machine).or_default();
                    if entry.number != *last + 1 {
                        let said = format!("{machine}: {} after {last}", entry.number);
                        return violation("timeline order is commit order", said);
                    }
                    *last = entry.number;
                }
                Change::Act(_) => acts = true,
                Change::Idempotency(changed) if changed.before.is_some() => {
                    return violation("an answer is stored once", "a record was replaced");
                }
                Change::Approval(changed) => {
                    if let Some(after) = &changed.after {
                        let approver = after.approval.approver.principal;
                        let row = case.tables.authoring.principals.get(SEEN, &approver);
                        if row.is_none_or(|row| row.revoked_at.is_some()) {
                            let said = format!("{}", after.approval.id);
                            return violation("a revoked identity approves nothing", said);
                        }
                    }
                }
                _ => {}
            }
        }
        match acts {
            true => self.act(case),
            false => Ok(()),
        }
    }

    /// The database is an earlier one: places and revisions are given out again.
    pub fn restored(&mut self, tables: &Tables) {
        let machines = tables.authoring.machines.values(SEEN);
        self.timelines = machines.map(|row| (row.id, row.timeline.0)).collect();
        let last = tables.authoring.acts.iter(SEEN).next_back();
        self.acts = last.map_or(0, |(place, _)| *place);
    }

    /// Acts become visible in the order of their places (PA §10.5).
    fn act(&mut self, case: &Case<'_>) -> Verdict {
        let last = case.tables.authoring.acts.iter(SEEN).next_back();
        let Some((place, _)) = last else {
            return Ok(());
        };
        if *place <= self.acts {
            let said = format!("an act became visible after place {}", self.acts);
            return violation("acts become visible in their order", said);
        }
        self.acts = *place;
        Ok(())
    }
}

const PLAN_MOVES: &[(&str, &[&str])] = &[
    ("proposed", &["approved", "cancelled", "expired"]),
    (
        "approved",
        &["approved", "committed", "revoked", "cancelled", "expired"],
    ),
    ("committed", &["committed"]),
];

fn plan_state(changed: &Changed<PlanStateRow>) -> Verdict {
    let Some(after) = &changed.after else {
        return violation("plans never change", "a plan's state is gone");
    };
    let plan = after.plan;
    let Some(before) = &changed.before else {
        return match after.state.as_str() {
            "proposed" => Ok(()),
            state => violation("a plan's states", format!("{plan} begins as {state}")),
        };
    };
    let mut moves = PLAN_MOVES.iter().filter(|(from, _)| *from == before.state);
    let listed = moves
        .next()
        .is_some_and(|(_, to)| to.contains(&after.state.as_str()));
    if !listed {
        let said = format!("{plan}: {} to {}", before.state, after.state);
        return violation("a plan's states", said);
    }
    if after.revision.0 != before.revision.0 + 1 {
        return violation("revisions go up by one", format!("{plan}"));
    }
    if before.operation.is_some() && before.operation != after.operation {
        return violation("one operation per plan", format!("{plan}"));
    }
    Ok(())
}

/// A plan is revoked with the approval it rests on, or with who gave that (EaR 2, PA §8.1).
fn revoked(case: &Case<'_>, changed: &Changed<PlanStateRow>) -> Verdict {
    let (Some(before), Some(after)) = (&changed.before, &changed.after) else {
        return Ok(());
    };
    if after.state != "revoked" {
        return Ok(());
    }
    let execution = &case.tables.execution;
    let approval = before.approval;
    let approval = approval.and_then(|id| execution.approvals.get(SEEN, &id));
    let gone = approval.is_some_and(|record| {
        let (id, approver) = (record.approval.id, record.approval.approver.principal);
        let row = case.tables.authoring.principals.get(SEEN, &approver);
        execution.approval_revocations.get(SEEN, &id).is_some()
            || row.is_some_and(|row| row.revoked_at.is_some())
    });
    match gone {
        true => Ok(()),
        false => violation(
            "a plan is revoked with the approval it rests on",
            format!("{}", after.plan),
        ),
    }
}
