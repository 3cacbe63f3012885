//! The problem table.

use std::collections::BTreeSet;

use bronzeward_core::problem::{Member, Problem, ProblemCode};

use crate::problem::{document, status_and_title};

/// PA §9.4's table, transcribed a second time.
const TABLE: &str = "
400 invalid-request
400 cursor-invalid
401 unauthenticated
403 forbidden
403 identity-revoked
404 not-found
409 stale-input
409 conflict
409 machine-identity-mismatch
409 ingestion-abandoned
409 recovery-mode-entered
409 scope-busy
409 recovery-mode-active
412 precondition-failed
412 epoch-mismatch
422 validation-failed
422 idempotency-key-reused
428 precondition-required
428 idempotency-key-required
500 internal-error
501 not-implemented
503 dependency-unavailable
503 talos-access-unavailable
503 transient-conflict
503 epoch-superseded
503 schema-mismatch
";

// covers-part: PA-API-5 (status and code of every problem)
#[test]
fn every_code_has_the_contracts_status_and_a_title_of_its_own() {
    let ours: Vec<String> = ProblemCode::ALL
        .into_iter()
        .map(|code| format!("{} {code}", status_and_title(code).0.as_u16()))
        .collect();
    let contract: Vec<&str> = TABLE.trim().lines().collect();
    assert_eq!(ours, contract);
    let titles: BTreeSet<&str> = ProblemCode::ALL
        .into_iter()
        .map(|code| status_and_title(code).1)
        .collect();
    assert_eq!(titles.len(), contract.len());
    assert_eq!(
        status_and_title(ProblemCode::StaleInput).1,
        "An input changed after it was read"
    );
}

#[test]
fn a_document_has_rfc_9457s_members_and_the_codes_own_as_they_are() {
    let problem = Problem::new(ProblemCode::StaleInput)
        .say("Publication refused: ")
        .name(1)
        .say(" input(s) moved.")
        .with(
            "conflicts",
            Member::List(vec![Member::object([
                ("head", Member::text("frg_1")),
                ("expected", Member::Number(3)),
                ("actual", Member::text("absent")),
                ("known", Member::Bool(false)),
                ("none", Member::Null),
            ])]),
        );
    let document = serde_json::to_value(document(&problem, "op_1".to_owned())).unwrap();
    assert_eq!(
        document,
        serde_json::json!({
            "type": "urn:bronzeward:problem:stale-input",
            "title": "An input changed after it was read",
            "status": 409,
            "detail": "Publication refused: 1 input(s) moved.",
            "instance": "op_1",
            "conflicts": [{
                "head": "frg_1", "expected": 3, "actual": "absent", "known": false, "none": null,
            }],
        })
    );
}
