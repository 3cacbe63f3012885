//! A machine's freeze (EaR 6.2): the flag that gates read, and the immutable facts that set it.

use std::future::Future;

use bronzeward_core::id::{ActId, EpochId, MachineId};
use bronzeward_core::principal::Signed;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;

use super::StoreError;

/// Who froze or unfroze a machine, and when: what both facts hold beside their reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frozen {
    pub machine: MachineId,
    /// Of its timeline entry.
    pub revision: TimelineRevision,
    pub by: Signed,
    pub epoch: EpochId,
    pub act: ActId,
    pub at: DbTime,
}

pub trait FreezeWrites {
    /// The fact, and the machine frozen; its row is held FOR UPDATE.
    fn freeze(
        &mut self,
        fact: &Frozen,
        reason: Option<&str>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The fact, and the machine frozen no more; its row is held FOR UPDATE.
    fn unfreeze(
        &mut self,
        fact: &Frozen,
        reason: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
