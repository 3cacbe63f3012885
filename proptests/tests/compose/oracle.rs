//! The leak oracle: nine forms of a value, looked for in everything that is shown.
//!
//! It shares no code with the searches of the product. Never in this module: a form left
//! out because the product does not look for it, but for what the case's own literals
//! hold.

use std::collections::BTreeSet;

use bronzeward_core::secret::{Scalar, Value, base64};

/// What a case's value may look like where it should not be.
pub struct Oracle {
    /// Each form with the name of its kind.
    forms: Vec<(&'static str, String)>,
}

const WINDOW: usize = 12;

impl Oracle {
    /// `placed` names where integers and booleans stand, as the keys beside them; `open`
    /// are the texts that may be shown: base and fragments.
    pub fn new<'a>(
        values: impl IntoIterator<Item = &'a Value>,
        placed: &[String],
        open: &[&str],
    ) -> Oracle {
        let mut oracle = Oracle { forms: Vec::new() };
        for value in values {
            match value {
                Value::Scalar(scalar) => oracle.add(scalar, placed, open),
                Value::Mapping(members) => {
                    for member in members.values() {
                        oracle.add(member, placed, open);
                    }
                }
            }
        }
        oracle
    }

    fn add(&mut self, scalar: &Scalar, placed: &[String], open: &[&str]) {
        let text = match scalar {
            Scalar::String(text) => text.expose().to_string(),
            Scalar::Integer(number) => return self.beside(placed, &number.to_string(), open),
            Scalar::Boolean(truth) => return self.beside(placed, &truth.to_string(), open),
        };
        if text.is_empty() {
            return;
        }
        let json = serde_json::Value::from(text.as_str()).to_string();
        self.forms.push(("exact", text.clone()));
        self.forms.push(("base64", base64(&text)));
        self.forms
            .push(("json-escaped", json[1..json.len() - 1].to_string()));
        self.forms.push(("yaml-escaped", yaml_escaped(&text)));
        if text.contains('\n') {
            let lines = text.lines().map(str::trim).filter(|line| line.len() >= 8);
            self.forms
                .extend(lines.map(|line| ("line", line.to_string())));
        }
        if let Some(prefix) = text.get(..7) {
            self.forms.push(("prefix", format!("{prefix}...")));
        }
        let windows: BTreeSet<String> = (0..text.len())
            .filter_map(|at| text.get(at..at + WINDOW))
            .filter(|window| !open.iter().any(|open| open.contains(window)))
            .map(str::to_string)
            .collect();
        self.forms
            .extend(windows.into_iter().map(|window| ("window", window)));
    }

    /// An integer or boolean is no text of its own: only `key: value` shows it, where no
    /// literal of the case reads the same.
    fn beside(&mut self, placed: &[String], text: &str, open: &[&str]) {
        for key in placed {
            let form = format!("{key}: {text}\n");
            if !open.iter().any(|open| open.contains(&form)) {
                self.forms.push(("beside its key", form));
            }
        }
    }

    /// The kinds of forms that a text shows.
    pub fn leaks(&self, text: &str) -> Vec<&'static str> {
        let ended = format!("{text}\n");
        let found = self
            .forms
            .iter()
            .filter(|(_, form)| ended.contains(form.as_str()));
        let kinds: BTreeSet<&'static str> = found.map(|(kind, _)| *kind).collect();
        kinds.into_iter().collect()
    }

    pub fn first_form(&self) -> Option<&str> {
        self.forms.first().map(|(_, form)| form.as_str())
    }
}

fn yaml_escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\u{85}' => escaped.push_str("\\N"),
            letter if (letter as u32) > 0xffff => {
                escaped.push_str(&format!("\\U{:08X}", letter as u32));
            }
            other => escaped.push(other),
        }
    }
    escaped
}
