//! Talos's machinery, as the workflows ask it (IC §10, architecture "Renderer").
//!
//! Ingestion asks it to parse, encode, check and list secret fields; the compiler asks
//! it to compose and validate. It does all merging there is: nothing of ours composes.
//! Every text that passes here may hold values, the machinery's own messages included:
//! what may be shown of those is decided by IC §8.3 and never here. Never in this
//! module: a text in an error that can be formatted.

use std::future::Future;

use bronzeward_core::document::{Node, Stream};
use bronzeward_core::release::{Contract, MachineType};
use bronzeward_core::secret::Plaintext;

/// One request, one answer. A refusal is the machinery's verdict and is the same for the
/// same input; [`RenderError::Unavailable`] says that there was none. Neither is retried
/// here, and a caller does not retry what overran: it would overrun again.
pub trait Renderer: Send + Sync {
    /// Which machinery this is, from its own build record (IC §10.2).
    fn describe(&self) -> impl Future<Output = Result<Machinery, RenderError>> + Send;

    /// A stream of documents as a tree. Null documents are kept, in their places.
    fn parse(&self, text: &Plaintext) -> impl Future<Output = Result<Stream, RenderError>> + Send;

    /// The tree as text, written again from its own parse until that changes nothing
    /// (IC §2.3 step 5). A tree whose text would not read back as it is refused.
    fn encode(
        &self,
        stream: &Stream,
    ) -> impl Future<Output = Result<Plaintext, RenderError>> + Send;

    /// One identified embedded document as a tree. JSON is read as YAML (IC §5.4).
    fn parse_embedded(
        &self,
        format: EmbeddedFormat,
        text: &Plaintext,
    ) -> impl Future<Output = Result<Node, RenderError>> + Send;

    /// One embedded document as text: YAML indented by two, or compact JSON with sorted
    /// keys and a final newline.
    fn encode_embedded(
        &self,
        format: EmbeddedFormat,
        root: &Node,
    ) -> impl Future<Output = Result<Plaintext, RenderError>> + Send;

    /// The fields the machinery marks secret that hold a value, by their places in the
    /// text. References are read as nulls.
    fn secret_fields(
        &self,
        role: SourceRole,
        text: &Plaintext,
    ) -> impl Future<Output = Result<Vec<SecretField>, RenderError>> + Send;

    /// Whether composition would load the text, references read as nulls.
    fn check(
        &self,
        role: SourceRole,
        text: &Plaintext,
    ) -> impl Future<Output = Result<(), RenderError>> + Send;

    /// The fragments merged onto the base in order, in the machinery's own encoding. With
    /// no fragment, the base in that encoding.
    fn compose(
        &self,
        base: &Plaintext,
        fragments: &[Plaintext],
    ) -> impl Future<Output = Result<Plaintext, RenderError>> + Send;

    /// What the machinery says of a complete configuration in a platform mode.
    fn validate(
        &self,
        configuration: &Plaintext,
        mode: PlatformMode,
    ) -> impl Future<Output = Result<Validation, RenderError>> + Send;
}

/// The machinery's build record and window. A replaced module, or one without a
/// checksum, cannot be named and so publishes nothing (IC choice 34).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machinery {
    pub version: String,
    pub checksum: Option<String>,
    pub replaced: bool,
    pub contract: Contract,
    /// The machinery's default, as `v1.36.2`.
    pub kubernetes_default: String,
    /// Inclusive.
    pub kubernetes_from: String,
    /// Exclusive.
    pub kubernetes_below: String,
    pub limits: Limits,
}

/// What the renderer takes and gives at most (facts T27, T28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of one text, and of all texts of one request together.
    pub input_bytes: u64,
    pub output_bytes: u64,
    pub depth: u32,
    pub documents: u32,
    pub mapping_keys: u32,
    pub fragments: u32,
}

/// The renderer's limits. A test compares them with what the worker answers.
pub const LIMITS: Limits = Limits {
    input_bytes: 4 << 20,
    output_bytes: 16 << 20,
    depth: 100,
    documents: 1000,
    mapping_keys: 4000,
    fragments: 512,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EmbeddedFormat {
    Yaml,
    Json,
}

/// What a text is loaded as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceRole {
    /// A complete configuration, such as an import base.
    Base,
    /// A strategic-merge fragment; `$patch: delete` is read.
    Fragment,
}

/// The machine's platform mode, fixed at inventory (PA §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlatformMode {
    Metal,
    Container,
    Cloud,
}

/// A field the machinery marks secret. It holds a path and no value; a key on the path
/// can be a value all the same (IC §8.3), so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretField {
    /// Position of the document in the stream as written, null documents counted.
    pub document: usize,
    pub steps: Vec<Step>,
    pub placement: Placement,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A mapping's key, as its text.
    Key(String),
    Index(usize),
}

/// How the secret stands in its scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    Text,
    /// The scalar is the standard base64 of the secret.
    Base64,
    /// The secret is a query parameter of the URL that the scalar is.
    Url,
}

pub struct Validation {
    pub warnings: Vec<Plaintext>,
    /// One each, nested lists taken apart. None means valid.
    pub errors: Vec<Plaintext>,
    pub machine_type: Option<MachineType>,
    /// The kubelet's image: the configuration's or, where it sets none, the machinery's
    /// default. A reference may have placed it.
    pub kubelet_image: Plaintext,
    pub kubelet_image_set: bool,
    /// The image's tag if it is a plain release, as `v1.36.2` (IC choice 32).
    pub kubernetes_version: Option<String>,
    pub kubernetes: KubernetesCheck,
    /// Whether a v1alpha1 document is there: without one no node boots.
    pub complete: bool,
}

/// What the machinery's compatibility window says of the kubelet's image (IC §10.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubernetesCheck {
    Supported,
    Outside,
    /// The image names no version, or there is no machine section.
    Unreadable,
}

/// Why there is no answer.
#[derive(Clone, thiserror::Error)]
pub enum RenderError {
    #[error("the renderer refused: {}", .0.class.code())]
    Refused(Refused),
    #[error("the renderer gave no answer: {}", .0.code())]
    Unavailable(Unavailable),
}

/// The machinery, or a stated limit, said no.
#[derive(Clone)]
pub struct Refused {
    pub class: RefusedClass,
    /// Position of the document as written.
    pub document: Option<usize>,
    /// From 1, in the text at fault.
    pub line: Option<u32>,
    /// Which fragment of a composition; `None` for the base and for the output.
    pub fragment: Option<usize>,
    /// The machinery's own words, where it had any: handled like a value (IC §8.3).
    pub message: Option<Plaintext>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusedClass {
    InputTooLarge,
    OutputTooLarge,
    TooDeep,
    TooManyDocuments,
    TooManyKeys,
    Syntax,
    DuplicateKey,
    KeyNotScalar,
    /// An alias of nothing, or of a node around itself.
    Alias,
    /// An embedded document that is none, or several.
    NotOneDocument,
    /// No text reads back as the tree.
    Unwritable,
    /// JSON has no form for a value.
    NotJson,
    /// The machinery does not load it.
    Load,
    EmptyFragment,
    JsonPatch,
    /// A `$patch` that would be read differently from how it looks.
    Directive,
    LocalTag,
    /// The machinery marks a value secret whose place in the text cannot be told.
    SecretUnplaced,
    Merge,
    AbsentDeleteTarget,
    OutputDoesNotLoad,
    /// The machinery panicked. Its text is withheld always.
    Panicked,
}

impl RefusedClass {
    pub const fn code(self) -> &'static str {
        match self {
            RefusedClass::InputTooLarge => "input-too-large",
            RefusedClass::OutputTooLarge => "output-too-large",
            RefusedClass::TooDeep => "too-deep",
            RefusedClass::TooManyDocuments => "too-many-documents",
            RefusedClass::TooManyKeys => "too-many-keys",
            RefusedClass::Syntax => "syntax",
            RefusedClass::DuplicateKey => "duplicate-key",
            RefusedClass::KeyNotScalar => "key-not-scalar",
            RefusedClass::Alias => "alias",
            RefusedClass::NotOneDocument => "not-one-document",
            RefusedClass::Unwritable => "unwritable",
            RefusedClass::NotJson => "not-json",
            RefusedClass::Load => "load",
            RefusedClass::EmptyFragment => "empty-fragment",
            RefusedClass::JsonPatch => "json-patch",
            RefusedClass::Directive => "directive",
            RefusedClass::LocalTag => "local-tag",
            RefusedClass::SecretUnplaced => "secret-unplaced",
            RefusedClass::Merge => "merge",
            RefusedClass::AbsentDeleteTarget => "absent-delete-target",
            RefusedClass::OutputDoesNotLoad => "output-does-not-load",
            RefusedClass::Panicked => "panicked",
        }
    }
}

/// Why a request has no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unavailable {
    /// No worker became free in time; the request was not begun.
    Busy,
    /// No worker could be started; the request was not begun.
    Start,
    /// The request took longer than its deadline. Its worker was killed.
    Deadline,
    /// The request took more memory than a worker may use. Its worker was killed.
    Memory,
    /// The worker ended in the middle of the request.
    Crashed,
    /// The worker's answer does not fit the request. The worker was killed.
    Protocol,
    /// The renderer is being shut down.
    Stopped,
}

impl Unavailable {
    pub const fn code(self) -> &'static str {
        match self {
            Unavailable::Busy => "busy",
            Unavailable::Start => "start",
            Unavailable::Deadline => "deadline",
            Unavailable::Memory => "memory",
            Unavailable::Crashed => "crashed",
            Unavailable::Protocol => "protocol",
            Unavailable::Stopped => "stopped",
        }
    }
}

impl From<Unavailable> for RenderError {
    fn from(why: Unavailable) -> Self {
        RenderError::Unavailable(why)
    }
}

/// Classes and codes alone: a message is not for a log, and a `Result` of this error is
/// unwrapped in tests.
impl std::fmt::Debug for RenderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
