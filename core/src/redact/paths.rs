//! Paths as they are shown: a key can be a value, and values can spell a path.
//!
//! Refusals, provenance and dependency records write their paths here (IC §8.3
//! "Paths"). Never in this module: a path shown without the forms of its compilation.

use super::TOKEN;
use crate::forms::Forms;
use crate::path::{Inner, Path, ShownPath};
use crate::rules::{Rule, Rules};

/// A path of a source whose values nobody has extracted yet: as it is written. What
/// stands in a key then is text that ingestion was never told to hide.
pub fn unredacted(path: &Path) -> ShownPath {
    ShownPath(path.written())
}

/// Every path of a compilation whose values do not all decode.
pub fn withheld() -> ShownPath {
    ShownPath(TOKEN.to_string())
}

/// Writes a path with every token that shows a value hidden; a path that still spells
/// one keeps its document only.
pub fn shown<R: Rules>(rules: R, path: &Path, forms: &Forms) -> ShownPath {
    let hide = |token: &String| {
        let open = !forms.equals(token) && !forms.anywhere_in(token);
        if rules.holds(Rule::RedactPathTokens, open) {
            token.clone()
        } else {
            TOKEN.to_string()
        }
    };
    let hidden = Path {
        document: path.document,
        tokens: path.tokens.iter().map(hide).collect(),
        inner: path.inner.as_ref().map(|inner| Inner {
            format: inner.format,
            tokens: inner.tokens.iter().map(hide).collect(),
        }),
    };
    let open = !spells(&hidden, forms);
    if rules.holds(Rule::RedactPathTokens, open) {
        ShownPath(hidden.written())
    } else {
        ShownPath(format!("doc[{}]", path.document))
    }
}

/// Whether the whole of a path spells a value that no token of it holds alone.
fn spells(path: &Path, forms: &Forms) -> bool {
    let written = path.written();
    let unescaped = written.replace("~1", "/").replace("~0", "~");
    if forms.anywhere_in(&written) || forms.anywhere_in(&unescaped) {
        return true;
    }
    let tokens: Vec<&str> = path.all_tokens().map(String::as_str).collect();
    forms.all().any(|form| {
        (0..tokens.len())
            .any(|from| (from + 2..=tokens.len()).any(|to| tokens[from..to].join("/") == form))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};
    use crate::secret::{Scalar, Value};
    use std::collections::BTreeMap;

    fn forms() -> Forms {
        let mapping = BTreeMap::from([("ruff-member-key-8841".to_string(), Scalar::Integer(1))]);
        Forms::of(&[
            Value::Mapping(mapping),
            Value::Scalar(Scalar::string("spoon/bill")),
            Value::Scalar(Scalar::string("k/v")),
            Value::Scalar(Scalar::string("on")),
        ])
    }

    fn show(path: &str) -> String {
        let path = Path::parse(path).expect("well formed");
        shown(Enforced, &path, &forms()).as_str().to_string()
    }

    #[test]
    fn a_token_that_is_or_holds_a_value_is_hidden_and_the_rest_stays() {
        assert_eq!(
            show("doc[0]/a/ruff-member-key-8841/b"),
            "doc[0]/a/<redacted>/b"
        );
        assert_eq!(
            show("doc[0]/a/xruff-member-key-8841"),
            "doc[0]/a/<redacted>"
        );
        assert_eq!(
            show("doc[1]/c|yaml/on/once"),
            "doc[1]/c|yaml/<redacted>/once"
        );
        assert_eq!(show("doc[0]/machine/token"), "doc[0]/machine/token");
    }

    #[test]
    fn a_path_whose_tokens_together_spell_a_value_keeps_its_document_only() {
        assert_eq!(show("doc[2]/x/spoon/bill"), "doc[2]");
        assert_eq!(show("doc[2]/x/k/v/y"), "doc[2]");
        assert_eq!(show("doc[2]/x/spoon~1bill"), "doc[2]/x/<redacted>");
        assert_eq!(show("doc[2]/x/kk/v"), "doc[2]/x/kk/v");
    }

    #[test]
    fn without_the_rule_a_path_spells_the_value() {
        let path = Path::parse("doc[0]/a/ruff-member-key-8841").expect("path");
        let dropped = shown(Without(&[Rule::RedactPathTokens]), &path, &forms());
        assert!(dropped.as_str().contains("8841"));
    }
}
