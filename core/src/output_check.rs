//! What a composed output must not hold (IC §6 step 7).
//!
//! Compilation asks before validation. Reserved text, literal copies of resolved values
//! and of mapping keys, and overrides of the import base's references refuse. Never in
//! this module: a value in a finding; a copy is reported by its path alone.

use crate::document::{Content, Node, walk};
use crate::forms::Forms;
use crate::path::Path;
use crate::provenance::{Attribution, Composition, LeafSpot, Pair};
use crate::reserved::holds_reserved;
use crate::resolve::Resolution;
use crate::rules::{Rule, Rules};

/// What was found, each at the path of the leaf, or of the value a key names.
#[derive(Default)]
pub struct Findings {
    pub reserved: Vec<Path>,
    pub copies: Vec<Path>,
}

/// Searches every leaf and key of the output.
pub fn search<R: Rules>(
    rules: R,
    resolution: &Resolution,
    real: &Composition,
    pairs: &[Pair],
    attribution: &Attribution,
    forms: &Forms,
) -> Findings {
    let mut findings = Findings::default();
    for (leaf, pair) in pairs.iter().enumerate() {
        let literal = rules.holds(Rule::OutputReservedText, !holds_reserved(&pair.real));
        if !literal {
            findings.reserved.push(pair.path.clone());
        }
        // A reference replaces a whole node: another value inside its leaf is an overlap of
        // two values, not a literal of a source.
        if attribution.items.contains_key(&leaf) {
            continue;
        }
        let copied = !rules.holds(Rule::OutputCopies, !forms.string_in(&pair.real))
            || !rules.holds(Rule::OutputKeyCopies, !forms.key_in(&pair.real));
        if copied {
            findings.copies.push(pair.path.clone());
        }
    }
    for key in keys(real, pairs) {
        if !rules.holds(Rule::OutputReservedText, !holds_reserved(&key.text)) {
            findings.reserved.push(key.path.clone());
        }
        if placed_by_member(resolution, pairs, attribution, &key) {
            continue;
        }
        let copied = !rules.holds(Rule::OutputCopies, !forms.string_in(&key.text))
            || !rules.holds(Rule::OutputKeyCopies, !forms.key_in(&key.text));
        if copied {
            findings.copies.push(key.path);
        }
    }
    findings.copies.sort();
    findings.copies.dedup();
    findings
}

/// A key of the output, by the path of the value beside it.
struct Key {
    path: Path,
    text: String,
    spot: LeafSpot,
}

fn keys(real: &Composition, pairs: &[Pair]) -> Vec<Key> {
    let mut keys = Vec::new();
    for (document, root) in real.stream.documents.iter().enumerate() {
        gather(
            root,
            &mut keys,
            &|tokens| Path::new(document, tokens),
            &|place| LeafSpot {
                document,
                place,
                inner: None,
            },
        );
    }
    // The embedded documents that were met in the output, each once.
    let mut opened: Vec<(LeafSpot, Path)> = Vec::new();
    for pair in pairs {
        if let Some((position, _)) = &pair.spot.inner {
            let holder = LeafSpot {
                inner: Some((*position, Vec::new())),
                ..pair.spot.clone()
            };
            if !opened.iter().any(|(spot, _)| *spot == holder) {
                opened.push((holder, pair.path.holder()));
            }
        }
    }
    for (spot, holder) in opened {
        let Some((position, _)) = &spot.inner else {
            continue;
        };
        let Some(embedded) = real.embedded.get(*position) else {
            continue;
        };
        gather(
            &embedded.root,
            &mut keys,
            &|tokens| holder.within(embedded.format, tokens),
            &|place| LeafSpot {
                inner: Some((*position, place)),
                ..spot.clone()
            },
        );
    }
    keys
}

fn gather(
    root: &Node,
    keys: &mut Vec<Key>,
    path: &dyn Fn(Vec<String>) -> Path,
    spot: &dyn Fn(Vec<usize>) -> LeafSpot,
) {
    walk::every(root, &mut |visit| {
        if visit.part != walk::Part::Key {
            return;
        }
        let text = match &visit.node.content {
            Content::Scalar(text) => text.clone(),
            Content::Alias(_) | Content::Sequence(_) | Content::Mapping(_) => return,
        };
        keys.push(Key {
            path: path(visit.tokens.to_vec()),
            text,
            spot: spot(visit.place.to_vec()),
        });
    });
}

/// Whether a mapping reference placed the key beside its own attributed member.
fn placed_by_member(
    resolution: &Resolution,
    pairs: &[Pair],
    attribution: &Attribution,
    key: &Key,
) -> bool {
    attribution.items.iter().any(|(leaf, items)| {
        let pair = &pairs[*leaf];
        let beside = pair.key.as_ref().is_some_and(|(place, _)| {
            let at = match &pair.spot.inner {
                None => LeafSpot {
                    place: place.clone(),
                    ..pair.spot.clone()
                },
                Some((position, _)) => LeafSpot {
                    inner: Some((*position, place.clone())),
                    ..pair.spot.clone()
                },
            };
            at == key.spot
        });
        beside
            && items.iter().any(|item| {
                let member = resolution.items[*item].member.as_ref();
                member.is_some_and(|(_, name)| *name == key.text)
            })
    })
}
