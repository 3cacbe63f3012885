//! What waits, and what may go on next: the scheduler's half of the simulated world.
//!
//! Every await of a workflow ends in a [`Leaf`]: a scheduling point that is ready at once, a
//! wait for a time, or a wait for somebody else. The run loop fires one leaf at a time, chosen
//! by the seed, and polls its task; nothing else makes a task move. Never in this module: what
//! an effect is.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bronzeward_core::time::{DbTime, Span};

use crate::sim::{Sim, State};

/// A process of the world: a server, or the world itself, which nobody kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// Operators and what is on its way: never killed, never paused.
    pub const WORLD: ProcessId = ProcessId(0);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

/// A slot and how often it was used, so that a late wake of a leaf that is gone wakes nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafId {
    slot: usize,
    used: u64,
}

/// A task as it is spawned, before the run loop has given it a slot.
pub struct Spawned {
    pub process: ProcessId,
    pub work: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// What happens at a time without any task: a late landing, a lost connection's end.
pub type Action = Box<dyn FnOnce(&mut State) + Send>;

enum Timed {
    Leaf(LeafId),
    Action(Action),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Free,
    /// At this place of the ready list.
    Ready(usize),
    /// Until this time, under this key of the timers.
    Until(DbTime, u64),
    /// Until somebody wakes it.
    Parked,
    Fired,
}

struct Slot {
    used: u64,
    task: TaskId,
    stand: Stand,
    /// Nobody awaits it: it gives a new task its first poll.
    starts: bool,
    /// Who awaits it, where that is a part of its task that is polled only when it is woken.
    waker: Option<Waker>,
}

#[derive(Default)]
pub struct Sched {
    now: i64,
    slots: Vec<Slot>,
    free: Vec<usize>,
    ready: Vec<LeafId>,
    timers: BTreeMap<(DbTime, u64), Timed>,
    next_timer: u64,
    /// The task that is being polled.
    pub(crate) current: Option<TaskId>,
    pub(crate) spawned: Vec<Spawned>,
}

impl Sched {
    pub fn now(&self) -> DbTime {
        DbTime::from_micros(self.now)
    }

    pub fn advance(&mut self, by: Span) {
        self.now = self.now.saturating_add(by.as_micros().max(0));
    }

    /// Moves timers that are due to the ready list, up to the first action that is due,
    /// which is given back.
    pub fn due(&mut self) -> Option<Action> {
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > DbTime::from_micros(self.now) {
                break;
            }
            match entry.remove() {
                Timed::Leaf(leaf) => self.make_ready(leaf),
                Timed::Action(action) => return Some(action),
            }
        }
        None
    }

    /// Jumps to the next timer; false where there is none.
    pub fn jump(&mut self) -> bool {
        let Some(((at, _), _)) = self.timers.first_key_value() else {
            return false;
        };
        self.now = self.now.max(at.as_micros());
        true
    }

    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The task of a ready leaf, by its place.
    pub fn task_at(&self, place: usize) -> TaskId {
        self.slots[self.ready[place].slot].task
    }

    /// Fires the ready leaf at this place: its task is to be polled, once the waker that is
    /// given back has been woken.
    pub fn fire(&mut self, place: usize) -> (TaskId, Option<Waker>) {
        let leaf = self.remove_ready(place);
        let slot = &mut self.slots[leaf.slot];
        if slot.starts {
            slot.stand = Stand::Free;
            slot.starts = false;
            self.free.push(leaf.slot);
        } else {
            slot.stand = Stand::Fired;
        }
        let slot = &mut self.slots[leaf.slot];
        (slot.task, slot.waker.take())
    }

    /// Leaves a ready leaf until a time: its process is paused, or its step is slow.
    pub fn postpone(&mut self, place: usize, until: DbTime) {
        let leaf = self.remove_ready(place);
        self.set_timer(leaf, until);
    }

    fn remove_ready(&mut self, place: usize) -> LeafId {
        let leaf = self.ready.swap_remove(place);
        if let Some(moved) = self.ready.get(place) {
            self.slots[moved.slot].stand = Stand::Ready(place);
        }
        leaf
    }

    /// A leaf of this task that is ready at once: how a task gets its first poll.
    pub fn start(&mut self, task: TaskId) {
        let leaf = self.new_leaf(task);
        self.slots[leaf.slot].starts = true;
        self.make_ready(leaf);
    }

    /// Forgets whatever would give these tasks their first poll: they are dropped.
    pub fn unstart(&mut self, gone: &dyn Fn(TaskId) -> bool) {
        for place in 0..self.slots.len() {
            if !self.slots[place].starts || !gone(self.slots[place].task) {
                continue;
            }
            let used = self.slots[place].used;
            self.slots[place].starts = false;
            self.forget(LeafId { slot: place, used });
        }
    }

    fn new_leaf(&mut self, task: TaskId) -> LeafId {
        match self.free.pop() {
            Some(slot) => {
                let entry = &mut self.slots[slot];
                entry.used += 1;
                entry.task = task;
                entry.stand = Stand::Parked;
                LeafId {
                    slot,
                    used: entry.used,
                }
            }
            None => {
                self.slots.push(Slot {
                    used: 0,
                    task,
                    stand: Stand::Parked,
                    starts: false,
                    waker: None,
                });
                LeafId {
                    slot: self.slots.len() - 1,
                    used: 0,
                }
            }
        }
    }

    fn make_ready(&mut self, leaf: LeafId) {
        let place = self.ready.len();
        self.slots[leaf.slot].stand = Stand::Ready(place);
        self.ready.push(leaf);
    }

    fn set_timer(&mut self, leaf: LeafId, at: DbTime) {
        let key = self.next_timer;
        self.next_timer += 1;
        self.slots[leaf.slot].stand = Stand::Until(at, key);
        self.timers.insert((at, key), Timed::Leaf(leaf));
    }

    /// Runs an action at a time.
    pub fn at(&mut self, at: DbTime, action: Action) {
        let key = self.next_timer;
        self.next_timer += 1;
        self.timers.insert((at, key), Timed::Action(action));
    }

    /// Wakes a leaf that waits for a time or for somebody. A leaf that is gone, ready or
    /// fired is left alone.
    pub fn wake(&mut self, leaf: LeafId) {
        let Some(slot) = self.slots.get(leaf.slot) else {
            return;
        };
        if slot.used != leaf.used {
            return;
        }
        match slot.stand {
            Stand::Parked => self.make_ready(leaf),
            Stand::Until(at, key) => {
                self.timers.remove(&(at, key));
                self.make_ready(leaf);
            }
            Stand::Free | Stand::Ready(_) | Stand::Fired => {}
        }
    }

    fn fired(&self, leaf: LeafId) -> bool {
        let slot = &self.slots[leaf.slot];
        slot.used == leaf.used && slot.stand == Stand::Fired
    }

    fn forget(&mut self, leaf: LeafId) {
        let slot = &self.slots[leaf.slot];
        if slot.used != leaf.used {
            return;
        }
        match slot.stand {
            Stand::Ready(place) => {
                self.remove_ready(place);
            }
            Stand::Until(at, key) => {
                self.timers.remove(&(at, key));
            }
            Stand::Parked | Stand::Fired => {}
            Stand::Free => return,
        }
        self.slots[leaf.slot].stand = Stand::Free;
        self.slots[leaf.slot].waker = None;
        self.free.push(leaf.slot);
    }
}

/// How a leaf begins to wait.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// A scheduling point.
    Point,
    Until(DbTime),
    /// Until [`Sched::wake`].
    Parked,
}

/// One await.
pub struct Leaf<'s> {
    sim: &'s Sim,
    wait: Wait,
    id: Option<LeafId>,
}

impl<'s> Leaf<'s> {
    pub fn new(sim: &'s Sim, wait: Wait) -> Self {
        Self {
            sim,
            wait,
            id: None,
        }
    }

    /// A parked leaf of the task that is being polled, and its name for who is to wake it.
    pub fn parked(sim: &'s Sim, sched: &mut Sched) -> (Self, LeafId) {
        Self::begun(sim, sched, Wait::Parked)
    }

    /// The same, that a time wakes too.
    pub fn until(sim: &'s Sim, sched: &mut Sched, at: DbTime) -> (Self, LeafId) {
        Self::begun(sim, sched, Wait::Until(at))
    }

    fn begun(sim: &'s Sim, sched: &mut Sched, wait: Wait) -> (Self, LeafId) {
        let id = begin(sched, wait);
        let leaf = Self {
            id: Some(id),
            ..Self::new(sim, wait)
        };
        (leaf, id)
    }
}

fn begin(sched: &mut Sched, wait: Wait) -> LeafId {
    let task = sched.current.expect("a leaf is polled by the run loop");
    let leaf = sched.new_leaf(task);
    match wait {
        Wait::Point => sched.make_ready(leaf),
        Wait::Until(at) => sched.set_timer(leaf, at),
        Wait::Parked => {}
    }
    leaf
}

impl Future for Leaf<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.sim.state();
        let id = match this.id {
            None => begin(&mut state.sched, this.wait),
            Some(id) if state.sched.fired(id) => {
                state.sched.forget(id);
                this.id = None;
                return Poll::Ready(());
            }
            Some(id) => id,
        };
        this.id = Some(id);
        state.sched.slots[id.slot].waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Leaf<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.sim.state().sched.forget(id);
        }
    }
}
