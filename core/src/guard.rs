//! The extraction guard: no copy of an extracted value is left in the candidate
//! (IC §4.2).
//!
//! Ingestion asks before it creates a generation. The guard walks everything that would
//! be written: scalars, keys, comments, anchors, and the strings of identified embedded
//! documents. It is exact: a copy that was hashed, split or encoded is not seen. Never in
//! this module: a value in what it reports.

use std::collections::BTreeSet;

use zeroize::Zeroizing;

use crate::document::{BINARY, Content, Node};
use crate::forms::tokens_at;
use crate::path::Path;
use crate::reference::Name;
use crate::rules::{Rule, Rules};
use crate::secret::{Scalar, Value, decode_base64};
use crate::source::{Met, Parsed};

/// One value of this run.
pub struct Extracted<'a> {
    pub name: &'a Name,
    pub value: &'a Value,
    /// The mark that named it, by its position in the request.
    pub mark: Option<usize>,
}

/// Where a copy was met and whose it was.
pub struct Hit {
    pub path: Path,
    pub mark: Option<usize>,
}

/// What the guard found, by the rule that found it.
#[derive(Default)]
pub struct Findings {
    pub guard_value: Vec<Hit>,
    pub substring: Vec<Hit>,
}

struct Needle {
    text: Zeroizing<String>,
    /// The text inside a JSON or double-quoted YAML string, where that differs.
    escaped: Option<Zeroizing<String>>,
    /// The lines of a value that holds a line break, each without its indentation.
    lines: Vec<Zeroizing<String>>,
    integer: Option<i128>,
    key: bool,
    mark: Option<usize>,
}

/// Searches a candidate for every extracted value.
pub fn search<R: Rules>(rules: R, candidate: &Parsed, extracted: &[Extracted<'_>]) -> Findings {
    let own: BTreeSet<&str> = extracted.iter().map(|one| one.name.as_str()).collect();
    let needles: Vec<Needle> = extracted.iter().flat_map(needles_of).collect();
    let mut findings = Findings::default();
    candidate.every(&mut |met| {
        for needle in &needles {
            let hit = || Hit {
                path: met.path.clone(),
                mark: needle.mark,
            };
            if !rules.holds(Rule::GuardValue, !equal(met.node, needle)) {
                findings.guard_value.push(hit());
            }
            if !clear_of(rules, &met, needle, &own) {
                findings.substring.push(hit());
            }
        }
    });
    findings
}

fn needles_of(extracted: &Extracted<'_>) -> Vec<Needle> {
    let mut needles = Vec::new();
    let mut scalar = |scalar: &Scalar| {
        let text = scalar.written();
        let integer = match scalar {
            Scalar::Integer(number) => Some(*number),
            Scalar::String(_) | Scalar::Boolean(_) => None,
        };
        needles.push(needle(text, integer, false, extracted.mark));
    };
    match extracted.value {
        Value::Scalar(one) => scalar(one),
        Value::Mapping(members) => members.values().for_each(scalar),
    }
    for key in extracted.value.keys() {
        let text = Zeroizing::new(key.to_string());
        needles.push(needle(text, None, true, extracted.mark));
    }
    needles.retain(|needle| !needle.text.is_empty());
    needles
}

fn needle(
    text: Zeroizing<String>,
    integer: Option<i128>,
    key: bool,
    mark: Option<usize>,
) -> Needle {
    let escaped = serde_json::Value::from(text.as_str()).to_string();
    let escaped = Zeroizing::new(escaped[1..escaped.len() - 1].to_string());
    let lines: Vec<Zeroizing<String>> = trimmed(&text);
    Needle {
        escaped: (escaped != text).then_some(escaped),
        lines: if text.contains('\n') {
            lines
        } else {
            Vec::new()
        },
        text,
        integer,
        key,
        mark,
    }
}

/// The lines of a text without indentation, comment signs and empty ones.
fn trimmed(text: &str) -> Vec<Zeroizing<String>> {
    text.lines()
        .map(|line| line.trim_start_matches([' ', '\t', '#']).trim_end())
        .filter(|line| !line.is_empty())
        .map(|line| Zeroizing::new(line.to_string()))
        .collect()
}

/// The value comparison: a scalar read as a value, whatever its spelling. References are
/// not skipped: their content is a name, and a name must not be a value.
fn equal(node: &Node, needle: &Needle) -> bool {
    let Some(text) = node.text() else {
        return false;
    };
    text == needle.text.as_str()
        || needle.integer.is_some() && integer(text) == needle.integer
        || node.tag == BINARY
            && decode_base64(text).is_some_and(|bytes| bytes.as_slice() == needle.text.as_bytes())
}

/// An integer in any of YAML's spellings.
pub fn integer(text: &str) -> Option<i128> {
    let text: String = text.chars().filter(|letter| *letter != '_').collect();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let lower = digits.to_ascii_lowercase();
    let radix = |prefix: &str, radix: u32| {
        lower
            .strip_prefix(prefix)
            .and_then(|rest| i128::from_str_radix(rest, radix).ok())
    };
    let octal = lower.len() > 1 && lower.starts_with('0');
    let number = radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| radix("0b", 2))
        .or_else(|| if octal { radix("0", 8) } else { None })
        .or_else(|| lower.parse().ok())?;
    if digits.starts_with(['+', '-']) {
        return None;
    }
    Some(if negative { -number } else { number })
}

/// The substring search over everything a node writes.
fn clear_of<R: Rules>(rules: R, met: &Met<'_>, needle: &Needle, own: &BTreeSet<&str>) -> bool {
    let node = met.node;
    let own_reference = node.is_reference() && node.text().is_some_and(|text| own.contains(text));
    let mut clear = true;
    if let Some(text) = node.text()
        && !own_reference
    {
        let whole = !holds(text, needle);
        clear &= match needle.key {
            true => rules.holds(Rule::GuardKeys, whole),
            false => rules.holds(Rule::GuardSubstring, whole),
        };
        clear &= rules.holds(Rule::GuardEscaped, !holds_rewritten(text, needle));
    }
    for comment in [
        &node.comments.head,
        &node.comments.line,
        &node.comments.foot,
    ] {
        let copied = holds(comment, needle) || holds_rewritten(comment, needle);
        clear &= rules.holds(Rule::GuardComments, !copied);
    }
    let names = [node.anchor.as_deref(), alias(node)];
    for name in names.into_iter().flatten() {
        clear &= rules.holds(Rule::GuardSubstring, !holds(name, needle));
    }
    clear
}

fn alias(node: &Node) -> Option<&str> {
    match &node.content {
        Content::Alias(name) => Some(name),
        Content::Scalar(_) | Content::Sequence(_) | Content::Mapping(_) => None,
    }
}

fn holds(text: &str, needle: &Needle) -> bool {
    if needle.key {
        !tokens_at(text, &needle.text).is_empty()
    } else {
        text.contains(needle.text.as_str())
    }
}

/// A copy inside a text that escapes or indents it: a JSON string, a quoted scalar of an
/// unidentified document, the lines of a key under another indentation.
fn holds_rewritten(text: &str, needle: &Needle) -> bool {
    if needle.key {
        return false;
    }
    let escaped = needle
        .escaped
        .as_ref()
        .is_some_and(|escaped| text.contains(escaped.as_str()));
    if escaped || needle.lines.is_empty() {
        return escaped;
    }
    if let [line] = needle.lines.as_slice() {
        // A value that ends with a newline, met without it.
        return text.contains(line.as_str());
    }
    let lines = trimmed(text);
    lines
        .windows(needle.lines.len())
        .any(|window| window == needle.lines)
}

#[cfg(test)]
mod tests;
