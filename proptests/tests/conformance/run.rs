//! A case's steps on one side, as a list of outcomes, and the two sides' lists compared.
//!
//! After each step everything that can answer has answered; a session that has not then
//! waits. The simulated store is run under several seeds, which choose the victim of a
//! deadlock and the order of what two sessions do at the same time: where nothing is to be
//! chosen, PostgreSQL's list must be that of each; where something is, that of one of them.
//! Never in this module: a side's own way to find that out.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bronzeward_core::time::DbTime;
use bronzeward_without::Without;

use crate::actor::Answer;
use crate::op::{Op, Step, Who};
use crate::simulated::Simulated;

/// Seeds that a case with one outcome is run under.
const SEEDS: u64 = 3;
/// Seeds that are tried for an outcome of PostgreSQL's.
const TRIES: u64 = 100;

/// A store with its sessions.
pub trait Side {
    /// Begins a step of a session that is not in one.
    fn start(&mut self, who: Who, op: &Op);
    /// Carries out a step that no session is asked for: a cut connection, time that passes.
    async fn outside(&mut self, who: Who, op: &Op);
    /// Moves whatever can move; the answers that came, by session.
    async fn settle(&mut self) -> BTreeMap<Who, Answer>;
}

/// What a case came to: a line a step, and a last one for who still waits.
pub type Outcome = Vec<String>;

/// Times as they were answered, so that only their order is compared.
#[derive(Default)]
struct Times(Vec<DbTime>);

impl Times {
    fn tell(&mut self, answer: Answer) -> String {
        match answer {
            Answer::Text(text) => text,
            Answer::At(what, time) => {
                let place = |before: &DbTime| match before.cmp(&time) {
                    std::cmp::Ordering::Less => '<',
                    std::cmp::Ordering::Equal => '=',
                    std::cmp::Ordering::Greater => '>',
                };
                let order: String = self.0.iter().map(place).collect();
                self.0.push(time);
                format!("{what} at [{order}]")
            }
        }
    }
}

/// Runs the steps of a case.
pub async fn play<S: Side>(side: &mut S, steps: &[Step]) -> Outcome {
    let mut waiting = BTreeSet::new();
    let mut times = Times::default();
    let mut lines = Vec::new();
    for (place, Step { who, op }) in steps.iter().enumerate() {
        let asked = format!("{place} {who:?} {op:?}");
        if matches!(op, Op::Cut | Op::Lapse) {
            side.outside(*who, op).await;
        } else if waiting.contains(who) {
            lines.push(format!("{asked}: waits already"));
            continue;
        } else {
            side.start(*who, op);
            waiting.insert(*who);
        }
        let mut line = format!("{asked}:");
        for (answered, answer) in side.settle().await {
            waiting.remove(&answered);
            line += &format!(" {answered:?} {}", times.tell(answer));
        }
        if !matches!(op, Op::Cut | Op::Lapse) && waiting.contains(who) {
            line += " waits";
        }
        lines.push(line);
    }
    lines.push(format!("waiting: {waiting:?}"));
    lines
}

/// The simulated store's outcome under one seed, without the schema's objects of these rules.
pub fn simulate(seed: u64, rules: &Without, steps: &[Step]) -> Outcome {
    let mut side = Simulated::new(seed, *rules);
    let mut work = pin!(play(&mut side, steps));
    let mut context = Context::from_waker(Waker::noop());
    match work.as_mut().poll(&mut context) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("the simulated side waits for nothing outside"),
    }
}

/// How many outcomes a case may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcomes {
    One,
    /// A victim is chosen, or two sessions go on at once.
    Some,
}

/// Whether the simulated store, without the schema's objects of these rules, does what
/// PostgreSQL did; the first difference if not.
pub fn agree(
    outcomes: Outcomes,
    steps: &[Step],
    rules: &Without,
    real: &Outcome,
) -> Result<(), String> {
    let mut simulated: BTreeSet<Outcome> = BTreeSet::new();
    let seeds = match outcomes {
        Outcomes::One => SEEDS,
        Outcomes::Some => TRIES,
    };
    for seed in 0..seeds {
        let outcome = simulate(seed, rules, steps);
        let equal = outcome == *real;
        simulated.insert(outcome);
        match (outcomes, equal) {
            (Outcomes::One, false) => return Err(difference(&simulated, real)),
            (Outcomes::Some, true) => return Ok(()),
            (Outcomes::One, true) | (Outcomes::Some, false) => {}
        }
    }
    match outcomes {
        Outcomes::One => Ok(()),
        Outcomes::Some => Err(difference(&simulated, real)),
    }
}

/// The first step at which PostgreSQL leaves every outcome of the simulated store.
fn difference(simulated: &BTreeSet<Outcome>, real: &Outcome) -> String {
    let agrees = |lines: usize| {
        let mut outcomes = simulated.iter();
        outcomes.any(|outcome| outcome.get(..lines) == Some(&real[..lines]))
    };
    let before = (0..real.len()).take_while(|lines| agrees(*lines)).last();
    let before = before.unwrap_or(0);
    let told: BTreeSet<&String> = simulated
        .iter()
        .filter(|outcome| outcome.get(..before) == Some(&real[..before]))
        .filter_map(|outcome| outcome.get(before))
        .collect();
    format!(
        "the sides differ after\n{:#?}\nPostgreSQL:\n  {}\nsimulated, any of:\n{told:#?}",
        &real[..before],
        real[before]
    )
}
