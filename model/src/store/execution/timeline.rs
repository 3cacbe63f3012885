//! Timeline entries and events (PA §5 T7).

use std::sync::Arc;

use bronzeward_core::id::{MachineId, OperationId};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_engine::ports::store::{
    EntryRow, NewEntry, Order, Page, Paged, TimelinePage, TimelineReads, TimelineWrites,
};
use bronzeward_engine::rows::MachineRow;

use super::Out;
use super::jobs::Operation;
use super::statement::{kept, maybe, one, overfetch, owned, row};
use crate::change::{Change, Changed};
use crate::journal::Journal;
use crate::pg::session::Session;
use crate::pg::{Eye, Relation, Row, Tables};

/// That an operation is named by an entry.
#[derive(Clone, Copy, Debug)]
pub struct Named;

impl Row<(OperationId, i64, Option<MachineId>)> for Named {}

impl Row<(MachineId, i64)> for EntryRow {
    fn committed(
        key: &(MachineId, i64),
        _before: Option<&Arc<Self>>,
        after: Option<&Arc<Self>>,
        journal: &mut Journal,
    ) {
        // An entry is written once.
        let changed = Changed {
            before: None,
            after: after.cloned(),
        };
        journal.changed(Change::Entry(key.0, changed));
    }
}

impl Row<(OperationId, i64)> for EntryRow {}

kept!(
    EntryRow, (MachineId, i64) => execution.timelines;
    EntryRow, (OperationId, i64) => execution.events;
    Named, (OperationId, i64, Option<MachineId>) => execution.named;
    MachineRow, MachineId => authoring.machines;
);

/// The entries that name an operation, from a number on, in the order of their numbers.
pub(super) fn entries_of(
    tables: &Tables,
    eye: Eye,
    of: OperationId,
    from: i64,
) -> impl DoubleEndedIterator<Item = &EntryRow> {
    let of_it = (of, from, None)..=(of, i64::MAX, None);
    let named = tables.execution.named.range(eye, of_it);
    named.filter_map(move |((_, number, machine), Named)| match machine {
        Some(machine) => tables.execution.timelines.get(eye, &(*machine, *number)),
        None => tables.execution.events.get(eye, &(of, *number)),
    })
}

impl TimelineReads for Session {
    async fn machine_timeline(
        &mut self,
        of: MachineId,
        order: Order,
        page: &Page<TimelineRevision>,
    ) -> Out<TimelinePage> {
        let after = page.after.map(|after| after.0);
        let tail = |tables: &Tables, eye| {
            let newest = owned(&tables.execution.timelines, eye, of, 0, i64::MAX).next_back();
            newest.map(|(number, _)| TimelineRevision(number))
        };
        let read = self.read("read timeline", |tables, eye| {
            let rows = &tables.execution.timelines;
            let items: Vec<EntryRow> = match order {
                Order::Oldest => {
                    let from = after.map_or(0, |after| after.saturating_add(1));
                    let rows = owned(rows, eye, of, from, i64::MAX);
                    rows.take(overfetch(page))
                        .map(|(_, entry)| entry.clone())
                        .collect()
                }
                Order::Newest => {
                    let to = after.map_or(i64::MAX, |after| after.saturating_sub(1));
                    let rows = owned(rows, eye, of, 0, to.max(0)).rev();
                    rows.take(overfetch(page))
                        .map(|(_, entry)| entry.clone())
                        .collect()
                }
            };
            (items, tail(tables, eye))
        });
        let (items, mut newest) = read.await?;
        if items.is_empty() {
            // No row of the page carries it, so it is asked for.
            newest = self.read("read timeline's tail", tail).await?;
        }
        let paged = Paged::from_overfetched(items, page.limit);
        Ok(TimelinePage {
            items: paged.items,
            more: paged.more,
            tail: newest,
        })
    }

    async fn operation_events(
        &mut self,
        of: OperationId,
        page: &Page<i64>,
    ) -> Out<Paged<EntryRow>> {
        self.read("read events", |tables, eye| {
            let from = page.after.map_or(0, |after| after.saturating_add(1));
            let rows = entries_of(tables, eye, of, from).take(overfetch(page));
            Paged::from_overfetched(rows.cloned().collect(), page.limit)
        })
        .await
    }
}

impl Session {
    /// What an entry's foreign keys lock, and its place under its operation.
    async fn named_by(&mut self, of: Option<MachineId>, entry: &EntryRow) -> Out<()> {
        if let Some(operation) = entry.operation {
            self.put_kept((operation, entry.number, of), Named)?;
        }
        if let Some(act) = entry.act {
            self.await_act_of(act, "timeline_event_act_id_fkey")?;
        }
        let named = [
            maybe(Relation::Machine, of),
            maybe(Relation::Operation, entry.operation),
            maybe(Relation::Principal, entry.actor.map(|by| by.principal)),
        ];
        self.refer(named.into_iter().flatten()).await
    }
}

impl TimelineWrites for Session {
    async fn append_entry(&mut self, of: MachineId, entry: &NewEntry) -> Out<TimelineRevision> {
        self.statement("number entry").await?;
        let lock = row(Relation::Machine, of);
        let machine = self
            .target_kept(lock, &of, |_: &MachineRow, _| true)
            .await?;
        let mut machine = one(machine)?;
        machine.timeline = TimelineRevision(machine.timeline.0 + 1);
        let revision = machine.timeline;
        self.put_kept(of, machine)?;
        self.statement(entry.kind).await?;
        let entry = EntryRow::of(revision, entry);
        let key = (of, revision.0);
        self.insert_kept(key, entry.clone(), "timeline_event_machine_key")
            .await?;
        self.named_by(Some(of), &entry).await?;
        Ok(revision)
    }

    async fn append_event(&mut self, of: OperationId, entry: &NewEntry) -> Out<i64> {
        self.statement("number event").await?;
        let lock = row(Relation::Operation, of);
        let operation = self.target_kept(lock, &of, |_: &Operation, _| true).await?;
        let mut operation = one(operation)?;
        operation.row.last_event += 1;
        let number = operation.row.last_event;
        self.put_kept(of, operation)?;
        self.statement(entry.kind).await?;
        let mut entry = EntryRow::of(TimelineRevision(number), entry);
        entry.operation = Some(of);
        let key = (of, number);
        self.insert_kept(key, entry.clone(), "timeline_event_job_key")
            .await?;
        self.named_by(None, &entry).await?;
        Ok(number)
    }
}
