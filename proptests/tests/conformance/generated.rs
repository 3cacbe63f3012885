//! Interleavings that nobody thought of: drawn steps of three sessions over a few rows.

use bronzeward_engine::ports::store::LockMode;
use bronzeward_without::Without;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::op::{If, Lease, Op, Row, Step, Who};
use crate::real;
use crate::run::{Outcomes, agree};

/// Cases of a run; the variable `PROPTEST_CASES` asks for more of the same sequence.
const CASES: u32 = 120;
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
        1 => (new(), prop::sample::select(vec!["new", "human-1"])).prop_map(|(of, name)| Op::Human(of, name)),
        1 => (of(), prop::sample::select(vec!["ada", "bob"])).prop_map(|(of, name)| Op::Display(of, name)),
        1 => (new(), new()).prop_map(|(of, uuid)| Op::NewMachine(of, uuid)),
        1 => (new(), new()).prop_map(|(of, named)| Op::NewHead(of, named)),
        1 => (of(), of()).prop_map(|(draft, head)| Op::EntryOf(draft, head)),
        1 => of().prop_map(Op::Event),
        1 => (of(), 8..=9_u8).prop_map(|(of, act)| Op::Append(of, Some(act))),
        1 => new().prop_map(Op::NewAct),
        1 => prop::sample::select(vec![&[1_i64] as &[i64], &[1, 2], &[2]]).prop_map(|versions| Op::Seed(1, versions)),
        1 => mode().prop_map(Op::LockCluster),
        1 => Just(Op::LockActs),
        2 => mode().prop_map(Op::LockInstallation),
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

// covers-part: MOD-1 (the store that the workflows run on in the simulator does as the production one)
#[test]
fn drawn_interleavings_come_to_the_same_on_both_sides() {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok());
    let config = Config {
        cases: cases.unwrap_or(CASES),
        failure_persistence: None,
        max_shrink_iters: SHRINKS,
        ..Config::default()
    };
    let drawn = prop::collection::vec((who(), op()), 6..=12);
    // The same cases every time: a difference that nobody has made is no failure of a run.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, rng).run(&drawn, |drawn| {
        let steps = sequence(drawn);
        let real = real::outcome(&steps);
        let agreed = agree(Outcomes::Some, &steps, &Without::nothing(), &real);
        agreed.map_err(TestCaseError::fail)
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
