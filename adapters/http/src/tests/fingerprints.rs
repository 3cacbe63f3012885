//! What makes two requests one.

use std::collections::BTreeMap;

use bronzeward_api::Json;
use bronzeward_api::routes::RouteId;
use proptest::prelude::*;
use serde_json::Value;

use super::route;
use crate::fingerprint::FingerprintInput;

const DRAFT: &str = "drf_1";

fn input(id: RouteId, name: &str, if_match: Option<&str>, body: Option<&str>) -> Vec<u8> {
    let json = body.map(|body| Json::read(body.as_bytes()).unwrap());
    let path = BTreeMap::from([("draft", DRAFT), ("name", name)]);
    let input = FingerprintInput::new(route(id), &path, if_match, json.as_ref()).unwrap();
    input.into_bytes()
}

const BODY: &str = r#"{"b":3600,"a":["x",1.5,null]}"#;

// covers-part: PA-IDEM-3 (what the fingerprint covers and what it does not)
#[test]
fn member_order_spacing_escapes_and_number_spelling_do_not_change_a_request() {
    let put = |body: &str| input(RouteId::PutDraftProfile, "n", Some("\"1-a\""), Some(body));
    let one = put(BODY);
    for same in [
        r#"{"a":["x",1.5,null],"b":3600}"#,
        " { \"b\" : 36e2 ,\n\"a\":[\"\\u0078\",15e-1,null] } ",
        r#"{"b":3600.0,"a":["x",1.50,null]}"#,
    ] {
        assert_eq!(put(same), one, "{same}");
    }
    assert_eq!(
        String::from_utf8(one).unwrap(),
        r#"["PUT","/api/v1/drafts/{draft}/profiles/{name}",{"draft":"drf_1","name":"n"},"\"1-a\"",{"a":["x",1.5,null],"b":3600}]"#
    );
}

// covers-part: PA-IDEM-3 (method, path, If-Match and body are each part of it)
#[test]
fn another_method_path_parameter_if_match_or_body_is_another_request() {
    let tag = Some("\"1-a\"");
    let all = [
        input(RouteId::PutDraftProfile, "n", tag, Some(BODY)),
        input(RouteId::PutDraftAssignment, "n", tag, Some(BODY)),
        input(RouteId::PutDraftProfile, "m", tag, Some(BODY)),
        input(RouteId::PutDraftProfile, "n", Some("\"2-a\""), Some(BODY)),
        input(RouteId::PutDraftProfile, "n", None, Some(BODY)),
        input(
            RouteId::PutDraftProfile,
            "n",
            tag,
            Some(r#"{"a":["x",1.5],"b":3600}"#),
        ),
        input(
            RouteId::PutDraftProfile,
            "n",
            tag,
            Some(r#"{"a":["x",1.5,null],"b":"3600"}"#),
        ),
        input(RouteId::PutDraftProfile, "n", tag, Some("null")),
        input(RouteId::RemoveDraftProfile, "n", tag, None),
    ];
    let distinct: std::collections::BTreeSet<&Vec<u8>> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn only_a_route_without_unextracted_text_hashes_its_input_here() {
    let json = Json::read(b"{}").unwrap();
    let of = |id: RouteId| {
        let input = FingerprintInput::new(route(id), &BTreeMap::new(), None, Some(&json)).unwrap();
        input.unkeyed()
    };
    assert!(of(RouteId::CreateDraft).is_some_and(|print| print.key.is_none()));
    for keyed in [
        RouteId::PutDraftFragment,
        RouteId::StartIngestion,
        RouteId::MarkIngestion,
    ] {
        assert_eq!(of(keyed), None);
    }
    assert_ne!(of(RouteId::CreateDraft), of(RouteId::CreatePlan));
}

fn any_body() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..9_007_199_254_740_991).prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map("\\PC{0,4}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn two_bodies_are_one_request_exactly_when_they_are_one_value(a in any_body(), b in any_body()) {
        let print = |body: &Value| {
            input(RouteId::PutDraftProfile, "n", None, Some(&serde_json::to_string_pretty(body).unwrap()))
        };
        prop_assert_eq!(print(&a) == print(&b), a == b);
        let again: Value = serde_json::from_slice(&print(&a)).unwrap();
        prop_assert_eq!(&again[4], &a);
    }
}
