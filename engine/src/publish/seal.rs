//! Encrypts every artifact and proves which key it was encrypted under (IC §11).
//!
//! The key's state is read before and after, by the metadata identity: a key deleted and
//! made again around an encryption is refused, not recorded. Never in this module: a
//! decryption.

use std::collections::BTreeMap;

use bronzeward_core::dependency::{
    Answer, Class, TransitFacts, TransitVersion, classify_transit, proven_created, transit_created,
};
use bronzeward_core::problem::Problem;
use bronzeward_core::release::TransitKey;
use bronzeward_core::secret::Plaintext;
use bronzeward_core::time::DbTime;

use super::compile::CompiledAll;
use super::snapshot::fault;
use super::together::in_order;
use super::{Stop, Worker, refusal};
use crate::ports::provider::{Ciphertext, CompilerSecrets, DependencyMetadata};
use crate::ports::store::{Dependency, Seed};
use crate::world::World;

/// The artifacts in the machines' order, and what is recorded of their keys.
pub(super) struct Sealed {
    pub artifacts: Vec<(Ciphertext, TransitKey)>,
    pub seeds: Vec<Seed>,
}

pub(super) async fn machines<W: World>(
    worker: &Worker<W>,
    compiled: &CompiledAll,
) -> Result<Sealed, Stop> {
    let key = worker.artifact_key.as_str();
    let classified_from = worker.now().await?;
    let before = worker.metadata.transit_key(key).await;
    if !dated(&before) {
        return Err(refusal::unanswered(false, key, None, None).into());
    }
    let of = compiled.machines.iter();
    let work = of.map(|machine| encrypted(worker, &machine.configuration));
    let ciphertexts = in_order(work.collect()).await?;
    let after = worker.metadata.transit_key(key).await;
    let mut keys: BTreeMap<i64, TransitKey> = BTreeMap::new();
    let mut seeds = Vec::new();
    let mut artifacts = Vec::with_capacity(ciphertexts.len());
    for ciphertext in ciphertexts {
        let version = i64::try_from(ciphertext.key_version()).map_err(|_| fault())?;
        let proven = match keys.get(&version) {
            Some(proven) => proven.clone(),
            None => {
                let (proven, seed) = prove(worker, version, &before, &after, classified_from)?;
                seeds.push(seed);
                keys.insert(version, proven.clone());
                proven
            }
        };
        artifacts.push((ciphertext, proven));
    }
    Ok(Sealed { artifacts, seeds })
}

async fn encrypted<W: World>(
    worker: &Worker<W>,
    configuration: &Plaintext,
) -> Result<Ciphertext, Problem> {
    let encrypted = worker.compiler.encrypt_artifact(configuration).await;
    encrypted.map_err(|failure| {
        let key = worker.artifact_key.as_str();
        tracing::warn!(
            event = "artifact-not-encrypted",
            key,
            code = failure.code(),
            "an artifact could not be encrypted"
        );
        refusal::unanswered(false, key, None, None)
    })
}

/// Whether the first read came with a date to compare creation times with.
fn dated(answer: &Answer<TransitFacts>) -> bool {
    match answer {
        Answer::Unreachable => false,
        Answer::Answered {
            status,
            date,
            facts,
        } => *status == 200 && facts.is_some() && date.is_some(),
    }
}

fn prove<W: World>(
    worker: &Worker<W>,
    version: i64,
    before: &Answer<TransitFacts>,
    after: &Answer<TransitFacts>,
    classified_from: DbTime,
) -> Result<(TransitKey, Seed), Problem> {
    let key = worker.artifact_key.as_str();
    let asked = TransitVersion {
        key: key.to_owned(),
        version,
        created: transit_created(version, before),
    };
    let classification = classify_transit(&asked, after);
    if classification.class != Class::Retained {
        let problem = refusal::classified(false, key, version, None, &classification);
        return Err(problem);
    }
    let Some(created) = proven_created(version, before, after) else {
        // Made in this second, or absent from the first read: a retry a second later tells.
        return Err(refusal::identity_changed(false, key, version, None));
    };
    let proven = TransitKey {
        name: key.to_owned(),
        version,
        created,
    };
    let seed = Seed {
        id: worker.db.mint(),
        kv: false,
        dependency: Dependency {
            object: key.to_owned(),
            version,
            created: created.to_string(),
        },
        classification,
        classified_from,
    };
    Ok((proven, seed))
}
