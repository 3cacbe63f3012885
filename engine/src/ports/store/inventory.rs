//! Clusters, machines and their endpoints (PA §3, §3.3, §7.3).

use std::future::Future;

use bronzeward_core::id::{ActId, ClusterId, EpochId, MachineId, PrincipalId};
use bronzeward_core::inventory::{Endpoint, IdentityKey, Platform, TalosClusterId};
use bronzeward_core::principal::Actor;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::DbTime;

use super::{Page, Paged, StoreError};
use crate::rows::MachineRow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRow {
    pub id: ClusterId,
    pub name: String,
    /// `https://host[:port]`.
    pub endpoint: String,
    /// `v1.13`.
    pub contract: String,
    pub talos_cluster: TalosClusterId,
    pub created_by: PrincipalId,
    pub created_at: DbTime,
}

/// A cluster to be recorded.
#[derive(Clone, Debug)]
pub struct NewCluster {
    pub id: ClusterId,
    pub name: String,
    pub endpoint: String,
    pub contract: String,
    pub talos_cluster: TalosClusterId,
    pub by: Actor,
    pub epoch: EpochId,
}

/// A machine to be recorded with its empty state row.
#[derive(Clone, Debug)]
pub struct NewMachine {
    pub id: MachineId,
    pub cluster: ClusterId,
    pub key: IdentityKey,
    pub serial: Option<String>,
    pub platform: Platform,
    pub endpoint: Endpoint,
    pub scope: ScopeState,
    pub by: Actor,
    pub epoch: EpochId,
}

/// An endpoint's replacement (PA §3.3), beside its timeline entry.
#[derive(Clone, Debug)]
pub struct EndpointChange {
    pub machine: MachineId,
    pub revision: TimelineRevision,
    pub previous: Endpoint,
    pub next: Endpoint,
    pub reason: Option<String>,
    pub by: Actor,
    pub epoch: EpochId,
    pub act: ActId,
    pub at: DbTime,
}

pub trait InventoryReads {
    fn cluster(
        &mut self,
        id: ClusterId,
    ) -> impl Future<Output = Result<Option<ClusterRow>, StoreError>> + Send;

    fn cluster_by_talos_id(
        &mut self,
        id: &TalosClusterId,
    ) -> impl Future<Output = Result<Option<ClusterId>, StoreError>> + Send;

    fn clusters(
        &mut self,
        page: &Page<ClusterId>,
    ) -> impl Future<Output = Result<Paged<ClusterRow>, StoreError>> + Send;

    fn machine(
        &mut self,
        id: MachineId,
    ) -> impl Future<Output = Result<Option<MachineRow>, StoreError>> + Send;

    fn machine_by_key(
        &mut self,
        key: &IdentityKey,
    ) -> impl Future<Output = Result<Option<MachineId>, StoreError>> + Send;

    fn machines(
        &mut self,
        cluster: Option<ClusterId>,
        page: &Page<MachineId>,
    ) -> impl Future<Output = Result<Paged<MachineRow>, StoreError>> + Send;

    /// Every machine's recovery scope state, by identifier.
    fn scopes(
        &mut self,
    ) -> impl Future<Output = Result<Vec<(MachineId, ScopeState)>, StoreError>> + Send;
}

pub trait InventoryWrites {
    /// `Unique("cluster_talos_cluster_id")` where the Talos cluster is recorded already.
    fn insert_cluster(
        &mut self,
        cluster: &NewCluster,
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// `Unique("machine_smbios_uuid")` or `Unique("machine_talos_node_id")` where the key is
    /// recorded already.
    fn insert_machine(
        &mut self,
        machine: &NewMachine,
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Sets the endpoint of a machine whose row is held FOR UPDATE, and records the change.
    fn change_endpoint(
        &mut self,
        change: &EndpointChange,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
