//! Bodies on their way in.

use axum::body::{Body, Bytes};
use bronzeward_api::MAX_BODY_BYTES;
use bronzeward_api::bodies::draft::CreateDraft;
use bronzeward_core::problem::{Member, Problem, ProblemCode};
use http::{HeaderMap, HeaderValue};

use crate::body;

fn json_headers() -> HeaderMap {
    HeaderMap::from_iter([(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    )])
}

async fn refusal(bytes: Vec<u8>) -> Problem {
    let json = match body::read(&json_headers(), Body::from(bytes)).await {
        Ok(json) => json,
        Err(problem) => return problem,
    };
    match body::typed::<CreateDraft>(&json) {
        Ok(_) => panic!("accepted"),
        Err(problem) => problem,
    }
}

#[tokio::test]
async fn a_refused_body_is_a_400_that_names_place_and_rule_and_no_value() {
    let body = r#"{"cluster":"hunter2","title":"t"}"#;
    let problem = refusal(body.into()).await;
    assert_eq!(problem.code, ProblemCode::InvalidRequest);
    assert_eq!(problem.members["pointer"], Member::text("/cluster"));
    assert_eq!(problem.members["rule"], Member::text("identifier-form"));
    let problem = refusal(br#"{"hunter2":1}"#.to_vec()).await;
    assert_eq!(problem.members["rule"], Member::text("unknown-member"));
    assert!(!format!("{problem:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_body_over_the_bound_is_read_no_further() {
    let problem = refusal(vec![b' '; MAX_BODY_BYTES + 1]).await;
    assert_eq!(problem.members["rule"], Member::text("body-too-large"));
    // A body without an end: it is refused although it never finishes.
    let endless = futures_stream();
    let outcome = body::read(&json_headers(), Body::from_stream(endless)).await;
    let problem = outcome.err().unwrap();
    assert_eq!(problem.members["rule"], Member::text("body-too-large"));
}

fn futures_stream() -> impl futures::Stream<Item = Result<Bytes, std::io::Error>> {
    futures::stream::repeat_with(|| Ok(Bytes::from(vec![b' '; 65_536])))
}

#[tokio::test]
async fn a_removal_takes_no_body() {
    assert_eq!(body::none(Body::empty()).await, Ok(()));
    let problem = body::none(Body::from("{}")).await.unwrap_err();
    assert_eq!(problem.members["rule"], Member::text("body-not-taken"));
}

#[tokio::test]
async fn a_body_of_another_content_type_is_refused_unread() {
    for content in [
        "text/plain",
        "application/json; charset=latin1",
        "application/jsonx",
        "application/json; boundary=x",
        "",
    ] {
        let headers = HeaderMap::from_iter([(
            http::header::CONTENT_TYPE,
            HeaderValue::from_str(content).unwrap(),
        )]);
        assert!(
            body::read(&headers, Body::from("{}")).await.is_err(),
            "{content}"
        );
    }
    assert!(
        body::read(&HeaderMap::new(), Body::from("{}"))
            .await
            .is_err()
    );
    for content in [
        "application/json",
        "Application/JSON; charset=UTF-8",
        "application/json;charset=\"utf-8\"",
    ] {
        let headers = HeaderMap::from_iter([(
            http::header::CONTENT_TYPE,
            HeaderValue::from_str(content).unwrap(),
        )]);
        assert!(
            body::read(&headers, Body::from("{}")).await.is_ok(),
            "{content}"
        );
    }
}
