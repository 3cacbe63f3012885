//! The tag-preserving YAML tree that ingestion, resolution and redaction work on.
//!
//! The machinery worker parses text into this tree and encodes it back with the
//! machinery's own YAML library; nothing here reads or writes YAML text. A tree
//! keeps what that library keeps: tags, anchors, aliases, styles, comments and
//! positions (IC §2.1). Never in this module: a parser, an encoder, a merge.

pub mod anchors;
pub mod lookup;
pub mod walk;

use zeroize::Zeroize;

/// Where a node stands in its document, from the root: see [`Node::child`].
pub type Place = Vec<usize>;

pub const STRING: &str = "!!str";
pub const INTEGER: &str = "!!int";
pub const BOOLEAN: &str = "!!bool";
pub const NULL: &str = "!!null";
pub const MAPPING: &str = "!!map";
pub const SEQUENCE: &str = "!!seq";
pub const MERGE: &str = "!!merge";
pub const BINARY: &str = "!!binary";
/// The tag of a reference (IC §5.1).
pub const REFERENCE: &str = "!bwref";

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

impl Content {
    fn emptied(&mut self) -> Content {
        std::mem::replace(self, Content::Sequence(Vec::new()))
    }
}

impl Node {
    /// A scalar made here, written plainly where the encoder can.
    pub fn scalar(tag: &str, text: impl Into<String>) -> Node {
        Node::made(tag, Content::Scalar(text.into()))
    }

    pub fn string(text: impl Into<String>) -> Node {
        Node::scalar(STRING, text)
    }

    pub fn null() -> Node {
        Node::scalar(NULL, "null")
    }

    pub fn mapping(entries: Vec<(Node, Node)>) -> Node {
        Node::made(MAPPING, Content::Mapping(entries))
    }

    pub fn sequence(items: Vec<Node>) -> Node {
        Node::made(SEQUENCE, Content::Sequence(items))
    }

    fn made(tag: &str, content: Content) -> Node {
        Node {
            tag: tag.to_string(),
            tagged: false,
            anchor: None,
            style: Style::Plain,
            content,
            comments: Comments::default(),
            line: 0,
            column: 0,
        }
    }

    /// A scalar's text; `None` for every other content.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text) => Some(text),
            Content::Sequence(_) | Content::Mapping(_) | Content::Alias(_) => None,
        }
    }

    pub fn is_reference(&self) -> bool {
        self.tag == REFERENCE
    }

    pub fn is_null(&self) -> bool {
        self.tag == NULL && matches!(self.content, Content::Scalar(_))
    }

    /// Child `step`: an entry of a sequence; of a mapping, key `2i` and value `2i + 1`.
    pub fn child(&self, step: usize) -> Option<&Node> {
        match &self.content {
            Content::Sequence(items) => items.get(step),
            Content::Mapping(entries) => {
                let (key, value) = entries.get(step / 2)?;
                Some(if step.is_multiple_of(2) { key } else { value })
            }
            Content::Scalar(_) | Content::Alias(_) => None,
        }
    }

    pub fn child_mut(&mut self, step: usize) -> Option<&mut Node> {
        match &mut self.content {
            Content::Sequence(items) => items.get_mut(step),
            Content::Mapping(entries) => {
                let (key, value) = entries.get_mut(step / 2)?;
                Some(if step.is_multiple_of(2) { key } else { value })
            }
            Content::Scalar(_) | Content::Alias(_) => None,
        }
    }

    pub fn at(&self, place: &[usize]) -> Option<&Node> {
        place.iter().try_fold(self, |node, step| node.child(*step))
    }

    pub fn at_mut(&mut self, place: &[usize]) -> Option<&mut Node> {
        let mut node = self;
        for step in place {
            node = node.child_mut(*step)?;
        }
        Some(node)
    }

    /// Puts other content in a node's stead. Anchor and comments stay: an alias of the
    /// node then stands for the new content (IC §5.4), and a comment is nobody's value.
    pub fn replace(&mut self, mut with: Node) {
        self.tag = std::mem::take(&mut with.tag);
        self.tagged = with.tagged;
        self.style = with.style;
        if let Content::Scalar(text) = &mut self.content {
            text.zeroize();
        }
        self.content = with.content.emptied();
    }
}

impl Stream {
    /// Leaves out documents that hold nothing. The machinery skips them, so they take
    /// no `doc[n]`: every path of the product counts the documents that are there.
    pub fn without_empty(mut self) -> Stream {
        self.documents.retain(|root| !root.is_null());
        self
    }
}
