//! Fences (PA §5.1): who owns a job, an operation or a staging claim.
//!
//! A record keeps a [`Fence`]; a worker keeps the [`Fence`] it was issued and shows
//! it with each write. The comparison is carried by the statement that writes (the
//! store builds it from the same terms); this module has its meaning, so that the
//! two can be held against each other. Never in this module: a lease's length.

use std::fmt;

use crate::id::EpochId;
use crate::rules::{Rule, Rules};
use crate::time::{DbTime, Span};

/// `<instance>/<pid>/<start token>`: a restart is another owner (IC §3.2, EaR 3.4).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(String);

/// An owner string that has not the three parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an owner of the form <instance>/<pid>/<start token>")]
pub struct OwnerError;

impl Owner {
    /// `instance` is the deployment's name for this instance; `start` is 128 random
    /// bits drawn at the process's start.
    pub fn new(instance: &str, pid: u32, start: u128) -> Result<Self, OwnerError> {
        Self::parse(&format!("{instance}/{pid}/{start:032x}"))
    }

    pub fn parse(text: &str) -> Result<Self, OwnerError> {
        let mut parts = text.split('/');
        let (Some(instance), Some(pid), Some(start), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(OwnerError);
        };
        let named = |part: &str| {
            (1..=128).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !named(instance) || !named(start) || pid.parse::<u32>().is_err() {
            return Err(OwnerError);
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The deployment's name of the instance: what a timeline entry shows. The pid and
    /// the start token stay in the fence.
    pub fn instance(&self) -> &str {
        self.0.split('/').next().unwrap_or("")
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How often ownership of one record was issued; the first owner has generation 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub i64);

impl Generation {
    pub const FIRST: Generation = Generation(1);

    pub const fn next(self) -> Self {
        Generation(self.0 + 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An issued ownership, as a record holds it and as its owner shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub owner: Owner,
    pub generation: Generation,
    pub epoch: EpochId,
}

/// The first term of a fence that did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stale {
    Owner,
    Generation,
    /// The token or the record is of another epoch than the current one.
    Epoch,
    Lease,
}

impl Fence {
    /// Whether `token` still owns the record that holds `self`, in the current epoch.
    pub fn admits<R: Rules>(
        &self,
        rules: &R,
        token: &Fence,
        current: EpochId,
    ) -> Result<(), Stale> {
        if !rules.holds(Rule::FenceOwner, self.owner == token.owner) {
            return Err(Stale::Owner);
        }
        if !rules.holds(Rule::FenceGeneration, self.generation == token.generation) {
            return Err(Stale::Generation);
        }
        let epoch = self.epoch == token.epoch && token.epoch == current;
        if !rules.holds(Rule::FenceEpoch, epoch) {
            return Err(Stale::Epoch);
        }
        Ok(())
    }

    /// The same with a lease that must still be live: for an extension, a completion, a
    /// publish job's commit.
    pub fn admits_live<R: Rules>(
        &self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        lease_until: DbTime,
        now: DbTime,
    ) -> Result<(), Stale> {
        self.admits(rules, token, current)?;
        if rules.holds(Rule::LeaseLive, lease_until > now) {
            Ok(())
        } else {
            Err(Stale::Lease)
        }
    }

    /// The fence the next owner is issued.
    #[must_use]
    pub fn taken_by(&self, owner: Owner, current: EpochId) -> Fence {
        Fence {
            owner,
            generation: self.generation.next(),
            epoch: current,
        }
    }
}

/// A lease's end, counted from a time read after the row was locked.
#[must_use]
pub fn lease_from(now: DbTime, length: Span) -> DbTime {
    now + length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    fn fence(instance: &str, generation: i64, epoch: u128) -> Fence {
        Fence {
            owner: Owner::new(instance, 7, 1).unwrap(),
            generation: Generation(generation),
            epoch: EpochId::from_bits(epoch),
        }
    }

    #[test]
    fn only_the_owner_at_its_generation_in_its_epoch_is_admitted() {
        let held = fence("a", 3, 1);
        let now = EpochId::from_bits(1);
        assert_eq!(held.admits(&Enforced, &fence("a", 3, 1), now), Ok(()));
        for (token, current, stale, rule) in [
            (fence("b", 3, 1), 1, Stale::Owner, Rule::FenceOwner),
            (
                fence("a", 1, 1),
                1,
                Stale::Generation,
                Rule::FenceGeneration,
            ),
            (fence("a", 3, 2), 1, Stale::Epoch, Rule::FenceEpoch),
            (fence("a", 3, 1), 2, Stale::Epoch, Rule::FenceEpoch),
        ] {
            let current = EpochId::from_bits(current);
            assert_eq!(held.admits(&Enforced, &token, current), Err(stale));
            let control: &'static [Rule] = vec![rule].leak();
            assert_eq!(held.admits(&Without(control), &token, current), Ok(()));
        }
    }

    #[test]
    fn a_lapsed_lease_admits_nobody_and_the_instant_of_lapse_is_lapsed() {
        let held = fence("a", 1, 1);
        let epoch = EpochId::from_bits(1);
        let at = DbTime::from_seconds(10);
        assert_eq!(
            held.admits_live(&Enforced, &held.clone(), epoch, at, DbTime::from_seconds(9)),
            Ok(())
        );
        assert_eq!(
            held.admits_live(&Enforced, &held.clone(), epoch, at, at),
            Err(Stale::Lease)
        );
        let control = Without(&[Rule::LeaseLive]);
        assert_eq!(
            held.admits_live(&control, &held.clone(), epoch, at, at),
            Ok(())
        );
    }

    #[test]
    fn a_restart_is_another_owner() {
        let first = Owner::new("host", 7, 1).unwrap();
        let second = Owner::new("host", 7, 2).unwrap();
        assert_ne!(first, second);
        assert_eq!(first.instance(), second.instance());
        for text in [
            "", "a", "a/7", "a/x/1", "a/7/", "/7/1", "a/7/1/2", "a b/7/1",
        ] {
            assert!(Owner::parse(text).is_err(), "{text}");
        }
    }
}
