//! A draft's entries: fragments, profiles and assignments proposed or removed (PA §3.1,
//! §9.3).

use std::collections::BTreeMap;

use bronzeward_api::bodies::common::Layer as WireLayer;
use bronzeward_api::bodies::draft::{
    DraftEntry, DraftUpdate, PutAssignment, PutFragment, PutProfile,
};
use bronzeward_core::head::{AssignmentContent, Layer, Name, ProfileContent};
use bronzeward_core::id::{DraftId, MachineId, RequestId};
use bronzeward_core::problem::Problem;
use bronzeward_core::secret::Unresolved;
use bronzeward_engine::ingest::FragmentPut;
use bronzeward_engine::request::{Refused, Rendered};
use bronzeward_engine::tx::{EntryUpdate, Proposal};
use bronzeward_engine::world::World;
use http::StatusCode;

use super::clusters::malformed;
use super::ingestions::ingester;
use super::{drafts, said, wire};
use crate::call::{Call, Handled, Write, quoted, rendered};
use crate::problem::{document, status_and_title};

pub(super) const fn layer(layer: WireLayer) -> Layer {
    match layer {
        WireLayer::Global => Layer::Global,
        WireLayer::Site => Layer::Site,
        WireLayer::Cluster => Layer::Cluster,
        WireLayer::Role => Layer::Role,
        WireLayer::Workload => Layer::Workload,
        WireLayer::Override => Layer::Override,
    }
}

fn body(update: &EntryUpdate) -> Result<DraftUpdate, Refused> {
    let mut entry = drafts::entry(&update.entry)?;
    if let DraftEntry::Fragment(fragment) = &mut entry {
        fragment.document.clone_from(&update.document);
    }
    Ok(DraftUpdate {
        draft: wire::id(update.draft)?,
        entry,
        ingestion: wire::opt_id(update.ingestion)?,
    })
}

fn render(request: RequestId) -> impl Fn(&EntryUpdate) -> Rendered + Clone {
    move |update| {
        super::render(request, body(update), |body| Rendered {
            etag: Some(quoted(update.etag)),
            ..rendered(StatusCode::OK, body)
        })
    }
}

/// The name in a path: it need not exist yet, so a malformed one is not a missing one.
fn name<W: World>(call: &Call<'_, W>) -> Result<Name, Problem> {
    Name::parse(call.text("name")).map_err(malformed)
}

pub async fn put_fragment<W: World>(mut call: Call<'_, W>) -> Handled {
    let draft: DraftId = call.id("draft")?;
    let name = name(&call)?;
    let write = call.write::<PutFragment>().await?;
    let sent = write.body;
    let put = FragmentPut {
        draft,
        name,
        layer: layer(sent.layer),
        said: said::said(sent.marks, sent.declarations)?,
        input: Unresolved::new(sent.document.into_inner().into_bytes()),
        if_match: write.if_match,
    };
    let request = call.request();
    let refuse = |problem: &Problem| {
        let (status, _) = status_and_title(problem.code);
        rendered(status, &document(problem, request.to_string()))
    };
    let answer = ingester(&call)?
        .put_fragment(&write.admitted, put, render(request), refuse)
        .await?;
    Ok(call.answer(answer))
}

pub async fn put_profile<W: World>(mut call: Call<'_, W>) -> Handled {
    let draft: DraftId = call.id("draft")?;
    let name = name(&call)?;
    let write = call.write::<PutProfile>().await?;
    let fragments = write.body.fragments.iter().map(wire::core_id);
    let content = ProfileContent {
        fragments: fragments.collect::<Result<_, _>>()?,
    };
    let proposal = Proposal::Profile(name, content);
    propose(&call, &write, draft, &proposal).await
}

pub async fn put_assignment<W: World>(mut call: Call<'_, W>) -> Handled {
    let draft: DraftId = call.id("draft")?;
    let machine: MachineId = call.id("machine")?;
    let write = call.write::<PutAssignment>().await?;
    let parse = |name: &str| Name::parse(name).map_err(malformed);
    let profiles = write.body.profiles.iter();
    let mut fragments = BTreeMap::new();
    for (of, names) in write.body.fragments.iter().flatten() {
        let names = names.iter().map(|name| parse(name.as_str()));
        fragments.insert(layer(*of), names.collect::<Result<_, _>>()?);
    }
    let content = AssignmentContent {
        profiles: profiles
            .map(|name| parse(name.as_str()))
            .collect::<Result<_, _>>()?,
        fragments,
    };
    let proposal = Proposal::Assignment(machine, content);
    propose(&call, &write, draft, &proposal).await
}

pub async fn remove_fragment<W: World>(call: Call<'_, W>) -> Handled {
    let removal = Proposal::RemoveFragment(name(&call)?);
    remove(call, removal).await
}

pub async fn remove_profile<W: World>(call: Call<'_, W>) -> Handled {
    let removal = Proposal::RemoveProfile(name(&call)?);
    remove(call, removal).await
}

pub async fn remove_assignment<W: World>(call: Call<'_, W>) -> Handled {
    let removal = Proposal::RemoveAssignment(call.id("machine")?);
    remove(call, removal).await
}

async fn remove<W: World>(mut call: Call<'_, W>, removal: Proposal) -> Handled {
    let draft: DraftId = call.id("draft")?;
    let write = call.write_bare().await?;
    propose(&call, &write, draft, &removal).await
}

async fn propose<W: World, T>(
    call: &Call<'_, W>,
    write: &Write<T>,
    draft: DraftId,
    proposal: &Proposal,
) -> Handled {
    let (requests, render) = (call.requests(), render(call.request()));
    let (admitted, if_match) = (&write.admitted, write.if_match);
    let proposed = requests.propose(admitted, draft, proposal, if_match, render);
    Ok(call.answer(proposed.await?))
}
