//! Plan creation (T4) and how plans are read.
//!
//! Called by http. What may be planned and what a plan then binds is `core::plan`'s; the
//! diff a reviewer is shown is made before the transaction (`plan_evidence`), and the
//! transaction refuses one that starts from another Applied. Never in this module: an
//! approval, or anything that reaches a node.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::head::AssignmentAt;
use bronzeward_core::id::{ClusterId, MachineId, PlanId, ReleaseId};
use bronzeward_core::inventory::MachineIdentity;
use bronzeward_core::plan::{
    AnyPlan, CreateFacts, CreateRefusal, PlanLimits, Requested, Terms, create, in_range,
};
use bronzeward_core::principal::By;
use bronzeward_core::problem::{Member, Problem, ProblemCode};
use bronzeward_core::release::{Applied, AppliedSource};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::Scope;
use bronzeward_core::time::DbTime;
use bronzeward_core::timeline::{Counter, Data};

use super::actor::held_actor;
use super::lock_by;
use crate::plan_evidence::{self, Difference, Sides};
use crate::ports::store::{
    LockMode, NewEntry, OpenDrift, Page, Paged, PlanFilter, PlanReads, PlanRow, PlanWrites,
    PlannedMachine, PlannedRelease, Snapshot, StoreError, StoreReads, TimelineWrites,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled, unreadable};
use crate::rows::{self, HeadId, HeadRow, MachineRow, SourceRevisionId};
use crate::world::World;

/// A plan as a request describes it. An adopt plan takes no deadlines.
#[derive(Clone, Debug)]
pub struct PlanInput {
    pub release: ReleaseId,
    pub machine: MachineId,
    pub adopt: bool,
    pub requested: Requested,
}

/// Creates plans: the request's database, the renderer that reads configurations, and
/// the deployment's values.
pub struct Planner<'w, W: World> {
    pub requests: Requests<'w, W>,
    /// None in a process without one; only apply-config plans need it.
    pub renderer: Option<&'w W::Renderer>,
    pub limits: PlanLimits,
}

/// A diff made before the transaction, with the Applied it starts from.
#[derive(Clone, Debug)]
struct Prepared {
    applied: (ReleaseId, ConfigDigest),
    difference: Difference,
}

/// How often a creation is tried while Applied moves under its diff.
const PREPARATIONS: usize = 3;

impl<W: World> Planner<'_, W> {
    /// Creates a plan (T4). Its own numbers are checked first, the deployment's bounds
    /// inside, so that a repeated request replays whatever they are now (PA §9.3).
    pub async fn create_plan(
        &self,
        admitted: &Admitted,
        input: &PlanInput,
        render: impl Fn(&PlanRow) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        in_range(&self.requests.db.rules(), &input.requested, input.adopt).map_err(duration)?;
        let mut tries = PREPARATIONS;
        loop {
            tries -= 1;
            let prepared = match input.adopt {
                true => None,
                false => self.prepare(input).await?,
            };
            let outcome = self
                .created(admitted, input, prepared.as_ref(), &render)
                .await;
            match outcome {
                Err(refused)
                    if tries > 0 && refused.problem.code == ProblemCode::TransientConflict => {}
                outcome => return outcome,
            }
        }
    }

    /// The diff from Applied's release to the plan's. None where the transaction will
    /// refuse anyway, or where there is no renderer, which it then says.
    async fn prepare(&self, input: &PlanInput) -> Result<Option<Prepared>, Refused> {
        let mut snapshot = self.requests.snapshot().await?;
        let read = sides(&mut snapshot, input).await;
        snapshot.close().await;
        let Some((applied, from, to)) = read.map_err(|_| unreadable())? else {
            return Ok(None);
        };
        let describes = from.facts.artifact_digest == applied.1;
        let difference = match (&from.review, &to.review) {
            (Some(base), Some(output)) if describes => {
                let Some(renderer) = self.renderer else {
                    return Ok(None);
                };
                let sides = Sides {
                    from: applied.0,
                    base,
                    to: input.release,
                    output,
                };
                let rules = self.requests.db.rules();
                match plan_evidence::difference(rules, renderer, sides).await {
                    Ok(difference) => difference,
                    Err(plan_evidence::NoRenderer) => return Ok(None),
                }
            }
            _ => Difference::Withheld,
        };
        Ok(Some(Prepared {
            applied,
            difference,
        }))
    }

    async fn created(
        &self,
        admitted: &Admitted,
        input: &PlanInput,
        prepared: Option<&Prepared>,
        render: &(impl Fn(&PlanRow) -> Rendered + Clone + Send + Sync),
    ) -> Result<Answer, Refused> {
        let db = self.requests.db;
        let (rules, id, act) = (
            db.rules(),
            db.mint::<bronzeward_core::id::kind::Plan>(),
            db.mint(),
        );
        let limits = &self.limits;
        self.requests
            .run(admitted, Some(LockMode::Share), async |tx, installation| {
                let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
                let (mut tx, machine) = tx.lock_machine(input.machine, lock).await?;
                let Some(machine) = machine else {
                    let problem = Problem::not_found("No such machine.");
                    return tx.refuse(problem.naming("machine", input.machine)).await;
                };
                let head = tx.peek().assignment_head_of(input.machine).await?;
                let mode = lock_by(&rules, Rule::AssignmentHeadShared, LockMode::Share);
                let heads: BTreeMap<HeadId, _> = head.map(|id| (id, mode)).into_iter().collect();
                let (tx, heads) = tx.lock_heads(&heads).await?;
                let tx = held_actor(&rules, tx, admitted).await?;
                let mut open = tx.open();
                let Some(release) = open
                    .rows()
                    .planned_release(input.release, input.machine)
                    .await?
                else {
                    let problem = Problem::not_found("No such release.");
                    return open
                        .refuse(problem.naming("releaseId", input.release))
                        .await;
                };
                let drift = open.rows().open_drift(input.machine).await?;
                let head = heads.into_iter().next().map(super::Held::into_row);
                let decided = decide(&rules, input, limits, &machine, &release, drift, head);
                let (terms, covered) = match decided {
                    Ok(decided) => decided,
                    Err(problem) => return open.refuse(*problem).await,
                };
                let evidence = match evidence(input, &machine, &release, &covered, prepared) {
                    Ok(evidence) => evidence,
                    Err(problem) => return open.refuse(*problem).await,
                };
                let (mut acts, at) = open.lock_acts(&rules).await?;
                let (revision, _) = Counter(machine.timeline.0).allocate();
                let plan = terms.bind(id, admitted.actor.into(), installation.epoch, revision, at);
                let binding = plan.binding().clone();
                acts.rows()
                    .insert_plan(&binding, covered.facts.import_base, &evidence, act)
                    .await?;
                let data = Data::Plan {
                    plan: id,
                    operation: binding.operation.as_str(),
                    release: binding.release,
                };
                let by = By::Signed(admitted.actor.into());
                let entry = NewEntry::of(&data, by, installation.epoch, Some(act), at).about(id);
                acts.rows().append_entry(input.machine, &entry).await?;
                let row = PlanRow {
                    plan: AnyPlan::Proposed(plan),
                    approval: None,
                    approver_revoked_at: None,
                    evidence,
                };
                Ok(Settled {
                    acts,
                    rendered: render(&row),
                    act: ActDraft::new(act, Action::PLAN_CREATED)
                        .on(id)
                        .on(input.machine)
                        .on(input.release),
                })
            })
            .await
            .map_err(NotDone::refused)
    }
}

type DiffSides = ((ReleaseId, ConfigDigest), PlannedMachine, PlannedMachine);

async fn sides<S: StoreReads>(
    snapshot: &mut S,
    input: &PlanInput,
) -> Result<Option<DiffSides>, StoreError> {
    let Some(machine) = snapshot.machine(input.machine).await? else {
        return Ok(None);
    };
    let Some(applied) = machine.state.applied else {
        return Ok(None);
    };
    let from = snapshot
        .planned_release(applied.release, machine.id)
        .await?;
    let to = snapshot.planned_release(input.release, machine.id).await?;
    let from = from.and_then(|release| release.machine);
    let to = to.and_then(|release| release.machine);
    let digest = ConfigDigest::from_bytes(applied.digest);
    Ok(match (from, to) {
        (Some(from), Some(to)) => Some(((applied.release, digest), from, to)),
        _ => None,
    })
}

/// Asks core, with what was read under the locks.
fn decide<R: bronzeward_core::rules::Rules>(
    rules: &R,
    input: &PlanInput,
    limits: &PlanLimits,
    machine: &MachineRow,
    release: &PlannedRelease,
    drift: Option<OpenDrift>,
    head: Option<HeadRow>,
) -> Result<(Terms, PlannedMachine), Box<Problem>> {
    let covered = release
        .machine
        .as_ref()
        .filter(|_| release.cluster == machine.cluster);
    let identity = identity(machine);
    let scope = scope(machine, drift.map(|drift| drift.opened));
    let applied = applied(machine);
    let facts = CreateFacts {
        cluster: machine.cluster,
        machine: machine.id,
        identity: &identity,
        route: machine.endpoint,
        scope: &scope,
        release: release.id,
        renderer: &release.renderer,
        covered: covered.map(|covered| &covered.facts),
        desired: machine.state.desired,
        applied: applied.as_ref(),
        drift_digest: drift.map(|drift| drift.observed),
        assignment_head: head.as_ref().and_then(assignment_at),
    };
    match (
        create(rules, &facts, input.adopt, &input.requested, limits),
        covered,
    ) {
        (Ok(terms), Some(covered)) => Ok((terms, covered.clone())),
        (Ok(_), None) => Err(Box::new(not_covered(release.id, machine.id))),
        (Err(refusal), _) => Err(Box::new(refused(machine.cluster, &refusal))),
    }
}

/// Of the plan as decided; a diff that starts elsewhere is made again by the caller.
fn evidence(
    input: &PlanInput,
    machine: &MachineRow,
    release: &PlannedRelease,
    covered: &PlannedMachine,
    prepared: Option<&Prepared>,
) -> Result<Member, Box<Problem>> {
    if input.adopt {
        let import_base = covered.facts.import_base;
        return Ok(plan_evidence::of_adoption(import_base, release, covered));
    }
    let Some(prepared) = prepared else {
        let words = "No renderer is available to compare the configurations.";
        return Err(Box::new(Problem::dependency_unavailable(words)));
    };
    let applied = machine
        .state
        .applied
        .map(|applied| (applied.release, ConfigDigest::from_bytes(applied.digest)));
    if applied != Some(prepared.applied) {
        let words = "The machine's Applied changed while its plan was made.";
        let problem = Problem::new(ProblemCode::TransientConflict).say(words);
        return Err(Box::new(problem));
    }
    let (from, _) = prepared.applied;
    let difference = &prepared.difference;
    Ok(plan_evidence::of_application(
        from, release, covered, difference,
    ))
}

pub(crate) fn identity(machine: &MachineRow) -> MachineIdentity {
    MachineIdentity {
        key: machine.key.clone(),
        talos_cluster: machine.talos_cluster.clone(),
    }
}

pub(crate) fn scope(machine: &MachineRow, open_drift: Option<TimelineRevision>) -> Scope {
    Scope {
        machine: machine.id,
        state: machine.scope,
        frozen: machine.frozen,
        open_drift,
    }
}

/// A row's Applied as core compares it.
pub fn applied(machine: &MachineRow) -> Option<Applied> {
    machine.state.applied.map(|applied| Applied {
        release: applied.release,
        digest: ConfigDigest::from_bytes(applied.digest),
        source: match applied.source {
            rows::AppliedSource::Operation => AppliedSource::Operation,
            rows::AppliedSource::Adoption => AppliedSource::Adoption,
        },
        baseline: applied.baseline,
    })
}

/// A locked assignment head, with its revision; none where the head is of another kind.
pub(crate) fn assignment_at(
    head: &HeadRow,
) -> Option<(
    AssignmentAt,
    Option<bronzeward_core::id::AssignmentRevisionId>,
)> {
    let HeadId::Assignment(id) = head.id else {
        return None;
    };
    let at = AssignmentAt {
        head: id,
        revision: head.etag.revision,
    };
    let revision = match head.revision {
        Some(SourceRevisionId::Assignment(revision)) => Some(revision),
        _ => None,
    };
    Some((at, revision))
}

fn duration(refusal: bronzeward_core::plan::DurationRefusal) -> Problem {
    Problem::invalid_request("A plan value is out of its range.")
        .naming("member", refusal.member)
        .naming("rule", refusal.rule)
}

fn not_covered(release: ReleaseId, machine: MachineId) -> Problem {
    Problem::validation("not-covered")
        .naming("release", release)
        .naming("machine", machine)
}

fn refused(cluster: ClusterId, refusal: &CreateRefusal) -> Problem {
    match refusal {
        CreateRefusal::Unaccounted(scope) => Problem::recovery_mode_active(scope.machine),
        CreateRefusal::Retired => Problem::conflict("The machine is decommissioned."),
        CreateRefusal::NotCovered { release, machine } => not_covered(*release, *machine),
        CreateRefusal::Duration(refusal) => duration(*refusal),
        CreateRefusal::UnsupportedTarget => {
            Problem::validation("unsupported-target").naming("cluster", cluster)
        }
        CreateRefusal::NotDesired { desired } => {
            let problem = Problem::conflict("The release is not the machine's Desired.");
            match desired {
                Some(desired) => problem.naming("desiredRelease", desired),
                None => problem.with("desiredRelease", Member::Null),
            }
        }
        CreateRefusal::NoApplied => {
            Problem::conflict("The machine has no Applied to compare with; adopt it first.")
        }
        CreateRefusal::NothingToAdopt => {
            Problem::conflict("The machine's configuration is known and has not drifted.")
        }
        CreateRefusal::AssignmentMoved => Problem::conflict(
            "The machine's assignment moved past the revision the release was compiled from.",
        ),
    }
}

impl PlanRow {
    /// The plan as it reads at `now` (PA §8.1).
    #[must_use]
    pub fn read_at(mut self, now: DbTime) -> Self {
        self.plan = self.plan.read_at(now, self.approver_revoked_at).plan;
        self
    }
}

/// Which plans a list asks for.
#[derive(Clone, Debug, Default)]
pub struct PlansAsked {
    pub machine: Option<MachineId>,
    /// A state's name, as a plan reads.
    pub state: Option<String>,
}

/// The stored states that may read as `state`.
fn stored(state: &str) -> Vec<&'static str> {
    match state {
        "proposed" => vec!["proposed"],
        "approved" => vec!["approved"],
        "committed" => vec!["committed"],
        "cancelled" => vec!["cancelled"],
        "revoked" => vec!["revoked", "approved"],
        "expired" => vec!["expired", "proposed", "approved"],
        _ => Vec::new(),
    }
}

/// A page of plans as they read now; every item matches what was asked (PA §9.2).
pub async fn plans<S: StoreReads>(
    snapshot: &mut S,
    asked: &PlansAsked,
    page: &Page<PlanId>,
) -> Result<Paged<PlanRow>, StoreError> {
    let now = snapshot.clock().await?;
    let filter = PlanFilter {
        machine: asked.machine,
        states: asked.state.as_deref().map(stored).unwrap_or_default(),
    };
    let mut next = Page {
        after: page.after,
        limit: page.limit.saturating_add(1),
    };
    let mut items = Vec::new();
    loop {
        let rows = snapshot.plans(&filter, &next).await?;
        let last = rows.last().map(|row| row.plan.binding().id);
        let full = rows.len() == usize::from(next.limit);
        let read = rows.into_iter().map(|row| row.read_at(now));
        items.extend(read.filter(|row| {
            let state = row.plan.state_name();
            asked.state.as_deref().is_none_or(|asked| asked == state)
        }));
        if items.len() > usize::from(page.limit) || !full {
            return Ok(Paged::from_overfetched(items, page.limit));
        }
        next.after = last;
    }
}

/// One plan as it reads now.
pub async fn plan<S: StoreReads>(
    snapshot: &mut S,
    id: PlanId,
) -> Result<Option<PlanRow>, StoreError> {
    let now = snapshot.clock().await?;
    Ok(snapshot.plan(id).await?.map(|row| row.read_at(now)))
}

/// Every principal an approval's mark looks at.
pub(crate) fn involved(
    creator: bronzeward_core::id::PrincipalId,
    origins: &crate::ports::store::ReleaseOrigins,
) -> BTreeSet<bronzeward_core::id::PrincipalId> {
    [creator, origins.publisher]
        .into_iter()
        .chain(origins.contained.iter().map(|revision| revision.author))
        .collect()
}
