use std::collections::BTreeMap;
use std::sync::Arc;

use bronzeward_core::canonical::Digest;
use bronzeward_core::compile::{self, Kubernetes, Review};
use bronzeward_core::extract::{self, Purpose};
use bronzeward_core::id::ClusterId;
use bronzeward_core::machinery::Mode;
use bronzeward_core::path::Path;
use bronzeward_core::reference::{Declarations, Version};
use bronzeward_core::resolve::Pinned;
use bronzeward_core::rules::Enforced;
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::decide::{Undecided, decide};
use bronzeward_engine::ports::renderer::{
    PlatformMode, RefusedClass, RenderError, Renderer, SourceRole,
};

use super::super::testing::{PROCESS, run, sim};
use super::SimRenderer;
use crate::faults::{Fault, Faults};
use crate::sim::Sim;

const BASE: &str = concat!(
    r#"{"version":"v1alpha1","machine":{"type":"worker","token":"rw-machine-token","#,
    r#""network":{"hostname":"w1"},"sysctls":{"vm.max":"1"},"certSANs":["a.test"],"#,
    r#""env":{"proxy":"pass-through-word"}},"cluster":{"clusterName":"one"}}"#,
    "\n",
    r#"{"apiVersion":"v1alpha1","kind":"Side","name":"one","note":7}"#,
    "\n"
);
const FRAGMENT: &str = concat!(
    r#"{"machine":{"sysctls":{"vm.max":"2","vm.min":"1"},"certSANs":["b.test"],"debug":true}}"#,
    "\n",
    r#"{"apiVersion":"v1alpha1","kind":"Side","name":"one","$patch":"delete"}"#,
    "\n"
);

fn text(text: &str) -> Plaintext {
    Plaintext::new(text.to_owned())
}

/// An ingestion by core's own decision.
fn ingested(sim: &Arc<Sim>, purpose: Purpose, input: &str, marks: &[&str]) -> extract::Extraction {
    let marks = marks.iter().map(|mark| Path::parse(mark).expect("a path"));
    let input = extract::Input {
        purpose,
        text: text(input),
        declarations: Declarations::default(),
        marks: marks.collect(),
    };
    let renderer = SimRenderer::new(sim, PROCESS);
    let decided = run(sim, async move {
        let mut job = extract::Job::new(Enforced, input);
        let mut minted = 0;
        let mint = || {
            minted += 1;
            [minted; 16]
        };
        decide(&mut job, &renderer, mint).await
    });
    decided.unwrap_or_else(|why| panic!("not ingested: {why:?}"))
}

const CLUSTER: u128 = 7;

fn source(extraction: &extract::Extraction) -> compile::Source {
    compile::Source {
        text: text(extraction.sanitized.document()),
        digest: Digest([1; 32]),
        declarations: extraction.sanitized.declarations().clone(),
    }
}

fn compiled(
    sim: &Arc<Sim>,
    base: &extract::Extraction,
    fragments: &[&extract::Extraction],
) -> Result<compile::Output, Undecided> {
    let cluster = ClusterId::from_bits(CLUSTER);
    let all = std::iter::once(base).chain(fragments.iter().copied());
    let generations = all.flat_map(|one| &one.generations);
    let pins = generations.map(|generation| {
        let version = Version {
            name: generation.name.clone(),
            version: 1,
        };
        let value = Some(generation.value.clone());
        (version, Pinned { cluster, value })
    });
    let input = compile::Input {
        cluster,
        mode: Mode::Metal,
        base: source(base),
        fragments: fragments.iter().map(|one| source(one)).collect(),
        pins: pins.collect::<BTreeMap<_, _>>(),
    };
    let renderer = SimRenderer::new(sim, PROCESS);
    run(sim, async move {
        let mut job = compile::Job::new(Enforced, input);
        decide(&mut job, &renderer, || [0; 16]).await
    })
}

const MARK: &str = "doc[0]/machine/env/proxy";

#[test]
fn an_import_with_a_schema_secret_and_a_mark_and_its_publication_pass_through() {
    for seed in 0..20 {
        let sim = sim(seed, Faults::none());
        let base = ingested(&sim, Purpose::Base, BASE, &[MARK]);
        assert_eq!(base.generations.len(), 2);
        let kept = base.sanitized.document();
        assert!(!kept.contains("rw-machine-token") && !kept.contains("pass-through-word"));
        let fragment = ingested(&sim, Purpose::Fragment, FRAGMENT, &[]);
        let output = compiled(&sim, &base, &[&fragment]).expect("decided");
        let compiled = output.outcome.unwrap_or_else(|why| panic!("{why:?}"));
        assert_eq!(
            compiled.configuration.expose(),
            concat!(
                r#"{"version":"v1alpha1","machine":{"type":"worker","token":"rw-machine-token","#,
                r#""network":{"hostname":"w1"},"sysctls":{"vm.max":"2","vm.min":"1"},"#,
                r#""certSANs":["a.test","b.test"],"env":{"proxy":"pass-through-word"},"#,
                r#""debug":true},"cluster":{"clusterName":"one"}}"#,
                "\n"
            )
        );
        let supported = Kubernetes::Supported("v1.36.2".to_owned());
        assert!(compiled.complete && compiled.kubernetes == supported);
        let Review::Shown(review) = &output.report.review else {
            panic!("no review is shown");
        };
        assert!(!review.contains("rw-machine-token") && !review.contains("pass-through-word"));
        assert_eq!(output.report.effective.len(), 2);
    }
}

#[test]
fn a_fragments_override_of_an_imported_secret_is_refused_by_the_products_own_check() {
    let sim = sim(3, Faults::none());
    let base = ingested(&sim, Purpose::Base, BASE, &[MARK]);
    let over = concat!(r#"{"machine":{"env":{"proxy":"another"}}}"#, "\n");
    let over = ingested(&sim, Purpose::Fragment, over, &[]);
    let output = compiled(&sim, &base, &[&over]).expect("decided");
    let refused = output.outcome.err().expect("an override refuses");
    assert_eq!(refused.rule, "base-override");
}

#[test]
fn every_text_is_written_back_as_it_was_read() {
    let sim = sim(1, Faults::none());
    let renderer = SimRenderer::new(&sim, PROCESS);
    run(&sim, async move {
        for spelled in [
            BASE,
            FRAGMENT,
            "{\"a\":!bwref \"ingested/x\",\"b\":[null,-3,0,{}],\"c\":\"q\\\"\\\\\\n\\t\\r|\"}\n",
            "null\n{}\n",
            "",
        ] {
            let stream = renderer.parse(&text(spelled)).await.expect("read");
            let again = renderer.encode(&stream).await.expect("written");
            assert_eq!(again.expose(), spelled);
        }
        for (broken, class) in [
            ("{\"a\":1,\"a\":2}", RefusedClass::DuplicateKey),
            ("{\"a\":01}", RefusedClass::Syntax),
            ("{\"a\":1}x", RefusedClass::Syntax),
            ("{\"a\"", RefusedClass::Syntax),
            (&"[".repeat(200), RefusedClass::TooDeep),
        ] {
            let refused = renderer.parse(&text(broken)).await.err();
            assert!(
                matches!(refused, Some(RenderError::Refused(it)) if it.class == class),
                "{broken}"
            );
        }
    });
}

#[test]
fn composition_and_validation_say_no_where_talos_would() {
    let sim = sim(1, Faults::none());
    let renderer = SimRenderer::new(&sim, PROCESS);
    run(&sim, async move {
        for (fragment, class) in [
            (r#"{"machine":{"type":{}}}"#, RefusedClass::Merge),
            (
                r#"{"kind":"None","$patch":"delete"}"#,
                RefusedClass::AbsentDeleteTarget,
            ),
            (r#"[]"#, RefusedClass::JsonPatch),
            ("", RefusedClass::EmptyFragment),
            (
                r#"{"machine":{"token":!bwref "a"}}"#,
                RefusedClass::LocalTag,
            ),
        ] {
            let composed = renderer.compose(&text(BASE), &[text(fragment)]).await;
            let Err(RenderError::Refused(refused)) = composed else {
                panic!("{fragment} was composed");
            };
            assert!(
                refused.class == class && refused.fragment == Some(0),
                "{fragment}"
            );
        }
        let directive = text(r#"{"machine":{"a":{"$patch":"delete"}}}"#);
        let checked = renderer.check(SourceRole::Base, &directive).await;
        assert!(checked.is_err());
        let judged = text(r#"{"machine":{"type":"other","network":{"hostname":"a b"}}}"#);
        let verdict = renderer.validate(&judged, PlatformMode::Metal).await;
        let verdict = verdict.expect("judged");
        assert!(verdict.errors.len() == 2 && verdict.machine_type.is_none());
        let side = text(r#"{"kind":"Side"}"#);
        let verdict = renderer.validate(&side, PlatformMode::Metal);
        assert!(!verdict.await.expect("judged").complete);
    });
}

#[test]
fn a_renderers_faults_end_a_decision_and_are_no_verdict_of_a_document() {
    let faults = Faults::none().with(Fault::RendererUnavailable, 10_000);
    let without = sim(1, Faults::none());
    let base = ingested(&without, Purpose::Base, BASE, &[]);
    let struck = sim(1, faults);
    let decided = compiled(&struck, &base, &[]);
    assert!(matches!(decided, Err(Undecided::Unavailable(_))));
    struck.state().faults.healed = true;
    let output = compiled(&struck, &base, &[]).expect("decided");
    assert!(output.outcome.is_ok());
}
