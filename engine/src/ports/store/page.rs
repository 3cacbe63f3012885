//! Pages of a collection, in the order of a key that never moves.

/// Where a page begins and how long it may be. `after` is the last key of the page before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<K> {
    pub after: Option<K>,
    /// 1 to 500; the edge has checked it (PA §9.1).
    pub limit: u16,
}

/// A page's items, and whether more follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paged<T> {
    pub items: Vec<T>,
    pub more: bool,
}

impl<T> Paged<T> {
    /// From a query that asked for one row more than the page holds.
    pub fn from_overfetched(mut items: Vec<T>, limit: u16) -> Self {
        let more = items.len() > usize::from(limit);
        items.truncate(usize::from(limit));
        Self { items, more }
    }
}
