//! One handler per route: parse, engine, answer. A handler holds no rule.
//!
//! Conversions between wire bodies and core types stand beside the handlers of their
//! resource; `wire` has those that several share.

mod clusters;
mod draft_entries;
mod drafts;
mod identities;
mod ingestions;
mod machines;
mod observations;
mod operation_acts;
mod operations;
mod plans;
mod publications;
mod releases;
mod said;
mod sources;
mod system;
pub(crate) mod wire;

use axum::response::Response;
use bronzeward_api::routes::RouteId;
use bronzeward_core::id::RequestId;
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_engine::request::Refused;
use bronzeward_engine::request::Rendered;
use bronzeward_engine::world::World;
use http::StatusCode;

use crate::call::Call;

/// The handler of a call's route.
pub async fn dispatch<W: World>(call: Call<'_, W>) -> Result<Response, Refused> {
    match call.route.id {
        RouteId::ListClusters => clusters::list(call).await,
        RouteId::ReadCluster => clusters::read(call).await,
        RouteId::CreateCluster => clusters::create(call).await,
        RouteId::ListMachines => machines::list(call).await,
        RouteId::ReadMachine => machines::read(call).await,
        RouteId::CreateMachine => machines::create(call).await,
        RouteId::ReplaceTalosEndpoint => machines::replace_endpoint(call).await,
        RouteId::ReadTimeline => machines::timeline(call).await,
        RouteId::ListObservations => observations::list(call).await,
        RouteId::ListDrafts => drafts::list(call).await,
        RouteId::ReadDraft => drafts::read(call).await,
        RouteId::CreateDraft => drafts::create(call).await,
        RouteId::DiscardDraft => drafts::discard(call).await,
        RouteId::PublishDraft => publications::create(call).await,
        RouteId::ListReleases => releases::list(call).await,
        RouteId::ReadRelease => releases::read(call).await,
        RouteId::ReadReleaseReview => releases::review(call).await,
        RouteId::PutDraftFragment => draft_entries::put_fragment(call).await,
        RouteId::RemoveDraftFragment => draft_entries::remove_fragment(call).await,
        RouteId::PutDraftProfile => draft_entries::put_profile(call).await,
        RouteId::RemoveDraftProfile => draft_entries::remove_profile(call).await,
        RouteId::PutDraftAssignment => draft_entries::put_assignment(call).await,
        RouteId::RemoveDraftAssignment => draft_entries::remove_assignment(call).await,
        RouteId::ListFragments => sources::fragments(call).await,
        RouteId::ReadFragment => sources::read_fragment(call).await,
        RouteId::ListFragmentRevisions => sources::fragment_revisions(call).await,
        RouteId::ReadFragmentRevision => sources::read_fragment_revision(call).await,
        RouteId::ListProfiles => sources::profiles(call).await,
        RouteId::ReadProfile => sources::read_profile(call).await,
        RouteId::ListProfileRevisions => sources::profile_revisions(call).await,
        RouteId::ReadProfileRevision => sources::read_profile_revision(call).await,
        RouteId::ListAssignments => sources::assignments(call).await,
        RouteId::ReadAssignment => sources::read_assignment(call).await,
        RouteId::ListAssignmentRevisions => sources::assignment_revisions(call).await,
        RouteId::ReadAssignmentRevision => sources::read_assignment_revision(call).await,
        RouteId::StartIngestion => ingestions::start(call).await,
        RouteId::ListIngestions => ingestions::list(call).await,
        RouteId::ReadIngestion => ingestions::read(call).await,
        RouteId::TakeOverIngestion => ingestions::take_over(call).await,
        RouteId::AbandonIngestion => ingestions::abandon(call).await,
        RouteId::ListOperations => operations::list(call).await,
        RouteId::ReadOperation => operations::read(call).await,
        RouteId::ListOperationEvents => operations::events(call).await,
        RouteId::TakeOverOperation => operation_acts::take_over(call).await,
        RouteId::AccountAttempt => operation_acts::account(call).await,
        RouteId::ListPlans => plans::list(call).await,
        RouteId::ReadPlan => plans::read(call).await,
        RouteId::CreatePlan => plans::create(call).await,
        RouteId::ApprovePlan => plans::approve(call).await,
        RouteId::ReadApproval => plans::read_approval(call).await,
        RouteId::RevokeIdentity => identities::revoke(call).await,
        RouteId::ListActs => system::acts(call).await,
        RouteId::ReadIdentity => system::identity(call).await,
        RouteId::ReadServer => system::server(call).await,
        RouteId::ReadRecovery => system::recovery(call).await,
        RouteId::ReadOpenApi => system::open_api(),
        // Routes of the table whose handler has not landed (PA §9.4).
        _ => Err(Problem::new(ProblemCode::NotImplemented).into()),
    }
}

/// What a write answers from its body. A row that has no wire form is the server's fault
/// and is answered as such; it cannot be refused any more.
fn render<T>(
    request: RequestId,
    body: Result<T, Refused>,
    answer: impl FnOnce(&T) -> Rendered,
) -> Rendered {
    match body {
        Ok(body) => answer(&body),
        Err(refused) => {
            let document = crate::problem::document(&refused.problem, request.to_string());
            crate::call::rendered(StatusCode::INTERNAL_SERVER_ERROR, &document)
        }
    }
}
