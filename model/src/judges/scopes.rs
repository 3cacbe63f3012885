//! Scopes: how each moves in and out of recovery mode, and on which evidence (EaR 7.1, 7.3);
//! and freezes, which outlive all of it (EaR 6.2).

use std::collections::BTreeSet;

use bronzeward_core::id::{ActId, MachineId};
use bronzeward_core::inventory::IdentityKey;
use bronzeward_core::observation::{NodeIdentity, Observation, Purpose};
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::Span;
use bronzeward_engine::rows::MachineRow;

use super::accountings::bracketed;
use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::{Change, Changed};
use crate::server::PLANS;
use crate::store::execution::holds;

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        if let Change::Machine(changed) = change {
            frozen(case, changed)?;
            moved(case, changed)?;
        }
    }
    Ok(())
}

/// The acts that this commit records.
fn acts(case: &Case<'_>) -> BTreeSet<ActId> {
    let acts = case.changes.iter().filter_map(|change| match change {
        Change::Act(changed) => changed.after.as_ref().map(|act| act.row.id),
        _ => None,
    });
    acts.collect()
}

fn did(case: &Case<'_>, action: &str) -> bool {
    case.changes.iter().any(|change| {
        matches!(change, Change::Act(changed)
            if changed.after.as_ref().is_some_and(|act| act.row.action == action))
    })
}

/// Only people freeze and unfreeze; nothing that is unaccounted for is opened.
fn frozen(case: &Case<'_>, changed: &Changed<MachineRow>) -> Verdict {
    let (Some(before), Some(after)) = (&changed.before, &changed.after) else {
        return Ok(());
    };
    let asked = match (before.frozen, after.frozen) {
        (false, true) => did(case, "machine-frozen"),
        (true, false) => {
            if before.scope == ScopeState::PreRestoreUnaccounted {
                let said = format!("{}", after.id);
                return violation("an unaccounted scope is not unfrozen", said);
            }
            did(case, "machine-unfrozen")
        }
        _ => true,
    };
    match asked {
        true => Ok(()),
        false => violation(
            "a freeze is set and lifted by its act",
            format!("{}", after.id),
        ),
    }
}

fn moved(case: &Case<'_>, changed: &Changed<MachineRow>) -> Verdict {
    let Some(after) = &changed.after else {
        return violation("machines are kept", "a machine is gone");
    };
    let Some(before) = &changed.before else {
        let recovering = case.tables.authoring.installation.get(SEEN, &());
        let first = match recovering.is_some_and(|row| row.recovery_mode) {
            true => ScopeState::PreRestoreUnaccounted,
            false => ScopeState::Normal,
        };
        return legal(after, after.scope == first, after.scope);
    };
    use ScopeState as S;
    match (before.scope, after.scope) {
        (from, to) if from == to => match did(case, "scope-marked") && !acts(case).is_empty() {
            true => marked(case, after),
            false => Ok(()),
        },
        (S::Retired, _) => legal(after, false, before.scope),
        (_, S::PreRestoreUnaccounted) => legal(after, did(case, "recovery-entered"), before.scope),
        (S::PreRestoreUnaccounted, S::Blocked | S::Unresolved) => accounted(case, after),
        (S::Blocked | S::Unresolved | S::Ready, S::Blocked | S::Unresolved | S::Ready) => {
            marked(case, after)
        }
        (S::Ready, S::Released { .. }) => released(case, after),
        (S::Released { .. }, S::Normal) => legal(after, did(case, "recovery-exited"), before.scope),
        (_, S::Retired) => retired(case, after),
        (from, _) => legal(after, false, from),
    }
}

fn legal(after: &MachineRow, legal: bool, from: ScopeState) -> Verdict {
    if legal {
        return Ok(());
    }
    let said = format!(
        "{}: {} to {}",
        after.id,
        from.as_str(),
        after.scope.as_str()
    );
    violation("a scope's states", said)
}

fn holder(case: &Case<'_>, of: MachineId) -> bool {
    let mut operations = case.operations();
    operations.any(|one| {
        one.row.machine == Some(of)
            && one.row.plan.is_some()
            && holds(&one.row.state)
            && !one.retired
    })
}

/// The settle of what the restore erased: from the stop, the longest deadline and the floor.
fn accounted(case: &Case<'_>, machine: &MachineRow) -> Verdict {
    const WORDS: &str = "a scope is accounted for once its requests have settled";
    let execution = &case.tables.execution;
    let of = machine.id;
    let rows = execution
        .scope_accountings
        .range(SEEN, (of, 0)..=(of, i64::MAX));
    let ours = acts(case);
    let Some((_, row)) = rows.rev().find(|(_, row)| ours.contains(&row.decided.act)) else {
        return violation(WORDS, format!("{of}: by nobody"));
    };
    let entry = case
        .epoch()
        .and_then(|epoch| execution.entries.get(SEEN, &epoch));
    let Some(entry) = entry else {
        return violation(WORDS, format!("{of}: without an entry"));
    };
    let stopped = entry.0.stopped_at;
    let erased = stopped + Span::seconds(PLANS.max_transport);
    bracketed(
        case,
        WORDS,
        of,
        (row.start, row.end),
        erased,
        row.decided.at,
    )?;
    for operation in case.operations() {
        let held = operation.row.machine == Some(of) && operation.row.plan.is_some();
        if !held || !holds(&operation.row.state) || operation.retired {
            continue;
        }
        let attempts = case.attempts(operation.row.id);
        if attempts.iter().any(|one| one.accounted_at().is_none()) {
            return violation(WORDS, format!("{}: an attempt is not", operation.row.id));
        }
    }
    match (machine.scope, holder(case, of)) {
        (ScopeState::Unresolved, true) | (ScopeState::Blocked, false) => Ok(()),
        (state, _) => violation(WORDS, format!("{of} is {}", state.as_str())),
    }
}

/// Whether a node's statement is of the recorded machine, compared here by hand.
fn is(machine: &MachineRow, identity: &NodeIdentity) -> bool {
    let key = match &machine.key {
        IdentityKey::SmbiosUuid(uuid) => identity.smbios_uuid.as_ref() == Some(uuid),
        IdentityKey::TalosNodeId(node) => {
            identity.smbios_uuid.is_none() && identity.node_id == *node
        }
    };
    key && identity.talos_cluster == machine.talos_cluster
}

fn marked(case: &Case<'_>, machine: &MachineRow) -> Verdict {
    const WORDS: &str = "a mark says what its observation shows";
    let of = machine.id;
    let execution = &case.tables.execution;
    let ours = acts(case);
    let mut rows = execution
        .scope_marks
        .range(SEEN, (of, 0)..=(of, i64::MAX))
        .rev();
    let Some((_, mark)) = rows.find(|(_, row)| ours.contains(&row.decided.act)) else {
        return legal(machine, false, machine.scope);
    };
    if mark.marked.to != machine.scope {
        return violation(WORDS, format!("{of} is {}", machine.scope.as_str()));
    }
    let held = holder(case, of);
    if held != (machine.scope == ScopeState::Unresolved) {
        return violation(WORDS, format!("{of}: its operation"));
    }
    if machine.scope != ScopeState::Ready {
        return Ok(());
    }
    let Some(seen) = execution.observations.get(SEEN, &mark.observation) else {
        return violation(WORDS, format!("{of}: no observation"));
    };
    let said = |what: &str| format!("{of} is ready: {what}");
    if seen.started.purpose != Purpose::Restoration || seen.started.machine != of {
        return violation(WORDS, said("another purpose or machine"));
    }
    let accounted = execution
        .scope_accountings
        .range(SEEN, (of, 0)..=(of, i64::MAX));
    let mut accounted = accounted.filter(|(_, row)| Some(row.decided.epoch) == case.epoch());
    let Some(((_, at), _)) = accounted.next_back() else {
        return violation(WORDS, said("never accounted for"));
    };
    let basis = seen.started.basis.0;
    if basis <= *at {
        return violation(WORDS, said("observed before the accounting"));
    }
    let timeline = &execution.timelines;
    let mut since = timeline.range(SEEN, (of, basis + 1)..=(of, i64::MAX));
    if since.any(|(_, entry)| matches!(entry.kind.as_str(), "commitment" | "operation-state")) {
        return violation(WORDS, said("an operation moved since"));
    }
    let others = execution.observations.values(SEEN);
    let mut later = others.filter(|one| one.started.machine == of && one.started.basis.0 >= basis);
    let another = |one: &Observation| {
        let identity = one.values.identity.value();
        identity.is_some_and(|identity| !is(machine, identity))
    };
    if seen.values.identity.value().is_none() || later.any(another) {
        return violation(WORDS, said("its identity"));
    }
    let state = case.tables.authoring.machine_states.get(SEEN, &of);
    if state.and_then(|state| state.desired) != mark.desired {
        return violation(WORDS, said("another Desired"));
    }
    match mark.marked.missing.is_empty() {
        true => Ok(()),
        false => violation(WORDS, said("something is missing")),
    }
}

fn released(case: &Case<'_>, machine: &MachineRow) -> Verdict {
    const WORDS: &str = "a scope is released on its latest mark";
    let of = machine.id;
    let execution = &case.tables.execution;
    let current = case.epoch();
    let releases = execution
        .scope_releases
        .range(SEEN, (of, 0)..=(of, i64::MAX));
    let ours = acts(case);
    let mut releases = releases
        .rev()
        .filter(|(_, row)| ours.contains(&row.decided.act));
    let marks = execution.scope_marks.range(SEEN, (of, 0)..=(of, i64::MAX));
    let mut marks = marks.filter(|(_, mark)| Some(mark.decided.epoch) == current);
    let (Some((_, release)), Some(((_, at), mark))) = (releases.next(), marks.next_back()) else {
        return violation(WORDS, format!("{of}: without either"));
    };
    let state = case.tables.authoring.machine_states.get(SEEN, &of);
    let desired = state.and_then(|state| state.desired);
    let good = release.mark.0 == *at
        && mark.marked.to == ScopeState::Ready
        && mark.desired == desired
        && matches!(machine.scope, ScopeState::Released { epoch } if Some(epoch) == current);
    match good {
        true => Ok(()),
        false => violation(WORDS, format!("{of}")),
    }
}

/// What answers is not written off: its last reading read no identity.
fn retired(case: &Case<'_>, machine: &MachineRow) -> Verdict {
    const WORDS: &str = "a machine that answers is not written off";
    let of = machine.id;
    let execution = &case.tables.execution;
    if execution.decommissions.get(SEEN, &of).is_none() {
        return legal(machine, false, machine.scope);
    }
    let seen = execution.observations.values(SEEN);
    let seen = seen.filter(|one| one.started.machine == of);
    let last = seen.max_by_key(|one| one.started.basis);
    match last.is_some_and(|last| last.values.identity.value().is_none()) {
        true => Ok(()),
        false => violation(WORDS, format!("{of}")),
    }
}
