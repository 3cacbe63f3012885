//! Which nodes are extracted, and what value each holds (IC §2.3 step 4, §5.3).
//!
//! Never in this module: a change of the tree.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::anchors::Anchors;
use crate::document::{BOOLEAN, Content, INTEGER, MERGE, Node, STRING};
use crate::forms::Forms;
use crate::path::Path;
use crate::refusal::{Refusal, Stage};
use crate::rules::{Rule, Rules};
use crate::secret::{Scalar, Value};
use crate::source::{Parsed, Spot};

use super::Input;

/// A mark and the node it names.
pub struct Marked {
    pub spot: Spot,
    pub position: usize,
    pub path: Path,
}

/// A node to extract.
pub struct Target {
    pub spot: Spot,
    pub path: Path,
    pub value: Value,
    /// The mark that named it; `None` for a field of the schema.
    pub mark: Option<usize>,
}

impl Target {
    /// Whether another node stands in this one, or is it.
    pub fn covers(&self, other: &Spot) -> bool {
        covers(&self.spot, other)
    }
}

fn covers(outer: &Spot, other: &Spot) -> bool {
    if outer.document != other.document {
        return false;
    }
    match (&outer.inner, &other.inner) {
        (None, _) => other.place.starts_with(&outer.place),
        (Some(_), None) => false,
        (Some((holder, place)), Some((other_holder, other_place))) => {
            holder == other_holder && other_place.starts_with(place)
        }
    }
}

/// A target that cannot be extracted.
pub struct Refused {
    rule: &'static str,
    path: Path,
    mark: Option<usize>,
}

impl Refused {
    pub fn refusal(&self, input: &Input) -> Refusal {
        let forms = Forms::default();
        let site = super::site(
            crate::rules::Enforced,
            input,
            Some(&self.path),
            self.mark,
            &forms,
        );
        Refusal::new(Stage::Ingestion, self.rule, vec![site])
    }
}

/// Lists the nodes to extract in document order. References are passed over, and a
/// target inside a marked mapping is extracted as part of it.
pub fn identify<R: Rules>(
    rules: R,
    parsed: &Parsed,
    schema: &[(usize, Vec<String>)],
    marks: &[Marked],
) -> Result<Vec<Target>, Refused> {
    let mut found: BTreeMap<Spot, Target> = BTreeMap::new();
    for (position, tokens) in schema {
        let document = parsed.positions.iter().position(|at| at == position);
        let Some(document) = document else { continue };
        let path = Path::new(document, tokens.clone());
        let Some(spot) = parsed.find(&path) else {
            continue;
        };
        let Some(node) = parsed.node(&spot) else {
            continue;
        };
        // A schema field is text to the machinery, whatever a parser calls its spelling.
        // An empty one, as a worker's file carries, is no value.
        let text = node.text().filter(|text| !text.is_empty());
        if let (Some(text), false, false) = (text, node.is_reference(), node.is_null()) {
            let value = Value::Scalar(Scalar::string(text));
            let target = Target {
                spot: spot.clone(),
                path,
                value,
                mark: None,
            };
            found.insert(spot, target);
        }
    }
    for mark in marks {
        let Some(node) = parsed.node(&mark.spot) else {
            continue;
        };
        if node.is_reference() || found.contains_key(&mark.spot) {
            continue;
        }
        let refused = |rule| Refused {
            rule,
            path: mark.path.clone(),
            mark: Some(mark.position),
        };
        let value = extractable(rules, parsed, &mark.spot, node).map_err(refused)?;
        let target = Target {
            spot: mark.spot.clone(),
            path: mark.path.clone(),
            value,
            mark: Some(mark.position),
        };
        found.insert(mark.spot.clone(), target);
    }
    whole_mappings(rules, parsed, found)
}

/// Drops the targets that stand in another target, unless they are reached elsewhere too.
fn whole_mappings<R: Rules>(
    rules: R,
    parsed: &Parsed,
    found: BTreeMap<Spot, Target>,
) -> Result<Vec<Target>, Refused> {
    let spots: BTreeSet<Spot> = found.keys().cloned().collect();
    let mut targets = Vec::new();
    for (spot, target) in found {
        let around = spots
            .iter()
            .find(|other| **other != spot && covers(other, &spot));
        if around.is_none() {
            targets.push(target);
            continue;
        }
        let aliased = parsed
            .root(&spot)
            .and_then(|root| Anchors::of(root).ok())
            .is_some_and(|anchors| {
                let place = spot.inner.as_ref().map_or(&spot.place, |(_, place)| place);
                anchors.aliases_of(place).next().is_some()
            });
        if !rules.holds(Rule::MarkedMappingWhole, !aliased) {
            return Err(Refused {
                rule: "mark-anchored",
                path: target.path,
                mark: target.mark,
            });
        }
    }
    Ok(targets)
}

/// The value at a marked node, if it has one of the four kinds.
fn extractable<R: Rules>(
    rules: R,
    parsed: &Parsed,
    spot: &Spot,
    node: &Node,
) -> Result<Value, &'static str> {
    let value = match &node.content {
        Content::Scalar(text) => {
            let opaque = !holds_references(parsed, spot);
            let scalar = scalar(node, text).filter(|_| opaque);
            scalar.map(Value::Scalar)
        }
        Content::Mapping(entries) => {
            let apart = entries.iter().all(|(key, member)| {
                key.anchor.is_none()
                    && member.anchor.is_none()
                    && !matches!(member.content, Content::Alias(_))
                    && key.tag != MERGE
            });
            if !rules.holds(Rule::MarkedMappingWhole, apart) {
                return Err("mark-anchored");
            }
            members(entries).map(Value::Mapping)
        }
        Content::Sequence(_) | Content::Alias(_) => None,
    };
    // Dropping the rule extracts the node's text as it is spelled, whatever its kind.
    match value {
        Some(value) => Ok(value),
        None if rules.holds(Rule::MarkKind, false) => Ok(Value::Scalar(Scalar::string(
            node.text().unwrap_or_default(),
        ))),
        None => Err("mark-kind"),
    }
}

/// Whether the scalar holds an embedded document in which a reference stands: its earlier
/// value could be neither extracted nor kept.
fn holds_references(parsed: &Parsed, spot: &Spot) -> bool {
    parsed.embedded.iter().any(|embedded| {
        spot.inner.is_none()
            && embedded.holder.document == spot.document
            && embedded.place == spot.place
            && any_reference(&embedded.root)
    })
}

fn any_reference(root: &Node) -> bool {
    let mut any = false;
    crate::document::walk::every(root, &mut |visit| any |= visit.node.is_reference());
    any
}

fn members(entries: &[(Node, Node)]) -> Option<BTreeMap<String, Scalar>> {
    if entries.is_empty() {
        return None;
    }
    let mut members = BTreeMap::new();
    for (key, member) in entries {
        let name = key.text().filter(|_| key.tag == STRING)?;
        members.insert(name.to_string(), member_scalar(member)?);
    }
    Some(members)
}

fn member_scalar(member: &Node) -> Option<Scalar> {
    match member.text() {
        Some("") if member.tag == STRING => Some(Scalar::string("")),
        Some(text) => scalar(member, text),
        None => None,
    }
}

/// A scalar of one of the kinds. An integer or boolean spelled otherwise than it will be
/// placed is refused: a field of text keeps the spelling.
fn scalar(node: &Node, text: &str) -> Option<Scalar> {
    match node.tag.as_str() {
        STRING if !text.is_empty() => Some(Scalar::string(text)),
        INTEGER => {
            let number: i128 = text.parse().ok()?;
            let bounded = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number);
            (bounded && number.to_string() == text).then_some(Scalar::Integer(number))
        }
        BOOLEAN => match text {
            "true" => Some(Scalar::Boolean(true)),
            "false" => Some(Scalar::Boolean(false)),
            _ => None,
        },
        _ => None,
    }
}
