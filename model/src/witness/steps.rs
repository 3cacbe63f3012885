//! Steps that schedules are made of: a controller's of one plan, each by itself.
//!
//! Every one calls the engine's own. Never in this module: a premise of one rule.

use std::sync::Arc;

use bronzeward_core::comparison::ArtifactCheck;
use bronzeward_core::drift::OpenDrift;
use bronzeward_core::id::{
    ApprovalId, AssignmentRevisionId, AttemptId, MachineId, ObservationId, OperationId, PlanId,
};
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_core::operation::OperationState;
use bronzeward_core::plan::Binding;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::observe::Wanted;
use bronzeward_engine::ports::node::{ApplyAnswer, Asked};
use bronzeward_engine::ports::provider::ExecutorSecrets as _;
use bronzeward_engine::rows::{OperationRow, SourceRevisionId};
use bronzeward_engine::tx::Failure;
use bronzeward_engine::tx::dispatch::{
    Checked, Evidence, Judged, Owned, Refused, commit, judge, record_attempt, record_check,
    record_not_admitted, record_response, take_over_lapsed,
};
use bronzeward_engine::world::Permit;

use super::stage::{Stage, Step};
use crate::pg::Eye;
use crate::ports::provider::SimExecutor;
use crate::ports::{node, renderer};
use crate::seed::End;
use crate::server::{LEASE, Server};
use crate::store::execution::Drift;

const SEEN: Eye = Eye::COMMITTED;

/// The plan that a schedule is about.
#[derive(Clone)]
pub struct Subject {
    pub plan: PlanId,
    pub machine: MachineId,
    pub approval: ApprovalId,
    pub binding: Arc<Binding>,
}

/// That a step was refused, in words.
pub(super) fn failed(what: &str) -> End {
    End::Error(format!("a step failed that no rule refuses: {what}"))
}

impl Stage {
    /// The approved plans of the genesis, one a machine of one cluster.
    pub fn subjects(&self) -> Step<Vec<Subject>> {
        let approved = self.approved();
        let subjects = approved.into_iter();
        subjects
            .map(|(plan, approval)| self.subject_of(plan, approval))
            .collect()
    }

    fn approved(&self) -> Vec<(PlanId, ApprovalId)> {
        self.see(|tables| {
            let states = tables.execution.plan_states.values(SEEN);
            let approved = states.filter(|state| state.state == "approved");
            approved
                .filter_map(|state| Some((state.plan, state.approval?)))
                .collect()
        })
    }

    /// An approved plan of the genesis. The others have run out.
    pub fn subject(&mut self) -> Step<Subject> {
        let approved = self.approved();
        let Some(((plan, approval), others)) = approved.split_first() else {
            return Err(failed("the genesis has no approved plan"));
        };
        for (other, _) in others {
            self.alter(
                |tables| &mut tables.execution.plan_states,
                *other,
                |state| state.state = "expired".to_owned(),
            )?;
        }
        self.subject_of(*plan, *approval)
    }

    /// The plan as it is now.
    pub fn subject_of(&self, plan: PlanId, approval: ApprovalId) -> Step<Subject> {
        let binding = self.see(|tables| {
            let record = tables.execution.plans.get(SEEN, &plan);
            record.map(|record| Arc::clone(&record.binding))
        });
        let binding = binding.ok_or_else(|| failed("no such plan"))?;
        Ok(Subject {
            plan,
            machine: binding.machine,
            approval,
            binding,
        })
    }

    /// Changes what the plan binds, as if it had been made so.
    pub fn rebind(&mut self, subject: &mut Subject, change: impl FnOnce(&mut Binding)) -> Step {
        self.alter(
            |tables| &mut tables.execution.plans,
            subject.plan,
            |record| {
                change(Arc::make_mut(&mut record.binding));
            },
        )?;
        *subject = self.subject_of(subject.plan, subject.approval)?;
        Ok(())
    }

    /// Evidence for a plan, or for its operation's next attempt, over its bound route.
    pub fn gather(
        &mut self,
        server: &Arc<Server>,
        subject: &Subject,
        owned: Option<&Owned>,
    ) -> Step<Evidence> {
        let (of, binding) = (Arc::clone(server), Arc::clone(&subject.binding));
        let owned = owned.cloned();
        let gathered = self.call(server, async move {
            let observer = &of.observer;
            let accessed = observer.access(binding.cluster).await.ok()?;
            let wanted = Wanted {
                id: of.db.mint(),
                machine: binding.machine,
                purpose: Purpose::Evidence,
                plan: Some(binding.id),
                operation: owned.as_ref().map(|owned| owned.operation),
                route: Some(binding.route),
                fence: owned.as_ref().map(|owned| owned.fence.clone()),
                asked: Asked::EVERYTHING,
            };
            let (started, _) = observer.begin(&wanted).await.ok()?;
            let values = observer.read(&started, &accessed, wanted.asked).await;
            let fence = wanted.fence.as_ref();
            let observation = observer.complete(started, values, fence).await.ok()?;
            let checked = Checked {
                access: observation.values.access.clone(),
                artifact: ArtifactCheck::Matches,
            };
            let operation = owned.as_ref().map(|owned| (owned.operation, &owned.fence));
            let check = record_check(&of.db, &binding, operation, &checked).await;
            Some(Evidence {
                check: check.ok()?,
                observation,
                access: Some(accessed.version),
            })
        })?;
        gathered.ok_or_else(|| failed("evidence"))
    }

    /// The commitment; none where it is refused.
    pub fn commit(
        &mut self,
        server: &Arc<Server>,
        plan: PlanId,
        evidence: &Evidence,
    ) -> Step<Option<Owned>> {
        let (of, evidence) = (Arc::clone(server), evidence.clone());
        self.call(server, async move {
            commit(&of.db, plan, &evidence, of.db.mint(), LEASE)
                .await
                .ok()
        })
    }

    /// The attempt's transaction; none where it is refused, which is recorded. Nothing is sent.
    pub fn attempt(
        &mut self,
        server: &Arc<Server>,
        owned: &Owned,
        evidence: &Evidence,
    ) -> Step<Option<Permit>> {
        let (of, owned, evidence) = (Arc::clone(server), owned.clone(), evidence.clone());
        self.call(server, async move {
            let recorded = record_attempt(&of.db, &owned, &evidence, of.db.mint()).await;
            match recorded {
                Ok(permit) => Some(permit),
                Err(Failure::Refused(Refused::NotAdmitted(refused))) => {
                    let (plan, owned) = (owned.plan, Some(&owned));
                    let written = record_not_admitted(&of.db, plan, owned, &evidence, &refused);
                    // A refusal that is not recorded changes nothing either.
                    let _alert = written.await;
                    None
                }
                Err(_) => None,
            }
        })
    }

    /// The record of an answer; none where it is refused.
    pub fn answer(
        &mut self,
        server: &Arc<Server>,
        owned: &Owned,
        attempt: AttemptId,
        answer: ApplyAnswer,
    ) -> Step<Option<OperationState>> {
        let (of, owned) = (Arc::clone(server), owned.clone());
        self.call(server, async move {
            record_response(&of.db, &owned, attempt, answer).await.ok()
        })
    }

    /// A reading for a purpose, on behalf of an operation.
    pub fn observe(
        &mut self,
        server: &Arc<Server>,
        subject: &Subject,
        owned: &Owned,
        purpose: Purpose,
    ) -> Step<Observation> {
        let (of, owned) = (Arc::clone(server), owned.clone());
        let (plan, machine, route) = (subject.plan, subject.machine, subject.binding.route);
        let seen = self.call(server, async move {
            let wanted = Wanted {
                id: of.db.mint(),
                machine,
                purpose,
                plan: Some(plan),
                operation: Some(owned.operation),
                route: Some(route),
                fence: (purpose == Purpose::Completion).then(|| owned.fence.clone()),
                asked: Asked::EVERYTHING,
            };
            of.observer.observe(&wanted).await.ok()
        })?;
        seen.map(|(seen, _)| seen)
            .ok_or_else(|| failed("a reading"))
    }

    /// What the evidence makes of an operation; none where it is refused.
    pub fn judge_operation(&mut self, server: &Arc<Server>, owned: &Owned) -> Step<Option<Judged>> {
        let (of, owned) = (Arc::clone(server), owned.clone());
        self.call(server, async move { judge(&of.db, &owned).await.ok() })
    }

    /// A takeover by a controller's pass that saw this row; none where it is refused.
    pub fn take_over(&mut self, server: &Arc<Server>, seen: &OperationRow) -> Step<Option<Owned>> {
        let (of, seen) = (Arc::clone(server), seen.clone());
        self.call(server, async move {
            take_over_lapsed(&of.db, &seen, LEASE).await.ok()
        })
    }

    /// The machine's assignment is another one, out of band: no publication made it.
    pub fn reassign(&mut self, subject: &Subject) -> Step {
        let machine = subject.machine.to_string();
        let head = self.see(|tables| {
            let mut heads = tables.authoring.heads.iter(SEEN);
            let head = heads.find(|(_, head)| head.row.subject == machine);
            head.map(|(id, _)| *id)
        });
        let head = head.ok_or_else(|| failed("no assignment"))?;
        self.alter(
            |tables| &mut tables.authoring.heads,
            head,
            |head| {
                head.row.etag.revision.0 += 1;
                let other = AssignmentRevisionId::from_bits(1);
                head.row.revision = Some(SourceRevisionId::Assignment(other));
            },
        )
    }

    /// A reading of a machine for no plan and no operation.
    pub fn read(&mut self, server: &Arc<Server>, machine: MachineId, purpose: Purpose) -> Step {
        self.reading(server, machine, purpose).map(drop)
    }

    /// The same, by its identifier.
    pub fn reading(
        &mut self,
        server: &Arc<Server>,
        machine: MachineId,
        purpose: Purpose,
    ) -> Step<ObservationId> {
        let of = Arc::clone(server);
        let read = self.call(server, async move {
            let id = of.db.mint();
            let wanted = Wanted::of_machine(id, machine, purpose, Asked::EVERYTHING);
            of.observer.observe(&wanted).await.ok().map(|_| id)
        })?;
        read.ok_or_else(|| failed("a reading"))
    }

    /// A release other than the one that the plan binds is Desired.
    pub fn desire_another(&mut self, subject: &Subject) -> Step {
        let bound = subject.binding.release;
        let other = self.see(|tables| {
            let releases = tables.execution.releases.values(SEEN);
            let mut ids = releases.map(|release| release.row.id);
            ids.find(|id| *id != bound)
        });
        self.alter(
            |tables| &mut tables.authoring.machine_states,
            subject.machine,
            |state| state.desired = other,
        )
    }

    /// The machine's baseline has moved on.
    pub fn rebase(&mut self, subject: &Subject) -> Step {
        self.alter(
            |tables| &mut tables.authoring.machine_states,
            subject.machine,
            |state| {
                if let Some(applied) = &mut state.applied {
                    applied.baseline.0 += 1;
                }
            },
        )
    }

    /// The machine has an open drift record.
    pub fn open_drift(&mut self, subject: &Subject) -> Step {
        let (machine, opened) = (subject.machine, TimelineRevision(1));
        let observation = ObservationId::from_bits(1);
        let drift = OpenDrift {
            machine,
            revision: opened,
            applied_digest: subject.binding.pre_dispatch_digest,
            observed_digest: subject.binding.artifact_digest,
            observation,
            last_observation: observation,
            late_landing: None,
        };
        let row = Drift {
            drift,
            opened_at: self.now(),
            closed: None,
        };
        self.add(
            |tables| &mut tables.execution.drifts,
            (machine, opened.0),
            row,
        )
    }

    /// The artifact's text, as the executor opens it.
    pub fn artifact(&mut self, server: &Arc<Server>, subject: &Subject) -> Step<Plaintext> {
        let key = (subject.binding.release, subject.machine);
        let ciphertext = self.see(|tables| {
            let of = tables.execution.release_machines.get(SEEN, &key);
            of.map(|of| of.new.ciphertext.clone())
        });
        let ciphertext = ciphertext.ok_or_else(|| failed("no artifact"))?;
        let version = u64::try_from(subject.binding.key.version).unwrap_or(0);
        let executor = SimExecutor::new(&self.sim, server.id);
        let opened = self.call(server, async move {
            executor.decrypt_artifact(&ciphertext, version).await.ok()
        })?;
        opened.ok_or_else(|| failed("an artifact's opening"))
    }

    /// A configuration comes to be in force on the subject's node.
    pub fn install(&mut self, subject: &Subject, configuration: Plaintext) -> Step {
        let route = subject.binding.route;
        self.outside(|state| node::install(state, route, configuration, None))
    }

    /// A hand changes the configuration of the subject's node.
    pub fn edit_by_hand(&mut self, subject: &Subject) -> Step {
        let route = subject.binding.route;
        let other = {
            let state = self.sim.state();
            let node = state.outside.nodes.at(route);
            node.map(|node| renderer::edited(node.configuration(), 7))
        };
        self.install(subject, other.ok_or_else(|| failed("no such node"))?)
    }

    /// An operation's row.
    pub fn operation(&self, id: OperationId) -> Step<OperationRow> {
        let row = self.see(|tables| {
            let row = tables.execution.operations.get(SEEN, &id);
            row.map(|operation| operation.row.clone())
        });
        row.ok_or_else(|| failed("no such operation"))
    }
}
