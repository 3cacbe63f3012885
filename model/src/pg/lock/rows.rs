//! Who holds a row, who writes its next version, and which version stands.
//!
//! Never in this module: a wait.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_engine::ports::store::LockMode;

use super::{RowId, conflict};
use crate::pg::TxId;

#[derive(Debug, Default)]
struct Held {
    members: Vec<(TxId, LockMode)>,
    writer: Option<TxId>,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    held: BTreeMap<RowId, Held>,
    of: BTreeMap<TxId, BTreeSet<RowId>>,
    /// The change that made the version of a row that stands; none is its first.
    versions: BTreeMap<RowId, u64>,
    /// How many changes were committed.
    pub changes: u64,
    numbers: BTreeMap<TxId, u64>,
    next: u64,
}

impl Rows {
    pub fn number(&mut self, tx: TxId) {
        let next = &mut self.next;
        self.numbers.entry(tx).or_insert_with(|| {
            *next += 1;
            *next
        });
    }

    pub fn version(&self, row: RowId) -> u64 {
        self.versions.get(&row).copied().unwrap_or(0)
    }

    pub fn writer(&self, row: RowId) -> Option<TxId> {
        self.held.get(&row)?.writer
    }

    pub fn is_held_by(&self, tx: TxId, row: RowId) -> bool {
        let held = self.held.get(&row);
        held.is_some_and(|held| held.members.iter().any(|(member, _)| *member == tx))
    }

    /// Whether the transaction has the row in this mode or a stronger one.
    pub fn holds(&self, tx: TxId, row: RowId, mode: LockMode) -> bool {
        self.held.get(&row).is_some_and(|held| {
            let mut members = held.members.iter();
            members.any(|(member, held)| *member == tx && *held >= mode)
        })
    }

    /// The others whose holds are in the way, in the order in which they are waited for.
    pub fn conflicts(&self, tx: TxId, row: RowId, mode: LockMode) -> Vec<TxId> {
        let Some(held) = self.held.get(&row) else {
            return Vec::new();
        };
        let others = held.members.iter().filter(|(member, _)| *member != tx);
        let conflicts = others.filter(|(_, held)| conflict(mode, *held));
        let mut conflicts: Vec<TxId> = conflicts.map(|(member, _)| *member).collect();
        conflicts.sort_by_key(|member| self.numbers.get(member));
        conflicts.dedup();
        conflicts
    }

    pub fn hold(&mut self, tx: TxId, row: RowId, mode: LockMode) {
        self.number(tx);
        let members = &mut self.held.entry(row).or_default().members;
        if !members.contains(&(tx, mode)) {
            members.push((tx, mode));
            self.of.entry(tx).or_default().insert(row);
        }
    }

    pub fn writes(&mut self, tx: TxId, row: RowId) {
        if let Some(held) = self.held.get_mut(&row) {
            held.writer = Some(tx);
        }
    }

    /// Lets go of everything; what was written stands where it committed.
    pub fn end(&mut self, tx: TxId, committed: bool) {
        self.numbers.remove(&tx);
        for row in self.of.remove(&tx).unwrap_or_default() {
            let Some(held) = self.held.get_mut(&row) else {
                continue;
            };
            held.members.retain(|(member, _)| *member != tx);
            if held.writer == Some(tx) {
                held.writer = None;
                if committed {
                    self.changes += 1;
                    self.versions.insert(row, self.changes);
                }
            }
            if held.members.is_empty() {
                self.held.remove(&row);
            }
        }
    }
}
