//! Operations of plans (EaR 4): apply-config in its eight states, adopt in its one.
//!
//! A state is a struct with the transitions that leave it; a transition EaR 4 does not
//! list has no function. The first match on a row's [`Operation`] narrows it. Publish
//! and ingest jobs are in `job`. Never in this module: what the evidence says (a
//! terminal transition takes the value `classify` made of it).

mod state;

pub use state::OperationState;

use crate::attempt::{Attempt, Recorded, ResponseClass};
use crate::classify::{Cancellation, Completion, Failure, Rejection, SafeToRetry};
use crate::comparison::{Admission, NotAdmitted, SafeToRetryEntry};
use crate::fence::{Fence, Generation, Owner};
use crate::id::{ClusterId, EpochId, MachineId, OperationId, PlanId};
use crate::refused::Refused;
use crate::revision::TimelineRevision;
use crate::rules::{Rule, Rules};
use crate::time::{DbTime, Span};

/// What every state of an operation has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    pub id: OperationId,
    pub plan: PlanId,
    pub machine: MachineId,
    /// The rollout scope.
    pub cluster: ClusterId,
    pub fence: Fence,
    pub lease_until: DbTime,
    /// In the order they were recorded.
    pub attempts: Vec<Attempt>,
    /// The revision of the entry that put it in its state.
    pub since: TimelineRevision,
    pub created_at: DbTime,
}

/// Created by the commitment; scope and slot held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub common: Common,
}

/// An attempt is recorded; in flight or unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    pub common: Common,
}

/// Accepted; collecting evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifying {
    pub common: Common,
}

/// Evidence decides neither an end nor a safe retry; scope and slot held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    pub common: Common,
    /// The latest classification as safe to retry, if one is recorded.
    pub classified: Option<SafeToRetryEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    pub common: Common,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    pub common: Common,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub common: Common,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    pub common: Common,
}

/// An operation as a store gives it back.
///
/// Nothing completes that never verified:
///
/// ```compile_fail
/// use bronzeward_core::classify::Completion;
/// use bronzeward_core::operation::{Committed, Completed};
/// use bronzeward_core::revision::TimelineRevision;
///
/// fn end(operation: Committed, proof: Completion, at: TimelineRevision) -> Completed {
///     operation.complete(proof, at)
/// }
/// ```
///
/// and its twin, which differs in the state alone, compiles:
///
/// ```
/// use bronzeward_core::classify::Completion;
/// use bronzeward_core::operation::{Verifying, Completed};
/// use bronzeward_core::revision::TimelineRevision;
///
/// fn end(operation: Verifying, proof: Completion, at: TimelineRevision) -> Completed {
///     operation.complete(proof, at)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Committed(Committed),
    Sending(Sending),
    Verifying(Verifying),
    Unresolved(Unresolved),
    Completed(Completed),
    Rejected(Rejected),
    Failed(Failed),
    Cancelled(Cancelled),
}

/// Why an operation goes to `unresolved`, as its entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnresolvedCause {
    Takeover,
    /// An attempt was refused by comparison 1, 2, 3 or 6.
    AttemptRefused(NotAdmitted),
    /// The request's outcome is unknown, or decides nothing.
    Response(ResponseClass),
    /// A definitive refusal while an earlier attempt has none.
    EarlierAttemptOpen,
    /// No successful completion observation by the deadline.
    VerificationDeadline,
    /// An attempt is neither answered nor accounted for.
    Unaccounted,
}

/// What recording a response leaves of a sending operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum AfterResponse {
    Verifying(Verifying),
    Rejected(Rejected),
    Unresolved(Unresolved, UnresolvedCause),
}

/// Who takes an operation over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taker {
    /// A controller's start or pass, which takes only lapsed ones.
    Pass { now: DbTime },
    /// A recovery-admin's request, or recovery entry, which take any.
    Decision,
}

/// A takeover as its transaction makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    pub owner: Owner,
    /// The generation the taker read.
    pub seen: Generation,
    /// The current epoch, or the one a recovery entry mints.
    pub epoch: EpochId,
    pub taker: Taker,
    pub lease_until: DbTime,
    /// The revision of its ownership-transition entry.
    pub revision: TimelineRevision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TakeoverRefusal {
    /// The generation moved since it was read.
    Generation,
    /// The owner's lease is live.
    Live,
    /// The operation has ended.
    Terminal,
}

impl Committed {
    /// The commitment's operation (EaR 3.2): owned at generation 1, its lease from the
    /// transaction's last lock.
    pub fn new(_admitted: &Admission, common: Common) -> Self {
        Self { common }
    }

    /// The attempt transaction recorded this attempt; the request follows its commit.
    pub fn send(self, recorded: Recorded, revision: TimelineRevision) -> Sending {
        Sending {
            common: self.common.with_attempt(recorded, revision),
        }
    }

    /// Its attempt was refused (EaR 3.3).
    pub fn refuse_attempt(
        self,
        refusal: NotAdmitted,
        revision: TimelineRevision,
    ) -> Result<(Unresolved, UnresolvedCause), Refused<Self, NotAdmitted>> {
        if !refusal.unresolves() {
            return Err(Refused::new(self, refusal));
        }
        let unresolved = Unresolved::from(self.common, revision);
        Ok((unresolved, UnresolvedCause::AttemptRefused(refusal)))
    }
}

impl Sending {
    /// Records the answer of the attempt under way, by its owner (EaR 3.5).
    pub fn respond<R: Rules>(
        mut self,
        rules: &R,
        response: crate::attempt::Response,
    ) -> AfterResponse {
        let revision = response.revision;
        let earlier_refused = self
            .common
            .attempts
            .iter()
            .rev()
            .skip(1)
            .all(|attempt| attempt.class() == Some(ResponseClass::RefusedValidation));
        if let Some(attempt) = self.common.attempts.last_mut() {
            attempt.response = Some(response);
        }
        match response.class {
            ResponseClass::Accepted => AfterResponse::Verifying(Verifying {
                common: self.common.since(revision),
            }),
            ResponseClass::RefusedValidation
                if rules.holds(Rule::EveryAttemptRefused, earlier_refused) =>
            {
                AfterResponse::Rejected(Rejected {
                    common: self.common.since(revision),
                })
            }
            ResponseClass::RefusedValidation => AfterResponse::Unresolved(
                Unresolved::from(self.common, revision),
                UnresolvedCause::EarlierAttemptOpen,
            ),
            ResponseClass::RefusedImmediate
            | ResponseClass::Answered
            | ResponseClass::Transport => AfterResponse::Unresolved(
                Unresolved::from(self.common, revision),
                UnresolvedCause::Response(response.class),
            ),
        }
    }
}

impl Verifying {
    pub fn complete(self, _proof: Completion, revision: TimelineRevision) -> Completed {
        Completed {
            common: self.common.since(revision),
        }
    }

    pub fn fail(self, _proof: Failure, revision: TimelineRevision) -> Failed {
        Failed {
            common: self.common.since(revision),
        }
    }

    /// The verification deadline of its attempt.
    pub fn deadline(&self) -> Option<DbTime> {
        self.common
            .attempts
            .last()
            .map(|attempt| attempt.verification_deadline)
    }

    /// The deadline passed without a proof, or an attempt is unaccounted.
    pub fn give_up(
        self,
        now: DbTime,
        revision: TimelineRevision,
    ) -> Result<(Unresolved, UnresolvedCause), Box<Self>> {
        let unaccounted = self
            .common
            .attempts
            .iter()
            .any(|attempt| attempt.accounted_at().is_none());
        let cause = if unaccounted {
            UnresolvedCause::Unaccounted
        } else if self.deadline().is_none_or(|deadline| now >= deadline) {
            UnresolvedCause::VerificationDeadline
        } else {
            return Err(Box::new(self));
        };
        Ok((Unresolved::from(self.common, revision), cause))
    }
}

impl Unresolved {
    fn from(common: Common, revision: TimelineRevision) -> Self {
        Self {
            common: common.since(revision),
            classified: None,
        }
    }

    /// Records that it is safe to retry, as its owner found it.
    pub fn classify(self, _proof: SafeToRetry, revision: TimelineRevision) -> Unresolved {
        let generation = self.common.fence.generation;
        Unresolved {
            classified: Some(SafeToRetryEntry {
                revision,
                generation,
            }),
            ..self
        }
    }

    /// The retry's attempt transaction recorded this attempt.
    pub fn send(self, recorded: Recorded, revision: TimelineRevision) -> Sending {
        Sending {
            common: self.common.with_attempt(recorded, revision),
        }
    }

    pub fn complete(self, _proof: Completion, revision: TimelineRevision) -> Completed {
        Completed {
            common: self.common.since(revision),
        }
    }

    pub fn fail(self, _proof: Failure, revision: TimelineRevision) -> Failed {
        Failed {
            common: self.common.since(revision),
        }
    }

    pub fn reject(self, _proof: Rejection, revision: TimelineRevision) -> Rejected {
        Rejected {
            common: self.common.since(revision),
        }
    }

    pub fn cancel(self, _proof: Cancellation, revision: TimelineRevision) -> Cancelled {
        Cancelled {
            common: self.common.since(revision),
        }
    }
}

impl Completed {
    /// An adoption's operation: it has no other state (EaR 6.3).
    pub fn adopted(_admitted: &Admission, common: Common) -> Self {
        Self { common }
    }
}

impl Common {
    fn since(mut self, revision: TimelineRevision) -> Self {
        self.since = revision;
        self
    }

    fn with_attempt(mut self, recorded: Recorded, revision: TimelineRevision) -> Self {
        self.attempts.push(recorded.into_attempt());
        self.since = revision;
        self
    }

    /// A live owner's lease, counted from a time read after the row was locked.
    pub fn extend<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
        length: Span,
    ) -> Result<Common, Refused<Common, crate::fence::Stale>> {
        match self
            .fence
            .admits_live(rules, token, current, self.lease_until, now)
        {
            Ok(()) => Ok(Common {
                lease_until: now + length,
                ..self
            }),
            Err(stale) => Err(Refused::new(self, stale)),
        }
    }
}

impl Operation {
    /// For a store: a row's state beside what every state has.
    pub fn from_row(
        common: Common,
        state: OperationState,
        classified: Option<SafeToRetryEntry>,
    ) -> Self {
        match state {
            OperationState::Committed => Operation::Committed(Committed { common }),
            OperationState::Sending => Operation::Sending(Sending { common }),
            OperationState::Verifying => Operation::Verifying(Verifying { common }),
            OperationState::Unresolved => Operation::Unresolved(Unresolved { common, classified }),
            OperationState::Completed => Operation::Completed(Completed { common }),
            OperationState::Rejected => Operation::Rejected(Rejected { common }),
            OperationState::Failed => Operation::Failed(Failed { common }),
            OperationState::Cancelled => Operation::Cancelled(Cancelled { common }),
        }
    }

    pub const fn state(&self) -> OperationState {
        match self {
            Operation::Committed(_) => OperationState::Committed,
            Operation::Sending(_) => OperationState::Sending,
            Operation::Verifying(_) => OperationState::Verifying,
            Operation::Unresolved(_) => OperationState::Unresolved,
            Operation::Completed(_) => OperationState::Completed,
            Operation::Rejected(_) => OperationState::Rejected,
            Operation::Failed(_) => OperationState::Failed,
            Operation::Cancelled(_) => OperationState::Cancelled,
        }
    }

    pub const fn common(&self) -> &Common {
        match self {
            Operation::Committed(it) => &it.common,
            Operation::Sending(it) => &it.common,
            Operation::Verifying(it) => &it.common,
            Operation::Unresolved(it) => &it.common,
            Operation::Completed(it) => &it.common,
            Operation::Rejected(it) => &it.common,
            Operation::Failed(it) => &it.common,
            Operation::Cancelled(it) => &it.common,
        }
    }

    fn into_common(self) -> Common {
        match self {
            Operation::Committed(it) => it.common,
            Operation::Sending(it) => it.common,
            Operation::Verifying(it) => it.common,
            Operation::Unresolved(it) => it.common,
            Operation::Completed(it) => it.common,
            Operation::Rejected(it) => it.common,
            Operation::Failed(it) => it.common,
            Operation::Cancelled(it) => it.common,
        }
    }

    /// Takes a non-terminal operation over: `committed`, `sending` and `verifying` become
    /// `unresolved`, an `unresolved` one stays it (EaR 3.4). Nothing is sent and nothing
    /// classified. The process's epoch is the caller's to compare.
    pub fn take_over<R: Rules>(
        self,
        rules: &R,
        takeover: Takeover,
    ) -> Result<Unresolved, Refused<Operation, TakeoverRefusal>> {
        if !rules.holds(Rule::TakeoverState, !self.state().is_terminal()) {
            return Err(Refused::new(self, TakeoverRefusal::Terminal));
        }
        let generation = self.common().fence.generation == takeover.seen;
        if !rules.holds(Rule::TakeoverGeneration, generation) {
            return Err(Refused::new(self, TakeoverRefusal::Generation));
        }
        let lapsed = match takeover.taker {
            Taker::Pass { now } => self.common().lease_until <= now,
            Taker::Decision => true,
        };
        if !rules.holds(Rule::TakeoverLapsed, lapsed) {
            return Err(Refused::new(self, TakeoverRefusal::Live));
        }
        let mut common = self.into_common().since(takeover.revision);
        common.fence = common.fence.taken_by(takeover.owner, takeover.epoch);
        common.lease_until = takeover.lease_until;
        Ok(Unresolved {
            common,
            // The classification was another owner's.
            classified: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Response;
    use crate::attempt::tests::{answered, attempt};
    use crate::classify::{self, Classification};
    use crate::comparison::Comparison;
    use crate::observation::Purpose;
    use crate::observation::tests::observation;
    use crate::plan::tests::{ARTIFACT, BEFORE, at, binding, epoch};
    use crate::rules::{Enforced, Without};

    fn common() -> Common {
        Common {
            id: OperationId::from_bits(1),
            plan: PlanId::from_bits(1),
            machine: MachineId::from_bits(1),
            cluster: ClusterId::from_bits(1),
            fence: Fence {
                owner: Owner::new("a", 1, 1).unwrap(),
                generation: Generation::FIRST,
                epoch: epoch(),
            },
            lease_until: at(30),
            attempts: Vec::new(),
            since: TimelineRevision(3),
            created_at: at(0),
        }
    }

    fn admission() -> Admission {
        Admission::of_adoption()
    }

    fn sending(attempts: Vec<Attempt>) -> Sending {
        Sending {
            common: Common {
                attempts,
                ..common()
            },
        }
    }

    fn response(class: ResponseClass) -> Response {
        Response {
            class,
            code: "ok",
            revision: TimelineRevision(10),
            at: at(10),
        }
    }

    fn classified(operation: &Common, reading: &[u8]) -> Classification {
        let binding = binding();
        classify::classify(
            &Enforced,
            &classify::Evidence {
                binding: &binding,
                attempts: &operation.attempts,
                observations: &[observation(Purpose::Completion, 20, reading)],
                since: operation.since,
                authorised: true,
                authority_gone: false,
                gate_open: true,
                now: at(21),
            },
        )
    }

    #[test]
    fn an_operation_walks_from_its_commitment_to_completed() {
        let committed = Committed::new(&admission(), common());
        let recorded = Recorded::admitted(&admission(), attempt(1, 5));
        let sending = committed.send(recorded, TimelineRevision(5));
        let AfterResponse::Verifying(verifying) =
            sending.respond(&Enforced, response(ResponseClass::Accepted))
        else {
            panic!("an accepted request is verified");
        };
        let Classification::Completed(proof) = classified(&verifying.common, ARTIFACT) else {
            panic!("the artifact was read after the answer");
        };
        let completed = verifying.complete(proof, TimelineRevision(22));
        assert_eq!(completed.common.since, TimelineRevision(22));
        assert_eq!(completed.common.attempts.len(), 1);
    }

    // covers-part: EaR-RSP-1 (what each class makes of the operation)
    #[test]
    fn each_class_of_answer_leads_where_the_table_says() {
        for class in ResponseClass::ALL {
            let after = sending(vec![attempt(1, 5)]).respond(&Enforced, response(class));
            let expected = match class {
                ResponseClass::Accepted => matches!(after, AfterResponse::Verifying(_)),
                ResponseClass::RefusedValidation => matches!(after, AfterResponse::Rejected(_)),
                ResponseClass::RefusedImmediate
                | ResponseClass::Answered
                | ResponseClass::Transport => matches!(
                    after,
                    AfterResponse::Unresolved(_, UnresolvedCause::Response(of)) if of == class
                ),
            };
            assert!(expected, "{}", class.as_str());
        }
        let earlier = answered(attempt(1, 4), ResponseClass::Answered, 5);
        let refused = || sending(vec![earlier.clone(), attempt(2, 6)]);
        let after = refused().respond(&Enforced, response(ResponseClass::RefusedValidation));
        assert!(matches!(
            after,
            AfterResponse::Unresolved(_, UnresolvedCause::EarlierAttemptOpen)
        ));
        let control = Without(&[Rule::EveryAttemptRefused]);
        let after = refused().respond(&control, response(ResponseClass::RefusedValidation));
        assert!(matches!(after, AfterResponse::Rejected(_)));
    }

    #[test]
    fn a_refused_attempt_leaves_a_committed_operation_unresolved_by_some_comparisons_only() {
        let refusal = |failed: &[Comparison]| NotAdmitted {
            failed: failed.to_vec(),
            process_epoch: false,
            on_digest: false,
            gate: None,
        };
        for comparison in Comparison::ALL {
            let committed = Committed::new(&admission(), common());
            let after = committed.refuse_attempt(refusal(&[comparison]), TimelineRevision(9));
            let unresolves = [1, 2, 3, 6].contains(&comparison.number());
            assert_eq!(after.is_ok(), unresolves, "{}", comparison.number());
        }
    }

    // covers-part: EaR-OWN-1 (the decision, with the state and the lease term dropped)
    #[test]
    fn a_takeover_takes_what_is_open_and_lapsed_and_makes_it_unresolved() {
        let takeover = |taker, seen| Takeover {
            owner: Owner::new("b", 1, 1).unwrap(),
            seen: Generation(seen),
            epoch: epoch(),
            taker,
            lease_until: at(100),
            revision: TimelineRevision(9),
        };
        let lapsed = Taker::Pass { now: at(30) };
        let live = Taker::Pass { now: at(29) };
        for state in OperationState::ALL {
            let operation = || Operation::from_row(common(), state, None);
            let taken = operation().take_over(&Enforced, takeover(lapsed, 1));
            if state.is_terminal() {
                assert_eq!(taken.unwrap_err().reason, TakeoverRefusal::Terminal);
                let control = Without(&[Rule::TakeoverState]);
                assert!(operation().take_over(&control, takeover(lapsed, 1)).is_ok());
                continue;
            }
            let taken = taken.unwrap();
            assert_eq!(taken.common.fence.generation, Generation(2));
            assert_eq!(taken.classified, None);
            let refused = operation()
                .take_over(&Enforced, takeover(live, 1))
                .unwrap_err();
            assert_eq!(refused.reason, TakeoverRefusal::Live);
            assert_eq!(*refused.unchanged, operation());
            let control = Without(&[Rule::TakeoverLapsed]);
            assert!(operation().take_over(&control, takeover(live, 1)).is_ok());
            assert!(
                operation()
                    .take_over(&Enforced, takeover(Taker::Decision, 1))
                    .is_ok()
            );
            let moved = operation().take_over(&Enforced, takeover(lapsed, 2));
            assert_eq!(moved.unwrap_err().reason, TakeoverRefusal::Generation);
        }
    }

    #[test]
    fn a_retry_is_sent_by_its_classifier_and_a_takeover_forgets_the_classification() {
        let unresolved = Unresolved {
            common: Common {
                attempts: vec![answered(attempt(1, 5), ResponseClass::Answered, 6)],
                ..common()
            },
            classified: None,
        };
        let Classification::SafeToRetry(proof) = classified(&unresolved.common, BEFORE) else {
            panic!("the node is as it was");
        };
        let classified = unresolved.classify(proof, TimelineRevision(21));
        let entry = classified.classified.unwrap();
        assert_eq!(entry.revision, TimelineRevision(21));
        assert_eq!(entry.generation, classified.common.fence.generation);
        let recorded = Recorded::admitted(&admission(), attempt(2, 25));
        let sending = classified.send(recorded, TimelineRevision(25));
        assert_eq!(sending.common.attempts.len(), 2);
    }

    #[test]
    fn a_verification_is_given_up_at_its_deadline_and_not_before() {
        let verifying = || Verifying {
            common: Common {
                attempts: vec![answered(attempt(1, 5), ResponseClass::Accepted, 6)],
                ..common()
            },
        };
        assert!(verifying().give_up(at(604), TimelineRevision(9)).is_err());
        let (_, cause) = verifying().give_up(at(605), TimelineRevision(9)).unwrap();
        assert_eq!(cause, UnresolvedCause::VerificationDeadline);
    }

    #[test]
    fn holding_states_are_the_ones_that_have_not_ended() {
        for state in OperationState::ALL {
            assert_eq!(OperationState::parse(state.as_str()), Some(state));
            assert_eq!(
                OperationState::HOLDING.contains(&state),
                !state.is_terminal()
            );
        }
    }

    #[test]
    fn a_lease_is_extended_by_its_live_owner() {
        let token = common().fence;
        let length = Span::seconds(30);
        let extended = common()
            .extend(&Enforced, &token, epoch(), at(29), length)
            .unwrap();
        assert_eq!(extended.lease_until, at(59));
        let late = common().extend(&Enforced, &token, epoch(), at(30), length);
        assert_eq!(late.unwrap_err().reason, crate::fence::Stale::Lease);
    }
}
