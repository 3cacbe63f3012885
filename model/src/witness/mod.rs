//! Hand-written schedules for rules that a random sweep rarely reaches.
//!
//! A witness holds with every rule and violates a named invariant without its own. Never in
//! this module: an invariant.

use bronzeward_core::rules::Rule;
use bronzeward_without::Without;

use crate::genesis::Genesis;
use crate::judges::Violation;
use crate::seed::End;

/// One schedule: what it is for, and what it does under a set of rules.
pub struct Witness {
    pub name: &'static str,
    /// What is dropped: the rule first, then those that mask it.
    pub rules: &'static [Rule],
    /// The invariant that its control violates.
    pub invariant: &'static str,
    pub run: fn(&Genesis, Without) -> End,
}

/// Every witness, in the order of its rule.
pub static WITNESSES: &[Witness] = &[];

/// The witnesses of a rule.
pub fn of(rule: Rule) -> impl Iterator<Item = &'static Witness> {
    let witnesses = WITNESSES.iter();
    witnesses.filter(move |witness| witness.rules.first() == Some(&rule))
}

/// Whether a witness's control is caught as it says.
pub fn caught(genesis: &Genesis, witness: &Witness) -> Result<Violation, End> {
    match (witness.run)(genesis, Without::rules(witness.rules)) {
        End::Violated(violation) if violation.invariant == witness.invariant => Ok(violation),
        end => Err(end),
    }
}

/// Runs every witness with all rules and without its own.
pub fn all(genesis: &Genesis, say: &dyn Fn(std::fmt::Arguments<'_>)) -> bool {
    let mut good = true;
    for witness in WITNESSES {
        let held = (witness.run)(genesis, Without::nothing());
        if held != End::Clean {
            say(format_args!(
                "witness {}: with every rule: {held:?}",
                witness.name
            ));
            good = false;
        }
        if let Err(end) = caught(genesis, witness) {
            say(format_args!(
                "witness {}: not caught: {end:?}",
                witness.name
            ));
            good = false;
        }
    }
    say(format_args!("{} witnesses", WITNESSES.len()));
    good
}
