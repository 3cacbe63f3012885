//! The OpenAPI document against the committed file and against the table.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::openapi;
use crate::routes::{self, Route, RouteId};

const COMMITTED: &str = include_str!("../../openapi.yaml");

fn committed() -> Value {
    serde_saphyr::from_str(COMMITTED).unwrap()
}

// covers-part: PA-API-1 (the committed document is the generated one)
#[test]
fn the_committed_document_is_the_generated_one() {
    assert!(
        COMMITTED == openapi::yaml(),
        "adapters/api/openapi.yaml is stale: print it again with the openapi example"
    );
    assert_eq!(committed(), openapi::document());
}

#[test]
fn the_document_is_openapi_3_1_and_every_reference_in_it_resolves() {
    let document = committed();
    assert_eq!(document["openapi"], "3.1.0");
    let mut targets = Vec::new();
    references(&document, &mut targets);
    assert!(targets.len() > 100);
    for target in targets {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{target}");
    }
    assert_eq!(openapi::clashes(), Vec::<String>::new());
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("$ref", Value::String(target)) => found.push(target.clone()),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn names(operation: &Value, place: &str) -> BTreeSet<String> {
    operation["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|parameter| parameter["in"] == place)
        .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
        .collect()
}

/// What the document says of an operation, in the table's own terms.
fn described(operation: &Value) -> BTreeMap<&'static str, Value> {
    let headers = names(operation, "header");
    let success = operation["responses"]
        .as_object()
        .unwrap()
        .keys()
        .find(|status| status.starts_with('2'))
        .cloned();
    BTreeMap::from([
        ("roles", operation["x-bronzeward-roles"].clone()),
        ("human", operation["x-bronzeward-human-only"].clone()),
        ("if-match", operation["x-bronzeward-if-match"].clone()),
        ("if-match-parameter", headers.contains("If-Match").into()),
        ("start", operation["x-bronzeward-start-mode"].clone()),
        ("implemented", operation["x-bronzeward-implemented"].clone()),
        ("key", headers.contains("Idempotency-Key").into()),
        ("body", operation["requestBody"].is_object().into()),
        ("path", names(operation, "path").into_iter().collect()),
        ("query", names(operation, "query").into_iter().collect()),
        ("success", success.into()),
        ("501", operation["responses"]["501"].is_object().into()),
    ])
}

fn stated(route: &Route) -> BTreeMap<&'static str, Value> {
    let roles: Vec<&str> = route
        .access
        .roles()
        .iter()
        .map(|role| role.as_str())
        .collect();
    let mut query: BTreeSet<&str> = route.parameters.iter().map(|one| one.name()).collect();
    if route.paginated {
        query.extend(["limit", "cursor"]);
    }
    let path: BTreeSet<&str> = route.path_parameters().collect();
    // Served, but for a review that it can be asked for with.
    let in_part = route.id == RouteId::StartIngestion;
    BTreeMap::from([
        ("roles", roles.into()),
        ("human", route.human_only.into()),
        ("if-match", route.if_match.into()),
        ("if-match-parameter", route.if_match.into()),
        ("start", route.start.as_str().into()),
        ("implemented", route.implemented.into()),
        ("key", route.mutates().into()),
        ("body", route.request.is_some().into()),
        ("path", path.into_iter().collect()),
        ("query", query.into_iter().collect()),
        ("success", route.success.status.as_str().into()),
        ("501", (!route.implemented || in_part).into()),
    ])
}

// covers: PA-API-1
#[test]
fn the_document_and_the_table_agree_both_ways() {
    let document = committed();
    let mut described_routes = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            described_routes.insert((path.clone(), method.to_uppercase()), operation);
        }
    }
    for route in routes::all() {
        let key = (route.path.to_owned(), route.method.as_str().to_owned());
        let operation = described_routes
            .remove(&key)
            .unwrap_or_else(|| panic!("{key:?} is not described"));
        assert_eq!(described(operation), stated(route), "{key:?}");
        assert_eq!(operation["operationId"], route.id.operation_id());
    }
    assert!(
        described_routes.is_empty(),
        "not in the table: {described_routes:?}"
    );
}

/// Member names that request schemas declare, all levels.
fn request_members(document: &Value) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut members = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            references(&operation["requestBody"], &mut open);
        }
    }
    while let Some(target) = open.pop() {
        if !seen.insert(target.clone()) {
            continue;
        }
        let schema = document.pointer(&target[1..]).unwrap();
        if let Some(properties) = schema["properties"].as_object() {
            members.extend(properties.keys().cloned());
        }
        references(schema, &mut open);
    }
    members
}

#[test]
fn the_names_a_refusal_may_quote_are_those_requests_declare() {
    let quoted: BTreeSet<String> = crate::bodies::MEMBERS
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    assert!(crate::bodies::MEMBERS.is_sorted());
    assert_eq!(quoted, request_members(&committed()));
}

// covers-part: PA-API-2 (every described request object is closed)
#[test]
fn every_object_of_a_request_refuses_unknown_members_in_its_schema_too() {
    let document = committed();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let Some(properties) = schema["properties"].as_object() else {
            continue;
        };
        let of_request = document["paths"].as_object().unwrap().values().any(|item| {
            item.as_object().unwrap().values().any(|operation| {
                operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
                    == format!("#/components/schemas/{name}")
            })
        });
        if of_request {
            assert_eq!(schema["additionalProperties"], false, "{name}");
            assert!(!properties.is_empty() || name == "Nothing");
        }
    }
}

// covers-part: PA-API-13 (no described member of an answer is a digest, ciphertext or path)
#[test]
fn no_answer_declares_a_member_the_contract_keeps_back() {
    let document = committed();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let Some(properties) = schema["properties"].as_object() else {
            continue;
        };
        for member in properties.keys() {
            let lower = member.to_lowercase();
            // A provenance record's digest is of sanitized source text (PA §9.3).
            let allowed = matches!(
                (name.as_str(), member.as_str()),
                ("ProvenanceSource" | "Overriding", "digest")
            );
            let kept_back = [
                "digest",
                "cipher",
                "baseline",
                "payload",
                "generationpath",
                "secret",
            ]
            .iter()
            .any(|word| lower.contains(word));
            let named = matches!(
                (name.as_str(), member.as_str()),
                ("Plan", "baselineRevision") | ("PlanEvidence", "baseline")
            );
            assert!(!kept_back || allowed || named, "{name}.{member}");
        }
    }
}
