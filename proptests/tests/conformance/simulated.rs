//! The simulated store's side: sessions are tasks of a world without faults or people.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bronzeward_core::time::Span;
use bronzeward_engine::ports::store::{Store, StoreTx};
use bronzeward_model::pg::session::SimStore;
use bronzeward_model::run::{Run, Stepped};
use bronzeward_model::sched::ProcessId;
use bronzeward_model::sim::Sim;
use bronzeward_model::store::authoring::found;
use bronzeward_without::Without;

use crate::actor::{Actor, Answer};
use crate::furniture::{self, SOON};
use crate::op::{Op, Who};
use crate::run::Side;

/// The world's time when a case begins.
const BEGINNING: Span = Span::seconds(1_800_000_000);
/// Between two steps of a case.
const STEP: Span = Span::millis(1);

type Answers = Arc<Mutex<Vec<(Who, Actor<SimStore>, Answer)>>>;

pub struct Simulated {
    sim: Arc<Sim>,
    run: Run,
    idle: BTreeMap<Who, Actor<SimStore>>,
    answers: Answers,
}

fn process(who: Who) -> ProcessId {
    ProcessId(1 + who as u32)
}

impl Simulated {
    /// A furnished store, without the objects of the schema that carry these rules.
    pub fn new(seed: u64, rules: Without) -> Self {
        let sim = Sim::new(seed, rules, false);
        found(&mut sim.state(), furniture::epoch(), [7; 32]).expect("it is founded");
        sim.state().sched.advance(BEGINNING);
        let mut run = Run::new(Arc::clone(&sim));
        let store = SimStore::new(&sim, ProcessId::WORLD);
        let furnished = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&furnished);
        run.spawn(ProcessId::WORLD, async move {
            let mut tx = store.begin().await.expect("it begins");
            let furnish = furniture::furnish(&mut tx).await;
            let came = match furnish {
                Ok(()) => tx.commit().await,
                Err(error) => Err(error),
            };
            *slot.lock().expect("one thread") = Some(came);
        });
        still(&mut run);
        let furnished = furnished.lock().expect("one thread").take();
        furnished
            .expect("nobody is waited for")
            .expect("the simulated store is furnished");
        stand_plans(&sim);
        let idle = Who::ALL.map(|who| (who, Actor::new(SimStore::new(&sim, process(who)))));
        Self {
            sim,
            run,
            idle: idle.into(),
            answers: Arc::default(),
        }
    }
}

/// Moves whatever can move; what stands then, waits.
fn still(run: &mut Run) {
    while run.step() == Stepped::Moved {}
}

/// The states of plans, which the port writes only of whole plans.
fn stand_plans(sim: &Sim) {
    let mut state = sim.state();
    let now = state.sched.now();
    let tx = state.db.begin(ProcessId::WORLD, now);
    for number in 1..=furniture::STANDING {
        let row = furniture::plan_state(number);
        state
            .db
            .put(tx, |t| &mut t.execution.plan_states, row.plan, row);
    }
    state.commit(tx).expect("it commits");
}

impl Side for Simulated {
    fn start(&mut self, who: Who, op: &Op) {
        self.sim.state().sched.advance(STEP);
        let mut actor = self.idle.remove(&who).expect("a session that is idle");
        let (answers, op) = (Arc::clone(&self.answers), op.clone());
        self.run.spawn(process(who), async move {
            let answer = actor.act(&op).await;
            let mut answers = answers.lock().expect("one thread");
            answers.push((who, actor, answer));
        });
    }

    async fn outside(&mut self, who: Who, op: &Op) {
        let mut state = self.sim.state();
        match op {
            Op::Cut => state.cut(process(who)),
            _ => state.sched.advance(SOON + Span::seconds(1)),
        }
    }

    async fn settle(&mut self) -> BTreeMap<Who, Answer> {
        still(&mut self.run);
        let answers = std::mem::take(&mut *self.answers.lock().expect("one thread"));
        let mut told = BTreeMap::new();
        for (who, actor, answer) in answers {
            self.idle.insert(who, actor);
            told.insert(who, answer);
        }
        told
    }
}
