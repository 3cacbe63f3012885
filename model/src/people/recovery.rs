//! The acts of recovery mode, one function each, over the engine's own.
//!
//! Called by who keeps the installation, and by witnesses. Never in this module: which act is
//! due.

use std::collections::BTreeMap;

use bronzeward_core::id::MachineId;
use bronzeward_core::installation::EntryRequest;
use bronzeward_engine::tx::recovery::{AccountedScope, ScopeInput, ScopesInput, Settle};

use super::acts::{RECOVERY, route};
use super::hand::{ENTRY, EXIT, Ended, Hand, Route, Served, requests, said};
use crate::call::call;
use crate::change::Outside;
use crate::server::{PLANS, SETTLE_FLOOR};

/// What was looked at, as an act states it.
fn facts() -> BTreeMap<String, String> {
    BTreeMap::from([("explanation".to_owned(), "looked".to_owned())])
}

impl Hand {
    pub async fn enter_recovery(&self, entry: EntryRequest) -> Ended {
        let by = Route {
            served: Served::Entry,
            ..route(ENTRY, RECOVERY, true)
        };
        self.ask(by, &format!("{entry:?}"), move |server, admitted| {
            let entry = entry.clone();
            Box::pin(async move {
                let asked = requests(&server);
                let entered =
                    asked.enter_recovery(&admitted, &entry, |entered| said(entered.decided.epoch));
                entered.await
            })
        })
        .await
    }

    pub async fn account_scopes(&self, scopes: BTreeMap<MachineId, AccountedScope>) -> Ended {
        let text = format!("{scopes:?}");
        let input = ScopesInput {
            scopes,
            facts: facts(),
        };
        let settle = Settle {
            floor: SETTLE_FLOOR,
            longest_transport: bronzeward_core::time::Span::seconds(PLANS.max_transport),
        };
        self.ask(
            route("account scopes", RECOVERY, true),
            &text,
            move |server, admitted| {
                let input = input.clone();
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .account_scopes(&admitted, &input, settle, |row| said(row.act))
                        .await
                })
            },
        )
        .await
    }

    pub async fn mark_scope(&self, machine: MachineId) -> Ended {
        let input = ScopeInput {
            machine,
            facts: facts(),
        };
        self.ask(
            route("mark scope", RECOVERY, true),
            &format!("{machine}"),
            move |server, admitted| {
                let input = input.clone();
                Box::pin(async move {
                    let recoverer = &server.recoverer;
                    recoverer
                        .mark_scope(&admitted, &input, |row| said(row.to.as_str()))
                        .await
                })
            },
        )
        .await
    }

    pub async fn release_scope(&self, machine: MachineId) -> Ended {
        let input = ScopeInput {
            machine,
            facts: facts(),
        };
        self.ask(
            route("release scope", RECOVERY, true),
            &format!("{machine}"),
            move |server, admitted| {
                let input = input.clone();
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .release_scope(&admitted, &input, |row| said(row.to.as_str()))
                        .await
                })
            },
        )
        .await
    }

    pub async fn exit_recovery(&self) -> Ended {
        self.ask(
            route(EXIT, RECOVERY, true),
            "leave",
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    let facts = facts();
                    asked
                        .exit_recovery(&admitted, &facts, |exited| said(exited.decided.epoch))
                        .await
                })
            },
        )
        .await
    }

    pub async fn decommission(&self, machine: MachineId) -> Ended {
        self.ask(
            route("decommission", RECOVERY, true),
            &format!("{machine}"),
            move |server, admitted| {
                Box::pin(async move {
                    let recoverer = &server.recoverer;
                    recoverer
                        .decommission(&admitted, machine, "gone", |row| said(row.machine))
                        .await
                })
            },
        )
        .await
    }

    /// The orphan report of every cluster, as the operator's command makes it; none where a
    /// step of it failed.
    pub async fn report_orphans(&self) -> Option<()> {
        let server = self.server()?;
        let id = server.id;
        let found = call(&self.sim, id, async move {
            bronzeward_engine::orphans::report(&server.db, &*server.orphans, None).await
        });
        let report = found.await?.ok()?;
        let paths = report.orphans.into_iter().flat_map(|of| of.paths);
        let event = Outside::Orphans(paths.collect());
        self.sim.state().journal.outside(event);
        Some(())
    }
}
