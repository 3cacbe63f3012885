//! Query parameters.

use bronzeward_api::routes::{self, RouteId};
use bronzeward_core::problem::ProblemCode;

use super::route;
use crate::query::{Query, read};

const MACHINE: &str = "mch_tqhcznunhyle4hnxru5hkt35uq";
const PRINCIPAL: &str = "idn_5u4k6llt7jsktfhcfv35xmdetu";

fn accepted(id: RouteId, query: &str) -> Query {
    read(route(id), Some(query)).unwrap()
}

fn refused(id: RouteId, query: &str) {
    let problem = read(route(id), Some(query))
        .err()
        .unwrap_or_else(|| panic!("accepted: {query}"));
    assert_eq!(problem.code, ProblemCode::InvalidRequest, "{query}");
    assert!(!format!("{problem:?}").contains("planted"), "{query}");
}

// covers-part: PA-API-3 (50 by default, 500 at most)
#[test]
fn a_page_has_fifty_items_unless_it_asks_for_1_to_500() {
    assert_eq!(accepted(RouteId::ListPlans, "").limit, 50);
    for limit in [1, 500] {
        assert_eq!(
            accepted(RouteId::ListPlans, &format!("limit={limit}")).limit,
            limit
        );
    }
    for limit in [
        "0",
        "501",
        "-1",
        "+5",
        "5.0",
        "1e2",
        "",
        "planted",
        "99999999999999999999",
        " 5",
        "5&limit=5",
    ] {
        refused(RouteId::ListPlans, &format!("limit={limit}"));
    }
    assert_eq!(
        accepted(RouteId::ListPlans, "cursor=abc").cursor.as_deref(),
        Some("abc")
    );
    refused(RouteId::ListPlans, "cursor=");
    refused(RouteId::ListPlans, "cursor=a&cursor=a");
}

// covers-part: PA-API-8 (what each list takes)
#[test]
fn a_list_takes_only_its_own_filters_each_at_most_once() {
    let query = accepted(
        RouteId::ListPlans,
        &format!("state=expired&machine={MACHINE}"),
    );
    assert_eq!(query.value("state"), Some("expired"));
    let filters: Vec<_> = query.filters().collect();
    assert_eq!(filters, [("machine", MACHINE), ("state", "expired")]);
    // An empty filter does not filter.
    assert_eq!(
        accepted(RouteId::ListPlans, "state=&machine=").value("state"),
        None
    );
    refused(RouteId::ListPlans, "state=completed");
    refused(RouteId::ListPlans, "state=planted");
    refused(RouteId::ListPlans, "machine=cl_oxbgrzprzpvnecj5ve3jht3dha");
    refused(RouteId::ListPlans, "state=expired&state=expired");
    refused(RouteId::ListPlans, "State=expired");
    refused(RouteId::ListPlans, "plan=pln_f645lvrsgsehfn6fuboigpcawy");
    let all = "plan=pln_f645lvrsgsehfn6fuboigpcawy&state=unresolved&kind=adopt";
    accepted(RouteId::ListOperations, &format!("{all}&machine={MACHINE}"));
    accepted(
        RouteId::ListIngestions,
        &format!("state=paused&machine={MACHINE}"),
    );
    accepted(
        RouteId::ListMachines,
        "cluster=cl_oxbgrzprzpvnecj5ve3jht3dha",
    );
}

// covers-part: PA-API-8 (any other parameter is 400 on every route)
#[test]
fn no_route_takes_a_parameter_it_does_not_list() {
    for route in routes::all() {
        for query in ["planted=planted", "planted", "=", "limit=5&planted=1"] {
            assert!(read(route, Some(query)).is_err(), "{:?} {query}", route.id);
        }
        if !route.paginated {
            assert!(read(route, Some("limit=5")).is_err(), "{:?}", route.id);
            assert!(read(route, Some("cursor=a")).is_err(), "{:?}", route.id);
        }
        let needs = route.id == RouteId::ReadPrincipals;
        assert_eq!(read(route, None).is_ok(), !needs, "{:?}", route.id);
    }
}

#[test]
fn an_order_is_one_of_two_and_never_empty() {
    assert_eq!(
        accepted(RouteId::ReadTimeline, "order=newest").value("order"),
        Some("newest")
    );
    assert_eq!(accepted(RouteId::ReadTimeline, "").value("order"), None);
    for query in [
        "order=",
        "order=planted",
        "order=Newest",
        "order=oldest&order=oldest",
    ] {
        refused(RouteId::ReadTimeline, query);
    }
}

// covers-part: PA-API-10 (1 to 100 identifiers, distinct, in the order first given)
#[test]
fn principals_are_asked_for_by_1_to_100_identifiers() {
    let other = "idn_6woutisn7uensexh3kk2qlz6ma";
    let query = format!("id={other}&id={PRINCIPAL}&id={other}");
    assert_eq!(
        accepted(RouteId::ReadPrincipals, &query).identifiers,
        [other, PRINCIPAL]
    );
    let many = |count: usize| vec![format!("id={PRINCIPAL}"); count].join("&");
    accepted(RouteId::ReadPrincipals, &many(100));
    refused(RouteId::ReadPrincipals, &many(101));
    refused(RouteId::ReadPrincipals, "");
    refused(RouteId::ReadPrincipals, "id=");
    refused(RouteId::ReadPrincipals, "id=planted");
    refused(RouteId::ReadPrincipals, &format!("id={MACHINE}"));
    refused(RouteId::ReadPrincipals, &format!("id={PRINCIPAL}&limit=5"));
}

#[test]
fn percent_encoding_is_read_and_a_broken_one_is_only_text() {
    assert_eq!(
        accepted(RouteId::ListPlans, "st%61te=exp%69red").value("state"),
        Some("expired")
    );
    refused(RouteId::ListPlans, "state=%zz");
    refused(RouteId::ListPlans, "state=%ff");
}
