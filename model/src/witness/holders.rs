//! Who holds a scope and a rollout, and what a commitment's locks keep still (EaR 3.2, PA §5):
//! two at a time, where each is refused or waits with the rule.

use std::sync::Arc;

use bronzeward_core::id::kind;
use bronzeward_core::time::Span;

use super::stage::{ADMIN, APPROVER, PUBLISHER, Stage, Step};
use super::steps::Subject;
use super::{Witness, rows};
use crate::people::acts::made;
use crate::pg::Eye;
use crate::seed::End;
use crate::server::LEASE;

/// Two machines of one cluster are committed.
fn two_machines(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    for subject in stage.subjects()?.iter().take(2) {
        let evidence = stage.gather(&server, subject, None)?;
        stage.commit(&server, subject.plan, &evidence)?;
    }
    Ok(())
}

/// Two plans of one machine are committed.
fn two_plans(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let first = stage.subject()?;
    let (release, machine) = (first.binding.release, first.machine);
    let ended = stage.asked(&server, PUBLISHER, move |hand| async move {
        hand.plan(release, machine, false).await
    })?;
    let plan = made::<kind::Plan>(&ended);
    let plan = plan.ok_or_else(|| End::Error(format!("a second plan: {ended:?}")))?;
    stage.asked(&server, APPROVER, move |hand| async move {
        hand.approve(plan).await
    })?;
    let second = stage.subject_of(plan, first.approval)?;
    for subject in [first, second] {
        let evidence = stage.gather(&server, &subject, None)?;
        stage.commit(&server, subject.plan, &evidence)?;
    }
    Ok(())
}

/// A plan's operation has ended, and the plan's row says that it is approved still.
fn plan_again(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let subject = stage.subject()?;
    let evidence = stage.gather(&server, &subject, None)?;
    let owned = stage.commit(&server, subject.plan, &evidence)?;
    let owned = owned.ok_or_else(|| End::Error("a commitment".to_owned()))?;
    let operation = owned.operation;
    stage.pass(LEASE + Span::seconds(1))?;
    let row = stage.operation(operation)?;
    stage.take_over(&server, &row)?;
    stage.asked(&server, ADMIN, move |hand| async move {
        hand.resolve(operation).await
    })?;
    stage.alter(
        |tables| &mut tables.execution.plan_states,
        subject.plan,
        |state| {
            state.state = "approved".to_owned();
            state.operation = None;
        },
    )?;
    let evidence = stage.gather(&server, &subject, None)?;
    stage.commit(&server, subject.plan, &evidence).map(drop)
}

/// A commitment has looked at everything; somebody takes the authority from under it; then it
/// commits. With its locks the other waits.
fn withdrawn(stage: &mut Stage, withdraw: fn(&mut Stage, &Subject) -> Step) -> Step {
    let server = stage.server()?;
    let subject = stage.subject()?;
    let evidence = stage.gather(&server, &subject, None)?;
    let (of, plan) = (Arc::clone(&server), subject.plan);
    let committing = stage.begin(server.id, async move {
        let lease = crate::server::LEASE;
        bronzeward_engine::tx::dispatch::commit(&of.db, plan, &evidence, of.db.mint(), lease)
            .await
            .is_ok()
    });
    stage.until_said(&server, "read observations")?;
    stage.hold(&server);
    withdraw(stage, &subject)?;
    stage.let_go(&server);
    stage.finish(&committing).map(drop)
}

/// As long as it takes to end, or to wait.
fn a_while(stage: &mut Stage) -> Step {
    stage.pass(Span::seconds(2))
}

fn approver(stage: &mut Stage, subject: &Subject) -> Step {
    let approval = subject.approval;
    let identity = stage.see(|tables| {
        let record = tables.execution.approvals.get(Eye::COMMITTED, &approval);
        record.map(|record| record.approval.approver.principal)
    });
    let identity = identity.ok_or_else(|| End::Error("no such approval".to_owned()))?;
    let desk = stage.server()?;
    stage.ask(&desk, ADMIN, move |hand| async move {
        hand.revoke_identity(identity).await
    });
    a_while(stage)
}

pub const WITNESSES: &[Witness] = rows! {
    "two machines of a rollout", [RolloutFree OneHolderPerRollout], "one holder per rollout",
        two_machines;
    "two machines of a rollout, by the index", [OneHolderPerRollout RolloutFree],
        "one holder per rollout", two_machines;
    "two plans of a machine",
        [ScopeFree OneHolderPerScope RolloutFree OneHolderPerRollout],
        "one holder per scope", two_plans;
    "two plans of a machine, by the index",
        [OneHolderPerScope ScopeFree RolloutFree OneHolderPerRollout],
        "one holder per scope", two_plans;
    "a plan that has its operation", [NoOperationForPlan OneOperationPerPlan],
        "one operation per plan", plan_again;
    "a plan that has its operation, by the index", [OneOperationPerPlan NoOperationForPlan],
        "one operation per plan", plan_again;
    "its approver revoked while it commits",
        [ApproverShared MachineRowLock InstallationExclusive],
        "a revoked approver authorises nothing", |stage| withdrawn(stage, approver);
};
