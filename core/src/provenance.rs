//! Which leaf of an output came from which reference (IC §8.1).
//!
//! Compilation compares the real composition with the traced one and with each flipped
//! one, leaf by leaf; a leaf that changed and carries no stand-in, or carries one and did
//! not change, refuses the composition. Nothing here models a merge: what the machinery
//! did is only observed. Never in this module: a leaf attributed by its path.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document::{Content, Node, Place, Stream, walk};
use crate::path::{Format, Path};
use crate::resolve::Resolution;
use crate::rules::{Rule, Rules};
use crate::secret::{Plaintext, Scalar};
use crate::standin;

/// An identified embedded document as one pass wrote it.
#[derive(Clone)]
pub struct WrittenEmbedded {
    pub format: Format,
    pub text: Plaintext,
    pub root: Node,
}

/// One pass's composition: its output, and the embedded documents its sources held. The
/// embedded documents of all passes stand in the same order.
#[derive(Clone)]
pub struct Composition {
    pub stream: Arc<Stream>,
    pub embedded: Vec<WrittenEmbedded>,
}

/// Why two compositions do not bear comparison.
#[derive(Clone)]
pub struct Infidelity {
    pub rule: &'static str,
    pub path: Path,
}

/// Where a leaf stands in the real composition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeafSpot {
    pub document: usize,
    pub place: Place,
    /// The embedded document by its position, and the place in it.
    pub inner: Option<(usize, Place)>,
}

/// One leaf in both compositions.
pub struct Pair {
    pub path: Path,
    pub spot: LeafSpot,
    pub real: String,
    pub other: String,
    /// The key that names the leaf, and where it stands.
    pub key: Option<(Place, String)>,
}

impl Drop for Pair {
    fn drop(&mut self) {
        use zeroize::Zeroize;
        self.real.zeroize();
        self.other.zeroize();
    }
}

impl Pair {
    pub fn differs(&self) -> bool {
        self.real != self.other
    }
}

/// Pairs the leaves of two compositions, embedded documents opened. Refuses a difference
/// of shape: a leaf that one side lacks could not be attributed.
pub fn pairs<R: Rules>(
    rules: R,
    real: &Composition,
    other: &Composition,
) -> Result<Vec<Pair>, Infidelity> {
    let shape = |document: usize| Infidelity {
        rule: "pass-shape",
        path: Path::new(document, Vec::new()),
    };
    let same_count = real.stream.documents.len() == other.stream.documents.len();
    if !rules.holds(Rule::ShapeFaithful, same_count) {
        return Err(shape(0));
    }
    let mut pairs = Vec::new();
    let documents = real.stream.documents.iter().zip(&other.stream.documents);
    for (document, (left, right)) in documents.enumerate() {
        if !rules.holds(Rule::ShapeFaithful, same_shape(left, right)) {
            return Err(shape(document));
        }
        let leaves = walk::leaves(left).zip(walk::leaves(right));
        let Some((left, right)) = leaves else {
            return Err(shape(document));
        };
        for (left_leaf, right_leaf) in left.iter().zip(&right) {
            let path = Path::new(document, left_leaf.tokens.clone());
            let spot = LeafSpot {
                document,
                place: left_leaf.place.clone(),
                inner: None,
            };
            match opened(rules, real, other, left_leaf.node, right_leaf.node, &path)? {
                None => pairs.push(pair(path, spot, left_leaf, right_leaf)),
                Some(position) => {
                    inner_pairs(rules, real, other, position, &path, &spot, &mut pairs)?;
                }
            }
        }
    }
    Ok(pairs)
}

fn pair(path: Path, spot: LeafSpot, left: &walk::Leaf<'_>, right: &walk::Leaf<'_>) -> Pair {
    let key = left
        .keys
        .last()
        .cloned()
        .zip(path.all_tokens().last().cloned());
    // A list's entry is named by its index, and the key before it names the list.
    let key = key.filter(|(place, _)| place.len() == left.place.len());
    Pair {
        path,
        spot,
        real: left.node.text().unwrap_or_default().to_string(),
        other: right.node.text().unwrap_or_default().to_string(),
        key,
    }
}

/// The identified document whose text a leaf holds in both compositions, if any. Met on
/// one side only, or in two formats, it fails closed.
fn opened<R: Rules>(
    rules: R,
    real: &Composition,
    other: &Composition,
    left: &Node,
    right: &Node,
    path: &Path,
) -> Result<Option<usize>, Infidelity> {
    let (Some(left), Some(right)) = (left.text(), right.text()) else {
        return Ok(None);
    };
    let mut both: Vec<usize> = Vec::new();
    let mut one_side = false;
    for (position, (in_real, in_other)) in real.embedded.iter().zip(&other.embedded).enumerate() {
        let here = in_real.text.expose() == left;
        let there = in_other.text.expose() == right;
        match (here, there) {
            (true, true) => both.push(position),
            (false, false) => {}
            (true, false) | (false, true) => one_side = true,
        }
    }
    let formats = both.iter().map(|position| real.embedded[*position].format);
    let one_format = formats.collect::<std::collections::BTreeSet<_>>().len() <= 1;
    let faithful = one_format && (!both.is_empty() || !one_side);
    if !rules.holds(Rule::EmbeddedFaithful, faithful) {
        return Err(Infidelity {
            rule: "embedded-unmatched",
            path: path.clone(),
        });
    }
    Ok(both.first().copied())
}

fn inner_pairs<R: Rules>(
    rules: R,
    real: &Composition,
    other: &Composition,
    position: usize,
    holder: &Path,
    spot: &LeafSpot,
    pairs: &mut Vec<Pair>,
) -> Result<(), Infidelity> {
    let (left, right) = (&real.embedded[position], &other.embedded[position]);
    let shape = Infidelity {
        rule: "pass-shape",
        path: holder.clone(),
    };
    if !rules.holds(Rule::ShapeFaithful, same_shape(&left.root, &right.root)) {
        return Err(shape);
    }
    let leaves = walk::leaves(&left.root).zip(walk::leaves(&right.root));
    let Some((left_leaves, right_leaves)) = leaves else {
        return Err(shape);
    };
    for (left_leaf, right_leaf) in left_leaves.iter().zip(&right_leaves) {
        let path = holder.within(left.format, left_leaf.tokens.clone());
        let spot = LeafSpot {
            inner: Some((position, left_leaf.place.clone())),
            ..spot.clone()
        };
        pairs.push(pair(path, spot, left_leaf, right_leaf));
    }
    Ok(())
}

/// Whether two trees differ in nothing but the texts of their scalars.
pub fn same_shape(left: &Node, right: &Node) -> bool {
    if left.tag != right.tag {
        return false;
    }
    match (&left.content, &right.content) {
        (Content::Scalar(_), Content::Scalar(_)) => true,
        (Content::Alias(left), Content::Alias(right)) => left == right,
        (Content::Sequence(left), Content::Sequence(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same_shape(l, r))
        }
        (Content::Mapping(left), Content::Mapping(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((left_key, left), (right_key, right))| {
                        left_key.tag == right_key.tag
                            && walk::key_token(left_key) == walk::key_token(right_key)
                            && same_shape(left, right)
                    })
        }
        _ => false,
    }
}

/// For each item, the leaves that carry it, by their position in the real composition's
/// pairs. Every leaf's items: the same the other way round.
#[derive(Default)]
pub struct Attribution {
    pub leaves: BTreeMap<usize, Vec<usize>>,
    pub items: BTreeMap<usize, Vec<usize>>,
}

impl Attribution {
    fn add(&mut self, item: usize, leaf: usize) {
        self.leaves.entry(item).or_default().push(leaf);
        self.items.entry(leaf).or_default().push(item);
    }

    pub fn reached(&self, item: usize) -> usize {
        self.leaves.get(&item).map_or(0, Vec::len)
    }
}

/// Attributes the leaves of the full composition: every leaf that the trace changed
/// carries a stand-in, and every leaf that carries one was changed.
pub fn attribute<R: Rules>(
    rules: R,
    resolution: &Resolution,
    traced: &[Pair],
    attribution: &mut Attribution,
) -> Result<(), Infidelity> {
    for (leaf, pair) in traced.iter().enumerate() {
        let carried = carried(resolution, &pair.other);
        let faithful = carried.is_empty() != pair.differs();
        if !rules.holds(Rule::LeafFaithful, faithful) {
            return Err(Infidelity {
                rule: "leaf-unattributed",
                path: pair.path.clone(),
            });
        }
        for item in carried {
            attribution.add(item, leaf);
        }
    }
    Ok(())
}

fn carried(resolution: &Resolution, text: &str) -> Vec<usize> {
    let decoded = standin::decoded(text);
    let decoded = decoded.as_ref().map(|text| text.as_str());
    let items = resolution.items.iter().enumerate();
    items
        .filter(|(_, item)| item.standin.stands_in_read(text, decoded))
        .map(|(index, _)| index)
        .collect()
}

/// Attributes the leaves that flipping one boolean changed.
pub fn attribute_flip(item: usize, flipped: &[Pair], attribution: &mut Attribution) {
    for (leaf, pair) in flipped.iter().enumerate() {
        if pair.differs() {
            attribution.add(item, leaf);
        }
    }
}

/// How many leaves of a prefix carry each item: only leaves that the trace changed count,
/// so that a literal shaped like a stand-in does not.
pub fn reach(resolution: &Resolution, traced: &[Pair]) -> BTreeMap<usize, usize> {
    let mut reached = BTreeMap::new();
    for pair in traced.iter().filter(|pair| pair.differs()) {
        for item in carried(resolution, &pair.other) {
            if !matches!(resolution.items[item].scalar, Scalar::Boolean(_)) {
                *reached.entry(item).or_default() += 1;
            }
        }
    }
    reached
}
