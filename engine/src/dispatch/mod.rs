//! The controller: carries out what was approved (EaR 3 to 6).
//!
//! The server runs one per process. Any number of processes may run one: what a plan may
//! still do, and whose an operation is, is decided by the transactions that commit it. A
//! pass reads what there is to do and hands each machine's errand to a task of its own, so
//! that a slow node holds up nobody else's. Never in this module: a request that no
//! committed attempt precedes.

mod adopt;
mod carry;
mod drift;
mod gather;
mod look;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bronzeward_core::id::{ApprovalId, MachineId, OperationId, PlanId};
use bronzeward_core::plan::{Approved, Plan, PlanOperation};
use bronzeward_core::time::{DbTime, Span};

use crate::ingest::unless;
use crate::observe::Observer;
use crate::ports::{Alert, AlertSink, Notifier, Tasks, Wake};
use crate::tx::Failure;
use crate::tx::dispatch::Refused;
use crate::world::{Db, World};

use look::Errand;

/// How often the controller looks, and how long it leaves what was refused.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub interval: Duration,
    /// What was refused once may hold later: a node comes back. Each refusal doubles how
    /// long the plan is left, from the interval up to this, since every try reads the
    /// node and adds to its machine's timeline.
    pub longest_pause: Duration,
    /// How long an owner of an operation stays it without a word (EaR 3.4).
    pub lease: Span,
    /// How often a machine with an unresolved operation is observed (EaR 5.2).
    pub recovery_interval: Duration,
    /// How often a machine is read for drift (EaR 6.1); up to a tenth more, its own.
    pub drift_interval: Duration,
    /// How long an accepted configuration is left to settle before the second look; each
    /// further pause is twice as long, up to the recovery interval.
    pub settling: Duration,
}

impl Settings {
    /// How often an owner extends its lease: twice may fail before it lapses.
    fn heartbeat(&self) -> Duration {
        self.lease.as_duration() / 3
    }
}

/// What carrying out an approved plan needs of the world. The mutating client is held here
/// and nowhere else.
pub struct Parts<W: World> {
    pub db: Db<W>,
    pub observer: Observer<W>,
    pub executor: Arc<W::Executor>,
    pub metadata: Arc<W::Metadata>,
    pub writer: Arc<W::Writer>,
    pub timer: Arc<W::Timer>,
    pub tasks: Arc<W::Tasks>,
    pub notifier: Arc<W::Notifier>,
    pub alerts: Arc<W::Alerts>,
}

/// The controller of one process.
pub struct Controller<W: World> {
    parts: Parts<W>,
    settings: Settings,
    memory: Mutex<Memory>,
}

/// What this process remembers between passes. Losing it costs a look too many.
#[derive(Default)]
struct Memory {
    /// Machines whose errand is under way.
    busy: BTreeSet<MachineId>,
    pauses: BTreeMap<Tried, Pause>,
    /// When each unresolved operation's machine was last observed for it.
    looked: BTreeMap<OperationId, DbTime>,
    /// When each machine with an unaccounted scope was last observed for its settle.
    settled: BTreeMap<MachineId, DbTime>,
}

/// How a try at one plan or operation ended, where it was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// It is tried again later.
    Later(&'static str),
    /// A recovery entry has replaced this process's epoch; it carries out nothing more.
    Superseded,
}

impl From<Failure<Refused>> for Stop {
    fn from(failure: Failure<Refused>) -> Self {
        match failure {
            Failure::Refused(Refused::Superseded) => Self::Superseded,
            Failure::Refused(Refused::NotOwner) => Self::Later("the operation is another owner's"),
            Failure::Refused(Refused::Gone) => Self::Later("it is not there, or has moved on"),
            failure => Self::Later(class(&failure)),
        }
    }
}

/// What may be logged of a transaction that ended without its effect.
const fn class<R>(failure: &Failure<R>) -> &'static str {
    match failure {
        Failure::Unavailable => "the database was lost",
        Failure::Unknown => "a commit's outcome is unknown",
        Failure::Deadlock => "deadlocks",
        Failure::Refused(_) => "refused",
        Failure::Unique(_) | Failure::Integrity(_) | Failure::Fault => "the transaction failed",
    }
}

/// A plan that was tried under this approval and is left alone for a while. An approval
/// of a later epoch is another one, and is tried at once.
type Tried = (PlanId, ApprovalId);

/// Until when a plan is left, and for how long that was. It is this process's memory
/// only: a restart tries every approved plan once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pause {
    until: DbTime,
    length: Span,
}

impl Pause {
    /// The pause after another refusal at `now`.
    fn after(before: Option<Self>, now: DbTime, settings: Settings) -> Self {
        let longest = Span::from(settings.longest_pause);
        let length = match before {
            None => Span::from(settings.interval),
            Some(before) => Span::micros(before.length.as_micros().saturating_mul(2)),
        };
        let length = length.min(longest);
        Self {
            until: now + length,
            length,
        }
    }
}

/// A machine whose errand is under way, until this is dropped.
struct Busy<W: World> {
    controller: Arc<Controller<W>>,
    machine: MachineId,
}

impl<W: World> Drop for Busy<W> {
    fn drop(&mut self) {
        self.controller.memory().busy.remove(&self.machine);
    }
}

impl<W: World> Controller<W> {
    pub fn new(parts: Parts<W>, settings: Settings) -> Self {
        Self {
            parts,
            settings,
            memory: Mutex::default(),
        }
    }

    /// Carries out approved plans, and the operations they became, until `shutdown` ends. An
    /// errand that is under way then is left where it stands: each of its transactions
    /// either committed or did nothing, and its lease lapses.
    pub async fn run(self: &Arc<Self>, shutdown: impl Future<Output = ()> + Send) {
        unless(self.work(), shutdown).await;
    }

    async fn work(self: &Arc<Self>) {
        loop {
            match self.pass().await {
                Ok(()) => {}
                Err(Stop::Superseded) => {
                    tracing::warn!(
                        event = "controller-superseded",
                        "a recovery entry replaced this process's epoch; it carries out nothing more"
                    );
                    // Nothing changes that but a restart.
                    std::future::pending::<()>().await;
                }
                Err(Stop::Later(why)) => {
                    tracing::warn!(event = "controller-pass-failed", why, "a pass failed");
                }
            }
            let interval = self.settings.interval;
            self.parts.notifier.wait(Wake::Dispatch, interval).await;
        }
    }

    /// Begins everything that is due: operations before plans, since one of them may hold a
    /// plan's scope, and a reading for drift where a machine needs nothing else.
    async fn pass(self: &Arc<Self>) -> Result<(), Stop> {
        let db = &self.parts.db;
        if !db.start_mode().serves(&db.rules()) {
            // Nothing is recorded in the epoch that an entry is about to fence (PA §12.2).
            return Ok(());
        }
        let seen = self.look().await?;
        let now = seen.now;
        let errands = self.errands(seen);
        for (machine, errand) in errands {
            if let Some(busy) = self.begin(machine) {
                let work = Arc::clone(self).attend(busy, errand, now);
                self.parts.tasks.spawn(work);
            }
        }
        Ok(())
    }

    fn begin(self: &Arc<Self>, machine: MachineId) -> Option<Busy<W>> {
        let begun = self.memory().busy.insert(machine);
        begun.then(|| Busy {
            controller: Arc::clone(self),
            machine,
        })
    }

    /// One machine's errand, to its end.
    async fn attend(self: Arc<Self>, busy: Busy<W>, errand: Errand, now: DbTime) {
        let done = match &errand {
            Errand::Plan(plan) => self.carry_out(plan).await,
            Errand::Carry(owned) => self.carry(owned, None).await,
            Errand::TakeOver(row) => self.take_over(row).await,
            Errand::Keep(owned) => self.keep(owned).await,
            Errand::Observe(row) => self.watch(row).await,
            Errand::Drift => self.read_for_drift(busy.machine).await,
            Errand::Settle => self.settle(busy.machine).await,
        };
        let machine = busy.machine;
        if let Err(stop) = done {
            let why = match stop {
                Stop::Later(why) => why,
                Stop::Superseded => "a recovery entry replaced this process's epoch",
            };
            tracing::warn!(event = "errand-not-carried-out", %machine, errand = errand.name(), why, "an errand is tried again later");
        }
        if let Errand::Plan(plan) = &errand {
            self.remember(plan, done.is_err(), now);
        }
    }

    /// How a plan's try ended: a refused one is left for a while.
    fn remember(&self, plan: &Plan<Approved>, refused: bool, now: DbTime) {
        let tried = (plan.binding().id, plan.state().approval.id);
        let mut memory = self.memory();
        if refused {
            let before = memory.pauses.get(&tried).copied();
            let pause = Pause::after(before, now, self.settings);
            memory.pauses.insert(tried, pause);
        } else {
            memory.pauses.remove(&tried);
        }
    }

    async fn carry_out(&self, plan: &Plan<Approved>) -> Result<(), Stop> {
        match plan.binding().operation {
            PlanOperation::Adopt { .. } => self.adopt(plan).await,
            PlanOperation::ApplyConfig(_) => self.apply(plan).await,
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // A panic while it was held leaves a set that costs a look at most.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn raise(&self, alert: Option<Alert>) {
        if let Some(alert) = alert {
            self.parts.alerts.raise(alert);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_doubles_the_pause_up_to_the_longest() {
        let settings = Settings {
            interval: Duration::from_secs(15),
            longest_pause: Duration::from_secs(50),
            lease: Span::seconds(30),
            recovery_interval: Duration::from_secs(15),
            drift_interval: Duration::from_secs(300),
            settling: Duration::from_secs(1),
        };
        let now = DbTime::from_seconds(100);
        let mut pause = None;
        let lengths: Vec<i64> = (0..4)
            .map(|_| {
                let next = Pause::after(pause, now, settings);
                assert_eq!(next.until, now + next.length);
                pause = Some(next);
                next.length.as_seconds()
            })
            .collect();
        assert_eq!(lengths, [15, 30, 50, 50]);
        assert_eq!(settings.heartbeat(), Duration::from_secs(10));
    }
}
