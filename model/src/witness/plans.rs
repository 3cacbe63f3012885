//! What plans and approvals are made of (EaR 2, PA §9.3): a premise, and a request.

use bronzeward_core::id::{PlanId, kind};
use bronzeward_core::plan::Requested;
use bronzeward_core::release::MachineType;
use bronzeward_core::scope::ScopeState;
use bronzeward_engine::tx::plans::PlanInput;

use super::stage::{APPROVER, PUBLISHER, Stage, Step};
use super::steps::Subject;
use super::{Witness, rows};
use crate::people::acts::made;
use crate::people::hand::Person;

type Premise = fn(&mut Stage, &mut Subject) -> Step;

/// The plan that is asked for, where it is made.
fn planned(
    stage: &mut Stage,
    premise: Premise,
    adopt: bool,
    requested: Requested,
) -> Step<Option<PlanId>> {
    let desk = stage.server()?;
    let mut subject = stage.subject()?;
    premise(stage, &mut subject)?;
    let input = PlanInput {
        release: subject.binding.release,
        machine: subject.machine,
        adopt,
        requested,
    };
    let ended = stage.asked(&desk, PUBLISHER, move |hand| async move {
        hand.plan_with(input, "planned").await
    })?;
    Ok(made::<kind::Plan>(&ended))
}

fn nothing(_: &mut Stage, _: &mut Subject) -> Step {
    Ok(())
}

fn another_desired(stage: &mut Stage, subject: &mut Subject) -> Step {
    stage.desire_another(subject)
}

fn reassigned(stage: &mut Stage, subject: &mut Subject) -> Step {
    stage.reassign(subject)
}

fn a_control_plane(stage: &mut Stage, subject: &mut Subject) -> Step {
    stage.alter(
        |tables| &mut tables.execution.release_machines,
        (subject.binding.release, subject.machine),
        |of| of.new.machine_type = MachineType::ControlPlane,
    )
}

fn unaccounted(stage: &mut Stage, subject: &mut Subject) -> Step {
    stage.alter(
        |tables| &mut tables.authoring.machines,
        subject.machine,
        |machine| machine.scope = ScopeState::PreRestoreUnaccounted,
    )
}

const DEFAULTS: Requested = Requested {
    expires_in: None,
    max_observation_age: None,
    check_validity: None,
    transport_deadline: None,
    verification_deadline: None,
    max_attempts: None,
};

fn made_after(stage: &mut Stage, premise: Premise) -> Step {
    planned(stage, premise, false, DEFAULTS).map(drop)
}

/// A plan that has run out is approved.
fn approved_late(stage: &mut Stage) -> Step {
    let Some(plan) = planned(stage, nothing, false, DEFAULTS)? else {
        return Ok(());
    };
    let now = stage.now();
    stage.alter(
        |tables| &mut tables.execution.plans,
        plan,
        |record| std::sync::Arc::make_mut(&mut record.binding).expires_at = now,
    )?;
    let desk = stage.server()?;
    stage
        .asked(&desk, APPROVER, move |hand| async move {
            hand.approve(plan).await
        })
        .map(drop)
}

/// Two people approve one plan.
fn approved_twice(stage: &mut Stage) -> Step {
    const ANOTHER: Person = Person {
        name: "van",
        groups: &["approver"],
    };
    let desk = stage.server()?;
    let subject = stage.subject()?;
    let plan = subject.plan;
    stage
        .asked(&desk, ANOTHER, move |hand| async move {
            hand.approve(plan).await
        })
        .map(drop)
}

const MADE: &str = "a plan is made of what is selected and known";

pub const WITNESSES: &[Witness] = rows! {
    "planned for a release that is not Desired", [PlanReleaseIsDesired], MADE,
        |stage| made_after(stage, another_desired);
    "planned on another assignment", [PlanAssignmentCurrent], MADE,
        |stage| made_after(stage, reassigned);
    "planned for a control plane", [PlanWorkersOnly], MADE,
        |stage| made_after(stage, a_control_plane);
    "planned where lost attempts may land", [ScopeAccountedFor], MADE,
        |stage| made_after(stage, unaccounted);
    "planned to adopt what is known", [AdoptNeedsReason], MADE,
        |stage| planned(stage, nothing, true, DEFAULTS).map(drop);
    "planned with a long transport", [PlanTransportBounded], MADE,
        |stage| planned(stage, nothing, false, Requested {
            transport_deadline: Some(60),
            verification_deadline: Some(600),
            ..DEFAULTS
        }).map(drop);
    "approved after it ran out", [ApprovedUnexpired], "an expired plan is not approved",
        approved_late;
    "approved twice", [OneApprovalPerEpoch OneApprovalPerEpochKey],
        "one approval per plan and epoch", approved_twice;
    "approved twice, by the index", [OneApprovalPerEpochKey OneApprovalPerEpoch],
        "one approval per plan and epoch", approved_twice;
};
