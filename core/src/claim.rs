//! Staging claims (IC §3): who owns an ingestion, how long, and how it ends.
//!
//! Ingestion, the draft transaction, the sweep and recovery entry decide here under
//! the claim's row lock; the statements carry the same terms. Never in this module:
//! the staged payload.

mod words;

pub use words::{ClaimKind, ClaimState, Review, StagingMode};

use crate::fence::{Fence, Generation, Owner, Stale};
use crate::id::{DraftId, EpochId, IngestionId, MachineId, OperationId, PrincipalId};
use crate::idempotency::IdempotencyKey;
use crate::refused::Refused;
use crate::rules::{Rule, Rules};
use crate::time::{DbTime, Span};

/// What every state of a claim has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    pub id: IngestionId,
    pub kind: ClaimKind,
    pub mode: StagingMode,
    pub review: Option<Review>,
    pub machine: Option<MachineId>,
    pub draft: DraftId,
    pub operation: Option<OperationId>,
    /// The request a draft entry's claim belongs to (PA §7.2).
    pub request: Option<(PrincipalId, IdempotencyKey)>,
    pub fence: Fence,
    /// The epoch it was created in: another epoch's is never resumed.
    pub created_epoch: EpochId,
    pub lease_until: DbTime,
    /// Fixed at creation and never extended.
    pub expires_at: DbTime,
    pub has_payload: bool,
    pub created_at: DbTime,
}

/// Owned by the ingestion that created it, or by a mark's or continuation's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held;
/// Taken over by another ingestion principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed;
/// Awaiting the operator: nobody owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paused;
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released;
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned;

/// A claim in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim<S> {
    pub common: Common,
    state: S,
}

/// A claim as a store gives it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyClaim {
    Held(Claim<Held>),
    Resumed(Claim<Resumed>),
    Paused(Claim<Paused>),
    Released(Claim<Released>),
    Abandoned(Claim<Abandoned>),
}

/// Why an act on a claim is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimRefusal {
    /// It has ended, as a read treats it.
    Ended,
    NotPaused,
    Paused,
    Transient,
    /// The owner's lease is live.
    Leased,
    /// It was created in an earlier epoch.
    EarlierEpoch,
    /// The generation moved since it was read.
    Generation,
    Stale(Stale),
}

/// The deployment's timers, each shorter than the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    pub heartbeat: Span,
    pub lease: Span,
    pub absolute_expiry: Span,
}

impl Timers {
    pub fn ordered(heartbeat: Span, lease: Span, absolute_expiry: Span) -> Option<Self> {
        (Span::ZERO < heartbeat && heartbeat < lease && lease < absolute_expiry).then_some(Self {
            heartbeat,
            lease,
            absolute_expiry,
        })
    }
}

/// A taker of a claim: who, at which generation it read, in which epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    pub owner: Owner,
    pub seen: Generation,
    pub current: EpochId,
    pub now: DbTime,
    pub lease: Span,
}

/// What a takeover leads to (IC §3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum TakenOver {
    /// The envelope is decrypted next; `pauses` where its review is pending.
    Resumed { claim: Claim<Resumed>, pauses: bool },
    /// Nothing to decrypt: the input is ingested again.
    Abandoned(Claim<Abandoned>),
}

/// Where a run goes once its envelope is ready (IC §3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    Pause,
    DraftTransaction,
}

impl Common {
    /// Whether a read treats it as abandoned, whatever its row says (IC §3.5): past its
    /// absolute expiry, or transient and past its lease.
    pub fn is_due(&self, now: DbTime) -> bool {
        let lapsed = self.mode == StagingMode::Transient && self.lease_until <= now;
        self.expires_at <= now || lapsed
    }

    pub fn next_step<R: Rules>(&self, rules: &R) -> NextStep {
        let pending = self.review == Some(Review::Pending);
        if pending && rules.enforced(Rule::ClaimPausesForReview) {
            NextStep::Pause
        } else {
            NextStep::DraftTransaction
        }
    }

    /// An owner's own transition: its fence, and both times still ahead (IC §3.3).
    fn owned<R: Rules>(
        &self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
    ) -> Result<(), ClaimRefusal> {
        if !rules.holds(Rule::ClaimUnexpired, self.expires_at > now) {
            return Err(ClaimRefusal::Ended);
        }
        self.fence
            .admits_live(rules, token, current, self.lease_until, now)
            .map_err(ClaimRefusal::Stale)
    }

    fn in_state<S>(self, state: S) -> Claim<S> {
        Claim {
            common: self,
            state,
        }
    }

    fn taken(self, take: &Take) -> Self {
        Self {
            fence: self.fence.taken_by(take.owner.clone(), take.current),
            lease_until: take.now + take.lease,
            ..self
        }
    }

    fn abandoned(self) -> Claim<Abandoned> {
        Common {
            has_payload: false,
            ..self
        }
        .in_state(Abandoned)
    }
}

impl Claim<Held> {
    /// A claim as ingestion start commits it, at generation 1.
    pub fn started(common: Common) -> Self {
        common.in_state(Held)
    }
}

impl Claim<Paused> {
    /// A mark or a continuation takes a paused claim: held again, at the next generation,
    /// with a new lease. A continuation is recorded with the taking, so that a killed run
    /// does not pause again.
    pub fn take<R: Rules>(
        self,
        rules: &R,
        take: &Take,
        continues: bool,
    ) -> Result<Claim<Held>, Refused<AnyClaim, ClaimRefusal>> {
        let refusal = if !rules.holds(Rule::ClaimUnexpired, self.common.expires_at > take.now) {
            Some(ClaimRefusal::Ended)
        } else if !rules.holds(
            Rule::ClaimOfThisEpoch,
            self.common.created_epoch == take.current,
        ) {
            Some(ClaimRefusal::EarlierEpoch)
        } else if !rules.holds(
            Rule::TakeoverGeneration,
            self.common.fence.generation == take.seen,
        ) {
            Some(ClaimRefusal::Generation)
        } else {
            None
        };
        match refusal {
            Some(reason) => Err(Refused::new(AnyClaim::Paused(self), reason)),
            None => {
                let mut common = self.common.taken(take);
                if continues {
                    common.review = Some(Review::Continued);
                }
                Ok(common.in_state(Held))
            }
        }
    }
}

impl AnyClaim {
    /// For a store: a row's state beside what every state has.
    pub fn from_row(common: Common, state: ClaimState) -> Self {
        match state {
            ClaimState::Held => AnyClaim::Held(common.in_state(Held)),
            ClaimState::Resumed => AnyClaim::Resumed(common.in_state(Resumed)),
            ClaimState::Paused => AnyClaim::Paused(common.in_state(Paused)),
            ClaimState::Released => AnyClaim::Released(common.in_state(Released)),
            ClaimState::Abandoned => AnyClaim::Abandoned(common.in_state(Abandoned)),
        }
    }

    pub const fn state(&self) -> ClaimState {
        match self {
            AnyClaim::Held(_) => ClaimState::Held,
            AnyClaim::Resumed(_) => ClaimState::Resumed,
            AnyClaim::Paused(_) => ClaimState::Paused,
            AnyClaim::Released(_) => ClaimState::Released,
            AnyClaim::Abandoned(_) => ClaimState::Abandoned,
        }
    }

    pub const fn common(&self) -> &Common {
        match self {
            AnyClaim::Held(claim) => &claim.common,
            AnyClaim::Resumed(claim) => &claim.common,
            AnyClaim::Paused(claim) => &claim.common,
            AnyClaim::Released(claim) => &claim.common,
            AnyClaim::Abandoned(claim) => &claim.common,
        }
    }

    fn into_common(self) -> Common {
        match self {
            AnyClaim::Held(claim) => claim.common,
            AnyClaim::Resumed(claim) => claim.common,
            AnyClaim::Paused(claim) => claim.common,
            AnyClaim::Released(claim) => claim.common,
            AnyClaim::Abandoned(claim) => claim.common,
        }
    }

    /// The state a read treats it as (IC §3.5). The orphan report alone goes by the row.
    pub fn reads_as<R: Rules>(&self, rules: &R, now: DbTime) -> ClaimState {
        let due = !self.state().is_terminal() && self.common().is_due(now);
        if due && rules.enforced(Rule::ClaimReadsAbandoned) {
            ClaimState::Abandoned
        } else {
            self.state()
        }
    }

    /// Whether the sweep, an ingestion start or an entry writes it abandoned.
    pub fn is_due(&self, now: DbTime) -> bool {
        !self.state().is_terminal() && self.common().is_due(now)
    }

    fn owned<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
    ) -> Result<Common, Refused<AnyClaim, ClaimRefusal>> {
        let reason = if !rules.holds(Rule::ClaimOwned, self.state().is_owned()) {
            match self.state() {
                ClaimState::Paused => ClaimRefusal::Paused,
                ClaimState::Held
                | ClaimState::Resumed
                | ClaimState::Released
                | ClaimState::Abandoned => ClaimRefusal::Ended,
            }
        } else {
            match self.common().owned(rules, token, current, now) {
                Ok(()) => return Ok(self.into_common()),
                Err(reason) => reason,
            }
        };
        Err(Refused::new(self, reason))
    }

    /// A heartbeat: the lease from the time the row is held.
    pub fn extend<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
        lease: Span,
    ) -> Result<AnyClaim, Refused<AnyClaim, ClaimRefusal>> {
        let state = self.state();
        let common = self.owned(rules, token, current, now)?;
        let common = Common {
            lease_until: now + lease,
            ..common
        };
        Ok(AnyClaim::from_row(common, state))
    }

    /// Stores the envelope.
    pub fn store_payload<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
    ) -> Result<AnyClaim, Refused<AnyClaim, ClaimRefusal>> {
        let state = self.state();
        let common = self.owned(rules, token, current, now)?;
        let common = Common {
            has_payload: true,
            ..common
        };
        Ok(AnyClaim::from_row(common, state))
    }

    /// The pause stores the envelope and ends the lease at once (IC §3.6).
    pub fn pause<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
    ) -> Result<Claim<Paused>, Refused<AnyClaim, ClaimRefusal>> {
        let mut common = self.owned(rules, token, current, now)?;
        if rules.enforced(Rule::PauseEndsLease) {
            common.lease_until = now;
        }
        common.has_payload = true;
        Ok(common.in_state(Paused))
    }

    /// The draft transaction's release: the payload is cleared.
    pub fn release<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
    ) -> Result<Claim<Released>, Refused<AnyClaim, ClaimRefusal>> {
        let common = self.owned(rules, token, current, now)?;
        Ok(Common {
            has_payload: false,
            ..common
        }
        .in_state(Released))
    }

    /// Its owner's refusal of the input.
    pub fn refuse<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
    ) -> Result<Claim<Abandoned>, Refused<AnyClaim, ClaimRefusal>> {
        let common = self.owned(rules, token, current, now)?;
        Ok(common.abandoned())
    }

    /// An operator's recovery request (IC §3.4).
    pub fn take_over<R: Rules>(
        self,
        rules: &R,
        take: &Take,
    ) -> Result<TakenOver, Refused<AnyClaim, ClaimRefusal>> {
        let common = self.common();
        let ended = self.reads_as(rules, take.now).is_terminal();
        let encrypted = common.mode == StagingMode::Encrypted;
        let lapsed = common.lease_until <= take.now;
        let this_epoch = common.created_epoch == take.current;
        let refusal = if ended {
            Some(ClaimRefusal::Ended)
        } else if self.state() == ClaimState::Paused {
            Some(ClaimRefusal::Paused)
        } else if !rules.holds(Rule::ClaimTakeoverEncrypted, encrypted) {
            Some(ClaimRefusal::Transient)
        } else if !rules.holds(Rule::ClaimOfThisEpoch, this_epoch) {
            Some(ClaimRefusal::EarlierEpoch)
        } else if !rules.holds(Rule::ClaimTakeoverLapsed, lapsed) {
            Some(ClaimRefusal::Leased)
        } else if !rules.holds(
            Rule::TakeoverGeneration,
            common.fence.generation == take.seen,
        ) {
            Some(ClaimRefusal::Generation)
        } else {
            None
        };
        if let Some(reason) = refusal {
            return Err(Refused::new(self, reason));
        }
        let common = self.into_common();
        if !common.has_payload {
            return Ok(TakenOver::Abandoned(common.abandoned()));
        }
        let pauses = common.next_step(rules) == NextStep::Pause;
        Ok(TakenOver::Resumed {
            claim: common.taken(take).in_state(Resumed),
            pauses,
        })
    }

    /// An operator's abandonment, the sweep's, an entry's: any claim that has not ended.
    /// `as_read` refuses one a read already treats as ended (an operator's).
    pub fn abandon<R: Rules>(
        self,
        rules: &R,
        now: DbTime,
        as_read: bool,
    ) -> Result<Claim<Abandoned>, Refused<AnyClaim, ClaimRefusal>> {
        let state = if as_read {
            self.reads_as(rules, now)
        } else {
            self.state()
        };
        if state.is_terminal() {
            return Err(Refused::new(self, ClaimRefusal::Ended));
        }
        Ok(self.into_common().abandoned())
    }
}
