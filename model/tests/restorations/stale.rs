//! The stale instance (PA §13.6): what a forgotten process asks for after the entry.

use std::sync::Arc;

use bronzeward_core::claim::{ClaimKind, StagingMode};
use bronzeward_core::comparison::Comparison;
use bronzeward_core::fence::Generation;
use bronzeward_core::head::AssignmentContent;
use bronzeward_core::id::{EpochId, OperationId, PlanId, kind};
use bronzeward_core::problem::ProblemCode;
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::publish::job;
use bronzeward_engine::rows::OperationRow;
use bronzeward_engine::tx::Failure;
use bronzeward_engine::tx::dispatch::{
    Evidence, Owned, Refused, commit, extend, record_not_admitted,
};
use bronzeward_model::people::acts::made;
use bronzeward_model::people::hand::Ended;
use bronzeward_model::people::view::View;
use bronzeward_model::pg::Eye;
use bronzeward_model::server::{LEASE, Server};
use bronzeward_model::witness::{ADMIN, APPROVER, AUTHOR, PUBLISHER, Stage, Step, Subject};

use super::{OWNS, holds, lost, said, violates};

/// An installation that was restored and entered while one process was forgotten.
struct Stale {
    /// It holds an operation at its third generation, of the epoch that is over.
    forgotten: Arc<Server>,
    owned: Owned,
    subject: Subject,
    /// An approved plan of another machine.
    other: Subject,
    server: Arc<Server>,
    stopped_at: DbTime,
    before: EpochId,
}

fn taken(stage: &mut Stage, by: &Arc<Server>, operation: OperationId) -> Step<Owned> {
    stage.pass(LEASE + Span::seconds(1))?;
    let row = stage.operation(operation)?;
    let owned = stage.take_over(by, &row)?;
    owned.ok_or_else(|| lost("a lapsed takeover"))
}

fn restored(stage: &mut Stage) -> Step<Stale> {
    let (forgotten, another) = (stage.server()?, stage.server()?);
    let subjects = stage.subjects()?;
    let (subject, other) = (subjects[0].clone(), subjects[1].clone());
    let evidence = stage.gather(&forgotten, &subject, None)?;
    let owned = stage.commit(&forgotten, subject.plan, &evidence)?;
    let operation = owned.ok_or_else(|| lost("a commitment"))?.operation;
    let before = stage.epoch()?;
    let backup = stage.back_up();
    taken(stage, &another, operation)?;
    let owned = taken(stage, &forgotten, operation)?;
    assert_eq!(owned.fence.generation, Generation(3));
    stage.hold(&forgotten);
    stage.kill(&another);
    let stopped_at = stage.now();
    stage.restore(&backup)?;
    stage.enter(stopped_at)?;
    let server = stage.server()?;
    assert!(said(
        stage,
        &format!(
            "the database is restored to {}",
            backup.taken_at.as_micros()
        )
    ));
    assert_ne!(stage.epoch()?, before);
    let row = stage.operation(operation)?;
    let fence = row.fence.ok_or_else(|| lost("an owner"))?;
    assert_eq!(
        (row.state.as_str(), fence.generation),
        ("unresolved", Generation(2))
    );
    assert_eq!(fence.epoch, stage.epoch()?);
    stage.let_go(&forgotten);
    Ok(Stale {
        forgotten,
        owned,
        subject,
        other,
        server,
        stopped_at,
        before,
    })
}

/// The refusal entries that this process appended about a plan: what each names.
fn refusals(stage: &Stage, by: &Server, plan: PlanId) -> Vec<String> {
    let owner = by.db.process().owner;
    stage.see(|tables| {
        let entries = tables.execution.timelines.values(Eye::COMMITTED);
        let ours = entries.filter(|entry| {
            let controller = entry.controller.as_ref();
            entry.kind == "refusal"
                && entry.plan == Some(plan)
                && controller.is_some_and(|one| one.owner == owner)
        });
        ours.map(|entry| format!("{:?}", entry.data)).collect()
    })
}

/// A commitment, its refusal recorded as a controller records it.
fn committed(
    stage: &mut Stage,
    by: &Arc<Server>,
    plan: PlanId,
    evidence: &Evidence,
) -> Step<Result<Owned, (Vec<Comparison>, bool)>> {
    let (of, evidence) = (Arc::clone(by), evidence.clone());
    let ended = stage.call(by, async move {
        match commit(&of.db, plan, &evidence, of.db.mint(), LEASE).await {
            Ok(owned) => Some(Ok(owned)),
            Err(Failure::Refused(Refused::NotAdmitted(refused))) => {
                let written = record_not_admitted(&of.db, plan, None, &evidence, &refused).await;
                let said = (refused.failed.clone(), refused.process_epoch);
                written.ok().map(|_| Err(said))
            }
            Err(_) => None,
        }
    })?;
    ended.ok_or_else(|| lost("a commitment"))
}

/// Nobody has attempted or sent anything of the plan since the restore.
fn untouched(stage: &Stage, stale: &Stale) -> Step {
    let row = stage.operation(stale.owned.operation)?;
    let fence = row.fence.ok_or_else(|| lost("an owner"))?;
    assert_ne!(fence.owner, stale.forgotten.db.process().owner);
    stage.see(|tables| {
        let execution = &tables.execution;
        assert_eq!(execution.attempts.values(Eye::COMMITTED).count(), 0);
        let owner = stale.forgotten.db.process().owner;
        let operations = execution.operations.values(Eye::COMMITTED);
        let open = operations.filter(|one| {
            let row = &one.row;
            let live = !matches!(row.state.as_str(), "completed" | "succeeded" | "failed");
            live && row.fence.as_ref().is_some_and(|fence| fence.owner == owner)
        });
        assert_eq!(open.count(), 0, "the forgotten process owns something");
    });
    Ok(())
}

/// Its attempt: by the fence, by the authority of another epoch, by the closed gate.
fn attempts(stage: &mut Stage) -> Step {
    let stale = restored(stage)?;
    let evidence = stage.gather(&stale.forgotten, &stale.subject, None)?;
    let permit = stage.attempt(&stale.forgotten, &stale.owned, &evidence)?;
    assert!(permit.is_none(), "an attempt of the epoch that is over");
    assert!(said(stage, &format!("{} refusal", stale.forgotten.id)));
    let refusals = refusals(stage, &stale.forgotten, stale.subject.plan);
    let named = refusals.last().ok_or_else(|| lost("a refusal entry"))?;
    for what in ["Number(1)", "Number(6)", "Number(7)", "process-epoch"] {
        assert!(named.contains(what), "{what} in {named}");
    }
    untouched(stage, &stale)
}

/// A publication that is asked for after the entry waits for a worker.
fn queued(stage: &mut Stage, stale: &Stale) -> Step<OperationId> {
    let (cluster, machine) = (stale.subject.binding.cluster, stale.subject.machine);
    let opened = stage.asked(&stale.server, AUTHOR, move |hand| async move {
        hand.open_draft(cluster).await
    })?;
    let draft = made::<kind::Draft>(&opened).ok_or_else(|| lost("a draft"))?;
    let at = stage.etag(draft)?;
    stage.asked(&stale.server, AUTHOR, move |hand| async move {
        hand.put_assignment(draft, at, machine, AssignmentContent::default())
            .await
    })?;
    let at = stage.etag(draft)?;
    let asked = stage.asked(&stale.server, PUBLISHER, move |hand| async move {
        hand.publish(draft, at).await
    })?;
    made::<kind::Operation>(&asked).ok_or_else(|| lost("a publication"))
}

/// Its job claim: by the process's epoch.
fn claims_a_job(stage: &mut Stage) -> Step {
    let stale = restored(stage)?;
    let queued = queued(stage, &stale)?;
    let of = Arc::clone(&stale.forgotten);
    let claimed = stage.call(&stale.forgotten, async move {
        job::claim(&of.db, LEASE).await.map(drop)
    })?;
    assert!(
        matches!(claimed, Err(Failure::Refused(job::NotOwned::Superseded))),
        "{claimed:?}"
    );
    let row = stage.operation(queued)?;
    assert_eq!((row.state.as_str(), row.fence), ("queued", None));
    untouched(stage, &stale)
}

/// Its commitment of a plan that was approved before the restore.
fn commits_an_old_plan(stage: &mut Stage) -> Step {
    let stale = restored(stage)?;
    let plan = stale.other.plan;
    let evidence = stage.gather(&stale.forgotten, &stale.other, None)?;
    let refused = committed(stage, &stale.forgotten, plan, &evidence)?;
    let Err((failed, process)) = refused else {
        panic!("a plan of the epoch that is over was committed");
    };
    assert!(failed.contains(&Comparison::Authority), "{failed:?}");
    assert!(failed.contains(&Comparison::Gate), "{failed:?}");
    assert!(process, "the process's own epoch");
    assert!(said(stage, &format!("{} refusal", stale.forgotten.id)));
    let state = stage.see(|tables| {
        let row = tables.execution.plan_states.get(Eye::COMMITTED, &plan);
        row.map(|row| (row.state.clone(), row.operation))
    });
    assert_eq!(state, Some(("approved".to_owned(), None)));
    untouched(stage, &stale)
}

/// A takeover that a person asks of it, and one of its own pass.
fn takes_over(stage: &mut Stage) -> Step {
    let stale = restored(stage)?;
    let operation = stale.owned.operation;
    let row: OperationRow = stage.operation(operation)?;
    let asked = stage.asked(&stale.forgotten, ADMIN, move |hand| async move {
        hand.take_over_operation(operation, Generation(2)).await
    })?;
    superseded(&asked);
    assert!(said(
        stage,
        "rae: take over operation, try 0: epoch-superseded"
    ));
    stage.pass(Span::seconds(1))?;
    assert!(stage.take_over(&stale.forgotten, &row)?.is_none());
    let row = stage.operation(operation)?;
    let generation = row.fence.map(|fence| fence.generation);
    assert_eq!(generation, Some(Generation(2)));
    untouched(stage, &stale)
}

fn superseded(ended: &Ended) {
    assert!(
        matches!(ended, Ended::Refused(ProblemCode::EpochSuperseded)),
        "{ended:?}"
    );
}

/// An ingestion that a person asks of it.
fn ingests(stage: &mut Stage) -> Step {
    let stale = restored(stage)?;
    let (cluster, machine) = (stale.subject.binding.cluster, stale.subject.machine);
    let opened = stage.asked(&stale.server, AUTHOR, move |hand| async move {
        hand.open_draft(cluster).await
    })?;
    let draft = made::<kind::Draft>(&opened).ok_or_else(|| lost("a draft"))?;
    let at = stage.etag(draft)?;
    let asked = stage.asked(&stale.forgotten, AUTHOR, move |hand| async move {
        let (mode, kind) = (StagingMode::Encrypted, ClaimKind::Import);
        hand.import(machine, draft, at, mode, kind, Vec::new())
            .await
    })?;
    superseded(&asked);
    assert!(said(stage, "ann: import, try 0: epoch-superseded"));
    let live = stage.see(|tables| View(tables).live_ingestions());
    assert!(live.is_empty(), "a claim of the epoch that is over");
    untouched(stage, &stale)
}

/// Its commitment of a plan that was made, approved and released in the new epoch: everything
/// holds but the process's own epoch.
fn commits_a_new_plan(stage: &mut Stage) -> Step {
    let stale = restored(stage)?;
    let (server, machine) = (Arc::clone(&stale.server), stale.subject.machine);
    let operation = stale.owned.operation;
    stage.account_scopes(&server, stale.stopped_at)?;
    stage.asked(&server, ADMIN, move |hand| async move {
        hand.resolve(operation).await
    })?;
    assert_eq!(stage.operation(operation)?.state, "cancelled");
    assert_eq!(stage.mark(&server, machine)?, ScopeState::Ready);
    stage.release(&server, machine)?;
    let release = stale.subject.binding.release;
    let planned = stage.asked(&server, PUBLISHER, move |hand| async move {
        hand.plan(release, machine, false).await
    })?;
    let plan = made::<kind::Plan>(&planned).ok_or_else(|| lost("a plan"))?;
    let approved = stage.asked(&server, APPROVER, move |hand| async move {
        hand.approve(plan).await
    })?;
    let approval = made::<kind::Approval>(&approved).ok_or_else(|| lost("an approval"))?;
    let subject = stage.subject_of(plan, approval)?;
    let evidence = stage.gather(&stale.forgotten, &subject, None)?;
    let refused = committed(stage, &stale.forgotten, plan, &evidence)?;
    assert_eq!(refused.err(), Some((Vec::new(), true)));
    let refusals = refusals(stage, &stale.forgotten, plan);
    assert!(
        refusals.iter().any(|named| named.contains("process-epoch")),
        "{refusals:?}"
    );
    let evidence = stage.gather(&server, &subject, None)?;
    let owned = committed(stage, &server, plan, &evidence)?;
    let owned = owned.map_err(|failed| lost(&format!("its own commitment: {failed:?}")))?;
    assert_eq!(owned.fence.epoch, stage.epoch()?);
    assert_ne!(owned.fence.epoch, stale.before);
    Ok(())
}

/// The row shows the forgotten process at its third generation again, as two takeovers in the
/// new epoch would leave it (DB027): of its token only the epoch differs.
fn extends_by_a_reissued_token(stage: &mut Stage) -> Step {
    let stale = restored(stage)?;
    let of = Arc::clone(&stale.forgotten);
    let (owner, soon) = (of.db.process().owner, stage.now() + LEASE);
    stage.alter(
        |tables| &mut tables.execution.operations,
        stale.owned.operation,
        |operation| {
            operation.row.lease_until = Some(soon);
            if let Some(fence) = &mut operation.row.fence {
                fence.owner = owner;
                fence.generation = Generation(3);
            }
        },
    )?;
    let owned = stale.owned.clone();
    let extended = stage.call(&stale.forgotten, async move {
        extend(&of.db, &owned, LEASE + LEASE).await
    })?;
    assert!(
        matches!(extended, Err(Failure::Refused(Refused::NotOwner))),
        "{extended:?}"
    );
    assert_eq!(
        stage.operation(stale.owned.operation)?.lease_until,
        Some(soon)
    );
    Ok(())
}

// covers-part: PA-EPOCH-2 PA-REC-4 (in the simulated world)
#[test]
fn a_process_forgotten_during_a_restore_is_refused_everything_after_the_entry() {
    for act in [
        attempts,
        claims_a_job,
        commits_an_old_plan,
        takes_over,
        ingests,
        commits_a_new_plan,
    ] {
        holds(act);
    }
    for act in [claims_a_job, takes_over, commits_a_new_plan] {
        violates(&[Rule::ProcessEpoch], act, OWNS);
    }
    violates(
        &[Rule::ProcessEpoch],
        ingests,
        "nothing from another epoch goes on",
    );
}

// covers-part: PA-EPOCH-1 (in the simulated world)
#[test]
fn a_token_that_takeovers_after_a_restore_reissue_is_refused_by_its_epoch_alone() {
    holds(extends_by_a_reissued_token);
    violates(&[Rule::FenceEpoch], extends_by_a_reissued_token, OWNS);
}
