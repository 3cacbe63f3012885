//! Steps of a restore and of recovery mode: what an operator and a recovery admin do one after
//! the other (PA §12.2, EaR 7), and a request that stays under way.
//!
//! Never in this module: a premise of one rule.

use std::collections::BTreeMap;
use std::sync::Arc;

use bronzeward_core::id::{EpochId, MachineId};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::installation::{BackupFamily, EntryRequest, RestoredBackup};
use bronzeward_core::observation::Purpose;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::observe::Wanted;
use bronzeward_engine::ports::node::{ApplyAnswer, Asked, NodeWriter as _, TalosAccess};
use bronzeward_engine::tx::recovery::AccountedScope;
use bronzeward_engine::world::Permit;

use super::stage::{ADMIN, Pending, Stage, Step};
use super::steps::{Subject, failed};
use crate::faults::{Fault, Faults};
use crate::people::hand::Ended;
use crate::people::view::View;
use crate::pg::Eye;
use crate::pg::restore::Backup;
use crate::ports::node::SimWriter;
use crate::server::{PLANS, SETTLE_FLOOR, Server};

/// A little after what is waited for.
const MOMENT: Span = Span::millis(100);

fn done(what: &str, ended: &Ended) -> Step {
    match ended {
        Ended::Answered(_) => Ok(()),
        other => Err(failed(&format!("{what}: {other:?}"))),
    }
}

/// What an entry says of a restored database.
pub fn entry_at(stopped_at: DbTime) -> EntryRequest {
    EntryRequest {
        restored: vec![RestoredBackup {
            family: BackupFamily::Database,
            backup: "kept".to_owned(),
            taken_at: stopped_at,
        }],
        stopped_at,
        reason: "restored".to_owned(),
    }
}

impl Stage {
    pub fn back_up(&self) -> Backup {
        self.sim.state().back_up()
    }

    /// The database is put back to a backup, and started.
    pub fn restore(&mut self, backup: &Backup) -> Step {
        self.outside(|state| {
            state.restore(backup);
            state.db.down = false;
        })
    }

    pub fn epoch(&self) -> Step<EpochId> {
        let seen = self.see(|tables| View(tables).installation());
        seen.map(|(epoch, _)| epoch)
            .ok_or_else(|| failed("no installation"))
    }

    /// The next request is sent under this key.
    pub fn insist(&mut self, key: &IdempotencyKey) {
        self.sim.state().house.insisted.key = Some(key.clone());
    }

    /// A process is started for recovery, and entry is asked of it. What ran before it had
    /// stopped at that time, as far as anybody knows.
    pub fn enter(&mut self, stopped_at: DbTime) -> Step<Arc<Server>> {
        let server = self.recovery_start()?;
        let ended = self.asked(&server, ADMIN, move |hand| async move {
            hand.enter_recovery(entry_at(stopped_at)).await
        })?;
        done("an entry", &ended)?;
        Ok(server)
    }

    pub fn machines(&self) -> Vec<MachineId> {
        let seen = self.see(|tables| View(tables).machines());
        seen.into_iter().map(|machine| machine.id).collect()
    }

    pub fn scope(&self, machine: MachineId) -> Step<ScopeState> {
        let row = self.see(|tables| {
            let row = tables.authoring.machines.get(Eye::COMMITTED, &machine);
            row.map(|row| row.scope)
        });
        row.ok_or_else(|| failed("no such machine"))
    }

    /// Every scope is accounted for, by two readings that bracket the settle of what a restore
    /// may have erased.
    pub fn account_scopes(&mut self, server: &Arc<Server>, stopped_at: DbTime) -> Step {
        let settles = stopped_at + Span::seconds(PLANS.max_transport) + MOMENT;
        if settles > self.now() {
            let left = settles - self.now();
            self.pass(left)?;
        }
        let machines = self.machines();
        let mut scopes = BTreeMap::new();
        for machine in &machines {
            let start = self.reading(server, *machine, Purpose::Recovery)?;
            scopes.insert(*machine, AccountedScope { start, end: start });
        }
        self.pass(SETTLE_FLOOR)?;
        for machine in &machines {
            let end = self.reading(server, *machine, Purpose::Recovery)?;
            scopes.entry(*machine).and_modify(|scope| scope.end = end);
        }
        self.pass(SETTLE_FLOOR)?;
        let ended = self.asked(server, ADMIN, move |hand| async move {
            hand.account_scopes(scopes).await
        })?;
        done("an accounting of every scope", &ended)
    }

    /// A scope is marked; what it is by its mark.
    pub fn mark(&mut self, server: &Arc<Server>, machine: MachineId) -> Step<ScopeState> {
        let ended = self.asked(server, ADMIN, move |hand| async move {
            hand.mark_scope(machine).await
        })?;
        done("a mark", &ended)?;
        self.scope(machine)
    }

    pub fn release(&mut self, server: &Arc<Server>, machine: MachineId) -> Step<Ended> {
        self.asked(server, ADMIN, move |hand| async move {
            hand.release_scope(machine).await
        })
    }

    pub fn exit(&mut self, server: &Arc<Server>) -> Step<Ended> {
        self.asked(
            server,
            ADMIN,
            |hand| async move { hand.exit_recovery().await },
        )
    }

    /// Every scope is marked and released, and the mode is left.
    pub fn works_off(&mut self, server: &Arc<Server>) -> Step {
        for machine in self.machines() {
            let marked = self.mark(server, machine)?;
            if marked != ScopeState::Ready {
                return Err(failed(&format!("a scope is {}", marked.as_str())));
            }
            let ended = self.release(server, machine)?;
            done("a release", &ended)?;
        }
        let ended = self.exit(server)?;
        done("an exit", &ended)
    }

    /// While it is so, no node answers a reading.
    pub fn silence(&mut self, silent: bool) {
        self.sim.state().faults = match silent {
            true => Faults::none().with(Fault::NodeSilent, 10_000),
            false => Faults::none(),
        };
    }

    /// From here on a request lands so long after its caller's deadline.
    pub fn hold_requests(&mut self, length: Span) {
        self.sim.state().outside.nodes.held_for = Some(length);
    }

    /// The request of a recorded attempt is sent.
    pub fn send(
        &mut self,
        server: &Arc<Server>,
        subject: &Subject,
        permit: Permit,
    ) -> Step<Pending<ApplyAnswer>> {
        let artifact = self.artifact(server, subject)?;
        let writer = SimWriter::new(&self.sim, server.id);
        let route = subject.binding.route;
        let Some(deadlines) = subject.binding.deadlines() else {
            return Err(failed("a plan that sends nothing"));
        };
        let deadline =
            std::time::Duration::from_micros(deadlines.transport.as_micros().unsigned_abs());
        Ok(self.begin(server.id, async move {
            let access = TalosAccess::new(Vec::new(), Vec::new(), Vec::new());
            let text = artifact.expose().as_bytes();
            writer.apply(permit, &access, route, text, deadline).await
        }))
    }

    /// Lets the world go on until a request has landed that nobody waited for any more.
    pub fn until_landed(&mut self) -> Step {
        self.until("a late landing", |state| {
            state.outside.seen.late_landings > 0
        })
    }

    /// A reading that was taken to see whether a machine has drifted.
    pub fn detect(&mut self, server: &Arc<Server>, machine: MachineId) -> Step {
        let of = Arc::clone(server);
        let detected = self.call(server, async move {
            let id = of.db.mint();
            let wanted = Wanted::of_machine(id, machine, Purpose::Drift, Asked::EVERYTHING);
            of.observer.detect(&wanted).await.is_ok()
        })?;
        match detected {
            true => Ok(()),
            false => Err(failed("a reading for drift")),
        }
    }
}
