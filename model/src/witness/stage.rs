//! A quiet world that a schedule written by hand drives: no faults, nobody who acts by chance.
//!
//! Begins with the genesis and holds no server but those that a schedule brings up. Judges
//! look after every step, as in a sweep. Never in this module: what a witness is for.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use bronzeward_core::time::{DbTime, Span};
use bronzeward_without::Without;

use crate::genesis::Genesis;
use crate::judges::Judges;
use crate::people::hand::{Ended, Hand, Person};
use crate::pg::{Eye, Row, Table, Tables};
use crate::run::{Run, Stepped};
use crate::sched::{Leaf, ProcessId, Wait};
use crate::seed::{End, in_a_world};
use crate::server::{Loops, Server, bring_up};
use crate::sim::{Sim, State};

/// What a schedule's step comes to: an end ends the schedule.
pub type Step<T = ()> = Result<T, End>;

/// How long something is waited for.
const PATIENCE: Span = Span::seconds(300);

/// People of a schedule.
pub const AUTHOR: Person = Person {
    name: "ann",
    groups: &["author"],
};
pub const PUBLISHER: Person = Person {
    name: "pam",
    groups: &["publisher"],
};
pub const APPROVER: Person = Person {
    name: "vic",
    groups: &["approver"],
};
pub const ADMIN: Person = Person {
    name: "rae",
    groups: &["recovery-admin"],
};

pub struct Stage {
    pub run: Run,
    pub sim: Arc<Sim>,
    judges: Judges,
}

/// The value of work that was begun, once there is one.
pub struct Pending<T>(Arc<Mutex<Option<T>>>);

impl<T> Pending<T> {
    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_there(&self) -> bool {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.is_some()
    }
}

/// Plays a schedule under a set of rules.
pub fn play(genesis: &Genesis, rules: Without, act: fn(&mut Stage) -> Step) -> End {
    traced(genesis, rules, act).0
}

/// The same with its trace.
pub fn traced(genesis: &Genesis, rules: Without, act: fn(&mut Stage) -> Step) -> (End, String) {
    let sim = Sim::new(0, rules, true);
    let judges = genesis.begin(&sim);
    let mut stage = Stage {
        run: Run::new(Arc::clone(&sim)),
        sim,
        judges,
    };
    let sim = Arc::clone(&stage.sim);
    let end = match in_a_world(|| act(&mut stage)) {
        Ok(Ok(())) => End::Clean,
        Ok(Err(end)) => end,
        Err(panic) => End::Error(panic),
    };
    let trace = sim.state().trace.text().to_owned();
    (end, trace)
}

impl Stage {
    /// A server that does what it is told and nothing else.
    pub fn server(&mut self) -> Step<Arc<Server>> {
        self.server_with(Loops::NONE)
    }

    /// A server with its controller.
    pub fn controller(&mut self) -> Step<Arc<Server>> {
        self.server_with(Loops {
            dispatch: true,
            ..Loops::NONE
        })
    }

    /// A server with its publication worker.
    pub fn worker(&mut self) -> Step<Arc<Server>> {
        self.server_with(Loops {
            publications: true,
            ..Loops::NONE
        })
    }

    pub fn server_with(&mut self, loops: Loops) -> Step<Arc<Server>> {
        self.started(false, loops)
    }

    /// A process that was started for recovery.
    pub fn recovery_start(&mut self) -> Step<Arc<Server>> {
        self.started(true, Loops::NONE)
    }

    fn started(&mut self, recovery: bool, loops: Loops) -> Step<Arc<Server>> {
        let id = self.sim.state().house.next_process();
        if recovery {
            self.sim.state().house.recovering.insert(id);
        }
        let boot = bring_up(Arc::clone(&self.sim), id, recovery, loops);
        let up = self.begin(id, boot);
        self.finish(&up)?;
        let server = self.sim.state().house.up.get(&id).cloned();
        server.ok_or_else(|| End::Error("a server is not up".to_owned()))
    }

    /// Kills a server where it stands.
    pub fn kill(&mut self, server: &Server) {
        self.sim.state().house.up.remove(&server.id);
        self.run.kill(server.id);
    }

    /// Begins work in a process.
    pub fn begin<T: Send + 'static>(
        &mut self,
        process: ProcessId,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Pending<T> {
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        self.run.spawn(process, async move {
            let value = work.await;
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        });
        Pending(slot)
    }

    /// Lets the world go on until begun work has its value.
    pub fn finish<T>(&mut self, pending: &Pending<T>) -> Step<T> {
        self.until("work that ends", |_| pending.is_there())?;
        pending
            .take()
            .ok_or_else(|| End::Error("a value was taken twice".to_owned()))
    }

    /// Work of a server, to its end.
    pub fn call<T: Send + 'static>(
        &mut self,
        server: &Arc<Server>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Step<T> {
        let begun = self.begin(server.id, work);
        self.finish(&begun)
    }

    /// Begins a person's act, asked of this server.
    pub fn ask<F>(
        &mut self,
        server: &Arc<Server>,
        person: Person,
        act: impl FnOnce(Hand) -> F + Send + 'static,
    ) -> Pending<Ended>
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        let hand = Hand {
            prefers: Some(server.id),
            calm: true,
            ..Hand::new(&self.sim, person)
        };
        self.begin(ProcessId::WORLD, act(hand))
    }

    /// A person's act to its end.
    pub fn asked<F>(
        &mut self,
        server: &Arc<Server>,
        person: Person,
        act: impl FnOnce(Hand) -> F + Send + 'static,
    ) -> Step<Ended>
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        let pending = self.ask(server, person, act);
        self.finish(&pending)
    }

    pub fn hold(&mut self, server: &Server) {
        self.run.hold(server.id);
    }

    pub fn let_go(&mut self, server: &Server) {
        self.run.let_go(server.id);
    }

    /// Lets the world go on until something is so.
    pub fn until(&mut self, what: &str, is: impl Fn(&State) -> bool) -> Step {
        let most = self.now() + PATIENCE;
        while !is(&self.sim.state()) {
            if self.now() > most {
                return Err(self.stuck(what));
            }
            self.step(what)?;
        }
        Ok(())
    }

    /// Lets the world go on until a process has carried out a statement or call, as the trace
    /// names it.
    pub fn until_said(&mut self, server: &Server, what: &'static str) -> Step {
        let from = self.sim.state().trace.text().len();
        let line = format!(" {} {what}\n", server.id);
        self.until(what, |state| state.trace.text()[from..].contains(&line))
    }

    /// Lets the world go on for a while.
    pub fn pass(&mut self, length: Span) -> Step {
        // Somebody's alarm, so that a world in which nothing else is due goes no further.
        let (sim, until) = (Arc::clone(&self.sim), self.now() + length);
        let passed = self.begin(ProcessId::WORLD, async move {
            Leaf::new(&sim, Wait::Until(until)).await;
        });
        self.finish(&passed)
    }

    fn step(&mut self, what: &str) -> Step {
        match self.run.step() {
            Stepped::Still => Err(self.stuck(what)),
            Stepped::Moved => self.judge(),
        }
    }

    /// The last of the trace says what the schedule waits for in vain.
    fn stuck(&self, what: &str) -> End {
        let state = self.sim.state();
        let lines: Vec<&str> = state.trace.text().lines().collect();
        let last = lines[lines.len().saturating_sub(12)..].join("\n");
        End::Error(format!("waits in vain for {what}:\n{last}"))
    }

    fn judge(&mut self) -> Step {
        let mut state = self.sim.state();
        let events = state.journal.take();
        let looked = self.judges.look(&mut state, &events);
        looked.map_err(End::Violated)
    }

    /// Something that happens beside the database.
    pub fn outside<T>(&mut self, happens: impl FnOnce(&mut State) -> T) -> Step<T> {
        let value = happens(&mut self.sim.state());
        self.judge()?;
        Ok(value)
    }

    /// Changes a committed row as somebody beside the product would: no judge is asked.
    pub fn alter<K, V>(
        &mut self,
        table: fn(&mut Tables) -> &mut Table<K, V>,
        key: K,
        change: impl FnOnce(&mut V),
    ) -> Step
    where
        K: Ord + Clone + Send + 'static,
        V: Row<K> + Clone,
    {
        let mut state = self.sim.state();
        let state = &mut *state;
        let found = table(&mut state.db.tables)
            .get(Eye::COMMITTED, &key)
            .cloned();
        let mut row = found.ok_or_else(|| End::Error("no such row to change".to_owned()))?;
        change(&mut row);
        self.put(state, table, key, row)
    }

    /// Adds a row in the same way.
    pub fn add<K, V>(&mut self, table: fn(&mut Tables) -> &mut Table<K, V>, key: K, row: V) -> Step
    where
        K: Ord + Clone + Send + 'static,
        V: Row<K>,
    {
        let sim = Arc::clone(&self.sim);
        self.put(&mut sim.state(), table, key, row)
    }

    fn put<K, V>(
        &self,
        state: &mut State,
        table: fn(&mut Tables) -> &mut Table<K, V>,
        key: K,
        row: V,
    ) -> Step
    where
        K: Ord + Clone + Send + 'static,
        V: Row<K>,
    {
        let now = state.sched.now();
        let id = state.db.begin(ProcessId::WORLD, now);
        state.db.put(id, table, key, row);
        let written = state.commit(id);
        let _unjudged = state.journal.take();
        written.map_err(|error| End::Error(format!("a row is not changed: {error}")))
    }

    pub fn now(&self) -> DbTime {
        self.run.now()
    }

    /// Looks at what is committed.
    pub fn see<T>(&self, look: impl FnOnce(&Tables) -> T) -> T {
        look(&self.sim.state().db.tables)
    }
}
