//! Generations are created once, and a write's outcome is never guessed.

use bronzeward_engine::ports::provider::{
    CompilerSecrets, Creation, Failure, GenerationDirectory, IngestionSecrets, Listed,
    OrphanListing,
};
use bronzeward_harness::openbao::{Identity, OpenBao, random_name};
use serde_json::json;

use crate::common::{Clients, cluster, created, ingestion_under, path_in, shared, string};

/// IC §2.3 step 7. B10: the policy refuses an existing path as if it were not granted, also
/// when nothing but its metadata is left; with `update` granted, check-and-set refuses it.
// covers: IC-ING-7
#[tokio::test]
async fn a_generation_is_created_once_at_its_own_path_and_not_read_back_by_who_created_it() {
    let bao = shared();
    let clients = Clients::of(bao);
    let (path, time) = created(&clients.ingestion, &string("planted")).await;
    let text = path.to_string();
    assert_eq!(
        text,
        format!("gen/{}/{}/{}", path.cluster, path.claim, path.value)
    );

    let root = bao.root();
    let stored = root.read_kv(&text, 1).await.unwrap();
    assert_eq!(
        stored.body["data"]["data"],
        json!({ "kind": "string", "value": "planted" })
    );
    // B4: the text with its nanoseconds is the identity, so it is kept as it is.
    assert_eq!(stored.body["data"]["metadata"]["created_time"], json!(time));
    let generation = clients
        .compiler
        .read_generation(&path, 1)
        .await
        .ok()
        .unwrap();
    assert_eq!(generation.created, time);

    let ingestion = tokio::fs::read_to_string(bao.token_file(Identity::Ingestion))
        .await
        .unwrap();
    let as_ingestion = root.with_token(&ingestion);
    assert_eq!(as_ingestion.read_kv(&text, 1).await.unwrap().status, 403);

    // A second create, in every state the path can be in.
    let other = string("other");
    let again = || clients.ingestion.create_generation(&path, &other);
    assert_eq!(again().await, Creation::MayExist);
    root.delete_versions(&text, &[1]).await.unwrap();
    assert_eq!(again().await, Creation::MayExist);
    root.destroy_versions(&text, &[1]).await.unwrap();
    assert_eq!(again().await, Creation::MayExist);
    let bare = path_in(cluster());
    let metadata = json!({ "max_versions": 3 });
    let route = format!("secret/metadata/{bare}");
    root.expect("POST", &route, Some(metadata), 204)
        .await
        .unwrap();
    let outcome = clients
        .ingestion
        .create_generation(&bare, &string("other"))
        .await;
    assert_eq!(outcome, Creation::MayExist);
    assert_eq!(
        root.kv_metadata(&text).await.unwrap().body["data"]["current_version"],
        json!(1)
    );

    // The control: with `update` and `read` granted, the same write is refused by
    // check-and-set alone, a write without it replaces the value, and the read is answered.
    let grant = "path \"secret/data/gen/*\" { capabilities = [\"update\", \"read\"] }";
    let wider = format!("{}\n{grant}\n", Identity::Ingestion.policy_text());
    let file = bao
        .identity_with(&format!("wider-{}", random_name()), &wider)
        .await
        .unwrap();
    let updater = ingestion_under(bao, &file);
    let (path, _) = created(&updater, &string("first")).await;
    let second = updater.create_generation(&path, &string("second")).await;
    assert_eq!(second, Creation::MayExist);
    let as_updater = root.with_token(&tokio::fs::read_to_string(file).await.unwrap());
    let route = format!("secret/data/{path}");
    let replace = json!({ "data": { "kind": "string", "value": "second" } });
    let answer = as_updater
        .expect("POST", &route, Some(replace), 200)
        .await
        .unwrap();
    assert_eq!(answer.body["data"]["version"], json!(2));
    assert_eq!(
        as_updater
            .read_kv(&path.to_string(), 1)
            .await
            .unwrap()
            .status,
        200
    );
}

/// B9: the policy alone does not make a path create-only.
#[tokio::test]
async fn of_eight_racing_creates_one_wins_and_without_check_and_set_they_overwrite() {
    let bao = shared();
    let clients = Clients::of(bao);
    let root = bao.root();
    for _ in 0..10 {
        let path = path_in(cluster());
        let mut racers = tokio::task::JoinSet::new();
        for n in 0..8 {
            let ingestion = clients.ingestion.clone();
            racers.spawn(async move {
                ingestion
                    .create_generation(&path, &string(&n.to_string()))
                    .await
            });
        }
        let outcomes = racers.join_all().await;
        let won = outcomes
            .iter()
            .filter(|o| matches!(o, Creation::Created { .. }))
            .count();
        let lost = outcomes
            .iter()
            .filter(|o| **o == Creation::MayExist)
            .count();
        assert_eq!((won, lost), (1, 7), "{outcomes:?}");
        let metadata = root.kv_metadata(&path.to_string()).await.unwrap();
        assert_eq!(metadata.body["data"]["current_version"], json!(1));
    }

    let token = tokio::fs::read_to_string(bao.token_file(Identity::Ingestion))
        .await
        .unwrap();
    let as_ingestion = root.with_token(&token);
    let mut overwritten = 0;
    for _ in 0..10 {
        let path = path_in(cluster()).to_string();
        let mut racers = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (client, route) = (as_ingestion.clone(), format!("secret/data/{path}"));
            racers.spawn(async move {
                let body = json!({ "data": { "kind": "string", "value": "v" } });
                client
                    .call("POST", &route, Some(body))
                    .await
                    .unwrap()
                    .status
            });
        }
        racers.join_all().await;
        let metadata = root.kv_metadata(&path).await.unwrap();
        overwritten += u32::from(metadata.body["data"]["current_version"] != json!(1));
    }
    assert!(overwritten > 0, "no path was overwritten without cas: 0");
}

/// B29: a mount that deletes versions by age gives a deletion time at birth. A generation
/// there will vanish, so it is no generation.
#[tokio::test]
async fn a_generation_that_is_born_with_a_deletion_time_is_not_taken_for_created() {
    let bao = OpenBao::own().await.unwrap();
    let clients = Clients::of(&bao);
    let age = json!({ "delete_version_after": "1h" });
    bao.root()
        .expect("POST", "secret/config", Some(age), 204)
        .await
        .unwrap();
    let path = path_in(cluster());
    let outcome = clients
        .ingestion
        .create_generation(&path, &string("v"))
        .await;
    assert_eq!(outcome, Creation::Unknown(Failure::Integrity));
    let keep = json!({ "delete_version_after": "0s" });
    bao.root()
        .expect("POST", "secret/config", Some(keep), 204)
        .await
        .unwrap();
    created(&clients.ingestion, &string("v")).await;
}

/// B24: the provider answers a value over its limit by 500 and a wrong number, so it is
/// refused here, by the provider's own measure of it; the largest that is sent is stored.
#[tokio::test]
async fn a_value_beyond_the_providers_limit_is_refused_before_it_is_sent() {
    let bao = shared();
    let clients = Clients::of(bao);
    for (letter, length) in [
        ("x", 1_048_000),
        ("\n", 524_000),
        ("<", 174_666),
        ("\u{1}", 174_666),
    ] {
        let fits = letter.repeat(length);
        let (path, _) = created(&clients.ingestion, &string(&fits)).await;
        let read = clients
            .compiler
            .read_generation(&path, 1)
            .await
            .ok()
            .unwrap();
        assert!(read.value.strings()[0].expose() == fits, "{letter:?}");
        let path = path_in(cluster());
        let more = string(&letter.repeat(length + 1));
        let outcome = clients.ingestion.create_generation(&path, &more).await;
        assert_eq!(outcome, Creation::Refused(Failure::TooLarge), "{letter:?}");
        assert_eq!(
            bao.root()
                .kv_metadata(&path.to_string())
                .await
                .unwrap()
                .status,
            404
        );
    }
    // What the provider would have said.
    let body = json!({ "data": { "kind": "string", "value": "\n".repeat(600_000) } });
    let route = format!("secret/data/{}", path_in(cluster()));
    assert_eq!(
        bao.root()
            .call("POST", &route, Some(body))
            .await
            .unwrap()
            .status,
        500
    );
}

/// B15: before the first ingestion there is no directory at all, and that is emptiness; a
/// mount that is not there is a failure. PA §6.4.
#[tokio::test]
async fn a_listing_names_what_is_there_and_tells_an_empty_directory_from_an_absent_mount() {
    let bao = OpenBao::own().await.unwrap();
    let clients = Clients::of(&bao);
    let none = clients.orphans.list(GenerationDirectory::Clusters).await;
    assert_eq!(none, Ok(Vec::new()));

    let (path, _) = created(&clients.ingestion, &string("v")).await;
    let clusters = clients
        .orphans
        .list(GenerationDirectory::Clusters)
        .await
        .unwrap();
    assert_eq!(clusters, [Listed::Directory(path.cluster.to_string())]);
    let claims = clients
        .orphans
        .list(GenerationDirectory::Claims(path.cluster))
        .await
        .unwrap();
    assert_eq!(claims, [Listed::Directory(path.claim.to_string())]);
    let directory = GenerationDirectory::Values(path.cluster, path.claim);
    let value = [Listed::Secret(path.value.to_string())];
    assert_eq!(clients.orphans.list(directory).await.unwrap(), value);
    // A generation whose versions are gone is still listed.
    bao.root()
        .destroy_versions(&path.to_string(), &[1])
        .await
        .unwrap();
    assert_eq!(clients.orphans.list(directory).await.unwrap(), value);
    let other = GenerationDirectory::Claims(cluster());
    assert_eq!(clients.orphans.list(other).await, Ok(Vec::new()));

    bao.root()
        .expect("DELETE", "sys/mounts/secret", None, 204)
        .await
        .unwrap();
    let absent = clients.orphans.list(GenerationDirectory::Clusters).await;
    assert_eq!(absent, Err(Failure::Absent));
    let outcome = clients
        .ingestion
        .create_generation(&path, &string("v"))
        .await;
    assert_eq!(outcome, Creation::MayExist);
}
