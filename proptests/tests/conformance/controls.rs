//! That a difference is noticed: one is planted in either store, and the sides must differ.
//!
//! Never in this module: a difference that the stores have.

use bronzeward_core::rules::Rule;
use bronzeward_engine::ports::store::LockMode::{self, KeyShare, NoKeyUpdate, Share, Update};
use bronzeward_without::Without;

use crate::op::If::{Always, Live, Revision};
use crate::op::Op::*;
use crate::op::Row::{Draft, Machine};
use crate::op::Who::{A, B};
use crate::op::{Lease, Op, Step, Who, steps};
use crate::real::{self, Worker};
use crate::run::{Outcome, Outcomes, agree, simulate};

const MODES: [LockMode; 4] = [KeyShare, Share, NoKeyUpdate, Update];

/// One insertion that waits for another of the same value, which commits.
fn twice(first: Op, second: Op) -> Vec<Step> {
    steps([
        (A, Begin),
        (B, Begin),
        (A, first),
        (B, second),
        (A, Commit),
        (B, Commit),
    ])
}

/// Each rule that an index of the schema carries, with a case that its index decides.
fn carried() -> [(Rule, Vec<Step>); 7] {
    [
        (
            Rule::OneClaimPerKey,
            twice(NewClaim(8, 1, 9), NewClaim(9, 2, 9)),
        ),
        (
            Rule::OneActivePublication,
            twice(NewJob(8, 1, 2), NewJob(9, 1, 2)),
        ),
        (
            Rule::OneOperationPerPlan,
            steps([
                (A, Begin),
                (A, NewOperation(8, 1, 1)),
                (A, Move(8, Always, "completed")),
                (A, Commit),
                (B, Begin),
                (B, NewOperation(9, 1, 1)),
                (B, Commit),
            ]),
        ),
        (
            Rule::OneHolderPerScope,
            twice(NewOperation(8, 1, 1), NewOperation(9, 11, 2)),
        ),
        (
            Rule::OneHolderPerRollout,
            twice(NewOperation(8, 1, 1), NewOperation(9, 2, 1)),
        ),
        (Rule::OneOpenDrift, twice(NewDrift(1, 5), NewDrift(1, 6))),
        (
            Rule::IntroducedNameFree,
            twice(NewHead(8, 9), NewHead(9, 9)),
        ),
    ]
}

fn differs(name: &str, steps: &[Step], rules: &Without, real: &Outcome) {
    let agreed = agree(Outcomes::Some, steps, rules, real);
    assert!(agreed.is_err(), "{name}: nobody notices");
}

#[test]
fn an_index_that_the_simulated_store_has_lost_is_missed() {
    for (rule, steps) in carried() {
        let real = real::outcome(&steps);
        let agreed = agree(Outcomes::One, &steps, &Without::nothing(), &real);
        assert_eq!(agreed, Ok(()), "{rule:?}");
        let without = Without::rules(&[rule]);
        differs(rule.name(), &steps, &without, &real);
    }
}

#[test]
fn an_index_that_postgresql_has_lost_is_missed() {
    let cases = carried();
    let (rule, steps) = &cases[0];
    let worker = Worker::without(Some(*rule));
    let real = worker.play(steps);
    differs(rule.name(), steps, &Without::nothing(), &real);
    // The database is the same but for the index.
    let agreed = agree(Outcomes::One, steps, &Without::rules(&[*rule]), &real);
    assert_eq!(agreed, Ok(()));
    for (other, steps) in &cases[1..] {
        let real = worker.play(steps);
        let agreed = agree(Outcomes::One, steps, &Without::nothing(), &real);
        assert_eq!(agreed, Ok(()), "{other:?}");
    }
}

/// Every mode held, and another asked for.
fn pairs(asked: LockMode) -> Vec<Step> {
    let pairs = MODES.map(|held| {
        [
            (A, Begin),
            (B, Begin),
            (A, Lock(Machine(1), held)),
            (B, Lock(Machine(1), asked)),
            (A, Commit),
            (B, Commit),
        ]
    });
    steps(pairs.into_iter().flatten())
}

/// What came of each step, without the step.
fn answers(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.iter();
    let after = lines.map(|line| line.split_once(':').map_or("", |(_, answer)| answer));
    after.collect()
}

#[test]
fn a_lock_in_another_mode_is_noticed_whichever_the_two_are() {
    for asked in MODES {
        let real = real::outcome(&pairs(asked));
        for other in MODES {
            let simulated = simulate(0, &Without::nothing(), &pairs(other));
            let equal = answers(&real) == answers(&simulated);
            assert_eq!(equal, asked == other, "{asked:?} and {other:?}");
        }
    }
}

/// Asserts that the sides agree, and do not where the simulated one takes the step at
/// `place` for another.
fn mistaken(place: usize, another: Op, list: impl IntoIterator<Item = (Who, Op)>) {
    let mut steps = steps(list);
    let real = real::outcome(&steps);
    let agreed = agree(Outcomes::One, &steps, &Without::nothing(), &real);
    assert_eq!(agreed, Ok(()), "{another:?}");
    steps[place].op = another;
    let simulated = simulate(0, &Without::nothing(), &steps);
    let step = &steps[place];
    assert_ne!(answers(&real), answers(&simulated), "{step:?}");
}

#[test]
fn an_end_a_view_a_key_or_a_time_that_is_another_is_noticed() {
    mistaken(
        3,
        Commit,
        [
            (A, Begin),
            (B, Begin),
            (A, Advance(1, Always)),
            (A, Rollback),
            (B, Advance(1, Revision(1))),
        ],
    );
    mistaken(
        0,
        Begin,
        [
            (A, Snapshot),
            (A, ReadDrafts),
            (B, Begin),
            (B, NewDraft(9, 1)),
            (B, Commit),
            (A, ReadDrafts),
        ],
    );
    mistaken(
        3,
        LockKey(2),
        [(A, Begin), (B, Begin), (A, LockKey(1)), (B, LockKey(1))],
    );
    mistaken(
        2,
        Append(1, None),
        [
            (A, Begin),
            (A, Read(Draft(1))),
            (A, Append(1, Some(9))),
            (A, Commit),
        ],
    );
    mistaken(
        1,
        Extend(1, Always, Lease::Future),
        [
            (A, Begin),
            (A, Extend(1, Always, Lease::Soon)),
            (A, Commit),
            (A, Lapse),
            (A, Begin),
            (A, Extend(1, Live, Lease::Future)),
        ],
    );
}
