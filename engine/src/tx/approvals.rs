//! Approval (T5a) and identity revocation (T5c).
//!
//! Called by http. An approval's time, and a revocation's, is read after the act-order
//! lock, so that neither counts before it could be seen. Never in this module: a
//! revocation of an approval or a cancellation, which are `withdrawals`'.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::authority::{Origins, actor_stands, self_approval};
use bronzeward_core::id::{PlanId, PrincipalId};
use bronzeward_core::plan::{AnyPlan, Approval, ApproveRefusal, Plan};
use bronzeward_core::principal::By;
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::Scope;
use bronzeward_core::time::DbTime;
use bronzeward_core::timeline::{Counter, Data};

use super::plans::{involved, scope};
use super::{Abort, lock_by};
use crate::ports::store::{
    Condition, Guard, LockMode, NewEntry, NewIdentityRevocation, PlanReads, PlanRow, PlanWrites,
    PrincipalReads, PrincipalWrites, Select, StoreReads, TimelineWrites, Written,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::world::World;

/// Whose identity a revocation names.
#[derive(Clone, Debug)]
pub enum Named {
    Identity(PrincipalId),
    /// A human, whether or not it ever signed in.
    Human {
        issuer: String,
        subject: String,
    },
}

/// An identity revocation as it is answered.
#[derive(Clone, Debug)]
pub struct IdentityRevoked {
    pub revocation: NewIdentityRevocation,
    /// Whether the deployment's `deniedSubjects` lists the identity, fully (PA §10.4).
    pub denied_listed: bool,
}

impl<W: World> Requests<'_, W> {
    /// Approves a plan in the current epoch.
    pub async fn approve_plan(
        &self,
        admitted: &Admitted,
        plan: PlanId,
        render: impl Fn(&Approval) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (rules, id, act) = (self.db.rules(), self.db.mint(), self.db.mint());
        let approver = admitted.actor.principal;
        let outcome = self
            .run(
                admitted,
                Some(LockMode::Share),
                async |mut tx, installation| {
                    let Some(machine) = tx.peek().plan_machine(plan).await? else {
                        return tx.refuse(Problem::not_found("No such plan.")).await;
                    };
                    let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
                    let (mut tx, held) = tx.lock_machine(machine, lock).await?;
                    let Some(machine) = held else {
                        return tx.refuse(Problem::not_found("No such plan.")).await;
                    };
                    // The plan's state moves only under the machine's lock, so the approval it
                    // rests on, and whose it is, stay as they read here.
                    let replaced = tx.peek().plan(plan).await?;
                    let replaced = replaced.as_ref().and_then(|row| row.plan.approval());
                    let mut principals = BTreeMap::from([(approver, Some(LockMode::Share))]);
                    principals
                        .extend(replaced.map(|by| (by.approver.principal, Some(LockMode::Share))));
                    let (tx, actors) = tx.lock_principals(&principals).await?;
                    let revoked = actors.iter().any(|row| {
                        row.principal.id == approver && row.principal.revoked_at.is_some()
                    });
                    if actor_stands(&rules, revoked).is_err() {
                        return tx.refuse(identity_revoked()).await;
                    }
                    let state = lock_by(&rules, Rule::PlanStateLock, LockMode::Update);
                    let (tx, _) = tx.lock_plan_states(&BTreeSet::from([plan]), state).await?;
                    let mut open = tx.open();
                    let Some(row) = open.rows().plan(plan).await? else {
                        return open.refuse(Problem::not_found("No such plan.")).await;
                    };
                    if let Err(problem) = accounted(&rules, &scope(&machine, None)) {
                        return open.refuse(*problem).await;
                    }
                    let marks = marks(&rules, open.rows(), &row, approver).await?;
                    let (mut acts, at) = open.lock_acts(&rules).await?;
                    let (revision, _) = Counter(machine.timeline.0).allocate();
                    let approval = Approval {
                        id,
                        plan,
                        approver: admitted.actor.into(),
                        epoch: installation.epoch,
                        at,
                        revision,
                        self_approval: marks,
                        unseen_overwrite: row.plan.binding().is_revert(),
                    };
                    let before = row.plan.revision().0;
                    let approved = match approve(&rules, row, approval.clone(), at) {
                        Ok(approved) => AnyPlan::Approved(approved),
                        Err(problem) => return acts.refuse(*problem).await,
                    };
                    acts.rows()
                        .insert_approval(&approval, machine.id, act)
                        .await?;
                    let guard = Guard::new().when(
                        &rules,
                        Rule::RevisionUnchanged,
                        Condition::Revision(before),
                    );
                    if acts.rows().write_plan_state(&approved, &guard).await? == Written::Stale {
                        return acts
                            .refuse(Problem::conflict("The plan's state moved."))
                            .await;
                    }
                    let data = Data::Approval {
                        approval: id,
                        plan,
                        self_approval: approval.self_approval.clone(),
                        unseen_overwrite: approval.unseen_overwrite,
                    };
                    let by = By::Signed(admitted.actor.into());
                    let entry =
                        NewEntry::of(&data, by, installation.epoch, Some(act), at).about(plan);
                    acts.rows().append_entry(machine.id, &entry).await?;
                    Ok(Settled {
                        acts,
                        rendered: render(&approval),
                        act: ActDraft::new(act, Action::PLAN_APPROVED)
                            .on(plan)
                            .on(id)
                            .on(machine.id),
                    })
                },
            )
            .await;
        outcome.map_err(|not_done| match not_done {
            NotDone::Unique("approval_plan_epoch_key") => already(plan, "approved").into(),
            not_done => not_done.refused(),
        })
    }

    /// Revokes an identity for good. `listed` says whether the deployment's list names it,
    /// which the answer repeats and the operator has to see to (PA §10.4).
    pub async fn revoke_identity(
        &self,
        admitted: &Admitted,
        named: &Named,
        reason: &str,
        listed: impl Fn(&bronzeward_core::principal::Principal) -> bool + Clone + Send + Sync,
        render: impl Fn(&IdentityRevoked) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (rules, act, minted) = (self.db.rules(), self.db.mint(), self.db.mint());
        let mode = match lock_by(&rules, Rule::InstallationExclusive, LockMode::Update) {
            Some(mode) => mode,
            None => LockMode::Share,
        };
        self.run(admitted, Some(mode), async |tx, installation| {
            let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
            let (mut tx, machines) = tx.lock_machines(&Select::All, lock, None).await?;
            let identity = match named {
                Named::Identity(id) => *id,
                Named::Human { issuer, subject } => {
                    tx.peek().ensure_human(minted, issuer, subject).await?;
                    match tx.peek().human(issuer, subject).await? {
                        Some(row) => row.id,
                        None => minted,
                    }
                }
            };
            let principals = BTreeMap::from([(identity, Some(LockMode::Update))]);
            let (tx, mut rows) = tx.lock_principals(&principals).await?;
            let Some(row) = rows.pop() else {
                let problem = Problem::not_found("No such identity.");
                return tx.refuse(problem.naming("identity", identity)).await;
            };
            if row.principal.revoked_at.is_some() {
                let problem = Problem::conflict("The identity is revoked already, for good.");
                return tx.refuse(problem.naming("identity", identity)).await;
            }
            let (mut acts, at) = tx.open().lock_acts(&rules).await?;
            let live = acts.rows().live_plans_approved_by(identity, at).await?;
            let revocation = NewIdentityRevocation {
                identity,
                by: admitted.actor.into(),
                reason: reason.to_owned(),
                epoch: installation.epoch,
                act,
                at,
            };
            acts.rows().revoke_identity(&revocation).await?;
            // In the order the machines are locked in; every one of them is held.
            for machine in &machines {
                let Some(plans) = live.get(&machine.id) else {
                    continue;
                };
                let entry = revocation_entry(&revocation, plans.clone());
                acts.rows().append_entry(machine.id, &entry).await?;
            }
            let answer = IdentityRevoked {
                denied_listed: listed(&row.principal),
                revocation,
            };
            Ok(Settled {
                acts,
                rendered: render(&answer),
                act: ActDraft::new(act, Action::IDENTITY_REVOKED).on(identity),
            })
        })
        .await
        .map_err(NotDone::refused)
    }
}

fn revocation_entry(revocation: &NewIdentityRevocation, plans: Vec<PlanId>) -> NewEntry {
    let data = Data::IdentityRevocation {
        identity: revocation.identity,
        plans,
        reason: revocation.reason.clone(),
    };
    let (by, epoch) = (By::Signed(revocation.by), revocation.epoch);
    NewEntry::of(&data, by, epoch, Some(revocation.act), revocation.at)
}

fn accounted<R: bronzeward_core::rules::Rules>(
    rules: &R,
    scope: &Scope,
) -> Result<(), Box<Problem>> {
    scope
        .accounted_for(rules)
        .map_err(|refused| Box::new(Problem::recovery_mode_active(refused.machine)))
}

/// Every reason the approval is of the approver's own work, read in the transaction.
async fn marks<R, S>(
    rules: &R,
    reads: &mut S,
    row: &PlanRow,
    approver: PrincipalId,
) -> Result<Vec<bronzeward_core::authority::SelfApproval>, Abort<Problem>>
where
    R: bronzeward_core::rules::Rules,
    S: StoreReads,
{
    let binding = row.plan.binding();
    let Some(origins) = reads.release_origins(binding.release).await? else {
        return Err(Abort::Store(crate::ports::store::StoreError::Fault));
    };
    let involved = involved(binding.created_by.principal, &origins);
    let responsible = reads.responsible_humans(&involved).await?;
    let origins = Origins {
        plan_creator: binding.created_by.principal,
        publisher: origins.publisher,
        contained: &origins.contained,
        responsible: &responsible,
    };
    Ok(self_approval(rules, approver, &origins))
}

fn approve<R: bronzeward_core::rules::Rules>(
    rules: &R,
    row: PlanRow,
    approval: Approval,
    at: DbTime,
) -> Result<Plan<bronzeward_core::plan::Approved>, Box<Problem>> {
    let plan = approval.plan;
    // Without the rule the plan is taken as it is stored, not as it reads.
    let read = if rules.enforced(Rule::ApprovedUnexpired) {
        row.plan.read_at(at, row.approver_revoked_at).plan
    } else {
        row.plan
    };
    let state = read.state_name();
    read.approve(rules, approval, at).map_err(|refused| {
        Box::new(match refused.reason {
            ApproveRefusal::Expired => already(plan, "expired"),
            ApproveRefusal::AlreadyApproved => already(plan, "approved"),
            ApproveRefusal::State => already(plan, state),
        })
    })
}

/// 409 naming the plan and the state it reads (PA §9.4).
fn already(plan: PlanId, state: &'static str) -> Problem {
    Problem::conflict("The plan's state refuses an approval.")
        .naming("plan", plan)
        .naming("state", state)
}

pub(crate) fn identity_revoked() -> Problem {
    Problem::new(ProblemCode::IdentityRevoked).say("The identity is revoked.")
}
