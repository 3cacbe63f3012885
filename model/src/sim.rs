//! The world's one state, and the lock around it.
//!
//! One thread runs a world; the mutex is there because workflows are `Send`. It is held for an
//! effect and never across an await. Never in this module: a decision of the product.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bronzeward_core::rules::{Carrier, Rule};
use bronzeward_core::time::Span;
use bronzeward_engine::ports::store::StoreError;
use bronzeward_without::Without;

use crate::change::Outside;
use crate::faults::{Fault, Faults};
use crate::journal::Journal;
use crate::pg::session::FINDING_OUT;
use crate::pg::{Class, Database, Knot, Lockable, Released, TxId};
use crate::sched::{Leaf, ProcessId, Sched};
use crate::trace::Trace;

pub struct Sim {
    state: Mutex<State>,
}

pub struct State {
    pub sched: Sched,
    pub rng: fastrand::Rng,
    pub db: Database,
    pub journal: Journal,
    pub faults: Faults,
    pub outside: crate::ports::Outside,
    /// The servers that are up.
    pub house: crate::server::House,
    /// People begin nothing new: the world is healing.
    pub people_rest: bool,
    /// What the seed is about.
    pub hazard: crate::hazard::Hazard,
    pub rules: Without,
    dropped: BTreeSet<&'static str>,
    pub trace: Trace,
}

impl Sim {
    pub fn new(seed: u64, rules: Without, traced: bool) -> Arc<Self> {
        let schema = Rule::all().iter().filter(|rule| rules.drops(**rule));
        let dropped = schema.filter_map(|rule| match rule.carrier() {
            Carrier::Schema(object) => Some(object),
            Carrier::Decision | Carrier::Guard | Carrier::Lock | Carrier::Type => None,
        });
        Arc::new(Self {
            state: Mutex::new(State {
                sched: Sched::default(),
                rng: fastrand::Rng::with_seed(seed),
                db: Database::default(),
                journal: Journal::default(),
                faults: Faults::none(),
                outside: crate::ports::Outside::default(),
                house: crate::server::House::default(),
                people_rest: false,
                hazard: crate::hazard::Hazard::Uniform,
                rules,
                dropped: dropped.collect(),
                trace: Trace::new(traced),
            }),
        })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        // A panic under it ends the run; what a drop still reads then decides nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a test has dropped an object of the schema.
    pub fn dropped(&self, object: &str) -> bool {
        self.dropped.contains(object)
    }

    pub fn trace(&mut self, process: ProcessId, what: &str) {
        let now = self.sched.now();
        self.trace.step(now, process, what);
    }

    pub fn waited(&mut self, process: ProcessId, what: Lockable) {
        let now = self.sched.now();
        self.trace.waits(now, process, what);
        if matches!(what, Lockable::Advisory(Class::Key, _)) {
            self.outside
                .seen
                .show("a request that waited for its double");
        }
    }

    /// Whether this statement's connection is lost.
    pub fn loses_connection(&mut self, process: ProcessId) -> bool {
        process != ProcessId::WORLD && self.strikes(Fault::Connection)
    }

    pub fn loses_commit(&mut self, process: ProcessId) -> bool {
        process != ProcessId::WORLD && self.strikes(Fault::CommitReply)
    }

    /// Whether a fault strikes now, by its rate; it is counted.
    pub fn strikes(&mut self, fault: Fault) -> bool {
        let Self { faults, rng, .. } = self;
        let struck = faults.strikes(fault, rng);
        if struck {
            let now = self.sched.now();
            self.trace.fault(now, fault);
        }
        struck
    }

    pub fn commit(&mut self, id: TxId) -> Result<(), StoreError> {
        let Self {
            db, journal, rng, ..
        } = self;
        let (outcome, released) = db.commit(id, journal, rng);
        if let Err(error) = outcome {
            let now = self.sched.now();
            self.trace.say(now, format_args!("commit fails: {error}"));
        }
        self.go_on(released);
        outcome
    }

    pub fn fail_transaction(&mut self, id: TxId, why: StoreError) {
        let now = self.sched.now();
        self.trace
            .say(now, format_args!("a statement fails: {why}"));
        let Self {
            db, journal, rng, ..
        } = self;
        let released = db.fail(id, why, journal, rng);
        self.go_on(released);
    }

    /// Goes on with a transaction's request for a lock, once it is woken: none where it has
    /// the lock, else what it waits at next.
    pub fn resume<'s>(&mut self, sim: &'s Sim, id: TxId) -> Option<Leaf<'s>> {
        let mut parked = None;
        let Self { sched, db, rng, .. } = self;
        let park = || {
            let (leaf, name) = Leaf::parked(sim, sched);
            parked = Some(leaf);
            name
        };
        let (_, released) = db.locks.resume(id, park, |among| rng.usize(0..among));
        self.go_on(released);
        if parked.is_some() {
            self.break_circle(id);
        }
        parked
    }

    /// Who has been set free goes on; who waits for another now may have closed a circle.
    fn go_on(&mut self, released: Released) {
        for leaf in released.woken {
            self.sched.wake(leaf);
        }
        for moved in released.moved {
            self.break_circle(moved);
        }
    }

    /// Ends a transaction whose client does not hear of it, at once or when the server finds
    /// out.
    pub fn end_transaction(&mut self, id: TxId, commit: bool, late: bool) {
        if late {
            let most = FINDING_OUT.as_micros();
            let wait = Span::micros(self.rng.i64(0..most));
            let at = self.sched.now() + wait;
            let end = Box::new(move |state: &mut State| state.end_transaction(id, commit, false));
            self.sched.at(at, end);
        } else if commit {
            // Nobody is there to be told of a refusal.
            let _unheard = self.commit(id);
        } else {
            let Self {
                db, journal, rng, ..
            } = self;
            let released = db.rollback(id, journal, rng);
            self.go_on(released);
        }
    }

    /// Makes one transaction of a circle of waits its victim, where no other order of those
    /// that wait undoes it. The victim's wait ends in a deadlock.
    pub fn break_circle(&mut self, id: TxId) {
        let Self { db, rng, .. } = self;
        let circle = match db.locks.untie(id, |among| rng.usize(0..among)) {
            Knot::None => return,
            Knot::Untied(released) => return self.go_on(released),
            Knot::Tied(circle) => circle,
        };
        let victim = circle[self.rng.usize(0..circle.len())];
        self.outside.seen.deadlocks += 1;
        let open = self.db.open_transactions().into_iter();
        let of = open.filter(|(id, _)| circle.contains(id));
        let circle = Outside::Circle(of.map(|(_, process)| process).collect());
        self.journal.outside(circle);
        let leaf = self.db.locks.leaf_of(victim);
        self.fail_transaction(victim, StoreError::Deadlock);
        if let Some(leaf) = leaf {
            self.sched.wake(leaf);
        }
    }

    /// The connections of a process end at once, each with its transaction or snapshot.
    pub fn cut(&mut self, process: ProcessId) {
        self.db.end_connections(Some(process));
        self.end_open(|of| of == process);
    }

    /// The database's server stops at once: every open transaction and snapshot is gone.
    pub fn crash_database(&mut self) {
        self.db.down = true;
        self.db.end_connections(None);
        self.end_open(|_| true);
    }

    fn end_open(&mut self, ends: impl Fn(ProcessId) -> bool) {
        for (id, process) in self.db.open_transactions() {
            if !ends(process) {
                continue;
            }
            let leaf = self.db.locks.leaf_of(id);
            self.end_transaction(id, false, false);
            if let Some(leaf) = leaf {
                self.sched.wake(leaf);
            }
        }
    }
}
