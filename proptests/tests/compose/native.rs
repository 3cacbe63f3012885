//! What Talos's machinery makes of the same literals, without any of our resolution.
//!
//! Never in this module: a function of `core` that resolves, extracts or attributes.

use std::collections::BTreeMap;

use bronzeward_core::document::{BOOLEAN, Content, INTEGER, Node, STRING, Stream};
use bronzeward_core::machinery::Mode;
use bronzeward_core::path::Format;
use bronzeward_core::secret::{Plaintext, Scalar, Value, base64};
use bronzeward_engine::ports::renderer::{EmbeddedFormat, RenderError, Renderer};

use super::bench::Bench;
use super::case::Case;

/// The native verdict on a case over one base.
pub enum Native {
    Pass(Plaintext),
    Invalid(Plaintext),
    Rejected,
}

impl Native {
    pub fn name(&self) -> &'static str {
        match self {
            Native::Pass(_) => "pass",
            Native::Invalid(_) => "invalid",
            Native::Rejected => "rejected",
        }
    }
}

/// Composes and validates a case's literal form.
pub async fn native(
    bench: &Bench,
    case: &Case,
    base: &Plaintext,
    fragments: &[Plaintext],
    mode: Mode,
) -> Native {
    let composed = match bench.compose(base, fragments).await {
        Ok(composed) => composed,
        Err(RenderError::Refused(_)) => return Native::Rejected,
        Err(other) => panic!("{}: the renderer gave no answer: {other}", case.id),
    };
    match bench.validate(&composed, mode).await.errors.is_empty() {
        true => Native::Pass(composed),
        false => Native::Invalid(composed),
    }
}

/// A case's fragments with their values written in.
pub async fn literals(bench: &Bench, case: &Case) -> Vec<Plaintext> {
    let mut literals = Vec::new();
    for fragment in &case.fragments {
        let mut stream = bench.parse(&fragment.document).await;
        let values: BTreeMap<&str, (&Value, bool)> = fragment
            .declarations
            .references
            .iter()
            .filter_map(|(name, declared)| {
                let key = (name.as_str().to_string(), declared.version);
                let value = case.provider.get(&key)?;
                Some((name.as_str(), (value, declared.encoding.is_some())))
            })
            .collect();
        for root in &mut stream.documents {
            write(root, &values);
        }
        for (path, format) in &fragment.declarations.embedded {
            let Some(root) = stream.documents.get_mut(path.document) else {
                continue;
            };
            let Some(holder) = descend(root, &path.tokens) else {
                continue;
            };
            let text = holder.text().unwrap_or_default().to_string();
            let mut inner = bench
                .embedded(*format, &text)
                .await
                .expect("an embedded document");
            write(&mut inner, &values);
            let format = match format {
                Format::Yaml => EmbeddedFormat::Yaml,
                Format::Json => EmbeddedFormat::Json,
            };
            let written = bench.renderer.encode_embedded(format, &inner).await;
            holder.content = Content::Scalar(written.expect("encodes").expose().to_string());
        }
        literals.push(encode(bench, stream).await);
    }
    literals
}

async fn encode(bench: &Bench, stream: Stream) -> Plaintext {
    let text = bench.renderer.encode(&stream).await;
    text.expect("a literal fragment encodes")
}

fn descend<'a>(root: &'a mut Node, tokens: &[String]) -> Option<&'a mut Node> {
    let mut node = root;
    for token in tokens {
        node = match &mut node.content {
            Content::Sequence(items) => items.get_mut(token.parse::<usize>().ok()?)?,
            Content::Mapping(entries) => {
                let entry = entries
                    .iter_mut()
                    .find(|(key, _)| key.text() == Some(token.as_str()));
                &mut entry?.1
            }
            Content::Scalar(_) | Content::Alias(_) => return None,
        };
    }
    Some(node)
}

fn write(node: &mut Node, values: &BTreeMap<&str, (&Value, bool)>) {
    if node.tag == "!bwref" {
        let name = node.text().unwrap_or_default().to_string();
        if let Some((value, encoded)) = values.get(name.as_str()) {
            let literal = match value {
                Value::Scalar(scalar) => scalar_node(scalar, *encoded),
                Value::Mapping(members) => Node::mapping(
                    members
                        .iter()
                        .map(|(key, member)| {
                            (Node::string(key.as_str()), scalar_node(member, false))
                        })
                        .collect(),
                ),
            };
            let anchor = node.anchor.take();
            *node = literal;
            node.anchor = anchor;
        }
        return;
    }
    match &mut node.content {
        Content::Scalar(_) | Content::Alias(_) => {}
        Content::Sequence(items) => items.iter_mut().for_each(|item| write(item, values)),
        Content::Mapping(entries) => entries
            .iter_mut()
            .for_each(|(_, value)| write(value, values)),
    }
}

fn scalar_node(scalar: &Scalar, encoded: bool) -> Node {
    let (tag, text) = match scalar {
        Scalar::String(text) if encoded => (STRING, base64(text.expose())),
        Scalar::String(text) => (STRING, text.expose().to_string()),
        Scalar::Integer(number) => (INTEGER, number.to_string()),
        Scalar::Boolean(truth) => (BOOLEAN, truth.to_string()),
    };
    Node::scalar(tag, text)
}
