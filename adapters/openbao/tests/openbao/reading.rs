//! Reads: Talos access, pinned generations, and what each absence is.

use bronzeward_engine::ports::provider::{
    CompilerSecrets, ExecutorSecrets, Failure, IngestionSecrets, TokenProbe, TokenState,
};
use bronzeward_harness::openbao::{Identity, random_name, write_private};
use serde_json::json;
use std::time::Duration;

use crate::common::{Clients, cluster, created, path_in, shared, string};

/// PA §3.3: both readers, the latest version, recorded by path, version and exact time.
// covers-part: PA-TAL-2 (the provider's causes, through both readers' clients)
#[tokio::test]
async fn talos_access_is_read_at_its_latest_version_with_that_versions_identity() {
    let bao = shared();
    let (root, clients, cluster) = (bao.root(), Clients::of(bao), cluster());
    let path = format!("access/talos/{cluster}");
    let id = cluster.to_string();
    let none = clients.executor.read_talos_access(cluster).await;
    assert_eq!(none.err(), Some(Failure::Absent));

    let document = "context: c\ncontexts:\n  c: {key: \"<&>\\u2028\"}\n";
    for text in [document, "context: later\n"] {
        let (version, time) = root.write_talosconfig(&id, text).await.unwrap();
        for access in [
            clients.ingestion.read_talos_access(cluster).await,
            clients.executor.read_talos_access(cluster).await,
        ] {
            let access = access.ok().unwrap();
            assert!(access.talosconfig.expose() == text);
            assert_eq!(access.version.path, path);
            assert_eq!(
                (access.version.version, &access.version.created),
                (version, &time)
            );
        }
    }

    // The latest version decides; an older one is no substitute for a deleted one.
    root.delete_versions(&path, &[2]).await.unwrap();
    let deleted = clients.ingestion.read_talos_access(cluster).await;
    assert_eq!(deleted.err(), Some(Failure::Absent));
    root.undelete_versions(&path, &[2]).await.unwrap();
    assert!(clients.ingestion.read_talos_access(cluster).await.is_ok());
    root.destroy_versions(&path, &[2]).await.unwrap();
    let destroyed = clients.executor.read_talos_access(cluster).await;
    assert_eq!(destroyed.err(), Some(Failure::Absent));

    // Deleted with its metadata and written again: the same path and version, another time.
    let (_, before) = root
        .write_talosconfig(&id, "context: third\n")
        .await
        .unwrap();
    root.delete_metadata(&path).await.unwrap();
    let (version, after) = root
        .write_talosconfig(&id, "context: third\n")
        .await
        .unwrap();
    assert_eq!(version, 1);
    let access = clients
        .executor
        .read_talos_access(cluster)
        .await
        .ok()
        .unwrap();
    assert_eq!(access.version.created, after);
    assert_ne!(access.version.created, before);

    for data in [
        json!({}),
        json!({ "talosconfig": 1 }),
        json!({ "config": "x" }),
        json!(null),
    ] {
        let route = format!("secret/data/{path}");
        root.expect("POST", &route, Some(json!({ "data": data })), 200)
            .await
            .unwrap();
        let other = clients.ingestion.read_talos_access(cluster).await;
        assert_eq!(other.err(), Some(Failure::Integrity), "{data}");
    }
}

/// B13: version 0 and below read the latest at the provider, so they are never asked for.
#[tokio::test]
async fn a_pinned_read_names_its_version_and_gets_that_one_or_none() {
    let bao = shared();
    let (root, clients) = (bao.root(), Clients::of(bao));
    let (path, time) = created(&clients.ingestion, &string("first")).await;
    let text = path.to_string();
    let body = json!({ "data": { "kind": "string", "value": "second" } });
    root.expect("POST", &format!("secret/data/{text}"), Some(body), 200)
        .await
        .unwrap();

    let latest = root.read_kv(&text, 0).await.unwrap();
    assert_eq!(latest.body["data"]["metadata"]["version"], json!(2));
    let read = |version| clients.compiler.read_generation(&path, version);
    assert_eq!(read(0).await.err(), Some(Failure::Refused));
    let first = read(1).await.ok().unwrap();
    assert!(first.value.strings()[0].expose() == "first");
    assert_eq!(first.created, time);
    assert!(read(2).await.ok().unwrap().value.strings()[0].expose() == "second");
    assert_eq!(read(3).await.err(), Some(Failure::Absent));
    root.delete_versions(&text, &[1]).await.unwrap();
    assert_eq!(read(1).await.err(), Some(Failure::Absent));
    root.destroy_versions(&text, &[1]).await.unwrap();
    assert_eq!(read(1).await.err(), Some(Failure::Absent));
    let absent = clients
        .compiler
        .read_generation(&path_in(cluster()), 1)
        .await;
    assert_eq!(absent.err(), Some(Failure::Absent));
}

/// The token file is read at each use: a replaced token is the one that is sent next.
#[tokio::test]
async fn a_replaced_token_is_used_at_the_next_call_and_a_dead_one_is_told_from_a_refused_one() {
    let bao = shared();
    let (root, cluster) = (bao.root(), cluster());
    root.write_talosconfig(&cluster.to_string(), "context: c\n")
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let policy = format!("replaced-{}", random_name());
    root.write_policy(&policy, Identity::Executor.policy_text())
        .await
        .unwrap();
    bao.issue_token(&policy, &file).await.unwrap();
    let clients = Clients::with(bao.address(), Duration::from_secs(20), |_| file.clone());
    let read = async || clients.executor.read_talos_access(cluster).await.map(drop);
    assert_eq!(read().await, Ok(()));
    assert_eq!(clients.executor.probe_token().await, TokenState::Valid);

    let accessor = folder.path().join("token.accessor");
    let accessor = std::fs::read_to_string(accessor).unwrap();
    let body = json!({ "accessor": accessor.trim() });
    root.expect("POST", "auth/token/revoke-accessor", Some(body), 204)
        .await
        .unwrap();
    assert_eq!(read().await, Err(Failure::Denied));
    assert_eq!(clients.executor.probe_token().await, TokenState::Dead);

    bao.issue_token(&policy, &file).await.unwrap();
    assert_eq!(read().await, Ok(()));
    assert_eq!(clients.executor.probe_token().await, TokenState::Valid);

    // A valid token without the grant: the policy is read at each request.
    root.write_policy(
        &policy,
        "path \"secret/data/x\" { capabilities = [\"read\"] }",
    )
    .await
    .unwrap();
    assert_eq!(read().await, Err(Failure::Denied));
    assert_eq!(clients.executor.probe_token().await, TokenState::Valid);

    write_private(&file, "s.thereisnosuchtokenhere0").unwrap();
    assert_eq!(clients.executor.probe_token().await, TokenState::Dead);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(read().await, Err(Failure::Credential));
    let undecided = TokenState::Undecided(Failure::Credential);
    assert_eq!(clients.executor.probe_token().await, undecided);
}
