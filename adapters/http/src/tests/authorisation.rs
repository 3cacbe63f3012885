//! Every route against every role and kind of principal.

use bronzeward_api::routes::{self, Access, RouteId};
use bronzeward_core::id::EpochId;
use bronzeward_core::installation::StartMode;
use bronzeward_core::principal::{PrincipalKind, Role, Roles};
use bronzeward_core::problem::{Member, ProblemCode};
use bronzeward_core::rules::{Enforced, Rule, Rules};

use super::route;
use crate::authorise::{authorise, implemented, role, serves};

#[derive(Clone, Copy)]
struct Without(&'static [Rule]);

impl Rules for Without {
    fn holds(&self, rule: Rule, condition: bool) -> bool {
        condition || self.0.contains(&rule)
    }
}

const KINDS: [PrincipalKind; 2] = [PrincipalKind::Human, PrincipalKind::Service];

// covers-part: PA-AUTH-4 (the check each request passes, over the whole table)
#[test]
fn each_route_refuses_each_role_it_does_not_list_and_automation_where_a_human_must_act() {
    for route in routes::all() {
        let listed: Vec<Role> = route.access.roles().iter().map(|one| role(*one)).collect();
        for kind in KINDS {
            for held in Role::ALL {
                let outcome = authorise(&Enforced, route, kind, &Roles::from([held]));
                let open = matches!(route.access, Access::Anonymous | Access::Credential);
                let human = !route.human_only || kind == PrincipalKind::Human;
                if open {
                    assert_eq!(outcome, Ok(None));
                } else if listed.contains(&held) && human {
                    assert_eq!(outcome, Ok(Some(held)), "{:?}", route.id);
                } else {
                    let problem = outcome.unwrap_err();
                    assert_eq!(problem.code, ProblemCode::Forbidden);
                    let names = Member::List(listed.iter().map(Member::text).collect());
                    assert_eq!(problem.members["roles"], names, "{:?}", route.id);
                    let rule: &'static [Rule] = if human {
                        &[Rule::RoleQualifies]
                    } else {
                        &[Rule::HumanOnly, Rule::RoleQualifies]
                    };
                    let let_through = authorise(&Without(rule), route, kind, &Roles::from([held]));
                    assert_eq!(let_through, Ok(Some(held)), "{:?}", route.id);
                }
            }
            let none = authorise(&Enforced, route, kind, &Roles::new());
            let open = matches!(route.access, Access::Anonymous | Access::Credential);
            assert_eq!(none.is_ok(), open, "{:?}", route.id);
        }
    }
}

#[test]
fn an_act_is_recorded_under_the_first_listed_role_that_is_held() {
    let cancel = route(RouteId::CancelPlan);
    let held = Roles::from([Role::RecoveryAdmin, Role::Approver, Role::Viewer]);
    let role = authorise(&Enforced, cancel, PrincipalKind::Human, &held);
    assert_eq!(role, Ok(Some(Role::Approver)));
}

#[test]
fn a_recovery_start_serves_what_its_stage_allows() {
    let started_in = EpochId::from_bits(1);
    let before = StartMode::Recovery {
        started_in,
        entered: None,
    };
    let after = StartMode::Recovery {
        started_in,
        entered: Some(EpochId::from_bits(2)),
    };
    let code = |id: RouteId, start: StartMode| {
        serves(&Enforced, route(id), start)
            .err()
            .map(|problem| problem.code)
    };
    let active = Some(ProblemCode::RecoveryModeActive);
    for each in routes::all() {
        let id = each.id;
        let entry = id == RouteId::EnterRecovery;
        let plans = matches!(
            id,
            RouteId::CreatePlan | RouteId::ApprovePlan | RouteId::UnfreezeMachine
        );
        let normal = entry.then_some(ProblemCode::Conflict);
        assert_eq!(code(id, StartMode::Normal), normal, "{id:?}");
        let liveness = id == RouteId::Liveness;
        assert_eq!(
            code(id, before),
            if entry || liveness { None } else { active },
            "{id:?}"
        );
        assert_eq!(code(id, after), if plans { active } else { None }, "{id:?}");
    }
    // A refusal by the flag concerns no scope and names none (PA §9.4).
    let problem = serves(&Enforced, route(RouteId::ReadServer), before).unwrap_err();
    assert!(problem.members.is_empty());
    let control = serves(
        &Without(&[Rule::RecoveryStartGate]),
        route(RouteId::ReadServer),
        before,
    );
    assert_eq!(control, Ok(()));
}

#[test]
fn a_route_without_a_handler_answers_501() {
    assert_eq!(implemented(route(RouteId::ListPlans)), Ok(()));
    let problem = implemented(route(RouteId::ReadPrincipals)).unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotImplemented);
}
