//! Clusters, machines and their endpoints.

use bronzeward_core::id::{ClusterId, MachineId};
use bronzeward_core::inventory::{IdentityKey, TalosClusterId};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    ClusterRow, EndpointChange, InventoryReads, InventoryWrites, NewCluster, NewMachine, Page,
    Paged, StoreError,
};
use bronzeward_engine::rows::{MachineRow, MachineStateRow};

use super::principals::PRINCIPALS;
use super::rows::{following, of, overfetch};
use crate::pg::session::Session;
use crate::pg::{Eye, Tables, Taken, TxId};
use crate::store::writes::Index;

of!(CLUSTERS: clusters, ClusterId => ClusterRow, Cluster, |id| id.bits());
of!(MACHINES: machines, MachineId => MachineRow, Machine, |id| id.bits());
of!(
    MACHINE_STATES: machine_states, MachineId => MachineStateRow, MachineState, |id| id.bits()
);

/// Machines with their states, which stand in the same order.
pub(super) fn with_states(
    machines: Vec<MachineRow>,
    states: Vec<MachineStateRow>,
) -> Result<Vec<MachineRow>, StoreError> {
    if machines.len() != states.len() {
        // A machine without its state: the schema has none.
        return Err(StoreError::Fault);
    }
    let both = machines.into_iter().zip(states);
    Ok(both
        .map(|(machine, state)| MachineRow { state, ..machine })
        .collect())
}

impl Session {
    async fn states_of(
        &mut self,
        machines: Vec<MachineRow>,
    ) -> Result<Vec<MachineRow>, StoreError> {
        let states = self
            .read("read machine states", |tables, eye| {
                let of = |row: &MachineRow| tables.authoring.machine_states.get(eye, &row.id);
                machines.iter().filter_map(of).cloned().collect()
            })
            .await?;
        self.statement("read clusters of machines").await?;
        with_states(machines, states)
    }
}

impl InventoryReads for Session {
    async fn cluster(&mut self, id: ClusterId) -> Result<Option<ClusterRow>, StoreError> {
        self.read("read cluster", |tables, eye| {
            tables.authoring.clusters.get(eye, &id).cloned()
        })
        .await
    }

    async fn cluster_by_talos_id(
        &mut self,
        id: &TalosClusterId,
    ) -> Result<Option<ClusterId>, StoreError> {
        self.read("read cluster", |tables, eye| {
            let mut clusters = tables.authoring.clusters.values(eye);
            let found = clusters.find(|row| row.talos_cluster == *id);
            found.map(|row| row.id)
        })
        .await
    }

    async fn clusters(&mut self, page: &Page<ClusterId>) -> Result<Paged<ClusterRow>, StoreError> {
        let rows = self
            .read("read clusters", |tables, eye| {
                let rows = tables.authoring.clusters.range(eye, following(page));
                let rows = rows.take(overfetch(page.limit));
                rows.map(|(_, row)| row.clone()).collect()
            })
            .await?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn machine(&mut self, id: MachineId) -> Result<Option<MachineRow>, StoreError> {
        let rows = self
            .read("read machine", |tables, eye| {
                let row = tables.authoring.machines.get(eye, &id);
                row.cloned().into_iter().collect()
            })
            .await?;
        Ok(self.states_of(rows).await?.pop())
    }

    async fn machine_by_key(&mut self, key: &IdentityKey) -> Result<Option<MachineId>, StoreError> {
        self.read("read machine", |tables, eye| {
            let mut machines = tables.authoring.machines.values(eye);
            machines.find(|row| row.key == *key).map(|row| row.id)
        })
        .await
    }

    async fn machines(
        &mut self,
        cluster: Option<ClusterId>,
        page: &Page<MachineId>,
    ) -> Result<Paged<MachineRow>, StoreError> {
        let rows = self
            .read("read machines", |tables, eye| {
                let rows = tables.authoring.machines.range(eye, following(page));
                let rows = rows.map(|(_, row)| row);
                let rows = rows.filter(|row| cluster.is_none_or(|of| row.cluster == of));
                rows.take(overfetch(page.limit)).cloned().collect()
            })
            .await?;
        let rows = self.states_of(rows).await?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn scopes(&mut self) -> Result<Vec<(MachineId, ScopeState)>, StoreError> {
        self.read("read scopes", |tables, eye| {
            let rows = tables.authoring.machines.values(eye);
            rows.map(|row| (row.id, row.scope)).collect()
        })
        .await
    }
}

impl InventoryWrites for Session {
    async fn insert_cluster(&mut self, new: &NewCluster, at: DbTime) -> Result<(), StoreError> {
        self.statement("insert cluster").await?;
        let row = ClusterRow {
            id: new.id,
            name: new.name.clone(),
            endpoint: new.endpoint.clone(),
            contract: new.contract.clone(),
            talos_cluster: new.talos_cluster.clone(),
            created_by: new.by.principal,
            created_at: at,
        };
        let same = |row: &ClusterRow| row.talos_cluster == new.talos_cluster;
        let talos: Index<'_, ClusterRow> = ("cluster_talos_cluster_id_key", &same);
        self.insert_unique(&CLUSTERS, "cluster_pkey", new.id, row, &[talos])
            .await?;
        self.parent(&PRINCIPALS, &new.by.principal, "cluster_created_by_fkey")
            .await
    }

    async fn insert_machine(&mut self, new: &NewMachine, at: DbTime) -> Result<(), StoreError> {
        self.statement("insert machine").await?;
        let index = match new.key {
            IdentityKey::SmbiosUuid(_) => "machine_smbios_uuid_key",
            IdentityKey::TalosNodeId(_) => "machine_talos_node_id_key",
        };
        let talos = |tables: &Tables, eye: Eye| {
            let cluster = tables.authoring.clusters.get(eye, &new.cluster);
            cluster.map(|row| row.talos_cluster.clone())
        };
        let same = |row: &MachineRow| row.key == new.key;
        let Some(talos_cluster) = self.look(talos) else {
            let taken = |tables: &Tables, me: TxId| -> Taken {
                let machines = &tables.authoring.machines;
                match machines.key_taken(me, &new.id) {
                    Taken::Free => machines.taken(me, None, 1, same),
                    found => found,
                }
            };
            self.unique(index, taken).await?;
            return self.fail(StoreError::Integrity("machine_cluster_id_fkey"));
        };
        let row = MachineRow {
            id: new.id,
            cluster: new.cluster,
            talos_cluster,
            key: new.key.clone(),
            serial: new.serial.clone(),
            platform: new.platform,
            endpoint: new.endpoint,
            frozen: false,
            scope: new.scope,
            timeline: TimelineRevision(0),
            created_at: at,
            state: MachineStateRow::default(),
        };
        let identity: Index<'_, MachineRow> = (index, &same);
        self.insert_unique(&MACHINES, "machine_pkey", new.id, row, &[identity])
            .await?;
        self.parent(&PRINCIPALS, &new.by.principal, "machine_created_by_fkey")
            .await?;
        self.statement("insert machine state").await?;
        let stands = |tables: &Tables, me: TxId| -> Taken {
            tables.authoring.machine_states.key_taken(me, &new.id)
        };
        if self.meets(stands).await? {
            return Ok(());
        }
        let state = MachineStateRow {
            revision: 1,
            ..MachineStateRow::default()
        };
        self.write(|db, me, _| db.put(me, |t| &mut t.authoring.machine_states, new.id, state))?;
        self.parent(&MACHINES, &new.id, "machine_state_machine_id_fkey")
            .await
    }

    async fn change_endpoint(&mut self, change: &EndpointChange) -> Result<(), StoreError> {
        self.statement("change endpoint").await?;
        let next = change.next;
        let _of_a_row_or_none = self
            .update_row(
                &MACHINES,
                change.machine,
                |_, _| true,
                |row| row.endpoint = next,
            )
            .await?;
        self.statement("insert endpoint change").await?;
        let key = (change.machine, change.revision.0);
        let taken = |tables: &Tables, me: TxId| -> Taken {
            tables.authoring.endpoint_changes.key_taken(me, &key)
        };
        self.unique("machine_endpoint_change_pkey", taken).await?;
        let row = change.clone();
        self.write(|db, me, _| db.put(me, |t| &mut t.authoring.endpoint_changes, key, row))?;
        let machine = change.machine;
        self.parent(
            &MACHINES,
            &machine,
            "machine_endpoint_change_machine_id_fkey",
        )
        .await?;
        let by = change.by.principal;
        self.parent(
            &PRINCIPALS,
            &by,
            "machine_endpoint_change_principal_id_fkey",
        )
        .await?;
        self.await_act(change.act, "machine_endpoint_change_act_id_fkey")
    }
}
