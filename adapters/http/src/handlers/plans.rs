//! Plans and their approval (PA §9.3). No body here carries a digest.

use bronzeward_api::bodies::approval::{Approval as WireApproval, SelfApproval};
use bronzeward_api::bodies::common::Nothing;
use bronzeward_api::bodies::plan::{
    ApprovalPolicy, CreatePlan, Plan as WirePlan, PlanEvidence, PlanMode, PlanOperation, PlanState,
};
use bronzeward_core::id::{ApprovalId, MachineId, PlanId, RequestId};
use bronzeward_core::plan::{AnyPlan, Approval, Binding, PlanDefaults, PlanLimits, Requested};
use bronzeward_core::problem::Problem;
use bronzeward_engine::ports::store::{Paged, PlanReads, PlanRow};
use bronzeward_engine::request::{Refused, Rendered};
use bronzeward_engine::tx::plans::{self, PlanInput, Planner, PlansAsked};
use bronzeward_engine::world::World;

use super::wire;
use crate::app::App;
use crate::call::{Call, Handled, closing, created, missing, ok};

fn body(row: &PlanRow) -> Result<WirePlan, Refused> {
    let bound: &Binding = row.plan.binding();
    let deadlines = bound.deadlines();
    Ok(WirePlan {
        id: wire::id(bound.id)?,
        revision: wire::count(row.plan.revision().0),
        state: state(&row.plan),
        committed_operation: match &row.plan {
            AnyPlan::Committed(plan) => Some(wire::id(plan.state().operation)?),
            _ => None,
        },
        release: wire::id(bound.release)?,
        machine: wire::id(bound.machine)?,
        cluster: wire::id(bound.cluster)?,
        operation: match deadlines {
            Some(_) => PlanOperation::ApplyConfig,
            None => PlanOperation::Adopt,
        },
        mode: deadlines.map(|_| PlanMode::NoReboot),
        approval: wire::opt_id(row.approval)?,
        assignment_revision: wire::opt_id(bound.assignment_revision)?,
        desired_release: wire::opt_id(bound.desired)?,
        baseline_revision: bound.baseline.map(|baseline| wire::count(baseline.0)),
        drift_record: bound.drift.map(|opened| wire::count(opened.0)),
        route: bound.route.to_string(),
        rollout_limit: wire::count(Binding::ROLLOUT_LIMIT),
        approval_policy: ApprovalPolicy::OneApprover,
        epoch: wire::id(bound.epoch)?,
        timeline_revision: wire::count(bound.timeline_revision.0),
        max_observation_age_seconds: wire::count(bound.max_observation_age.as_seconds()),
        check_validity_seconds: wire::count(bound.check_validity.as_seconds()),
        transport_deadline_seconds: deadlines.map(|it| wire::count(it.transport.as_seconds())),
        verification_deadline_seconds: deadlines
            .map(|it| wire::count(it.verification.as_seconds())),
        max_attempts: deadlines.map(|it| u64::from(it.max_attempts)),
        evidence: evidence(row)?,
        created_by: wire::acting(bound.created_by)?,
        created_at: wire::time(bound.created_at),
        expires_at: wire::time(bound.expires_at),
    })
}

fn state(plan: &AnyPlan) -> PlanState {
    match plan {
        AnyPlan::Proposed(_) => PlanState::Proposed,
        AnyPlan::Approved(_) => PlanState::Approved,
        AnyPlan::Committed(_) => PlanState::Committed,
        AnyPlan::Revoked(_) => PlanState::Revoked,
        AnyPlan::Cancelled(_) => PlanState::Cancelled,
        AnyPlan::Expired(_) => PlanState::Expired,
    }
}

fn evidence(row: &PlanRow) -> Result<PlanEvidence, Refused> {
    serde_json::from_value(crate::problem::value(&row.evidence))
        .map_err(|_| Problem::internal("A plan's evidence has no wire form.").into())
}

fn approval(approval: &Approval) -> Result<WireApproval, Refused> {
    Ok(WireApproval {
        id: wire::id(approval.id)?,
        plan: wire::id(approval.plan)?,
        approver: wire::acting(approval.approver)?,
        epoch: wire::id(approval.epoch)?,
        self_approval: SelfApproval {
            marked: !approval.self_approval.is_empty(),
            reasons: approval
                .self_approval
                .iter()
                .map(|reason| wire::word(reason.as_str()))
                .collect::<Result<_, _>>()?,
        },
        unseen_overwrite: approval.unseen_overwrite,
    })
}

fn seconds(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn limits<W: World>(app: &App<W>) -> PlanLimits {
    let defaults = &app.served.plan_defaults;
    PlanLimits {
        defaults: PlanDefaults {
            expires_in: seconds(defaults.expires_in_seconds),
            max_observation_age: seconds(defaults.max_observation_age_seconds),
            check_validity: seconds(defaults.check_validity_seconds),
            transport_deadline: seconds(defaults.transport_deadline_seconds),
            verification_deadline: seconds(defaults.verification_deadline_seconds),
            max_attempts: seconds(defaults.max_attempts),
        },
        max_transport: seconds(app.served.max_transport_deadline_seconds),
    }
}

fn input(sent: &CreatePlan) -> Result<PlanInput, Refused> {
    let length = |value: Option<bronzeward_api::bodies::plan::PlanSeconds>| {
        value.map(|value| seconds(value.value()))
    };
    Ok(PlanInput {
        release: wire::core_id(&sent.release_id)?,
        machine: wire::core_id(&sent.machine)?,
        adopt: sent.operation == PlanOperation::Adopt,
        requested: Requested {
            expires_in: length(sent.expires_in_seconds),
            max_observation_age: length(sent.max_observation_age_seconds),
            check_validity: length(sent.check_validity_seconds),
            transport_deadline: length(sent.transport_deadline_seconds),
            verification_deadline: length(sent.verification_deadline_seconds),
            max_attempts: sent.max_attempts.map(|value| seconds(value.value())),
        },
    })
}

pub async fn create<W: World>(mut call: Call<'_, W>) -> Handled {
    let write = call.write::<CreatePlan>().await?;
    let input = input(&write.body)?;
    let planner = Planner {
        requests: call.requests(),
        renderer: call.app.renderer.as_deref(),
        limits: limits(call.app),
    };
    let answer = planner
        .create_plan(&write.admitted, &input, render(call.request()))
        .await?;
    Ok(call.answer(answer))
}

fn render(request: RequestId) -> impl Fn(&PlanRow) -> Rendered + Clone {
    move |row| {
        super::render(request, body(row), |body| {
            created(format!("/api/v1/plans/{}", row.plan.binding().id), body)
        })
    }
}

pub async fn list<W: World>(call: Call<'_, W>) -> Handled {
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page = call.page(&scope)?;
    let machine = call
        .query
        .value("machine")
        .map(MachineId::parse)
        .transpose();
    let asked = PlansAsked {
        machine: machine.map_err(|_| Problem::invalid_request("A filter is malformed."))?,
        state: call.query.value("state").map(str::to_owned),
    };
    let paged = plans::plans(&mut snapshot, &asked, &page).await;
    let paged = closing(snapshot, paged).await?;
    let items = paged
        .items
        .iter()
        .map(body)
        .collect::<Result<Vec<_>, _>>()?;
    let paged = Paged {
        items,
        more: paged.more,
    };
    Ok(call.paged(&scope, paged, |plan| plan.id.to_string(), |plan| plan))
}

pub async fn read<W: World>(call: Call<'_, W>) -> Handled {
    let id: PlanId = call.id("plan")?;
    let (mut snapshot, _) = call.read().await?;
    let row = plans::plan(&mut snapshot, id).await;
    let row = closing(snapshot, row).await?.ok_or_else(missing)?;
    Ok(ok(&body(&row)?))
}

pub async fn approve<W: World>(mut call: Call<'_, W>) -> Handled {
    let plan: PlanId = call.id("plan")?;
    let write = call.write::<Nothing>().await?;
    let request = call.request();
    let answer = call
        .requests()
        .approve_plan(&write.admitted, plan, |row| {
            super::render(request, approval(row), |body| {
                created(format!("/api/v1/approvals/{}", row.id), body)
            })
        })
        .await?;
    if !answer.replayed {
        use bronzeward_engine::ports::{Notifier, Wake};
        call.app.notifier.wake(Wake::Dispatch);
    }
    Ok(call.answer(answer))
}

pub async fn read_approval<W: World>(call: Call<'_, W>) -> Handled {
    let id: ApprovalId = call.id("approval")?;
    let (mut snapshot, _) = call.read().await?;
    let row = snapshot.approval(id).await;
    let row = closing(snapshot, row).await?.ok_or_else(missing)?;
    Ok(ok(&approval(&row)?))
}
