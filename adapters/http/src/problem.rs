//! The one table from problem code to status and title (PA §9.4), and a problem as an
//! answer.
//!
//! A handler returns [`Refused`]; [`crate::answer`] renders it, since only there the
//! request's identifier is known. Never in this module: a detail. Core's `Problem`
//! carries it, made of fixed words and names.

use axum::response::{IntoResponse, Response};
use bronzeward_api::bodies::problem::{Problem as Wire, TYPE_PREFIX};
use bronzeward_core::problem::{Member, Problem, ProblemCode};
use http::StatusCode;
use serde_json::{Map, Value};

/// Status and title of a code.
pub const fn status_and_title(code: ProblemCode) -> (StatusCode, &'static str) {
    match code {
        ProblemCode::InvalidRequest => (StatusCode::BAD_REQUEST, "The request is malformed"),
        ProblemCode::CursorInvalid => (StatusCode::BAD_REQUEST, "The cursor is not valid"),
        ProblemCode::Unauthenticated => (StatusCode::UNAUTHORIZED, "Not authenticated"),
        ProblemCode::Forbidden => (StatusCode::FORBIDDEN, "No role held allows this"),
        ProblemCode::IdentityRevoked => (StatusCode::FORBIDDEN, "The identity is revoked"),
        ProblemCode::NotFound => (StatusCode::NOT_FOUND, "There is no such resource or route"),
        ProblemCode::StaleInput => (StatusCode::CONFLICT, "An input changed after it was read"),
        ProblemCode::Conflict => (
            StatusCode::CONFLICT,
            "The state of the resource refuses the act",
        ),
        ProblemCode::MachineIdentityMismatch => {
            (StatusCode::CONFLICT, "The node is not the recorded machine")
        }
        ProblemCode::IngestionAbandoned => (StatusCode::CONFLICT, "The ingestion was abandoned"),
        ProblemCode::RecoveryModeEntered => (
            StatusCode::CONFLICT,
            "Recovery mode was entered before it finished",
        ),
        ProblemCode::ScopeBusy => (
            StatusCode::CONFLICT,
            "An operation holds the machine's scope",
        ),
        ProblemCode::RecoveryModeActive => (StatusCode::CONFLICT, "Recovery mode refuses the act"),
        ProblemCode::PreconditionFailed => (
            StatusCode::PRECONDITION_FAILED,
            "The resource is not the one If-Match names",
        ),
        ProblemCode::EpochMismatch => (
            StatusCode::PRECONDITION_FAILED,
            "The current epoch is not the expected one",
        ),
        ProblemCode::ValidationFailed => {
            (StatusCode::UNPROCESSABLE_ENTITY, "A rule refuses the input")
        }
        ProblemCode::IdempotencyKeyReused => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "The idempotency key belongs to another request",
        ),
        ProblemCode::PreconditionRequired => {
            (StatusCode::PRECONDITION_REQUIRED, "If-Match is required")
        }
        ProblemCode::IdempotencyKeyRequired => (
            StatusCode::PRECONDITION_REQUIRED,
            "Idempotency-Key is required",
        ),
        ProblemCode::InternalError => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "The server failed unexpectedly",
        ),
        ProblemCode::NotImplemented => (StatusCode::NOT_IMPLEMENTED, "The route is not served yet"),
        ProblemCode::DependencyUnavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Something the request needs is not available",
        ),
        ProblemCode::TalosAccessUnavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The machine cannot be reached through Talos",
        ),
        ProblemCode::TransientConflict => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The request met others too often",
        ),
        ProblemCode::EpochSuperseded => (
            StatusCode::SERVICE_UNAVAILABLE,
            "This process is of an earlier epoch",
        ),
        ProblemCode::SchemaMismatch => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The database's schema is not this server's",
        ),
    }
}

/// The document of a problem, for an answer or a failed operation's `error`:
/// `instance` is the request's identifier or the operation's.
pub fn document(problem: &Problem, instance: String) -> Wire {
    let (status, title) = status_and_title(problem.code);
    Wire {
        kind: format!("{TYPE_PREFIX}{}", problem.code),
        title: title.to_owned(),
        status: status.as_u16(),
        detail: problem.detail.clone(),
        instance,
        members: members(&problem.members),
    }
}

fn members<'a>(members: impl IntoIterator<Item = (&'a String, &'a Member)>) -> Map<String, Value> {
    members
        .into_iter()
        .map(|(name, member)| (name.clone(), value(member)))
        .collect()
}

pub(crate) fn value(member: &Member) -> Value {
    match member {
        Member::Null => Value::Null,
        Member::Bool(value) => Value::Bool(*value),
        Member::Number(value) => Value::from(*value),
        Member::Text(text) => Value::String(text.clone()),
        Member::List(items) => items.iter().map(value).collect(),
        Member::Object(inner) => Value::Object(members(inner)),
    }
}

/// Whether the request of a 401 carried a credential (RFC 6750 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    None,
    InvalidToken,
}

impl Challenge {
    pub(crate) const fn header(self) -> &'static str {
        match self {
            Challenge::None => "Bearer",
            Challenge::InvalidToken => "Bearer error=\"invalid_token\"",
        }
    }
}

/// A handler's refusal, not yet an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub(crate) problem: Problem,
    pub(crate) challenge: Option<Challenge>,
}

impl Refused {
    /// A 401, with what its challenge says.
    pub fn unauthenticated(challenge: Challenge) -> Self {
        Self {
            problem: Problem::new(ProblemCode::Unauthenticated),
            challenge: Some(challenge),
        }
    }

    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let challenge = match problem.code {
            ProblemCode::Unauthenticated => Some(Challenge::InvalidToken),
            _ => None,
        };
        Self { problem, challenge }
    }
}

impl IntoResponse for Refused {
    /// An answer whose body is still to be written, by [`crate::answer::finish`].
    fn into_response(self) -> Response {
        let (status, _) = status_and_title(self.problem.code);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
