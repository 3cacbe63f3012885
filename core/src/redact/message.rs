//! What may be shown of a message of the machinery's (IC §8.3 "Messages").
//!
//! The same step on the trace pass gives the same message with stand-ins where the real
//! one quotes values. Where the two agree around the quotes, and in one way only, each
//! quote becomes its reference's token; what that does not explain is withheld. Never in
//! this module: a text that was withheld, in any form.

use std::ops::Range;

use crate::forms::{Forms, occurrences};
use crate::redact::{VALUE, reference_token};
use crate::resolve::{Item, Resolution};
use crate::rules::{Rule, Rules};
use crate::secret::{Kind, Scalar, base64};
use crate::standin::StandIn;

/// What a reader sees of one step's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The step said nothing.
    None,
    /// The step was not taken.
    Skipped,
    /// As the machinery wrote it: it quotes no value.
    Verbatim(String),
    Redacted(String),
    /// Only the notice is kept; the text is stored nowhere.
    Withheld,
}

/// The steps that have messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Composition,
    Validation,
}

impl Step {
    /// What stands in the place of a withheld message.
    pub const fn notice(self) -> &'static str {
        match self {
            Step::Composition => "<withheld: the composition message may quote a sensitive value>",
            Step::Validation => "<withheld: the validation message may quote a sensitive value>",
        }
    }
}

impl View {
    pub fn name(&self) -> &'static str {
        match self {
            View::None => "none",
            View::Skipped => "skipped",
            View::Verbatim(_) => "verbatim",
            View::Redacted(_) => "redacted",
            View::Withheld => "withheld",
        }
    }
}

/// A place of the trace message where a stand-in is quoted.
struct Quote {
    at: Range<usize>,
    item: usize,
    /// What the real message must read there.
    real: String,
}

/// Decides what is shown of a message. `sources` is how many sources the step read, the
/// import base first.
pub fn view<R: Rules>(
    rules: R,
    real: &str,
    trace: &str,
    resolution: &Resolution,
    sources: usize,
    forms: &Forms,
) -> View {
    let unmarked = resolution.occurrences.iter().any(|occurrence| {
        occurrence.source < sources && matches!(occurrence.kind, Kind::Boolean | Kind::Mapping)
    });
    if !rules.holds(Rule::MessageUnmarkedInput, !unmarked) {
        return View::Withheld;
    }
    let Some(quotes) = quotes(resolution, trace) else {
        return unexplained(rules, real);
    };
    if !explains(real, trace, &quotes) {
        return unexplained(rules, real);
    }
    let mut shown = String::new();
    let mut changed = !quotes.is_empty();
    let mut from = 0;
    for quote in &quotes {
        changed |= literal(&mut shown, &trace[from..quote.at.start], forms);
        shown.push_str(&token(resolution, quote.item));
        from = quote.at.end;
    }
    changed |= literal(&mut shown, &trace[from..], forms);
    let named = quotes.iter().any(|quote| {
        let occurrence = &resolution.occurrences[resolution.items[quote.item].occurrence];
        forms.equals(occurrence.version.name.as_str())
    });
    if !rules.holds(Rule::MessageSurvivors, !named && !forms.any_in(&shown)) {
        return View::Withheld;
    }
    match changed {
        true => View::Redacted(shown),
        false => View::Verbatim(shown),
    }
}

fn unexplained<R: Rules>(rules: R, real: &str) -> View {
    match rules.holds(Rule::MessageExplained, false) {
        true => View::Verbatim(real.to_string()),
        false => View::Withheld,
    }
}

/// Writes text between quotes with copies of values hidden; tells whether there were any.
fn literal(shown: &mut String, text: &str, forms: &Forms) -> bool {
    let hidden = forms.replaced(text, VALUE);
    shown.push_str(&hidden);
    hidden != text
}

fn token(resolution: &Resolution, item: usize) -> String {
    let item = &resolution.items[item];
    let version = &resolution.occurrences[item.occurrence].version;
    reference_token(version, item.member.as_ref().map(|(position, _)| *position))
}

/// Whether the real message is the trace message with every quote's value in its place,
/// and can be split around the quotes in that one way only.
fn explains(real: &str, trace: &str, quotes: &[Quote]) -> bool {
    let mut expected = String::new();
    let mut literals = Vec::new();
    let mut from = 0;
    for quote in quotes {
        let literal = &trace[from..quote.at.start];
        expected.push_str(literal);
        expected.push_str(&quote.real);
        literals.push(literal);
        from = quote.at.end;
    }
    expected.push_str(&trace[from..]);
    literals.push(&trace[from..]);
    expected == real && splits(real, &literals) == 1
}

/// In how many ways, counted to two, the text is the literals with something between
/// each two.
fn splits(text: &str, literals: &[&str]) -> usize {
    let [first, rest @ ..] = literals else {
        return 0;
    };
    if !text.starts_with(first) {
        return 0;
    }
    if rest.is_empty() {
        return usize::from(text.len() == first.len());
    }
    // ways[p]: how the literals so far can end at byte p.
    let mut ways = vec![0_usize; text.len() + 1];
    ways[first.len()] = 1;
    for (index, literal) in rest.iter().enumerate() {
        let last = index + 1 == rest.len();
        let mut next = vec![0_usize; text.len() + 1];
        let mut before = 0;
        for start in 1..=text.len() {
            before = (before + ways[start - 1]).min(2);
            let fits = text.as_bytes()[start..].starts_with(literal.as_bytes())
                && (!last || start + literal.len() == text.len());
            if fits {
                let end = start + literal.len();
                next[end] = (next[end] + before).min(2);
            }
        }
        ways = next;
    }
    ways[text.len()]
}

/// Every quote of the trace message, in order. `None` when two lie over each other.
fn quotes(resolution: &Resolution, trace: &str) -> Option<Vec<Quote>> {
    let mut found: Vec<Quote> = Vec::new();
    for (index, item) in resolution.items.iter().enumerate() {
        let encoding = resolution.occurrences[item.occurrence].encoding;
        item_quotes(trace, index, item, encoding.is_some(), &mut found);
    }
    found.sort_by_key(|quote| (quote.at.start, std::cmp::Reverse(quote.at.end)));
    let mut kept: Vec<Quote> = Vec::new();
    for quote in found {
        match kept.last() {
            Some(last) if quote.at.start < last.at.end => {
                if quote.item != last.item {
                    return None;
                }
            }
            _ => kept.push(quote),
        }
    }
    Some(kept)
}

fn item_quotes(trace: &str, index: usize, item: &Item, encoded: bool, found: &mut Vec<Quote>) {
    match (&item.scalar, &item.standin) {
        (Scalar::String(text), StandIn::Text { stored, placed, .. }) => {
            text_quotes(trace, index, stored, text.expose(), found);
            if encoded {
                text_quotes(trace, index, placed, &base64(text.expose()), found);
            }
        }
        (Scalar::Integer(number), StandIn::Integer(standin)) => {
            let digits = standin.to_string();
            for at in occurrences(trace, &digits) {
                let digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
                let before = at.start.checked_sub(1).map(|at| trace.as_bytes()[at]);
                let after = trace.as_bytes().get(at.end).copied();
                if !digit(before) && !digit(after) {
                    found.push(Quote {
                        at,
                        item: index,
                        real: number.to_string(),
                    });
                }
            }
        }
        _ => {}
    }
}

/// A stand-in shorter than this is recognised between quotation marks only.
const MARKED: usize = 5;
/// What the YAML library writes after the beginning of a long scalar.
const CUT: &str = "...";

fn text_quotes(trace: &str, index: usize, standin: &str, real: &str, found: &mut Vec<Quote>) {
    if standin.is_empty() {
        return;
    }
    // A message may quote from the beginning of any line of the value.
    let mut starts = vec![0];
    starts.extend(standin.match_indices('\n').map(|(at, _)| at + 1));
    for start in starts {
        let line = &standin[start..];
        let mut opening = MARKED.min(line.len());
        while !line.is_char_boundary(opening) {
            opening += 1;
        }
        let opening = &line[..opening];
        if opening.is_empty() || opening.contains('\n') && start > 0 {
            continue;
        }
        for style in [Spelling::Raw, Spelling::Quoted] {
            let spelled = style.spell(opening);
            for at in occurrences(trace, &spelled) {
                if let Some((length, source)) = quoted(&trace[at.start..], line, style)
                    && marked(trace, at.start..at.start + length, line.len())
                    && let Some(piece) = real.get(start..start + source)
                {
                    found.push(Quote {
                        at: at.start..at.start + length,
                        item: index,
                        real: style.spell(piece),
                    });
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Spelling {
    Raw,
    /// As Go's `%q` and JSON write it, for the characters they agree upon.
    Quoted,
}

impl Spelling {
    fn spell(self, text: &str) -> String {
        match self {
            Spelling::Raw => text.to_string(),
            Spelling::Quoted => text.chars().map(|letter| self.letter(letter)).collect(),
        }
    }

    fn letter(self, letter: char) -> String {
        match (self, letter) {
            (Spelling::Quoted, '"') => "\\\"".to_string(),
            (Spelling::Quoted, '\\') => "\\\\".to_string(),
            (Spelling::Quoted, '\n') => "\\n".to_string(),
            (Spelling::Quoted, '\r') => "\\r".to_string(),
            (Spelling::Quoted, '\t') => "\\t".to_string(),
            (_, other) => other.to_string(),
        }
    }
}

/// How much of a message is a quote of a line: all of it, or its beginning with the cut
/// sign after it. Lengths in the message and in the line.
fn quoted(message: &str, line: &str, style: Spelling) -> Option<(usize, usize)> {
    let mut ends = vec![(0, 0)];
    let (mut length, mut source) = (0, 0);
    for letter in line.chars() {
        let spelled = style.letter(letter);
        if !message[length..].starts_with(&spelled) {
            break;
        }
        length += spelled.len();
        source += letter.len_utf8();
        ends.push((length, source));
    }
    let whole = source == line.len() || line[source..].starts_with('\n');
    if whole {
        return Some((length, source));
    }
    ends.into_iter()
        .rev()
        .take_while(|(_, source)| *source >= MARKED)
        .find(|(length, _)| message[*length..].starts_with(CUT))
}

/// A short text means something only between quotation marks.
fn marked(trace: &str, at: Range<usize>, length: usize) -> bool {
    if length >= MARKED {
        return true;
    }
    let mark = |byte: Option<u8>| matches!(byte, Some(b'"' | b'\'' | b'`'));
    let before = at.start.checked_sub(1).map(|at| trace.as_bytes()[at]);
    mark(before) && mark(trace.as_bytes().get(at.end).copied())
}

#[cfg(test)]
mod tests;
