//! Tests of the crate: tokens made and signed here, a provider that is a table of
//! answers, and rules that can be dropped.

mod hosts;
mod kept_keys;
mod stub;
mod tokens;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::DbTime;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// Lets named rules go.
#[derive(Clone, Copy, Debug)]
struct Without(&'static [Rule]);

impl Rules for Without {
    fn holds(&self, rule: Rule, condition: bool) -> bool {
        condition || self.0.contains(&rule)
    }
}

/// The database's time of every test, in seconds since 1970.
const NOW: i64 = 1_790_000_000;

fn now() -> DbTime {
    DbTime::from_seconds(NOW)
}

/// A P-256 key of a provider, under an identifier.
struct Signer {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self { id, pair }
    }

    fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": URL_SAFE_NO_PAD.encode(&point[1..33]),
            "y": URL_SAFE_NO_PAD.encode(&point[33..65]),
        })
    }

    fn token(&self, claims: &Value) -> String {
        self.token_with(
            &json!({"alg": "ES256", "typ": "at+jwt", "kid": self.id}),
            claims,
        )
    }

    fn token_with(&self, header: &Value, claims: &Value) -> String {
        let signed = signing_input(header, claims);
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.unwrap().as_ref());
        format!("{signed}.{signature}")
    }
}

fn signing_input(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// Claims that pass every check at [`NOW`].
fn good_claims(issuer: &str) -> Value {
    json!({
        "iss": issuer, "aud": "bronzeward", "sub": "h-author", "jti": "t-1",
        "iat": NOW - 60, "nbf": NOW - 60, "exp": NOW + 600,
        "groups": ["bw-authors", "others"], "name": "Ada",
    })
}
