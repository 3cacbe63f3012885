//! How a property is drawn, and how its control is shown to fail.

use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// Sequences drawn for each property.
const CASES: u32 = 400;

/// A difference between the code and the model, or an invariant that does not hold.
pub type Held = Result<(), String>;

/// Draws sequences under one seed: a run is the same every time, and nothing is kept.
fn run<S: Strategy>(strategy: &S, cases: u32, property: impl Fn(S::Value) -> Held) -> Option<String>
where
    S::Value: Debug + Clone,
{
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(strategy, |commands| {
        property(commands).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => None,
        Err(TestError::Fail(why, commands)) => Some(format!("{why}\nafter {commands:#?}")),
        Err(TestError::Abort(why)) => panic!("nothing was drawn: {why}"),
    }
}

/// The property holds for every sequence drawn.
pub fn holds<S: Strategy>(strategy: &S, property: impl Fn(S::Value) -> Held)
where
    S::Value: Debug + Clone,
{
    if let Some(difference) = run(strategy, CASES, property) {
        panic!("{difference}");
    }
}

/// The same draw finds a difference: without it the property shows nothing.
pub fn fails<S: Strategy>(what: &str, strategy: &S, property: impl Fn(S::Value) -> Held)
where
    S::Value: Debug + Clone,
{
    assert!(
        run(strategy, CASES, property).is_some(),
        "{what}: nothing noticed it"
    );
}

/// Equality of what both sides say, as a difference that can be read.
pub fn same<T: PartialEq + Debug>(what: &str, code: T, model: T) -> Held {
    match code == model {
        true => Ok(()),
        false => Err(format!(
            "{what}: the code says {code:?}, the model {model:?}"
        )),
    }
}

pub fn ensure(holds: bool, what: &str) -> Held {
    match holds {
        true => Ok(()),
        false => Err(what.to_owned()),
    }
}
