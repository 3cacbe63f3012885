//! An INSERT with its unique indexes, and a conditional UPDATE by key: what each waits for, and
//! what it looks at again.
//!
//! Both families of tables write through it. Never in this module: a table, or what is written.

use std::sync::Arc;

use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{LockMode, StoreError};

use crate::pg::session::Session;
use crate::pg::{EVERY, Row, RowId, Table, Tables, TxId};

/// A unique index after the primary key: its name, and whether a row takes the new one's value.
pub(crate) type Index<'i, V> = (&'static str, &'i (dyn Fn(&V) -> bool + Sync));

/// How a table is read and written.
pub(crate) struct Access<K: 'static, V: 'static> {
    pub see: fn(&Tables) -> &Table<K, V>,
    pub table: fn(&mut Tables) -> &mut Table<K, V>,
}

impl<K, V> Clone for Access<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Access<K, V> {}

impl Session {
    /// An INSERT, within a statement that has begun and whose row has passed its checks: the
    /// row enters one index after the other, the primary key first, and waits at each for
    /// whoever may yet take or free the value. Others meet it in those it has entered.
    pub(crate) async fn insert_indexed<K, V>(
        &mut self,
        of: Access<K, V>,
        primary: &'static str,
        key: K,
        row: V,
        indexes: &[Index<'_, V>],
    ) -> Result<(), StoreError>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Row<K>,
    {
        if indexes.is_empty() {
            return self.insert_first(of, primary, key, row, EVERY).await;
        }
        self.insert_first(of, primary, key.clone(), row, 1).await?;
        for (place, (name, same)) in (1..).zip(indexes) {
            self.enter(of, &key, place, name, *same).await?;
        }
        Ok(())
    }

    /// A row enters the first `entered` of its table's unique indexes by its primary key.
    pub(crate) async fn insert_first<K, V>(
        &mut self,
        of: Access<K, V>,
        primary: &'static str,
        key: K,
        row: V,
        entered: u8,
    ) -> Result<(), StoreError>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Row<K>,
    {
        let taken = |tables: &Tables, me: TxId| (of.see)(tables).key_taken(me, &key);
        self.unique(primary, taken).await?;
        self.write(|db, me, _| db.put_entering(me, of.table, key, row, entered))
    }

    /// A written row enters an index of its table.
    pub(crate) async fn enter<K, V>(
        &mut self,
        of: Access<K, V>,
        key: &K,
        place: u8,
        name: &'static str,
        same: &(dyn Fn(&V) -> bool + Sync),
    ) -> Result<(), StoreError>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Row<K>,
    {
        let taken = |tables: &Tables, me: TxId| {
            let table = (of.see)(tables);
            table.taken(me, Some(key), place, same)
        };
        self.unique(name, taken).await?;
        self.write(|db, _, _| (of.table)(&mut db.tables).enter(key))
    }

    /// The row of an UPDATE, locked, within a statement that has begun: its latest version, or
    /// none where it is not there or `holds` is false.
    pub(crate) async fn target<K: Ord + Clone, V: Clone>(
        &mut self,
        see: fn(&Tables) -> &Table<K, V>,
        lock: RowId,
        key: &K,
        holds: impl Fn(&V, DbTime) -> bool,
    ) -> Result<Option<Arc<V>>, StoreError> {
        let found = self.change(see, lock, key, holds, |_| (), |_| Vec::new());
        Ok(found.await?.map(|(row, _)| row))
    }

    /// The row of an UPDATE, locked, and its next version, to be put. As PostgreSQL does, a row
    /// that does not fit as the statement sees it is passed over without a wait. One that does
    /// is changed and checked, then locked, and looked at, changed and checked again only where
    /// somebody else has changed it meanwhile: not after a rollback, nor after a lock alone,
    /// whatever the clock says by then.
    pub(crate) async fn change<K: Ord + Clone, V: Clone>(
        &mut self,
        see: fn(&Tables) -> &Table<K, V>,
        lock: RowId,
        key: &K,
        holds: impl Fn(&V, DbTime) -> bool,
        change: impl Fn(&mut V),
        failed: impl Fn(&V) -> Vec<&'static str>,
    ) -> Result<Option<(Arc<V>, V)>, StoreError> {
        let now = self.now();
        let seen = self.look(|tables, eye| see(tables).arc(eye, key));
        let Some(seen) = seen.filter(|row| holds(row, now)) else {
            return Ok(None);
        };
        let changed = |row: &V| {
            let mut next = row.clone();
            change(&mut next);
            next
        };
        let mut next = changed(&seen);
        self.fails(failed(&next))?;
        self.number()?;
        let (relation, bits) = lock;
        self.lock_row(relation, bits, LockMode::NoKeyUpdate).await?;
        let now = self.now();
        let latest = self.look(|tables, eye| see(tables).arc(eye, key));
        let latest = latest.filter(|row| Arc::ptr_eq(row, &seen) || holds(row, now));
        let Some(latest) = latest else {
            return Ok(None);
        };
        if !Arc::ptr_eq(&latest, &seen) {
            next = changed(&latest);
            self.fails(failed(&next))?;
        }
        self.write(|db, id, _| db.locks.writes(id, lock))?;
        Ok(Some((latest, next)))
    }

    /// The checks that a row fails: the first that no test has dropped refuses it.
    pub(crate) fn fails(&mut self, names: Vec<&'static str>) -> Result<(), StoreError> {
        for name in names {
            self.check(name, false)?;
        }
        Ok(())
    }
}
