//! The request to publish a draft (PA §9.3).

use bronzeward_api::bodies::common::Nothing;
use bronzeward_core::id::DraftId;
use bronzeward_core::problem::Problem;
use bronzeward_engine::ports::store::OperationExtras;
use bronzeward_engine::ports::{Notifier, Wake};
use bronzeward_engine::request::Rendered;
use bronzeward_engine::world::World;
use http::StatusCode;

use super::operations;
use crate::call::{Call, Handled, rendered};

pub async fn create<W: World>(mut call: Call<'_, W>) -> Handled {
    let draft: DraftId = call.id("draft")?;
    let write = call.write::<Nothing>().await?;
    // A process without a provider runs no publish worker (PA §5.1).
    if call.app.ingestion.is_none() {
        let words = "This process has no secret provider, and publishes nothing.";
        return Err(Problem::dependency_unavailable(words).into());
    }
    let request = call.request();
    let answer = call
        .requests()
        .publish_draft(&write.admitted, draft, write.if_match, |operation| {
            super::render(
                request,
                operations::body(operation, &OperationExtras::default()),
                |body| Rendered {
                    location: Some(format!("/api/v1/operations/{}", operation.id)),
                    operation: Some(operation.id),
                    ..rendered(StatusCode::ACCEPTED, body)
                },
            )
        })
        .await?;
    call.app.notifier.wake(Wake::Publication);
    Ok(call.answer(answer))
}
