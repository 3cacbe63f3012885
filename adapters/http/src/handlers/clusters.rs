//! Clusters (PA §9.2).

use bronzeward_api::bodies::cluster::{Cluster, ClusterStatus, Contract, CreateCluster};
use bronzeward_core::id::RequestId;
use bronzeward_core::inventory::TalosClusterId;
use bronzeward_core::problem::Problem;
use bronzeward_engine::ports::store::{ClusterRow, InventoryReads};
use bronzeward_engine::request::{Refused, Rendered};
use bronzeward_engine::tx::ClusterInput;
use bronzeward_engine::world::World;

use super::wire;
use crate::call::{Call, Handled, closing, created, missing, ok};

fn body(row: &ClusterRow) -> Result<Cluster, Refused> {
    Ok(Cluster {
        id: wire::id(row.id)?,
        name: row.name.clone(),
        endpoint: row.endpoint.clone(),
        contract: Contract::V1_13,
        talos_cluster_id: row.talos_cluster.as_str().to_owned(),
        status: ClusterStatus::Active,
        created_at: wire::time(row.created_at),
    })
}

pub async fn list<W: World>(call: Call<'_, W>) -> Handled {
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page = call.page(&scope)?;
    let paged = snapshot.clusters(&page).await;
    let paged = closing(snapshot, paged).await?;
    let items = paged
        .items
        .iter()
        .map(body)
        .collect::<Result<Vec<_>, _>>()?;
    let paged = bronzeward_engine::ports::store::Paged {
        items,
        more: paged.more,
    };
    Ok(call.paged(
        &scope,
        paged,
        |cluster| cluster.id.to_string(),
        |cluster| cluster,
    ))
}

pub async fn read<W: World>(call: Call<'_, W>) -> Handled {
    let id = call.id("cluster")?;
    let (mut snapshot, _) = call.read().await?;
    let row = snapshot.cluster(id).await;
    let row = closing(snapshot, row).await?.ok_or_else(missing)?;
    Ok(ok(&body(&row)?))
}

pub async fn create<W: World>(mut call: Call<'_, W>) -> Handled {
    let write = call.write::<CreateCluster>().await?;
    let input = ClusterInput {
        name: write.body.name.as_str().to_owned(),
        endpoint: write.body.endpoint.as_str().to_owned(),
        contract: match write.body.contract {
            Contract::V1_13 => "v1.13".to_owned(),
        },
        talos_cluster: TalosClusterId::parse(write.body.talos_cluster_id.as_str())
            .map_err(malformed)?,
    };
    let answer = call
        .requests()
        .create_cluster(&write.admitted, &input, render(call.request()))
        .await?;
    Ok(call.answer(answer))
}

fn render(request: RequestId) -> impl Fn(&ClusterRow) -> Rendered + Clone {
    move |row| {
        super::render(request, body(row), |body| {
            created(format!("/api/v1/clusters/{}", row.id), body)
        })
    }
}

/// A grammar that the body's own form did not refuse.
pub(super) fn malformed(refused: bronzeward_core::inventory::Malformed) -> Problem {
    Problem::invalid_request("A member is malformed.")
        .naming("member", refused.member)
        .naming("rule", refused.rule)
}
