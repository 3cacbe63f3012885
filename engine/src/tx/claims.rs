//! What transactions on staging claims share: a claim as core decides on it, the terms of
//! its owner's writes, and the end of its operation (IC §3, PA §5.1).

use bronzeward_core::claim::{
    AnyClaim, ClaimKind, ClaimRefusal, ClaimState, Common, Review, StagingMode,
};
use bronzeward_core::draft::{Draft, DraftRefusal, DraftState, Precondition};
use bronzeward_core::fence::Fence;
use bronzeward_core::id::{ActId, EpochId, OperationId};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::job::Event;
use bronzeward_core::principal::By;
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::DbTime;

use crate::ports::store::{Condition, Guard, JobEnd, NewEntry, StoreError, StoreTx, Written};
use crate::rows::{ClaimRow, DraftRow, DraftStateRow};

/// A stored claim as core reads it.
pub(crate) fn claim_of(
    row: &ClaimRow,
    operation: Option<OperationId>,
) -> Result<AnyClaim, StoreError> {
    let fault = StoreError::Fault;
    let review = row.review.as_deref();
    let key = row.idempotency_key.as_deref();
    let common = Common {
        id: row.id,
        kind: ClaimKind::parse(&row.kind).ok_or(fault)?,
        mode: StagingMode::parse(&row.mode).ok_or(fault)?,
        review: review
            .map(|text| Review::parse(text).ok_or(fault))
            .transpose()?,
        machine: row.machine,
        draft: row.draft,
        operation,
        request: key
            .map(|text| IdempotencyKey::parse(text).map_err(|_| fault))
            .transpose()?
            .map(|key| (row.by.principal, key)),
        fence: row.fence.clone(),
        created_epoch: row.epoch,
        lease_until: row.lease_until,
        expires_at: row.expires_at,
        has_payload: row.payload.is_some(),
        created_at: row.created_at,
    };
    let state = ClaimState::parse(&row.state).ok_or(fault)?;
    Ok(AnyClaim::from_row(common, state))
}

/// The terms of an owner's own write: its fence in the current epoch, a state that is its
/// to write, and both times ahead.
pub(crate) fn owned<R: Rules>(rules: &R, token: &Fence, current: EpochId) -> Guard {
    Guard::new()
        .when(
            rules,
            Rule::ClaimOwned,
            Condition::StateIn(vec!["held", "resumed"]),
        )
        .fenced(rules, token, current)
        .when(rules, Rule::LeaseLive, Condition::LeaseLive)
        .when(rules, Rule::ClaimUnexpired, Condition::Unexpired)
}

/// A claim that has not ended, whoever owns it: an abandonment's term.
pub(crate) fn unended() -> Guard {
    Guard::new().and(Condition::StateIn(vec!["held", "paused", "resumed"]))
}

/// A job that has not ended.
pub(crate) fn running() -> Guard {
    Guard::new().and(Condition::StateIn(vec!["running"]))
}

/// An event of an operation.
pub(crate) fn event(
    event: &Event,
    by: By,
    epoch: EpochId,
    act: Option<ActId>,
    at: DbTime,
) -> NewEntry {
    let (actor, controller) = match by {
        By::Signed(signed) => (Some(signed), None),
        By::Controller(controller) => (None, Some(controller)),
    };
    NewEntry {
        kind: event.kind(),
        operation: None,
        plan: None,
        actor,
        controller,
        epoch,
        act,
        at,
        data: event.members(),
    }
}

/// Fails an operation that still runs, with its terminal event (PA §8.2).
pub(crate) async fn fail_operation<T: StoreTx>(
    rows: &mut T,
    operation: OperationId,
    problem: &Problem,
    entry: &NewEntry,
) -> Result<(), StoreError> {
    let end = JobEnd::Failed(problem.clone());
    if rows.finish_job(operation, &running(), &end).await? == Written::Written {
        rows.append_event(operation, entry).await?;
    }
    Ok(())
}

/// What an operation fails with when its claim is abandoned (PA §8.2).
pub(crate) fn abandoned() -> Problem {
    Problem::new(ProblemCode::IngestionAbandoned).say("The staging claim was abandoned.")
}

/// Its terminal event.
pub(crate) const ABANDONED: Event = Event::Failed {
    code: ProblemCode::IngestionAbandoned,
    cause: None,
};

/// 503: this process may issue no ownership in the current epoch (PA §5.1).
pub(crate) fn superseded() -> Problem {
    Problem::new(ProblemCode::EpochSuperseded)
        .say("This process is of an earlier epoch and takes no ownership.")
}

/// 409 for an act that a claim's state refuses.
pub(crate) fn claim_conflict(refusal: ClaimRefusal) -> Problem {
    Problem::conflict(match refusal {
        ClaimRefusal::Ended => "The ingestion has ended.",
        ClaimRefusal::NotPaused => "The ingestion is not paused.",
        ClaimRefusal::Paused => "The ingestion is paused.",
        ClaimRefusal::Transient => "The ingestion is staged in its process only.",
        ClaimRefusal::Leased => "The ingestion's lease is live.",
        ClaimRefusal::EarlierEpoch => "The ingestion is of an earlier epoch.",
        ClaimRefusal::Generation | ClaimRefusal::Stale(_) => "The ingestion changed hands.",
    })
}

/// Whether a draft held FOR UPDATE or FOR SHARE takes a write made from `precondition`:
/// open, no publication active, unmoved, in this order (PA §3.1, §14). An If-Match that
/// names no ETag of ours matches nothing.
pub(crate) fn writable<R: Rules>(
    rules: &R,
    row: &DraftRow,
    publishing: Option<OperationId>,
    precondition: Option<Precondition>,
) -> Result<(), Problem> {
    let draft = Draft {
        id: row.id,
        cluster: row.cluster,
        title: row.title.clone(),
        state: match row.state {
            DraftStateRow::Open => DraftState::Open,
            DraftStateRow::Published(release) => DraftState::Published(release),
            DraftStateRow::Discarded => DraftState::Discarded,
        },
        revision: row.etag.revision,
        etag: row.etag.token,
        publishing,
    };
    let own = Precondition::Bound(row.etag.revision);
    let refusal = match draft.writable(rules, precondition.unwrap_or(own)) {
        Ok(()) if precondition.is_some() => return Ok(()),
        Ok(()) => DraftRefusal::Moved,
        Err(refusal) => refusal,
    };
    Err(match refusal {
        DraftRefusal::NotOpen(state) => {
            let problem = Problem::conflict("The draft is not open.").naming("draft", row.id);
            match state {
                DraftState::Published(release) => problem.naming("release", release),
                DraftState::Open | DraftState::Discarded => problem,
            }
        }
        DraftRefusal::Publishing(operation) => {
            Problem::conflict("A publication of the draft is queued or running.")
                .naming("operation", operation)
        }
        DraftRefusal::Moved => Problem::new(ProblemCode::PreconditionFailed)
            .say("The draft is no longer at the revision this was made from.")
            .naming("draft", row.id),
    })
}
