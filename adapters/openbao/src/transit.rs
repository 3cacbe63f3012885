//! Transit calls that several identities make, each under its own policy.
//!
//! Called by the clients of ingestion, compiler and executor. Never in this module: a key
//! name of its own, associated data, a derived key's context.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bronzeward_core::idempotency::DigestKey;
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::ports::provider::{Ciphertext, Failure, KeyName, KeyedDigest, versioned};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::answer;
use crate::transport::{Reply, Transport};

/// The largest plaintext whose ciphertext can be sent back for decryption; the last 40
/// bytes below the provider's own limit encrypt and never decrypt again (B25).
const PLAINTEXT_LIMIT: usize = 25_165_772;

/// Items of one batch, below the provider's 499, and bytes of it before the next begins.
const BATCH_ITEMS: usize = 400;
const BATCH_BYTES: usize = 4 << 20;

/// Room for a body's member names and braces.
const FRAME: usize = 128;

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

/// The `data` of an answer of 200; any other answer is its failure.
pub(crate) fn data<T: DeserializeOwned>(reply: &Reply) -> Result<T, Failure> {
    if reply.status != 200 {
        return Err(answer::failure(reply));
    }
    let whole: Data<T> = serde_json::from_slice(&reply.body).map_err(|_| Failure::Unreadable)?;
    Ok(whole.data)
}

#[derive(Serialize)]
struct EncryptRequest<'a> {
    plaintext: &'a str,
}

#[derive(Deserialize)]
struct EncryptAnswer {
    ciphertext: String,
    key_version: u64,
}

pub(crate) async fn encrypt(
    transport: &Transport,
    key: &KeyName,
    plaintext: &Plaintext,
) -> Result<Ciphertext, Failure> {
    if plaintext.expose().len() > PLAINTEXT_LIMIT {
        return Err(Failure::TooLarge);
    }
    let encoded = encoded(plaintext.expose());
    let body = EncryptRequest {
        plaintext: &encoded,
    };
    let path = format!("transit/encrypt/{}", key.as_str());
    let reply = transport
        .post("encrypt", &path, &body, encoded.len() + FRAME)
        .await?;
    let answer: EncryptAnswer = data(&reply)?;
    Ciphertext::parse(&answer.ciphertext)
        .filter(|ciphertext| ciphertext.key_version() == answer.key_version)
        .ok_or(Failure::Unreadable)
}

#[derive(Serialize)]
struct DecryptRequest<'a> {
    ciphertext: &'a str,
}

#[derive(Deserialize)]
struct DecryptAnswer {
    plaintext: Wiped,
}

/// A text of an answer that is wiped when it has been used.
pub(crate) struct Wiped(pub(crate) Zeroizing<String>);

impl<'de> Deserialize<'de> for Wiped {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Wiped, D::Error> {
        String::deserialize(from).map(|text| Wiped(Zeroizing::new(text)))
    }
}

pub(crate) async fn decrypt(
    transport: &Transport,
    key: &KeyName,
    ciphertext: &Ciphertext,
) -> Result<Plaintext, Failure> {
    let body = DecryptRequest {
        ciphertext: ciphertext.as_str(),
    };
    let path = format!("transit/decrypt/{}", key.as_str());
    let size = ciphertext.as_str().len() + FRAME;
    let reply = transport.post("decrypt", &path, &body, size).await?;
    let answer: DecryptAnswer = data(&reply)?;
    let bytes = STANDARD
        .decode(answer.plaintext.0.as_bytes())
        .map_err(|_| Failure::Unreadable)?;
    // Everything we encrypt is text; anything else was encrypted by somebody else.
    String::from_utf8(bytes)
        .map(Plaintext::new)
        .map_err(|refused| {
            drop(Zeroizing::new(refused.into_bytes()));
            Failure::Integrity
        })
}

#[derive(Serialize)]
struct HmacItem<'a> {
    input: &'a str,
}

#[derive(Serialize)]
struct HmacBatch<'a> {
    batch_input: Vec<HmacItem<'a>>,
}

#[derive(Deserialize)]
struct HmacBatchAnswer {
    batch_results: Vec<HmacResult>,
}

/// One item's result. The whole answer is 200 whatever an item says (B12).
#[derive(Deserialize)]
struct HmacResult {
    hmac: Option<String>,
    error: Option<String>,
}

/// Digests of many values under the key's current version.
pub(crate) async fn digests(
    transport: &Transport,
    key: &KeyName,
    inputs: &[Plaintext],
) -> Result<Vec<KeyedDigest>, Failure> {
    let mut made = Vec::with_capacity(inputs.len());
    let mut rest = inputs;
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(batch_length(rest));
        made.extend(digest_batch(transport, key, batch).await?);
        rest = later;
    }
    Ok(made)
}

fn batch_length(inputs: &[Plaintext]) -> usize {
    let mut bytes = 0;
    let fitting = inputs.iter().take(BATCH_ITEMS).take_while(|input| {
        bytes += input.expose().len();
        bytes <= BATCH_BYTES
    });
    // An input larger than a batch goes alone.
    fitting.count().max(1)
}

async fn digest_batch(
    transport: &Transport,
    key: &KeyName,
    inputs: &[Plaintext],
) -> Result<Vec<KeyedDigest>, Failure> {
    let encoded: Vec<Zeroizing<String>> = inputs.iter().map(|i| encoded(i.expose())).collect();
    let size = encoded.iter().map(|text| text.len() + FRAME).sum::<usize>() + FRAME;
    let body = HmacBatch {
        batch_input: encoded.iter().map(|input| HmacItem { input }).collect(),
    };
    let path = format!("transit/hmac/{}", key.as_str());
    let reply = transport.post("hmac", &path, &body, size).await?;
    let answer: HmacBatchAnswer = data(&reply)?;
    if answer.batch_results.len() != inputs.len() {
        return Err(Failure::Unreadable);
    }
    let results = answer.batch_results.iter();
    results
        .map(|result| match (&result.hmac, &result.error) {
            (Some(hmac), None) => keyed_digest(key, hmac),
            _ => Err(Failure::Refused),
        })
        .collect()
}

#[derive(Serialize)]
struct HmacRequest<'a> {
    input: &'a str,
    key_version: i64,
}

#[derive(Deserialize)]
struct HmacAnswer {
    hmac: String,
}

/// The digest of one value under a version the caller names. A batch item cannot name one:
/// the provider ignores it there and answers under the current version.
pub(crate) async fn digest_under(
    transport: &Transport,
    key: &KeyName,
    version: i64,
    input: &Plaintext,
) -> Result<KeyedDigest, Failure> {
    let encoded = encoded(input.expose());
    let body = HmacRequest {
        input: &encoded,
        key_version: version,
    };
    let path = format!("transit/hmac/{}", key.as_str());
    let reply = transport
        .post("hmac-version", &path, &body, encoded.len() + FRAME)
        .await?;
    let answer: HmacAnswer = data(&reply)?;
    let digest = keyed_digest(key, &answer.hmac)?;
    if digest.key.version == version {
        Ok(digest)
    } else {
        Err(Failure::Unreadable)
    }
}

/// The key's version stands in the digest's prefix only.
fn keyed_digest(key: &KeyName, text: &str) -> Result<KeyedDigest, Failure> {
    let (version, encoded) = versioned(text).ok_or(Failure::Unreadable)?;
    let bytes = STANDARD.decode(encoded).map_err(|_| Failure::Unreadable)?;
    let mac = bytes.try_into().map_err(|_| Failure::Unreadable)?;
    let version = i64::try_from(version).map_err(|_| Failure::Unreadable)?;
    Ok(KeyedDigest {
        key: DigestKey {
            name: key.as_str().to_owned(),
            version,
        },
        mac,
    })
}

fn encoded(text: &str) -> Zeroizing<String> {
    let mut buffer = String::with_capacity(text.len().div_ceil(3) * 4);
    STANDARD.encode_string(text.as_bytes(), &mut buffer);
    Zeroizing::new(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_ends_at_its_items_or_its_bytes_and_is_never_empty() {
        let of = |lengths: &[usize]| -> Vec<Plaintext> {
            lengths
                .iter()
                .map(|n| Plaintext::new("x".repeat(*n)))
                .collect()
        };
        assert_eq!(batch_length(&of(&[1; 1000])), BATCH_ITEMS);
        assert_eq!(batch_length(&of(&[BATCH_BYTES / 2; 5])), 2);
        assert_eq!(batch_length(&of(&[BATCH_BYTES * 2, 1])), 1);
        assert_eq!(batch_length(&of(&[1, BATCH_BYTES])), 1);
    }

    #[test]
    fn a_digest_of_another_algorithms_length_is_not_read() {
        let key = KeyName::parse("bw-digest").unwrap();
        let of = |bytes: usize| {
            keyed_digest(
                &key,
                &format!("vault:v3:{}", STANDARD.encode(vec![7; bytes])),
            )
        };
        assert_eq!(of(32).unwrap().key.version, 3);
        for bytes in [0, 31, 48, 64] {
            assert_eq!(of(bytes).err(), Some(Failure::Unreadable));
        }
    }
}
