//! The comparisons before anything is sent (EaR 3.2, 3.3): one function for a
//! commitment, a first attempt and a retry, answering every comparison that failed.
//!
//! The commitment and attempt transactions call it with what they read under their
//! locks. The indexes behind 0, 4 and 5 and the guard behind 7 refuse what a race
//! gets past it. Never in this module: a lock, or a decision to try again.

mod facts;

pub use facts::{
    ArtifactCheck, AttemptFrom, Comparison, Current, Evidence, Facts, SafeToRetryEntry, Stage,
    Standing, UseTimeCheck,
};

use crate::attempt::Attempt;
use crate::fence::Fence;
use crate::id::{EpochId, OperationId};
use crate::observation::{AccessVersion, Observation, Purpose, Read};
use crate::plan::{AnyPlan, Binding};
use crate::principal::Controller;
use crate::rules::{Rule, Rules};
use crate::scope::GateClosed;
use crate::time::DbTime;

/// Proof that every comparison held. Only [`compare`] makes one.
#[derive(Debug)]
pub struct Admission {
    retry: bool,
}

impl Admission {
    /// Whether an earlier attempt is recorded.
    pub const fn is_retry(&self) -> bool {
        self.retry
    }

    /// An adoption's requirements are its own (EaR 6.3).
    pub(crate) const fn of_adoption() -> Self {
        Self { retry: false }
    }
}

/// What failed: the comparisons in ascending order, then the process's epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAdmitted {
    pub failed: Vec<Comparison>,
    pub process_epoch: bool,
    /// Comparison 3 failed on the digest: the refusal's transaction applies EaR 6.1.
    pub on_digest: bool,
    pub gate: Option<GateClosed>,
}

impl NotAdmitted {
    /// Whether the refused attempt moves a committed operation to `unresolved`: a
    /// refusal by comparison 1, 2, 3 or 6 (EaR 4).
    pub fn unresolves(&self) -> bool {
        self.failed.iter().any(|comparison| match comparison {
            Comparison::Authority
            | Comparison::Binding
            | Comparison::Evidence
            | Comparison::Gate => true,
            Comparison::NoOperation
            | Comparison::ScopeFree
            | Comparison::RolloutFree
            | Comparison::Owner
            | Comparison::SinceClassification
            | Comparison::AttemptsLeft => false,
        })
    }
}

/// Compares everything, so that a refusal names all that failed.
pub fn compare<R: Rules>(rules: &R, facts: &Facts<'_>) -> Result<Admission, NotAdmitted> {
    let gate = gate(rules, facts);
    let (evidence, on_digest) = evidence(rules, facts);
    let mut held = vec![
        (
            Comparison::Authority,
            Rule::PlanAuthorises,
            authority(rules, facts),
        ),
        (
            Comparison::Binding,
            Rule::BindingUnchanged,
            binding(rules, facts),
        ),
        (Comparison::Evidence, Rule::EvidenceHolds, evidence),
        (Comparison::Gate, Rule::GateOpen, gate.is_none()),
    ];
    let retry = match facts.stage {
        Stage::Commitment {
            existing,
            scope_holder,
            rollout_holder,
        } => {
            held.extend([
                (
                    Comparison::NoOperation,
                    Rule::NoOperationForPlan,
                    existing.is_none(),
                ),
                (
                    Comparison::ScopeFree,
                    Rule::ScopeFree,
                    scope_holder.is_none(),
                ),
                (
                    Comparison::RolloutFree,
                    Rule::RolloutFree,
                    rollout_holder.is_none(),
                ),
            ]);
            false
        }
        Stage::Attempt {
            state,
            held: row,
            token,
            attempts,
            ..
        } => {
            let owner = owner(rules, facts, state, row, token);
            let since = since_classification(state, attempts);
            held.extend([
                (Comparison::Owner, Rule::AttemptByOwner, owner),
                (
                    Comparison::SinceClassification,
                    Rule::NothingSinceClassified,
                    since,
                ),
                (
                    Comparison::AttemptsLeft,
                    Rule::AttemptsLeft,
                    attempts_left(facts.binding, attempts.len()),
                ),
            ]);
            !attempts.is_empty()
        }
    };
    let mut failed: Vec<Comparison> = held
        .into_iter()
        .filter(|(_, rule, condition)| !rules.holds(*rule, *condition))
        .map(|(comparison, _, _)| comparison)
        .collect();
    failed.sort_unstable();
    let process_epoch = facts.process.admits(rules, facts.epoch).is_err();
    if failed.is_empty() && !process_epoch {
        return Ok(Admission { retry });
    }
    Err(NotAdmitted {
        on_digest: on_digest && failed.contains(&Comparison::Evidence),
        gate: gate.filter(|_| failed.contains(&Comparison::Gate)),
        failed,
        process_epoch,
    })
}

/// The check before any artifact or credential is read: comparisons 1 and 6 (EaR 3.1).
pub fn may_gather<R: Rules>(rules: &R, facts: &Facts<'_>) -> bool {
    rules.holds(Rule::PlanAuthorises, authority(rules, facts))
        && rules.holds(Rule::GateOpen, gate(rules, facts).is_none())
}

/// Whether an operation of the binding has attempts left (comparison 9).
pub fn attempts_left(binding: &Binding, recorded: usize) -> bool {
    binding
        .deadlines()
        .is_some_and(|deadlines| recorded < usize::from(deadlines.max_attempts))
}

/// Comparison 1.
pub fn authority<R: Rules>(rules: &R, facts: &Facts<'_>) -> bool {
    let operation = match facts.stage {
        Stage::Commitment { .. } => None,
        Stage::Attempt { operation, .. } => Some(operation),
    };
    standing(rules, &facts.standing, operation, facts.epoch, facts.now)
}

/// The same for a caller that has no whole set of facts: a classification, an adoption.
/// `operation` is the one an attempt is made for.
pub fn standing<R: Rules>(
    rules: &R,
    standing: &Standing<'_>,
    operation: Option<OperationId>,
    epoch: EpochId,
    now: DbTime,
) -> bool {
    let (in_state, cancelled) = match standing.plan {
        AnyPlan::Approved(_) => (operation.is_none(), false),
        AnyPlan::Committed(plan) => (
            operation == Some(plan.state().operation),
            plan.state().cancelled,
        ),
        AnyPlan::Proposed(_)
        | AnyPlan::Revoked(_)
        | AnyPlan::Cancelled(_)
        | AnyPlan::Expired(_) => (false, false),
    };
    let of_epoch = standing
        .plan
        .approval()
        .is_some_and(|approval| approval.epoch == epoch);
    let unexpired = now < standing.plan.binding().expires_at;
    in_state
        && rules.holds(Rule::PlanUnexpired, unexpired)
        && rules.holds(Rule::PlanNotCancelled, !cancelled)
        && rules.holds(Rule::ApprovalNotRevoked, !standing.approval_revoked)
        && rules.holds(Rule::ApproverNotRevoked, !standing.approver_revoked)
        && rules.holds(Rule::ApprovalOfThisEpoch, of_epoch)
}

/// Comparison 2. Artifact, operation, mode and parameters are the immutable release's
/// and the binding's own; what can move is compared.
fn binding<R: Rules>(rules: &R, facts: &Facts<'_>) -> bool {
    let bound = facts.binding;
    let desired = facts.current.desired == bound.desired;
    let desired = match facts.stage {
        Stage::Commitment { .. } => desired,
        // A publication after the commitment leaves the operation alone.
        Stage::Attempt { .. } => desired || rules.enforced(Rule::AttemptKeepsDesired),
    };
    rules.holds(
        Rule::AssignmentUnchanged,
        facts.current.assignment == bound.assignment,
    ) && rules.holds(
        Rule::BaselineUnchanged,
        facts.current.baseline == bound.baseline,
    ) && rules.holds(Rule::DesiredUnchanged, desired)
}

/// Comparison 3, and whether it failed on the digest.
fn evidence<R: Rules>(rules: &R, facts: &Facts<'_>) -> (bool, bool) {
    let Some(evidence) = facts.evidence else {
        return (false, false);
    };
    let bound = facts.binding;
    let started = &evidence.observation.started;
    let check = evidence.check;
    let values = &evidence.observation.values;
    let by_this = |controller: &Controller| {
        controller.owner == facts.controller.owner && controller.epoch == facts.controller.epoch
    };
    let own = started.purpose == Purpose::Evidence
        && started.machine == bound.machine
        && started.plan == Some(bound.id)
        && by_this(&started.controller)
        && check.plan == bound.id
        && by_this(&check.controller);
    let fresh = facts.now - started.started_at <= bound.max_observation_age;
    let checked =
        check.artifact == ArtifactCheck::Matches && facts.now - check.at <= bound.check_validity;
    let same = |read: &Read<AccessVersion>| {
        read.value()
            .is_some_and(|read| read.is(rules, evidence.access_used))
    };
    let access = same(&values.access) && same(&check.access);
    let identity = values
        .identity
        .value()
        .is_some_and(|seen| seen.mismatch(&bound.identity).is_none());
    let minor = values
        .running_version
        .value()
        .is_some_and(|running| running.contract == bound.renderer.contract);
    let assignment = started.assignment == bound.assignment;
    let (digest, on_digest) = digest(rules, facts, evidence.observation);
    let sound = rules.holds(Rule::EvidenceIsOwn, own)
        && rules.holds(Rule::EvidenceFresh, fresh)
        && rules.holds(Rule::CheckValid, checked)
        && rules.holds(Rule::AccessVersionUsed, access)
        && rules.holds(Rule::RouteBound, started.endpoint == bound.route)
        && rules.holds(Rule::IdentityMatches, identity)
        && rules.holds(Rule::RunningMinor, minor)
        && rules.holds(Rule::AssignmentUnchanged, assignment)
        && rules.holds(
            Rule::NotContradicted,
            !contradicted(rules, facts, &evidence),
        );
    (sound && digest, on_digest)
}

/// Whether the observed digest is one the request may meet, and whether a digest was
/// read that is not.
fn digest<R: Rules>(rules: &R, facts: &Facts<'_>, observation: &Observation) -> (bool, bool) {
    let bound = facts.binding;
    let retry = match facts.stage {
        Stage::Commitment { .. } => false,
        Stage::Attempt { attempts, .. } => !attempts.is_empty(),
    };
    let Some(seen) = observation.digest() else {
        return (rules.holds(Rule::PreDispatchDigest, false), false);
    };
    let artifact =
        seen == bound.artifact_digest && rules.holds(Rule::ArtifactDigestOnRetryOnly, retry);
    let expected = seen == bound.pre_dispatch_digest || artifact;
    (rules.holds(Rule::PreDispatchDigest, expected), !expected)
}

fn contradicted<R: Rules>(rules: &R, facts: &Facts<'_>, evidence: &Evidence<'_>) -> bool {
    let Some(digest) = evidence.observation.digest() else {
        return false;
    };
    let shown = crate::observation::Postconditions {
        identity: facts.binding.identity.clone(),
        assignment: evidence.observation.started.assignment,
        digest,
    };
    shown.contradicted(rules, evidence.observation, evidence.recorded)
}

/// Comparison 6.
fn gate<R: Rules>(rules: &R, facts: &Facts<'_>) -> Option<GateClosed> {
    facts
        .scope
        .gate(
            rules,
            facts.recovery_mode,
            facts.epoch,
            facts.binding.drift,
            false,
        )
        .err()
}

/// Comparison 7: the owner, and a state from which a request is sent.
fn owner<R: Rules>(
    rules: &R,
    facts: &Facts<'_>,
    state: AttemptFrom<'_>,
    held: &Fence,
    token: &Fence,
) -> bool {
    let sendable = match state {
        AttemptFrom::Committed => true,
        AttemptFrom::Unresolved { classified, .. } => rules.holds(
            Rule::SafeToRetryRecorded,
            classified.is_some_and(|entry| entry.generation == token.generation),
        ),
        AttemptFrom::Other => false,
    };
    sendable && held.admits(rules, token, facts.epoch).is_ok()
}

/// Comparison 8.
fn since_classification(state: AttemptFrom<'_>, attempts: &[Attempt]) -> bool {
    match state {
        AttemptFrom::Unresolved { classified, latest } if !attempts.is_empty() => {
            classified.is_none_or(|entry| latest <= entry.revision)
        }
        AttemptFrom::Unresolved { .. } | AttemptFrom::Committed | AttemptFrom::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Attempt;
    use crate::attempt::ResponseClass;
    use crate::attempt::tests::{answered, attempt};
    use crate::epoch::ProcessEpoch;
    use crate::fence::{Generation, Owner};
    use crate::head::AssignmentAt;
    use crate::id::{AssignmentId, MachineId, PlanId, ReleaseId};
    use crate::observation::tests::{access, controller, observation};
    use crate::observation::{AccessVersion, Read};
    use crate::plan::Plan;
    use crate::plan::tests::{ARTIFACT, BEFORE, approval, approved, at, binding, committed, epoch};
    use crate::revision::Revision;
    use crate::revision::{BaselineRevision, TimelineRevision};
    use crate::rules::{Enforced, Without};
    use crate::scope::{Scope, ScopeState};

    /// Everything the comparisons read, owned, so that a case changes one thing of it.
    struct World {
        binding: Binding,
        now: i64,
        epoch: EpochId,
        process: EpochId,
        recovery_mode: bool,
        plan: AnyPlan,
        approval_revoked: bool,
        approver_revoked: bool,
        current: Current,
        observation: Observation,
        check: UseTimeCheck,
        access: AccessVersion,
        recorded: Vec<Observation>,
        scope: Scope,
        existing: Option<OperationId>,
        scope_holder: Option<OperationId>,
        rollout_holder: Option<OperationId>,
        held: Fence,
        token: Fence,
        attempts: Vec<Attempt>,
        classified: Option<SafeToRetryEntry>,
        latest: TimelineRevision,
        unresolved: bool,
    }

    fn operation() -> OperationId {
        OperationId::from_bits(1)
    }

    fn fence(generation: i64) -> Fence {
        Fence {
            owner: Owner::new("a", 1, 1).unwrap(),
            generation: Generation(generation),
            epoch: epoch(),
        }
    }

    fn commitment() -> World {
        let mut evidence = observation(Purpose::Evidence, 10, BEFORE);
        evidence.started.plan = Some(PlanId::from_bits(1));
        World {
            binding: binding(),
            now: 20,
            epoch: epoch(),
            process: epoch(),
            recovery_mode: false,
            plan: AnyPlan::Approved(approved()),
            approval_revoked: false,
            approver_revoked: false,
            current: Current {
                assignment: None,
                desired: Some(ReleaseId::from_bits(1)),
                baseline: Some(BaselineRevision(1)),
            },
            observation: evidence,
            check: UseTimeCheck {
                plan: PlanId::from_bits(1),
                controller: controller(),
                revision: TimelineRevision(12),
                at: at(12),
                access: Read::Value(access(1)),
                artifact: ArtifactCheck::Matches,
            },
            access: access(1),
            recorded: Vec::new(),
            scope: Scope {
                machine: MachineId::from_bits(1),
                state: ScopeState::Normal,
                frozen: false,
                open_drift: None,
            },
            existing: None,
            scope_holder: None,
            rollout_holder: None,
            held: fence(1),
            token: fence(1),
            attempts: Vec::new(),
            classified: None,
            latest: TimelineRevision(0),
            unresolved: false,
        }
    }

    fn first_attempt() -> World {
        World {
            plan: AnyPlan::Committed(committed(operation())),
            ..commitment()
        }
    }

    fn retry() -> World {
        World {
            attempts: vec![answered(attempt(1, 5), ResponseClass::Answered, 6)],
            unresolved: true,
            classified: Some(SafeToRetryEntry {
                revision: TimelineRevision(8),
                generation: Generation(1),
            }),
            latest: TimelineRevision(8),
            ..first_attempt()
        }
    }

    fn check<R: Rules>(rules: &R, world: &World, commits: bool) -> Result<bool, NotAdmitted> {
        let controller = controller();
        let stage = if commits {
            Stage::Commitment {
                existing: world.existing,
                scope_holder: world.scope_holder,
                rollout_holder: world.rollout_holder,
            }
        } else {
            Stage::Attempt {
                operation: operation(),
                state: if world.unresolved {
                    AttemptFrom::Unresolved {
                        classified: world.classified.as_ref(),
                        latest: world.latest,
                    }
                } else {
                    AttemptFrom::Committed
                },
                held: &world.held,
                token: &world.token,
                attempts: &world.attempts,
            }
        };
        let facts = Facts {
            binding: &world.binding,
            now: at(world.now),
            epoch: world.epoch,
            recovery_mode: world.recovery_mode,
            process: ProcessEpoch(world.process),
            controller: &controller,
            standing: Standing {
                plan: &world.plan,
                approval_revoked: world.approval_revoked,
                approver_revoked: world.approver_revoked,
            },
            current: world.current,
            evidence: Some(Evidence {
                observation: &world.observation,
                check: &world.check,
                access_used: &world.access,
                recorded: &world.recorded,
            }),
            scope: &world.scope,
            stage,
        };
        compare(rules, &facts).map(|admission| admission.is_retry())
    }

    fn refuses(world: &World, commits: bool, failed: &[Comparison], rules: &[Rule]) {
        let refused = check(&Enforced, world, commits).unwrap_err();
        assert_eq!(refused.failed, failed, "{rules:?}");
        for rule in rules {
            let without: &'static [Rule] = vec![*rule].leak();
            let control = check(&Without(without), world, commits);
            assert!(control.is_ok(), "{}: {control:?}", rule.name());
        }
    }

    #[test]
    fn what_nothing_speaks_against_is_admitted() {
        assert_eq!(check(&Enforced, &commitment(), true), Ok(false));
        assert_eq!(check(&Enforced, &first_attempt(), false), Ok(false));
        assert_eq!(check(&Enforced, &retry(), false), Ok(true));
    }

    // covers-part: EaR-DIS-3 (each comparison as decided; the records are the engine's)
    #[test]
    fn each_comparison_of_a_commitment_refuses_alone_and_its_rule_alone_lets_it_through() {
        use Comparison::{Authority, Evidence, Gate, NoOperation, RolloutFree, ScopeFree};
        let other = Some(OperationId::from_bits(9));
        let world = commitment;
        refuses(
            &World {
                existing: other,
                ..world()
            },
            true,
            &[NoOperation],
            &[Rule::NoOperationForPlan],
        );
        refuses(
            &World {
                scope_holder: other,
                ..world()
            },
            true,
            &[ScopeFree],
            &[Rule::ScopeFree],
        );
        refuses(
            &World {
                rollout_holder: other,
                ..world()
            },
            true,
            &[RolloutFree],
            &[Rule::RolloutFree],
        );
        let both = [Rule::PlanAuthorises];
        refuses(
            &World {
                approval_revoked: true,
                ..world()
            },
            true,
            &[Authority],
            &[Rule::ApprovalNotRevoked, both[0]],
        );
        refuses(
            &World {
                approver_revoked: true,
                ..world()
            },
            true,
            &[Authority],
            &[Rule::ApproverNotRevoked, both[0]],
        );
        let older = Plan::proposed(binding())
            .approve(&Enforced, approval(1, EpochId::from_bits(7)), at(1))
            .unwrap();
        refuses(
            &World {
                plan: AnyPlan::Approved(older),
                ..world()
            },
            true,
            &[Authority],
            &[Rule::ApprovalOfThisEpoch, both[0]],
        );
        refuses(
            &World {
                plan: AnyPlan::Proposed(Plan::proposed(binding())),
                ..world()
            },
            true,
            &[Authority],
            &both,
        );
        let frozen = Scope {
            frozen: true,
            ..world().scope
        };
        refuses(
            &World {
                scope: frozen,
                ..world()
            },
            true,
            &[Gate],
            &[Rule::NotFrozen, Rule::GateOpen],
        );
        let drifted = Scope {
            open_drift: Some(TimelineRevision(3)),
            ..world().scope
        };
        refuses(
            &World {
                scope: drifted,
                ..world()
            },
            true,
            &[Gate],
            &[Rule::DriftBound, Rule::GateOpen],
        );
        refuses(
            &World {
                recovery_mode: true,
                ..world()
            },
            true,
            &[Gate],
            &[Rule::ScopeReleased, Rule::GateOpen],
        );
        let drifted = observation(Purpose::Drift, 11, b"stranger");
        refuses(
            &World {
                recorded: vec![drifted],
                ..world()
            },
            true,
            &[Evidence],
            &[Rule::NotContradicted, Rule::EvidenceHolds],
        );
    }

    #[test]
    fn each_bound_value_that_moved_refuses_alone() {
        let with = |current: Current| World {
            current,
            ..commitment()
        };
        let current = commitment().current;
        let moved = [
            (
                Current {
                    baseline: Some(BaselineRevision(2)),
                    ..current
                },
                Rule::BaselineUnchanged,
            ),
            (
                Current {
                    desired: Some(ReleaseId::from_bits(2)),
                    ..current
                },
                Rule::DesiredUnchanged,
            ),
            (
                Current {
                    assignment: Some(AssignmentAt {
                        head: AssignmentId::from_bits(1),
                        revision: Revision(1),
                    }),
                    ..current
                },
                Rule::AssignmentUnchanged,
            ),
        ];
        for (current, rule) in moved {
            let rules = [rule, Rule::BindingUnchanged];
            refuses(&with(current), true, &[Comparison::Binding], &rules);
        }
        // A publication after the commitment leaves the operation alone.
        let published = World {
            current: Current {
                desired: Some(ReleaseId::from_bits(2)),
                ..current
            },
            ..first_attempt()
        };
        assert_eq!(check(&Enforced, &published, false), Ok(false));
        let control = check(&Without(&[Rule::AttemptKeepsDesired]), &published, false);
        assert_eq!(control.unwrap_err().failed, [Comparison::Binding]);
    }

    // covers: PA-TAL-4
    #[test]
    fn each_part_of_the_evidence_refuses_alone() {
        let change = |change: &dyn Fn(&mut World)| {
            let mut world = commitment();
            change(&mut world);
            world
        };
        let version = |text| Read::Value(crate::observation::RunningVersion::parse(text).unwrap());
        let cases: Vec<(World, Rule)> = vec![
            (
                change(&|it| it.observation.started.plan = None),
                Rule::EvidenceIsOwn,
            ),
            (
                change(&|it| it.observation.started.purpose = Purpose::Drift),
                Rule::EvidenceIsOwn,
            ),
            (
                change(&|it| it.check.controller.owner = Owner::new("b", 1, 1).unwrap()),
                Rule::EvidenceIsOwn,
            ),
            (
                change(&|it| it.binding.max_observation_age = crate::time::Span::seconds(9)),
                Rule::EvidenceFresh,
            ),
            (
                change(&|it| it.binding.check_validity = crate::time::Span::seconds(7)),
                Rule::CheckValid,
            ),
            (
                change(&|it| it.check.artifact = ArtifactCheck::Differs),
                Rule::CheckValid,
            ),
            (
                change(&|it| it.check.artifact = ArtifactCheck::KeyChanged),
                Rule::CheckValid,
            ),
            (change(&|it| it.access = access(2)), Rule::AccessVersionUsed),
            (
                change(&|it| it.access.created.push('0')),
                Rule::AccessVersionIdentity,
            ),
            (
                change(&|it| {
                    it.observation.started.endpoint =
                        crate::inventory::Endpoint::parse("10.55.0.4").unwrap();
                }),
                Rule::RouteBound,
            ),
            (
                change(&|it| {
                    it.observation.values.identity =
                        Read::Value(crate::observation::tests::seen("node-b"));
                }),
                Rule::IdentityMatches,
            ),
            (
                change(&|it| {
                    it.observation.values.identity =
                        Read::Unread(crate::observation::Unread::Refused);
                }),
                Rule::IdentityMatches,
            ),
            (
                change(&|it| it.observation.values.running_version = version("v1.14.0")),
                Rule::RunningMinor,
            ),
        ];
        for (world, rule) in cases {
            refuses(
                &world,
                true,
                &[Comparison::Evidence],
                &[rule, Rule::EvidenceHolds],
            );
            let refused = check(&Enforced, &world, true).unwrap_err();
            assert!(!refused.on_digest);
        }
    }

    #[test]
    fn another_digest_refuses_and_says_so_and_the_artifacts_is_taken_on_a_retry_only() {
        let stranger = World {
            observation: {
                let mut seen = commitment().observation;
                seen.values.configuration = observation(Purpose::Evidence, 10, b"x")
                    .values
                    .configuration;
                seen
            },
            ..commitment()
        };
        refuses(
            &stranger,
            true,
            &[Comparison::Evidence],
            &[Rule::PreDispatchDigest],
        );
        assert!(check(&Enforced, &stranger, true).unwrap_err().on_digest);
        let landed = |world: World| {
            let mut world = world;
            world.observation.values.configuration = observation(Purpose::Evidence, 10, ARTIFACT)
                .values
                .configuration;
            world
        };
        refuses(
            &landed(first_attempt()),
            false,
            &[Comparison::Evidence],
            &[Rule::ArtifactDigestOnRetryOnly],
        );
        assert_eq!(check(&Enforced, &landed(retry()), false), Ok(true));
    }

    #[test]
    fn an_attempt_is_recorded_by_its_owner_from_a_state_that_sends() {
        use Comparison::{AttemptsLeft, Authority, Owner as ByOwner, SinceClassification};
        let superseded = World {
            held: fence(2),
            ..first_attempt()
        };
        refuses(
            &superseded,
            false,
            &[ByOwner],
            &[Rule::FenceGeneration, Rule::AttemptByOwner],
        );
        let unclassified = World {
            classified: None,
            ..retry()
        };
        refuses(
            &unclassified,
            false,
            &[ByOwner],
            &[Rule::SafeToRetryRecorded, Rule::AttemptByOwner],
        );
        let late_acceptance = World {
            latest: TimelineRevision(9),
            ..retry()
        };
        refuses(
            &late_acceptance,
            false,
            &[SinceClassification],
            &[Rule::NothingSinceClassified],
        );
        let spent = World {
            attempts: (1..=3)
                .map(|number| answered(attempt(number, 5), ResponseClass::Answered, 6))
                .collect(),
            ..retry()
        };
        refuses(&spent, false, &[AttemptsLeft], &[Rule::AttemptsLeft]);
        let cancelled = World {
            plan: AnyPlan::Committed(committed(operation())).cancel().unwrap(),
            ..first_attempt()
        };
        refuses(
            &cancelled,
            false,
            &[Authority],
            &[Rule::PlanNotCancelled, Rule::PlanAuthorises],
        );
        let mut expired = first_attempt();
        expired.now = 1_000;
        expired.binding.max_observation_age = crate::time::Span::seconds(10_000);
        expired.binding.check_validity = crate::time::Span::seconds(10_000);
        refuses(
            &expired,
            false,
            &[Authority],
            &[Rule::PlanUnexpired, Rule::PlanAuthorises],
        );
    }

    #[test]
    fn a_refusal_names_everything_that_failed_in_ascending_order_and_the_process_last() {
        let mut world = commitment();
        world.existing = Some(operation());
        world.approval_revoked = true;
        world.current.baseline = None;
        world.check.artifact = ArtifactCheck::Unavailable;
        world.rollout_holder = Some(operation());
        world.scope.frozen = true;
        world.process = EpochId::from_bits(4);
        let refused = check(&Enforced, &world, true).unwrap_err();
        let numbers: Vec<u8> = refused.failed.iter().map(|it| it.number()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 5, 6]);
        assert!(refused.process_epoch);
        let only_process = World {
            process: EpochId::from_bits(4),
            ..commitment()
        };
        let refused = check(&Enforced, &only_process, true).unwrap_err();
        assert_eq!((refused.failed.len(), refused.process_epoch), (0, true));
        assert!(check(&Without(&[Rule::ProcessEpoch]), &only_process, true).is_ok());
    }

    #[test]
    fn without_evidence_nothing_is_sent_and_a_revoked_plan_gathers_none() {
        let world = commitment();
        let controller = controller();
        let facts = Facts {
            binding: &world.binding,
            now: at(world.now),
            epoch: epoch(),
            recovery_mode: false,
            process: ProcessEpoch(epoch()),
            controller: &controller,
            standing: Standing {
                plan: &world.plan,
                approval_revoked: false,
                approver_revoked: false,
            },
            current: world.current,
            evidence: None,
            scope: &world.scope,
            stage: Stage::Commitment {
                existing: None,
                scope_holder: None,
                rollout_holder: None,
            },
        };
        let refused = compare(&Enforced, &facts).unwrap_err();
        assert_eq!(refused.failed, [Comparison::Evidence]);
        assert!(may_gather(&Enforced, &facts));
        let revoked = Facts {
            standing: Standing {
                approval_revoked: true,
                ..facts.standing
            },
            ..facts
        };
        assert!(!may_gather(&Enforced, &revoked));
    }

    #[test]
    fn a_comparison_is_known_by_its_number() {
        for comparison in Comparison::ALL {
            let number = i64::from(comparison.number());
            assert_eq!(Comparison::from_number(number), Some(comparison));
        }
        assert_eq!(Comparison::from_number(10), None);
        assert_eq!(Comparison::from_number(-1), None);
    }
}
