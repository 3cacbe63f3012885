//! Ingestions and their claims (IC §3): an import that its process holds in the middle.

use std::sync::Arc;

use bronzeward_core::claim::{ClaimKind, StagingMode};
use bronzeward_core::id::{DraftId, IngestionId, kind};
use bronzeward_core::time::Span;

use super::stage::{AUTHOR, Pending, Stage, Step};
use super::{Witness, rows};
use crate::people::acts::made;
use crate::people::hand::Ended;
use crate::people::view::View;
use crate::pg::Eye;
use crate::seed::End;
use crate::server::Server;

fn drafted(stage: &mut Stage, desk: &Arc<Server>) -> Step<DraftId> {
    let cluster = stage.subject()?.binding.cluster;
    let opened = stage.asked(desk, AUTHOR, move |hand| async move {
        hand.open_draft(cluster).await
    })?;
    made::<kind::Draft>(&opened).ok_or_else(|| End::Error("a draft".to_owned()))
}

fn etag(stage: &Stage, draft: DraftId) -> Step<bronzeward_core::revision::Etag> {
    let seen = stage.see(|tables| View(tables).draft(draft));
    let seen = seen.ok_or_else(|| End::Error("no such draft".to_owned()))?;
    Ok(seen.etag)
}

/// The `nth` machine's import into a draft is asked for.
fn import(
    stage: &mut Stage,
    desk: &Arc<Server>,
    draft: DraftId,
    nth: usize,
) -> Step<Pending<Ended>> {
    let machines = stage.see(|tables| View(tables).machines());
    let machine = machines.get(nth).map(|machine| machine.id);
    let machine = machine.ok_or_else(|| End::Error("no such machine".to_owned()))?;
    let at = etag(stage, draft)?;
    stage.ask(desk, AUTHOR, move |hand| async move {
        let marks = crate::furniture::marks();
        let (mode, kind) = (StagingMode::Encrypted, ClaimKind::Import);
        hand.import(machine, draft, at, mode, kind, marks).await
    })
}

/// An import under way in a process that moves no more.
fn held(stage: &mut Stage) -> Step<(Arc<Server>, IngestionId)> {
    let (desk, other) = (stage.server()?, stage.server()?);
    let draft = drafted(stage, &desk)?;
    let _asked = import(stage, &desk, draft, 0)?;
    stage.until("a staged change", |state| {
        let claims = &state.db.tables.authoring.claims;
        claims
            .values(Eye::COMMITTED)
            .any(|claim| claim.payload.is_some())
    })?;
    stage.hold(&desk);
    let live = stage.see(|tables| View(tables).live_ingestions());
    let ingestion = live.first().copied();
    let ingestion = ingestion.ok_or_else(|| End::Error("the import has ended".to_owned()))?;
    Ok((other, ingestion))
}

/// Somebody takes it over while its lease is live.
fn taken_over(stage: &mut Stage) -> Step {
    let (other, ingestion) = held(stage)?;
    stage.asked(&other, AUTHOR, move |hand| async move {
        hand.take_over_ingestion(ingestion).await
    })?;
    stage.pass(Span::seconds(2))
}

/// Two imports into one revision of a draft, neither of which sees the other.
fn imported_twice(stage: &mut Stage) -> Step {
    let (desk, other) = (stage.server()?, stage.server()?);
    let draft = drafted(stage, &desk)?;
    let first = import(stage, &desk, draft, 0)?;
    stage.until_said(&desk, "look for an ingestion")?;
    stage.hold(&desk);
    let second = import(stage, &other, draft, 1)?;
    stage.finish(&second)?;
    stage.hold(&other);
    stage.let_go(&desk);
    stage.finish(&first).map(drop)
}

const ONE: &str = "one active job per draft revision";

pub const WITNESSES: &[Witness] = rows! {
    "taken from a live importer", [ClaimTakeoverLapsed], "a live owner is not replaced", taken_over;
    "two imports into one revision", [OneIngestionPerRevision], ONE, imported_twice;
};
