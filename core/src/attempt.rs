//! Attempts: one request each, its answer, and what accounts for it (EaR 3.3, 3.5,
//! 5.2).
//!
//! Dispatch records an attempt before it sends and a response after; an accounting by
//! recovery-admin stands in for a response that was lost. Never in this module: text
//! of a response.

use std::collections::BTreeMap;

use crate::fence::Fence;
use crate::id::{AttemptId, MachineId, ObservationId, OperationId};
use crate::inventory::Endpoint;
use crate::observation::{AccessVersion, Observation, Purpose};
use crate::principal::Signed;
use crate::revision::TimelineRevision;
use crate::rules::{Rule, Rules};
use crate::time::{DbTime, Span};

/// How a request ended, as the mutating client classifies it (EaR 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResponseClass {
    Accepted,
    /// The only definitive refusal: proven to precede any change.
    RefusedValidation,
    /// Never sent again: the node cannot do it in this mode.
    RefusedImmediate,
    /// The node answered with an error that decides nothing.
    Answered,
    /// No answer of the node's: nobody knows.
    Transport,
}

impl ResponseClass {
    pub const ALL: [ResponseClass; 5] = [
        ResponseClass::Accepted,
        ResponseClass::RefusedValidation,
        ResponseClass::RefusedImmediate,
        ResponseClass::Answered,
        ResponseClass::Transport,
    ];

    /// Whether it accounts for its attempt: nothing of it can land any more.
    pub const fn accounts(self) -> bool {
        match self {
            ResponseClass::Accepted
            | ResponseClass::RefusedValidation
            | ResponseClass::RefusedImmediate
            | ResponseClass::Answered => true,
            ResponseClass::Transport => false,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            ResponseClass::Accepted => "accepted",
            ResponseClass::RefusedValidation => "refused-validation",
            ResponseClass::RefusedImmediate => "refused-immediate",
            ResponseClass::Answered => "answered",
            ResponseClass::Transport => "transport",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }
}

/// A recorded response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    pub class: ResponseClass,
    /// One of our own names of what came: a gRPC status, or why there was none.
    pub code: &'static str,
    pub revision: TimelineRevision,
    pub at: DbTime,
}

/// A recovery-admin's judgement that an attempt can no longer land (EaR 5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounting {
    pub by: Signed,
    pub start: ObservationId,
    pub end: ObservationId,
    pub facts: BTreeMap<String, String>,
    pub revision: TimelineRevision,
    pub at: DbTime,
}

/// A recorded attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub id: AttemptId,
    pub operation: OperationId,
    pub machine: MachineId,
    /// Its place among the operation's attempts, from 1.
    pub number: u8,
    /// The owner that recorded it.
    pub fence: Fence,
    pub route: Endpoint,
    /// The evidence it was recorded on, whose access version it uses.
    pub evidence: ObservationId,
    pub access: AccessVersion,
    pub revision: TimelineRevision,
    pub at: DbTime,
    pub transport_deadline: DbTime,
    pub verification_deadline: DbTime,
    pub response: Option<Response>,
    pub accounting: Option<Accounting>,
}

impl Attempt {
    pub const fn class(&self) -> Option<ResponseClass> {
        match self.response {
            Some(response) => Some(response.class),
            None => None,
        }
    }

    /// The revision at which it was accounted for, if it is: by the node's answer or by
    /// decision, whichever came first.
    pub fn accounted_at(&self) -> Option<TimelineRevision> {
        let answered = self
            .response
            .filter(|response| response.class.accounts())
            .map(|response| response.revision);
        let decided = self.accounting.as_ref().map(|decision| decision.revision);
        match (answered, decided) {
            (Some(answered), Some(decided)) => Some(answered.min(decided)),
            (answered, decided) => answered.or(decided),
        }
    }
}

/// An attempt that its transaction is about to record. The value that a client sends by
/// is `Committed<Recorded>`, which only a committed transaction gives (EaR 3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded(Attempt);

impl Recorded {
    /// Only a comparison that admitted an attempt makes one.
    pub fn admitted(_admission: &crate::comparison::Admission, attempt: Attempt) -> Self {
        Self(attempt)
    }

    pub const fn attempt(&self) -> &Attempt {
        &self.0
    }

    pub fn into_attempt(self) -> Attempt {
        self.0
    }
}

/// When every attempt is accounted for, the revision after which a read shows the end.
pub fn all_accounted_at(attempts: &[Attempt]) -> Option<TimelineRevision> {
    attempts
        .iter()
        .map(Attempt::accounted_at)
        .collect::<Option<Vec<_>>>()
        .and_then(|revisions| revisions.into_iter().max())
}

/// What an accounting decision is made on (EaR 5.2).
#[derive(Clone, Debug)]
pub struct AccountingFacts<'a> {
    /// The end of the wait for the request: the attempt's transport deadline, or the stop
    /// of the old instances plus the maximum transport deadline for an erased attempt
    /// (EaR 7.2).
    pub transport_deadline: DbTime,
    /// When its executor stopped: the time of its response entry of class `transport`, of
    /// the ownership's move past its generation, or of the old instances' stop. None
    /// while it may still run.
    pub stopped_at: Option<DbTime>,
    /// The first successful read of the machine after the deadline.
    pub first_read_after_deadline: Option<DbTime>,
    pub settle_floor: Span,
    pub start: &'a Observation,
    pub end: &'a Observation,
    /// Whether the facts explain a changed resource.
    pub explained: bool,
    /// Whether the attempt has a response that accounts, or a decision.
    pub accounted: bool,
    pub now: DbTime,
}

/// A condition of EaR 5.2 that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotAccountable {
    AlreadyAccounted,
    ExecutorNotStopped,
    NotRecoveryObservations,
    StartTooEarly,
    EndTooEarly,
    SettleFloor,
    Unread,
    Unexplained,
}

/// Whether a lost response may be accounted for.
pub fn accountable<R: Rules>(rules: &R, facts: &AccountingFacts<'_>) -> Result<(), NotAccountable> {
    let ask = |rule, condition, refusal| {
        if rules.holds(rule, condition) {
            Ok(())
        } else {
            Err(refusal)
        }
    };
    ask(
        Rule::AccountedOnce,
        !facts.accounted,
        NotAccountable::AlreadyAccounted,
    )?;
    ask(
        Rule::ExecutorStopped,
        facts.stopped_at.is_some(),
        NotAccountable::ExecutorNotStopped,
    )?;
    let stopped = facts.stopped_at.unwrap_or(facts.transport_deadline);
    let recovery = facts.start.started.purpose == Purpose::Recovery
        && facts.end.started.purpose == Purpose::Recovery;
    ask(
        Rule::BracketsRead,
        recovery,
        NotAccountable::NotRecoveryObservations,
    )?;
    let begun = facts.start.started.started_at;
    ask(
        Rule::StartAfterDeadline,
        begun > facts.transport_deadline && begun > stopped,
        NotAccountable::StartTooEarly,
    )?;
    // The first successful read after the deadline is at the latest the start itself.
    let first_read = facts.first_read_after_deadline.unwrap_or(facts.start.at);
    let settled_from = facts.transport_deadline.max(stopped).max(first_read);
    ask(
        Rule::SettleFloor,
        facts.now >= settled_from + facts.settle_floor,
        NotAccountable::SettleFloor,
    )?;
    ask(
        Rule::EndAfterFloor,
        facts.end.started.started_at >= facts.start.at + facts.settle_floor,
        NotAccountable::EndTooEarly,
    )?;
    let read = |observation: &Observation| {
        observation.values.configuration.value().is_some()
            && observation.values.identity.value().is_some()
    };
    ask(
        Rule::BracketsRead,
        read(facts.start) && read(facts.end),
        NotAccountable::Unread,
    )?;
    let resource = |observation: &Observation| {
        observation
            .values
            .configuration
            .value()
            .map(|read| (read.resource_version.clone(), read.resource_created.clone()))
    };
    let same = resource(facts.start) == resource(facts.end);
    ask(
        Rule::VersionChangeExplained,
        same || facts.explained,
        NotAccountable::Unexplained,
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fence::{Generation, Owner};
    use crate::id::EpochId;
    use crate::observation::tests::{access, endpoint, observation};
    use crate::observation::{Read, Unread};
    use crate::rules::{Enforced, Without};

    pub(crate) fn attempt(number: u8, revision: i64) -> Attempt {
        Attempt {
            id: AttemptId::from_bits(u128::from(number)),
            operation: OperationId::from_bits(1),
            machine: MachineId::from_bits(1),
            number,
            fence: Fence {
                owner: Owner::new("a", 1, 1).unwrap(),
                generation: Generation::FIRST,
                epoch: EpochId::from_bits(1),
            },
            route: endpoint(),
            evidence: ObservationId::from_bits(1),
            access: access(1),
            revision: TimelineRevision(revision),
            at: DbTime::from_seconds(revision),
            transport_deadline: DbTime::from_seconds(revision + 60),
            verification_deadline: DbTime::from_seconds(revision + 600),
            response: None,
            accounting: None,
        }
    }

    pub(crate) fn answered(mut attempt: Attempt, class: ResponseClass, revision: i64) -> Attempt {
        attempt.response = Some(Response {
            class,
            code: "ok",
            revision: TimelineRevision(revision),
            at: DbTime::from_seconds(revision),
        });
        attempt
    }

    // covers-part: EaR-RSP-1 (what accounts; the classification of answers is the client's)
    #[test]
    fn every_answer_of_the_node_accounts_and_silence_does_not() {
        for class in ResponseClass::ALL {
            assert_eq!(ResponseClass::parse(class.as_str()), Some(class));
            let accounted = answered(attempt(1, 1), class, 4).accounted_at();
            match class {
                ResponseClass::Transport => assert_eq!(accounted, None),
                ResponseClass::Accepted
                | ResponseClass::RefusedValidation
                | ResponseClass::RefusedImmediate
                | ResponseClass::Answered => assert_eq!(accounted, Some(TimelineRevision(4))),
            }
        }
        assert_eq!(attempt(1, 1).accounted_at(), None);
    }

    #[test]
    fn one_unaccounted_attempt_leaves_them_all_unaccounted() {
        let first = answered(attempt(1, 1), ResponseClass::Answered, 4);
        let second = answered(attempt(2, 5), ResponseClass::Transport, 6);
        assert_eq!(all_accounted_at(&[first.clone(), second.clone()]), None);
        let second = answered(second, ResponseClass::Accepted, 9);
        assert_eq!(
            all_accounted_at(&[first, second]),
            Some(TimelineRevision(9))
        );
        assert_eq!(all_accounted_at(&[]), None);
    }

    // covers-part: EaR-ACC-1 (each condition with its rule dropped, as decided)
    #[test]
    fn each_condition_of_an_accounting_refuses_alone() {
        // Deadline at 100, stop at 110, floor 30: start after 110, end 30 later.
        let start = observation(Purpose::Recovery, 120, b"a");
        let end = observation(Purpose::Recovery, 151, b"a");
        let facts = |start, end| AccountingFacts {
            transport_deadline: DbTime::from_seconds(100),
            stopped_at: Some(DbTime::from_seconds(110)),
            first_read_after_deadline: Some(DbTime::from_seconds(121)),
            settle_floor: Span::seconds(30),
            start,
            end,
            explained: false,
            accounted: false,
            now: DbTime::from_seconds(152),
        };
        assert_eq!(accountable(&Enforced, &facts(&start, &end)), Ok(()));
        let early = observation(Purpose::Recovery, 109, b"a");
        let hasty = observation(Purpose::Recovery, 150, b"a");
        let drift = observation(Purpose::Drift, 120, b"a");
        let mut blind = start.clone();
        blind.values.identity = Read::Unread(Unread::Refused);
        let mut rebooted = end.clone();
        if let Read::Value(read) = &mut rebooted.values.configuration {
            read.resource_created = "2026-09-26T10:00:00Z".into();
        }
        let running = AccountingFacts {
            stopped_at: None,
            ..facts(&start, &end)
        };
        let twice = AccountingFacts {
            accounted: true,
            ..facts(&start, &end)
        };
        let soon = AccountingFacts {
            now: DbTime::from_seconds(150),
            ..facts(&start, &end)
        };
        let cases = [
            (twice, NotAccountable::AlreadyAccounted, Rule::AccountedOnce),
            (
                running,
                NotAccountable::ExecutorNotStopped,
                Rule::ExecutorStopped,
            ),
            (
                facts(&early, &end),
                NotAccountable::StartTooEarly,
                Rule::StartAfterDeadline,
            ),
            (
                facts(&start, &hasty),
                NotAccountable::EndTooEarly,
                Rule::EndAfterFloor,
            ),
            (soon, NotAccountable::SettleFloor, Rule::SettleFloor),
            (
                facts(&blind, &end),
                NotAccountable::Unread,
                Rule::BracketsRead,
            ),
            (
                facts(&drift, &end),
                NotAccountable::NotRecoveryObservations,
                Rule::BracketsRead,
            ),
            (
                facts(&start, &rebooted),
                NotAccountable::Unexplained,
                Rule::VersionChangeExplained,
            ),
        ];
        for (facts, refusal, rule) in cases {
            assert_eq!(accountable(&Enforced, &facts), Err(refusal));
            let rules: &'static [Rule] = vec![rule].leak();
            assert_eq!(
                accountable(&Without(rules), &facts),
                Ok(()),
                "{}",
                rule.name()
            );
        }
        let explained = AccountingFacts {
            explained: true,
            ..facts(&start, &rebooted)
        };
        assert_eq!(accountable(&Enforced, &explained), Ok(()));
    }
}
