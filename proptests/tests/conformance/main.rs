//! The simulated store held against PostgreSQL: one list of steps, equal outcomes.
//!
//! What makes the simulator believable (issue "the simulator that can fail"): every way in which
//! a transaction of the engine can wait, be refused or see another's work is a case here, run
//! on `model`'s store and on `adapters/postgres` over a real server. A case is sessions and
//! their steps; its outcome is, step by step, who answered what and who waits. Where the sides
//! differ, PostgreSQL is right. Never in these files: a rule of the product.

mod actor;
mod commits;
mod controls;
mod deadlocks;
mod furniture;
mod generated;
mod guards;
mod keys;
mod locks;
mod op;
mod parents;
mod real;
mod run;
mod simulated;
mod unique;

use bronzeward_without::Without;
use op::{Op, Who};
use run::Outcomes;

/// A case with one outcome.
fn check(name: &str, list: impl IntoIterator<Item = (Who, Op)>) {
    on_both(name, Outcomes::One, list);
}

/// A case in which something is chosen: a deadlock's victim, who goes first of two.
fn check_choice(name: &str, list: impl IntoIterator<Item = (Who, Op)>) {
    on_both(name, Outcomes::Some, list);
}

fn on_both(name: &str, outcomes: Outcomes, list: impl IntoIterator<Item = (Who, Op)>) {
    let steps = op::steps(list);
    let real = real::outcome(&steps);
    if let Err(difference) = run::agree(outcomes, &steps, &Without::nothing(), &real) {
        panic!("{name}: {difference}");
    }
}
