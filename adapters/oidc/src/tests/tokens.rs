//! Each defect of PA §10.1, each beside its control.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bronzeward_core::principal::Role;
use bronzeward_core::rules::{Enforced, Rule, Rules};
use bronzeward_core::time::DbTime;
use hmac::Mac;
use proptest::prelude::*;
use ring::signature::KeyPair;
use serde_json::{Value, json};

use super::stub::Stub;
use super::{NOW, Signer, Without, good_claims, now, signing_input};
use crate::{Defect, Provider, Refusal, RoleMap, Settings, TokenClaims, claims};

async fn verify<R: Rules>(stub: &Stub, rules: R, token: &str) -> Result<TokenClaims, Refusal> {
    let settings = Settings::new(stub.issuer.clone(), "bronzeward");
    let provider = Provider::with_rules(settings, rules).unwrap();
    provider.verify(token, now()).await
}

fn defect<T>(outcome: Result<T, Refusal>) -> Option<Defect> {
    match outcome {
        Ok(_) => None,
        Err(Refusal::Token(defect)) => Some(defect),
        Err(Refusal::Unavailable(outage)) => panic!("not available: {outage}"),
    }
}

/// A defect of the claims: what is set (null in the table removes), the refusal it
/// gives, and the one rule whose absence lets it through.
type Case = (&'static str, Value, Defect, &'static [Rule]);

fn cases() -> Vec<Case> {
    vec![
        (
            "iss",
            json!("https://other.test"),
            Defect::Issuer,
            &[Rule::JwtIssuer],
        ),
        ("iss", Value::Null, Defect::Issuer, &[Rule::JwtIssuer]),
        (
            "aud",
            json!("another"),
            Defect::Audience,
            &[Rule::JwtAudience],
        ),
        (
            "aud",
            json!(["a", "b"]),
            Defect::Audience,
            &[Rule::JwtAudience],
        ),
        ("aud", Value::Null, Defect::Audience, &[Rule::JwtAudience]),
        ("exp", json!(NOW - 60), Defect::Expired, &[Rule::JwtExpiry]),
        (
            "nbf",
            json!(NOW + 61),
            Defect::NotYetValid,
            &[Rule::JwtNotBefore],
        ),
        (
            "nbf",
            json!("soon"),
            Defect::NotYetValid,
            &[Rule::JwtNotBefore],
        ),
        (
            "iat",
            Value::Null,
            Defect::IssuedAtMissing,
            &[Rule::JwtIssuedAtPresent],
        ),
        (
            "iat",
            json!("then"),
            Defect::IssuedAtMissing,
            &[Rule::JwtIssuedAtPresent],
        ),
        (
            "iat",
            json!(NOW + 61),
            Defect::IssuedInFuture,
            &[Rule::JwtIssuedAtPast],
        ),
        (
            "exp",
            json!(NOW - 60 + 901),
            Defect::Lifetime,
            &[Rule::JwtLifetime],
        ),
        ("sub", Value::Null, Defect::Subject, &[Rule::JwtSubject]),
        ("sub", json!(""), Defect::Subject, &[Rule::JwtSubject]),
        ("sub", json!(7), Defect::Subject, &[Rule::JwtSubject]),
        (
            "sub",
            json!(["h-author"]),
            Defect::Subject,
            &[Rule::JwtSubject],
        ),
        ("nonce", json!("n"), Defect::IdToken, &[Rule::JwtNotIdToken]),
        (
            "at_hash",
            json!("h"),
            Defect::IdToken,
            &[Rule::JwtNotIdToken],
        ),
        (
            "jti",
            Value::Null,
            Defect::Identifier,
            &[Rule::JwtIdentifier],
        ),
        ("jti", json!(""), Defect::Identifier, &[Rule::JwtIdentifier]),
        ("jti", json!(1), Defect::Identifier, &[Rule::JwtIdentifier]),
    ]
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    match value {
        Value::Null => claims.as_object_mut().unwrap().remove(name),
        value => claims
            .as_object_mut()
            .unwrap()
            .insert(name.to_owned(), value),
    };
    claims
}

// covers: PA-AUTH-1
#[tokio::test]
async fn each_defect_of_the_claims_is_refused_by_its_own_rule_and_by_no_other() {
    let signer = Signer::new("k1");
    let stub = Stub::with_keys(&[signer.jwk()]).await;
    let good = good_claims(&stub.issuer);
    assert_eq!(
        defect(verify(&stub, Enforced, &signer.token(&good)).await),
        None
    );
    for (name, value, expected, rule) in cases() {
        let claims = with(good.clone(), name, value.clone());
        let token = signer.token(&claims);
        let refused = defect(verify(&stub, Enforced, &token).await);
        assert_eq!(refused, Some(expected), "{name} {value}");
        let let_through = defect(verify(&stub, Without(rule), &token).await);
        assert_eq!(let_through, None, "{name} {value} without {rule:?}");
    }
    // Null is a member too: present, so an ID token's mark.
    for mark in ["nonce", "at_hash"] {
        let mut claims = good.clone();
        claims[mark] = Value::Null;
        let token = signer.token(&claims);
        let refused = defect(verify(&stub, Enforced, &token).await);
        assert_eq!(refused, Some(Defect::IdToken), "{mark}");
        let rules = Without(&[Rule::JwtNotIdToken]);
        assert_eq!(defect(verify(&stub, rules, &token).await), None, "{mark}");
    }
}

// covers: PA-AUTH-1
#[tokio::test]
async fn an_unsigned_a_shared_secret_and_a_strangers_token_are_refused() {
    let signer = Signer::new("k1");
    let stub = Stub::with_keys(&[signer.jwk()]).await;
    let claims = good_claims(&stub.issuer);

    let none = format!(
        "{}.",
        signing_input(&json!({"alg": "none", "kid": "k1"}), &claims)
    );
    let input = signing_input(&json!({"alg": "HS256", "kid": "k1"}), &claims);
    let public = signer.pair.public_key().as_ref();
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(public).unwrap();
    mac.update(input.as_bytes());
    let tag = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    let shared = format!("{input}.{tag}");
    for token in [none, shared] {
        let enforced = defect(verify(&stub, Enforced, &token).await);
        assert_eq!(enforced, Some(Defect::Algorithm));
        // Either rule alone refuses it; with neither it is a credential.
        let signature = Without(&[Rule::JwtSignature]);
        assert_eq!(
            defect(verify(&stub, signature, &token).await),
            Some(Defect::Algorithm)
        );
        let algorithm = Without(&[Rule::JwtAlgorithm]);
        assert_eq!(
            defect(verify(&stub, algorithm, &token).await),
            Some(Defect::UnknownKey)
        );
        let neither = Without(&[Rule::JwtAlgorithm, Rule::JwtSignature]);
        assert_eq!(defect(verify(&stub, neither, &token).await), None);
    }

    let stranger = Signer::new("k1").token(&claims);
    assert_eq!(
        defect(verify(&stub, Enforced, &stranger).await),
        Some(Defect::Signature)
    );
    let rules = Without(&[Rule::JwtSignature]);
    assert_eq!(defect(verify(&stub, rules, &stranger).await), None);

    let good = signer.token(&claims);
    let (rest, _) = good.rsplit_once('.').unwrap();
    for broken in [
        format!("{rest}."),
        format!("{rest}.AAAA"),
        format!("{rest}.!"),
    ] {
        assert_eq!(
            defect(verify(&stub, Enforced, &broken).await),
            Some(Defect::Signature)
        );
    }
}

#[tokio::test]
async fn a_token_of_another_form_is_refused_before_any_key_is_fetched() {
    let signer = Signer::new("k1");
    let stub = Stub::with_keys(&[signer.jwk()]).await;
    let claims = good_claims(&stub.issuer);
    let critical = json!({"alg": "ES256", "kid": "k1", "crit": ["b64"], "b64": false});
    let token = signer.token_with(&critical, &claims);
    assert_eq!(
        defect(verify(&stub, Enforced, &token).await),
        Some(Defect::CriticalHeader)
    );
    let long = format!("a.b.{}", "c".repeat(20_000));
    let numbered = signer.token_with(&json!({"alg": "ES256", "kid": 1}), &claims);
    for token in [
        "",
        "a",
        "a.b",
        "a.b.c",
        "..",
        "bwt_tok.secret",
        &long,
        &numbered,
    ] {
        assert_eq!(
            defect(verify(&stub, Enforced, token).await),
            Some(Defect::Malformed)
        );
    }
    for algorithm in ["ES512", "es256", "HS512", "RS1", ""] {
        let token = signer.token_with(&json!({"alg": algorithm, "kid": "k1"}), &claims);
        assert_eq!(
            defect(verify(&stub, Enforced, &token).await),
            Some(Defect::Algorithm)
        );
    }
    assert!(stub.targets().is_empty());
}

#[tokio::test]
async fn a_key_signs_only_under_the_algorithm_and_use_it_is_published_for() {
    let signer = Signer::new("k1");
    let stub = Stub::with_keys(&[]).await;
    let token = signer.token(&good_claims(&stub.issuer));
    for (member, value) in [
        ("use", json!("enc")),
        ("alg", json!("ES384")),
        ("crv", json!("P-384")),
    ] {
        let mut key = signer.jwk();
        key[member] = value;
        // A key beside it that is fine, so that the set is not empty.
        stub.publish(&[key, Signer::new("k2").jwk()]);
        let refused = defect(verify(&stub, Enforced, &token).await);
        assert_eq!(refused, Some(Defect::UnknownKey), "{member}");
    }
    stub.publish(&[
        json!({"kty": "oct", "k": "AAAA", "kid": "k0"}),
        signer.jwk(),
    ]);
    assert_eq!(defect(verify(&stub, Enforced, &token).await), None);
    // Without an identifier every fit key is tried.
    let anonymous = signer.token_with(&json!({"alg": "ES256"}), &good_claims(&stub.issuer));
    stub.publish(&[Signer::new("k2").jwk(), signer.jwk()]);
    assert_eq!(defect(verify(&stub, Enforced, &anonymous).await), None);
}

fn checked(claims: &Value, at: DbTime) -> Result<TokenClaims, Defect> {
    let settings = Settings::new("https://idp.test", "bronzeward");
    claims::check(&Enforced, &settings, claims.as_object().unwrap(), at)
}

#[test]
fn sixty_seconds_of_skew_are_granted_and_not_one_more() {
    let good = good_claims("https://idp.test");
    let at = |seconds: i64| DbTime::from_seconds(seconds);
    let exp = NOW + 600;
    assert!(checked(&good, at(exp + 59)).is_ok());
    assert_eq!(checked(&good, at(exp + 60)).err(), Some(Defect::Expired));
    let early = with(good.clone(), "nbf", json!(NOW + 60));
    assert!(checked(&early, at(NOW)).is_ok());
    assert_eq!(
        checked(&early, at(NOW - 1)).err(),
        Some(Defect::NotYetValid)
    );
    let ahead = with(good.clone(), "iat", json!(NOW + 60));
    assert!(checked(&ahead, at(NOW)).is_ok());
    let longest = with(good.clone(), "exp", json!(NOW - 60 + 900));
    assert!(checked(&longest, at(NOW)).is_ok());
    let fraction = with(good, "exp", json!(NOW as f64 + 600.5));
    assert!(checked(&fraction, at(exp + 59)).is_ok());
}

#[test]
fn a_token_without_an_expiry_is_refused_whatever_its_other_dates() {
    let claims = with(good_claims("https://idp.test"), "exp", Value::Null);
    assert_eq!(checked(&claims, now()).err(), Some(Defect::Expired));
    let claims = with(claims, "exp", json!(1e300));
    assert_eq!(checked(&claims, now()).err(), Some(Defect::Expired));
}

#[test]
fn groups_and_display_come_from_their_claims_and_an_unusable_one_counts_as_absent() {
    let good = good_claims("https://idp.test");
    let read = |claims: &Value| checked(claims, now()).ok().unwrap();
    assert_eq!(read(&good).display.as_deref(), Some("Ada"));
    assert_eq!(read(&good).exp, DbTime::from_seconds(NOW + 600));
    for unusable in [Value::Null, json!(""), json!(1), json!("a\u{0}b")] {
        let mut claims = with(good.clone(), "name", unusable);
        assert_eq!(read(&claims).display, None);
        claims["preferred_username"] = json!("ada");
        assert_eq!(read(&claims).display.as_deref(), Some("ada"));
    }
    for shapeless in [
        Value::Null,
        json!("bw-authors"),
        json!({"bw-authors": 1}),
        json!([1]),
    ] {
        assert!(
            read(&with(good.clone(), "groups", shapeless))
                .groups
                .is_empty()
        );
    }
    let mut settings = Settings::new("https://idp.test", "bronzeward");
    settings.display_claim = Some("nick".to_owned());
    settings.groups_claim = "teams".to_owned();
    let claims = with(with(good, "nick", json!("a")), "teams", json!(["t"]));
    let read = claims::check(&Enforced, &settings, claims.as_object().unwrap(), now());
    let read = read.ok().unwrap();
    assert_eq!(read.display.as_deref(), Some("a"));
    assert!(read.groups.contains("t") && read.groups.len() == 1);
}

#[test]
fn roles_are_those_the_groups_give_and_no_others() {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let map = RoleMap::new([
        (Role::Author, set(&["bw-authors", "editors"])),
        (Role::Approver, set(&["bw-approvers"])),
        (Role::Publisher, set(&[])),
    ]);
    assert!(map.roles(&set(&[])).is_empty());
    assert!(
        map.roles(&set(&["BW-Authors", "bw", "publisher"]))
            .is_empty()
    );
    let both = map.roles(&set(&["editors", "bw-approvers", "bw-authors"]));
    assert_eq!(
        both.into_iter().collect::<Vec<_>>(),
        [Role::Author, Role::Approver]
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[A-Za-z0-9_.=-]{0,120}") {
        let _ = crate::jwt::Token::parse(&text);
    }

    #[test]
    fn no_dates_make_the_checks_panic(exp in any::<i64>(), iat in any::<i64>(), nbf in any::<f64>()) {
        let mut claims = good_claims("https://idp.test");
        claims["exp"] = json!(exp);
        claims["iat"] = json!(iat);
        claims["nbf"] = json!(nbf);
        let _ = checked(&claims, now());
    }
}
