//! The route table against PA §9.2, transcribed here a second time.

use std::collections::BTreeSet;

use crate::bodies::common::Role;
use crate::routes::{self, Access, RouteId, Start};

/// Method, path, roles (`any`, `credential`, `-` or their initials in order), then
/// flags: `h` human only, `m` If-Match, `k` keyed fingerprint, `n` not yet served.
const CONTRACT: &str = "
GET /livez - .
GET /api/v1/openapi.json any .
GET /api/v1/clusters any .
GET /api/v1/clusters/{} any .
GET /api/v1/machines any .
GET /api/v1/machines/{} any .
GET /api/v1/machines/{}/observations any .
GET /api/v1/machines/{}/timeline any .
GET /api/v1/fragments any .
GET /api/v1/fragments/{} any .
GET /api/v1/fragments/{}/revisions any .
GET /api/v1/fragment-revisions/{} any .
GET /api/v1/profiles any .
GET /api/v1/profiles/{} any .
GET /api/v1/profiles/{}/revisions any .
GET /api/v1/profile-revisions/{} any .
GET /api/v1/assignments any .
GET /api/v1/assignments/{} any .
GET /api/v1/assignments/{}/revisions any .
GET /api/v1/assignment-revisions/{} any .
GET /api/v1/drafts any .
GET /api/v1/drafts/{} any .
GET /api/v1/ingestions any .
GET /api/v1/ingestions/{} any .
GET /api/v1/releases any .
GET /api/v1/releases/{} any .
GET /api/v1/releases/{}/machines/{}/review any .
GET /api/v1/plans any .
GET /api/v1/plans/{} any .
GET /api/v1/approvals/{} any .
GET /api/v1/operations any .
GET /api/v1/operations/{} any .
GET /api/v1/operations/{}/events any .
GET /api/v1/acts any .
GET /api/v1/recovery any .
GET /api/v1/dependencies any n
GET /api/v1/dependencies/{} any n
GET /api/v1/dependencies/{}/releases any n
GET /api/v1/dependencies/{}/alerts any n
GET /api/v1/dependency-alerts any n
GET /api/v1/identity credential .
GET /api/v1/principals any n
GET /api/v1/server any .
GET /api/v1/ingestions/{}/review a hn
POST /api/v1/ingestions a hmk
POST /api/v1/ingestions/{}/marks a hkn
POST /api/v1/ingestions/{}/continuations a hn
POST /api/v1/ingestions/{}/takeovers a h
POST /api/v1/ingestions/{}/abandonments a h
POST /api/v1/clusters a h
POST /api/v1/machines a h
POST /api/v1/machines/{}/talos-endpoints a h
POST /api/v1/drafts a .
PUT /api/v1/drafts/{}/fragments/{} a mk
DELETE /api/v1/drafts/{}/fragments/{} a m
PUT /api/v1/drafts/{}/profiles/{} a m
DELETE /api/v1/drafts/{}/profiles/{} a m
PUT /api/v1/drafts/{}/assignments/{} a m
DELETE /api/v1/drafts/{}/assignments/{} a m
POST /api/v1/drafts/{}/discard a m
POST /api/v1/drafts/{}/publications p m
POST /api/v1/plans p .
POST /api/v1/plans/{}/cancellations p,A,r n
POST /api/v1/plans/{}/approvals A h
POST /api/v1/approvals/{}/revocations A,r n
POST /api/v1/machines/{}/freezes a,p,A,r n
POST /api/v1/machines/{}/unfreezes A n
POST /api/v1/recovery/entries r hn
POST /api/v1/recovery/exits r hn
POST /api/v1/recovery/scopes/{}/marks r hn
POST /api/v1/recovery/scopes/{}/releases r hn
POST /api/v1/recovery/accountings r hn
POST /api/v1/operations/{}/attempts/{}/accountings r h
POST /api/v1/operations/{}/takeovers r h
POST /api/v1/operations/{}/resolutions r hn
POST /api/v1/identity-revocations r h
";

fn initials(access: Access) -> String {
    match access {
        Access::Anonymous => "-".to_owned(),
        Access::Credential => "credential".to_owned(),
        Access::AnyRole => "any".to_owned(),
        Access::Roles(roles) => roles
            .iter()
            .map(|role| match role {
                Role::Viewer => "v",
                Role::Author => "a",
                Role::Publisher => "p",
                Role::Approver => "A",
                Role::RecoveryAdmin => "r",
            })
            .collect::<Vec<_>>()
            .join(","),
    }
}

fn line(route: &routes::Route) -> String {
    let path: Vec<&str> = route
        .path
        .split('/')
        .map(|part| if part.starts_with('{') { "{}" } else { part })
        .collect();
    let flags: String = [
        (route.human_only, 'h'),
        (route.if_match, 'm'),
        (route.keyed_fingerprint, 'k'),
        (!route.implemented, 'n'),
    ]
    .into_iter()
    .filter_map(|(set, flag)| set.then_some(flag))
    .collect();
    let flags = if flags.is_empty() { "." } else { &flags };
    format!(
        "{} {} {} {flags}",
        route.method.as_str(),
        path.join("/"),
        initials(route.access)
    )
}

// covers-part: PA-API-1 (the table has every route with roles, human-only, If-Match)
#[test]
fn the_table_is_the_contracts_list_and_nothing_more() {
    let table: BTreeSet<String> = routes::all().map(line).collect();
    let contract: BTreeSet<String> = CONTRACT.trim().lines().map(str::to_owned).collect();
    let missing: Vec<_> = contract.difference(&table).collect();
    let extra: Vec<_> = table.difference(&contract).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "missing {missing:?}, extra {extra:?}"
    );
    assert_eq!(table.len(), routes::all().count());
}

#[test]
fn every_identifier_has_one_row_and_its_own_operation_id() {
    let ids: BTreeSet<_> = routes::all().map(|route| route.id).collect();
    let names: BTreeSet<_> = ids.iter().map(|id| id.operation_id()).collect();
    assert_eq!(ids.len(), routes::all().count());
    assert_eq!(names.len(), ids.len());
    assert_eq!(RouteId::PutDraftFragment.operation_id(), "putDraftFragment");
    assert!(ids.iter().all(|id| id.route().is_some()));
    assert_eq!(RouteId::ReleaseScope as usize + 1, ids.len());
}

#[test]
fn every_write_but_a_removal_takes_a_body_and_no_read_does() {
    for route in routes::all() {
        let removal = route.method == routes::Verb::Delete;
        assert_eq!(
            route.request.is_some(),
            route.mutates() && !removal,
            "{:?}",
            route.id
        );
        assert!(!route.if_match || route.mutates(), "{:?}", route.id);
        assert!(!route.keyed_fingerprint || route.request.is_some());
    }
}

#[test]
fn a_recovery_start_serves_liveness_and_entry_before_the_entry_and_refuses_plans_after() {
    let of = |start: Start| -> Vec<RouteId> {
        routes::all()
            .filter(|route| route.start == start)
            .map(|route| route.id)
            .collect()
    };
    assert_eq!(of(Start::Any), [RouteId::Liveness]);
    assert_eq!(of(Start::RecoveryStart), [RouteId::EnterRecovery]);
    assert_eq!(
        of(Start::Normal),
        [
            RouteId::UnfreezeMachine,
            RouteId::CreatePlan,
            RouteId::ApprovePlan
        ]
    );
}

#[test]
fn automation_never_meets_a_route_of_the_roles_it_cannot_hold_alone() {
    for route in routes::all() {
        let only = route.access.roles();
        let human_role = |role: &Role| matches!(role, Role::Approver | Role::RecoveryAdmin);
        if !only.is_empty() && only.iter().all(human_role) && route.implemented {
            assert!(route.human_only, "{:?}", route.id);
        }
    }
}
