//! Timeline entries and events (PA §5 T7).

use bronzeward_core::fence::Owner;
use bronzeward_core::id::{MachineId, OperationId};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_engine::ports::store::{
    ControllerRow, EntryRow, NewEntry, Order, Page, Paged, TimelinePage, TimelineReads,
    TimelineWrites,
};
use diesel::prelude::*;

use crate::convert::{Out, fault, id, json, member, opt_id, opt_signed};
use crate::schema::{machine, operation, timeline_event};
use crate::store::{Access, PgRows, PgTx};
use crate::time::Stamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = timeline_event)]
pub(crate) struct Entry {
    number: i64,
    kind: String,
    operation_id: Option<String>,
    plan_id: Option<String>,
    principal_id: Option<String>,
    role: Option<String>,
    controller: Option<String>,
    owner_gen: Option<i64>,
    epoch: String,
    act_id: Option<String>,
    at: Stamp,
    data: serde_json::Value,
}

impl Entry {
    pub(crate) fn row(self) -> Out<EntryRow> {
        let controller = match self.controller {
            Some(owner) => Some(ControllerRow {
                owner: Owner::parse(&owner).map_err(|_| fault())?,
                generation: self.owner_gen,
            }),
            None => None,
        };
        Ok(EntryRow {
            number: self.number,
            kind: self.kind,
            operation: opt_id(self.operation_id.as_deref())?,
            plan: opt_id(self.plan_id.as_deref())?,
            actor: opt_signed(self.principal_id.as_deref(), self.role.as_deref())?,
            controller,
            epoch: id(&self.epoch)?,
            act: opt_id(self.act_id.as_deref())?,
            at: self.at.0,
            data: member(&self.data)?,
        })
    }
}

impl<M: Access> TimelineReads for PgRows<M> {
    async fn machine_timeline(
        &mut self,
        of: MachineId,
        order: Order,
        page: &Page<TimelineRevision>,
    ) -> Out<TimelinePage> {
        use timeline_event::dsl;
        // One snapshot for the page and its tail: the newest number is read in the page's own
        // statement, so a reader that follows `tail` misses no entry (PA §9.2).
        let newest = diesel::dsl::sql::<diesel::sql_types::Nullable<diesel::sql_types::BigInt>>(
            "(SELECT max(t.number) FROM timeline_event t WHERE t.machine_id = ",
        )
        .bind::<diesel::sql_types::Text, _>(of.to_string())
        .sql(")");
        let mut query = dsl::timeline_event
            .filter(dsl::machine_id.eq(of.to_string()))
            .select((Entry::as_select(), newest))
            .into_boxed();
        query = match (order, page.after) {
            (Order::Oldest, Some(after)) => query.filter(dsl::number.gt(after.0)),
            (Order::Newest, Some(after)) => query.filter(dsl::number.lt(after.0)),
            (_, None) => query,
        };
        query = match order {
            Order::Oldest => query.order(dsl::number.asc()),
            Order::Newest => query.order(dsl::number.desc()),
        };
        let rows: Vec<(Entry, Option<i64>)> =
            self.load(query.limit(i64::from(page.limit) + 1)).await?;
        let tail = match rows.first() {
            Some((_, tail)) => *tail,
            // An empty page of a machine that has entries still has a tail.
            None => {
                let counted = dsl::timeline_event
                    .filter(dsl::machine_id.eq(of.to_string()))
                    .select(diesel::dsl::max(dsl::number));
                self.one(counted).await?
            }
        };
        let items = rows
            .into_iter()
            .map(|(entry, _)| entry.row())
            .collect::<Out<Vec<_>>>()?;
        let paged = Paged::from_overfetched(items, page.limit);
        Ok(TimelinePage {
            items: paged.items,
            more: paged.more,
            tail: tail.map(TimelineRevision),
        })
    }

    async fn operation_events(
        &mut self,
        of: OperationId,
        page: &Page<i64>,
    ) -> Out<Paged<EntryRow>> {
        use timeline_event::dsl;
        let mut query = dsl::timeline_event
            .filter(dsl::operation_id.eq(of.to_string()))
            .select(Entry::as_select())
            .into_boxed();
        if let Some(after) = page.after {
            query = query.filter(dsl::number.gt(after));
        }
        let rows: Vec<Entry> = self
            .load(
                query
                    .order(dsl::number.asc())
                    .limit(i64::from(page.limit) + 1),
            )
            .await?;
        let items = rows.into_iter().map(Entry::row).collect::<Out<Vec<_>>>()?;
        Ok(Paged::from_overfetched(items, page.limit))
    }
}

impl PgTx {
    async fn insert_entry(
        &mut self,
        of: Option<MachineId>,
        number: i64,
        entry: &NewEntry,
    ) -> Out<()> {
        use timeline_event::dsl;
        let controller = entry.controller.as_ref();
        let insert = diesel::insert_into(dsl::timeline_event).values((
            dsl::machine_id.eq(of.map(|machine| machine.to_string())),
            dsl::operation_id.eq(entry.operation.map(|operation| operation.to_string())),
            dsl::number.eq(number),
            dsl::kind.eq(entry.kind),
            dsl::plan_id.eq(entry.plan.map(|plan| plan.to_string())),
            dsl::principal_id.eq(entry.actor.map(|actor| actor.principal.to_string())),
            dsl::role.eq(entry.actor.map(|actor| actor.role.as_str())),
            dsl::controller.eq(controller.map(|controller| controller.owner.as_str().to_owned())),
            dsl::owner_gen.eq(controller
                .and_then(|controller| controller.generation)
                .map(|generation| generation.0)),
            dsl::epoch.eq(entry.epoch.to_string()),
            dsl::act_id.eq(entry.act.map(|act| act.to_string())),
            dsl::at.eq(Stamp(entry.at)),
            dsl::data.eq(json(&entry.data)),
        ));
        self.execute(insert).await.map(drop)
    }
}

impl TimelineWrites for PgTx {
    async fn append_entry(&mut self, of: MachineId, entry: &NewEntry) -> Out<TimelineRevision> {
        let next = diesel::update(machine::table.find(of.to_string()))
            .set(machine::revision_counter.eq(machine::revision_counter + 1))
            .returning(machine::revision_counter);
        let number: i64 = self.one(next).await?;
        self.insert_entry(Some(of), number, entry).await?;
        Ok(TimelineRevision(number))
    }

    async fn append_event(&mut self, of: OperationId, entry: &NewEntry) -> Out<i64> {
        let next = diesel::update(operation::table.find(of.to_string()))
            .set(operation::last_event.eq(operation::last_event + 1))
            .returning(operation::last_event);
        let number: i64 = self.one(next).await?;
        let entry = NewEntry {
            operation: Some(of),
            ..entry.clone()
        };
        self.insert_entry(None, number, &entry).await?;
        Ok(number)
    }
}
