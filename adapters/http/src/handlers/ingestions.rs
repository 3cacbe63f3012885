//! Ingestions: their start, their takeover and abandonment, and the claim as a read treats
//! it (PA §9.3, IC §3). Never in this module: a claim's owner, payload or digest.

use bronzeward_api::bodies::common::Nothing;
use bronzeward_api::bodies::ingestion::{
    Ingestion, IngestionAccepted, IngestionSource, Staging, StartIngestion, StartKind,
};
use bronzeward_core::claim::{ClaimKind, ClaimState, StagingMode};
use bronzeward_core::id::{IngestionId, MachineId, OperationId, RequestId};
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::secret::Unresolved;
use bronzeward_engine::ingest::{Ingester, Input, Start, read_claim};
use bronzeward_engine::ports::store::{
    ClaimFilter, ClaimReads, ClaimSource, Paged, PrincipalReads, StoreError,
};
use bronzeward_engine::request::{Refused, Rendered};
use bronzeward_engine::tx::{ClaimRead, IngestionStart};
use bronzeward_engine::world::World;
use http::StatusCode;

use super::{said, wire};
use crate::call::{Call, Handled, closing, missing, ok, rendered};

/// 503 in a process without a provider.
pub(super) fn ingester<'a, W: World>(call: &Call<'a, W>) -> Result<&'a Ingester<W>, Refused> {
    call.app.ingester.as_ref().ok_or_else(|| {
        Problem::dependency_unavailable("This process has no provider for ingestion.").into()
    })
}

fn body(read: &ClaimRead) -> Result<Ingestion, Refused> {
    let row = &read.row;
    Ok(Ingestion {
        id: wire::id(row.id)?,
        kind: wire::word(&row.kind)?,
        mode: wire::word(&row.mode)?,
        state: wire::word(read.state.as_str())?,
        review: row.review.as_deref().map(wire::word).transpose()?,
        machine: wire::opt_id(row.machine)?,
        draft: wire::id(row.draft)?,
        operation: wire::opt_id(read.operation)?,
        owner_generation: wire::count(row.fence.generation.0),
        lease_until: wire::time(row.lease_until),
        expires_at: wire::time(row.expires_at),
        created_at: wire::time(row.created_at),
    })
}

pub async fn list<W: World>(call: Call<'_, W>) -> Handled {
    let machine = match call.query.value("machine") {
        Some(text) => Some(
            MachineId::parse(text)
                .map_err(|_| Problem::invalid_request("No machine identifier."))?,
        ),
        None => None,
    };
    let state = call.query.value("state").and_then(ClaimState::parse);
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page = call.page(&scope)?;
    let rules = call.app.db.rules();
    let found = async {
        let now = snapshot.clock().await?;
        let filter = ClaimFilter {
            state,
            machine,
            now,
        };
        let paged = snapshot.claims(&filter, &page).await?;
        let items = paged.items.into_iter();
        let items = items
            .map(|(row, operation)| read_claim(&rules, row, operation, now))
            .collect::<Result<Vec<_>, StoreError>>()?;
        Ok((items, paged.more))
    }
    .await;
    let (items, more) = closing(snapshot, found).await?;
    let items = items.iter().map(body).collect::<Result<Vec<_>, _>>()?;
    let paged = Paged { items, more };
    Ok(call.paged(&scope, paged, |one| one.id.to_string(), |one| one))
}

pub async fn read<W: World>(call: Call<'_, W>) -> Handled {
    let id: IngestionId = call.id("ingestion")?;
    let (mut snapshot, _) = call.read().await?;
    let rules = call.app.db.rules();
    let found = async {
        let now = snapshot.clock().await?;
        let found = snapshot.claim(id).await?;
        found
            .map(|(row, operation)| read_claim(&rules, row, operation, now))
            .transpose()
    }
    .await;
    let read = closing(snapshot, found).await?.ok_or_else(missing)?;
    Ok(ok(&body(&read)?))
}

pub async fn start<W: World>(mut call: Call<'_, W>) -> Handled {
    let write = call.write::<StartIngestion>().await?;
    let sent = write.body;
    let mode = match sent.staging {
        Staging::Transient => StagingMode::Transient,
        Staging::Encrypted => StagingMode::Encrypted,
    };
    if sent.review == Some(true) {
        let problem = match mode {
            StagingMode::Transient => Problem::validation("review-needs-encrypted-staging")
                .say("A review needs encrypted staging."),
            StagingMode::Encrypted => {
                Problem::new(ProblemCode::NotImplemented).say("Reviews are not served yet.")
            }
        };
        return Err(problem.into());
    }
    let said = said::said(sent.marks, sent.declarations)?;
    let start = IngestionStart {
        kind: match sent.kind {
            StartKind::Import => ClaimKind::Import,
            StartKind::DriftAdoption => ClaimKind::DriftAdoption,
        },
        machine: wire::core_id(&sent.machine)?,
        draft: wire::core_id(&sent.draft)?,
        source: match sent.source {
            IngestionSource::Machine => ClaimSource::Machine,
            IngestionSource::Document => ClaimSource::Document,
        },
        mode,
        if_match: write.if_match,
    };
    let input = match sent.document {
        Some(document) => Input::Document(Unresolved::new(document.into_inner().into_bytes())),
        None => Input::Machine,
    };
    let ingester = ingester(&call)?;
    let request = call.request();
    let (answer, issued) = call
        .requests()
        .start_ingestion(
            &write.admitted,
            &start,
            ingester.settings.timers,
            accepted(request),
        )
        .await?;
    if let Some(issued) = issued {
        ingester.begin(Start {
            issued,
            input,
            said,
        });
    }
    Ok(call.answer(answer))
}

pub async fn take_over<W: World>(mut call: Call<'_, W>) -> Handled {
    let id: IngestionId = call.id("ingestion")?;
    let write = call.write::<Nothing>().await?;
    let ingester = ingester(&call)?;
    let request = call.request();
    let answer = call
        .requests()
        .take_over_ingestion(
            &write.admitted,
            id,
            ingester.settings.timers,
            accepted(request),
        )
        .await?;
    if !answer.replayed {
        ingester.begin_resumed(id);
    }
    Ok(call.answer(answer))
}

pub async fn abandon<W: World>(mut call: Call<'_, W>) -> Handled {
    let id: IngestionId = call.id("ingestion")?;
    let write = call.write::<Nothing>().await?;
    let request = call.request();
    let answer = call
        .requests()
        .abandon_ingestion(&write.admitted, id, |read| {
            super::render(request, body(read), |body| rendered(StatusCode::OK, body))
        })
        .await?;
    Ok(call.answer(answer))
}

/// 202 with the handle of the ingestion and a Location at its operation.
fn accepted(request: RequestId) -> impl Fn(OperationId, IngestionId) -> Rendered + Clone {
    move |operation, ingestion| {
        let handle = || {
            Ok(IngestionAccepted {
                operation: wire::id(operation)?,
                ingestion: wire::id(ingestion)?,
                generation: None,
            })
        };
        super::render(request, handle(), |body| Rendered {
            location: Some(format!("/api/v1/operations/{operation}")),
            operation: Some(operation),
            ..rendered(StatusCode::ACCEPTED, body)
        })
    }
}
