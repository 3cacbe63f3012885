//! The outer form of a token: header, claims and signature (RFC 7515, RFC 7519).
//!
//! `lib` and `keys` use it. Never in this module: a check of a claim, or a Debug, as
//! it holds the token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use crate::Defect;

/// The longest token read; a request's headers are 32 KiB in all.
const MAX_BYTES: usize = 16 * 1024;

/// A signature algorithm that is admitted, by its name in RFC 7518 and RFC 8037.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

/// A parsed token whose signature has not been looked at.
pub(crate) struct Token<'a> {
    signed: &'a str,
    signature: &'a str,
    algorithm: Option<Algorithm>,
    key_id: Option<String>,
    claims: Map<String, Value>,
}

impl<'a> Token<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, Defect> {
        if text.len() > MAX_BYTES {
            return Err(Defect::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(Defect::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(Defect::Malformed)?;
        let header = object(header)?;
        let claims = object(claims)?;
        if header.contains_key("crit") {
            return Err(Defect::CriticalHeader);
        }
        let algorithm = header.get("alg").and_then(Value::as_str);
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err(Defect::Malformed),
        };
        Ok(Self {
            signed,
            signature,
            algorithm: algorithm.and_then(asymmetric),
            key_id,
            claims,
        })
    }

    /// The asymmetric algorithm it names; none for any other.
    pub(crate) fn algorithm(&self) -> Option<Algorithm> {
        self.algorithm
    }

    pub(crate) fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    pub(crate) fn signed(&self) -> &str {
        self.signed
    }

    /// The signature's bytes; none where its text is no base64url.
    pub(crate) fn signature(&self) -> Option<Vec<u8>> {
        URL_SAFE_NO_PAD.decode(self.signature).ok()
    }

    pub(crate) fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }
}

fn object(part: &str) -> Result<Map<String, Value>, Defect> {
    let bytes = URL_SAFE_NO_PAD.decode(part);
    let bytes = bytes.map_err(|_| Defect::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| Defect::Malformed)
}

/// The algorithm of a name, if it is admitted.
pub(crate) fn asymmetric(name: &str) -> Option<Algorithm> {
    match name {
        "RS256" => Some(Algorithm::Rs256),
        "RS384" => Some(Algorithm::Rs384),
        "RS512" => Some(Algorithm::Rs512),
        "PS256" => Some(Algorithm::Ps256),
        "PS384" => Some(Algorithm::Ps384),
        "PS512" => Some(Algorithm::Ps512),
        "ES256" => Some(Algorithm::Es256),
        "ES384" => Some(Algorithm::Es384),
        "EdDSA" => Some(Algorithm::EdDsa),
        _ => None,
    }
}
