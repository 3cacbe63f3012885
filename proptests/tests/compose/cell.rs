//! One cell: a case over one base, with its references in fragments or in the base.
//!
//! Every field of `expected` that a case has is compared. Failures are collected and name
//! the case, the base, the variant and the path. Never in this module: a default for what
//! a case does not say.

use std::collections::BTreeMap;

use bronzeward_core::compile::Output;
use bronzeward_core::extract::Purpose;
use bronzeward_core::redact::message::View;
use bronzeward_core::reference::Declarations;
use bronzeward_core::refusal::{Origin, Refusal};
use bronzeward_core::rules::Enforced;
use bronzeward_core::secret::Plaintext;

use super::bench::{Base, Bench, Ingested, input};
use super::case::{Case, Field, Fragment};
use super::native::{Native, literals, native};
use super::scene::Scene;

/// What went wrong, with where.
pub struct Failures {
    pub found: Vec<String>,
    at: String,
}

impl Failures {
    pub fn new(case: &str, base: &str, variant: &str) -> Failures {
        Failures {
            found: Vec::new(),
            at: format!("{case} / {base} / {variant}"),
        }
    }

    pub fn check(&mut self, holds: bool, path: &str, what: impl std::fmt::Display) {
        if !holds {
            self.found.push(format!("{} / {path}: {what}", self.at));
        }
    }

    pub fn equal<T: PartialEq + std::fmt::Debug>(&mut self, path: &str, actual: T, expected: T) {
        let same = actual == expected;
        self.check(same, path, format!("is {actual:?}, expected {expected:?}"));
    }
}

/// A compiled cell, or the refusal of its base.
pub struct Compiled {
    pub output: Option<Output>,
    pub refused: Option<Refusal>,
    pub base: Option<Ingested>,
    pub fragments: Vec<Ingested>,
}

/// A fragment as it is stored: its literals are the author's, its references declared.
pub fn stored(fragment: &Fragment) -> Ingested {
    Ingested {
        text: fragment.document.clone(),
        declarations: fragment.declarations.clone(),
        values: BTreeMap::new(),
    }
}

/// Ingests the base, so that its secrets are references, and compiles the fragments on it.
pub async fn compile(
    bench: &Bench,
    case: &Case,
    base_text: &Plaintext,
    base_of: &Base,
    marks: &[String],
    base_declarations: &Declarations,
    fragments: &[usize],
) -> Compiled {
    let mut compiled = Compiled {
        output: None,
        refused: None,
        base: None,
        fragments: Vec::new(),
    };
    let text = base_text.expose();
    let base = bench.ingest(Enforced, Purpose::Base, text, base_declarations, marks);
    match base.await {
        Ok(base) => compiled.base = Some(base),
        Err(refusal) => {
            compiled.refused = Some(refusal);
            return compiled;
        }
    }
    compiled.fragments = fragments
        .iter()
        .map(|index| stored(&case.fragments[*index]))
        .collect();
    if let Some(base) = &compiled.base {
        let input = input(base, &compiled.fragments, &case.provider, base_of.mode);
        compiled.output = Some(bench.compile(Enforced, input).await);
    }
    compiled
}

/// The base a case is laid over.
pub async fn additions(bench: &Bench, base: &Plaintext, additions: &str) -> Plaintext {
    if additions.trim().is_empty() {
        return base.clone();
    }
    let patch = Plaintext::new(additions.to_string());
    let laid = bench.compose(base, &[patch]).await;
    laid.expect("the additions of a case compose with a standard base")
}

/// The main cell. Gives the composed configuration, if there is one.
pub async fn main_cell(
    bench: &Bench,
    case: &Case,
    base: &Base,
) -> (Option<Plaintext>, Vec<String>) {
    let mut failures = Failures::new(&case.id, base.name, "main");
    let text = additions(bench, &base.text, &case.base_additions).await;
    let literals = literals(bench, case).await;
    let native = native(bench, case, &text, &literals, base.mode).await;
    let expected = case.expected();
    failures.equal(
        "native",
        native.name().to_string(),
        expected.get("native").string(),
    );
    let all: Vec<usize> = (0..case.fragments.len()).collect();
    let none = Declarations::default();
    let compiled = compile(bench, case, &text, base, &[], &none, &all).await;
    outcome(case, &compiled, &mut failures);
    authored(bench, case, &mut failures).await;
    messages(case, &compiled, &mut failures);
    let composed = match &native {
        Native::Pass(composed) | Native::Invalid(composed) => Some(composed),
        Native::Rejected => None,
    };
    let scene = Scene::new(bench, case, &text, &compiled, composed).await;
    sites(case, &scene, &compiled, &mut failures);
    if let Some(output) = &compiled.output {
        if let (Ok(published), Some(composed)) = (&output.outcome, composed) {
            let same = published.configuration.expose() == composed.expose();
            failures.check(same, "configuration", "differs from native composition");
        }
        scene.dependencies(output, &mut failures);
        scene.provenance(output, &mut failures);
        scene.redaction(bench, output, &mut failures).await;
    }
    if !expected.is_refused() {
        scene.effect(bench, &literals, &mut failures).await;
    }
    scene.leaks(bench, &compiled, &mut failures).await;
    let published = compiled.output.and_then(|output| output.outcome.ok());
    (
        published.map(|published| published.configuration),
        failures.found,
    )
}

impl Field<'_> {
    fn is_refused(self) -> bool {
        self.get("outcome").is("refused")
    }
}

pub fn refusal(compiled: &Compiled) -> Option<&Refusal> {
    let early = compiled.refused.as_ref();
    let late = compiled
        .output
        .as_ref()
        .and_then(|output| output.outcome.as_ref().err());
    early.or(late)
}

fn outcome(case: &Case, compiled: &Compiled, failures: &mut Failures) {
    let expected = case.expected();
    let stage = expected.get("stage").text().map(str::to_string);
    let rule = expected.get("rule").text().map(str::to_string);
    let refusal = refusal(compiled);
    failures.equal(
        "stage",
        refusal.map(|one| one.stage.name().to_string()),
        stage,
    );
    failures.equal("rule", refusal.map(Refusal::rule_name), rule);
    let outcome = match refusal {
        None => "parity",
        Some(one) if one.rule == "invalid" => "invalid",
        Some(one) if one.stage.name() == "compose" && one.rule == "fragment" => "rejected",
        Some(_) => "refused",
    };
    failures.equal(
        "outcome",
        outcome.to_string(),
        expected.get("outcome").string(),
    );
}

/// What authoring refuses, a draft update refuses by the same rule.
async fn authored(bench: &Bench, case: &Case, failures: &mut Failures) {
    if !case.expected().get("stage").is("authoring") {
        return;
    }
    let mut refused = None;
    for fragment in &case.fragments {
        let (text, declared) = (&fragment.document, &fragment.declarations);
        let one = bench.ingest(Enforced, Purpose::Fragment, text, declared, &[]);
        refused = refused.or(one.await.err());
    }
    let rule = refused.map(|refusal| refusal.rule_name());
    let wanted = case.expected().get("rule").text().map(str::to_string);
    failures.equal("draft update", rule, wanted);
}

/// The places a refusal names.
fn sites(case: &Case, scene: &Scene<'_>, compiled: &Compiled, failures: &mut Failures) {
    let Some(refusal) = refusal(compiled) else {
        return;
    };
    for at in case.expected().get("at").list() {
        // A path of the case is compared as a refusal shows it.
        let path = at.get("path").text().map(|path| scene.shown(path));
        let fragment = at.get("fragment").text();
        let named = refusal.sites.iter().any(|site| {
            let index = match site.origin {
                Some(Origin::Fragment(index)) => Some(index),
                Some(Origin::Base) | None => None,
            };
            let name = index.map(|index| case.fragments[index].name.as_str());
            let site_path = site.path.as_ref().map(|path| path.as_str().to_string());
            (fragment.is_none() || fragment == name) && (path.is_none() || path == site_path)
        });
        failures.check(named, "at", format!("does not name {fragment:?} {path:?}"));
    }
}

fn messages(case: &Case, compiled: &Compiled, failures: &mut Failures) {
    let expected = case.expected();
    let (compose, validate) = match &compiled.output {
        Some(output) => (
            output.report.compose.clone(),
            output.report.validate.clone(),
        ),
        None => (View::Skipped, View::Skipped),
    };
    let wanted = expected.get("messages");
    failures.equal(
        "messages/compose",
        compose.name(),
        &*wanted.get("compose").string(),
    );
    failures.equal(
        "messages/validate",
        validate.name(),
        &*wanted.get("validate").string(),
    );
    let quote = expected.get("native_message_quotes");
    if let (Some(text), Some(token)) = (quote.get("text").text(), quote.get("redacted_as").text()) {
        let shown = [&compose, &validate]
            .into_iter()
            .find_map(|view| match view {
                View::Redacted(shown) => Some(shown.clone()),
                _ => None,
            });
        let shown = shown.unwrap_or_default();
        failures.check(
            shown.contains(token),
            "message",
            format!("does not hold {token}"),
        );
        failures.check(!shown.contains(text), "message", "still quotes the value");
    }
}
