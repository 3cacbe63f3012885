//! Keyed fingerprints, computed before a request's transaction opens (PA §7.1).
//!
//! The edge calls it for a route whose body can hold unextracted text: once for the
//! fingerprint, and once more where the key has a record made under another version of the
//! digest key. What comes out is data, so that [`crate::request::Requests`] compares without
//! a provider (PA-TX-11). Never in this module: a transaction, a lock, or a digest without
//! the provider's key.

use bronzeward_core::id::PrincipalId;
use bronzeward_core::idempotency::{DigestKey, Fingerprint, IdempotencyKey};
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::secret::Plaintext;

use crate::ports::provider::{Failure, IngestionSecrets};
use crate::ports::store::{IdempotencyRecord, RequestReads, Snapshot, Store, StoreError};
use crate::request::Admitted;
use crate::world::{Db, World};

/// This request's fingerprint under the key version of the record that its key already has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recomputed {
    pub key: DigestKey,
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Digest {
    Computed([u8; 32]),
    /// The provider no longer computes under that version: the retry cannot be compared and
    /// is answered as another request (PA §7.1).
    Gone,
    /// The provider did not answer now, so the comparison stays open.
    Unanswered,
}

/// Computes fingerprints with the provider's digest key.
pub struct Fingerprints<'w, W: World> {
    pub db: &'w Db<W>,
    pub ingestion: &'w W::Ingestion,
}

impl<W: World> Fingerprints<'_, W> {
    /// The request's fingerprint, under the digest key's current version.
    pub async fn compute(&self, text: &[Plaintext; 1]) -> Result<Fingerprint, Problem> {
        let digests = self.ingestion.keyed_digests(text).await;
        let digest = digests.ok().and_then(|digests| digests.into_iter().next());
        let digest = digest.ok_or_else(provider_unavailable)?;
        Ok(Fingerprint {
            digest: digest.mac,
            key: Some(digest.key),
        })
    }

    /// The same text under the version that the key's record names, where that is another.
    pub async fn under_the_record(
        &self,
        principal: PrincipalId,
        key: &IdempotencyKey,
        fingerprint: &Fingerprint,
        text: &[Plaintext; 1],
    ) -> Result<Option<Recomputed>, Problem> {
        let record = self
            .record(principal, key)
            .await
            .map_err(|_| unreadable())?;
        let recorded = record.and_then(|record| record.fingerprint.key);
        let Some(recorded) = recorded.filter(|key| Some(key) != fingerprint.key.as_ref()) else {
            return Ok(None);
        };
        let [text] = text;
        let digest = match self.ingestion.recompute_digest(&recorded, text).await {
            Ok(digest) => Digest::Computed(digest.mac),
            Err(Failure::Refused) => Digest::Gone,
            Err(_) => Digest::Unanswered,
        };
        Ok(Some(Recomputed {
            key: recorded,
            digest,
        }))
    }

    async fn record(
        &self,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let mut snapshot = self.db.store().snapshot().await?;
        let record = snapshot.idempotency_record(principal, key).await;
        snapshot.close().await;
        record
    }
}

/// Whether a record is of this request; none where that can no longer be found out. An error
/// leaves it open: the provider, or a record under a version that was not looked at, and the
/// client's retry may replay.
pub(crate) fn same_request(
    admitted: &Admitted,
    record: &IdempotencyRecord,
) -> Result<Option<bool>, Problem> {
    if admitted.method != record.method || admitted.route != record.route {
        return Ok(Some(false));
    }
    if admitted.fingerprint.key == record.fingerprint.key {
        let same = admitted.fingerprint.digest == record.fingerprint.digest;
        return Ok(Some(same));
    }
    let Some(recorded) = &record.fingerprint.key else {
        return Ok(None);
    };
    match &admitted.recomputed {
        Some(older) if older.key == *recorded => match older.digest {
            Digest::Computed(digest) => Ok(Some(digest == record.fingerprint.digest)),
            Digest::Gone => Ok(None),
            Digest::Unanswered => Err(provider_unavailable()),
        },
        // Another request under this key committed after the record was looked for, and the
        // digest key was rotated between the two: the next try finds the record.
        _ => Err(Problem::new(ProblemCode::TransientConflict)
            .say("The key was used meanwhile, under another version of the digest key.")),
    }
}

fn provider_unavailable() -> Problem {
    Problem::dependency_unavailable("The provider is not available.")
}

fn unreadable() -> Problem {
    Problem::dependency_unavailable("The database could not be read.")
}

#[cfg(test)]
mod tests {
    use bronzeward_core::id::{ActId, EpochId, RequestId};
    use bronzeward_core::principal::{Actor, PrincipalKind, Role};

    use super::*;

    fn under(version: i64, digest: u8) -> Fingerprint {
        Fingerprint {
            digest: [digest; 32],
            key: Some(key(version)),
        }
    }

    fn key(version: i64) -> DigestKey {
        DigestKey {
            name: "digest".to_owned(),
            version,
        }
    }

    fn admitted(recomputed: Option<Recomputed>) -> Admitted {
        Admitted {
            actor: Actor {
                principal: PrincipalId::from_bits(1),
                role: Role::Author,
                kind: PrincipalKind::Human,
            },
            key: IdempotencyKey::parse("0123456789abcdef").unwrap(),
            fingerprint: under(2, 2),
            recomputed,
            expected_epoch: None,
            request: RequestId::from_bits(1),
            method: "POST",
            route: "/of/a/test",
        }
    }

    fn record(fingerprint: Fingerprint) -> IdempotencyRecord {
        IdempotencyRecord {
            fingerprint,
            method: "POST".to_owned(),
            route: "/of/a/test".to_owned(),
            epoch: EpochId::from_bits(1),
            request: RequestId::from_bits(2),
            act: ActId::from_bits(1),
            status: 200,
            location: None,
            etag: None,
            body: "{}".to_owned(),
            operation: None,
        }
    }

    #[test]
    fn a_record_of_an_older_version_is_compared_under_that_version() {
        let older = |digest| {
            let recomputed = Recomputed {
                key: key(1),
                digest,
            };
            let same = same_request(&admitted(Some(recomputed)), &record(under(1, 1)));
            same.map_err(|problem| problem.code)
        };
        assert_eq!(older(Digest::Computed([1; 32])), Ok(Some(true)));
        assert_eq!(older(Digest::Computed([2; 32])), Ok(Some(false)));
        assert_eq!(older(Digest::Gone), Ok(None));
        assert_eq!(
            older(Digest::Unanswered),
            Err(ProblemCode::DependencyUnavailable)
        );
    }

    #[test]
    fn a_record_that_came_after_the_look_is_left_to_the_next_try() {
        let unseen = same_request(&admitted(None), &record(under(1, 2)));
        assert_eq!(
            unseen.map_err(|problem| problem.code),
            Err(ProblemCode::TransientConflict)
        );
        let current = same_request(&admitted(None), &record(under(2, 2)));
        assert_eq!(current, Ok(Some(true)));
    }
}
