//! Puts references in the place of values and writes the candidate text (IC §2.3 step 5).
//!
//! Never in this module: a text other than the pinned encoder's.

use crate::document::{Content, Node, REFERENCE, Stream, Style};
use crate::forms::Forms;
use crate::machinery::{Dialogue, Pause, Rejected, Request, TextFormat};
use crate::reference::Name;
use crate::refusal::{Refusal, Stage};
use crate::rules::{Rule, Rules};
use crate::secret::Plaintext;
use crate::source::{self, Parsed};

use super::Input;
use super::targets::Target;

/// Rounds after which a text that still changes is refused: the encoder has no fixed
/// point for it.
const ROUNDS: usize = 8;

/// The candidate: the stream with its references, written again from its own parse until
/// it no longer changes, so that a later mark finds its text as the encoder leaves it.
pub fn write<R: Rules>(
    dialogue: &mut Dialogue<'_>,
    rules: R,
    input: &Input,
    parsed: &Parsed,
    named: &[(Name, Target)],
) -> Result<Plaintext, Pause> {
    let mut candidate = parsed.clone();
    for (name, target) in named {
        if let Some(node) = candidate.node_mut(&target.spot) {
            node.replace(reference(name));
        }
    }
    for (position, embedded) in candidate.embedded.clone().into_iter().enumerate() {
        let marks: Vec<Option<usize>> = named
            .iter()
            .filter(|(_, target)| matches!(&target.spot.inner, Some((at, _)) if *at == position))
            .map(|(_, target)| target.mark)
            .collect();
        if marks.is_empty() {
            // An embedded document that nothing was taken from keeps its author's text.
            continue;
        }
        let text = settled(dialogue, TextFormat::Authored, embedded.root.clone())?;
        if input.purpose.is_review() {
            keeps_form(dialogue, rules, input, parsed, position, marks[0])?;
        }
        let root = candidate.stream.documents.get_mut(embedded.holder.document);
        let holder = root.and_then(|root| root.at_mut(&embedded.place));
        let holder = holder.ok_or(Pause::Misanswered)?;
        let style = holder.style;
        let mut written = Node::string(text.expose());
        written.style = style;
        holder.replace(written);
    }
    let stream = Stream {
        documents: std::mem::take(&mut candidate.stream.documents),
    };
    settle(dialogue, TextFormat::Stream, stream)
}

fn reference(name: &Name) -> Node {
    let mut node = Node::scalar(REFERENCE, name.as_str());
    node.tagged = true;
    node.style = Style::Plain;
    node
}

fn settled(
    dialogue: &mut Dialogue<'_>,
    format: TextFormat,
    root: Node,
) -> Result<Plaintext, Pause> {
    let stream = Stream {
        documents: vec![root],
    };
    settle(dialogue, format, stream)
}

fn settle(
    dialogue: &mut Dialogue<'_>,
    format: TextFormat,
    mut stream: Stream,
) -> Result<Plaintext, Pause> {
    let mut last: Option<Plaintext> = None;
    for _ in 0..ROUNDS {
        let text = encode(dialogue, format, stream)?;
        if last.as_ref().is_some_and(|last| last.same(&text)) {
            return Ok(text);
        }
        stream = parse(dialogue, format, &text)?;
        last = Some(text);
    }
    Err(Refusal::new(Stage::Ingestion, "unwritable", Vec::new()).into())
}

fn encode(
    dialogue: &mut Dialogue<'_>,
    format: TextFormat,
    stream: Stream,
) -> Result<Plaintext, Pause> {
    let mut answers = dialogue.ask(vec![Request::Encode { format, stream }])?;
    let answer = answers.pop().ok_or(Pause::Misanswered)?;
    answer.text()?.map_err(refused)
}

fn parse(
    dialogue: &mut Dialogue<'_>,
    format: TextFormat,
    text: &Plaintext,
) -> Result<Stream, Pause> {
    let text = text.clone();
    let mut answers = dialogue.ask(vec![Request::Parse { format, text }])?;
    let answer = answers.pop().ok_or(Pause::Misanswered)?;
    let parsed = answer.parsed()?.map_err(refused)?;
    Ok(parsed.as_ref().clone())
}

fn refused(rejected: Rejected) -> Pause {
    let mut refusal = source::unread(None, &rejected, None);
    // The line is the candidate's, not one of the input.
    refusal.sites.clear();
    refusal.into()
}

/// In a review an embedded document's text must already be what the encoder writes:
/// otherwise the mark would rewrite text that no guard searches (IC §3.6 item 3).
fn keeps_form<R: Rules>(
    dialogue: &mut Dialogue<'_>,
    rules: R,
    input: &Input,
    parsed: &Parsed,
    position: usize,
    mark: Option<usize>,
) -> Result<(), Pause> {
    let Some(embedded) = parsed.embedded.get(position) else {
        return Err(Pause::Misanswered);
    };
    let again = encode(
        dialogue,
        TextFormat::Authored,
        Stream {
            documents: vec![embedded.root.clone()],
        },
    )?;
    let document = parsed.stream.documents.get(embedded.holder.document);
    let staged = document.and_then(|root| root.at(&embedded.place));
    let same = staged.and_then(Node::text) == Some(again.expose());
    if rules.holds(Rule::MarkRewritesNothing, same) {
        return Ok(());
    }
    Err(rewrites(rules, input, mark).into())
}

fn rewrites<R: Rules>(rules: R, input: &Input, mark: Option<usize>) -> Refusal {
    let site = super::site(rules, input, None, mark, &Forms::default());
    Refusal::new(Stage::Ingestion, "mark-rewrites-text", vec![site])
}

/// In a review the candidate equals the staged text but for the nodes that were marked.
pub fn rewrites_nothing<R: Rules>(
    rules: R,
    input: &Input,
    staged: &Parsed,
    candidate: &Parsed,
    named: &[(Name, Target)],
) -> Result<(), Refusal> {
    let mut expected = staged.clone();
    for (name, target) in named {
        if let Some(node) = expected.node_mut(&target.spot) {
            node.replace(reference(name));
        }
    }
    let holds = |expected: &Parsed, document: usize, place: &[usize]| {
        expected
            .embedded
            .iter()
            .any(|one| one.holder.document == document && one.place == place)
    };
    let documents = expected.stream.documents.len() == candidate.stream.documents.len();
    let outer = expected
        .stream
        .documents
        .iter()
        .zip(&candidate.stream.documents)
        .enumerate()
        .all(|(document, (before, after))| {
            same_text(before, after, &mut Vec::new(), &|place| {
                holds(&expected, document, place)
            })
        });
    let inner = candidate.embedded.iter().all(|after| {
        let before = expected
            .embedded
            .iter()
            .find(|one| one.holder == after.holder);
        before
            .is_some_and(|before| same_text(&before.root, &after.root, &mut Vec::new(), &|_| false))
    });
    if rules.holds(Rule::MarkRewritesNothing, documents && outer && inner) {
        return Ok(());
    }
    let mark = named.iter().find_map(|(_, target)| target.mark);
    Err(rewrites(rules, input, mark))
}

/// Equality of what two trees say: texts, tags, anchors and comments. The texts of
/// embedded documents are compared as trees.
fn same_text(
    before: &Node,
    after: &Node,
    place: &mut Vec<usize>,
    embedded: &dyn Fn(&[usize]) -> bool,
) -> bool {
    let about = before.tag == after.tag
        && before.anchor == after.anchor
        && before.comments == after.comments;
    let content = match (&before.content, &after.content) {
        (Content::Scalar(before), Content::Scalar(after)) => embedded(place) || before == after,
        (Content::Alias(before), Content::Alias(after)) => before == after,
        (Content::Sequence(_), Content::Sequence(_))
        | (Content::Mapping(_), Content::Mapping(_)) => {
            let mut step = 0;
            loop {
                match (before.child(step), after.child(step)) {
                    (None, None) => break true,
                    (Some(before), Some(after)) => {
                        place.push(step);
                        let same = same_text(before, after, place, embedded);
                        place.pop();
                        if !same {
                            break false;
                        }
                    }
                    _ => break false,
                }
                step += 1;
            }
        }
        _ => false,
    };
    about && content
}
