//! Ingestions and their claims (IC §3): an import that its process holds in the middle.

use std::sync::Arc;

use bronzeward_core::claim::{ClaimKind, StagingMode};
use bronzeward_core::id::{DraftId, EpochId, IngestionId, MachineId};
use bronzeward_core::time::Span;
use bronzeward_engine::rows::ClaimRow;

use super::drafting::{FRAGMENT, name};
use super::stage::{AUTHOR, Pending, Stage, Step};
use super::{Witness, rows};
use crate::people::hand::{Ended, key_of};
use crate::people::view::View;
use crate::pg::Eye;
use crate::ports::node;
use crate::seed::End;
use crate::server::Server;

const SEEN: Eye = Eye::COMMITTED;

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
    begin(stage, desk, draft, machine, StagingMode::Encrypted)
}

fn begin(
    stage: &mut Stage,
    desk: &Arc<Server>,
    draft: DraftId,
    machine: MachineId,
    mode: StagingMode,
) -> Step<Pending<Ended>> {
    let at = stage.etag(draft)?;
    Ok(stage.ask(desk, AUTHOR, move |hand| async move {
        let marks = crate::furniture::marks();
        hand.import(machine, draft, at, mode, ClaimKind::Import, marks)
            .await
    }))
}

/// An import under way in a process that moves no more, with its change staged where it is.
struct Held {
    desk: Arc<Server>,
    other: Arc<Server>,
    ingestion: IngestionId,
}

fn held(stage: &mut Stage, mode: StagingMode) -> Step<Held> {
    let (desk, other) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let draft = stage.draft(&desk, subject.binding.cluster)?;
    let _asked = begin(stage, &desk, draft, subject.machine, mode)?;
    stage.until("a change under way", |state| {
        let claims = &state.db.tables.authoring.claims;
        claims
            .values(SEEN)
            .any(|claim| live(claim) && (claim.payload.is_some() || claim.mode == "transient"))
    })?;
    stage.hold(&desk);
    let ingestion = the_live(stage)?;
    Ok(Held {
        desk,
        other,
        ingestion,
    })
}

fn live(claim: &ClaimRow) -> bool {
    matches!(claim.state.as_str(), "held" | "paused" | "resumed")
}

fn the_live(stage: &Stage) -> Step<IngestionId> {
    let live = stage.see(|tables| View(tables).live_ingestions());
    let ingestion = live.first().copied();
    ingestion.ok_or_else(|| End::Error("the ingestion has ended".to_owned()))
}

fn claim(stage: &mut Stage, of: IngestionId, change: impl FnOnce(&mut ClaimRow)) -> Step {
    stage.alter(|tables| &mut tables.authoring.claims, of, change)
}

fn take_over(stage: &mut Stage, held: &Held) -> Step {
    let ingestion = held.ingestion;
    stage.asked(&held.other, AUTHOR, move |hand| async move {
        hand.take_over_ingestion(ingestion).await
    })?;
    stage.pass(Span::seconds(2))
}

/// Longer than a lease.
const LAPSE: Span = Span::seconds(11);

/// Somebody takes it over while its lease is live.
fn taken_over(stage: &mut Stage) -> Step {
    let held = held(stage, StagingMode::Encrypted)?;
    take_over(stage, &held)
}

/// Somebody takes over what nobody can decrypt: its owner's lease has lapsed.
fn taken_over_transient(stage: &mut Stage) -> Step {
    let held = held(stage, StagingMode::Transient)?;
    stage.pass(LAPSE)?;
    take_over(stage, &held)
}

/// Somebody takes it over after its absolute expiry, which no sweep has written yet.
fn taken_over_expired(stage: &mut Stage) -> Step {
    let held = held(stage, StagingMode::Encrypted)?;
    let expiry = stage.now() + LAPSE;
    claim(stage, held.ingestion, |claim| claim.expires_at = expiry)?;
    stage.pass(LAPSE)?;
    take_over(stage, &held)
}

/// Somebody takes over what was begun before a recovery entry.
fn taken_over_from_another_epoch(stage: &mut Stage) -> Step {
    let held = held(stage, StagingMode::Encrypted)?;
    let other = EpochId::from_bits(1);
    claim(stage, held.ingestion, |claim| {
        claim.epoch = other;
        claim.fence.epoch = other;
    })?;
    stage.pass(LAPSE)?;
    take_over(stage, &held)
}

/// Its owner goes on after the absolute expiry, on a lease that it was given before.
fn gone_on_after_its_expiry(stage: &mut Stage) -> Step {
    let held = held(stage, StagingMode::Encrypted)?;
    let expiry = stage.now() + Span::seconds(1);
    claim(stage, held.ingestion, |claim| claim.expires_at = expiry)?;
    stage.pass(Span::seconds(2))?;
    stage.let_go(&held.desk);
    stage.pass(Span::seconds(4))
}

/// A fragment's ingestion under way in a process that moves no more.
fn fragment(stage: &mut Stage, desk: &Arc<Server>, draft: DraftId) -> Step<Pending<Ended>> {
    let at = stage.etag(draft)?;
    let name = name(FRAGMENT)?;
    Ok(stage.ask(desk, AUTHOR, move |hand| async move {
        let text = crate::furniture::fragment(9);
        hand.under(key_of(7))
            .put_fragment(draft, at, name, text)
            .await
    }))
}

fn until_live(stage: &mut Stage) -> Step {
    stage.until("a live claim", |state| {
        let claims = &state.db.tables.authoring.claims;
        claims.values(SEEN).any(live)
    })
}

/// Somebody abandons it, and its owner goes on.
fn gone_on_after_its_abandonment(stage: &mut Stage) -> Step {
    let (desk, other) = (stage.server()?, stage.server()?);
    let cluster = stage.subject()?.binding.cluster;
    let draft = stage.draft(&desk, cluster)?;
    let putting = fragment(stage, &desk, draft)?;
    until_live(stage)?;
    stage.hold(&desk);
    let ingestion = the_live(stage)?;
    stage.asked(&other, AUTHOR, move |hand| async move {
        hand.abandon_ingestion(ingestion).await
    })?;
    stage.let_go(&desk);
    stage.finish(&putting).map(drop)
}

/// One draft entry is asked for twice under one key, the second time before the first has a
/// claim.
fn one_entry_twice(stage: &mut Stage) -> Step {
    let (desk, other) = (stage.server()?, stage.server()?);
    let cluster = stage.subject()?.binding.cluster;
    let draft = stage.draft(&desk, cluster)?;
    let first = fragment(stage, &desk, draft)?;
    stage.until_said(&desk, "read claim of key")?;
    stage.hold(&desk);
    let second = fragment(stage, &other, draft)?;
    let waits = format!(" {} waits for ", other.id);
    stage.until("a claim, or a wait for the key", |state| {
        let claims = &state.db.tables.authoring.claims;
        claims.values(SEEN).any(live) || state.trace.text().contains(&waits)
    })?;
    // One that waits would keep the key once it has it.
    if the_live(stage).is_ok() {
        stage.hold(&other);
    }
    stage.let_go(&desk);
    stage.finish(&first)?;
    stage.let_go(&other);
    stage.finish(&second).map(drop)
}

/// A machine is imported into a draft.
pub fn imported(stage: &mut Stage, desk: &Arc<Server>, draft: DraftId, machine: MachineId) -> Step {
    let asked = begin(stage, desk, draft, machine, StagingMode::Encrypted)?;
    stage.finish(&asked)?;
    stage.until("the end of an ingestion", |state| {
        let claims = &state.db.tables.authoring.claims;
        !claims.values(SEEN).any(live)
    })
}

/// The node at a machine's address is another one, which runs something of its own.
fn read_from_another_node(stage: &mut Stage) -> Step {
    let desk = stage.server()?;
    let subject = stage.subject()?;
    let route = subject.binding.route;
    stage.outside(|state| node::replace(state, route))?;
    stage.edit_by_hand(&subject)?;
    let draft = stage.draft(&desk, subject.binding.cluster)?;
    imported(stage, &desk, draft, subject.machine)
}

/// Two imports into one revision of a draft, neither of which sees the other.
fn imported_twice(stage: &mut Stage) -> Step {
    let (desk, other) = (stage.server()?, stage.server()?);
    let cluster = stage.subject()?.binding.cluster;
    let draft = stage.draft(&desk, cluster)?;
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
    "a transient change taken over", [ClaimTakeoverEncrypted ClaimReadsAbandoned],
        "a transient change is not taken over", taken_over_transient;
    "taken over after its expiry", [ClaimReadsAbandoned], "an expired claim is not taken over",
        taken_over_expired;
    "taken over from another epoch", [ClaimOfThisEpoch],
        "a claim of another epoch is not taken over", taken_over_from_another_epoch;
    "gone on after its expiry", [ClaimUnexpired], "an expired claim is not written",
        gone_on_after_its_expiry;
    "gone on after its abandonment", [ClaimOwned], "a claim's states",
        gone_on_after_its_abandonment;
    "one entry twice at once", [OneClaimPerKey IdempotencyKeyLock], "a key has one live claim",
        one_entry_twice;
    "read from another node", [IngestionIdentity], "an import base is what its machine ran",
        read_from_another_node;
};
