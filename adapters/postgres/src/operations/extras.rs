//! What stands beside the rows of a page of plan operations, read for all of them at once.
//!
//! Called by the read half of the operations port. Never in here: a statement for each row.

use std::collections::BTreeMap;

use bronzeward_core::attempt::Attempt;
use bronzeward_core::id::OperationId;
use bronzeward_engine::ports::store::OperationExtras;
use diesel::prelude::*;

use super::{AccountingRecord, AttemptRecord, CheckRecord, Joined, ResponseRecord, whole};
use crate::convert::{Out, id};
use crate::schema::{accounting, attempt, response, timeline_event, use_time_check};
use crate::store::{Access, PgRows};
use crate::timeline::Entry;

/// The entries that say what an operation completed with.
const OUTCOMES: [&str; 2] = ["adoption-record", "applied-change"];

impl<M: Access> PgRows<M> {
    /// The attempts of these operations, each operation's in their order.
    pub(super) async fn attempts_of(&mut self, of: &[OperationId]) -> Out<Vec<Attempt>> {
        let query = attempt::table
            .inner_join(
                use_time_check::table.on(use_time_check::machine_id
                    .eq(attempt::machine_id)
                    .and(use_time_check::revision.eq(attempt::check_revision))),
            )
            .left_join(response::table)
            .left_join(accounting::table)
            .filter(attempt::operation_id.eq_any(texts(of)))
            .order((attempt::operation_id, attempt::number))
            .select((
                AttemptRecord::as_select(),
                CheckRecord::as_select(),
                Option::<ResponseRecord>::as_select(),
                Option::<AccountingRecord>::as_select(),
            ));
        let rows: Vec<Joined> = self.load(query).await?;
        rows.into_iter().map(whole).collect()
    }

    pub(super) async fn extras_of(
        &mut self,
        of: &[OperationId],
    ) -> Out<BTreeMap<OperationId, OperationExtras>> {
        use timeline_event::dsl;
        let mut found: BTreeMap<OperationId, OperationExtras> = BTreeMap::new();
        if of.is_empty() {
            return Ok(found);
        }
        for attempt in self.attempts_of(of).await? {
            let of_it = found.entry(attempt.operation).or_default();
            of_it.attempts.push(attempt);
        }
        let entries = dsl::timeline_event
            .filter(dsl::machine_id.is_not_null())
            .filter(dsl::operation_id.eq_any(texts(of)));
        let last = entries.clone().group_by(dsl::operation_id).select((
            dsl::operation_id.assume_not_null(),
            diesel::dsl::max(dsl::number),
        ));
        let last: Vec<(String, Option<i64>)> = self.load(last).await?;
        for (of, number) in last {
            found.entry(id(&of)?).or_default().last_entry = number;
        }
        let outcomes = entries
            .filter(dsl::kind.eq_any(OUTCOMES))
            .order(dsl::number)
            .select((dsl::operation_id.assume_not_null(), Entry::as_select()));
        let outcomes: Vec<(String, Entry)> = self.load(outcomes).await?;
        for (of, entry) in outcomes {
            // An adoption's record comes before the change of Applied that it makes.
            let of_it = found.entry(id(&of)?).or_default();
            if of_it.outcome.is_none() {
                of_it.outcome = Some(entry.row()?);
            }
        }
        Ok(found)
    }
}

fn texts(of: &[OperationId]) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}
