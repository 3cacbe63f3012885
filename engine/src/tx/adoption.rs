//! The adoption record (EaR 6.3): an adopt plan's commitment, which sends nothing.
//!
//! Called by the controller after a fresh observation. What must hold is `core::adopt`'s;
//! a refusal rolls back and is then recorded by a transaction of its own, which any
//! process may write. Never in this module: a read of a node.

use bronzeward_core::adopt::{Adopted, Facts, NotAdopted, Requirement, adopt};
use bronzeward_core::drift::Resolution;
use bronzeward_core::fence::{Fence, Generation};
use bronzeward_core::id::{MachineId, OperationId, PlanId};
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_core::operation::OperationState;
use bronzeward_core::plan::{AnyPlan, Plan};
use bronzeward_core::principal::{By, Controller};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::DbTime;
use bronzeward_core::timeline::{Counter, Data};

use super::dispatch::{Last, Log, drift, scene};
use super::plans::applied;
use super::{Abort, Committed, Ended, Failure, Kind, Tx, lock_by, transact};
use crate::ports::Alert;
use crate::ports::store::{
    AdoptionReads, Condition, Guard, LockMode, NewAdoption, NewEntry, ObservationReads, StoreTx,
    Written,
};
use crate::tx::level::Start;
use crate::world::{Db, RawTx, World};

/// What an adoption left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdoptionRecorded {
    pub machine: MachineId,
    pub operation: OperationId,
    /// The machine now waits for an apply plan of the same release.
    pub pending_convergence: bool,
}

/// Why nothing was adopted.
#[derive(Debug)]
pub enum AdoptionRefused {
    /// The plan does not exist, or is no approved adopt plan.
    NotAdoptable,
    /// Requirements failed; the refusal is recorded by [`record_refusal`].
    Failed(MachineId, NotAdopted),
}

/// Records the adoption of `plan` (T6). `operation` is minted by the caller, so that a
/// lost answer can be looked up.
pub async fn record_adoption<W: World>(
    db: &Db<W>,
    plan: PlanId,
    operation: OperationId,
) -> Result<Committed<AdoptionRecorded>, Failure<AdoptionRefused>> {
    transact(db.store(), Kind::Job, async |tx| {
        adopted(db, plan, operation, tx).await
    })
    .await
}

async fn adopted<W: World>(
    db: &Db<W>,
    id: PlanId,
    operation: OperationId,
    tx: Tx<RawTx<W>, Start>,
) -> Result<Ended<RawTx<W>, AdoptionRecorded>, Abort<AdoptionRefused>> {
    let rules = db.rules();
    let mut scene = scene(db, tx, id, Last::PlanState)
        .await
        .map_err(|abort| match abort {
            Abort::Refused(_) => Abort::Refused(AdoptionRefused::NotAdoptable),
            Abort::Store(error) => Abort::Store(error),
        })?;
    let AnyPlan::Approved(plan) = scene.row.plan.clone() else {
        return scene.open.refuse(AdoptionRefused::NotAdoptable).await;
    };
    let (machine, installation, now) = (scene.machine.clone(), scene.installation, scene.now);
    let reads = scene.open.rows();
    let existing = reads.operation_of_plan(id).await?;
    let scope_holder = reads.scope_holder(machine.id).await?;
    // The store orders by read start; another order is the decision's to make.
    let one = rules.enforced(Rule::AdoptionHighestBasis) && rules.enforced(Rule::BasisIsReadStart);
    let observations = match one {
        true => reads
            .highest_observation(machine.id)
            .await?
            .into_iter()
            .collect(),
        false => {
            reads
                .observations_after(machine.id, TimelineRevision(0))
                .await?
        }
    };
    let applied = applied(&machine);
    let binding = plan.binding().clone();
    let facts = Facts {
        binding: &binding,
        standing: scene.standing(),
        now,
        epoch: installation.epoch,
        recovery_mode: installation.recovery_mode,
        process: db.process().epoch,
        existing,
        scope_holder,
        scope: &scene.scope,
        assignment: scene.assignment,
        desired: machine.state.desired,
        applied: applied.as_ref(),
        observations: &observations,
    };
    let adopted = match adopt(&rules, &facts) {
        Ok(adopted) => adopted,
        Err(failed) => {
            let refused = AdoptionRefused::Failed(machine.id, failed);
            return scene.open.refuse(refused).await;
        }
    };
    let fence = Fence {
        owner: db.process().owner.clone(),
        generation: Generation(1),
        epoch: installation.epoch,
    };
    let pending_convergence = adopted.pending_convergence;
    let record = Recording {
        plan,
        operation,
        fence,
        drift: binding.drift,
        counter: Counter(machine.timeline.0),
        now,
    };
    write(&rules, scene.open.rows(), record, &adopted).await?;
    scene.open.done(AdoptionRecorded {
        machine: machine.id,
        operation,
        pending_convergence,
    })
}

struct Recording {
    plan: Plan<bronzeward_core::plan::Approved>,
    operation: OperationId,
    fence: Fence,
    drift: Option<TimelineRevision>,
    counter: Counter,
    now: DbTime,
}

async fn write<R: Rules, T: StoreTx>(
    rules: &R,
    rows: &mut T,
    record: Recording,
    adopted: &Adopted,
) -> Result<(), Abort<AdoptionRefused>> {
    let binding = record.plan.binding().clone();
    let (machine, operation) = (binding.machine, record.operation);
    let (revision, next) = record.counter.allocate();
    // The drift record's closing entry is the last of the four.
    let closed = TimelineRevision(next.0 + 3);
    let new = NewAdoption {
        operation,
        fence: record.fence.clone(),
        binding: binding.clone(),
        revision,
        applied: adopted.applied,
        observation: adopted.observation,
        closed: record.drift.map(|drift| (drift, closed)),
        at: record.now,
    };
    rows.insert_adoption(&new).await?;
    let before = record.plan.revision().0;
    let plan = AnyPlan::Committed(record.plan.commit(&adopted.admission, operation));
    let guard = Guard::new().when(rules, Rule::RevisionUnchanged, Condition::Revision(before));
    if rows.write_plan_state(&plan, &guard).await? == Written::Stale {
        return Err(Abort::Refused(AdoptionRefused::NotAdoptable));
    }
    for data in entries(&binding, operation, record.drift, adopted) {
        let by = By::Controller(Controller::owning(&record.fence));
        let entry = NewEntry::of(&data, by, record.fence.epoch, None, record.now);
        rows.append_entry(machine, &entry.about(binding.id)).await?;
    }
    Ok(())
}

fn entries(
    binding: &bronzeward_core::plan::Binding,
    operation: OperationId,
    drift: Option<TimelineRevision>,
    adopted: &Adopted,
) -> Vec<Data> {
    let observation = adopted.observation;
    let mut entries = vec![
        Data::AdoptionRecord {
            plan: binding.id,
            operation,
            release: binding.release,
            observation,
        },
        Data::OperationState {
            operation,
            from: None,
            to: OperationState::Completed,
            cause: None,
            observation: Some(observation),
            reason: None,
        },
        Data::AppliedChange {
            release: adopted.applied.release,
            source: adopted.applied.source,
            baseline: adopted.applied.baseline,
            operation,
            observation,
        },
    ];
    entries.extend(drift.map(|drift| Data::DriftClosed {
        drift,
        resolution: Resolution::Adopted,
        observation: Some(observation),
    }));
    entries
}

/// Appends the refusal entry of an adoption that failed (EaR 3.2): every failed
/// comparison, ascending. It authorises nothing. Where the reading taken for the plan did not
/// show the imported configuration, it is applied to the machine's drift record (EaR 6.1).
pub async fn record_refusal<W: World>(
    db: &Db<W>,
    plan: PlanId,
    machine: MachineId,
    refused: &NotAdopted,
) -> Result<Committed<Option<Alert>>, Failure<()>> {
    let rules = db.rules();
    let on_digest = refused.failed.contains(&Requirement::ImportBaseDigest);
    transact(db.store(), Kind::Job, async |tx| {
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
        let (tx, row) = tx.lock_machine(machine, lock).await?;
        let (mut open, at) = tx.open_at().await?;
        let Some(row) = row else {
            return open.refuse(()).await;
        };
        let data = Data::Refusal {
            plan,
            operation: None,
            comparisons: refused.comparisons(),
            process_epoch: refused.process_epoch,
        };
        let seen = match on_digest {
            true => open.rows().highest_observation(machine).await?,
            false => None,
        };
        let process = db.process();
        let by = Controller::unowned(process.owner.clone(), process.epoch);
        let mut log = Log {
            rows: open.rows(),
            machine,
            plan: Some(plan),
            by: By::Controller(by),
            epoch: installation.epoch,
            at,
        };
        log.append(&data).await?;
        // A reading for another purpose was applied, or is not to be, where it was recorded.
        let own = |seen: &Observation| {
            seen.started.purpose == Purpose::Evidence && seen.started.plan == Some(plan)
        };
        let alert = match seen.filter(own) {
            Some(seen) => drift::observed(&rules, &mut log, &row, &seen).await?,
            None => None,
        };
        open.done(alert)
    })
    .await
}
