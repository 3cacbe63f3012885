//! What a client asks of the installation itself: acts, its own identity, the process,
//! the recovery state, the API's description (PA §9.2).

use std::collections::BTreeMap;

use axum::response::Response;
use bronzeward_api::bodies::act::Act;
use bronzeward_api::bodies::identity::{CallerKind, Identity};
use bronzeward_api::bodies::machine::ScopeState as WireScope;
use bronzeward_api::bodies::recovery::{MachineScope, Recovery, RecoveryMode};
use bronzeward_api::bodies::server::{Feature, IngestionClaim, Server, StartMode as WireStart};
use bronzeward_api::openapi;
use bronzeward_core::installation::StartMode;
use bronzeward_core::principal::{PrincipalKind, Role};
use bronzeward_engine::authenticate::WhoAmI;
use bronzeward_engine::ports::store::{ActRow, InventoryReads, Paged, PrincipalReads};
use bronzeward_engine::request::Refused;
use bronzeward_engine::world::World;

use super::{machines, wire};
use crate::call::{Call, Handled, closing, ok};

/// The revision of the API this server speaks (PA §9.1).
const API_REVISION: u32 = 5;

fn act(row: &ActRow) -> Result<Act, Refused> {
    Ok(Act {
        id: wire::id(row.id)?,
        at: wire::time(row.at),
        principal: wire::id(row.principal)?,
        role: row.role.map(wire::role),
        action: row.action.clone(),
        subjects: row.subjects.clone(),
        epoch: wire::id(row.epoch)?,
    })
}

pub async fn acts<W: World>(call: Call<'_, W>) -> Handled {
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page = call.page(&scope)?;
    let paged = snapshot.acts(&page).await;
    let paged = closing(snapshot, paged).await?;
    let items = paged.items.iter().map(act).collect::<Result<Vec<_>, _>>()?;
    let paged = Paged {
        items,
        more: paged.more,
    };
    Ok(call.paged(&scope, paged, |act| act.id.to_string(), |act| act))
}

pub async fn identity<W: World>(call: Call<'_, W>) -> Handled {
    let who = &call.who;
    let (issuer, subject, service) = match &who.subject {
        WhoAmI::Human { issuer, subject } => (Some(issuer.clone()), Some(subject.clone()), None),
        WhoAmI::Service { name } => (None, None, Some(name.clone())),
    };
    let roles = Role::ALL
        .into_iter()
        .filter(|role| who.roles.contains(role))
        .map(wire::role)
        .collect();
    Ok(ok(&Identity {
        kind: match who.kind {
            PrincipalKind::Human => CallerKind::Human,
            PrincipalKind::Service => CallerKind::Service,
        },
        issuer,
        subject,
        service,
        principal: wire::opt_id(who.principal)?,
        roles,
        expires_at: wire::time(who.expires_at),
        epoch: wire::id(who.read.epoch)?,
    }))
}

pub async fn server<W: World>(call: Call<'_, W>) -> Handled {
    let served = &call.app.served;
    let provider = call.app.ingestion.is_some();
    // In name order.
    let features = [
        (Feature::Execution, served.execution),
        (Feature::Ingestion, provider),
        (Feature::Publication, provider),
    ];
    Ok(ok(&Server {
        version: served.version.clone(),
        api_revision: API_REVISION,
        features: features
            .into_iter()
            .filter(|(_, served)| *served)
            .map(|(feature, _)| feature)
            .collect(),
        start_mode: match call.app.db.start_mode() {
            StartMode::Normal => WireStart::Normal,
            StartMode::Recovery { .. } => WireStart::Recovery,
        },
        max_token_lifetime_seconds: served.max_token_lifetime_seconds,
        settle_floor_seconds: served.settle_floor_seconds,
        max_transport_deadline_seconds: served.max_transport_deadline_seconds,
        ingestion_claim: served
            .ingestion_claim
            .map(|(lease_seconds, absolute_expiry_seconds)| IngestionClaim {
                lease_seconds,
                absolute_expiry_seconds,
            }),
        plan_defaults: served.plan_defaults.clone(),
    }))
}

/// The recovery state. An entry is recorded by a route this server answers 501 for, so the
/// current epoch is the installation's own and has neither an entry nor an exit.
pub async fn recovery<W: World>(call: Call<'_, W>) -> Handled {
    let (mut snapshot, read) = call.read().await?;
    let scopes = snapshot.scopes().await;
    let scopes = closing(snapshot, scopes).await?;
    let mut counts: BTreeMap<WireScope, u64> = BTreeMap::new();
    let mut named = Vec::new();
    for (machine, state) in scopes {
        let state = machines::scope(&state);
        *counts.entry(state).or_default() += 1;
        named.push(MachineScope {
            machine: wire::id(machine)?,
            state,
        });
    }
    Ok(ok(&Recovery {
        mode: if read.recovery_mode {
            RecoveryMode::Recovery
        } else {
            RecoveryMode::Normal
        },
        epoch: wire::id(read.epoch)?,
        entered_at: None,
        entry: None,
        exit: None,
        scopes: counts,
        machines: named,
    }))
}

/// The committed description of this API.
pub fn open_api() -> Result<Response, Refused> {
    Ok(ok(&openapi::document()))
}
