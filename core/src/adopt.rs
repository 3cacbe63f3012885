//! The adoption record (EaR 6.3): an adopt plan's commitment, which sends nothing.
//!
//! The commitment of an adopt plan asks here under the machine's lock. What it admits
//! is an operation created in `completed` and an Applied of the import base's digest.

use crate::comparison::{Admission, Comparison, Standing, standing};
use crate::digest::ConfigDigest;
use crate::epoch::ProcessEpoch;
use crate::head::AssignmentAt;
use crate::id::{EpochId, OperationId, ReleaseId};
use crate::observation::Observation;
use crate::plan::{AnyPlan, Binding, PlanOperation};
use crate::release::{Applied, AppliedSource};
use crate::revision::BaselineRevision;
use crate::rules::{Rule, Rules};
use crate::scope::Scope;
use crate::time::DbTime;

/// What an adoption compares.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub binding: &'a Binding,
    pub standing: Standing<'a>,
    pub now: DbTime,
    pub epoch: EpochId,
    pub recovery_mode: bool,
    pub process: ProcessEpoch,
    pub existing: Option<OperationId>,
    pub scope_holder: Option<OperationId>,
    pub scope: &'a Scope,
    pub assignment: Option<AssignmentAt>,
    pub desired: Option<ReleaseId>,
    pub applied: Option<&'a Applied>,
    /// The machine's recorded observations, of every purpose.
    pub observations: &'a [Observation],
}

/// A requirement that does not hold; each is recorded under a comparison's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    NoOperation,
    Authority,
    Assignment,
    Baseline,
    Desired,
    /// The bound drift record was closed, or a first adoption found an Applied.
    Drift,
    /// No reading, or the latest began before the approval.
    AfterApproval,
    Fresh,
    Identity,
    ImportBaseDigest,
    ObservedAssignment,
    ScopeFree,
    Gate,
}

impl Requirement {
    pub const fn comparison(self) -> Comparison {
        match self {
            Requirement::NoOperation => Comparison::NoOperation,
            Requirement::Authority => Comparison::Authority,
            Requirement::Assignment
            | Requirement::Baseline
            | Requirement::Desired
            | Requirement::Drift => Comparison::Binding,
            Requirement::AfterApproval
            | Requirement::Fresh
            | Requirement::Identity
            | Requirement::ImportBaseDigest
            | Requirement::ObservedAssignment => Comparison::Evidence,
            Requirement::ScopeFree => Comparison::ScopeFree,
            Requirement::Gate => Comparison::Gate,
        }
    }
}

/// Every requirement that failed, in order, then the process's epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAdopted {
    pub failed: Vec<Requirement>,
    pub process_epoch: bool,
}

impl NotAdopted {
    /// As a refusal entry names them: distinct numbers, ascending.
    pub fn comparisons(&self) -> Vec<Comparison> {
        let numbers: std::collections::BTreeSet<Comparison> = self
            .failed
            .iter()
            .map(|requirement| requirement.comparison())
            .collect();
        numbers.into_iter().collect()
    }
}

/// What an adoption record sets.
#[derive(Debug)]
#[must_use]
pub struct Adopted {
    pub admission: Admission,
    /// The observation relied on.
    pub observation: crate::id::ObservationId,
    pub applied: Applied,
    /// Desired is confirmed, and the bound drift record closed as adopted.
    pub desired: ReleaseId,
    /// The machine is then pending convergence.
    pub pending_convergence: bool,
}

/// Decides an adoption.
pub fn adopt<R: Rules>(rules: &R, facts: &Facts<'_>) -> Result<Adopted, NotAdopted> {
    let bound = facts.binding;
    let baseline = facts.applied.map(|applied| applied.baseline);
    let latest = facts
        .observations
        .iter()
        .max_by_key(|observation| observation.basis(rules));
    let relied_on = relied_on(rules, facts, latest);
    let mut failed = Vec::new();
    let mut ask = |requirement, rule, condition| {
        if !rules.holds(rule, condition) {
            failed.push(requirement);
        }
    };
    ask(
        Requirement::NoOperation,
        Rule::NoOperationForPlan,
        facts.existing.is_none(),
    );
    let authorised = standing(rules, &facts.standing, None, facts.epoch, facts.now);
    ask(Requirement::Authority, Rule::PlanAuthorises, authorised);
    ask(
        Requirement::Assignment,
        Rule::AssignmentUnchanged,
        facts.assignment == bound.assignment,
    );
    ask(
        Requirement::Baseline,
        Rule::AdoptionBaseline,
        baseline == bound.baseline,
    );
    ask(
        Requirement::Desired,
        Rule::AdoptionDesired,
        facts.desired == bound.desired,
    );
    let drift = match bound.drift {
        Some(bound) => facts.scope.open_drift == Some(bound),
        None => facts.applied.is_none(),
    };
    ask(Requirement::Drift, Rule::AdoptionDriftOpen, drift);
    observed(facts, relied_on, rules, &mut ask);
    ask(
        Requirement::ScopeFree,
        Rule::ScopeFree,
        facts.scope_holder.is_none(),
    );
    let gate = facts.scope.gate(
        rules,
        facts.recovery_mode,
        facts.epoch,
        facts.scope.open_drift,
        true,
    );
    ask(Requirement::Gate, Rule::GateOpen, gate.is_ok());
    let process_epoch = facts.process.admits(rules, facts.epoch).is_err();
    match (relied_on, import_base_digest(bound)) {
        (Some(observation), Some(digest)) if failed.is_empty() && !process_epoch => Ok(Adopted {
            admission: Admission::of_adoption(),
            observation: observation.started.id,
            applied: Applied {
                release: bound.release,
                digest,
                source: AppliedSource::Adoption,
                baseline: BaselineRevision::after(baseline),
            },
            desired: bound.release,
            pending_convergence: bound.artifact_digest != digest,
        }),
        _ => Err(NotAdopted {
            failed,
            process_epoch,
        }),
    }
}

const fn import_base_digest(binding: &Binding) -> Option<ConfigDigest> {
    match binding.operation {
        PlanOperation::Adopt {
            import_base_digest, ..
        } => Some(import_base_digest),
        PlanOperation::ApplyConfig(_) => None,
    }
}

/// The reading an adoption rests on: the one with the highest basis, whatever its
/// purpose. Without that rule, the highest that shows what is wanted.
fn relied_on<'a, R: Rules>(
    rules: &R,
    facts: &Facts<'a>,
    latest: Option<&'a Observation>,
) -> Option<&'a Observation> {
    if rules.enforced(Rule::AdoptionHighestBasis) {
        return latest;
    }
    let wanted = import_base_digest(facts.binding);
    facts
        .observations
        .iter()
        .filter(|observation| observation.digest() == wanted)
        .max_by_key(|observation| observation.basis(rules))
        .or(latest)
}

fn observed<R: Rules>(
    facts: &Facts<'_>,
    observation: Option<&Observation>,
    rules: &R,
    ask: &mut impl FnMut(Requirement, Rule, bool),
) {
    let bound = facts.binding;
    let approved_at = match facts.standing.plan {
        AnyPlan::Approved(plan) => Some(plan.state().approval.revision),
        AnyPlan::Proposed(_)
        | AnyPlan::Committed(_)
        | AnyPlan::Revoked(_)
        | AnyPlan::Cancelled(_)
        | AnyPlan::Expired(_) => None,
    };
    let after = observation
        .zip(approved_at)
        .is_some_and(|(observation, approved)| observation.began_after(rules, approved));
    ask(
        Requirement::AfterApproval,
        Rule::AdoptionAfterApproval,
        after,
    );
    let fresh = observation
        .is_some_and(|it| facts.now - it.started.started_at <= bound.max_observation_age);
    ask(Requirement::Fresh, Rule::AdoptionFresh, fresh);
    let identified =
        observation.is_some_and(|it| matches!(it.identity_mismatch(&bound.identity), Ok(None)));
    ask(Requirement::Identity, Rule::IdentityMatches, identified);
    let digest = observation.and_then(Observation::digest);
    ask(
        Requirement::ImportBaseDigest,
        Rule::AdoptionDigest,
        digest.is_some() && digest == import_base_digest(bound),
    );
    let assigned = observation.is_some_and(|it| it.started.assignment == bound.assignment);
    ask(
        Requirement::ObservedAssignment,
        Rule::AdoptionAssignment,
        assigned,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AssignmentId, ImportBaseRevisionId, MachineId};
    use crate::observation::Purpose;
    use crate::observation::tests::observation;
    use crate::plan::Plan;
    use crate::plan::tests::{approval, at, binding, epoch};
    use crate::revision::{Revision, TimelineRevision};
    use crate::rules::{Enforced, Without};
    use crate::scope::ScopeState;

    const IMPORTED: &[u8] = b"imported";
    const ELSEWHERE: fn() -> AssignmentAt = || AssignmentAt {
        head: AssignmentId::from_bits(1),
        revision: Revision(1),
    };

    struct World {
        binding: Binding,
        plan: AnyPlan,
        applied: Option<Applied>,
        desired: Option<ReleaseId>,
        assignment: Option<AssignmentAt>,
        existing: Option<OperationId>,
        holder: Option<OperationId>,
        scope: Scope,
        recovery_mode: bool,
        observations: Vec<Observation>,
        now: i64,
    }

    /// A drift adoption: the record opened at 4, the plan approved at 2, observed at 10.
    fn drift_adoption() -> World {
        let bound = Binding {
            operation: PlanOperation::Adopt {
                import_base: ImportBaseRevisionId::from_bits(1),
                import_base_digest: ConfigDigest::of(IMPORTED),
            },
            pre_dispatch_digest: ConfigDigest::of(IMPORTED),
            drift: Some(TimelineRevision(4)),
            ..binding()
        };
        let plan = Plan::proposed(bound.clone())
            .approve(&Enforced, approval(1, epoch()), at(1))
            .unwrap();
        World {
            binding: bound,
            plan: AnyPlan::Approved(plan),
            applied: Some(Applied {
                release: ReleaseId::from_bits(9),
                digest: ConfigDigest::of(b"old"),
                source: AppliedSource::Operation,
                baseline: BaselineRevision(1),
            }),
            desired: Some(ReleaseId::from_bits(1)),
            assignment: None,
            existing: None,
            holder: None,
            scope: Scope {
                machine: MachineId::from_bits(1),
                state: ScopeState::Normal,
                frozen: true,
                open_drift: Some(TimelineRevision(4)),
            },
            recovery_mode: false,
            observations: vec![observation(Purpose::Drift, 10, IMPORTED)],
            now: 20,
        }
    }

    fn run<R: Rules>(rules: &R, world: &World) -> Result<Adopted, NotAdopted> {
        adopt(
            rules,
            &Facts {
                binding: &world.binding,
                standing: Standing {
                    plan: &world.plan,
                    approval_revoked: false,
                    approver_revoked: false,
                },
                now: at(world.now),
                epoch: epoch(),
                recovery_mode: world.recovery_mode,
                process: ProcessEpoch(epoch()),
                existing: world.existing,
                scope_holder: world.holder,
                scope: &world.scope,
                assignment: world.assignment,
                desired: world.desired,
                applied: world.applied.as_ref(),
                observations: &world.observations,
            },
        )
    }

    #[test]
    fn an_adoption_sets_applied_to_the_import_base_and_passes_a_freeze() {
        let adopted = run(&Enforced, &drift_adoption()).unwrap();
        assert_eq!(adopted.applied.digest, ConfigDigest::of(IMPORTED));
        assert_eq!(adopted.applied.source, AppliedSource::Adoption);
        assert_eq!(adopted.applied.baseline, BaselineRevision(2));
        assert!(adopted.pending_convergence);
    }

    #[test]
    fn a_first_adoption_needs_that_there_is_still_no_applied() {
        let mut first = drift_adoption();
        first.binding.drift = None;
        first.binding.baseline = None;
        first.scope.open_drift = None;
        let meanwhile = first.applied.take();
        assert_eq!(
            run(&Enforced, &first).unwrap().applied.baseline,
            BaselineRevision::FIRST
        );
        first.applied = meanwhile;
        let refused = run(&Enforced, &first).unwrap_err();
        assert_eq!(refused.failed, [Requirement::Baseline, Requirement::Drift]);
    }

    // covers-part: EaR-ADO-1 (each requirement with its rule dropped, as decided)
    #[test]
    fn each_requirement_of_an_adoption_refuses_alone() {
        let change = |change: &dyn Fn(&mut World)| {
            let mut world = drift_adoption();
            change(&mut world);
            world
        };
        let other = Some(OperationId::from_bits(9));
        let mut moved = observation(Purpose::Drift, 10, IMPORTED);
        moved.started.assignment = Some(ELSEWHERE());
        let newer = observation(Purpose::Drift, 11, b"stranger");
        let reread = |observation: &Observation| vec![observation.clone()];
        let early = observation(Purpose::Drift, 2, IMPORTED);
        let cases = [
            (
                change(&|it| it.existing = other),
                Requirement::NoOperation,
                Rule::NoOperationForPlan,
            ),
            (
                change(&|it| it.plan = AnyPlan::Proposed(Plan::proposed(it.binding.clone()))),
                Requirement::Authority,
                Rule::PlanAuthorises,
            ),
            (
                change(&|it| it.assignment = Some(ELSEWHERE())),
                Requirement::Assignment,
                Rule::AssignmentUnchanged,
            ),
            (
                change(&|it| it.binding.baseline = Some(BaselineRevision(7))),
                Requirement::Baseline,
                Rule::AdoptionBaseline,
            ),
            (
                change(&|it| it.desired = None),
                Requirement::Desired,
                Rule::AdoptionDesired,
            ),
            (
                change(&|it| it.scope.open_drift = None),
                Requirement::Drift,
                Rule::AdoptionDriftOpen,
            ),
            (
                change(&|it| it.observations = reread(&early)),
                Requirement::AfterApproval,
                Rule::AdoptionAfterApproval,
            ),
            (
                change(&|it| it.now = 400),
                Requirement::Fresh,
                Rule::AdoptionFresh,
            ),
            (
                change(&|it| it.observations = vec![observation(Purpose::Drift, 10, b"x")]),
                Requirement::ImportBaseDigest,
                Rule::AdoptionDigest,
            ),
            (
                change(&|it| it.observations.push(newer.clone())),
                Requirement::ImportBaseDigest,
                Rule::AdoptionHighestBasis,
            ),
            (
                change(&|it| it.observations = reread(&moved)),
                Requirement::ObservedAssignment,
                Rule::AdoptionAssignment,
            ),
            (
                change(&|it| it.holder = other),
                Requirement::ScopeFree,
                Rule::ScopeFree,
            ),
            (
                change(&|it| it.recovery_mode = true),
                Requirement::Gate,
                Rule::GateOpen,
            ),
        ];
        for (world, requirement, rule) in cases {
            let failed = run(&Enforced, &world).unwrap_err().failed;
            // Without an approval nothing can be after it.
            let expected = match requirement {
                Requirement::Authority => vec![requirement, Requirement::AfterApproval],
                other => vec![other],
            };
            assert_eq!(failed, expected, "{}", rule.name());
            let rules: &'static [Rule] = match requirement {
                Requirement::Authority => vec![rule, Rule::AdoptionAfterApproval].leak(),
                _ => vec![rule].leak(),
            };
            assert!(run(&Without(rules), &world).is_ok(), "{}", rule.name());
        }
    }

    #[test]
    fn a_refusal_names_its_comparisons_once_each_and_ascending() {
        let mut world = drift_adoption();
        world.desired = None;
        world.scope.open_drift = None;
        world.holder = Some(OperationId::from_bits(9));
        let numbers: Vec<u8> = run(&Enforced, &world)
            .unwrap_err()
            .comparisons()
            .into_iter()
            .map(Comparison::number)
            .collect();
        assert_eq!(numbers, [2, 4]);
    }
}
