//! Circles of waits: undone by another order of a queue where one does, else by a victim.
//!
//! As PostgreSQL's deadlock detector has it: who waits for a holder must wait; who waits only
//! because another stands before it in a queue may be put before that one. Never in this
//! module: who is the victim.

use std::collections::BTreeSet;

use super::{Locks, On, Queue, Released, conflict};
use crate::pg::TxId;

/// How many places of queues are changed for one circle.
const MOVES: usize = 4;

/// What stands between a transaction and the one it waits for.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: TxId,
    to: TxId,
    /// The queue in which `to` only stands before it.
    before: Option<Queue>,
}

/// What a transaction's waiting has closed.
#[derive(Debug)]
pub enum Knot {
    None,
    /// A circle that another order has undone.
    Untied(Released),
    /// The transactions of a circle.
    Tied(Vec<TxId>),
}

impl Locks {
    /// Looks for a circle through `tx` and undoes it where an order of queues can.
    pub fn untie(&mut self, tx: TxId, choose: impl FnMut(usize) -> usize) -> Knot {
        let Some(circle) = self.circle(tx) else {
            return Knot::None;
        };
        let mut moved = Vec::new();
        if !self.reorder(&[tx], &mut moved) {
            return Knot::Tied(circle.iter().map(|edge| edge.from).collect());
        }
        let mut freed = Vec::new();
        for queue in moved {
            self.pass_on(queue, &mut freed);
        }
        Knot::Untied(self.go_on(freed, choose))
    }

    /// Changes the order of queues until none of these waits in a circle; if none does it,
    /// everything is as it was.
    fn reorder(&mut self, through: &[TxId], moved: &mut Vec<Queue>) -> bool {
        let circle = through.iter().find_map(|tx| self.circle(*tx));
        let Some(circle) = circle else {
            return true;
        };
        if moved.len() == MOVES {
            return false;
        }
        for edge in circle {
            let Some(queue) = edge.before else { continue };
            let Some(fair) = self.queues.get_mut(&queue) else {
                continue;
            };
            let before = fair.queue.clone();
            let place = |of: TxId| before.iter().position(|(waiter, _)| *waiter == of);
            let (Some(from), Some(to)) = (place(edge.from), place(edge.to)) else {
                continue;
            };
            if let Some(waiter) = fair.queue.remove(from) {
                fair.queue.insert(to, waiter);
            }
            moved.push(queue);
            let mut all = through.to_vec();
            all.extend([edge.from, edge.to]);
            if self.reorder(&all, moved) {
                return true;
            }
            moved.pop();
            if let Some(fair) = self.queues.get_mut(&queue) {
                fair.queue = before;
            }
        }
        false
    }

    /// Whom a waiting transaction waits for: those in its way first.
    fn edges(&self, from: TxId) -> Vec<Edge> {
        let Some(waiting) = self.waiting.get(&from) else {
            return Vec::new();
        };
        let edge = |to, before| Edge { from, to, before };
        let queue = match waiting.on {
            On::Nothing => return Vec::new(),
            On::End(to) => return vec![edge(to, None)],
            On::Queue(queue) => queue,
        };
        let Some(fair) = self.queues.get(&queue) else {
            return Vec::new();
        };
        let conflicts = |other: TxId, mode| other != from && conflict(waiting.mode, mode);
        let holders = fair.holders.iter();
        let holders = holders.filter(|(holder, held)| conflicts(*holder, *held));
        let ahead = fair.queue.iter().take_while(|(waiter, _)| *waiter != from);
        let ahead = ahead.filter(|(waiter, asked)| conflicts(*waiter, *asked));
        let holders = holders.map(|(to, _)| edge(*to, None));
        let ahead = ahead.map(|(to, _)| edge(*to, Some(queue)));
        holders.chain(ahead).collect()
    }

    fn circle(&self, tx: TxId) -> Option<Vec<Edge>> {
        let mut path = Vec::new();
        let mut seen = BTreeSet::new();
        self.reach(tx, tx, &mut path, &mut seen).then_some(path)
    }

    fn reach(&self, from: TxId, to: TxId, path: &mut Vec<Edge>, seen: &mut BTreeSet<TxId>) -> bool {
        for edge in self.edges(from) {
            path.push(edge);
            if edge.to == to || (seen.insert(edge.to) && self.reach(edge.to, to, path, seen)) {
                return true;
            }
            path.pop();
        }
        false
    }
}
