//! Classification (EaR 5): what the evidence makes of an operation, as a pure function.
//!
//! Each outcome is a value that only this module constructs; a terminal transition of
//! an operation takes one. Absence of evidence classifies nothing: with no reading and
//! no answer the outcome is `Unresolved`.

use crate::attempt::{Attempt, ResponseClass, all_accounted_at};
use crate::comparison::attempts_left;
use crate::digest::ConfigDigest;
use crate::id::ObservationId;
use crate::observation::{Observation, Postconditions, Purpose};
use crate::plan::Binding;
use crate::revision::TimelineRevision;
use crate::rules::{Rule, Rules};
use crate::time::DbTime;

/// What a classification looks at, read under the machine's lock.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    pub binding: &'a Binding,
    pub attempts: &'a [Attempt],
    /// The machine's recorded observations, of every purpose.
    pub observations: &'a [Observation],
    /// The entry that put the operation where it is: a reading must have begun after it.
    pub since: TimelineRevision,
    /// Whether comparison 1 passes now.
    pub authorised: bool,
    /// Whether it can never pass again: revoked, cancelled, expired, or the approval is of
    /// another epoch (EaR 4). A closed gate is not such a ground.
    pub authority_gone: bool,
    /// Whether comparison 6 passes now.
    pub gate_open: bool,
    pub now: DbTime,
}

/// Postconditions proven by this observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    observation: ObservationId,
    digest: ConfigDigest,
}

/// A completion observation contradicts a postcondition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    observation: ObservationId,
    digest: Option<ConfigDigest>,
}

/// Every attempt was refused by a class proven to precede any change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    attempts: usize,
}

/// The node is as it was before, nothing is under way, and one more request is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SafeToRetry {
    observation: ObservationId,
}

/// No attempt was ever recorded, and none can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancellation {
    by_decision: bool,
}

impl Completion {
    pub const fn observation(&self) -> ObservationId {
        self.observation
    }

    /// The verified digest: what Applied becomes.
    pub const fn digest(&self) -> ConfigDigest {
        self.digest
    }
}

impl Failure {
    pub const fn observation(&self) -> ObservationId {
        self.observation
    }

    /// The observed digest, where it was read: drift, if it is not Applied's.
    pub const fn digest(&self) -> Option<ConfigDigest> {
        self.digest
    }
}

impl Rejection {
    pub const fn attempts(&self) -> usize {
        self.attempts
    }
}

impl SafeToRetry {
    pub const fn observation(&self) -> ObservationId {
        self.observation
    }
}

impl Cancellation {
    /// A recovery-admin's resolution, which needs an operation with no attempt (PA §9.2).
    pub fn by_decision<R: Rules>(rules: &R, attempts: &[Attempt]) -> Option<Self> {
        rules
            .holds(Rule::CancelledWithoutAttempt, attempts.is_empty())
            .then_some(Self { by_decision: true })
    }

    pub const fn is_decision(&self) -> bool {
        self.by_decision
    }
}

/// Why nothing is decided yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Undecided {
    /// An attempt has neither a response that accounts nor a decision.
    Unaccounted,
    /// No reading after the last answer decides.
    NoReading,
    /// A reading with a higher basis says otherwise.
    Contradicted,
    /// The digest is right and health is not, before the deadline.
    Unhealthy,
    /// Nothing was sent, the node is as it was, and the gate is closed.
    GateClosed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Classification {
    Completed(Completion),
    Rejected(Rejection),
    Failed(Failure),
    SafeToRetry(SafeToRetry),
    Cancelled(Cancellation),
    Unresolved(Undecided),
}

/// Classifies an operation (EaR 5's table, read from the top).
pub fn classify<R: Rules>(rules: &R, evidence: &Evidence<'_>) -> Classification {
    let attempts = evidence.attempts;
    let some = rules.holds(Rule::AtLeastOneAttempt, !attempts.is_empty());
    if some && let Some(rejection) = rejected(rules, attempts) {
        return Classification::Rejected(rejection);
    }
    if attempts.is_empty() && evidence.authority_gone {
        return Classification::Cancelled(Cancellation { by_decision: false });
    }
    if attempts.is_empty() && !evidence.gate_open && rules.holds(Rule::CancelledForGoodOnly, false)
    {
        return Classification::Cancelled(Cancellation { by_decision: false });
    }
    let accounted = all_accounted_at(attempts);
    let all = attempts.is_empty() || accounted.is_some();
    if !rules.holds(Rule::EveryAttemptAccounted, all) {
        return Classification::Unresolved(Undecided::Unaccounted);
    }
    let after = accounted.unwrap_or(evidence.since).max(evidence.since);
    let ended = if some {
        completion(rules, evidence, accounted.unwrap_or(evidence.since))
    } else {
        None
    };
    match ended {
        Some(Ended::Completed(completion)) => Classification::Completed(completion),
        Some(Ended::Blocked(why)) => Classification::Unresolved(why),
        Some(Ended::Contradicts(failure)) => match retry(rules, evidence, after) {
            Retry::Safe(safe) => Classification::SafeToRetry(safe),
            Retry::Closed | Retry::No => Classification::Failed(failure),
        },
        None => match retry(rules, evidence, after) {
            Retry::Safe(safe) => Classification::SafeToRetry(safe),
            Retry::Closed if attempts.is_empty() => {
                Classification::Unresolved(Undecided::GateClosed)
            }
            Retry::Closed | Retry::No => Classification::Unresolved(Undecided::NoReading),
        },
    }
}

/// `refused-validation` on every attempt.
fn rejected<R: Rules>(rules: &R, attempts: &[Attempt]) -> Option<Rejection> {
    let definitive = |attempt: &Attempt| attempt.class() == Some(ResponseClass::RefusedValidation);
    let every = attempts.iter().all(definitive);
    let last = attempts.last().is_none_or(definitive);
    (every || (last && rules.holds(Rule::EveryAttemptRefused, false))).then_some(Rejection {
        attempts: attempts.len(),
    })
}

enum Ended {
    Completed(Completion),
    Contradicts(Failure),
    Blocked(Undecided),
}

/// What the completion observation with the highest basis that decides anything says.
fn completion<R: Rules>(
    rules: &R,
    evidence: &Evidence<'_>,
    accounted: TimelineRevision,
) -> Option<Ended> {
    let mut readings: Vec<&Observation> = evidence
        .observations
        .iter()
        .filter(|observation| {
            let purpose = observation.started.purpose == Purpose::Completion;
            let after = observation.began_after(rules, accounted);
            rules.holds(Rule::CompletionPurpose, purpose)
                && rules.holds(Rule::ObservedAfterAccounting, after)
        })
        .collect();
    readings.sort_by_key(|observation| observation.basis(rules));
    readings
        .into_iter()
        .rev()
        .find_map(|observation| judge(rules, evidence, observation))
}

/// One completion observation against the bound postconditions; none where a value it
/// would need was not read.
fn judge<R: Rules>(rules: &R, evidence: &Evidence<'_>, observation: &Observation) -> Option<Ended> {
    let bound = evidence.binding;
    let failure = |digest| {
        Some(ended(
            rules,
            evidence,
            observation,
            Ended::Contradicts(Failure {
                observation: observation.started.id,
                digest,
            }),
        ))
    };
    let digest = observation.digest();
    match observation.identity_mismatch(&bound.identity) {
        Ok(None) => {}
        Ok(Some(_)) if !rules.holds(Rule::CompletionIdentity, false) => return failure(digest),
        Err(_) if !rules.holds(Rule::CompletionIdentity, false) => return None,
        Ok(Some(_)) | Err(_) => {}
    }
    let assigned = observation.started.assignment == bound.assignment;
    if !rules.holds(Rule::CompletionAssignment, assigned) {
        return failure(digest);
    }
    let seen = digest?;
    if !rules.holds(Rule::CompletionDigest, seen == bound.artifact_digest) {
        return failure(digest);
    }
    let healthy = observation
        .values
        .health
        .value()
        .map(|health| health.is_bound());
    match healthy {
        Some(true) => {}
        Some(false) if !rules.holds(Rule::CompletionHealth, false) => {
            return if unhealthy(rules, evidence, observation) {
                failure(digest)
            } else {
                still_settling(evidence, observation)
            };
        }
        None if !rules.holds(Rule::CompletionHealth, false) => return None,
        Some(false) | None => {}
    }
    Some(ended(
        rules,
        evidence,
        observation,
        Ended::Completed(Completion {
            observation: observation.started.id,
            digest: seen,
        }),
    ))
}

/// Whether bad health is this operation's last word: the last completion observation
/// begun before the verification deadline, and the deadline has passed.
fn unhealthy<R: Rules>(rules: &R, evidence: &Evidence<'_>, observation: &Observation) -> bool {
    let Some(deadline) = deadline(evidence) else {
        return false;
    };
    let in_time = |other: &Observation| other.started.started_at < deadline;
    let last = !evidence.observations.iter().any(|other| {
        other.started.purpose == Purpose::Completion
            && other.basis(rules) > observation.basis(rules)
            && in_time(other)
    });
    rules.holds(
        Rule::HealthFailsAtDeadlineOnly,
        last && in_time(observation) && evidence.now >= deadline,
    )
}

/// Bad health that is not the last word: it decides nothing, and what was read after the
/// deadline does not even speak.
fn still_settling(evidence: &Evidence<'_>, observation: &Observation) -> Option<Ended> {
    deadline(evidence)
        .is_some_and(|deadline| observation.started.started_at < deadline)
        .then_some(Ended::Blocked(Undecided::Unhealthy))
}

fn deadline(evidence: &Evidence<'_>) -> Option<DbTime> {
    evidence
        .attempts
        .last()
        .map(|attempt| attempt.verification_deadline)
}

/// An end, unless a recorded observation with a higher basis says otherwise.
fn ended<R: Rules>(
    rules: &R,
    evidence: &Evidence<'_>,
    observation: &Observation,
    end: Ended,
) -> Ended {
    let Some(digest) = observation.digest() else {
        return end;
    };
    let shown = Postconditions {
        identity: evidence.binding.identity.clone(),
        assignment: observation.started.assignment,
        digest,
    };
    let contradicted = shown.contradicted(rules, observation, evidence.observations);
    if rules.holds(Rule::CompletionNotContradicted, !contradicted) {
        end
    } else {
        Ended::Blocked(Undecided::Contradicted)
    }
}

enum Retry {
    Safe(SafeToRetry),
    /// All but the gate allows it.
    Closed,
    No,
}

/// Whether one more request is safe.
fn retry<R: Rules>(rules: &R, evidence: &Evidence<'_>, after: TimelineRevision) -> Retry {
    let class = |wanted: ResponseClass| {
        evidence
            .attempts
            .iter()
            .any(|attempt| attempt.class() == Some(wanted))
    };
    let definitive =
        class(ResponseClass::RefusedValidation) || class(ResponseClass::RefusedImmediate);
    let reading = evidence
        .observations
        .iter()
        .filter(|observation| {
            matches!(
                observation.started.purpose,
                Purpose::Completion | Purpose::Recovery
            ) && observation.began_after(rules, after)
                && observation.digest().is_some()
                && matches!(
                    observation.identity_mismatch(&evidence.binding.identity),
                    Ok(None)
                )
        })
        .max_by_key(|observation| observation.basis(rules));
    let Some(reading) = reading else {
        return Retry::No;
    };
    let before = reading.digest() == Some(evidence.binding.pre_dispatch_digest);
    let shown = Ended::Blocked(Undecided::NoReading);
    let standing = !matches!(
        ended(rules, evidence, reading, shown),
        Ended::Blocked(Undecided::Contradicted)
    );
    let left = attempts_left(evidence.binding, evidence.attempts.len());
    let safe = standing
        && rules.holds(Rule::NoneAccepted, !class(ResponseClass::Accepted))
        && rules.holds(Rule::NoneDefinitivelyRefused, !definitive)
        && rules.holds(Rule::RetryAtPreDispatchDigest, before)
        && rules.holds(Rule::RetryAttemptsLeft, left)
        && rules.holds(Rule::RetryAuthorised, evidence.authorised);
    match (safe, rules.holds(Rule::RetryGateOpen, evidence.gate_open)) {
        (true, true) => Retry::Safe(SafeToRetry {
            observation: reading.started.id,
        }),
        (true, false) => Retry::Closed,
        (false, _) => Retry::No,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::attempt::tests::{answered, attempt};
    use crate::observation::tests::{observation, seen};
    use crate::observation::{Health, Read, Unread};
    use crate::plan::tests::{ARTIFACT, BEFORE, at, binding};
    use crate::rules::{Enforced, Without};

    struct World {
        attempts: Vec<Attempt>,
        observations: Vec<Observation>,
        since: i64,
        authorised: bool,
        authority_gone: bool,
        gate_open: bool,
        now: i64,
    }

    /// One attempt recorded at 5 (its verification deadline is 605), answered at 10.
    fn world(class: ResponseClass, observations: Vec<Observation>) -> World {
        World {
            attempts: vec![answered(attempt(1, 5), class, 10)],
            observations,
            since: 0,
            authorised: true,
            authority_gone: false,
            gate_open: true,
            now: 100,
        }
    }

    fn unsent(observations: Vec<Observation>) -> World {
        World {
            attempts: Vec::new(),
            ..world(ResponseClass::Accepted, observations)
        }
    }

    fn judge<R: Rules>(rules: &R, world: &World) -> Classification {
        let binding = binding();
        classify(
            rules,
            &Evidence {
                binding: &binding,
                attempts: &world.attempts,
                observations: &world.observations,
                since: TimelineRevision(world.since),
                authorised: world.authorised,
                authority_gone: world.authority_gone,
                gate_open: world.gate_open,
                now: at(world.now),
            },
        )
    }

    fn reading(purpose: Purpose, basis: i64, configuration: &[u8]) -> Observation {
        observation(purpose, basis, configuration)
    }

    fn completes(classification: Classification) -> bool {
        matches!(classification, Classification::Completed(_))
    }

    const NO_READING: Classification = Classification::Unresolved(Undecided::NoReading);

    #[test]
    fn an_accepted_request_completes_on_a_later_reading_of_the_artifact() {
        let done = world(
            ResponseClass::Accepted,
            vec![reading(Purpose::Completion, 11, ARTIFACT)],
        );
        assert!(completes(judge(&Enforced, &done)));
        assert_eq!(
            judge(&Enforced, &world(ResponseClass::Accepted, vec![])),
            NO_READING
        );
    }

    // covers: EaR-CLS-1 (with the tests below it; as recorded, it is the workflows' own tests')
    #[test]
    fn each_condition_of_a_completion_is_needed_and_its_rule_alone_lets_it_go() {
        let completion = |basis| reading(Purpose::Completion, basis, ARTIFACT);
        let mut stranger = completion(11);
        stranger.values.identity = Read::Value(seen("node-b"));
        let mut sick = completion(11);
        sick.values.health = Read::Value(Health {
            running: true,
            ready: false,
        });
        let contradicted = vec![completion(11), reading(Purpose::Drift, 12, b"x")];
        let lost = || World {
            attempts: vec![answered(attempt(1, 5), ResponseClass::Transport, 10)],
            ..world(ResponseClass::Transport, vec![completion(11)])
        };
        let accepted = |observations| world(ResponseClass::Accepted, observations);
        let cases = [
            (lost(), Rule::EveryAttemptAccounted),
            (
                accepted(vec![completion(10)]),
                Rule::ObservedAfterAccounting,
            ),
            (
                accepted(vec![reading(Purpose::Drift, 11, ARTIFACT)]),
                Rule::CompletionPurpose,
            ),
            (accepted(vec![stranger]), Rule::CompletionIdentity),
            (
                accepted(vec![reading(Purpose::Completion, 11, b"x")]),
                Rule::CompletionDigest,
            ),
            (accepted(vec![sick]), Rule::CompletionHealth),
            (accepted(contradicted), Rule::CompletionNotContradicted),
        ];
        for (world, rule) in cases {
            assert!(!completes(judge(&Enforced, &world)), "{}", rule.name());
            let rules: &'static [Rule] = vec![rule].leak();
            assert!(completes(judge(&Without(rules), &world)), "{}", rule.name());
        }
    }

    #[test]
    fn what_somebody_else_did_neither_completes_nor_rejects_an_operation_that_sent_nothing() {
        let foreign = unsent(vec![reading(Purpose::Completion, 11, ARTIFACT)]);
        assert_eq!(judge(&Enforced, &foreign), NO_READING);
        let control = judge(&Without(&[Rule::AtLeastOneAttempt]), &foreign);
        assert!(matches!(control, Classification::Rejected(_)));
    }

    #[test]
    fn another_assignment_contradicts_a_completion() {
        let mut moved = reading(Purpose::Completion, 11, ARTIFACT);
        moved.started.assignment = Some(crate::head::AssignmentAt {
            head: crate::id::AssignmentId::from_bits(1),
            revision: crate::revision::Revision(1),
        });
        let world = world(ResponseClass::Accepted, vec![moved]);
        assert!(matches!(
            judge(&Enforced, &world),
            Classification::Failed(_)
        ));
        assert!(completes(judge(
            &Without(&[Rule::CompletionAssignment]),
            &world
        )));
    }

    #[test]
    fn every_attempt_must_be_refused_for_certain_for_a_rejection() {
        let refused = |number| answered(attempt(number, 5), ResponseClass::RefusedValidation, 10);
        let rejected = world(ResponseClass::RefusedValidation, vec![]);
        assert!(matches!(
            judge(&Enforced, &rejected),
            Classification::Rejected(_)
        ));
        let open = World {
            attempts: vec![
                answered(attempt(1, 5), ResponseClass::Transport, 6),
                refused(2),
            ],
            ..world(ResponseClass::Transport, vec![])
        };
        assert_eq!(
            judge(&Enforced, &open),
            Classification::Unresolved(Undecided::Unaccounted)
        );
        assert!(matches!(
            judge(&Without(&[Rule::EveryAttemptRefused]), &open),
            Classification::Rejected(_)
        ));
        let none = World {
            attempts: vec![],
            ..world(ResponseClass::Accepted, vec![])
        };
        assert_eq!(judge(&Enforced, &none), NO_READING);
    }

    #[test]
    fn a_node_as_it_was_is_asked_again_only_where_everything_allows_it() {
        let before = || vec![reading(Purpose::Recovery, 11, BEFORE)];
        let answered_world = || world(ResponseClass::Answered, before());
        let safe = |classification| matches!(classification, Classification::SafeToRetry(_));
        assert!(safe(judge(&Enforced, &answered_world())));
        assert!(safe(judge(&Enforced, &unsent(before()))));
        let spent = World {
            attempts: (1..=3)
                .map(|number| answered(attempt(number, 5), ResponseClass::Answered, 10))
                .collect(),
            ..answered_world()
        };
        let cases = [
            (world(ResponseClass::Accepted, before()), Rule::NoneAccepted),
            (
                world(ResponseClass::RefusedImmediate, before()),
                Rule::NoneDefinitivelyRefused,
            ),
            (
                world(
                    ResponseClass::Answered,
                    vec![reading(Purpose::Recovery, 11, b"x")],
                ),
                Rule::RetryAtPreDispatchDigest,
            ),
            (spent, Rule::RetryAttemptsLeft),
            (
                World {
                    authorised: false,
                    ..answered_world()
                },
                Rule::RetryAuthorised,
            ),
            (
                World {
                    gate_open: false,
                    ..answered_world()
                },
                Rule::RetryGateOpen,
            ),
        ];
        for (world, rule) in cases {
            assert!(!safe(judge(&Enforced, &world)), "{}", rule.name());
            let rules: &'static [Rule] = vec![rule].leak();
            assert!(safe(judge(&Without(rules), &world)), "{}", rule.name());
        }
        let early = world(
            ResponseClass::Answered,
            vec![reading(Purpose::Recovery, 10, BEFORE)],
        );
        assert_eq!(judge(&Enforced, &early), NO_READING);
    }

    #[test]
    fn where_no_retry_is_left_a_completion_reading_as_before_fails_the_operation() {
        let before = || vec![reading(Purpose::Completion, 11, BEFORE)];
        for world in [
            world(ResponseClass::Accepted, before()),
            world(ResponseClass::RefusedImmediate, before()),
            World {
                gate_open: false,
                ..world(ResponseClass::Answered, before())
            },
            World {
                authorised: false,
                ..world(ResponseClass::Answered, before())
            },
        ] {
            assert!(matches!(
                judge(&Enforced, &world),
                Classification::Failed(_)
            ));
        }
        let recovery = World {
            authorised: false,
            ..world(
                ResponseClass::Answered,
                vec![reading(Purpose::Recovery, 11, BEFORE)],
            )
        };
        assert_eq!(judge(&Enforced, &recovery), NO_READING);
    }

    #[test]
    fn nothing_sent_is_cancelled_only_where_nothing_ever_can_be() {
        let gone = World {
            authority_gone: true,
            ..unsent(vec![])
        };
        assert!(matches!(
            judge(&Enforced, &gone),
            Classification::Cancelled(_)
        ));
        let held = World {
            gate_open: false,
            ..unsent(vec![reading(Purpose::Recovery, 11, BEFORE)])
        };
        assert_eq!(
            judge(&Enforced, &held),
            Classification::Unresolved(Undecided::GateClosed)
        );
        assert!(matches!(
            judge(&Without(&[Rule::CancelledForGoodOnly]), &held),
            Classification::Cancelled(_)
        ));
        let sent = World {
            authority_gone: true,
            ..world(ResponseClass::Transport, vec![])
        };
        assert_eq!(
            judge(&Enforced, &sent),
            Classification::Unresolved(Undecided::Unaccounted)
        );
        assert!(Cancellation::by_decision(&Enforced, &[]).is_some());
        let recorded = [attempt(1, 5)];
        assert!(Cancellation::by_decision(&Enforced, &recorded).is_none());
        let control = Without(&[Rule::CancelledWithoutAttempt]);
        assert!(Cancellation::by_decision(&control, &recorded).is_some());
    }

    #[test]
    fn bad_health_fails_an_operation_only_as_the_last_word_before_the_deadline() {
        let sick = |basis: i64, started: i64| {
            let mut reading = reading(Purpose::Completion, basis, ARTIFACT);
            reading.started.started_at = at(started);
            reading.values.health = Read::Value(Health {
                running: false,
                ready: false,
            });
            reading
        };
        let judged = |observations, now| {
            let world = World {
                now,
                ..world(ResponseClass::Accepted, observations)
            };
            judge(&Enforced, &world)
        };
        let settling = Classification::Unresolved(Undecided::Unhealthy);
        assert_eq!(judged(vec![sick(11, 50)], 604), settling);
        assert!(matches!(
            judged(vec![sick(11, 50)], 605),
            Classification::Failed(_)
        ));
        let mut well = reading(Purpose::Completion, 12, ARTIFACT);
        well.started.started_at = at(60);
        assert!(completes(judged(vec![sick(11, 50), well], 605)));
        assert_eq!(judged(vec![sick(11, 606)], 700), NO_READING);
        let mut unread = reading(Purpose::Completion, 12, ARTIFACT);
        unread.values.health = Read::Unread(Unread::Refused);
        assert_eq!(judged(vec![sick(11, 50), unread], 605), settling);
        let world = world(ResponseClass::Accepted, vec![sick(11, 50)]);
        assert!(matches!(
            judge(&Without(&[Rule::HealthFailsAtDeadlineOnly]), &world),
            Classification::Failed(_)
        ));
    }

    #[test]
    fn values_that_were_not_read_neither_complete_nor_fail() {
        for cause in Unread::ALL {
            let mut blind = reading(Purpose::Completion, 11, ARTIFACT);
            blind.values.configuration = Read::Unread(cause);
            let world = world(ResponseClass::Accepted, vec![blind]);
            assert_eq!(judge(&Enforced, &world), NO_READING);
            let mut nameless = reading(Purpose::Completion, 11, b"x");
            nameless.values.identity = Read::Unread(cause);
            let world = self::world(ResponseClass::Accepted, vec![nameless]);
            assert_eq!(judge(&Enforced, &world), NO_READING);
        }
    }
}
