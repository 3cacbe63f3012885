//! A state that many look at, and the line of those who wait for it to change.
//!
//! The four types of this crate are built on it and on nothing else. It is a lock with a
//! condition variable for tasks, except that it is fair: who waits is served in order of
//! arrival, and only the first in line is woken. Each who leaves the line, served or not,
//! wakes the next, so a change that several can use reaches all of them. Never in this
//! module: what the state means, or a waker that is woken or dropped under the lock (it
//! may drop a task, and that task may stand in this line).

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use crate::sync::{Flaw, Mutex, MutexGuard};

pub(crate) struct Room<S> {
    inner: Mutex<Inner<S>>,
}

struct Inner<S> {
    state: S,
    /// Who waits, by the number drawn at arrival.
    line: BTreeMap<u64, Waker>,
    drawn: u64,
}

impl<S> Room<S> {
    pub(crate) fn new(state: S) -> Self {
        Self {
            inner: Mutex::new(Inner {
                state,
                line: BTreeMap::new(),
                drawn: 0,
            }),
        }
    }

    /// Looks at the state, or changes it in a way that lets nobody go who waits.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut S) -> T) -> T {
        look(&mut self.lock().state)
    }

    /// Changes the state and wakes the first in line.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut S) -> T) -> T {
        let mut inner = self.lock();
        let changed = change(&mut inner.state);
        let first = inner.first();
        drop(inner);
        if !Flaw::ChangeWakesNobody.made() {
            wake(first);
        }
        changed
    }

    /// Waits in line until `step` answers. It is asked under the lock, when this is the
    /// first in line, now and after each change; an answer ends the wait.
    pub(crate) async fn until<T>(&self, mut step: impl FnMut(&mut S) -> Option<T>) -> T {
        let mut place = Place {
            room: self,
            number: None,
        };
        poll_fn(|context| place.poll(context, &mut step)).await
    }

    fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        // What runs under the lock does not panic; a poisoned state is still whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Inner<S> {
    fn first(&self) -> Option<Waker> {
        self.line.first_key_value().map(|(_, waker)| waker.clone())
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// A place in the line, given up when it is dropped.
struct Place<'a, S> {
    room: &'a Room<S>,
    number: Option<u64>,
}

impl<S> Place<'_, S> {
    fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        step: &mut impl FnMut(&mut S) -> Option<T>,
    ) -> Poll<T> {
        let mut inner = self.room.lock();
        let first = inner.line.keys().next().copied();
        let turn = first.is_none() || first == self.number;
        if turn && let Some(answer) = step(&mut inner.state) {
            let own = self.number.take().and_then(|own| inner.line.remove(&own));
            let next = inner.first();
            drop(inner);
            drop(own);
            if !Flaw::TakerWakesNobody.made() {
                wake(next);
            }
            return Poll::Ready(answer);
        }
        if Flaw::LooksBeforeItStandsInLine.made() {
            drop(inner);
            inner = self.room.lock();
        }
        let number = self.number.unwrap_or(inner.drawn);
        if self.number.replace(number).is_none() {
            inner.drawn += 1;
        }
        let before = inner.line.insert(number, context.waker().clone());
        drop(inner);
        drop(before);
        Poll::Pending
    }
}

impl<S> Drop for Place<'_, S> {
    fn drop(&mut self) {
        let Some(own) = self.number else {
            return;
        };
        let mut inner = self.room.lock();
        let own = if Flaw::LeaverStays.made() {
            None
        } else {
            inner.line.remove(&own)
        };
        // It may have been woken for a change that it now leaves to the next.
        let next = inner.first();
        drop(inner);
        drop(own);
        if !Flaw::LeaverWakesNobody.made() {
            wake(next);
        }
    }
}

impl<S: Default> Default for Room<S> {
    fn default() -> Self {
        Self::new(S::default())
    }
}

impl<S> fmt::Debug for Room<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}
