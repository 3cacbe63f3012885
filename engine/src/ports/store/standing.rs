//! What is known of machines beside their own rows: what they were seen to hold, what their
//! releases compiled, and their open drift (EaR 1, 6.1).
//!
//! Read in one go for a whole page of machines, for their answers. Never in this module: a
//! comparison. Digests come out as they are stored; core compares them, and none is served.

use std::collections::BTreeMap;
use std::future::Future;

use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{MachineId, ObservationId, OperationId, ReleaseId};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;

use super::StoreError;

/// What stands beside one machine's row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The machine's artifact in its Desired release and in the release of its Applied.
    pub artifacts: BTreeMap<ReleaseId, ConfigDigest>,
    /// The completed observation that began last of those that read a configuration.
    pub observed: Option<Seen>,
    pub drift: Option<DriftRecord>,
}

/// An observation that read a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub observation: ObservationId,
    pub digest: ConfigDigest,
    pub at: DbTime,
}

/// A machine's open drift record without its digests (PA §9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriftRecord {
    pub opened: TimelineRevision,
    pub observation: ObservationId,
    pub last_observation: ObservationId,
    pub late_landing: Option<OperationId>,
}

pub trait StandingReads {
    /// One entry per machine that has any of it.
    fn standings(
        &mut self,
        machines: &[MachineId],
    ) -> impl Future<Output = Result<BTreeMap<MachineId, Standing>, StoreError>> + Send;
}
