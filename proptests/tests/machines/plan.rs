//! A plan's states (EaR 2, PA §8.1). The model keeps what was done and when, and reads the
//! state off that history; the code keeps a row.

use bronzeward_core::comparison::{Comparison, Stage};
use bronzeward_core::id::{ApprovalId, OperationId};
use bronzeward_core::plan::{AnyPlan, Approval, ApproveRefusal, CancelRefusal, Plan};
use bronzeward_core::principal::Role;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::rules::{Enforced, Rule, Rules};
use bronzeward_without::Without;
use proptest::prelude::*;

use super::check::{Held, ensure, fails, holds, same};
use super::furniture::{Asked, BEFORE, EXPIRY, admitted, at, binding, epoch, normal_scope, signed};

#[derive(Clone, Copy, Debug)]
enum Command {
    Wait(i64),
    /// By one of two approvers, where that identity is not revoked.
    Approve(u128),
    Cancel,
    /// One of the approvals given so far.
    RevokeApproval(usize),
    RevokeApprover(u128),
    /// A recovery entry: another epoch.
    Enter,
    Commit,
    /// A transaction that locks the state and commits.
    Write,
}

fn commands() -> impl Strategy<Value = Vec<Command>> {
    let command = prop_oneof![
        3 => prop::sample::select(vec![1, 125, 250, 500]).prop_map(Command::Wait),
        4 => (1..=2_u128).prop_map(Command::Approve),
        1 => Just(Command::Cancel),
        2 => (0..3_usize).prop_map(Command::RevokeApproval),
        1 => (1..=2_u128).prop_map(Command::RevokeApprover),
        2 => Just(Command::Enter),
        2 => Just(Command::Commit),
        1 => Just(Command::Write),
    ];
    prop::collection::vec(command, 1..16)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Proposed,
    Approved,
    Committed,
    Revoked,
    Cancelled,
    Expired,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            State::Proposed => "proposed",
            State::Approved => "approved",
            State::Committed => "committed",
            State::Revoked => "revoked",
            State::Cancelled => "cancelled",
            State::Expired => "expired",
        }
    }
}

struct Given {
    epoch: u128,
    by: u128,
    revoked: bool,
}

/// What happened to a plan, in the order in which it did.
struct History {
    expiry: i64,
    approvals: Vec<Given>,
    /// The act that ended it, or committed it.
    ended: Option<State>,
    cancellation_recorded: bool,
    /// When each approver's identity was revoked.
    revoked_at: [Option<i64>; 2],
}

impl History {
    fn revoked_at(&self, approver: u128) -> Option<i64> {
        self.revoked_at[approver as usize - 1]
    }

    /// The earlier of expiry and the approver's revocation decides, written or not.
    fn state(&self, now: i64) -> State {
        if let Some(ended) = self.ended {
            return ended;
        }
        let approver = self.approvals.last().map(|given| given.by);
        let revoked = approver.and_then(|approver| self.revoked_at(approver));
        match (revoked, self.approvals.is_empty()) {
            (Some(revoked), _) if revoked < self.expiry => State::Revoked,
            _ if now >= self.expiry => State::Expired,
            (_, true) => State::Proposed,
            (_, false) => State::Approved,
        }
    }

    fn may_be_approved(&self, now: i64, epoch: u128) -> Result<(), ApproveRefusal> {
        match self.state(now) {
            State::Proposed => Ok(()),
            State::Approved if self.approvals.last().is_some_and(|one| one.epoch == epoch) => {
                Err(ApproveRefusal::AlreadyApproved)
            }
            State::Approved => Ok(()),
            State::Expired => Err(ApproveRefusal::Expired),
            State::Committed | State::Revoked | State::Cancelled => Err(ApproveRefusal::State),
        }
    }

    fn may_be_cancelled(&self, now: i64) -> Result<(), CancelRefusal> {
        match self.state(now) {
            State::Proposed | State::Approved => Ok(()),
            State::Committed if self.cancellation_recorded => Err(CancelRefusal::AlreadyCancelled),
            State::Committed => Ok(()),
            State::Revoked | State::Cancelled | State::Expired => Err(CancelRefusal::State),
        }
    }

    fn may_commit(&self, now: i64, epoch: u128) -> bool {
        let current = self.approvals.last().is_some_and(|one| one.epoch == epoch);
        self.state(now) == State::Approved && current
    }
}

struct World<R> {
    rules: R,
    now: i64,
    epoch: u128,
    row: AnyPlan,
    model: History,
}

impl<R: Rules> World<R> {
    /// The plan as its reader has it now.
    fn read(&self) -> AnyPlan {
        let approver = self.row.approval().map(|one| one.approver.principal.bits());
        let revoked = approver.and_then(|approver| self.model.revoked_at(approver));
        self.row.clone().read_at(at(self.now), revoked.map(at)).plan
    }

    fn act(&mut self, command: Command) -> Held {
        match command {
            Command::Wait(seconds) => self.now += seconds,
            Command::Enter => self.epoch += 1,
            Command::Write => self.row = self.read(),
            Command::RevokeApprover(who) => {
                let at = &mut self.model.revoked_at[who as usize - 1];
                *at = at.or(Some(self.now));
            }
            Command::Approve(by) if self.model.revoked_at(by).is_none() => self.approve(by)?,
            Command::Approve(_) => {}
            Command::Cancel => self.cancel()?,
            Command::RevokeApproval(which) => self.revoke_approval(which),
            Command::Commit => self.commit()?,
        }
        Ok(())
    }

    fn approve(&mut self, by: u128) -> Held {
        let approval = Approval {
            id: ApprovalId::from_bits(self.model.approvals.len() as u128),
            plan: self.row.binding().id,
            approver: signed(by, Role::Approver),
            epoch: epoch(self.epoch),
            at: at(self.now),
            revision: TimelineRevision(2),
            self_approval: Vec::new(),
            unseen_overwrite: false,
        };
        let code = self.read().approve(&self.rules, approval, at(self.now));
        let model = self.model.may_be_approved(self.now, self.epoch);
        let refused = code.as_ref().err().map(|refused| refused.reason);
        same("an approval", refused, model.err())?;
        if let Ok(plan) = code {
            self.row = AnyPlan::Approved(plan);
            let epoch = self.epoch;
            let revoked = false;
            self.model.approvals.push(Given { epoch, by, revoked });
        }
        Ok(())
    }

    fn cancel(&mut self) -> Held {
        let code = self.read().cancel();
        let model = self.model.may_be_cancelled(self.now);
        let refused = code.as_ref().err().map(|refused| refused.reason);
        same("a cancellation", refused, model.err())?;
        if let Ok(plan) = code {
            self.row = plan;
            match self.model.ended {
                None => self.model.ended = Some(State::Cancelled),
                Some(_) => self.model.cancellation_recorded = true,
            }
        }
        Ok(())
    }

    /// Each approval is revoked once; one that was replaced leaves the plan as it is.
    fn revoke_approval(&mut self, which: usize) {
        let state = self.model.state(self.now);
        let last = self.model.approvals.len();
        let Some(given) = self.model.approvals.get_mut(which) else {
            return;
        };
        if !std::mem::replace(&mut given.revoked, true) {
            let id = ApprovalId::from_bits(which as u128);
            self.row = self.read().revoke_approval(&self.rules, id).plan;
            if which + 1 == last && state == State::Approved {
                self.model.ended = Some(State::Revoked);
            }
        }
    }

    fn commit(&mut self) -> Held {
        let plan = self.read();
        let approver = self.model.approvals.last().map(|given| given.by);
        let asked = Asked {
            plan: &plan,
            approval_revoked: self.model.approvals.last().is_some_and(|one| one.revoked),
            approver_revoked: approver.is_some_and(|by| self.model.revoked_at(by).is_some()),
            now: self.now,
            epoch: epoch(self.epoch),
            scope: &normal_scope(),
            shows: BEFORE,
            stage: Stage::Commitment {
                existing: None,
                scope_holder: None,
                rollout_holder: None,
            },
        };
        let code = admitted(&self.rules, &asked);
        let refused = code.as_ref().err().map(|refused| refused.failed.clone());
        let model = match self.model.may_commit(self.now, self.epoch) {
            true => None,
            false => Some(vec![Comparison::Authority]),
        };
        same("a commitment", refused, model)?;
        if let (Ok(admission), AnyPlan::Approved(plan)) = (code, plan) {
            let plan = plan.commit(&admission, OperationId::from_bits(1));
            self.row = AnyPlan::Committed(plan);
            self.model.ended = Some(State::Committed);
        }
        Ok(())
    }
}

/// Runs the commands on both, and looks at both after each.
fn property<R: Rules>(rules: R, expiry: i64, commands: &[Command]) -> Held {
    let mut world = World {
        rules,
        now: 0,
        epoch: 1,
        row: AnyPlan::Proposed(Plan::proposed(binding())),
        model: History {
            expiry,
            approvals: Vec::new(),
            ended: None,
            cancellation_recorded: false,
            revoked_at: [None; 2],
        },
    };
    for command in commands {
        let before = world.read();
        world.act(*command)?;
        let after = world.read();
        let model = world.model.state(world.now);
        same("the state", after.state_name(), model.name())?;
        ensure(after.binding() == before.binding(), "a binding changed")?;
        let left = before.state_name() != after.state_name();
        let final_before = !matches!(before, AnyPlan::Proposed(_) | AnyPlan::Approved(_));
        ensure(!(left && final_before), "a final state was left")?;
        let approved_again =
            before.approval().map(|one| one.id) != after.approval().map(|one| one.id);
        let steps = i64::from(left || approved_again);
        same(
            "its revision",
            after.revision().0,
            before.revision().0 + steps,
        )?;
    }
    Ok(())
}

#[test]
fn a_plan_is_in_the_state_that_its_history_says() {
    holds(&commands(), |commands| {
        property(Enforced, EXPIRY, &commands)
    });
}

#[test]
fn a_plan_under_fewer_rules_or_beside_a_wrong_model_differs() {
    for rule in [
        Rule::OneApprovalPerEpoch,
        Rule::RevokesCurrentApproval,
        Rule::ApprovalOfThisEpoch,
        Rule::PlanAuthorises,
    ] {
        let rules = Without::rules(&[rule]);
        fails(rule.name(), &commands(), |commands| {
            property(rules, EXPIRY, &commands)
        });
    }
    fails("a later expiry", &commands(), |commands| {
        property(Enforced, EXPIRY + 1, &commands)
    });
}
