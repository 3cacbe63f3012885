//! Authority from roles held, roles allowed and who may act (PA §10.3), and the mark
//! an approval carries when it approves its own work (PA §10.5).
//!
//! http asks before any transaction, the engine again inside the acts whose validity
//! the database holds. Never in this module: a route.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{PlanId, PrincipalId};
use crate::principal::{PrincipalKind, Role, Roles, Signed};
use crate::problem::{Member, Problem, ProblemCode};
use crate::rules::{Rule, Rules};

/// Why a principal may not act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forbidden {
    /// It holds none of the roles that would do; they are named to it.
    NoRole { qualifying: Vec<Role> },
    /// Automation where only a human may act.
    HumanOnly { qualifying: Vec<Role> },
    /// A publisher that did not create the plan it would cancel.
    NotCreator { plan: PlanId },
}

impl Forbidden {
    /// 403 `forbidden`, naming the roles that would do.
    pub fn problem(&self) -> Problem {
        let named =
            |qualifying: &[Role]| Member::List(qualifying.iter().map(Member::text).collect());
        let problem = Problem::new(ProblemCode::Forbidden);
        match self {
            Forbidden::NoRole { qualifying } => problem
                .say("No role held allows this request.")
                .with("roles", named(qualifying)),
            Forbidden::HumanOnly { qualifying } => problem
                .say("Only a human may make this request.")
                .with("roles", named(qualifying)),
            Forbidden::NotCreator { plan } => problem
                .say("As a publisher, only the creator of plan ")
                .name(plan)
                .say(" may cancel it.")
                .with("roles", named(&CANCELLATION_ROLES))
                .naming("plan", plan),
        }
    }
}

/// The role an act is recorded under: the first of `allowed`, in its order, that the
/// principal holds (PA choice 17.20).
pub fn authorise<R: Rules>(
    rules: &R,
    kind: PrincipalKind,
    held: &Roles,
    allowed: &[Role],
    human_only: bool,
) -> Result<Role, Forbidden> {
    let human = kind == PrincipalKind::Human;
    if !rules.holds(Rule::HumanOnly, !human_only || human) {
        return Err(Forbidden::HumanOnly {
            qualifying: allowed.to_vec(),
        });
    }
    let qualifying = allowed.iter().copied().find(|role| held.contains(role));
    let fallback = held.iter().next().copied();
    match qualifying {
        Some(role) => Ok(role),
        None => match fallback {
            Some(role) if rules.holds(Rule::RoleQualifies, false) => Ok(role),
            _ => Err(Forbidden::NoRole {
                qualifying: allowed.to_vec(),
            }),
        },
    }
}

/// The acting principal was revoked: 403 `identity-revoked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActorRevoked;

/// The check an act repeats inside its transaction, with the principal's row read FOR
/// SHARE (PA §10.3): an approval, an approval's revocation, a cancellation, a mark.
pub fn actor_stands<R: Rules>(rules: &R, revoked: bool) -> Result<(), ActorRevoked> {
    if rules.holds(Rule::ActorNotRevoked, !revoked) {
        Ok(())
    } else {
        Err(ActorRevoked)
    }
}

/// The roles a plan's cancellation is recorded under, in order; `publisher` counts for
/// the plan's creator alone.
pub const CANCELLATION_ROLES: [Role; 3] = [Role::Publisher, Role::Approver, Role::RecoveryAdmin];

/// Who cancels a plan, and as what (PA §10.3): its creator under `publisher`, anyone
/// else under the roles that follow.
pub fn cancelling_role<R: Rules>(
    rules: &R,
    plan: PlanId,
    creator: &Signed,
    principal: PrincipalId,
    held: &Roles,
) -> Result<Role, Forbidden> {
    let created = rules.holds(Rule::CancelledByCreator, creator.principal == principal);
    let qualifies = |role: &Role| {
        held.contains(role)
            && match role {
                Role::Publisher => created,
                Role::Viewer | Role::Author | Role::Approver | Role::RecoveryAdmin => true,
            }
    };
    match CANCELLATION_ROLES.iter().find(|role| qualifies(role)) {
        Some(role) => Ok(*role),
        None if held.contains(&Role::Publisher) => Err(Forbidden::NotCreator { plan }),
        None => Err(Forbidden::NoRole {
            qualifying: CANCELLATION_ROLES.to_vec(),
        }),
    }
}

/// Why an approval is of the approver's own work, in the order of PA §10.5's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SelfApproval {
    CreatedPlan,
    Published,
    AuthoredChange,
    AuthoredReused,
    OwnedAutomation,
}

impl SelfApproval {
    pub const ALL: [SelfApproval; 5] = [
        SelfApproval::CreatedPlan,
        SelfApproval::Published,
        SelfApproval::AuthoredChange,
        SelfApproval::AuthoredReused,
        SelfApproval::OwnedAutomation,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            SelfApproval::CreatedPlan => "created-plan",
            SelfApproval::Published => "published",
            SelfApproval::AuthoredChange => "authored-change",
            SelfApproval::AuthoredReused => "authored-reused",
            SelfApproval::OwnedAutomation => "owned-automation",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// A revision the plan's release contains: one of its sources', or the import base
/// revision of a machine it covers (PA choice 17.39).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contained {
    pub author: PrincipalId,
    /// Whether an entry of the release's own draft names it.
    pub introduced: bool,
}

/// What an approval's mark is derived from.
#[derive(Clone, Debug)]
pub struct Origins<'a> {
    pub plan_creator: PrincipalId,
    pub publisher: PrincipalId,
    pub contained: &'a [Contained],
    /// The responsible human of each service identity among the above.
    pub responsible: &'a BTreeMap<PrincipalId, PrincipalId>,
}

/// Every reason that holds, in the table's order; none is no self-approval. A mark never
/// blocks an approval.
pub fn self_approval<R: Rules>(
    rules: &R,
    approver: PrincipalId,
    origins: &Origins<'_>,
) -> Vec<SelfApproval> {
    let authored = |introduced: bool| {
        origins
            .contained
            .iter()
            .any(|revision| revision.author == approver && revision.introduced == introduced)
    };
    let involved: BTreeSet<PrincipalId> = [origins.plan_creator, origins.publisher]
        .into_iter()
        .chain(origins.contained.iter().map(|revision| revision.author))
        .collect();
    let owned = involved
        .iter()
        .any(|principal| origins.responsible.get(principal) == Some(&approver));
    let holds = |reason: SelfApproval| match reason {
        SelfApproval::CreatedPlan => origins.plan_creator == approver,
        SelfApproval::Published => origins.publisher == approver,
        SelfApproval::AuthoredChange => authored(true),
        SelfApproval::AuthoredReused => authored(false),
        SelfApproval::OwnedAutomation => owned,
    };
    // A dropped rule leaves the mark out.
    if !rules.enforced(Rule::SelfApprovalMarked) {
        return Vec::new();
    }
    SelfApproval::ALL
        .into_iter()
        .filter(|reason| holds(*reason))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    fn idn(bits: u128) -> PrincipalId {
        PrincipalId::from_bits(bits)
    }

    fn held(roles: &[Role]) -> Roles {
        roles.iter().copied().collect()
    }

    #[test]
    fn an_act_is_recorded_under_the_first_qualifying_role_of_the_list() {
        let roles = held(&[Role::RecoveryAdmin, Role::Author, Role::Approver]);
        let allowed = [Role::Approver, Role::RecoveryAdmin];
        assert_eq!(
            authorise(&Enforced, PrincipalKind::Human, &roles, &allowed, false),
            Ok(Role::Approver)
        );
        let allowed = [Role::RecoveryAdmin, Role::Approver];
        assert_eq!(
            authorise(&Enforced, PrincipalKind::Human, &roles, &allowed, false),
            Ok(Role::RecoveryAdmin)
        );
    }

    #[test]
    fn automation_is_refused_where_only_a_human_may_act_whatever_it_holds() {
        let roles = held(&[Role::Author]);
        let refused = authorise(
            &Enforced,
            PrincipalKind::Service,
            &roles,
            &[Role::Author],
            true,
        );
        assert!(matches!(refused, Err(Forbidden::HumanOnly { .. })));
        let control = Without(&[Rule::HumanOnly]);
        assert_eq!(
            authorise(
                &control,
                PrincipalKind::Service,
                &roles,
                &[Role::Author],
                true
            ),
            Ok(Role::Author)
        );
    }

    #[test]
    fn a_principal_without_a_qualifying_role_is_told_which_would_do() {
        let roles = held(&[Role::Viewer]);
        let allowed = [Role::Approver, Role::RecoveryAdmin];
        assert_eq!(
            authorise(&Enforced, PrincipalKind::Human, &roles, &allowed, false),
            Err(Forbidden::NoRole {
                qualifying: allowed.to_vec()
            })
        );
        let control = Without(&[Rule::RoleQualifies]);
        assert!(authorise(&control, PrincipalKind::Human, &roles, &allowed, false).is_ok());
    }

    #[test]
    fn a_plan_is_cancelled_as_publisher_by_its_creator_alone() {
        let plan = PlanId::from_bits(1);
        let creator = Signed {
            principal: idn(1),
            role: Role::Publisher,
        };
        let both = held(&[Role::Publisher, Role::Approver]);
        let only = held(&[Role::Publisher]);
        let role = |principal, roles| cancelling_role(&Enforced, plan, &creator, principal, roles);
        assert_eq!(role(idn(1), &both), Ok(Role::Publisher));
        assert_eq!(role(idn(2), &both), Ok(Role::Approver));
        assert_eq!(role(idn(2), &only), Err(Forbidden::NotCreator { plan }));
        assert!(matches!(
            role(idn(1), &held(&[Role::Author])),
            Err(Forbidden::NoRole { .. })
        ));
        let control = Without(&[Rule::CancelledByCreator]);
        assert!(cancelling_role(&control, plan, &creator, idn(2), &only).is_ok());
    }

    #[test]
    fn a_revoked_identity_acts_no_more() {
        assert_eq!(actor_stands(&Enforced, false), Ok(()));
        assert_eq!(actor_stands(&Enforced, true), Err(ActorRevoked));
        assert_eq!(
            actor_stands(&Without(&[Rule::ActorNotRevoked]), true),
            Ok(())
        );
    }

    // covers-part: PA-AUTH-7 (the five reasons and their order, as decided)
    #[test]
    fn every_reason_of_a_self_approval_is_named_in_the_tables_order() {
        let (human, robot, other) = (idn(1), idn(2), idn(3));
        let responsible = BTreeMap::from([(robot, human)]);
        let contained = [
            Contained {
                author: robot,
                introduced: true,
            },
            Contained {
                author: human,
                introduced: false,
            },
            Contained {
                author: human,
                introduced: true,
            },
        ];
        let origins = Origins {
            plan_creator: human,
            publisher: human,
            contained: &contained,
            responsible: &responsible,
        };
        assert_eq!(
            self_approval(&Enforced, human, &origins),
            SelfApproval::ALL.to_vec()
        );
        assert_eq!(self_approval(&Enforced, other, &origins), Vec::new());
        assert_eq!(
            self_approval(&Without(&[Rule::SelfApprovalMarked]), human, &origins),
            Vec::new()
        );
    }

    #[test]
    fn each_reason_holds_alone() {
        let (human, robot, other) = (idn(1), idn(2), idn(3));
        let responsible = BTreeMap::from([(robot, human)]);
        let authored = |author, introduced| [Contained { author, introduced }];
        let cases = [
            (
                human,
                other,
                authored(other, true),
                SelfApproval::CreatedPlan,
            ),
            (other, human, authored(other, true), SelfApproval::Published),
            (
                other,
                other,
                authored(human, true),
                SelfApproval::AuthoredChange,
            ),
            (
                other,
                other,
                authored(human, false),
                SelfApproval::AuthoredReused,
            ),
            (
                robot,
                other,
                authored(other, true),
                SelfApproval::OwnedAutomation,
            ),
            (
                other,
                robot,
                authored(other, true),
                SelfApproval::OwnedAutomation,
            ),
            (
                other,
                other,
                authored(robot, false),
                SelfApproval::OwnedAutomation,
            ),
        ];
        for (plan_creator, publisher, contained, reason) in cases {
            let origins = Origins {
                plan_creator,
                publisher,
                contained: &contained,
                responsible: &responsible,
            };
            assert_eq!(self_approval(&Enforced, human, &origins), vec![reason]);
        }
    }
}
