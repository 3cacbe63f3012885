//! The release of a ready scope in the current epoch (EaR 7.1, PA §9.2).

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::ScopeRefusal;
use bronzeward_core::timeline::Data;

use super::{
    Log, ScopeChanged, ScopeInput, decided, in_recovery, moved, no_machine, scope_refused,
};
use crate::ports::store::{LockMode, NewScopeRelease, RecoveryReads, RecoveryWrites};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::tx::lock_by;
use crate::tx::plans::scope;
use crate::world::World;

impl<W: World> Requests<'_, W> {
    /// Releases a scope on its latest mark. Nothing is looked at again: every plan's use-time
    /// check does that.
    pub async fn release_scope(
        &self,
        admitted: &Admitted,
        input: &ScopeInput,
        render: impl Fn(&ScopeChanged) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (db, rules, of) = (self.db, self.db.rules(), input.machine);
        let act = ActDraft::new(db.mint(), Action::SCOPE_RELEASED).on(of);
        self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
            let (tx, machine) = tx.lock_machine(of, lock).await?;
            let Some(machine) = machine else {
                return tx.refuse(no_machine(of)).await;
            };
            if let Err(problem) = in_recovery(db, &installation) {
                return tx.refuse(problem).await;
            }
            let (epoch, desired) = (installation.epoch, machine.state.desired);
            let mut open = tx.open();
            let mark = open.rows().latest_mark(of).await?;
            // A mark of an earlier epoch rests on nothing that holds in this one.
            let mark = mark.filter(|mark| mark.epoch == epoch);
            let marked_for = mark.and_then(|mark| mark.desired);
            let released = scope(&machine, None).release(&rules, epoch, marked_for, desired);
            let to = match released {
                Ok(to) => to,
                Err(refusal) => return open.refuse(scope_refused(of, refusal)).await,
            };
            let Some(mark) = mark else {
                let refusal = scope_refused(of, ScopeRefusal::NotReady);
                return open.refuse(refusal).await;
            };
            let (mut acts, at) = open.lock_acts(&rules).await?;
            let decided = decided(admitted, &act, epoch, at);
            let mut log = Log {
                rows: acts.rows(),
                decided: &decided,
            };
            let change = moved(machine.scope, to, &input.facts);
            let (_, entry) = log.move_scope(of, &change, to).await?;
            let release = Data::ScopeRelease {
                epoch,
                mark: mark.revision,
            };
            let (revision, _) = log.append(of, &release).await?;
            let release = NewScopeRelease {
                machine: of,
                revision,
                mark: mark.revision,
                desired,
                facts: input.facts.clone(),
                decided: decided.clone(),
            };
            log.rows.insert_scope_release(&release).await?;
            let changed = ScopeChanged {
                machine: of,
                from: machine.scope,
                to,
                observation: None,
                missing: Vec::new(),
                entry,
            };
            Ok(Settled {
                acts,
                rendered: render(&changed),
                act: act.clone(),
            })
        })
        .await
        .map_err(NotDone::refused)
    }
}
