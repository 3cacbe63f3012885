//! What statements on these tables have in common: an insert, a conditional update, a
//! locking SELECT.
//!
//! Used by this folder. Never in here: a table's own columns.

use std::sync::Arc;

use bronzeward_core::id::{ActId, HeadId, Id, Kind, ObservationId};
use bronzeward_core::observation::Observation;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{Guard, LockMode, Page, StoreError};

use super::Out;
use crate::pg::session::Session;
use crate::pg::{Eye, Relation, Row, Table, Tables};
use crate::store::guard::Columns;
use crate::store::writes::{Access, Index};

/// A row of one table, found by its type and its key's.
pub(super) trait Kept<K>: Row<K> + Clone {
    fn of(tables: &Tables) -> &Table<K, Self>;
    fn of_mut(tables: &mut Tables) -> &mut Table<K, Self>;
}

macro_rules! kept {
    ($($row:ty, $key:ty => $family:ident.$table:ident;)+) => {
        $(impl $crate::store::execution::statement::Kept<$key> for $row {
            fn of(tables: &$crate::pg::Tables) -> &$crate::pg::Table<$key, Self> {
                &tables.$family.$table
            }

            fn of_mut(tables: &mut $crate::pg::Tables) -> &mut $crate::pg::Table<$key, Self> {
                &mut tables.$family.$table
            }
        })+
    };
}
pub(super) use kept;

/// How a table is read and written.
pub(super) fn access<K: 'static, V: Kept<K>>() -> Access<K, V> {
    Access {
        see: V::of,
        table: V::of_mut,
    }
}

/// A row's name in the lock manager.
pub(super) fn row<K: Kind>(relation: Relation, id: Id<K>) -> (Relation, u128) {
    (relation, id.bits())
}

pub(super) fn maybe<K: Kind>(relation: Relation, id: Option<Id<K>>) -> Option<(Relation, u128)> {
    id.map(|id| row(relation, id))
}

pub(super) fn head_row(id: HeadId) -> (Relation, u128) {
    let bits = match id {
        HeadId::Assignment(id) => id.bits(),
        HeadId::Fragment(id) => id.bits(),
        HeadId::Profile(id) => id.bits(),
    };
    (Relation::Head, bits)
}

/// Keys of one page in the order of the key.
pub(super) fn after<K>(page: &Page<K>) -> (std::ops::Bound<&K>, std::ops::Bound<&K>) {
    let low = page
        .after
        .as_ref()
        .map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
    (low, std::ops::Bound::Unbounded)
}

/// One more than the page holds tells whether more follow.
pub(super) fn overfetch<K>(page: &Page<K>) -> usize {
    usize::from(page.limit) + 1
}

impl Session {
    /// Writes a version within a statement that has begun.
    pub(super) fn put_kept<K, V>(&mut self, key: K, version: V) -> Out<()>
    where
        K: Ord + Clone + Send + 'static,
        V: Kept<K>,
    {
        self.write(|db, id, _| db.put(id, V::of_mut, key, version))
    }

    /// Inserts under a free primary key, within a statement that has begun.
    pub(super) async fn insert_kept<K, V>(
        &mut self,
        key: K,
        version: V,
        primary: &'static str,
    ) -> Out<()>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Kept<K>,
    {
        self.insert_unique_kept(key, version, primary, &[]).await
    }

    /// The same with further unique indexes.
    pub(super) async fn insert_unique_kept<K, V>(
        &mut self,
        key: K,
        version: V,
        primary: &'static str,
        indexes: &[Index<'_, V>],
    ) -> Out<()>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Kept<K>,
    {
        self.insert_indexed(access(), primary, key, version, indexes)
            .await
    }

    /// The row of an UPDATE by key, locked, or none where it is not there or does not hold.
    pub(super) async fn target_kept<K, V>(
        &mut self,
        lock: (Relation, u128),
        key: &K,
        holds: impl Fn(&V, DbTime) -> bool + Send,
    ) -> Out<Option<V>>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Kept<K>,
    {
        let found = self.target(V::of, lock, key, holds).await?;
        Ok(found.map(|row| V::clone(&row)))
    }

    /// The version of a row that a statement sees now.
    pub(super) fn kept_version<K, V>(&self, key: &K) -> Option<Arc<V>>
    where
        K: Ord + Clone,
        V: Kept<K>,
    {
        self.look(|tables, eye| V::of(tables).arc(eye, key))
    }

    /// A locking SELECT: the rows that `ids` finds when the statement begins, locked one after
    /// the other in the order of their keys, each as it is under its lock. A mode that is none
    /// reads without a lock.
    pub(super) async fn lock_kept<K, V>(
        &mut self,
        ids: impl IntoIterator<Item = K>,
        lock: impl Fn(&K) -> (Relation, u128) + Send,
        mode: Option<LockMode>,
    ) -> Out<Vec<Arc<V>>>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Kept<K>,
    {
        let mut ids: Vec<K> = ids.into_iter().collect();
        let seen = self.seen();
        ids.sort();
        let there = |id: &K| self.kept_version::<K, V>(id).is_some();
        ids.retain(there);
        let mut rows = Vec::with_capacity(ids.len());
        for id in ids {
            if let Some(mode) = mode {
                self.lock_found(lock(&id), mode, seen).await?;
            }
            rows.extend(self.kept_version::<K, V>(&id));
        }
        Ok(rows)
    }

    /// A foreign key: the row it names must stand, and is locked FOR KEY SHARE.
    pub(super) async fn parent_kept<K, V>(
        &mut self,
        key: Option<Id<K>>,
        relation: Relation,
        constraint: &'static str,
    ) -> Out<()>
    where
        K: Kind,
        Id<K>: Ord + Clone,
        V: Kept<Id<K>>,
    {
        let Some(key) = key else { return Ok(()) };
        self.refers_to_kept::<_, V>(&key, constraint)?;
        self.refer([row(relation, key)]).await
    }

    /// Foreign keys to readings.
    pub(super) fn refers_to_readings(
        &mut self,
        named: impl IntoIterator<Item = (ObservationId, &'static str)>,
    ) -> Out<()> {
        named.into_iter().try_for_each(|(reading, constraint)| {
            self.refers_to_kept::<_, Observation>(&reading, constraint)
        })
    }

    /// Whether a foreign key's row is there, for this transaction.
    pub(super) fn refers_to_kept<K, V>(&mut self, key: &K, constraint: &'static str) -> Out<()>
    where
        K: Ord + Clone,
        V: Kept<K>,
    {
        let there = self.look(|tables, eye| V::of(tables).get(eye, key).is_some());
        self.check(constraint, there)
    }
}

impl Session {
    /// The foreign key to an act, which is looked at when the transaction commits.
    pub(super) fn await_act_of(&mut self, act: ActId, constraint: &'static str) -> Out<()> {
        self.write(|db, id, _| {
            db.defer(id, move |tables, eye| {
                let recorded = tables.authoring.act_order.get(eye, &act);
                recorded.map(drop).ok_or(constraint)
            });
        })
    }
}

/// A guard on the columns of a row.
pub(super) fn satisfies(columns: Columns<'_>, guard: &Guard, now: DbTime) -> bool {
    columns.satisfy(guard, now)
}

/// One row of an UPDATE that must find one.
pub(super) fn one<V>(found: Option<V>) -> Out<V> {
    found.ok_or(StoreError::Fault)
}

/// The rows of one owner in a table whose key begins with it.
pub(super) fn owned<O, V>(
    table: &Table<(O, i64), V>,
    eye: Eye,
    owner: O,
    from: i64,
    to: i64,
) -> impl DoubleEndedIterator<Item = (i64, &V)>
where
    O: Ord + Copy,
{
    let rows = table.range(eye, (owner, from)..=(owner, to));
    rows.map(|((_, number), version)| (*number, version))
}
