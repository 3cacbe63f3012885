//! The secret provider, one trait per identity that Bronzeward has there (IC §1).
//!
//! A workflow holds the identities it may act as, and an identity has the methods its
//! policy grants and no other: the compiler cannot decrypt, and nothing here reads back
//! what ingestion created. Every outcome is typed and carries none of the provider's
//! text. Never in this module: a status code, a path below a mount's own routes, a retry.

use std::fmt;
use std::future::Future;

use bronzeward_core::dependency::{Answer, KvFacts, TransitFacts};
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::{ClusterId, IngestionId};
use bronzeward_core::idempotency::DigestKey;
use bronzeward_core::secret::{Plaintext, Value};

/// Why a call gave nothing. The classes are the adapter's own; nothing of the peer's is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// The identity's own token file cannot be used. Nothing was sent.
    Credential,
    /// The request is beyond what the provider takes. Nothing was sent.
    TooLarge,
    /// The token is not valid, or not granted this.
    Denied,
    /// Nothing is there under this name, or its version is deleted or destroyed.
    Absent,
    /// Understood and refused for good: the same request will be refused again.
    Refused,
    /// Sealed, without a leader, over its quota, or failing for everybody.
    Unavailable,
    /// No connection, or no answer in time.
    Unreachable,
    /// An answer that is not understood.
    Unreadable,
    /// Answered, but what is held there is not in the form that belongs there.
    Integrity,
}

impl Failure {
    /// For logs and records.
    pub const fn code(self) -> &'static str {
        match self {
            Failure::Credential => "provider-credential",
            Failure::TooLarge => "provider-too-large",
            Failure::Denied => "provider-denied",
            Failure::Absent => "provider-absent",
            Failure::Refused => "provider-refused",
            Failure::Unavailable => "provider-unavailable",
            Failure::Unreachable => "provider-unreachable",
            Failure::Unreadable => "provider-unreadable",
            Failure::Integrity => "provider-integrity",
        }
    }
}

/// One version of a cluster's Talos access (PA §3.3): recorded wherever it was used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessVersion {
    /// Below the mount: `access/talos/<cluster>`.
    pub path: String,
    pub version: u64,
    /// The provider's exact text; a database timestamp would lose digits of it.
    pub created: String,
}

/// A talosconfig as read, for the use it was read for. It has no Debug.
pub struct TalosAccess {
    pub talosconfig: Plaintext,
    pub version: AccessVersion,
}

/// What became of a create-only write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Creation {
    /// Written, as version 1 of its path.
    Created {
        /// The provider's exact text.
        created: String,
    },
    /// The path may exist already, and what it holds is not known to be ours: the policy
    /// refuses an existing path like an ungranted one, and a lost race is a conflict.
    MayExist,
    /// Not written.
    Refused(Failure),
    /// Written or not: an answer that failed, came too late or is not understood.
    Unknown(Failure),
}

/// A ciphertext of the provider, which names the version of the key it was made under.
#[derive(Clone, PartialEq, Eq)]
pub struct Ciphertext {
    text: String,
    key_version: u64,
}

impl Ciphertext {
    /// Accepts `vault:v<N>:<base64>` with N from 1 in its one spelling. The provider
    /// itself would decrypt `v0` and `v01` as well, so the text would not name a version.
    pub fn parse(text: &str) -> Option<Ciphertext> {
        let (key_version, body) = versioned(text)?;
        let letters = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
        let whole = !body.is_empty() && body.bytes().all(letters);
        whole.then(|| Ciphertext {
            text: text.to_owned(),
            key_version,
        })
    }

    /// As it is stored.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn key_version(&self) -> u64 {
        self.key_version
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Ciphertext(v{}, {} bytes)",
            self.key_version,
            self.text.len()
        )
    }
}

/// `vault:v<N>:<rest>`, the form of the provider's ciphertexts and keyed digests.
pub fn versioned(text: &str) -> Option<(u64, &str)> {
    let (version, rest) = text.strip_prefix("vault:v")?.split_once(':')?;
    Some((version_number(version)?, rest))
}

/// The longest key name, so that a reference with any version stays within 256 bytes.
const KEY_NAME_LIMIT: usize = 227;

/// A Transit key's name, as a configuration gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName(String);

impl KeyName {
    /// Letters, digits, `_`, `-` and `.`, at most 227 bytes (IC §4.1), and no dot segment.
    pub fn parse(text: &str) -> Option<KeyName> {
        let letters = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        let good = !text.is_empty()
            && text.len() <= KEY_NAME_LIMIT
            && text.bytes().all(letters)
            && !text.bytes().all(|b| b == b'.');
        good.then(|| KeyName(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A digest key's version as a record names it, `transit/<key>@v<N>` (IC §4.1).
pub fn written_digest_key(key: &DigestKey) -> String {
    format!("transit/{}@v{}", key.name, key.version)
}

/// Reads the record's text back; None for another form.
pub fn parse_digest_key(text: &str) -> Option<DigestKey> {
    let (name, version) = text.strip_prefix("transit/")?.split_once("@v")?;
    let name = KeyName::parse(name)?.0;
    let version = version_number(version)?.try_into().ok()?;
    Some(DigestKey { name, version })
}

/// A version from 1 in its one spelling.
fn version_number(text: &str) -> Option<u64> {
    let canonical = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| canonical)
}

/// HMAC-SHA-256 of a value under a key that only the provider holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedDigest {
    pub key: DigestKey,
    pub mac: [u8; 32],
}

/// One generation, as the compiler reads it under its pin.
pub struct Generation {
    pub value: Value,
    /// Must be the creation time that the classification of this version gave (IC §6 step 4).
    pub created: String,
}

/// Whether an identity's token works at all: what an operator is told of a dead one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenState {
    Valid,
    /// Expired, revoked or never valid. Only the provider's words tell it from a refusal,
    /// so this is for a log and decides nothing.
    Dead,
    /// Could not be found out.
    Undecided(Failure),
}

/// Every identity can be asked about its own token.
pub trait TokenProbe: Send + Sync + 'static {
    fn probe_token(&self) -> impl Future<Output = TokenState> + Send;
}

/// Ingestion: creates, encrypts and digests. It reads one thing, a cluster's Talos access.
pub trait IngestionSecrets: Send + Sync + 'static {
    /// The latest version.
    fn read_talos_access(
        &self,
        cluster: ClusterId,
    ) -> impl Future<Output = Result<TalosAccess, Failure>> + Send;

    fn create_generation(
        &self,
        path: &GenerationPath,
        value: &Value,
    ) -> impl Future<Output = Creation> + Send;

    /// Under the baseline key, which no identity can decrypt with.
    fn encrypt_baseline(
        &self,
        input: &Plaintext,
    ) -> impl Future<Output = Result<Ciphertext, Failure>> + Send;

    fn encrypt_staging(
        &self,
        envelope: &Plaintext,
    ) -> impl Future<Output = Result<Ciphertext, Failure>> + Send;

    fn decrypt_staging(
        &self,
        envelope: &Ciphertext,
    ) -> impl Future<Output = Result<Plaintext, Failure>> + Send;

    /// Under the digest key's current version, in the inputs' order. All or none: one
    /// failed input fails the call.
    fn keyed_digests(
        &self,
        inputs: &[Plaintext],
    ) -> impl Future<Output = Result<Vec<KeyedDigest>, Failure>> + Send;

    /// Under a recorded version, to compare a retried request's fingerprint (PA §7.1). A
    /// version the provider no longer computes under, and another key's, is `Refused`.
    fn recompute_digest(
        &self,
        key: &DigestKey,
        input: &Plaintext,
    ) -> impl Future<Output = Result<KeyedDigest, Failure>> + Send;
}

/// The compiler: reads pinned generations and encrypts artifacts. The creation time of
/// the key version it encrypted under is read by the metadata identity (IC §11), since
/// its policy reads no key.
pub trait CompilerSecrets: Send + Sync + 'static {
    /// A version deleted, destroyed or never there is `Absent`.
    fn read_generation(
        &self,
        path: &GenerationPath,
        version: u64,
    ) -> impl Future<Output = Result<Generation, Failure>> + Send;

    fn encrypt_artifact(
        &self,
        configuration: &Plaintext,
    ) -> impl Future<Output = Result<Ciphertext, Failure>> + Send;
}

/// The executor: opens approved artifacts and reads a cluster's Talos access. Like the
/// compiler it reads no key's state; the use-time check asks the metadata identity.
pub trait ExecutorSecrets: Send + Sync + 'static {
    /// The latest version.
    fn read_talos_access(
        &self,
        cluster: ClusterId,
    ) -> impl Future<Output = Result<TalosAccess, Failure>> + Send;

    /// A ciphertext that names another key version than the one bound is `Integrity`, and
    /// is not sent. One that the key does not open is `Refused`.
    fn decrypt_artifact(
        &self,
        artifact: &Ciphertext,
        bound_key_version: u64,
    ) -> impl Future<Output = Result<Plaintext, Failure>> + Send;
}

/// The metadata identity: the state of secrets and keys by name, no value (DM §4). What
/// an answer means is `bronzeward_core::dependency`'s. A token file that cannot be used
/// is `Unreachable`: no question was asked.
pub trait DependencyMetadata: Send + Sync + 'static {
    /// `path` is below the mount, as a dependency records it.
    fn kv_metadata(&self, path: &str) -> impl Future<Output = Answer<KvFacts>> + Send;

    fn transit_key(&self, key: &str) -> impl Future<Output = Answer<TransitFacts>> + Send;
}

/// A directory of the generation tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GenerationDirectory {
    Clusters,
    Claims(ClusterId),
    Values(ClusterId, IngestionId),
}

/// A name in a directory. It is the provider's and may be anything somebody wrote there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listed {
    Secret(String),
    Directory(String),
}

/// The orphan report's identity: lists generation paths and nothing else (PA §6.4).
pub trait OrphanListing: Send + Sync + 'static {
    /// Empty for a directory that is empty or absent, which the provider does not tell apart.
    fn list(
        &self,
        directory: GenerationDirectory,
    ) -> impl Future<Output = Result<Vec<Listed>, Failure>> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ciphertext_names_its_key_version_in_one_spelling() {
        let good = Ciphertext::parse("vault:v12:QUJD/+w=").unwrap();
        assert_eq!(
            (good.key_version(), good.as_str()),
            (12, "vault:v12:QUJD/+w=")
        );
        for bad in [
            "vault:v0:QUJD",
            "vault:v01:QUJD",
            "vault:v+1:QUJD",
            "vault:v:QUJD",
            "vault:v1:",
            "vault:v1:QUJD\n",
            "vault:v99999999999999999999:QUJD",
            "vault:QUJD",
            "bao:v1:QUJD",
            "",
        ] {
            assert!(Ciphertext::parse(bad).is_none(), "{bad:?}");
        }
        assert!(!format!("{good:?}").contains("QUJD"));
    }

    #[test]
    fn a_digest_key_reference_reads_back_and_fits_its_column_at_any_version() {
        let name = KeyName::parse(&"k".repeat(227))
            .unwrap()
            .as_str()
            .to_owned();
        let key = DigestKey {
            name,
            version: i64::MAX,
        };
        let text = written_digest_key(&key);
        assert!(text.len() <= 256);
        assert_eq!(parse_digest_key(&text), Some(key));
        assert!(KeyName::parse(&"k".repeat(228)).is_none());
        for bad in ["", ".", "..", "a/b", "a b", "a%2f", "ä"] {
            assert!(KeyName::parse(bad).is_none(), "{bad:?}");
        }
        for bad in [
            "transit/k@v0",
            "transit/k@v01",
            "transit/k",
            "k@v1",
            "transit/@v1",
        ] {
            assert!(parse_digest_key(bad).is_none(), "{bad:?}");
        }
    }
}
