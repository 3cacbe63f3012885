//! The controller: carries out what was approved (EaR 3.2, 6.3).
//!
//! The server runs one per process. Any number of processes may run one: what a plan may
//! still do is decided by the transaction that commits it. It carries out adopt plans;
//! an apply-config plan stays approved until a later loop of this module commits it.
//! Never in this module: a client that changes a node.

mod adopt;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bronzeward_core::id::{ApprovalId, EpochId, PlanId};
use bronzeward_core::plan::{AnyPlan, Approved, Plan, PlanOperation};
use bronzeward_core::time::{DbTime, Span};

use crate::ingest::unless;
use crate::observe::Observer;
use crate::ports::store::{PlanRow, Snapshot, Store, StoreError};
use crate::ports::{Notifier, Wake};
use crate::world::{Db, World};

/// How often the controller looks, and how long it leaves a plan that was refused.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub interval: Duration,
    /// What was refused once may hold later: a node comes back. Each refusal doubles how
    /// long the plan is left, from the interval up to this, since every try reads the
    /// node and adds to its machine's timeline.
    pub longest_pause: Duration,
}

/// What carrying out an approved plan needs of the world.
pub struct Controller<W: World> {
    pub db: Db<W>,
    pub observer: Observer<W>,
    pub notifier: Arc<W::Notifier>,
    pub settings: Settings,
}

/// How a try at one plan ended, where it was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// It is tried again later.
    Later(&'static str),
    /// A recovery entry has replaced this process's epoch; it carries out nothing more.
    Superseded,
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
        let longest = span(settings.longest_pause);
        let length = match before {
            None => span(settings.interval),
            Some(before) => Span::micros(before.length.as_micros().saturating_mul(2)),
        };
        let length = length.min(longest);
        Self {
            until: now + length,
            length,
        }
    }
}

fn span(length: Duration) -> Span {
    Span::micros(i64::try_from(length.as_micros()).unwrap_or(i64::MAX))
}

impl<W: World> Controller<W> {
    /// Carries out approved plans until `shutdown` ends. A try that is under way then is
    /// left where it stands: its transaction either committed or did nothing.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) {
        unless(self.work(), shutdown).await;
    }

    async fn work(&self) {
        let mut pauses = BTreeMap::new();
        loop {
            match self.pass(&mut pauses).await {
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
            self.notifier.wait(Wake::Dispatch, interval).await;
        }
    }

    /// Tries every plan that is due, one after the other.
    async fn pass(&self, pauses: &mut BTreeMap<Tried, Pause>) -> Result<(), Stop> {
        let (now, plans) = self.due().await?;
        let approved: Vec<(Tried, Plan<Approved>)> = plans
            .into_iter()
            .map(|plan| ((plan.binding().id, plan.state().approval.id), plan))
            .collect();
        pauses.retain(|tried, _| approved.iter().any(|(found, _)| found == tried));
        for (tried, plan) in approved {
            let before = pauses.get(&tried).copied();
            if before.is_some_and(|pause| now < pause.until) {
                continue;
            }
            match self.adopt(&plan).await {
                Ok(()) => {}
                Err(Stop::Superseded) => return Err(Stop::Superseded),
                Err(Stop::Later(why)) => {
                    let (plan, _) = tried;
                    tracing::warn!(event = "plan-not-carried-out", %plan, why, "a plan is tried again later");
                    pauses.insert(tried, Pause::after(before, now, self.settings));
                }
            }
        }
        Ok(())
    }

    /// The adopt plans that read as approved in the current epoch, at the database's time.
    async fn due(&self) -> Result<(DbTime, Vec<Plan<Approved>>), Stop> {
        let store = self.db.store();
        let mut snapshot = store.snapshot().await.map_err(unread)?;
        let read = approved(&mut snapshot).await;
        snapshot.close().await;
        let (now, epoch, rows) = read.map_err(unread)?;
        if !self.db.admits(epoch) {
            return Err(Stop::Superseded);
        }
        let due = rows.into_iter().filter_map(|row| {
            let AnyPlan::Approved(plan) = row.plan.read_at(now, row.approver_revoked_at).plan
            else {
                return None;
            };
            let adopt = matches!(plan.binding().operation, PlanOperation::Adopt { .. });
            (adopt && plan.authorised_in(epoch)).then_some(plan)
        });
        Ok((now, due.collect()))
    }
}

async fn approved<S: Snapshot>(
    snapshot: &mut S,
) -> Result<(DbTime, EpochId, Vec<PlanRow>), StoreError> {
    let now = snapshot.clock().await?;
    let epoch = snapshot.installation().await?.epoch;
    let rows = snapshot.approved_plans(now).await?;
    Ok((now, epoch, rows))
}

const fn unread(_: StoreError) -> Stop {
    Stop::Later("the approved plans could not be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_doubles_the_pause_up_to_the_longest() {
        let settings = Settings {
            interval: Duration::from_secs(15),
            longest_pause: Duration::from_secs(50),
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
    }
}
