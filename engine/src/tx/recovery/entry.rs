//! Recovery entry (T9): a new epoch, every scope closed, and nothing issued before it in force.

use std::collections::BTreeSet;

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::id::{EpochId, MachineId, OperationId};
use bronzeward_core::installation::{EntryRefusal, EntryRequest, StartMode, enter};
use bronzeward_core::job::Event;
use bronzeward_core::principal::By;
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::timeline::{Counter, Data};

use super::{Log, decided, moved};
use crate::ports::store::{
    ClaimEnd, Condition, Decided, Guard, JobEnd, LockMode, OperationReads, RecoveryReads,
    RecoveryWrites, Select, StoreError, StoreTx, Written,
};
use crate::request::{Admitted, Answer, EpochRead, NotDone, Refused, Rendered, Requests, Settled};
use crate::rows::{ClaimRow, MachineRow, OperationRow};
use crate::tx::claims::{ABANDONED, abandoned, event, fail_operation, unended};
use crate::tx::dispatch::{ByAct, take_over_by_act};
use crate::tx::{Held, lock_by};
use crate::world::{Db, RawTx, World};

/// An entry as it is answered.
#[derive(Clone, Debug)]
pub struct Entered {
    pub entry: EntryRequest,
    /// Its epoch is the one that was minted.
    pub decided: Decided,
    /// Every scope as the entry left it.
    pub scopes: Vec<(MachineId, ScopeState)>,
}

impl<W: World> Requests<'_, W> {
    /// Enters recovery mode, once per recovery start. The process acts in the minted epoch
    /// from the commit on, also where it learns of that commit from a retry (PA §12.4).
    pub async fn enter_recovery(
        &self,
        admitted: &Admitted,
        request: &EntryRequest,
        render: impl Fn(&Entered) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let db = self.db;
        let rules = db.rules();
        let minted: EpochId = db.mint();
        let act = ActDraft::new(db.mint(), Action::RECOVERY_ENTERED).on(minted);
        db.start().minting(minted);
        let leaves = move |_: EpochRead| EpochRead {
            epoch: minted,
            recovery_mode: true,
        };
        let answer = self
            .run_leaving(
                admitted,
                Some(LockMode::Update),
                leaves,
                async |tx, installation| {
                    let start = db.start_mode();
                    if start == StartMode::Normal {
                        return tx.refuse(refused(EntryRefusal::NotARecoveryStart)).await;
                    }
                    let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
                    let (mut tx, machines) = tx.lock_machines(&Select::All, lock, None).await?;
                    // Whoever writes a claim or an operation holds the installation's row, so
                    // that none begins or ends from here on.
                    let claims = tx.peek().unended_claims().await?.into_iter().collect();
                    let (mut tx, claims) = tx.lock_claims(&claims, LockMode::Update).await?;
                    let mut ids: BTreeSet<OperationId> =
                        tx.peek().unended_jobs().await?.into_iter().collect();
                    let open = tx.peek().open_operations().await?;
                    ids.extend(open.iter().map(|row| row.id));
                    let (tx, operations) = tx.lock_operations(&ids, LockMode::Update).await?;
                    let (mut acts, at) = tx.open().lock_acts(&rules).await?;
                    if let Err(refusal) = enter(&rules, start, &installation, request, at) {
                        return acts.refuse(refused(refusal)).await;
                    }
                    let decided = decided(admitted, &act, minted, at);
                    let rows = acts.rows();
                    rows.enter_recovery(request, &decided).await?;
                    end_claims(rows, &claims).await?;
                    fail_jobs(rows, &operations, &decided).await?;
                    let closing = Closing {
                        db,
                        reason: &request.reason,
                        decided: &decided,
                    };
                    let scopes = closing.scopes(rows, &machines, &operations).await?;
                    let entered = Entered {
                        entry: request.clone(),
                        decided,
                        scopes,
                    };
                    Ok(Settled {
                        acts,
                        rendered: render(&entered),
                        act: act.clone(),
                    })
                },
            )
            .await
            .map_err(NotDone::refused)?;
        if db.start().minted(answer.read.epoch) {
            db.start().entered(answer.read.epoch);
        }
        Ok(answer)
    }
}

/// Every claim ends; its payload goes with it (IC §3.5).
async fn end_claims<T: StoreTx>(rows: &mut T, claims: &[Held<ClaimRow>]) -> Result<(), StoreError> {
    for claim in claims {
        let ended = rows
            .end_claim(claim.id, &unended(), ClaimEnd::Abandoned)
            .await?;
        if ended == Written::Stale {
            return Err(StoreError::Fault);
        }
    }
    Ok(())
}

/// Fails what publishes or ingests, each with its terminal event (PA §8.2).
async fn fail_jobs<T: StoreTx>(
    rows: &mut T,
    operations: &[Held<OperationRow>],
    decided: &Decided,
) -> Result<(), StoreError> {
    let by = || By::Signed(decided.by);
    let (epoch, act, at) = (decided.epoch, Some(decided.act), decided.at);
    for operation in operations {
        match operation.kind.as_str() {
            "ingest" => {
                let entry = event(&ABANDONED, by(), epoch, act, at);
                fail_operation(rows, operation.id, &abandoned(), &entry).await?;
            }
            "publish" => {
                let problem = Problem::new(ProblemCode::RecoveryModeEntered)
                    .say("Recovery mode was entered.");
                let guard = Guard::new().and(Condition::StateIn(vec!["queued", "running"]));
                let end = JobEnd::Failed(problem);
                if rows.finish_job(operation.id, &guard, &end).await? == Written::Stale {
                    return Err(StoreError::Fault);
                }
                let failed = Event::Failed {
                    code: ProblemCode::RecoveryModeEntered,
                    cause: None,
                };
                let entry = event(&failed, by(), epoch, act, at);
                rows.append_event(operation.id, &entry).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What an entry does on each machine's timeline.
struct Closing<'a, W: World> {
    db: &'a Db<W>,
    reason: &'a str,
    decided: &'a Decided,
}

impl<W: World> Closing<'_, W> {
    async fn scopes(
        &self,
        rows: &mut RawTx<W>,
        machines: &[Held<MachineRow>],
        operations: &[Held<OperationRow>],
    ) -> Result<Vec<(MachineId, ScopeState)>, StoreError> {
        let mut scopes = Vec::with_capacity(machines.len());
        for machine in machines {
            // A decommissioned machine is passed over by everything (EaR 7.3).
            let to = machine.scope.entered();
            if to != ScopeState::Retired {
                let of_machine = |row: &&Held<OperationRow>| {
                    row.plan.is_some() && row.machine == Some(machine.id)
                };
                let held = operations.iter().find(of_machine);
                self.scope(rows, machine, held, to).await?;
            }
            scopes.push((machine.id, to));
        }
        Ok(scopes)
    }

    async fn scope(
        &self,
        rows: &mut RawTx<W>,
        machine: &MachineRow,
        held: Option<&Held<OperationRow>>,
        to: ScopeState,
    ) -> Result<(), StoreError> {
        let epoch = self.decided.epoch;
        let mut log = Log {
            rows,
            decided: self.decided,
        };
        let (revision, _) = log
            .append(machine.id, &Data::RecoveryEntry { epoch })
            .await?;
        if let Some(operation) = held {
            let taking = ByAct {
                decided: self.decided,
                reason: self.reason,
                revision: Counter(revision.0).allocate().0,
            };
            take_over_by_act(self.db, log.rows, operation, &taking).await?;
        }
        let nothing = std::collections::BTreeMap::new();
        let change = moved(machine.scope, to, &nothing);
        log.move_scope(machine.id, &change, to).await?;
        Ok(())
    }
}

fn refused(refusal: EntryRefusal) -> Problem {
    match refusal {
        EntryRefusal::NotARecoveryStart => {
            Problem::conflict("Only a process started for recovery takes an entry.")
        }
        EntryRefusal::AlreadyEntered { current } => {
            Problem::conflict("Recovery mode was entered since this process started.")
                .naming("epoch", current)
        }
        EntryRefusal::Backups => {
            Problem::invalid_request("Each restored backup family is named once, and at least one.")
                .naming("path", "/restored")
                .naming("rule", "each-family-once")
        }
        EntryRefusal::StoppedInFuture => {
            Problem::validation("stopped-in-future").naming("path", "/stoppedAt")
        }
    }
}
