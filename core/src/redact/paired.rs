//! The base side of a diff (IC §8.3 "Paired diffs").
//!
//! Whoever shows a diff of two redacted configurations passes the older side through
//! here. A hidden boolean could be read from what it replaced, and a hidden value may
//! have come from another path, so once the output hides anything, the base shows only
//! what the output shows unchanged. Never in this module: an unredacted side.

use super::{MARK, PAIRED};
use crate::document::{Content, Node, Stream, walk};
use crate::rules::{Rule, Rules};

/// Both sides are redacted configurations, parsed. Gives the base side to show.
pub fn base_side<R: Rules>(rules: R, base: &Stream, output: &Stream) -> Stream {
    let mut side = base.clone();
    if rules.holds(Rule::PairedBase, !hides(output)) {
        return side;
    }
    for (document, root) in side.documents.iter_mut().enumerate() {
        pair(root, output.documents.get(document));
    }
    side
}

/// Whether a redaction token stands anywhere, inside a longer text too: an embedded
/// document's tokens are written in its own escapes.
fn hides(output: &Stream) -> bool {
    let mut any = false;
    for root in &output.documents {
        walk::every(root, &mut |visit| {
            if let Some(text) = visit.node.text() {
                any |= text.contains(MARK) || text.contains("\\u003credacted:");
            }
        });
    }
    any
}

fn is_token(text: &str) -> bool {
    text.starts_with(MARK) && text.ends_with('>') && text.matches(['<', '>']).count() == 2
}

fn pair(base: &mut Node, output: Option<&Node>) {
    let same_text = |text: &str| {
        output.is_some_and(|output| output.text() == Some(text) && output.tag == base.tag)
    };
    let hide = match &base.content {
        Content::Scalar(text) => !same_text(text) && !is_token(text),
        Content::Alias(_) => true,
        Content::Sequence(_) | Content::Mapping(_) => false,
    };
    if hide {
        base.replace(Node::string(PAIRED));
        return;
    }
    match &mut base.content {
        Content::Scalar(_) | Content::Alias(_) => {}
        Content::Sequence(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let beside = output.filter(|output| matches!(output.content, Content::Sequence(_)));
                pair(item, beside.and_then(|output| output.child(index)));
            }
        }
        Content::Mapping(entries) => {
            for (key, value) in entries {
                let beside = output.and_then(|output| entry(output, key));
                pair(value, beside);
                let token = key.text().is_some_and(is_token);
                if beside.is_none() && !token {
                    key.replace(Node::string(PAIRED));
                }
            }
        }
    }
}

fn entry<'a>(output: &'a Node, key: &Node) -> Option<&'a Node> {
    let Content::Mapping(entries) = &output.content else {
        return None;
    };
    let same = |other: &Node| other.text().is_some() && other.text() == key.text();
    entries
        .iter()
        .find(|(other, _)| same(other))
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::walk::tests::{list, map, text};
    use crate::rules::{Enforced, Without};

    fn stream(root: Node) -> Stream {
        Stream {
            documents: vec![root],
        }
    }

    fn at<'a>(stream: &'a Stream, place: &[usize]) -> &'a str {
        stream.documents[0]
            .at(place)
            .and_then(Node::text)
            .expect("a scalar")
    }

    fn base() -> Stream {
        stream(map(vec![
            ("wipe", Node::scalar("!!bool", "false")),
            ("disk", text("/dev/sda")),
            ("old", text("moved-value")),
            ("list", list(vec![text("a"), text("b")])),
            ("token", text("<redacted:schema>")),
        ]))
    }

    fn output(wipe: &str) -> Stream {
        stream(map(vec![
            ("wipe", text(wipe)),
            ("disk", text("/dev/sda")),
            ("new", text("moved-value")),
            ("list", list(vec![text("b")])),
            ("token", text("<redacted:t@1>")),
        ]))
    }

    #[test]
    fn a_base_shows_only_what_an_output_that_hides_something_shows_unchanged() {
        let side = base_side(Enforced, &base(), &output("<redacted:install/wipe@1>"));
        assert_eq!(at(&side, &[1]), PAIRED);
        assert_eq!(at(&side, &[3]), "/dev/sda");
        assert_eq!(at(&side, &[4]), PAIRED, "a renamed key is hidden");
        assert_eq!(at(&side, &[5]), PAIRED, "a moved value is hidden");
        assert_eq!(at(&side, &[7, 0]), PAIRED, "a shifted entry is hidden");
        assert_eq!(
            at(&side, &[9]),
            "<redacted:schema>",
            "a token is shown as itself"
        );
    }

    // covers: IC-RED-3
    #[test]
    fn an_output_that_hides_nothing_pairs_nothing_and_without_the_rule_a_boolean_is_read_off() {
        let mut open = output("true");
        let token = open.documents[0].at_mut(&[9]).expect("a scalar");
        token.replace(text("plain"));
        assert_eq!(at(&base_side(Enforced, &base(), &open), &[1]), "false");
        let hidden = output("<redacted:install/wipe@1>");
        assert_eq!(at(&base_side(Enforced, &base(), &hidden), &[1]), PAIRED);
        let dropped = base_side(Without(&[Rule::PairedBase]), &base(), &hidden);
        assert_eq!(at(&dropped, &[1]), "false");
    }
}
