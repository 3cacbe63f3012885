//! Walks over a tree: every node as it is written, and every leaf as it is read.
//!
//! The guard and the authoring checks walk what is written, keys, comments and nodes
//! no path names included; provenance and redaction walk the leaves, aliases written
//! out. Never in this module: a decision about what is met.

use super::anchors::Anchors;
use super::{Content, Node, Place};

/// What a visited node is to its parent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Root,
    Key,
    Value,
    Item,
}

/// One visited node: its tokens name it, or for a key the value beside it.
pub struct Visit<'a> {
    pub node: &'a Node,
    pub part: Part,
    pub place: &'a [usize],
    pub tokens: &'a [String],
}

/// Visits every node as written, parents before children, keys before their values.
pub fn every<'a>(root: &'a Node, visit: &mut dyn FnMut(Visit<'_>)) {
    let mut place = Place::new();
    let mut tokens = Vec::new();
    descend(root, Part::Root, &mut place, &mut tokens, visit);
}

fn descend(
    node: &Node,
    part: Part,
    place: &mut Place,
    tokens: &mut Vec<String>,
    visit: &mut dyn FnMut(Visit<'_>),
) {
    visit(Visit {
        node,
        part,
        place,
        tokens,
    });
    match &node.content {
        Content::Scalar(_) | Content::Alias(_) => {}
        Content::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                place.push(index);
                tokens.push(index.to_string());
                descend(item, Part::Item, place, tokens, visit);
                tokens.pop();
                place.pop();
            }
        }
        Content::Mapping(entries) => {
            for (index, (key, value)) in entries.iter().enumerate() {
                tokens.push(key_token(key));
                place.push(2 * index);
                descend(key, Part::Key, place, tokens, visit);
                place.pop();
                place.push(2 * index + 1);
                descend(value, Part::Value, place, tokens, visit);
                place.pop();
                tokens.pop();
            }
        }
    }
}

/// A key as a path writes it. A key that is an alias is named by its anchor; one that is
/// no scalar has no name, and its mapping is refused before a path needs one.
pub fn key_token(key: &Node) -> String {
    match &key.content {
        Content::Scalar(text) | Content::Alias(text) => text.clone(),
        Content::Sequence(_) | Content::Mapping(_) => String::new(),
    }
}

/// The text of the scalar that carries an anchor. Only for keys, where no alias can be
/// followed by place; the last of a name that was given twice.
pub fn anchored_text<'a>(root: &'a Node, name: &str) -> Option<&'a str> {
    let mut found = None;
    let mut pending = vec![root];
    while let Some(node) = pending.pop() {
        if node.anchor.as_deref() == Some(name) {
            found = found.or(node.text());
        }
        let mut step = 0;
        while let Some(child) = node.child(step) {
            pending.push(child);
            step += 1;
        }
    }
    found
}

/// A leaf as it is read: a scalar, or a list or mapping that holds nothing.
pub struct Leaf<'a> {
    pub tokens: Vec<String>,
    /// Where the leaf's own node stands; behind an alias, the anchored node's.
    pub place: Place,
    pub node: &'a Node,
    /// The places of the keys on the way, the leaf's own last.
    pub keys: Vec<Place>,
}

/// Every leaf in document order, aliases written out. `None` when they cannot be.
pub fn leaves(root: &Node) -> Option<Vec<Leaf<'_>>> {
    let anchors = Anchors::of(root).ok()?;
    let mut found = Vec::new();
    let mut tokens = Vec::new();
    let mut keys = Vec::new();
    gather(
        root,
        &anchors,
        Place::new(),
        &mut tokens,
        &mut keys,
        &mut found,
    )?;
    Some(found)
}

fn gather<'a>(
    root: &'a Node,
    anchors: &Anchors,
    mut place: Place,
    tokens: &mut Vec<String>,
    keys: &mut Vec<Place>,
    found: &mut Vec<Leaf<'a>>,
) -> Option<()> {
    let mut node = root.at(&place)?;
    while let Content::Alias(_) = node.content {
        place = anchors.target(&place)?.clone();
        node = root.at(&place)?;
    }
    let children: Vec<(Option<usize>, usize, String)> = match &node.content {
        Content::Scalar(_) | Content::Alias(_) => Vec::new(),
        Content::Sequence(items) => (0..items.len())
            .map(|index| (None, index, index.to_string()))
            .collect(),
        Content::Mapping(entries) => entries
            .iter()
            .enumerate()
            .map(|(index, (key, _))| (Some(2 * index), 2 * index + 1, key_token(key)))
            .collect(),
    };
    if children.is_empty() {
        found.push(Leaf {
            tokens: tokens.clone(),
            place,
            node,
            keys: keys.clone(),
        });
        return Some(());
    }
    for (key, step, token) in children {
        let mut below = place.clone();
        if let Some(key) = key {
            below.push(key);
            keys.push(below.clone());
            below.pop();
        }
        below.push(step);
        tokens.push(token);
        gather(root, anchors, below, tokens, keys, found)?;
        tokens.pop();
        if key.is_some() {
            keys.pop();
        }
    }
    Some(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::document::{MERGE, Node};

    pub fn text(text: &str) -> Node {
        Node::string(text)
    }

    pub fn map(entries: Vec<(&str, Node)>) -> Node {
        Node::mapping(
            entries
                .into_iter()
                .map(|(key, value)| (Node::string(key), value))
                .collect(),
        )
    }

    pub fn list(items: Vec<Node>) -> Node {
        Node::sequence(items)
    }

    pub fn anchored(name: &str, mut node: Node) -> Node {
        node.anchor = Some(name.to_string());
        node
    }

    pub fn alias(name: &str) -> Node {
        let mut node = Node::string("");
        node.content = Content::Alias(name.to_string());
        node
    }

    pub fn merge(source: Node, entries: Vec<(&str, Node)>) -> Node {
        let mut node = map(entries);
        if let Content::Mapping(entries) = &mut node.content {
            entries.insert(0, (Node::scalar(MERGE, "<<"), source));
        }
        node
    }

    #[test]
    fn leaves_are_read_behind_aliases_and_empty_containers_are_leaves() {
        let root = map(vec![
            ("a", anchored("n", map(vec![("k", text("v"))]))),
            ("b", alias("n")),
            ("c", list(vec![])),
        ]);
        let leaves = leaves(&root).expect("no alias dangles");
        let paths: Vec<String> = leaves.iter().map(|leaf| leaf.tokens.join("/")).collect();
        assert_eq!(paths, ["a/k", "b/k", "c"]);
        assert_eq!(leaves[0].place, leaves[1].place);
    }
}
