//! Inventory (T11): clusters, machines, and a machine's Talos endpoint (PA §3.3, §7.3).
//!
//! Called by http. Grammars are `core::inventory`'s and were checked before a request
//! reached here.

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::id::{ClusterId, MachineId};
use bronzeward_core::inventory::{Endpoint, IdentityKey, Platform, TalosClusterId};
use bronzeward_core::principal::By;
use bronzeward_core::problem::Problem;
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::timeline::Data;

use super::lock_by;
use crate::ports::store::{
    ClusterRow, EndpointChange, InventoryReads, InventoryWrites, LockMode, NewCluster, NewEntry,
    NewMachine, Snapshot, Standing, StandingReads, Store, TimelineWrites,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::rows::MachineRow;
use crate::world::World;

/// A cluster as a request describes it.
#[derive(Clone, Debug)]
pub struct ClusterInput {
    pub name: String,
    pub endpoint: String,
    pub contract: String,
    pub talos_cluster: TalosClusterId,
}

/// A machine as a request describes it.
#[derive(Clone, Debug)]
pub struct MachineInput {
    pub cluster: ClusterId,
    pub key: IdentityKey,
    pub serial: Option<String>,
    pub platform: Platform,
    pub endpoint: Endpoint,
}

impl<W: World> Requests<'_, W> {
    /// Records a cluster. A Talos cluster recorded already is 409, naming its record.
    pub async fn create_cluster(
        &self,
        admitted: &Admitted,
        input: &ClusterInput,
        render: impl Fn(&ClusterRow) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let id: ClusterId = self.db.mint();
        let act = self.db.mint();
        let outcome = self
            .run(admitted, Some(LockMode::Share), async |tx, installation| {
                let new = NewCluster {
                    id,
                    name: input.name.clone(),
                    endpoint: input.endpoint.clone(),
                    contract: input.contract.clone(),
                    talos_cluster: input.talos_cluster.clone(),
                    by: admitted.actor,
                    epoch: installation.epoch,
                };
                let (mut acts, at) = tx.open().lock_acts(&self.db.rules()).await?;
                acts.rows().insert_cluster(&new, at).await?;
                let rendered = render(&ClusterRow {
                    id,
                    name: new.name,
                    endpoint: new.endpoint,
                    contract: new.contract,
                    talos_cluster: new.talos_cluster,
                    created_by: admitted.actor.principal,
                    created_at: at,
                });
                Ok(Settled {
                    acts,
                    rendered,
                    act: ActDraft::new(act, Action::CLUSTER_CREATED).on(id),
                })
            })
            .await;
        match outcome {
            Ok(answer) => Ok(answer),
            Err(NotDone::Unique(_)) => {
                let mut snapshot = self.snapshot().await?;
                let found = snapshot.cluster_by_talos_id(&input.talos_cluster).await;
                snapshot.close().await;
                Err(recorded(
                    "The Talos cluster is recorded already.",
                    "cluster",
                    found.ok().flatten(),
                ))
            }
            Err(not_done) => Err(not_done.refused()),
        }
    }

    /// Records a machine with its empty state. Its identity key recorded already is 409,
    /// naming its record; of two concurrent requests for one key the index refuses one.
    pub async fn create_machine(
        &self,
        admitted: &Admitted,
        input: &MachineInput,
        render: impl Fn(&MachineRow, &Standing) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let id: MachineId = self.db.mint();
        let act = self.db.mint();
        let outcome = self
            .run(
                admitted,
                Some(LockMode::Share),
                async |mut tx, installation| {
                    let Some(cluster) = tx.peek().cluster(input.cluster).await? else {
                        return tx
                            .refuse(
                                Problem::not_found("No such cluster.")
                                    .naming("cluster", input.cluster),
                            )
                            .await;
                    };
                    let new = NewMachine {
                        id,
                        cluster: input.cluster,
                        key: input.key.clone(),
                        serial: input.serial.clone(),
                        platform: input.platform,
                        endpoint: input.endpoint,
                        scope: ScopeState::at_inventory(installation.recovery_mode),
                        by: admitted.actor,
                        epoch: installation.epoch,
                    };
                    let (mut acts, at) = tx.open().lock_acts(&self.db.rules()).await?;
                    acts.rows().insert_machine(&new, at).await?;
                    let row = MachineRow {
                        id,
                        cluster: new.cluster,
                        talos_cluster: cluster.talos_cluster,
                        key: new.key,
                        serial: new.serial,
                        platform: new.platform,
                        endpoint: new.endpoint,
                        frozen: false,
                        scope: new.scope,
                        timeline: bronzeward_core::revision::TimelineRevision(0),
                        created_at: at,
                        state: crate::rows::MachineStateRow::default(),
                    };
                    let rendered = render(&row, &Standing::default());
                    Ok(Settled {
                        acts,
                        rendered,
                        act: ActDraft::new(act, Action::MACHINE_CREATED)
                            .on(id)
                            .on(input.cluster),
                    })
                },
            )
            .await;
        match outcome {
            Ok(answer) => Ok(answer),
            Err(NotDone::Unique(_)) => {
                let mut snapshot = self.snapshot().await?;
                let found = snapshot.machine_by_key(&input.key).await;
                snapshot.close().await;
                Err(recorded(
                    "The identity key is recorded already.",
                    "machine",
                    found.ok().flatten(),
                ))
            }
            Err(not_done) => Err(not_done.refused()),
        }
    }

    /// Replaces a machine's endpoint: record, timeline entry and act, all or none. Plans
    /// keep the route they bound.
    pub async fn change_endpoint(
        &self,
        admitted: &Admitted,
        machine: MachineId,
        next: Endpoint,
        reason: Option<&str>,
        render: impl Fn(&MachineRow, &Standing) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let act = self.db.mint();
        let rules = self.db.rules();
        self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
            let (tx, row) = tx.lock_machine(machine, lock).await?;
            let Some(row) = row else {
                return tx.refuse(Problem::not_found("No such machine.")).await;
            };
            let mut row = row.into_row();
            let (mut acts, at) = tx.open().lock_acts(&rules).await?;
            let previous = row.endpoint;
            let data = Data::EndpointChange {
                from: previous,
                to: next,
                reason: reason.map(str::to_owned),
            };
            let by = By::Signed(admitted.actor.into());
            let entry = NewEntry::of(&data, by, installation.epoch, Some(act), at);
            let revision = acts.rows().append_entry(machine, &entry).await?;
            let change = EndpointChange {
                machine,
                revision,
                previous,
                next,
                reason: reason.map(str::to_owned),
                by: admitted.actor,
                epoch: installation.epoch,
                act,
                at,
            };
            acts.rows().change_endpoint(&change).await?;
            row.endpoint = next;
            row.timeline = revision;
            let standing = acts.rows().standings(&[machine]).await?.remove(&machine);
            Ok(Settled {
                acts,
                rendered: render(&row, &standing.unwrap_or_default()),
                act: ActDraft::new(act, Action::ENDPOINT_CHANGED).on(machine),
            })
        })
        .await
        .map_err(NotDone::refused)
    }

    /// One state of the database, for what a refusal names.
    pub(crate) async fn snapshot(&self) -> Result<crate::world::RawSnapshot<W>, Refused> {
        self.db
            .store()
            .snapshot()
            .await
            .map_err(|_| Problem::dependency_unavailable("The database could not be read.").into())
    }
}

/// 409 for a natural key that is recorded already (PA §7.3).
fn recorded<K: bronzeward_core::id::Kind>(
    words: &'static str,
    member: &str,
    found: Option<bronzeward_core::id::Id<K>>,
) -> Refused {
    let problem = Problem::conflict(words);
    match found {
        Some(id) => problem.naming(member, id).into(),
        None => problem.into(),
    }
}
