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
        let by = self.common.fence.clone();
        Unresolved {
            classified: Some(SafeToRetryEntry { revision, by }),
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
