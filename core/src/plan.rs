//! Plans (EaR 2, PA §8.1): an immutable binding and the state it is in.
//!
//! A store gives [`AnyPlan`]; the first thing its reader does is [`AnyPlan::read_at`],
//! because expiry and the revocation of an approver count from the moment they are
//! true, not from the moment somebody writes them. Never in this module: what a
//! commitment compares (that is `comparison`), or a change of a binding.

mod binding;
mod create;

use std::sync::Arc;

pub use binding::{Binding, Deadlines, PlanDefaults, PlanLimits, PlanOperation, Requested};
pub use create::{
    CreateFacts, CreateRefusal, DurationRefusal, ReleaseMachineFacts, Terms, create, in_range,
};

use crate::authority::SelfApproval;
use crate::comparison::Admission;
use crate::id::{ApprovalId, EpochId, OperationId, PlanId};
use crate::principal::Signed;
use crate::refused::Refused;
use crate::revision::{Revision, TimelineRevision};
use crate::rules::{Rule, Rules};
use crate::time::DbTime;

/// An approval: immutable, of one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub id: ApprovalId,
    pub plan: PlanId,
    pub approver: Signed,
    pub epoch: EpochId,
    pub at: DbTime,
    /// The revision of its timeline entry.
    pub revision: TimelineRevision,
    /// Every reason that holds, in table order (PA §10.5).
    pub self_approval: Vec<SelfApproval>,
    /// It approves overwriting a configuration no reviewer has seen: a revert.
    pub unseen_overwrite: bool,
}

/// Approved by this approval and by no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    pub approval: Approval,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposed;

/// Carried out by this operation; the approval is the one it was committed under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub operation: OperationId,
    pub approval: Approval,
    /// A cancellation recorded after the commitment: it reaches the operation (EaR 3.3).
    pub cancelled: bool,
}

/// Why a plan is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RevokedBy {
    Approval,
    Identity,
}

impl RevokedBy {
    pub const fn as_str(self) -> &'static str {
        match self {
            RevokedBy::Approval => "approval-revoked",
            RevokedBy::Identity => "identity-revoked",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "approval-revoked" => Some(RevokedBy::Approval),
            "identity-revoked" => Some(RevokedBy::Identity),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked {
    pub by: RevokedBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired;

/// A plan in one state.
///
/// A transition that its state does not have does not compile:
///
/// ```compile_fail
/// use bronzeward_core::plan::{Cancelled, Plan};
///
/// fn again(plan: Plan<Cancelled>) -> Plan<Cancelled> {
///     plan.cancel()
/// }
/// ```
///
/// and its twin, which differs in the state alone, does:
///
/// ```
/// use bronzeward_core::plan::{Approved, Cancelled, Plan};
///
/// fn again(plan: Plan<Approved>) -> Plan<Cancelled> {
///     plan.cancel()
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<S> {
    binding: Arc<Binding>,
    /// Of the plan's state; the binding has none.
    revision: Revision,
    state: S,
}

impl<S> Plan<S> {
    /// For a store: a row's state beside its binding.
    pub const fn from_row(binding: Arc<Binding>, revision: Revision, state: S) -> Self {
        Self {
            binding,
            revision,
            state,
        }
    }

    pub fn binding(&self) -> &Arc<Binding> {
        &self.binding
    }

    pub const fn revision(&self) -> Revision {
        self.revision
    }

    pub const fn state(&self) -> &S {
        &self.state
    }

    fn becomes<T>(self, state: T) -> Plan<T> {
        Plan {
            binding: self.binding,
            revision: self.revision.next(),
            state,
        }
    }

    fn expired_at(&self, now: DbTime) -> bool {
        now >= self.binding.expires_at
    }
}

impl Plan<Proposed> {
    /// A plan as its creation leaves it.
    pub fn proposed(binding: Binding) -> Self {
        Self {
            binding: Arc::new(binding),
            revision: Revision::FIRST,
            state: Proposed,
        }
    }

    pub fn approve<R: Rules>(
        self,
        rules: &R,
        approval: Approval,
        now: DbTime,
    ) -> Result<Plan<Approved>, Refused<Self, ApproveRefusal>> {
        if !rules.holds(Rule::ApprovedUnexpired, !self.expired_at(now)) {
            return Err(Refused::new(self, ApproveRefusal::Expired));
        }
        Ok(self.becomes(Approved { approval }))
    }

    pub fn cancel(self) -> Plan<Cancelled> {
        self.becomes(Cancelled)
    }
}

impl Plan<Approved> {
    /// Whether its approval counts in `current`.
    pub fn authorised_in(&self, current: EpochId) -> bool {
        self.state.approval.epoch == current
    }

    /// A plan approved in an earlier epoch is approved again in the current one.
    pub fn approve_again<R: Rules>(
        self,
        rules: &R,
        approval: Approval,
        now: DbTime,
    ) -> Result<Plan<Approved>, Refused<Self, ApproveRefusal>> {
        if !rules.holds(
            Rule::OneApprovalPerEpoch,
            self.state.approval.epoch != approval.epoch,
        ) {
            return Err(Refused::new(self, ApproveRefusal::AlreadyApproved));
        }
        if !rules.holds(Rule::ApprovedUnexpired, !self.expired_at(now)) {
            return Err(Refused::new(self, ApproveRefusal::Expired));
        }
        Ok(self.becomes(Approved { approval }))
    }

    pub fn cancel(self) -> Plan<Cancelled> {
        self.becomes(Cancelled)
    }

    /// Revoking the approval it rests on. Revoking one that was replaced by a later
    /// epoch's is recorded and leaves the plan as it is.
    pub fn revoke_approval<R: Rules>(self, rules: &R, approval: ApprovalId) -> ApprovalRevoked {
        let current = self.state.approval.id == approval;
        if rules.holds(Rule::RevokesCurrentApproval, current) {
            ApprovalRevoked::Plan(self.becomes(Revoked {
                by: RevokedBy::Approval,
            }))
        } else {
            ApprovalRevoked::Replaced(self)
        }
    }

    /// The commitment, which the comparisons admitted (EaR 3.2).
    pub fn commit(self, _admitted: &Admission, operation: OperationId) -> Plan<Committed> {
        let approval = self.state.approval.clone();
        self.becomes(Committed {
            operation,
            approval,
            cancelled: false,
        })
    }
}

/// What revoking an approval does to an approved plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum ApprovalRevoked {
    Plan(Plan<Revoked>),
    Replaced(Plan<Approved>),
}

impl Plan<Committed> {
    /// Records a cancellation, once: the plan stays committed and its operation's next
    /// attempt is refused by comparison 1.
    pub fn cancel(self) -> Result<Plan<Committed>, Refused<Self, CancelRefusal>> {
        if self.state.cancelled {
            return Err(Refused::new(self, CancelRefusal::AlreadyCancelled));
        }
        let state = Committed {
            cancelled: true,
            ..self.state.clone()
        };
        // The plan's state is the same, so its revision is too.
        Ok(Plan { state, ..self })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApproveRefusal {
    /// The expiry passed before the approval's time.
    Expired,
    /// A second approval in one epoch.
    AlreadyApproved,
    /// A state that is never approved.
    State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelRefusal {
    /// The committed plan's cancellation is recorded already.
    AlreadyCancelled,
    /// It reads revoked, cancelled or expired.
    State,
}

/// A plan as a store gives it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyPlan {
    Proposed(Plan<Proposed>),
    Approved(Plan<Approved>),
    Committed(Plan<Committed>),
    Revoked(Plan<Revoked>),
    Cancelled(Plan<Cancelled>),
    Expired(Plan<Expired>),
}

/// A plan as it reads at a time, and whether its row still says otherwise: the next
/// transaction that locks the state and commits writes it (PA §8.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct PlanRead {
    pub plan: AnyPlan,
    pub unwritten: bool,
}

impl AnyPlan {
    pub const fn state_name(&self) -> &'static str {
        match self {
            AnyPlan::Proposed(_) => "proposed",
            AnyPlan::Approved(_) => "approved",
            AnyPlan::Committed(_) => "committed",
            AnyPlan::Revoked(_) => "revoked",
            AnyPlan::Cancelled(_) => "cancelled",
            AnyPlan::Expired(_) => "expired",
        }
    }

    pub fn binding(&self) -> &Arc<Binding> {
        match self {
            AnyPlan::Proposed(plan) => plan.binding(),
            AnyPlan::Approved(plan) => plan.binding(),
            AnyPlan::Committed(plan) => plan.binding(),
            AnyPlan::Revoked(plan) => plan.binding(),
            AnyPlan::Cancelled(plan) => plan.binding(),
            AnyPlan::Expired(plan) => plan.binding(),
        }
    }

    pub const fn revision(&self) -> Revision {
        match self {
            AnyPlan::Proposed(plan) => plan.revision(),
            AnyPlan::Approved(plan) => plan.revision(),
            AnyPlan::Committed(plan) => plan.revision(),
            AnyPlan::Revoked(plan) => plan.revision(),
            AnyPlan::Cancelled(plan) => plan.revision(),
            AnyPlan::Expired(plan) => plan.revision(),
        }
    }

    /// The approval the plan rests on, or was committed under.
    pub const fn approval(&self) -> Option<&Approval> {
        match self {
            AnyPlan::Approved(plan) => Some(&plan.state.approval),
            AnyPlan::Committed(plan) => Some(&plan.state.approval),
            AnyPlan::Proposed(_)
            | AnyPlan::Revoked(_)
            | AnyPlan::Cancelled(_)
            | AnyPlan::Expired(_) => None,
        }
    }

    /// The plan as it reads now. `approver_revoked_at` is the revocation of the identity
    /// whose approval it rests on. When both have passed, the earlier one decided: a plan
    /// that had expired was no longer anybody's to revoke.
    pub fn read_at(self, now: DbTime, approver_revoked_at: Option<DbTime>) -> PlanRead {
        match self {
            AnyPlan::Proposed(plan) if plan.expired_at(now) => PlanRead {
                plan: AnyPlan::Expired(plan.becomes(Expired)),
                unwritten: true,
            },
            AnyPlan::Approved(plan) => {
                let expires = plan.binding.expires_at;
                let revoked = approver_revoked_at.is_some_and(|at| at < expires);
                if revoked {
                    let by = RevokedBy::Identity;
                    PlanRead {
                        plan: AnyPlan::Revoked(plan.becomes(Revoked { by })),
                        unwritten: true,
                    }
                } else if plan.expired_at(now) {
                    PlanRead {
                        plan: AnyPlan::Expired(plan.becomes(Expired)),
                        unwritten: true,
                    }
                } else {
                    PlanRead {
                        plan: AnyPlan::Approved(plan),
                        unwritten: false,
                    }
                }
            }
            plan @ (AnyPlan::Proposed(_)
            | AnyPlan::Committed(_)
            | AnyPlan::Revoked(_)
            | AnyPlan::Cancelled(_)
            | AnyPlan::Expired(_)) => PlanRead {
                plan,
                unwritten: false,
            },
        }
    }

    /// Approves a plan that was read at `now` (T5a).
    pub fn approve<R: Rules>(
        self,
        rules: &R,
        approval: Approval,
        now: DbTime,
    ) -> Result<Plan<Approved>, Refused<AnyPlan, ApproveRefusal>> {
        match self {
            AnyPlan::Proposed(plan) => plan
                .approve(rules, approval, now)
                .map_err(|refused| refused.map(AnyPlan::Proposed)),
            AnyPlan::Approved(plan) => plan
                .approve_again(rules, approval, now)
                .map_err(|refused| refused.map(AnyPlan::Approved)),
            plan @ AnyPlan::Expired(_) => Err(Refused::new(plan, ApproveRefusal::Expired)),
            plan @ (AnyPlan::Committed(_) | AnyPlan::Revoked(_) | AnyPlan::Cancelled(_)) => {
                Err(Refused::new(plan, ApproveRefusal::State))
            }
        }
    }

    /// Cancels a plan that was read at the act's time (T11).
    pub fn cancel(self) -> Result<AnyPlan, Refused<AnyPlan, CancelRefusal>> {
        match self {
            AnyPlan::Proposed(plan) => Ok(AnyPlan::Cancelled(plan.cancel())),
            AnyPlan::Approved(plan) => Ok(AnyPlan::Cancelled(plan.cancel())),
            AnyPlan::Committed(plan) => plan
                .cancel()
                .map(AnyPlan::Committed)
                .map_err(|refused| refused.map(AnyPlan::Committed)),
            plan @ (AnyPlan::Revoked(_) | AnyPlan::Cancelled(_) | AnyPlan::Expired(_)) => {
                Err(Refused::new(plan, CancelRefusal::State))
            }
        }
    }

    /// What recording a revocation of `approval` leaves of the plan (T5b). The revocation
    /// itself is recorded for any approval that has none.
    pub fn revoke_approval<R: Rules>(self, rules: &R, approval: ApprovalId) -> PlanRead {
        match self {
            AnyPlan::Approved(plan) => match plan.revoke_approval(rules, approval) {
                ApprovalRevoked::Plan(plan) => PlanRead {
                    plan: AnyPlan::Revoked(plan),
                    unwritten: true,
                },
                ApprovalRevoked::Replaced(plan) => PlanRead {
                    plan: AnyPlan::Approved(plan),
                    unwritten: false,
                },
            },
            plan @ (AnyPlan::Proposed(_)
            | AnyPlan::Committed(_)
            | AnyPlan::Revoked(_)
            | AnyPlan::Cancelled(_)
            | AnyPlan::Expired(_)) => PlanRead {
                plan,
                unwritten: false,
            },
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::digest::ConfigDigest;
    use crate::id::{ClusterId, MachineId, PrincipalId, ReleaseId};
    use crate::observation::tests::{endpoint, identity};
    use crate::principal::Role;
    use crate::release::{Contract, RendererRecord, TransitKey};
    use crate::revision::BaselineRevision;
    use crate::rules::{Enforced, Without};
    use crate::time::Span;

    pub(crate) const ARTIFACT: &[u8] = b"after";
    pub(crate) const BEFORE: &[u8] = b"before";

    pub(crate) fn epoch() -> EpochId {
        EpochId::from_bits(1)
    }

    pub(crate) fn at(seconds: i64) -> DbTime {
        DbTime::from_seconds(seconds)
    }

    pub(crate) fn signed(role: Role) -> Signed {
        Signed {
            principal: PrincipalId::from_bits(1),
            role,
        }
    }

    /// An apply-config plan from `BEFORE` to `ARTIFACT`, made at 0 and expiring at 1000.
    pub(crate) fn binding() -> Binding {
        Binding {
            id: PlanId::from_bits(1),
            cluster: ClusterId::from_bits(1),
            machine: MachineId::from_bits(1),
            release: ReleaseId::from_bits(1),
            operation: PlanOperation::ApplyConfig(Deadlines {
                transport: Span::seconds(60),
                verification: Span::seconds(600),
                max_attempts: 3,
            }),
            artifact_digest: ConfigDigest::of(ARTIFACT),
            renderer: RendererRecord {
                contract: Contract {
                    major: 1,
                    minor: 13,
                },
                machinery_version: "v1.13.6".into(),
                machinery_checksum: "h1:x".into(),
                kubernetes_version: "v1.36.0".into(),
            },
            key: TransitKey {
                name: "artifacts".into(),
                version: 1,
                created: 1,
            },
            identity: identity(),
            assignment: None,
            assignment_revision: None,
            baseline: Some(BaselineRevision(1)),
            desired: Some(ReleaseId::from_bits(1)),
            applied_release: Some(ReleaseId::from_bits(9)),
            pre_dispatch_digest: ConfigDigest::of(BEFORE),
            drift: None,
            route: endpoint(),
            max_observation_age: Span::seconds(300),
            check_validity: Span::seconds(300),
            created_by: signed(Role::Publisher),
            epoch: epoch(),
            timeline_revision: TimelineRevision(1),
            created_at: at(0),
            expires_at: at(1_000),
        }
    }

    pub(crate) fn approval(bits: u128, epoch: EpochId) -> Approval {
        Approval {
            id: ApprovalId::from_bits(bits),
            plan: PlanId::from_bits(1),
            approver: signed(Role::Approver),
            epoch,
            at: at(1),
            revision: TimelineRevision(2),
            self_approval: Vec::new(),
            unseen_overwrite: false,
        }
    }

    pub(crate) fn approved() -> Plan<Approved> {
        Plan::proposed(binding())
            .approve(&Enforced, approval(1, epoch()), at(1))
            .unwrap()
    }

    pub(crate) fn committed(operation: OperationId) -> Plan<Committed> {
        approved().commit(&Admission::of_adoption(), operation)
    }

    // covers-part: EaR-PLN-2 (how a plan reads; who writes it is the engine's)
    #[test]
    fn a_plan_reads_expired_from_the_instant_of_its_expiry() {
        for plan in [
            AnyPlan::Proposed(Plan::proposed(binding())),
            AnyPlan::Approved(approved()),
        ] {
            let before = plan.clone().read_at(at(999), None);
            assert_eq!((before.unwritten, &before.plan), (false, &plan));
            let read = plan.clone().read_at(at(1_000), None);
            assert!(read.unwritten);
            assert_eq!(read.plan.state_name(), "expired");
            assert_eq!(read.plan.revision(), plan.revision().next());
            assert_eq!(read.plan.binding(), plan.binding());
        }
        let committed = AnyPlan::Committed(committed(OperationId::from_bits(1)));
        assert!(!committed.read_at(at(2_000), Some(at(3))).unwritten);
    }

    #[test]
    fn an_approver_revoked_before_the_expiry_revokes_and_one_revoked_after_it_does_not() {
        let plan = AnyPlan::Approved(approved());
        let read = |now, revoked| plan.clone().read_at(at(now), revoked).plan.state_name();
        assert_eq!(read(10, Some(at(5))), "revoked");
        assert_eq!(read(2_000, Some(at(5))), "revoked");
        assert_eq!(read(2_000, Some(at(1_500))), "expired");
        let proposed = AnyPlan::Proposed(Plan::proposed(binding()));
        assert_eq!(
            proposed.read_at(at(10), Some(at(5))).plan.state_name(),
            "proposed"
        );
    }

    // covers-part: EaR-PLN-3 (the decisions, with their rules dropped)
    #[test]
    fn a_plan_is_approved_once_in_an_epoch_and_again_in_the_next() {
        let next = EpochId::from_bits(2);
        let twice = approved().approve_again(&Enforced, approval(2, epoch()), at(2));
        let refused = twice.unwrap_err();
        assert_eq!(refused.reason, ApproveRefusal::AlreadyApproved);
        assert_eq!(*refused.unchanged, approved());
        let control = Without(&[Rule::OneApprovalPerEpoch]);
        assert!(
            approved()
                .approve_again(&control, approval(2, epoch()), at(2))
                .is_ok()
        );
        assert!(!approved().authorised_in(next));
        let again = approved()
            .approve_again(&Enforced, approval(2, next), at(2))
            .unwrap();
        assert!(again.authorised_in(next));
        let late = Plan::proposed(binding()).approve(&Enforced, approval(1, epoch()), at(1_000));
        assert_eq!(late.unwrap_err().reason, ApproveRefusal::Expired);
        let control = Without(&[Rule::ApprovedUnexpired]);
        let late = Plan::proposed(binding()).approve(&control, approval(1, epoch()), at(1_000));
        assert!(late.is_ok());
    }

    #[test]
    fn revoking_a_replaced_approval_keeps_the_plan() {
        let next = EpochId::from_bits(2);
        let replaced = approved()
            .approve_again(&Enforced, approval(2, next), at(2))
            .unwrap();
        let old = ApprovalId::from_bits(1);
        assert!(matches!(
            replaced.clone().revoke_approval(&Enforced, old),
            ApprovalRevoked::Replaced(_)
        ));
        let control = Without(&[Rule::RevokesCurrentApproval]);
        assert!(matches!(
            replaced.clone().revoke_approval(&control, old),
            ApprovalRevoked::Plan(_)
        ));
        let current =
            AnyPlan::Approved(replaced).revoke_approval(&Enforced, ApprovalId::from_bits(2));
        assert_eq!(current.plan.state_name(), "revoked");
    }

    #[test]
    fn a_cancellation_ends_an_uncommitted_plan_and_is_recorded_once_on_a_committed_one() {
        let cancelled = AnyPlan::Approved(approved()).cancel().unwrap();
        assert_eq!(cancelled.state_name(), "cancelled");
        assert_eq!(cancelled.approval(), None);
        assert_eq!(cancelled.cancel().unwrap_err().reason, CancelRefusal::State);
        let committed = AnyPlan::Committed(committed(OperationId::from_bits(1)));
        let recorded = committed.clone().cancel().unwrap();
        assert_eq!(recorded.state_name(), "committed");
        assert_eq!(recorded.revision(), committed.revision());
        assert_eq!(
            recorded.cancel().unwrap_err().reason,
            CancelRefusal::AlreadyCancelled
        );
    }

    #[test]
    fn a_revert_overwrites_unseen_and_an_ordinary_plan_does_not() {
        let revert = Binding {
            drift: Some(TimelineRevision(4)),
            ..binding()
        };
        assert!(revert.is_revert());
        assert!(!binding().is_revert());
    }
}
