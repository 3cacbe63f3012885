//! What an ingestion does when a rule of authoring or of extraction is dropped.

use super::*;

/// The rule refuses the input; without it alone the input is ingested.
fn without(bench: &Bench, refusal: &str, rule: &'static [Rule]) -> Extraction {
    assert_eq!(bench.rule(Enforced).as_deref(), Some(refusal), "{rule:?}");
    match bench.ingest(Without(rule)) {
        Ok(extraction) => extraction,
        Err(other) => panic!("{rule:?}: {}", other.rule_name()),
    }
}

#[test]
fn without_addressable_keys_a_mark_takes_one_of_two_values_and_leaves_the_other_in_clear() {
    let twice = Node::mapping(vec![
        (text("token"), text("wren-first")),
        (text("token"), text("wren-second")),
    ]);
    let bench = Bench::new(Purpose::Base, twice).marks(&["doc[0]/token"]);
    let extraction = without(&bench, "parse", &[Rule::KeysAddressable]);
    let values: Vec<String> = extraction.generations.iter().map(value_text).collect();
    assert_eq!(values, ["wren-first"]);
    let left = bench.document(&extraction);
    assert_eq!(left.at(&[3]).and_then(Node::text), Some("wren-second"));
    // Keys that no path names: what stands beside them can never be marked.
    let keys = [
        list(vec![]),
        text("a|b"),
        Node::scalar("!!binary", "YQ=="),
        alias("k"),
    ];
    for key in keys {
        let root = Node::mapping(vec![
            (text("k"), anchored("k", text("x"))),
            (key, text("wren-value")),
        ]);
        let bench = Bench::new(Purpose::Base, root);
        without(&bench, "parse", &[Rule::KeysAddressable]);
    }
}

#[test]
fn without_storable_text_a_byte_that_no_database_keeps_is_staged() {
    let bench = Bench::new(Purpose::Base, nest("a", text("x\0y")));
    let extraction = without(&bench, "parse", &[Rule::TextStorable]);
    let staged = bench.document(&extraction);
    assert_eq!(leaf(&staged, "a").and_then(Node::text), Some("x\0y"));
}

#[test]
fn without_directives_alone_each_near_miss_is_staged() {
    let directive = |value: &str| nest("sysctls", nest("$patch", text(value)));
    let beside = nest(
        "sysctls",
        map(vec![("$patch", text("delete")), ("a", text("b"))]),
    );
    let entry = map(vec![
        ("interface", text("eth0")),
        ("$patch", text("delete")),
    ]);
    let shared = map(vec![
        ("a", anchored("d", nest("$patch", text("delete")))),
        ("b", alias("d")),
    ]);
    for (root, purpose) in [
        (directive("Delete"), Purpose::Fragment),
        (directive("replace"), Purpose::Fragment),
        (directive("delete"), Purpose::Base),
        (beside, Purpose::Fragment),
        (nest("interfaces", list(vec![entry])), Purpose::Fragment),
        (shared, Purpose::Fragment),
    ] {
        let bench = Bench::new(purpose, root.clone());
        let extraction = without(&bench, "patch-directive", &[Rule::DirectiveAlone]);
        assert!(bench.document(&extraction) == root);
    }
}

#[test]
fn without_embedded_texts_an_identification_of_anything_else_is_staged() {
    let root = map(vec![
        ("number", Node::scalar("!!int", "7")),
        ("inner", nest("a", text("b"))),
        ("text", anchored("t", text("x"))),
        ("again", alias("t")),
    ]);
    for path in [
        "doc[0]/number",
        "doc[0]/inner",
        "doc[0]/missing",
        "doc[1]/text",
    ] {
        let bench = Bench::new(Purpose::Base, root.clone()).embeds(path, Format::Yaml);
        without(&bench, "embedded-target", &[Rule::EmbeddedIsText]);
    }
    // One text named twice is read, and would be written back, twice.
    let mut twice = Bench::new(Purpose::Base, root)
        .embeds("doc[0]/text", Format::Yaml)
        .embeds("doc[0]/again", Format::Json);
    let inner = twice.toy.text(nest("a", text("b")));
    twice.root = map(vec![
        ("text", anchored("t", text(inner.expose()))),
        ("again", alias("t")),
    ]);
    without(&twice, "embedded-target", &[Rule::EmbeddedIsText]);
}

#[test]
fn without_its_kind_a_marked_value_comes_back_as_text_or_not_at_all() {
    for (node, kept) in [
        (Node::scalar("!!int", "0o644"), "0o644"),
        (Node::scalar("!!bool", "True"), "True"),
        (Node::scalar("!!float", "1.10"), "1.10"),
        (list(vec![text("wren-phrase")]), ""),
        (nest("b", nest("c", text("wren-phrase"))), ""),
    ] {
        let bench = Bench::new(Purpose::Base, map(vec![("a", node)])).marks(&["doc[0]/a"]);
        let extraction = without(&bench, "mark-kind", &[Rule::MarkKind]);
        let [generation] = extraction.generations.as_slice() else {
            panic!("one value");
        };
        assert_eq!(generation.value.kind(), Kind::String);
        assert_eq!(value_text(generation), kept);
    }
}

#[test]
fn without_whole_mappings_an_alias_takes_the_value_of_an_earlier_anchor() {
    let auth = |name| map(vec![("password", anchored(name, text("wren-phrase")))]);
    let root = |earlier| {
        map(vec![
            ("first", anchored(earlier, text("plain"))),
            ("auth", auth("p")),
            ("copy", alias("p")),
        ])
    };
    let bench = Bench::new(Purpose::Base, root("p")).marks(&["doc[0]/auth"]);
    let extraction = without(&bench, "mark-anchored", &[Rule::MarkedMappingWhole]);
    let staged = bench.document(&extraction);
    assert_eq!(leaf(&staged, "copy").and_then(Node::text), Some("plain"));
    // With no earlier anchor of its name it dangles, and the candidate is no YAML.
    let bench = Bench::new(Purpose::Base, root("q")).marks(&["doc[0]/auth"]);
    assert_eq!(bench.rule(Enforced).as_deref(), Some("mark-anchored"));
    let dropped = bench.rule(Without(&[Rule::MarkedMappingWhole]));
    assert_eq!(dropped.as_deref(), Some("parse"));
}
