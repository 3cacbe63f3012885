use std::collections::BTreeMap;

use super::*;
use crate::document::walk::tests::{anchored, list, map, text};
use crate::document::{Comments, Stream};
use crate::rules::{Enforced, Without};

fn candidate(root: Node) -> Parsed {
    Parsed {
        stream: Stream {
            documents: vec![root],
        },
        embedded: Vec::new(),
        positions: vec![0],
    }
}

fn own_reference() -> Node {
    let mut node = Node::scalar("!bwref", "ingested/own");
    node.tagged = true;
    node
}

/// What the guard says of a candidate that was extracted of one value: the rule and the
/// paths, or nothing.
fn says<R: Rules>(rules: R, value: &Value, root: Node) -> Option<(&'static str, Vec<String>)> {
    let name = Name::parse("ingested/own").expect("a name");
    let extracted = [Extracted {
        name: &name,
        value,
        mark: None,
    }];
    let findings = search(rules, &candidate(root), &extracted);
    let paths = |hits: &[Hit]| {
        hits.iter()
            .map(|hit| hit.path.written())
            .collect::<Vec<_>>()
    };
    match (
        findings.guard_value.as_slice(),
        findings.substring.as_slice(),
    ) {
        ([], []) => None,
        ([], hits) => Some(("substring", paths(hits))),
        (hits, _) => Some(("guard-value", paths(hits))),
    }
}

fn string(text: &str) -> Value {
    Value::Scalar(Scalar::string(text))
}

fn commented(mut node: Node, comment: &str) -> Node {
    node.comments = Comments {
        line: comment.to_string(),
        ..Comments::default()
    };
    node
}

// covers: IC-ING-4
#[test]
fn each_half_of_the_guard_sees_what_the_other_does_not_and_a_dropped_half_lets_it_pass() {
    let key = "first-line-of-it\nsecond-line-of-it\n";
    let mapping = Value::Mapping(BTreeMap::from([(
        "login-name".to_string(),
        Scalar::string("wren-20417"),
    )]));
    let cases: Vec<(&str, Value, Node, Rule, &str)> = vec![
        (
            "an equal value in another spelling",
            Value::Scalar(Scalar::Integer(7452)),
            Node::scalar("!!int", "0x1d1c"),
            Rule::GuardValue,
            "guard-value",
        ),
        (
            "a value inside a longer one",
            string("wren-20417"),
            text("join --token wren-20417 --now"),
            Rule::GuardSubstring,
            "substring",
        ),
        (
            "a mapping's key as a token of a text",
            mapping,
            text("set login-name to x"),
            Rule::GuardKeys,
            "substring",
        ),
        (
            "a comment",
            string("wren-20417"),
            commented(text("x"), "# was wren-20417"),
            Rule::GuardComments,
            "substring",
        ),
        (
            "an escaped copy",
            string("a \"quoted\"\tvalue"),
            text(r#"{"t": "a \"quoted\"\tvalue"}"#),
            Rule::GuardEscaped,
            "substring",
        ),
        (
            "the lines of a value under another indentation",
            string(key),
            text("pem: |\n    first-line-of-it\n    second-line-of-it\nend"),
            Rule::GuardEscaped,
            "substring",
        ),
        (
            "a value that ends with a newline, met without it",
            string("wren-20417\n"),
            text("x wren-20417 y"),
            Rule::GuardEscaped,
            "substring",
        ),
    ];
    for (what, value, node, rule, name) in cases {
        let root = map(vec![
            ("extracted", own_reference()),
            ("a", list(vec![node])),
        ]);
        let said = says(Enforced, &value, root.clone());
        assert_eq!(said, Some((name, vec!["doc[0]/a/0".to_string()])), "{what}");
        let dropped: &'static [Rule] = Box::leak(vec![rule].into_boxed_slice());
        assert_eq!(
            says(Without(dropped), &value, root),
            None,
            "{what}: control"
        );
    }
}

#[test]
fn a_key_that_holds_a_value_is_a_copy_and_a_key_name_inside_a_word_is_none() {
    let value = string("wren-20417");
    let root = map(vec![("wren-20417", text("x"))]);
    assert_eq!(
        says(Enforced, &value, root).map(|(rule, _)| rule),
        Some("guard-value")
    );
    let members = BTreeMap::from([("username".to_string(), Scalar::string("wren-20417"))]);
    let mapping = Value::Mapping(members);
    assert_eq!(
        says(Enforced, &mapping, map(vec![("usernames", text("x"))])),
        None
    );
    let root = map(vec![("username", text("x"))]);
    assert_eq!(
        says(Enforced, &mapping, root).map(|(rule, _)| rule),
        Some("guard-value")
    );
}

#[test]
fn the_substring_search_passes_over_this_runs_references_and_the_value_comparison_does_not() {
    let root = || map(vec![("a", own_reference())]);
    assert_eq!(says(Enforced, &string("own"), root()), None);
    let said = says(Enforced, &string("ingested/own"), root());
    assert_eq!(said.map(|(rule, _)| rule), Some("guard-value"));
    let mut other = own_reference();
    other.replace(Node::scalar("!bwref", "registry/own-pass"));
    let said = says(Enforced, &string("own"), map(vec![("a", other)]));
    assert_eq!(said.map(|(rule, _)| rule), Some("substring"));
}

#[test]
fn anchors_and_binary_scalars_are_searched_too() {
    let value = string("wren-20417");
    let root = map(vec![("a", anchored("wren-20417", text("x")))]);
    assert_eq!(
        says(Enforced, &value, root).map(|(rule, _)| rule),
        Some("substring")
    );
    let root = map(vec![("a", Node::scalar("!!binary", "d3Jlbi0yMDQxNw=="))]);
    assert_eq!(
        says(Enforced, &value, root).map(|(rule, _)| rule),
        Some("guard-value")
    );
}

#[test]
fn integers_are_read_in_every_spelling_of_yaml() {
    for spelling in [
        "420",
        "0o644",
        "0644",
        "0x1a4",
        "0b110100100",
        "4_20",
        "+420",
    ] {
        assert_eq!(integer(spelling), Some(420), "{spelling}");
    }
    for other in ["", "-", "0o", "4.2", "abc", "--1", "0x"] {
        assert_eq!(integer(other), None, "{other}");
    }
    assert_eq!(integer("-7"), Some(-7));
    assert_eq!(integer("0"), Some(0));
}
