//! Reading a machine's configuration for an ingestion (PA §3.3).

use bronzeward_core::id::{ClusterId, MachineId};
use bronzeward_core::inventory::{Endpoint, MachineIdentity};
use bronzeward_core::job::Event;
use bronzeward_core::observation::{AccessVersion, IdentityMismatch};
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::secret::Unresolved;

use super::{Ingester, Stop};
use crate::ports::node::{Asked, NodeReader, ReadFailure};
use crate::ports::provider::IngestionSecrets;
use crate::ports::store::{InventoryReads, Snapshot, Store};
use crate::tx::Owned;
use crate::world::World;

/// Where a machine is reached and who it must be.
struct Target {
    cluster: ClusterId,
    endpoint: Endpoint,
    identity: MachineIdentity,
}

impl<W: World> Ingester<W> {
    /// Reads the configuration of `machine`, after its identity on the same connection. The
    /// access version and the endpoint are recorded before the node is dialled.
    pub(super) async fn read_machine(
        &self,
        owned: &Owned,
        machine: MachineId,
    ) -> Result<Unresolved, Stop> {
        let target = self.target(machine).await?;
        let unavailable = || {
            Problem::new(ProblemCode::TalosAccessUnavailable)
                .say("The cluster's Talos access is not available.")
                .naming("cluster", target.cluster)
        };
        let access = self.ingestion.read_talos_access(target.cluster).await;
        let access = access.map_err(|_| unavailable())?;
        let version = AccessVersion {
            path: access.version.path.clone(),
            version: i64::try_from(access.version.version).map_err(|_| unavailable())?,
            created: access.version.created.clone(),
        };
        let read = Event::TalosAccess {
            access: version,
            endpoint: target.endpoint,
        };
        let recorded = owned.record(&self.db, &read).await;
        recorded.map_err(|failure| Stop::of(&failure))?;
        let usable = self
            .reader
            .access(access.talosconfig.expose().as_bytes())
            .map_err(|_| unavailable())?;
        drop(access);
        let (asked, limits) = (Asked::CONFIGURATION, self.settings.limits);
        let reading = self.reader.observe(&usable, target.endpoint, asked, limits);
        let seen = reading.await;
        drop(usable);
        match seen.identity {
            Err(unread) => return Err(unread_problem(machine, unread.of_identity()).into()),
            Ok(identity) => {
                if let Some(mismatch) = identity.mismatch(&target.identity)
                    && !self.db.rules().holds(Rule::IngestionIdentity, false)
                {
                    return Err(mismatched(machine, Some(mismatch)).into());
                }
            }
        }
        match seen.configuration {
            Some(Ok(configuration)) => Ok(Unresolved::new(configuration.into_bytes())),
            Some(Err(unread)) => Err(unread_problem(machine, unread.of_configuration()).into()),
            None => Err(Problem::internal("The node's configuration was not asked for.").into()),
        }
    }

    /// The endpoint is the machine's current one (PA §3.3).
    async fn target(&self, machine: MachineId) -> Result<Target, Stop> {
        let unreadable = |_| Stop::Left("the database is unavailable");
        let mut snapshot = self.db.store().snapshot().await.map_err(unreadable)?;
        let row = snapshot.machine(machine).await;
        snapshot.close().await;
        let row = row.map_err(unreadable)?;
        let row = row.ok_or(Stop::Left("the machine is unknown"))?;
        Ok(Target {
            cluster: row.cluster,
            endpoint: row.endpoint,
            identity: MachineIdentity {
                key: row.key,
                talos_cluster: row.talos_cluster,
            },
        })
    }
}

fn unread_problem(machine: MachineId, failure: ReadFailure) -> Problem {
    match failure {
        ReadFailure::AccessUnavailable => Problem::new(ProblemCode::TalosAccessUnavailable)
            .say("The machine did not answer, or did not accept the cluster's Talos access.")
            .naming("machine", machine),
        ReadFailure::IdentityUnread => mismatched(machine, None),
    }
}

fn mismatched(machine: MachineId, how: Option<IdentityMismatch>) -> Problem {
    let differs = match how {
        None => "identity-unread",
        Some(IdentityMismatch::SmbiosUuidDiffers) => "smbios-uuid-differs",
        Some(IdentityMismatch::SmbiosUuidAbsent) => "smbios-uuid-absent",
        Some(IdentityMismatch::SmbiosUuidReported) => "smbios-uuid-reported",
        Some(IdentityMismatch::NodeIdDiffers) => "talos-node-id-differs",
        Some(IdentityMismatch::TalosClusterDiffers) => "talos-cluster-id-differs",
    };
    Problem::new(ProblemCode::MachineIdentityMismatch)
        .say("The node is not the recorded machine.")
        .naming("machine", machine)
        .naming("mismatch", differs)
}
