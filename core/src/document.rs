//! The tag-preserving YAML tree that ingestion, resolution and redaction work on.
//!
//! The machinery worker parses text into this tree and encodes it back with the
//! machinery's own YAML library; nothing here reads or writes YAML text. A tree
//! keeps what that library keeps: tags, anchors, aliases, styles, comments and
//! positions (IC §2.1). Never in this module: a parser, an encoder, a merge.

use zeroize::Zeroize;

/// How a node was written; the encoder writes it the same way.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    #[default]
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
    Folded,
    Flow,
}

/// Comments as the YAML library attaches them. They can hold secrets like any text.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Comments {
    pub head: String,
    pub line: String,
    pub foot: String,
}

/// What a node holds.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    Scalar(String),
    Sequence(Vec<Node>),
    /// Entries in document order; keys are nodes, since a key can carry a tag or an anchor.
    Mapping(Vec<(Node, Node)>),
    /// The anchor's name.
    Alias(String),
}

/// One node of the tree. `line` and `column` count from 1; 0 means "made here".
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    /// The resolved short tag (`!!str`, `!!int`, `!!map` …) or the local tag as written (`!bwref`).
    pub tag: String,
    /// True when the tag stands in the text, so the encoder writes it again.
    pub tagged: bool,
    pub anchor: Option<String>,
    pub style: Style,
    pub content: Content,
    pub comments: Comments,
    pub line: u32,
    pub column: u32,
}

/// One stream: the documents of an input in order, each its root node.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Stream {
    pub documents: Vec<Node>,
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Content::Scalar(text) = &mut self.content {
            text.zeroize();
        }
    }
}
