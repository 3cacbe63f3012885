//! Statements on the rows of one table: locking reads, inserts, conditional updates.
//!
//! How PostgreSQL carries each out stands here once: what a statement sees, which locks it
//! waits for, and what it evaluates again after a wait. Never in this module: a table's
//! meaning.

use std::ops::Bound;

use bronzeward_core::id::HeadId;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{LockMode, Page, StoreError, Written};

use crate::pg::session::Session;
use crate::pg::{Eye, Lockable, Relation, Row, Table, Tables, Taken, TxId};
use crate::store::guard::written;
use crate::store::writes::{Access, Index};

/// A table, how its rows are locked, and the checks of its schema: the names of those that a
/// row fails.
pub(super) struct Of<K: 'static, V: 'static> {
    pub relation: Relation,
    pub bits: fn(&K) -> u128,
    pub see: fn(&Tables) -> &Table<K, V>,
    pub table: fn(&mut Tables) -> &mut Table<K, V>,
    pub failed: fn(&V) -> Vec<&'static str>,
}

impl<K, V> Of<K, V> {
    fn access(&self) -> Access<K, V> {
        Access {
            see: self.see,
            table: self.table,
        }
    }
}

/// A table of the family as an [`Of`].
macro_rules! of {
    ($name:ident: $table:ident, $key:ty => $row:ty, $relation:ident, $bits:expr) => {
        of!($name: $table, $key => $row, $relation, $bits, |_| Vec::new());
    };
    ($name:ident: $table:ident, $key:ty => $row:ty, $relation:ident, $bits:expr, $failed:expr) => {
        pub(super) const $name: crate::store::authoring::rows::Of<$key, $row> =
            crate::store::authoring::rows::Of {
                relation: crate::pg::Relation::$relation,
                bits: $bits,
                see: |tables| &tables.authoring.$table,
                table: |tables| &mut tables.authoring.$table,
                failed: $failed,
            };
    };
}
pub(super) use of;

/// 128 bits of some text, the same in every run: FNV-1a over its parts with their lengths.
pub(super) fn digest(parts: &[&[u8]]) -> u128 {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash ^= u128::from(*byte);
            hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    };
    for part in parts {
        add(&part.len().to_be_bytes());
        add(part);
    }
    hash
}

/// A head's place among the locks.
pub(crate) fn head_bits(id: &HeadId) -> u128 {
    match id {
        HeadId::Assignment(id) => id.bits(),
        HeadId::Fragment(id) => id.bits(),
        HeadId::Profile(id) => id.bits(),
    }
}

/// The keys after a page's beginning.
pub(super) fn following<K: Copy>(page: &Page<K>) -> (Bound<K>, Bound<K>) {
    (
        page.after.map_or(Bound::Unbounded, Bound::Excluded),
        Bound::Unbounded,
    )
}

/// How many rows a query for a page asks for: one more than it holds.
pub(super) fn overfetch(limit: u16) -> usize {
    usize::from(limit) + 1
}

impl Session {
    /// What a SELECT … FOR … does in a statement that has begun: the rows it sees by their
    /// keys, locked in that order, each as it stands once it is locked. Without a mode they
    /// are read only.
    pub(super) async fn select_rows<K, V>(
        &mut self,
        of: &Of<K, V>,
        find: impl FnOnce(&Table<K, V>, Eye) -> Vec<K>,
        mode: Option<LockMode>,
    ) -> Result<Vec<V>, StoreError>
    where
        K: Ord + Clone,
        V: Clone,
    {
        let seen = self.seen();
        let keys = self.look(|tables, eye| find((of.see)(tables), eye));
        let mut rows = Vec::with_capacity(keys.len());
        for key in keys {
            if let Some(mode) = mode {
                let bits = (of.bits)(&key);
                self.lock_found((of.relation, bits), mode, seen).await?;
            }
            rows.extend(self.look(|tables, eye| (of.see)(tables).get(eye, &key).cloned()));
        }
        Ok(rows)
    }

    /// The same for given keys, in their order.
    pub(super) async fn select_keys<K, V>(
        &mut self,
        of: &Of<K, V>,
        keys: impl IntoIterator<Item = K>,
        mode: Option<LockMode>,
    ) -> Result<Vec<V>, StoreError>
    where
        K: Ord + Clone,
        V: Clone,
    {
        let keys: Vec<K> = keys.into_iter().collect();
        let stand = |table: &Table<K, V>, eye: Eye| {
            let mut keys = keys;
            keys.retain(|key| table.get(eye, key).is_some());
            keys
        };
        self.select_rows(of, stand, mode).await
    }

    /// What an INSERT does to its table, in a statement that has begun: checks, then the
    /// primary key.
    pub(super) async fn insert_row<K, V>(
        &mut self,
        of: &Of<K, V>,
        primary: &'static str,
        key: K,
        row: V,
    ) -> Result<(), StoreError>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Row<K>,
    {
        self.insert_unique(of, primary, key, row, &[]).await
    }

    /// The same with further unique indexes.
    pub(super) async fn insert_unique<K, V>(
        &mut self,
        of: &Of<K, V>,
        primary: &'static str,
        key: K,
        row: V,
        indexes: &[Index<'_, V>],
    ) -> Result<(), StoreError>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Row<K>,
    {
        self.fails((of.failed)(&row))?;
        self.insert_indexed(of.access(), primary, key, row, indexes)
            .await
    }

    /// Whether an INSERT … ON CONFLICT meets a row, once whoever writes one has ended.
    pub(super) async fn meets(
        &mut self,
        taken: impl Fn(&Tables, TxId) -> Taken,
    ) -> Result<bool, StoreError> {
        loop {
            match self.write(|db, me, _| taken(&db.tables, me))? {
                Taken::Free => return Ok(false),
                Taken::Taken => return Ok(true),
                Taken::Awaits(other) => self.lock(Lockable::End(other), LockMode::Share).await?,
            }
        }
    }

    /// What an UPDATE by key does, in a statement that has begun.
    pub(super) async fn update_row<K, V>(
        &mut self,
        of: &Of<K, V>,
        key: K,
        fits: impl Fn(&V, DbTime) -> bool,
        change: impl Fn(&mut V),
    ) -> Result<Written, StoreError>
    where
        K: Ord + Clone + Send + 'static,
        V: Row<K> + Clone,
    {
        let lock = (of.relation, (of.bits)(&key));
        let found = self.change(of.see, lock, &key, fits, change, of.failed);
        let Some((_, row)) = found.await? else {
            return Ok(written(false));
        };
        self.write(|db, me, _| db.put(me, of.table, key, row))?;
        Ok(written(true))
    }

    /// A foreign key: the row it names must stand, and is locked FOR KEY SHARE.
    pub(super) async fn parent<K: Ord + Clone, V>(
        &mut self,
        of: &Of<K, V>,
        key: &K,
        constraint: &'static str,
    ) -> Result<(), StoreError> {
        let stands = self.look(|tables, eye| (of.see)(tables).get(eye, key).is_some());
        self.check(constraint, stands)?;
        let bits = (of.bits)(key);
        self.lock_row(of.relation, bits, LockMode::KeyShare).await
    }

    /// A foreign key to a row that nobody locks.
    pub(super) fn stands<K: Ord + Clone, V>(
        &mut self,
        see: fn(&Tables) -> &Table<K, V>,
        key: &K,
        constraint: &'static str,
    ) -> Result<(), StoreError> {
        let stands = self.look(|tables, eye| see(tables).get(eye, key).is_some());
        self.check(constraint, stands)
    }

    /// The foreign key to an act, which is checked at the commit.
    pub(super) fn await_act(
        &mut self,
        act: bronzeward_core::id::ActId,
        constraint: &'static str,
    ) -> Result<(), StoreError> {
        self.write(|db, me, _| {
            db.defer(me, move |tables, eye| {
                match tables.authoring.act_order.get(eye, &act) {
                    Some(_) => Ok(()),
                    None => Err(constraint),
                }
            });
        })
    }
}
