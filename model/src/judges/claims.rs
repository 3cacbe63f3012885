//! Staging claims (IC §3): how they move, who moves them, and before which deadlines.
//!
//! A deadline is held against a time before which the writing transaction did not hold the
//! claim's row: whoever waited for the row past a deadline writes nothing any more (IC §3.5).

use bronzeward_engine::ports::store::ActRow;
use bronzeward_engine::rows::ClaimRow;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::{Change, Changed};
use crate::pg::Relation;
use crate::server::{CLAIM_EXPIRY, CLAIM_LEASE};

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        if let Change::Claim(changed) = change {
            claim(case, changed)?;
        }
    }
    Ok(())
}

const MOVES: &[(&str, &[&str])] = &[
    (
        "held",
        &["held", "paused", "resumed", "released", "abandoned"],
    ),
    ("paused", &["resumed", "abandoned"]),
    ("resumed", &["resumed", "paused", "released", "abandoned"]),
];

fn claim(case: &Case<'_>, changed: &Changed<ClaimRow>) -> Verdict {
    let Some(after) = &changed.after else {
        return violation("claims are kept", "a claim is gone");
    };
    let id = after.id;
    let Some(before) = &changed.before else {
        return match after.state.as_str() {
            "held" => begun(case, after),
            state => violation("a claim's states", format!("{id} begins as {state}")),
        };
    };
    let mut moves = MOVES.iter().filter(|(from, _)| *from == before.state);
    let listed = moves
        .next()
        .is_some_and(|(_, to)| to.contains(&after.state.as_str()));
    if !listed {
        let said = format!("{id}: {} to {}", before.state, after.state);
        return violation("a claim's states", said);
    }
    match after.fence.generation.0 - before.fence.generation.0 {
        0 => own(case, before, after)?,
        1 => taken(case, before, after)?,
        _ => return violation("generations go up by one", format!("{id}")),
    }
    for act in acts(case).filter(|act| act.action == "ingestion-taken-over") {
        taken_over(case, before, act)?;
    }
    if matches!(after.state.as_str(), "released" | "abandoned") && after.payload.is_some() {
        return violation("an ended claim keeps no payload", format!("{id}"));
    }
    Ok(())
}

fn acts<'a>(case: &'a Case<'_>) -> impl Iterator<Item = &'a ActRow> {
    case.changes.iter().filter_map(|change| match change {
        Change::Act(changed) => changed.after.as_ref().map(|act| &act.row),
        _ => None,
    })
}

fn live(row: &ClaimRow) -> bool {
    matches!(row.state.as_str(), "held" | "paused" | "resumed")
}

/// A claim is of one request, and its times follow the last wait of what made it (PA §5 rule
/// 4, §7.2).
fn begun(case: &Case<'_>, row: &ClaimRow) -> Verdict {
    let all = case.tables.authoring.claims.values(SEEN);
    let of_key = all.filter(|one| {
        one.idempotency_key.is_some()
            && one.idempotency_key == row.idempotency_key
            && one.by.principal == row.by.principal
            && live(one)
    });
    if of_key.count() > 1 {
        return violation("a key has one live claim", format!("{}", row.id));
    }
    let at = row.lease_until - CLAIM_LEASE;
    if row.expires_at - at != CLAIM_EXPIRY {
        return violation("a claim has its expiry", format!("{}", row.id));
    }
    match case.last_wait().is_some_and(|over| at < over) {
        true => violation("a time follows the last wait", format!("claim {}", row.id)),
        false => Ok(()),
    }
}

/// A write at the same generation is its owner's, while the lease and the expiry are ahead. An
/// abandonment may be anybody's.
fn own(case: &Case<'_>, before: &ClaimRow, after: &ClaimRow) -> Verdict {
    let id = after.id;
    if after.state == "abandoned" {
        return Ok(());
    }
    let extended = after.lease_until > before.lease_until;
    let ours = case.owner.is_none_or(|owner| *owner == before.fence.owner);
    if (after.state == "released" || extended) && !ours {
        return violation("only the owner moves its claim", format!("{id}"));
    }
    let held = case.held_from((Relation::Claim, id.bits()));
    let at = match extended {
        true => held.max(after.lease_until - CLAIM_LEASE),
        false => held,
    };
    if before.lease_until <= at {
        return match extended {
            true => violation("a lapsed lease is not extended", format!("{id}")),
            false => violation("a lapsed owner writes nothing", format!("{id}")),
        };
    }
    if before.expires_at <= at {
        return violation("an expired claim is not written", format!("{id}"));
    }
    match extended && after.lease_until - CLAIM_LEASE < held {
        true => violation("a lease counts from when its row is held", format!("{id}")),
        false => Ok(()),
    }
}

/// The next generation is issued by a takeover, from when it holds the row.
fn taken(case: &Case<'_>, before: &ClaimRow, after: &ClaimRow) -> Verdict {
    let id = after.id;
    if after.mode == "transient" {
        return violation("a transient change is not taken over", format!("{id}"));
    }
    let at = after.lease_until - CLAIM_LEASE;
    if before.lease_until > at {
        return violation("a live owner is not replaced", format!("{id}"));
    }
    if before.expires_at <= at {
        return violation("an expired claim is not taken over", format!("{id}"));
    }
    match at < case.held_from((Relation::Claim, id.bits())) {
        true => violation("a lease counts from when its row is held", format!("{id}")),
        false => Ok(()),
    }
}

/// What a takeover needs of a claim, whether there was something to resume or not (IC §3.4).
fn taken_over(case: &Case<'_>, before: &ClaimRow, act: &ActRow) -> Verdict {
    let id = before.id;
    if before.mode == "transient" {
        return violation("a transient change is not taken over", format!("{id}"));
    }
    if before.lease_until > act.at {
        return violation("a live owner is not replaced", format!("{id}"));
    }
    if before.expires_at <= act.at {
        return violation("an expired claim is not taken over", format!("{id}"));
    }
    match Some(before.epoch) == case.epoch() {
        true => Ok(()),
        false => violation(
            "a claim of another epoch is not taken over",
            format!("{id}"),
        ),
    }
}
