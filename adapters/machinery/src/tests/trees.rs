//! Trees through the socket and the machinery's YAML library, and back.

use bronzeward_core::document::{Comments, Content, Node, Stream, Style};
use bronzeward_engine::ports::renderer::{EmbeddedFormat, RefusedClass, Renderer};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use super::{beside_others, generated, refusal, renderer, text};
use crate::MachineryRenderer;

async fn fixed_point(renderer: &MachineryRenderer, input: &str) -> String {
    let tree = renderer.parse(&text(input)).await.expect("parsed");
    let once = renderer.encode(&tree).await.expect("encoded");
    let again = renderer.parse(&once).await.expect("parsed again");
    assert!(same(&tree, &again), "the tree changed on its way");
    let twice = renderer.encode(&again).await.expect("encoded again");
    assert!(once.same(&twice), "the text is no fixed point");
    once.expose().to_owned()
}

fn comments(text: &str) -> usize {
    text.lines().filter(|line| line.contains("# ")).count()
}

// covers-part: IC-ING-5 (generated configurations, commented and not)
#[tokio::test]
async fn generated_configurations_are_fixed_points_that_compose_the_same_and_keep_comments() {
    let _beside = beside_others().await;
    let renderer = renderer().await;
    for flags in [
        ["-type", "controlplane", "-mode", "metal", "-files", "3"],
        ["-type", "worker", "-mode", "metal", "-files", "80"],
        ["-type", "controlplane", "-mode", "container", "-files", "0"],
        ["-type", "worker", "-mode", "container", "-files", "1"],
    ] {
        for commented in ["-comments=false", "-comments=true"] {
            let input = generated(&[&flags[..], &[commented]].concat());
            let text_again = fixed_point(&renderer, input.expose()).await;
            assert_eq!(comments(input.expose()), comments(&text_again));
            // What the machinery decodes, leaf by leaf: its own encoding of either.
            let before = renderer.compose(&input, &[]).await.expect("composed");
            let after = renderer.compose(&text(&text_again), &[]).await;
            assert!(before.same(&after.expect("composed")));
        }
    }
    renderer.stop().await;
}

/// What trees mean: styles, comments and positions left out.
fn same(a: &Stream, b: &Stream) -> bool {
    a.documents.len() == b.documents.len()
        && a.documents
            .iter()
            .zip(&b.documents)
            .all(|(a, b)| same_node(a, b))
}

fn same_node(a: &Node, b: &Node) -> bool {
    let content = match (&a.content, &b.content) {
        (Content::Scalar(x), Content::Scalar(y)) => x == y || a.tag == "!!null",
        (Content::Alias(x), Content::Alias(y)) => x == y,
        (Content::Sequence(x), Content::Sequence(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(a, b)| same_node(a, b))
        }
        (Content::Mapping(x), Content::Mapping(y)) => {
            x.len() == y.len()
                && x.iter()
                    .zip(y)
                    .all(|(a, b)| same_node(&a.0, &b.0) && same_node(&a.1, &b.1))
        }
        _ => false,
    };
    content && a.tag == b.tag && a.anchor == b.anchor
}

fn made(tag: &str, style: Style, content: Content) -> Node {
    Node {
        tag: tag.to_owned(),
        tagged: tag.starts_with("!bw"),
        anchor: None,
        style,
        content,
        comments: Comments::default(),
        line: 0,
        column: 0,
    }
}

/// A tree as proptest can show it: trees themselves have no Debug.
#[derive(Clone, Debug)]
enum Plan {
    Scalar(&'static str, usize, String),
    List(bool, Vec<Plan>),
    Map(bool, Vec<(String, Plan)>),
}

const STYLES: [Style; 5] = [
    Style::Plain,
    Style::SingleQuoted,
    Style::DoubleQuoted,
    Style::Literal,
    Style::Folded,
];

impl Plan {
    fn build(&self) -> Node {
        let collection = |flow: bool| if flow { Style::Flow } else { Style::Plain };
        match self {
            Plan::Scalar(tag, style, text) => {
                made(tag, STYLES[*style], Content::Scalar(text.clone()))
            }
            Plan::List(flow, items) => {
                let items = items.iter().map(Plan::build).collect();
                made("!!seq", collection(*flow), Content::Sequence(items))
            }
            Plan::Map(flow, entries) => {
                let entries = entries.iter().enumerate().map(|(position, (key, value))| {
                    let key = Content::Scalar(format!("{position}{key}"));
                    (made("!!str", Style::Plain, key), value.build())
                });
                made(
                    "!!map",
                    collection(*flow),
                    Content::Mapping(entries.collect()),
                )
            }
        }
    }
}

fn scalar() -> impl Strategy<Value = Plan> {
    prop_oneof![
        // Every text is some string's, however it was styled.
        4 => ("(?s).{0,40}", 0..5usize).prop_map(|(text, style)| Plan::Scalar("!!str", style, text)),
        2 => ("[ -~\n]{0,60}", 0..5usize).prop_map(|(text, style)| Plan::Scalar("!!str", style, text)),
        1 => any::<i64>().prop_map(|number| Plan::Scalar("!!int", 0, number.to_string())),
        1 => any::<bool>().prop_map(|value| Plan::Scalar("!!bool", 0, value.to_string())),
        1 => Just(Plan::Scalar("!!null", 0, "null".into())),
        1 => "[a-z]{1,8}/[a-z]{1,8}".prop_map(|name| Plan::Scalar("!bwref", 0, name)),
    ]
}

fn tree() -> impl Strategy<Value = Plan> {
    scalar().prop_recursive(5, 60, 6, |inner| {
        let list = (any::<bool>(), vec(inner.clone(), 0..6))
            .prop_map(|(flow, items)| Plan::List(flow, items));
        let map = (any::<bool>(), vec(("[ -~]{1,12}", inner), 0..6))
            .prop_map(|(flow, entries)| Plan::Map(flow, entries));
        prop_oneof![list, map]
    })
}

/// Gives a node an anchor and puts an alias of it after.
fn anchored(mut first: Node) -> Node {
    first.anchor = Some("one".into());
    let alias = made("", Style::Plain, Content::Alias("one".into()));
    made("!!seq", Style::Plain, Content::Sequence(vec![first, alias]))
}

// covers-part: IC-ING-5 (256 generated trees)
#[test]
fn generated_trees_are_read_back_as_they_were_or_refused_as_unwritable() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _beside = runtime.block_on(beside_others());
    let renderer = runtime.block_on(renderer());
    let config = Config {
        cases: 256,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..Config::default()
    };
    let written = std::cell::Cell::new(0);
    let result = TestRunner::new(config).run(&vec(tree(), 1..3), |roots| {
        let stream = Stream {
            documents: roots.iter().map(Plan::build).map(anchored).collect(),
        };
        runtime.block_on(async {
            match renderer.encode(&stream).await {
                Ok(text) => {
                    let read = renderer.parse(&text).await.expect("parsed");
                    prop_assert!(same(&stream, &read));
                    let again = renderer.encode(&read).await.expect("encoded");
                    prop_assert!(text.same(&again));
                    written.set(written.get() + 1);
                }
                // A text that YAML cannot hold, such as one with a bare return.
                refused => prop_assert_eq!(refusal(refused), RefusedClass::Unwritable),
            }
            Ok(())
        })
    });
    runtime.block_on(renderer.stop());
    if let Err(failure) = result {
        panic!("{failure}");
    }
    assert!(
        written.get() >= 200,
        "only {} trees were written",
        written.get()
    );
}

#[tokio::test]
async fn comments_positions_anchors_aliases_and_styles_reach_the_tree() {
    let _beside = beside_others().await;
    let renderer = renderer().await;
    let input = "# head\n\na: &x 'one' # line\nb: *x\nc: [1, 2]\n\n# end\n---\nd: |\n  text\n";
    let stream = renderer.parse(&text(input)).await.expect("parsed");
    assert_eq!(stream.documents.len(), 2);
    assert_eq!(stream.documents[0].comments.head, "# head");
    let Content::Mapping(entries) = &stream.documents[0].content else {
        panic!("no mapping");
    };
    let first = &entries[0].1;
    assert_eq!((first.line, first.column), (3, 4));
    assert_eq!(first.anchor.as_deref(), Some("x"));
    assert_eq!(first.comments.line, "# line");
    assert!(first.style == Style::SingleQuoted);
    assert!(matches!(&entries[1].1.content, Content::Alias(name) if name == "x"));
    assert!(entries[2].1.style == Style::Flow);
    let again = renderer.encode(&stream).await.expect("encoded");
    assert_eq!(again.expose(), input);
    renderer.stop().await;
}

#[tokio::test]
async fn an_embedded_document_is_one_document_in_its_format() {
    let _beside = beside_others().await;
    let renderer = renderer().await;
    let json = text("{\"token\": !bwref app/token, \"endpoint\": \"https://a\"}\n");
    let mut root = renderer
        .parse_embedded(EmbeddedFormat::Json, &json)
        .await
        .expect("a reference may stand in it");
    let Content::Mapping(entries) = &mut root.content else {
        panic!("no mapping");
    };
    assert_eq!(entries[0].1.tag, "!bwref");
    entries[0].1 = made("!!str", Style::Plain, Content::Scalar("<t>".into()));
    let written = renderer
        .encode_embedded(EmbeddedFormat::Json, &root)
        .await
        .expect("written");
    assert_eq!(
        written.expose(),
        "{\"endpoint\":\"https://a\",\"token\":\"\\u003ct\\u003e\"}\n"
    );
    let yaml = renderer.encode_embedded(EmbeddedFormat::Yaml, &root).await;
    assert!(yaml.expect("written").expose().contains("<t>"));
    let two = renderer
        .parse_embedded(EmbeddedFormat::Yaml, &text("a: 1\n---\nb: 2\n"))
        .await;
    assert_eq!(refusal(two), RefusedClass::NotOneDocument);
    renderer.stop().await;
}
