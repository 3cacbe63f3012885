//! The commitment (EaR 3.2): every comparison under its lock, then the plan's operation.

use std::sync::Arc;

use bronzeward_core::comparison::{self, Stage};
use bronzeward_core::fence::{Fence, Generation, lease_from};
use bronzeward_core::id::{OperationId, PlanId};
use bronzeward_core::operation::{self, Common, OperationState};
use bronzeward_core::plan::AnyPlan;
use bronzeward_core::principal::{By, Controller};
use bronzeward_core::rules::Rule;
use bronzeward_core::time::Span;
use bronzeward_core::timeline::{Counter, Data};

use super::{Evidence, Last, Log, Owned, Refused, Scene, facts, scene, unowned};
use crate::ports::store::{
    AdoptionReads, Condition, Guard, ObservationReads, OperationReads, OperationWrites, PlanWrites,
    Written,
};
use crate::tx::level::Start;
use crate::tx::{Abort, Ended, Failure, Kind, Tx, transact};
use crate::world::{Db, RawTx, World};

/// Commits an approved apply-config plan on this evidence. `operation` is minted by the
/// caller, so that a lost answer can be looked up. Refusals leave nothing; they are
/// recorded by [`super::record_not_admitted`].
pub async fn commit<W: World>(
    db: &Db<W>,
    plan: PlanId,
    evidence: &Evidence,
    operation: OperationId,
    lease: Span,
) -> Result<Owned, Failure<Refused>> {
    let committed = transact(db.store(), Kind::Job, async |tx| {
        committed(db, plan, evidence, operation, lease, tx).await
    })
    .await?;
    Ok(committed.into_inner())
}

async fn committed<W: World>(
    db: &Db<W>,
    plan: PlanId,
    evidence: &Evidence,
    id: OperationId,
    lease: Span,
    tx: Tx<RawTx<W>, Start>,
) -> Result<Ended<RawTx<W>, Owned>, Abort<Refused>> {
    let rules = db.rules();
    let mut scene = scene(db, tx, plan, Last::Rollout).await?;
    let admission = match admit(db, &mut scene, evidence).await? {
        Ok(admission) => admission,
        Err(refused) => return scene.open.refuse(refused).await,
    };
    let AnyPlan::Approved(approved) = scene.row.plan else {
        return scene.open.refuse(Refused::Gone).await;
    };
    let binding = Arc::clone(approved.binding());
    let (epoch, now) = (scene.installation.epoch, scene.now);
    let fence = Fence {
        owner: db.process().owner.clone(),
        generation: Generation::FIRST,
        epoch,
    };
    let (since, _) = Counter(scene.machine.timeline.0).allocate();
    let committed = operation::Committed::new(
        &admission,
        Common {
            id,
            plan,
            machine: binding.machine,
            cluster: binding.cluster,
            fence: fence.clone(),
            lease_until: lease_from(now, lease),
            attempts: Vec::new(),
            since,
            created_at: now,
        },
    );
    let rows = scene.open.rows();
    rows.insert_operation(&committed.common, epoch).await?;
    let before = approved.revision().0;
    let guard = Guard::new().when(&rules, Rule::RevisionUnchanged, Condition::Revision(before));
    let after = AnyPlan::Committed(approved.commit(&admission, id));
    if rows.write_plan_state(&after, &guard).await? == Written::Stale {
        return scene.open.refuse(Refused::Gone).await;
    }
    let mut log = Log {
        rows,
        machine: binding.machine,
        plan: Some(plan),
        by: By::Controller(Controller::owning(&fence)),
        epoch,
        at: now,
    };
    let commitment = Data::Commitment {
        plan,
        operation: id,
    };
    log.append(&commitment).await?;
    let state = Data::OperationState {
        operation: id,
        from: None,
        to: OperationState::Committed,
        cause: None,
        observation: None,
        reason: None,
    };
    log.append(&state).await?;
    scene.open.done(Owned {
        operation: id,
        plan,
        machine: binding.machine,
        cluster: binding.cluster,
        fence,
    })
}

async fn admit<W: World>(
    db: &Db<W>,
    scene: &mut Scene<RawTx<W>>,
    evidence: &Evidence,
) -> Result<Result<comparison::Admission, Refused>, crate::ports::store::StoreError> {
    let (plan, machine, cluster) = {
        let binding = scene.binding();
        (binding.id, binding.machine, binding.cluster)
    };
    let rows = scene.open.rows();
    let existing = rows.operation_of_plan(plan).await?;
    let scope_holder = rows.scope_holder(machine).await?;
    let rollout_holder = rows.rollout_holder(cluster).await?;
    let basis = evidence.observation.started.basis;
    let recorded = rows.observations_after(machine, basis).await?;
    let stage = Stage::Commitment {
        existing,
        scope_holder,
        rollout_holder,
    };
    let controller = unowned(db);
    let facts = facts(db, scene, &controller, evidence, &recorded, stage);
    Ok(comparison::compare(&db.rules(), &facts)
        .map_err(|refused| Refused::NotAdmitted(Box::new(refused))))
}
