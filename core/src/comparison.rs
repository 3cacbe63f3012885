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
use crate::observation::{Observation, Purpose};
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
    let desired = match facts.stage {
        Stage::Commitment { .. } => facts.current.desired == bound.desired,
        // A publication after the commitment leaves the operation alone.
        Stage::Attempt { .. } => true,
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
    let checked = check.artifact == ArtifactCheck::Matches
        && check.key.as_ref() == Some(&bound.key)
        && facts.now - check.at <= bound.check_validity;
    let access = values.access.value() == Some(evidence.access_used)
        && check.access.value() == Some(evidence.access_used);
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
            classified.is_some_and(|entry| entry.by == *token),
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
