//! A staged change as one envelope (IC §3.1): what the staging key encrypts.
//!
//! The run that pauses seals it; a takeover, a mark, a continuation and a review open it,
//! and opening is the one other way to a [`Sanitized`] value. It holds everything the draft
//! transaction writes, so that a taker drops nothing: document, declarations, the
//! generations behind them, and for a machine's base the baseline ciphertext with its two
//! digests, which no identity could compute again. Never in this module: an extracted
//! value.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::canonical::Digest;
use crate::digest::ConfigDigest;
use crate::generation::GenerationPath;
use crate::idempotency::DigestKey;
use crate::path::{Format, Path};
use crate::reference::{Declaration, Declarations, Encoding, Name};
use crate::sanitized::Sanitized;
use crate::secret::{Kind, Plaintext};

/// The exact input under the baseline key, and what was computed while it was held.
#[derive(Clone, PartialEq, Eq)]
pub struct Baseline {
    pub ciphertext: String,
    /// HMAC-SHA-256 of the input under the digest key (IC §4.1).
    pub keyed_digest: [u8; 32],
    pub digest_key: DigestKey,
    pub configuration_digest: ConfigDigest,
}

/// Where a declared name's value is kept, and its keyed digest (IC §4.1), which a taker
/// could not compute again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub generation: GenerationPath,
    pub keyed_digest: [u8; 32],
    pub digest_key: DigestKey,
}

/// What is staged.
pub struct Envelope {
    pub sanitized: Sanitized,
    /// Every declared name's value.
    pub generations: BTreeMap<Name, Kept>,
    pub baseline: Option<Baseline>,
}

/// The envelope is not the one that was stored, or not one at all. Its content is not
/// repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotWhole {
    /// The digest stored beside the payload is another's.
    Digest,
    /// It does not decode as an envelope that a run has sealed.
    Form,
}

impl Envelope {
    /// The plaintext to encrypt, and the digest to store beside the ciphertext.
    pub fn seal(&self) -> (Plaintext, Digest) {
        let declarations = self.sanitized.declarations();
        let references = declarations.references.iter().map(|(name, declared)| {
            let mut row = Map::new();
            row.insert("kind".into(), declared.kind.name().into());
            row.insert("version".into(), declared.version.into());
            if let Some(encoding) = declared.encoding {
                row.insert("encoding".into(), encoding.name().into());
            }
            if let Some(kept) = self.generations.get(name) {
                row.insert("generation".into(), kept.generation.to_string().into());
                let digest = Digest(kept.keyed_digest).hex();
                row.insert("keyedDigest".into(), digest.into());
                row.insert("digestKey".into(), kept.digest_key.name.clone().into());
                row.insert("digestKeyVersion".into(), kept.digest_key.version.into());
            }
            (name.as_str().to_string(), Json::Object(row))
        });
        let embedded = declarations.embedded.iter().map(
            |(path, format)| serde_json::json!({ "path": path.written(), "format": format.name() }),
        );
        let baseline = self.baseline.as_ref().map(|baseline| {
            serde_json::json!({
                "ciphertext": baseline.ciphertext,
                "keyedDigest": Digest(baseline.keyed_digest).hex(),
                "digestKey": baseline.digest_key.name,
                "digestKeyVersion": baseline.digest_key.version,
                "configurationDigest": Digest(*baseline.configuration_digest.as_bytes()).hex(),
            })
        });
        let whole = serde_json::json!({
            "document": self.sanitized.document(),
            "references": references.collect::<Map<_, _>>(),
            "embedded": embedded.collect::<Vec<_>>(),
            "baseline": baseline,
        });
        let text = Plaintext::new(whole.to_string());
        let digest = Digest::of(text.expose().as_bytes());
        (text, digest)
    }

    /// Reads a decrypted payload back. An incomplete one is refused whole: a resume that
    /// dropped a reference would commit a document nobody can resolve.
    pub fn open(text: &Plaintext, stored: Digest) -> Result<Envelope, NotWhole> {
        if Digest::of(text.expose().as_bytes()) != stored {
            return Err(NotWhole::Digest);
        }
        let json: Json = serde_json::from_str(text.expose()).map_err(|_| NotWhole::Form)?;
        read(&json).ok_or(NotWhole::Form)
    }
}

fn read(json: &Json) -> Option<Envelope> {
    let mut declarations = Declarations::default();
    let mut generations = BTreeMap::new();
    for (name, row) in json.get("references")?.as_object()? {
        let name = Name::parse(name)?;
        let encoding = match row.get("encoding") {
            None => None,
            Some(encoding) => Some(Encoding::parse(encoding.as_str()?)?),
        };
        let declaration = Declaration {
            kind: Kind::parse(row.get("kind")?.as_str()?)?,
            version: row.get("version")?.as_u64()?,
            encoding,
        };
        let kept = Kept {
            generation: GenerationPath::parse(row.get("generation")?.as_str()?)?,
            keyed_digest: Digest::from_hex(row.get("keyedDigest")?.as_str()?)?.0,
            digest_key: read_digest_key(row)?,
        };
        declarations.references.insert(name.clone(), declaration);
        generations.insert(name, kept);
    }
    for one in json.get("embedded")?.as_array()? {
        let path = Path::parse(one.get("path")?.as_str()?).ok()?;
        let format = Format::parse(one.get("format")?.as_str()?)?;
        declarations.embedded.insert(path, format);
    }
    let baseline = match json.get("baseline")? {
        Json::Null => None,
        baseline => Some(read_baseline(baseline)?),
    };
    let document = json.get("document")?.as_str()?.to_string();
    Some(Envelope {
        sanitized: Sanitized::new(document, declarations),
        generations,
        baseline,
    })
}

fn read_digest_key(json: &Json) -> Option<DigestKey> {
    Some(DigestKey {
        name: json.get("digestKey")?.as_str()?.to_string(),
        version: json.get("digestKeyVersion")?.as_i64()?,
    })
}

fn read_baseline(json: &Json) -> Option<Baseline> {
    let digest = |name: &str| Digest::from_hex(json.get(name)?.as_str()?);
    Some(Baseline {
        ciphertext: json.get("ciphertext")?.as_str()?.to_string(),
        keyed_digest: digest("keyedDigest")?.0,
        digest_key: read_digest_key(json)?,
        configuration_digest: ConfigDigest::from_bytes(digest("configurationDigest")?.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ClusterId, Id, IngestionId};

    fn envelope() -> Envelope {
        let name = Name::parse("ingested/abc").expect("a name");
        let mut declarations = Declarations::default();
        let declaration = Declaration {
            kind: Kind::String,
            version: 1,
            encoding: None,
        };
        declarations.references.insert(name.clone(), declaration);
        let path = Path::parse("doc[0]/a~1b/0").expect("a path");
        declarations.embedded.insert(path, Format::Json);
        let generation = GenerationPath {
            cluster: ClusterId::from_bits(1),
            claim: IngestionId::from_bits(2),
            value: Id::from_bits(3),
        };
        Envelope {
            sanitized: Sanitized::new("machine: {}\n".into(), declarations),
            generations: BTreeMap::from([(
                name,
                Kept {
                    generation,
                    keyed_digest: [9; 32],
                    digest_key: DigestKey {
                        name: "bw-digest".into(),
                        version: 2,
                    },
                },
            )]),
            baseline: Some(Baseline {
                ciphertext: "vault:v1:abc".into(),
                keyed_digest: [7; 32],
                digest_key: DigestKey {
                    name: "bw-digest".into(),
                    version: 3,
                },
                configuration_digest: ConfigDigest::of(b"machine: {}"),
            }),
        }
    }

    #[test]
    fn an_envelope_opens_as_it_was_sealed() {
        let (text, digest) = envelope().seal();
        let opened = Envelope::open(&text, digest).map_err(|error| format!("{error:?}"));
        let opened = opened.unwrap_or_else(|error| panic!("{error}"));
        let sealed = envelope();
        assert_eq!(opened.sanitized.document(), sealed.sanitized.document());
        assert!(opened.sanitized.declarations() == sealed.sanitized.declarations());
        assert_eq!(opened.generations, sealed.generations);
        assert!(opened.baseline == sealed.baseline);
    }

    #[test]
    fn a_changed_payload_and_one_without_its_references_do_not_open() {
        let (text, digest) = envelope().seal();
        let changed = Plaintext::new(text.expose().replace("machine", "machinf"));
        assert_eq!(
            Envelope::open(&changed, digest).err(),
            Some(NotWhole::Digest)
        );
        for part in [
            "references",
            "generation",
            "embedded",
            "baseline",
            "document",
        ] {
            let other = Plaintext::new(text.expose().replace(&format!("\"{part}\""), "\"other\""));
            let digest = Digest::of(other.expose().as_bytes());
            assert_eq!(
                Envelope::open(&other, digest).err(),
                Some(NotWhole::Form),
                "{part}"
            );
        }
    }
}
