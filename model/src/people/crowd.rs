//! The people of a world and what each does when it has a moment.
//!
//! Everybody looks, picks an act that could be due, and asks for it; some acts are picked
//! although nothing says they are due, since people do that too. How often each is picked is
//! the seed's habit. Never in this module: how an act is asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use bronzeward_core::claim::{ClaimKind, StagingMode};
use bronzeward_core::head::{AssignmentContent, Name};
use bronzeward_core::time::Span;

use super::acts::made;
use super::doing::Doing;
use super::hand::{Hand, Person};
use super::tools::AUTOMATION;
use super::view::{DraftSeen, MachineSeen, View};
use crate::hazard::Hazard;
use crate::run::Run;
use crate::sched::ProcessId;
use crate::sim::Sim;

/// Everybody comes to work.
pub fn come(run: &mut Run, sim: &Arc<Sim>, idle: &BTreeSet<Doing>, servers: u32) {
    let crowd = [
        ("ann", &["author"][..], Doing::AUTHOR),
        ("abe", &["author", "publisher"], Doing::AUTHOR),
        ("pam", &["publisher"], Doing::PUBLISHER),
        ("pat", &["publisher", "approver"], Doing::PUBLISHER),
        ("vic", &["approver"], Doing::APPROVER),
        ("van", &["approver"], Doing::APPROVER),
        ("pat", &["publisher", "approver"], Doing::APPROVER),
        ("rae", &["recovery-admin"], Doing::ADMIN),
        // Automation, which asks for more than it may.
        (AUTOMATION, &["author", "publisher"], Doing::AUTHOR),
        (AUTOMATION, &["author", "publisher"], Doing::PUBLISHER),
        // Somebody who may only look.
        ("max", &["viewer"], Doing::ADMIN),
    ];
    for (name, groups, doings) in crowd {
        let hand = Hand::new(sim, Person { name, groups });
        let mut habits = habits(sim, doings);
        let hazard = sim.state().hazard;
        for (doing, weight) in &mut habits {
            *weight *= hazard.zeal(*doing);
        }
        habits.retain(|(doing, _)| !idle.contains(doing));
        // Each seed has its hasty and its slow people.
        let longest = Span::millis(sim.state().rng.i64(1_000..9_000));
        run.spawn(ProcessId::WORLD, work(hand, habits, longest));
    }
    super::keeper::come(run, sim, servers);
    super::session::come(run, sim);
}

/// A seed's habits: each weight is changed, and some acts are left out.
fn habits(sim: &Arc<Sim>, doings: &[(Doing, u32)]) -> Vec<(Doing, u32)> {
    let mut state = sim.state();
    let habits = doings.iter().map(|(doing, weight)| {
        let rate = match state.rng.u32(0..6) {
            0 => 0,
            1 => 4,
            _ => state.rng.u32(1..3),
        };
        (*doing, weight * rate)
    });
    habits.collect()
}

async fn work(hand: Hand, habits: Vec<(Doing, u32)>, longest: Span) {
    let all: u32 = habits.iter().map(|(_, weight)| weight).sum();
    if all == 0 {
        return;
    }
    loop {
        hand.sleep(Span::millis(50), longest).await;
        let doing = {
            let mut state = hand.sim.state();
            if state.people_rest {
                return;
            }
            let mut at = state.rng.u32(0..all);
            let mut picked = habits[0].0;
            for (doing, weight) in &habits {
                if at < *weight {
                    picked = *doing;
                    break;
                }
                at -= weight;
            }
            picked
        };
        hand.act(doing).await;
    }
}

impl Hand {
    /// Picks one of several by the seed.
    pub(super) fn pick<T>(&self, look: impl FnOnce(&View<'_>) -> Vec<T>) -> Option<T> {
        let mut state = self.sim.state();
        let mut found = look(&View(&state.db.tables));
        let place = (!found.is_empty()).then(|| state.rng.usize(0..found.len()))?;
        Some(found.swap_remove(place))
    }

    pub(super) fn number(&self, below: u32) -> u32 {
        self.sim.state().rng.u32(0..below)
    }

    fn draft(&self) -> Option<DraftSeen> {
        self.pick(|view| view.open_drafts())
    }

    async fn act(&self, doing: Doing) {
        // A target that is not there makes a moment in which nothing is done.
        let _idle = match doing {
            Doing::OpenDraft => self.open().await,
            Doing::PutFragment => self.fragment().await,
            Doing::PutProfile => self.profile().await,
            Doing::PutAssignment => self.assignment().await,
            Doing::DiscardDraft => self.discard().await,
            Doing::Import => self.bring_in().await,
            Doing::AbandonIngestion => self.abandon().await,
            Doing::TakeOverIngestion => self.resume().await,
            Doing::ChangeEndpoint => self.readdress().await,
            Doing::Publish => self.publish_some().await,
            Doing::PlanApply => self.plan_some(false).await,
            Doing::PlanAdopt => self.plan_some(true).await,
            Doing::Approve => self.approve_some().await,
            Doing::TakeOverOperation => self.take_over_some().await,
            Doing::Account => self.account_some().await,
            Doing::RevokeIdentity => self.revoke_some().await,
            Doing::RevokeApproval => self.take_back_some().await,
            Doing::Cancel => self.cancel_some().await,
            Doing::Freeze => self.freeze_some().await,
            Doing::Unfreeze => self.unfreeze_some().await,
            Doing::Resolve => self.resolve_some().await,
            Doing::ReportOrphans => self.report_orphans().await,
        };
    }

    async fn open(&self) -> Option<()> {
        if self.pick(|view| view.open_drafts()).is_some() && self.number(3) > 0 {
            return None;
        }
        let cluster = self.pick(|view| view.clusters())?;
        let ended = self.open_draft(cluster).await;
        made::<bronzeward_core::id::kind::Draft>(&ended).map(|_| ())
    }

    async fn fragment(&self) -> Option<()> {
        let draft = self.draft()?;
        let name = Name::parse(["labels", "more"][self.number(2) as usize]).ok()?;
        let number = self.number(1_000);
        let text = crate::furniture::fragment(number);
        self.put_fragment(draft.id, draft.etag, name, text).await;
        Some(())
    }

    async fn profile(&self) -> Option<()> {
        let draft = self.draft()?;
        let fragments = self.pick(|view| vec![view.fragments_of(draft.cluster, draft.id)])?;
        let name = Name::parse("workers").ok()?;
        self.put_profile(draft.id, draft.etag, name, fragments)
            .await;
        Some(())
    }

    async fn assignment(&self) -> Option<()> {
        let draft = self.draft()?;
        let machine = self.pick(|view| view.machines())?;
        let profiles = match self.number(5) {
            0 => Vec::new(),
            _ => vec![Name::parse("workers").ok()?],
        };
        let content = AssignmentContent {
            profiles,
            ..AssignmentContent::default()
        };
        self.put_assignment(draft.id, draft.etag, machine.id, content)
            .await;
        Some(())
    }

    async fn discard(&self) -> Option<()> {
        let draft = self.draft()?;
        self.discard_draft(draft.id, draft.etag).await;
        Some(())
    }

    async fn bring_in(&self) -> Option<()> {
        let draft = self.draft()?;
        // Mostly one whose node shows what nobody approved.
        let leases = self.sim.state().hazard == Hazard::Leases;
        let any = leases || self.number(3) == 0;
        let machine = self.pick(|view| {
            let machines = view.machines().into_iter();
            let wanted = machines.filter(|machine| any || view.drifted(machine.id));
            wanted.collect()
        })?;
        let mode = match self.number(2) {
            0 => StagingMode::Transient,
            _ => StagingMode::Encrypted,
        };
        let marks = crate::furniture::marks();
        let drifted = self.pick(|view| vec![view.drifted(machine.id)]);
        let kind = match drifted == Some(true) && self.number(4) > 0 {
            true => ClaimKind::DriftAdoption,
            false => ClaimKind::Import,
        };
        self.import(machine.id, draft.id, draft.etag, mode, kind, marks)
            .await;
        Some(())
    }

    async fn abandon(&self) -> Option<()> {
        let ingestion = self.pick(|view| view.live_ingestions())?;
        self.abandon_ingestion(ingestion).await;
        Some(())
    }

    /// Mostly one that nobody works on any more.
    async fn resume(&self) -> Option<()> {
        let (any, now) = (self.number(4) == 0, self.sim.state().sched.now());
        let ingestion = self.pick(|view| match any {
            true => view.live_ingestions(),
            false => view.lapsed_ingestions(now),
        })?;
        self.take_over_ingestion(ingestion).await;
        Some(())
    }

    async fn readdress(&self) -> Option<()> {
        let machine = self.pick(|view| view.machines())?;
        let endpoint = crate::furniture::some_endpoint(&mut self.sim.state())?;
        self.change_endpoint(machine.id, endpoint).await;
        Some(())
    }

    async fn publish_some(&self) -> Option<()> {
        let draft = self.pick(|view| {
            let drafts = view.open_drafts().into_iter();
            drafts.filter(|draft| view.entries(draft.id) > 0).collect()
        })?;
        self.publish(draft.id, draft.etag).await;
        Some(())
    }

    /// Mostly where there is something to apply.
    async fn plan_some(&self, adopt: bool) -> Option<()> {
        let any = self.number(6) == 0;
        let machine = self.pick(|view| {
            let machines = view.machines().into_iter();
            let differs = |machine: &MachineSeen| {
                machine.state.applied.map(|applied| applied.release) != machine.state.desired
            };
            let wanted = |machine: &MachineSeen| differs(machine) || view.drifted(machine.id);
            machines.filter(|machine| any || wanted(machine)).collect()
        })?;
        let desired = machine.state.desired;
        let release = match self.number(8) {
            0 => self
                .pick(|view| view.releases())
                .map(|(release, _)| release),
            _ => desired,
        }?;
        self.plan(release, machine.id, adopt).await;
        Some(())
    }

    async fn approve_some(&self) -> Option<()> {
        let rare = self.number(12) == 0;
        let (plan, _) = self.pick(|view| match rare {
            true => view.plans_in(&["proposed", "approved", "committed", "expired"]),
            false => view.plans_in(&["proposed"]),
        })?;
        self.approve(plan).await;
        Some(())
    }

    async fn take_over_some(&self) -> Option<()> {
        let (operation, generation, _) = self.pick(|view| view.open_operations())?;
        self.take_over_operation(operation, generation).await;
        Some(())
    }

    async fn account_some(&self) -> Option<()> {
        let lost = self.pick(|view| view.lost_answers())?;
        self.account(lost.operation, lost.attempt, lost.start, lost.end)
            .await;
        Some(())
    }

    async fn revoke_some(&self) -> Option<()> {
        if self.number(4) > 0 {
            return None;
        }
        let identity = self.pick(|view| view.principals())?;
        self.revoke_identity(identity).await;
        Some(())
    }

    async fn take_back_some(&self) -> Option<()> {
        let approval = self.pick(|view| view.approvals())?;
        self.revoke_approval(approval).await;
        Some(())
    }

    async fn cancel_some(&self) -> Option<()> {
        let rare = self.number(12) == 0;
        let (plan, _) = self.pick(|view| match rare {
            true => view.plans_in(&["cancelled", "expired", "revoked", "committed"]),
            false => view.plans_in(&["proposed", "approved", "committed"]),
        })?;
        self.cancel(plan).await;
        Some(())
    }

    async fn freeze_some(&self) -> Option<()> {
        let machine = self.pick(|view| view.machines())?;
        self.freeze(machine.id).await;
        Some(())
    }

    /// Mostly one that is frozen.
    async fn unfreeze_some(&self) -> Option<()> {
        let any = self.number(12) == 0;
        let machine = self.pick(|view| {
            let machines = view.machines().into_iter();
            machines.filter(|machine| any || machine.frozen).collect()
        })?;
        self.unfreeze(machine.id).await;
        Some(())
    }

    async fn resolve_some(&self) -> Option<()> {
        let (operation, _, _) = self.pick(|view| view.open_operations())?;
        self.resolve(operation).await;
        Some(())
    }
}
