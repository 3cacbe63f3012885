//! The controls: what the matrix relies on must be able to fail.
//!
//! Each runs over every case it applies to and is itself required to have applied
//! somewhere, so that a quiet run is a failing run. Never in this module: a control that
//! passes because it did nothing.

use std::collections::BTreeMap;

use bronzeward_core::compile::{Fate, Input, Review};
use bronzeward_core::document::{Node, Stream, walk};
use bronzeward_core::extract::Purpose;
use bronzeward_core::forms::Forms;
use bronzeward_core::machinery::{Answer, Request};
use bronzeward_core::path::Path;
use bronzeward_core::redact::message::View;
use bronzeward_core::redact::paired;
use bronzeward_core::reference::Declarations;
use bronzeward_core::rules::{Enforced, Rule};
use bronzeward_core::secret::{Plaintext, Value};
use bronzeward_harness::without::Without;

use super::bench::{Base, Bench, Ingested, input};
use super::case::Case;
use super::cell::{additions, compile, stored};
use super::native::{Native, literals, native};
use super::oracle::Oracle;
use super::scene::{Scene, place_of, surfaces};

/// How often each control fired.
#[derive(Default)]
pub struct Fired(BTreeMap<&'static str, usize>);

impl Fired {
    fn add(&mut self, control: &'static str) {
        *self.0.entry(control).or_default() += 1;
    }

    pub fn assert(&self, controls: &[&str]) {
        for control in controls {
            let count = self.0.get(control).copied().unwrap_or(0);
            assert!(count > 0, "the control {control:?} applied to no cell");
            eprintln!("{control}: {count}");
        }
    }
}

/// A case's sources, ingested; `None` when one of them is refused.
pub struct Ready {
    pub base: Ingested,
    pub fragments: Vec<Ingested>,
    pub text: Plaintext,
}

pub async fn ready(bench: &Bench, case: &Case, base: &Base) -> Option<Ready> {
    let text = additions(bench, &base.text, &case.base_additions).await;
    let none = Declarations::default();
    let ingested = bench
        .ingest(Enforced, Purpose::Base, text.expose(), &none, &[])
        .await
        .ok()?;
    Some(Ready {
        base: ingested,
        fragments: case.fragments.iter().map(stored).collect(),
        text,
    })
}

impl Ready {
    pub fn input(&self, case: &Case, base: &Base) -> Input {
        input(&self.base, &self.fragments, &case.provider, base.mode)
    }
}

fn traced(request: &Request) -> bool {
    match request {
        Request::Compose { base, fragments } => std::iter::once(base)
            .chain(fragments)
            .any(|text| text.expose().contains("zq0")),
        _ => false,
    }
}

/// A one-byte change of the traced composition is noticed.
pub async fn fidelity(bench: &Bench, case: &Case, base: &Base, ready: &Ready, fired: &mut Fired) {
    let mut changed = false;
    let all = case.fragments.len();
    let mut tamper = |request: &Request, answer: &mut Answer| {
        let whole = matches!(request, Request::Compose { fragments, .. } if fragments.len() == all);
        if let (true, Answer::Text(text)) = (whole && traced(request), &mut *answer) {
            let byte = text
                .expose()
                .replacen("clusterName: bench", "clusterName: benci", 1);
            changed |= byte != text.expose();
            *text = Plaintext::new(byte);
        }
    };
    let output = bench.tampered(ready.input(case, base), &mut tamper).await;
    if !changed {
        return;
    }
    let rule = output.outcome.err().map(|refusal| refusal.rule_name());
    let noticed = matches!(rule.as_deref(), Some("leaf-unattributed" | "pass-shape"));
    assert!(
        noticed,
        "{} / {}: a changed byte gave {rule:?}",
        case.id, base.name
    );
    fired.add("fidelity");
}

/// A message that nothing explains is withheld.
pub async fn messages(bench: &Bench, case: &Case, base: &Base, ready: &Ready, fired: &mut Fired) {
    let other = |text: &Plaintext| Plaintext::new(format!("{} and more", text.expose()));
    let mut seen = (false, false);
    let mut tamper = |request: &Request, answer: &mut Answer| match (request, &mut *answer) {
        (Request::Compose { .. }, Answer::Rejected(rejected)) if !traced(request) => {
            rejected.message = other(&rejected.message);
            seen.0 = true;
        }
        (Request::Validate { configuration, .. }, Answer::Verdict(verdict))
            if !configuration.expose().contains("zq0") && !verdict.errors.is_empty() =>
        {
            verdict.errors[0] = other(&verdict.errors[0]);
            seen.1 = true;
        }
        _ => {}
    };
    let output = bench.tampered(ready.input(case, base), &mut tamper).await;
    let at = format!("{} / {}", case.id, base.name);
    if seen.0 {
        assert_eq!(output.report.compose, View::Withheld, "{at}");
        fired.add("compose message");
    }
    if seen.1 {
        assert_eq!(output.report.validate, View::Withheld, "{at}");
        fired.add("validate message");
    }
}

/// The trace holds no value, and compiling twice gives the same.
pub async fn trace_and_twice(
    bench: &Bench,
    case: &Case,
    base: &Base,
    ready: &Ready,
    fired: &mut Fired,
) {
    let values = case.provider.values().chain(ready.base.values.values());
    let texts: Vec<String> = values
        .flat_map(|value| value.strings())
        .map(|text| text.expose().to_string())
        .filter(|text| text.len() >= 6)
        .collect();
    let mut held = Vec::new();
    let mut seen = false;
    let mut look = |request: &Request, _: &mut Answer| {
        if let (true, Request::Compose { base, fragments }) = (traced(request), request) {
            seen = true;
            for text in std::iter::once(base).chain(fragments) {
                held.extend(
                    texts
                        .iter()
                        .filter(|value| text.expose().contains(value.as_str()))
                        .map(String::len),
                );
            }
        }
    };
    let first = bench.tampered(ready.input(case, base), &mut look).await;
    let at = format!("{} / {}", case.id, base.name);
    // A literal copy of a value is in every pass; the output check refuses it.
    let copied = first
        .outcome
        .as_ref()
        .err()
        .is_some_and(|one| one.rule == "exact-copy");
    assert!(held.is_empty() || copied, "{at}: the trace holds a value");
    if seen {
        fired.add("trace holds no value");
    }
    let second = bench.compile(Enforced, ready.input(case, base)).await;
    assert_eq!(first.report, second.report, "{at}: twice is not the same");
    let texts = [&first, &second].map(|output| match &output.outcome {
        Ok(compiled) => compiled.configuration.expose().to_string(),
        Err(refusal) => refusal.rule_name(),
    });
    assert_eq!(texts[0], texts[1], "{at}");
    fired.add("twice the same");
}

/// The base holds no value of a case.
pub fn base_is_clean(case: &Case, base: &Base, fired: &mut Fired) {
    for value in case.provider.values() {
        for text in value
            .strings()
            .into_iter()
            .filter(|text| text.expose().len() >= 6)
        {
            assert!(
                !base.text.expose().contains(text.expose()),
                "{} / {}",
                case.id,
                base.name
            );
            fired.add("base holds no value");
        }
    }
}

/// Redacting one side of a diff alone shows what the base had.
pub async fn one_sided(bench: &Bench, case: &Case, base: &Base, ready: &Ready, fired: &mut Fired) {
    if !case.expected().get("paired_base_leaf").is("true") {
        return;
    }
    let output = bench.compile(Enforced, ready.input(case, base)).await;
    let Review::Shown(review) = &output.report.review else {
        panic!("{}: nothing is shown", case.id);
    };
    let review = bench.parse(review).await;
    let older = bench.parse(ready.text.expose()).await;
    let dropped = paired::base_side(Without::rules(&[Rule::PairedBase]), &older, &review);
    for (text, _) in case.expected().get("redacted_leaves").entries() {
        let Ok(path) = Path::parse(&text) else {
            continue;
        };
        let place = place_of(&older.documents[path.document], &path.tokens);
        let shown = place.and_then(|place| {
            let node = dropped.documents[path.document].at(&place)?;
            node.text().map(str::to_string)
        });
        assert!(
            shown.is_some_and(|text| !text.starts_with("<redacted:")),
            "{}",
            case.id
        );
        fired.add("one side of a diff");
    }
}

/// Each means of redaction, dropped, leaks in some case.
pub async fn means(bench: &Bench, case: &Case, base: &Base, ready: &Ready, fired: &mut Fired) {
    let texts = case
        .provider
        .values()
        .filter(|value| !value.strings().is_empty());
    let oracle = Oracle::new(texts, &[], &[ready.text.expose()]);
    let unchecked = [
        Rule::RedactByPath,
        Rule::RedactByValue,
        Rule::RenderingChecked,
    ];
    let output = bench
        .compile(Without::rules(&unchecked), ready.input(case, base))
        .await;
    if let Review::Shown(review) = &output.report.review
        && !oracle.leaks(review).is_empty()
    {
        fired.add("path and value means dropped");
    }
}

/// A base compiled as it is, with no value extracted: the schema alone hides its secrets.
pub async fn schema(bench: &Bench, base: &Base, fired: &mut Fired) {
    let fields = bench.secret_fields(&base.text).await;
    assert_eq!(
        fields.len(),
        9,
        "{}: secret leaves of a control plane",
        base.name
    );
    let raw = Ingested {
        text: base.text.expose().to_string(),
        declarations: Declarations::default(),
        values: BTreeMap::new(),
    };
    let none = BTreeMap::new();
    let review = |output: bronzeward_core::compile::Output| match output.report.review {
        Review::Shown(review) => review,
        other => panic!("{}: {other:?}", base.name),
    };
    let held = input(&raw, &[], &none, base.mode);
    let hidden = review(bench.compile(Enforced, held).await);
    assert_eq!(
        hidden.matches("<redacted:schema>").count(),
        9,
        "{}",
        base.name
    );
    let dropped = Without::rules(&[Rule::RedactBySchema]);
    let shown = review(
        bench
            .compile(dropped, input(&raw, &[], &none, base.mode))
            .await,
    );
    let parsed = bench.parse(base.text.expose()).await;
    for field in &fields {
        let tokens: Vec<String> = field.steps.iter().map(step).collect();
        let root = &parsed.documents[field.document];
        let place = place_of(root, &tokens).expect("a secret leaf is there");
        let secret = root.at(&place).and_then(Node::text).expect("text");
        assert!(
            !hidden.contains(secret),
            "{}: a secret of the base is shown",
            base.name
        );
        assert!(
            shown.contains(secret),
            "{}: the control hides a secret",
            base.name
        );
        fired.add("schema means dropped");
    }
}

fn step(step: &bronzeward_engine::ports::renderer::Step) -> String {
    match step {
        bronzeward_engine::ports::renderer::Step::Key(key) => key.clone(),
        bronzeward_engine::ports::renderer::Step::Index(index) => index.to_string(),
    }
}

/// The second revision of a pair: compiled and clean with its own trace, and leaking with
/// what the first revision knew.
pub async fn second_revision(bench: &Bench, case: &Case, base: &Base, fired: &mut Fired) {
    let (second, moved) = match case.id.as_str() {
        id if id.ends_with("moved-r1") => (moved(case), true),
        id if id.ends_with("rotate-r1") => (rotated(case), false),
        _ => return,
    };
    let at = format!("{} / {}", second.id, base.name);
    let all: Vec<usize> = (0..second.fragments.len()).collect();
    let none = Declarations::default();
    let compiled = compile(bench, &second, &base.text, base, &[], &none, &all).await;
    let output = compiled
        .output
        .as_ref()
        .expect("a second revision compiles");
    let published = output.outcome.as_ref();
    let published = published.unwrap_or_else(|refusal| panic!("{at}: {refusal:?}"));
    let written = literals(bench, &second).await;
    let native = native(bench, &second, &base.text, &written, base.mode).await;
    let Native::Pass(composed) = native else {
        panic!("{at}: native composition refuses");
    };
    assert!(
        published.configuration.same(&composed),
        "{at}: differs from native composition"
    );
    let placed: Vec<String> = Vec::new();
    let oracle = Oracle::new(second.provider.values(), &placed, &[base.text.expose()]);
    for (surface, text) in surfaces(&compiled) {
        assert!(
            oracle.leaks(&text).is_empty(),
            "{at} / {surface}: shows a value"
        );
    }
    let first = ready(bench, case, base)
        .await
        .expect("the first revision ingests");
    let first = bench.compile(Enforced, first.input(case, base)).await;
    let real = bench.parse(composed.expose()).await;
    if moved {
        // Last revision's paths: the leaf there is no longer the value's.
        let paths = first
            .report
            .provenance
            .iter()
            .flat_map(|record| match &record.fate {
                Fate::Effective(paths) => paths.clone(),
                Fate::Overridden(_) | Fate::NotComposed => Vec::new(),
            });
        let mut by_old_paths = real.clone();
        for path in paths {
            hide(&mut by_old_paths, path.as_str());
        }
        assert!(
            leaks(&oracle, &by_old_paths),
            "{at}: last revision's paths hide it"
        );
        fired.add("moved: last paths");
        return;
    }
    // Last revision's values: the new one is not among them.
    let old: Vec<&Value> = versions(case, 1).collect();
    let forms = Forms::of(old);
    let mut by_old_values = real.clone();
    for root in &mut by_old_values.documents {
        each(root, &mut |text| forms.replaced(text, "<redacted:value>"));
    }
    assert!(
        leaks(&oracle, &by_old_values),
        "{at}: last revision's values hide it"
    );
    fired.add("rotate: last values");
    let named = |report: &bronzeward_core::compile::Report| -> Vec<String> {
        let own = report.effective.iter().filter(|one| {
            case.provider
                .keys()
                .any(|(name, _)| name == one.name.as_str())
        });
        own.map(|one| one.written()).collect()
    };
    let (before, now) = (named(&first.report), named(&output.report));
    assert!(
        before.iter().all(|one| one.ends_with("@1")),
        "{at}: {before:?}"
    );
    assert!(now.iter().all(|one| one.ends_with("@2")), "{at}: {now:?}");
    let Review::Shown(review) = &output.report.review else {
        panic!("{at}: nothing is shown");
    };
    assert!(
        now.iter()
            .all(|one| review.contains(&format!("<redacted:{one}>"))),
        "{at}"
    );
    assert!(
        before.iter().all(|one| !review.contains(one.as_str())),
        "{at}: names the last version"
    );
    fired.add("rotate: last version");
}

fn versions(case: &Case, version: u64) -> impl Iterator<Item = &Value> {
    let held = case.provider.iter();
    held.filter(move |((_, held), _)| *held == version)
        .map(|(_, value)| value)
}

fn hide(stream: &mut Stream, path: &str) {
    let Ok(path) = Path::parse(path) else { return };
    let root = &mut stream.documents[path.document];
    if let Some(place) = place_of(root, &path.tokens)
        && let Some(node) = root.at_mut(&place)
    {
        node.replace(Node::string("<redacted:old>"));
    }
}

fn each(root: &mut Node, change: &mut dyn FnMut(&str) -> String) {
    let mut places = Vec::new();
    walk::every(root, &mut |visit| places.push(visit.place.to_vec()));
    for place in places {
        let Some(node) = root.at_mut(&place) else {
            continue;
        };
        if let Some(text) = node.text() {
            let changed = change(text);
            node.replace(Node::string(changed));
        }
    }
}

fn leaks(oracle: &Oracle, stream: &Stream) -> bool {
    let mut leaks = false;
    for root in &stream.documents {
        walk::every(root, &mut |visit| {
            leaks |= visit
                .node
                .text()
                .is_some_and(|text| !oracle.leaks(text).is_empty());
        });
    }
    leaks
}

/// The value at another path: under a registry of another name.
fn moved(case: &Case) -> Case {
    let mut second = Case::read(case.root.clone()).expect("a case");
    second.id = case.id.replace("moved-r1", "moved-r2");
    for fragment in &mut second.fragments {
        fragment.document = fragment
            .document
            .replace("hub.example.test", "spare.example.test");
    }
    second
}

/// Version 2 in the place of version 1.
fn rotated(case: &Case) -> Case {
    let mut second = Case::read(case.root.clone()).expect("a case");
    second.id = case.id.replace("rotate-r1", "rotate-r2");
    for fragment in &mut second.fragments {
        for declared in fragment.declarations.references.values_mut() {
            declared.version = 2;
        }
    }
    second
}

/// Whether the scene of a case finds its own document; used by the matrix's own check.
pub async fn scene_reads(bench: &Bench, case: &Case, base: &Base) -> bool {
    let all: Vec<usize> = (0..case.fragments.len()).collect();
    let none = Declarations::default();
    let compiled = compile(bench, case, &base.text, base, &[], &none, &all).await;
    let scene = Scene::new(bench, case, &base.text, &compiled, Some(&base.text)).await;
    let kind = scene.path("doc[0]/machine/type");
    let stream = bench.parse(base.text.expose()).await;
    match kind {
        Some(path) => scene.leaf(bench, &stream, &path).await.is_some(),
        None => false,
    }
}
