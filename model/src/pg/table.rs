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

/// All unique indexes of a table.
pub const EVERY: u8 = u8::MAX;

/// A version that an open transaction has written (none inside: deleted).
#[derive(Debug)]
struct Pending<V> {
    writer: TxId,
    row: Option<Arc<V>>,
    /// In how many of the table's unique indexes it stands by now.
    entered: u8,
}

impl<V> Clone for Pending<V> {
    fn clone(&self) -> Self {
        Self {
            writer: self.writer,
            row: self.row.clone(),
            entered: self.entered,
        }
    }
}

/// A row's committed version and an open transaction's.
#[derive(Debug)]
pub struct Cell<V> {
    committed: Option<Arc<V>>,
    pending: Option<Pending<V>>,
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
            (Some(pending), Some(me)) if pending.writer == me => pending.row.as_ref(),
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
    /// unique index asks, which is the table's index number `place` from zero. A row that
    /// another transaction is about to change counts by either version until that transaction
    /// ends, by the new one once it stands in the index.
    pub fn taken(
        &self,
        me: TxId,
        but: Option<&K>,
        place: u8,
        matches: impl Fn(&V) -> bool,
    ) -> Taken {
        let mut found = Taken::Free;
        for (key, cell) in self.cells.iter() {
            if but == Some(key) {
                continue;
            }
            let stands = |row: &Option<Arc<V>>| row.as_deref().is_some_and(&matches);
            match &cell.pending {
                Some(pending) if pending.writer == me => {
                    if stands(&pending.row) {
                        return Taken::Taken;
                    }
                }
                Some(pending) => {
                    let new = pending.entered > place && stands(&pending.row);
                    if new || stands(&cell.committed) {
                        found = Taken::Awaits(pending.writer);
                    }
                }
                None => {
                    if stands(&cell.committed) {
                        return Taken::Taken;
                    }
                }
            }
        }
        found
    }

    /// The same for one key, whose index is the table's first.
    pub fn key_taken(&self, me: TxId, key: &K) -> Taken {
        match self.cells.get(key) {
            None => Taken::Free,
            Some(cell) => match &cell.pending {
                Some(pending) if pending.writer == me => match pending.row {
                    Some(_) => Taken::Taken,
                    None => Taken::Free,
                },
                Some(pending) => Taken::Awaits(pending.writer),
                None if cell.committed.is_some() => Taken::Taken,
                None => Taken::Free,
            },
        }
    }

    /// Writes a version of an open transaction; true for its first of this row.
    pub(super) fn put(&mut self, writer: TxId, key: K, row: Option<V>, entered: u8) -> bool {
        let cell = Arc::make_mut(&mut self.cells).entry(key).or_insert(Cell {
            committed: None,
            pending: None,
        });
        let first = cell.pending.is_none();
        if let Some(pending) = &cell.pending {
            assert!(
                pending.writer == writer,
                "a row is written by one transaction at a time"
            );
        }
        cell.pending = Some(Pending {
            writer,
            row: row.map(Arc::new),
            entered,
        });
        first
    }

    /// An open version stands in one more of its table's unique indexes.
    pub fn enter(&mut self, key: &K) {
        let cells = Arc::make_mut(&mut self.cells);
        let pending = cells.get_mut(key).and_then(|cell| cell.pending.as_mut());
        if let Some(pending) = pending {
            pending.entered = pending.entered.saturating_add(1);
        }
    }

    /// Ends an open version; gives back the committed versions before and after.
    pub(super) fn settle(&mut self, key: &K, commit: bool) -> (Option<Arc<V>>, Option<Arc<V>>) {
        let cells = Arc::make_mut(&mut self.cells);
        let Some(cell) = cells.get_mut(key) else {
            return (None, None);
        };
        let before = cell.committed.clone();
        if let Some(pending) = cell.pending.take()
            && commit
        {
            cell.committed = pending.row;
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
