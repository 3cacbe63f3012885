//! What plans, approvals and identity revocations write.

use std::sync::Arc;

use bronzeward_core::id::{ActId, HeadId, ImportBaseRevisionId, MachineId};
use bronzeward_core::plan::{AnyPlan, Approval, Binding};
use bronzeward_core::principal::Principal;
use bronzeward_core::problem::Member;
use bronzeward_core::revision::Revision;
use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::ports::store::{
    Guard, NewApprovalRevocation, NewCancellation, NewIdentityRevocation, PlanWrites, Written,
};
use bronzeward_engine::rows::PlanStateRow;

use super::{ApprovalRecord, ApprovalRevocation, Cancellation, PlanRecord};
use crate::pg::Relation;
use crate::pg::session::Session;
use crate::store::authoring::TokenOf;
use crate::store::execution::releases::MachineOfRelease;
use crate::store::execution::statement::{head_row, maybe, row, satisfies};
use crate::store::execution::{Out, authored};
use crate::store::guard::{Columns, written};
use crate::store::writes::Index;

/// The longest that a plan may stand before it expires.
const LONGEST: Span = Span::seconds(604_800);

fn admits(state: &PlanStateRow, guard: &Guard, now: DbTime) -> bool {
    let columns = Columns {
        revision: Some(state.revision.0),
        state: Some(&state.state),
        ..Columns::default()
    };
    satisfies(columns, guard, now)
}

impl PlanWrites for Session {
    async fn insert_plan(
        &mut self,
        binding: &Binding,
        import_base: ImportBaseRevisionId,
        evidence: &Member,
        act: ActId,
    ) -> Out<()> {
        self.statement("insert plan").await?;
        let life = binding.expires_at > binding.created_at
            && binding.expires_at <= binding.created_at + LONGEST;
        self.check("plan_expiry", life)?;
        let record = PlanRecord {
            binding: Arc::new(binding.clone()),
            import_base,
            evidence: evidence.clone(),
            act,
        };
        self.insert_kept(binding.id, record, "plan_pkey").await?;
        self.await_act_of(act, "plan_act_id_fkey")?;
        let head = binding
            .assignment
            .map(|at| head_row(HeadId::Assignment(at.head)));
        let named = [
            head,
            Some(row(Relation::Principal, binding.created_by.principal)),
            Some(row(Relation::Machine, binding.machine)),
        ];
        self.refer(named.into_iter().flatten()).await?;
        let key = (binding.release, binding.machine);
        self.refers_to_kept::<_, MachineOfRelease>(&key, "plan_release_id_machine_id_fkey")?;
        self.statement("insert plan state").await?;
        let state = PlanStateRow {
            plan: binding.id,
            state: "proposed".to_owned(),
            reason: None,
            approval: None,
            operation: None,
            revision: Revision::FIRST,
        };
        self.insert_kept(binding.id, state, "plan_state_pkey").await
    }

    async fn insert_approval(&mut self, new: &Approval, machine: MachineId, act: ActId) -> Out<()> {
        self.statement("insert approval").await?;
        let (plan, epoch) = (new.plan, new.epoch);
        let record = ApprovalRecord {
            approval: new.clone(),
            machine,
            act,
        };
        let same = |of: &ApprovalRecord| of.approval.plan == plan && of.approval.epoch == epoch;
        let one: Index<'_, ApprovalRecord> = ("approval_plan_epoch_key", &same);
        self.insert_unique_kept(new.id, record, "approval_pkey", &[one])
            .await?;
        self.await_act_of(act, "approval_act_id_fkey")?;
        self.refer([
            row(Relation::Machine, machine),
            row(Relation::Principal, new.approver.principal),
        ])
        .await
    }

    async fn write_plan_state(&mut self, now: &AnyPlan, guard: &Guard) -> Out<Written> {
        self.statement("write plan state").await?;
        let plan = now.binding().id;
        let lock = row(Relation::PlanState, plan);
        let found = self
            .target_kept(lock, &plan, |state: &PlanStateRow, at| {
                admits(state, guard, at)
            })
            .await?;
        let Some(old) = found else {
            return Ok(written(false));
        };
        let state = PlanStateRow {
            plan,
            state: now.state_name().to_owned(),
            reason: match now {
                AnyPlan::Revoked(plan) => Some(plan.state().by.as_str().to_owned()),
                _ => None,
            },
            approval: match now {
                // What it was approved by stays readable.
                AnyPlan::Revoked(_) | AnyPlan::Expired(_) => old.approval,
                _ => now.approval().map(|approval| approval.id),
            },
            operation: match now {
                AnyPlan::Committed(plan) => Some(plan.state().operation),
                _ => None,
            },
            revision: now.revision(),
        };
        let approval = state.approval.filter(|_| state.approval != old.approval);
        let operation = state.operation.filter(|_| state.operation != old.operation);
        self.put_kept(plan, state)?;
        let named = [
            maybe(Relation::Approval, approval),
            maybe(Relation::Operation, operation),
        ];
        self.refer(named.into_iter().flatten()).await?;
        Ok(written(true))
    }

    async fn insert_approval_revocation(&mut self, new: &NewApprovalRevocation) -> Out<()> {
        self.statement("insert approval revocation").await?;
        let revocation = ApprovalRevocation { at: new.at };
        self.insert_kept(new.approval, revocation, "approval_revocation_pkey")
            .await?;
        self.await_act_of(new.act, "approval_revocation_act_id_fkey")?;
        self.refer([
            row(Relation::Approval, new.approval),
            row(Relation::Principal, new.by.principal),
        ])
        .await
    }

    async fn insert_cancellation(&mut self, new: &NewCancellation) -> Out<()> {
        self.statement("insert cancellation").await?;
        let cancellation = Cancellation { at: new.at };
        self.insert_kept(new.plan, cancellation, "plan_cancellation_pkey")
            .await?;
        self.await_act_of(new.act, "plan_cancellation_act_id_fkey")?;
        self.refer([
            row(Relation::Machine, new.machine),
            row(Relation::Principal, new.by.principal),
        ])
        .await
    }

    async fn revoke_identity(&mut self, new: &NewIdentityRevocation) -> Out<()> {
        self.statement("insert identity revocation").await?;
        let identity = new.identity;
        self.insert_kept(identity, new.at, "identity_revocation_pkey")
            .await?;
        self.await_act_of(new.act, "identity_revocation_act_id_fkey")?;
        self.refer([
            row(Relation::Principal, identity),
            row(Relation::Principal, new.by.principal),
        ])
        .await?;
        self.statement("revoke principal").await?;
        let lock = row(Relation::Principal, identity);
        let found = self
            .target_kept(lock, &identity, |_: &Principal, _| true)
            .await?;
        if let Some(mut principal) = found {
            principal.revoked_at = Some(new.at);
            self.put_kept(identity, principal)?;
        }
        self.statement("revoke identity's token").await?;
        let token = self.look(|tables, eye| authored::unrevoked_token(tables, eye, identity));
        let Some(token) = token else {
            return Ok(());
        };
        let lock = row(Relation::Token, token);
        let unrevoked = |row: &TokenOf, _| row.token.revoked_at.is_none();
        if let Some(mut row) = self.target_kept(lock, &token, unrevoked).await? {
            row.token.revoked_at = Some(new.at);
            self.put_kept(token, row)?;
        }
        Ok(())
    }
}
