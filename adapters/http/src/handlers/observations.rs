//! A machine's recorded observations (PA §6.1.1, §9.2).

use bronzeward_api::Timestamp;
use bronzeward_api::bodies::machine::{
    AccessVersion, Health, Observation as Wire, ObservedIdentity, ResourceVersion, Unread,
};
use bronzeward_core::id::MachineId;
use bronzeward_core::observation::Observation;
use bronzeward_engine::observe::unread;
use bronzeward_engine::ports::store::{InventoryReads, ObservationReads, Paged};
use bronzeward_engine::request::Refused;
use bronzeward_engine::world::World;

use super::wire;
use crate::call::{Call, Handled, closing, missing};

fn body(row: &Observation) -> Result<Wire, Refused> {
    let started = &row.started;
    let values = &row.values;
    let identity = values.identity.value().map(|seen| ObservedIdentity {
        smbios_uuid: seen
            .smbios_uuid
            .as_ref()
            .map(|uuid| uuid.as_str().to_owned()),
        talos_node_id: Some(seen.node_id.as_str().to_owned()),
        talos_cluster_id: Some(seen.talos_cluster.as_str().to_owned()),
    });
    let generation = started.publication_generation;
    Ok(Wire {
        id: wire::id(started.id)?,
        machine: wire::id(started.machine)?,
        purpose: wire::word(started.purpose.as_str())?,
        basis: wire::count(started.basis.0),
        revision: wire::count(row.revision.0),
        started_at: wire::time(started.started_at),
        at: wire::time(row.at),
        endpoint: started.endpoint.to_string(),
        controller: started.controller.owner.instance().to_owned(),
        plan: wire::opt_id(started.plan)?,
        operation: wire::opt_id(started.operation)?,
        publication_generation: generation.map(|generation| wire::count(generation.0)),
        access: values.access.value().map(|access| AccessVersion {
            version: wire::count(access.version),
            created_time: access.created.clone(),
        }),
        identity,
        running_version: values
            .running_version
            .value()
            .map(|version| version.text.clone()),
        configuration_read: values.configuration.value().is_some(),
        resource: values.configuration.value().map(|read| ResourceVersion {
            version: read.resource_version.clone(),
            created: Timestamp(read.resource_created.clone()),
        }),
        health: values.health.value().map(|health| Health {
            stage: if health.running { "running" } else { "other" }.to_owned(),
            ready: health.ready,
        }),
        unread: unread(values)
            .into_iter()
            .map(|(what, cause)| Unread {
                what: what.to_owned(),
                code: cause.as_str().to_owned(),
            })
            .collect(),
    })
}

pub async fn list<W: World>(call: Call<'_, W>) -> Handled {
    let machine: MachineId = call.id("machine")?;
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page = call.page(&scope)?;
    let found = async {
        let known = snapshot.machine(machine).await?;
        let paged = snapshot.observations(machine, &page).await?;
        Ok(known.map(|_| paged))
    }
    .await;
    let paged = closing(snapshot, found).await?.ok_or_else(missing)?;
    let items = paged.items.iter().map(body);
    let paged = Paged {
        items: items.collect::<Result<Vec<_>, _>>()?,
        more: paged.more,
    };
    Ok(call.paged(
        &scope,
        paged,
        |observation| observation.id.to_string(),
        |observation| observation,
    ))
}
