//! What a publication writes (PA §6.2).

use std::collections::BTreeSet;

use bronzeward_core::id::{DraftId, HeadId, MachineId, ReleaseId};
use bronzeward_core::observation::Observation;
use bronzeward_core::release::StatusRow;
use bronzeward_core::revision::{EtagToken, Revision};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    Dependency, Guard, HeadKind, LockMode, NewHead, NewRelease, NewReleaseMachine, ReleaseRow,
    ReleaseWrites, Seed, Written,
};
use bronzeward_engine::rows::{DraftRow, DraftStateRow, HeadRow, SourceRevisionId};

use super::{MachineOfRelease, Release, Status, of_objects};
use crate::pg::session::Session;
use crate::pg::{Lockable, Relation, Tables, Taken, TxId};
use crate::store::authoring::Head;
use crate::store::execution::statement::{head_row, row, satisfies};
use crate::store::execution::{Out, release_check};
use crate::store::guard::{Columns, written};
use crate::store::writes::Index;

/// Whether a version's row is there, another under its identifier, or another of its number
/// where a number is one version's.
fn seeded(tables: &Tables, me: TxId, seed: &Seed) -> Taken {
    let (versions, statuses) = (&tables.execution.versions, &tables.execution.statuses);
    let named = match statuses.key_taken(me, &seed.id) {
        Taken::Free => versions.key_taken(me, &seed.dependency),
        found => found,
    };
    match named {
        Taken::Free if seed.kv => statuses.taken(me, None, 0, |status: &Status| {
            status.kv
                && status.row.version == seed.dependency.version
                && status.row.object == seed.dependency.object
        }),
        found => found,
    }
}

impl Session {
    /// INSERT … ON CONFLICT DO NOTHING: waits for whoever is writing the version's row.
    async fn seed_status(&mut self, seed: &Seed, at: DbTime) -> Out<()> {
        self.statement("seed status").await?;
        loop {
            match self.write(|db, me, _| seeded(&db.tables, me, seed))? {
                Taken::Free => break,
                Taken::Taken => return Ok(()),
                Taken::Awaits(other) => self.lock(Lockable::End(other), LockMode::Share).await?,
            }
        }
        let named = &seed.dependency;
        let status = Status {
            row: StatusRow {
                id: seed.id,
                object: named.object.clone(),
                version: named.version,
                created: named.created.clone(),
                class: seed.classification.class,
                recorded_at: at,
            },
            kv: seed.kv,
            classification: seed.classification.clone(),
            first_retained_at: at,
            observed_from: seed.classified_from,
        };
        self.check("dependency_status_times", at >= seed.classified_from)?;
        self.put_kept(named.clone(), seed.id)?;
        self.put_kept(seed.id, status)
    }

    /// The foreign key of a dependency to its version's row.
    fn depends(&mut self, on: &Dependency, constraint: &'static str) -> Out<()> {
        let there = self.look(|tables, eye| tables.execution.versions.get(eye, on).is_some());
        self.check(constraint, there)
    }

    async fn insert_machine_of(&mut self, of: ReleaseId, new: &NewReleaseMachine) -> Out<()> {
        self.statement("insert release's machine").await?;
        let machine = MachineOfRelease {
            release: of,
            new: new.clone(),
        };
        self.insert_kept((of, new.machine), machine, "release_machine_pkey")
            .await?;
        self.refer([row(Relation::Machine, new.machine)]).await?;
        let constraint = "release_machine_observation_id_fkey";
        self.refers_to_kept::<_, Observation>(&new.observation, constraint)?;
        self.statement("insert encryption dependency").await?;
        let key = Dependency {
            object: new.key.name.clone(),
            version: new.key.version,
            created: new.key.created.to_string(),
        };
        self.depends(
            &key,
            "dependency_encryption_provider_object_version_created_fkey",
        )
    }

    /// Provenance and both dependency records of a machine, which its row holds: the
    /// statements that the adapter sends for them, and their foreign keys.
    async fn insert_records_of(&mut self, new: &NewReleaseMachine) -> Out<()> {
        if !new.provenance.is_empty() {
            self.statement("insert provenance").await?;
        }
        if !new.reproduction.is_empty() {
            self.statement("insert reproduction dependencies").await?;
            let constraint = "dependency_reproduction_provider_object_version_created_fkey";
            for record in &new.reproduction {
                self.depends(&record.dependency, constraint)?;
            }
        }
        if !new.effective.is_empty() {
            self.statement("insert effective dependencies").await?;
            let constraint = "dependency_effective_provider_object_version_created_fkey";
            for (_, dependency) in &new.effective {
                self.depends(dependency, constraint)?;
            }
        }
        Ok(())
    }

    async fn insert_release_row(&mut self, new: &NewRelease, at: DbTime) -> Out<()> {
        self.statement("insert release").await?;
        let bound = new.bound;
        let release = Release {
            row: ReleaseRow {
                id: new.id,
                cluster: new.cluster,
                draft: bound.draft,
                draft_revision: bound.revision,
                operation: new.operation,
                digest: new.digest.0,
                renderer: new.renderer.clone(),
                by: new.by,
                at,
            },
            epoch: new.epoch,
        };
        let same =
            |of: &Release| of.row.draft == bound.draft && of.row.draft_revision == bound.revision;
        let once: Index<'_, Release> = ("release_draft_revision_key", &same);
        self.insert_unique_kept(new.id, release, "release_pkey", &[once])
            .await?;
        let (id, operation) = (new.id, new.operation);
        self.write(|db, tx, _| {
            db.defer(tx, move |tables, eye| {
                release_check::complete(tables, eye, id, operation)
            });
        })?;
        self.refer([
            row(Relation::Draft, bound.draft),
            row(Relation::Operation, new.operation),
            row(Relation::Principal, new.by.principal),
        ])
        .await
    }
}

fn head_admits(head: &Head, guard: &Guard, now: DbTime) -> bool {
    let columns = Columns {
        revision: Some(head.row.etag.revision.0),
        ..Columns::default()
    };
    satisfies(columns, guard, now)
}

fn draft_admits(draft: &DraftRow, guard: &Guard, now: DbTime) -> bool {
    let columns = Columns {
        revision: Some(draft.etag.revision.0),
        state: Some(match draft.state {
            DraftStateRow::Open => "open",
            DraftStateRow::Published(_) => "published",
            DraftStateRow::Discarded => "discarded",
        }),
        ..Columns::default()
    };
    satisfies(columns, guard, now)
}

impl ReleaseWrites for Session {
    async fn seed_statuses(&mut self, seeds: &[Seed], at: DbTime) -> Out<()> {
        let mut ordered: Vec<&Seed> = seeds.iter().collect();
        ordered.sort_by(|a, b| a.dependency.cmp(&b.dependency));
        for seed in ordered {
            self.seed_status(seed, at).await?;
        }
        Ok(())
    }

    async fn hold_statuses(&mut self, objects: &BTreeSet<String>) -> Out<Vec<StatusRow>> {
        self.statement("hold statuses").await?;
        let ids = self.look(|tables, eye| of_objects(tables, eye, objects));
        let lock = |id: &bronzeward_core::id::DependencyId| row(Relation::Status, *id);
        let mode = Some(LockMode::Share);
        let rows = self.lock_kept::<_, Status>(ids, lock, mode).await?;
        Ok(rows.iter().map(|status| status.row.clone()).collect())
    }

    async fn insert_release(&mut self, new: &NewRelease, at: DbTime) -> Out<()> {
        self.insert_release_row(new, at).await?;
        for machine in &new.machines {
            self.insert_machine_of(new.id, machine).await?;
        }
        for source in &new.sources {
            self.statement("insert release's source").await?;
            let key = (new.id, source.head);
            self.insert_kept(key, source.clone(), "release_source_pkey")
                .await?;
        }
        for machine in &new.machines {
            self.insert_records_of(machine).await?;
        }
        Ok(())
    }

    async fn insert_head(&mut self, new: &NewHead, at: DbTime) -> Out<()> {
        self.statement("insert head").await?;
        let (kind, cluster, subject) = (new.kind, new.cluster, &new.subject);
        let head = Head {
            row: HeadRow {
                id: new.id,
                cluster,
                subject: subject.clone(),
                layer: new.layer.map(|layer| layer.as_str().to_owned()),
                revision: Some(new.revision),
                etag: new.etag,
                created_at: at,
            },
            kind,
        };
        let same = |head: &Head| {
            head.kind == kind && head.row.cluster == cluster && head.row.subject == *subject
        };
        let named: Index<'_, Head> = ("head_name_key", &same);
        self.insert_unique_kept(new.id, head, "head_pkey", &[named])
            .await?;
        match kind {
            HeadKind::Assignment => {
                let Ok(machine) = MachineId::parse(subject) else {
                    return self.check("mch_id_check", false);
                };
                self.refer([row(Relation::Machine, machine)]).await
            }
            HeadKind::Fragment | HeadKind::Profile => Ok(()),
        }
    }

    async fn advance_head(
        &mut self,
        of: HeadId,
        guard: &Guard,
        revision: Option<SourceRevisionId>,
        token: EtagToken,
    ) -> Out<Written> {
        self.statement("advance head").await?;
        let admits = |head: &Head, now| head_admits(head, guard, now);
        let found = self.target_kept(head_row(of), &of, admits).await?;
        let Some(mut head) = found else {
            return Ok(written(false));
        };
        head.row.revision = revision;
        head.row.etag.revision = Revision(head.row.etag.revision.0 + 1);
        head.row.etag.token = token;
        self.put_kept(of, head)?;
        Ok(written(true))
    }

    async fn set_desired(&mut self, machines: &BTreeSet<MachineId>, of: ReleaseId) -> Out<()> {
        self.statement("set desired").await?;
        for machine in machines {
            self.desire_within(*machine, of, true).await?;
        }
        Ok(())
    }

    async fn publish_draft(
        &mut self,
        of: DraftId,
        guard: &Guard,
        release: ReleaseId,
        token: EtagToken,
    ) -> Out<Written> {
        self.statement("publish draft").await?;
        let admits = |draft: &DraftRow, now| draft_admits(draft, guard, now);
        let lock = row(Relation::Draft, of);
        let Some(mut draft) = self.target_kept(lock, &of, admits).await? else {
            return Ok(written(false));
        };
        draft.state = DraftStateRow::Published(release);
        draft.etag.revision = Revision(draft.etag.revision.0 + 1);
        draft.etag.token = token;
        self.put_kept(of, draft)?;
        self.refers_to_kept::<_, Release>(&release, "draft_release_id_fkey")?;
        Ok(written(true))
    }
}
