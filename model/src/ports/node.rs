//! The clients of the simulated nodes: readings, and the one request that changes a node.
//!
//! A request is on its own once it is sent: it travels, lands, is refused, held or lost
//! whatever becomes of its caller, who waits at most its deadline. Answers have the classes
//! that `adapters/talos` gives them (facts T 4.1, EaR 3.5). Never in this module: a retry.

mod fleet;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bronzeward_core::attempt::{Recorded, ResponseClass};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::AttemptId;
use bronzeward_core::inventory::Endpoint;
use bronzeward_core::observation::{Health, RunningVersion};
use bronzeward_core::secret::Plaintext;
use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::ports::node::{
    ApplyAnswer, Asked, NodeCode, NodeConfiguration, NodeObservation, NodeReader, NodeWriter,
    NotUsable, ReadLimits, Reading, TalosAccess, Unread, UnreadClass,
};
use bronzeward_engine::world::Permit;

pub use fleet::{
    Node, Nodes, RUNNING, edit, edit_one, install, node_id_text, reboot, reboot_one, replace,
    replace_one, uuid_text,
};

use super::runtime::port;
use crate::change::Outside;
use crate::faults::Fault;
use crate::planted::Defect;
use crate::sched::{Leaf, LeafId, ProcessId, Wait};
use crate::sim::{Sim, State};

/// How long a message travels one way at most, where nothing slows it.
const TRAVEL: Span = Span::millis(50);

fn travel(state: &mut State) -> Span {
    Span::micros(state.rng.i64(1..TRAVEL.as_micros()))
}

port!(
    /// The read-only client.
    SimReader
);

/// What one call of a reading comes to, drawn when it is made.
enum Fate {
    Answered,
    Slow(Span),
    /// No answer: the caller's time-out ends it.
    Silent,
    Refused(Unread),
}

fn status(number: i32, class: UnreadClass) -> Fate {
    Fate::Refused(Unread {
        class,
        code: NodeCode::grpc(number),
    })
}

fn fate(state: &mut State, limit: Span) -> Fate {
    if state.strikes(Fault::NodeSilent) {
        return match state.rng.u8(0..10) {
            0 => status(7, UnreadClass::Denied),
            1 => status(13, UnreadClass::Failed),
            2 => status(5, UnreadClass::Absent),
            3 => Fate::Refused(Unread {
                class: UnreadClass::Malformed,
                code: NodeCode::MALFORMED,
            }),
            4 | 5 => status(14, UnreadClass::Unreachable),
            _ => Fate::Silent,
        };
    }
    if state.strikes(Fault::NodeSlow) {
        let most = limit.as_micros().saturating_mul(2).max(1);
        let length = Span::micros(state.rng.i64(0..most));
        return match length < limit {
            true => Fate::Slow(length),
            false => Fate::Silent,
        };
    }
    Fate::Answered
}

const fn unreachable(code: NodeCode) -> Unread {
    Unread {
        class: UnreadClass::Unreachable,
        code,
    }
}

/// One connection of a reading.
struct Connection<'s> {
    sim: &'s Sim,
    process: ProcessId,
    endpoint: Endpoint,
    /// Set by the first call that found the node unreachable: the rest is not called.
    lost: Option<Unread>,
    /// What a node that is not there ends a call with.
    absent: NodeCode,
}

impl Connection<'_> {
    async fn call<T>(
        &mut self,
        what: &'static str,
        limit: Duration,
        look: impl FnOnce(&Node, DbTime) -> Reading<T>,
    ) -> Reading<T> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        let reading = self.called(what, Span::from(limit), look).await;
        if let Err(unread) = &reading
            && unread.class == UnreadClass::Unreachable
        {
            self.lost = Some(*unread);
        }
        self.absent = NodeCode::CONNECTION_LOST;
        reading
    }

    async fn called<T>(
        &self,
        what: &'static str,
        limit: Span,
        look: impl FnOnce(&Node, DbTime) -> Reading<T>,
    ) -> Reading<T> {
        Leaf::new(self.sim, Wait::Point).await;
        let (fate, now) = {
            let mut state = self.sim.state();
            state.trace(self.process, what);
            (fate(&mut state, limit), state.sched.now())
        };
        match fate {
            Fate::Answered => {}
            Fate::Slow(length) => Leaf::new(self.sim, Wait::Until(now + length)).await,
            Fate::Silent => {
                Leaf::new(self.sim, Wait::Until(now + limit)).await;
                return Err(unreachable(NodeCode::NO_ANSWER));
            }
            Fate::Refused(unread) => return Err(unread),
        }
        let state = self.sim.state();
        let now = state.sched.now();
        let node = state.outside.nodes.at(self.endpoint);
        let node = node.filter(|node| node.up(now));
        match node {
            Some(node) => look(node, now),
            None => Err(unreachable(self.absent)),
        }
    }
}

impl NodeReader for SimReader {
    /// Whatever an operator put there as an access; the simulated nodes accept it.
    fn access(&self, talosconfig: &[u8]) -> Result<TalosAccess, NotUsable> {
        match talosconfig.starts_with(b"talosconfig ") {
            true => Ok(TalosAccess::new(Vec::new(), Vec::new(), Vec::new())),
            false => Err(NotUsable {
                member: "document",
                rule: "is not a talosconfig",
            }),
        }
    }

    async fn observe(
        &self,
        _access: &TalosAccess,
        endpoint: Endpoint,
        asked: Asked,
        limits: ReadLimits,
    ) -> NodeObservation {
        let mut connection = Connection {
            sim: &self.sim,
            process: self.process,
            endpoint,
            lost: None,
            absent: NodeCode::DIAL_FAILED,
        };
        let dialled = connection.call("dials a node", limits.connect, |_, _| Ok(()));
        if let Err(unread) = dialled.await {
            // A status is nothing that a dial ends with.
            let code = match unread.class {
                UnreadClass::Unreachable if unread.code == NodeCode::NO_ANSWER => unread.code,
                _ => NodeCode::DIAL_FAILED,
            };
            return NodeObservation::unread(asked, unreachable(code));
        }
        let identity = connection.call("reads who a node is", limits.call, |node, _| {
            Ok(node.identity.clone())
        });
        let identity = identity.await;
        let version = connection.call("reads a node's version", limits.call, |node, _| {
            RunningVersion::parse(&node.running_version).ok_or(MALFORMED)
        });
        let version = version.await;
        let configuration = match asked.configuration {
            true => {
                let what = "reads a node's configuration";
                let reused = self.sim.state().db.planted == Some(Defect::ReadingReused);
                let read = connection.call(what, limits.call, |node, _| {
                    let shown = match reused {
                        true => node.before(),
                        false => node.configuration(),
                    };
                    Ok(configuration(node, shown))
                });
                Some(read.await)
            }
            false => None,
        };
        let health = match asked.health {
            true => {
                let what = "reads a node's health";
                let read = connection.call(what, limits.call, |node, now| {
                    Ok(Health {
                        running: true,
                        ready: node.ready(now),
                    })
                });
                Some(read.await)
            }
            false => None,
        };
        NodeObservation {
            identity,
            version,
            configuration,
            health,
        }
    }
}

const MALFORMED: Unread = Unread {
    class: UnreadClass::Malformed,
    code: NodeCode::MALFORMED,
};

fn configuration(node: &Node, shown: &Plaintext) -> NodeConfiguration {
    NodeConfiguration::new(
        shown.expose().as_bytes().to_vec(),
        node.resource_version().to_string(),
        node.resource_created().to_owned(),
    )
}

port!(
    /// The mutating client.
    SimWriter
);

/// A request on its way. It holds nothing of its caller but where the answer goes.
struct Request {
    endpoint: Endpoint,
    attempt: AttemptId,
    configuration: Plaintext,
    until: DbTime,
    answer: Arc<OnceLock<ApplyAnswer>>,
    caller: LeafId,
    /// The answer is lost on its way back.
    unanswered: bool,
    /// The connection ends before the answer.
    reset: bool,
}

const fn transport(code: NodeCode) -> ApplyAnswer {
    ApplyAnswer {
        class: ResponseClass::Transport,
        code,
    }
}

fn answered(class: ResponseClass, number: i32) -> ApplyAnswer {
    ApplyAnswer {
        class,
        code: NodeCode::grpc(number),
    }
}

impl NodeWriter for SimWriter {
    type Permit = Permit;

    async fn apply(
        &self,
        permit: Permit,
        _access: &TalosAccess,
        endpoint: Endpoint,
        configuration: &[u8],
        deadline: Duration,
    ) -> ApplyAnswer {
        let recorded = permit.into_inner();
        let attempt = recorded.attempt().id;
        let answer = self.asked(recorded, endpoint, configuration, deadline);
        let answer = answer.await;
        let class = answer.class;
        let heard = Outside::Heard { attempt, class };
        self.sim.state().journal.outside(heard);
        answer
    }
}

impl SimWriter {
    async fn asked(
        &self,
        recorded: Recorded,
        endpoint: Endpoint,
        configuration: &[u8],
        deadline: Duration,
    ) -> ApplyAnswer {
        let until = self.sim.state().sched.now() + Span::from(deadline);
        Leaf::new(&self.sim, Wait::Point).await;
        let answer = Arc::new(OnceLock::new());
        let leaf = {
            let mut state = self.sim.state();
            state.trace(self.process, "sends a configuration");
            let now = state.sched.now();
            let node = state.outside.nodes.at(endpoint);
            if !node.is_some_and(|node| node.up(now)) {
                return transport(NodeCode::DIAL_FAILED);
            }
            let planted = state.db.planted;
            let other = node.filter(|_| planted == Some(Defect::OtherBytesSent));
            let other = other.map(|node| node.configuration().clone());
            let configuration = match &other {
                Some(other) => other.expose().as_bytes(),
                None => configuration,
            };
            let Ok(text) = std::str::from_utf8(configuration) else {
                return answered(ResponseClass::RefusedValidation, 3);
            };
            let attempt = recorded.attempt().id;
            for _ in 0..u8::from(planted == Some(Defect::SentTwice)) {
                state.journal.outside(Outside::Sent {
                    process: self.process,
                    machine: recorded.attempt().machine,
                    recorded: Box::new(recorded.clone()),
                    digest: ConfigDigest::of(configuration),
                });
            }
            state.journal.outside(Outside::Sent {
                process: self.process,
                machine: recorded.attempt().machine,
                recorded: Box::new(recorded),
                digest: ConfigDigest::of(configuration),
            });
            let (leaf, caller) = Leaf::until(&self.sim, &mut state.sched, until);
            let request = Request {
                endpoint,
                attempt,
                configuration: Plaintext::new(text.to_owned()),
                until,
                answer: Arc::clone(&answer),
                caller,
                unanswered: false,
                reset: false,
            };
            send(&mut state, request);
            leaf
        };
        leaf.await;
        answer
            .get()
            .copied()
            .unwrap_or_else(|| transport(NodeCode::NO_ANSWER))
    }
}

/// Gives a request to the network, which decides when it lands and who hears of it.
fn send(state: &mut State, mut request: Request) {
    let now = state.sched.now();
    let mut lands = now + travel(state);
    if let Some(length) = state.outside.nodes.held_for {
        lands = request.until.max(now) + length;
    } else if state.strikes(Fault::NodeHeld) {
        let most = state.outside.nodes.held_most.as_micros().max(1);
        lands = request.until.max(now) + Span::micros(state.rng.i64(0..most));
    } else if state.strikes(Fault::NodeSlow) {
        let left = request.until.as_micros() - now.as_micros();
        lands = now + Span::micros(state.rng.i64(0..left.max(1)));
    }
    request.unanswered = state.strikes(Fault::NodeAnswerLost);
    request.reset = state.strikes(Fault::NodeReset);
    if request.reset && state.rng.bool() {
        state.outside.seen.lost_requests += 1;
        return answer(state, request, transport(NodeCode::CONNECTION_LOST));
    }
    let land = move |state: &mut State| land(state, request);
    state.sched.at(lands, Box::new(land));
}

/// A request arrives at its node.
fn land(state: &mut State, request: Request) {
    let now = state.sched.now();
    let node = state.outside.nodes.at(request.endpoint);
    if !node.is_some_and(|node| node.up(now)) {
        state.outside.seen.lost_requests += 1;
        return answer(state, request, transport(NodeCode::CONNECTION_LOST));
    }
    if state.strikes(Fault::NodeRefuses) {
        state.outside.seen.refusals += 1;
        // Invalid content, a change that needs a boot, another apply under way, a failure.
        let refusal = match state.rng.u8(0..4) {
            0 => answered(ResponseClass::RefusedValidation, 3),
            1 => answered(ResponseClass::RefusedImmediate, 3),
            2 => answered(ResponseClass::Answered, 9),
            _ => answered(ResponseClass::Answered, 13),
        };
        return answer(state, request, refusal);
    }
    if now >= request.until {
        state.outside.seen.late_landings += 1;
    }
    let configuration = request.configuration.clone();
    install(
        state,
        request.endpoint,
        configuration,
        Some(request.attempt),
    );
    let accepted = answered(ResponseClass::Accepted, 0);
    answer(state, request, accepted);
}

/// The answer travels back, if it does. A caller that has gone or given up hears nothing.
fn answer(state: &mut State, request: Request, mut given: ApplyAnswer) {
    if request.unanswered {
        return;
    }
    if request.reset {
        given = transport(NodeCode::CONNECTION_LOST);
    }
    let mut arrives = state.sched.now() + travel(state);
    if state.strikes(Fault::NodeSlow) {
        arrives = arrives + Span::micros(state.rng.i64(0..Span::seconds(10).as_micros()));
    }
    let Request { answer, caller, .. } = request;
    let hear = move |state: &mut State| {
        // Nobody gives one request two answers.
        let _first = answer.set(given);
        state.sched.wake(caller);
    };
    state.sched.at(arrives, Box::new(hear));
}

#[cfg(test)]
mod tests;
