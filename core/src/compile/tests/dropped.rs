//! What a compilation does when a rule of authoring, or one about the agreement of its
//! passes, is dropped.

use super::*;
use crate::path::Format;

fn base() -> Bench {
    Bench::new(map(vec![("x", text("1"))]))
}

/// Changes what the machinery reads of a composed text.
fn composed(mut bench: Bench, change: fn(&str, &mut Node)) -> Bench {
    bench.toy.tamper = Some(Box::new(move |request, answer| match (request, answer) {
        (Request::Parse { text, .. }, Answer::Parsed(shared)) => {
            let mut stream = shared.as_ref().clone();
            if let Some(root) = stream.documents.first_mut() {
                change(text.expose(), root);
            }
            Answer::Parsed(stream.into())
        }
        (_, answer) => answer,
    }));
    bench
}

fn entry_mut<'a>(root: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    let Content::Mapping(entries) = &mut root.content else {
        return None;
    };
    let named = entries.iter_mut().find(|(own, _)| own.text() == Some(key));
    named.map(|(_, value)| value)
}

impl Bench {
    fn embeds(mut self, path: &str) -> Bench {
        let path = Path::parse(path).expect("a path");
        let (_, declarations) = self.sources.last_mut().expect("a source");
        declarations.embedded.insert(path, Format::Yaml);
        self
    }
}

#[test]
fn without_directives_alone_content_is_dropped_that_was_stored_and_never_loaded() {
    let beside = map(vec![("$patch", text("delete")), ("a", text("b"))]);
    let bench = Bench::new(map(vec![("x", text("1")), ("sysctls", text("kept"))]))
        .fragment(nest("sysctls", beside));
    assert_eq!(bench.rule(Enforced).as_deref(), Some("patch-directive"));
    let output = bench.compile(Without(&[Rule::DirectiveAlone]));
    assert_eq!(bench.composed(&output, "x").as_deref(), Some("1"));
    assert_eq!(bench.composed(&output, "sysctls"), None);
    assert_eq!(bench.composed(&output, "sysctls/a"), None);
}

#[test]
fn without_embedded_texts_the_references_of_one_reach_the_node_as_text() {
    let bench = base()
        .fragment(nest("contents", text("password: !bwref a/pass")))
        .embeds("doc[0]/content");
    assert_eq!(bench.rule(Enforced).as_deref(), Some("embedded-target"));
    let unnoticed = bench.rule(Without(&[Rule::EmbeddedIsText]));
    assert_eq!(unnoticed.as_deref(), Some("reserved-text"));
    let output = bench.compile(Without(&[
        Rule::EmbeddedIsText,
        Rule::ReservedText,
        Rule::OutputReservedText,
    ]));
    let composed = bench.composed(&output, "contents");
    assert_eq!(composed.as_deref(), Some("password: !bwref a/pass"));
}

#[test]
fn without_distinct_traces_a_leaf_is_attributed_to_a_reference_that_was_overridden() {
    let bench = base()
        .fragment(nest("a", reference("a/one")))
        .holds("a/one", string("ab"))
        .fragment(map(vec![("a", text("other")), ("b", reference("a/two"))]))
        .holds("a/two", string("cd"));
    assert_eq!(bench.rule(Enforced).as_deref(), Some("trace-indistinct"));
    let output = bench.compile(Without(&[Rule::TraceDistinct]));
    assert!(output.outcome.is_ok());
    let wrong = ("a/one".to_string(), effective(&["doc[0]/b"]));
    let right = ("a/two".to_string(), effective(&["doc[0]/b"]));
    assert_eq!(fates(&output), [wrong, right]);
}

#[test]
fn without_agreeing_passes_a_message_is_compared_with_itself_and_quotes_a_value() {
    let mut bench = base()
        .fragment(nest("port", reference("prism/port")))
        .holds("prism/port", string("wren-no-port"));
    // The trace pass composes what the real one does not.
    bench.toy.tamper = Some(Box::new(|request, answer| match request {
        Request::Compose { base, fragments }
            if fragments.iter().any(|text| text.expose().contains("zq000")) =>
        {
            Answer::Text(base.clone())
        }
        _ => answer,
    }));
    let output = bench.compile(Enforced);
    let rule = output.outcome.err().map(|refusal| refusal.rule_name());
    assert_eq!(rule.as_deref(), Some("passes-disagree"));
    assert_eq!(output.report.compose, View::Withheld);
    let output = bench.compile(Without(&[Rule::PassesAgree]));
    let message = "line 3: cannot construct `wren-no...` into int";
    assert_eq!(output.report.compose, View::Verbatim(message.into()));
}

#[test]
fn without_agreeing_passes_a_trace_that_does_not_validate_attributes_a_configuration() {
    let mut bench = base()
        .fragment(nest("pass", reference("a/pass")))
        .holds("a/pass", string("wren-secret-phrase"));
    bench.toy.tamper = Some(Box::new(|request, answer| match (request, answer) {
        (Request::Validate { configuration, .. }, Answer::Verdict(mut verdict)) => {
            if configuration.expose().contains("zq000") {
                verdict.errors.push(Plaintext::new("no".into()));
            }
            Answer::Verdict(verdict)
        }
        (_, answer) => answer,
    }));
    assert_eq!(bench.rule(Enforced).as_deref(), Some("passes-disagree"));
    assert_eq!(bench.rule(Without(&[Rule::PassesAgree])), None);
}

#[test]
fn without_faithful_embedded_documents_one_met_in_one_pass_is_shown_as_literal_text() {
    let bench = base();
    let inner = bench.toy.text(nest("port", reference("a/port")));
    let bench = bench
        .fragment(nest("contents", text(inner.expose())))
        .holds("a/port", Value::Scalar(Scalar::Integer(7452)))
        .embeds("doc[0]/contents")
        .fragment(nest("other", text("y")));
    // Of the whole composition the trace pass keeps the document of the real one.
    let bench = composed(bench, |text, root| {
        if text.contains("other")
            && let Some(contents) = entry_mut(root, "contents")
        {
            let real = contents.text().map(|text| text.replace("61000", "7452"));
            contents.replace(Node::string(real.unwrap_or_default()));
        }
    });
    assert_eq!(bench.rule(Enforced).as_deref(), Some("embedded-unmatched"));
    let dropped = Without(&[Rule::EmbeddedFaithful]);
    let output = bench.compile(dropped);
    assert_eq!(
        fates(&output),
        [("a/port".to_string(), Fate::Overridden(1))],
        "nobody overrode it"
    );
    let shown = shown(&bench, dropped).expect("a review");
    let shown = leaf(&shown, "contents").and_then(Node::text);
    assert!(shown.is_some_and(|text| text.contains("7452")), "in clear");
}

#[test]
fn without_its_own_prefix_an_override_is_laid_to_a_fragment_that_never_touched_it() {
    let bench = base()
        .fragment(nest("pass", reference("a/pass")))
        .holds("a/pass", string("wren-secret-phrase"))
        .fragment(nest("other", text("y")))
        .fragment(nest("pass", text("mine")));
    let right = bench.compile(Enforced);
    assert_eq!(fates(&right), [("a/pass".to_string(), Fate::Overridden(2))]);
    // Until the last fragment both passes show something else at the leaf.
    let bench = composed(bench, |text, root| {
        let carries = text.contains("wren-secret-phrase") || text.contains("zq000");
        if carries && let Some(pass) = entry_mut(root, "pass") {
            pass.replace(Node::string("settled"));
        }
    });
    assert_eq!(bench.rule(Enforced).as_deref(), Some("prefix-uncarried"));
    let wrong = bench.compile(Without(&[Rule::OwnPrefixCarries]));
    assert!(wrong.outcome.is_ok());
    assert_eq!(fates(&wrong), [("a/pass".to_string(), Fate::Overridden(1))]);
}

/// Changes the text that the trace pass composed, by a change of its tree.
fn changed(toy_change: fn(&mut Node), pass: fn(&str) -> bool) -> Bench {
    let mut bench = Bench::new(map(vec![
        ("keep", text("plain")),
        ("sub", map(vec![("n", text("v"))])),
    ]))
    .fragment(map(vec![
        ("pass", reference("a/pass")),
        ("wipe", reference("a/wipe")),
    ]))
    .holds("a/pass", string("wren-secret-phrase"))
    .holds("a/wipe", Value::Scalar(Scalar::Boolean(true)));
    bench.toy.tamper = Some(Box::new(move |request, answer| {
        let Answer::Parsed(shared) = answer else {
            return answer;
        };
        let mut stream = shared.as_ref().clone();
        let Request::Parse { text, .. } = request else {
            return Answer::Parsed(shared);
        };
        let composed = text.expose().contains("plain") && text.expose().contains("pass");
        if composed && pass(text.expose()) {
            toy_change(&mut stream.documents[0]);
        }
        Answer::Parsed(stream.into())
    }));
    bench
}

// covers: IC-CMP-3
#[test]
fn a_pass_that_went_another_way_refuses_and_each_compare_dropped_lets_it_through() {
    let traced: fn(&str) -> bool = |text| text.contains("zq000");
    let flipped: fn(&str) -> bool = |text| text.contains("\"false\"");
    // The changes as plain functions, so that a boxed tamper can hold them.
    fn push(root: &mut Node) {
        if let Content::Mapping(entries) = &mut root.content {
            entries.push((Node::string("more"), Node::string("x")));
        }
    }
    fn rename(root: &mut Node) {
        if let Content::Mapping(entries) = &mut root.content {
            entries[0].0.replace(Node::string("kept"));
        }
    }
    fn listed(root: &mut Node) {
        root.child_mut(1)
            .expect("a value")
            .replace(list(vec![text("plain")]));
    }
    fn retagged(root: &mut Node) {
        root.child_mut(1)
            .expect("a value")
            .replace(Node::scalar("!!int", "plain"));
    }
    fn literal(root: &mut Node) {
        root.child_mut(1).expect("a value").replace(text("plaiN"));
    }
    for (what, with, pass, rule, dropped) in [
        (
            "a key added",
            push as fn(&mut Node),
            traced,
            "pass-shape",
            Rule::ShapeFaithful,
        ),
        (
            "a key renamed",
            rename,
            traced,
            "pass-shape",
            Rule::ShapeFaithful,
        ),
        (
            "a scalar made a list",
            listed,
            traced,
            "pass-shape",
            Rule::ShapeFaithful,
        ),
        (
            "a tag changed",
            retagged,
            traced,
            "pass-shape",
            Rule::ShapeFaithful,
        ),
        (
            "an untraced leaf changed",
            literal,
            traced,
            "leaf-unattributed",
            Rule::LeafFaithful,
        ),
        (
            "a flip pass with a key added",
            push,
            flipped,
            "pass-shape",
            Rule::ShapeFaithful,
        ),
    ] {
        let bench = changed(with, pass);
        assert_eq!(bench.rule(Enforced).as_deref(), Some(rule), "{what}");
        let without: &'static [Rule] = Box::leak(vec![dropped].into_boxed_slice());
        assert_eq!(bench.rule(Without(without)), None, "{what}: control");
    }
    assert_eq!(changed(|_| {}, traced).rule(Enforced), None);
}

/// A composition that is refused, the rules that together refuse it, and the refusal's name.
type Refused = (Bench, &'static [Rule], &'static str);

fn refused_as_authored() -> Vec<Refused> {
    let mut entries = list(vec![text("a")]);
    entries.tag = "!bwref".into();
    let root = BTreeMap::from([("on".to_string(), Scalar::Boolean(true))]);
    let key = Node::mapping(vec![(reference("a/key"), text("x"))]);
    vec![
        (
            base().fragment(nest("a", reference("a/pass"))),
            &[Rule::NameDeclared],
            "undeclared",
        ),
        (
            base().holds("a/pass", string("x-unused-x")),
            &[Rule::DeclarationUsed],
            "unused-declaration",
        ),
        (
            base()
                .fragment(reference("a/root"))
                .holds("a/root", Value::Mapping(root)),
            &[Rule::TagPlace],
            "tag-place",
        ),
        (
            base().fragment(nest("a", entries)),
            &[Rule::TagPlace, Rule::NameDeclared],
            "tag-place",
        ),
        (
            base()
                .fragment(nest("a", key))
                .holds("a/key", string("wren-secret")),
            &[
                Rule::TagPlace,
                Rule::ShapeFaithful,
                Rule::OwnPrefixCarries,
                Rule::OutputCopies,
            ],
            "tag-place",
        ),
        (
            base().fragment(nest("a", Node::scalar("!other", "x"))),
            &[Rule::KnownTagsOnly],
            "local-tag",
        ),
        (
            base().fragment(nest("a", reference("A"))),
            &[Rule::NameGrammar, Rule::NameDeclared],
            "name-grammar",
        ),
        (
            base().fragment(nest("a", text("x !bwref y"))),
            &[Rule::ReservedText, Rule::OutputReservedText],
            "reserved-text",
        ),
    ]
}

fn refused_as_resolved() -> Vec<Refused> {
    let referring = || base().fragment(nest("a", reference("a/pass")));
    let pinned = |change: fn(&mut Pinned)| {
        let mut bench = referring().holds("a/pass", string("wren-secret"));
        bench.pins.values_mut().for_each(change);
        bench
    };
    let encoded = Some(Encoding::Base64);
    vec![
        (
            referring()
                .declares("a/pass", Kind::Integer, None)
                .pins("a/pass", string("wren-secret")),
            &[Rule::KindMatches],
            "kind-mismatch",
        ),
        (
            referring()
                .declares("a/pass", Kind::Integer, encoded)
                .pins("a/pass", Value::Scalar(Scalar::Integer(4711))),
            &[Rule::EncodingOnString],
            "encoding",
        ),
        (
            referring().declares("a/pass", Kind::String, None),
            &[Rule::ReferenceKnown, Rule::OwnPrefixCarries],
            "unknown-reference",
        ),
        (
            pinned(|pinned| pinned.cluster = ClusterId::from_bits(2)),
            &[Rule::ReferenceScope],
            "reference-scope",
        ),
        (
            pinned(|pinned| pinned.value = None),
            &[Rule::EveryPinDecodes, Rule::OwnPrefixCarries],
            "undecodable",
        ),
    ]
}

// covers: IC-REF-1
#[test]
fn each_refusal_of_authoring_and_resolution_can_be_dropped() {
    for (bench, dropped, name) in refused_as_authored()
        .into_iter()
        .chain(refused_as_resolved())
    {
        assert_eq!(bench.rule(Enforced).as_deref(), Some(name));
        assert_eq!(bench.rule(Without(dropped)), None, "{name}: control");
        // Where several hide each other, the control drops none too many.
        for kept in dropped {
            let fewer: Vec<Rule> = dropped.iter().copied().filter(|one| one != kept).collect();
            let refusal = bench.rule(Without(Box::leak(fewer.into_boxed_slice())));
            assert!(refusal.is_some(), "{name}: with {kept:?}");
        }
    }
}

#[test]
fn a_value_written_like_a_token_or_like_a_references_name_shows_nothing() {
    for (name, value) in [
        ("a/pass", "<redacted:a/pass@1>"),
        ("wren-name", "wren-name"),
    ] {
        let bench = Bench::new(map(vec![("x", text("1"))]))
            .fragment(nest("pass", reference(name)))
            .holds(name, string(value));
        let output = bench.compile(Enforced);
        assert_eq!(output.report.review, Review::Withheld, "{name}");
        let shown = shown(&bench, Without(&[Rule::RenderingChecked])).expect("a review");
        let text = leaf(&shown, "pass").and_then(Node::text);
        assert!(text.is_some_and(|text| text.contains(value)), "{name}");
    }
}
