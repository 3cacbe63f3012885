//! Somebody's own session on the database: it locks rows in whatever order, looks, and rolls
//! back.
//!
//! Transactions of the product take their locks in one order and cannot wait for each other in
//! a circle; a session beside them can close one, and then the database ends somebody. Never
//! in this module: a write.

use std::sync::Arc;

use bronzeward_core::time::Span;
use bronzeward_engine::ports::store::{LockMode, Store, StoreError, StoreTx};

use crate::hazard::Hazard;
use crate::pg::session::SimStore;
use crate::pg::{Eye, Relation, Tables};
use crate::run::Run;
use crate::sched::{Leaf, ProcessId, Wait};
use crate::sim::Sim;

/// It is opened where the seed is about locks.
pub fn come(run: &mut Run, sim: &Arc<Sim>) {
    if sim.state().hazard == Hazard::Locks {
        run.spawn(ProcessId::WORLD, work(Arc::clone(sim)));
    }
}

async fn work(sim: Arc<Sim>) {
    loop {
        sleep(&sim, Span::seconds(1)).await;
        if sim.state().people_rest {
            return;
        }
        // Its own deadlocks and losses are its own.
        let _ended = look(&sim).await;
    }
}

async fn sleep(sim: &Sim, most: Span) {
    let until = {
        let mut state = sim.state();
        let length = state.rng.i64(1..most.as_micros());
        state.sched.now() + Span::micros(length)
    };
    Leaf::new(sim, Wait::Until(until)).await;
}

async fn look(sim: &Arc<Sim>) -> Result<(), StoreError> {
    let store = SimStore::new(sim, ProcessId::WORLD);
    let mut session = store.begin().await?;
    for _ in 0..3 {
        let (row, mode) = {
            let mut state = sim.state();
            let state = &mut *state;
            let rows = rows(&state.db.tables);
            let row = rows[state.rng.usize(0..rows.len())];
            let mode = match state.rng.bool() {
                true => LockMode::Update,
                false => LockMode::Share,
            };
            (row, mode)
        };
        session.lock_row(row.0, row.1, mode).await?;
        sleep(sim, Span::millis(300)).await;
    }
    session.rollback().await;
    Ok(())
}

/// Rows that requests and the controller lock, the installation's first.
fn rows(tables: &Tables) -> Vec<(Relation, u128)> {
    let seen = Eye::COMMITTED;
    let mut rows = vec![(Relation::Installation, 0)];
    let authoring = &tables.authoring;
    let machines = authoring.machines.iter(seen);
    rows.extend(machines.map(|(id, _)| (Relation::Machine, id.bits())));
    let principals = authoring.principals.iter(seen);
    rows.extend(principals.map(|(id, _)| (Relation::Principal, id.bits())));
    let drafts = authoring.drafts.iter(seen);
    rows.extend(drafts.map(|(id, _)| (Relation::Draft, id.bits())));
    let operations = tables.execution.operations.iter(seen);
    rows.extend(operations.map(|(id, _)| (Relation::Operation, id.bits())));
    rows
}
