//! The host rule: which addresses keys are taken from (PA §10.1).

use std::collections::BTreeSet;
use std::process::Command;

use bronzeward_core::rules::{Enforced, Rule, Rules};
use serde_json::json;

use super::stub::Stub;
use super::{Signer, Without, good_claims, now};
use crate::{Outage, Provider, Refusal, Settings};

const HOST_RULE: Without = Without(&[Rule::PlainHttpHost]);

fn settings(issuer: &str, hosts: &[&str]) -> Settings {
    let mut settings = Settings::new(issuer, "bronzeward");
    settings.plain_http_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    settings
}

async fn outage<R: Rules>(stub: &Stub, rules: R, token: &str) -> Option<Outage> {
    let provider = Provider::with_rules(settings(&stub.issuer, &[]), rules).unwrap();
    match provider.verify(token, now()).await {
        Ok(_) => None,
        Err(Refusal::Unavailable(outage)) => Some(outage),
        Err(Refusal::Token(defect)) => panic!("token refused: {}", defect.as_str()),
    }
}

// covers: PA-AUTH-9
#[test]
fn a_plain_http_issuer_is_admitted_on_the_own_host_or_by_its_exact_name() {
    let admitted = |issuer: &str, hosts: &[&str]| Provider::new(settings(issuer, hosts)).is_ok();
    for own in [
        "http://127.0.0.1:1",
        "http://127.9.9.9",
        "http://[::1]:1",
        "http://localhost/a",
    ] {
        assert!(admitted(own, &[]), "{own}");
    }
    assert!(admitted("https://idp.example", &[]));
    assert!(admitted("http://idp.example:8080/realm", &["idp.example"]));
    for (issuer, hosts) in [
        ("http://idp.example", &[][..]),
        (
            "http://idp.example",
            &["example", "idp", "IDP.example", "http://idp.example"],
        ),
        ("http://sub.idp.example", &["idp.example"]),
        ("http://localhost.evil.example", &["localhost"]),
        ("http://10.0.0.1", &[]),
        ("http://167772161", &["167772161"]),
    ] {
        assert!(!admitted(issuer, hosts), "{issuer} {hosts:?}");
        let dropped = Provider::with_rules(settings(issuer, hosts), HOST_RULE);
        assert!(dropped.is_ok(), "{issuer} {hosts:?}");
    }
    // What is no plain address of a host is refused whatever is listed.
    for issuer in [
        "http://user@idp.example",
        "https://user:pass@idp.example",
        "ftp://idp.example",
        "file:///etc/issuer",
        "idp.example",
    ] {
        let refused = Provider::with_rules(settings(issuer, &["idp.example"]), HOST_RULE);
        assert!(refused.is_err(), "{issuer}");
    }
}

/// A name under which this machine answers but which is not the rule's own host.
fn other_name(address: &str) -> String {
    address.replace("127.0.0.1", "0.0.0.0")
}

// covers: PA-AUTH-9
#[tokio::test]
async fn a_key_set_on_an_unlisted_plain_http_host_is_refused() {
    let signer = Signer::new("k1");
    let stub = Stub::with_keys(&[signer.jwk()]).await;
    let token = signer.token(&good_claims(&stub.issuer));
    let jwks = other_name(&format!("{}/jwks", stub.issuer));
    stub.discover(&json!({"issuer": stub.issuer, "jwks_uri": jwks}));
    assert_eq!(
        outage(&stub, Enforced, &token).await,
        Some(Outage::HostRefused)
    );
    assert_eq!(stub.asked("/jwks"), 0);
    assert_eq!(outage(&stub, HOST_RULE, &token).await, None);
    let listed = Provider::new(settings(&stub.issuer, &["0.0.0.0"])).unwrap();
    assert!(listed.verify(&token, now()).await.is_ok());
}

// covers: PA-AUTH-9
#[tokio::test]
async fn a_redirect_to_an_unlisted_plain_http_host_is_refused_at_either_step() {
    let signer = Signer::new("k1");
    let stub = Stub::with_keys(&[signer.jwk()]).await;
    let token = signer.token(&good_claims(&stub.issuer));
    stub.answers("/keys", 200, &json!({"keys": [signer.jwk()]}).to_string());
    stub.redirects("/jwks", &other_name(&format!("{}/keys", stub.issuer)));
    assert_eq!(
        outage(&stub, Enforced, &token).await,
        Some(Outage::HostRefused)
    );
    assert_eq!(stub.asked("/keys"), 0);
    assert_eq!(outage(&stub, HOST_RULE, &token).await, None);

    stub.redirects("/jwks", "/keys");
    assert_eq!(outage(&stub, Enforced, &token).await, None);

    stub.redirects_discovery("http://idp.example/");
    assert_eq!(
        outage(&stub, Enforced, &token).await,
        Some(Outage::HostRefused)
    );
    stub.redirects_discovery("gopher://127.0.0.1/");
    assert_eq!(
        outage(&stub, HOST_RULE, &token).await,
        Some(Outage::HostRefused)
    );
    stub.redirects_discovery("/.well-known/openid-configuration");
    assert_eq!(
        outage(&stub, Enforced, &token).await,
        Some(Outage::TooManyRedirects)
    );
}

const CHILD: &str = "BRONZEWARD_OIDC_PROXY_CHILD";

// covers: PA-AUTH-9
#[tokio::test]
async fn a_proxy_of_the_environment_never_sees_a_plain_http_request() {
    // Started again by itself with a proxy in its environment: that is read when a
    // client is made, and changing this process's own would reach other tests.
    if let Ok(child) = std::env::var(CHILD) {
        let (dropped, issuer) = child.split_once(' ').unwrap();
        let token = Signer::new("k1").token(&good_claims(issuer));
        let rules: &'static [Rule] = match dropped {
            "PlainHttpDirect" => &[Rule::PlainHttpDirect],
            _ => &[],
        };
        let provider = Provider::with_rules(settings(issuer, &[]), Without(rules)).unwrap();
        // The outcome is the stub's to see; a proxy answers 404 here.
        let _seen_by_the_parent = provider.verify(&token, now()).await.is_ok();
        return;
    }
    let stub = Stub::with_keys(&[Signer::new("k1").jwk()]).await;
    let proxy = Stub::start().await;
    let run = |dropped: &'static str| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args([
                "--exact",
                "tests::hosts::a_proxy_of_the_environment_never_sees_a_plain_http_request",
            ])
            .env(CHILD, format!("{dropped} {}", stub.issuer))
            .env("HTTP_PROXY", &proxy.issuer)
            .env("http_proxy", &proxy.issuer)
            .env("ALL_PROXY", &proxy.issuer)
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .stdout(std::process::Stdio::null());
        tokio::task::spawn_blocking(move || child.status().unwrap())
    };
    assert!(run("nothing").await.unwrap().success());
    assert_eq!(proxy.targets(), Vec::<String>::new());
    assert_eq!(stub.asked("/jwks"), 1);
    assert!(run("PlainHttpDirect").await.unwrap().success());
    assert!(!proxy.targets().is_empty());
    assert_eq!(stub.asked("/jwks"), 1);
}

#[tokio::test]
async fn an_answer_that_is_no_providers_is_an_outage_and_never_a_refusal_of_the_token() {
    let signer = Signer::new("k1");
    let stub = Stub::start().await;
    let token = signer.token(&good_claims(&stub.issuer));
    assert_eq!(outage(&stub, Enforced, &token).await, Some(Outage::Status));
    stub.discover(&json!({"issuer": "https://other.test", "jwks_uri": stub.issuer}));
    assert_eq!(
        outage(&stub, Enforced, &token).await,
        Some(Outage::OtherIssuer)
    );
    stub.discover(&json!({"issuer": stub.issuer}));
    assert_eq!(
        outage(&stub, Enforced, &token).await,
        Some(Outage::NotUnderstood)
    );
    let jwks = format!("{}/jwks", stub.issuer);
    stub.discover(&json!({"issuer": stub.issuer, "jwks_uri": jwks}));
    for body in ["", "[]", "{}", "{\"keys\": 1}", &"[".repeat(2_000_000)] {
        stub.answers("/jwks", 200, body);
        assert_eq!(
            outage(&stub, Enforced, &token).await,
            Some(Outage::NotUnderstood)
        );
    }
    stub.answers("/jwks", 500, "{\"keys\": []}");
    assert_eq!(outage(&stub, Enforced, &token).await, Some(Outage::Status));
    let gone = settings("http://127.0.0.1:1", &[]);
    let provider = Provider::new(gone).unwrap();
    let token = signer.token(&good_claims("http://127.0.0.1:1"));
    let outcome = provider.verify(&token, now()).await;
    assert!(matches!(
        outcome,
        Err(Refusal::Unavailable(Outage::Unreachable))
    ));
}

#[test]
fn a_listed_host_is_a_name_and_no_pattern() {
    let hosts: BTreeSet<String> = settings("http://a", &["*", "*.example"]).plain_http_hosts;
    let mut settings = Settings::new("http://idp.example", "bronzeward");
    settings.plain_http_hosts = hosts;
    assert_eq!(Provider::new(settings).err(), Some(Outage::HostRefused));
}
