//! Publish and ingest jobs (PA §5.1, §8.2): queued, running, succeeded, failed.
//!
//! A publish job is claimed under a fence and may be run again; an ingest job is
//! created running with its staging claim, whose fence and lease are its own, and is
//! never run again. Never in this module: what a job does.

mod event;

pub use event::Event;

use crate::fence::{Fence, Generation, Owner, Stale};
use crate::id::{EpochId, ImportBaseRevisionId, IngestionId, OperationId, ReleaseId};
use crate::principal::Signed;
use crate::problem::{Problem, ProblemCode};
use crate::refused::Refused;
use crate::release::BoundDraft;
use crate::rules::{Rule, Rules};
use crate::time::{DbTime, Span};

/// A job's event number: its own order, and no other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventNumber(pub i64);

impl EventNumber {
    pub const FIRST: EventNumber = EventNumber(1);

    pub const fn next(self) -> Self {
        EventNumber(self.0 + 1)
    }
}

/// What every state of a job has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    pub id: OperationId,
    pub bound: BoundDraft,
    pub created_by: Signed,
    pub created_at: DbTime,
    pub last_event: EventNumber,
}

/// A running job's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    pub fence: Fence,
    pub lease_until: DbTime,
}

/// A publish job as a store gives it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishJob {
    Queued(Common),
    Running(Common, Running),
    Succeeded(Common, ReleaseId),
    Failed(Common, Problem),
}

/// An ingest job; it is never queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IngestJob {
    Running(Common, IngestionId, Running),
    /// The draft written is the bound one.
    Succeeded(Common, IngestionId, ImportBaseRevisionId),
    Failed(Common, IngestionId, Problem),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    Queued,
    Running,
    Succeeded,
    Failed,
}

impl JobState {
    pub const fn as_str(self) -> &'static str {
        match self {
            JobState::Queued => "queued",
            JobState::Running => "running",
            JobState::Succeeded => "succeeded",
            JobState::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "queued" => Some(JobState::Queued),
            "running" => Some(JobState::Running),
            "succeeded" => Some(JobState::Succeeded),
            "failed" => Some(JobState::Failed),
            _ => None,
        }
    }

    pub const fn is_terminal(self) -> bool {
        match self {
            JobState::Queued | JobState::Running => false,
            JobState::Succeeded | JobState::Failed => true,
        }
    }
}

/// Why a job is not claimed, extended or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobRefusal {
    /// Its lease is live.
    Leased,
    Terminal,
    NotRunning,
    Stale(Stale),
}

impl Common {
    /// The common part with its next event counted.
    #[must_use]
    fn with_event(mut self) -> Self {
        self.last_event = self.last_event.next();
        self
    }
}

impl PublishJob {
    /// As T2 writes it, with its first event.
    pub fn queued(
        id: OperationId,
        bound: BoundDraft,
        created_by: Signed,
        created_at: DbTime,
    ) -> (Self, Event) {
        let common = Common {
            id,
            bound,
            created_by,
            created_at,
            last_event: EventNumber::FIRST,
        };
        (PublishJob::Queued(common), Event::Queued)
    }

    pub const fn state(&self) -> JobState {
        match self {
            PublishJob::Queued(_) => JobState::Queued,
            PublishJob::Running(..) => JobState::Running,
            PublishJob::Succeeded(..) => JobState::Succeeded,
            PublishJob::Failed(..) => JobState::Failed,
        }
    }

    pub const fn common(&self) -> &Common {
        match self {
            PublishJob::Queued(common)
            | PublishJob::Running(common, _)
            | PublishJob::Succeeded(common, _)
            | PublishJob::Failed(common, _) => common,
        }
    }

    /// Whether a worker may claim it: queued, or running with a lapsed lease.
    pub fn eligible(&self, now: DbTime) -> bool {
        match self {
            PublishJob::Queued(_) => true,
            PublishJob::Running(_, running) => running.lease_until < now,
            PublishJob::Succeeded(..) | PublishJob::Failed(..) => false,
        }
    }

    /// A worker's claim. `queued_generation` is the generation a queued row holds: 0, for
    /// a job that nobody has claimed.
    pub fn claim<R: Rules>(
        self,
        rules: &R,
        owner: Owner,
        current: EpochId,
        now: DbTime,
        lease: Span,
    ) -> Result<(PublishJob, Event), Refused<PublishJob, JobRefusal>> {
        let eligible = self.eligible(now);
        let (common, generation) = match self {
            PublishJob::Queued(common) => (common, Generation::FIRST),
            PublishJob::Running(common, running) => {
                if !rules.holds(Rule::JobEligible, eligible) {
                    let job = PublishJob::Running(common, running);
                    return Err(Refused::new(job, JobRefusal::Leased));
                }
                (common, running.fence.generation.next())
            }
            job @ (PublishJob::Succeeded(..) | PublishJob::Failed(..)) => {
                return Err(Refused::new(job, JobRefusal::Terminal));
            }
        };
        let running = Running {
            fence: Fence {
                owner,
                generation,
                epoch: current,
            },
            lease_until: now + lease,
        };
        Ok((
            PublishJob::Running(common.with_event(), running),
            Event::Claimed { generation },
        ))
    }

    /// The running part, if `token` owns it and its lease is live at `now`.
    fn owned<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
    ) -> Result<(Common, Running), Refused<PublishJob, JobRefusal>> {
        match self {
            PublishJob::Running(common, running) => {
                match running
                    .fence
                    .admits_live(rules, token, current, running.lease_until, now)
                {
                    Ok(()) => Ok((common, running)),
                    Err(stale) => Err(Refused::new(
                        PublishJob::Running(common, running),
                        JobRefusal::Stale(stale),
                    )),
                }
            }
            job @ (PublishJob::Queued(_) | PublishJob::Succeeded(..) | PublishJob::Failed(..)) => {
                Err(Refused::new(job, JobRefusal::NotRunning))
            }
        }
    }

    pub fn extend<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
        lease: Span,
    ) -> Result<PublishJob, Refused<PublishJob, JobRefusal>> {
        let (common, running) = self.owned(rules, token, current, now)?;
        let running = Running {
            lease_until: now + lease,
            ..running
        };
        Ok(PublishJob::Running(common, running))
    }

    /// T3's end. A lapsed owner never completes, even before another claim.
    pub fn succeed<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
        release: ReleaseId,
    ) -> Result<(PublishJob, Event), Refused<PublishJob, JobRefusal>> {
        let (common, _) = self.owned(rules, token, current, now)?;
        let job = PublishJob::Succeeded(common.with_event(), release);
        Ok((job, Event::Published { release }))
    }

    /// The failure transaction's end, under the same terms.
    pub fn fail<R: Rules>(
        self,
        rules: &R,
        token: &Fence,
        current: EpochId,
        now: DbTime,
        problem: Problem,
    ) -> Result<(PublishJob, Event), Refused<PublishJob, JobRefusal>> {
        let (common, _) = self.owned(rules, token, current, now)?;
        let code = problem.code;
        let job = PublishJob::Failed(common.with_event(), problem);
        Ok((job, Event::Failed { code, cause: None }))
    }

    /// Recovery entry fails a job nobody may run any more (PA §12.2).
    pub fn entered(self) -> Result<(PublishJob, Event), Refused<PublishJob, JobRefusal>> {
        let code = ProblemCode::RecoveryModeEntered;
        match self {
            PublishJob::Queued(common) | PublishJob::Running(common, _) => {
                let problem = Problem::new(code).say("Recovery mode was entered.");
                let job = PublishJob::Failed(common.with_event(), problem);
                Ok((job, Event::Failed { code, cause: None }))
            }
            job @ (PublishJob::Succeeded(..) | PublishJob::Failed(..)) => {
                Err(Refused::new(job, JobRefusal::Terminal))
            }
        }
    }
}

impl IngestJob {
    /// As ingestion start writes it, with its claim's fence and lease.
    pub fn started(
        id: OperationId,
        bound: BoundDraft,
        claim: IngestionId,
        running: Running,
        created_by: Signed,
        created_at: DbTime,
    ) -> (Self, Event) {
        let common = Common {
            id,
            bound,
            created_by,
            created_at,
            last_event: EventNumber::FIRST,
        };
        (IngestJob::Running(common, claim, running), Event::Started)
    }

    pub const fn state(&self) -> JobState {
        match self {
            IngestJob::Running(..) => JobState::Running,
            IngestJob::Succeeded(..) => JobState::Succeeded,
            IngestJob::Failed(..) => JobState::Failed,
        }
    }

    pub const fn common(&self) -> &Common {
        match self {
            IngestJob::Running(common, ..)
            | IngestJob::Succeeded(common, ..)
            | IngestJob::Failed(common, ..) => common,
        }
    }

    /// Its owner fields move with its claim's, in the same transaction.
    pub fn follow(self, claim: &crate::claim::Common) -> IngestJob {
        match self {
            IngestJob::Running(common, id, _) => IngestJob::Running(
                common.with_event(),
                id,
                Running {
                    fence: claim.fence.clone(),
                    lease_until: claim.lease_until,
                },
            ),
            job @ (IngestJob::Succeeded(..) | IngestJob::Failed(..)) => job,
        }
    }

    /// The draft transaction's end; the claim's release carries the fence.
    pub fn succeed(
        self,
        import_base: ImportBaseRevisionId,
    ) -> Result<(IngestJob, Event), Refused<IngestJob, JobRefusal>> {
        match self {
            IngestJob::Running(common, claim, _) => Ok((
                IngestJob::Succeeded(common.with_event(), claim, import_base),
                Event::Ingested { import_base },
            )),
            job @ (IngestJob::Succeeded(..) | IngestJob::Failed(..)) => {
                Err(Refused::new(job, JobRefusal::Terminal))
            }
        }
    }

    /// The end of every abandonment, with the refusal's problem or the abandonment's.
    pub fn fail(
        self,
        problem: Problem,
        cause: Option<&'static str>,
    ) -> Result<(IngestJob, Event), Refused<IngestJob, JobRefusal>> {
        match self {
            IngestJob::Running(common, claim, _) => {
                let code = problem.code;
                let job = IngestJob::Failed(common.with_event(), claim, problem);
                Ok((job, Event::Failed { code, cause }))
            }
            job @ (IngestJob::Succeeded(..) | IngestJob::Failed(..)) => {
                Err(Refused::new(job, JobRefusal::Terminal))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{DraftId, PrincipalId};
    use crate::principal::Role;
    use crate::revision::Revision;
    use crate::rules::{Enforced, Without};

    fn owner(name: &str) -> Owner {
        Owner::new(name, 1, 1).unwrap()
    }

    fn epoch() -> EpochId {
        EpochId::from_bits(1)
    }

    fn at(seconds: i64) -> DbTime {
        DbTime::from_seconds(seconds)
    }

    fn queued() -> PublishJob {
        let bound = BoundDraft {
            draft: DraftId::from_bits(1),
            revision: Revision(7),
        };
        let by = Signed {
            principal: PrincipalId::from_bits(1),
            role: Role::Publisher,
        };
        PublishJob::queued(OperationId::from_bits(1), bound, by, at(0)).0
    }

    fn claimed(job: PublishJob, name: &str, now: i64) -> PublishJob {
        job.claim(&Enforced, owner(name), epoch(), at(now), Span::seconds(30))
            .unwrap()
            .0
    }

    fn token(job: &PublishJob) -> Fence {
        let PublishJob::Running(_, running) = job else {
            panic!("a running job");
        };
        running.fence.clone()
    }

    #[test]
    fn a_job_is_claimed_when_queued_and_again_once_its_lease_lapsed() {
        let job = claimed(queued(), "a", 0);
        let live = job
            .clone()
            .claim(&Enforced, owner("b"), epoch(), at(30), Span::seconds(30));
        assert_eq!(live.unwrap_err().reason, JobRefusal::Leased);
        let again = claimed(job, "b", 31);
        assert_eq!(token(&again).generation, Generation(2));
        assert_eq!(again.common().last_event, EventNumber(3));
    }

    // covers-part: PA-JOB-1 (the term itself; the race is the store's)
    #[test]
    fn a_lapsed_owner_neither_extends_nor_completes_even_before_another_claim() {
        let job = claimed(queued(), "a", 0);
        let release = ReleaseId::from_bits(1);
        let own = token(&job);
        let end = |rules_now: i64| {
            job.clone()
                .succeed(&Enforced, &own, epoch(), at(rules_now), release)
        };
        assert!(end(29).is_ok());
        assert_eq!(end(30).unwrap_err().reason, JobRefusal::Stale(Stale::Lease));
        let extended = job
            .clone()
            .extend(&Enforced, &own, epoch(), at(30), Span::seconds(30));
        assert_eq!(
            extended.unwrap_err().reason,
            JobRefusal::Stale(Stale::Lease)
        );
        let control = Without(&[Rule::LeaseLive]);
        assert!(
            job.succeed(&control, &own, epoch(), at(30), release)
                .is_ok()
        );
    }

    #[test]
    fn a_superseded_worker_is_refused_and_its_job_is_unchanged() {
        let first = claimed(queued(), "a", 0);
        let old = token(&first);
        let second = claimed(first, "a", 40);
        let refused = second
            .clone()
            .fail(
                &Enforced,
                &old,
                epoch(),
                at(41),
                Problem::internal("It failed."),
            )
            .unwrap_err();
        assert_eq!(refused.reason, JobRefusal::Stale(Stale::Generation));
        assert_eq!(*refused.unchanged, second);
    }

    #[test]
    fn an_entry_fails_what_has_not_ended() {
        let (job, event) = queued().entered().unwrap();
        assert_eq!(job.state(), JobState::Failed);
        assert!(event.is_terminal());
        assert_eq!(job.entered().unwrap_err().reason, JobRefusal::Terminal);
    }
}
