//! The forms in which a resolved value is looked for (IC §6 step 7, §8.3 "Value forms").
//!
//! The output check, the value means of redaction and the redaction of paths share them:
//! what one refuses, the others hide. Integers and booleans have no form. Never in this
//! module: what happens to a copy that was found.

use std::ops::Range;

use zeroize::Zeroizing;

use crate::secret::{Value, base64, canonical_base64};

/// Copies shorter than this are too common to be looked for inside other text.
pub const FLOOR: usize = 6;

#[derive(Clone)]
struct Form {
    text: Zeroizing<String>,
    /// A mapping's key: a common word, so it counts only as a whole token.
    key: bool,
}

/// Every form of a set of values.
#[derive(Clone, Default)]
pub struct Forms {
    forms: Vec<Form>,
}

impl Forms {
    pub fn of<'a>(values: impl IntoIterator<Item = &'a Value>) -> Forms {
        let mut forms = Forms::default();
        for value in values {
            for text in value.strings() {
                forms.add(text.expose(), false);
            }
            for key in value.keys() {
                forms.add(key, true);
            }
        }
        forms
    }

    /// The stored form, its standard base64, and the canonical form of one that is
    /// base64 itself.
    fn add(&mut self, text: &str, key: bool) {
        if text.is_empty() {
            return;
        }
        let mut texts = vec![text.to_string(), base64(text)];
        texts.extend(canonical_base64(text).filter(|canonical| canonical != text));
        for text in texts {
            let known = self
                .forms
                .iter()
                .any(|form| *form.text == text && form.key == key);
            if !known {
                self.forms.push(Form {
                    text: Zeroizing::new(text),
                    key,
                });
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Whether a text is a form, of any length.
    pub fn equals(&self, text: &str) -> bool {
        self.forms.iter().any(|form| *form.text == text)
    }

    /// Whether a text holds a copy of a string's form.
    pub fn string_in(&self, text: &str) -> bool {
        self.long(false).any(|form| text.contains(form))
    }

    /// Whether a text holds a key as a whole token.
    pub fn key_in(&self, text: &str) -> bool {
        self.long(true)
            .any(|form| !tokens_at(text, form).is_empty())
    }

    pub fn any_in(&self, text: &str) -> bool {
        self.string_in(text) || self.key_in(text)
    }

    /// Whether a text holds any form, keys inside longer words too: for paths, where
    /// hiding too much costs little.
    pub fn anywhere_in(&self, text: &str) -> bool {
        self.forms
            .iter()
            .any(|form| form.text.len() >= FLOOR && text.contains(form.text.as_str()))
    }

    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.forms.iter().map(|form| form.text.as_str())
    }

    fn long(&self, key: bool) -> impl Iterator<Item = &str> {
        self.forms
            .iter()
            .filter(move |form| form.key == key && form.text.len() >= FLOOR)
            .map(|form| form.text.as_str())
    }

    /// The runs of a text that copies cover; copies that overlap or touch are one run, so
    /// that no tail of a longer copy is left.
    pub fn runs(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for form in self.long(false) {
            found.extend(occurrences(text, form));
        }
        for form in self.long(true) {
            found.extend(tokens_at(text, form));
        }
        found.sort_by_key(|run| (run.start, run.end));
        let mut runs: Vec<Range<usize>> = Vec::new();
        for next in found {
            match runs.last_mut() {
                Some(run) if next.start <= run.end => run.end = run.end.max(next.end),
                _ => runs.push(next),
            }
        }
        runs
    }

    /// The text with every run of copies written as `token`.
    pub fn replaced(&self, text: &str, token: &str) -> String {
        let mut written = String::with_capacity(text.len());
        let mut from = 0;
        for run in self.runs(text) {
            written.push_str(&text[from..run.start]);
            written.push_str(token);
            from = run.end;
        }
        written.push_str(&text[from..]);
        written
    }
}

/// Every occurrence, overlapping ones too.
pub fn occurrences(text: &str, part: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if part.is_empty() {
        return found;
    }
    let mut from = 0;
    while let Some(at) = text[from..].find(part) {
        let start = from + at;
        found.push(start..start + part.len());
        let step = text[start..].chars().next().map_or(1, char::len_utf8);
        from = start + step;
    }
    found
}

/// The occurrences whose neighbouring bytes are no ASCII letter or digit.
pub fn tokens_at(text: &str, token: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    occurrences(text, token)
        .into_iter()
        .filter(|run| {
            let before = run.start.checked_sub(1).map(|at| bytes[at]);
            let after = bytes.get(run.end).copied();
            let apart = |byte: Option<u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
            apart(before) && apart(after)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Scalar;
    use std::collections::BTreeMap;

    fn strings(texts: &[&str]) -> Forms {
        let values: Vec<Value> = texts
            .iter()
            .map(|text| Value::Scalar(Scalar::string(*text)))
            .collect();
        Forms::of(&values)
    }

    #[test]
    fn overlapping_and_touching_copies_are_one_run() {
        let forms = strings(&["abcdefgh", "ghijklmn", "opqrstuv"]);
        assert_eq!(forms.replaced("<abcdefghijklmnopqrstuv>", "#"), "<#>");
        assert_eq!(forms.replaced("abcdefgh opqrstuv", "#"), "# #");
    }

    #[test]
    fn a_short_value_is_found_whole_and_its_longer_base64_anywhere() {
        let forms = strings(&["pw1"]);
        assert!(forms.equals("pw1"));
        assert!(!forms.any_in("a pw1 b"));
        // Four bytes of base64 are still short; five bytes of value are not.
        assert!(!forms.any_in("x cHcx y"));
        assert!(strings(&["pw123"]).any_in("x cHcxMjM= y"));
    }

    #[test]
    fn a_key_counts_as_a_whole_token_only() {
        let mapping = Value::Mapping(BTreeMap::from([(
            "username".to_string(),
            Scalar::Boolean(true),
        )]));
        let forms = Forms::of([&mapping]);
        assert!(!forms.any_in("usernames"));
        assert!(!forms.any_in("1username"));
        assert!(forms.any_in("a username: b"));
        assert!(forms.any_in("the_username_"));
    }
}
