//! A source read into trees: its documents and its identified embedded documents.
//!
//! Ingestion and compilation read every text through here, so that a path means the
//! same node in both. Never in this module: a rule of authoring (see `authoring`).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document::anchors::{Anchors, Unfollowable};
use crate::document::{Node, Place, Stream, lookup, walk};
use crate::machinery::{Class, Dialogue, Pause, Rejected, Request, TextFormat};
use crate::path::{Format, Path};
use crate::refusal::{Origin, Refusal, Site, Stage};
use crate::rules::{Rule, Rules};
use crate::secret::Plaintext;

/// One identified embedded document (IC §5.4).
#[derive(Clone)]
pub struct Embedded {
    /// The scalar that holds it, in the path's own spelling.
    pub holder: Path,
    pub format: Format,
    /// Where that scalar stands in its document.
    pub place: Place,
    pub root: Node,
}

/// A source's trees.
#[derive(Clone)]
pub struct Parsed {
    pub stream: Stream,
    pub embedded: Vec<Embedded>,
    /// For each document, its position in the text, where empty ones count too.
    pub positions: Vec<usize>,
}

/// A node of a source: in a document, or in one of its embedded documents.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub document: usize,
    pub place: Place,
    /// The embedded document by its position, and the place in it.
    pub inner: Option<(usize, Place)>,
}

/// A node that was met on a walk over a whole source.
pub struct Met<'a> {
    pub spot: Spot,
    pub path: Path,
    pub part: walk::Part,
    pub node: &'a Node,
    /// The scalar holds an identified embedded document, which is walked next.
    pub holder: bool,
}

impl Parsed {
    pub fn node(&self, spot: &Spot) -> Option<&Node> {
        match &spot.inner {
            None => self.stream.documents.get(spot.document)?.at(&spot.place),
            Some((embedded, place)) => self.embedded.get(*embedded)?.root.at(place),
        }
    }

    pub fn node_mut(&mut self, spot: &Spot) -> Option<&mut Node> {
        match &spot.inner {
            None => self
                .stream
                .documents
                .get_mut(spot.document)?
                .at_mut(&spot.place),
            Some((embedded, place)) => self.embedded.get_mut(*embedded)?.root.at_mut(place),
        }
    }

    /// The root of the tree that holds a spot.
    pub fn root(&self, spot: &Spot) -> Option<&Node> {
        match &spot.inner {
            None => self.stream.documents.get(spot.document),
            Some((embedded, _)) => self.embedded.get(*embedded).map(|inner| &inner.root),
        }
    }

    /// The node a path names, aliases and merge keys followed (IC §2.2).
    pub fn find(&self, path: &Path) -> Option<Spot> {
        let root = self.stream.documents.get(path.document)?;
        let anchors = Anchors::of(root).ok()?;
        let (place, _) = lookup::find(root, &anchors, &path.tokens)?;
        let Some(inner) = &path.inner else {
            return Some(Spot {
                document: path.document,
                place,
                inner: None,
            });
        };
        let position = self.embedded.iter().position(|embedded| {
            embedded.holder.document == path.document
                && embedded.place == place
                && embedded.format == inner.format
        })?;
        let root = &self.embedded[position].root;
        let anchors = Anchors::of(root).ok()?;
        let (inner_place, _) = lookup::find(root, &anchors, &inner.tokens)?;
        Some(Spot {
            document: path.document,
            place,
            inner: Some((position, inner_place)),
        })
    }

    /// Visits every node as written, an embedded document where its holder stands.
    pub fn every(&self, visit: &mut dyn FnMut(Met<'_>)) {
        for (document, root) in self.stream.documents.iter().enumerate() {
            walk::every(root, &mut |at| {
                let path = Path::new(document, at.tokens.to_vec());
                let position = self.embedded.iter().position(|embedded| {
                    embedded.holder.document == document && embedded.place == at.place
                });
                let spot = Spot {
                    document,
                    place: at.place.to_vec(),
                    inner: None,
                };
                visit(Met {
                    spot: spot.clone(),
                    path: path.clone(),
                    part: at.part,
                    node: at.node,
                    holder: position.is_some(),
                });
                if let Some(position) = position {
                    let embedded = &self.embedded[position];
                    walk::every(&embedded.root, &mut |inside| {
                        visit(Met {
                            spot: Spot {
                                inner: Some((position, inside.place.to_vec())),
                                ..spot.clone()
                            },
                            path: path.within(embedded.format, inside.tokens.to_vec()),
                            part: inside.part,
                            node: inside.node,
                            holder: false,
                        });
                    });
                }
            });
        }
    }

    /// The references in document order: their position is an occurrence's number.
    pub fn references(&self) -> Vec<(Spot, Path)> {
        let mut found = Vec::new();
        self.every(&mut |met| {
            if met.node.is_reference() {
                found.push((met.spot, met.path));
            }
        });
        found
    }
}

/// A refusal of a text that the parser does not read. No text of it is quoted.
pub fn unread(origin: Option<Origin>, rejected: &Rejected, path: Option<&Path>) -> Refusal {
    let rule = match rejected.class {
        Class::JsonPatch => "json-patch",
        Class::LocalTag => "local-tag",
        Class::Limit => "limit",
        Class::Directive => "patch-directive",
        Class::Syntax | Class::DuplicateKey | Class::KeyNotScalar | Class::EmptyFragment => "parse",
        Class::Unwritable => "unwritable",
        Class::Load | Class::Panicked => "load",
    };
    let site = Site {
        origin,
        path: path.map(crate::redact::paths::unredacted),
        mark: None,
        line: rejected.line,
    };
    Refusal::new(Stage::Ingestion, rule, vec![site])
}

/// Reads a source: its stream, then every embedded document its declarations identify.
pub fn read<R: Rules>(
    dialogue: &mut Dialogue<'_>,
    rules: R,
    origin: Option<Origin>,
    text: &Plaintext,
    embedded: &BTreeMap<Path, Format>,
) -> Result<Parsed, Pause> {
    let mut all = read_all(dialogue, rules, &[(origin, text.clone(), embedded.clone())])?;
    all.pop().ok_or(Pause::Misanswered)
}

type Unread = (Option<Origin>, Plaintext, BTreeMap<Path, Format>);

/// Reads several sources with two rounds of questions in all.
pub fn read_all<R: Rules>(
    dialogue: &mut Dialogue<'_>,
    rules: R,
    sources: &[Unread],
) -> Result<Vec<Parsed>, Pause> {
    let requests = sources.iter().map(|(_, text, _)| Request::Parse {
        format: TextFormat::Stream,
        text: text.clone(),
    });
    let answers = dialogue.ask(requests.collect())?;
    let mut streams = Vec::new();
    let mut positions = Vec::new();
    for ((origin, _, _), answer) in sources.iter().zip(answers) {
        let stream = match answer.parsed()? {
            Ok(stream) => stream,
            Err(rejected) => return Err(unread(*origin, &rejected, None).into()),
        };
        let kept = stream.documents.iter().enumerate();
        let kept = kept.filter(|(_, root)| !root.is_null());
        positions.push(kept.map(|(position, _)| position).collect::<Vec<_>>());
        let stream = stream.as_ref().clone().without_empty();
        followable(&stream.documents, *origin, None)?;
        streams.push(stream);
    }
    let mut held = Vec::new();
    for ((origin, _, embedded), stream) in sources.iter().zip(&streams) {
        held.push(holders(rules, *origin, stream, embedded)?);
    }
    let requests = held.iter().flatten().map(|holder| Request::Parse {
        format: TextFormat::Embedded(holder.format),
        text: holder.text.clone(),
    });
    let mut answers = dialogue.ask(requests.collect())?.into_iter();
    let mut parsed = Vec::new();
    let mut positions = positions.into_iter();
    for ((origin, _, _), (stream, holders)) in sources.iter().zip(streams.into_iter().zip(held)) {
        let mut embedded = Vec::new();
        for holder in holders {
            let answer = answers.next().ok_or(Pause::Misanswered)?;
            embedded.push(embedded_document(*origin, holder, answer.parsed()?)?);
        }
        parsed.push(Parsed {
            stream,
            embedded,
            positions: positions.next().unwrap_or_default(),
        });
    }
    Ok(parsed)
}

struct Holder {
    path: Path,
    format: Format,
    place: Place,
    text: Plaintext,
}

/// The scalars that hold the identified embedded documents, each once.
fn holders<R: Rules>(
    rules: R,
    origin: Option<Origin>,
    stream: &Stream,
    embedded: &BTreeMap<Path, Format>,
) -> Result<Vec<Holder>, Pause> {
    let mut held: Vec<Holder> = Vec::new();
    for (path, format) in embedded {
        let found = stream.documents.get(path.document).and_then(|root| {
            let anchors = Anchors::of(root).ok()?;
            lookup::find(root, &anchors, &path.tokens)
        });
        let text = found
            .as_ref()
            .filter(|(_, node)| node.tag == crate::document::STRING)
            .and_then(|(_, node)| node.text());
        let twice = |held: &[Holder], place: &Place| {
            held.iter()
                .any(|other| other.path.document == path.document && &other.place == place)
        };
        let is_text = text.is_some()
            && path.inner.is_none()
            && found
                .as_ref()
                .is_some_and(|(place, _)| !twice(&held, place));
        if !rules.holds(Rule::EmbeddedIsText, is_text) {
            return Err(Refusal::new(
                Stage::Authoring,
                "embedded-target",
                vec![site(origin, path)],
            )
            .into());
        }
        if let (Some((place, _)), Some(text)) = (found, text) {
            held.push(Holder {
                path: path.clone(),
                format: *format,
                place,
                text: Plaintext::new(text.to_string()),
            });
        }
    }
    Ok(held)
}

fn embedded_document(
    origin: Option<Origin>,
    holder: Holder,
    answer: Result<Arc<Stream>, Rejected>,
) -> Result<Embedded, Pause> {
    let mut stream = match answer {
        Ok(stream) => stream.as_ref().clone(),
        Err(mut rejected) => {
            // The line is the embedded document's, not the input's.
            rejected.line = 0;
            return Err(unread(origin, &rejected, Some(&holder.path)).into());
        }
    };
    followable(&stream.documents, origin, Some(&holder.path))?;
    match (stream.documents.pop(), stream.documents.is_empty()) {
        (Some(root), true) => Ok(Embedded {
            holder: holder.path,
            format: holder.format,
            place: holder.place,
            root,
        }),
        _ => Err(Refusal::new(
            Stage::Authoring,
            "embedded-target",
            vec![site(origin, &holder.path)],
        )
        .into()),
    }
}

/// Refuses what could not be walked before anything walks it.
fn followable(
    documents: &[Node],
    origin: Option<Origin>,
    holder: Option<&Path>,
) -> Result<(), Refusal> {
    for (document, root) in documents.iter().enumerate() {
        let rule = match Anchors::of(root) {
            Ok(_) => continue,
            Err(Unfollowable::Dangling | Unfollowable::Cyclic) => "parse",
            Err(Unfollowable::Excessive | Unfollowable::TooDeep) => "limit",
        };
        let path = holder.cloned();
        let path = path.unwrap_or_else(|| Path::new(document, Vec::new()));
        return Err(Refusal::new(
            Stage::Ingestion,
            rule,
            vec![site(origin, &path)],
        ));
    }
    Ok(())
}

fn site(origin: Option<Origin>, path: &Path) -> Site {
    Site::path(origin, crate::redact::paths::unredacted(path))
}
