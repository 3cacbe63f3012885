//! Which node an alias stands for, and how large a document becomes written out.
//!
//! Lookup, extraction and the leaf walk ask here. Never in this module: a copy of an
//! aliased node; expansion is counted before anything follows an alias.

use std::collections::BTreeMap;

use super::{Content, Node, Place};

/// More nodes than this, once aliases are written out, and a document is refused. The
/// largest machine configurations have some thousands.
pub const EXPANDED_NODES: u64 = 200_000;
/// Deeper than this and a document is refused; every walk of this crate recurses.
pub const DEPTH: usize = 200;

/// Why a document's aliases cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfollowable {
    /// No anchor of that name stands before the alias.
    Dangling,
    /// The anchored node holds its own alias.
    Cyclic,
    /// Written out, the document is too large.
    Excessive,
    TooDeep,
}

/// One document's aliases, each with the place of the node it stands for.
#[derive(Clone, Default)]
pub struct Anchors {
    targets: BTreeMap<Place, Place>,
}

#[derive(Default)]
struct Survey<'a> {
    named: BTreeMap<&'a str, (Place, Option<u64>)>,
    targets: BTreeMap<Place, Place>,
    place: Place,
}

impl Anchors {
    /// Surveys a document in its order, since an anchor's name can be given again.
    pub fn of(root: &Node) -> Result<Anchors, Unfollowable> {
        let mut survey = Survey::default();
        survey.visit(root)?;
        Ok(Anchors {
            targets: survey.targets,
        })
    }

    /// The place that the alias at `place` stands for.
    pub fn target(&self, place: &[usize]) -> Option<&Place> {
        self.targets.get(place)
    }

    /// The aliases of the node at `target`.
    pub fn aliases_of<'a>(&'a self, target: &'a [usize]) -> impl Iterator<Item = &'a Place> {
        self.targets
            .iter()
            .filter(move |(_, stands_for)| stands_for.as_slice() == target)
            .map(|(alias, _)| alias)
    }

    /// Whether some alias stands for the node at `place` or for one around it.
    pub fn shared(&self, place: &[usize]) -> bool {
        self.targets
            .values()
            .any(|target| place.starts_with(target))
    }
}

impl<'a> Survey<'a> {
    /// Counts the nodes at and below, aliases written out.
    fn visit(&mut self, node: &'a Node) -> Result<u64, Unfollowable> {
        if self.place.len() > DEPTH {
            return Err(Unfollowable::TooDeep);
        }
        if let Some(anchor) = &node.anchor {
            self.named
                .insert(anchor.as_str(), (self.place.clone(), None));
        }
        let size = match &node.content {
            Content::Scalar(_) => 1,
            Content::Alias(name) => {
                let (target, size) = self
                    .named
                    .get(name.as_str())
                    .ok_or(Unfollowable::Dangling)?;
                let size = size.ok_or(Unfollowable::Cyclic)?;
                self.targets.insert(self.place.clone(), target.clone());
                size
            }
            Content::Sequence(_) | Content::Mapping(_) => {
                let mut size: u64 = 1;
                let mut step = 0;
                while let Some(child) = node.child(step) {
                    self.place.push(step);
                    size = size.saturating_add(self.visit(child)?);
                    self.place.pop();
                    step += 1;
                }
                size
            }
        };
        if size > EXPANDED_NODES {
            return Err(Unfollowable::Excessive);
        }
        if let Some(anchor) = &node.anchor
            && let Some(entry) = self.named.get_mut(anchor.as_str())
            && entry.0 == self.place
        {
            entry.1 = Some(size);
        }
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::walk::tests::{alias, anchored, list, map, text};

    #[test]
    fn an_alias_stands_for_the_last_anchor_of_its_name_before_it() {
        let root = map(vec![
            ("a", anchored("n", text("one"))),
            ("b", alias("n")),
            ("c", anchored("n", text("two"))),
            ("d", alias("n")),
        ]);
        let anchors = Anchors::of(&root).expect("followable");
        assert_eq!(anchors.target(&[3]), Some(&vec![1]));
        assert_eq!(anchors.target(&[7]), Some(&vec![5]));
        assert!(anchors.shared(&[1]));
        assert!(!anchors.shared(&[0]));
    }

    #[test]
    fn an_alias_of_nothing_and_an_alias_inside_its_own_anchor_are_refused() {
        assert_eq!(
            Anchors::of(&map(vec![("a", alias("n"))])).err(),
            Some(Unfollowable::Dangling)
        );
        let cyclic = map(vec![("a", anchored("n", map(vec![("b", alias("n"))])))]);
        assert_eq!(Anchors::of(&cyclic).err(), Some(Unfollowable::Cyclic));
    }

    #[test]
    fn aliases_of_aliases_are_counted_before_anything_is_written_out() {
        let mut entries = vec![("l0", anchored("l0", list(vec![text("x"); 9])))];
        let names = ["l1", "l2", "l3", "l4", "l5", "l6", "l7"];
        let mut below = "l0";
        for name in names {
            entries.push((name, anchored(name, list(vec![alias(below); 9]))));
            below = name;
        }
        assert_eq!(
            Anchors::of(&map(entries)).err(),
            Some(Unfollowable::Excessive)
        );
    }
}
