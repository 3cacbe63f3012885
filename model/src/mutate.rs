//! Every rule dropped in turn: what notices it.
//!
//! A detection is a violated invariant, in a witness or in the sweep; a panic or a phase that
//! does not end is an ERROR and proves nothing. Outcomes are held against a file of expected
//! ones, each with its reason. Never in this module: an invariant.

use std::collections::BTreeMap;
use std::time::Instant;

use bronzeward_core::rules::{Carrier, Rule};
use bronzeward_without::Without;

use crate::genesis::Genesis;
use crate::planted::DEFECTS;
use crate::seed::{End, Setting};
use crate::witness::Witness;
use crate::{sweep, witness};

/// What became of a dropped rule.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// By an invariant, at a seed or in a witness.
    Caught {
        invariant: String,
        by: String,
    },
    Missed,
    Error(String),
    /// A healed world did not come to rest.
    Restless(String),
    /// It has no value to drop: its tests must not compile.
    Type,
}

/// The expected outcome of a rule that is not caught alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected<'a> {
    /// Only together with the rules that mask it.
    Masked,
    /// By no world: a test of another part drops it.
    Elsewhere(Shown<'a>),
}

/// A test that drops a rule: its file, from the top of the checkout, and its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown<'a> {
    file: &'a str,
    test: &'a str,
}

/// Seeds over which a rule is dropped that is expected not to be caught: what makes an
/// expectation stale shows early, and the sweep ends in its time.
const STALE: u64 = 300;

/// `Rule masked reason` or `Rule elsewhere file: test[; remark]`, a line each; lines that begin
/// with `#` are for readers.
const EXPECTED: &str = include_str!("../expected-outcomes.txt");

fn expected(text: &str) -> Result<BTreeMap<&str, Expected<'_>>, String> {
    let mut all = BTreeMap::new();
    let lines = text.lines().filter(|line| !line.is_empty());
    for line in lines.filter(|line| !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let (Some(rule), Some(word), Some(reason)) = (words.next(), words.next(), words.next())
        else {
            return Err(format!(
                "expected outcomes: no rule, word and reason: {line}"
            ));
        };
        let outcome = match (word, shown_by(reason)) {
            ("masked", _) => Expected::Masked,
            ("elsewhere", Some(shown)) => Expected::Elsewhere(shown),
            ("elsewhere", None) => {
                return Err(format!("expected outcomes: {rule}: no file and test"));
            }
            _ => return Err(format!("expected outcomes: {rule}: {word} is no outcome")),
        };
        if !Rule::all().iter().any(|one| one.name() == rule) {
            return Err(format!("expected outcomes: no rule is called {rule}"));
        }
        if all.insert(rule, outcome).is_some() {
            return Err(format!("expected outcomes: {rule} stands twice"));
        }
    }
    Ok(all)
}

fn shown_by(reason: &str) -> Option<Shown<'_>> {
    let (file, test) = reason.split_once(": ")?;
    let test = test.split("; ").next()?;
    let named = !file.contains(' ') && !test.is_empty() && !test.contains(' ');
    named.then_some(Shown { file, test })
}

/// The rules that no type carries and that neither a witness, one of these seeds' rules, nor a
/// test of another part drops.
pub fn unshown(by_seeds: &[Rule]) -> Result<Vec<Rule>, String> {
    let expected = expected(EXPECTED)?;
    let shown = |rule: Rule| {
        matches!(rule.carrier(), Carrier::Type)
            || by_seeds.contains(&rule)
            || witness::of(rule).next().is_some()
            || matches!(expected.get(rule.name()), Some(Expected::Elsewhere(_)))
    };
    let rules = Rule::all().iter().copied();
    Ok(rules.filter(|rule| !shown(*rule)).collect())
}

/// Drops each rule and reports; true where every outcome is the expected one.
pub fn mutate(
    genesis: &Genesis,
    rules: &[Rule],
    seeds: u64,
    say: &dyn Fn(std::fmt::Arguments<'_>),
) -> Result<bool, String> {
    let expected = expected(EXPECTED)?;
    let began = Instant::now();
    let (mut surprises, mut counts) = (0_u32, BTreeMap::<&str, u32>::new());
    for (place, rule) in rules.iter().enumerate() {
        let name = rule.name();
        let expectation = expected.get(name).copied();
        let fate = match rule.carrier() {
            Carrier::Type => Fate::Type,
            _ => {
                let seeds = expectation.map_or(seeds, |_| seeds.min(STALE));
                fate(genesis, *rule, Without::rules(&[*rule]), seeds)
            }
        };
        let (word, good) = match (&fate, expectation) {
            (Fate::Type, None) => ("TYPE", true),
            (Fate::Caught { .. }, None) => ("CAUGHT", true),
            (Fate::Caught { .. }, Some(_)) => ("CAUGHT, though expected otherwise", false),
            (Fate::Missed, Some(Expected::Elsewhere(_))) => ("ELSEWHERE", true),
            // What masks it may refuse for good what the dropped rule would have refused once:
            // a world without rest says nothing of either.
            (Fate::Missed | Fate::Restless(_), Some(Expected::Masked)) => {
                match fate_with_masks(genesis, *rule, seeds) {
                    Fate::Caught { .. } => ("CAUGHT with its masks", true),
                    _ => ("MISSED with its masks", false),
                }
            }
            (Fate::Missed, None) => ("MISSED", false),
            (Fate::Error(_) | Fate::Restless(_), _) => ("ERROR", false),
            (Fate::Type, Some(_)) => ("TYPE, though expected otherwise", false),
        };
        *counts.entry(word).or_default() += 1;
        surprises += u32::from(!good);
        let spent = began.elapsed().as_secs_f64();
        let left = spent / (place + 1) as f64 * (rules.len() - place - 1) as f64;
        say(format_args!(
            "{name}: {word}{} [{left:.0} s left]",
            shown(&fate, expectation)
        ));
    }
    for (word, count) in &counts {
        say(format_args!("{count:>5}  {word}"));
    }
    say(format_args!("{surprises} surprises"));
    Ok(surprises == 0)
}

/// Plants each defect that no rule names; true where each is found by its invariant.
pub fn planted(genesis: &Genesis, seeds: u64, say: &dyn Fn(std::fmt::Arguments<'_>)) -> bool {
    let mut good = true;
    for (defect, invariant) in DEFECTS {
        let setting = Setting {
            planted: Some(*defect),
            ..Setting::default()
        };
        match sweep::first(genesis, 0..seeds, &setting) {
            Some((seed, End::Violated(found))) if found.invariant == *invariant => {
                say(format_args!(
                    "{defect:?}: CAUGHT by {invariant} (seed {seed})"
                ));
            }
            other => {
                say(format_args!(
                    "{defect:?}: not caught by {invariant}: {other:?}"
                ));
                good = false;
            }
        }
    }
    good
}

fn shown(fate: &Fate, expectation: Option<Expected<'_>>) -> String {
    match (fate, expectation) {
        (Fate::Caught { invariant, by }, _) => format!(" by {invariant} ({by})"),
        (Fate::Error(error) | Fate::Restless(error), _) => format!(" {error}"),
        (Fate::Missed, Some(Expected::Elsewhere(shown))) => {
            format!(" by {} ({})", shown.test, shown.file)
        }
        (Fate::Missed | Fate::Type, _) => String::new(),
    }
}

/// A witness names the smallest combination that fails; the sweep drops every rule that the
/// registry says hides this one.
fn fate_with_masks(genesis: &Genesis, rule: Rule, seeds: u64) -> Fate {
    witnessed(genesis, witness::of(rule)).unwrap_or_else(|| match rule.masked_by() {
        [] => Fate::Missed,
        _ => fate(genesis, rule, Without::rule(rule), seeds),
    })
}

/// Caught by the first of these witnesses that catches.
fn witnessed(
    genesis: &Genesis,
    mut witnesses: impl Iterator<Item = &'static Witness>,
) -> Option<Fate> {
    witnesses.find_map(|witness| {
        let violation = witness::caught(genesis, witness).ok()?;
        Some(Fate::Caught {
            invariant: violation.invariant.to_owned(),
            by: format!("witness {}", witness.name),
        })
    })
}

fn fate(genesis: &Genesis, rule: Rule, rules: Without, seeds: u64) -> Fate {
    let drops = |witness: &&Witness| witness.rules.iter().all(|rule| rules.drops(*rule));
    if let Some(fate) = witnessed(genesis, witness::of(rule).filter(drops)) {
        return fate;
    }
    let setting = Setting {
        rules,
        ..Setting::default()
    };
    match sweep::first(genesis, 0..seeds, &setting) {
        None => Fate::Missed,
        Some((seed, End::Violated(violation))) => Fate::Caught {
            invariant: violation.invariant.to_owned(),
            by: format!("seed {seed}"),
        },
        Some((seed, End::Error(error))) => Fate::Error(format!("seed {seed}: {error}")),
        Some((seed, End::Restless(what))) => {
            Fate::Restless(format!("seed {seed} does not come to rest: {what}"))
        }
        Some((_, End::Clean)) => Fate::Missed,
    }
}

#[cfg(test)]
mod tests;
