//! The reads of PA §9.2. The table in `routes` alone uses this file.

use http::StatusCode;

use super::{Access, Body, Parameter, Route, RouteId, Start, Success, Verb, gives, route};
use crate::bodies::common::{Page, Role};
use crate::bodies::{
    act, approval, cluster, dependency, draft, identity, ingestion, machine, operation, plan,
    recovery, release, server, source, timeline,
};
use schemars::JsonSchema;

const fn read<T: JsonSchema>(id: RouteId, path: &'static str) -> Route {
    route(id, Verb::Get, path, gives(StatusCode::OK, Body::of::<T>()))
}

/// An answer without a described body.
const fn bare(id: RouteId, path: &'static str) -> Route {
    let success = Success {
        status: StatusCode::OK,
        body: None,
        etag: false,
        location: false,
    };
    route(id, Verb::Get, path, success)
}

const OPERATION_KINDS: &[&str] = &["publish", "ingest", "apply-config", "adopt"];
const OPERATION_STATES: &[&str] = &[
    "queued",
    "running",
    "succeeded",
    "failed",
    "committed",
    "sending",
    "verifying",
    "completed",
    "rejected",
    "cancelled",
    "unresolved",
];
const PLAN_STATES: &[&str] = &[
    "proposed",
    "approved",
    "committed",
    "revoked",
    "cancelled",
    "expired",
];
const INGESTION_STATES: &[&str] = &["held", "resumed", "paused", "released", "abandoned"];
const DEPENDENCY_CLASSES: &[&str] = &["retained", "blocked", "lost", "unknown"];

const BY_MACHINE: Parameter = Parameter::Identifier("machine", &["mch"]);

pub(super) static ROUTES: &[Route] = &[
    bare(RouteId::Liveness, "/livez")
        .open_to(Access::Anonymous)
        .status(StatusCode::NO_CONTENT)
        .start(Start::Any),
    bare(RouteId::ReadOpenApi, "/api/v1/openapi.json"),
    read::<Page<cluster::Cluster>>(RouteId::ListClusters, "/api/v1/clusters").paged(&[]),
    read::<cluster::Cluster>(RouteId::ReadCluster, "/api/v1/clusters/{cluster}"),
    read::<Page<machine::Machine>>(RouteId::ListMachines, "/api/v1/machines")
        .paged(&[Parameter::Identifier("cluster", &["cl"])]),
    read::<machine::Machine>(RouteId::ReadMachine, "/api/v1/machines/{machine}"),
    read::<Page<machine::Observation>>(
        RouteId::ListObservations,
        "/api/v1/machines/{machine}/observations",
    )
    .paged(&[]),
    read::<timeline::TimelinePage>(RouteId::ReadTimeline, "/api/v1/machines/{machine}/timeline")
        .paged(&[Parameter::Choice("order", &["oldest", "newest"])]),
    read::<Page<source::FragmentHead>>(RouteId::ListFragments, "/api/v1/fragments").paged(&[]),
    read::<source::FragmentHead>(RouteId::ReadFragment, "/api/v1/fragments/{fragment}").etag(),
    read::<Page<source::FragmentRevision>>(
        RouteId::ListFragmentRevisions,
        "/api/v1/fragments/{fragment}/revisions",
    )
    .paged(&[]),
    read::<source::FragmentRevision>(
        RouteId::ReadFragmentRevision,
        "/api/v1/fragment-revisions/{revision}",
    ),
    read::<Page<source::ProfileHead>>(RouteId::ListProfiles, "/api/v1/profiles").paged(&[]),
    read::<source::ProfileHead>(RouteId::ReadProfile, "/api/v1/profiles/{profile}").etag(),
    read::<Page<source::ProfileRevision>>(
        RouteId::ListProfileRevisions,
        "/api/v1/profiles/{profile}/revisions",
    )
    .paged(&[]),
    read::<source::ProfileRevision>(
        RouteId::ReadProfileRevision,
        "/api/v1/profile-revisions/{revision}",
    ),
    read::<Page<source::AssignmentHead>>(RouteId::ListAssignments, "/api/v1/assignments")
        .paged(&[]),
    read::<source::AssignmentHead>(RouteId::ReadAssignment, "/api/v1/assignments/{assignment}")
        .etag(),
    read::<Page<source::AssignmentRevision>>(
        RouteId::ListAssignmentRevisions,
        "/api/v1/assignments/{assignment}/revisions",
    )
    .paged(&[]),
    read::<source::AssignmentRevision>(
        RouteId::ReadAssignmentRevision,
        "/api/v1/assignment-revisions/{revision}",
    ),
    read::<Page<draft::Draft>>(RouteId::ListDrafts, "/api/v1/drafts").paged(&[]),
    read::<draft::Draft>(RouteId::ReadDraft, "/api/v1/drafts/{draft}").etag(),
    read::<Page<ingestion::Ingestion>>(RouteId::ListIngestions, "/api/v1/ingestions")
        .paged(&[Parameter::OneOf("state", INGESTION_STATES), BY_MACHINE]),
    read::<ingestion::Ingestion>(RouteId::ReadIngestion, "/api/v1/ingestions/{ingestion}"),
    read::<ingestion::IngestionReview>(
        RouteId::ReadIngestionReview,
        "/api/v1/ingestions/{ingestion}/review",
    )
    .by_human(&[Role::Author])
    .later(),
    read::<Page<release::Release>>(RouteId::ListReleases, "/api/v1/releases").paged(&[]),
    read::<release::Release>(RouteId::ReadRelease, "/api/v1/releases/{release}"),
    read::<release::ReleaseReview>(
        RouteId::ReadReleaseReview,
        "/api/v1/releases/{release}/machines/{machine}/review",
    ),
    read::<Page<plan::Plan>>(RouteId::ListPlans, "/api/v1/plans")
        .paged(&[Parameter::OneOf("state", PLAN_STATES), BY_MACHINE]),
    read::<plan::Plan>(RouteId::ReadPlan, "/api/v1/plans/{plan}"),
    read::<approval::Approval>(RouteId::ReadApproval, "/api/v1/approvals/{approval}"),
    read::<Page<operation::Operation>>(RouteId::ListOperations, "/api/v1/operations").paged(&[
        Parameter::Identifier("plan", &["pln"]),
        BY_MACHINE,
        Parameter::OneOf("state", OPERATION_STATES),
        Parameter::OneOf("kind", OPERATION_KINDS),
    ]),
    read::<operation::Operation>(RouteId::ReadOperation, "/api/v1/operations/{operation}"),
    read::<Page<timeline::Event>>(
        RouteId::ListOperationEvents,
        "/api/v1/operations/{operation}/events",
    )
    .paged(&[]),
    read::<Page<act::Act>>(RouteId::ListActs, "/api/v1/acts").paged(&[]),
    read::<recovery::Recovery>(RouteId::ReadRecovery, "/api/v1/recovery"),
    read::<dependency::DependencyPage>(RouteId::ListDependencies, "/api/v1/dependencies")
        .paged(&[Parameter::OneOf("class", DEPENDENCY_CLASSES)])
        .later(),
    read::<dependency::Dependency>(RouteId::ReadDependency, "/api/v1/dependencies/{dependency}")
        .later(),
    read::<Page<dependency::DependencyRelease>>(
        RouteId::ListDependencyReleases,
        "/api/v1/dependencies/{dependency}/releases",
    )
    .paged(&[])
    .later(),
    read::<Page<dependency::DependencyAlert>>(
        RouteId::ListAlertsOfDependency,
        "/api/v1/dependencies/{dependency}/alerts",
    )
    .paged(&[])
    .later(),
    read::<Page<dependency::DependencyAlert>>(
        RouteId::ListDependencyAlerts,
        "/api/v1/dependency-alerts",
    )
    .paged(&[])
    .later(),
    read::<identity::Identity>(RouteId::ReadIdentity, "/api/v1/identity")
        .open_to(Access::Credential),
    read::<identity::Principals>(RouteId::ReadPrincipals, "/api/v1/principals")
        .query(&[Parameter::Identifiers("id", &["idn"])])
        .later(),
    read::<server::Server>(RouteId::ReadServer, "/api/v1/server"),
];
