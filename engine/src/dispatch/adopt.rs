//! One adopt plan: a fresh reading of its machine, then the adoption record (EaR 6.3).
//!
//! The controller calls it for a plan that reads as approved, so the reading begins after
//! the approval. Never in this module: whether the reading suffices, which is decided
//! under the machine's lock.

use bronzeward_core::observation::Purpose;
use bronzeward_core::plan::{Approved, Plan};

use super::gather::not_observed;
use super::{Controller, Stop, class};
use crate::observe::Wanted;
use crate::ports::node::Asked;
use crate::tx::Failure;
use crate::tx::adoption::{AdoptionRefused, record_adoption, record_refusal};
use crate::world::World;

impl<W: World> Controller<W> {
    pub(super) async fn adopt(&self, approved: &Plan<Approved>) -> Result<(), Stop> {
        let binding = approved.binding();
        let wanted = Wanted {
            id: self.parts.db.mint(),
            machine: binding.machine,
            purpose: Purpose::Evidence,
            plan: Some(binding.id),
            operation: None,
            route: Some(binding.route),
            fence: None,
            asked: Asked::EVERYTHING,
        };
        // A reading that shows nothing is recorded too, and the adoption is refused on it.
        self.parts
            .observer
            .observe(&wanted)
            .await
            .map_err(not_observed)?;
        let plan = binding.id;
        match record_adoption(&self.parts.db, plan, self.parts.db.mint()).await {
            Ok(committed) => {
                let adopted = committed.into_inner();
                tracing::info!(
                    event = "adopted",
                    %plan,
                    machine = %adopted.machine,
                    operation = %adopted.operation,
                    pending_convergence = adopted.pending_convergence,
                    "a release was adopted"
                );
                Ok(())
            }
            // Another process adopted it, or its state moved: the next pass reads which.
            Err(Failure::Refused(AdoptionRefused::NotAdoptable)) => {
                Err(Stop::Later("the plan is not to be adopted any more"))
            }
            Err(Failure::Refused(AdoptionRefused::Failed(machine, refused))) => {
                match record_refusal(&self.parts.db, plan, machine, &refused).await {
                    Ok(committed) => {
                        self.raise(committed.into_inner());
                        Err(Stop::Later("the adoption was refused"))
                    }
                    Err(failure) => Err(Stop::Later(class(&failure))),
                }
            }
            Err(failure) => Err(Stop::Later(class(&failure))),
        }
    }
}
