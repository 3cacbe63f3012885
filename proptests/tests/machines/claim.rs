//! A staging claim's states, its lease and its fence (IC §3). The model answers an act with
//! every reason that speaks against it; the code may give any of them, and none where there
//! is none.

use bronzeward_core::claim::{
    AnyClaim, Claim, ClaimKind, ClaimRefusal, ClaimState, Common, NextStep, Review, StagingMode,
    Take, TakenOver,
};
use bronzeward_core::fence::{Fence, Generation, Stale};
use bronzeward_core::id::{DraftId, IngestionId, MachineId};
use bronzeward_core::refused::Refused;
use bronzeward_core::rules::{Enforced, Rule, Rules};
use bronzeward_core::time::Span;
use bronzeward_without::Without;
use proptest::prelude::*;

use super::check::{Held, ensure, fails, holds, same};
use super::furniture::{at, epoch, fence, owner};

const LEASE: i64 = 30;
const EXPIRY: i64 = 40;

#[derive(Clone, Copy, Debug)]
enum Command {
    Wait(i64),
    /// An owner's transitions, each by the token issued so many issues ago.
    Extend(usize),
    Store(usize),
    /// The envelope is ready: a pause, or the draft transaction.
    Finish(usize),
    Refuse(usize),
    /// An operator's acts, at a generation read now or one before.
    TakeOver(bool),
    Mark(bool),
    Continue(bool),
    Abandon,
    Sweep,
    /// Another epoch. The entry also abandons the claim; here it is left, as a claim that a
    /// restore brings back would be, for the decisions to refuse.
    Enter,
}

#[derive(Clone, Debug)]
struct Plot {
    encrypted: bool,
    review: bool,
    commands: Vec<Command>,
}

fn plots() -> impl Strategy<Value = Plot> {
    let token = || prop_oneof![4 => Just(0_usize), 1 => 1..3_usize];
    let fresh = || prop_oneof![4 => Just(true), 1 => Just(false)];
    let command = prop_oneof![
        6 => prop::sample::select(vec![1, 10, 10, 30]).prop_map(Command::Wait),
        6 => token().prop_map(Command::Extend),
        3 => token().prop_map(Command::Store),
        2 => token().prop_map(Command::Finish),
        1 => token().prop_map(Command::Refuse),
        4 => fresh().prop_map(Command::TakeOver),
        3 => fresh().prop_map(Command::Mark),
        1 => fresh().prop_map(Command::Continue),
        1 => Just(Command::Abandon),
        1 => Just(Command::Sweep),
        1 => Just(Command::Enter),
    ];
    let commands = prop::collection::vec(command, 1..32);
    (any::<bool>(), any::<bool>(), commands).prop_map(|(encrypted, review, commands)| Plot {
        encrypted,
        review: review && encrypted,
        commands,
    })
}

/// Where a claim is in its life, with what only that stage has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Somebody runs it; taken over from another, or not.
    Running {
        resumed: bool,
    },
    Waiting,
    Ended {
        released: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    No,
    Pending,
    Done,
}

struct Model {
    lease: i64,
    encrypted: bool,
    review: Asked,
    stage: Stage,
    issued: i64,
    lease_until: i64,
    envelope: bool,
    created_in: u128,
}

impl Model {
    /// Past its expiry, or in nobody's memory any more: over for every reader (IC §3.5).
    fn over(&self, now: i64) -> bool {
        let lost = !self.encrypted && now >= self.lease_until;
        !matches!(self.stage, Stage::Ended { .. }) && (now >= EXPIRY || lost)
    }

    fn reads_as(&self, now: i64) -> ClaimState {
        match self.stage {
            Stage::Ended { released: true } => ClaimState::Released,
            Stage::Ended { released: false } => ClaimState::Abandoned,
            _ if self.over(now) => ClaimState::Abandoned,
            Stage::Waiting => ClaimState::Paused,
            Stage::Running { resumed: true } => ClaimState::Resumed,
            Stage::Running { resumed: false } => ClaimState::Held,
        }
    }

    /// Why an owner may not do something (IC §3.2, §3.3).
    fn against_owner(
        &self,
        held: &Fence,
        token: &Fence,
        now: i64,
        epoch: u128,
    ) -> Vec<ClaimRefusal> {
        let current = super::furniture::epoch(epoch);
        let reasons = [
            (
                matches!(self.stage, Stage::Ended { .. }),
                ClaimRefusal::Ended,
            ),
            (now >= EXPIRY, ClaimRefusal::Ended),
            (self.stage == Stage::Waiting, ClaimRefusal::Paused),
            (token.owner != held.owner, ClaimRefusal::Stale(Stale::Owner)),
            (
                token.generation.0 != self.issued,
                ClaimRefusal::Stale(Stale::Generation),
            ),
            (token.epoch != current, ClaimRefusal::Stale(Stale::Epoch)),
            (now >= self.lease_until, ClaimRefusal::Stale(Stale::Lease)),
        ];
        that_hold(reasons)
    }

    /// Why nobody may take it over (IC §3.4).
    fn against_takeover(&self, seen: i64, now: i64, epoch: u128) -> Vec<ClaimRefusal> {
        let ended = matches!(self.stage, Stage::Ended { .. }) || self.over(now);
        that_hold([
            (ended, ClaimRefusal::Ended),
            (self.stage == Stage::Waiting, ClaimRefusal::Paused),
            (!self.encrypted, ClaimRefusal::Transient),
            (self.created_in != epoch, ClaimRefusal::EarlierEpoch),
            (now < self.lease_until, ClaimRefusal::Leased),
            (seen != self.issued, ClaimRefusal::Generation),
        ])
    }

    /// Why a mark or a continuation may not take it (IC §3.6).
    fn against_mark(&self, seen: i64, now: i64, epoch: u128) -> Vec<ClaimRefusal> {
        that_hold([
            (now >= EXPIRY, ClaimRefusal::Ended),
            (self.created_in != epoch, ClaimRefusal::EarlierEpoch),
            (seen != self.issued, ClaimRefusal::Generation),
        ])
    }

    fn issue(&mut self, now: i64, resumed: bool) {
        self.issued += 1;
        self.lease_until = now + self.lease;
        self.stage = Stage::Running { resumed };
    }

    fn end(&mut self, released: bool) {
        self.stage = Stage::Ended { released };
        self.envelope = false;
    }
}

fn that_hold<const N: usize>(reasons: [(bool, ClaimRefusal); N]) -> Vec<ClaimRefusal> {
    let holding = reasons.into_iter().filter(|(holds, _)| *holds);
    holding.map(|(_, reason)| reason).collect()
}

struct World<R> {
    rules: R,
    now: i64,
    epoch: u128,
    row: AnyClaim,
    tokens: Vec<Fence>,
    model: Model,
}

/// A refusal must be one that the model has, and an act passes where it has none.
fn agree<T>(
    what: &str,
    code: Result<T, Refused<AnyClaim, ClaimRefusal>>,
    reasons: &[ClaimRefusal],
) -> Result<Option<T>, String> {
    match code {
        Ok(done) if reasons.is_empty() => Ok(Some(done)),
        Err(refused) if reasons.contains(&refused.reason) => Ok(None),
        Ok(_) => Err(format!("{what} passed, against {reasons:?}")),
        Err(refused) => Err(format!(
            "{what}: {:?} is none of {reasons:?}",
            refused.reason
        )),
    }
}

impl<R: Rules> World<R> {
    fn token(&self, ago: usize) -> Fence {
        let at = self.tokens.len().saturating_sub(1 + ago);
        self.tokens[at].clone()
    }

    fn take(&self, fresh: bool) -> Take {
        let generation = self.model.issued;
        Take {
            // Two processes by turns, so that an owner's string comes back.
            owner: owner((generation as u128) % 2),
            seen: Generation(if fresh { generation } else { generation - 1 }),
            current: epoch(self.epoch),
            now: at(self.now),
            lease: Span::seconds(LEASE),
        }
    }

    fn issued(&mut self, row: AnyClaim) {
        self.tokens.push(row.common().fence.clone());
        self.row = row;
    }

    fn act(&mut self, command: Command) -> Held {
        match command {
            Command::Wait(seconds) => self.now += seconds,
            Command::Enter => self.epoch += 1,
            Command::Extend(ago) => self.extend(ago)?,
            Command::Store(ago) if self.model.encrypted => self.store(ago)?,
            Command::Store(_) => {}
            Command::Finish(ago) => self.finish(ago)?,
            Command::Refuse(ago) => self.refuse(ago)?,
            Command::TakeOver(fresh) => self.take_over(fresh)?,
            Command::Mark(fresh) => self.mark(fresh, false)?,
            Command::Continue(fresh) => self.mark(fresh, true)?,
            Command::Abandon => self.abandon()?,
            Command::Sweep => self.sweep()?,
        }
        Ok(())
    }

    fn extend(&mut self, ago: usize) -> Held {
        let (token, now, current) = (self.token(ago), at(self.now), epoch(self.epoch));
        let against = self.against(&token);
        let lease = Span::seconds(LEASE);
        let code = self
            .row
            .clone()
            .extend(&self.rules, &token, current, now, lease);
        if let Some(row) = agree("an extension", code, &against)? {
            self.row = row;
            self.model.lease_until = self.now + self.model.lease;
        }
        Ok(())
    }

    fn against(&self, token: &Fence) -> Vec<ClaimRefusal> {
        let held = &self.row.common().fence;
        self.model.against_owner(held, token, self.now, self.epoch)
    }

    fn store(&mut self, ago: usize) -> Held {
        let (token, now, current) = (self.token(ago), at(self.now), epoch(self.epoch));
        let against = self.against(&token);
        let code = self
            .row
            .clone()
            .store_payload(&self.rules, &token, current, now);
        if let Some(row) = agree("an envelope", code, &against)? {
            self.row = row;
            self.model.envelope = true;
        }
        Ok(())
    }

    fn finish(&mut self, ago: usize) -> Held {
        let (token, now, current) = (self.token(ago), at(self.now), epoch(self.epoch));
        let against = self.against(&token);
        let pending = self.model.review == Asked::Pending;
        let pauses = self.row.common().next_step(&self.rules) == NextStep::Pause;
        same("whether it pauses", pauses, pending)?;
        let row = self.row.clone();
        if pauses {
            let code = row.pause(&self.rules, &token, current, now);
            if let Some(row) = agree("a pause", code, &against)? {
                self.row = AnyClaim::Paused(row);
                self.model.stage = Stage::Waiting;
                self.model.lease_until = self.now;
                self.model.envelope = true;
            }
        } else {
            let code = row.release(&self.rules, &token, current, now);
            if let Some(row) = agree("a release", code, &against)? {
                self.row = AnyClaim::Released(row);
                self.model.end(true);
            }
        }
        Ok(())
    }

    fn refuse(&mut self, ago: usize) -> Held {
        let (token, now, current) = (self.token(ago), at(self.now), epoch(self.epoch));
        let against = self.against(&token);
        let code = self.row.clone().refuse(&self.rules, &token, current, now);
        if let Some(row) = agree("a refusal", code, &against)? {
            self.row = AnyClaim::Abandoned(row);
            self.model.end(false);
        }
        Ok(())
    }

    fn take_over(&mut self, fresh: bool) -> Held {
        let take = self.take(fresh);
        let against = self
            .model
            .against_takeover(take.seen.0, self.now, self.epoch);
        let code = self.row.clone().take_over(&self.rules, &take);
        match agree("a takeover", code, &against)? {
            None => {}
            Some(TakenOver::Abandoned(row)) => {
                ensure(!self.model.envelope, "an envelope was thrown away")?;
                self.row = AnyClaim::Abandoned(row);
                self.model.end(false);
            }
            Some(TakenOver::Resumed { claim, pauses }) => {
                ensure(self.model.envelope, "nothing is there to resume")?;
                let pending = self.model.review == Asked::Pending;
                same("whether it pauses", pauses, pending)?;
                self.issued(AnyClaim::Resumed(claim));
                self.model.issue(self.now, true);
            }
        }
        Ok(())
    }

    fn mark(&mut self, fresh: bool, continues: bool) -> Held {
        let take = self.take(fresh);
        let against = self.model.against_mark(take.seen.0, self.now, self.epoch);
        // Every other state has no such transition.
        let AnyClaim::Paused(claim) = self.row.clone() else {
            return Ok(());
        };
        let code = claim.take(&self.rules, &take, continues);
        if let Some(claim) = agree("a mark", code, &against)? {
            self.issued(AnyClaim::Held(claim));
            self.model.issue(self.now, false);
            if continues {
                self.model.review = Asked::Done;
            }
        }
        Ok(())
    }

    fn abandon(&mut self) -> Held {
        let ended = matches!(self.model.stage, Stage::Ended { .. });
        let against = that_hold([(ended || self.model.over(self.now), ClaimRefusal::Ended)]);
        let code = self.row.clone().abandon(&self.rules, at(self.now), true);
        if let Some(row) = agree("an abandonment", code, &against)? {
            self.row = AnyClaim::Abandoned(row);
            self.model.end(false);
        }
        Ok(())
    }

    fn sweep(&mut self) -> Held {
        let due = self.model.over(self.now);
        same("whether it is due", self.row.is_due(at(self.now)), due)?;
        if due {
            let code = self.row.clone().abandon(&self.rules, at(self.now), false);
            if let Some(row) = agree("a sweep", code, &[])? {
                self.row = AnyClaim::Abandoned(row);
            }
            self.model.end(false);
        }
        Ok(())
    }

    fn compare(&self) -> Held {
        let (row, model) = (self.row.common(), &self.model);
        let reads = self.row.reads_as(&self.rules, at(self.now));
        same("how it reads", reads, model.reads_as(self.now))?;
        same("its generation", row.fence.generation.0, model.issued)?;
        same("its lease", row.lease_until, at(model.lease_until))?;
        same("its envelope", row.has_payload, model.envelope)?;
        let review = match model.review {
            Asked::No => None,
            Asked::Pending => Some(Review::Pending),
            Asked::Done => Some(Review::Continued),
        };
        same("its review", row.review, review)
    }
}

fn world<R: Rules>(rules: R, lease: i64, plot: &Plot) -> World<R> {
    let common = Common {
        id: IngestionId::from_bits(1),
        kind: ClaimKind::Import,
        mode: match plot.encrypted {
            true => StagingMode::Encrypted,
            false => StagingMode::Transient,
        },
        review: plot.review.then_some(Review::Pending),
        machine: Some(MachineId::from_bits(1)),
        draft: DraftId::from_bits(1),
        operation: None,
        request: None,
        fence: fence(0, 1, epoch(1)),
        created_epoch: epoch(1),
        lease_until: at(LEASE),
        expires_at: at(EXPIRY),
        has_payload: false,
        created_at: at(0),
    };
    World {
        rules,
        now: 0,
        epoch: 1,
        tokens: vec![common.fence.clone()],
        row: AnyClaim::Held(Claim::started(common)),
        model: Model {
            lease,
            encrypted: plot.encrypted,
            review: if plot.review {
                Asked::Pending
            } else {
                Asked::No
            },
            stage: Stage::Running { resumed: false },
            issued: 1,
            lease_until: LEASE,
            envelope: false,
            created_in: 1,
        },
    }
}

/// Runs the commands on both. `lease` is the model's idea of a lease's length.
fn property<R: Rules>(rules: R, lease: i64, plot: &Plot) -> Held {
    let mut world = world(rules, lease, plot);
    for command in &plot.commands {
        let before = world.row.clone();
        let lapsed = before.common().lease_until <= at(world.now);
        world.act(*command)?;
        world.compare()?;
        let (was, is) = (before.common(), world.row.common());
        let issued = is.fence.generation.0 - was.fence.generation.0;
        ensure((0..=1).contains(&issued), "a generation fell, or leapt")?;
        let left = before.state().is_terminal() && before != world.row;
        ensure(!left, "an end was left")?;
        ensure(is.expires_at == was.expires_at, "an expiry moved")?;
        let revived = lapsed && is.lease_until > was.lease_until && issued == 0;
        ensure(!revived, "a lapsed lease was revived")?;
        let kept = world.row.state().is_terminal() && is.has_payload;
        ensure(!kept, "an end keeps its envelope")?;
    }
    Ok(())
}

#[test]
fn a_claim_is_owned_leased_and_ended_as_its_model_says() {
    holds(&plots(), |plot| property(Enforced, LEASE, &plot));
}

#[test]
fn a_claim_under_fewer_rules_or_beside_a_wrong_model_differs() {
    for rule in [
        Rule::ClaimOwned,
        Rule::ClaimReadsAbandoned,
        Rule::ClaimUnexpired,
        Rule::ClaimTakeoverLapsed,
        Rule::ClaimOfThisEpoch,
        Rule::ClaimPausesForReview,
        Rule::PauseEndsLease,
        Rule::TakeoverGeneration,
        Rule::FenceOwner,
        Rule::FenceEpoch,
        Rule::LeaseLive,
    ] {
        let rules = Without::rule(rule);
        fails(rule.name(), &plots(), |plot| property(rules, LEASE, &plot));
    }
    fails("a longer lease", &plots(), |plot| {
        property(Enforced, LEASE + 1, &plot)
    });
}
