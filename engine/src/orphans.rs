//! The orphan report (PA §6.4): generations that no committed reference names and whose
//! ingestion is over.
//!
//! The operator's command calls it. The provider is listed first, outside any transaction,
//! and then one state of the database says what is referenced and what each claim is. It
//! changes nothing. Never in this module: a value, a generation's metadata, or a name of the
//! listing that is not of a generation's form.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::claim::{ClaimState, StagingMode};
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::{ClusterId, Id, IngestionId, Kind};
use bronzeward_core::time::DbTime;

use crate::ports::provider::{Failure, GenerationDirectory, Listed, OrphanListing};
use crate::ports::store::{Snapshot, Store as _, StoreError};
use crate::tx::claim_of;
use crate::world::{Db, World};

/// A claim as the database records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRecord {
    pub state: ClaimState,
    pub mode: StagingMode,
    pub created_at: DbTime,
    pub expires_at: DbTime,
    pub lease_until: DbTime,
}

/// The unreferenced generations of one claim, by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreferenced {
    pub claim: IngestionId,
    /// None where the database holds no such claim: a restore removed it, or it never did.
    pub record: Option<ClaimRecord>,
    pub paths: Vec<GenerationPath>,
}

/// The report. Each list is in the order of its claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub orphans: Vec<Unreferenced>,
    /// Of claims that a read already treats as abandoned and nobody has written so: their
    /// draft transaction may still commit, so that these are no orphans yet.
    pub expired: Vec<Unreferenced>,
    /// Names that are not of a generation's form, which the product never writes. They are
    /// counted and not repeated.
    pub foreign: usize,
}

/// Which step of a report failed. Nothing of it is shown then (PA §6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    #[error("listing the clusters: {}", .0.code())]
    Clusters(Failure),
    #[error("listing a cluster's claims: {}", .0.code())]
    Claims(Failure),
    #[error("listing a claim's generations: {}", .0.code())]
    Generations(Failure),
    #[error("reading the database")]
    Database,
}

impl From<StoreError> for Failed {
    fn from(_: StoreError) -> Self {
        Self::Database
    }
}

/// Reports one cluster's orphans, or those of every cluster the provider lists: one that a
/// restore removed from the database is then still found.
pub async fn report<W: World, L: OrphanListing>(
    db: &Db<W>,
    listing: &L,
    cluster: Option<ClusterId>,
) -> Result<Report, Failed> {
    let mut report = Report::default();
    let clusters = match cluster {
        Some(cluster) => vec![cluster],
        None => {
            let names = listing.list(GenerationDirectory::Clusters).await;
            directories(names.map_err(Failed::Clusters)?, &mut report.foreign)
        }
    };
    let mut paths = BTreeSet::new();
    for cluster in clusters {
        let names = listing.list(GenerationDirectory::Claims(cluster)).await;
        let claims = directories(names.map_err(Failed::Claims)?, &mut report.foreign);
        for claim in claims {
            let directory = GenerationDirectory::Values(cluster, claim);
            let names = listing.list(directory).await.map_err(Failed::Generations)?;
            paths.extend(generations(cluster, claim, &names, &mut report.foreign));
        }
    }
    let read = read(db, paths).await?;
    sort(read, &mut report);
    Ok(report)
}

fn directories<K: Kind>(names: Vec<Listed>, foreign: &mut usize) -> Vec<Id<K>> {
    let parsed = |listed: Listed| match listed {
        Listed::Directory(name) => Id::parse(&name).ok(),
        Listed::Secret(_) => None,
    };
    counted(names.into_iter().map(parsed), foreign)
}

fn generations(
    cluster: ClusterId,
    claim: IngestionId,
    names: &[Listed],
    foreign: &mut usize,
) -> Vec<GenerationPath> {
    let parsed = |listed: &Listed| match listed {
        Listed::Secret(name) => GenerationPath::parse(&format!("gen/{cluster}/{claim}/{name}")),
        Listed::Directory(_) => None,
    };
    counted(names.iter().map(parsed), foreign)
}

fn counted<T>(parsed: impl Iterator<Item = Option<T>>, foreign: &mut usize) -> Vec<T> {
    let mut ours = Vec::new();
    for one in parsed {
        match one {
            Some(one) => ours.push(one),
            None => *foreign += 1,
        }
    }
    ours
}

/// What one state of the database says of the listed paths.
struct State {
    unreferenced: BTreeMap<IngestionId, Vec<GenerationPath>>,
    claims: BTreeMap<IngestionId, (ClaimRecord, bool)>,
}

/// The references and the claims in one snapshot: read apart, a draft transaction between the
/// two would leave its generations unreferenced and its claim released.
async fn read<W: World>(db: &Db<W>, paths: BTreeSet<GenerationPath>) -> Result<State, Failed> {
    let mut snapshot = db.store().snapshot().await?;
    let read = state(&mut snapshot, paths).await;
    snapshot.close().await;
    Ok(read?)
}

async fn state<S: Snapshot>(
    snapshot: &mut S,
    paths: BTreeSet<GenerationPath>,
) -> Result<State, StoreError> {
    let now = snapshot.clock().await?;
    let referenced = snapshot.referenced_generations(&paths).await?;
    let mut unreferenced: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for path in paths.difference(&referenced) {
        unreferenced.entry(path.claim).or_default().push(*path);
    }
    let named = unreferenced.keys().copied().collect();
    let mut claims = BTreeMap::new();
    for row in snapshot.claim_rows(&named).await? {
        let claim = claim_of(&row, None)?;
        let state = ClaimState::parse(&row.state).ok_or(StoreError::Fault)?;
        let record = ClaimRecord {
            state,
            mode: StagingMode::parse(&row.mode).ok_or(StoreError::Fault)?,
            created_at: row.created_at,
            expires_at: row.expires_at,
            lease_until: row.lease_until,
        };
        claims.insert(row.id, (record, claim.is_due(now)));
    }
    Ok(State {
        unreferenced,
        claims,
    })
}

/// By the state a claim's row records and not by how a read treats it: a draft transaction
/// that passed its owner check before the expiry may still release the claim.
fn sort(state: State, report: &mut Report) {
    for (claim, paths) in state.unreferenced {
        let found = state.claims.get(&claim).copied();
        let unreferenced = Unreferenced {
            claim,
            record: found.map(|(record, _)| record),
            paths,
        };
        match found.map(|(record, due)| (record.state, due)) {
            None | Some((ClaimState::Released | ClaimState::Abandoned, _)) => {
                report.orphans.push(unreferenced);
            }
            Some((ClaimState::Held | ClaimState::Resumed | ClaimState::Paused, true)) => {
                report.expired.push(unreferenced);
            }
            // Its ingestion may be in flight or under review.
            Some((ClaimState::Held | ClaimState::Resumed | ClaimState::Paused, false)) => {}
        }
    }
}
