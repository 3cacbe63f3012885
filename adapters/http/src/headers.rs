//! The request headers of PA §4.1, §7.1 and §9.1: If-Match, Idempotency-Key,
//! Bronzeward-Expected-Epoch, Content-Type.
//!
//! [`write`] is called once a request is authorised. A malformed header is never taken
//! as an absent one. Never in this module: a comparison with a record.

use bronzeward_api::routes::Route;
use bronzeward_core::id::EpochId;
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::revision::Etag;
use http::header::{CONTENT_TYPE, IF_MATCH};
use http::{HeaderMap, HeaderName};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const EXPECTED_EPOCH: HeaderName = HeaderName::from_static("bronzeward-expected-epoch");

/// The headers of a write, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteHeaders {
    pub key: IdempotencyKey,
    /// Of a route that asks for If-Match.
    pub if_match: Option<IfMatch>,
    pub expected_epoch: Option<EpochId>,
}

/// A present If-Match: its text, which the fingerprint covers, and the one strong ETag
/// it names. Any other text is a 412, but after the key's lookup: a replay comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IfMatch {
    pub text: String,
    pub etag: Option<Etag>,
}

/// The headers of a write to `route`. The key is asked for first: a request that lacks
/// both is told of the key.
pub fn write(route: &Route, headers: &HeaderMap) -> Result<WriteHeaders, Problem> {
    let key = idempotency_key(headers)?;
    let if_match = if route.if_match {
        Some(if_match(headers)?)
    } else {
        None
    };
    Ok(WriteHeaders {
        key,
        if_match,
        expected_epoch: expected_epoch(headers)?,
    })
}

/// The header's one value as text: none if absent, refused if repeated.
fn one<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    refusal: fn() -> Problem,
) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| refusal()),
        (Some(_), Some(_)) => Err(refusal()),
    }
}

fn malformed_key() -> Problem {
    Problem::invalid_request(
        "Idempotency-Key is one value of 16 to 128 characters of A-Z a-z 0-9 _ -.",
    )
}

pub fn idempotency_key(headers: &HeaderMap) -> Result<IdempotencyKey, Problem> {
    match one(headers, &IDEMPOTENCY_KEY, malformed_key)? {
        None | Some("") => Err(Problem::new(ProblemCode::IdempotencyKeyRequired)),
        Some(text) => IdempotencyKey::parse(text).map_err(|_| malformed_key()),
    }
}

/// Absent or empty is 428. What is present but no single strong ETag is kept as one
/// that matches nothing.
pub fn if_match(headers: &HeaderMap) -> Result<IfMatch, Problem> {
    let values: Vec<&http::HeaderValue> = headers.get_all(IF_MATCH).iter().collect();
    let texts: Vec<&str> = values.iter().filter_map(|one| one.to_str().ok()).collect();
    let present = values.iter().any(|value| !value.is_empty());
    if !present {
        return Err(Problem::new(ProblemCode::PreconditionRequired));
    }
    let etag = match (values.len(), texts.as_slice()) {
        (1, [text]) => Etag::parse(text),
        _ => None,
    };
    let text = values
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect::<Vec<_>>()
        .join(", ");
    Ok(IfMatch { text, etag })
}

fn malformed_epoch() -> Problem {
    Problem::invalid_request("Bronzeward-Expected-Epoch is one epoch identifier.")
}

pub fn expected_epoch(headers: &HeaderMap) -> Result<Option<EpochId>, Problem> {
    match one(headers, &EXPECTED_EPOCH, malformed_epoch)? {
        None => Ok(None),
        Some(text) => EpochId::parse(text)
            .map(Some)
            .map_err(|_| malformed_epoch()),
    }
}

fn other_content() -> Problem {
    Problem::invalid_request("Content-Type is application/json, in UTF-8.")
}

/// The content type of a request that has a body.
pub fn json_content(headers: &HeaderMap) -> Result<(), Problem> {
    let text = one(headers, &CONTENT_TYPE, other_content)?.ok_or_else(other_content)?;
    let mut parts = text.split(';').map(str::trim);
    let json = parts
        .next()
        .is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    let utf8 = parts.all(|parameter| {
        let Some((name, value)) = parameter.split_once('=') else {
            return false;
        };
        let value = value.trim_matches('"');
        name.eq_ignore_ascii_case("charset") && value.eq_ignore_ascii_case("utf-8")
    });
    if json && utf8 {
        Ok(())
    } else {
        Err(other_content())
    }
}
