//! Records that never change, and what changes one step at a time: plans, timelines, drafts,
//! heads, claims, acts and idempotency records (EaR 8.4, 8.8, 8.13, PA §4, §7, §10.5).

use std::collections::BTreeMap;

use bronzeward_core::id::{HeadId, MachineId, RequestId};
use bronzeward_core::revision::Etag;
use bronzeward_engine::rows::{ClaimRow, DraftRow, DraftStateRow, PlanStateRow};

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::{Change, Changed};
use crate::pg::Tables;
use crate::server::CLAIM_LEASE;
use crate::store::authoring::Head;
use crate::store::execution::holds;

#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The last revision of each machine's timeline.
    timelines: BTreeMap<MachineId, i64>,
    /// The last act's place.
    acts: i64,
}

impl Records {
    pub fn look(&mut self, case: &Case<'_>, expected: &BTreeMap<RequestId, Etag>) -> Verdict {
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
                Change::Draft(changed) => draft(case, changed, expected)?,
                Change::Head(changed) => head(case, changed)?,
                Change::Claim(changed) => claim(case, changed)?,
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

fn draft(
    case: &Case<'_>,
    changed: &Changed<DraftRow>,
    expected: &BTreeMap<RequestId, Etag>,
) -> Verdict {
    let (Some(before), Some(after)) = (&changed.before, &changed.after) else {
        return Ok(());
    };
    let id = after.id;
    if after.etag.revision.0 != before.etag.revision.0 + 1 {
        return violation("revisions go up by one", format!("{id}"));
    }
    if before.state != DraftStateRow::Open {
        return violation("an ended draft never changes", format!("{id}"));
    }
    let requests = case.changes.iter().filter_map(|change| match change {
        Change::Act(act) => act.after.as_ref().and_then(|act| act.row.request),
        _ => None,
    });
    for request in requests {
        if let Some(etag) = expected.get(&request)
            && *etag != before.etag
        {
            return violation("no edit of a draft is lost", format!("{id}"));
        }
    }
    if let DraftStateRow::Published(release) = after.state {
        let release = case.tables.execution.releases.get(SEEN, &release);
        let bound = release.map(|release| release.row.draft_revision);
        if bound != Some(before.etag.revision) {
            return violation("a release is of the draft as it stood", format!("{id}"));
        }
    }
    Ok(())
}

fn head(case: &Case<'_>, changed: &Changed<Head>) -> Verdict {
    let Some(after) = &changed.after else {
        return violation("heads are kept", "a head is gone");
    };
    let released = case
        .changes
        .iter()
        .any(|change| matches!(change, Change::Release(_)));
    if !released {
        return violation(
            "only a publication moves a head",
            format!("{:?}", after.row.id),
        );
    }
    if let Some(before) = &changed.before
        && after.row.etag.revision.0 != before.row.etag.revision.0 + 1
    {
        return violation("revisions go up by one", format!("{:?}", after.row.id));
    }
    if let HeadId::Assignment(_) = after.row.id {
        let moved = changed
            .before
            .as_ref()
            .is_none_or(|before| before.row.revision != after.row.revision);
        let held = case.operations().any(|one| {
            one.row.plan.is_some()
                && holds(&one.row.state)
                && !one.retired
                && one
                    .row
                    .machine
                    .is_some_and(|machine| machine.to_string() == after.row.subject)
        });
        if moved && held {
            let said = after.row.subject.clone();
            return violation("a held scope freezes the assignment", said);
        }
    }
    Ok(())
}

const CLAIM_MOVES: &[(&str, &[&str])] = &[
    (
        "held",
        &["held", "paused", "resumed", "released", "abandoned"],
    ),
    ("paused", &["resumed", "abandoned"]),
    ("resumed", &["resumed", "paused", "released", "abandoned"]),
];

fn claim(case: &Case<'_>, changed: &Changed<ClaimRow>) -> Verdict {
    let Some(after) = &changed.after else {
        return violation("claims are kept", "a claim is gone");
    };
    let id = after.id;
    let Some(before) = &changed.before else {
        return match after.state.as_str() {
            "held" => Ok(()),
            state => violation("a claim's states", format!("{id} begins as {state}")),
        };
    };
    let mut moves = CLAIM_MOVES.iter().filter(|(from, _)| *from == before.state);
    let listed = moves
        .next()
        .is_some_and(|(_, to)| to.contains(&after.state.as_str()));
    if !listed {
        let said = format!("{id}: {} to {}", before.state, after.state);
        return violation("a claim's states", said);
    }
    let generations = after.fence.generation.0 - before.fence.generation.0;
    if !(0..=1).contains(&generations) {
        return violation("generations go up by one", format!("{id}"));
    }
    let at = after.lease_until - CLAIM_LEASE;
    if generations == 1 && before.lease_until > at {
        return violation("a live owner is not replaced", format!("{id}"));
    }
    let ours = case.owner.is_none_or(|owner| *owner == before.fence.owner);
    let released = after.state == "released";
    if generations == 0 && (released || after.lease_until > before.lease_until) && !ours {
        return violation("only the owner moves its claim", format!("{id}"));
    }
    if generations == 0 && after.lease_until > before.lease_until && before.lease_until <= at {
        return violation("a lapsed lease is not extended", format!("{id}"));
    }
    if matches!(after.state.as_str(), "released" | "abandoned") && after.payload.is_some() {
        return violation("an ended claim keeps no payload", format!("{id}"));
    }
    Ok(())
}
