//! A restore as it goes wrong (PA §13.6, EaR 5.2 and 7.2): a process that was forgotten runs on
//! after the entry, and a request that was held at its node lands after it.
//!
//! Each schedule says of the world's rows and of the trace what the contracts say, and is
//! played again without what refuses it: then an invariant is violated.

mod landings;
mod stale;

use std::sync::LazyLock;

use bronzeward_core::rules::Rule;
use bronzeward_model::genesis::Genesis;
use bronzeward_model::seed::{End, keep_panics};
use bronzeward_model::witness::{Stage, Step, play};
use bronzeward_without::Without;

static GENESIS: LazyLock<Genesis> = LazyLock::new(|| {
    keep_panics();
    Genesis::make().unwrap_or_else(|error| panic!("no genesis: {error}"))
});

type Schedule = fn(&mut Stage) -> Step;

fn holds(act: Schedule) {
    assert_eq!(play(&GENESIS, Without::nothing(), act), End::Clean);
}

/// Without these rules the invariant is violated.
fn violates(rules: &[Rule], act: Schedule, invariant: &str) {
    match play(&GENESIS, Without::rules(rules), act) {
        End::Violated(found) => assert_eq!(found.invariant, invariant, "{}", found.said),
        end => panic!("without {rules:?}: {end:?}"),
    }
}

const OWNS: &str = "a process of another epoch owns nothing";

fn lost(what: &str) -> End {
    End::Error(format!("the schedule comes to nothing: {what}"))
}

/// Whether the trace has a line that ends so.
fn said(stage: &Stage, what: &str) -> bool {
    let state = stage.sim.state();
    let mut lines = state.trace.text().lines();
    lines.any(|line| line.ends_with(what))
}
