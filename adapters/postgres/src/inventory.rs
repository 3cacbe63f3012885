//! Clusters and machines (PA §3, §7.3).

use std::collections::BTreeMap;

use bronzeward_core::id::{ClusterId, MachineId};
use bronzeward_core::inventory::{IdentityKey, TalosClusterId};
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    ClusterRow, EndpointChange, InventoryReads, InventoryWrites, NewCluster, NewMachine, Page,
    Paged,
};
use bronzeward_engine::rows::MachineRow;
use diesel::prelude::*;

use crate::convert::{Out, fault, id, opt_id};
use crate::records::{Machine, MachineState};
use crate::schema::{cluster, machine, machine_endpoint_change, machine_state};
use crate::store::{Access, PgRows, PgTx};
use crate::time::Stamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = cluster)]
struct Cluster {
    id: String,
    name: String,
    endpoint: String,
    contract: String,
    talos_cluster_id: String,
    created_by: String,
    created_at: Stamp,
}

impl Cluster {
    fn row(self) -> Out<ClusterRow> {
        Ok(ClusterRow {
            id: id(&self.id)?,
            name: self.name,
            endpoint: self.endpoint,
            contract: self.contract,
            talos_cluster: TalosClusterId::parse(&self.talos_cluster_id).map_err(|_| fault())?,
            created_by: id(&self.created_by)?,
            created_at: self.created_at.0,
        })
    }
}

impl<M: Access> PgRows<M> {
    /// Machines with their clusters' Talos ids and their states, in the order given.
    pub(crate) async fn with_clusters(
        &mut self,
        machines: Vec<Machine>,
        states: Vec<MachineState>,
    ) -> Out<Vec<MachineRow>> {
        let ids: Vec<&str> = machines
            .iter()
            .map(|machine| machine.cluster_id.as_str())
            .collect();
        let talos: BTreeMap<String, String> = self
            .load(
                cluster::table
                    .filter(cluster::id.eq_any(ids))
                    .select((cluster::id, cluster::talos_cluster_id)),
            )
            .await?
            .into_iter()
            .collect();
        let mut states: BTreeMap<String, MachineState> = states
            .into_iter()
            .map(|state| (state.machine_id.clone(), state))
            .collect();
        machines
            .into_iter()
            .map(|machine| {
                let talos = talos.get(&machine.cluster_id).ok_or_else(fault)?;
                let state = states.remove(&machine.id).ok_or_else(fault)?;
                machine.row(talos, state)
            })
            .collect()
    }

    async fn with_states(&mut self, machines: Vec<Machine>) -> Out<Vec<MachineRow>> {
        let ids: Vec<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
        let states = self
            .load(
                machine_state::table
                    .filter(machine_state::machine_id.eq_any(ids))
                    .select(MachineState::as_select()),
            )
            .await?;
        self.with_clusters(machines, states).await
    }
}

impl<M: Access> InventoryReads for PgRows<M> {
    async fn cluster(&mut self, id: ClusterId) -> Out<Option<ClusterRow>> {
        let found: Option<Cluster> = self
            .optional(
                cluster::table
                    .find(id.to_string())
                    .select(Cluster::as_select()),
            )
            .await?;
        found.map(Cluster::row).transpose()
    }

    async fn cluster_by_talos_id(&mut self, talos: &TalosClusterId) -> Out<Option<ClusterId>> {
        let found: Option<String> = self
            .optional(
                cluster::table
                    .filter(cluster::talos_cluster_id.eq(talos.as_str()))
                    .select(cluster::id),
            )
            .await?;
        opt_id(found.as_deref())
    }

    async fn clusters(&mut self, page: &Page<ClusterId>) -> Out<Paged<ClusterRow>> {
        let mut query = cluster::table.select(Cluster::as_select()).into_boxed();
        if let Some(after) = page.after {
            query = query.filter(cluster::id.gt(after.to_string()));
        }
        let rows = self
            .load(query.order(cluster::id).limit(i64::from(page.limit) + 1))
            .await?;
        let rows = rows
            .into_iter()
            .map(Cluster::row)
            .collect::<Out<Vec<_>>>()?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn machine(&mut self, id: MachineId) -> Out<Option<MachineRow>> {
        let rows: Vec<Machine> = self
            .load(
                machine::table
                    .find(id.to_string())
                    .select(Machine::as_select()),
            )
            .await?;
        Ok(self.with_states(rows).await?.pop())
    }

    async fn machine_by_key(&mut self, key: &IdentityKey) -> Out<Option<MachineId>> {
        let query = machine::table.select(machine::id).into_boxed();
        let query = match key {
            IdentityKey::SmbiosUuid(uuid) => query.filter(machine::smbios_uuid.eq(uuid.as_str())),
            IdentityKey::TalosNodeId(node) => {
                query.filter(machine::talos_node_id.eq(node.as_str()))
            }
        };
        let found: Option<String> = self.optional(query).await?;
        opt_id(found.as_deref())
    }

    async fn machines(
        &mut self,
        of: Option<ClusterId>,
        page: &Page<MachineId>,
    ) -> Out<Paged<MachineRow>> {
        let mut query = machine::table.select(Machine::as_select()).into_boxed();
        if let Some(of) = of {
            query = query.filter(machine::cluster_id.eq(of.to_string()));
        }
        if let Some(after) = page.after {
            query = query.filter(machine::id.gt(after.to_string()));
        }
        let rows = self
            .load(query.order(machine::id).limit(i64::from(page.limit) + 1))
            .await?;
        let rows = self.with_states(rows).await?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn scopes(&mut self) -> Out<Vec<(MachineId, ScopeState)>> {
        let query = machine::table
            .select((machine::id, machine::scope_state, machine::scope_epoch))
            .order(machine::id);
        let rows: Vec<(String, String, Option<String>)> = self.load(query).await?;
        rows.into_iter()
            .map(|(machine, state, epoch)| {
                let epoch = opt_id(epoch.as_deref())?;
                let state = ScopeState::from_row(&state, epoch).ok_or_else(fault)?;
                Ok((id(&machine)?, state))
            })
            .collect()
    }
}

impl InventoryWrites for PgTx {
    async fn insert_cluster(&mut self, new: &NewCluster, at: DbTime) -> Out<()> {
        use cluster::dsl;
        self.execute(diesel::insert_into(dsl::cluster).values((
            dsl::id.eq(new.id.to_string()),
            dsl::name.eq(&new.name),
            dsl::endpoint.eq(&new.endpoint),
            dsl::talos_cluster_id.eq(new.talos_cluster.as_str()),
            dsl::contract.eq(&new.contract),
            dsl::created_by.eq(new.by.principal.to_string()),
            dsl::created_role.eq(new.by.role.as_str()),
            dsl::epoch.eq(new.epoch.to_string()),
            dsl::created_at.eq(Stamp(at)),
        )))
        .await?;
        Ok(())
    }

    async fn insert_machine(&mut self, new: &NewMachine, at: DbTime) -> Out<()> {
        use machine::dsl;
        let (uuid, node) = match &new.key {
            IdentityKey::SmbiosUuid(uuid) => (Some(uuid.as_str()), None),
            IdentityKey::TalosNodeId(node) => (None, Some(node.as_str())),
        };
        let state = new.scope.as_str();
        let scope_epoch = (state != "normal").then(|| new.epoch.to_string());
        self.execute(diesel::insert_into(dsl::machine).values((
            dsl::id.eq(new.id.to_string()),
            dsl::cluster_id.eq(new.cluster.to_string()),
            dsl::smbios_uuid.eq(uuid),
            dsl::talos_node_id.eq(node),
            dsl::serial.eq(&new.serial),
            dsl::talos_endpoint.eq(new.endpoint.to_string()),
            dsl::platform.eq(new.platform.as_str()),
            dsl::scope_state.eq(state),
            dsl::scope_epoch.eq(scope_epoch),
            dsl::created_by.eq(new.by.principal.to_string()),
            dsl::created_role.eq(new.by.role.as_str()),
            dsl::epoch.eq(new.epoch.to_string()),
            dsl::created_at.eq(Stamp(at)),
        )))
        .await?;
        self.execute(
            diesel::insert_into(machine_state::table)
                .values(machine_state::machine_id.eq(new.id.to_string()))
                .on_conflict_do_nothing(),
        )
        .await?;
        Ok(())
    }

    async fn change_endpoint(&mut self, change: &EndpointChange) -> Out<()> {
        self.execute(
            diesel::update(machine::table.find(change.machine.to_string())).set((
                machine::talos_endpoint.eq(change.next.to_string()),
                machine::revision.eq(machine::revision + 1),
            )),
        )
        .await?;
        use machine_endpoint_change::dsl;
        self.execute(diesel::insert_into(dsl::machine_endpoint_change).values((
            dsl::machine_id.eq(change.machine.to_string()),
            dsl::revision.eq(change.revision.0),
            dsl::previous.eq(change.previous.to_string()),
            dsl::current.eq(change.next.to_string()),
            dsl::principal_id.eq(change.by.principal.to_string()),
            dsl::role.eq(change.by.role.as_str()),
            dsl::epoch.eq(change.epoch.to_string()),
            dsl::act_id.eq(change.act.to_string()),
            dsl::at.eq(Stamp(change.at)),
        )))
        .await?;
        Ok(())
    }
}
