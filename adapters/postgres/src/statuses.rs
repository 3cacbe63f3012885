//! Status rows of the versions that releases depend on, as a publication reads and seeds
//! them (PA §6.2, DM §5.2).

use std::collections::BTreeSet;

use bronzeward_core::dependency::Class;
use bronzeward_core::release::StatusRow;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{LockMode, Seed};
use diesel::prelude::*;

use crate::convert::{Out, fault, id};
use crate::load_locked;
use crate::schema::dependency_status;
use crate::store::{Access, PgRows, PgTx};
use crate::time::Stamp;

/// Identifier, object, version, creation time, class and recording time.
type StatusRecord = (String, String, i64, String, String, Stamp);

fn status((of, object, version, created, class, recorded_at): StatusRecord) -> Out<StatusRow> {
    Ok(StatusRow {
        id: id(&of)?,
        object,
        version,
        created,
        class: Class::parse(&class).ok_or_else(fault)?,
        recorded_at: recorded_at.0,
    })
}

impl<M: Access> PgRows<M> {
    /// The rows of provider objects by identifier, FOR SHARE where `held`.
    pub(crate) async fn status_rows(
        &mut self,
        objects: &BTreeSet<String>,
        held: bool,
    ) -> Out<Vec<StatusRow>> {
        use dependency_status::dsl;
        let objects: Vec<String> = objects.iter().cloned().collect();
        let query = dsl::dependency_status
            .filter(dsl::provider_object.eq_any(objects))
            .order(dsl::id)
            .select((
                dsl::id,
                dsl::provider_object,
                dsl::version,
                dsl::created,
                dsl::class,
                dsl::recorded_at,
            ));
        let mode = held.then_some(LockMode::Share);
        let rows: Vec<StatusRecord> = load_locked!(self, query, mode)?;
        rows.into_iter().map(status).collect()
    }
}

impl PgTx {
    /// One statement per row: an INSERT that waits for a concurrent publication's row keeps
    /// the order in which every publication seeds.
    pub(crate) async fn seed(&mut self, seeds: &[Seed], at: DbTime) -> Out<()> {
        use dependency_status::dsl;
        let mut ordered: Vec<&Seed> = seeds.iter().collect();
        ordered.sort_by(|a, b| a.dependency.cmp(&b.dependency));
        for seed in ordered {
            let reason = seed.classification.reason;
            let insert = diesel::insert_into(dsl::dependency_status)
                .values((
                    dsl::id.eq(seed.id.to_string()),
                    dsl::provider.eq(if seed.kv { "kv" } else { "transit" }),
                    dsl::provider_object.eq(seed.dependency.object.clone()),
                    dsl::version.eq(seed.dependency.version),
                    dsl::created.eq(seed.dependency.created.clone()),
                    dsl::class.eq(seed.classification.class.name()),
                    dsl::reason.eq(reason.map(|reason| reason.name())),
                    dsl::scheduled_deletion.eq(seed.classification.scheduled.clone()),
                    dsl::first_retained_at.eq(Stamp(at)),
                    dsl::observed_from.eq(Stamp(seed.classified_from)),
                    dsl::recorded_at.eq(Stamp(at)),
                ))
                .on_conflict_do_nothing();
            self.execute(insert).await?;
        }
        Ok(())
    }
}
