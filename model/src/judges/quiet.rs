//! The final oracle of a healed world: everything has ended, or waits for a named human act.

use bronzeward_core::plan::PlanOperation;
use bronzeward_core::scope::ScopeState;
use bronzeward_engine::rows::MachineRow;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::journal::Held;
use crate::sched::ProcessId;
use crate::sim::State;
use crate::store::execution::holds;

/// Recovery mode never blocks its own exit (EaR 8.12): somebody works it off, and what keeps
/// it is a machine that is not what it was recorded as.
fn recovery(state: &State) -> Verdict {
    if state.house.closed {
        return violation("a restore's procedure ends", "servers are kept stopped");
    }
    let tables = &state.db.tables;
    let installation = tables.authoring.installation.get(SEEN, &());
    if !installation.is_some_and(|row| row.recovery_mode) {
        return Ok(());
    }
    let strange = |machine: &MachineRow| {
        let node = state.outside.nodes.at(machine.endpoint);
        machine.scope != ScopeState::Retired
            && node.is_none_or(|node| node.machine != Some(machine.id))
    };
    let mut machines = tables.authoring.machines.values(SEEN);
    match machines.any(strange) {
        true => Ok(()),
        false => {
            let scopes = tables.authoring.machines.values(SEEN);
            let scopes: Vec<&str> = scopes.map(|row| row.scope.as_str()).collect();
            violation("recovery mode can be left", format!("{scopes:?}"))
        }
    }
}

pub fn look(state: &State) -> Verdict {
    let now = state.sched.now();
    let held = Held {
        began: now,
        waits: Vec::new(),
    };
    let case = Case {
        tables: &state.db.tables,
        now,
        process: ProcessId::WORLD,
        recovering: false,
        owner: None,
        began_in: None,
        denied: None,
        held: &held,
        changes: &[],
    };
    for operation in case.operations() {
        let row = &operation.row;
        if matches!(row.state.as_str(), "queued" | "running") {
            let said = format!("{} {} is {}", row.kind, row.id, row.state);
            return violation("a job ends", said);
        }
        if row.plan.is_none() || !holds(&row.state) || operation.retired {
            continue;
        }
        if row.state != "unresolved" {
            let said = format!("{} is {}", row.id, row.state);
            return violation("an operation ends or waits for a person", said);
        }
        let attempts = case.attempts(row.id);
        let unaccounted = attempts.iter().any(|one| one.accounted_at().is_none());
        // Without an attempt it waits for a gate to open or to be resolved, with one for its
        // accounting, or for a node that shows neither state.
        let frozen = row.machine.is_some_and(|machine| {
            let machine = state.db.tables.authoring.machines.get(SEEN, &machine);
            machine.is_some_and(|machine| machine.frozen)
        });
        let drifted = row.machine.is_some_and(|machine| {
            let drifts = &state.db.tables.execution.drifts;
            let mut of = drifts.range(SEEN, (machine, 0)..=(machine, i64::MAX));
            of.any(|(_, drift)| drift.closed.is_none())
        });
        let strange = row
            .plan
            .and_then(|plan| case.binding(plan))
            .is_some_and(|binding| {
                let now = row
                    .machine
                    .and_then(|machine| crate::furniture::in_force(state, machine));
                // What somebody else brought there completes nothing that was never sent (EaR 5).
                let own = !attempts.is_empty() && now == Some(binding.artifact_digest);
                matches!(binding.operation, PlanOperation::ApplyConfig(_))
                    && now != Some(binding.pre_dispatch_digest)
                    && !own
            });
        if !(unaccounted || frozen || drifted || strange) {
            let said = format!("{} after {} attempts", row.id, attempts.len());
            return violation("an operation ends or waits for a person", said);
        }
    }
    recovery(state)?;
    let claims = state.db.tables.authoring.claims.values(SEEN);
    for claim in claims {
        if claim.state == "held" && claim.mode == "transient" {
            return violation("a lapsed claim is swept", format!("{}", claim.id));
        }
    }
    Ok(())
}
