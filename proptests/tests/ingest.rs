//! Ingestion's decision against the real parser, encoder and machinery (IC §2).
//!
//! What `core` shows with a stand-in is shown here with texts as people write them. Never
//! in this file: a rule of ours that the real parser does not reach.

#[allow(dead_code)]
#[path = "compose/bench.rs"]
mod bench;

use bench::{Bench, Ingested};
use bronzeward_core::extract::Purpose;
use bronzeward_core::machinery::Role;
use bronzeward_core::reference::Declarations;
use bronzeward_core::refusal::Refusal;
use bronzeward_core::rules::{Enforced, Rule};
use bronzeward_core::secret::{Plaintext, Value};
use bronzeward_engine::ports::renderer::Renderer;
use bronzeward_harness::without::Without;

async fn ingest(
    bench: &Bench,
    purpose: Purpose,
    text: &str,
    marks: &[&str],
) -> Result<Ingested, Refusal> {
    let marks: Vec<String> = marks.iter().map(|mark| mark.to_string()).collect();
    bench
        .ingest(Enforced, purpose, text, &Declarations::default(), &marks)
        .await
}

async fn rule(bench: &Bench, purpose: Purpose, text: &str) -> Option<String> {
    let refused = ingest(bench, purpose, text, &[]).await.err()?;
    // A refusal shows a rule and paths, and no text of the input.
    let shown = format!("{refused:?}");
    assert!(
        !shown.contains("heron") && !shown.contains("wren"),
        "{shown}"
    );
    Some(refused.rule_name())
}

fn strings(ingested: &Ingested) -> Vec<String> {
    let values = ingested.values.values().flat_map(Value::strings);
    let mut texts: Vec<String> = values.map(|text| text.expose().to_string()).collect();
    texts.sort();
    texts
}

const WORKER: &str = "version: v1alpha1\nmachine:\n  type: worker\n";

// covers: IC-ING-6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inputs_that_no_path_could_name_or_that_read_otherwise_than_they_look_are_refused() {
    let bench = Bench::start().await;
    let base = [
        (
            "a key twice",
            "machine: {token: wren.b}\nmachine: {token: heron.c}\n",
            "parse",
        ),
        (
            "a key twice in another spelling",
            "machine:\n  nodeLabels: {\"a\": wren, \"\\x61\": heron}\n",
            "parse",
        ),
        (
            "a key twice in JSON",
            "{\"machine\":{\"token\":\"a\"},\"machine\":{\"token\":\"b\"}}",
            "parse",
        ),
        (
            "a key that is a list",
            "machine:\n  nodeLabels:\n    ? [wren]\n    : b\n",
            "parse",
        ),
        (
            "a key that holds a bar",
            "machine:\n  nodeLabels: {\"a|yaml\": wren}\n",
            "parse",
        ),
        (
            "a binary key",
            "machine:\n  nodeLabels:\n    !!binary d3Jlbg==: b\n",
            "parse",
        ),
        ("a tab as indentation", "machine:\n\ttoken: wren\n", "parse"),
        (
            "a lone surrogate",
            "machine: {env: {B: \"\\ud800\"}}\n",
            "parse",
        ),
        (
            "a zero byte",
            "machine: {env: {A: \"wren\\0y\"}}\n",
            "parse",
        ),
        ("nothing", "", "parse"),
        ("comments only", "# nothing yet\n", "parse"),
        ("markers only", "---\n---\n", "parse"),
        (
            "a list of operations",
            "- {op: replace, path: /cluster/clusterName, value: wren}\n",
            "parse",
        ),
        (
            "a local tag",
            "machine:\n  token: !vault wren\n",
            "local-tag",
        ),
        (
            "reserved text",
            "machine:\n  env: {A: \"echo '!bwref wren'\"}\n",
            "reserved-text",
        ),
        (
            "a directive in a configuration",
            "machine:\n  sysctls: {$patch: delete}\n",
            "patch-directive",
        ),
        (
            "an alias of itself",
            "machine:\n  kubelet:\n    extraConfig: &x {a: *x}\n",
            "parse",
        ),
    ];
    for (what, text, wanted) in base {
        let actual = rule(&bench, Purpose::Base, text).await;
        assert_eq!(actual.as_deref(), Some(wanted), "{what}");
    }
    let fragments = [
        (
            "a list of operations",
            "- {op: replace, path: /cluster/clusterName, value: wren}\n",
            "json-patch",
        ),
        (
            "operations as JSON",
            "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":\"wren\"}]",
            "json-patch",
        ),
        (
            "a near miss",
            "machine:\n  sysctls: {$patch: Delete}\n",
            "patch-directive",
        ),
        (
            "another directive",
            "machine:\n  sysctls: {$patch: replace}\n",
            "patch-directive",
        ),
        (
            "a directive with company",
            "machine:\n  sysctls: {$patch: delete, a: wren}\n",
            "patch-directive",
        ),
        (
            "a directive in a list",
            "machine:\n  network:\n    interfaces:\n      - interface: eth0\n        $patch: delete\n",
            "patch-directive",
        ),
        (
            "a directive used twice",
            "machine:\n  sysctls: &d {$patch: delete}\n  nodeLabels: *d\n",
            "patch-directive",
        ),
        (
            "a tag on a key",
            "machine:\n  nodeLabels:\n    !bwref a/key: b\n",
            "tag-place",
        ),
        (
            "a tag on a list",
            "machine:\n  certSANs: !bwref [wren]\n",
            "tag-place",
        ),
        (
            "an undeclared name",
            "machine:\n  token: !bwref a/pass\n",
            "undeclared",
        ),
        (
            "a name out of the grammar",
            "machine:\n  token: !bwref Wren\n",
            "name-grammar",
        ),
        (
            "an unknown document",
            "apiVersion: v1\nkind: Secret\nstringData: {password: heron-55-lane}\n",
            "load",
        ),
        ("an unknown field", "machine:\n  nosuch: wren\n", "load"),
    ];
    for (what, text, wanted) in fragments {
        let actual = rule(&bench, Purpose::Fragment, text).await;
        assert_eq!(actual.as_deref(), Some(wanted), "{what}");
    }
    for accepted in [
        "machine:\n  sysctls: {$patch: delete}\n",
        "machine:\n  sysctls: {a.b: {$patch: delete}, e.f: \"3\"}\n",
    ] {
        assert_eq!(
            rule(&bench, Purpose::Fragment, accepted).await,
            None,
            "{accepted}"
        );
    }
    bench.renderer.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_come_out_as_they_stood_and_what_is_no_value_stays() {
    let bench = Bench::start().await;
    // A newline at the end belongs to the value.
    let text = format!("{WORKER}  token: |\n    wren.0123456789abcdef\n");
    let ingested = ingest(&bench, Purpose::Base, &text, &[])
        .await
        .expect("ingests");
    assert_eq!(strings(&ingested), ["wren.0123456789abcdef\n"]);
    // An empty field of the schema is no value, and no mark makes it one.
    let text = format!("{WORKER}  token: wren.0123\n  ca: {{crt: \"\", key: \"\"}}\n");
    let ingested = ingest(&bench, Purpose::Base, &text, &[])
        .await
        .expect("ingests");
    assert_eq!(strings(&ingested), ["wren.0123"]);
    let marked = ingest(&bench, Purpose::Base, &text, &["doc[0]/machine/ca/key"]).await;
    assert_eq!(
        marked.err().map(|one| one.rule_name()).as_deref(),
        Some("mark-kind")
    );
    // One anchored secret is one reference, whose alias follows it.
    let text = format!("{WORKER}  token: &t dunlin.aaaa\ncluster:\n  token: *t\n");
    let ingested = ingest(&bench, Purpose::Base, &text, &[])
        .await
        .expect("ingests");
    assert_eq!(strings(&ingested), ["dunlin.aaaa"]);
    assert!(!ingested.text.contains("dunlin"));
    // A secret in a mapping that is merged elsewhere leaves both places.
    let text = format!(
        "{WORKER}  sysctls: &s {{secret: heron-55-lane}}\n  sysfs:\n    <<: *s\n    rack: r7\n"
    );
    let marks = ["doc[0]/machine/sysfs/secret"];
    let ingested = ingest(&bench, Purpose::Base, &text, &marks)
        .await
        .expect("ingests");
    assert_eq!(strings(&ingested), ["heron-55-lane"]);
    assert!(!ingested.text.contains("heron"));
    // Empty documents take no number.
    let text = format!(
        "{WORKER}---\n# note\n---\napiVersion: v1alpha1\nkind: KmsgLogConfig\nname: a\nurl: tcp://heron-55-lane:1\n"
    );
    let marks = ["doc[1]/url"];
    let ingested = ingest(&bench, Purpose::Base, &text, &marks)
        .await
        .expect("ingests");
    assert_eq!(strings(&ingested), ["tcp://heron-55-lane:1"]);
    bench.renderer.stop().await;
}

// covers-part: IC-ING-3 (the real parser; `~1`, `~0` and `|yaml`)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_name_keys_with_dots_slashes_and_tildes_and_go_into_embedded_documents() {
    let bench = Bench::start().await;
    let text = format!(
        "{WORKER}  nodeLabels:\n    example.test/token: heron-55-lane\n    a~b: wren-77-gate\n  files:\n    - content: |\n        password: egret-99-door\n        other: x\n      permissions: 0o600\n      path: /var/a\n      op: create\n"
    );
    let marks = [
        "doc[0]/machine/nodeLabels/example.test~1token",
        "doc[0]/machine/nodeLabels/a~0b",
        "doc[0]/machine/files/0/content|yaml/password",
    ];
    let mut declarations = Declarations::default();
    let holder =
        bronzeward_core::path::Path::parse("doc[0]/machine/files/0/content").expect("a path");
    declarations
        .embedded
        .insert(holder, bronzeward_core::path::Format::Yaml);
    let marks: Vec<String> = marks.iter().map(|mark| mark.to_string()).collect();
    let ingested = bench.ingest(Enforced, Purpose::Base, &text, &declarations, &marks);
    let ingested = ingested.await.expect("ingests");
    assert_eq!(
        strings(&ingested),
        ["egret-99-door", "heron-55-lane", "wren-77-gate"]
    );
    for value in strings(&ingested) {
        assert!(!ingested.text.contains(&value));
    }
    assert!(ingested.text.contains("other: x"));
    bench.renderer.stop().await;
}

// covers-part: IC-ING-4 (the worked example of IC §12.4 on the real machinery)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_marked_in_a_label_is_found_in_a_script_and_both_marked_pass() {
    let bench = Bench::start().await;
    let text = "machine:\n  nodeLabels:\n    example.test/token: heron-55-lane\n  files:\n    - content: |\n        #!/bin/sh\n        join --token heron-55-lane\n      permissions: 0o600\n      path: /var/a\n      op: create\n";
    let label = "doc[0]/machine/nodeLabels/example.test~1token";
    let script = "doc[0]/machine/files/0/content";
    let refused = ingest(&bench, Purpose::Fragment, text, &[label])
        .await
        .err()
        .expect("refused");
    assert_eq!(refused.rule_name(), "substring");
    assert_eq!(
        refused.sites[0].path.as_ref().map(|path| path.as_str()),
        Some(script)
    );
    assert!(!format!("{refused:?}").contains("heron"));
    let none = Declarations::default();
    let marks = [label.to_string()];
    let dropped = Without::rules(&[Rule::GuardSubstring]);
    let control = bench
        .ingest(dropped, Purpose::Fragment, text, &none, &marks)
        .await;
    assert!(
        control
            .expect("the control ingests")
            .text
            .contains("heron-55-lane")
    );
    let both = ingest(&bench, Purpose::Fragment, text, &[label, script])
        .await
        .expect("ingests");
    assert!(!both.text.contains("heron"));
    bench.renderer.stop().await;
}

// covers: IC-ING-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sanitized_text_is_a_fixed_point_of_the_encoder_and_keeps_comments() {
    let bench = Bench::start().await;
    let text = "# of the whole\nmachine:\n    type: worker\n\n    # about the token\n    token: wren.0123456789abcdef # rotated in May\n    # first\n\n    # second, after a blank line\n    certSANs: [] # none\n# at the end\n";
    let ingested = ingest(&bench, Purpose::Base, text, &[])
        .await
        .expect("ingests");
    for comment in [
        "of the whole",
        "about the token",
        "rotated in May",
        "first",
        "second, after",
        "none",
        "at the end",
    ] {
        assert!(ingested.text.contains(comment), "{comment}");
    }
    let stream = bench
        .renderer
        .parse(&Plaintext::new(ingested.text.clone()))
        .await;
    let again = bench.renderer.encode(&stream.expect("parses")).await;
    assert_eq!(again.expect("encodes").expose(), ingested.text);
    // A comment that repeats the value is found.
    let copied = text.replace("rotated in May", "was wren.0123456789abcdef");
    let refused = ingest(&bench, Purpose::Base, &copied, &[])
        .await
        .err()
        .expect("refused");
    assert_eq!(refused.rule_name(), "substring");
    bench.renderer.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_mark_on_a_staged_text_takes_its_node_and_names_no_path_when_refused() {
    let bench = Bench::start().await;
    let text = format!(
        "{WORKER}  token: wren.0123456789abcdef # kept\n  files:\n    - content: heron-55-lane\n      permissions: 0o600\n      path: /var/a\n      op: create\n  env: {{A: x-heron-55-lane-y}}\n"
    );
    let staged = ingest(&bench, Purpose::Base, &text, &[])
        .await
        .expect("ingests");
    let review = Purpose::Review(Role::Base);
    let mark = |marks: &[&str]| {
        marks
            .iter()
            .map(|mark| mark.to_string())
            .collect::<Vec<_>>()
    };
    let content = "doc[0]/machine/files/0/content";
    let refused = bench
        .ingest(
            Enforced,
            review,
            &staged.text,
            &staged.declarations,
            &mark(&[content]),
        )
        .await
        .err()
        .expect("refused");
    assert_eq!(refused.rule_name(), "substring");
    assert!(
        refused
            .sites
            .iter()
            .all(|site| site.path.is_none() && site.mark == Some(0))
    );
    let both = mark(&[content, "doc[0]/machine/env/A", "doc[0]/machine/token"]);
    let marked = bench
        .ingest(Enforced, review, &staged.text, &staged.declarations, &both)
        .await
        .expect("ingests");
    assert_eq!(strings(&marked), ["heron-55-lane", "x-heron-55-lane-y"]);
    assert_eq!(marked.declarations.references.len(), 3);
    assert!(!marked.text.contains("heron") && marked.text.contains("# kept"));
    let nothing = mark(&["doc[0]/machine/nosuch"]);
    let refused = bench
        .ingest(
            Enforced,
            review,
            &staged.text,
            &staged.declarations,
            &nothing,
        )
        .await
        .err()
        .expect("refused");
    assert_eq!(refused.rule_name(), "mark-unaddressed");
    assert_eq!(
        (refused.sites[0].mark, &refused.sites[0].path),
        (Some(0), &None)
    );
    bench.renderer.stop().await;
}
