//! Evidence for one plan (EaR 3.1): the access, a fresh reading, and the use-time check.
//!
//! The access is read once and serves the reading, the check and the request. Never in this
//! module: whether the evidence suffices, which is compared under the machine's lock.

use bronzeward_core::comparison::ArtifactCheck;
use bronzeward_core::inventory::Endpoint;
use bronzeward_core::observation::Purpose;
use bronzeward_core::plan::Binding;
use bronzeward_core::rules::{Rule, Rules as _};
use bronzeward_core::secret::Plaintext;

use super::{Controller, Stop, class};
use crate::artifact::{self, Artifact};
use crate::observe::{Accessed, Refusal as NotObserved, Wanted};
use crate::ports::node::Asked;
use crate::tx::Failure;
use crate::tx::dispatch::{Checked, Evidence, Owned, record_check};
use crate::world::World;

/// What was gathered: the recorded evidence, and what a request would be made with. It lives
/// for one try, and has no Debug.
pub(super) struct Gathered {
    pub evidence: Evidence,
    pub ready: Option<Ready>,
}

/// The access and the artifact's plaintext.
pub(super) struct Ready {
    pub accessed: Accessed,
    pub artifact: Plaintext,
}

impl<W: World> Controller<W> {
    /// Gathers for a plan, or for the next attempt of its operation.
    pub(super) async fn gather(
        &self,
        binding: &Binding,
        owned: Option<&Owned>,
    ) -> Result<Gathered, Stop> {
        let observer = &self.parts.observer;
        let accessed = observer.access(binding.cluster).await;
        let wanted = Wanted {
            id: self.parts.db.mint(),
            machine: binding.machine,
            purpose: Purpose::Evidence,
            plan: Some(binding.id),
            operation: owned.map(|owned| owned.operation),
            route: self.route(binding),
            fence: owned.map(|owned| owned.fence.clone()),
            asked: Asked::EVERYTHING,
        };
        let (started, _) = observer.begin(&wanted).await.map_err(not_observed)?;
        let (values, accessed) = match accessed {
            Ok(accessed) => {
                let values = observer.read(&started, &accessed, wanted.asked).await;
                (values, Some(accessed))
            }
            // A failed read is recorded as one that read nothing.
            Err(values) => (*values, None),
        };
        let observation = observer
            .complete(started, values, wanted.fence.as_ref())
            .await
            .map_err(not_observed)?;
        let (artifact, opened) = match &accessed {
            Some(_) => self.open(binding).await,
            None => (ArtifactCheck::NotTried, None),
        };
        let checked = Checked {
            access: observation.values.access.clone(),
            artifact,
        };
        let of = owned.map(|owned| (owned.operation, &owned.fence));
        let check = record_check(&self.parts.db, binding, of, &checked).await?;
        Ok(Gathered {
            evidence: Evidence {
                observation,
                check,
                access: accessed.as_ref().map(|accessed| accessed.version.clone()),
            },
            ready: accessed
                .zip(opened)
                .map(|(accessed, artifact)| Ready { accessed, artifact }),
        })
    }

    /// Decrypts the bound artifact under the bound key version, as the executor.
    async fn open(&self, binding: &Binding) -> (ArtifactCheck, Option<Plaintext>) {
        let artifact = Artifact {
            release: binding.release,
            machine: binding.machine,
            key: &binding.key,
            digest: binding.artifact_digest,
        };
        let parts = &self.parts;
        artifact::open(&parts.db, &*parts.executor, &*parts.metadata, artifact).await
    }

    /// Where a plan's readings and its request go: its bound route, whatever the machine's
    /// endpoint is by now.
    fn route(&self, binding: &Binding) -> Option<Endpoint> {
        let bound = self.parts.db.rules().enforced(Rule::BoundRouteDialled);
        bound.then_some(binding.route)
    }

    /// A reading of the machine by its operation's bound route, recorded for `purpose`. With
    /// a fence it is refused once the operation is another owner's.
    pub(super) async fn observe_operation(
        &self,
        binding: &Binding,
        operation: bronzeward_core::id::OperationId,
        purpose: Purpose,
        fence: Option<&bronzeward_core::fence::Fence>,
    ) -> Result<(), Stop> {
        let wanted = Wanted {
            id: self.parts.db.mint(),
            machine: binding.machine,
            purpose,
            plan: Some(binding.id),
            operation: Some(operation),
            route: self.route(binding),
            fence: fence.cloned(),
            asked: Asked::EVERYTHING,
        };
        let observed = self.parts.observer.observe(&wanted).await;
        observed.map(drop).map_err(not_observed)
    }
}

pub(super) fn not_observed(failure: Failure<NotObserved>) -> Stop {
    match failure {
        Failure::Refused(NotObserved::Superseded) => Stop::Superseded,
        Failure::Refused(NotObserved::NotOwner) => Stop::Later("the operation is another owner's"),
        Failure::Refused(NotObserved::NoMachine) => Stop::Later("the machine is not there"),
        failure => Stop::Later(class(&failure)),
    }
}
