//! Attribution of the full composition, and who overrode what did not reach it
//! (IC §8.1).
//!
//! Never in this module: an override found by comparing paths; only what the machinery
//! composes of a prefix tells it.

use std::collections::{BTreeMap, BTreeSet};

use crate::machinery::{Dialogue, Pause};
use crate::path::Path;
use crate::provenance::{self, Attribution, Infidelity, Pair};
use crate::resolve::{Pass, Resolution};
use crate::rules::{Rule, Rules};
use crate::secret::Scalar;

use super::Known;
use super::passes::{self, Composed, Passes, Wanted};

/// For each item that a fragment overrode, the fragment by its position.
pub type Overrides = BTreeMap<usize, usize>;

/// Why the search for overrides did not end.
pub enum Stopped {
    Paused(Pause),
    Unfaithful(Infidelity),
}

impl From<Pause> for Stopped {
    fn from(pause: Pause) -> Stopped {
        Stopped::Paused(pause)
    }
}

/// Attributes every leaf of the full composition, or refuses.
pub fn attribute<R: Rules>(
    known: &Known<'_, R>,
    composed: &Composed,
    passes: &Passes,
) -> Result<(Vec<Pair>, Attribution), Infidelity> {
    let full = known.input.fragments.len();
    let missing = || Infidelity {
        rule: "passes-disagree",
        path: Path::new(0, Vec::new()),
    };
    let composition = |wanted: Wanted| match composed.get(&wanted) {
        Some(Ok((_, composition))) => Ok(composition),
        _ => Err(missing()),
    };
    let real = composition((Pass::Real, full))?;
    let mut attribution = Attribution::default();
    let traced = match passes.traced() {
        true => composition((Pass::Trace, full))?,
        false => real,
    };
    let pairs = provenance::pairs(known.rules, real, traced)?;
    provenance::attribute(known.rules, &known.resolution, &pairs, &mut attribution)?;
    for item in passes.flips() {
        let flipped = composition((Pass::Flip(item), full))?;
        let flipped = provenance::pairs(known.rules, real, flipped)?;
        provenance::attribute_flip(item, &flipped, &mut attribution);
    }
    Ok((pairs, attribution))
}

/// Finds who overrode each item that reached no leaf, or fewer than its import base alone
/// has. Prefixes are composed for those items only.
pub fn overrides<R: Rules>(
    dialogue: &mut Dialogue<'_>,
    known: &Known<'_, R>,
    passes: &Passes,
    composed: &Composed,
    attribution: &Attribution,
) -> Result<Overrides, Stopped> {
    let full = known.input.fragments.len();
    let resolution = &known.resolution;
    let alone = match full {
        0 => BTreeMap::new(),
        _ => reach(known, passes, composed, 0)?,
    };
    let mut lost: BTreeMap<usize, usize> = BTreeMap::new();
    for item in 0..resolution.items.len() {
        let source = resolution.source_of(item);
        let reached = attribution.reached(item);
        let expected = match (source, full) {
            (0, 1..) => alone.get(&item).copied().unwrap_or(0),
            _ => 1,
        };
        // A reference that its own source's composition does not carry is nobody's
        // override: something went another way than the trace shows.
        let carried = expected > 0 && (reached > 0 || source < full);
        own_prefix(known, item, carried)?;
        if reached < expected {
            lost.insert(item, expected);
        }
    }
    let wanted = prefixes(resolution, passes, &lost, full);
    let prefixes = passes::compose(dialogue, passes, &wanted)?;
    let mut reached: BTreeMap<usize, BTreeMap<usize, usize>> = BTreeMap::new();
    let fragments: BTreeSet<usize> = wanted.iter().map(|(_, fragments)| *fragments).collect();
    for fragments in fragments {
        reached.insert(fragments, reach(known, passes, &prefixes, fragments)?);
    }
    let mut overrides = Overrides::new();
    for (item, expected) in &lost {
        let source = resolution.source_of(*item);
        let at = |fragments: usize| match fragments {
            fragments if fragments == full => attribution.reached(*item),
            0 => alone.get(item).copied().unwrap_or(0),
            fragments => {
                let prefix = reached.get(&fragments);
                prefix
                    .and_then(|prefix| prefix.get(item))
                    .copied()
                    .unwrap_or(0)
            }
        };
        own_prefix(known, *item, at(source) > 0)?;
        let by = (source + 1..=full).find(|fragments| at(*fragments) < *expected);
        let Some(by) = by else {
            own_prefix(known, *item, false)?;
            continue;
        };
        overrides.insert(*item, by - 1);
    }
    Ok(overrides)
}

fn own_prefix<R: Rules>(known: &Known<'_, R>, item: usize, carried: bool) -> Result<(), Stopped> {
    if known.rules.holds(Rule::OwnPrefixCarries, carried) {
        return Ok(());
    }
    let occurrence = known.resolution.items[item].occurrence;
    Err(Stopped::Unfaithful(Infidelity {
        rule: "prefix-uncarried",
        path: known.resolution.occurrences[occurrence].path.clone(),
    }))
}

/// The proper prefixes in which a lost item may still be seen: from its own source on.
fn prefixes(
    resolution: &Resolution,
    passes: &Passes,
    lost: &BTreeMap<usize, usize>,
    full: usize,
) -> BTreeSet<Wanted> {
    let mut wanted = BTreeSet::new();
    for item in lost.keys() {
        // The base alone is composed already.
        for fragments in resolution.source_of(*item).max(1)..full {
            wanted.insert((Pass::Real, fragments));
            match resolution.items[*item].scalar {
                Scalar::Boolean(_) => wanted.insert((Pass::Flip(*item), fragments)),
                _ => passes.traced() && wanted.insert((Pass::Trace, fragments)),
            };
        }
    }
    wanted
}

/// How many leaves of one prefix carry each item, as far as its passes were composed.
fn reach<R: Rules>(
    known: &Known<'_, R>,
    passes: &Passes,
    composed: &Composed,
    fragments: usize,
) -> Result<BTreeMap<usize, usize>, Stopped> {
    let mut reached = BTreeMap::new();
    let Some(real) = composed.get(&(Pass::Real, fragments)) else {
        return Ok(reached);
    };
    let uncomposed = || {
        Stopped::Unfaithful(Infidelity {
            rule: "prefix-uncomposed",
            path: Path::new(0, Vec::new()),
        })
    };
    let Ok((_, real)) = real else {
        return Err(uncomposed());
    };
    match composed.get(&(Pass::Trace, fragments)) {
        Some(Ok((_, traced))) => {
            let pairs =
                provenance::pairs(known.rules, real, traced).map_err(Stopped::Unfaithful)?;
            reached = provenance::reach(&known.resolution, &pairs);
        }
        Some(Err(_)) => return Err(uncomposed()),
        None => {}
    }
    for item in passes.flips() {
        match composed.get(&(Pass::Flip(item), fragments)) {
            Some(Ok((_, flipped))) => {
                let pairs =
                    provenance::pairs(known.rules, real, flipped).map_err(Stopped::Unfaithful)?;
                let changed = pairs.iter().filter(|pair| pair.differs()).count();
                reached.insert(item, changed);
            }
            Some(Err(_)) => return Err(uncomposed()),
            None => {}
        }
    }
    Ok(reached)
}
