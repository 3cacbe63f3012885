//! Timeline entries of machines, and events of publish and ingest operations (PA §5 T7).

use std::future::Future;

use bronzeward_core::fence::Owner;
use bronzeward_core::id::{ActId, EpochId, MachineId, OperationId, PlanId};
use bronzeward_core::principal::{By, Controller, Signed};
use bronzeward_core::problem::Member;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_core::timeline::Data;

use super::{Page, StoreError};

/// An entry to be appended. At least one of `actor` and `controller` is given.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// The entry's kind in kebab-case (EaR 4.1), or the event's type (PA §8.3).
    pub kind: &'static str,
    pub operation: Option<OperationId>,
    pub plan: Option<PlanId>,
    pub actor: Option<Signed>,
    pub controller: Option<Controller>,
    pub epoch: EpochId,
    pub act: Option<ActId>,
    pub at: DbTime,
    /// The entry's own members: identifiers, states, codes; digests are left out when it is
    /// served (PA §8.3).
    pub data: Member,
}

/// The controller of a stored entry: its owner string and, where it owned an operation,
/// the generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerRow {
    pub owner: Owner,
    pub generation: Option<i64>,
}

impl NewEntry {
    /// A machine's entry, from what it says and who it is by.
    pub fn of(data: &Data, by: By, epoch: EpochId, act: Option<ActId>, at: DbTime) -> Self {
        let (actor, controller) = match by {
            By::Signed(signed) => (Some(signed), None),
            By::Controller(controller) => (None, Some(controller)),
        };
        Self {
            kind: data.kind(),
            operation: data.operation(),
            plan: None,
            actor,
            controller,
            epoch,
            act,
            at,
            data: data.members(),
        }
    }

    /// Names the plan the entry is about, where its data does not.
    #[must_use]
    pub fn about(mut self, plan: PlanId) -> Self {
        self.plan = Some(plan);
        self
    }
}

/// An entry as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryRow {
    /// The machine's revision, or the operation's event number.
    pub number: i64,
    pub kind: String,
    pub operation: Option<OperationId>,
    pub plan: Option<PlanId>,
    pub actor: Option<Signed>,
    pub controller: Option<ControllerRow>,
    pub epoch: EpochId,
    pub act: Option<ActId>,
    pub at: DbTime,
    pub data: Member,
}

impl EntryRow {
    /// An entry as it was just appended.
    pub fn of(revision: TimelineRevision, entry: &NewEntry) -> Self {
        Self {
            number: revision.0,
            kind: entry.kind.to_owned(),
            operation: entry.operation,
            plan: entry.plan,
            actor: entry.actor,
            controller: entry.controller.as_ref().map(|controller| ControllerRow {
                owner: controller.owner.clone(),
                generation: controller.generation.map(|generation| generation.0),
            }),
            epoch: entry.epoch,
            act: entry.act,
            at: entry.at,
            data: entry.data.clone(),
        }
    }
}

/// Which way a timeline page runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Oldest,
    Newest,
}

/// A page of a machine's timeline, with the newest entry's revision from the same statement.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelinePage {
    pub items: Vec<EntryRow>,
    pub more: bool,
    pub tail: Option<TimelineRevision>,
}

pub trait TimelineReads {
    fn machine_timeline(
        &mut self,
        machine: MachineId,
        order: Order,
        page: &Page<TimelineRevision>,
    ) -> impl Future<Output = Result<TimelinePage, StoreError>> + Send;

    /// An operation's entries: its own events, or, for a plan's operation, those entries of
    /// its machine that name it.
    fn operation_events(
        &mut self,
        operation: OperationId,
        page: &Page<i64>,
    ) -> impl Future<Output = Result<super::Paged<EntryRow>, StoreError>> + Send;
}

pub trait TimelineWrites {
    /// Appends at the machine's next revision. The machine row is held FOR UPDATE, so
    /// revision order is commit order (T7).
    fn append_entry(
        &mut self,
        machine: MachineId,
        entry: &NewEntry,
    ) -> impl Future<Output = Result<TimelineRevision, StoreError>> + Send;

    /// Appends at the operation's next event number. The operation row is held FOR UPDATE
    /// or was inserted by this transaction.
    fn append_event(
        &mut self,
        operation: OperationId,
        entry: &NewEntry,
    ) -> impl Future<Output = Result<i64, StoreError>> + Send;
}
