//! The decision that what was sent before a restore has settled (EaR 5.2, 7.1, 7.2).
//!
//! It covers the attempts the database still holds and those the restore erased, which
//! nothing names: their requests are counted from the stop of the old instances and the
//! longest transport deadline the deployment allowed.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::attempt::{AccountingFacts, Attempt, accountable};
use bronzeward_core::id::{ActId, MachineId, ObservationId, OperationId};
use bronzeward_core::observation::Observation;
use bronzeward_core::problem::Problem;
use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::{DbTime, Span};
use bronzeward_core::timeline::Data;

use super::{Log, current, decided, moved, no_machine, outside_recovery, scope_refused};
use crate::ports::store::{
    AdoptionReads, Decided, LockMode, NewAccounting, NewScopeAccounting, RecoveryReads, Select,
    StoreError, StoreTx,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::rows::MachineRow;
use crate::tx::dispatch::{explained, not_accountable};
use crate::tx::lock_by;
use crate::tx::plans::scope;
use crate::world::World;

/// A scope with the two recovery observations that bracket its settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountedScope {
    pub start: ObservationId,
    pub end: ObservationId,
}

#[derive(Clone, Debug)]
pub struct ScopesInput {
    pub scopes: BTreeMap<MachineId, AccountedScope>,
    pub facts: BTreeMap<String, String>,
}

/// What the deployment says of a settle; both stand outside the database.
#[derive(Clone, Copy, Debug)]
pub struct Settle {
    pub floor: Span,
    /// No attempt of any instance was given longer.
    pub longest_transport: Span,
}

/// An accounting as it is answered.
#[derive(Clone, Debug)]
pub struct ScopesAccounted {
    pub act: ActId,
    pub scopes: Vec<(MachineId, ScopeState)>,
}

impl<W: World> Requests<'_, W> {
    /// Accounts for every request that may have been sent to these machines before the
    /// restore; all of them, or none.
    pub async fn account_scopes(
        &self,
        admitted: &Admitted,
        input: &ScopesInput,
        settle: Settle,
        render: impl Fn(&ScopesAccounted) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (db, rules) = (self.db, self.db.rules());
        let ids: BTreeSet<MachineId> = input.scopes.keys().copied().collect();
        let act = ids.iter().fold(
            ActDraft::new(db.mint(), Action::SCOPES_ACCOUNTED),
            |act, machine| act.on(*machine),
        );
        self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            if let Err(problem) = current(db, &installation) {
                return tx.refuse(problem).await;
            }
            let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
            let select = Select::Ids(ids.clone());
            let (mut tx, machines) = tx.lock_machines(&select, lock, None).await?;
            let known: BTreeSet<_> = machines.iter().map(|row| row.id).collect();
            if let Some(unknown) = ids.difference(&known).next() {
                return tx.refuse(no_machine(*unknown)).await;
            }
            let epoch = installation.epoch;
            let entry = tx.peek().recovery_entry(epoch).await?;
            let Some(entry) = entry.filter(|_| installation.recovery_mode) else {
                return tx.refuse(outside_recovery()).await;
            };
            let mut holders = BTreeMap::new();
            for machine in &ids {
                if let Some(held) = tx.peek().scope_holder(*machine).await? {
                    holders.insert(*machine, held);
                }
            }
            let operations = holders.values().copied().collect();
            let (tx, _) = tx.lock_operations(&operations, LockMode::Update).await?;
            let (mut acts, at) = tx.open().lock_acts(&rules).await?;
            let decided = decided(admitted, &act, epoch, at);
            let mut scopes = Vec::with_capacity(machines.len());
            for machine in &machines {
                let deciding = Deciding {
                    rules,
                    machine,
                    holder: holders.get(&machine.id).copied(),
                    brackets: input.scopes[&machine.id],
                    facts: &input.facts,
                    stopped_at: entry.stopped_at,
                    settle,
                    decided: &decided,
                };
                match deciding.account(acts.rows()).await? {
                    Ok(to) => scopes.push((machine.id, to)),
                    Err(problem) => return acts.refuse(problem).await,
                }
            }
            let accounted = ScopesAccounted {
                act: act.id,
                scopes,
            };
            Ok(Settled {
                acts,
                rendered: render(&accounted),
                act: act.clone(),
            })
        })
        .await
        .map_err(NotDone::refused)
    }
}

/// One scope of the decision.
struct Deciding<'a, R> {
    rules: R,
    machine: &'a MachineRow,
    holder: Option<OperationId>,
    brackets: AccountedScope,
    facts: &'a BTreeMap<String, String>,
    stopped_at: DbTime,
    settle: Settle,
    decided: &'a Decided,
}

impl<R: Rules> Deciding<'_, R> {
    /// Decides and writes; a refusal leaves the transaction to be rolled back.
    async fn account<T: StoreTx>(
        &self,
        rows: &mut T,
    ) -> Result<Result<ScopeState, Problem>, StoreError> {
        let of = self.machine.id;
        let to = match scope(self.machine, None).account(self.holder.is_some()) {
            Ok(to) => to,
            Err(refusal) => return Ok(Err(scope_refused(of, refusal))),
        };
        let (start, end) = (self.brackets.start, self.brackets.end);
        let ours = |seen: &Observation| seen.started.machine == of;
        let start = rows.observation(start).await?.filter(ours);
        let end = rows.observation(end).await?.filter(ours);
        let (Some(start), Some(end)) = (start, end) else {
            let problem = Problem::not_found("No such observation of the machine.");
            return Ok(Err(problem.naming("machine", of)));
        };
        let mut attempts = match self.holder {
            Some(operation) => rows.attempts(operation).await?,
            None => Vec::new(),
        };
        attempts.retain(|attempt| attempt.accounted_at().is_none());
        let erased = self.stopped_at + self.settle.longest_transport;
        let mut settling = vec![(erased, Some(self.stopped_at))];
        for attempt in &attempts {
            let moved = rows
                .ownership_moved_after(attempt.operation, attempt.revision)
                .await?;
            settling.push((attempt.transport_deadline.max(erased), moved));
        }
        for (deadline, stopped_at) in settling {
            let facts = AccountingFacts {
                transport_deadline: deadline,
                stopped_at,
                first_read_after_deadline: rows.first_read_after(of, deadline).await?,
                settle_floor: self.settle.floor,
                start: &start,
                end: &end,
                explained: explained(self.facts),
                accounted: false,
                now: self.decided.at,
            };
            if let Err(refusal) = accountable(&self.rules, &facts) {
                return Ok(Err(not_accountable(refusal).naming("machine", of)));
            }
        }
        self.write(rows, &attempts, to).await?;
        Ok(Ok(to))
    }

    async fn write<T: StoreTx>(
        &self,
        rows: &mut T,
        attempts: &[Attempt],
        to: ScopeState,
    ) -> Result<(), StoreError> {
        let of = self.machine.id;
        let Decided { by, epoch, act, at } = *self.decided;
        let mut log = Log {
            rows,
            decided: self.decided,
        };
        for attempt in attempts {
            let data = self.entry(Some(attempt));
            let (revision, _) = log.append(of, &data).await?;
            let accounting = NewAccounting {
                attempt: attempt.id,
                machine: of,
                revision,
                start: self.brackets.start,
                end: self.brackets.end,
                facts: self.facts.clone(),
                by,
                epoch,
                act,
                at,
            };
            log.rows.insert_accounting(&accounting).await?;
        }
        let (revision, _) = log.append(of, &self.entry(None)).await?;
        let accounting = NewScopeAccounting {
            machine: of,
            revision,
            start: self.brackets.start,
            end: self.brackets.end,
            facts: self.facts.clone(),
            decided: self.decided.clone(),
        };
        log.rows.insert_scope_accounting(&accounting).await?;
        let change = moved(self.machine.scope, to, self.facts);
        log.move_scope(of, &change, to).await?;
        Ok(())
    }

    fn entry(&self, attempt: Option<&Attempt>) -> Data {
        Data::Accounting {
            attempt: attempt.map(|attempt| (attempt.operation, attempt.id)),
            start: self.brackets.start,
            end: self.brackets.end,
            facts: self.facts.clone(),
        }
    }
}
