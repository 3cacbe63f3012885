//! Tokens of the stack's real OpenID provider (PA-AUTH-2).

use std::time::{SystemTime, UNIX_EPOCH};

use bronzeward_core::time::DbTime;
use bronzeward_harness::oidc::{AUDIENCE, Algorithm, Oidc, OldKeys, User};
use bronzeward_harness::shared;
use bronzeward_oidc::{Defect, Provider, Refusal, Settings};
use serde_json::{Value, json};

/// The provider's own clock is this machine's; the product passes the database's.
fn now() -> DbTime {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    DbTime::from_micros(passed.as_micros() as i64)
}

fn provider(oidc: &Oidc) -> Provider {
    Provider::new(Settings::new(oidc.issuer(), AUDIENCE)).unwrap()
}

fn claims(oidc: &Oidc) -> Value {
    let now = now().as_seconds();
    json!({
        "iss": oidc.issuer(), "aud": AUDIENCE, "sub": "h-author", "jti": "t-1",
        "iat": now, "exp": now + 600, "groups": ["bw-authors"],
    })
}

// covers-part: PA-AUTH-2 (tokens of a real provider)
#[tokio::test]
async fn every_test_users_token_is_verified_and_names_its_subject_and_groups() {
    let oidc = shared().oidc().unwrap();
    let provider = provider(oidc);
    for user in User::EVERY {
        let token = oidc.token(user).await.unwrap();
        let claims = provider.verify(&token, now()).await.ok().unwrap();
        assert_eq!(claims.sub, user.subject());
        assert_eq!(claims.iss, oidc.issuer());
        assert_eq!(
            claims.exp - claims.iat,
            bronzeward_core::time::Span::seconds(900)
        );
        assert_eq!(claims.groups.is_empty(), user == User::None);
    }
}

// covers: PA-AUTH-2
#[tokio::test]
async fn a_key_rotation_at_the_provider_is_followed_and_a_withdrawn_key_ends() {
    let oidc = Oidc::start().unwrap();
    let provider = provider(&oidc);
    let first = oidc.token(User::Author).await.unwrap();
    assert!(provider.verify(&first, now()).await.is_ok());
    for (algorithm, old) in [
        (Algorithm::Rs256, OldKeys::Published),
        (Algorithm::Es256, OldKeys::Published),
    ] {
        oidc.rotate(algorithm, old).await.unwrap();
        let token = oidc.token(User::Author).await.unwrap();
        assert!(provider.verify(&token, now()).await.is_ok());
        assert!(provider.verify(&first, now()).await.is_ok());
    }
    oidc.rotate(Algorithm::Rs256, OldKeys::Withdrawn)
        .await
        .unwrap();
    let token = oidc.token(User::Author).await.unwrap();
    assert!(provider.verify(&token, now()).await.is_ok());
    let withdrawn = provider.verify(&first, now()).await.err();
    assert_eq!(withdrawn, Some(Refusal::Token(Defect::UnknownKey)));
}

// covers-part: PA-AUTH-1 (RS256 and ES256 signatures of the real provider's keys)
#[tokio::test]
async fn a_defect_signed_by_the_real_provider_is_refused_as_itself() {
    let oidc = shared().oidc().unwrap();
    let provider = provider(oidc);
    let good = claims(oidc);
    let token = oidc.sign(&good, &json!({})).await.unwrap();
    assert!(provider.verify(&token, now()).await.is_ok());
    for (name, value, expected) in [
        ("aud", json!("other"), Defect::Audience),
        ("at_hash", Value::Null, Defect::IdToken),
        ("sub", json!(7), Defect::Subject),
        ("exp", json!(now().as_seconds() + 3600), Defect::Lifetime),
    ] {
        let mut claims = good.clone();
        claims[name] = value;
        let token = oidc.sign(&claims, &json!({})).await.unwrap();
        let refused = provider.verify(&token, now()).await.err();
        assert_eq!(refused, Some(Refusal::Token(expected)), "{name}");
    }
}

#[tokio::test]
async fn a_provider_that_is_away_is_unavailable_and_is_used_again_when_back() {
    let oidc = Oidc::start().unwrap();
    let token = oidc.token(User::Author).await.unwrap();
    oidc.pause().await.unwrap();
    let provider = provider(&oidc);
    let away = provider.verify(&token, now()).await;
    assert!(matches!(away, Err(Refusal::Unavailable(_))));
    oidc.resume().await.unwrap();
    assert!(provider.verify(&token, now()).await.is_ok());
}
