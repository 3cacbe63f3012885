//! A machinery for the tests of this crate: trees for texts, a plain structural merge.
//!
//! The decisions are tested against Talos's own machinery in `proptests`; here they are
//! tested against one that can be told to misbehave. Never outside tests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::document::walk::tests::map;
use crate::document::{Content, Node, Stream, anchors::Anchors, lookup};
use crate::machinery::{
    Answer, Class, Decision, Progress, Rejected, Request, SecretField, Verdict, Window,
};
use crate::refusal::Refusal;
use crate::secret::Plaintext;

type Tamper = Box<dyn Fn(&Request, Answer) -> Answer>;

/// Answers questions about texts that it has written itself.
#[derive(Default)]
pub struct Toy {
    texts: RefCell<BTreeMap<String, Stream>>,
    minted: Cell<u8>,
    /// The secret fields of the toy's schema, as slash-separated tokens.
    pub schema: Vec<&'static str>,
    pub tamper: Option<Tamper>,
}

impl Toy {
    pub fn text(&self, root: Node) -> Plaintext {
        self.write(Stream {
            documents: vec![root],
        })
    }

    pub fn write(&self, stream: Stream) -> Plaintext {
        let text: Vec<String> = stream.documents.iter().map(dump).collect();
        let text = text.join("\n---\n");
        self.texts.borrow_mut().insert(text.clone(), stream);
        Plaintext::new(text)
    }

    pub fn read(&self, text: &Plaintext) -> Option<Stream> {
        self.texts.borrow().get(text.expose()).cloned()
    }

    /// Drives a decision to its end.
    pub fn run<D: Decision>(&self, decision: &mut D) -> Result<D::Output, Refusal> {
        loop {
            match decision.advance() {
                Progress::Done(output) => return Ok(output),
                Progress::Refused(refusal) => return Err(*refusal),
                Progress::Misanswered => panic!("the toy misanswered"),
                Progress::Ask(requests) => {
                    let answers = requests.iter().map(|request| {
                        let answer = self.answer(request);
                        match &self.tamper {
                            Some(tamper) => tamper(request, answer),
                            None => answer,
                        }
                    });
                    decision.answer(answers.collect());
                }
            }
        }
    }

    fn answer(&self, request: &Request) -> Answer {
        match request {
            Request::Parse { text, .. } => match self.read(text) {
                Some(stream) => Answer::Parsed(stream.into()),
                None => rejected(Class::Syntax, None, ""),
            },
            Request::Encode { stream, .. } => Answer::Text(self.write(stream.clone())),
            Request::SecretFields { text, .. } => {
                let stream = self.read(text).unwrap_or_default();
                Answer::SecretFields(self.fields(&stream))
            }
            Request::Check { text, .. } => {
                let stream = self.read(text).unwrap_or_default();
                let kind = stream.documents.first().and_then(|root| leaf(root, "kind"));
                match kind.is_some_and(|kind| kind.is_reference()) {
                    true => rejected(Class::Load, None, ""),
                    false => Answer::Accepted,
                }
            }
            Request::Compose { base, fragments } => self.compose(base, fragments),
            Request::Validate { configuration, .. } => {
                let stream = self.read(configuration).unwrap_or_default();
                let zone = stream.documents.first().and_then(|root| leaf(root, "zone"));
                let zone = zone.and_then(Node::text).unwrap_or_default();
                let errors = match zone.contains(' ') {
                    true => vec![Plaintext::new(format!("\"{zone}\" is not a zone"))],
                    false => Vec::new(),
                };
                Answer::Verdict(Verdict {
                    warnings: Vec::new(),
                    errors,
                    kubelet_image: Plaintext::new("example.test/kubelet:v1.36.2".into()),
                    kubernetes_version: Some("v1.36.2".into()),
                    kubernetes: Window::Inside,
                    complete: true,
                })
            }
            Request::Mint => {
                self.minted.set(self.minted.get() + 1);
                Answer::Minted([self.minted.get(); 16])
            }
        }
    }

    fn fields(&self, stream: &Stream) -> Vec<SecretField> {
        let mut fields = Vec::new();
        for (document, root) in stream.documents.iter().enumerate() {
            for path in &self.schema {
                let tokens: Vec<String> = path.split('/').map(str::to_string).collect();
                let anchors = Anchors::of(root).expect("the toy's aliases are followable");
                if lookup::find(root, &anchors, &tokens).is_some() {
                    fields.push(SecretField { document, tokens });
                }
            }
        }
        fields
    }

    fn compose(&self, base: &Plaintext, fragments: &[Plaintext]) -> Answer {
        let mut stream = self.read(base).unwrap_or_default();
        stream.documents = stream.documents.iter().map(expanded).collect();
        for (index, fragment) in fragments.iter().enumerate() {
            let fragment = self.read(fragment).unwrap_or_default();
            for (document, patch) in fragment.documents.iter().enumerate() {
                let patch = expanded(patch);
                if let Some(port) = leaf(&patch, "port").filter(|port| port.tag != "!!int") {
                    let quoted: String = port.text().unwrap_or_default().chars().take(7).collect();
                    let message = format!("line 3: cannot construct `{quoted}...` into int");
                    return rejected(Class::Load, Some(index), &message);
                }
                match stream.documents.get_mut(document) {
                    Some(root) => merge(root, &patch),
                    None => stream.documents.push(patch),
                }
            }
        }
        Answer::Text(self.write(stream))
    }
}

fn rejected(class: Class, fragment: Option<usize>, message: &str) -> Answer {
    Answer::Rejected(Rejected {
        class,
        document: None,
        line: 0,
        fragment,
        message: Plaintext::new(message.into()),
    })
}

pub fn leaf<'a>(root: &'a Node, path: &str) -> Option<&'a Node> {
    let anchors = Anchors::of(root).ok()?;
    let tokens: Vec<String> = path.split('/').map(str::to_string).collect();
    lookup::find(root, &anchors, &tokens).map(|(_, node)| node)
}

/// The tree with aliases written out, as the machinery's encoder leaves it.
fn expanded(root: &Node) -> Node {
    fn copy(root: &Node, anchors: &Anchors, place: &mut Vec<usize>, node: &Node) -> Node {
        let mut copied = node.clone();
        copied.anchor = None;
        match &node.content {
            Content::Scalar(_) => {}
            Content::Alias(_) => {
                let mut target = anchors.target(place).expect("followable").clone();
                let node = root.at(&target).expect("a node");
                return copy(root, anchors, &mut target, node);
            }
            Content::Sequence(items) => {
                let items = items.iter().enumerate().map(|(index, item)| {
                    place.push(index);
                    let copied = copy(root, anchors, place, item);
                    place.pop();
                    copied
                });
                copied.content = Content::Sequence(items.collect());
            }
            Content::Mapping(entries) => {
                let entries = entries.iter().enumerate().map(|(index, (key, value))| {
                    place.push(2 * index + 1);
                    let copied = copy(root, anchors, place, value);
                    place.pop();
                    (key.clone(), copied)
                });
                copied.content = Content::Mapping(entries.collect());
            }
        }
        copied
    }
    let anchors = Anchors::of(root).expect("followable");
    copy(root, &anchors, &mut Vec::new(), root)
}

fn merge(base: &mut Node, patch: &Node) {
    match (&mut base.content, &patch.content) {
        (Content::Mapping(entries), Content::Mapping(patches)) => {
            for (key, value) in patches {
                let directive = leaf(value, "$patch").is_some();
                let at = entries.iter().position(|(own, _)| own.text() == key.text());
                match at {
                    Some(at) if directive => drop(entries.remove(at)),
                    Some(at) => merge(&mut entries[at].1, value),
                    None => entries.push((key.clone(), value.clone())),
                }
            }
        }
        (Content::Sequence(items), Content::Sequence(more)) => items.extend(more.iter().cloned()),
        _ => *base = patch.clone(),
    }
}

/// A text for a tree, different for different trees.
fn dump(node: &Node) -> String {
    let anchor = node.anchor.as_deref().unwrap_or("");
    let comments = [
        &node.comments.head,
        &node.comments.line,
        &node.comments.foot,
    ];
    let comments: String = comments
        .into_iter()
        .map(|text| format!("#{text}"))
        .collect();
    let content = match &node.content {
        Content::Scalar(text) => format!("{text:?}"),
        Content::Alias(name) => format!("*{name}"),
        Content::Sequence(items) => {
            let items: Vec<String> = items.iter().map(dump).collect();
            format!("[{}]", items.join(","))
        }
        Content::Mapping(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| format!("{}:{}", dump(key), dump(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
    };
    format!("{}&{anchor}{comments}{content}", node.tag)
}

/// A mapping around one path.
pub fn nest(path: &str, leaf: Node) -> Node {
    path.rsplit('/')
        .fold(leaf, |node, key| map(vec![(key, node)]))
}

pub fn reference(name: &str) -> Node {
    let mut node = Node::scalar("!bwref", name);
    node.tagged = true;
    node
}
