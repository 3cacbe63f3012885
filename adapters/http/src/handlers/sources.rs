//! Heads and revisions of fragments, profiles and assignments (PA §3.1, §9.2).

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_api::bodies::common::Layer as WireLayer;
use bronzeward_api::bodies::source::{
    AssignmentHead, AssignmentRevision, FragmentHead, FragmentRevision, ProfileHead,
    ProfileRevision, SourceScope,
};
use bronzeward_core::head::{Layer, Name};
use bronzeward_core::id::{
    AssignmentId, AssignmentRevisionId, FragmentId, FragmentRevisionId, HeadId, Id, Kind,
    MachineId, ProfileId, ProfileRevisionId,
};
use bronzeward_core::problem::Problem;
use bronzeward_engine::ports::store::{
    AssignmentRevisionRow, FragmentRevisionRow, HeadKind, Page, Paged, ProfileRevisionRow,
    SourceReads, StoreError,
};
use bronzeward_engine::request::Refused;
use bronzeward_engine::rows::{HeadRow, SourceRevisionId};
use bronzeward_engine::world::{RawSnapshot, World};
use serde::Serialize;

use super::wire;
use crate::call::{Call, Handled, closing, missing, ok, ok_with_etag};

fn mixed() -> Refused {
    Problem::internal("A head of mixed kinds.").into()
}

const fn layer(layer: Layer) -> WireLayer {
    match layer {
        Layer::Global => WireLayer::Global,
        Layer::Site => WireLayer::Site,
        Layer::Cluster => WireLayer::Cluster,
        Layer::Role => WireLayer::Role,
        Layer::Workload => WireLayer::Workload,
        Layer::Override => WireLayer::Override,
    }
}

fn fragment_head(row: &HeadRow) -> Result<FragmentHead, Refused> {
    let HeadId::Fragment(id) = row.id else {
        return Err(mixed());
    };
    Ok(FragmentHead {
        id: wire::id(id)?,
        cluster: wire::id(row.cluster)?,
        scope: SourceScope::Cluster,
        name: row.subject.clone(),
        layer: wire::word(row.layer.as_deref().ok_or_else(mixed)?)?,
        revision: match row.revision {
            Some(SourceRevisionId::Fragment(revision)) => Some(wire::id(revision)?),
            None => None,
            Some(_) => return Err(mixed()),
        },
        head_revision: wire::count(row.etag.revision.0),
        created_at: wire::time(row.created_at),
    })
}

fn profile_head(row: &HeadRow) -> Result<ProfileHead, Refused> {
    let HeadId::Profile(id) = row.id else {
        return Err(mixed());
    };
    Ok(ProfileHead {
        id: wire::id(id)?,
        cluster: wire::id(row.cluster)?,
        scope: SourceScope::Cluster,
        name: row.subject.clone(),
        revision: match row.revision {
            Some(SourceRevisionId::Profile(revision)) => Some(wire::id(revision)?),
            None => None,
            Some(_) => return Err(mixed()),
        },
        head_revision: wire::count(row.etag.revision.0),
        created_at: wire::time(row.created_at),
    })
}

fn assignment_head(row: &HeadRow) -> Result<AssignmentHead, Refused> {
    let HeadId::Assignment(id) = row.id else {
        return Err(mixed());
    };
    let machine = MachineId::parse(&row.subject).map_err(|_| mixed())?;
    Ok(AssignmentHead {
        id: wire::id(id)?,
        cluster: wire::id(row.cluster)?,
        machine: wire::id(machine)?,
        revision: match row.revision {
            Some(SourceRevisionId::Assignment(revision)) => Some(wire::id(revision)?),
            None => None,
            Some(_) => return Err(mixed()),
        },
        head_revision: wire::count(row.etag.revision.0),
        created_at: wire::time(row.created_at),
    })
}

fn fragment(row: &FragmentRevisionRow) -> Result<FragmentRevision, Refused> {
    Ok(FragmentRevision {
        id: wire::id(row.id)?,
        cluster: wire::id(row.cluster)?,
        name: row.name.to_string(),
        layer: layer(row.layer),
        document: row.document.clone(),
        declarations: super::said::served(&row.declarations)?,
        author: wire::id(row.author.principal)?,
        created_at: wire::time(row.created_at),
    })
}

fn profile(row: &ProfileRevisionRow) -> Result<ProfileRevision, Refused> {
    let pins = row.content.fragments.iter().map(|pin| wire::id(*pin));
    Ok(ProfileRevision {
        id: wire::id(row.id)?,
        cluster: wire::id(row.cluster)?,
        name: row.name.to_string(),
        fragments: pins.collect::<Result<_, _>>()?,
        author: wire::id(row.author.principal)?,
        created_at: wire::time(row.created_at),
    })
}

fn assignment(row: &AssignmentRevisionRow) -> Result<AssignmentRevision, Refused> {
    let names = |names: &Vec<Name>| names.iter().map(Name::to_string).collect();
    let fragments: BTreeMap<WireLayer, Vec<String>> = row
        .content
        .fragments
        .iter()
        .map(|(of, selected)| (layer(*of), names(selected)))
        .collect();
    Ok(AssignmentRevision {
        id: wire::id(row.id)?,
        cluster: wire::id(row.cluster)?,
        machine: wire::id(row.machine)?,
        profiles: names(&row.content.profiles),
        fragments,
        author: wire::id(row.author.principal)?,
        created_at: wire::time(row.created_at),
    })
}

async fn heads<W: World, K: Kind, B: Serialize>(
    call: Call<'_, W>,
    kind: HeadKind,
    wrap: fn(Id<K>) -> HeadId,
    body: fn(&HeadRow) -> Result<B, Refused>,
) -> Handled {
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page: Page<Id<K>> = call.page(&scope)?;
    let page = Page {
        after: page.after.map(wrap),
        limit: page.limit,
    };
    let paged = snapshot.heads(kind, &page).await;
    let paged = closing(snapshot, paged).await?;
    let items = paged.items.iter();
    let items = items.map(|row| Ok((row.id.to_string(), body(row)?)));
    let paged = Paged {
        items: items.collect::<Result<Vec<_>, Refused>>()?,
        more: paged.more,
    };
    Ok(call.paged(&scope, paged, |one| one.0.clone(), |one| one.1))
}

async fn head<W: World, B: Serialize>(
    call: Call<'_, W>,
    id: HeadId,
    body: fn(&HeadRow) -> Result<B, Refused>,
) -> Handled {
    let (mut snapshot, _) = call.read().await?;
    let row = snapshot.head(id).await;
    let row = closing(snapshot, row).await?.ok_or_else(missing)?;
    Ok(ok_with_etag(&body(&row)?, row.etag))
}

pub async fn fragments<W: World>(call: Call<'_, W>) -> Handled {
    heads(call, HeadKind::Fragment, HeadId::Fragment, fragment_head).await
}

pub async fn profiles<W: World>(call: Call<'_, W>) -> Handled {
    heads(call, HeadKind::Profile, HeadId::Profile, profile_head).await
}

pub async fn assignments<W: World>(call: Call<'_, W>) -> Handled {
    let kind = HeadKind::Assignment;
    heads(call, kind, HeadId::Assignment, assignment_head).await
}

pub async fn read_fragment<W: World>(call: Call<'_, W>) -> Handled {
    let id: FragmentId = call.id("fragment")?;
    head(call, HeadId::Fragment(id), fragment_head).await
}

pub async fn read_profile<W: World>(call: Call<'_, W>) -> Handled {
    let id: ProfileId = call.id("profile")?;
    head(call, HeadId::Profile(id), profile_head).await
}

pub async fn read_assignment<W: World>(call: Call<'_, W>) -> Handled {
    let id: AssignmentId = call.id("assignment")?;
    head(call, HeadId::Assignment(id), assignment_head).await
}

/// The revisions behind a page of identifiers.
enum Revisions {
    Fragments(Vec<FragmentRevisionRow>),
    Profiles(Vec<ProfileRevisionRow>),
    Assignments(Vec<AssignmentRevisionRow>),
}

async fn load<W: World>(
    snapshot: &mut RawSnapshot<W>,
    of: HeadId,
    ids: &[SourceRevisionId],
) -> Result<Revisions, StoreError> {
    let (mut fragments, mut profiles, mut assignments) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for id in ids {
        match *id {
            SourceRevisionId::Fragment(id) => drop(fragments.insert(id)),
            SourceRevisionId::Profile(id) => drop(profiles.insert(id)),
            SourceRevisionId::Assignment(id) => drop(assignments.insert(id)),
            SourceRevisionId::ImportBase(_) => {}
        }
    }
    Ok(match of {
        HeadId::Fragment(_) => Revisions::Fragments(snapshot.fragment_revisions(&fragments).await?),
        HeadId::Profile(_) => Revisions::Profiles(snapshot.profile_revisions(&profiles).await?),
        HeadId::Assignment(_) => {
            Revisions::Assignments(snapshot.assignment_revisions(&assignments).await?)
        }
    })
}

async fn revisions<W: World, K: Kind>(
    call: Call<'_, W>,
    of: HeadId,
    wrap: fn(Id<K>) -> SourceRevisionId,
) -> Handled {
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page: Page<Id<K>> = call.page(&scope)?;
    let after = page.after.map(wrap);
    let found = async {
        let Some(head) = snapshot.head(of).await? else {
            return Ok(None);
        };
        let ids = snapshot.revisions_of(&head, after, page.limit).await?;
        let rows = load::<W>(&mut snapshot, of, &ids.items).await?;
        Ok(Some((rows, ids.more)))
    }
    .await;
    let (rows, more) = closing(snapshot, found).await?.ok_or_else(missing)?;
    match rows {
        Revisions::Fragments(rows) => page_of(&call, &scope, &rows, more, fragment, |row| row.id),
        Revisions::Profiles(rows) => page_of(&call, &scope, &rows, more, profile, |row| row.id),
        Revisions::Assignments(rows) => {
            page_of(&call, &scope, &rows, more, assignment, |row| row.id)
        }
    }
}

fn page_of<W: World, R, K: Kind, B: Serialize>(
    call: &Call<'_, W>,
    scope: &crate::cursor::Scope,
    rows: &[R],
    more: bool,
    body: fn(&R) -> Result<B, Refused>,
    id: fn(&R) -> Id<K>,
) -> Handled {
    let items = rows.iter();
    let items = items.map(|row| Ok((id(row).to_string(), body(row)?)));
    let paged = Paged {
        items: items.collect::<Result<Vec<_>, Refused>>()?,
        more,
    };
    Ok(call.paged(scope, paged, |one| one.0.clone(), |one| one.1))
}

pub async fn fragment_revisions<W: World>(call: Call<'_, W>) -> Handled {
    let id: FragmentId = call.id("fragment")?;
    revisions(call, HeadId::Fragment(id), SourceRevisionId::Fragment).await
}

pub async fn profile_revisions<W: World>(call: Call<'_, W>) -> Handled {
    let id: ProfileId = call.id("profile")?;
    revisions(call, HeadId::Profile(id), SourceRevisionId::Profile).await
}

pub async fn assignment_revisions<W: World>(call: Call<'_, W>) -> Handled {
    let id: AssignmentId = call.id("assignment")?;
    revisions(call, HeadId::Assignment(id), SourceRevisionId::Assignment).await
}

pub async fn read_fragment_revision<W: World>(call: Call<'_, W>) -> Handled {
    let id: FragmentRevisionId = call.id("revision")?;
    let (mut snapshot, _) = call.read().await?;
    let rows = snapshot.fragment_revisions(&BTreeSet::from([id])).await;
    let row = closing(snapshot, rows).await?.pop().ok_or_else(missing)?;
    Ok(ok(&fragment(&row)?))
}

pub async fn read_profile_revision<W: World>(call: Call<'_, W>) -> Handled {
    let id: ProfileRevisionId = call.id("revision")?;
    let (mut snapshot, _) = call.read().await?;
    let rows = snapshot.profile_revisions(&BTreeSet::from([id])).await;
    let row = closing(snapshot, rows).await?.pop().ok_or_else(missing)?;
    Ok(ok(&profile(&row)?))
}

pub async fn read_assignment_revision<W: World>(call: Call<'_, W>) -> Handled {
    let id: AssignmentRevisionId = call.id("revision")?;
    let (mut snapshot, _) = call.read().await?;
    let rows = snapshot.assignment_revisions(&BTreeSet::from([id])).await;
    let row = closing(snapshot, rows).await?.pop().ok_or_else(missing)?;
    Ok(ok(&assignment(&row)?))
}
