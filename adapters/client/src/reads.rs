//! The reads: one method per route (PA §9.2).

use bronzeward_api::bodies::act::Act;
use bronzeward_api::bodies::approval::Approval;
use bronzeward_api::bodies::cluster::Cluster;
use bronzeward_api::bodies::common::Page;
use bronzeward_api::bodies::draft::Draft;
use bronzeward_api::bodies::identity::Identity;
use bronzeward_api::bodies::ingestion::Ingestion;
use bronzeward_api::bodies::machine::{Machine, Observation};
use bronzeward_api::bodies::operation::Operation;
use bronzeward_api::bodies::plan::Plan;
use bronzeward_api::bodies::recovery::Recovery;
use bronzeward_api::bodies::release::{Release, ReleaseReview};
use bronzeward_api::bodies::server::Server;
use bronzeward_api::bodies::source::{
    AssignmentHead, AssignmentRevision, FragmentHead, FragmentRevision, ProfileHead,
    ProfileRevision,
};
use bronzeward_api::bodies::timeline::{Event, TimelinePage};
use bronzeward_api::routes::RouteId;
use serde_json::Value;

use crate::{Answer, Client, ClientError};

type Called<T> = Result<Answer<T>, ClientError>;

/// Where a page begins and how long it is; the server's defaults where unset.
#[derive(Clone, Debug, Default)]
pub struct Paging {
    cursor: Option<String>,
    limit: Option<String>,
}

impl Paging {
    /// The first page, of the server's length.
    pub fn start() -> Self {
        Self::default()
    }

    /// The page a `next` or `tail` names.
    pub fn from(cursor: impl Into<String>) -> Self {
        Self {
            cursor: Some(cursor.into()),
            limit: None,
        }
    }

    /// At most this many items, 1 to 500.
    #[must_use]
    pub fn limit(mut self, limit: u16) -> Self {
        self.limit = Some(limit.to_string());
        self
    }

    fn pairs<'a>(&'a self, filters: &[(&'a str, Option<&'a str>)]) -> Vec<(&'a str, &'a str)> {
        let paging = [
            ("cursor", self.cursor.as_deref()),
            ("limit", self.limit.as_deref()),
        ];
        let all = filters.iter().chain(&paging);
        all.filter_map(|(name, value)| value.map(|value| (*name, value)))
            .collect()
    }
}

/// The order of a timeline page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Oldest,
    Newest,
}

impl Direction {
    fn as_str(self) -> &'static str {
        match self {
            Direction::Oldest => "oldest",
            Direction::Newest => "newest",
        }
    }
}

/// What a list of operations is narrowed to.
#[derive(Clone, Copy, Debug, Default)]
pub struct OperationFilter<'a> {
    pub plan: Option<&'a str>,
    pub machine: Option<&'a str>,
    pub state: Option<&'a str>,
    pub kind: Option<&'a str>,
}

impl Client {
    /// Whether the process answers at all. It says nothing else.
    pub async fn live(&self) -> Result<(), ClientError> {
        self.probe().await
    }

    /// Clusters, in identifier order.
    pub async fn clusters(&self, page: &Paging) -> Called<Page<Cluster>> {
        self.read(RouteId::ListClusters, &[], &page.pairs(&[]))
            .await
    }

    /// One cluster.
    pub async fn cluster(&self, cluster: &str) -> Called<Cluster> {
        self.read(RouteId::ReadCluster, &[cluster], &[]).await
    }

    /// Machines, of one cluster if named.
    pub async fn machines(&self, cluster: Option<&str>, page: &Paging) -> Called<Page<Machine>> {
        self.read(
            RouteId::ListMachines,
            &[],
            &page.pairs(&[("cluster", cluster)]),
        )
        .await
    }

    /// One machine.
    pub async fn machine(&self, machine: &str) -> Called<Machine> {
        self.read(RouteId::ReadMachine, &[machine], &[]).await
    }

    /// A machine's observations.
    pub async fn observations(&self, machine: &str, page: &Paging) -> Called<Page<Observation>> {
        self.read(RouteId::ListObservations, &[machine], &page.pairs(&[]))
            .await
    }

    /// A machine's timeline; a cursor belongs to one direction.
    pub async fn timeline(
        &self,
        machine: &str,
        order: Direction,
        page: &Paging,
    ) -> Called<TimelinePage> {
        self.read(
            RouteId::ReadTimeline,
            &[machine],
            &page.pairs(&[("order", Some(order.as_str()))]),
        )
        .await
    }

    /// Heads of fragments.
    pub async fn fragments(&self, page: &Paging) -> Called<Page<FragmentHead>> {
        self.read(RouteId::ListFragments, &[], &page.pairs(&[]))
            .await
    }

    /// The head of a fragment, with its ETag.
    pub async fn fragment(&self, fragment: &str) -> Called<FragmentHead> {
        self.read(RouteId::ReadFragment, &[fragment], &[]).await
    }

    /// Every revision of a head's name, published or not.
    pub async fn fragment_revisions(
        &self,
        fragment: &str,
        page: &Paging,
    ) -> Called<Page<FragmentRevision>> {
        self.read(
            RouteId::ListFragmentRevisions,
            &[fragment],
            &page.pairs(&[]),
        )
        .await
    }

    /// One revision's content.
    pub async fn fragment_revision(&self, revision: &str) -> Called<FragmentRevision> {
        self.read(RouteId::ReadFragmentRevision, &[revision], &[])
            .await
    }

    /// Heads of profiles.
    pub async fn profiles(&self, page: &Paging) -> Called<Page<ProfileHead>> {
        self.read(RouteId::ListProfiles, &[], &page.pairs(&[]))
            .await
    }

    /// The head of a profile, with its ETag.
    pub async fn profile(&self, profile: &str) -> Called<ProfileHead> {
        self.read(RouteId::ReadProfile, &[profile], &[]).await
    }

    /// Every revision of a head's name, published or not.
    pub async fn profile_revisions(
        &self,
        profile: &str,
        page: &Paging,
    ) -> Called<Page<ProfileRevision>> {
        self.read(RouteId::ListProfileRevisions, &[profile], &page.pairs(&[]))
            .await
    }

    /// One revision's content.
    pub async fn profile_revision(&self, revision: &str) -> Called<ProfileRevision> {
        self.read(RouteId::ReadProfileRevision, &[revision], &[])
            .await
    }

    /// Heads of assignments.
    pub async fn assignments(&self, page: &Paging) -> Called<Page<AssignmentHead>> {
        self.read(RouteId::ListAssignments, &[], &page.pairs(&[]))
            .await
    }

    /// The head of an assignment, with its ETag.
    pub async fn assignment(&self, assignment: &str) -> Called<AssignmentHead> {
        self.read(RouteId::ReadAssignment, &[assignment], &[]).await
    }

    /// Every revision of a machine's assignment, published or not.
    pub async fn assignment_revisions(
        &self,
        assignment: &str,
        page: &Paging,
    ) -> Called<Page<AssignmentRevision>> {
        self.read(
            RouteId::ListAssignmentRevisions,
            &[assignment],
            &page.pairs(&[]),
        )
        .await
    }

    /// One revision's content.
    pub async fn assignment_revision(&self, revision: &str) -> Called<AssignmentRevision> {
        self.read(RouteId::ReadAssignmentRevision, &[revision], &[])
            .await
    }

    /// Drafts.
    pub async fn drafts(&self, page: &Paging) -> Called<Page<Draft>> {
        self.read(RouteId::ListDrafts, &[], &page.pairs(&[])).await
    }

    /// One draft, with the ETag its writes take.
    pub async fn draft(&self, draft: &str) -> Called<Draft> {
        self.read(RouteId::ReadDraft, &[draft], &[]).await
    }

    /// Ingestions, filtered.
    pub async fn ingestions(
        &self,
        state: Option<&str>,
        machine: Option<&str>,
        page: &Paging,
    ) -> Called<Page<Ingestion>> {
        self.read(
            RouteId::ListIngestions,
            &[],
            &page.pairs(&[("state", state), ("machine", machine)]),
        )
        .await
    }

    /// One ingestion, as a read treats its claim.
    pub async fn ingestion(&self, ingestion: &str) -> Called<Ingestion> {
        self.read(RouteId::ReadIngestion, &[ingestion], &[]).await
    }

    /// Releases.
    pub async fn releases(&self, page: &Paging) -> Called<Page<Release>> {
        self.read(RouteId::ListReleases, &[], &page.pairs(&[]))
            .await
    }

    /// One release.
    pub async fn release(&self, release: &str) -> Called<Release> {
        self.read(RouteId::ReadRelease, &[release], &[]).await
    }

    /// A release's review data for one machine.
    pub async fn release_review(&self, release: &str, machine: &str) -> Called<ReleaseReview> {
        self.read(RouteId::ReadReleaseReview, &[release, machine], &[])
            .await
    }

    /// Plans, filtered.
    pub async fn plans(
        &self,
        state: Option<&str>,
        machine: Option<&str>,
        page: &Paging,
    ) -> Called<Page<Plan>> {
        self.read(
            RouteId::ListPlans,
            &[],
            &page.pairs(&[("state", state), ("machine", machine)]),
        )
        .await
    }

    /// One plan.
    pub async fn plan(&self, plan: &str) -> Called<Plan> {
        self.read(RouteId::ReadPlan, &[plan], &[]).await
    }

    /// One approval.
    pub async fn approval(&self, approval: &str) -> Called<Approval> {
        self.read(RouteId::ReadApproval, &[approval], &[]).await
    }

    /// Operations, filtered.
    pub async fn operations(
        &self,
        filter: &OperationFilter<'_>,
        page: &Paging,
    ) -> Called<Page<Operation>> {
        let filters = [
            ("plan", filter.plan),
            ("machine", filter.machine),
            ("state", filter.state),
            ("kind", filter.kind),
        ];
        self.read(RouteId::ListOperations, &[], &page.pairs(&filters))
            .await
    }

    /// One operation.
    pub async fn operation(&self, operation: &str) -> Called<Operation> {
        self.read(RouteId::ReadOperation, &[operation], &[]).await
    }

    /// An operation's events.
    pub async fn operation_events(&self, operation: &str, page: &Paging) -> Called<Page<Event>> {
        self.read(RouteId::ListOperationEvents, &[operation], &page.pairs(&[]))
            .await
    }

    /// The act log, in recording order.
    pub async fn acts(&self, page: &Paging) -> Called<Page<Act>> {
        self.read(RouteId::ListActs, &[], &page.pairs(&[])).await
    }

    /// Recovery mode and every scope's state.
    pub async fn recovery(&self) -> Called<Recovery> {
        self.read(RouteId::ReadRecovery, &[], &[]).await
    }

    /// The caller's own identity.
    pub async fn identity(&self) -> Called<Identity> {
        self.read(RouteId::ReadIdentity, &[], &[]).await
    }

    /// The process that answers.
    pub async fn server(&self) -> Called<Server> {
        self.read(RouteId::ReadServer, &[], &[]).await
    }

    /// The OpenAPI document.
    pub async fn openapi(&self) -> Called<Value> {
        self.read(RouteId::ReadOpenApi, &[], &[]).await
    }
}
