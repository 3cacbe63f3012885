//! A scope's mark (EaR 7.1, PA §9.2): its state by what was looked at before.

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::id::{DependencyId, OperationId, ReleaseId};
use bronzeward_core::observation::{AccessVersion, Observation};
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::scope::{MarkEvidence, ScopeRefusal};
use bronzeward_core::timeline::Data;

use super::{Log, ScopeChanged, ScopeInput, decided, in_recovery, no_machine, scope_refused};
use crate::ports::store::{
    AdoptionReads, LockMode, NewScopeMark, RecoveryReads, RecoveryWrites, StoreError, StoreReads,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::rows::MachineRow;
use crate::tx::actor::standing_actor;
use crate::tx::lock_by;
use crate::tx::plans::{identity, scope};
use crate::world::World;

/// What was looked at before the transaction: the restoration observation, and whether
/// Desired could be applied.
#[derive(Clone, Debug)]
pub(crate) struct Looked {
    pub observation: Observation,
    /// The version of the Talos access that the check read; none where it read none.
    pub access: Option<AccessVersion>,
    /// What applying Desired needs and the provider does not hold.
    pub failed: Vec<DependencyId>,
    /// The release that was checked.
    pub desired: Option<ReleaseId>,
}

impl<W: World> Requests<'_, W> {
    /// Marks a scope by its evidence. The refusals that need no observation are made again
    /// here, under the locks.
    pub(crate) async fn mark_scope(
        &self,
        admitted: &Admitted,
        input: &ScopeInput,
        looked: &Looked,
        render: impl Fn(&ScopeChanged) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (db, rules, of) = (self.db, self.db.rules(), input.machine);
        let act = ActDraft::new(db.mint(), Action::SCOPE_MARKED).on(of);
        self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            if let Err(problem) = in_recovery(db, &installation) {
                return tx.refuse(problem).await;
            }
            let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
            let (tx, machine) = tx.lock_machine(of, lock).await?;
            let Some(machine) = machine else {
                return tx.refuse(no_machine(of)).await;
            };
            let tx = standing_actor(&rules, tx, admitted).await?;
            // An operation of this machine begins, ends and moves under its lock only.
            let mut open = tx.open();
            let holder = open.rows().scope_holder(of).await?;
            let accounted = open.rows().scope_accounted(of, installation.epoch).await?;
            let after_accounting =
                accounted.is_some_and(|at| looked.observation.began_after(&rules, at));
            let recorded = Recorded {
                holder,
                after_accounting,
            };
            let evidence = evidence(rules, open.rows(), &machine, looked, recorded).await?;
            let marked = match scope(&machine, None).mark(&rules, &evidence) {
                Ok(marked) => marked,
                Err(refusal) => return open.refuse(scope_refused(of, refusal)).await,
            };
            if machine.state.desired != looked.desired {
                let refusal = scope_refused(of, ScopeRefusal::DesiredChanged);
                return open.refuse(refusal).await;
            }
            let (mut acts, at) = open.lock_acts(&rules).await?;
            let decided = decided(admitted, &act, installation.epoch, at);
            let observation = looked.observation.started.id;
            let mut log = Log {
                rows: acts.rows(),
                decided: &decided,
            };
            let change = Data::ScopeState {
                from: marked.from,
                to: marked.to,
                observation: Some(observation),
                missing: marked.missing.clone(),
                desired: looked.desired,
                facts: input.facts.clone(),
            };
            let (revision, entry) = log.move_scope(of, &change, marked.to).await?;
            let mark = NewScopeMark {
                machine: of,
                revision,
                marked: marked.clone(),
                observation,
                desired: looked.desired,
                facts: input.facts.clone(),
                decided: decided.clone(),
            };
            log.rows.insert_scope_mark(&mark).await?;
            let changed = ScopeChanged {
                machine: of,
                from: marked.from,
                to: marked.to,
                observation: Some(observation),
                missing: marked.missing,
                entry,
            };
            Ok(Settled {
                acts,
                rendered: render(&changed),
                act: act.clone(),
            })
        })
        .await
        .map_err(NotDone::refused)
    }
}

/// What the scope's own records say beside the observation.
struct Recorded {
    holder: Option<OperationId>,
    after_accounting: bool,
}

async fn evidence<R: Rules, T: StoreReads>(
    rules: R,
    rows: &mut T,
    machine: &MachineRow,
    looked: &Looked,
    scope: Recorded,
) -> Result<MarkEvidence, StoreError> {
    let (seen, machine_identity) = (&looked.observation, identity(machine));
    let basis = seen.basis(&rules);
    let later = rows.observations_after(machine.id, basis).await?;
    let another =
        |seen: &Observation| matches!(seen.identity_mismatch(&machine_identity), Ok(Some(_)));
    let read = seen.values.access.value();
    let as_checked = read
        .zip(looked.access.as_ref())
        .is_some_and(|(read, checked)| read.is(&rules, checked));
    Ok(MarkEvidence {
        observation: seen.started.id,
        identity_read: seen.values.identity.value().is_some(),
        identity_matches: !another(seen) && !later.iter().any(another),
        after_accounting: scope.after_accounting,
        operation_moved_since: rows.operation_moved_after(machine.id, basis).await?,
        access_as_checked: as_checked,
        access_checked: looked.access.is_some(),
        failed_dependencies: looked.failed.clone(),
        operation_open: scope.holder.is_some(),
    })
}
