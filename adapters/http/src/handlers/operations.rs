//! Operations and their events (PA §8.3).

use bronzeward_api::bodies::common::{By, Controller, Page as WirePage};
use bronzeward_api::bodies::operation::{
    AccountingBasis, Adoption, Attempt as WireAttempt, AttemptResponse, Operation, OperationResult,
    OperationSubject,
};
use bronzeward_api::bodies::problem::Problem as WireProblem;
use bronzeward_api::bodies::timeline::Event;
use bronzeward_api::id as wire_id;
use bronzeward_core::attempt::Attempt;
use bronzeward_core::id::{EpochId, MachineId, OperationId, PlanId};
use bronzeward_core::problem::{Member, Problem};
use bronzeward_engine::ports::store::{
    EntryRow, JobReads, OperationExtras, OperationFilter, OperationReads, Page, Paged,
    TimelineReads,
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

/// The kind of a row that lists its attempts (PA §8.3).
const APPLY_CONFIG: &str = "apply-config";

/// An attempt with the class and code of its answer and what accounts for it.
fn attempt(attempt: &Attempt) -> Result<WireAttempt, Refused> {
    let decided = attempt.accounting.as_ref().map(|made| made.revision);
    let accounting = attempt.accounted_at().map(|revision| {
        if decided == Some(revision) {
            AccountingBasis::Decision
        } else {
            AccountingBasis::Response
        }
    });
    Ok(WireAttempt {
        id: wire::id(attempt.id)?,
        response: attempt.response.map(|response| AttemptResponse {
            class: response.class.as_str().to_owned(),
            code: Some(response.code.to_owned()),
        }),
        accounting,
    })
}

/// What a completed plan operation left: its adoption, or the release that is applied.
fn outcome(entry: &EntryRow) -> Result<OperationResult, Refused> {
    let data = wire::object(&entry.data)?;
    let named = |member: &str| data.get(member).and_then(serde_json::Value::as_str);
    let missing = || Problem::internal("An outcome without its members.");
    let release = named("release")
        .and_then(wire_id::Id::parse)
        .ok_or_else(missing)?;
    if entry.kind == "applied-change" {
        return Ok(OperationResult {
            release: Some(release),
            ..OperationResult::default()
        });
    }
    let plan = named("plan").and_then(wire_id::Id::parse);
    let observation = named("observation").and_then(wire_id::Id::parse);
    Ok(OperationResult {
        adoption: Some(Adoption {
            plan: plan.ok_or_else(missing)?,
            release,
            observation: observation.ok_or_else(missing)?,
        }),
        ..OperationResult::default()
    })
}

pub(super) fn body(row: &OperationRow, beside: &OperationExtras) -> Result<Operation, Refused> {
    let is_job = row.draft.is_some();
    // A job counts its events in its row; a plan's operation has its machine's entries.
    let last_event = match beside.last_entry {
        Some(number) => Some(number),
        None => is_job.then_some(row.last_event),
    };
    let created_by = match (row.created_by, &row.fence) {
        (Some(signed), _) => wire::acting(signed).map(By::Acting)?,
        (None, Some(fence)) => By::Controller(Controller {
            controller: fence.owner.instance().to_owned(),
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
        (None, None) => beside.outcome.as_ref().map(outcome).transpose()?,
    };
    let attempts = beside.attempts.iter().map(attempt);
    let attempts = attempts.collect::<Result<Vec<_>, _>>()?;
    Ok(Operation {
        id: wire::id(row.id)?,
        kind: wire::word(&row.kind)?,
        state: wire::word(&row.state)?,
        epoch: wire::id(row.epoch)?,
        last_event: last_event.map(wire::count),
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
        attempts: (row.kind == APPLY_CONFIG).then_some(attempts),
    })
}

/// The identifier of a plan's operation; a job has nothing beside its row.
fn of_a_plan(row: &OperationRow) -> Option<OperationId> {
    row.plan.map(|_| row.id)
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
    let found = async {
        let paged = snapshot.operations(&filter, &page).await?;
        let of_plans: Vec<OperationId> = paged.items.iter().filter_map(of_a_plan).collect();
        let extras = snapshot.operation_extras(&of_plans).await?;
        Ok((paged, extras))
    }
    .await;
    let (paged, extras) = closing(snapshot, found).await?;
    let none = OperationExtras::default();
    let items = paged
        .items
        .iter()
        .map(|row| body(row, extras.get(&row.id).unwrap_or(&none)))
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
    let found = async {
        let Some(row) = snapshot.operation(id).await? else {
            return Ok(None);
        };
        let of_plans: Vec<OperationId> = of_a_plan(&row).into_iter().collect();
        let extras = snapshot.operation_extras(&of_plans).await?;
        Ok(Some((row, extras)))
    }
    .await;
    let (row, mut extras) = closing(snapshot, found).await?.ok_or_else(missing)?;
    let extras = extras.remove(&row.id).unwrap_or_default();
    Ok(ok(&body(&row, &extras)?))
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
