//! What the pure code asks of Talos's machinery, and how the asking is driven.
//!
//! Ingestion and compilation are decisions over what the machinery parses, composes and
//! validates. They are written straight down against a [`Dialogue`]: a question whose
//! answer is not known yet stops the decision with the questions to ask, the engine asks
//! them of the renderer and runs the decision again from its start. A decision is a pure
//! function of its inputs and the answers so far, so running it again goes the same way;
//! a run costs little beside one composition. Never in this module: a channel, a
//! deadline, or a text of the machinery that is shown (IC §8.3 decides that).

#[cfg(test)]
pub(crate) mod toy;

use std::sync::Arc;

use crate::document::Stream;
use crate::path::Format;
use crate::refusal::Refusal;
use crate::secret::Plaintext;

/// The platform modes a configuration is validated in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    Metal,
    Container,
    Cloud,
}

/// How a text is parsed or a tree is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// A stream of documents: a configuration or a fragment.
    Stream,
    /// One identified embedded document. Parsing reads both as YAML (IC §5.4).
    Embedded(Format),
    /// An embedded document as a sanitized source keeps it: YAML whatever its format,
    /// since a tagged value is no JSON.
    Authored,
}

/// What a text is loaded as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Base,
    Fragment,
}

/// One question. Texts and trees in it hold values.
#[derive(Clone)]
pub enum Request {
    Parse {
        format: TextFormat,
        text: Plaintext,
    },
    Encode {
        format: TextFormat,
        stream: Stream,
    },
    /// The fields the machinery marks secret; references are read as nulls.
    SecretFields {
        role: Role,
        text: Plaintext,
    },
    /// Whether the machinery loads the text, references read as nulls.
    Check {
        role: Role,
        text: Plaintext,
    },
    /// Composition of reference-free texts; with no fragment, the base encoded again.
    Compose {
        base: Plaintext,
        fragments: Vec<Plaintext>,
    },
    Validate {
        configuration: Plaintext,
        mode: Mode,
    },
    /// 128 bits of the entropy port, for a name.
    Mint,
}

/// A field the machinery marks secret, by its place in the text that was asked about.
#[derive(Clone)]
pub struct SecretField {
    pub document: usize,
    pub tokens: Vec<String>,
}

/// What the machinery says of a configuration.
#[derive(Clone)]
pub struct Verdict {
    pub warnings: Vec<Plaintext>,
    /// None: the configuration is valid.
    pub errors: Vec<Plaintext>,
    /// The kubelet's image, the machinery's default where none is set.
    pub kubelet_image: Plaintext,
    /// The image's tag where it is a plain release, as `v1.36.2`.
    pub kubernetes_version: Option<String>,
    pub kubernetes: Window,
    /// Whether a v1alpha1 document is there: without one no node boots.
    pub complete: bool,
}

/// What the machinery's compatibility window says of the kubelet's image (IC §10.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    Inside,
    Outside,
    /// The image names no version.
    Unreadable,
}

/// Why an answer is none. The classes that the product tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A stated limit.
    Limit,
    /// No YAML, no single document, an alias that cannot be followed.
    Syntax,
    DuplicateKey,
    KeyNotScalar,
    /// The tree has no text that reads back as it, or no JSON.
    Unwritable,
    /// The machinery does not load or compose it.
    Load,
    /// A list of JSON6902 operations.
    JsonPatch,
    /// A `$patch` that is none, or that deletes what is not there.
    Directive,
    /// The fragment holds no document.
    EmptyFragment,
    LocalTag,
    /// The machinery panicked; there is no message.
    Panicked,
}

/// A refusal of the machinery's. Its message may quote values.
#[derive(Clone)]
pub struct Rejected {
    pub class: Class,
    pub document: Option<usize>,
    pub line: u32,
    /// Which fragment of a composition; `None` when it is the base or the output.
    pub fragment: Option<usize>,
    pub message: Plaintext,
}

#[derive(Clone)]
pub enum Answer {
    /// Shared, since every run of a decision reads it again.
    Parsed(Arc<Stream>),
    Text(Plaintext),
    SecretFields(Vec<SecretField>),
    Accepted,
    Verdict(Verdict),
    Minted([u8; 16]),
    Rejected(Rejected),
}

/// Why a decision has not ended: it needs answers, or it was refused.
pub enum Pause {
    Ask(Vec<Request>),
    Refuse(Box<Refusal>),
    /// An answer does not fit its question: a fault of the renderer's client.
    Misanswered,
}

impl From<Refusal> for Pause {
    fn from(refusal: Refusal) -> Pause {
        Pause::Refuse(Box::new(refusal))
    }
}

/// The answers so far, in waves of questions that were asked together.
#[derive(Default)]
pub struct Transcript {
    waves: Vec<Vec<Answer>>,
}

impl Transcript {
    /// Takes the answers to the questions that the last run asked, in their order.
    pub fn answer(&mut self, answers: Vec<Answer>) {
        self.waves.push(answers);
    }
}

/// One run's reading of the transcript.
pub struct Dialogue<'a> {
    transcript: &'a Transcript,
    next: usize,
}

impl<'a> Dialogue<'a> {
    pub fn new(transcript: &'a Transcript) -> Dialogue<'a> {
        Dialogue {
            transcript,
            next: 0,
        }
    }

    /// Asks several questions together. No question, no wave.
    pub fn ask(&mut self, requests: Vec<Request>) -> Result<Vec<Answer>, Pause> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        match self.transcript.waves.get(self.next) {
            None => Err(Pause::Ask(requests)),
            Some(answers) if answers.len() == requests.len() => {
                self.next += 1;
                Ok(answers.clone())
            }
            Some(_) => Err(Pause::Misanswered),
        }
    }
}

impl Answer {
    pub fn parsed(self) -> Result<Result<Arc<Stream>, Rejected>, Pause> {
        match self {
            Answer::Parsed(stream) => Ok(Ok(stream)),
            Answer::Rejected(rejected) => Ok(Err(rejected)),
            _ => Err(Pause::Misanswered),
        }
    }

    pub fn text(self) -> Result<Result<Plaintext, Rejected>, Pause> {
        match self {
            Answer::Text(text) => Ok(Ok(text)),
            Answer::Rejected(rejected) => Ok(Err(rejected)),
            _ => Err(Pause::Misanswered),
        }
    }

    pub fn accepted(self) -> Result<Result<(), Rejected>, Pause> {
        match self {
            Answer::Accepted => Ok(Ok(())),
            Answer::Rejected(rejected) => Ok(Err(rejected)),
            _ => Err(Pause::Misanswered),
        }
    }

    pub fn secret_fields(self) -> Result<Result<Vec<SecretField>, Rejected>, Pause> {
        match self {
            Answer::SecretFields(fields) => Ok(Ok(fields)),
            Answer::Rejected(rejected) => Ok(Err(rejected)),
            _ => Err(Pause::Misanswered),
        }
    }

    pub fn verdict(self) -> Result<Result<Verdict, Rejected>, Pause> {
        match self {
            Answer::Verdict(verdict) => Ok(Ok(verdict)),
            Answer::Rejected(rejected) => Ok(Err(rejected)),
            _ => Err(Pause::Misanswered),
        }
    }

    pub fn minted(self) -> Result<[u8; 16], Pause> {
        match self {
            Answer::Minted(bits) => Ok(bits),
            _ => Err(Pause::Misanswered),
        }
    }
}

/// Where a run of a decision stands.
pub enum Progress<T> {
    /// Ask these of the renderer, give the answers in order, and run again.
    Ask(Vec<Request>),
    Done(T),
    Refused(Box<Refusal>),
    Misanswered,
}

impl<T> From<Result<T, Pause>> for Progress<T> {
    fn from(result: Result<T, Pause>) -> Progress<T> {
        match result {
            Ok(done) => Progress::Done(done),
            Err(Pause::Ask(requests)) => Progress::Ask(requests),
            Err(Pause::Refuse(refusal)) => Progress::Refused(refusal),
            Err(Pause::Misanswered) => Progress::Misanswered,
        }
    }
}

/// A decision that is driven by answers: an ingestion's or a compilation's job.
pub trait Decision {
    type Output;

    /// Runs as far as the answers go.
    fn advance(&self) -> Progress<Self::Output>;

    /// Takes the answers to what the last run asked, in order.
    fn answer(&mut self, answers: Vec<Answer>);
}
