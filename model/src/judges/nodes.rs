//! Requests, landings, Applied and import bases, against what nodes really held (EaR 8.2, 8.3,
//! PA §3.3).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bronzeward_core::attempt::{Attempt, ResponseClass};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{AttemptId, ImportBaseRevisionId, MachineId};
use bronzeward_core::inventory::Endpoint;
use bronzeward_core::time::DbTime;
use bronzeward_engine::rows::{AppliedRow, AppliedSource};

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::{Change, Outside};

/// How many configurations of a node are remembered.
const KEPT: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// Which configuration came to be in force when, the oldest first.
    held: BTreeMap<Endpoint, VecDeque<(DbTime, ConfigDigest)>>,
    /// Every configuration that a machine ever ran.
    ran: BTreeMap<MachineId, BTreeSet<ConfigDigest>>,
    /// What each attempt that ever committed was to send: a restore may have erased it.
    committed: BTreeMap<AttemptId, Option<ConfigDigest>>,
    sent: BTreeSet<AttemptId>,
    /// What each request's sender heard.
    heard: BTreeMap<AttemptId, ResponseClass>,
    landed: BTreeSet<AttemptId>,
}

impl Nodes {
    pub fn outside(&mut self, now: DbTime, event: &Outside) -> Verdict {
        match event {
            Outside::Alerted { .. }
            | Outside::Restored
            | Outside::Circle(_)
            | Outside::Orphans(_)
            | Outside::Answered(_) => Ok(()),
            Outside::Sent {
                recorded, digest, ..
            } => self.sent(recorded.attempt().id, *digest),
            Outside::Heard { attempt, class } => {
                self.heard.insert(*attempt, *class);
                Ok(())
            }
            Outside::InForce {
                endpoint,
                machine,
                attempt,
                digest,
            } => {
                if let Some(machine) = machine {
                    self.ran.entry(*machine).or_default().insert(*digest);
                }
                let held = self.held.entry(*endpoint).or_default();
                held.push_back((now, *digest));
                if held.len() > KEPT {
                    held.pop_front();
                }
                match attempt {
                    Some(attempt) if !self.landed.insert(*attempt) => {
                        violation("an attempt lands once", format!("{attempt}"))
                    }
                    Some(attempt) if !self.sent.contains(attempt) => {
                        violation("nothing lands that was not sent", format!("{attempt}"))
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    fn sent(&mut self, id: AttemptId, digest: ConfigDigest) -> Verdict {
        let Some(approved) = self.committed.get(&id) else {
            return violation("no request without a committed attempt", format!("{id}"));
        };
        if !self.sent.insert(id) {
            return violation("an attempt is sent once", format!("{id}"));
        }
        match *approved == Some(digest) {
            true => Ok(()),
            false => violation("exactly the approved bytes are sent", format!("{id}")),
        }
    }

    fn attempted(&mut self, case: &Case<'_>, attempt: &Attempt) {
        let operation = case.operation(attempt.operation);
        let plan = operation.and_then(|one| one.row.plan);
        let approved = plan.and_then(|plan| case.binding(plan));
        let approved = approved.map(|binding| binding.artifact_digest);
        self.committed.insert(attempt.id, approved);
    }

    /// Whether a node held a configuration at any time of a stretch.
    fn held_between(
        &self,
        endpoint: Endpoint,
        digest: ConfigDigest,
        from: DbTime,
        until: DbTime,
    ) -> bool {
        let Some(held) = self.held.get(&endpoint) else {
            return false;
        };
        held.iter().enumerate().any(|(place, (since, one))| {
            let end = held.get(place + 1).map(|(end, _)| *end);
            *one == digest && *since <= until && end.is_none_or(|end| end >= from)
        })
    }

    pub fn look(&mut self, case: &Case<'_>) -> Verdict {
        for change in case.changes {
            match change {
                Change::Attempt(changed) => {
                    if let Some(after) = &changed.after {
                        self.attempted(case, &after.attempt);
                    }
                }
                Change::Response(changed) => {
                    if let Some(answer) = &changed.after {
                        self.answered(answer.attempt, answer.response.class)?;
                    }
                }
                Change::Observation(changed) => {
                    let Some(seen) = &changed.after else { continue };
                    let Some(digest) = seen.digest() else {
                        continue;
                    };
                    let (endpoint, from) = (seen.started.endpoint, seen.started.started_at);
                    if !self.held_between(endpoint, digest, from, seen.at) {
                        let said = format!("{} at {endpoint}", seen.started.id);
                        return violation("an observation says what the node held", said);
                    }
                }
                Change::ImportBase(id) => self.imported(case, *id)?,
                Change::MachineState(machine, changed) => {
                    let before = changed.before.as_ref().and_then(|state| state.applied);
                    let after = changed.after.as_ref().and_then(|state| state.applied);
                    if before != after {
                        self.applied(case, *machine)?;
                        counted(case, *machine, before, after)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// An answer is recorded as it was heard, and silence as silence (EaR 3.5). What was never
    /// sent is answered in schedules that are written by hand alone.
    fn answered(&self, attempt: AttemptId, class: ResponseClass) -> Verdict {
        let heard = self.heard.get(&attempt).copied();
        if heard == Some(class) || heard.is_none() && !self.sent.contains(&attempt) {
            return Ok(());
        }
        let heard = heard.map_or("nothing", ResponseClass::as_str);
        let said = format!("{attempt}: {} where it heard {heard}", class.as_str());
        violation("an answer is recorded as it was heard", said)
    }

    /// What was read from a machine is something that this machine ran.
    fn imported(&self, case: &Case<'_>, id: ImportBaseRevisionId) -> Verdict {
        let authoring = &case.tables.authoring;
        let Some(base) = authoring.import_bases.get(SEEN, &id) else {
            return violation("an import base is kept", format!("{id}"));
        };
        let import = authoring.imports.get(SEEN, &id);
        let claim = import.and_then(|import| authoring.claims.get(SEEN, &import.claim));
        let read = claim.is_some_and(|claim| claim.source == "machine");
        let digest = ConfigDigest::from_bytes(base.configuration_digest);
        let ran = self.ran.get(&base.machine);
        match !read || ran.is_some_and(|ran| ran.contains(&digest)) {
            true => Ok(()),
            false => violation(
                "an import base is what its machine ran",
                format!("{}", base.machine),
            ),
        }
    }

    /// Applied changes on a completion or an adoption, to what it bound and the node held.
    fn applied(&self, case: &Case<'_>, machine: MachineId) -> Verdict {
        let state = case.tables.authoring.machine_states.get(SEEN, &machine);
        let Some(applied) = state.and_then(|state| state.applied) else {
            return violation("Applied is never taken back", format!("{machine}"));
        };
        let operation = case.operation(applied.operation);
        let Some(operation) = operation.filter(|one| one.row.state == "completed") else {
            let said = format!("{machine}: its operation is not completed");
            return violation("Applied changes on a completion or an adoption", said);
        };
        let moved = case.changes.iter().any(|change| {
            matches!(change, Change::Operation(changed)
                if changed.after.as_ref().is_some_and(|after| after.row.id == operation.row.id))
        });
        let binding = operation.row.plan.and_then(|plan| case.binding(plan));
        let Some(binding) = binding.filter(|binding| moved && binding.machine == machine) else {
            let said = format!("{machine}: by no operation of this commit");
            return violation("Applied changes on a completion or an adoption", said);
        };
        let digest = ConfigDigest::from_bytes(applied.digest);
        let apply = operation.row.kind == "apply-config";
        if apply && (binding.release != applied.release || binding.artifact_digest != digest) {
            let said = format!("{machine}: another release or digest than the plan's");
            return violation("Applied is what the plan bound", said);
        }
        let from = match apply {
            true => operation.row.created_at,
            false => binding.created_at,
        };
        if !self.held_between(binding.route, digest, from, case.now) {
            let said = format!("{machine}: the node never held it");
            return violation("Applied is what the node held", said);
        }
        Ok(())
    }
}

/// Another baseline with every change of Applied, the next one, and where it came from: plans,
/// readings and drift are held against the baseline, and the same bytes may come back under
/// another (EaR 2, 6.1, 6.3).
fn counted(
    case: &Case<'_>,
    machine: MachineId,
    before: Option<AppliedRow>,
    after: Option<AppliedRow>,
) -> Verdict {
    let Some(after) = after else { return Ok(()) };
    let before = before.map_or(0, |before| before.baseline.0);
    if after.baseline.0 != before + 1 {
        let said = format!("{machine}: {} after {before}", after.baseline.0);
        return violation("baselines go up by one", said);
    }
    let operation = case.operation(after.operation);
    let source = match operation.is_some_and(|one| one.row.kind == "adopt") {
        true => AppliedSource::Adoption,
        false => AppliedSource::Operation,
    };
    match after.source == source {
        true => Ok(()),
        false => violation("Applied says where it came from", format!("{machine}")),
    }
}
