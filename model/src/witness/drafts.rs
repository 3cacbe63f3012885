//! Drafts, what their entries name, and requests to publish them (PA §3.1, §6, §7.3).

use std::sync::Arc;

use bronzeward_core::head::{AssignmentContent, Layer};
use bronzeward_core::id::DraftId;
use bronzeward_engine::ports::store::HeadKind;
use bronzeward_engine::rows::{DraftStateRow, SourceRevisionId};

use super::drafting::{FRAGMENT, PROFILE, name};
use super::stage::{AUTHOR, PUBLISHER, Stage, Step};
use super::steps::Subject;
use super::{Witness, rows};
use crate::pg::Eye;
use crate::seed::End;
use crate::server::Server;

const SEEN: Eye = Eye::COMMITTED;

struct Play {
    desk: Arc<Server>,
    subject: Subject,
    draft: DraftId,
}

/// An empty draft of the subject's cluster.
fn drafted(stage: &mut Stage) -> Step<Play> {
    let desk = stage.server()?;
    let subject = stage.subject()?;
    let draft = stage.draft(&desk, subject.binding.cluster)?;
    Ok(Play {
        desk,
        subject,
        draft,
    })
}

fn assign(stage: &mut Stage, play: &Play, content: AssignmentContent) -> Step {
    stage.assign(&play.desk, play.draft, play.subject.machine, content)
}

fn edited_while_published(stage: &mut Stage) -> Step {
    let play = drafted(stage)?;
    assign(stage, &play, AssignmentContent::default())?;
    stage.queue(&play.desk, play.draft)?;
    let content = AssignmentContent {
        profiles: vec![name(PROFILE)?],
        ..AssignmentContent::default()
    };
    assign(stage, &play, content)
}

/// A profile pins what the draft has another text of.
fn pinned_what_is_left(stage: &mut Stage) -> Step {
    let play = drafted(stage)?;
    let published = stage.see(|tables| {
        let mut heads = tables.authoring.heads.values(SEEN);
        let head =
            heads.find(|head| head.kind == HeadKind::Fragment && head.row.subject == FRAGMENT);
        match head.and_then(|head| head.row.revision) {
            Some(SourceRevisionId::Fragment(id)) => Some(id),
            _ => None,
        }
    });
    let published = published.ok_or_else(|| End::Error("no such fragment".to_owned()))?;
    stage.rewrite(&play.desk, play.draft, FRAGMENT)?;
    let (draft, at, name) = (play.draft, stage.etag(play.draft)?, name(PROFILE)?);
    let put = stage.asked(&play.desk, AUTHOR, move |hand| async move {
        hand.put_profile(draft, at, name, vec![published]).await
    });
    put.map(drop)
}

fn selected_what_is_not_there(stage: &mut Stage) -> Step {
    let play = drafted(stage)?;
    let content = AssignmentContent {
        profiles: vec![name("nobody")?],
        ..AssignmentContent::default()
    };
    assign(stage, &play, content)
}

fn selected_in_another_layer(stage: &mut Stage) -> Step {
    let play = drafted(stage)?;
    let content = AssignmentContent {
        fragments: [(Layer::Role, vec![name(FRAGMENT)?])].into(),
        ..AssignmentContent::default()
    };
    assign(stage, &play, content)
}

/// Two people ask for the publication of one revision.
fn published_twice(stage: &mut Stage) -> Step {
    let play = drafted(stage)?;
    assign(stage, &play, AssignmentContent::default())?;
    stage.queue(&play.desk, play.draft)?;
    let (draft, at) = (play.draft, stage.etag(play.draft)?);
    let again = stage.asked(&play.desk, PUBLISHER, move |hand| async move {
        hand.publish(draft, at).await
    });
    again.map(drop)
}

/// A draft that changes no head is published; its row is put back as it was before, and it is
/// published once more.
fn published_once_more(stage: &mut Stage) -> Step {
    let play = drafted(stage)?;
    super::claims::imported(stage, &play.desk, play.draft, play.subject.machine)?;
    let first = stage.queue(&play.desk, play.draft)?;
    let _worker = stage.worker()?;
    stage.ends(first)?;
    stage.alter(
        |tables| &mut tables.authoring.drafts,
        play.draft,
        |draft| {
            draft.state = DraftStateRow::Open;
            draft.etag.revision.0 -= 1;
        },
    )?;
    let second = stage.queue(&play.desk, play.draft)?;
    stage.ends(second)
}

const STANDS: &str = "an entry names what stands";
const ACTIVE: &str = "one active job per draft revision";
const ONE: &str = "one release per draft revision";

pub const WITNESSES: &[Witness] = rows! {
    "edited while it is published", [DraftNotPublishing],
        "a draft stands still while it is published", edited_while_published;
    "pinned what the draft has left", [PinIsCurrent], STANDS, pinned_what_is_left;
    "selected what is not there", [SelectionExists], STANDS, selected_what_is_not_there;
    "selected in another layer", [SelectionLayer], STANDS, selected_in_another_layer;
    "its publication asked for twice", [ActivePublicationAnswers OneActivePublication], ACTIVE,
        published_twice;
    "its publication asked for twice, by the index",
        [OneActivePublication ActivePublicationAnswers], ACTIVE, published_twice;
    "published once more", [OneReleasePerRevision OneReleasePerRevisionKey], ONE,
        published_once_more;
    "published once more, by the index", [OneReleasePerRevisionKey OneReleasePerRevision], ONE,
        published_once_more;
};
