//! What a generation keeps, and what the provider's audit log shows of it.

use std::collections::BTreeMap;
use std::fs;

use aho_corasick::AhoCorasick;
use bronzeward_core::generation::stored_text;
use bronzeward_core::secret::{Scalar, Value};
use bronzeward_engine::ports::provider::{CompilerSecrets, Failure, IngestionSecrets};
use bronzeward_harness::openbao::{OpenBao, random_name};
use serde_json::json;

use crate::common::{Clients, cluster, created, path_in, shared, string, text};

fn integer(number: i128) -> Value {
    Value::Scalar(Scalar::Integer(number))
}

fn large_mapping(members: usize) -> Value {
    let member = |n: usize| (format!("key-{n}"), Scalar::string(format!("value-{n}")));
    Value::Mapping((0..members).map(member).collect())
}

/// The value, as it is stored, is everything it is.
fn same(a: &Value, b: &Value) -> bool {
    a.kind() == b.kind() && stored_text(a).same(&stored_text(b))
}

/// B1, B3, B32: numbers that a double rounds, mappings of more strings than a request may
/// hold, keys and texts of any kind.
#[tokio::test]
async fn a_value_of_every_kind_is_read_back_exactly() {
    let bao = shared();
    let clients = Clients::of(bao);
    let odd = BTreeMap::from([
        (String::new(), Scalar::string("")),
        (
            "\u{0}\u{1f600}\u{2028}<&>".to_owned(),
            Scalar::Boolean(false),
        ),
        ("\"\\".to_owned(), Scalar::Integer(i128::from(i64::MIN))),
        ("large".to_owned(), Scalar::Integer(9_007_199_254_740_993)),
    ]);
    for value in [
        integer(9_007_199_254_740_993),
        integer(i128::from(u64::MAX)),
        integer(i128::from(i64::MIN)),
        integer(0),
        Value::Scalar(Scalar::Boolean(true)),
        Value::Scalar(Scalar::Boolean(false)),
        string(""),
        string("{\"kind\":\"integer\"}"),
        string("line\nwith \u{0}, \u{1f600}, \u{2028} and \u{fffd}"),
        Value::Mapping(odd),
        large_mapping(498),
        large_mapping(5_000),
        Value::Mapping(BTreeMap::new()),
    ] {
        let (path, time) = created(&clients.ingestion, &value).await;
        let read = clients
            .compiler
            .read_generation(&path, 1)
            .await
            .ok()
            .unwrap();
        assert!(same(&read.value, &value), "{path}");
        assert_eq!(read.created, time);
    }

    // The reasons for the form: what the provider does with the values themselves.
    let root = bao.root();
    let route = format!("secret/data/{}", path_in(cluster()));
    let number = json!({ "data": { "kind": "integer", "value": 9_007_199_254_740_993_u64 } });
    root.expect("POST", &route, Some(number), 200)
        .await
        .unwrap();
    let read = root.expect("GET", &route, None, 200).await.unwrap();
    assert_eq!(
        read.body["data"]["data"]["value"].as_u64(),
        Some(9_007_199_254_740_992)
    );
    let members: serde_json::Map<_, _> = (0..498)
        .map(|n| (format!("key-{n}"), json!(format!("value-{n}"))))
        .collect();
    let mapping =
        json!({ "options": { "cas": 0 }, "data": { "kind": "mapping", "value": members } });
    let route = format!("secret/data/{}", path_in(cluster()));
    assert_eq!(
        root.call("POST", &route, Some(mapping))
            .await
            .unwrap()
            .status,
        400
    );
}

/// What is stored in any other form is not coerced and not mistaken for absence.
#[tokio::test]
async fn a_generation_in_another_form_is_an_integrity_failure() {
    let bao = shared();
    let clients = Clients::of(bao);
    for data in [
        json!({ "kind": "integer", "value": 12 }),
        json!({ "kind": "integer", "value": "12.0" }),
        json!({ "kind": "boolean", "value": true }),
        json!({ "kind": "mapping", "value": { "a": "b" } }),
        json!({ "kind": "mapping", "value": "{\"b\":1,\"a\":2}" }),
        json!({ "kind": "secret", "value": "x" }),
        json!({ "value": "x" }),
        json!({ "kind": "string" }),
        json!({ "kind": "string", "value": "x", "more": "y" }),
        json!({}),
        json!(null),
    ] {
        let path = path_in(cluster());
        let body = json!({ "data": data });
        let route = format!("secret/data/{path}");
        bao.root()
            .expect("POST", &route, Some(body), 200)
            .await
            .unwrap();
        let read = clients.compiler.read_generation(&path, 1).await;
        assert_eq!(read.err(), Some(Failure::Integrity), "{data}");
    }
}

/// Where each text stands in the audit log as it is.
fn found(log: &[u8], texts: &[&str]) -> Vec<usize> {
    let patterns = AhoCorasick::new(texts).unwrap();
    let mut found: Vec<usize> = patterns
        .find_overlapping_iter(log)
        .map(|hit| hit.pattern().as_usize())
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// B2: only strings are hidden in the audit log. The scan must find what a value stored as
/// itself would show, and must find nothing of ours.
#[tokio::test]
async fn the_audit_log_shows_no_integer_no_boolean_and_no_mapping_key_of_a_generation() {
    let bao = OpenBao::own().await.unwrap();
    let clients = Clients::of(&bao);
    let root = bao.root();
    // Written as itself: the number, the mapping's key, and the truth value under its path.
    let shown_number = 918_273_645_546_372_i64;
    let shown_key = format!("shown-{}", random_name());
    let shown = path_in(cluster()).to_string();
    let mapping = json!({ "kind": "mapping", "value": { &shown_key: "v", "n": shown_number } });
    let boolean = json!({ "kind": "boolean", "value": true });
    for (path, data) in [
        (format!("{shown}-a"), mapping),
        (format!("{shown}-b"), boolean),
    ] {
        let route = format!("secret/data/{path}");
        root.expect("POST", &route, Some(json!({ "data": data })), 200)
            .await
            .unwrap();
    }

    let (hidden_number, hidden_key) =
        (271_828_182_845_904_i64, format!("hidden-{}", random_name()));
    let hidden_text = format!("text-{}", random_name());
    let members = BTreeMap::from([
        (hidden_key.clone(), Scalar::string(hidden_text.as_str())),
        ("n".to_owned(), Scalar::Integer(hidden_number.into())),
    ]);
    let mut paths = Vec::new();
    for value in [
        Value::Mapping(members),
        integer(hidden_number.into()),
        Value::Scalar(Scalar::Boolean(true)),
        string(&hidden_text),
    ] {
        let (path, _) = created(&clients.ingestion, &value).await;
        clients
            .compiler
            .read_generation(&path, 1)
            .await
            .ok()
            .unwrap();
        paths.push(path.to_string());
    }
    clients
        .ingestion
        .keyed_digests(&[text(&hidden_text)])
        .await
        .unwrap();
    clients
        .ingestion
        .encrypt_staging(&text(&hidden_text))
        .await
        .unwrap();

    let log = fs::read(bao.audit_log()).unwrap();
    let (shown_number, hidden_number) = (shown_number.to_string(), hidden_number.to_string());
    let planted = [shown_number.as_str(), shown_key.as_str()];
    assert_eq!(
        found(&log, &planted),
        [0, 1],
        "the scan finds what is there to be found"
    );
    let ours = [
        hidden_number.as_str(),
        hidden_key.as_str(),
        hidden_text.as_str(),
    ];
    assert_eq!(found(&log, &ours), [] as [usize; 0]);
    // A lone truth value is no pattern: look at the lines of the paths that hold one.
    let log = String::from_utf8(log).unwrap();
    let tells = |path: &str| {
        let lines = log.lines().filter(|line| line.contains(path));
        lines.clone().count() > 0
            && lines
                .into_iter()
                .any(|line| line.contains("\"value\":true"))
    };
    assert!(tells(&format!("{shown}-b")));
    assert!(
        paths
            .iter()
            .all(|path| log.contains(path.as_str()) && !tells(path))
    );
    // The log does hold the requests, by the salted digest of the text.
    let hash = root.audit_hash(&hidden_text).await.unwrap();
    assert!(log.contains(&hash));
}
