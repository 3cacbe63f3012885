//! The simulated store's side: sessions are tasks that are moved on by hand.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bronzeward_core::time::Span;
use bronzeward_engine::ports::store::{Store, StoreTx};
use bronzeward_model::hand::Hand;
use bronzeward_model::pg::session::SimStore;
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
/// Between two steps.
const STEP: Span = Span::millis(1);

type Answers = Rc<RefCell<Vec<(Who, Actor<SimStore>, Answer)>>>;

pub struct Simulated {
    sim: Arc<Sim>,
    hand: Hand,
    idle: BTreeMap<Who, Actor<SimStore>>,
    answers: Answers,
}

fn process(who: Who) -> ProcessId {
    ProcessId(1 + who as u32)
}

impl Simulated {
    pub async fn new(seed: u64) -> Self {
        let sim = Sim::new(seed, Without::nothing(), false);
        found(&mut sim.state(), furniture::epoch(), [7; 32]).expect("it is founded");
        sim.state().sched.advance(BEGINNING);
        let mut hand = Hand::new(&sim);
        let store = SimStore::new(&sim, ProcessId::WORLD);
        let furnished = Rc::new(RefCell::new(None));
        let slot = Rc::clone(&furnished);
        hand.spawn(async move {
            let mut tx = store.begin().await.expect("it begins");
            let furnish = furniture::furnish(&mut tx).await;
            *slot.borrow_mut() = Some(match furnish {
                Ok(()) => tx.commit().await,
                Err(error) => Err(error),
            });
        });
        hand.settle();
        let furnished = furnished.borrow_mut().take();
        furnished
            .expect("nobody is waited for")
            .expect("the simulated store is furnished");
        stand_plans(&sim);
        let idle = Who::ALL.map(|who| (who, Actor::new(SimStore::new(&sim, process(who)))));
        Self {
            sim,
            hand,
            idle: idle.into(),
            answers: Rc::default(),
        }
    }
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
        let (answers, op) = (Rc::clone(&self.answers), op.clone());
        self.hand.spawn(async move {
            let answer = actor.act(&op).await;
            answers.borrow_mut().push((who, actor, answer));
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
        self.hand.settle();
        let answers = std::mem::take(&mut *self.answers.borrow_mut());
        let mut told = BTreeMap::new();
        for (who, actor, answer) in answers {
            self.idle.insert(who, actor);
            told.insert(who, answer);
        }
        told
    }
}
