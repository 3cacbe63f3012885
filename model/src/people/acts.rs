//! The acts people and automation ask for, one function each, over the engine's own.
//!
//! Called by the people of a world and by witnesses. Each says what it names and nothing of
//! what must come of it. Never in this module: which act is due.

use std::collections::BTreeMap;
use std::sync::Arc;

use bronzeward_core::claim::{ClaimKind, StagingMode};
use bronzeward_core::fence::Generation;
use bronzeward_core::head::{AssignmentContent, Layer, Name, ProfileContent};
use bronzeward_core::id::{
    AttemptId, ClusterId, DraftId, FragmentRevisionId, IngestionId, MachineId, ObservationId,
    OperationId, PlanId, PrincipalId, ReleaseId,
};
use bronzeward_core::inventory::Endpoint;
use bronzeward_core::path::Path;
use bronzeward_core::plan::Requested;
use bronzeward_core::principal::Role;
use bronzeward_core::revision::Etag;
use bronzeward_core::secret::Unresolved;
use bronzeward_engine::ingest::{FragmentPut, Input, Said, Start};
use bronzeward_engine::ports::store::ClaimSource;
use bronzeward_engine::ports::{Notifier, Wake};
use bronzeward_engine::tx::dispatch::AccountingInput;
use bronzeward_engine::tx::plans::{PlanInput, Planner};
use bronzeward_engine::tx::{ClusterInput, IngestionStart, MachineInput, Named, Proposal};

use super::hand::{Ended, Hand, Route, Served, accepted, requests, said};
use crate::server::{LEASE, PLANS, SETTLE_FLOOR, Server};

const AUTHORS: &[Role] = &[Role::Author];
const PUBLISHERS: &[Role] = &[Role::Publisher];
pub(super) const APPROVERS: &[Role] = &[Role::Approver];
pub(super) const RECOVERY: &[Role] = &[Role::RecoveryAdmin];

pub(super) const fn route(name: &'static str, roles: &'static [Role], human_only: bool) -> Route {
    Route {
        name,
        roles,
        human_only,
        served: Served::AfterEntry,
        if_match: None,
    }
}

/// One that no process under the recovery-start flag serves.
pub(super) const fn normally(route: Route) -> Route {
    Route {
        served: Served::Normally,
        ..route
    }
}

/// The same of a draft's revision.
const fn on(etag: Etag, route: Route) -> Route {
    Route {
        if_match: Some(etag),
        ..route
    }
}

/// The identifier that an answer names.
pub fn made<K: bronzeward_core::id::Kind>(ended: &Ended) -> Option<bronzeward_core::id::Id<K>> {
    match ended {
        Ended::Answered(answer) => bronzeward_core::id::Id::parse(&answer.rendered.body).ok(),
        Ended::Refused(_) | Ended::Unheard => None,
    }
}

impl Hand {
    pub async fn create_cluster(&self, input: ClusterInput) -> Ended {
        let text = input.name.clone();
        self.ask(
            route("create cluster", AUTHORS, true),
            &text,
            move |server, admitted| {
                let input = input.clone();
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .create_cluster(&admitted, &input, |row| said(row.id))
                        .await
                })
            },
        )
        .await
    }

    pub async fn create_machine(&self, input: MachineInput) -> Ended {
        let text = format!("{}", input.endpoint);
        self.ask(
            route("create machine", AUTHORS, true),
            &text,
            move |server, admitted| {
                let input = input.clone();
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .create_machine(&admitted, &input, |row, _| said(row.id))
                        .await
                })
            },
        )
        .await
    }

    pub async fn change_endpoint(&self, machine: MachineId, next: Endpoint) -> Ended {
        self.ask(
            route("change endpoint", AUTHORS, true),
            &format!("{machine} {next}"),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .change_endpoint(&admitted, machine, next, None, |row, _| said(row.id))
                        .await
                })
            },
        )
        .await
    }

    pub async fn open_draft(&self, cluster: ClusterId) -> Ended {
        let bits = self.sim.state().rng.u64(..);
        self.open_draft_with(cluster, &format!("{bits}")).await
    }

    /// The same; `text` is what makes the request itself.
    pub async fn open_draft_with(&self, cluster: ClusterId, text: &str) -> Ended {
        self.ask(
            route("open draft", AUTHORS, false),
            text,
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .create_draft(&admitted, cluster, "draft", |row, _| said(row.id))
                        .await
                })
            },
        )
        .await
    }

    pub async fn discard_draft(&self, draft: DraftId, etag: Etag) -> Ended {
        self.ask(
            on(etag, route("discard draft", AUTHORS, false)),
            &format!("{draft} {etag}"),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .discard_draft(&admitted, draft, Some(etag), |row, _| said(row.id))
                        .await
                })
            },
        )
        .await
    }

    pub async fn put_fragment(
        &self,
        draft: DraftId,
        etag: Etag,
        name: Name,
        text: String,
    ) -> Ended {
        self.ask(
            on(etag, route("put fragment", AUTHORS, false)),
            &format!("{draft} {etag} {name} {text}"),
            move |server, admitted| {
                let put = FragmentPut {
                    draft,
                    name: name.clone(),
                    layer: Layer::Cluster,
                    input: Unresolved::new(text.clone().into_bytes()),
                    said: Said::default(),
                    if_match: Some(etag),
                };
                Box::pin(async move {
                    let refuse = |problem: &bronzeward_core::problem::Problem| {
                        let mut rendered = said(problem.code.as_str());
                        rendered.status = 422;
                        rendered
                    };
                    let render = |update: &bronzeward_engine::tx::EntryUpdate| said(update.draft);
                    server
                        .ingester
                        .put_fragment(&admitted, put, render, refuse)
                        .await
                })
            },
        )
        .await
    }

    async fn propose(&self, draft: DraftId, etag: Etag, proposal: Proposal, text: String) -> Ended {
        self.ask(
            on(etag, route("propose", AUTHORS, false)),
            &format!("{draft} {etag} {text}"),
            move |server, admitted| {
                let proposal = proposal.clone();
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .propose(&admitted, draft, &proposal, Some(etag), |update| {
                            said(update.draft)
                        })
                        .await
                })
            },
        )
        .await
    }

    pub async fn put_profile(
        &self,
        draft: DraftId,
        etag: Etag,
        name: Name,
        fragments: Vec<FragmentRevisionId>,
    ) -> Ended {
        let text = format!("profile {name} {fragments:?}");
        let proposal = Proposal::Profile(name, ProfileContent { fragments });
        self.propose(draft, etag, proposal, text).await
    }

    pub async fn put_assignment(
        &self,
        draft: DraftId,
        etag: Etag,
        machine: MachineId,
        content: AssignmentContent,
    ) -> Ended {
        let text = format!("assignment {machine} {content:?}");
        let proposal = Proposal::Assignment(machine, content);
        self.propose(draft, etag, proposal, text).await
    }

    pub async fn import(
        &self,
        machine: MachineId,
        draft: DraftId,
        etag: Etag,
        mode: StagingMode,
        kind: ClaimKind,
        marks: Vec<Path>,
    ) -> Ended {
        let start = IngestionStart {
            kind,
            machine,
            draft,
            source: ClaimSource::Machine,
            mode,
            if_match: Some(etag),
        };
        self.ask(
            on(etag, route("import", AUTHORS, true)),
            &format!("{machine} {draft} {etag}"),
            move |server, admitted| {
                let marks = marks.clone();
                Box::pin(async move {
                    let timers = server.ingester.settings.timers;
                    let asked = requests(&server);
                    let started = asked
                        .start_ingestion(&admitted, &start, timers, |operation, _| {
                            accepted(operation)
                        })
                        .await;
                    let (answer, issued) = started?;
                    if let Some(issued) = issued {
                        let said = Said {
                            marks,
                            ..Said::default()
                        };
                        server.ingester.begin(Start {
                            issued,
                            input: Input::Machine,
                            said,
                        });
                    }
                    Ok(answer)
                })
            },
        )
        .await
    }

    pub async fn take_over_ingestion(&self, ingestion: IngestionId) -> Ended {
        self.ask(
            route("take over ingestion", AUTHORS, true),
            &format!("{ingestion}"),
            move |server, admitted| {
                Box::pin(async move {
                    let timers = server.ingester.settings.timers;
                    let asked = requests(&server);
                    let taken =
                        asked.take_over_ingestion(&admitted, ingestion, timers, |operation, _| {
                            accepted(operation)
                        });
                    let answer = taken.await?;
                    if !answer.replayed {
                        server.ingester.begin_resumed(ingestion);
                    }
                    Ok(answer)
                })
            },
        )
        .await
    }

    pub async fn abandon_ingestion(&self, ingestion: IngestionId) -> Ended {
        self.ask(
            route("abandon ingestion", AUTHORS, true),
            &format!("{ingestion}"),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .abandon_ingestion(&admitted, ingestion, |read| said(read.row.id))
                        .await
                })
            },
        )
        .await
    }

    pub async fn publish(&self, draft: DraftId, etag: Etag) -> Ended {
        self.ask(
            on(etag, route("publish", PUBLISHERS, false)),
            &format!("{draft} {etag}"),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    let published =
                        asked.publish_draft(&admitted, draft, Some(etag), |row| accepted(row.id));
                    let answer = published.await?;
                    server.notifier.wake(Wake::Publication);
                    Ok(answer)
                })
            },
        )
        .await
    }

    pub async fn plan(&self, release: ReleaseId, machine: MachineId, adopt: bool) -> Ended {
        let bits = self.sim.state().rng.u64(..);
        let input = PlanInput {
            release,
            machine,
            adopt,
            requested: Requested::default(),
        };
        self.plan_with(input, &format!("{release} {machine} {bits}"))
            .await
    }

    /// A plan with lengths of its own; `text` is what makes the request itself.
    pub async fn plan_with(&self, input: PlanInput, text: &str) -> Ended {
        self.ask(
            normally(route("plan", PUBLISHERS, false)),
            text,
            move |server, admitted| {
                let input = input.clone();
                Box::pin(async move {
                    let planner = Planner {
                        requests: requests(&server),
                        renderer: Some(&*server.renderer),
                        limits: PLANS,
                    };
                    planner
                        .create_plan(&admitted, &input, |row| said(row.plan.binding().id))
                        .await
                })
            },
        )
        .await
    }

    pub async fn approve(&self, plan: PlanId) -> Ended {
        self.ask(
            normally(route("approve", APPROVERS, true)),
            &format!("{plan}"),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    let approved =
                        asked.approve_plan(&admitted, plan, |approval| said(approval.id));
                    let answer = approved.await?;
                    server.notifier.wake(Wake::Dispatch);
                    Ok(answer)
                })
            },
        )
        .await
    }

    pub async fn revoke_identity(&self, identity: PrincipalId) -> Ended {
        self.ask(
            route("revoke identity", RECOVERY, true),
            &format!("{identity}"),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    let named = Named::Identity(identity);
                    asked
                        .revoke_identity(
                            &admitted,
                            &named,
                            "left",
                            |_| false,
                            |revoked| said(revoked.revocation.identity),
                        )
                        .await
                })
            },
        )
        .await
    }

    pub async fn take_over_operation(&self, operation: OperationId, seen: Generation) -> Ended {
        self.ask(
            route("take over operation", RECOVERY, true),
            &format!("{operation} {}", seen.0),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    let taken = asked.take_over_operation(
                        &admitted,
                        operation,
                        seen,
                        "asked for",
                        Some(LEASE),
                        |taken| said(taken.operation.id),
                    );
                    let answer = taken.await?;
                    server.notifier.wake(Wake::Dispatch);
                    Ok(answer)
                })
            },
        )
        .await
    }

    pub async fn account(
        &self,
        operation: OperationId,
        attempt: AttemptId,
        start: ObservationId,
        end: ObservationId,
    ) -> Ended {
        // A changed resource has to be explained; somebody forgets to.
        let facts = match self.sim.state().rng.u32(0..3) {
            0 => BTreeMap::new(),
            _ => BTreeMap::from([("explanation".to_owned(), "looked".to_owned())]),
        };
        self.account_with(AccountingInput {
            operation,
            attempt,
            start,
            end,
            facts,
        })
        .await
    }

    pub async fn account_with(&self, input: AccountingInput) -> Ended {
        let AccountingInput {
            attempt,
            start,
            end,
            ..
        } = input;
        self.ask(
            route("account", RECOVERY, true),
            &format!("{attempt} {start} {end}"),
            move |server: Arc<Server>, admitted| {
                let input = input.clone();
                Box::pin(async move {
                    let asked = requests(&server);
                    let accounted = asked.account_attempt(&admitted, &input, SETTLE_FLOOR, |row| {
                        said(row.operation.id)
                    });
                    let answer = accounted.await?;
                    server.notifier.wake(Wake::Dispatch);
                    Ok(answer)
                })
            },
        )
        .await
    }
}
