//! A machine's freeze and its facts (EaR 6.2).

use bronzeward_core::id::MachineId;
use bronzeward_engine::ports::store::{FreezeWrites, Frozen};
use diesel::prelude::*;

use crate::convert::Out;
use crate::operations::one;
use crate::schema::{machine, scope_freeze, scope_unfreeze};
use crate::store::PgTx;
use crate::time::Stamp;

impl PgTx {
    async fn set_frozen(&mut self, of: MachineId, frozen: bool) -> Out<()> {
        let update = diesel::update(machine::table.find(of.to_string())).set((
            machine::frozen.eq(frozen),
            machine::revision.eq(machine::revision + 1),
        ));
        one(self.execute(update).await?)
    }
}

impl FreezeWrites for PgTx {
    async fn freeze(&mut self, fact: &Frozen, reason: Option<&str>) -> Out<()> {
        self.set_frozen(fact.machine, true).await?;
        use scope_freeze::dsl;
        let insert = diesel::insert_into(dsl::scope_freeze).values((
            dsl::machine_id.eq(fact.machine.to_string()),
            dsl::revision.eq(fact.revision.0),
            dsl::principal_id.eq(fact.by.principal.to_string()),
            dsl::role.eq(fact.by.role.as_str()),
            dsl::reason.eq(reason.map(str::to_owned)),
            dsl::epoch.eq(fact.epoch.to_string()),
            dsl::act_id.eq(fact.act.to_string()),
            dsl::at.eq(Stamp(fact.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn unfreeze(&mut self, fact: &Frozen, reason: &str) -> Out<()> {
        self.set_frozen(fact.machine, false).await?;
        use scope_unfreeze::dsl;
        let insert = diesel::insert_into(dsl::scope_unfreeze).values((
            dsl::machine_id.eq(fact.machine.to_string()),
            dsl::revision.eq(fact.revision.0),
            dsl::principal_id.eq(fact.by.principal.to_string()),
            dsl::role.eq(fact.by.role.as_str()),
            dsl::reason.eq(reason.to_owned()),
            dsl::epoch.eq(fact.epoch.to_string()),
            dsl::act_id.eq(fact.act.to_string()),
            dsl::at.eq(Stamp(fact.at)),
        ));
        self.execute(insert).await.map(drop)
    }
}
