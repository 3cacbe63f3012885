//! Whether a source is well formed (IC §5.3, §5.5, §7 stage 1).
//!
//! Ingestion asks before it extracts and again of what it wrote; compilation asks of
//! every source it was given. Never in this module: a value, or the machinery's verdict.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::anchors::Anchors;
use crate::document::walk::Part;
use crate::document::{BINARY, Content, Node, STRING};
use crate::machinery::Role;
use crate::path::Path;
use crate::reference::{Declarations, Name};
use crate::reserved::holds_reserved;
use crate::rules::{Rule, Rules};
use crate::source::{Met, Parsed, Spot};

/// A rule that does not hold, by the name refusals give it, and where.
pub struct Fault {
    pub rule: &'static str,
    pub paths: Vec<Path>,
    /// A fault of the text as YAML: refused by ingestion's parse, before authoring.
    pub parse: bool,
}

#[derive(Default)]
struct Faults {
    found: BTreeMap<&'static str, (bool, Vec<Path>)>,
    order: Vec<&'static str>,
}

impl Faults {
    fn unless(&mut self, holds: bool, rule: &'static str, parse: bool, path: &Path) {
        if holds {
            return;
        }
        let known = self.found.contains_key(rule);
        if !known {
            self.order.push(rule);
        }
        let entry = self.found.entry(rule).or_default();
        entry.0 = parse;
        entry.1.push(path.clone());
    }

    fn first(mut self) -> Option<Fault> {
        // What is no YAML comes first: its paths may not mean what they say.
        self.order.sort_by_key(|rule| !self.found[rule].0);
        let rule = self.order.first().copied()?;
        let (parse, paths) = self.found.remove(rule)?;
        Some(Fault { rule, paths, parse })
    }
}

/// Checks the text of a source: keys, tags, directives, reserved text. Declarations are
/// checked apart, since an input has none for the references ingestion will make.
pub fn text_fault<R: Rules>(rules: R, parsed: &Parsed, role: Role) -> Option<Fault> {
    let mut faults = Faults::default();
    for (document, root) in parsed.stream.documents.iter().enumerate() {
        let mapping = matches!(root.content, Content::Mapping(_));
        let path = Path::new(document, Vec::new());
        let list = matches!(root.content, Content::Sequence(_));
        let rule = if list && role == Role::Fragment {
            "json-patch"
        } else {
            "parse"
        };
        faults.unless(mapping || root.is_reference(), rule, true, &path);
    }
    if parsed.stream.documents.is_empty() {
        faults.unless(false, "parse", true, &Path::new(0, Vec::new()));
    }
    parsed.every(&mut |met| {
        keys(rules, &met, &mut faults);
        scalars(rules, parsed, &met, &mut faults);
        tags(rules, &met, &mut faults);
        if met.spot.inner.is_none() {
            directive(rules, parsed, role, &met, &mut faults);
        }
    });
    faults.first()
}

/// Keys that no path token can name, or that two nodes would share (IC §2.2, §2.3).
fn keys<R: Rules>(rules: R, met: &Met<'_>, faults: &mut Faults) {
    let Content::Mapping(entries) = &met.node.content else {
        return;
    };
    let mut seen = BTreeSet::new();
    for (key, _) in entries {
        let text = match &key.content {
            Content::Scalar(text) | Content::Alias(text) => text.as_str(),
            Content::Sequence(_) | Content::Mapping(_) => {
                let holds = rules.holds(Rule::KeysAddressable, false);
                faults.unless(holds, "parse", true, &met.path);
                continue;
            }
        };
        let outer = met.spot.inner.is_none();
        let alias = matches!(key.content, Content::Alias(_));
        let unnameable = outer && (text.contains('|') || key.tag == BINARY);
        let addressable = seen.insert(text) && !unnameable && !alias;
        let holds = rules.holds(Rule::KeysAddressable, addressable || key.is_reference());
        faults.unless(holds, "parse", true, &met.path);
    }
}

/// Text that the database or the reference grammar cannot keep.
fn scalars<R: Rules>(rules: R, parsed: &Parsed, met: &Met<'_>, faults: &mut Faults) {
    let Some(text) = met.node.text() else {
        return;
    };
    let storable = rules.holds(Rule::TextStorable, !text.contains('\0'));
    faults.unless(storable, "parse", true, &met.path);
    // An identified document's own text is checked string by string.
    if !met.holder && !met.node.is_reference() {
        let literal = rules.holds(Rule::ReservedText, !holds_reserved(text));
        faults.unless(literal, "reserved-text", false, &met.path);
    }
    if met.node.is_reference() {
        let name = rules.holds(Rule::NameGrammar, Name::parse(text).is_some());
        faults.unless(name, "name-grammar", false, &met.path);
    }
    debug_assert!(parsed.node(&met.spot).is_some());
}

/// Which tags stand, and where a reference may (IC §5.3).
fn tags<R: Rules>(rules: R, met: &Met<'_>, faults: &mut Faults) {
    let node = met.node;
    if node.is_reference() {
        let place = matches!(met.part, Part::Value | Part::Item)
            && matches!(node.content, Content::Scalar(_));
        let holds = rules.holds(Rule::TagPlace, place);
        faults.unless(holds, "tag-place", false, &met.path);
        return;
    }
    let known = node.tag.is_empty() || node.tag.starts_with("!!");
    let holds = rules.holds(Rule::KnownTagsOnly, known);
    faults.unless(holds, "local-tag", false, &met.path);
}

const DIRECTIVE: &str = "$patch";

/// `$patch` is the directive and nothing else, where the machinery reads it whole
/// (IC §2.3 step 4). Near misses would be data, and their neighbours would be dropped.
fn directive<R: Rules>(rules: R, parsed: &Parsed, role: Role, met: &Met<'_>, faults: &mut Faults) {
    let Content::Mapping(entries) = &met.node.content else {
        return;
    };
    let Some((_, value)) = entries
        .iter()
        .find(|(key, _)| key.text() == Some(DIRECTIVE))
    else {
        return;
    };
    let exact = value.text() == Some("delete") && value.tag == STRING && !value.tagged;
    let identity = |key: &Node| matches!(key.text(), Some("apiVersion" | "kind" | "name"));
    let alone = match met.part {
        Part::Root => entries.iter().all(|(key, value)| {
            (key.text() == Some(DIRECTIVE) || identity(key)) && value.text().is_some()
        }),
        Part::Value => entries.len() == 1,
        Part::Item | Part::Key => false,
    };
    let anchors = parsed
        .stream
        .documents
        .get(met.spot.document)
        .and_then(|root| Anchors::of(root).ok())
        .unwrap_or_default();
    let once = !anchors.shared(&met.spot.place);
    let holds = rules.holds(
        Rule::DirectiveAlone,
        role == Role::Fragment && exact && alone && once && !in_list(met),
    );
    faults.unless(holds, "patch-directive", false, &met.path);
}

/// Whether a list stands on the way: the member that selects its entry would be
/// dropped unloaded, and could hold a schema secret.
fn in_list(met: &Met<'_>) -> bool {
    met.part == Part::Item
}

/// Checks a source's declarations against the references that stand in it (IC §5.2).
pub fn declaration_fault<R: Rules>(
    rules: R,
    parsed: &Parsed,
    declarations: &Declarations,
) -> Option<Fault> {
    let mut faults = Faults::default();
    let mut used = BTreeSet::new();
    for (spot, path) in parsed.references() {
        let Some(name) = name_at(parsed, &spot) else {
            continue;
        };
        let declared = declarations.references.contains_key(&name);
        let holds = rules.holds(Rule::NameDeclared, declared);
        faults.unless(holds, "undeclared", false, &path);
        used.insert(name);
    }
    for name in declarations.references.keys() {
        let holds = rules.holds(Rule::DeclarationUsed, used.contains(name));
        faults.unless(
            holds,
            "unused-declaration",
            false,
            &Path::new(0, Vec::new()),
        );
    }
    faults.first()
}

/// The name at a reference, where it is one.
pub fn name_at(parsed: &Parsed, spot: &Spot) -> Option<Name> {
    let node = parsed.node(spot)?;
    if !node.is_reference() {
        return None;
    }
    node.text().and_then(Name::parse)
}
