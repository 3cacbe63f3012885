//! What an answer means: the one place of it, for both clients (EaR 3.5, PA §3.3).
//!
//! Pure functions over what a call ended with. They read a status's text, since Talos
//! tells its refusals apart by text alone (facts 4.1), and return a class: the text goes
//! no further.

use bronzeward_core::attempt::ResponseClass;
use bronzeward_engine::ports::node::{NodeCode, Unread, UnreadClass};
use tonic::Code;

/// What is known of the end of an ApplyConfiguration call.
pub enum Ended<'a> {
    /// The node sent this status.
    Refusal { code: i32, text: &'a str },
    /// The node answered OK.
    Accepted(Accepted),
    /// The node sent no status that could be read.
    Ours,
}

/// What an OK answer says beside its text.
#[derive(Clone, Copy)]
pub struct Accepted {
    pub messages: usize,
    /// A message that stands for a failed node: only routing could make one.
    pub failed_node: bool,
    /// The mode that was used is the one that was asked for.
    pub mode_as_asked: bool,
}

/// The table of EaR 3.5. Codes that it does not name account for nothing.
pub fn response_class(ended: &Ended<'_>) -> ResponseClass {
    match ended {
        Ended::Accepted(answer) => {
            if answer.messages == 1 && !answer.failed_node && answer.mode_as_asked {
                ResponseClass::Accepted
            } else {
                ResponseClass::Transport
            }
        }
        Ended::Refusal { code, text } => match Code::from_i32(*code) {
            Code::InvalidArgument => refusal_class(text),
            Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::Unknown
            | Code::Internal => ResponseClass::Answered,
            Code::Ok
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::NotFound
            | Code::AlreadyExists
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
            | Code::Unauthenticated => ResponseClass::Transport,
        },
        Ended::Ours => ResponseClass::Transport,
    }
}

/// InvalidArgument, by the step of facts 4.1 that refused. The immediate refusal is asked
/// for first: its diff may hold any text, but only after its own first words. The others
/// are recognised by how their first line begins or ends, never by what may quote a
/// configuration; a text that is not recognised proves nothing.
fn refusal_class(text: &str) -> ResponseClass {
    const IMMEDIATE: &str = "this config change can't be applied in immediate mode";
    const LOADING: [&str; 4] = [
        "error decoding document",
        "decode error",
        "duplicate document",
        "config not found",
    ];
    const NO_MACHINE: &str = "the applied machine configuration doesn't contain v1alpha1 config";
    if text.starts_with(IMMEDIATE) {
        return ResponseClass::RefusedImmediate;
    }
    let loading = LOADING.iter().any(|begin| text.starts_with(begin));
    let first = text.lines().next().unwrap_or_default();
    let validating = first.ends_with("error occurred:") || first.ends_with("errors occurred:");
    if loading || text.starts_with(NO_MACHINE) || validating {
        ResponseClass::RefusedValidation
    } else {
        ResponseClass::Answered
    }
}

/// Why a read brought no value (PA §3.3).
pub fn unread(code: NodeCode) -> Unread {
    let class = if code == NodeCode::MALFORMED {
        UnreadClass::Malformed
    } else {
        // Everything that ends a connection looks, to a caller, like a silent endpoint.
        UnreadClass::Unreachable
    };
    Unread { class, code }
}

/// The same, for a status that the node sent.
pub fn unread_status(code: i32) -> Unread {
    let class = match Code::from_i32(code) {
        Code::Unavailable | Code::DeadlineExceeded => UnreadClass::Unreachable,
        Code::PermissionDenied | Code::Unauthenticated => UnreadClass::Denied,
        Code::NotFound => UnreadClass::Absent,
        Code::Ok => UnreadClass::Malformed,
        Code::Cancelled
        | Code::Unknown
        | Code::InvalidArgument
        | Code::AlreadyExists
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss => UnreadClass::Failed,
    };
    Unread {
        class,
        code: NodeCode::grpc(code),
    }
}
