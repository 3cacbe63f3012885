//! Tables: committed rows, and beside each the version an open transaction has written.
//!
//! A table is shared until it is written, so that a snapshot or a backup costs no copy of
//! rows. Never in this module: a lock, or what a row means.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;

use super::TxId;

/// Whose view of a table is read: a transaction's, which sees its own writes, or one that
/// sees what is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eye(pub Option<TxId>);

impl Eye {
    pub const COMMITTED: Eye = Eye(None);
}

/// A row's committed version and an open transaction's (none inside: deleted).
#[derive(Debug)]
pub struct Cell<V> {
    committed: Option<Arc<V>>,
    pending: Option<(TxId, Option<Arc<V>>)>,
}

impl<V> Clone for Cell<V> {
    fn clone(&self) -> Self {
        Self {
            committed: self.committed.clone(),
            pending: self.pending.clone(),
        }
    }
}

impl<V> Cell<V> {
    fn seen(&self, eye: Eye) -> Option<&Arc<V>> {
        match (&self.pending, eye.0) {
            (Some((writer, version)), Some(me)) if *writer == me => version.as_ref(),
            _ => self.committed.as_ref(),
        }
    }
}

#[derive(Debug)]
pub struct Table<K, V> {
    cells: Arc<BTreeMap<K, Cell<V>>>,
}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Self {
            cells: Arc::clone(&self.cells),
        }
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self {
            cells: Arc::default(),
        }
    }
}

/// What an insert finds under a key or a unique value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Free,
    /// By a row that the transaction would see.
    Taken,
    /// By a write of another open transaction: its end decides.
    Awaits(TxId),
}

impl<K: Ord + Clone, V> Table<K, V> {
    pub fn get(&self, eye: Eye, key: &K) -> Option<&V> {
        self.cells.get(key)?.seen(eye).map(Arc::as_ref)
    }

    pub fn arc(&self, eye: Eye, key: &K) -> Option<Arc<V>> {
        self.cells.get(key)?.seen(eye).cloned()
    }

    pub fn iter(&self, eye: Eye) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let cells = self.cells.iter();
        cells.filter_map(move |(key, cell)| Some((key, cell.seen(eye)?.as_ref())))
    }

    pub fn range(
        &self,
        eye: Eye,
        keys: impl RangeBounds<K>,
    ) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let cells = self.cells.range(keys);
        cells.filter_map(move |(key, cell)| Some((key, cell.seen(eye)?.as_ref())))
    }

    pub fn values(&self, eye: Eye) -> impl DoubleEndedIterator<Item = &V> {
        self.iter(eye).map(|(_, row)| row)
    }

    /// Whether a row that `matches` stands or may yet stand, other than under `but`: what a
    /// unique index asks. A row that another transaction is about to change counts by either
    /// version until that transaction ends.
    pub fn taken(&self, me: TxId, but: Option<&K>, matches: impl Fn(&V) -> bool) -> Taken {
        for (key, cell) in self.cells.iter() {
            if but == Some(key) {
                continue;
            }
            let version = |row: &Option<Arc<V>>| row.as_deref().is_some_and(&matches);
            match &cell.pending {
                Some((writer, row)) if *writer == me => {
                    if version(row) {
                        return Taken::Taken;
                    }
                }
                Some((writer, row)) => {
                    if version(row) || version(&cell.committed) {
                        return Taken::Awaits(*writer);
                    }
                }
                None => {
                    if version(&cell.committed) {
                        return Taken::Taken;
                    }
                }
            }
        }
        Taken::Free
    }

    /// The same for one key.
    pub fn key_taken(&self, me: TxId, key: &K) -> Taken {
        match self.cells.get(key) {
            None => Taken::Free,
            Some(cell) => match &cell.pending {
                Some((writer, Some(_))) if *writer == me => Taken::Taken,
                Some((writer, None)) if *writer == me => Taken::Free,
                Some((writer, _)) => Taken::Awaits(*writer),
                None if cell.committed.is_some() => Taken::Taken,
                None => Taken::Free,
            },
        }
    }

    /// Writes a version of an open transaction; true for its first of this row.
    pub(super) fn put(&mut self, writer: TxId, key: K, row: Option<V>) -> bool {
        let cell = Arc::make_mut(&mut self.cells).entry(key).or_insert(Cell {
            committed: None,
            pending: None,
        });
        let first = match &cell.pending {
            None => true,
            Some((holder, _)) => {
                assert!(
                    *holder == writer,
                    "a row is written by one transaction at a time"
                );
                false
            }
        };
        cell.pending = Some((writer, row.map(Arc::new)));
        first
    }

    /// Ends an open version; gives back the committed versions before and after.
    pub(super) fn settle(&mut self, key: &K, commit: bool) -> (Option<Arc<V>>, Option<Arc<V>>) {
        let cells = Arc::make_mut(&mut self.cells);
        let Some(cell) = cells.get_mut(key) else {
            return (None, None);
        };
        let before = cell.committed.clone();
        if let Some((_, row)) = cell.pending.take()
            && commit
        {
            cell.committed = row;
        }
        let after = cell.committed.clone();
        if after.is_none() {
            cells.remove(key);
        }
        (before, after)
    }

    /// What is committed, without the open versions: a backup.
    pub fn settled(&self) -> Self {
        if self.cells.values().all(|cell| cell.pending.is_none()) {
            return self.clone();
        }
        let rows = self.cells.iter().filter_map(|(key, cell)| {
            let cell = Cell {
                committed: Some(cell.committed.clone()?),
                pending: None,
            };
            Some((key.clone(), cell))
        });
        Self {
            cells: Arc::new(rows.collect()),
        }
    }
}
