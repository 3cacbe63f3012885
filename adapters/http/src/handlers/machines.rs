//! Machines, their endpoint and their timeline (PA §3.3, §9.2).

use bronzeward_api::bodies::machine::{
    Applied, AppliedSource as WireSource, CreateMachine, Hardware, Machine, Observed, OpenDrift,
    Platform as WirePlatform, ReplaceTalosEndpoint, ScopeState as WireScope,
};
use bronzeward_api::bodies::timeline::{TimelineEntry, TimelinePage};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{ClusterId, MachineId, ReleaseId, RequestId};
use bronzeward_core::inventory::{Endpoint, IdentityKey, Platform};
use bronzeward_core::problem::Problem;
use bronzeward_core::release::{observed_release, pending_convergence};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::scope::ScopeState;
use bronzeward_engine::ports::store::{
    EntryRow, InventoryReads, Order, Page, Paged, Standing, StandingReads, TimelineReads,
};
use bronzeward_engine::request::{Refused, Rendered};
use bronzeward_engine::rows::{AppliedSource, MachineRow};
use bronzeward_engine::tx::MachineInput;
use bronzeward_engine::tx::plans::applied;
use bronzeward_engine::world::World;

use super::clusters::malformed;
use super::wire;
use crate::call::{Call, Handled, closing, created, missing, ok};
use crate::{cursor, query};

pub(super) fn scope(state: &ScopeState) -> WireScope {
    match state {
        ScopeState::Normal => WireScope::Normal,
        ScopeState::PreRestoreUnaccounted => WireScope::PreRestoreUnaccounted,
        ScopeState::Unresolved => WireScope::Unresolved,
        ScopeState::Blocked => WireScope::Blocked,
        ScopeState::Ready => WireScope::Ready,
        // A retired scope counts as released (EaR 7.3).
        ScopeState::Released { .. } | ScopeState::Retired => WireScope::Released,
    }
}

/// A release with the digest of the machine's artifact in it. Neither is compared with
/// anything that is served, and no digest is (PA choice 17.38).
fn artifact(
    release: Option<ReleaseId>,
    standing: &Standing,
) -> Result<Option<(ReleaseId, ConfigDigest)>, Refused> {
    let Some(release) = release else {
        return Ok(None);
    };
    let digest = standing.artifacts.get(&release);
    let digest = digest.ok_or_else(|| Problem::internal("A release without its artifact."))?;
    Ok(Some((release, *digest)))
}

fn drift(standing: &Standing) -> Result<Option<OpenDrift>, Refused> {
    let Some(open) = &standing.drift else {
        return Ok(None);
    };
    Ok(Some(OpenDrift {
        revision: wire::count(open.opened.0),
        observation: wire::id(open.observation)?,
        last_observation: wire::id(open.last_observation)?,
        late_landing: wire::opt_id(open.late_landing)?,
    }))
}

pub(super) fn body(row: &MachineRow, standing: &Standing) -> Result<Machine, Refused> {
    let held = applied(row);
    let desired = artifact(row.state.desired, standing)?;
    let of_applied = artifact(held.map(|held| held.release), standing)?;
    let observed = match standing.observed {
        Some(seen) => Some(Observed {
            observation: wire::id(seen.observation)?,
            release: wire::opt_id(observed_release(seen.digest, of_applied, desired))?,
            at: wire::time(seen.at),
        }),
        None => None,
    };
    let (uuid, node) = match &row.key {
        IdentityKey::SmbiosUuid(uuid) => (Some(uuid.as_str().to_owned()), None),
        IdentityKey::TalosNodeId(node) => (None, Some(node.as_str().to_owned())),
    };
    let applied = match &row.state.applied {
        Some(applied) => Some(Applied {
            release: wire::id(applied.release)?,
            source: match applied.source {
                AppliedSource::Operation => WireSource::Operation,
                AppliedSource::Adoption => WireSource::Adoption,
            },
        }),
        None => None,
    };
    Ok(Machine {
        id: wire::id(row.id)?,
        cluster: wire::id(row.cluster)?,
        hardware: Hardware {
            smbios_uuid: uuid,
            talos_node_id: node,
            serial: row.serial.clone(),
        },
        platform: match row.platform {
            Platform::Metal => WirePlatform::Metal,
            Platform::Container => WirePlatform::Container,
            Platform::Cloud => WirePlatform::Cloud,
        },
        talos_endpoint: row.endpoint.to_string(),
        desired: wire::opt_id(row.state.desired)?,
        applied,
        observed,
        pending_convergence: pending_convergence(desired.map(|(_, digest)| digest), held.as_ref()),
        frozen: row.frozen,
        scope_state: scope(&row.scope),
        open_drift: drift(standing)?,
        created_at: wire::time(row.created_at),
    })
}

pub async fn list<W: World>(call: Call<'_, W>) -> Handled {
    let of = match call.query.value("cluster") {
        Some(text) => Some(
            ClusterId::parse(text)
                .map_err(|_| Problem::invalid_request("No cluster identifier."))?,
        ),
        None => None,
    };
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page = call.page(&scope)?;
    let paged = snapshot.machines(of, &page).await;
    let (paged, standings) = match paged {
        Ok(paged) => {
            let machines: Vec<MachineId> = paged.items.iter().map(|row| row.id).collect();
            let standings = snapshot.standings(&machines).await;
            closing(snapshot, standings.map(|found| (paged, found))).await?
        }
        Err(error) => closing(snapshot, Err(error)).await?,
    };
    let none = Standing::default();
    let items = paged
        .items
        .iter()
        .map(|row| body(row, standings.get(&row.id).unwrap_or(&none)))
        .collect::<Result<Vec<_>, _>>()?;
    let paged = Paged {
        items,
        more: paged.more,
    };
    Ok(call.paged(
        &scope,
        paged,
        |machine| machine.id.to_string(),
        |machine| machine,
    ))
}

pub async fn read<W: World>(call: Call<'_, W>) -> Handled {
    let id = call.id("machine")?;
    let (mut snapshot, _) = call.read().await?;
    let row = snapshot.machine(id).await;
    let standings = snapshot.standings(&[id]).await;
    let both = match (row, standings) {
        (Ok(row), Ok(standings)) => Ok((row, standings)),
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    let (row, mut standings) = closing(snapshot, both).await?;
    let row = row.ok_or_else(missing)?;
    Ok(ok(&body(&row, &standings.remove(&id).unwrap_or_default())?))
}

pub async fn create<W: World>(mut call: Call<'_, W>) -> Handled {
    let write = call.write::<CreateMachine>().await?;
    let sent = &write.body;
    let key = IdentityKey::from_members(
        sent.smbios_uuid.as_ref().map(|text| text.as_str()),
        sent.talos_node_id.as_ref().map(|text| text.as_str()),
    )
    .map_err(malformed)?;
    let input = MachineInput {
        cluster: wire::core_id(&sent.cluster)?,
        key,
        serial: sent.serial.as_ref().map(|text| text.as_str().to_owned()),
        platform: match sent.platform {
            WirePlatform::Metal => Platform::Metal,
            WirePlatform::Container => Platform::Container,
            WirePlatform::Cloud => Platform::Cloud,
        },
        endpoint: Endpoint::parse(sent.talos_endpoint.as_str()).map_err(malformed)?,
    };
    let answer = call
        .requests()
        .create_machine(&write.admitted, &input, render(call.request()))
        .await?;
    Ok(call.answer(answer))
}

pub async fn replace_endpoint<W: World>(mut call: Call<'_, W>) -> Handled {
    let machine: MachineId = call.id("machine")?;
    let write = call.write::<ReplaceTalosEndpoint>().await?;
    let next = Endpoint::parse(write.body.talos_endpoint.as_str()).map_err(malformed)?;
    let reason = write.body.reason.as_ref().map(|text| text.as_str());
    let answer = call
        .requests()
        .change_endpoint(
            &write.admitted,
            machine,
            next,
            reason,
            render(call.request()),
        )
        .await?;
    Ok(call.answer(answer))
}

fn render(request: RequestId) -> impl Fn(&MachineRow, &Standing) -> Rendered + Clone {
    move |row, standing| {
        super::render(request, body(row, standing), |body| {
            created(format!("/api/v1/machines/{}", row.id), body)
        })
    }
}

/// A machine's timeline, oldest or newest first, with the cursor of its newest entry.
pub async fn timeline<W: World>(call: Call<'_, W>) -> Handled {
    let machine: MachineId = call.id("machine")?;
    let order = match call.query.value("order") {
        Some("newest") => Order::Newest,
        _ => Order::Oldest,
    };
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, order == Order::Newest);
    let after = match &call.query.cursor {
        None => None,
        Some(text) => {
            let position = cursor::decode(&call.app.cursor_key, &scope, text)?;
            let number: i64 = position.parse().map_err(|_| query::cursor_invalid())?;
            Some(TimelineRevision(number))
        }
    };
    let page = Page {
        after,
        limit: call.query.limit,
    };
    let known = snapshot.machine(machine).await;
    let read_page = snapshot.machine_timeline(machine, order, &page).await;
    let found = match (known, read_page) {
        (Ok(known), Ok(page)) => Ok(known.map(|_| page)),
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    let page = closing(snapshot, found).await?.ok_or_else(missing)?;
    let next = page
        .items
        .last()
        .filter(|_| page.more)
        .map(|last| cursor::encode(&call.app.cursor_key, &scope, last.number.to_string()));
    let oldest = call.scope(read, false);
    let tail = page
        .tail
        .map(|tail| cursor::encode(&call.app.cursor_key, &oldest, tail.0.to_string()));
    let items = page
        .items
        .iter()
        .map(entry)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(ok(&TimelinePage { items, next, tail }))
}

pub(super) fn entry(row: &EntryRow) -> Result<TimelineEntry, Refused> {
    Ok(TimelineEntry {
        revision: wire::count(row.number),
        kind: wire::word(&row.kind)?,
        at: wire::time(row.at),
        by: wire::by(row)?,
        data: wire::object(&row.data)?,
    })
}
