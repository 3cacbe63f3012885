//! Machines due to be read for drift (EaR 6.1).

use bronzeward_core::observation::Purpose;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::DriftRead;

use super::holds;
use crate::pg::{Eye, Tables};

/// The earliest first, at most `limit`.
pub(super) fn due(tables: &Tables, eye: Eye, before: DbTime, limit: u16) -> Vec<DriftRead> {
    let rows = &tables.execution;
    let machines = tables.authoring.machines.values(eye);
    let due = machines.filter_map(|machine| {
        let state = tables.authoring.machine_states.get(eye, &machine.id)?;
        let applied = state.applied?;
        let made = rows.operations.get(eye, &applied.operation)?.row.created_at;
        let starts = rows.starts.values(eye);
        let read = starts
            .filter(|one| one.machine == machine.id && one.purpose == Purpose::Drift)
            .map(|one| one.started_at)
            .max();
        let last = read.map_or(made, |read| read.max(made));
        let held = rows.operations.values(eye).any(|one| {
            one.row.machine == Some(machine.id) && !one.retired && holds(&one.row.state)
        });
        let there = machine.scope != ScopeState::Retired && !held && last <= before;
        there.then_some(DriftRead {
            machine: machine.id,
            last,
        })
    });
    let mut due: Vec<DriftRead> = due.collect();
    due.sort_by_key(|one| (one.last, one.machine));
    due.truncate(usize::from(limit));
    due
}
