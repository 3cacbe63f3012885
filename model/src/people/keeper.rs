//! Who keeps the installation: takes backups, restores one, and works recovery mode off.
//!
//! A restore is the operator's procedure of PA §12.2: everything is stopped, something is
//! restored, one process is started for recovery and entry is asked for, and only then are
//! servers started again. Sometimes a process is forgotten. Once recovery mode is in effect it
//! is worked off also in the healed world: nothing it refuses is needed to leave it (EaR 8.12).
//! Never in this module: an act's own request.

use std::collections::BTreeMap;
use std::sync::Arc;

use bronzeward_core::id::{EpochId, MachineId};
use bronzeward_core::installation::{BackupFamily, EntryRequest, RestoredBackup};
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::tx::recovery::AccountedScope;

use super::hand::{Ended, Hand, Person};
use super::view::{KEEPER, View};
use crate::hazard::Hazard;
use crate::pg::restore::Backup;
use crate::ports::provider::Contents;
use crate::run::Run;
use crate::sched::ProcessId;
use crate::server::{Order, PLANS, SETTLE_FLOOR, Server};
use crate::sim::Sim;

/// The keeper comes to work, where the seed is about restores.
pub fn come(run: &mut Run, sim: &Arc<Sim>, servers: u32) {
    if sim.state().hazard != Hazard::Restores {
        return;
    }
    let person = Person {
        name: KEEPER,
        groups: &["recovery-admin"],
    };
    let keeper = || Keeper {
        hand: Hand::new(sim, person),
        servers,
    };
    run.spawn(ProcessId::WORLD, keeper().restores());
    run.spawn(ProcessId::WORLD, keeper().works_off());
}

struct Keeper {
    hand: Hand,
    /// How many servers there are when none is missing.
    servers: u32,
}

/// What was backed up at one moment.
struct Kept {
    database: Backup,
    provider: Contents,
}

/// A process that was to be stopped and was not.
struct Forgotten {
    server: Arc<Server>,
    /// It stands still for a while.
    paused: bool,
}

/// How long a forgotten process stands still at most: mostly until after the entry. It keeps
/// its locks meanwhile, so that the entry may have to wait for it.
const STILL: Span = Span::seconds(30);

impl Keeper {
    fn rests(&self) -> bool {
        self.hand.sim.state().people_rest
    }

    /// A while; hardly any once the world is healed.
    async fn while_at_most(&self, most: Span) {
        let most = match self.rests() {
            true => Span::millis(200),
            false => most,
        };
        self.hand.sleep(Span::millis(1), most).await;
    }

    fn one_in(&self, number: u32) -> bool {
        self.hand.sim.state().rng.u32(0..number) == 0
    }

    async fn restores(self) {
        let mut kept = Vec::new();
        self.while_at_most(Span::seconds(4)).await;
        loop {
            if self.rests() {
                return;
            }
            kept.push(self.backed_up());
            self.while_at_most(Span::seconds(5)).await;
            if self.rests() {
                return;
            }
            if kept.len() > 2 || self.one_in(2) {
                self.restore(&kept).await;
                self.while_at_most(Span::seconds(60)).await;
            }
        }
    }

    fn backed_up(&self) -> Kept {
        let state = self.hand.sim.state();
        Kept {
            database: state.back_up(),
            provider: state.outside.vault.snapshot(),
        }
    }

    /// The whole procedure, to the point at which servers run again.
    async fn restore(&self, kept: &[Kept]) {
        let forgotten = self.stop();
        let stopped_at = self.hand.sim.state().sched.now();
        self.while_at_most(Span::seconds(2)).await;
        let restored = self.put_back(kept);
        self.while_at_most(Span::seconds(2)).await;
        let before = {
            let mut state = self.hand.sim.state();
            state.db.down = false;
            View(&state.db.tables)
                .installation()
                .map(|(epoch, _)| epoch)
        };
        let entry = EntryRequest {
            restored,
            stopped_at,
            reason: "restored".to_owned(),
        };
        let recovering = self.enter(&entry, before).await;
        self.hand.sim.state().house.closed = false;
        for _ in 0..self.servers {
            self.start(false);
            self.while_at_most(Span::seconds(3)).await;
        }
        self.while_at_most(Span::seconds(15)).await;
        // Every token of an earlier epoch is refused until the tool reissues it.
        self.hand.rotate_token().await;
        self.order(Order::Kill(recovering));
        if let Some(forgotten) = forgotten {
            self.remember(forgotten).await;
        }
        self.hand.report_orphans().await;
    }

    /// Stops everything, or all but one.
    fn stop(&self) -> Option<Forgotten> {
        let mut state = self.hand.sim.state();
        let state = &mut *state;
        let (house, rng) = (&mut state.house, &mut state.rng);
        house.closed = true;
        let up = house.up.len();
        let place = (up > 0 && rng.u32(0..3) == 0).then(|| rng.usize(0..up));
        let server = place.and_then(|place| house.up.values().nth(place).cloned());
        let forgotten = server.map(|server| Forgotten {
            server,
            paused: rng.u32(0..4) > 0,
        });
        let spared = forgotten.as_ref().map(|one| one.server.id);
        let stopped = house.alive.iter().filter(|id| Some(**id) != spared);
        let orders: Vec<Order> = stopped.map(|id| Order::Kill(*id)).collect();
        house.orders.extend(orders);
        if let Some(one) = forgotten.as_ref().filter(|one| one.paused) {
            let until = state.sched.now() + Span::micros(rng.i64(0..STILL.as_micros()));
            house.orders.push(Order::Pause(one.server.id, until));
            // Nobody is sent to one that does not answer.
            house.up.remove(&one.server.id);
        }
        forgotten
    }

    /// Restores the database, the provider or both. The provider's backup is mostly no older
    /// than the database's, as the pairing of PA §12.3 asks.
    fn put_back(&self, kept: &[Kept]) -> Vec<RestoredBackup> {
        let mut state = self.hand.sim.state();
        let database = state.rng.usize(0..kept.len());
        let provider = match state.rng.u32(0..4) {
            0 => state.rng.usize(0..kept.len()),
            _ => state.rng.usize(database..kept.len()),
        };
        let which = state.rng.u32(0..10);
        let mut restored = Vec::new();
        let mut name = |family, taken_at| {
            restored.push(RestoredBackup {
                family,
                backup: "kept".to_owned(),
                taken_at,
            });
        };
        if which < 8 {
            let backup = &kept[database].database;
            state.restore(backup);
            name(BackupFamily::Database, backup.taken_at);
        }
        if which >= 5 {
            let backup = &kept[provider];
            state.outside.vault.restore(backup.provider.clone());
            let now = state.sched.now();
            let then = backup.database.taken_at.as_micros();
            state
                .trace
                .say(now, format_args!("the provider is restored to {then}"));
            name(BackupFamily::Provider, backup.database.taken_at);
        }
        restored
    }

    fn order(&self, order: Order) {
        self.hand.sim.state().house.orders.push(order);
    }

    fn start(&self, recovery: bool) -> ProcessId {
        let mut state = self.hand.sim.state();
        let id = state.house.next_process();
        state.house.orders.push(Order::Start { id, recovery });
        id
    }

    /// Starts a process for recovery, and asks for entry until one has committed.
    async fn enter(&self, entry: &EntryRequest, before: Option<EpochId>) -> ProcessId {
        let mut recovering = self.start(true);
        loop {
            self.hand.sleep(Span::millis(200), Span::seconds(2)).await;
            let gone = !self.hand.sim.state().house.alive.contains(&recovering);
            if gone {
                recovering = self.start(true);
                continue;
            }
            // How it ended is asked of the database, as for any lost answer.
            let _asked: Ended = self.hand.enter_recovery(entry.clone()).await;
            let now = View(&self.hand.sim.state().db.tables).installation();
            if now.is_some_and(|(epoch, recovery)| recovery && Some(epoch) != before) {
                if self.one_in(3) {
                    // Under another key, by somebody who did not hear of the first.
                    self.hand.enter_recovery(entry.clone()).await;
                }
                return recovering;
            }
        }
    }

    /// A forgotten process goes on, and is stopped when somebody notices.
    async fn remember(&self, forgotten: Forgotten) {
        let id = forgotten.server.id;
        {
            let mut state = self.hand.sim.state();
            if forgotten.paused && state.house.alive.contains(&id) {
                state.house.up.insert(id, forgotten.server);
            }
        }
        self.while_at_most(Span::seconds(30)).await;
        self.order(Order::Kill(id));
    }

    async fn works_off(self) {
        loop {
            self.hand
                .sleep(Span::millis(100), Span::millis(2_500))
                .await;
            let (closed, recovering) = {
                let state = self.hand.sim.state();
                (state.house.closed, View(&state.db.tables).installation())
            };
            let Some((epoch, recovering)) = recovering else {
                return;
            };
            match (closed, recovering) {
                (false, true) => self.work(epoch).await,
                (false, false) if self.rests() => return,
                _ => {}
            }
        }
    }

    /// One act of recovery, mostly one that is due.
    async fn work(&self, epoch: EpochId) {
        let hasty = !self.rests() && self.one_in(6);
        let Some((machine, scope)) = self.hand.pick(|view| view.scopes()) else {
            return;
        };
        if hasty {
            match self.hand.number(4) {
                0 => self.hand.exit_recovery().await,
                1 => self.hand.decommission(machine).await,
                2 => self.hand.release_scope(machine).await,
                _ => {
                    self.hand.report_orphans().await;
                    return;
                }
            };
            return;
        }
        match scope {
            ScopeState::PreRestoreUnaccounted => self.account(machine, epoch).await,
            ScopeState::Unresolved | ScopeState::Blocked => self.look_at(machine).await,
            // A publication may have changed Desired since the mark.
            ScopeState::Ready if self.one_in(4) => {
                self.hand.mark_scope(machine).await;
            }
            ScopeState::Ready => {
                self.hand.release_scope(machine).await;
            }
            ScopeState::Released { .. } | ScopeState::Retired | ScopeState::Normal => {
                let all = self.hand.pick(|view| vec![view.all_released(epoch)]);
                if all == Some(true) {
                    self.hand.exit_recovery().await;
                }
            }
        }
    }

    /// Accounts for a scope by two of its recovery observations: two that bracket the
    /// settle, or at times any two.
    async fn account(&self, machine: MachineId, epoch: EpochId) {
        let any = !self.rests() && self.one_in(2);
        let picked = {
            let mut state = self.hand.sim.state();
            let state = &mut *state;
            let view = View(&state.db.tables);
            let seen = view.recovery_observations(machine);
            match any {
                true if seen.is_empty() => None,
                true => {
                    let start = seen[state.rng.usize(0..seen.len())].0;
                    Some((start, seen[state.rng.usize(0..seen.len())].0))
                }
                false => {
                    let longest = Span::seconds(PLANS.max_transport);
                    let erased = view.stopped_at(epoch).map(|at| at + longest);
                    erased.and_then(|erased| bracket(&seen, erased, &mut state.rng))
                }
            }
        };
        let Some((start, end)) = picked else {
            return;
        };
        let scopes = BTreeMap::from([(machine, AccountedScope { start, end })]);
        self.hand.account_scopes(scopes).await;
    }

    /// Ends what holds the scope, where a person may, and marks it.
    async fn look_at(&self, machine: MachineId) {
        let held = self.hand.pick(|view| {
            let open = view.open_operations().into_iter();
            open.filter(|(_, _, of)| *of == machine).collect()
        });
        if let Some((operation, _, _)) = held
            && self.one_in(2)
        {
            self.hand.resolve(operation).await;
            return;
        }
        if self.rests() || !self.one_in(16) {
            self.hand.mark_scope(machine).await;
        } else {
            self.hand.decommission(machine).await;
        }
    }
}

/// Two readings that bracket a settle. What an operation of the scope has to wait for besides
/// is not looked up: one of the later readings began after it.
fn bracket(
    seen: &[super::view::Looked],
    erased: DbTime,
    rng: &mut fastrand::Rng,
) -> Option<(
    bronzeward_core::id::ObservationId,
    bronzeward_core::id::ObservationId,
)> {
    let end = seen.last()?;
    let early = |one: &&super::view::Looked| one.1 > erased && end.1 >= one.2 + SETTLE_FLOOR;
    let starts: Vec<&super::view::Looked> = seen.iter().filter(early).collect();
    let place = (!starts.is_empty()).then(|| rng.usize(0..starts.len()))?;
    Some((starts[place].0, end.0))
}
