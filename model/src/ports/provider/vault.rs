//! What the simulated provider holds: secrets with versions, keys with versions, and what its
//! answers say of them (facts B).
//!
//! Nothing is encrypted: a ciphertext names a serial number, under which the text is kept
//! beside the material of the key version that sealed it. The texts are no part of what a
//! backup holds, as a real ciphertext is its owner's. Never in this module: a caller, a fault.

mod upkeep;

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::dependency::{KvFacts, KvVersionFacts, TransitFacts};
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::ClusterId;
use bronzeward_core::idempotency::DigestKey;
use bronzeward_core::secret::{Plaintext, Value, base64, decode_base64};
use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::ports::provider::{
    AccessVersion, Ciphertext, Creation, Failure, Generation, GenerationDirectory, KeyedDigest,
    Listed, TalosAccess,
};

use super::super::times;

/// Who asks, each under a policy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    Ingestion,
    Compiler,
    Executor,
    Metadata,
    Orphans,
}

impl Identity {
    pub const ALL: [Identity; 5] = [
        Identity::Ingestion,
        Identity::Compiler,
        Identity::Executor,
        Identity::Metadata,
        Identity::Orphans,
    ];
}

/// The Transit keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Artifact,
    Baseline,
    Staging,
    Digest,
}

impl Key {
    pub const ALL: [Key; 4] = [Key::Artifact, Key::Baseline, Key::Staging, Key::Digest];

    pub const fn name(self) -> &'static str {
        match self {
            Key::Artifact => "bw-artifact",
            Key::Baseline => "bw-baseline",
            Key::Staging => "bw-staging",
            Key::Digest => "bw-digest",
        }
    }

    pub fn named(name: &str) -> Option<Key> {
        Key::ALL.into_iter().find(|key| key.name() == name)
    }
}

/// A path of the KV mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KvPath {
    Generation(GenerationPath),
    Access(ClusterId),
}

impl KvPath {
    pub fn parse(text: &str) -> Option<KvPath> {
        match text.strip_prefix("access/talos/") {
            Some(cluster) => cluster.parse().ok().map(KvPath::Access),
            None => GenerationPath::parse(text).map(KvPath::Generation),
        }
    }
}

/// What a version holds.
#[derive(Clone)]
pub enum Data {
    Generation(Value),
    Talosconfig(Plaintext),
    /// Whatever somebody wrote there by hand.
    Foreign,
}

#[derive(Clone)]
struct Version {
    created: String,
    deletion: Option<DbTime>,
    destroyed: bool,
    data: Data,
}

#[derive(Clone, Default)]
struct Secret {
    /// The lowest version that was not pruned; 0 while none was.
    oldest: u64,
    current: u64,
    versions: BTreeMap<u64, Version>,
}

#[derive(Clone)]
struct KeyVersion {
    /// Whole seconds (B17).
    created: i64,
    /// Which key material this is: a key that is made again has other.
    material: u64,
}

#[derive(Clone)]
struct KeyState {
    versions: BTreeMap<u64, KeyVersion>,
    available_from: u64,
    decrypts_from: u64,
    soft_deleted: bool,
}

/// What a backup of the provider holds and a restore brings back.
#[derive(Clone)]
pub struct Contents {
    secrets: BTreeMap<KvPath, Secret>,
    keys: BTreeMap<Key, KeyState>,
}

#[derive(Clone)]
pub struct Vault {
    contents: Contents,
    sealed_until: Option<DbTime>,
    denied_until: BTreeMap<Identity, DbTime>,
    /// By serial number: the material it was sealed with, and the text.
    texts: BTreeMap<u64, (u64, Plaintext)>,
    /// Numbers that never go back, whatever is restored.
    count: u64,
    /// Every path that was ever written, whatever is restored.
    written: BTreeSet<KvPath>,
}

/// The keys are older than any second of a run, so that their creation time can be proven.
const KEYS_CREATED: i64 = 1;

impl Default for Vault {
    fn default() -> Self {
        let mut vault = Self {
            contents: Contents {
                secrets: BTreeMap::new(),
                keys: BTreeMap::new(),
            },
            sealed_until: None,
            denied_until: BTreeMap::new(),
            texts: BTreeMap::new(),
            count: 0,
            written: BTreeSet::new(),
        };
        for key in Key::ALL {
            vault.make_key(key, DbTime::from_seconds(KEYS_CREATED));
        }
        vault
    }
}

impl Vault {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Whether somebody ever kept a value there.
    pub fn ever_held(&self, path: GenerationPath) -> bool {
        self.written.contains(&KvPath::Generation(path))
    }

    /// Whether a call of this identity is carried out now.
    pub fn admits(&self, identity: Identity, now: DbTime) -> Result<(), Failure> {
        if self.sealed_until.is_some_and(|until| until > now) {
            return Err(Failure::Unavailable);
        }
        match self.denied_until.get(&identity) {
            Some(until) if *until > now => Err(Failure::Denied),
            _ => Ok(()),
        }
    }

    fn readable(&self, path: KvPath, version: Option<u64>, now: DbTime) -> Option<(u64, &Version)> {
        let secret = self.contents.secrets.get(&path)?;
        let number = version.unwrap_or(secret.current);
        let version = secret.versions.get(&number)?;
        let deleted = version.deletion.is_some_and(|at| at <= now);
        (!deleted && !version.destroyed).then_some((number, version))
    }

    /// The latest version; one that is deleted is not passed over (facts B 4.3).
    pub fn talos_access(&self, cluster: ClusterId, now: DbTime) -> Result<TalosAccess, Failure> {
        let found = self.readable(KvPath::Access(cluster), None, now);
        let (number, version) = found.ok_or(Failure::Absent)?;
        let Data::Talosconfig(talosconfig) = &version.data else {
            return Err(Failure::Integrity);
        };
        Ok(TalosAccess {
            talosconfig: talosconfig.clone(),
            version: AccessVersion {
                path: format!("access/talos/{cluster}"),
                version: number,
                created: version.created.clone(),
            },
        })
    }

    /// Create-only: any path that was ever written may exist (B10).
    pub fn create(&mut self, path: GenerationPath, value: Value, now: DbTime) -> Creation {
        let path = KvPath::Generation(path);
        if self.contents.secrets.contains_key(&path) {
            return Creation::MayExist;
        }
        let created = self.write(path, Data::Generation(value), now);
        Creation::Created { created }
    }

    pub fn generation(
        &self,
        path: GenerationPath,
        version: u64,
        now: DbTime,
    ) -> Result<Generation, Failure> {
        if version < 1 {
            return Err(Failure::Refused);
        }
        let found = self.readable(KvPath::Generation(path), Some(version), now);
        let (_, version) = found.ok_or(Failure::Absent)?;
        match &version.data {
            Data::Generation(value) => Ok(Generation {
                value: value.clone(),
                created: version.created.clone(),
            }),
            Data::Talosconfig(_) | Data::Foreign => Err(Failure::Integrity),
        }
    }

    fn usable(&self, key: Key, absent: Failure) -> Result<&KeyState, Failure> {
        let state = self.contents.keys.get(&key).ok_or(absent)?;
        match state.soft_deleted {
            true => Err(Failure::Refused),
            false => Ok(state),
        }
    }

    /// Under the latest version. An absent key is one the policy does not let be made (B18).
    pub fn encrypt(&mut self, key: Key, text: &Plaintext) -> Result<Ciphertext, Failure> {
        let state = self.usable(key, Failure::Denied)?;
        let latest = state.versions.last_key_value();
        let (version, material) = latest
            .map(|(version, made)| (*version, made.material))
            .ok_or(Failure::Refused)?;
        let serial = self.next();
        self.texts.insert(serial, (material, text.clone()));
        let sealed = format!("vault:v{version}:{}", base64(&serial.to_string()));
        Ciphertext::parse(&sealed).ok_or(Failure::Unreadable)
    }

    pub fn decrypt(&self, key: Key, ciphertext: &Ciphertext) -> Result<Plaintext, Failure> {
        let state = self.usable(key, Failure::Refused)?;
        let version = ciphertext.key_version();
        let floor = state.decrypts_from.max(state.available_from);
        let made = state.versions.get(&version);
        let made = made.filter(|_| version >= floor).ok_or(Failure::Refused)?;
        let sealed = serial(ciphertext).and_then(|serial| self.texts.get(&serial));
        match sealed {
            Some((material, text)) if *material == made.material => Ok(text.clone()),
            _ => Err(Failure::Refused),
        }
    }

    /// Under one version, or the latest.
    pub fn digest(&self, version: Option<u64>, input: &Plaintext) -> Result<KeyedDigest, Failure> {
        let state = self.usable(Key::Digest, Failure::Refused)?;
        let latest = state.versions.last_key_value().map(|(number, _)| *number);
        let number = version.or(latest).ok_or(Failure::Refused)?;
        let made = state.versions.get(&number);
        let floor = state.decrypts_from.max(state.available_from);
        let made = made.filter(|_| number >= floor).ok_or(Failure::Refused)?;
        let key = DigestKey {
            name: Key::Digest.name().to_owned(),
            version: i64::try_from(number).map_err(|_| Failure::Refused)?,
        };
        let mac = keyed(made.material, input.expose().as_bytes());
        Ok(KeyedDigest { key, mac })
    }

    pub fn kv_facts(&self, path: &str) -> Option<KvFacts> {
        let secret = self.contents.secrets.get(&KvPath::parse(path)?)?;
        let versions = secret.versions.iter().map(|(number, version)| {
            let facts = KvVersionFacts {
                created: Some(version.created.clone()),
                deletion: version.deletion.map(|at| times::created(at, 0)),
                destroyed: version.destroyed,
            };
            (signed(*number), facts)
        });
        Some(KvFacts {
            current_version: signed(secret.current),
            oldest_version: signed(secret.oldest),
            versions: versions.collect(),
        })
    }

    pub fn transit_facts(&self, key: &str) -> Option<TransitFacts> {
        let state = self.contents.keys.get(&Key::named(key)?)?;
        // Versions below a floor are hidden (facts B 5.2).
        let floor = state.decrypts_from.max(state.available_from);
        let shown = state.versions.range(floor..);
        let latest = state.versions.last_key_value().map(|(number, _)| *number);
        Some(TransitFacts {
            keys: shown
                .map(|(number, made)| (signed(*number), made.created))
                .collect(),
            latest_version: latest.map(signed),
            min_available_version: Some(signed(state.available_from)),
            min_decryption_version: Some(signed(state.decrypts_from)),
            soft_deleted: Some(state.soft_deleted),
        })
    }

    /// A path is listed as long as it has metadata, whatever became of its versions.
    pub fn list(&self, directory: GenerationDirectory) -> Vec<Listed> {
        let paths = self.contents.secrets.keys().filter_map(|path| match path {
            KvPath::Generation(path) => Some(path),
            KvPath::Access(_) => None,
        });
        let mut names: Vec<Listed> = paths
            .filter_map(|path| match directory {
                GenerationDirectory::Clusters => Some(Listed::Directory(path.cluster.to_string())),
                GenerationDirectory::Claims(cluster) => {
                    (path.cluster == cluster).then(|| Listed::Directory(path.claim.to_string()))
                }
                GenerationDirectory::Values(cluster, claim) => (path.cluster == cluster
                    && path.claim == claim)
                    .then(|| Listed::Secret(path.value.to_string())),
            })
            .collect();
        names.dedup();
        names
    }
}

/// How long the provider stays sealed, or an identity denied, at most.
pub const OUTAGE: Span = Span::seconds(15);

fn serial(ciphertext: &Ciphertext) -> Option<u64> {
    let (_, body) = ciphertext.as_str().rsplit_once(':')?;
    let bytes = decode_base64(body)?;
    std::str::from_utf8(&bytes).ok()?.parse().ok()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A digest that differs with the material and with the text: four FNV-1a lanes. It keeps no
/// secret; in the model there is none to keep.
fn keyed(material: u64, input: &[u8]) -> [u8; 32] {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    let mut mac = [0; 32];
    for (lane, bytes) in (0_u64..).zip(mac.chunks_exact_mut(8)) {
        let mut hash = (BASIS ^ lane).wrapping_mul(PRIME) ^ material;
        for byte in input {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
        bytes.copy_from_slice(&(hash ^ (hash >> 29)).to_le_bytes());
    }
    mac
}
