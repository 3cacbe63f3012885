//! What every answer carries (PA §9.1): the request's identifier, `no-store`, and the
//! epoch of the read that decided it; and problems as documents.
//!
//! [`finish`] is the outermost layer of the router. A handler reports the reads it
//! makes to [`EpochReads`], the last one wins. Never in this module: a status.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bronzeward_core::id::RequestId;
use bronzeward_core::problem::ProblemCode;
pub use bronzeward_engine::request::EpochRead;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::problem::{Refused, document};

pub const LIVENESS: &str = "/livez";

const REQUEST_ID: HeaderName = HeaderName::from_static("bronzeward-request-id");
const EPOCH: HeaderName = HeaderName::from_static("bronzeward-epoch");
const RECOVERY_MODE: HeaderName = HeaderName::from_static("bronzeward-recovery-mode");

/// The reads a request made, of which the last decided its answer. In the request's
/// extensions.
#[derive(Clone, Debug, Default)]
pub struct EpochReads(Arc<Mutex<Option<EpochRead>>>);

impl EpochReads {
    /// Reports a read. A committed recovery entry or exit reports what it left.
    pub fn report(&self, read: EpochRead) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
    }

    fn last(&self) -> Option<EpochRead> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where request identifiers come from: 128 random bits a call, of the composition
/// root's entropy.
#[derive(Clone)]
pub struct RequestIds(Arc<dyn Fn() -> u128 + Send + Sync>);

impl RequestIds {
    pub fn new(bits: impl Fn() -> u128 + Send + Sync + 'static) -> Self {
        Self(Arc::new(bits))
    }
}

/// The outermost layer: gives the request its identifier and completes the answer.
/// The liveness probe passes untouched.
pub async fn finish(State(ids): State<RequestIds>, mut request: Request, next: Next) -> Response {
    if request.uri().path() == LIVENESS {
        return next.run(request).await;
    }
    let id = RequestId::from_bits((ids.0)());
    let reads = EpochReads::default();
    request.extensions_mut().insert(id);
    request.extensions_mut().insert(reads.clone());
    let response = next.run(request).await;
    complete(id, reads.last(), response)
}

fn complete(id: RequestId, read: Option<EpochRead>, mut response: Response) -> Response {
    let refused = response.extensions_mut().remove::<Refused>();
    let code = refused.as_ref().map(|refused| refused.problem.code);
    if let Some(refused) = refused {
        write_problem(&mut response, &refused, id);
    }
    let headers = response.headers_mut();
    set(headers, REQUEST_ID, &id.to_string());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A caller who is nobody learns no epoch (PA §9.1).
    let nobody = matches!(
        code,
        Some(ProblemCode::Unauthenticated | ProblemCode::IdentityRevoked)
    );
    if let Some(read) = read.filter(|_| !nobody) {
        set(headers, EPOCH, &read.epoch.to_string());
        if read.recovery_mode {
            headers.insert(RECOVERY_MODE, HeaderValue::from_static("true"));
        }
    }
    response
}

fn write_problem(response: &mut Response, refused: &Refused, id: RequestId) {
    let document = document(&refused.problem, id.to_string());
    // A map of texts and numbers always serialises; an empty body would say the status.
    let body = serde_json::to_vec(&document).unwrap_or_default();
    *response.body_mut() = Body::from(body);
    let headers = response.headers_mut();
    headers.remove(http::header::CONTENT_LENGTH);
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if let Some(challenge) = refused.challenge {
        headers.insert(
            WWW_AUTHENTICATE,
            HeaderValue::from_static(challenge.header()),
        );
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // Identifiers are ASCII; nothing else is set here.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
