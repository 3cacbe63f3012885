//! The redacted configuration: the real composition with the three means applied
//! (IC §8.3 "The redacted configuration").
//!
//! Publication stores it as review data. It is built from the composed tree, so that a
//! leaf is replaced where it stands and never found again by its text. Never in this
//! module: the rendering of a compilation whose values do not all decode.

use std::collections::BTreeMap;

use super::{MARK, SCHEMA, VALUE, reference_token};
use crate::document::{Content, Node, Place, Stream};
use crate::document::{anchors::Anchors, lookup};
use crate::forms::Forms;
use crate::machinery::SecretField;
use crate::provenance::{Attribution, Composition, LeafSpot, Pair};
use crate::resolve::Resolution;
use crate::rules::{Rule, Rules};

/// The redacted trees: the outer stream, and each embedded document that stands in it,
/// by the leaf that holds it. They are encoded before they are shown.
pub struct Trees {
    pub stream: Stream,
    pub embedded: Vec<Opened>,
}

/// An embedded document at one leaf of the output.
pub struct Opened {
    pub document: usize,
    pub place: Place,
    /// Its position among the composition's embedded documents.
    pub position: usize,
    pub root: Node,
}

/// Applies the means to a composition.
pub fn redacted<R: Rules>(
    rules: R,
    resolution: &Resolution,
    real: &Composition,
    pairs: &[Pair],
    attribution: &Attribution,
    schema: &[SecretField],
    forms: &Forms,
) -> Trees {
    let mut trees = Trees {
        stream: real.stream.as_ref().clone(),
        embedded: opened(real, pairs),
    };
    let mut tokens = by_path(rules, resolution, pairs, attribution);
    by_schema(rules, real, schema, &mut tokens);
    for (spot, token) in &tokens {
        if let Some(node) = trees.node_mut(spot) {
            node.replace(Node::string(token.as_str()));
        }
    }
    let mut spots: BTreeMap<LeafSpot, String> = BTreeMap::new();
    for (document, root) in trees.stream.documents.iter().enumerate() {
        by_value(rules, root, forms, &mut |place, text| {
            let spot = LeafSpot {
                document,
                place,
                inner: None,
            };
            spots.insert(spot, text);
        });
    }
    for opened in &trees.embedded {
        by_value(rules, &opened.root, forms, &mut |place, text| {
            let spot = LeafSpot {
                document: opened.document,
                place: opened.place.clone(),
                inner: Some((opened.position, place)),
            };
            spots.insert(spot, text);
        });
    }
    // The text of an opened document is written back from its own tree.
    let holders: Vec<(usize, Place)> = trees
        .embedded
        .iter()
        .map(|opened| (opened.document, opened.place.clone()))
        .collect();
    for (spot, text) in &spots {
        let holder = spot.inner.is_none() && holders.contains(&(spot.document, spot.place.clone()));
        if let (false, Some(node)) = (holder, trees.node_mut(spot)) {
            node.replace(Node::string(text.as_str()));
        }
    }
    trees
}

impl Trees {
    pub fn node_mut(&mut self, spot: &LeafSpot) -> Option<&mut Node> {
        match &spot.inner {
            None => self
                .stream
                .documents
                .get_mut(spot.document)?
                .at_mut(&spot.place),
            Some((position, place)) => self
                .embedded
                .iter_mut()
                .find(|opened| {
                    opened.document == spot.document
                        && opened.place == spot.place
                        && opened.position == *position
                })?
                .root
                .at_mut(place),
        }
    }
}

fn opened(real: &Composition, pairs: &[Pair]) -> Vec<Opened> {
    let mut opened: Vec<Opened> = Vec::new();
    for pair in pairs {
        let Some((position, _)) = &pair.spot.inner else {
            continue;
        };
        let known = opened
            .iter()
            .any(|other| other.document == pair.spot.document && other.place == pair.spot.place);
        let Some(embedded) = real.embedded.get(*position).filter(|_| !known) else {
            continue;
        };
        opened.push(Opened {
            document: pair.spot.document,
            place: pair.spot.place.clone(),
            position: *position,
            root: embedded.root.clone(),
        });
    }
    opened
}

/// Each attributed leaf, and each key that a mapping reference placed beside one.
fn by_path<R: Rules>(
    rules: R,
    resolution: &Resolution,
    pairs: &[Pair],
    attribution: &Attribution,
) -> BTreeMap<LeafSpot, String> {
    let mut tokens = BTreeMap::new();
    for (leaf, items) in &attribution.items {
        if rules.holds(Rule::RedactByPath, false) {
            continue;
        }
        let pair = &pairs[*leaf];
        let mut token = String::new();
        for item in items {
            let item = &resolution.items[*item];
            let version = &resolution.occurrences[item.occurrence].version;
            let member = item.member.as_ref().map(|(position, _)| *position);
            let own = reference_token(version, member);
            if let (Some((_, name)), Some((place, key))) = (&item.member, &pair.key)
                && name == key
            {
                let mut spot = pair.spot.clone();
                match &mut spot.inner {
                    None => spot.place = place.clone(),
                    Some((_, inner)) => *inner = place.clone(),
                }
                tokens.insert(spot, own.clone());
            }
            token.push_str(&own);
        }
        tokens.insert(pair.spot.clone(), token);
    }
    tokens
}

/// Each field the machinery marks secret and no reference covers.
fn by_schema<R: Rules>(
    rules: R,
    real: &Composition,
    schema: &[SecretField],
    tokens: &mut BTreeMap<LeafSpot, String>,
) {
    for field in schema {
        let Some(root) = real.stream.documents.get(field.document) else {
            continue;
        };
        let Ok(anchors) = Anchors::of(root) else {
            continue;
        };
        let Some((place, node)) = lookup::find(root, &anchors, &field.tokens) else {
            continue;
        };
        let hidden = node.text().is_none_or(str::is_empty);
        if rules.holds(Rule::RedactBySchema, hidden) {
            continue;
        }
        let spot = LeafSpot {
            document: field.document,
            place,
            inner: None,
        };
        tokens.entry(spot).or_insert_with(|| SCHEMA.to_string());
    }
}

/// Copies that no other means covered: a whole scalar or key of any length, and runs of
/// copies inside longer ones.
fn by_value<R: Rules>(rules: R, root: &Node, forms: &Forms, hide: &mut dyn FnMut(Place, String)) {
    crate::document::walk::every(root, &mut |visit| {
        let Content::Scalar(text) = &visit.node.content else {
            return;
        };
        if text.starts_with(MARK) {
            return;
        }
        let whole = forms.equals(text);
        if !rules.holds(Rule::RedactByValue, !whole && !forms.any_in(text)) {
            let shown = match whole {
                true => VALUE.to_string(),
                false => forms.replaced(text, VALUE),
            };
            hide(visit.place.to_vec(), shown);
        }
    });
}
