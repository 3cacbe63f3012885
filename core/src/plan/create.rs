//! Creating a plan (T4): what may be planned, and what the plan then binds.

use super::{Binding, Deadlines, Plan, PlanLimits, PlanOperation, Proposed, Requested};
use crate::digest::ConfigDigest;
use crate::head::AssignmentAt;
use crate::id::{
    AssignmentRevisionId, ClusterId, EpochId, ImportBaseRevisionId, MachineId, PlanId, ReleaseId,
};
use crate::inventory::{Endpoint, MachineIdentity};
use crate::principal::Signed;
use crate::release::{Applied, MachineType, RendererRecord, TransitKey};
use crate::revision::TimelineRevision;
use crate::rules::{Rule, Rules};
use crate::scope::{Scope, Unaccounted};
use crate::time::{DbTime, Span};

/// A member of the request that is out of its range: 400 before the request is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationRefusal {
    pub member: &'static str,
    pub rule: &'static str,
}

const LONGEST: i64 = 604_800;
const MOST_ATTEMPTS: i64 = 10;

/// The check of a request's own numbers, which needs no deployment value (PA §9.3).
pub fn in_range<R: Rules>(
    rules: &R,
    requested: &Requested,
    adopt: bool,
) -> Result<(), DurationRefusal> {
    let seconds = [
        ("expiresInSeconds", requested.expires_in, false),
        (
            "maxObservationAgeSeconds",
            requested.max_observation_age,
            false,
        ),
        ("checkValiditySeconds", requested.check_validity, false),
        (
            "transportDeadlineSeconds",
            requested.transport_deadline,
            true,
        ),
        (
            "verificationDeadlineSeconds",
            requested.verification_deadline,
            true,
        ),
    ];
    let refuse = |member, rule| Err(DurationRefusal { member, rule });
    for (member, value, apply_only) in seconds {
        let Some(value) = value else { continue };
        if adopt && apply_only {
            return refuse(member, "is not taken by an adopt plan");
        }
        if !rules.holds(Rule::PlanDurationsInRange, (1..=LONGEST).contains(&value)) {
            return refuse(member, "must be from 1 to 604800");
        }
    }
    match requested.max_attempts {
        Some(_) if adopt => refuse("maxAttempts", "is not taken by an adopt plan"),
        Some(value)
            if !rules.holds(
                Rule::PlanDurationsInRange,
                (1..=MOST_ATTEMPTS).contains(&value),
            ) =>
        {
            refuse("maxAttempts", "must be from 1 to 10")
        }
        Some(_) | None => Ok(()),
    }
}

/// What the release holds for the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseMachineFacts {
    pub artifact_digest: ConfigDigest,
    pub machine_type: MachineType,
    pub key: TransitKey,
    /// The assignment revision the release was compiled from for it.
    pub assignment: Option<AssignmentRevisionId>,
    pub import_base: ImportBaseRevisionId,
    pub import_base_digest: ConfigDigest,
}

/// What T4 read under its locks.
#[derive(Clone, Debug)]
pub struct CreateFacts<'a> {
    pub cluster: ClusterId,
    pub machine: MachineId,
    pub identity: &'a MachineIdentity,
    pub route: Endpoint,
    pub scope: &'a Scope,
    pub release: ReleaseId,
    pub renderer: &'a RendererRecord,
    /// None for a release that does not cover the machine.
    pub covered: Option<&'a ReleaseMachineFacts>,
    pub desired: Option<ReleaseId>,
    pub applied: Option<&'a Applied>,
    /// The observed digest of the open drift record, if there is one.
    pub drift_digest: Option<ConfigDigest>,
    /// The machine's assignment head, read FOR SHARE, with its current revision.
    pub assignment_head: Option<(AssignmentAt, Option<AssignmentRevisionId>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateRefusal {
    /// 409 `recovery-mode-active` naming the scope.
    Unaccounted(Unaccounted),
    /// 409 `conflict`: the machine is decommissioned.
    Retired,
    /// 422 `validation-failed` naming release and machine.
    NotCovered {
        release: ReleaseId,
        machine: MachineId,
    },
    /// 400 `invalid-request` from the transaction.
    Duration(DurationRefusal),
    /// 422 `validation-failed`, rule `unsupported-target`.
    UnsupportedTarget,
    /// 409 `conflict` naming the Desired release.
    NotDesired { desired: Option<ReleaseId> },
    /// 409 `conflict`: nothing to compare the node with.
    NoApplied,
    /// 409 `conflict`: the machine's configuration is known and has not drifted.
    NothingToAdopt,
    /// 409 `conflict`: the release was compiled from another assignment.
    AssignmentMoved,
}

/// A plan's terms: everything it binds but who made it and when.
#[derive(Clone, Debug)]
#[must_use]
pub struct Terms {
    operation: PlanOperation,
    pre_dispatch_digest: ConfigDigest,
    facts: Bound,
    expires_in: Span,
    max_observation_age: Span,
    check_validity: Span,
}

#[derive(Clone, Debug)]
struct Bound {
    cluster: ClusterId,
    machine: MachineId,
    identity: MachineIdentity,
    route: Endpoint,
    release: ReleaseId,
    renderer: RendererRecord,
    covered: ReleaseMachineFacts,
    desired: Option<ReleaseId>,
    assignment: Option<AssignmentAt>,
    baseline: Option<crate::revision::BaselineRevision>,
    applied_release: Option<ReleaseId>,
    drift: Option<TimelineRevision>,
}

/// Decides a creation. It compares no time, so it runs before the act-order lock;
/// [`Terms::bind`] follows it.
pub fn create<R: Rules>(
    rules: &R,
    facts: &CreateFacts<'_>,
    adopt: bool,
    requested: &Requested,
    limits: &PlanLimits,
) -> Result<Terms, CreateRefusal> {
    facts
        .scope
        .accounted_for(rules)
        .map_err(CreateRefusal::Unaccounted)?;
    if facts.scope.state == crate::scope::ScopeState::Retired {
        return Err(CreateRefusal::Retired);
    }
    let deadlines = deadlines(rules, requested, limits).map_err(CreateRefusal::Duration)?;
    let covered = facts.covered.ok_or(CreateRefusal::NotCovered {
        release: facts.release,
        machine: facts.machine,
    })?;
    let (operation, pre_dispatch_digest) = if adopt {
        adoption(rules, facts, covered)?
    } else {
        application(rules, facts, covered, deadlines)?
    };
    let head_revision = facts.assignment_head.and_then(|(_, revision)| revision);
    let current = covered.assignment == head_revision;
    if !rules.holds(Rule::PlanAssignmentCurrent, current) {
        return Err(CreateRefusal::AssignmentMoved);
    }
    let defaults = limits.defaults;
    let length = |value: Option<i64>, default| Span::seconds(value.unwrap_or(default));
    Ok(Terms {
        operation,
        pre_dispatch_digest,
        facts: Bound {
            cluster: facts.cluster,
            machine: facts.machine,
            identity: facts.identity.clone(),
            route: facts.route,
            release: facts.release,
            renderer: facts.renderer.clone(),
            covered: covered.clone(),
            desired: facts.desired,
            assignment: facts.assignment_head.map(|(at, _)| at),
            baseline: facts.applied.map(|applied| applied.baseline),
            applied_release: facts.applied.map(|applied| applied.release),
            drift: facts.scope.open_drift,
        },
        expires_in: length(requested.expires_in, defaults.expires_in),
        max_observation_age: length(requested.max_observation_age, defaults.max_observation_age),
        check_validity: length(requested.check_validity, defaults.check_validity),
    })
}

/// Fills the defaults and applies the deployment's bounds (PA choice 17.37).
fn deadlines<R: Rules>(
    rules: &R,
    requested: &Requested,
    limits: &PlanLimits,
) -> Result<Deadlines, DurationRefusal> {
    let defaults = limits.defaults;
    // The default never exceeds the maximum, whatever the deployment configured.
    let transport = requested
        .transport_deadline
        .unwrap_or(defaults.transport_deadline.min(limits.max_transport));
    let verification = requested
        .verification_deadline
        .unwrap_or(defaults.verification_deadline);
    let member = "transportDeadlineSeconds";
    if !rules.holds(
        Rule::PlanTransportBounded,
        transport <= limits.max_transport,
    ) {
        return Err(DurationRefusal {
            member,
            rule: "is above the maximum transport deadline",
        });
    }
    if !rules.holds(Rule::PlanTransportBounded, transport <= verification) {
        return Err(DurationRefusal {
            member,
            rule: "is above the verification deadline",
        });
    }
    let attempts = requested.max_attempts.unwrap_or(defaults.max_attempts);
    Ok(Deadlines {
        transport: Span::seconds(transport),
        verification: Span::seconds(verification),
        max_attempts: u8::try_from(attempts).unwrap_or(u8::MAX),
    })
}

fn application<R: Rules>(
    rules: &R,
    facts: &CreateFacts<'_>,
    covered: &ReleaseMachineFacts,
    deadlines: Deadlines,
) -> Result<(PlanOperation, ConfigDigest), CreateRefusal> {
    let worker = covered.machine_type == MachineType::Worker;
    if !rules.holds(Rule::PlanWorkersOnly, worker) {
        return Err(CreateRefusal::UnsupportedTarget);
    }
    if !rules.holds(
        Rule::PlanReleaseIsDesired,
        facts.desired == Some(facts.release),
    ) {
        return Err(CreateRefusal::NotDesired {
            desired: facts.desired,
        });
    }
    let applied = match facts.applied {
        Some(applied) => Some(applied.digest),
        None if rules.holds(Rule::PlanNeedsApplied, false) => None,
        None => return Err(CreateRefusal::NoApplied),
    };
    // With an open drift record the plan is a revert and expects what was observed.
    let expected = match facts.scope.open_drift {
        Some(_) => facts.drift_digest.or(applied),
        None => applied,
    };
    Ok((
        PlanOperation::ApplyConfig(deadlines),
        expected.unwrap_or(covered.artifact_digest),
    ))
}

fn adoption<R: Rules>(
    rules: &R,
    facts: &CreateFacts<'_>,
    covered: &ReleaseMachineFacts,
) -> Result<(PlanOperation, ConfigDigest), CreateRefusal> {
    let reason = facts.applied.is_none() || facts.scope.open_drift.is_some();
    if !rules.holds(Rule::AdoptNeedsReason, reason) {
        return Err(CreateRefusal::NothingToAdopt);
    }
    let operation = PlanOperation::Adopt {
        import_base: covered.import_base,
        import_base_digest: covered.import_base_digest,
    };
    Ok((operation, covered.import_base_digest))
}

impl Terms {
    /// Binds the terms to who asked, at the time read after the act-order lock: the
    /// expiry counts from it.
    pub fn bind(
        self,
        id: PlanId,
        created_by: Signed,
        epoch: EpochId,
        timeline_revision: TimelineRevision,
        now: DbTime,
    ) -> Plan<Proposed> {
        let Bound {
            cluster,
            machine,
            identity,
            route,
            release,
            renderer,
            covered,
            desired,
            assignment,
            baseline,
            applied_release,
            drift,
        } = self.facts;
        Plan::proposed(Binding {
            id,
            cluster,
            machine,
            release,
            operation: self.operation,
            artifact_digest: covered.artifact_digest,
            renderer,
            key: covered.key,
            identity,
            assignment,
            assignment_revision: covered.assignment,
            baseline,
            desired,
            applied_release,
            pre_dispatch_digest: self.pre_dispatch_digest,
            drift,
            route,
            max_observation_age: self.max_observation_age,
            check_validity: self.check_validity,
            created_by,
            epoch,
            timeline_revision,
            created_at: now,
            expires_at: now + self.expires_in,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AssignmentId, ImportBaseRevisionId, PrincipalId};
    use crate::observation::tests::{endpoint, identity};
    use crate::plan::PlanDefaults;
    use crate::plan::tests::{ARTIFACT, BEFORE, binding, epoch};
    use crate::principal::Role;
    use crate::release::AppliedSource;
    use crate::revision::{BaselineRevision, Revision};
    use crate::rules::{Enforced, Without};
    use crate::scope::ScopeState;

    fn covered() -> ReleaseMachineFacts {
        ReleaseMachineFacts {
            artifact_digest: ConfigDigest::of(ARTIFACT),
            machine_type: MachineType::Worker,
            key: binding().key,
            assignment: None,
            import_base: ImportBaseRevisionId::from_bits(1),
            import_base_digest: ConfigDigest::of(b"imported"),
        }
    }

    fn applied() -> Applied {
        Applied {
            release: ReleaseId::from_bits(9),
            digest: ConfigDigest::of(BEFORE),
            source: AppliedSource::Operation,
            baseline: BaselineRevision(4),
        }
    }

    fn scope(open_drift: Option<i64>) -> Scope {
        Scope {
            machine: MachineId::from_bits(1),
            state: ScopeState::Normal,
            frozen: false,
            open_drift: open_drift.map(TimelineRevision),
        }
    }

    const LIMITS: PlanLimits = PlanLimits {
        defaults: PlanDefaults::CONTRACT,
        max_transport: 120,
    };

    /// Everything a creation reads, owned, so that a case changes one thing of it.
    struct World {
        identity: MachineIdentity,
        scope: Scope,
        renderer: RendererRecord,
        covered: Option<ReleaseMachineFacts>,
        applied: Option<Applied>,
        desired: Option<ReleaseId>,
        drift_digest: Option<ConfigDigest>,
        assignment_head: Option<(AssignmentAt, Option<AssignmentRevisionId>)>,
    }

    fn world() -> World {
        World {
            identity: identity(),
            scope: scope(None),
            renderer: binding().renderer,
            covered: Some(covered()),
            applied: Some(applied()),
            desired: Some(ReleaseId::from_bits(1)),
            drift_digest: None,
            assignment_head: None,
        }
    }

    fn made<R: Rules>(
        rules: &R,
        world: &World,
        adopt: bool,
        requested: Requested,
    ) -> Result<Binding, CreateRefusal> {
        let facts = CreateFacts {
            cluster: ClusterId::from_bits(1),
            machine: MachineId::from_bits(1),
            identity: &world.identity,
            route: endpoint(),
            scope: &world.scope,
            release: ReleaseId::from_bits(1),
            renderer: &world.renderer,
            covered: world.covered.as_ref(),
            desired: world.desired,
            applied: world.applied.as_ref(),
            drift_digest: world.drift_digest,
            assignment_head: world.assignment_head,
        };
        let by = Signed {
            principal: PrincipalId::from_bits(1),
            role: Role::Publisher,
        };
        create(rules, &facts, adopt, &requested, &LIMITS).map(|terms| {
            let now = DbTime::from_seconds(100);
            let plan = terms.bind(PlanId::from_bits(1), by, epoch(), TimelineRevision(1), now);
            Binding::clone(plan.binding())
        })
    }

    #[test]
    fn an_apply_plan_expects_applied_and_takes_the_deployments_defaults() {
        let bound = made(&Enforced, &world(), false, Requested::default()).unwrap();
        assert_eq!(bound.pre_dispatch_digest, ConfigDigest::of(BEFORE));
        assert_eq!(bound.baseline, Some(BaselineRevision(4)));
        assert_eq!(bound.expires_at, DbTime::from_seconds(100 + 86_400));
        let deadlines = bound.deadlines().unwrap();
        assert_eq!(deadlines.transport, Span::seconds(60));
        assert_eq!(deadlines.max_attempts, 3);
    }

    #[test]
    fn with_an_open_drift_record_the_plan_is_a_revert_of_what_was_observed() {
        let drifted = World {
            scope: scope(Some(7)),
            drift_digest: Some(ConfigDigest::of(b"drifted")),
            ..world()
        };
        let bound = made(&Enforced, &drifted, false, Requested::default()).unwrap();
        assert!(bound.is_revert());
        assert_eq!(bound.drift, Some(TimelineRevision(7)));
        assert_eq!(bound.pre_dispatch_digest, ConfigDigest::of(b"drifted"));
    }

    #[test]
    fn an_adopt_plan_expects_the_import_base_and_any_machine_type() {
        let first = World {
            applied: None,
            covered: Some(ReleaseMachineFacts {
                machine_type: MachineType::ControlPlane,
                ..covered()
            }),
            desired: Some(ReleaseId::from_bits(5)),
            ..world()
        };
        let bound = made(&Enforced, &first, true, Requested::default()).unwrap();
        assert_eq!(bound.pre_dispatch_digest, ConfigDigest::of(b"imported"));
        assert_eq!(bound.baseline, None);
        assert_eq!(bound.deadlines(), None);
        assert!(!bound.is_revert());
    }

    // covers-part: EaR-PLN-1 (each refusal with its rule dropped, as decided)
    #[test]
    fn each_refusal_of_a_plan_refuses_alone() {
        let unaccounted = World {
            scope: Scope {
                state: ScopeState::PreRestoreUnaccounted,
                ..scope(None)
            },
            ..world()
        };
        let other_assignment = World {
            assignment_head: Some((
                AssignmentAt {
                    head: AssignmentId::from_bits(1),
                    revision: Revision(2),
                },
                Some(AssignmentRevisionId::from_bits(2)),
            )),
            ..world()
        };
        let control_plane = World {
            covered: Some(ReleaseMachineFacts {
                machine_type: MachineType::ControlPlane,
                ..covered()
            }),
            ..world()
        };
        let undesired = World {
            desired: Some(ReleaseId::from_bits(5)),
            ..world()
        };
        let unapplied = World {
            applied: None,
            ..world()
        };
        let machine = MachineId::from_bits(1);
        let cases = [
            (
                unaccounted,
                false,
                CreateRefusal::Unaccounted(Unaccounted { machine }),
                Rule::ScopeAccountedFor,
            ),
            (
                other_assignment,
                false,
                CreateRefusal::AssignmentMoved,
                Rule::PlanAssignmentCurrent,
            ),
            (
                control_plane,
                false,
                CreateRefusal::UnsupportedTarget,
                Rule::PlanWorkersOnly,
            ),
            (
                undesired,
                false,
                CreateRefusal::NotDesired {
                    desired: Some(ReleaseId::from_bits(5)),
                },
                Rule::PlanReleaseIsDesired,
            ),
            (
                unapplied,
                false,
                CreateRefusal::NoApplied,
                Rule::PlanNeedsApplied,
            ),
            (
                world(),
                true,
                CreateRefusal::NothingToAdopt,
                Rule::AdoptNeedsReason,
            ),
        ];
        for (world, adopt, refusal, rule) in cases {
            let refused = made(&Enforced, &world, adopt, Requested::default());
            assert_eq!(refused, Err(refusal));
            let rules: &'static [Rule] = vec![rule].leak();
            let control = made(&Without(rules), &world, adopt, Requested::default());
            assert!(control.is_ok(), "{}", rule.name());
        }
        let uncovered = World {
            covered: None,
            ..world()
        };
        assert_eq!(
            made(&Enforced, &uncovered, false, Requested::default()),
            Err(CreateRefusal::NotCovered {
                release: ReleaseId::from_bits(1),
                machine
            })
        );
    }

    // covers-part: EaR-PLN-1 (ranges, and the deployment's bounds)
    #[test]
    fn durations_keep_their_ranges_and_the_deployments_bounds() {
        let ask = |requested: Requested, adopt| in_range(&Enforced, &requested, adopt);
        let none = Requested::default();
        assert_eq!(ask(none, false), Ok(()));
        for value in [1, 604_800] {
            let requested = Requested {
                expires_in: Some(value),
                ..none
            };
            assert_eq!(ask(requested, true), Ok(()));
        }
        for value in [0, 604_801, -1] {
            let requested = Requested {
                check_validity: Some(value),
                ..none
            };
            assert!(ask(requested, false).is_err());
            assert!(in_range(&Without(&[Rule::PlanDurationsInRange]), &requested, false).is_ok());
        }
        for attempts in [0, 11] {
            let requested = Requested {
                max_attempts: Some(attempts),
                ..none
            };
            assert!(ask(requested, false).is_err());
            assert!(in_range(&Without(&[Rule::PlanDurationsInRange]), &requested, false).is_ok());
        }
        let transport = |seconds| Requested {
            transport_deadline: Some(seconds),
            ..none
        };
        assert!(ask(transport(5), true).is_err());
        let member = "transportDeadlineSeconds";
        for (requested, rule) in [
            (transport(121), "is above the maximum transport deadline"),
            (
                Requested {
                    verification_deadline: Some(60),
                    ..transport(100)
                },
                "is above the verification deadline",
            ),
        ] {
            let refusal = CreateRefusal::Duration(DurationRefusal { member, rule });
            assert_eq!(made(&Enforced, &world(), false, requested), Err(refusal));
            let control = Without(&[Rule::PlanTransportBounded]);
            assert!(made(&control, &world(), false, requested).is_ok());
        }
    }

    #[test]
    fn the_default_transport_deadline_never_exceeds_the_maximum() {
        let limits = PlanLimits {
            max_transport: 40,
            ..LIMITS
        };
        let filled = deadlines(&Enforced, &Requested::default(), &limits).unwrap();
        assert_eq!(filled.transport, Span::seconds(40));
    }
}
