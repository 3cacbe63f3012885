//! The classes of DM §3 on the real server's answers, through the metadata identity.

use std::time::Duration;

use bronzeward_core::dependency::{
    Class, Classification, KvVersion, Reason, TransitVersion, classify_kv, classify_transit,
    kv_created, proven_created, transit_created,
};
use bronzeward_engine::ports::provider::DependencyMetadata;
use bronzeward_harness::openbao::{Identity, random_name};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::common::{Clients, created, shared, string};

fn is(c: &Classification, class: Class, reason: Option<Reason>) -> bool {
    (c.class, c.reason) == (class, reason)
}

async fn kv(clients: &Clients, recorded: &KvVersion) -> Classification {
    classify_kv(
        recorded,
        &clients.metadata.kv_metadata(&recorded.path).await,
    )
}

async fn key(clients: &Clients, recorded: &TransitVersion) -> Classification {
    classify_transit(recorded, &clients.metadata.transit_key(&recorded.key).await)
}

async fn expect_kv(clients: &Clients, recorded: &KvVersion, class: Class, reason: Option<Reason>) {
    let found = kv(clients, recorded).await;
    assert!(is(&found, class, reason), "{found:?}");
}

async fn expect_key(c: &Clients, recorded: &TransitVersion, class: Class, reason: Option<Reason>) {
    let found = key(c, recorded).await;
    assert!(is(&found, class, reason), "{found:?}");
}

/// Waits out the second in which a deletion cannot be told from a scheduled one.
async fn settled(clients: &Clients, recorded: &KvVersion) -> Classification {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let found = kv(clients, recorded).await;
        if found.reason != Some(Reason::DeletionTimeUndecidable) || Instant::now() > deadline {
            return found;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_kv_version_is_retained_blocked_lost_or_unknown_as_the_provider_shows_it() {
    let bao = shared();
    let (clients, root) = (Clients::of(bao), bao.root());
    let (path, time) = created(&clients.ingestion, &string("v")).await;
    let path = path.to_string();
    let recorded = KvVersion {
        path: path.clone(),
        version: 1,
        created: Some(time.clone()),
    };
    expect_kv(&clients, &recorded, Class::Retained, None).await;
    // B4: the create's answer, the metadata and the record carry the same text.
    let answer = clients.metadata.kv_metadata(&path).await;
    assert_eq!(kv_created(1, &answer), Some(time.as_str()));

    root.delete_versions(&path, &[1]).await.unwrap();
    let deleted = settled(&clients, &recorded).await;
    assert!(
        is(&deleted, Class::Blocked, Some(Reason::SoftDeleted)),
        "{deleted:?}"
    );
    root.undelete_versions(&path, &[1]).await.unwrap();
    expect_kv(&clients, &recorded, Class::Retained, None).await;
    root.destroy_versions(&path, &[1]).await.unwrap();
    expect_kv(&clients, &recorded, Class::Lost, Some(Reason::Destroyed)).await;
    let later = KvVersion {
        version: 2,
        ..recorded.clone()
    };
    expect_kv(
        &clients,
        &later,
        Class::Unknown,
        Some(Reason::InsufficientEvidence),
    )
    .await;
    root.delete_metadata(&path).await.unwrap();
    expect_kv(&clients, &recorded, Class::Unknown, Some(Reason::Absent)).await;
    let again = json!({ "data": { "kind": "string", "value": "v" } });
    let route = format!("secret/data/{path}");
    root.expect("POST", &route, Some(again.clone()), 200)
        .await
        .unwrap();
    expect_kv(
        &clients,
        &recorded,
        Class::Unknown,
        Some(Reason::IdentityMismatch),
    )
    .await;

    // B28: a lowered bound prunes at the next write, not when it is set.
    let (path, time) = created(&clients.ingestion, &string("v")).await;
    let path = path.to_string();
    let recorded = KvVersion {
        path: path.clone(),
        version: 1,
        created: Some(time),
    };
    let bound = json!({ "max_versions": 1 });
    root.expect("POST", &format!("secret/metadata/{path}"), Some(bound), 204)
        .await
        .unwrap();
    expect_kv(&clients, &recorded, Class::Retained, None).await;
    let route = format!("secret/data/{path}");
    root.expect("POST", &route, Some(again.clone()), 200)
        .await
        .unwrap();
    expect_kv(&clients, &recorded, Class::Lost, Some(Reason::Pruned)).await;

    // A deletion that is to come, from the path's own age limit.
    let path = format!("gen/aged/{}", random_name());
    let age = json!({ "delete_version_after": "1h", "custom_metadata": { "planted": "v" } });
    root.expect("POST", &format!("secret/metadata/{path}"), Some(age), 204)
        .await
        .unwrap();
    let route = format!("secret/data/{path}");
    let made = root.expect("POST", &route, Some(again), 200).await.unwrap();
    let text = |name: &str| made.body["data"][name].as_str().unwrap().to_owned();
    let recorded = KvVersion {
        path,
        version: 1,
        created: Some(text("created_time")),
    };
    let scheduled = kv(&clients, &recorded).await;
    assert!(
        is(&scheduled, Class::Retained, Some(Reason::DeletionScheduled)),
        "{scheduled:?}"
    );
    assert_eq!(scheduled.scheduled, Some(text("deletion_time")));
}

#[tokio::test]
async fn a_key_version_is_retained_or_unknown_by_its_identity_and_its_floors() {
    let bao = shared();
    let (clients, root) = (Clients::of(bao), bao.root());
    let name = format!("key-{}", random_name());
    root.create_key(&name).await.unwrap();
    let answer = clients.metadata.transit_key(&name).await;
    let made = transit_created(1, &answer);
    assert!(made.is_some());
    let first = TransitVersion {
        key: name.clone(),
        version: 1,
        created: made,
    };
    expect_key(&clients, &first, Class::Retained, None).await;
    let second = TransitVersion {
        version: 2,
        created: None,
        ..first.clone()
    };
    expect_key(
        &clients,
        &second,
        Class::Unknown,
        Some(Reason::InsufficientEvidence),
    )
    .await;
    root.rotate_key(&name).await.unwrap();
    expect_key(&clients, &second, Class::Retained, None).await;

    let floor = |n: u32| json!({ "min_decryption_version": n, "min_encryption_version": n });
    root.configure_key(&name, floor(2)).await.unwrap();
    let below = Some(Reason::BelowDecryptionFloorUnverified);
    expect_key(&clients, &first, Class::Unknown, below).await;
    root.configure_key(&name, floor(1)).await.unwrap();
    expect_key(&clients, &first, Class::Retained, None).await;
    root.configure_key(&name, floor(2)).await.unwrap();
    let trim = json!({ "min_available_version": 2 });
    let route = format!("transit/keys/{name}/trim");
    let trimmed = root.call("POST", &route, Some(trim)).await.unwrap();
    assert!(matches!(trimmed.status, 200 | 204), "{}", trimmed.status);
    expect_key(
        &clients,
        &first,
        Class::Unknown,
        Some(Reason::TrimmedUnverified),
    )
    .await;
    expect_key(&clients, &second, Class::Retained, None).await;

    let route = format!("transit/keys/{name}/soft-delete");
    let soft = root.call("DELETE", &route, None).await.unwrap();
    assert!(matches!(soft.status, 200 | 204), "{}", soft.status);
    expect_key(
        &clients,
        &second,
        Class::Unknown,
        Some(Reason::SoftDeleteUnobserved),
    )
    .await;
}

/// B17: within one second a key made again is the same to everybody, so publication takes
/// no key version of the current second for proven.
#[tokio::test]
async fn a_key_made_again_is_another_key_from_the_next_second_on() {
    let bao = shared();
    let (clients, root) = (Clients::of(bao), bao.root());
    let name = format!("key-{}", random_name());
    root.create_key(&name).await.unwrap();
    let before = clients.metadata.transit_key(&name).await;
    let first = TransitVersion {
        key: name.clone(),
        version: 1,
        created: transit_created(1, &before),
    };
    root.delete_key(&name).await.unwrap();
    expect_key(&clients, &first, Class::Unknown, Some(Reason::Absent)).await;

    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        root.create_key(&name).await.unwrap();
        let answer = clients.metadata.transit_key(&name).await;
        if transit_created(1, &answer) != first.created {
            break;
        }
        // The same second: a new key under the old identity, which no read can tell.
        expect_key(&clients, &first, Class::Retained, None).await;
        assert_eq!(proven_created(1, &before, &answer), None);
        assert!(Instant::now() < deadline);
        root.delete_key(&name).await.unwrap();
        sleep(Duration::from_millis(50)).await;
    }
    expect_key(
        &clients,
        &first,
        Class::Unknown,
        Some(Reason::IdentityMismatch),
    )
    .await;

    // One read of a later second, and the same again after it, prove the identity.
    let deadline = Instant::now() + Duration::from_secs(10);
    let proven = loop {
        let before = clients.metadata.transit_key(&name).await;
        let after = clients.metadata.transit_key(&name).await;
        if let Some(at) = proven_created(1, &before, &after) {
            break at;
        }
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(50)).await;
    };
    assert_ne!(Some(proven), first.created);
}

/// B16: such keys have no creation time, so nothing may be depended on under them.
#[tokio::test]
async fn a_key_type_without_creation_times_is_never_retained() {
    let bao = shared();
    let (clients, root) = (Clients::of(bao), bao.root());
    for (kind, reason) in [
        ("hmac", Reason::InsufficientEvidence),
        ("ed25519", Reason::Unreadable),
    ] {
        let name = format!("key-{}", random_name());
        let body = if kind == "hmac" {
            json!({ "type": kind, "key_size": 32 })
        } else {
            json!({ "type": kind })
        };
        root.expect("POST", &format!("transit/keys/{name}"), Some(body), 200)
            .await
            .unwrap();
        let recorded = TransitVersion {
            key: name,
            version: 1,
            created: None,
        };
        expect_key(&clients, &recorded, Class::Unknown, Some(reason)).await;
    }
}

/// DM §10 item 5, the refusing half is the policy's (PC-P5): here the class it gives.
#[tokio::test]
async fn a_refused_question_and_one_that_cannot_be_asked_say_nothing_of_the_version() {
    let bao = shared();
    let clients = Clients::of(bao);
    let (path, time) = created(&clients.ingestion, &string("v")).await;
    let recorded = KvVersion {
        path: path.to_string(),
        version: 1,
        created: Some(time),
    };
    let executor = bao.token_file(Identity::Executor);
    let refused = Clients::with(bao.address(), Duration::from_secs(20), |_| executor.clone());
    expect_kv(&refused, &recorded, Class::Unknown, Some(Reason::Denied)).await;
    expect_kv(&clients, &recorded, Class::Retained, None).await;
    // B26: a record whose path the provider would rewrite is not asked about.
    for path in [
        "gen/../access/talos/x",
        "gen//x",
        "gen/x?version=1",
        "gen/%2e%2e/x",
        "",
    ] {
        let odd = KvVersion {
            path: path.into(),
            ..recorded.clone()
        };
        expect_kv(&clients, &odd, Class::Unknown, Some(Reason::Unreachable)).await;
    }
}
