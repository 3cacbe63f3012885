//! Hand-written schedules: each holds with every rule, and its control is caught as it says.

use bronzeward_model::genesis::Genesis;
use bronzeward_model::seed::keep_panics;
use bronzeward_model::witness::{amiss, every};

// covers-part: MOD-2 (the rules that have a witness, each with those that mask it)
#[test]
fn a_witness_holds_with_every_rule_and_violates_its_invariant_without_its_own() {
    keep_panics();
    let genesis = Genesis::make().unwrap_or_else(|error| panic!("no genesis: {error}"));
    let wrong: Vec<String> = every()
        .filter_map(|witness| {
            let why = amiss(&genesis, witness)?;
            Some(format!("{}: {why}", witness.name))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} are amiss:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(every().count() > 0);
}
