//! Headers of a write.

use bronzeward_api::routes::RouteId;
use bronzeward_core::problem::ProblemCode::{
    self, IdempotencyKeyRequired, InvalidRequest, PreconditionRequired,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::route;
use crate::headers::{expected_epoch, if_match, write};

const KEY: &str = "2f4c9a1e-6b0d-4d7a-9c3e-58a1f0e2b7d4";
const ETAG: &str = "\"7-shw6tpirbqvgj3qjuv2hicf6vm\"";
const EPOCH: &str = "ep_bqeknkmarvikuy7ofil2okekgi";

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_static(name);
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn refused(pairs: &[(&'static str, &str)]) -> Option<ProblemCode> {
    let headers = headers(pairs);
    write(route(RouteId::DiscardDraft), &headers)
        .err()
        .map(|problem| problem.code)
}

// covers: PA-IDEM-8
#[test]
fn a_missing_key_is_428_and_one_outside_the_grammar_400() {
    let with = |key: &str| refused(&[("if-match", ETAG), ("idempotency-key", key)]);
    assert_eq!(refused(&[("if-match", ETAG)]), Some(IdempotencyKeyRequired));
    assert_eq!(with(""), Some(IdempotencyKeyRequired));
    for key in [
        &"a".repeat(15),
        &"a".repeat(129),
        "0123456789abcde.",
        "0123456789 abcdef",
        "0123456789abcdefé",
    ] {
        assert_eq!(with(key), Some(InvalidRequest), "{key}");
    }
    for key in [KEY, &"a".repeat(16), &"_-Zz09aa".repeat(16)] {
        assert_eq!(with(key), None, "{key}");
    }
    let twice = [
        ("if-match", ETAG),
        ("idempotency-key", KEY),
        ("idempotency-key", KEY),
    ];
    assert_eq!(refused(&twice), Some(InvalidRequest));
}

// covers-part: PA-ETAG-1 (428 without a value; a value that is no single strong ETag matches nothing)
#[test]
fn a_missing_if_match_is_428_and_a_weak_starred_listed_or_repeated_one_matches_nothing() {
    for absent in [&[][..], &[("if-match", "")]] {
        let code = if_match(&headers(absent)).err().map(|problem| problem.code);
        assert_eq!(code, Some(PreconditionRequired));
    }
    let presented = if_match(&headers(&[("if-match", ETAG)])).unwrap();
    assert_eq!(presented.text, ETAG);
    assert_eq!(
        presented.etag.map(|etag| etag.to_string()),
        Some(ETAG.to_owned())
    );
    let weak = format!("W/{ETAG}");
    let list = format!("{ETAG}, {ETAG}");
    for text in [
        &weak,
        "*",
        &list,
        "7",
        "\"7\"",
        "\"7-short\"",
        "\"07-shw6tpirbqvgj3qjuv2hicf6vm\"",
        &ETAG[1..],
        "\u{e9}",
    ] {
        let presented = if_match(&headers(&[("if-match", text)])).unwrap();
        assert_eq!(presented.etag, None, "{text}");
    }
    let repeated = if_match(&headers(&[("if-match", ETAG), ("if-match", ETAG)])).unwrap();
    assert_eq!(repeated.etag, None);
    assert_ne!(repeated.text, ETAG);
}

// covers-part: PA-IDEM-6 (two or an empty expected epoch are 400)
#[test]
fn an_expected_epoch_is_absent_or_one_epoch_identifier() {
    assert_eq!(expected_epoch(&headers(&[])), Ok(None));
    let one = expected_epoch(&headers(&[("bronzeward-expected-epoch", EPOCH)])).unwrap();
    assert_eq!(one.map(|epoch| epoch.to_string()), Some(EPOCH.to_owned()));
    for pairs in [
        &[("bronzeward-expected-epoch", "")][..],
        &[
            ("bronzeward-expected-epoch", EPOCH),
            ("bronzeward-expected-epoch", EPOCH),
        ],
        &[("bronzeward-expected-epoch", "op_zcfwgr7trb76z3zmsndrnk5mcm")],
        &[("bronzeward-expected-epoch", "1")],
        &[("bronzeward-expected-epoch", "\u{e9}")],
    ] {
        let code = expected_epoch(&headers(pairs))
            .err()
            .map(|problem| problem.code);
        assert_eq!(code, Some(InvalidRequest), "{pairs:?}");
    }
}

#[test]
fn a_request_that_lacks_both_is_told_of_the_key() {
    assert_eq!(refused(&[]), Some(IdempotencyKeyRequired));
    assert_eq!(
        refused(&[("idempotency-key", KEY)]),
        Some(PreconditionRequired)
    );
    let parsed = write(
        route(RouteId::CreateDraft),
        &headers(&[("idempotency-key", KEY)]),
    )
    .unwrap();
    assert_eq!(parsed.if_match, None);
}
