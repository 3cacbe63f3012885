//! An operation from its commitment to its end (EaR 3.3 to 5), with every comparison of an
//! attempt and every classification asked of the code.

mod commands;
mod model;

use bronzeward_core::attempt::{Recorded, Response, ResponseClass};
use bronzeward_core::classify::{Cancellation, Classification, Evidence, classify};
use bronzeward_core::comparison::{AttemptFrom, NotAdmitted, Stage};
use bronzeward_core::fence::{Fence, Generation};
use bronzeward_core::id::{ClusterId, MachineId, OperationId, PlanId};
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_core::operation::{
    AfterResponse, Committed, Common, Operation, OperationState, Takeover, Taker,
};
use bronzeward_core::plan::{AnyPlan, Approval, Binding, Plan};
use bronzeward_core::principal::Role;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::rules::{Enforced, Rule, Rules};
use bronzeward_core::scope::Scope;
use bronzeward_without::Without;

use super::check::{Held, ensure, fails, holds, same};
use super::furniture::{
    Asked, BEFORE, MAX_ATTEMPTS, accounting, admitted, at, attempt, binding, epoch, fence,
    normal_scope, observation, owner, signed,
};
use commands::{Command, bytes, commands};
use model::{LEASE, Model, Outcome, Reading, Shows};

struct World<R> {
    rules: R,
    now: i64,
    revision: i64,
    binding: Binding,
    plan: AnyPlan,
    scope: Scope,
    row: Operation,
    tokens: Vec<Fence>,
    recorded: Vec<Observation>,
    model: Model,
}

fn id() -> OperationId {
    OperationId::from_bits(1)
}

impl<R: Rules> World<R> {
    /// A committed operation of an approved plan, through the commitment's own comparisons.
    fn new(rules: R, most: usize) -> Self {
        let approval = Approval {
            id: bronzeward_core::id::ApprovalId::from_bits(1),
            plan: PlanId::from_bits(1),
            approver: signed(1, Role::Approver),
            epoch: epoch(1),
            at: at(0),
            revision: TimelineRevision(2),
            self_approval: Vec::new(),
            unseen_overwrite: false,
        };
        let plan = Plan::proposed(binding());
        let plan = plan.approve(&Enforced, approval, at(0)).expect("approved");
        let asked = Asked {
            plan: &AnyPlan::Approved(plan.clone()),
            approval_revoked: false,
            approver_revoked: false,
            now: 0,
            epoch: epoch(1),
            scope: &normal_scope(),
            shows: BEFORE,
            stage: Stage::Commitment {
                existing: None,
                scope_holder: None,
                rollout_holder: None,
            },
        };
        let admission = admitted(&Enforced, &asked).expect("admitted");
        let common = Common {
            id: id(),
            plan: PlanId::from_bits(1),
            machine: MachineId::from_bits(1),
            cluster: ClusterId::from_bits(1),
            fence: fence(1, 1, epoch(1)),
            lease_until: at(LEASE),
            attempts: Vec::new(),
            since: TimelineRevision(0),
            created_at: at(0),
        };
        World {
            rules,
            now: 0,
            revision: 0,
            binding: binding(),
            plan: AnyPlan::Committed(plan.commit(&admission, id())),
            scope: normal_scope(),
            tokens: vec![common.fence.clone()],
            row: Operation::Committed(Committed::new(&admission, common)),
            recorded: Vec::new(),
            model: Model {
                most,
                ..Model::new()
            },
        }
    }

    fn entry(&mut self) -> TimelineRevision {
        self.revision += 1;
        TimelineRevision(self.revision)
    }

    fn act(&mut self, command: Command) -> Held {
        match command {
            Command::Wait(seconds) => self.now += seconds,
            Command::Withdraw => self.model.withdrawn = true,
            Command::Freeze(frozen) => {
                self.scope.frozen = frozen;
                self.model.frozen = frozen;
            }
            Command::Read {
                purpose,
                shows,
                well,
            } => self.read(purpose, shows, well),
            Command::Attempt { own, shows } => self.attempt(own, shows)?,
            Command::Answer(class) => self.answer(class),
            Command::TakeOver { pass, fresh } => self.take_over(pass, fresh)?,
            Command::Classify => self.classify()?,
            Command::GiveUp => self.give_up()?,
            Command::Account => self.account(),
            Command::Resolve => self.resolve()?,
        }
        Ok(())
    }

    fn read(&mut self, purpose: Purpose, shows: Option<Shows>, well: Option<bool>) {
        let basis = self.entry().0;
        self.entry();
        let shown = shows.map(bytes);
        self.recorded
            .push(observation(purpose, basis, self.now, shown, well));
        self.model.readings.push(Reading {
            purpose,
            basis,
            began: self.now,
            shows,
            well,
        });
    }

    fn attempt(&mut self, own: bool, shows: Shows) -> Held {
        let held = self.row.common().fence.clone();
        let before = self.tokens.len().saturating_sub(2);
        let token = if own {
            held.clone()
        } else {
            self.tokens[before].clone()
        };
        let own = token == held;
        let attempts = self.row.common().attempts.clone();
        let state = match &self.row {
            Operation::Committed(_) => AttemptFrom::Committed,
            Operation::Unresolved(unresolved) => AttemptFrom::Unresolved {
                classified: unresolved.classified.as_ref(),
                latest: TimelineRevision(self.model.latest),
            },
            _ => AttemptFrom::Other,
        };
        let asked = Asked {
            plan: &self.plan,
            approval_revoked: self.model.withdrawn,
            approver_revoked: false,
            now: self.now,
            epoch: epoch(1),
            scope: &self.scope,
            shows: bytes(shows),
            stage: Stage::Attempt {
                operation: id(),
                state,
                held: &held,
                token: &token,
                attempts: &attempts,
            },
        };
        let code = admitted(&self.rules, &asked);
        let model = self.model.against_attempt(self.now, shows, own);
        let failed = |refusal: &NotAdmitted| {
            let numbers = refusal.failed.iter().map(|one| one.number());
            numbers.collect::<Vec<_>>()
        };
        let refused = code.as_ref().err().map(failed).unwrap_or_default();
        same("an attempt", refused, model.clone())?;
        let revision = self.entry();
        match code {
            Ok(admission) => {
                let attempt = attempt(attempts.len() + 1, token, revision, self.now);
                let recorded = Recorded::admitted(&admission, attempt);
                self.row = match self.row.clone() {
                    Operation::Committed(it) => Operation::Sending(it.send(recorded, revision)),
                    Operation::Unresolved(it) => Operation::Sending(it.send(recorded, revision)),
                    other => return Err(format!("sent from {:?}", other.state())),
                };
                self.model.send(self.now, revision.0);
            }
            Err(refusal) if own => self.refused(refusal, &model, revision)?,
            Err(_) => {}
        }
        Ok(())
    }

    /// The transaction after a refused attempt.
    fn refused(&mut self, refusal: NotAdmitted, failed: &[u8], revision: TimelineRevision) -> Held {
        let Operation::Committed(committed) = self.row.clone() else {
            return Ok(());
        };
        let code = committed.refuse_attempt(refusal, revision);
        let unresolves = failed.iter().any(|number| [1, 2, 3, 6].contains(number));
        same("whether a refusal counts", code.is_ok(), unresolves)?;
        if let Ok((unresolved, _)) = code {
            self.row = Operation::Unresolved(unresolved);
            self.model.moves(OperationState::Unresolved, revision.0);
        }
        Ok(())
    }

    fn answer(&mut self, class: ResponseClass) {
        let Operation::Sending(sending) = self.row.clone() else {
            return;
        };
        let revision = self.entry();
        let response = Response {
            class,
            code: "ok",
            revision,
            at: at(self.now),
        };
        self.row = match sending.respond(&self.rules, response) {
            AfterResponse::Verifying(it) => Operation::Verifying(it),
            AfterResponse::Rejected(it) => Operation::Rejected(it),
            AfterResponse::Unresolved(it, _) => Operation::Unresolved(it),
        };
        self.model.answered(class, revision.0);
    }

    fn take_over(&mut self, pass: bool, fresh: bool) -> Held {
        let seen = self.model.generation - i64::from(!fresh);
        let revision = self.entry();
        let takeover = Takeover {
            // Two controllers by turns, so that an owner's string comes back.
            owner: owner(self.model.generation as u128 % 2),
            seen: Generation(seen),
            epoch: epoch(1),
            taker: match pass {
                true => Taker::Pass { now: at(self.now) },
                false => Taker::Decision,
            },
            lease_until: at(self.now + LEASE),
            revision,
        };
        let against = self.model.against_takeover(seen, pass.then_some(self.now));
        match self.row.clone().take_over(&self.rules, takeover) {
            Ok(unresolved) => {
                same("what speaks against a takeover", Vec::new(), against)?;
                self.tokens.push(unresolved.common.fence.clone());
                self.row = Operation::Unresolved(unresolved);
                self.model.taken(self.now, revision.0);
            }
            Err(refused) => ensure(
                against.contains(&refused.reason),
                &format!("a takeover: {:?} is none of {against:?}", refused.reason),
            )?,
        }
        Ok(())
    }

    fn classify(&mut self) -> Held {
        let common = self.row.common();
        let code = classify(
            &self.rules,
            &Evidence {
                binding: &self.binding,
                attempts: &common.attempts,
                observations: &self.recorded,
                since: common.since,
                authorised: self.model.authorised(self.now),
                authority_gone: !self.model.authorised(self.now),
                gate_open: !self.scope.frozen,
                now: at(self.now),
            },
        );
        let asked = matches!(self.row, Operation::Verifying(_) | Operation::Unresolved(_));
        if !asked {
            return Ok(());
        }
        let outcome = match code {
            Classification::Completed(_) => Outcome::Completed,
            Classification::Rejected(_) => Outcome::Rejected,
            Classification::Failed(_) => Outcome::Failed,
            Classification::SafeToRetry(_) => Outcome::SafeToRetry,
            Classification::Cancelled(_) => Outcome::Cancelled,
            Classification::Unresolved(_) => Outcome::Unresolved,
        };
        same("a classification", outcome, self.model.outcome(self.now))?;
        let revision = self.entry();
        let (row, to) = match (self.row.clone(), code) {
            (Operation::Verifying(it), Classification::Completed(proof)) => (
                Operation::Completed(it.complete(proof, revision)),
                OperationState::Completed,
            ),
            (Operation::Verifying(it), Classification::Failed(proof)) => (
                Operation::Failed(it.fail(proof, revision)),
                OperationState::Failed,
            ),
            (Operation::Unresolved(it), Classification::Completed(proof)) => (
                Operation::Completed(it.complete(proof, revision)),
                OperationState::Completed,
            ),
            (Operation::Unresolved(it), Classification::Failed(proof)) => (
                Operation::Failed(it.fail(proof, revision)),
                OperationState::Failed,
            ),
            (Operation::Unresolved(it), Classification::Rejected(proof)) => (
                Operation::Rejected(it.reject(proof, revision)),
                OperationState::Rejected,
            ),
            (Operation::Unresolved(it), Classification::Cancelled(proof)) => (
                Operation::Cancelled(it.cancel(proof, revision)),
                OperationState::Cancelled,
            ),
            (Operation::Unresolved(it), Classification::SafeToRetry(proof)) => {
                self.row = Operation::Unresolved(it.classify(proof, revision));
                self.model.safe = Some((revision.0, self.model.generation));
                self.model.latest = revision.0;
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.row = row;
        self.model.moves(to, revision.0);
        Ok(())
    }

    fn give_up(&mut self) -> Held {
        let Operation::Verifying(verifying) = self.row.clone() else {
            return Ok(());
        };
        let revision = self.entry();
        let code = verifying.give_up(at(self.now), revision);
        let passed = self
            .model
            .deadline()
            .is_some_and(|deadline| self.now >= deadline);
        same("whether it is given up", code.is_ok(), passed)?;
        if let Ok((unresolved, _)) = code {
            self.row = Operation::Unresolved(unresolved);
            self.model.moves(OperationState::Unresolved, revision.0);
        }
        Ok(())
    }

    /// The first lost answer of an unresolved operation, whose executor has stopped.
    fn account(&mut self) {
        let open = self
            .model
            .sent
            .iter()
            .position(|sent| sent.accounted.is_none());
        let (Operation::Unresolved(unresolved), Some(open)) = (self.row.clone(), open) else {
            return;
        };
        let revision = self.entry();
        let mut common = unresolved.common;
        common.attempts[open].accounting = Some(accounting(revision, self.now));
        self.row = Operation::from_row(common, OperationState::Unresolved, unresolved.classified);
        self.model.sent[open].accounted = Some(revision.0);
    }

    fn resolve(&mut self) -> Held {
        let Operation::Unresolved(unresolved) = self.row.clone() else {
            return Ok(());
        };
        let proof = Cancellation::by_decision(&self.rules, &unresolved.common.attempts);
        let may = self.model.sent.is_empty();
        same("whether it may be resolved", proof.is_some(), may)?;
        if let Some(proof) = proof {
            let revision = self.entry();
            self.row = Operation::Cancelled(unresolved.cancel(proof, revision));
            self.model.moves(OperationState::Cancelled, revision.0);
        }
        Ok(())
    }

    fn compare(&self, before: &Operation) -> Held {
        let (was, is) = (before.common(), self.row.common());
        same("the state", self.row.state(), self.model.state)?;
        same(
            "the generation",
            is.fence.generation.0,
            self.model.generation,
        )?;
        same("the requests", is.attempts.len(), self.model.sent.len())?;
        let ended = before.state().is_terminal() && before != &self.row;
        ensure(!ended, "an end was left")?;
        ensure(
            is.fence.generation >= was.fence.generation,
            "a generation fell",
        )?;
        ensure(
            is.attempts.len() >= was.attempts.len(),
            "a request was forgotten",
        )?;
        ensure(is.attempts.len() <= MAX_ATTEMPTS, "too many requests")?;
        let open = is.attempts.iter().any(|one| one.accounted_at().is_none());
        let sent = !is.attempts.is_empty();
        match self.row.state() {
            OperationState::Completed | OperationState::Failed | OperationState::Rejected => {
                ensure(
                    sent && !open,
                    "it ended with a request under way, or without one",
                )
            }
            OperationState::Cancelled => ensure(!sent, "it sent something and is cancelled"),
            OperationState::Committed
            | OperationState::Sending
            | OperationState::Verifying
            | OperationState::Unresolved => Ok(()),
        }
    }
}

fn property<R: Rules>(rules: R, most: usize, commands: &[Command]) -> Held {
    let mut world = World::new(rules, most);
    for command in commands {
        let before = world.row.clone();
        world.act(*command)?;
        world.compare(&before)?;
    }
    Ok(())
}

#[test]
fn an_operation_sends_waits_and_ends_as_its_model_says() {
    holds(&commands(), |commands| {
        property(Enforced, MAX_ATTEMPTS, &commands)
    });
}

#[test]
fn an_operation_under_fewer_rules_or_beside_a_wrong_model_differs() {
    for rule in [
        Rule::PlanAuthorises,
        Rule::EvidenceHolds,
        Rule::PreDispatchDigest,
        Rule::ArtifactDigestOnRetryOnly,
        Rule::GateOpen,
        Rule::AttemptByOwner,
        Rule::SafeToRetryRecorded,
        Rule::AttemptsLeft,
        Rule::EveryAttemptAccounted,
        Rule::EveryAttemptRefused,
        Rule::AtLeastOneAttempt,
        Rule::ObservedAfterAccounting,
        Rule::CompletionPurpose,
        Rule::CompletionDigest,
        Rule::CompletionHealth,
        Rule::CompletionNotContradicted,
        Rule::HealthFailsAtDeadlineOnly,
        Rule::NoneAccepted,
        Rule::NoneDefinitivelyRefused,
        Rule::RetryAtPreDispatchDigest,
        Rule::RetryAuthorised,
        Rule::RetryGateOpen,
        Rule::RetryAttemptsLeft,
        Rule::CancelledForGoodOnly,
        Rule::CancelledWithoutAttempt,
        Rule::TakeoverState,
        Rule::TakeoverGeneration,
        Rule::TakeoverLapsed,
    ] {
        let rules = Without::rules(&[rule]);
        fails(rule.name(), &commands(), |commands| {
            property(rules, MAX_ATTEMPTS, &commands)
        });
    }
    fails("one request fewer", &commands(), |commands| {
        property(Enforced, MAX_ATTEMPTS - 1, &commands)
    });
}
