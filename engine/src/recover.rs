//! The recovery acts that look before they decide (EaR 7.1, 7.3; PA §9.2): a scope's mark and
//! a machine's decommission.
//!
//! Http calls them. The observation and the provider's answers are had between transactions,
//! and the act's own transaction decides on what was recorded of them. Never in this module:
//! the mutating client, or a decision of a scope's state.

use std::sync::Arc;

use bronzeward_core::comparison::ArtifactCheck;
use bronzeward_core::id::{DependencyId, MachineId, ReleaseId};
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_core::problem::Problem;
use bronzeward_core::scope::{ScopeRefusal, ScopeState};

use crate::artifact::{self, Artifact};
use crate::observe::{Observer, Refusal as NotObserved, Wanted};
use crate::ports::AlertSink as _;
use crate::ports::node::Asked;
use crate::ports::store::{
    InventoryReads as _, PlanReads as _, PlannedRelease, RequestReads as _, Snapshot,
};
use crate::request::{Admitted, Answer, Refused, Rendered, Requests, unreadable};
use crate::rows::MachineRow;
use crate::tx::Failure;
use crate::tx::recovery::{
    Decommissioned, Looked, ScopeChanged, ScopeInput, no_machine, outside_recovery, scope_refused,
    superseded,
};
use crate::world::{Db, World};

/// What looking needs of the world.
pub struct Eyes<W: World> {
    pub observer: Observer<W>,
    pub executor: Arc<W::Executor>,
    pub metadata: Arc<W::Metadata>,
    /// A restoration observation that differs from Applied opens a drift record (EaR 6.1).
    pub alerts: Arc<W::Alerts>,
}

/// The recovery acts of one process. Without a provider it has no eyes, and what would have
/// to look answers 503.
pub struct Recoverer<W: World> {
    pub db: Db<W>,
    pub eyes: Option<Eyes<W>>,
}

impl<W: World> Recoverer<W> {
    fn requests(&self) -> Requests<'_, W> {
        Requests { db: &self.db }
    }

    /// Marks a scope after a restoration observation of its machine and a check of what
    /// applies its Desired release.
    pub async fn mark_scope(
        &self,
        admitted: &Admitted,
        input: &ScopeInput,
        render: impl Fn(&ScopeChanged) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let requests = self.requests();
        if let Some(answer) = requests.first_lookup(admitted).await? {
            return Ok(answer);
        }
        let machine = self.markable(input.machine).await?;
        let eyes = self.eyes.as_ref().ok_or_else(no_executor)?;
        let desired = machine.state.desired;
        let access = eyes.observer.access(machine.cluster).await;
        let access = access.ok().map(|accessed| accessed.version);
        let failed = match desired {
            Some(release) => self.unapplicable(eyes, machine.id, release).await?,
            None => Vec::new(),
        };
        let observation = self.restored(eyes, machine.id).await?;
        let looked = Looked {
            observation,
            access,
            failed,
            desired,
        };
        requests.mark_scope(admitted, input, &looked, render).await
    }

    /// Writes a machine off unless it can still be observed.
    pub async fn decommission(
        &self,
        admitted: &Admitted,
        machine: MachineId,
        reason: &str,
        render: impl Fn(&Decommissioned) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let requests = self.requests();
        if let Some(answer) = requests.first_lookup(admitted).await? {
            return Ok(answer);
        }
        let (row, _) = self.read(machine).await?;
        if row.scope == ScopeState::Retired {
            let problem = Problem::conflict("The machine is decommissioned already.");
            return Err(problem.naming("machine", machine).into());
        }
        let eyes = self.eyes.as_ref().ok_or_else(no_executor)?;
        let observation = self.identified(eyes, machine).await?;
        requests
            .decommission(admitted, machine, reason, &observation, render)
            .await
    }

    /// The machine, where its scope is in a state that a mark moves: else nothing is observed.
    async fn markable(&self, machine: MachineId) -> Result<MachineRow, Refused> {
        let (row, recovery_mode) = self.read(machine).await?;
        if !recovery_mode {
            return Err(outside_recovery().into());
        }
        match row.scope {
            ScopeState::Blocked | ScopeState::Unresolved | ScopeState::Ready => Ok(row),
            ScopeState::PreRestoreUnaccounted => {
                Err(scope_refused(machine, ScopeRefusal::Unaccounted).into())
            }
            ScopeState::Normal | ScopeState::Released { .. } | ScopeState::Retired => {
                Err(scope_refused(machine, ScopeRefusal::NotMarkable).into())
            }
        }
    }

    /// The machine, and whether recovery mode is in effect.
    async fn read(&self, machine: MachineId) -> Result<(MachineRow, bool), Refused> {
        let mut snapshot = self.requests().snapshot().await?;
        let row = snapshot.machine(machine).await;
        let installation = snapshot.installation().await;
        snapshot.close().await;
        let row = row.map_err(|_| unreadable())?;
        let installation = installation.map_err(|_| unreadable())?;
        let row = row.ok_or_else(|| no_machine(machine))?;
        Ok((row, installation.recovery_mode))
    }

    /// What the machine shows after the restore, and what that makes of its drift record.
    async fn restored(&self, eyes: &Eyes<W>, machine: MachineId) -> Result<Observation, Refused> {
        let (id, purpose) = (self.db.mint(), Purpose::Restoration);
        let wanted = Wanted::of_machine(id, machine, purpose, Asked::EVERYTHING);
        let detected = eyes.observer.detect(&wanted).await;
        let detected = detected.map_err(|failure| not_observed(machine, &failure))?;
        if let Some(alert) = detected.alert {
            eyes.alerts.raise(alert);
        }
        Ok(detected.observation)
    }

    async fn identified(&self, eyes: &Eyes<W>, machine: MachineId) -> Result<Observation, Refused> {
        let (id, purpose) = (self.db.mint(), Purpose::Recovery);
        let wanted = Wanted::of_machine(id, machine, purpose, Asked::IDENTITY);
        match eyes.observer.observe(&wanted).await {
            Ok((observation, _)) => Ok(observation),
            Err(failure) => Err(not_observed(machine, &failure)),
        }
    }

    /// What applying the release to the machine needs and cannot be had, by its status row:
    /// the key version its artifact is encrypted under.
    async fn unapplicable(
        &self,
        eyes: &Eyes<W>,
        machine: MachineId,
        release: ReleaseId,
    ) -> Result<Vec<DependencyId>, Refused> {
        let mut snapshot = self.requests().snapshot().await?;
        let planned = snapshot.planned_release(release, machine).await;
        let planned = planned.map_err(|_| unreadable());
        let needs = match planned {
            Ok(planned) => needs(&mut snapshot, planned).await,
            Err(refused) => Err(refused),
        };
        snapshot.close().await;
        let (planned, dependency) = needs?;
        let artifact = Artifact {
            release,
            machine,
            key: &planned.key,
            digest: planned.artifact_digest,
        };
        let opened = artifact::open(&self.db, &*eyes.executor, &*eyes.metadata, artifact).await;
        match opened {
            (ArtifactCheck::Matches, Some(_)) => Ok(Vec::new()),
            _ => Ok(vec![dependency]),
        }
    }
}

/// A Desired release's record of its machine, and the status row of its artifact's key
/// version. Publication wrote both, so that an absence is a fault.
async fn needs<S: Snapshot>(
    snapshot: &mut S,
    planned: Option<PlannedRelease>,
) -> Result<(bronzeward_core::plan::ReleaseMachineFacts, DependencyId), Refused> {
    let facts = planned.and_then(|release| release.machine);
    let facts = facts.ok_or_else(broken)?.facts;
    let objects = std::iter::once(facts.key.name.clone()).collect();
    let rows = snapshot.statuses(&objects).await;
    let created = facts.key.created.to_string();
    let dependency = rows
        .map_err(|_| unreadable())?
        .into_iter()
        .find(|row| row.version == facts.key.version && row.created == created)
        .ok_or_else(broken)?;
    Ok((facts, dependency.id))
}

fn broken() -> Refused {
    Problem::internal("The machine's Desired release is not recorded whole.").into()
}

fn no_executor() -> Refused {
    Problem::dependency_unavailable("This process has no executor that could look.").into()
}

/// What a missing observation answers (PA §14); what it recorded before stays.
fn not_observed(machine: MachineId, failure: &Failure<NotObserved>) -> Refused {
    match failure {
        Failure::Refused(NotObserved::Superseded) => superseded().into(),
        Failure::Refused(NotObserved::NoMachine) => no_machine(machine).into(),
        Failure::Unavailable => unreadable(),
        Failure::Refused(NotObserved::NotOwner)
        | Failure::Deadlock
        | Failure::Unknown
        | Failure::Unique(_)
        | Failure::Integrity(_)
        | Failure::Fault => Problem::internal("The observation was not recorded.").into(),
    }
}
