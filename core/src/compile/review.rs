//! Writes the redacted configuration, and withholds one that still shows a value
//! (IC §8.3).
//!
//! Never in this module: a rendering that was not read again and searched.

use crate::document::{Node, Stream, walk};
use crate::machinery::{Dialogue, Pause, Request, SecretField, TextFormat};
use crate::provenance::{Attribution, Composition, Pair};
use crate::redact::{MARK, configuration};
use crate::rules::{Rule, Rules};

use super::Known;
use super::records::Review;

pub fn render<R: Rules>(
    dialogue: &mut Dialogue<'_>,
    known: &Known<'_, R>,
    real: &Composition,
    pairs: &[Pair],
    attribution: &Attribution,
    schema: &[SecretField],
) -> Result<Review, Pause> {
    let mut trees = configuration::redacted(
        known.rules,
        &known.resolution,
        real,
        pairs,
        attribution,
        schema,
        &known.forms,
    );
    let requests = trees.embedded.iter().map(|opened| Request::Encode {
        format: TextFormat::Embedded(real.embedded[opened.position].format),
        stream: Stream {
            documents: vec![opened.root.clone()],
        },
    });
    let answers = dialogue.ask(requests.collect())?;
    for (opened, answer) in trees.embedded.iter().zip(answers) {
        let Ok(text) = answer.text()? else {
            return Ok(Review::Withheld);
        };
        let document = trees.stream.documents.get_mut(opened.document);
        if let Some(holder) = document.and_then(|root| root.at_mut(&opened.place)) {
            let style = holder.style;
            let mut written = Node::string(text.expose());
            written.style = style;
            holder.replace(written);
        }
    }
    let request = Request::Encode {
        format: TextFormat::Stream,
        stream: trees.stream.clone(),
    };
    let mut answers = dialogue.ask(vec![request])?;
    let Ok(text) = answers.pop().ok_or(Pause::Misanswered)?.text()? else {
        return Ok(Review::Withheld);
    };
    let request = Request::Parse {
        format: TextFormat::Stream,
        text: text.clone(),
    };
    let mut answers = dialogue.ask(vec![request])?;
    let Ok(read) = answers.pop().ok_or(Pause::Misanswered)?.parsed()? else {
        return Ok(Review::Withheld);
    };
    let inner = trees.embedded.iter().map(|opened| &opened.root);
    let open = !shows(known, read.documents.iter().chain(inner));
    match known.rules.holds(Rule::RenderingChecked, open) {
        true => Ok(Review::Shown(text.expose().to_string())),
        false => Ok(Review::Withheld),
    }
}

/// Whether a rendering still holds a value, names a reference whose name is one, or could
/// be mistaken for having hidden one: a value that is written like a token.
fn shows<'a, R: Rules>(known: &Known<'_, R>, roots: impl Iterator<Item = &'a Node>) -> bool {
    let occurrences = &known.resolution.occurrences;
    let named = occurrences
        .iter()
        .any(|occurrence| known.forms.equals(occurrence.version.name.as_str()));
    let token_like = known.forms.all().any(|form| form.contains(MARK));
    let mut held = false;
    for root in roots {
        walk::every(root, &mut |visit| {
            if let Some(text) = visit.node.text() {
                held |= known.forms.any_in(text);
            }
        });
    }
    named || token_like || held
}
