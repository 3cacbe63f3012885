//! An operation as EaR 3.3 to 5 tell of it: what was sent, answered, decided and read, and what
//! may follow from that. It asks no decision of the code.

use bronzeward_core::attempt::ResponseClass;
use bronzeward_core::observation::Purpose;
use bronzeward_core::operation::{OperationState, TakeoverRefusal};

use crate::furniture::{EXPIRY, MAX_ATTEMPTS, VERIFICATION};

pub const LEASE: i64 = 30;

/// What a node may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    Before,
    Artifact,
    Other,
}

/// One request: how it ended, and when it was accounted for.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at: i64,
    pub class: Option<ResponseClass>,
    pub accounted: Option<i64>,
}

/// One reading; it counts as of its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub purpose: Purpose,
    pub basis: i64,
    pub began: i64,
    pub shows: Option<Shows>,
    pub well: Option<bool>,
}

pub struct Model {
    pub state: OperationState,
    pub sent: Vec<Sent>,
    pub readings: Vec<Reading>,
    pub generation: i64,
    pub lease_until: i64,
    /// A safe retry, as found at a revision under a generation.
    pub safe: Option<(i64, i64)>,
    /// The latest response, change of owner or classification.
    pub latest: i64,
    /// The entry that put the operation in its state.
    pub since: i64,
    pub withdrawn: bool,
    pub frozen: bool,
    /// How many requests a plan has; fewer in a control.
    pub most: usize,
}

/// What EaR 5 makes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    Rejected,
    Failed,
    SafeToRetry,
    Cancelled,
    Unresolved,
}

impl Model {
    pub fn new() -> Self {
        Model {
            state: OperationState::Committed,
            sent: Vec::new(),
            readings: Vec::new(),
            generation: 1,
            lease_until: LEASE,
            safe: None,
            latest: 0,
            since: 0,
            withdrawn: false,
            frozen: false,
            most: MAX_ATTEMPTS,
        }
    }

    pub fn authorised(&self, now: i64) -> bool {
        !self.withdrawn && now < EXPIRY
    }

    /// The numbers of the comparisons that refuse an attempt (EaR 3.3).
    pub fn against_attempt(&self, now: i64, shows: Shows, own: bool) -> Vec<u8> {
        let retry = !self.sent.is_empty();
        let met = shows == Shows::Before || retry && shows == Shows::Artifact;
        let sends = match self.state {
            OperationState::Committed => true,
            OperationState::Unresolved => {
                self.safe.is_some_and(|(_, by)| by == self.generation) && own
            }
            OperationState::Sending
            | OperationState::Verifying
            | OperationState::Completed
            | OperationState::Rejected
            | OperationState::Failed
            | OperationState::Cancelled => false,
        };
        let unresolved = self.state == OperationState::Unresolved;
        let since = self.safe.is_some_and(|(at, _)| self.latest > at);
        [
            (1, !self.authorised(now)),
            (3, !met),
            (6, self.frozen),
            (7, !sends || !own),
            (8, unresolved && retry && since),
            (9, self.sent.len() >= self.most),
        ]
        .into_iter()
        .filter(|(_, refuses)| *refuses)
        .map(|(number, _)| number)
        .collect()
    }

    pub fn send(&mut self, now: i64, revision: i64) {
        self.sent.push(Sent {
            at: now,
            class: None,
            accounted: None,
        });
        self.moves(OperationState::Sending, revision);
    }

    pub fn moves(&mut self, to: OperationState, revision: i64) {
        self.state = to;
        self.since = revision;
        if to != OperationState::Unresolved {
            return;
        }
        self.safe = None;
    }

    /// An answer of the request under way (EaR 3.5, 4).
    pub fn answered(&mut self, class: ResponseClass, revision: i64) {
        let definitive = |sent: &Sent| sent.class == Some(ResponseClass::RefusedValidation);
        if let Some(last) = self.sent.last_mut() {
            last.class = Some(class);
            let accounts = class != ResponseClass::Transport;
            last.accounted = accounts.then_some(revision);
        }
        self.latest = revision;
        let to = match class {
            ResponseClass::Accepted => OperationState::Verifying,
            ResponseClass::RefusedValidation if self.sent.iter().all(definitive) => {
                OperationState::Rejected
            }
            _ => OperationState::Unresolved,
        };
        self.moves(to, revision);
    }

    /// Every reason against a takeover (EaR 3.4).
    pub fn against_takeover(&self, seen: i64, pass: Option<i64>) -> Vec<TakeoverRefusal> {
        let reasons = [
            (self.state.is_terminal(), TakeoverRefusal::Terminal),
            (seen != self.generation, TakeoverRefusal::Generation),
            (
                pass.is_some_and(|now| now < self.lease_until),
                TakeoverRefusal::Live,
            ),
        ];
        let holding = reasons.into_iter().filter(|(holds, _)| *holds);
        holding.map(|(_, reason)| reason).collect()
    }

    pub fn taken(&mut self, now: i64, revision: i64) {
        self.generation += 1;
        self.lease_until = now + LEASE;
        self.latest = revision;
        self.moves(OperationState::Unresolved, revision);
    }

    /// When the last request was accounted for; none while one is open, or none was sent.
    fn accounted(&self) -> Option<i64> {
        let all: Option<Vec<i64>> = self.sent.iter().map(|sent| sent.accounted).collect();
        all?.into_iter().max()
    }

    /// Whether a later reading shows something else.
    fn spoken_against(&self, reading: &Reading, shows: Shows) -> bool {
        let later = self.readings.iter().filter(|one| one.basis > reading.basis);
        later
            .into_iter()
            .any(|one| one.shows.is_some_and(|other| other != shows))
    }

    pub fn deadline(&self) -> Option<i64> {
        self.sent.last().map(|sent| sent.at + VERIFICATION)
    }

    pub fn outcome(&self, now: i64) -> Outcome {
        let any = |class| self.sent.iter().any(|sent| sent.class == Some(class));
        let refused = |sent: &Sent| sent.class == Some(ResponseClass::RefusedValidation);
        if !self.sent.is_empty() && self.sent.iter().all(refused) {
            return Outcome::Rejected;
        }
        if self.sent.is_empty() && !self.authorised(now) {
            return Outcome::Cancelled;
        }
        if !self.sent.is_empty() && self.accounted().is_none() {
            return Outcome::Unresolved;
        }
        // A definitive refusal, an acceptance: never sent again.
        let once = any(ResponseClass::Accepted)
            || any(ResponseClass::RefusedValidation)
            || any(ResponseClass::RefusedImmediate);
        let again = !once
            && self.as_before()
            && self.sent.len() < self.most
            && self.authorised(now)
            && !self.frozen;
        match (self.verified(now), again) {
            (Some(Outcome::Failed), true) | (None, true) => Outcome::SafeToRetry,
            (Some(outcome), _) => outcome,
            (None, false) => Outcome::Unresolved,
        }
    }

    /// The latest reading since everything is accounted for shows the node as it was.
    fn as_before(&self) -> bool {
        let after = self.accounted().unwrap_or(0).max(self.since);
        let readings = self.readings.iter().filter(|one| {
            matches!(one.purpose, Purpose::Completion | Purpose::Recovery)
                && one.basis > after
                && one.shows.is_some()
        });
        let latest = readings.max_by_key(|one| one.basis);
        latest.is_some_and(|one| {
            one.shows == Some(Shows::Before) && !self.spoken_against(one, Shows::Before)
        })
    }

    /// What the completion observations say, the latest that says anything.
    fn verified(&self, now: i64) -> Option<Outcome> {
        let after = self.accounted()?;
        let completion = |one: &&Reading| one.purpose == Purpose::Completion && one.basis > after;
        let mut readings: Vec<&Reading> = self.readings.iter().filter(completion).collect();
        readings.sort_by_key(|one| std::cmp::Reverse(one.basis));
        readings.into_iter().find_map(|one| {
            let shows = one.shows?;
            let end = match (shows, one.well) {
                (Shows::Artifact, Some(true)) => Outcome::Completed,
                (Shows::Artifact, Some(false)) => return self.sick(one, now),
                (Shows::Artifact, None) => return None,
                (Shows::Before | Shows::Other, _) => Outcome::Failed,
            };
            Some(match self.spoken_against(one, shows) {
                true => Outcome::Unresolved,
                false => end,
            })
        })
    }

    /// Bad health contradicts as the last word before the deadline; before that it settles, and
    /// after it nothing is said.
    fn sick(&self, reading: &Reading, now: i64) -> Option<Outcome> {
        let deadline = self.deadline()?;
        if reading.began >= deadline {
            return None;
        }
        let later = self.readings.iter().any(|one| {
            one.purpose == Purpose::Completion && one.basis > reading.basis && one.began < deadline
        });
        let last = !later && now >= deadline;
        Some(
            match last && !self.spoken_against(reading, Shows::Artifact) {
                true => Outcome::Failed,
                false => Outcome::Unresolved,
            },
        )
    }
}
