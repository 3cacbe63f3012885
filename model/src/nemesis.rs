//! What goes wrong beside calls: processes killed and started, a database that crashes, nodes
//! and providers that somebody else touches.
//!
//! Called after every step. Never in this module: how a part behaves once it was touched.

use std::sync::Arc;

use bronzeward_core::time::{DbTime, Span};

use crate::faults::Fault;
use crate::hazard::Hazard;
use crate::pg::Eye;
use crate::run::Run;
use crate::sched::ProcessId;
use crate::seed::{start, start_as};
use crate::server::Order;
use crate::sim::{Sim, State};

/// A process ends where it stands.
fn end(run: &mut Run, sim: &Arc<Sim>, process: ProcessId, how: &str) {
    {
        let mut state = sim.state();
        state.house.up.remove(&process);
        state.house.alive.remove(&process);
        state.trace(process, how);
    }
    run.kill(process);
}

/// Whoever holds a claim with something to decrypt, at times, where the seed is about leases:
/// only such a claim is ever resumed by another.
fn of_staged(state: &mut State) -> Option<ProcessId> {
    if state.hazard != Hazard::Leases || state.rng.u32(0..3) > 0 {
        return None;
    }
    let mut claims = state.db.tables.authoring.claims.values(Eye::COMMITTED);
    let staged = claims.find(|row| row.state == "held" && row.payload.is_some())?;
    let mut owners = state.house.owners.iter();
    let (owner, _) = owners.find(|(_, owner)| **owner == staged.fence.owner)?;
    state.house.up.contains_key(owner).then_some(*owner)
}

#[derive(Default)]
pub struct Nemesis {
    /// When servers are started in the place of killed ones.
    starts: Vec<DbTime>,
    /// When the database's server is up again.
    database: Option<DbTime>,
}

impl Nemesis {
    pub fn act(&mut self, run: &mut Run, sim: &Arc<Sim>) {
        let now = run.now();
        self.obey(run, sim);
        self.restart(run, sim, now);
        if sim.state().strikes(Fault::Kill) {
            self.kill(run, sim, now);
        }
        let staged = of_staged(&mut sim.state());
        if let Some(owner) = staged {
            end(run, sim, owner, "is killed");
            self.starts.push(now + Span::seconds(2));
        }
        let mut state = sim.state();
        if self.database.is_none() && state.strikes(Fault::DatabaseCrash) {
            state.crash_database();
            let down = Span::micros(state.rng.i64(0..5_000_000));
            self.database = Some(now + down);
        }
        drop(state);
        crate::ports::disturb(&mut sim.state());
    }

    /// Does with processes what the operator has asked for.
    pub fn obey(&mut self, run: &mut Run, sim: &Arc<Sim>) {
        let orders = {
            let mut state = sim.state();
            if state.house.closed {
                self.starts.clear();
            }
            std::mem::take(&mut state.house.orders)
        };
        for order in orders {
            match order {
                Order::Start { id, recovery } => start_as(run, sim, id, recovery),
                Order::Kill(process) => end(run, sim, process, "is stopped"),
                Order::Pause(process, until) => run.pause(process, until),
            }
        }
    }

    fn restart(&mut self, run: &mut Run, sim: &Arc<Sim>, now: DbTime) {
        if self.database.is_some_and(|until| until <= now) {
            self.database = None;
            sim.state().db.down = false;
        }
        let due = self.starts.iter().filter(|at| **at <= now).count();
        self.starts.retain(|at| *at > now);
        for _ in 0..due {
            start(run, sim);
        }
    }

    fn kill(&mut self, run: &mut Run, sim: &Arc<Sim>, now: DbTime) {
        let victim = {
            let mut state = sim.state();
            let up: Vec<ProcessId> = state.house.up.keys().copied().collect();
            if up.is_empty() {
                return;
            }
            up[state.rng.usize(0..up.len())]
        };
        end(run, sim, victim, "is killed");
        let wait = Span::micros(sim.state().rng.i64(0..12_000_000));
        self.starts.push(now + wait);
    }

    /// Ends what still lasts.
    pub fn heal(&mut self, run: &mut Run, sim: &Arc<Sim>) {
        sim.state().db.down = false;
        self.database = None;
        self.obey(run, sim);
        for _ in self.starts.drain(..) {
            start(run, sim);
        }
        crate::ports::heal(&mut sim.state());
    }
}
