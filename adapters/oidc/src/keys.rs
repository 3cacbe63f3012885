//! The provider's published keys (RFC 7517), and a signature checked with one.
//!
//! `lib` keeps a set and asks it. Never in this module: a private or a shared
//! key; one that is published by mistake is passed over.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::Value;

use bronzeward_core::rules::Rules;

use crate::Outage;
use crate::fetch::Fetcher;
use crate::jwt::{Algorithm, Token, asymmetric};

/// A published signature key and the algorithms it is fit for.
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    public: Public,
}

/// A public key as its JWK spells it (RFC 7518 §6, RFC 8037 §2).
enum Public {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// A point as SEC 1 writes it whole, or an Ed25519 key.
    Point(Vec<u8>),
}

impl Public {
    fn read(kind: &str, member: impl Fn(&str) -> Option<Vec<u8>>) -> Option<Self> {
        match kind {
            "RSA" => Some(Self::Rsa {
                modulus: number(&member("n")?),
                exponent: number(&member("e")?),
            }),
            "EC" => Some(Self::Point([&[4], &*member("x")?, &*member("y")?].concat())),
            "OKP" => Some(Self::Point(member("x")?)),
            _ => None,
        }
    }

    /// Whether this key signed the message. A key that its algorithm cannot use, an RSA key of
    /// less than 2048 bits among them (RFC 7518 §3.3), signed nothing.
    fn signed(&self, algorithm: Algorithm, message: &[u8], sent: &[u8]) -> bool {
        let point = |algorithm: &'static dyn signature::VerificationAlgorithm| match self {
            Self::Point(key) => UnparsedPublicKey::new(algorithm, key)
                .verify(message, sent)
                .is_ok(),
            Self::Rsa { .. } => false,
        };
        let rsa = |parameters: &RsaParameters| match self {
            Self::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(parameters, message, sent).is_ok()
            }
            Self::Point(_) => false,
        };
        match algorithm {
            Algorithm::Rs256 => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::Rs384 => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::Rs512 => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::Ps256 => rsa(&signature::RSA_PSS_2048_8192_SHA256),
            Algorithm::Ps384 => rsa(&signature::RSA_PSS_2048_8192_SHA384),
            Algorithm::Ps512 => rsa(&signature::RSA_PSS_2048_8192_SHA512),
            Algorithm::Es256 => point(&signature::ECDSA_P256_SHA256_FIXED),
            Algorithm::Es384 => point(&signature::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDsa => point(&signature::ED25519),
        }
    }
}

/// A number without leading zeros, which some providers publish.
fn number(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .copied()
        .skip_while(|byte| *byte == 0)
        .collect()
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
        let (Some(algorithm), Some(sent)) = (token.algorithm(), token.signature()) else {
            return false;
        };
        let message = token.signed().as_bytes();
        self.candidates(token)
            .any(|key| key.public.signed(algorithm, message, &sent))
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
            Algorithm::Rs256,
            Algorithm::Rs384,
            Algorithm::Rs512,
            Algorithm::Ps256,
            Algorithm::Ps384,
            Algorithm::Ps512,
        ],
        ("EC", Some("P-256")) => vec![Algorithm::Es256],
        ("EC", Some("P-384")) => vec![Algorithm::Es384],
        ("OKP", Some("Ed25519")) => vec![Algorithm::EdDsa],
        _ => return None,
    };
    let algorithms = match member("alg") {
        None => kind,
        Some(name) => {
            let algorithm = asymmetric(name).filter(|algorithm| kind.contains(algorithm))?;
            vec![algorithm]
        }
    };
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(member(name)?).ok();
    Some(Key {
        id: member("kid").map(str::to_owned),
        algorithms,
        public: Public::read(member("kty")?, bytes)?,
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
