//! A transition that did not happen: the unchanged value and the reason.

/// Boxed, so that a refusal does not make every result as large as a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused<T, E> {
    pub unchanged: Box<T>,
    pub reason: E,
}

impl<T, E> Refused<T, E> {
    pub fn new(unchanged: T, reason: E) -> Self {
        Self {
            unchanged: Box::new(unchanged),
            reason,
        }
    }

    pub(crate) fn map<U>(self, into: impl FnOnce(T) -> U) -> Refused<U, E> {
        Refused::new(into(*self.unchanged), self.reason)
    }
}
