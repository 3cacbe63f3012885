//! Opens a release's artifact as the executor (EaR 3.1): the key version first, by its
//! identity, and then what it encrypts.
//!
//! A dispatch's use-time check and a scope's mark ask here. Never in this module: what a
//! check that failed stops, or a plaintext in a log.

use bronzeward_core::comparison::ArtifactCheck;
use bronzeward_core::dependency::{Class, Reason, TransitVersion, classify_transit};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{MachineId, ReleaseId};
use bronzeward_core::release::TransitKey;
use bronzeward_core::secret::Plaintext;

use crate::ports::provider::{DependencyMetadata, ExecutorSecrets};
use crate::ports::store::{ReleaseReads, Snapshot, Store};
use crate::world::{Db, World};

/// A machine's artifact in a release, with what it must open to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Artifact<'a> {
    pub release: ReleaseId,
    pub machine: MachineId,
    pub key: &'a TransitKey,
    pub digest: ConfigDigest,
}

/// Decrypts it under the key version it was encrypted under, if that is still the same one.
pub(crate) async fn open<W: World>(
    db: &Db<W>,
    executor: &W::Executor,
    metadata: &W::Metadata,
    artifact: Artifact<'_>,
) -> (ArtifactCheck, Option<Plaintext>) {
    let unavailable = (ArtifactCheck::Unavailable, None);
    let (release, machine) = (artifact.release, artifact.machine);
    let Ok(mut snapshot) = db.store().snapshot().await else {
        return unavailable;
    };
    let row = snapshot.release_machine(release, machine).await;
    snapshot.close().await;
    let (Ok(Some(row)), Ok(version)) = (row, u64::try_from(artifact.key.version)) else {
        return unavailable;
    };
    let recorded = TransitVersion {
        key: artifact.key.name.clone(),
        version: artifact.key.version,
        created: Some(artifact.key.created),
    };
    let answer = metadata.transit_key(&artifact.key.name).await;
    let key = classify_transit(&recorded, &answer);
    if key.class != Class::Retained {
        tracing::warn!(
            event = "artifact-key-not-retained",
            %release,
            %machine,
            class = key.class.name(),
            "the key version of an artifact is not retained"
        );
        return match key.reason {
            Some(Reason::IdentityMismatch) => (ArtifactCheck::KeyChanged, None),
            _ => unavailable,
        };
    }
    let plaintext = match executor.decrypt_artifact(&row.ciphertext, version).await {
        Ok(plaintext) => plaintext,
        Err(failure) => {
            tracing::warn!(
                event = "artifact-not-opened",
                %release,
                %machine,
                code = failure.code(),
                "an artifact could not be opened"
            );
            return unavailable;
        }
    };
    if ConfigDigest::of(plaintext.expose().as_bytes()) == artifact.digest {
        (ArtifactCheck::Matches, Some(plaintext))
    } else {
        (ArtifactCheck::Differs, None)
    }
}
