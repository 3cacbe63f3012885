//! Recovery mode (EaR 7, PA §12): everything is restored and entered, and then something is
//! done that a rule refuses.

use std::sync::Arc;

use bronzeward_core::id::{MachineId, OperationId};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::{DbTime, Span};

use super::restore::entry_at;
use super::stage::{ADMIN, AUTHOR, Stage, Step};
use super::{Witness, rows};
use crate::seed::End;
use crate::server::Server;

/// Recovery mode, with one machine that is looked at.
struct Entered {
    recovering: Arc<Server>,
    server: Arc<Server>,
    machine: MachineId,
    stopped_at: DbTime,
}

fn entered(stage: &mut Stage) -> Step<Entered> {
    let machine = stage.subject()?.machine;
    entered_with(stage, machine)
}

fn entered_with(stage: &mut Stage, machine: MachineId) -> Step<Entered> {
    let backup = stage.back_up();
    let stopped_at = stage.now();
    stage.restore(&backup)?;
    let recovering = stage.enter(stopped_at)?;
    let server = stage.server()?;
    Ok(Entered {
        recovering,
        server,
        machine,
        stopped_at,
    })
}

/// Every scope is accounted for.
fn accounted(stage: &mut Stage) -> Step<Entered> {
    let on = entered(stage)?;
    stage.account_scopes(&on.server, on.stopped_at)?;
    Ok(on)
}

/// The machine is marked while it does not answer.
fn unread(stage: &mut Stage) -> Step<(Entered, ScopeState)> {
    let on = accounted(stage)?;
    stage.silence(true);
    let marked = stage.mark(&on.server, on.machine)?;
    stage.silence(false);
    Ok((on, marked))
}

fn released_though_blocked(stage: &mut Stage) -> Step {
    let (on, _) = unread(stage)?;
    stage.release(&on.server, on.machine).map(drop)
}

fn released_for_another(stage: &mut Stage) -> Step {
    let subject = stage.subject()?;
    let on = accounted(stage)?;
    stage.mark(&on.server, on.machine)?;
    stage.desire_another(&subject)?;
    stage.release(&on.server, on.machine).map(drop)
}

fn left_at_once(stage: &mut Stage) -> Step {
    let on = entered(stage)?;
    stage.exit(&on.server).map(drop)
}

fn written_off(stage: &mut Stage) -> Step {
    let on = accounted(stage)?;
    let machine = on.machine;
    stage
        .asked(&on.server, ADMIN, move |hand| async move {
            hand.decommission(machine).await
        })
        .map(drop)
}

/// Somebody who did not hear of the first entry asks for another.
fn entered_twice(stage: &mut Stage) -> Step {
    let on = entered(stage)?;
    stage.pass(Span::seconds(1))?;
    stage
        .asked(&on.recovering, ADMIN, move |hand| async move {
            hand.enter_recovery(entry_at(on.stopped_at)).await
        })
        .map(drop)
}

/// A backup from after an entry holds its record; it is restored, and entry is asked for under
/// that entry's key.
fn entered_by_a_record(stage: &mut Stage) -> Step {
    let key = IdempotencyKey::parse("the-first-entrys-own").expect("a legal key");
    let stopped_at = stage.now();
    stage.insist(&key);
    let first = stage.enter(stopped_at)?;
    let backup = stage.back_up();
    stage.kill(&first);
    stage.restore(&backup)?;
    let second = stage.recovery_start()?;
    stage.insist(&key);
    stage
        .asked(&second, ADMIN, move |hand| async move {
            hand.enter_recovery(entry_at(stopped_at)).await
        })
        .map(drop)
}

fn served_before_its_entry(stage: &mut Stage) -> Step {
    let cluster = stage.subject()?.binding.cluster;
    let server = stage.recovery_start()?;
    stage
        .asked(&server, AUTHOR, move |hand| async move {
            hand.open_draft(cluster).await
        })
        .map(drop)
}

/// A process that was to be stopped before the restore takes what the entry took.
fn taken_by_a_stale_process(stage: &mut Stage) -> Step {
    let forgotten = stage.server()?;
    let subject = stage.subject()?;
    let evidence = stage.gather(&forgotten, &subject, None)?;
    let owned = stage.commit(&forgotten, subject.plan, &evidence)?;
    let owned = owned.ok_or_else(|| End::Error("a commitment".to_owned()))?;
    stage.hold(&forgotten);
    entered_with(stage, subject.machine)?;
    let operation: OperationId = owned.operation;
    let row = stage.operation(operation)?;
    stage.pass(Span::seconds(1))?;
    stage.let_go(&forgotten);
    stage.take_over(&forgotten, &row).map(drop)
}

const ANSWERED: &str = "an entry is answered by the start that made it";
const MARKED: &str = "a mark says what its observation shows";

pub const WITNESSES: &[Witness] = rows! {
    "marked ready without a reading", [MarkEvidence], MARKED, |stage| unread(stage).map(drop);
    "released though blocked", [ReleaseNeedsReady], "a scope's states", released_though_blocked;
    "released for another release", [ReleaseDesiredUnchanged],
        "a scope is released on its latest mark", released_for_another;
    "left at once", [ExitNeedsEveryScope],
        "recovery mode is left with every scope released", left_at_once;
    "written off though it answers", [DecommissionUnobservable],
        "a machine that answers is not written off", written_off;
    "entered twice", [EntryOncePerStart], "a recovery start enters once", entered_twice;
    "entered by the record of another entry", [EntryRecordOfThisStart], ANSWERED,
        entered_by_a_record;
    "served before its entry", [RecoveryStartGate], "nothing is recorded before the entry",
        served_before_its_entry;
    "taken over by a process of another epoch", [ProcessEpoch],
        "a process of another epoch owns nothing", taken_by_a_stale_process;
};
