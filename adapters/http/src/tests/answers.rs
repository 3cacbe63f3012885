//! The outermost layer, over a router of a few handlers.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router, middleware};
use bronzeward_core::id::{EpochId, RequestId};
use bronzeward_core::problem::{Problem, ProblemCode};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::answer::{EpochRead, EpochReads, RequestIds, finish};
use crate::problem::{Challenge, Refused};

const EPOCH: u128 = 7;

fn read(recovery_mode: bool) -> EpochRead {
    EpochRead {
        epoch: EpochId::from_bits(EPOCH),
        recovery_mode,
    }
}

/// Reports a read and answers with a problem of the code.
async fn refused(reads: EpochReads, code: ProblemCode) -> Response {
    reads.report(read(false));
    Refused::from(Problem::new(code)).into_response()
}

fn router() -> Router {
    let fine = |Extension(reads): Extension<EpochReads>| async move {
        reads.report(EpochRead {
            epoch: EpochId::from_bits(1),
            recovery_mode: false,
        });
        reads.report(read(true));
        "fine"
    };
    let of = |code: ProblemCode| {
        get(move |Extension(reads): Extension<EpochReads>| refused(reads, code))
    };
    Router::new()
        .route("/livez", get(|| async { StatusCode::OK }))
        .route("/fine", get(fine))
        .route("/conflict", of(ProblemCode::Conflict))
        .route("/revoked", of(ProblemCode::IdentityRevoked))
        .route("/nobody", of(ProblemCode::Unauthenticated))
        .route("/forbidden", of(ProblemCode::Forbidden))
        .route(
            "/anonymous",
            get(|| async { Refused::unauthenticated(Challenge::None) }),
        )
        .route(
            "/unread",
            get(|| async { Refused::from(Problem::dependency_unavailable("No state was read.")) }),
        )
        .layer(middleware::from_fn_with_state(
            RequestIds::new(|| 5),
            finish,
        ))
}

async fn ask(path: &str) -> (StatusCode, HeaderMap, Vec<u8>) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    (parts.status, parts.headers, body)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

// covers-part: PA-API-6 (the layer; the routes join it with their handlers)
#[tokio::test]
async fn every_answer_but_liveness_has_its_identifier_and_no_store() {
    let id = RequestId::from_bits(5).to_string();
    for path in [
        "/fine",
        "/conflict",
        "/revoked",
        "/nobody",
        "/anonymous",
        "/unread",
        "/absent",
    ] {
        let (_, headers, _) = ask(path).await;
        assert_eq!(
            text(&headers, "bronzeward-request-id"),
            Some(id.as_str()),
            "{path}"
        );
        assert_eq!(text(&headers, "cache-control"), Some("no-store"), "{path}");
        assert!(text(&headers, "set-cookie").is_none());
        assert!(
            headers
                .keys()
                .all(|name| !name.as_str().starts_with("access-control"))
        );
    }
    let (status, headers, body) = ask("/livez").await;
    assert_eq!(status, StatusCode::OK);
    for name in ["bronzeward-request-id", "cache-control", "bronzeward-epoch"] {
        assert_eq!(text(&headers, name), None, "{name}");
    }
    assert!(body.is_empty());
}

// covers-part: PA-API-6 (the epoch of the deciding read, and where there is none)
#[tokio::test]
async fn the_epoch_is_that_of_the_last_read_and_is_kept_from_a_caller_who_is_nobody() {
    let epoch = EpochId::from_bits(EPOCH).to_string();
    let (_, headers, body) = ask("/fine").await;
    assert_eq!(text(&headers, "bronzeward-epoch"), Some(epoch.as_str()));
    assert_eq!(text(&headers, "bronzeward-recovery-mode"), Some("true"));
    assert_eq!(body, b"fine");
    for path in ["/conflict", "/forbidden"] {
        let (_, headers, _) = ask(path).await;
        assert_eq!(
            text(&headers, "bronzeward-epoch"),
            Some(epoch.as_str()),
            "{path}"
        );
        assert_eq!(text(&headers, "bronzeward-recovery-mode"), None);
    }
    for path in ["/nobody", "/revoked", "/anonymous", "/unread"] {
        let (_, headers, _) = ask(path).await;
        assert_eq!(text(&headers, "bronzeward-epoch"), None, "{path}");
        assert_eq!(text(&headers, "bronzeward-recovery-mode"), None, "{path}");
    }
}

// covers-part: PA-API-5 (instance is the request's identifier)
#[tokio::test]
async fn a_refusal_is_rendered_as_a_problem_whose_instance_is_the_request() {
    let (status, headers, body) = ask("/conflict").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(
        text(&headers, "content-type"),
        Some("application/problem+json")
    );
    let document: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(document["type"], "urn:bronzeward:problem:conflict");
    assert_eq!(document["status"], 409);
    assert_eq!(
        Some(document["instance"].as_str().unwrap()),
        text(&headers, "bronzeward-request-id")
    );
    let length = text(&headers, "content-length").map(|length| length.parse::<usize>().unwrap());
    assert!(length.is_none_or(|length| length == body.len()));
}

#[tokio::test]
async fn a_401_challenges_with_an_error_only_for_a_credential_that_was_sent() {
    let (status, headers, _) = ask("/anonymous").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert_eq!(text(&headers, "www-authenticate"), Some("Bearer"));
    let (_, headers, _) = ask("/nobody").await;
    assert_eq!(
        text(&headers, "www-authenticate"),
        Some("Bearer error=\"invalid_token\"")
    );
    let (_, headers, _) = ask("/revoked").await;
    assert_eq!(text(&headers, "www-authenticate"), None);
}
