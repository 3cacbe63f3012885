//! The forms of texts and identifiers.

use crate::bodies::ingestion::StartIngestion;
use crate::id::{ClusterId, HeadId};
use crate::{Text, form, parse_body};

fn accepts<F: crate::TextForm>(pairs: &[(&str, &str)]) {
    for (input, canonical) in pairs {
        assert_eq!(
            Text::<F>::new(input).map(|text| text.as_str().to_owned()),
            Some((*canonical).to_owned()),
            "{input}"
        );
    }
}

fn refuses<F: crate::TextForm>(inputs: &[&str]) {
    for input in inputs {
        assert!(Text::<F>::new(input).is_none(), "{input}");
    }
}

#[test]
fn a_talos_endpoint_is_an_ip_literal_with_a_port_it_may_leave_out() {
    accepts::<form::TalosEndpoint>(&[
        ("10.55.0.3", "10.55.0.3:50000"),
        ("10.55.0.3:6443", "10.55.0.3:6443"),
        ("[2001:DB8::0:1]", "[2001:db8::1]:50000"),
        ("[::1]:1", "[::1]:1"),
        ("[::ffff:10.0.0.1]:65535", "[::ffff:10.0.0.1]:65535"),
    ]);
    refuses::<form::TalosEndpoint>(&[
        "",
        "node.example",
        "localhost:50000",
        "https://10.0.0.1",
        "10.0.0.1/",
        "10.0.0.1:",
        "10.0.0.1:0",
        "10.0.0.1:65536",
        "10.0.0.1:050",
        "10.0.0.1:+5",
        "10.0.0.1:5 ",
        " 10.0.0.1",
        "10.0.0",
        "010.0.0.1",
        "::1",
        "::1:50000",
        "[::1",
        "[::1]50000",
        "[10.0.0.1]",
        "[fe80::1%eth0]",
        "user@10.0.0.1",
        "[::1]:",
    ]);
}

#[test]
fn a_cluster_endpoint_is_https_with_a_host_and_no_path() {
    accepts::<form::ClusterEndpoint>(&[
        ("https://api.Example.test", "https://api.example.test:443"),
        ("https://10.0.0.1:6443", "https://10.0.0.1:6443"),
        ("https://[2001:DB8:0::1]:6443", "https://[2001:db8::1]:6443"),
    ]);
    refuses::<form::ClusterEndpoint>(&[
        "http://a",
        "https://",
        "https://a/",
        "https://a?x",
        "https://a#x",
        "https://u@a",
        "https://a:0",
        "https://-a",
        "https://a..b",
        "https://[::1",
        "https://a b",
        "HTTPS://a",
    ]);
}

#[test]
fn names_ids_and_texts_keep_to_their_bounds() {
    let long = "a".repeat(129);
    refuses::<form::ClusterName>(&["", "a\nb", "a\u{7f}", &long]);
    accepts::<form::ClusterName>(&[("Prod é", "Prod é")]);
    refuses::<form::SourceName>(&["", "-a", "a-", "A", "a_b", &"a".repeat(64)]);
    accepts::<form::SourceName>(&[("a", "a"), ("a-0", "a-0")]);
    refuses::<form::Reason>(&["", "  \n ", &"a".repeat(1025)]);
    refuses::<form::Title>(&["", &"a".repeat(257)]);
    refuses::<form::TalosNodeId>(&["", "a\tb", "é", &long]);
    refuses::<form::SmbiosUuid>(&[
        "4c4c4544000010008000000000000001",
        "4c4c4544-0000-1000-8000-00000000000g",
        "{4c4c4544-0000-1000-8000-000000000001}",
    ]);
    let cluster_id = "A".repeat(42) + "E=";
    accepts::<form::TalosClusterId>(&[(&cluster_id, &cluster_id)]);
    refuses::<form::TalosClusterId>(&[
        "",
        &("A".repeat(42) + "B="),
        &"A".repeat(43),
        &("A".repeat(42) + "+="),
        &("é".repeat(22)),
    ]);
}

#[test]
fn an_identifier_has_its_kinds_prefix_and_one_spelling() {
    assert!(ClusterId::parse("cl_oxbgrzprzpvnecj5ve3jht3dha").is_some());
    assert!(HeadId::parse("frg_rgkebwvneg6mxhid62gec5difi").is_some());
    for other in [
        "cl_oxbgrzprzpvnecj5ve3jht3dhb",
        "cl_oxbgrzprzpvnecj5ve3jht3dh",
        "cl_oxbgrzprzpvnecj5ve3jht3dhaa",
        "mch_oxbgrzprzpvnecj5ve3jht3dha",
        "cl_",
        "cl",
        "",
    ] {
        assert!(ClusterId::parse(other).is_none(), "{other}");
    }
    assert!(HeadId::parse("frv_rgkebwvneg6mxhid62gec5difi").is_none());
}

#[test]
fn input_text_prints_nothing_of_itself() {
    let body: StartIngestion = parse_body(
        br#"{"kind":"import","machine":"mch_tqhcznunhyle4hnxru5hkt35uq","draft":"drf_2rmpezm5rfx47azsgmp66z457a","source":"document","document":"hunter2","staging":"transient","marks":["doc[0]/hunter2"]}"#,
    )
    .unwrap();
    assert!(!format!("{body:?}").contains("hunter2"));
}
