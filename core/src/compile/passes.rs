//! The texts of each pass, and what the machinery composes of them (IC §6 steps 4, 5;
//! §8.1).
//!
//! Every pass goes through the same encoders and the same renderer in the same order; a
//! pass is a choice of what stands in for the values. Never in this module: a judgement of
//! what was composed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::document::{Node, Stream};
use crate::machinery::{Dialogue, Pause, Rejected, Request, TextFormat};
use crate::provenance::{Composition, WrittenEmbedded};
use crate::refusal::{Refusal, Site, Stage};
use crate::resolve::{Pass, Resolution, origin};
use crate::secret::{Plaintext, Scalar};
use crate::source::Parsed;

/// A source as one pass writes it.
#[derive(Clone)]
struct Written {
    text: Plaintext,
    embedded: Vec<WrittenEmbedded>,
}

/// The sources of a composition in every pass.
pub struct Passes {
    texts: BTreeMap<(Pass, usize), Written>,
    sources: usize,
    traced: bool,
    flips: BTreeMap<usize, usize>,
}

/// A composition to ask for: a pass over the base and the first `fragments` fragments.
pub type Wanted = (Pass, usize);

impl Passes {
    /// Whether anything but booleans is traced: without it the trace pass is the real one.
    pub fn traced(&self) -> bool {
        self.traced
    }

    pub fn flips(&self) -> impl Iterator<Item = usize> + '_ {
        self.flips.keys().copied()
    }

    fn written(&self, pass: Pass, source: usize) -> Option<&Written> {
        // A source without the pass's own text reads as in the real pass.
        self.texts
            .get(&(pass, source))
            .or_else(|| self.texts.get(&(Pass::Real, source)))
    }

    fn texts(&self, (pass, fragments): Wanted) -> Option<(Plaintext, Vec<Plaintext>)> {
        let base = self.written(pass, 0)?.text.clone();
        let fragments = (1..=fragments).map(|source| {
            let written = self.written(pass, source)?;
            Some(written.text.clone())
        });
        Some((base, fragments.collect::<Option<Vec<_>>>()?))
    }

    /// The embedded documents of the whole composition, in the order of its sources. A
    /// prefix has the same list, so that positions mean the same everywhere.
    fn embedded(&self, pass: Pass) -> Vec<WrittenEmbedded> {
        (0..self.sources)
            .filter_map(|source| self.written(pass, source))
            .flat_map(|written| written.embedded.iter().cloned())
            .collect()
    }
}

/// Writes every pass's texts: embedded documents first, then the streams that hold them.
pub fn write(
    dialogue: &mut Dialogue<'_>,
    resolution: &Resolution,
    parsed: &[(Parsed, Plaintext)],
) -> Result<Passes, Pause> {
    let traced = resolution
        .items
        .iter()
        .any(|item| !matches!(item.scalar, Scalar::Boolean(_)));
    let flips: BTreeMap<usize, usize> = resolution
        .booleans()
        .into_iter()
        .map(|item| (item, resolution.source_of(item)))
        .collect();
    let mut needed: Vec<(Pass, usize)> = Vec::new();
    for source in 0..parsed.len() {
        needed.push((Pass::Real, source));
        if traced {
            needed.push((Pass::Trace, source));
        }
    }
    needed.extend(
        flips
            .iter()
            .map(|(item, source)| (Pass::Flip(*item), *source)),
    );
    let trees: Vec<Parsed> = needed
        .iter()
        .map(|(pass, source)| resolution.substituted(&parsed[*source].0, *source, *pass))
        .collect();
    let embedded = write_embedded(dialogue, &needed, &trees)?;
    let texts = write_streams(dialogue, resolution, parsed, &needed, trees, embedded)?;
    Ok(Passes {
        texts,
        sources: parsed.len(),
        traced,
        flips,
    })
}

fn write_embedded(
    dialogue: &mut Dialogue<'_>,
    needed: &[(Pass, usize)],
    trees: &[Parsed],
) -> Result<Vec<Vec<WrittenEmbedded>>, Pause> {
    let requests = trees.iter().flat_map(|trees| &trees.embedded);
    let requests = requests.map(|embedded| Request::Encode {
        format: TextFormat::Embedded(embedded.format),
        stream: Stream {
            documents: vec![embedded.root.clone()],
        },
    });
    let mut answers = dialogue.ask(requests.collect())?.into_iter();
    let mut written = Vec::new();
    for ((_, source), trees) in needed.iter().zip(trees) {
        let mut own = Vec::new();
        for embedded in &trees.embedded {
            let answer = answers.next().ok_or(Pause::Misanswered)?;
            let text = answer
                .text()?
                .map_err(|rejected| unwritable(*source, &rejected))?;
            own.push(WrittenEmbedded {
                format: embedded.format,
                text,
                root: embedded.root.clone(),
            });
        }
        written.push(own);
    }
    Ok(written)
}

fn write_streams(
    dialogue: &mut Dialogue<'_>,
    resolution: &Resolution,
    parsed: &[(Parsed, Plaintext)],
    needed: &[(Pass, usize)],
    trees: Vec<Parsed>,
    embedded: Vec<Vec<WrittenEmbedded>>,
) -> Result<BTreeMap<(Pass, usize), Written>, Pause> {
    let plain = |source: usize| {
        parsed[source].0.embedded.is_empty()
            && !resolution
                .occurrences
                .iter()
                .any(|occurrence| occurrence.source == source)
    };
    let mut requests = Vec::new();
    for (((_, source), mut trees), written) in needed.iter().zip(trees).zip(&embedded) {
        if plain(*source) {
            continue;
        }
        for (embedded, written) in trees.embedded.iter().zip(written) {
            let root = trees.stream.documents.get_mut(embedded.holder.document);
            if let Some(holder) = root.and_then(|root| root.at_mut(&embedded.place)) {
                let style = holder.style;
                let mut text = Node::string(written.text.expose());
                text.style = style;
                holder.replace(text);
            }
        }
        requests.push(Request::Encode {
            format: TextFormat::Stream,
            stream: trees.stream,
        });
    }
    let mut answers = dialogue.ask(requests)?.into_iter();
    let mut texts = BTreeMap::new();
    for ((pass, source), embedded) in needed.iter().zip(embedded) {
        // A source that nothing was replaced in is composed as its author wrote it.
        let text = match plain(*source) {
            true => parsed[*source].1.clone(),
            false => {
                let answer = answers.next().ok_or(Pause::Misanswered)?;
                answer
                    .text()?
                    .map_err(|rejected| unwritable(*source, &rejected))?
            }
        };
        texts.insert((*pass, *source), Written { text, embedded });
    }
    Ok(texts)
}

fn unwritable(source: usize, _rejected: &Rejected) -> Pause {
    let site = Site::origin(origin(source));
    Refusal::new(Stage::Resolution, "unwritable", vec![site]).into()
}

/// The output as paths count it. The machinery writes no empty document, so the tree is
/// nearly always the parsed one itself.
fn present(stream: Arc<Stream>) -> Arc<Stream> {
    match stream.documents.iter().any(Node::is_null) {
        true => Arc::new(stream.as_ref().clone().without_empty()),
        false => stream,
    }
}

/// What the machinery made of each wanted composition.
pub type Composed = BTreeMap<Wanted, Result<(Plaintext, Composition), Rejected>>;

/// Asks for compositions and reads what comes of them.
pub fn compose(
    dialogue: &mut Dialogue<'_>,
    passes: &Passes,
    wanted: &BTreeSet<Wanted>,
) -> Result<Composed, Pause> {
    let mut requests = Vec::new();
    for one in wanted {
        let (base, fragments) = passes.texts(*one).ok_or(Pause::Misanswered)?;
        requests.push(Request::Compose { base, fragments });
    }
    let answers = dialogue.ask(requests)?;
    let mut outputs: BTreeMap<Wanted, Result<Plaintext, Rejected>> = BTreeMap::new();
    for (one, answer) in wanted.iter().zip(answers) {
        outputs.insert(*one, answer.text()?);
    }
    let parses = outputs.values().filter_map(|output| output.as_ref().ok());
    let parses = parses.map(|text| Request::Parse {
        format: TextFormat::Stream,
        text: text.clone(),
    });
    let mut answers = dialogue.ask(parses.collect())?.into_iter();
    let mut composed = Composed::new();
    for (one, output) in outputs {
        let read = match output {
            Err(rejected) => Err(rejected),
            Ok(text) => {
                let answer = answers.next().ok_or(Pause::Misanswered)?;
                answer.parsed()?.map(|stream| {
                    let composition = Composition {
                        stream: present(stream),
                        embedded: passes.embedded(one.0),
                    };
                    (text, composition)
                })
            }
        };
        composed.insert(one, read);
    }
    Ok(composed)
}
