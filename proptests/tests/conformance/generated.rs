//! Interleavings that nobody thought of: drawn steps of three sessions over a few rows.

use bronzeward_engine::ports::store::LockMode;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use crate::alone;
use crate::op::{If, Lease, Op, Row, Step, Who};
use crate::run::{Outcomes, compare};

const CASES: u32 = 48;
/// A case that fails is a database a try.
const SHRINKS: u32 = 60;

fn who() -> impl Strategy<Value = Who> {
    prop::sample::select(vec![Who::A, Who::B, Who::C])
}

fn mode() -> impl Strategy<Value = LockMode> {
    prop::sample::select(vec![
        LockMode::KeyShare,
        LockMode::Share,
        LockMode::NoKeyUpdate,
        LockMode::Update,
    ])
}

fn row() -> impl Strategy<Value = Row> {
    (0..5_u8, 1..=2_u8).prop_map(|(kind, of)| match kind {
        0 => Row::Machine(of),
        1 => Row::Draft(of),
        2 => Row::Claim(of),
        3 => Row::Operation(of),
        _ => Row::Principal(of),
    })
}

fn guard() -> impl Strategy<Value = If> {
    prop::sample::select(vec![If::Always, If::Live, If::Generation(1), If::Lapsed])
}

fn op() -> impl Strategy<Value = Op> {
    let of = || 1..=2_u8;
    let new = || 8..=9_u8;
    prop_oneof![
        4 => (row(), mode()).prop_map(|(row, mode)| Op::Lock(row, mode)),
        1 => row().prop_map(Op::Read),
        2 => (of(), 1..=2_i64).prop_map(|(of, at)| Op::Advance(of, If::Revision(at))),
        1 => of().prop_map(|of| Op::Discard(of, If::State("open"))),
        1 => (of(), guard()).prop_map(|(of, when)| Op::Extend(of, when, Lease::Past)),
        1 => (of(), guard()).prop_map(|(of, when)| Op::EndClaim(of, when)),
        1 => (of(), 2..=3_i64).prop_map(|(of, next)| Op::Own(of, If::State("queued"), next)),
        1 => of().prop_map(|of| Op::Fail(of, If::Always)),
        1 => (new(), of()).prop_map(|(new, by)| Op::NewDraft(new, by)),
        1 => (new(), of(), of()).prop_map(|(new, of, key)| Op::NewClaim(new, of, key)),
        1 => (new(), of(), 1..=2_i64).prop_map(|(new, of, at)| Op::NewJob(new, of, at)),
        2 => (new(), of(), of()).prop_map(|(new, of, on)| Op::NewOperation(new, of, on)),
        1 => (new(), of()).prop_map(|(of, when)| Op::Move(of, If::Always, ["completed", "verifying"][usize::from(when) % 2])),
        1 => (of(), 5..=6_i64).prop_map(|(of, at)| Op::NewDrift(of, at)),
        1 => of().prop_map(|of| Op::Append(of, None)),
        1 => (of(), prop::sample::select(vec!["one", "two"])).prop_map(|(of, name)| Op::Entry(of, name)),
        1 => mode().prop_map(Op::LockInstallation),
        1 => of().prop_map(Op::LockKey),
        1 => Just(Op::LockRollout),
        3 => Just(Op::Commit),
        1 => Just(Op::Rollback),
    ]
}

/// Each step of a session that has no transaction is preceded by its beginning; at the end
/// each is ended, in the order of the sessions, twice: who was released by an end ends too.
fn sequence(drawn: Vec<(Who, Op)>) -> Vec<Step> {
    let mut open = std::collections::BTreeSet::new();
    let mut steps = Vec::new();
    for (who, op) in drawn {
        if open.insert(who) {
            steps.push(Step { who, op: Op::Begin });
        }
        if matches!(op, Op::Commit | Op::Rollback) {
            open.remove(&who);
        }
        steps.push(Step { who, op });
    }
    for _ in 0..2 {
        for who in [Who::A, Who::B, Who::C] {
            steps.push(Step {
                who,
                op: Op::Commit,
            });
        }
    }
    steps
}

#[test]
fn drawn_interleavings_come_to_the_same_on_both_sides() {
    let config = Config {
        cases: CASES,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        source_file: Some(file!()),
        max_shrink_iters: SHRINKS,
        ..Config::default()
    };
    let drawn = prop::collection::vec((who(), op()), 6..=12);
    let outcome = TestRunner::new(config).run(&drawn, |drawn| {
        let steps = sequence(drawn);
        let compared = std::panic::catch_unwind(|| {
            alone(compare("drawn", Outcomes::Some, &steps));
        });
        compared.map_err(|told| {
            let told = told.downcast_ref::<String>().cloned();
            TestCaseError::fail(told.unwrap_or_default())
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
