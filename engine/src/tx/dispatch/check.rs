//! The use-time check's record (EaR 3.1): the artifact was opened and the access read.

use bronzeward_core::comparison::{ArtifactCheck, UseTimeCheck};
use bronzeward_core::fence::Fence;
use bronzeward_core::id::OperationId;
use bronzeward_core::observation::{AccessVersion, Read};
use bronzeward_core::plan::Binding;
use bronzeward_core::principal::{By, Controller};
use bronzeward_core::rules::Rule;
use bronzeward_core::timeline::Data;

use super::{Refused, unowned};
use crate::ports::store::{LockMode, NewEntry, OperationWrites, TimelineWrites};
use crate::tx::{Failure, Kind, lock_by, transact};
use crate::world::{Db, World};

/// What a check found, before it is recorded.
#[derive(Clone, Debug)]
pub struct Checked {
    pub access: Read<AccessVersion>,
    pub artifact: ArtifactCheck,
}

/// Records a check for a plan, or for the retry of its operation. Whether it admits
/// anything is the commitment's and the attempt's to compare, so a process of any epoch
/// may record one.
pub async fn record_check<W: World>(
    db: &Db<W>,
    binding: &Binding,
    operation: Option<(OperationId, &Fence)>,
    checked: &Checked,
) -> Result<UseTimeCheck, Failure<Refused>> {
    let rules = db.rules();
    let controller = operation.map_or_else(|| unowned(db), |(_, fence)| Controller::owning(fence));
    let committed = transact(db.store(), Kind::Job, async |tx| {
        let (tx, _) = tx.lock_installation(LockMode::Share).await?;
        let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
        let (tx, machine) = tx.lock_machine(binding.machine, lock).await?;
        let (mut open, at) = tx.open_at().await?;
        let Some(machine) = machine else {
            return open.refuse(Refused::Gone).await;
        };
        let data = Data::UseTimeCheck {
            plan: binding.id,
            access: checked.access.clone(),
            artifact: checked.artifact,
        };
        let by = By::Controller(controller.clone());
        let entry = NewEntry::of(&data, by, controller.epoch, None, at).about(binding.id);
        let revision = open.rows().append_entry(machine.id, &entry).await?;
        let check = UseTimeCheck {
            plan: binding.id,
            controller: controller.clone(),
            revision,
            at,
            access: checked.access.clone(),
            artifact: checked.artifact,
        };
        let of = operation.map(|(operation, _)| operation);
        open.rows().insert_check(&check, binding, of).await?;
        open.done(check)
    })
    .await?;
    Ok(committed.into_inner())
}
