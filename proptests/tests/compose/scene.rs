//! A composed cell beside what its case says of leaves, records and what is shown.
//!
//! Never in this module: an expectation that is not the case's own.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::compile::{Fate, Output, Review};
use bronzeward_core::document::{Node, Place, Stream, anchors::Anchors, lookup, walk};
use bronzeward_core::forms::Forms;
use bronzeward_core::path::{Inner, Path};
use bronzeward_core::redact::{PAIRED, paired, paths};
use bronzeward_core::refusal::Origin;
use bronzeward_core::rules::Enforced;
use bronzeward_core::secret::{Plaintext, Value};

use super::bench::Bench;
use super::case::Case;
use super::cell::{Compiled, Failures};
use super::oracle::Oracle;

/// What a case is compared on once it is composed.
pub struct Scene<'a> {
    case: &'a Case,
    /// The composition the machinery gives, parsed.
    composed: Option<Stream>,
    base: Stream,
    base_text: String,
    forms: Forms,
    values: Vec<Value>,
    secrets: Vec<Value>,
}

impl<'a> Scene<'a> {
    pub async fn new(
        bench: &Bench,
        case: &'a Case,
        base: &Plaintext,
        compiled: &Compiled,
        composed: Option<&Plaintext>,
    ) -> Scene<'a> {
        let values: Vec<Value> = case.provider.values().cloned().collect();
        let ingested = compiled.base.iter().chain(&compiled.fragments);
        let secrets: Vec<Value> = ingested
            .flat_map(|one| one.values.values().cloned())
            .collect();
        let composed = match composed {
            Some(text) => Some(bench.parse(text.expose()).await),
            None => None,
        };
        let pinned = case.fragments.iter().flat_map(|fragment| {
            let declared = fragment.declarations.references.iter();
            declared.map(|(name, one)| (name.as_str().to_string(), one.version))
        });
        let pinned: Vec<&Value> = pinned.filter_map(|key| case.provider.get(&key)).collect();
        Scene {
            case,
            composed,
            base: bench.parse(base.expose()).await,
            base_text: base.expose().to_string(),
            forms: Forms::of(pinned.into_iter().chain(&secrets)),
            values,
            secrets,
        }
    }

    /// A path of a case as a path of the composed stream: `Kind[name]` found.
    pub fn path(&self, text: &str) -> Option<Path> {
        if text.starts_with("doc[") {
            return Path::parse(text).ok();
        }
        let (kind, rest) = text.split_once('[')?;
        let (name, rest) = rest.split_once(']')?;
        let documents = &self.composed.as_ref()?.documents;
        let member = |root: &Node, key: &str| {
            let anchors = Anchors::of(root).ok()?;
            let (_, node) = lookup::find(root, &anchors, &[key.to_string()])?;
            node.text().map(str::to_string)
        };
        let index = documents.iter().position(|root| {
            member(root, "kind").as_deref() == Some(kind)
                && (name.is_empty() || member(root, "name").as_deref() == Some(name))
        })?;
        Path::parse(&format!("doc[{index}]{rest}")).ok()
    }

    /// A path as records show it.
    pub fn shown(&self, text: &str) -> String {
        match self.path(text) {
            Some(path) => paths::shown(Enforced, &path, &self.forms)
                .as_str()
                .to_string(),
            None => format!("no path: {text}"),
        }
    }

    fn own(&self, name: &str) -> bool {
        self.case.provider.keys().any(|(held, _)| held == name)
    }

    pub fn dependencies(&self, output: &Output, failures: &mut Failures) {
        let expected = self.case.expected();
        if expected.get("effective").0.is_some() {
            let own = output
                .report
                .effective
                .iter()
                .filter(|one| self.own(one.name.as_str()));
            let actual: BTreeSet<String> = own.map(|one| one.written()).collect();
            let wanted: BTreeSet<String> = expected.get("effective").texts().into_iter().collect();
            failures.equal("effective", actual, wanted);
        }
        if expected.get("reproduction").0.is_some() {
            let own = output
                .report
                .reproduction
                .iter()
                .filter_map(|one| match one.origin {
                    Origin::Fragment(index) => {
                        let name = self.case.fragments[index].name.clone();
                        Some((one.version.written(), name))
                    }
                    Origin::Base => None,
                });
            let actual: BTreeSet<(String, String)> = own.collect();
            let wanted = expected
                .get("reproduction")
                .list()
                .into_iter()
                .map(|one| (one.get("reference").string(), one.get("fragment").string()));
            failures.equal("reproduction", actual, wanted.collect());
        }
        if expected.get("overridden").0.is_some() {
            let own =
                output
                    .report
                    .provenance
                    .iter()
                    .filter_map(|one| match (&one.fate, one.origin) {
                        (Fate::Overridden(by), Origin::Fragment(_)) => {
                            let by = self.case.fragments[*by].name.clone();
                            Some((one.version.written(), by))
                        }
                        _ => None,
                    });
            let actual: BTreeSet<(String, String)> = own.collect();
            let wanted = expected
                .get("overridden")
                .list()
                .into_iter()
                .map(|one| (one.get("reference").string(), one.get("by").string()));
            failures.equal("overridden", actual, wanted.collect());
        }
        if let Some(occurrences) = expected.get("occurrences").number() {
            let own = output.report.reproduction.iter();
            let own = own.filter(|one| one.origin != Origin::Base).count();
            failures.equal("occurrences", own, occurrences);
        }
        if let Some(resolved) = expected.get("resolved_paths").number() {
            let own = output
                .report
                .provenance
                .iter()
                .filter(|one| one.origin != Origin::Base);
            let reached = own.map(|one| match &one.fate {
                Fate::Effective(paths) => paths.len(),
                Fate::Overridden(_) | Fate::NotComposed => 0,
            });
            failures.equal("resolved_paths", reached.sum::<usize>(), resolved);
        }
    }

    pub fn provenance(&self, output: &Output, failures: &mut Failures) {
        let expected = self.case.expected().get("provenance");
        if expected.0.is_none() {
            return;
        }
        let mut actual: Vec<String> = Vec::new();
        for record in &output.report.provenance {
            let Origin::Fragment(index) = record.origin else {
                continue;
            };
            let fate = match &record.fate {
                Fate::Effective(paths) => {
                    let mut paths: Vec<&str> = paths.iter().map(|path| path.as_str()).collect();
                    paths.sort_unstable();
                    format!("effective {paths:?}")
                }
                Fate::Overridden(by) => format!("overridden by {}", self.case.fragments[*by].name),
                Fate::NotComposed => "not-composed".to_string(),
            };
            actual.push(format!(
                "{} {:?} {} {} {fate}",
                record.version.written(),
                record.member,
                self.case.fragments[index].name,
                record.path.as_str(),
            ));
        }
        let mut wanted: Vec<String> = Vec::new();
        for row in expected.list() {
            let fate = match row.get("outcome").string().as_str() {
                "effective" => {
                    let paths = row.get("output").texts();
                    let mut paths: Vec<String> =
                        paths.iter().map(|path| self.shown(path)).collect();
                    paths.sort_unstable();
                    format!("effective {paths:?}")
                }
                "overridden" => format!("overridden by {}", row.get("overridden_by").string()),
                other => other.to_string(),
            };
            let source = Path::parse(&row.get("source").string()).ok();
            let source = source.map(|path| paths::shown(Enforced, &path, &self.forms));
            wanted.push(format!(
                "{}@{} {:?} {} {} {fate}",
                row.get("reference").string(),
                row.get("version").string(),
                row.get("member").number(),
                row.get("fragment").string(),
                source.as_ref().map_or("", |path| path.as_str()),
            ));
        }
        actual.sort();
        wanted.sort();
        failures.equal("provenance", actual, wanted);
    }

    /// Finds a leaf of a stream, going into an embedded document.
    pub async fn leaf(&self, bench: &Bench, stream: &Stream, path: &Path) -> Option<String> {
        let root = stream.documents.get(path.document)?;
        let place = place_of(root, &path.tokens)?;
        leaf_at(bench, stream, path.document, &place, path.inner.as_ref()).await
    }

    pub async fn effect(&self, bench: &Bench, literals: &[Plaintext], failures: &mut Failures) {
        let Some(composed) = &self.composed else {
            return;
        };
        let mut decided: BTreeSet<String> = BTreeSet::new();
        for (text, value) in self.case.expected().get("composed_effect").entries() {
            let Some(path) = self.path(&text) else {
                failures.check(false, &text, "names no document of the composition");
                continue;
            };
            let leaf = self.leaf(bench, composed, &path).await;
            failures.equal(&text, leaf, value.text().map(str::to_string));
            decided.insert(path.holder().written());
        }
        let mut written: BTreeSet<String> = BTreeSet::new();
        for literal in literals {
            for root in &bench.parse(literal.expose()).await.documents {
                walk::every(root, &mut |visit| {
                    written.extend(visit.node.text().map(str::to_string));
                });
            }
        }
        for (document, root) in composed.documents.iter().enumerate() {
            let base = self.base.documents.get(document);
            for leaf in walk::leaves(root).into_iter().flatten() {
                let path = Path::new(document, leaf.tokens.clone()).written();
                let text = leaf.node.text().unwrap_or_default();
                let same = base.and_then(|base| {
                    let place = place_of(base, &leaf.tokens)?;
                    base.at(&place)?.text()
                });
                let known = text.is_empty() || same == Some(text) || written.contains(text);
                let known = known || decided.contains(&path);
                failures.check(known, &path, "is neither the base's nor a literal's");
            }
        }
    }

    pub async fn redaction(&self, bench: &Bench, output: &Output, failures: &mut Failures) {
        let (Some(composed), Review::Shown(review)) = (&self.composed, &output.report.review)
        else {
            let wanted = self
                .case
                .expected()
                .get("redacted_leaves")
                .entries()
                .is_empty();
            failures.check(wanted, "review", "nothing is shown");
            return;
        };
        let review = bench.parse(review).await;
        let mut covered: BTreeMap<String, String> = BTreeMap::new();
        for (text, token) in self.case.expected().get("redacted_leaves").entries() {
            let Some(path) = self.path(&text) else {
                failures.check(false, &text, "names no document of the composition");
                continue;
            };
            // A key may be hidden, so the leaf is found by its place.
            let place = composed
                .documents
                .get(path.document)
                .and_then(|root| place_of(root, &path.tokens));
            let shown = match &place {
                Some(place) => {
                    leaf_at(bench, &review, path.document, place, path.inner.as_ref()).await
                }
                None => None,
            };
            failures.equal(&text, shown, token.text().map(str::to_string));
            covered.insert(path.holder().written(), token.string());
            if place.is_some() {
                self.paired(bench, &review, &path, failures).await;
            }
        }
        if self.case.expected().get("redacted_leaves").0.is_none() {
            return;
        }
        for (document, root) in review.documents.iter().enumerate() {
            for leaf in walk::leaves(root).into_iter().flatten() {
                let text = leaf.node.text().unwrap_or_default();
                let own = self
                    .case
                    .provider
                    .keys()
                    .any(|(name, _)| text.contains(&format!("redacted:{name}@")));
                let real = composed
                    .documents
                    .get(document)
                    .and_then(|root| path_at(root, &leaf.place));
                let path = real.map(|tokens| Path::new(document, tokens).written());
                let path = path.unwrap_or_default();
                let known = !own || covered.contains_key(&path);
                failures.check(known, &path, "is hidden and the case does not expect it");
            }
        }
    }

    /// The base side of a diff against this output.
    async fn paired(&self, bench: &Bench, review: &Stream, path: &Path, failures: &mut Failures) {
        let expected = self.case.expected().get("paired_base_leaf");
        let literal = match self.base.documents.get(path.document) {
            Some(root) => place_of(root, &path.tokens),
            None => None,
        };
        if expected.is("false") {
            failures.check(
                literal.is_none(),
                "paired_base_leaf",
                "the base has a leaf there",
            );
            return;
        }
        let Some(literal) = literal.filter(|_| expected.is("true")) else {
            failures.check(
                !expected.is("true"),
                "paired_base_leaf",
                "the base has no leaf there",
            );
            return;
        };
        let side = paired::base_side(Enforced, &self.base, review);
        let shown = leaf_at(bench, &side, path.document, &literal, None).await;
        failures.equal("paired_base_leaf", shown.as_deref(), Some(PAIRED));
    }

    /// Nothing that is shown holds a form of a value.
    pub async fn leaks(&self, bench: &Bench, compiled: &Compiled, failures: &mut Failures) {
        let placed = self.placed();
        let mut open = vec![self.base_text.as_str()];
        open.extend(self.case.fragments.iter().map(|one| one.document.as_str()));
        let oracle = Oracle::new(self.values.iter().chain(&self.secrets), &placed, &open);
        for (surface, text) in surfaces(compiled) {
            let found = oracle.leaks(&text);
            failures.check(
                found.is_empty(),
                surface,
                format!("shows a value ({found:?})"),
            );
        }
        if let Some(Review::Shown(review)) = compiled.output.as_ref().map(|one| &one.report.review)
        {
            let side = paired::base_side(Enforced, &self.base, &bench.parse(review).await);
            for (text, _) in self.case.expected().get("redacted_leaves").entries() {
                let Some(path) = self.path(&text) else {
                    continue;
                };
                let leaf = self.leaf(bench, &side, &path.holder()).await;
                let hidden = leaf.is_none_or(|leaf| oracle.leaks(&leaf).is_empty());
                failures.check(hidden, &text, "the base side of a diff shows a value");
            }
        }
        if let Some(form) = oracle.first_form() {
            let planted = format!("a: 1\nb: {form}\n");
            failures.check(
                !oracle.leaks(&planted).is_empty(),
                "oracle",
                "misses a planted value",
            );
        }
    }

    fn placed(&self) -> Vec<String> {
        let leaves = self.case.expected().get("redacted_leaves").entries();
        let paths = leaves.iter().filter_map(|(text, _)| self.path(text));
        paths
            .filter_map(|path| path.all_tokens().last().cloned())
            .collect()
    }
}

/// Everything of a compilation that somebody may read.
pub fn surfaces(compiled: &Compiled) -> Vec<(&'static str, String)> {
    let mut surfaces = Vec::new();
    if let Some(refusal) = &compiled.refused {
        surfaces.push(("refusal", format!("{refusal:?}")));
    }
    // What is stored of a base whose values were extracted.
    if let Some(base) = &compiled.base {
        surfaces.push(("sanitized base", base.text.clone()));
    }
    let Some(output) = &compiled.output else {
        return surfaces;
    };
    if let Err(refusal) = &output.outcome {
        surfaces.push(("refusal", format!("{refusal:?}")));
    }
    let report = &output.report;
    surfaces.push(("provenance", format!("{:?}", report.provenance)));
    surfaces.push(("reproduction", format!("{:?}", report.reproduction)));
    surfaces.push(("compose message", format!("{:?}", report.compose)));
    surfaces.push(("validate message", format!("{:?}", report.validate)));
    if let Review::Shown(review) = &report.review {
        surfaces.push(("review", review.clone()));
    }
    surfaces
}

pub fn place_of(root: &Node, tokens: &[String]) -> Option<Place> {
    let anchors = Anchors::of(root).ok()?;
    lookup::find(root, &anchors, tokens).map(|(place, _)| place)
}

fn path_at(root: &Node, place: &[usize]) -> Option<Vec<String>> {
    let leaves = walk::leaves(root)?;
    let found = leaves.into_iter().find(|leaf| leaf.place == place);
    found.map(|leaf| leaf.tokens)
}

async fn leaf_at(
    bench: &Bench,
    stream: &Stream,
    document: usize,
    place: &[usize],
    inner: Option<&Inner>,
) -> Option<String> {
    let node = stream.documents.get(document)?.at(place)?;
    let text = node.text()?;
    let Some(inner) = inner else {
        return Some(text.to_string());
    };
    let root = bench.embedded(inner.format, text).await?;
    let place = place_of(&root, &inner.tokens)?;
    root.at(&place)?.text().map(str::to_string)
}
