//! The path grammar of IC §2.2: one name for one node of a stream.
//!
//! Marks, identifications, provenance and dependency records are written in it. A path
//! names keys and a key can be a value, so a [`Path`] has neither `Debug` nor `Display`:
//! what is shown is a [`ShownPath`], which redaction alone makes. Never in this module: a
//! tree (see `document::lookup`).

/// The format of an identified embedded document (IC §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    Yaml,
    Json,
}

impl Format {
    pub const fn name(self) -> &'static str {
        match self {
            Format::Yaml => "yaml",
            Format::Json => "json",
        }
    }

    pub fn parse(text: &str) -> Option<Format> {
        match text {
            "yaml" => Some(Format::Yaml),
            "json" => Some(Format::Json),
            _ => None,
        }
    }
}

/// The part of a path inside an identified embedded document.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inner {
    pub format: Format,
    pub tokens: Vec<String>,
}

/// `doc[n]`, a pointer, and inside an embedded document `|format` and a second pointer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    pub document: usize,
    pub tokens: Vec<String>,
    pub inner: Option<Inner>,
}

/// The text names no node of any stream. It is not repeated: it may hold a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPath;

/// A path after redaction: what refusals, records and answers carry (IC §8.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShownPath(pub(crate) String);

impl ShownPath {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A path that was shown before, as a store or an envelope holds it.
    pub fn stored(text: String) -> ShownPath {
        ShownPath(text)
    }
}

impl Path {
    pub fn new(document: usize, tokens: Vec<String>) -> Path {
        Path {
            document,
            tokens,
            inner: None,
        }
    }

    /// Reads a path. The first `|` ends the outer pointer, so an outer token holds none.
    pub fn parse(text: &str) -> Result<Path, BadPath> {
        let rest = text.strip_prefix("doc[").ok_or(BadPath)?;
        let (number, rest) = rest.split_once(']').ok_or(BadPath)?;
        let (outer, inner) = match rest.split_once('|') {
            Some((outer, inner)) => (outer, Some(inner)),
            None => (rest, None),
        };
        let inner = match inner {
            None => None,
            Some(inner) => {
                let end = inner.find('/').unwrap_or(inner.len());
                let (format, pointer) = inner.split_at(end);
                Some(Inner {
                    format: Format::parse(format).ok_or(BadPath)?,
                    tokens: pointer_tokens(pointer)?,
                })
            }
        };
        Ok(Path {
            document: document_number(number)?,
            tokens: pointer_tokens(outer)?,
            inner,
        })
    }

    /// The path as its grammar writes it. It may hold a value: nothing shows it.
    pub fn written(&self) -> String {
        let mut text = format!("doc[{}]", self.document);
        write_pointer(&mut text, &self.tokens);
        if let Some(inner) = &self.inner {
            text.push('|');
            text.push_str(inner.format.name());
            write_pointer(&mut text, &inner.tokens);
        }
        text
    }

    /// The path without its inner part: the scalar that holds the embedded document.
    pub fn holder(&self) -> Path {
        Path::new(self.document, self.tokens.clone())
    }

    /// The path of a node inside the embedded document that this path holds.
    pub fn within(&self, format: Format, tokens: Vec<String>) -> Path {
        Path {
            document: self.document,
            tokens: self.tokens.clone(),
            inner: Some(Inner { format, tokens }),
        }
    }

    /// All tokens, outer then inner.
    pub fn all_tokens(&self) -> impl Iterator<Item = &String> {
        self.tokens
            .iter()
            .chain(self.inner.iter().flat_map(|inner| inner.tokens.iter()))
    }
}

fn document_number(text: &str) -> Result<usize, BadPath> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return Err(BadPath);
    }
    text.parse().map_err(|_| BadPath)
}

fn pointer_tokens(pointer: &str) -> Result<Vec<String>, BadPath> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let tokens = pointer.strip_prefix('/').ok_or(BadPath)?;
    tokens.split('/').map(unescape).collect()
}

fn unescape(token: &str) -> Result<String, BadPath> {
    let mut text = String::with_capacity(token.len());
    let mut rest = token.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '~' => match rest.next() {
                Some('0') => text.push('~'),
                Some('1') => text.push('/'),
                _ => return Err(BadPath),
            },
            other => text.push(other),
        }
    }
    Ok(text)
}

fn write_pointer(text: &mut String, tokens: &[String]) {
    for token in tokens {
        text.push('/');
        text.push_str(&escape(token));
    }
}

/// A token as a pointer writes it.
pub fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(path: &str) -> Option<Vec<String>> {
        Path::parse(path).ok().map(|path| path.tokens)
    }

    #[test]
    fn a_path_reads_back_as_it_was_written() {
        for text in [
            "doc[0]",
            "doc[0]/machine/files/0/content",
            "doc[12]/machine/nodeLabels/example.test~1role",
            "doc[0]/a~0b/~01/",
            "doc[0]/cluster/inlineManifests/0/contents|yaml/stringData/password",
            "doc[0]/c|json",
            "doc[0]/c|json/a|b/",
        ] {
            let path = Path::parse(text).expect("well formed");
            assert_eq!(path.written(), text);
        }
    }

    #[test]
    fn escapes_name_the_slash_and_the_tilde() {
        assert_eq!(
            tokens("doc[0]/example.test~1role/~01"),
            Some(vec!["example.test/role".into(), "~1".into()])
        );
    }

    #[test]
    fn a_text_that_names_no_node_is_refused() {
        for text in [
            "",
            "doc",
            "doc[]",
            "doc[x]",
            "doc[00]",
            "doc[-1]",
            "doc[0]machine",
            "doc[0]/a~2",
            "doc[0]/a~",
            "doc[0]/a|",
            "doc[0]/a|toml/b",
            "doc[0]/a|yamlb",
            "machine/token",
            "doc[99999999999999999999]",
        ] {
            assert!(Path::parse(text).is_err(), "{text}");
        }
    }
}
