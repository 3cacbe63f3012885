//! Writing off a machine that can never be observed again (EaR 7.3).

use std::collections::BTreeMap;

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::id::MachineId;
use bronzeward_core::observation::Observation;
use bronzeward_core::problem::Problem;
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::{DecommissionRefusal, ScopeState};
use bronzeward_core::timeline::{Counter, Data};

use super::{Log, current, decided, moved, no_machine};
use crate::ports::store::{
    AdoptionReads, Decided, EntryRow, LockMode, NewDecommission, ObservationReads, RecoveryWrites,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::tx::dispatch::{ByAct, take_over_by_act};
use crate::tx::lock_by;
use crate::tx::plans::scope;
use crate::world::World;

/// A decommission as it is answered.
#[derive(Clone, Debug)]
pub struct Decommissioned {
    pub machine: MachineId,
    pub reason: String,
    pub decided: Decided,
    pub entry: EntryRow,
}

impl<W: World> Requests<'_, W> {
    /// Writes a machine off, on an observation that read no identity and none since that did.
    /// Its operation is taken from its owner and stays `unresolved`, and holds nothing.
    pub(crate) async fn decommission(
        &self,
        admitted: &Admitted,
        of: MachineId,
        reason: &str,
        observation: &Observation,
        render: impl Fn(&Decommissioned) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (db, rules) = (self.db, self.db.rules());
        let act = ActDraft::new(db.mint(), Action::MACHINE_DECOMMISSIONED).on(of);
        self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            if let Err(problem) = current(db, &installation) {
                return tx.refuse(problem).await;
            }
            let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
            let (mut tx, machine) = tx.lock_machine(of, lock).await?;
            let Some(machine) = machine else {
                return tx.refuse(no_machine(of)).await;
            };
            let holder = tx.peek().scope_holder(of).await?;
            let holder = holder.into_iter().collect();
            let (tx, held) = tx.lock_operations(&holder, LockMode::Update).await?;
            let mut open = tx.open();
            let basis = observation.basis(&rules);
            let later = open.rows().observations_after(of, basis).await?;
            let scope = scope(&machine, None);
            for seen in std::iter::once(observation).chain(&later) {
                if let Err(refusal) = scope.decommission(&rules, seen) {
                    return open.refuse(refused(of, refusal)).await;
                }
            }
            let (mut acts, at) = open.lock_acts(&rules).await?;
            let decided = decided(admitted, &act, installation.epoch, at);
            let mut log = Log {
                rows: acts.rows(),
                decided: &decided,
            };
            let data = Data::Decommission {
                reason: reason.to_owned(),
            };
            let (revision, entry) = log.append(of, &data).await?;
            if let Some(operation) = held.first() {
                let taking = ByAct {
                    decided: &decided,
                    reason,
                    revision: Counter(revision.0).allocate().0,
                };
                take_over_by_act(db, log.rows, operation, &taking).await?;
            }
            let decommission = NewDecommission {
                machine: of,
                revision,
                reason: reason.to_owned(),
                decided: decided.clone(),
            };
            log.rows.insert_decommission(&decommission).await?;
            let change = moved(machine.scope, ScopeState::Retired, &BTreeMap::new());
            log.move_scope(of, &change, ScopeState::Retired).await?;
            let decommissioned = Decommissioned {
                machine: of,
                reason: reason.to_owned(),
                decided,
                entry,
            };
            Ok(Settled {
                acts,
                rendered: render(&decommissioned),
                act: act.clone(),
            })
        })
        .await
        .map_err(NotDone::refused)
    }
}

fn refused(machine: MachineId, refusal: DecommissionRefusal) -> Problem {
    match refusal {
        DecommissionRefusal::AlreadyRetired => {
            Problem::conflict("The machine is decommissioned already.").naming("machine", machine)
        }
        DecommissionRefusal::Observable(observation) => {
            Problem::conflict("The machine was observed: its identity was read.")
                .naming("machine", machine)
                .naming("observation", observation)
        }
    }
}
