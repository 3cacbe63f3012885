//! Stand-ins: what the trace pass composes in the place of values (IC §8.1).
//!
//! A stand-in keeps its value's length and character classes, so that the machinery
//! decodes and validates it as it would the value, and carries an id, so that the leaf it
//! reaches is known. Provenance and the templates of messages read them back. Never in
//! this module: a value that was not replaced.

use zeroize::Zeroizing;

use crate::guard::integer;
use crate::reference::Encoding;
use crate::secret::{Scalar, base64, canonical_base64, decode_base64};

/// Ids have three digits, so a composition has at most this many stand-ins.
pub const LIMIT: usize = 1000;
/// A line shorter than this carries no id.
const HEAD: usize = 5;
/// Integers stand in from here on.
const INTEGERS: i128 = 61_000;

/// What stands in for one value.
pub enum StandIn {
    Text {
        /// The stand-in of the stored value.
        stored: Zeroizing<String>,
        /// What is placed: the same, or its encoding.
        placed: Zeroizing<String>,
        /// What a byte field writes for the placed text, where it writes another.
        canonical: Option<String>,
        /// `zqNNN`, when some line was long enough for it.
        head: Option<String>,
    },
    Integer(i128),
    /// A boolean has none: its leaf is the one that flips.
    Boolean,
}

impl StandIn {
    pub fn of(id: usize, scalar: &Scalar, encoding: Option<Encoding>) -> StandIn {
        match scalar {
            Scalar::String(text) => {
                let stored = Zeroizing::new(shape(id, text.expose()));
                let placed = Zeroizing::new(match encoding {
                    Some(Encoding::Base64) => base64(&stored),
                    None => stored.to_string(),
                });
                let head = head(id);
                let head = stored.contains(&head).then_some(head);
                StandIn::Text {
                    canonical: canonical_base64(&placed).filter(|form| form != placed.as_str()),
                    stored,
                    placed,
                    head,
                }
            }
            Scalar::Integer(_) => StandIn::Integer(INTEGERS + id as i128),
            Scalar::Boolean(_) => StandIn::Boolean,
        }
    }

    /// Whether a leaf of the traced output holds the stand-in. One with no id is found
    /// only where the leaf, or what its base64 decodes to, is the stand-in itself: every
    /// longer one of its shape would hold it.
    pub fn stands_in(&self, leaf: &str) -> bool {
        self.stands_in_read(leaf, decoded(leaf).as_ref().map(|text| text.as_str()))
    }

    /// The same for a leaf whose base64 was decoded already: a composition asks for every
    /// stand-in at every leaf.
    pub fn stands_in_read(&self, leaf: &str, decoded: Option<&str>) -> bool {
        match self {
            StandIn::Boolean => false,
            StandIn::Integer(number) => integer(leaf) == Some(*number),
            StandIn::Text {
                stored,
                placed,
                canonical,
                head,
            } => match head {
                Some(head) => {
                    let holds = |form: &str| leaf.contains(form);
                    holds(head)
                        || holds(placed)
                        || canonical.as_deref().is_some_and(holds)
                        || decoded.is_some_and(|text| text.contains(head.as_str()))
                }
                None => {
                    !placed.is_empty()
                        && (leaf == placed.as_str()
                            || canonical.as_deref() == Some(leaf)
                            || decoded == Some(stored.as_str()))
                }
            },
        }
    }

    /// Whether one of two stand-ins would be found where the other stands.
    pub fn indistinct(&self, other: &StandIn) -> bool {
        let texts = |standin: &StandIn| match standin {
            StandIn::Text { stored, placed, .. } => vec![stored.clone(), placed.clone()],
            StandIn::Integer(number) => vec![Zeroizing::new(number.to_string())],
            StandIn::Boolean => Vec::new(),
        };
        texts(other).iter().any(|text| self.stands_in(text))
            || texts(self).iter().any(|text| other.stands_in(text))
    }
}

/// What a leaf's base64 decodes to, where it is base64 of text.
pub fn decoded(leaf: &str) -> Option<Zeroizing<String>> {
    let bytes = decode_base64(leaf)?;
    std::str::from_utf8(&bytes)
        .ok()
        .map(|text| Zeroizing::new(text.to_string()))
}

/// The shape of a text, for tests of what quotes it.
#[cfg(test)]
pub(crate) fn shaped(id: usize, text: &str) -> String {
    shape(id, text)
}

fn head(id: usize) -> String {
    format!("zq{id:03}")
}

/// A text with every letter an `x`, every digit a `0` and every other byte its own; lines
/// of five bytes and more begin with the id.
fn shape(id: usize, text: &str) -> String {
    let mut shaped = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            shaped.push('\n');
        }
        let mut rest = line;
        if line.len() >= HEAD {
            shaped.push_str(&head(id));
            // A character that the head cuts in two leaves its rest as `x`, so that the
            // text stays text and keeps its length.
            let end = (HEAD..=line.len())
                .find(|end| line.is_char_boundary(*end))
                .unwrap_or(line.len());
            shaped.extend(std::iter::repeat_n('x', end - HEAD));
            rest = &line[end..];
        }
        shaped.extend(rest.chars().map(|letter| match letter {
            letter if letter.is_ascii_alphabetic() => 'x',
            digit if digit.is_ascii_digit() => '0',
            other => other,
        }));
    }
    shaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_keeps_length_classes_and_lines() {
        assert_eq!(shape(7, "RWSYN-hub-secret-7"), "zq007-xxx-xxxxxx-0");
        assert_eq!(shape(12, "ab\nabcdef\n\n12345"), "xx\nzq012x\n\nzq012");
        assert_eq!(shape(1, "a1-Z"), "x0-x");
        // The crab's four bytes begin at byte three: one is left over as x.
        let crab = "abc\u{1f980}def";
        assert_eq!(shape(1, crab), "zq001xxxxx");
        assert_eq!(shape(1, crab).len(), crab.len());
    }

    #[test]
    fn a_leaf_holds_a_stand_in_placed_encoded_again_or_inside_other_text() {
        let raw = Scalar::string("RWSYN-spare-root-bytes");
        let placed = StandIn::of(3, &raw, Some(Encoding::Base64));
        let StandIn::Text { placed: text, .. } = &placed else {
            unreachable!("a string's stand-in is text");
        };
        assert!(placed.stands_in(text));
        assert!(!placed.stands_in(&base64("zq004-xxxxx")));
        let plain = StandIn::of(4, &raw, None);
        assert!(plain.stands_in("https://zq004-xxxxx@host"));
        assert!(plain.stands_in(&base64("a zq004-xxx")));
        // Stray bits in the last character: the machinery writes them away.
        let odd = StandIn::of(5, &Scalar::string("abcdefghijkl\u{41}R=="), None);
        assert!(odd.stands_in("zq005xxxxxxxxx=="));
    }

    #[test]
    fn short_stand_ins_are_found_whole_only_and_two_of_one_shape_are_indistinct() {
        let short = StandIn::of(1, &Scalar::string("ab-1"), None);
        assert!(short.stands_in("xx-0"));
        assert!(!short.stands_in("xx-00"));
        let other = StandIn::of(2, &Scalar::string("cd-9"), None);
        assert!(short.indistinct(&other));
        let long = StandIn::of(3, &Scalar::string("ab-1 and more"), None);
        assert!(!short.indistinct(&long));
        let number = StandIn::of(4, &Scalar::Integer(9), None);
        assert!(number.stands_in("61004"));
        assert!(number.stands_in("0o167114"));
        assert!(!number.stands_in("610040"));
    }
}
