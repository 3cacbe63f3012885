//! References into literals: the texts of each pass over a composition (IC §6 step 4,
//! §8.1).
//!
//! Compilation asks here for the real pass, the trace pass and one flip pass per
//! boolean; each replaces every reference of a source before anything typed reads it.
//! Never in this module: a merge, or a partial result.

use std::collections::BTreeMap;

use crate::authoring;
use crate::document::{BOOLEAN, INTEGER, Node};
use crate::id::ClusterId;
use crate::path::Path;
use crate::reference::{Declarations, Encoding, Name, Version};
use crate::refusal::{Origin, Refusal, Site, Stage};
use crate::rules::{Rule, Rules};
use crate::secret::{Kind, Scalar, Value, base64};
use crate::source::{Parsed, Spot};
use crate::standin::{LIMIT, StandIn};

/// One pinned version, as step 3 read it.
#[derive(Clone)]
pub struct Pinned {
    /// The cluster the logical secret belongs to (choice §16.12).
    pub cluster: ClusterId,
    /// `None` when the generation did not decode: then no path of it can be shown.
    pub value: Option<Value>,
}

pub type Pins = BTreeMap<Version, Pinned>;

/// One tagged node of a source.
pub struct Occurrence {
    pub source: usize,
    /// Its position among the source's occurrences (IC §9).
    pub position: usize,
    pub spot: Spot,
    pub path: Path,
    pub version: Version,
    pub kind: Kind,
    pub encoding: Option<Encoding>,
    pub value: Value,
}

/// One value to trace: an occurrence's scalar, or one member of its mapping.
pub struct Item {
    pub occurrence: usize,
    /// Position in key order and the key itself.
    pub member: Option<(usize, String)>,
    pub scalar: Scalar,
    pub standin: StandIn,
}

/// Which composition a text is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    Real,
    Trace,
    /// The boolean item whose value is flipped.
    Flip(usize),
}

/// Every reference of a composition with its value.
pub struct Resolution {
    pub occurrences: Vec<Occurrence>,
    pub items: Vec<Item>,
}

/// Where a source stands in a composition: 0 is the import base.
pub fn origin(source: usize) -> Origin {
    match source.checked_sub(1) {
        None => Origin::Base,
        Some(fragment) => Origin::Fragment(fragment),
    }
}

/// A rule of resolution that does not hold, before any path of it may be shown.
pub struct Unresolved {
    pub rule: &'static str,
    pub source: usize,
    pub path: Path,
    /// The value did not decode, so every path of the compilation is withheld.
    pub opaque: bool,
}

impl Unresolved {
    pub fn refusal(&self, path: crate::path::ShownPath) -> Refusal {
        let site = Site::path(Some(origin(self.source)), path);
        Refusal::new(Stage::Resolution, self.rule, vec![site])
    }
}

/// Pins every reference of every source, overridden ones too: the superset that early
/// resolution reads.
pub fn resolve<R: Rules>(
    rules: R,
    cluster: ClusterId,
    sources: &[(&Parsed, &Declarations)],
    pins: &Pins,
) -> Result<Resolution, Unresolved> {
    let mut resolution = Resolution {
        occurrences: Vec::new(),
        items: Vec::new(),
    };
    for (source, (parsed, declarations)) in sources.iter().enumerate() {
        for (position, (spot, path)) in parsed.references().into_iter().enumerate() {
            let fail = |rule: &'static str, path: &Path| Unresolved {
                rule,
                source,
                path: path.clone(),
                opaque: false,
            };
            let name = authoring::name_at(parsed, &spot);
            let named = name.and_then(|name| {
                let declaration = *declarations.references.get(&name)?;
                Some((name, declaration))
            });
            if !rules.holds(Rule::NameDeclared, named.is_some()) {
                return Err(fail("undeclared", &path));
            }
            // Without the rule the tag is left for the machinery to drop.
            let Some((name, declaration)) = named else {
                continue;
            };
            let version = Version {
                name,
                version: declaration.version,
            };
            let value =
                value_of(rules, cluster, pins, &version).map_err(|(rule, opaque)| Unresolved {
                    opaque,
                    ..fail(rule, &path)
                })?;
            if !rules.holds(Rule::KindMatches, value.kind() == declaration.kind) {
                return Err(fail("kind-mismatch", &path));
            }
            let encodable = declaration.encoding.is_none() || value.kind() == Kind::String;
            if !rules.holds(Rule::EncodingOnString, encodable) {
                return Err(fail("encoding", &path));
            }
            resolution.occurrences.push(Occurrence {
                source,
                position,
                spot,
                path,
                version,
                kind: value.kind(),
                encoding: declaration.encoding,
                value,
            });
        }
    }
    itemise(&mut resolution);
    Ok(resolution)
}

fn value_of<R: Rules>(
    rules: R,
    cluster: ClusterId,
    pins: &Pins,
    version: &Version,
) -> Result<Value, (&'static str, bool)> {
    let pinned = pins.get(version);
    if !rules.holds(Rule::ReferenceKnown, pinned.is_some()) {
        return Err(("unknown-reference", false));
    }
    // A dropped rule resolves to nothing, as a resolver would that has no such check.
    let Some(pinned) = pinned else {
        return Ok(Value::Scalar(Scalar::string("")));
    };
    if !rules.holds(Rule::ReferenceScope, pinned.cluster == cluster) {
        return Err(("reference-scope", false));
    }
    match &pinned.value {
        Some(value) => Ok(value.clone()),
        None if rules.holds(Rule::EveryPinDecodes, false) => Ok(Value::Scalar(Scalar::string(""))),
        None => Err(("undecodable", true)),
    }
}

fn itemise(resolution: &mut Resolution) {
    let mut items = Vec::new();
    let mut push = |occurrence: usize, member, scalar: &Scalar, encoding| {
        let standin = StandIn::of(items.len(), scalar, encoding);
        items.push(Item {
            occurrence,
            member,
            scalar: scalar.clone(),
            standin,
        });
    };
    for (index, occurrence) in resolution.occurrences.iter().enumerate() {
        match &occurrence.value {
            Value::Scalar(scalar) => push(index, None, scalar, occurrence.encoding),
            Value::Mapping(members) => {
                for (position, (key, scalar)) in members.iter().enumerate() {
                    push(index, Some((position, key.clone())), scalar, None);
                }
            }
        }
    }
    resolution.items = items;
}

impl Resolution {
    /// The first two occurrences whose stand-ins cannot be told apart, or one that
    /// nothing could stand in for: a mapping with no member, a stand-in past the last id.
    pub fn indistinct(&self) -> Option<(usize, usize)> {
        for (index, occurrence) in self.occurrences.iter().enumerate() {
            if matches!(&occurrence.value, Value::Mapping(members) if members.is_empty()) {
                return Some((index, index));
            }
        }
        if let Some(item) = self.items.get(LIMIT) {
            return Some((item.occurrence, item.occurrence));
        }
        for (index, item) in self.items.iter().enumerate() {
            let other = self.items[index + 1..]
                .iter()
                .find(|other| item.standin.indistinct(&other.standin));
            if let Some(other) = other {
                return Some((item.occurrence, other.occurrence));
            }
        }
        None
    }

    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.occurrences.iter().map(|occurrence| &occurrence.value)
    }

    /// The boolean items, each of which has a flip pass.
    pub fn booleans(&self) -> Vec<usize> {
        let items = self.items.iter().enumerate();
        items
            .filter(|(_, item)| matches!(item.scalar, Scalar::Boolean(_)))
            .map(|(index, _)| index)
            .collect()
    }

    pub fn source_of(&self, item: usize) -> usize {
        self.occurrences[self.items[item].occurrence].source
    }

    /// The trees of one source in one pass, every reference replaced.
    pub fn substituted(&self, parsed: &Parsed, source: usize, pass: Pass) -> Parsed {
        let mut trees = parsed.clone();
        for (index, occurrence) in self.occurrences.iter().enumerate() {
            if occurrence.source != source {
                continue;
            }
            let node = self.node(index, pass);
            if let Some(place) = trees.node_mut(&occurrence.spot) {
                place.replace(node);
            }
        }
        trees
    }

    fn node(&self, occurrence: usize, pass: Pass) -> Node {
        let items = self.items.iter().enumerate();
        let own = items.filter(|(_, item)| item.occurrence == occurrence);
        let encoding = self.occurrences[occurrence].encoding;
        let mut entries = Vec::new();
        for (index, item) in own {
            let node = placed(item, index, encoding, pass);
            match &item.member {
                None => return node,
                Some((_, key)) => entries.push((Node::string(key.as_str()), node)),
            }
        }
        Node::mapping(entries)
    }
}

fn placed(item: &Item, index: usize, encoding: Option<Encoding>, pass: Pass) -> Node {
    match (&item.scalar, &item.standin, pass) {
        (Scalar::String(_), StandIn::Text { placed, .. }, Pass::Trace) => {
            Node::string(placed.as_str())
        }
        (Scalar::String(text), _, _) => Node::string(match encoding {
            Some(Encoding::Base64) => base64(text.expose()),
            None => text.expose().to_string(),
        }),
        (Scalar::Integer(_), StandIn::Integer(number), Pass::Trace) => {
            Node::scalar(INTEGER, number.to_string())
        }
        (Scalar::Integer(number), _, _) => Node::scalar(INTEGER, number.to_string()),
        (Scalar::Boolean(truth), _, _) => {
            let flipped = pass == Pass::Flip(index);
            Node::scalar(BOOLEAN, if *truth != flipped { "true" } else { "false" })
        }
    }
}

/// The names a source declares: what is pinned for it.
pub fn declared_versions(declarations: &Declarations) -> Vec<Version> {
    let of = |name: &Name, version: u64| Version {
        name: name.clone(),
        version,
    };
    let declared = declarations.references.iter();
    declared
        .map(|(name, declaration)| of(name, declaration.version))
        .collect()
}
