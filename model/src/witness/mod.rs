//! Hand-written schedules for rules that a random sweep rarely reaches.
//!
//! A witness holds with every rule and violates a named invariant without its own. Never in
//! this module: an invariant.

mod accounts;
mod adoption;
mod authority;
mod claims;
mod dispatch;
mod drafting;
mod drafts;
mod drift;
mod ends;
mod holders;
mod locks;
mod plans;
mod publications;
mod publish;
mod recovery;
mod requests;
mod restore;
mod stage;
mod steps;

use bronzeward_core::rules::Rule;
use bronzeward_without::Without;

use crate::genesis::Genesis;
use crate::judges::Violation;
use crate::seed::End;

pub use stage::{ADMIN, APPROVER, AUTHOR, PUBLISHER, Stage, Step, play, traced};
pub use steps::Subject;

/// One schedule: what it is for, and what it does under a set of rules.
pub struct Witness {
    pub name: &'static str,
    /// What is dropped: the rule first, then those that mask it.
    pub rules: &'static [Rule],
    /// The invariant that its control violates.
    pub invariant: &'static str,
    pub act: fn(&mut Stage) -> Step,
}

/// Witnesses, a row each: the name, what is dropped, the invariant, the schedule.
macro_rules! rows {
    ($($name:literal, [$($rule:ident)+], $invariant:expr, $act:expr;)+) => {
        &[$($crate::witness::Witness {
            name: $name,
            rules: &[$(bronzeward_core::rules::Rule::$rule,)+],
            invariant: $invariant,
            act: $act,
        },)+]
    };
}
use rows;

/// The families of witnesses.
const FAMILIES: &[&[Witness]] = &[
    dispatch::WITNESSES,
    ends::WITNESSES,
    holders::WITNESSES,
    locks::WITNESSES,
    adoption::WITNESSES,
    plans::WITNESSES,
    publish::WITNESSES,
    publications::WITNESSES,
    drift::WITNESSES,
    claims::WITNESSES,
    accounts::WITNESSES,
    recovery::WITNESSES,
    requests::WITNESSES,
    authority::WITNESSES,
    drafts::WITNESSES,
];

/// Every witness, family by family.
pub fn every() -> impl Iterator<Item = &'static Witness> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The witnesses of a rule.
pub fn of(rule: Rule) -> impl Iterator<Item = &'static Witness> {
    every().filter(move |witness| witness.rules.first() == Some(&rule))
}

/// Whether a witness's control is caught as it says.
pub fn caught(genesis: &Genesis, witness: &Witness) -> Result<Violation, End> {
    match play(genesis, Without::rules(witness.rules), witness.act) {
        End::Violated(violation) if violation.invariant == witness.invariant => Ok(violation),
        end => Err(end),
    }
}

/// What is wrong with a witness: it does not hold with every rule, its control is not caught
/// as it says, or fewer rules than it drops are enough.
pub fn amiss(genesis: &Genesis, witness: &Witness) -> Option<String> {
    let held = play(genesis, Without::nothing(), witness.act);
    if held != End::Clean {
        return Some(format!("with every rule: {held:?}"));
    }
    if let Err(end) = caught(genesis, witness) {
        return Some(format!("not caught: {end:?}"));
    }
    for kept in witness.rules.iter().filter(|_| witness.rules.len() > 1) {
        let others = witness.rules.iter().filter(|rule| *rule != kept);
        let others: Vec<Rule> = others.copied().collect();
        // Another harm of a rule that is dropped is its own.
        let end = play(genesis, Without::rules(&others), witness.act);
        if matches!(&end, End::Violated(found) if found.invariant == witness.invariant) {
            return Some(format!("caught without {} too: {end:?}", kept.name()));
        }
    }
    None
}

/// Runs every witness with all rules and without its own.
pub fn all(genesis: &Genesis, say: &dyn Fn(std::fmt::Arguments<'_>)) -> bool {
    let mut good = true;
    for witness in every() {
        if let Some(why) = amiss(genesis, witness) {
            say(format_args!("witness {}: {why}", witness.name));
            good = false;
        }
    }
    say(format_args!("{} witnesses", every().count()));
    good
}
