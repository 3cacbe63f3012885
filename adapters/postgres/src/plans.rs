//! Plans, approvals, and the revocation of identities (EaR 2, PA §5 T4 to T5c).
//!
//! A plan's row is its binding and never changes; its state is a row beside it. Never in
//! here: how a plan reads at a time.

mod record;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::authority::{Contained, SelfApproval};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{ApprovalId, MachineId, PlanId, PrincipalId, ReleaseId};
use bronzeward_core::plan::{Approval, ReleaseMachineFacts};
use bronzeward_core::release::{Contract, MachineType, RendererRecord, TransitKey};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    OpenDrift, Page, PlanFilter, PlanReads, PlanRow, PlannedMachine, PlannedRelease, ReleaseOrigins,
};
use bronzeward_engine::rows::HeadId;
use diesel::prelude::*;

use crate::convert::{Out, digest, fault, head_id, id, opt_id, signed};
use crate::locks::texts;
use crate::schema::{
    approval, assignment_revision, dependency_encryption, draft_entry, drift_record,
    fragment_revision, head, import_base_revision, operation, plan, plan_cancellation, plan_state,
    principal, profile_revision, release, release_machine, release_source,
};
use crate::store::{Access, PgRows};
use crate::time::Stamp;
use record::{PlanRecord, StateRecord, key_created};

/// States of a plan's operation that still hold its scope.
pub(crate) const HOLDING: [&str; 4] = ["committed", "sending", "verifying", "unresolved"];

#[derive(Queryable, Selectable)]
#[diesel(table_name = approval)]
struct ApprovalRecord {
    id: String,
    plan_id: String,
    revision: i64,
    principal_id: String,
    role: String,
    epoch: String,
    self_approval_reasons: Vec<Option<String>>,
    unseen_overwrite: bool,
    at: Stamp,
}

impl ApprovalRecord {
    fn row(self) -> Out<Approval> {
        let self_approval = self
            .self_approval_reasons
            .iter()
            .flatten()
            .map(|text| SelfApproval::parse(text).ok_or_else(fault))
            .collect::<Out<_>>()?;
        Ok(Approval {
            id: id(&self.id)?,
            plan: id(&self.plan_id)?,
            approver: signed(&self.principal_id, &self.role)?,
            epoch: id(&self.epoch)?,
            at: self.at.0,
            revision: TimelineRevision(self.revision),
            self_approval,
            unseen_overwrite: self.unseen_overwrite,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = release)]
struct ReleaseRecord {
    id: String,
    cluster_id: String,
    contract: String,
    machinery_version: String,
    machinery_checksum: String,
    kubernetes_version: String,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = release_machine)]
struct ReleaseMachineRecord {
    import_base_revision_id: String,
    assignment_head_id: Option<String>,
    assignment_revision_id: Option<String>,
    machine_type: String,
    platform: String,
    configuration_digest: Vec<u8>,
    key_name: String,
    key_version: i64,
    review_configuration: Option<String>,
    validation_result: String,
    validated_at: Stamp,
}

impl<M: Access> PgRows<M> {
    /// Each plan with its state, in the order given.
    async fn plan_rows(
        &mut self,
        records: Vec<(PlanRecord, StateRecord, Vec<u8>)>,
    ) -> Out<Vec<PlanRow>> {
        let ids: Vec<String> = records.iter().map(|(plan, ..)| plan.id.clone()).collect();
        let cancelled: Vec<String> = self
            .load(
                plan_cancellation::table
                    .filter(plan_cancellation::plan_id.eq_any(ids))
                    .select(plan_cancellation::plan_id),
            )
            .await?;
        let cancelled: BTreeSet<String> = cancelled.into_iter().collect();
        let approvals: Vec<String> = records
            .iter()
            .filter_map(|(_, state, _)| state.approval_id.clone())
            .collect();
        let query = approval::table
            .inner_join(principal::table)
            .filter(approval::id.eq_any(approvals))
            .select((ApprovalRecord::as_select(), principal::revoked_at));
        let approvals: Vec<(ApprovalRecord, Option<Stamp>)> = self.load(query).await?;
        let mut approvals: BTreeMap<String, (ApprovalRecord, Option<Stamp>)> = approvals
            .into_iter()
            .map(|(approval, revoked)| (approval.id.clone(), (approval, revoked)))
            .collect();
        records
            .into_iter()
            .map(|(record, state, import_base)| {
                let found = state
                    .approval_id
                    .as_ref()
                    .and_then(|approval| approvals.remove(approval));
                let revoked = found
                    .as_ref()
                    .and_then(|(_, revoked)| revoked.map(|at| at.0));
                let approval = found.map(|(approval, _)| approval.row()).transpose()?;
                let cancelled = cancelled.contains(&record.id);
                record.row(&state, &import_base, approval, revoked, cancelled)
            })
            .collect()
    }

    /// Who wrote each revision, and whether the release's own draft proposes it.
    async fn authors(&mut self, revisions: &[String]) -> Out<BTreeMap<String, PrincipalId>> {
        let mut rows: Vec<(String, String)> = self
            .load(
                fragment_revision::table
                    .filter(fragment_revision::id.eq_any(revisions.to_vec()))
                    .select((fragment_revision::id, fragment_revision::author_id)),
            )
            .await?;
        let profiles: Vec<(String, String)> = self
            .load(
                profile_revision::table
                    .filter(profile_revision::id.eq_any(revisions.to_vec()))
                    .select((profile_revision::id, profile_revision::author_id)),
            )
            .await?;
        let assignments: Vec<(String, String)> = self
            .load(
                assignment_revision::table
                    .filter(assignment_revision::id.eq_any(revisions.to_vec()))
                    .select((assignment_revision::id, assignment_revision::author_id)),
            )
            .await?;
        let bases: Vec<(String, String)> = self
            .load(
                import_base_revision::table
                    .filter(import_base_revision::id.eq_any(revisions.to_vec()))
                    .select((import_base_revision::id, import_base_revision::author_id)),
            )
            .await?;
        rows.extend(profiles);
        rows.extend(assignments);
        rows.extend(bases);
        rows.into_iter()
            .map(|(revision, author)| Ok((revision, id(&author)?)))
            .collect()
    }

    async fn planned_machine(
        &mut self,
        of: ReleaseId,
        machine: MachineId,
    ) -> Out<Option<PlannedMachine>> {
        let query = release_machine::table
            .inner_join(import_base_revision::table)
            .filter(release_machine::release_id.eq(of.to_string()))
            .filter(release_machine::machine_id.eq(machine.to_string()))
            .select((
                ReleaseMachineRecord::as_select(),
                import_base_revision::configuration_digest,
            ));
        let found: Option<(ReleaseMachineRecord, Vec<u8>)> = self.optional(query).await?;
        let Some((row, import_base)) = found else {
            return Ok(None);
        };
        let created: String = self
            .one(
                dependency_encryption::table
                    .filter(dependency_encryption::release_id.eq(of.to_string()))
                    .filter(dependency_encryption::machine_id.eq(machine.to_string()))
                    .select(dependency_encryption::created),
            )
            .await?;
        let head = row.assignment_head_id.as_deref().map(head_id).transpose()?;
        Ok(Some(PlannedMachine {
            facts: ReleaseMachineFacts {
                artifact_digest: ConfigDigest::from_bytes(digest(&row.configuration_digest)?),
                machine_type: match row.machine_type.as_str() {
                    // The first control-plane machine, in Talos's own words.
                    "init" => MachineType::ControlPlane,
                    other => MachineType::parse(other).ok_or_else(fault)?,
                },
                key: TransitKey {
                    name: row.key_name,
                    version: row.key_version,
                    created: key_created(&created)?,
                },
                assignment: opt_id(row.assignment_revision_id.as_deref())?,
                import_base: id(&row.import_base_revision_id)?,
                import_base_digest: ConfigDigest::from_bytes(digest(&import_base)?),
            },
            assignment_head: match head {
                Some(HeadId::Assignment(head)) => Some(head),
                None => None,
                Some(_) => return Err(fault()),
            },
            platform: row.platform,
            validation: row.validation_result,
            validated_at: row.validated_at.0,
            review: row.review_configuration,
        }))
    }
}

impl<M: Access> PlanReads for PgRows<M> {
    async fn plan(&mut self, of: PlanId) -> Out<Option<PlanRow>> {
        let query = plan::table
            .inner_join(plan_state::table)
            .inner_join(import_base_revision::table)
            .filter(plan::id.eq(of.to_string()))
            .select((
                PlanRecord::as_select(),
                StateRecord::as_select(),
                import_base_revision::configuration_digest,
            ));
        let found: Vec<(PlanRecord, StateRecord, Vec<u8>)> = self.load(query).await?;
        Ok(self.plan_rows(found).await?.pop())
    }

    async fn plan_machine(&mut self, of: PlanId) -> Out<Option<MachineId>> {
        let query = plan::table.find(of.to_string()).select(plan::machine_id);
        let found: Option<String> = self.optional(query).await?;
        opt_id(found.as_deref())
    }

    async fn plans(&mut self, filter: &PlanFilter, page: &Page<PlanId>) -> Out<Vec<PlanRow>> {
        let mut query = plan::table
            .inner_join(plan_state::table)
            .inner_join(import_base_revision::table)
            .select((
                PlanRecord::as_select(),
                StateRecord::as_select(),
                import_base_revision::configuration_digest,
            ))
            .into_boxed();
        if let Some(after) = page.after {
            query = query.filter(plan::id.gt(after.to_string()));
        }
        if let Some(machine) = filter.machine {
            query = query.filter(plan::machine_id.eq(machine.to_string()));
        }
        if !filter.states.is_empty() {
            query = query.filter(plan_state::state.eq_any(filter.states.clone()));
        }
        let query = query.order(plan::id).limit(i64::from(page.limit));
        let rows: Vec<(PlanRecord, StateRecord, Vec<u8>)> = self.load(query).await?;
        self.plan_rows(rows).await
    }

    async fn approved_plans(&mut self, at: DbTime) -> Out<Vec<PlanRow>> {
        let query = plan::table
            .inner_join(plan_state::table)
            .inner_join(import_base_revision::table)
            .filter(plan_state::state.eq("approved"))
            .filter(plan::expires_at.gt(Stamp(at)))
            .order(plan::id)
            .select((
                PlanRecord::as_select(),
                StateRecord::as_select(),
                import_base_revision::configuration_digest,
            ));
        let rows: Vec<(PlanRecord, StateRecord, Vec<u8>)> = self.load(query).await?;
        self.plan_rows(rows).await
    }

    async fn approval(&mut self, of: ApprovalId) -> Out<Option<Approval>> {
        let query = approval::table
            .find(of.to_string())
            .select(ApprovalRecord::as_select());
        let found: Option<ApprovalRecord> = self.optional(query).await?;
        found.map(ApprovalRecord::row).transpose()
    }

    async fn planned_release(
        &mut self,
        of: ReleaseId,
        machine: MachineId,
    ) -> Out<Option<PlannedRelease>> {
        let query = release::table
            .find(of.to_string())
            .select(ReleaseRecord::as_select());
        let found: Option<ReleaseRecord> = self.optional(query).await?;
        let Some(row) = found else {
            return Ok(None);
        };
        Ok(Some(PlannedRelease {
            id: id(&row.id)?,
            cluster: id(&row.cluster_id)?,
            renderer: RendererRecord {
                contract: Contract::parse(&row.contract).ok_or_else(fault)?,
                machinery_version: row.machinery_version,
                machinery_checksum: row.machinery_checksum,
                kubernetes_version: row.kubernetes_version,
            },
            machine: self.planned_machine(of, machine).await?,
        }))
    }

    async fn release_origins(&mut self, of: ReleaseId) -> Out<Option<ReleaseOrigins>> {
        let query = release::table
            .find(of.to_string())
            .select((release::published_by, release::draft_id));
        let found: Option<(String, String)> = self.optional(query).await?;
        let Some((publisher, draft)) = found else {
            return Ok(None);
        };
        let sources: Vec<Option<String>> = self
            .load(
                release_source::table
                    .filter(release_source::release_id.eq(of.to_string()))
                    .select(release_source::revision_id),
            )
            .await?;
        let bases: Vec<String> = self
            .load(
                release_machine::table
                    .filter(release_machine::release_id.eq(of.to_string()))
                    .select(release_machine::import_base_revision_id),
            )
            .await?;
        let entries: Vec<Option<String>> = self
            .load(
                draft_entry::table
                    .filter(draft_entry::draft_id.eq(&draft))
                    .select(draft_entry::revision_id),
            )
            .await?;
        let introduced: BTreeSet<String> = entries.into_iter().flatten().collect();
        let mut revisions: Vec<String> = sources.into_iter().flatten().collect();
        revisions.extend(bases);
        let contained = self
            .authors(&revisions)
            .await?
            .into_iter()
            .map(|(revision, author)| Contained {
                author,
                introduced: introduced.contains(&revision),
            })
            .collect();
        Ok(Some(ReleaseOrigins {
            publisher: id(&publisher)?,
            draft: id(&draft)?,
            contained,
        }))
    }

    async fn responsible_humans(
        &mut self,
        principals: &BTreeSet<PrincipalId>,
    ) -> Out<BTreeMap<PrincipalId, PrincipalId>> {
        let query = principal::table
            .filter(principal::id.eq_any(texts(principals)))
            .filter(principal::responsible.is_not_null())
            .select((principal::id, principal::responsible.assume_not_null()));
        let rows: Vec<(String, String)> = self.load(query).await?;
        rows.iter()
            .map(|(service, human)| Ok((id(service)?, id(human)?)))
            .collect()
    }

    async fn assignment_head_of(&mut self, machine: MachineId) -> Out<Option<HeadId>> {
        let query = head::table
            .filter(head::machine_id.eq(machine.to_string()))
            .select(head::id);
        let found: Option<String> = self.optional(query).await?;
        found.as_deref().map(head_id).transpose()
    }

    async fn open_drift(&mut self, machine: MachineId) -> Out<Option<OpenDrift>> {
        let query = drift_record::table
            .filter(drift_record::machine_id.eq(machine.to_string()))
            .filter(drift_record::state.eq("open"))
            .select((drift_record::opened_revision, drift_record::observed_digest));
        let found: Option<(i64, Vec<u8>)> = self.optional(query).await?;
        found
            .map(|(opened, observed)| {
                Ok(OpenDrift {
                    opened: TimelineRevision(opened),
                    observed: ConfigDigest::from_bytes(digest(&observed)?),
                })
            })
            .transpose()
    }

    async fn live_plans_approved_by(
        &mut self,
        approver: PrincipalId,
        at: DbTime,
    ) -> Out<BTreeMap<MachineId, Vec<PlanId>>> {
        let holding = plan_state::operation_id.eq_any(
            operation::table
                .filter(operation::state.eq_any(HOLDING))
                .select(operation::id.nullable()),
        );
        let live = plan_state::state
            .eq("approved")
            .and(plan::expires_at.gt(Stamp(at)))
            .or(plan_state::state
                .eq("committed")
                .and(holding.assume_not_null()));
        let query = plan::table
            .inner_join(plan_state::table)
            .filter(
                plan::id.eq_any(
                    approval::table
                        .filter(approval::principal_id.eq(approver.to_string()))
                        .select(approval::plan_id),
                ),
            )
            .filter(live)
            .order(plan::id)
            .select((plan::machine_id, plan::id));
        let rows: Vec<(String, String)> = self.load(query).await?;
        let mut live: BTreeMap<MachineId, Vec<PlanId>> = BTreeMap::new();
        for (machine, plan) in rows {
            live.entry(id(&machine)?).or_default().push(id(&plan)?);
        }
        Ok(live)
    }
}
