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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    fn at(seconds: i64) -> DbTime {
        DbTime::from_seconds(seconds)
    }

    fn epoch() -> EpochId {
        EpochId::from_bits(1)
    }

    const LEASE: Span = Span::seconds(30);

    /// Held from 0, leased to 30, expiring at 300, under encrypted staging.
    fn common(review: Option<Review>) -> Common {
        Common {
            id: IngestionId::from_bits(1),
            kind: ClaimKind::Import,
            mode: StagingMode::Encrypted,
            review,
            machine: Some(MachineId::from_bits(1)),
            draft: DraftId::from_bits(1),
            operation: Some(OperationId::from_bits(1)),
            request: None,
            fence: Fence {
                owner: Owner::new("a", 1, 1).unwrap(),
                generation: Generation::FIRST,
                epoch: epoch(),
            },
            created_epoch: epoch(),
            lease_until: at(30),
            expires_at: at(300),
            has_payload: true,
            created_at: at(0),
        }
    }

    fn held() -> AnyClaim {
        AnyClaim::Held(Claim::started(common(None)))
    }

    fn token() -> Fence {
        common(None).fence
    }

    fn take(now: i64) -> Take {
        Take {
            owner: Owner::new("b", 1, 1).unwrap(),
            seen: Generation::FIRST,
            current: epoch(),
            now: at(now),
            lease: LEASE,
        }
    }

    // covers-part: IC-STG-1 (the terms; the race is the store's)
    #[test]
    fn a_lease_is_extended_by_its_owner_while_it_and_the_expiry_are_ahead() {
        let extend = |claim: AnyClaim, token: &Fence, now| {
            claim.extend(&Enforced, token, epoch(), at(now), LEASE)
        };
        let extended = extend(held(), &token(), 29).unwrap();
        assert_eq!(extended.common().lease_until, at(59));
        let late = extend(held(), &token(), 30).unwrap_err();
        assert_eq!(late.reason, ClaimRefusal::Stale(Stale::Lease));
        assert_eq!(*late.unchanged, held());
        let stranger = Fence {
            owner: Owner::new("a", 1, 2).unwrap(),
            ..token()
        };
        assert!(extend(held(), &stranger, 29).is_err());
        let long = AnyClaim::Held(Claim::started(Common {
            lease_until: at(400),
            ..common(None)
        }));
        assert_eq!(
            extend(long.clone(), &token(), 300).unwrap_err().reason,
            ClaimRefusal::Ended
        );
        let control = Without(&[Rule::ClaimUnexpired]);
        assert!(
            long.extend(&control, &token(), epoch(), at(300), LEASE)
                .is_ok()
        );
    }

    #[test]
    fn a_takeover_waits_for_the_lapse_and_fences_the_old_owner_out() {
        let live = held().take_over(&Enforced, &take(29)).unwrap_err();
        assert_eq!(live.reason, ClaimRefusal::Leased);
        assert!(
            held()
                .take_over(&Without(&[Rule::ClaimTakeoverLapsed]), &take(29))
                .is_ok()
        );
        let TakenOver::Resumed { claim, pauses } = held().take_over(&Enforced, &take(30)).unwrap()
        else {
            panic!("an envelope is there to decrypt");
        };
        assert!(!pauses);
        assert_eq!(claim.common.fence.generation, Generation(2));
        let resumed = AnyClaim::Resumed(claim);
        let old = resumed
            .clone()
            .release(&Enforced, &token(), epoch(), at(31))
            .unwrap_err();
        assert_eq!(old.reason, ClaimRefusal::Stale(Stale::Owner));
        // Back to the first owner's string, its first token is refused by the generation.
        let back = Take {
            owner: Owner::new("a", 1, 1).unwrap(),
            seen: Generation(2),
            ..take(70)
        };
        let TakenOver::Resumed { claim, .. } = resumed.take_over(&Enforced, &back).unwrap() else {
            panic!("a resumed claim can be taken over again");
        };
        let late = AnyClaim::Resumed(claim);
        let refused = late
            .clone()
            .release(&Enforced, &token(), epoch(), at(71))
            .unwrap_err();
        assert_eq!(refused.reason, ClaimRefusal::Stale(Stale::Generation));
        let control = Without(&[Rule::FenceGeneration]);
        assert!(late.release(&control, &token(), epoch(), at(71)).is_ok());
    }

    #[test]
    fn what_cannot_be_taken_over_is_told_apart() {
        let with = |change: &dyn Fn(&mut Common)| {
            let mut common = common(None);
            change(&mut common);
            AnyClaim::Held(Claim::started(common))
        };
        let refused =
            |claim: AnyClaim, take: &Take| claim.take_over(&Enforced, take).unwrap_err().reason;
        let earlier = with(&|it| it.created_epoch = EpochId::from_bits(9));
        assert_eq!(refused(earlier, &take(40)), ClaimRefusal::EarlierEpoch);
        assert_eq!(refused(held(), &take(300)), ClaimRefusal::Ended);
        let transient = with(&|it| it.mode = StagingMode::Transient);
        assert_eq!(
            refused(transient.clone(), &take(29)),
            ClaimRefusal::Transient
        );
        assert_eq!(refused(transient, &take(30)), ClaimRefusal::Ended);
        let moved = Take {
            seen: Generation(4),
            ..take(40)
        };
        assert_eq!(refused(held(), &moved), ClaimRefusal::Generation);
        let paused = held().pause(&Enforced, &token(), epoch(), at(1)).unwrap();
        assert_eq!(
            refused(AnyClaim::Paused(paused), &take(40)),
            ClaimRefusal::Paused
        );
        let empty = with(&|it| it.has_payload = false);
        assert!(matches!(
            empty.take_over(&Enforced, &take(40)),
            Ok(TakenOver::Abandoned(_))
        ));
    }

    // covers-part: IC-STG-4 (how a read treats it)
    #[test]
    fn a_claim_reads_abandoned_once_it_is_due_whether_or_not_anyone_wrote_it() {
        let transient = AnyClaim::Held(Claim::started(Common {
            mode: StagingMode::Transient,
            ..common(None)
        }));
        for (claim, now, state) in [
            (held(), 30, ClaimState::Held),
            (held(), 299, ClaimState::Held),
            (held(), 300, ClaimState::Abandoned),
            (transient.clone(), 29, ClaimState::Held),
            (transient, 30, ClaimState::Abandoned),
        ] {
            assert_eq!(claim.reads_as(&Enforced, at(now)), state, "{now}");
            let control = Without(&[Rule::ClaimReadsAbandoned]);
            assert_eq!(claim.reads_as(&control, at(now)), ClaimState::Held);
        }
    }

    // covers-part: IC-REV-2 (a paused claim's ends)
    #[test]
    fn a_pause_ends_the_lease_and_only_a_mark_or_a_continuation_takes_the_claim() {
        let pending = common(Some(Review::Pending));
        assert_eq!(pending.next_step(&Enforced), NextStep::Pause);
        let control = Without(&[Rule::ClaimPausesForReview]);
        assert_eq!(pending.next_step(&control), NextStep::DraftTransaction);
        let claim = AnyClaim::Held(Claim::started(pending));
        let paused = claim
            .clone()
            .pause(&Enforced, &token(), epoch(), at(5))
            .unwrap();
        assert_eq!(paused.common.lease_until, at(5));
        let kept = claim
            .pause(&Without(&[Rule::PauseEndsLease]), &token(), epoch(), at(5))
            .unwrap();
        assert_eq!(kept.common.lease_until, at(30));
        // An owner's late heartbeat, with a lease that is still live in the row.
        let heartbeat = AnyClaim::Paused(kept.clone())
            .extend(&Enforced, &token(), epoch(), at(6), LEASE)
            .unwrap_err();
        assert_eq!(heartbeat.reason, ClaimRefusal::Paused);
        let control = Without(&[Rule::ClaimOwned]);
        assert!(
            AnyClaim::Paused(kept)
                .extend(&control, &token(), epoch(), at(6), LEASE)
                .is_ok()
        );
        let marked = paused.clone().take(&Enforced, &take(6), false).unwrap();
        assert_eq!(marked.common.fence.generation, Generation(2));
        assert_eq!(marked.common.next_step(&Enforced), NextStep::Pause);
        let continued = paused.clone().take(&Enforced, &take(6), true).unwrap();
        assert_eq!(
            continued.common.next_step(&Enforced),
            NextStep::DraftTransaction
        );
        let expired = paused
            .clone()
            .take(&Enforced, &take(300), false)
            .unwrap_err();
        assert_eq!(expired.reason, ClaimRefusal::Ended);
        let second = Take {
            seen: Generation(9),
            ..take(6)
        };
        assert_eq!(
            paused.take(&Enforced, &second, false).unwrap_err().reason,
            ClaimRefusal::Generation
        );
    }

    #[test]
    fn every_end_clears_the_payload_and_no_end_is_left() {
        let released = held().release(&Enforced, &token(), epoch(), at(1)).unwrap();
        assert!(!released.common.has_payload);
        let abandoned = held().abandon(&Enforced, at(1), true).unwrap();
        assert!(!abandoned.common.has_payload);
        for ended in [AnyClaim::Released(released), AnyClaim::Abandoned(abandoned)] {
            assert!(ended.clone().abandon(&Enforced, at(1), false).is_err());
            assert!(ended.refuse(&Enforced, &token(), epoch(), at(1)).is_err());
        }
        // An operator is told that a due claim has ended; the sweep writes it.
        assert!(held().abandon(&Enforced, at(300), true).is_err());
        assert!(held().abandon(&Enforced, at(300), false).is_ok());
    }

    #[test]
    fn timers_are_each_shorter_than_the_next() {
        let seconds = Span::seconds;
        assert!(Timers::ordered(seconds(5), seconds(30), seconds(600)).is_some());
        assert!(Timers::ordered(seconds(30), seconds(30), seconds(600)).is_none());
        assert!(Timers::ordered(seconds(5), seconds(600), seconds(600)).is_none());
        assert!(Timers::ordered(seconds(0), seconds(30), seconds(600)).is_none());
    }
}
