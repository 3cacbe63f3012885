use std::collections::BTreeMap;

use super::*;
use crate::document::walk::tests::{alias, anchored, list, map, text};
use crate::document::{Comments, Content, Node};
use crate::machinery::toy::{Toy, leaf, nest, reference};
use crate::path::Format;
use crate::rules::{Enforced, Without};
use crate::secret::{Kind, Scalar};

struct Bench {
    toy: Toy,
    root: Node,
    purpose: Purpose,
    marks: Vec<&'static str>,
    declarations: Declarations,
}

impl Bench {
    fn new(purpose: Purpose, root: Node) -> Bench {
        Bench {
            toy: Toy::default(),
            root,
            purpose,
            marks: Vec::new(),
            declarations: Declarations::default(),
        }
    }

    fn marks(mut self, marks: &[&'static str]) -> Bench {
        self.marks = marks.to_vec();
        self
    }

    fn schema(mut self, schema: &[&'static str]) -> Bench {
        self.toy.schema = schema.to_vec();
        self
    }

    fn declares(mut self, name: &str) -> Bench {
        let declaration = Declaration {
            kind: Kind::String,
            version: 1,
            encoding: None,
        };
        let name = Name::parse(name).expect("a name");
        self.declarations.references.insert(name, declaration);
        self
    }

    fn embeds(mut self, path: &str, format: Format) -> Bench {
        let path = Path::parse(path).expect("a path");
        self.declarations.embedded.insert(path, format);
        self
    }

    fn ingest<R: Rules>(&self, rules: R) -> Result<Extraction, Refusal> {
        let marks = self
            .marks
            .iter()
            .map(|mark| Path::parse(mark).expect("a path"));
        let input = Input {
            purpose: self.purpose,
            text: self.toy.text(self.root.clone()),
            declarations: self.declarations.clone(),
            marks: marks.collect(),
        };
        self.toy.run(&mut Job::new(rules, input))
    }

    fn rule<R: Rules>(&self, rules: R) -> Option<String> {
        self.ingest(rules).err().map(|refusal| refusal.rule_name())
    }

    fn document(&self, extraction: &Extraction) -> Node {
        let text = Plaintext::new(extraction.sanitized.document().to_string());
        self.toy.read(&text).expect("the toy's own text").documents[0].clone()
    }
}

fn value_text(generation: &Generation) -> String {
    match &generation.value {
        Value::Scalar(scalar) => scalar.written().to_string(),
        Value::Mapping(members) => members.keys().cloned().collect::<Vec<_>>().join(","),
    }
}

#[test]
fn schema_fields_and_marks_become_references_and_everything_else_stays() {
    let mut commented = text("heron-55-lane");
    commented.comments = Comments {
        line: "# rotated in May".into(),
        ..Comments::default()
    };
    let root = map(vec![
        ("token", text("wren.0123456789abcdef\n")),
        ("empty", text("")),
        ("label/with~", commented),
        ("port", Node::scalar("!!int", "7452")),
        ("plain", text("stays")),
    ]);
    let bench = Bench::new(Purpose::Base, root)
        .schema(&["token", "empty", "absent"])
        .marks(&["doc[0]/label~1with~0", "doc[0]/port"]);
    let extraction = bench.ingest(Enforced).expect("ingests");
    let values: Vec<String> = extraction.generations.iter().map(value_text).collect();
    assert_eq!(values, ["wren.0123456789abcdef\n", "heron-55-lane", "7452"]);
    let root = bench.document(&extraction);
    for path in ["token", "port"] {
        assert!(leaf(&root, path).is_some_and(Node::is_reference), "{path}");
    }
    let Content::Mapping(entries) = &root.content else {
        panic!("a mapping");
    };
    assert!(entries[2].1.is_reference());
    assert_eq!(entries[2].1.comments.line, "# rotated in May");
    assert_eq!(leaf(&root, "empty").and_then(Node::text), Some(""));
    assert_eq!(leaf(&root, "plain").and_then(Node::text), Some("stays"));
    let declared = extraction.sanitized.declarations();
    assert_eq!(declared.references.len(), 3);
    assert!(
        declared
            .references
            .values()
            .all(|one| one.version == 1 && one.encoding.is_none())
    );
}

#[test]
fn one_anchored_secret_with_an_alias_is_one_reference_and_no_clear_copy() {
    let root = map(vec![
        ("token", anchored("t", text("dunlin.aaaa"))),
        ("other", alias("t")),
    ]);
    let bench = Bench::new(Purpose::Base, root).schema(&["token", "other"]);
    let extraction = bench.ingest(Enforced).expect("ingests");
    assert_eq!(extraction.generations.len(), 1);
    let root = bench.document(&extraction);
    assert_eq!(
        root.child(1).and_then(|node| node.anchor.as_deref()),
        Some("t")
    );
    assert!(leaf(&root, "other").is_some_and(Node::is_reference));
}

#[test]
fn a_marked_mapping_is_one_reference_with_the_schema_fields_inside_it() {
    let auth = map(vec![
        ("username", text("wren-login")),
        ("password", text("wren-phrase")),
    ]);
    let bench = Bench::new(
        Purpose::Base,
        map(vec![("auth", auth), ("usernames", text("x"))]),
    )
    .schema(&["auth/password"])
    .marks(&["doc[0]/auth"]);
    let extraction = bench.ingest(Enforced).expect("ingests");
    assert_eq!(extraction.generations.len(), 1);
    assert_eq!(value_text(&extraction.generations[0]), "password,username");
}

#[test]
fn a_mapping_whose_parts_are_anchored_or_aliased_is_refused() {
    for member in [anchored("a", text("wren-phrase")), alias("b")] {
        let auth = map(vec![("password", member)]);
        let root = map(vec![
            ("b", anchored("b", text("other"))),
            ("auth", auth),
            ("c", text("d")),
        ]);
        let bench = Bench::new(Purpose::Base, root).marks(&["doc[0]/auth"]);
        assert_eq!(bench.rule(Enforced).as_deref(), Some("mark-anchored"));
    }
}

#[test]
fn what_has_no_kind_or_another_spelling_is_refused() {
    for node in [
        list(vec![text("a")]),
        Node::null(),
        Node::scalar("!!float", "1.10"),
        Node::scalar("!!int", "0o644"),
        Node::scalar("!!int", "010"),
        Node::scalar("!!bool", "True"),
        text(""),
        map(vec![("a", map(vec![("b", text("c"))]))]),
        map(vec![("a", reference("other/name"))]),
    ] {
        let bench = Bench::new(Purpose::Base, map(vec![("a", node)]))
            .declares("other/name")
            .marks(&["doc[0]/a"]);
        let rule = bench.rule(Enforced);
        assert!(
            matches!(rule.as_deref(), Some("mark-kind" | "unused-declaration")),
            "{rule:?}"
        );
    }
}

// covers: IC-ING-3
#[test]
fn a_mark_that_names_nothing_refuses_before_anything_is_minted() {
    let root = map(vec![(
        "files",
        list(vec![map(vec![("content", text("wren-text"))])]),
    )]);
    for mark in [
        "doc[1]/files",
        "doc[0]/files/1/content",
        "doc[0]/files/0/content|yaml/a",
    ] {
        let bench = Bench::new(Purpose::Base, root.clone()).marks(&[mark]);
        let refusal = bench.ingest(Enforced).err().expect("refused");
        assert_eq!(refusal.rule_name(), "mark-unaddressed", "{mark}");
        assert_eq!(refusal.sites[0].mark, Some(0));
        let dropped = Without(&[Rule::MarkAddressed]);
        let extraction = bench.ingest(dropped).expect("the control ingests");
        assert!(
            extraction.generations.is_empty(),
            "the value stays in clear"
        );
    }
    let inner = Bench::new(Purpose::Base, root)
        .marks(&["doc[0]/files/0/content"])
        .ingest(Enforced);
    assert_eq!(inner.expect("ingests").generations.len(), 1);
}

#[test]
fn a_mark_inside_an_embedded_document_goes_through_its_format() {
    let toy = Toy::default();
    let inner = toy.text(nest("stringData/phrase", text("wren-phrase")));
    let root = map(vec![("contents", text(inner.expose()))]);
    let mut bench = Bench::new(Purpose::Base, root)
        .marks(&["doc[0]/contents|yaml/stringData/phrase"])
        .embeds("doc[0]/contents", Format::Yaml);
    bench.toy = toy;
    let extraction = bench.ingest(Enforced).expect("ingests");
    assert_eq!(value_text(&extraction.generations[0]), "wren-phrase");
    assert!(!extraction.sanitized.document().contains("wren-phrase"));
    assert_eq!(extraction.sanitized.declarations().embedded.len(), 1);
    bench.marks = vec!["doc[0]/contents"];
    let whole = bench.ingest(Enforced).expect("ingests");
    assert!(
        whole.sanitized.declarations().embedded.is_empty(),
        "the holder is a reference now"
    );
}

#[test]
fn a_guard_hit_names_the_path_without_the_value_that_stands_in_it() {
    let root = map(vec![
        ("label", text("wren-20417-pull")),
        ("wren-20417-pull", text("x")),
    ]);
    let bench = Bench::new(Purpose::Fragment, root).marks(&["doc[0]/label"]);
    let refusal = bench.ingest(Enforced).err().expect("refused");
    assert_eq!(refusal.rule_name(), "guard-value");
    assert_eq!(
        refusal.sites[0].path.as_ref().map(|path| path.as_str()),
        Some("doc[0]/<redacted>")
    );
    assert!(!format!("{refusal:?}").contains("wren"));
}

// covers-part: IC-ING-6 (all but syntax, duplicate and nested keys as the parser refuses them)
#[test]
fn what_no_path_could_name_and_what_would_be_misread_is_refused() {
    let key = |key: Node| Node::mapping(vec![(key, text("x"))]);
    let twice = Node::mapping(vec![(text("a"), text("1")), (text("a"), text("2"))]);
    let directive = |value: &str| nest("sysctls", nest("$patch", text(value)));
    let mut beside = directive("delete");
    if let Some(Content::Mapping(entries)) = beside.child_mut(1).map(|node| &mut node.content) {
        entries.push((text("a"), text("b")));
    }
    let in_list = nest(
        "interfaces",
        list(vec![map(vec![
            ("interface", text("eth0")),
            ("$patch", text("delete")),
        ])]),
    );
    let shared = map(vec![
        ("a", anchored("d", nest("$patch", text("delete")))),
        ("b", alias("d")),
    ]);
    let cases = vec![
        (twice, Purpose::Base, "parse"),
        (key(list(vec![])), Purpose::Base, "parse"),
        (key(text("a|b")), Purpose::Base, "parse"),
        (
            key(Node::scalar("!!binary", "YQ==")),
            Purpose::Base,
            "parse",
        ),
        (nest("a", text("x\0y")), Purpose::Base, "parse"),
        (
            nest("a", Node::scalar("!vault", "x")),
            Purpose::Base,
            "local-tag",
        ),
        (
            nest("a", text("echo '!bwref x'")),
            Purpose::Base,
            "reserved-text",
        ),
        (
            list(vec![map(vec![("op", text("replace"))])]),
            Purpose::Fragment,
            "json-patch",
        ),
        (directive("Delete"), Purpose::Fragment, "patch-directive"),
        (directive("replace"), Purpose::Fragment, "patch-directive"),
        (directive("delete"), Purpose::Base, "patch-directive"),
        (beside, Purpose::Fragment, "patch-directive"),
        (in_list, Purpose::Fragment, "patch-directive"),
        (shared, Purpose::Fragment, "patch-directive"),
        (
            nest("a", reference("a/pass")),
            Purpose::Fragment,
            "undeclared",
        ),
    ];
    for (root, purpose, rule) in cases {
        assert_eq!(
            Bench::new(purpose, root).rule(Enforced).as_deref(),
            Some(rule)
        );
    }
    assert_eq!(
        Bench::new(Purpose::Fragment, directive("delete")).rule(Enforced),
        None
    );
    let document = map(vec![
        ("apiVersion", text("v1")),
        ("kind", text("K")),
        ("$patch", text("delete")),
    ]);
    assert_eq!(Bench::new(Purpose::Fragment, document).rule(Enforced), None);
}

#[test]
fn a_document_that_does_not_load_with_its_nodes_as_nulls_is_refused() {
    let root = map(vec![
        ("kind", text("HostnameConfig")),
        ("token", text("wren-token")),
    ]);
    let bench = Bench::new(Purpose::Base, root.clone()).marks(&["doc[0]/kind"]);
    assert_eq!(bench.rule(Enforced).as_deref(), Some("load-as-null"));
    assert_eq!(bench.rule(Without(&[Rule::LoadsAsNull])), None);
    // A review names the mark at fault by its position, and no path.
    let review =
        Bench::new(Purpose::Review(Role::Base), root).marks(&["doc[0]/token", "doc[0]/kind"]);
    let refusal = review.ingest(Enforced).err().expect("refused");
    assert_eq!(refusal.rule_name(), "load-as-null");
    assert_eq!(refusal.sites.len(), 1);
    assert_eq!(
        (refusal.sites[0].mark, &refusal.sites[0].path),
        (Some(1), &None)
    );
}

#[test]
fn a_review_changes_nothing_but_the_marked_nodes_and_passes_over_references() {
    let root = map(vec![
        ("token", reference("ingested/earlier")),
        ("files", text("wren-file-token")),
        ("plain", text("stays")),
    ]);
    let bench = Bench::new(Purpose::Review(Role::Base), root)
        .declares("ingested/earlier")
        .marks(&["doc[0]/token", "doc[0]/files"]);
    let extraction = bench.ingest(Enforced).expect("ingests");
    assert_eq!(
        extraction.generations.len(),
        1,
        "a reference is not extracted again"
    );
    assert_eq!(extraction.sanitized.declarations().references.len(), 2);
    // An encoder that rewrites other text: the mark is refused.
    let mut rewriting = Bench::new(
        Purpose::Review(Role::Base),
        map(vec![
            ("files", text("wren-file-token")),
            ("plain", text("stays")),
        ]),
    )
    .marks(&["doc[0]/files"]);
    rewriting.toy.tamper = Some(Box::new(|request, answer| match (request, answer) {
        (Request::Parse { text: at, .. }, Answer::Parsed(shared)) => {
            let mut stream = shared.as_ref().clone();
            if at.expose().contains("!bwref") {
                let plain = stream.documents[0].child_mut(3).expect("a value");
                plain.replace(text("stay"));
            }
            Answer::Parsed(stream.into())
        }
        (_, answer) => answer,
    }));
    assert_eq!(
        rewriting.rule(Enforced).as_deref(),
        Some("mark-rewrites-text")
    );
    assert_eq!(rewriting.rule(Without(&[Rule::MarkRewritesNothing])), None);
}

#[test]
fn mapping_members_keep_their_kinds() {
    let root = map(vec![(
        "m",
        map(vec![
            ("n", Node::scalar("!!int", "18446744073709551615")),
            ("b", Node::scalar("!!bool", "false")),
            ("s", text("wren-text")),
        ]),
    )]);
    let bench = Bench::new(Purpose::Fragment, root).marks(&["doc[0]/m"]);
    let extraction = bench.ingest(Enforced).expect("ingests");
    let Value::Mapping(members) = &extraction.generations[0].value else {
        panic!("a mapping");
    };
    let kinds: BTreeMap<&str, Kind> = members
        .iter()
        .map(|(key, one)| (key.as_str(), one.kind()))
        .collect();
    let wanted = [
        ("b", Kind::Boolean),
        ("n", Kind::Integer),
        ("s", Kind::String),
    ];
    assert_eq!(kinds, BTreeMap::from(wanted));
    assert!(matches!(
        members["n"],
        Scalar::Integer(18_446_744_073_709_551_615)
    ));
}

mod dropped;
