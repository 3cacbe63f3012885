//! From a path's tokens to the node they name.
//!
//! Marks, identifications of embedded documents and schema fields come through here.
//! Aliases and merge keys are followed, so that a path names the node that holds the
//! value, wherever it is written. Never in this module: a change of the tree.

use super::anchors::Anchors;
use super::{Content, MERGE, Node, Place};

/// Finds the node that `tokens` name (IC §2.2), with the place where it stands. The
/// place is a node's own: the alias on the way is already followed.
pub fn find<'a>(root: &'a Node, anchors: &Anchors, tokens: &[String]) -> Option<(Place, &'a Node)> {
    let mut place = Place::new();
    let mut node = follow(root, anchors, &mut place, root)?;
    for token in tokens {
        let step = step_to(root, anchors, &place, node, token)?;
        place = step;
        let here = root.at(&place)?;
        node = follow(root, anchors, &mut place, here)?;
    }
    Some((place, node))
}

fn follow<'a>(
    root: &'a Node,
    anchors: &Anchors,
    place: &mut Place,
    mut node: &'a Node,
) -> Option<&'a Node> {
    while let Content::Alias(_) = node.content {
        *place = anchors.target(place)?.clone();
        node = root.at(place)?;
    }
    Some(node)
}

fn step_to(
    root: &Node,
    anchors: &Anchors,
    place: &Place,
    node: &Node,
    token: &str,
) -> Option<Place> {
    match &node.content {
        Content::Scalar(_) | Content::Alias(_) => None,
        Content::Sequence(items) => {
            let index = index_of(token)?;
            (index < items.len()).then(|| below(place, index))
        }
        Content::Mapping(entries) => {
            // The machinery names a place behind a merge key by `<<` and what follows.
            let own = entries.iter().position(|(key, _)| match key.tag == MERGE {
                true => token == "<<",
                false => key_text(root, key) == Some(token),
            });
            if let Some(index) = own {
                return Some(below(place, 2 * index + 1));
            }
            merged(root, anchors, place, entries, token)
        }
    }
}

/// Looks behind `<<`: a mapping, an alias of one, or a list of those, the first winning.
fn merged(
    root: &Node,
    anchors: &Anchors,
    place: &Place,
    entries: &[(Node, Node)],
    token: &str,
) -> Option<Place> {
    for (index, (key, value)) in entries.iter().enumerate() {
        if key.tag != MERGE {
            continue;
        }
        let mut at = below(place, 2 * index + 1);
        let value = follow(root, anchors, &mut at, value)?;
        let sources: Vec<Place> = match &value.content {
            Content::Sequence(items) => (0..items.len()).map(|item| below(&at, item)).collect(),
            Content::Scalar(_) | Content::Mapping(_) | Content::Alias(_) => vec![at],
        };
        for mut source in sources {
            let here = root.at(&source)?;
            let mapping = follow(root, anchors, &mut source, here)?;
            if let Some(found) = step_to(root, anchors, &source, mapping, token) {
                return Some(found);
            }
        }
    }
    None
}

fn below(place: &Place, step: usize) -> Place {
    let mut below = place.clone();
    below.push(step);
    below
}

/// A key's text; a key that is an alias has its node's.
fn key_text<'a>(root: &'a Node, key: &'a Node) -> Option<&'a str> {
    match &key.content {
        Content::Scalar(text) => Some(text),
        // An alias as key names an anchored scalar; the name says which.
        Content::Alias(name) => super::walk::anchored_text(root, name),
        Content::Sequence(_) | Content::Mapping(_) => None,
    }
}

/// An index as RFC 6901 writes it: decimal, no sign, no leading zero.
fn index_of(token: &str) -> Option<usize> {
    let plain = token.bytes().all(|byte| byte.is_ascii_digit())
        && !token.is_empty()
        && (token == "0" || !token.starts_with('0'));
    if plain { token.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::walk::tests::{alias, anchored, list, map, merge, text};

    fn found(root: &Node, tokens: &[&str]) -> Option<String> {
        let anchors = Anchors::of(root).ok()?;
        let tokens: Vec<String> = tokens.iter().map(|token| token.to_string()).collect();
        find(root, &anchors, &tokens).and_then(|(_, node)| node.text().map(str::to_string))
    }

    #[test]
    fn tokens_go_through_mappings_lists_aliases_and_merge_keys() {
        let root = map(vec![
            ("base", anchored("b", map(vec![("k", text("merged"))]))),
            ("a~/b", list(vec![text("zero"), text("one")])),
            ("other", alias("b")),
            ("uses", merge(alias("b"), vec![("own", text("own"))])),
        ]);
        assert_eq!(found(&root, &["a~/b", "1"]).as_deref(), Some("one"));
        assert_eq!(found(&root, &["other", "k"]).as_deref(), Some("merged"));
        assert_eq!(found(&root, &["uses", "k"]).as_deref(), Some("merged"));
        assert_eq!(found(&root, &["uses", "own"]).as_deref(), Some("own"));
        assert_eq!(found(&root, &["a~/b", "01"]), None);
        assert_eq!(found(&root, &["a~/b", "2"]), None);
        assert_eq!(found(&root, &["base", "k", "deeper"]), None);
    }
}
