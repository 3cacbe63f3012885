use std::collections::BTreeMap;

use super::*;
use crate::document::walk::tests::{alias, anchored, list, map, text};
use crate::document::{Content, Node};
use crate::machinery::toy::{Toy, leaf, nest, reference};
use crate::machinery::{Class, Rejected};
use crate::reference::{Declaration, Encoding, Name, Version};
use crate::resolve::Pinned;
use crate::rules::{Enforced, Without};
use crate::secret::{Kind, Scalar, Value, base64};

/// A composition on the toy machinery.
struct Bench {
    toy: Toy,
    sources: Vec<(Node, Declarations)>,
    pins: Pins,
}

fn cluster() -> ClusterId {
    ClusterId::from_bits(1)
}

fn string(text: &str) -> Value {
    Value::Scalar(Scalar::string(text))
}

impl Bench {
    fn new(base: Node) -> Bench {
        Bench {
            toy: Toy::default(),
            sources: vec![(base, Declarations::default())],
            pins: Pins::new(),
        }
    }

    fn fragment(mut self, root: Node) -> Bench {
        self.sources.push((root, Declarations::default()));
        self
    }

    /// Declares a name in the last source and pins its value.
    fn holds(self, name: &str, value: Value) -> Bench {
        let kind = value.kind();
        self.declares(name, kind, None).pins(name, value)
    }

    fn declares(mut self, name: &str, kind: Kind, encoding: Option<Encoding>) -> Bench {
        let name = Name::parse(name).expect("a name");
        let declaration = Declaration {
            kind,
            version: 1,
            encoding,
        };
        let (_, declarations) = self.sources.last_mut().expect("a source");
        declarations.references.insert(name, declaration);
        self
    }

    fn pins(mut self, name: &str, value: Value) -> Bench {
        let pinned = Pinned {
            cluster: cluster(),
            value: Some(value),
        };
        let name = Name::parse(name).expect("a name");
        self.pins.insert(Version { name, version: 1 }, pinned);
        self
    }

    fn compile<R: Rules>(&self, rules: R) -> Output {
        let mut sources = self.sources.iter().map(|(root, declarations)| {
            let text = self.toy.text(root.clone());
            Source {
                digest: Digest::of(text.expose().as_bytes()),
                text,
                declarations: declarations.clone(),
            }
        });
        let input = Input {
            cluster: cluster(),
            mode: Mode::Metal,
            base: sources.next().expect("a base"),
            fragments: sources.collect(),
            pins: self.pins.clone(),
        };
        let output = self.toy.run(&mut Job::new(rules, input));
        output.expect("a compilation ends with an output")
    }

    fn rule<R: Rules>(&self, rules: R) -> Option<String> {
        self.compile(rules)
            .outcome
            .err()
            .map(|refusal| refusal.rule_name())
    }

    /// The leaf of the composed configuration.
    fn composed(&self, output: &Output, path: &str) -> Option<String> {
        let compiled = output.outcome.as_ref().ok()?;
        let stream = self.toy.read(&compiled.configuration)?;
        leaf(&stream.documents[0], path)?.text().map(str::to_string)
    }
}

fn fates(output: &Output) -> Vec<(String, Fate)> {
    let records = output.report.provenance.iter();
    records
        .map(|record| {
            (
                record.version.name.as_str().to_string(),
                record.fate.clone(),
            )
        })
        .collect()
}

fn effective(paths: &[&str]) -> Fate {
    Fate::Effective(
        paths
            .iter()
            .map(|path| ShownPath(path.to_string()))
            .collect(),
    )
}

#[test]
fn an_aliased_reference_is_one_occurrence_with_two_outputs() {
    let root = map(vec![
        ("one", anchored("p", reference("a/pass"))),
        ("two", alias("p")),
    ]);
    let bench = Bench::new(map(vec![("x", text("1"))]))
        .fragment(root)
        .holds("a/pass", string("wren-secret-phrase"));
    let output = bench.compile(Enforced);
    assert_eq!(
        bench.composed(&output, "two").as_deref(),
        Some("wren-secret-phrase")
    );
    let fate = effective(&["doc[0]/one", "doc[0]/two"]);
    assert_eq!(fates(&output), [("a/pass".to_string(), fate)]);
    assert_eq!(output.report.reproduction.len(), 1);
}

// covers-part: IC-DEP-1 (effective and reproduction dependencies)
#[test]
fn each_override_names_the_fragment_after_which_the_value_is_gone() {
    let bench = Bench::new(map(vec![("x", text("1"))]))
        .fragment(nest("a/pass", reference("one")))
        .holds("one", string("wren-secret-one"))
        .fragment(nest("b", text("other")))
        .fragment(nest("a/pass", reference("two")))
        .holds("two", string("wren-secret-two"))
        .fragment(nest("a", nest("$patch", text("delete"))));
    let output = bench.compile(Enforced);
    assert!(output.outcome.is_ok());
    let wanted = [
        ("one".to_string(), Fate::Overridden(2)),
        ("two".to_string(), Fate::Overridden(3)),
    ];
    assert_eq!(fates(&output), wanted);
    assert!(output.report.effective.is_empty());
    assert_eq!(
        output.report.reproduction.len(),
        2,
        "overridden ones are needed all the same"
    );
}

#[test]
fn a_boolean_is_attributed_by_its_flip_and_its_override_by_flipped_prefixes() {
    let boolean = |truth| Value::Scalar(Scalar::Boolean(truth));
    let bench = Bench::new(map(vec![("wipe", Node::scalar("!!bool", "false"))]))
        .fragment(nest("wipe", reference("one")))
        .holds("one", boolean(true))
        .fragment(nest("up", reference("two")))
        .holds("two", boolean(false))
        .fragment(nest("wipe", Node::scalar("!!bool", "true")));
    let output = bench.compile(Enforced);
    let wanted = [
        ("one".to_string(), Fate::Overridden(2)),
        ("two".to_string(), effective(&["doc[0]/up"])),
    ];
    assert_eq!(fates(&output), wanted);
}

#[test]
fn integers_mappings_and_encoded_strings_are_attributed() {
    let members = BTreeMap::from([
        ("user".to_string(), Scalar::string("wren-login")),
        ("pin".to_string(), Scalar::Integer(4711)),
        ("on".to_string(), Scalar::Boolean(true)),
    ]);
    let bench = Bench::new(map(vec![("x", text("1"))]))
        .fragment(map(vec![
            ("auth", reference("a/auth")),
            ("port", reference("a/port")),
            ("crt", reference("a/crt")),
        ]))
        .holds("a/auth", Value::Mapping(members))
        .holds("a/port", Value::Scalar(Scalar::Integer(7452)))
        .declares("a/crt", Kind::String, Some(Encoding::Base64))
        .pins("a/crt", string("wren-root-bytes"));
    let output = bench.compile(Enforced);
    assert_eq!(
        bench.composed(&output, "crt"),
        Some(base64("wren-root-bytes"))
    );
    let mut rows: Vec<(Option<usize>, Fate)> = output
        .report
        .provenance
        .iter()
        .map(|record| (record.member, record.fate.clone()))
        .collect();
    rows.sort_by_key(|(member, _)| *member);
    let wanted = [
        (None, effective(&["doc[0]/port"])),
        (None, effective(&["doc[0]/crt"])),
        // Keys of a mapping are values: their tokens are hidden.
        (Some(0), effective(&["doc[0]/auth/<redacted>"])),
        (Some(1), effective(&["doc[0]/auth/<redacted>"])),
        (Some(2), effective(&["doc[0]/auth/<redacted>"])),
    ];
    assert_eq!(rows, wanted);
}

#[test]
fn a_stand_in_that_equals_an_unchanged_literal_fails_closed() {
    let bench = Bench::new(map(vec![("literal", text("xx-0"))]))
        .fragment(nest("short", reference("a/pin")))
        .holds("a/pin", string("ab-1"));
    assert_eq!(bench.rule(Enforced).as_deref(), Some("leaf-unattributed"));
}

#[test]
fn a_pass_that_fails_alone_refuses_and_both_failing_is_the_machinerys_answer() {
    let port = |value| {
        Bench::new(map(vec![("x", text("1"))]))
            .fragment(nest("port", reference("prism/port")))
            .holds("prism/port", value)
    };
    let bench = port(string("wren-no-port"));
    let output = bench.compile(Enforced);
    assert_eq!(
        output.outcome.err().map(|one| one.rule_name()).as_deref(),
        Some("fragment[0]")
    );
    let token = "line 3: cannot construct `<redacted:prism/port@1>...` into int";
    assert_eq!(output.report.compose, View::Redacted(token.into()));
    assert_eq!(
        fates(&Bench::compile(&bench, Enforced))[0].1,
        Fate::NotComposed
    );
    let mut bench = port(Value::Scalar(Scalar::Integer(7452)));
    bench.toy.tamper = Some(Box::new(|request, answer| match request {
        Request::Compose { fragments, .. }
            if fragments.iter().any(|text| text.expose().contains("61000")) =>
        {
            Answer::Rejected(Rejected {
                class: Class::Load,
                document: None,
                line: 0,
                fragment: Some(0),
                message: Plaintext::new("port out of range".into()),
            })
        }
        _ => answer,
    }));
    let output = bench.compile(Enforced);
    let rule = output.outcome.err().map(|one| one.rule_name());
    assert_eq!(rule.as_deref(), Some("passes-disagree"));
    assert_eq!(output.report.compose, View::Withheld);
}

// covers: IC-CMP-5
#[test]
fn the_output_check_refuses_copies_keys_reserved_text_and_overrides_and_each_can_be_dropped() {
    let value = "wren-secret-phrase";
    let keyed = || {
        let members = BTreeMap::from([("login-name".to_string(), Scalar::Boolean(true))]);
        Value::Mapping(members)
    };
    let copy = |literal: &str| {
        Bench::new(map(vec![("x", text("1"))]))
            .fragment(map(vec![
                ("pass", reference("a/pass")),
                ("copy", text(literal)),
            ]))
            .holds("a/pass", string(value))
    };
    let stray = Bench::new(map(vec![("x", text("1"))]))
        .fragment(map(vec![
            ("pass", reference("a/pass")),
            ("copy", text("see YWJjZGVmZ2hpYQ== there")),
        ]))
        .holds("a/pass", string("YWJjZGVmZ2hpYR=="));
    let cases: Vec<(&str, Bench, Rule, &str)> = vec![
        (
            "an exact copy",
            copy(value),
            Rule::OutputCopies,
            "exact-copy",
        ),
        (
            "a copy inside a text",
            copy("x wren-secret-phrase y"),
            Rule::OutputCopies,
            "exact-copy",
        ),
        (
            "the placed form",
            copy(&base64(value)),
            Rule::OutputCopies,
            "exact-copy",
        ),
        (
            "the canonical form of base64",
            stray,
            Rule::OutputCopies,
            "exact-copy",
        ),
        (
            "a copy as a key",
            Bench::new(map(vec![("x", text("1"))]))
                .fragment(map(vec![("pass", reference("a/pass")), (value, text("y"))]))
                .holds("a/pass", string(value)),
            Rule::OutputCopies,
            "exact-copy",
        ),
        (
            "a mapping's key as a token",
            Bench::new(map(vec![("x", text("1"))]))
                .fragment(map(vec![
                    ("auth", reference("a/auth")),
                    ("copy", text("a login-name b")),
                ]))
                .holds("a/auth", keyed()),
            Rule::OutputKeyCopies,
            "exact-copy",
        ),
        (
            "reserved text in a value",
            Bench::new(map(vec![("x", text("1"))]))
                .fragment(nest("pass", reference("a/pass")))
                .holds("a/pass", string("x !bwref y")),
            Rule::OutputReservedText,
            "reserved-text",
        ),
        (
            "a base reference overridden",
            Bench::new(nest("ca", reference("base/ca")))
                .holds("base/ca", string("wren-base-key"))
                .fragment(nest("ca", text("mine"))),
            Rule::BaseOverride,
            "base-override",
        ),
    ];
    for (what, bench, rule, name) in cases {
        assert_eq!(bench.rule(Enforced).as_deref(), Some(name), "{what}");
        let without: &'static [Rule] = Box::leak(vec![rule].into_boxed_slice());
        assert_eq!(bench.rule(Without(without)), None, "{what}: control");
    }
    // A key name inside a longer word is no copy, and neither is a short value's.
    let bench = Bench::new(map(vec![("login-names", text("1"))]))
        .fragment(nest("auth", reference("a/auth")))
        .holds("a/auth", keyed());
    assert_eq!(bench.rule(Enforced), None);
}

#[test]
fn a_base_reference_with_one_alias_replaced_is_an_override_of_the_first_fragment_that_did_it() {
    let base = map(vec![
        ("one", anchored("t", reference("base/token"))),
        ("two", alias("t")),
    ]);
    let bench = Bench::new(base)
        .holds("base/token", string("dunlin.token-text"))
        .fragment(nest("other", text("x")))
        .fragment(nest("two", text("mine")));
    let output = bench.compile(Enforced);
    let refusal = output.outcome.err().expect("refused");
    assert_eq!(refusal.rule_name(), "base-override");
    let path = ShownPath("doc[0]/one".into());
    assert_eq!(refusal.sites, [Site::path(Some(Origin::Fragment(1)), path)]);
}

#[test]
fn a_compilation_with_an_undecodable_value_shows_no_path() {
    let mut bench = Bench::new(map(vec![("x", text("1"))]))
        .fragment(nest("some/path", reference("a/pass")))
        .holds("a/pass", string("wren-secret"));
    for pinned in bench.pins.values_mut() {
        pinned.value = None;
    }
    let refusal = bench.compile(Enforced).outcome.err().expect("refused");
    let path = refusal.sites[0].path.as_ref().map(|path| path.as_str());
    assert_eq!(path, Some("<redacted>"));
}

#[test]
fn stand_ins_that_nothing_tells_apart_refuse_naming_both() {
    let bench = Bench::new(map(vec![("x", text("1"))]))
        .fragment(map(vec![
            ("a", reference("a/one")),
            ("b", reference("a/two")),
        ]))
        .holds("a/one", string("ab"))
        .holds("a/two", string("cd"));
    let refusal = bench.compile(Enforced).outcome.err().expect("refused");
    assert_eq!(refusal.rule_name(), "trace-indistinct");
    assert_eq!(refusal.sites.len(), 2);
    let empty = Bench::new(map(vec![("x", text("1"))]))
        .fragment(nest("a", reference("a/map")))
        .holds("a/map", Value::Mapping(BTreeMap::new()));
    assert_eq!(empty.rule(Enforced).as_deref(), Some("trace-indistinct"));
}

#[test]
fn a_validation_message_is_redacted_and_a_pass_that_validates_alone_refuses() {
    let bench = Bench::new(map(vec![("x", text("1"))]))
        .fragment(nest("zone", reference("net/zone")))
        .holds("net/zone", string("wren not a zone"));
    let output = bench.compile(Enforced);
    let rule = output.outcome.as_ref().err().map(|one| one.rule_name());
    assert_eq!(rule.as_deref(), Some("invalid"));
    let shown = "\"<redacted:net/zone@1>\" is not a zone";
    assert_eq!(output.report.validate, View::Redacted(shown.into()));
    let zone = Bench::new(map(vec![("x", text("1"))]))
        .fragment(nest("zone", reference("net/zone")))
        .holds("net/zone", string("wren not"));
    assert_eq!(
        zone.rule(Enforced).as_deref(),
        Some("passes-disagree"),
        "the head took the blank"
    );
}

/// The review of a composition that is hidden by each means once.
fn means() -> Bench {
    let mut bench = Bench::new(map(vec![
        ("secret", text("own-of-the-base")),
        ("short", text("pw1")),
    ]))
    .fragment(map(vec![
        ("pass", reference("a/pass")),
        ("pin", reference("a/pin")),
        ("wipe", reference("a/wipe")),
    ]))
    .holds("a/pass", string("wren-secret-phrase"))
    .holds("a/pin", string("pw1"))
    .holds("a/wipe", Value::Scalar(Scalar::Boolean(true)));
    bench.toy.schema = vec!["secret"];
    bench
}

fn shown<R: Rules>(bench: &Bench, rules: R) -> Option<Node> {
    match bench.compile(rules).report.review {
        Review::Shown(text) => {
            let stream = bench.toy.read(&Plaintext::new(text))?;
            stream.documents.first().cloned()
        }
        Review::Withheld | Review::NotComposed => None,
    }
}

#[test]
fn each_means_of_redaction_hides_what_the_others_do_not() {
    let bench = means();
    let whole = shown(&bench, Enforced).expect("a review");
    let read = |root: &Node, path: &str| leaf(root, path).and_then(Node::text).map(str::to_string);
    assert_eq!(read(&whole, "secret").as_deref(), Some("<redacted:schema>"));
    assert_eq!(read(&whole, "short").as_deref(), Some("<redacted:value>"));
    assert_eq!(read(&whole, "pass").as_deref(), Some("<redacted:a/pass@1>"));
    assert_eq!(read(&whole, "wipe").as_deref(), Some("<redacted:a/wipe@1>"));
    // A boolean has no form by which its value could be found.
    let path = shown(&bench, Without(&[Rule::RedactByPath])).expect("a review");
    assert_eq!(read(&path, "wipe").as_deref(), Some("true"));
    let schema = shown(&bench, Without(&[Rule::RedactBySchema])).expect("a review");
    assert_eq!(read(&schema, "secret").as_deref(), Some("own-of-the-base"));
    let value = shown(&bench, Without(&[Rule::RedactByValue])).expect("a review");
    assert_eq!(read(&value, "short").as_deref(), Some("pw1"));
    // With a means missing, a rendering that still holds a value is not shown.
    let checked = Without(&[Rule::RedactByPath, Rule::RedactByValue]);
    assert!(shown(&bench, checked).is_none());
}

mod dropped;
