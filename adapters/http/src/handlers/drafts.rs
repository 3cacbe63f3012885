//! Drafts: opening, reading and discarding them (PA §3.1, §9.3).

use bronzeward_api::bodies::common::Nothing;
use bronzeward_api::bodies::draft::{
    AssignmentEntry, CreateDraft, Draft, DraftEntry, DraftState, FragmentEntry, ImportBaseEntry,
    ProfileEntry,
};
use bronzeward_core::id::{DraftId, HeadId, MachineId};
use bronzeward_core::problem::Problem;
use bronzeward_engine::ports::store::{DraftReads, EntryKind, EntryOfDraft, Paged};
use bronzeward_engine::request::{Refused, Rendered};
use bronzeward_engine::rows::{DraftRow, DraftStateRow, SourceRevisionId};
use bronzeward_engine::world::World;
use http::StatusCode;

use super::wire;
use crate::call::{Call, Handled, closing, created, missing, ok_with_etag, quoted, rendered};

fn mixed() -> Refused {
    Problem::internal("A draft entry of mixed kinds.").into()
}

/// One entry. A fragment's text is answered by the update that proposed it and by its
/// revision's own read.
pub(super) fn entry(row: &EntryOfDraft) -> Result<DraftEntry, Refused> {
    let base = row.base.map(|(_, base)| wire::count(base));
    let head = row.base.map(|(head, _)| head);
    let machine = || {
        MachineId::parse(&row.subject)
            .map_err(|_| mixed())
            .and_then(wire::id)
    };
    Ok(match row.kind {
        EntryKind::ImportBase => match row.revision {
            Some(SourceRevisionId::ImportBase(revision)) => {
                DraftEntry::ImportBase(ImportBaseEntry {
                    machine: machine()?,
                    revision: wire::id(revision)?,
                })
            }
            _ => return Err(mixed()),
        },
        EntryKind::Fragment => DraftEntry::Fragment(FragmentEntry {
            name: row.subject.clone(),
            head: match head {
                Some(HeadId::Fragment(id)) => Some(wire::id(id)?),
                None => None,
                Some(_) => return Err(mixed()),
            },
            base,
            revision: match row.revision {
                Some(SourceRevisionId::Fragment(id)) => Some(wire::id(id)?),
                None => None,
                Some(_) => return Err(mixed()),
            },
            document: None,
        }),
        EntryKind::Profile => DraftEntry::Profile(ProfileEntry {
            name: row.subject.clone(),
            head: match head {
                Some(HeadId::Profile(id)) => Some(wire::id(id)?),
                None => None,
                Some(_) => return Err(mixed()),
            },
            base,
            revision: match row.revision {
                Some(SourceRevisionId::Profile(id)) => Some(wire::id(id)?),
                None => None,
                Some(_) => return Err(mixed()),
            },
        }),
        EntryKind::Assignment => DraftEntry::Assignment(AssignmentEntry {
            machine: machine()?,
            head: match head {
                Some(HeadId::Assignment(id)) => Some(wire::id(id)?),
                None => None,
                Some(_) => return Err(mixed()),
            },
            base,
            revision: match row.revision {
                Some(SourceRevisionId::Assignment(id)) => Some(wire::id(id)?),
                None => None,
                Some(_) => return Err(mixed()),
            },
        }),
    })
}

fn body(row: &DraftRow, entries: &[EntryOfDraft]) -> Result<Draft, Refused> {
    Ok(Draft {
        id: wire::id(row.id)?,
        cluster: wire::id(row.cluster)?,
        title: row.title.clone(),
        state: match row.state {
            DraftStateRow::Open => DraftState::Open,
            DraftStateRow::Published(_) => DraftState::Published,
            DraftStateRow::Discarded => DraftState::Discarded,
        },
        revision: wire::count(row.etag.revision.0),
        entries: entries.iter().map(entry).collect::<Result<_, _>>()?,
    })
}

pub async fn list<W: World>(call: Call<'_, W>) -> Handled {
    let (mut snapshot, read) = call.read().await?;
    let scope = call.scope(read, false);
    let page = call.page(&scope)?;
    let found = async {
        let paged = snapshot.drafts(&page).await?;
        let mut items = Vec::new();
        for row in paged.items {
            let entries = snapshot.draft_entries(row.id).await?;
            items.push((row, entries));
        }
        Ok((items, paged.more))
    }
    .await;
    let (items, more) = closing(snapshot, found).await?;
    let items = items
        .iter()
        .map(|(row, entries)| body(row, entries))
        .collect::<Result<Vec<_>, _>>()?;
    let paged = Paged { items, more };
    Ok(call.paged(&scope, paged, |draft| draft.id.to_string(), |draft| draft))
}

pub async fn read<W: World>(call: Call<'_, W>) -> Handled {
    let id: DraftId = call.id("draft")?;
    let (mut snapshot, _) = call.read().await?;
    let found = async {
        let row = snapshot.draft(id).await?;
        let entries = snapshot.draft_entries(id).await?;
        Ok(row.map(|row| (row, entries)))
    }
    .await;
    let (row, entries) = closing(snapshot, found).await?.ok_or_else(missing)?;
    Ok(ok_with_etag(&body(&row, &entries)?, row.etag))
}

pub async fn create<W: World>(mut call: Call<'_, W>) -> Handled {
    let write = call.write::<CreateDraft>().await?;
    let cluster = wire::core_id(&write.body.cluster)?;
    let request = call.request();
    let answer = call
        .requests()
        .create_draft(
            &write.admitted,
            cluster,
            write.body.title.as_str(),
            |row, entries| {
                super::render(request, body(row, entries), |body| Rendered {
                    etag: Some(quoted(row.etag)),
                    ..created(format!("/api/v1/drafts/{}", row.id), body)
                })
            },
        )
        .await?;
    Ok(call.answer(answer))
}

pub async fn discard<W: World>(mut call: Call<'_, W>) -> Handled {
    let id: DraftId = call.id("draft")?;
    let write = call.write::<Nothing>().await?;
    let request = call.request();
    let answer = call
        .requests()
        .discard_draft(&write.admitted, id, write.if_match, |row, entries| {
            super::render(request, body(row, entries), |body| Rendered {
                etag: Some(quoted(row.etag)),
                ..rendered(StatusCode::OK, body)
            })
        })
        .await?;
    Ok(call.answer(answer))
}
