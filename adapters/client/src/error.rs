//! What a call can end in beside its answer.

use bronzeward_api::bodies::problem::Problem;

/// How a request or its answer was lost. After any of these a write may have
/// committed: the caller asks again under the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// No connection; the request was not sent.
    Connect,
    TimedOut,
    /// Sent, with no whole answer.
    Lost,
}

/// A call without its answer. No variant holds a token, a body or an address.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server's refusal, with the epoch its headers named.
    #[error("{} ({})", .problem.title, .problem.status)]
    Problem {
        problem: Box<Problem>,
        epoch: Option<String>,
    },
    #[error("no answer: {0:?}")]
    Transport(Transport),
    /// An answer this client cannot read, by its status.
    #[error("an answer of status {status} that is not understood")]
    NotUnderstood { status: u16 },
    #[error("the base address is no http or https address")]
    BaseAddress,
    /// A name that would change the path it is put into.
    #[error("a path parameter is empty or not a single path segment")]
    PathParameter,
    #[error("a header value is not sendable")]
    Header,
}

impl ClientError {
    pub(crate) fn transport(error: reqwest::Error) -> Self {
        Self::Transport(if error.is_timeout() {
            Transport::TimedOut
        } else if error.is_connect() || error.is_builder() {
            Transport::Connect
        } else {
            Transport::Lost
        })
    }

    /// The problem's code, if the server refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Problem { problem, .. } => problem.code(),
            _ => None,
        }
    }

    /// The problem, if the server refused.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem { problem, .. } => Some(problem),
            _ => None,
        }
    }
}
