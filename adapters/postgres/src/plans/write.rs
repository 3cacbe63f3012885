//! What plans, approvals, and what takes them back write.

use bronzeward_core::id::{ActId, ImportBaseRevisionId, MachineId};
use bronzeward_core::plan::{AnyPlan, Approval, Binding};
use bronzeward_core::problem::Member;
use bronzeward_engine::ports::store::{
    Guard, NewApprovalRevocation, NewCancellation, NewIdentityRevocation, PlanWrites, Written,
};
use diesel::prelude::*;

use super::record::PlanRecord;
use crate::convert::Out;
use crate::guard::{predicate, written};
use crate::schema::{
    approval, approval_revocation, automation_token, identity_revocation, plan, plan_cancellation,
    plan_state, principal,
};
use crate::store::PgTx;
use crate::time::Stamp;

impl PlanWrites for PgTx {
    async fn insert_plan(
        &mut self,
        binding: &Binding,
        import_base: ImportBaseRevisionId,
        evidence: &Member,
        act: ActId,
    ) -> Out<()> {
        let record = PlanRecord::of(binding, import_base, evidence, act)?;
        self.execute(diesel::insert_into(plan::table).values(record))
            .await?;
        let state = diesel::insert_into(plan_state::table).values((
            plan_state::plan_id.eq(binding.id.to_string()),
            plan_state::state.eq("proposed"),
        ));
        self.execute(state).await.map(drop)
    }

    async fn insert_approval(&mut self, new: &Approval, machine: MachineId, act: ActId) -> Out<()> {
        use approval::dsl;
        let reasons: Vec<Option<String>> = new
            .self_approval
            .iter()
            .map(|reason| Some(reason.as_str().to_owned()))
            .collect();
        let insert = diesel::insert_into(dsl::approval).values((
            dsl::id.eq(new.id.to_string()),
            dsl::plan_id.eq(new.plan.to_string()),
            dsl::machine_id.eq(machine.to_string()),
            dsl::revision.eq(new.revision.0),
            dsl::principal_id.eq(new.approver.principal.to_string()),
            dsl::role.eq(new.approver.role.as_str()),
            dsl::epoch.eq(new.epoch.to_string()),
            dsl::self_approval_reasons.eq(reasons),
            dsl::unseen_overwrite.eq(new.unseen_overwrite),
            dsl::act_id.eq(act.to_string()),
            dsl::at.eq(Stamp(new.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn write_plan_state(&mut self, now: &AnyPlan, guard: &Guard) -> Out<Written> {
        use plan_state::dsl;
        let row = dsl::plan_state
            .find(now.binding().id.to_string())
            .filter(predicate(guard)?);
        let reason = match now {
            AnyPlan::Revoked(plan) => Some(plan.state().by.as_str()),
            _ => None,
        };
        let operation = match now {
            AnyPlan::Committed(plan) => Some(plan.state().operation.to_string()),
            _ => None,
        };
        let common = (
            dsl::state.eq(now.state_name()),
            dsl::reason.eq(reason),
            dsl::operation_id.eq(operation),
            dsl::revision.eq(now.revision().0),
        );
        let rows = match now {
            // What it was approved by stays readable.
            AnyPlan::Revoked(_) | AnyPlan::Expired(_) => {
                self.execute(diesel::update(row).set(common)).await?
            }
            AnyPlan::Proposed(_)
            | AnyPlan::Approved(_)
            | AnyPlan::Committed(_)
            | AnyPlan::Cancelled(_) => {
                let approval = now.approval().map(|approval| approval.id.to_string());
                let all = (common, dsl::approval_id.eq(approval));
                self.execute(diesel::update(row).set(all)).await?
            }
        };
        written(rows)
    }

    async fn insert_approval_revocation(&mut self, new: &NewApprovalRevocation) -> Out<()> {
        use approval_revocation::dsl;
        let insert = diesel::insert_into(dsl::approval_revocation).values((
            dsl::approval_id.eq(new.approval.to_string()),
            dsl::plan_id.eq(new.plan.to_string()),
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::revision.eq(new.revision.0),
            dsl::principal_id.eq(new.by.principal.to_string()),
            dsl::role.eq(new.by.role.as_str()),
            dsl::reason.eq(&new.reason),
            dsl::epoch.eq(new.epoch.to_string()),
            dsl::act_id.eq(new.act.to_string()),
            dsl::at.eq(Stamp(new.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_cancellation(&mut self, new: &NewCancellation) -> Out<()> {
        use plan_cancellation::dsl;
        let insert = diesel::insert_into(dsl::plan_cancellation).values((
            dsl::plan_id.eq(new.plan.to_string()),
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::revision.eq(new.revision.0),
            dsl::principal_id.eq(new.by.principal.to_string()),
            dsl::role.eq(new.by.role.as_str()),
            dsl::reason.eq(&new.reason),
            dsl::epoch.eq(new.epoch.to_string()),
            dsl::act_id.eq(new.act.to_string()),
            dsl::at.eq(Stamp(new.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn revoke_identity(&mut self, new: &NewIdentityRevocation) -> Out<()> {
        use identity_revocation::dsl;
        let identity = new.identity.to_string();
        let insert = diesel::insert_into(dsl::identity_revocation).values((
            dsl::revoked_id.eq(&identity),
            dsl::principal_id.eq(new.by.principal.to_string()),
            dsl::role.eq(new.by.role.as_str()),
            dsl::reason.eq(&new.reason),
            dsl::epoch.eq(new.epoch.to_string()),
            dsl::act_id.eq(new.act.to_string()),
            dsl::at.eq(Stamp(new.at)),
        ));
        self.execute(insert).await?;
        let principal = diesel::update(principal::table.find(&identity)).set((
            principal::revoked.eq(true),
            principal::revoked_at.eq(Stamp(new.at)),
        ));
        self.execute(principal).await?;
        let token = diesel::update(
            automation_token::table
                .filter(automation_token::principal_id.eq(&identity))
                .filter(automation_token::revoked_at.is_null()),
        )
        .set(automation_token::revoked_at.eq(Stamp(new.at)));
        self.execute(token).await.map(drop)
    }
}
