use super::*;
use crate::document::Node;
use crate::id::ClusterId;
use crate::machinery::toy::reference;
use crate::reference::{Declaration, Declarations, Name, Version};
use crate::resolve::{Pinned, resolve};
use crate::rules::{Enforced, Without};
use crate::secret::Value;
use crate::source::Parsed;
use std::collections::BTreeMap;

struct Bench {
    resolution: Resolution,
    forms: Forms,
}

/// A composition whose base holds one reference per value.
fn bench(values: &[(&str, Value)]) -> Bench {
    let cluster = ClusterId::from_bits(7);
    let mut declarations = Declarations::default();
    let mut pins = BTreeMap::new();
    let mut entries = Vec::new();
    for (name, value) in values {
        let parsed = Name::parse(name).expect("a name");
        let declaration = Declaration {
            kind: value.kind(),
            version: 1,
            encoding: None,
        };
        declarations.references.insert(parsed.clone(), declaration);
        let pinned = Pinned {
            cluster,
            value: Some(value.clone()),
        };
        pins.insert(
            Version {
                name: parsed,
                version: 1,
            },
            pinned,
        );
        entries.push((Node::string(*name), reference(name)));
    }
    let parsed = Parsed {
        stream: crate::document::Stream {
            documents: vec![Node::mapping(entries)],
        },
        embedded: Vec::new(),
        positions: vec![0],
    };
    let resolution = resolve(Enforced, cluster, &[(&parsed, &declarations)], &pins);
    let resolution = resolution.unwrap_or_else(|failed| panic!("{}", failed.rule));
    let forms = Forms::of(resolution.values());
    Bench { resolution, forms }
}

fn text(value: &str) -> Value {
    Value::Scalar(Scalar::string(value))
}

impl Bench {
    fn view(&self, real: &str, trace: &str) -> View {
        view(Enforced, real, trace, &self.resolution, 1, &self.forms)
    }
}

#[test]
fn a_quote_becomes_its_references_token_whole_cut_or_escaped() {
    let bench = bench(&[("net/zone", text("wren \"not\" a zone"))]);
    let shown = bench.view(
        "\"wren \\\"not\\\" a zone\" is not a valid DNS name",
        "\"zq000\\\"xxx\\\" x xxxx\" is not a valid DNS name",
    );
    let token = "\"<redacted:net/zone@1>\" is not a valid DNS name";
    assert_eq!(shown, View::Redacted(token.into()));
    let shown = bench.view(
        "line 3: cannot construct !!str `wren \"n...` into int",
        "line 3: cannot construct !!str `zq000\"x...` into int",
    );
    let token = "line 3: cannot construct !!str `<redacted:net/zone@1>...` into int";
    assert_eq!(shown, View::Redacted(token.into()));
}

#[test]
fn a_value_of_ten_characters_is_quoted_whole_and_one_of_eleven_is_cut() {
    for value in [
        "godwit7",
        "godwit-pas",
        "godwit-pass",
        "godwit-secret-phrase",
    ] {
        let bench = bench(&[("install/wipe", text(value))]);
        let shape: String = crate::standin::shaped(0, value);
        let quote = |text: &str| match text.len() > 10 {
            true => format!("cannot construct `{}...` into bool", &text[..7]),
            false => format!("cannot construct `{text}` into bool"),
        };
        let shown = bench.view(&quote(value), &quote(&shape));
        let View::Redacted(shown) = shown else {
            panic!("{value}: {}", shown.name());
        };
        assert!(shown.contains("<redacted:install/wipe@1>"), "{shown}");
    }
}

#[test]
fn an_integer_is_marked_by_its_stand_in() {
    let bench = bench(&[("prism/port", Value::Scalar(Scalar::Integer(99_999)))]);
    let shown = bench.view("port 99999 is too large", "port 61000 is too large");
    assert_eq!(
        shown,
        View::Redacted("port <redacted:prism/port@1> is too large".into())
    );
    assert_eq!(bench.view("port 99999 x", "port 610001 x"), View::Withheld);
}

#[test]
fn what_the_template_does_not_explain_is_withheld_and_shown_without_the_rule() {
    let bench = bench(&[("net/zone", text("wren-secret"))]);
    let (real, trace) = ("bad wren-secret in line 4", "bad zq000-xxxxxx in line 5");
    assert_eq!(bench.view(real, trace), View::Withheld);
    let rules = Without(&[Rule::MessageExplained]);
    let shown = view(rules, real, trace, &bench.resolution, 1, &bench.forms);
    assert_eq!(shown, View::Verbatim(real.into()));
}

#[test]
fn a_message_that_splits_in_two_ways_is_withheld() {
    let bench = bench(&[
        ("a/one", text("wren and heron")),
        ("a/two", text("egret-01")),
    ]);
    let shapes = [
        crate::standin::shaped(0, "wren and heron"),
        crate::standin::shaped(1, "egret-01"),
    ];
    let trace = format!("{} and {}", shapes[0], shapes[1]);
    assert_eq!(
        bench.view("wren and heron and egret-01", &trace),
        View::Withheld
    );
    let trace = format!("{} or {}", shapes[0], shapes[1]);
    let shown = bench.view("wren and heron or egret-01", &trace);
    assert_eq!(
        shown,
        View::Redacted("<redacted:a/one@1> or <redacted:a/two@1>".into())
    );
    assert_eq!(splits("a1a2a", &["a", "a", ""]), 1);
    assert_eq!(splits("xaxax", &["x", "a", "x"]), 0);
    assert_eq!(splits("x1a2a3x", &["x", "a", "x"]), 2);
}

// covers-part: IC-RED-2 (booleans and mappings withheld; each rule dropped shows it)
#[test]
fn a_step_that_read_a_boolean_or_a_mapping_shows_no_message() {
    let mapping = Value::Mapping(BTreeMap::from([(
        "bad key".to_string(),
        Scalar::string("wren-secret"),
    )]));
    for value in [Value::Scalar(Scalar::Boolean(true)), mapping] {
        let bench = bench(&[("a/b", value)]);
        let message = "label \"bad key\" is invalid: true";
        assert_eq!(bench.view(message, message), View::Withheld);
        let rules = Without(&[Rule::MessageUnmarkedInput]);
        let shown = view(rules, message, message, &bench.resolution, 1, &bench.forms);
        assert!(matches!(shown, View::Verbatim(_) | View::Redacted(_)));
        // A step that did not read the source is not concerned.
        let shown = view(
            Enforced,
            "plain",
            "plain",
            &bench.resolution,
            0,
            &bench.forms,
        );
        assert_eq!(shown, View::Verbatim("plain".into()));
    }
}

#[test]
fn copies_between_the_quotes_are_hidden_and_a_name_that_is_a_value_withholds() {
    let bench = bench(&[("net/zone", text("wren-secret"))]);
    let message = "the literal wren-secret stands in line 4";
    let shown = bench.view(message, message);
    assert_eq!(
        shown,
        View::Redacted("the literal <redacted:value> stands in line 4".into())
    );
    let own = self::bench(&[("net/zone", text("net/zone"))]);
    let (real, trace) = ("\"net/zone\" is bad", "\"zq000xxx\" is bad");
    assert_eq!(own.view(real, trace), View::Withheld);
    let rules = Without(&[Rule::MessageSurvivors]);
    let shown = view(rules, real, trace, &own.resolution, 1, &own.forms);
    let survives = "\"<redacted:net/zone@1>\" is bad";
    assert_eq!(shown, View::Redacted(survives.into()));
}
