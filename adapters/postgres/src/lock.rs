//! Row locks: the engine's modes as PostgreSQL's clauses.
//!
//! The lock calls of the store use it. PostgreSQL takes one mode per statement, so a set of
//! rows with modes of their own becomes one statement per run of equal modes, in the order
//! of the identifiers (architecture, "Lock order is a type"). Never in here: which rows an
//! act locks.

use std::collections::BTreeMap;

use bronzeward_engine::ports::store::LockMode;

/// Loads a query under the clause of a mode; `None` reads unlocked, which only a dropped
/// rule asks for. The query says its own order, and its key must not change under it: the
/// server locks rows in the order in which it returns them.
#[macro_export]
macro_rules! load_locked {
    ($transaction:expr, $query:expr, $mode:expr) => {{
        use ::bronzeward_engine::ports::store::LockMode;
        use ::diesel::QueryDsl as _;
        match $mode {
            Some(LockMode::KeyShare) => $transaction.load($query.for_key_share()).await,
            Some(LockMode::Share) => $transaction.load($query.for_share()).await,
            Some(LockMode::NoKeyUpdate) => $transaction.load($query.for_no_key_update()).await,
            Some(LockMode::Update) => $transaction.load($query.for_update()).await,
            None => $transaction.load($query).await,
        }
    }};
}

/// Cuts rows into runs of one mode, keeping the order of the identifiers.
pub fn runs<K: Ord + Clone>(
    rows: &BTreeMap<K, Option<LockMode>>,
) -> Vec<(Option<LockMode>, Vec<K>)> {
    let mut runs: Vec<(Option<LockMode>, Vec<K>)> = Vec::new();
    for (key, mode) in rows {
        match runs.last_mut() {
            Some((last, keys)) if last == mode => keys.push(key.clone()),
            _ => runs.push((*mode, vec![key.clone()])),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    fn mode(number: u8) -> Option<LockMode> {
        match number % 4 {
            0 => Some(LockMode::KeyShare),
            1 => Some(LockMode::Share),
            2 => Some(LockMode::Update),
            _ => None,
        }
    }

    quickcheck! {
        fn runs_keep_every_row_in_order_and_differ_from_their_neighbours(
            rows: BTreeMap<u16, u8>
        ) -> bool {
            let rows = rows.into_iter().map(|(key, number)| (key, mode(number))).collect();
            let cut = runs(&rows);
            let flat: Vec<_> = cut
                .iter()
                .flat_map(|(mode, keys)| keys.iter().map(|key| (*key, *mode)))
                .collect();
            flat == rows.into_iter().collect::<Vec<_>>()
                && cut.windows(2).all(|pair| pair[0].0 != pair[1].0)
        }
    }
}
