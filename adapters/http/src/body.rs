//! A request's body: read within its bound, then strict (PA §9.1).
//!
//! Handlers of writes call [`read`] and [`typed`]; a removal calls [`none`]. Never in
//! this module: a refusal that holds what was sent. The place and the rule are named,
//! and both come from `api`.

use axum::body::Body;
use bronzeward_api::{BodyError, Json, MAX_BODY_BYTES};
use bronzeward_core::problem::{Member, Problem};
use http::HeaderMap;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::headers;

/// The JSON of a request that must have a body. No more than the bound is read.
pub async fn read(headers: &HeaderMap, body: Body) -> Result<Json, Problem> {
    headers::json_content(headers)?;
    let bytes = collected(body).await?;
    Json::read(&bytes).map_err(|error| refusal(&error))
}

/// The typed body of a request.
pub fn typed<T>(json: &Json) -> Result<T, Problem>
where
    T: serde::de::DeserializeOwned + bronzeward_api::Checked,
{
    json.body().map_err(|error| refusal(&error))
}

/// A request that takes no body.
pub async fn none(body: Body) -> Result<(), Problem> {
    if collected(body).await?.is_empty() {
        return Ok(());
    }
    Err(refusal(&BodyError::new("", "body-not-taken")))
}

async fn collected(body: Body) -> Result<Vec<u8>, Problem> {
    match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes().to_vec()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(refusal(&BodyError::new("", "body-too-large")))
        }
        Err(_) => Err(refusal(&BodyError::new("", "body-not-received"))),
    }
}

/// A refusal of a body: 400 with the place and the rule.
pub fn refusal(error: &BodyError) -> Problem {
    let mut problem = Problem::invalid_request("The body is refused at '")
        .name(&error.pointer)
        .say("' by the rule ")
        .name(error.rule)
        .say(".")
        .naming("pointer", &error.pointer)
        .naming("rule", error.rule);
    if !error.known.is_empty() {
        let known = error.known.iter().map(Member::text).collect();
        problem = problem.with("known", Member::List(known));
    }
    problem
}
