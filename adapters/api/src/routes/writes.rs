//! The writes of PA §9.2. The table in `routes` alone uses this file.

use http::StatusCode;
use schemars::JsonSchema;

use super::{Body, Route, RouteId, Start, Verb, gives, route};
use crate::bodies::common::{Nothing, Role};
use crate::bodies::{
    approval, cluster, draft, identity, ingestion, machine, operation, plan, recovery,
};

const AUTHOR: &[Role] = &[Role::Author];
const PUBLISHER: &[Role] = &[Role::Publisher];
const APPROVER: &[Role] = &[Role::Approver];
const RECOVERY: &[Role] = &[Role::RecoveryAdmin];

/// A POST that takes `I` and gives `O`.
const fn post<I: JsonSchema, O: JsonSchema>(
    id: RouteId,
    path: &'static str,
    status: StatusCode,
) -> Route {
    route(id, Verb::Post, path, gives(status, Body::of::<O>())).takes(Body::of::<I>())
}

/// A PUT of a draft's entry.
const fn put<I: JsonSchema>(id: RouteId, path: &'static str) -> Route {
    let gives = gives(StatusCode::OK, Body::of::<draft::DraftUpdate>());
    route(id, Verb::Put, path, gives)
        .by(AUTHOR)
        .takes(Body::of::<I>())
        .if_match()
        .etag()
}

/// A DELETE of a draft's entry: it proposes a removal and has no body.
const fn remove(id: RouteId, path: &'static str) -> Route {
    let gives = gives(StatusCode::OK, Body::of::<draft::DraftUpdate>());
    route(id, Verb::Delete, path, gives)
        .by(AUTHOR)
        .if_match()
        .etag()
}

pub(super) static ROUTES: &[Route] = &[
    post::<cluster::CreateCluster, cluster::Cluster>(
        RouteId::CreateCluster,
        "/api/v1/clusters",
        StatusCode::CREATED,
    )
    .by_human(AUTHOR)
    .located(),
    post::<machine::CreateMachine, machine::Machine>(
        RouteId::CreateMachine,
        "/api/v1/machines",
        StatusCode::CREATED,
    )
    .by_human(AUTHOR)
    .located(),
    post::<machine::ReplaceTalosEndpoint, machine::Machine>(
        RouteId::ReplaceTalosEndpoint,
        "/api/v1/machines/{machine}/talos-endpoints",
        StatusCode::CREATED,
    )
    .by_human(AUTHOR)
    .located(),
    post::<machine::Freeze, machine::FreezeFact>(
        RouteId::FreezeMachine,
        "/api/v1/machines/{machine}/freezes",
        StatusCode::CREATED,
    )
    .by(&[
        Role::Author,
        Role::Publisher,
        Role::Approver,
        Role::RecoveryAdmin,
    ])
    .later(),
    post::<machine::Unfreeze, machine::FreezeFact>(
        RouteId::UnfreezeMachine,
        "/api/v1/machines/{machine}/unfreezes",
        StatusCode::CREATED,
    )
    .by(APPROVER)
    .start(Start::Normal)
    .later(),
    post::<draft::CreateDraft, draft::Draft>(
        RouteId::CreateDraft,
        "/api/v1/drafts",
        StatusCode::CREATED,
    )
    .by(AUTHOR)
    .etag()
    .located(),
    put::<draft::PutFragment>(
        RouteId::PutDraftFragment,
        "/api/v1/drafts/{draft}/fragments/{name}",
    )
    .keyed(),
    remove(
        RouteId::RemoveDraftFragment,
        "/api/v1/drafts/{draft}/fragments/{name}",
    ),
    put::<draft::PutProfile>(
        RouteId::PutDraftProfile,
        "/api/v1/drafts/{draft}/profiles/{name}",
    ),
    remove(
        RouteId::RemoveDraftProfile,
        "/api/v1/drafts/{draft}/profiles/{name}",
    ),
    put::<draft::PutAssignment>(
        RouteId::PutDraftAssignment,
        "/api/v1/drafts/{draft}/assignments/{machine}",
    ),
    remove(
        RouteId::RemoveDraftAssignment,
        "/api/v1/drafts/{draft}/assignments/{machine}",
    ),
    post::<Nothing, draft::Draft>(
        RouteId::DiscardDraft,
        "/api/v1/drafts/{draft}/discard",
        StatusCode::OK,
    )
    .by(AUTHOR)
    .if_match()
    .etag(),
    post::<Nothing, operation::Operation>(
        RouteId::PublishDraft,
        "/api/v1/drafts/{draft}/publications",
        StatusCode::ACCEPTED,
    )
    .by(PUBLISHER)
    .if_match()
    .located(),
    post::<ingestion::StartIngestion, ingestion::IngestionAccepted>(
        RouteId::StartIngestion,
        "/api/v1/ingestions",
        StatusCode::ACCEPTED,
    )
    .by_human(AUTHOR)
    .if_match()
    .keyed()
    .located(),
    post::<ingestion::MarkIngestion, ingestion::IngestionAccepted>(
        RouteId::MarkIngestion,
        "/api/v1/ingestions/{ingestion}/marks",
        StatusCode::ACCEPTED,
    )
    .by_human(AUTHOR)
    .keyed()
    .located()
    .later(),
    post::<Nothing, ingestion::IngestionAccepted>(
        RouteId::ContinueIngestion,
        "/api/v1/ingestions/{ingestion}/continuations",
        StatusCode::ACCEPTED,
    )
    .by_human(AUTHOR)
    .located()
    .later(),
    post::<Nothing, ingestion::IngestionAccepted>(
        RouteId::TakeOverIngestion,
        "/api/v1/ingestions/{ingestion}/takeovers",
        StatusCode::ACCEPTED,
    )
    .by_human(AUTHOR)
    .located(),
    post::<Nothing, ingestion::Ingestion>(
        RouteId::AbandonIngestion,
        "/api/v1/ingestions/{ingestion}/abandonments",
        StatusCode::OK,
    )
    .by_human(AUTHOR),
    post::<plan::CreatePlan, plan::Plan>(RouteId::CreatePlan, "/api/v1/plans", StatusCode::CREATED)
        .by(PUBLISHER)
        .located()
        .start(Start::Normal),
    post::<plan::CancelPlan, plan::PlanCancellation>(
        RouteId::CancelPlan,
        "/api/v1/plans/{plan}/cancellations",
        StatusCode::OK,
    )
    .by(&[Role::Publisher, Role::Approver, Role::RecoveryAdmin])
    .later(),
    post::<Nothing, approval::Approval>(
        RouteId::ApprovePlan,
        "/api/v1/plans/{plan}/approvals",
        StatusCode::CREATED,
    )
    .by_human(APPROVER)
    .located()
    .start(Start::Normal),
    post::<approval::RevokeApproval, approval::ApprovalRevocation>(
        RouteId::RevokeApproval,
        "/api/v1/approvals/{approval}/revocations",
        StatusCode::CREATED,
    )
    .by(&[Role::Approver, Role::RecoveryAdmin])
    .later(),
    post::<operation::TakeOverOperation, operation::OperationEntry>(
        RouteId::TakeOverOperation,
        "/api/v1/operations/{operation}/takeovers",
        StatusCode::CREATED,
    )
    .by_human(RECOVERY)
    .located(),
    post::<operation::AccountAttempt, operation::OperationEntry>(
        RouteId::AccountAttempt,
        "/api/v1/operations/{operation}/attempts/{attempt}/accountings",
        StatusCode::CREATED,
    )
    .by_human(RECOVERY)
    .located(),
    post::<operation::ResolveOperation, operation::OperationEntry>(
        RouteId::ResolveOperation,
        "/api/v1/operations/{operation}/resolutions",
        StatusCode::CREATED,
    )
    .by_human(RECOVERY)
    .located()
    .later(),
    post::<identity::RevokeIdentity, identity::IdentityRevocation>(
        RouteId::RevokeIdentity,
        "/api/v1/identity-revocations",
        StatusCode::CREATED,
    )
    .by_human(RECOVERY),
    post::<recovery::EnterRecovery, recovery::Recovery>(
        RouteId::EnterRecovery,
        "/api/v1/recovery/entries",
        StatusCode::CREATED,
    )
    .by_human(RECOVERY)
    .located()
    .start(Start::RecoveryStart)
    .later(),
    post::<recovery::RecoveryFacts, recovery::Recovery>(
        RouteId::ExitRecovery,
        "/api/v1/recovery/exits",
        StatusCode::CREATED,
    )
    .by_human(RECOVERY)
    .later(),
    post::<recovery::AccountScopes, recovery::ScopesAccounted>(
        RouteId::AccountScopes,
        "/api/v1/recovery/accountings",
        StatusCode::CREATED,
    )
    .by_human(RECOVERY)
    .later(),
    post::<recovery::RecoveryFacts, recovery::ScopeChange>(
        RouteId::MarkScope,
        "/api/v1/recovery/scopes/{machine}/marks",
        StatusCode::CREATED,
    )
    .by_human(RECOVERY)
    .later(),
    post::<recovery::RecoveryFacts, recovery::ScopeChange>(
        RouteId::ReleaseScope,
        "/api/v1/recovery/scopes/{machine}/releases",
        StatusCode::CREATED,
    )
    .by_human(RECOVERY)
    .later(),
];
