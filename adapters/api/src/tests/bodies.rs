//! Strict reading of request bodies (PA §9.1, choice §17.14).

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bodies::common::Nothing;
use crate::bodies::draft::{CreateDraft, PutAssignment, PutFragment};
use crate::bodies::identity::RevokeIdentity;
use crate::bodies::ingestion::StartIngestion;
use crate::bodies::machine::CreateMachine;
use crate::bodies::operation::{AccountAttempt, TakeOverOperation};
use crate::bodies::plan::CreatePlan;
use crate::bodies::recovery::{AccountScopes, EnterRecovery};
use crate::json::Checked;
use crate::{BodyError, Json, MAX_BODY_BYTES, parse_body};

const CLUSTER: &str = "cl_oxbgrzprzpvnecj5ve3jht3dha";
const MACHINE: &str = "mch_tqhcznunhyle4hnxru5hkt35uq";
const DRAFT: &str = "drf_2rmpezm5rfx47azsgmp66z457a";
const RELEASE: &str = "rel_fgqvcvz3ck7h7234ljgdbzsj6m";
const OBSERVATION: &str = "obs_aycy4h7xaoj2dvqjnyzjck2oka";

fn refusal<T: serde::de::DeserializeOwned + Checked>(text: &str) -> (String, &'static str) {
    match parse_body::<T>(text.as_bytes()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(BodyError { pointer, rule, .. }) => (pointer, rule),
    }
}

fn at(pointer: &str, rule: &'static str) -> (String, &'static str) {
    (pointer.to_owned(), rule)
}

fn draft_with(extra: &str) -> String {
    format!(r#"{{"cluster":"{CLUSTER}","title":"t"{extra}}}"#)
}

fn fragment_with(declarations: &str) -> String {
    format!(r#"{{"layer":"cluster","document":"d","declarations":{declarations}}}"#)
}

// covers: PA-API-2
#[test]
fn an_unknown_member_is_refused_at_every_level_and_its_name_is_not_repeated() {
    assert_eq!(
        refusal::<CreateDraft>(&draft_with(r#","hunter2":1"#)),
        at("", "unknown-member")
    );
    assert_eq!(
        refusal::<PutFragment>(&fragment_with(
            r#"{"references":{"a/b":{"kind":"string","version":1,"hunter2":1}}}"#
        )),
        at("/declarations/references/*", "unknown-member")
    );
    assert_eq!(
        refusal::<AccountScopes>(&format!(
            r#"{{"scopes":[{{"machine":"{MACHINE}","start":"{OBSERVATION}","end":"{OBSERVATION}"}},{{"machine":"{MACHINE}","start":"{OBSERVATION}","end":"{OBSERVATION}","x":1}}],"facts":{{}}}}"#
        )),
        at("/scopes/1", "unknown-member")
    );
    assert_eq!(refusal::<Nothing>(r#"{"a":1}"#), at("", "unknown-member"));
}

// covers: PA-API-2
#[test]
fn a_repeated_member_is_refused_at_every_level_and_in_maps() {
    assert_eq!(
        refusal::<CreateDraft>(&draft_with(r#","title":"u""#)),
        at("/title", "repeated-member")
    );
    assert_eq!(
        refusal::<PutFragment>(&fragment_with(
            r#"{"references":{"s/hunter2":{"kind":"string","version":1},"s/hunter2":{"kind":"string","version":1}}}"#
        )),
        at("/declarations/references/*", "repeated-member")
    );
    assert_eq!(
        refusal::<PutFragment>(&fragment_with(
            r#"{"references":{"a/b":{"kind":"string","version":1,"version":1}}}"#
        )),
        at("/declarations/references/*/version", "repeated-member")
    );
    // The escaped spelling of a name is the same name.
    assert_eq!(
        refusal::<CreateDraft>(&draft_with(r#","\u0074itle":"u""#)),
        at("/title", "repeated-member")
    );
}

// covers: PA-API-2
#[test]
fn a_differently_cased_member_is_refused_at_every_level() {
    assert_eq!(
        refusal::<CreateDraft>(&format!(r#"{{"Cluster":"{CLUSTER}","title":"t"}}"#)),
        at("/cluster", "member-case")
    );
    assert_eq!(
        refusal::<PutFragment>(&fragment_with(
            r#"{"references":{"a/b":{"kind":"string","Version":1}}}"#
        )),
        at("/declarations/references/*/version", "member-case")
    );
    assert_eq!(
        refusal::<CreatePlan>(&format!(
            r#"{{"releaseid":"{RELEASE}","machine":"{MACHINE}","operation":"adopt"}}"#
        )),
        at("/releaseId", "member-case")
    );
}

// covers: PA-API-2
#[test]
fn nul_and_lone_surrogates_are_refused_in_values_and_names() {
    for escape in [r"\u0000", "\u{0000}"] {
        let text = format!(r#"{{"cluster":"{CLUSTER}","title":"a{escape}b"}}"#);
        let (_, rule) = refusal::<CreateDraft>(&text);
        // A raw control character is not JSON at all.
        assert!(matches!(rule, "nul" | "malformed-json"), "{rule}");
    }
    assert_eq!(
        refusal::<CreateDraft>(&draft_with(r#","a\u0000":1"#)),
        at("/*", "nul")
    );
    for lone in [
        r"\ud800",
        r"\udc00",
        r"\ud800\ud800",
        r"\ud800x",
        r"\udbff\u0041",
    ] {
        assert_eq!(
            refusal::<CreateDraft>(&format!(r#"{{"cluster":"{CLUSTER}","title":"{lone}"}}"#)),
            at("/title", "lone-surrogate"),
            "{lone}"
        );
    }
    assert_eq!(
        refusal::<PutFragment>(&format!(
            r#"{{"layer":"cluster","document":"d","marks":["doc[0]/a","{}"]}}"#,
            r"\udfff"
        )),
        at("/marks/1", "lone-surrogate")
    );
    let pair = format!(r#"{{"cluster":"{CLUSTER}","title":"\ud83d\ude00"}}"#);
    let draft: CreateDraft = parse_body(pair.as_bytes()).unwrap();
    assert_eq!(draft.title.as_str(), "😀");
}

#[test]
fn what_is_no_body_is_refused_by_a_rule_of_its_own() {
    assert_eq!(refusal::<Nothing>(""), at("", "body-missing"));
    assert_eq!(refusal::<Nothing>(" \n"), at("", "body-missing"));
    assert_eq!(refusal::<Nothing>("{"), at("", "malformed-json"));
    assert_eq!(refusal::<Nothing>("{} {}"), at("", "malformed-json"));
    assert_eq!(refusal::<Nothing>("[]"), at("", "wrong-type"));
    assert_eq!(refusal::<Nothing>("null"), at("", "wrong-type"));
    assert_eq!(
        Json::read(b"{\"a\":\"\xff\"}")
            .err()
            .map(|error| error.rule),
        Some("not-utf8")
    );
    let deep = "[".repeat(100_000);
    assert_eq!(
        Json::read(deep.as_bytes()).err().map(|error| error.rule),
        Some("malformed-json")
    );
    parse_body::<Nothing>(b" {} ").unwrap();
}

#[test]
fn a_body_over_four_mebibytes_is_refused_and_one_of_that_size_is_read() {
    let overhead = r#"{"layer":"cluster","document":""}"#.len();
    let of_size = |size: usize| {
        format!(
            r#"{{"layer":"cluster","document":"{}"}}"#,
            "a".repeat(size - overhead)
        )
    };
    let body: PutFragment = parse_body(of_size(MAX_BODY_BYTES).as_bytes()).unwrap();
    assert_eq!(body.document.into_inner().len(), MAX_BODY_BYTES - overhead);
    assert_eq!(
        refusal::<PutFragment>(&of_size(MAX_BODY_BYTES + 1)),
        at("", "body-too-large")
    );
}

#[test]
fn null_is_absence_for_an_optional_member_and_refused_for_a_required_one() {
    let plan = |tail: &str| {
        format!(r#"{{"releaseId":"{RELEASE}","machine":"{MACHINE}","operation":"adopt"{tail}}}"#)
    };
    let body: CreatePlan =
        parse_body(plan(r#","mode":null,"maxAttempts":null"#).as_bytes()).unwrap();
    assert!(body.mode.is_none() && body.max_attempts.is_none());
    assert_eq!(
        refusal::<CreateDraft>(&format!(r#"{{"cluster":"{CLUSTER}","title":null}}"#)),
        at("/title", "wrong-type")
    );
    assert_eq!(
        refusal::<CreateDraft>(r#"{"title":"t"}"#),
        at("/cluster", "missing-member")
    );
}

#[test]
fn every_spelling_of_a_whole_number_is_that_number_and_another_number_is_none() {
    let seconds = |number: &str| {
        format!(
            r#"{{"releaseId":"{RELEASE}","machine":"{MACHINE}","operation":"adopt","expiresInSeconds":{number}}}"#
        )
    };
    for spelling in ["3600", "3600.0", "36e2", "36E+2", "360000e-2", "3.6e3"] {
        let body: CreatePlan = parse_body(seconds(spelling).as_bytes()).unwrap();
        assert_eq!(body.expires_in_seconds.map(|one| one.value()), Some(3600));
    }
    for (other, rule) in [
        ("3600.5", "not-a-whole-number"),
        ("1e300", "not-a-whole-number"),
        ("9007199254740993", "not-a-whole-number"),
        ("0", "number-range"),
        ("-1", "number-range"),
        ("604801", "number-range"),
        ("\"3600\"", "wrong-type"),
        ("true", "wrong-type"),
    ] {
        assert_eq!(
            refusal::<CreatePlan>(&seconds(other)),
            at("/expiresInSeconds", rule),
            "{other}"
        );
    }
    assert_eq!(refusal::<CreatePlan>(&seconds("1e999")).1, "malformed-json");
}

#[test]
fn a_body_that_contradicts_itself_is_refused_where_it_does() {
    let machine = |keys: &str| {
        format!(r#"{{"cluster":"{CLUSTER}",{keys}"platform":"metal","talosEndpoint":"10.0.0.1"}}"#)
    };
    let uuid = r#""smbiosUuid":"4C4C4544-0000-1000-8000-000000000001","#;
    let node = r#""talosNodeId":"abc","#;
    assert_eq!(
        refusal::<CreateMachine>(&machine("")),
        at("", "one-identity-key")
    );
    assert_eq!(
        refusal::<CreateMachine>(&machine(&format!("{uuid}{node}"))),
        at("", "one-identity-key")
    );
    let body: CreateMachine = parse_body(machine(uuid).as_bytes()).unwrap();
    assert_eq!(
        body.smbios_uuid.map(|one| one.as_str().to_owned()),
        Some("4c4c4544-0000-1000-8000-000000000001".to_owned())
    );
    assert_eq!(
        refusal::<CreatePlan>(&format!(
            r#"{{"releaseId":"{RELEASE}","machine":"{MACHINE}","operation":"apply-config"}}"#
        )),
        at("/mode", "missing-member")
    );
    assert_eq!(
        refusal::<CreatePlan>(&format!(
            r#"{{"releaseId":"{RELEASE}","machine":"{MACHINE}","operation":"adopt","maxAttempts":1}}"#
        )),
        at("/maxAttempts", "not-of-an-adopt-plan")
    );
    assert_eq!(
        refusal::<StartIngestion>(&format!(
            r#"{{"kind":"drift-adoption","machine":"{MACHINE}","draft":"{DRAFT}","source":"document","document":"d","staging":"transient"}}"#
        )),
        at("/source", "adoption-reads-the-machine")
    );
    assert_eq!(
        refusal::<RevokeIdentity>(r#"{"iss":"i","reason":"r"}"#),
        at("/sub", "missing-member")
    );
    assert_eq!(
        refusal::<EnterRecovery>(
            r#"{"restored":[{"family":"database","backup":"b","takenAt":"t"},{"family":"database","backup":"c","takenAt":"t"}],"stoppedAt":"t","reason":"r"}"#
        ),
        at("/restored", "each-family-once")
    );
}

#[test]
fn facts_may_be_empty_but_not_absent_and_are_sixteen_strings_at_most() {
    let with = |facts: &str| format!(r#"{{"start":"{OBSERVATION}","end":"{OBSERVATION}"{facts}}}"#);
    let many = |count: usize| {
        let facts: serde_json::Map<String, Value> =
            (0..count).map(|at| (at.to_string(), json!("x"))).collect();
        format!(r#","facts":{}"#, Value::Object(facts))
    };
    parse_body::<AccountAttempt>(with(r#","facts":{}"#).as_bytes()).unwrap();
    parse_body::<AccountAttempt>(with(&many(16)).as_bytes()).unwrap();
    assert_eq!(
        refusal::<AccountAttempt>(&with(&many(17))),
        at("/facts", "facts-count")
    );
    assert_eq!(
        refusal::<AccountAttempt>(&with("")),
        at("/facts", "missing-member")
    );
    assert_eq!(
        refusal::<AccountAttempt>(&with(r#","facts":{"a":1}"#)),
        at("/facts/*", "wrong-type")
    );
}

#[test]
fn a_wrong_identifier_is_refused_by_its_form_and_prefix() {
    for other in [MACHINE, "cl_short", "", "CL_oxbgrzprzpvnecj5ve3jht3dha"] {
        assert_eq!(
            refusal::<CreateDraft>(&format!(r#"{{"cluster":"{other}","title":"t"}}"#)),
            at("/cluster", "identifier-form"),
            "{other}"
        );
    }
    assert_eq!(
        refusal::<TakeOverOperation>(r#"{"generation":0,"reason":"r"}"#),
        at("/generation", "number-range")
    );
    assert_eq!(
        refusal::<PutAssignment>(r#"{"profiles":[],"fragments":{"machine":[]}}"#),
        at("/fragments", "not-of-the-enumeration")
    );
}

/// Any JSON at all, with a planted value wherever a text stands.
fn any_json() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "cluster",
        "Cluster",
        "title",
        "layer",
        "document",
        "marks",
        "declarations",
        "references",
        "kind",
        "version",
        "embedded",
        "path",
        "format",
        "PLANTEDKEY",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\\x00\\x7f]{0,3}".prop_map(|text| Value::String(format!("PLANTED{text}"))),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    // covers-part: PA-API-5 (no refusal of a body quotes a value)
    #[test]
    fn no_refusal_holds_what_was_sent(value in any_json()) {
        let text = value.to_string();
        for error in [
            parse_body::<CreateDraft>(text.as_bytes()).err(),
            parse_body::<PutFragment>(text.as_bytes()).err(),
        ].into_iter().flatten() {
            let printed = format!("{error} {error:?}");
            prop_assert!(!printed.contains("PLANTED"), "a refusal quotes its input");
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(json) = Json::read(&bytes) {
            let _ = json.body::<PutFragment>();
        }
    }

    #[test]
    fn the_reader_and_serde_json_agree_on_what_both_accept(value in any_json()) {
        let text = value.to_string();
        if let Ok(json) = Json::read(text.as_bytes()) {
            let other: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(json.value(), &other);
        }
    }
}
