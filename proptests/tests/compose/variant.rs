//! A case with the literals of its first fragments in the import base, and their values
//! extracted from there by ingestion.
//!
//! Never in this module: a reference written into a base by hand.

use bronzeward_core::extract::Purpose;
use bronzeward_core::reference::Declarations;
use bronzeward_core::rules::Enforced;
use bronzeward_core::secret::Plaintext;

use super::bench::{Base, Bench};
use super::case::{Case, embedded};
use super::cell::{Failures, additions, compile, refusal};
use super::native::literals;
use super::scene::Scene;

/// The variant with the first fragments moved into the import base.
pub async fn base_ref_cell(
    bench: &Bench,
    case: &Case,
    base: &Base,
    main: Option<&Plaintext>,
) -> Vec<String> {
    let variant = case.field("base_ref_variant");
    let mut failures = Failures::new(&case.id, base.name, "base-ref");
    let laid = additions(bench, &base.text, &case.base_additions).await;
    if !variant.get("applies").is("true") {
        not_applied(bench, case, &laid, &mut failures).await;
        return failures.found;
    }
    let text = additions(bench, &laid, &variant.get("base_additions").string()).await;
    let declarations = Declarations {
        embedded: embedded(variant.get("embedded")).expect("embedded documents of a variant"),
        ..Declarations::default()
    };
    let remaining: Vec<usize> = variant
        .get("remaining_fragments")
        .texts()
        .iter()
        .filter_map(|name| case.fragments.iter().position(|one| one.name == *name))
        .collect();
    let marks = variant.get("marks").texts();
    let compiled = compile(bench, case, &text, base, &marks, &declarations, &remaining).await;
    let expected = variant.get("expected");
    match refusal(&compiled) {
        None => {
            let parity = expected.get("outcome").string().starts_with("parity");
            failures.check(parity, "outcome", "published, expected a refusal");
            let output = compiled.output.as_ref();
            let published = output.and_then(|output| output.outcome.as_ref().ok());
            let same = match (published, main) {
                (Some(published), Some(main)) => published.configuration.same(main),
                _ => false,
            };
            failures.check(same, "configuration", "differs from the main cell");
        }
        Some(refusal) => {
            let rule = expected.get("rule").text().map(str::to_string);
            let stage = expected.get("stage").text().map(str::to_string);
            failures.equal("rule", Some(refusal.rule_name()), rule);
            failures.equal("stage", Some(refusal.stage.name().to_string()), stage);
        }
    }
    let main = main.cloned();
    let scene = Scene::new(bench, case, &text, &compiled, main.as_ref()).await;
    scene.leaks(bench, &compiled, &mut failures).await;
    failures.found
}

/// A variant that does not apply because its base does not ingest says which rule stops
/// it; that refusal is shown with the main cell's own literals.
async fn not_applied(bench: &Bench, case: &Case, laid: &Plaintext, failures: &mut Failures) {
    let why = case.field("base_ref_variant").get("why").string();
    let rules = ["guard-value", "substring", "mark-unaddressed", "parse"];
    let Some(rule) = rules.into_iter().find(|rule| why.contains(rule)) else {
        return;
    };
    let literals = literals(bench, case).await;
    let rows = case.expected().get("provenance").list();
    let marks: Vec<String> = rows
        .iter()
        .flat_map(|row| row.get("output").texts())
        .collect();
    let none = Declarations::default();
    // The first fragment moved, or all of them: the copy may stand in a later one.
    let mut refused = None;
    for moved in [1.min(literals.len()), literals.len()] {
        let Ok(composed) = bench.compose(laid, &literals[..moved]).await else {
            failures.check(false, "why", "the moved base does not compose");
            return;
        };
        let text = composed.expose();
        let one = bench.ingest(Enforced, Purpose::Base, text, &none, &marks);
        refused = refused.or(one.await.err());
    }
    let actual = refused.map(|refusal| refusal.rule_name());
    failures.equal("why", actual, Some(rule.to_string()));
}
