//! Releases and their machines' redacted reviews (PA §9.3, IC §8.2).
//!
//! Never in this module: a digest of a configuration, a ciphertext, or a provider's path.

use bronzeward_api::bodies::cluster::Contract;
use bronzeward_api::bodies::machine::Platform as WirePlatform;
use bronzeward_api::bodies::release::{
    Overriding, Provenance, ProvenanceSource, Release, ReleaseMachine, ReleaseReview,
    ReleaseSource, Renderer,
};
use bronzeward_api::bodies::source::Encoding;
use bronzeward_api::id::{HeadId as WireHead, RevisionId};
use bronzeward_core::id::{MachineId, ReleaseId};
use bronzeward_core::inventory::Platform;
use bronzeward_core::problem::Problem;
use bronzeward_core::release::Contract as CoreContract;
use bronzeward_engine::ports::store::{
    Outcome, Paged, ProvenanceRow, ReleaseMachineRow, ReleaseReads, ReleaseRow, ReleaseSourceRow,
    StoreError,
};
use bronzeward_engine::request::Refused;
use bronzeward_engine::rows::{HeadId, SourceRevisionId};
use bronzeward_engine::world::{RawSnapshot, World};

use super::wire;
use crate::call::{Call, Handled, closing, missing, ok};

const fn platform(of: Platform) -> WirePlatform {
    match of {
        Platform::Metal => WirePlatform::Metal,
        Platform::Container => WirePlatform::Container,
        Platform::Cloud => WirePlatform::Cloud,
    }
}

fn contract(of: CoreContract) -> Result<Contract, Refused> {
    wire::word(&of.to_string())
}

fn head(of: HeadId) -> Result<WireHead, Refused> {
    match of {
        HeadId::Assignment(id) => wire::id(id),
        HeadId::Fragment(id) => wire::id(id),
        HeadId::Profile(id) => wire::id(id),
    }
}

fn revision(of: SourceRevisionId) -> Result<RevisionId, Refused> {
    match of {
        SourceRevisionId::Assignment(id) => wire::id(id),
        SourceRevisionId::Fragment(id) => wire::id(id),
        SourceRevisionId::ImportBase(id) => wire::id(id),
        SourceRevisionId::Profile(id) => wire::id(id),
    }
}

fn source(row: &ReleaseSourceRow) -> Result<ReleaseSource, Refused> {
    Ok(ReleaseSource {
        kind: wire::word(row.kind.as_str())?,
        head: head(row.head)?,
        revision: row.revision.map(revision).transpose()?,
        head_revision: wire::count(row.head_revision.0),
    })
}

fn machine(row: &ReleaseMachineRow) -> Result<ReleaseMachine, Refused> {
    Ok(ReleaseMachine {
        machine: wire::id(row.machine)?,
        mode: platform(row.platform),
        publication_observation: wire::id(row.observation)?,
        review: format!(
            "/api/v1/releases/{}/machines/{}/review",
            row.release, row.machine
        ),
    })
}

/// A release with its sources and machines.
type Whole = (ReleaseRow, Vec<ReleaseSourceRow>, Vec<ReleaseMachineRow>);

fn body((row, sources, machines): &Whole) -> Result<Release, Refused> {
    Ok(Release {
        id: wire::id(row.id)?,
        cluster: wire::id(row.cluster)?,
        draft: wire::id(row.draft)?,
        draft_revision: wire::count(row.draft_revision.0),
        operation: wire::id(row.operation)?,
        published_by: wire::acting(row.by)?,
        published_at: wire::time(row.at),
        renderer: Renderer {
            contract: contract(row.renderer.contract)?,
            machinery_version: row.renderer.machinery_version.clone(),
            machinery_checksum: row.renderer.machinery_checksum.clone(),
            kubernetes_version: row.renderer.kubernetes_version.clone(),
        },
        sources: sources.iter().map(source).collect::<Result<_, _>>()?,
        machines: machines.iter().map(machine).collect::<Result<_, _>>()?,
    })
}

async fn whole<W: World>(
    snapshot: &mut RawSnapshot<W>,
    row: ReleaseRow,
) -> Result<Whole, StoreError> {
    let sources = snapshot.release_sources(row.id).await?;
    let machines = snapshot.release_machines(row.id).await?;
    Ok((row, sources, machines))
}

pub async fn list<W: World>(call: Call<'_, W>) -> Handled {
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page = call.page(&scope)?;
    let found = async {
        let paged = snapshot.releases(&page).await?;
        let mut items = Vec::with_capacity(paged.items.len());
        for row in paged.items {
            items.push(whole::<W>(&mut snapshot, row).await?);
        }
        Ok((items, paged.more))
    }
    .await;
    let (items, more) = closing(snapshot, found).await?;
    let items = items.iter().map(body).collect::<Result<Vec<_>, _>>()?;
    let paged = Paged { items, more };
    Ok(call.paged(
        &scope,
        paged,
        |release| release.id.to_string(),
        |release| release,
    ))
}

pub async fn read<W: World>(call: Call<'_, W>) -> Handled {
    let id: ReleaseId = call.id("release")?;
    let (mut snapshot, _) = call.read().await?;
    let found = async {
        match snapshot.release(id).await? {
            Some(row) => Ok(Some(whole::<W>(&mut snapshot, row).await?)),
            None => Ok(None),
        }
    }
    .await;
    let found = closing(snapshot, found).await?.ok_or_else(missing)?;
    Ok(ok(&body(&found)?))
}

fn provenance(row: &ProvenanceRow) -> Result<Provenance, Refused> {
    let number = |number: i32| u64::try_from(number).map_err(|_| Refused::from(negative()));
    let (output, overridden_by) = match &row.outcome {
        Outcome::Output(path) => (Some(path.clone()), None),
        Outcome::Overridden(by, digest) => {
            let overriding = Overriding {
                revision: wire::id(*by)?,
                digest: digest.hex(),
            };
            (None, Some(overriding))
        }
    };
    Ok(Provenance {
        reference: row.version.name.as_str().to_owned(),
        version: row.version.version,
        encoding: row.encoding.map(|_| Encoding::Base64),
        member: row.member.map(number).transpose()?,
        source: ProvenanceSource {
            revision: revision(row.source)?,
            digest: row.source_digest.hex(),
            path: row.path.clone(),
            occurrence: number(row.occurrence)?,
        },
        output,
        overridden_by,
    })
}

fn negative() -> Problem {
    Problem::internal("A stored position is negative.")
}

pub async fn review<W: World>(call: Call<'_, W>) -> Handled {
    let id: ReleaseId = call.id("release")?;
    let of: MachineId = call.id("machine")?;
    let (mut snapshot, _) = call.read().await?;
    let found = async {
        let row = snapshot.release_machine(id, of).await?;
        let records = snapshot.provenance(id, of).await?;
        Ok(row.map(|row| (row, records)))
    }
    .await;
    let (row, records) = closing(snapshot, found).await?.ok_or_else(missing)?;
    let (configuration, notice) = match row.review {
        Ok(configuration) => (Some(configuration), None),
        Err(notice) => (None, Some(notice)),
    };
    Ok(ok(&ReleaseReview {
        release: wire::id(row.release)?,
        machine: wire::id(row.machine)?,
        mode: platform(row.platform),
        configuration,
        notice,
        provenance: records.iter().map(provenance).collect::<Result<_, _>>()?,
    }))
}
