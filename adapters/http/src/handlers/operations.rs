//! Operations and their events (PA §8.3).

use bronzeward_api::bodies::common::{By, Controller, Page as WirePage};
use bronzeward_api::bodies::operation::{Operation, OperationResult, OperationSubject};
use bronzeward_api::bodies::problem::Problem as WireProblem;
use bronzeward_api::bodies::timeline::Event;
use bronzeward_core::id::{EpochId, MachineId, OperationId, PlanId};
use bronzeward_core::problem::{Member, Problem};
use bronzeward_engine::ports::store::{
    EntryRow, JobReads, OperationFilter, Page, Paged, TimelineReads,
};
use bronzeward_engine::request::Refused;
use bronzeward_engine::rows::OperationRow;
use bronzeward_engine::world::World;

use super::wire;
use crate::call::{Call, Handled, closing, missing, ok};
use crate::{cursor, query};

/// A stored problem as a document whose instance is its operation.
fn error(row: &OperationRow) -> Result<Option<WireProblem>, Refused> {
    let Some(text) = &row.error else {
        return Ok(None);
    };
    let unreadable = || Problem::internal("A stored problem is not one.");
    let stored: serde_json::Value = serde_json::from_str(text).map_err(|_| unreadable())?;
    let problem = member(&stored).as_ref().and_then(Problem::from_member);
    let problem = problem.ok_or_else(unreadable)?;
    Ok(Some(crate::problem::document(&problem, row.id.to_string())))
}

fn member(value: &serde_json::Value) -> Option<Member> {
    use serde_json::Value;
    Some(match value {
        Value::Null => Member::Null,
        Value::Bool(value) => Member::Bool(*value),
        Value::Number(number) => Member::Number(number.as_i64()?),
        Value::String(text) => Member::Text(text.clone()),
        Value::Array(items) => Member::List(items.iter().map(member).collect::<Option<_>>()?),
        Value::Object(members) => Member::Object(
            members
                .iter()
                .map(|(name, value)| Some((name.clone(), member(value)?)))
                .collect::<Option<_>>()?,
        ),
    })
}

/// A publish or ingest operation as a whole; of a plan's operation all but its attempts.
pub(super) fn body(row: &OperationRow) -> Result<Operation, Refused> {
    let is_job = row.draft.is_some();
    let created_by = match (row.created_by, &row.fence) {
        (Some(signed), _) => wire::acting(signed).map(By::Acting)?,
        (None, Some(fence)) => By::Controller(Controller {
            controller: fence.owner.to_string(),
            generation: Some(wire::count(fence.generation.0)),
            epoch: wire::id(fence.epoch)?,
        }),
        (None, None) => return Err(Problem::internal("An operation by nobody.").into()),
    };
    let draft = row.draft.map(|(draft, _)| draft);
    let result = match (row.result_release, row.result_import_base) {
        (Some(release), _) => Some(OperationResult {
            release: Some(wire::id(release)?),
            ..OperationResult::default()
        }),
        (None, Some(_)) => Some(OperationResult {
            draft: wire::opt_id(draft)?,
            ..OperationResult::default()
        }),
        (None, None) => None,
    };
    Ok(Operation {
        id: wire::id(row.id)?,
        kind: wire::word(&row.kind)?,
        state: wire::word(&row.state)?,
        epoch: wire::id(row.epoch)?,
        last_event: is_job.then(|| wire::count(row.last_event)),
        owner_generation: row
            .fence
            .as_ref()
            .map(|fence| wire::count(fence.generation.0)),
        subject: OperationSubject {
            draft: wire::opt_id(draft)?,
            draft_revision: row.draft.map(|(_, revision)| wire::count(revision.0)),
            ingestion: wire::opt_id(row.claim)?,
            plan: wire::opt_id(row.plan)?,
            machine: if is_job {
                None
            } else {
                wire::opt_id(row.machine)?
            },
        },
        created_by,
        created_at: wire::time(row.created_at),
        result,
        error: error(row)?,
        attempts: None,
    })
}

pub async fn list<W: World>(call: Call<'_, W>) -> Handled {
    let malformed = |_| Problem::invalid_request("A filter is no identifier.");
    let plan = call.query.value("plan").map(PlanId::parse).transpose();
    let machine = call
        .query
        .value("machine")
        .map(MachineId::parse)
        .transpose();
    let filter = OperationFilter {
        plan: plan.map_err(malformed)?,
        machine: machine.map_err(malformed)?,
        state: call.query.value("state").map(str::to_owned),
        kind: call.query.value("kind").map(str::to_owned),
    };
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page = call.page(&scope)?;
    let paged = snapshot.operations(&filter, &page).await;
    let paged = closing(snapshot, paged).await?;
    let items = paged
        .items
        .iter()
        .map(body)
        .collect::<Result<Vec<_>, _>>()?;
    let paged = Paged {
        items,
        more: paged.more,
    };
    Ok(call.paged(&scope, paged, |one| one.id.to_string(), |one| one))
}

pub async fn read<W: World>(call: Call<'_, W>) -> Handled {
    let id: OperationId = call.id("operation")?;
    let (mut snapshot, _) = call.read().await?;
    let row = snapshot.operation(id).await;
    let row = closing(snapshot, row).await?.ok_or_else(missing)?;
    Ok(ok(&body(&row)?))
}

fn event(row: &EntryRow, epoch: EpochId) -> Result<Event, Refused> {
    Ok(Event {
        id: format!("{epoch}:{}", row.number),
        kind: wire::word(&row.kind)?,
        at: wire::time(row.at),
        data: wire::object(&row.data)?,
    })
}

/// The operation's own events, or the entries of its machine's timeline that name it.
pub async fn events<W: World>(call: Call<'_, W>) -> Handled {
    let id: OperationId = call.id("operation")?;
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let after = match &call.query.cursor {
        None => None,
        Some(text) => {
            let position = cursor::decode(&call.app.cursor_key, &scope, text)?;
            let number: i64 = position.parse().map_err(|_| query::cursor_invalid())?;
            Some(number)
        }
    };
    let page = Page {
        after,
        limit: call.query.limit,
    };
    let found = async {
        if snapshot.operation(id).await?.is_none() {
            return Ok(None);
        }
        Ok(Some(snapshot.operation_events(id, &page).await?))
    }
    .await;
    let page = closing(snapshot, found).await?.ok_or_else(missing)?;
    let next = page
        .items
        .last()
        .filter(|_| page.more)
        .map(|last| cursor::encode(&call.app.cursor_key, &scope, last.number.to_string()));
    let items = page.items.iter().map(|row| event(row, read.epoch));
    Ok(ok(&WirePage {
        items: items.collect::<Result<Vec<_>, _>>()?,
        next,
    }))
}
