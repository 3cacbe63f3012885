//! Encryption and keyed digests, across rotations, floors and deleted keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bronzeward_core::idempotency::DigestKey;
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::ports::provider::{
    Ciphertext, CompilerSecrets, ExecutorSecrets, Failure, IngestionSecrets, versioned,
};
use bronzeward_harness::openbao::OpenBao;
use serde_json::json;

use crate::common::{Clients, shared, text};

#[tokio::test]
async fn an_artifact_is_opened_by_the_executor_under_its_bound_key_version_only() {
    let bao = OpenBao::own().await.unwrap();
    let clients = Clients::of(&bao);
    let root = bao.root();
    let artifact = "machine:\n  # \u{fc}ber\n".repeat(5_000);
    let first = clients
        .compiler
        .encrypt_artifact(&text(&artifact))
        .await
        .unwrap();
    let again = clients
        .compiler
        .encrypt_artifact(&text(&artifact))
        .await
        .unwrap();
    assert_ne!(first, again, "encryption is not deterministic");
    assert_eq!(first.key_version(), 1);
    let opened = |c: Ciphertext, bound| {
        let executor = clients.executor.clone();
        async move {
            executor
                .decrypt_artifact(&c, bound)
                .await
                .map(|p| p.expose().to_owned())
        }
    };
    assert_eq!(opened(first.clone(), 1).await.as_ref(), Ok(&artifact));
    assert_eq!(opened(first.clone(), 2).await, Err(Failure::Integrity));

    root.rotate_key("bw-artifact").await.unwrap();
    let second = clients.compiler.encrypt_artifact(&text("x")).await.unwrap();
    assert_eq!(second.key_version(), 2);
    assert_eq!(opened(first.clone(), 1).await.as_ref(), Ok(&artifact));
    root.configure_key("bw-artifact", json!({ "min_decryption_version": 2 }))
        .await
        .unwrap();
    assert_eq!(opened(first.clone(), 1).await, Err(Failure::Refused));
    assert_eq!(opened(second.clone(), 2).await, Ok("x".to_owned()));
    root.configure_key("bw-artifact", json!({ "min_decryption_version": 1 }))
        .await
        .unwrap();
    assert_eq!(opened(first.clone(), 1).await.as_ref(), Ok(&artifact));

    // Damage, another key's ciphertext, and one of a version that never was.
    let staged = clients.ingestion.encrypt_staging(&text("x")).await.unwrap();
    assert_eq!(opened(staged.clone(), 1).await, Err(Failure::Refused));
    let later = Ciphertext::parse(&second.as_str().replacen(":v2:", ":v3:", 1)).unwrap();
    assert_eq!(opened(later, 3).await, Err(Failure::Refused));

    // B31: the provider opens other spellings, which therefore never reach it.
    for spelling in ["v01", "v0"] {
        let other = first.as_str().replacen("v1", spelling, 1);
        let body = json!({ "ciphertext": other });
        let answer = root
            .call("POST", "transit/decrypt/bw-artifact", Some(body))
            .await
            .unwrap();
        assert_eq!(answer.status, 200, "{spelling}");
        assert!(Ciphertext::parse(&other).is_none());
    }

    // B18: the key deleted, nothing makes it again and nothing opens what it closed.
    root.delete_key("bw-artifact").await.unwrap();
    let encrypted = clients.compiler.encrypt_artifact(&text("x")).await;
    assert!(
        matches!(encrypted, Err(Failure::Denied | Failure::Refused)),
        "{encrypted:?}"
    );
    assert_eq!(opened(second.clone(), 2).await, Err(Failure::Refused));
    let key = root
        .call("GET", "transit/keys/bw-artifact", None)
        .await
        .unwrap();
    assert_eq!(key.status, 404);
    root.create_key("bw-artifact").await.unwrap();
    assert_eq!(opened(first, 1).await, Err(Failure::Refused));
}

#[tokio::test]
async fn a_staged_envelope_opens_for_another_ingestion_and_a_baseline_for_nobody() {
    let clients = Clients::of(shared());
    for envelope in ["", "\u{0}", "{\"document\":\"\u{1f600}\"}"] {
        let staged = clients
            .ingestion
            .encrypt_staging(&text(envelope))
            .await
            .unwrap();
        let taker = Clients::of(shared()).ingestion;
        let opened = taker.decrypt_staging(&staged).await.ok().unwrap();
        assert_eq!(opened.expose(), envelope);
    }
    let baseline = clients
        .ingestion
        .encrypt_baseline(&text("machine: {}"))
        .await
        .unwrap();
    let opened = clients.ingestion.decrypt_staging(&baseline).await;
    assert_eq!(opened.err(), Some(Failure::Refused));
    let root = shared().root();
    let body = json!({ "ciphertext": baseline.as_str() });
    let answer = root
        .expect("POST", "transit/decrypt/bw-baseline", Some(body), 200)
        .await
        .unwrap();
    let opened = STANDARD
        .decode(answer.body["data"]["plaintext"].as_str().unwrap())
        .unwrap();
    assert_eq!(opened, b"machine: {}");

    // Bytes that are no text were not encrypted by us.
    let body = json!({ "plaintext": STANDARD.encode([0xff, 0xfe]) });
    let answer = root
        .expect("POST", "transit/encrypt/bw-staging", Some(body), 200)
        .await
        .unwrap();
    let foreign = Ciphertext::parse(answer.body["data"]["ciphertext"].as_str().unwrap()).unwrap();
    let opened = clients.ingestion.decrypt_staging(&foreign).await;
    assert_eq!(opened.err(), Some(Failure::Integrity));
}

/// IC §4.1, PA §7.1: current version for a new record, the record's version for a retry.
/// B12 and the batch item's ignored `key_version` are why the two are different calls.
// covers-part: PA-IDEM-7 (the digest is keyed, names its key version, and is recomputed under it)
#[tokio::test]
async fn a_digest_names_its_key_version_and_is_recomputed_under_it_after_a_rotation() {
    let bao = OpenBao::own().await.unwrap();
    let clients = Clients::of(&bao);
    let root = bao.root();
    let inputs: Vec<Plaintext> = (0..1_200).map(|n| text(&format!("value-{n}"))).collect();
    let first = clients.ingestion.keyed_digests(&inputs).await.unwrap();
    assert_eq!(first.len(), inputs.len());
    assert_eq!(
        first[0].key,
        DigestKey {
            name: "bw-digest".into(),
            version: 1
        }
    );
    let mut distinct: Vec<[u8; 32]> = first.iter().map(|d| d.mac).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), inputs.len());
    // The provider's own single answer for the last input, so order is kept across batches.
    let body = json!({ "input": STANDARD.encode("value-1199") });
    let answer = root
        .expect("POST", "transit/hmac/bw-digest", Some(body), 200)
        .await
        .unwrap();
    let (_, mac) = versioned(answer.body["data"]["hmac"].as_str().unwrap()).unwrap();
    assert_eq!(STANDARD.decode(mac).unwrap(), first[1199].mac);
    assert!(
        clients
            .ingestion
            .keyed_digests(&[])
            .await
            .unwrap()
            .is_empty()
    );

    root.rotate_key("bw-digest").await.unwrap();
    let second = clients.ingestion.keyed_digests(&inputs[..1]).await.unwrap();
    assert_eq!(second[0].key.version, 2);
    assert_ne!(second[0].mac, first[0].mac);
    let under = async |version: i64, name: &str| {
        let key = DigestKey {
            name: name.into(),
            version,
        };
        clients.ingestion.recompute_digest(&key, &inputs[0]).await
    };
    assert_eq!(under(1, "bw-digest").await, Ok(first[0].clone()));
    assert_eq!(under(2, "bw-digest").await, Ok(second[0].clone()));
    for (version, name) in [
        (3, "bw-digest"),
        (0, "bw-digest"),
        (-1, "bw-digest"),
        (1, "bw-staging"),
    ] {
        assert_eq!(
            under(version, name).await,
            Err(Failure::Refused),
            "{name} {version}"
        );
    }
    // A batch item that names a version is answered under the current one, silently.
    let item =
        json!({ "batch_input": [{ "input": STANDARD.encode("value-0"), "key_version": 1 }] });
    let answer = root
        .expect("POST", "transit/hmac/bw-digest", Some(item), 200)
        .await
        .unwrap();
    let hmac = answer.body["data"]["batch_results"][0]["hmac"]
        .as_str()
        .unwrap();
    assert_eq!(versioned(hmac).unwrap().0, 2);

    root.configure_key("bw-digest", json!({ "min_decryption_version": 2 }))
        .await
        .unwrap();
    assert_eq!(under(1, "bw-digest").await, Err(Failure::Refused));
    root.delete_key("bw-digest").await.unwrap();
    assert_eq!(under(2, "bw-digest").await, Err(Failure::Refused));
    assert_eq!(
        clients.ingestion.keyed_digests(&inputs[..1]).await,
        Err(Failure::Refused)
    );
}

/// B25: the last bytes below the provider's limit would encrypt and never open again.
#[tokio::test]
async fn the_largest_plaintext_that_is_encrypted_is_opened_again() {
    let clients = Clients::of(shared());
    let largest = text(&"x".repeat(25_165_772));
    let closed = clients.compiler.encrypt_artifact(&largest).await.unwrap();
    let version = closed.key_version();
    let opened = clients
        .executor
        .decrypt_artifact(&closed, version)
        .await
        .ok()
        .unwrap();
    assert!(opened.same(&largest));
    let more = text(&"x".repeat(25_165_773));
    assert_eq!(
        clients.compiler.encrypt_artifact(&more).await,
        Err(Failure::TooLarge)
    );
}
