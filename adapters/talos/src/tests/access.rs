//! Reading talosconfigs: documents made from a real one by changing what a test is about.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bronzeward_engine::ports::node::{NodeReader as _, NotUsable};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;

use super::{EVERYTHING, Machine, PATIENT};
use crate::ReadOnlyTalos;

/// The members of a real talosconfig's one context.
#[derive(Clone)]
struct Parts {
    ca: String,
    crt: String,
    key: String,
}

fn parts(machine: &Machine, caller: &str) -> Parts {
    let document = String::from_utf8(machine.node.talosconfig(caller).unwrap()).unwrap();
    let member = |name: &str| {
        let line = document
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        line.unwrap().split_once(": ").unwrap().1.trim().to_owned()
    };
    Parts {
        ca: member("ca:"),
        crt: member("crt:"),
        key: member("key:"),
    }
}

fn document(contexts: &[(&str, &Parts)], selected: &str) -> String {
    let mut text = format!("context: {selected}\ncontexts:\n");
    for (name, parts) in contexts {
        let Parts { ca, crt, key } = parts;
        write!(
            text,
            "  {name}:\n    endpoints: [\"192.0.2.1\"]\n    nodes: [\"192.0.2.2\"]\n    auth: {{basic: null}}\n    other: 1\n    ca: {ca}\n    crt: {crt}\n    key: {key}\n"
        )
        .unwrap();
    }
    text
}

fn refusal(document: &str) -> (&'static str, &'static str) {
    let NotUsable { member, rule } = ReadOnlyTalos.access(document.as_bytes()).err().unwrap();
    (member, rule)
}

fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

// T21
#[test]
fn a_key_with_taloss_own_label_is_read_where_the_pem_reader_alone_finds_none() {
    let machine = Machine::worker();
    let pem = STANDARD.decode(parts(&machine, "admin").key).unwrap();
    let text = String::from_utf8(pem.clone()).unwrap();
    assert!(text.starts_with("-----BEGIN ED25519 PRIVATE KEY-----"));
    assert!(PrivateKeyDer::from_pem_slice(&pem).is_err());
    assert!(!machine.access("admin").expose_key().is_empty());
    // The standard label is read as well.
    let mut relabelled = parts(&machine, "admin");
    relabelled.key = encoded(text.replace("ED25519 ", "").as_bytes());
    let document = document(&[("a", &relabelled)], "a");
    assert!(ReadOnlyTalos.access(document.as_bytes()).is_ok());
}

// covers-part: PA-TAL-6 (a document's endpoints and nodes are ignored)
#[tokio::test]
async fn the_selected_context_is_used_and_its_endpoints_and_nodes_are_not() {
    let machine = Machine::worker();
    let other = Machine::start(&bronzeward_harness::node::Options::default());
    let (mine, others) = (parts(&machine, "admin"), parts(&other, "admin"));
    let both = [("mine", &mine), ("others", &others)];
    let mut read = Vec::new();
    for selected in ["mine", "others"] {
        let access = ReadOnlyTalos.access(document(&both, selected).as_bytes());
        let seen = ReadOnlyTalos
            .observe(&access.ok().unwrap(), machine.endpoint, EVERYTHING, PATIENT)
            .await;
        read.push(seen.identity.is_ok());
    }
    assert_eq!(read, [true, false]);
    assert_eq!(other.count("connections").await, 0);
}

#[test]
fn absent_null_and_empty_members_are_refused_by_name() {
    let machine = Machine::worker();
    let whole = document(&[("a", &parts(&machine, "admin"))], "a");
    for member in ["ca", "crt", "key"] {
        let without = |value: Option<&str>| -> String {
            whole
                .lines()
                .filter_map(|line| {
                    if line.trim_start().starts_with(&format!("{member}: ")) {
                        value.map(|value| format!("    {member}: {value}"))
                    } else {
                        Some(line.to_owned())
                    }
                })
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(refusal(&without(None)), (member, "is absent"));
        assert_eq!(refusal(&without(Some("null"))), (member, "is absent"));
        assert_eq!(refusal(&without(Some("\"\""))), (member, "is empty"));
        assert_eq!(refusal(&without(Some("\"*\""))), (member, "is not base64"));
        let empty = match member {
            "key" => "holds no private key",
            _ => "holds no certificate",
        };
        assert_eq!(refusal(&without(Some("Z2FyYmFnZQ=="))), (member, empty));
    }
}

#[test]
fn a_document_that_selects_no_context_is_refused() {
    let machine = Machine::worker();
    let whole = document(&[("a", &parts(&machine, "admin"))], "a");
    assert_eq!(refusal(""), ("document", "is empty"));
    assert_eq!(refusal("null"), ("document", "is empty"));
    assert_eq!(refusal("- a"), ("document", "is not a talosconfig"));
    assert_eq!(refusal("context: ["), ("document", "is not a talosconfig"));
    assert_eq!(refusal("{}"), ("context", "selects none"));
    let lacking = ("contexts", "lacks the selected context");
    assert_eq!(refusal("context: a"), lacking);
    assert_eq!(refusal("context: a\ncontexts: null"), lacking);
    assert_eq!(refusal("context: a\ncontexts: {a: null}"), lacking);
    let other = whole.replacen("context: a", "context: b", 1);
    assert_eq!(refusal(&other), lacking);
    let none = whole.replacen("context: a", "context: \"\"", 1);
    assert_eq!(refusal(&none), ("context", "selects none"));
    let large = format!("{whole}# {}\n", "x".repeat(1 << 20));
    assert_eq!(refusal(&large), ("document", "is too large"));
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let machine = Machine::worker();
    let mut mixed = parts(&machine, "admin");
    mixed.key = parts(&machine, "reader").key;
    let document = document(&[("a", &mixed)], "a");
    let refused = refusal(&document);
    assert_eq!(refused, ("key", "is no usable key of the certificate"));
}

#[test]
fn a_certificate_that_may_state_other_roles_is_refused() {
    let machine = Machine::worker();
    for caller in ["admin", "operator", "reader", "etcd-backup"] {
        assert!(!machine.access(caller).certificates().is_empty());
    }
    let document = machine.node.talosconfig("impersonator").unwrap();
    let refused = ReadOnlyTalos.access(&document).err().unwrap();
    assert_eq!(
        (refused.member, refused.rule),
        ("crt", "has the role os:impersonator")
    );
}

// covers-part: PA-TAL-2 (the parser's refusal holds no part of the document)
#[test]
fn a_refusal_repeats_nothing_of_the_document() {
    let machine = Machine::worker();
    let mut planted = parts(&machine, "admin");
    planted.key = "synthetic-client-key-3f9a".to_owned();
    let document = document(&[("a", &planted)], "a");
    for broken in [document.clone(), document.replace("    key:", "   key:")] {
        let refused = ReadOnlyTalos.access(broken.as_bytes()).err().unwrap();
        assert!(!format!("{refused} {refused:?}").contains("synthetic"));
    }
}
