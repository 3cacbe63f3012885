//! The provider's published keys (RFC 7517), and a signature checked with one.
//!
//! `lib` keeps a set and asks it. Never in this module: a private or a shared
//! key; one that is published by mistake is passed over.

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

use bronzeward_core::rules::Rules;

use crate::Outage;
use crate::fetch::Fetcher;
use crate::jwt::{Token, asymmetric};

/// A published signature key and the algorithms it is fit for.
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

/// A key set as it was fetched.
pub(crate) struct KeySet {
    keys: Vec<Key>,
}

impl KeySet {
    fn read(set: &Value) -> Result<Self, Outage> {
        let listed = set.get("keys").and_then(Value::as_array);
        let listed = listed.ok_or(Outage::NotUnderstood)?;
        // A key of a kind we do not know is no fault of the set (RFC 7517 §5).
        Ok(Self {
            keys: listed.iter().filter_map(key).collect(),
        })
    }

    fn candidates<'a>(&'a self, token: &'a Token<'_>) -> impl Iterator<Item = &'a Key> {
        self.keys.iter().filter(move |key| {
            let named = token
                .key_id()
                .is_none_or(|id| key.id.as_deref() == Some(id));
            let fit = token
                .algorithm()
                .is_some_and(|algorithm| key.algorithms.contains(&algorithm));
            named && fit
        })
    }

    /// Whether some key of the set could have signed the token.
    pub(crate) fn knows(&self, token: &Token<'_>) -> bool {
        self.candidates(token).next().is_some()
    }

    /// Whether a key of the set signed the token.
    pub(crate) fn verify(&self, token: &Token<'_>) -> bool {
        let Some(algorithm) = token.algorithm() else {
            return false;
        };
        self.candidates(token).any(|key| {
            let signed = token.signed().as_bytes();
            jsonwebtoken::crypto::verify(token.signature(), signed, &key.key, algorithm)
                .unwrap_or(false)
        })
    }
}

fn key(published: &Value) -> Option<Key> {
    let member = |name: &str| published.get(name).and_then(Value::as_str);
    if member("use").is_some_and(|usage| usage != "sig") {
        return None;
    }
    if let Some(operations) = published.get("key_ops").and_then(Value::as_array)
        && !operations.iter().any(|operation| operation == "verify")
    {
        return None;
    }
    let kind = match (member("kty")?, member("crv")) {
        ("RSA", _) => vec![
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        ("EC", Some("P-256")) => vec![Algorithm::ES256],
        ("EC", Some("P-384")) => vec![Algorithm::ES384],
        ("OKP", Some("Ed25519")) => vec![Algorithm::EdDSA],
        _ => return None,
    };
    let algorithms = match member("alg") {
        None => kind,
        Some(name) => {
            let algorithm = asymmetric(name).filter(|algorithm| kind.contains(algorithm))?;
            vec![algorithm]
        }
    };
    let jwk: Jwk = serde_json::from_value(published.clone()).ok()?;
    Some(Key {
        id: member("kid").map(str::to_owned),
        algorithms,
        key: DecodingKey::from_jwk(&jwk).ok()?,
    })
}

/// Fetches the keys of an issuer by its discovery document (OpenID Connect Discovery
/// §4), which must be that issuer's own.
pub(crate) async fn fetch<R: Rules>(fetcher: &Fetcher<R>, issuer: &str) -> Result<KeySet, Outage> {
    let base = issuer.strip_suffix('/').unwrap_or(issuer);
    let address = format!("{base}/.well-known/openid-configuration");
    let discovery = fetcher.json(&address).await?;
    if discovery.get("issuer").and_then(Value::as_str) != Some(issuer) {
        return Err(Outage::OtherIssuer);
    }
    let address = discovery.get("jwks_uri").and_then(Value::as_str);
    let set = fetcher.json(address.ok_or(Outage::NotUnderstood)?).await?;
    KeySet::read(&set)
}
