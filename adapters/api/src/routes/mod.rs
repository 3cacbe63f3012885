//! The route table as data (PA §9.2): what exists, who may call it, what it takes
//! and gives.
//!
//! `http` checks authorisation and headers from it, `openapi` prints it, `client`
//! reads its paths; nothing else says which role a route needs. Never here: a
//! handler, or a decision about roles held (core's `authority`).

mod reads;
mod writes;

use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::bodies::common::Role;

/// Every route, by what it does. The name in lower camel case is the operation
/// identifier of the OpenAPI document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteId {
    Liveness,
    ReadOpenApi,
    ListClusters,
    ReadCluster,
    ListMachines,
    ReadMachine,
    ListObservations,
    ReadTimeline,
    ListFragments,
    ReadFragment,
    ListFragmentRevisions,
    ReadFragmentRevision,
    ListProfiles,
    ReadProfile,
    ListProfileRevisions,
    ReadProfileRevision,
    ListAssignments,
    ReadAssignment,
    ListAssignmentRevisions,
    ReadAssignmentRevision,
    ListDrafts,
    ReadDraft,
    ListIngestions,
    ReadIngestion,
    ReadIngestionReview,
    ListReleases,
    ReadRelease,
    ReadReleaseReview,
    ListPlans,
    ReadPlan,
    ReadApproval,
    ListOperations,
    ReadOperation,
    ListOperationEvents,
    ListActs,
    ReadRecovery,
    ListDependencies,
    ReadDependency,
    ListDependencyReleases,
    ListAlertsOfDependency,
    ListDependencyAlerts,
    ReadIdentity,
    ReadPrincipals,
    ReadServer,
    CreateCluster,
    CreateMachine,
    ReplaceTalosEndpoint,
    FreezeMachine,
    UnfreezeMachine,
    CreateDraft,
    PutDraftFragment,
    RemoveDraftFragment,
    PutDraftProfile,
    RemoveDraftProfile,
    PutDraftAssignment,
    RemoveDraftAssignment,
    DiscardDraft,
    PublishDraft,
    StartIngestion,
    MarkIngestion,
    ContinueIngestion,
    TakeOverIngestion,
    AbandonIngestion,
    CreatePlan,
    CancelPlan,
    ApprovePlan,
    RevokeApproval,
    TakeOverOperation,
    AccountAttempt,
    ResolveOperation,
    RevokeIdentity,
    EnterRecovery,
    ExitRecovery,
    AccountScopes,
    MarkScope,
    ReleaseScope,
}

impl RouteId {
    /// The OpenAPI operation identifier.
    pub fn operation_id(self) -> String {
        let name = format!("{self:?}");
        let (first, rest) = name.split_at(1);
        format!("{}{rest}", first.to_ascii_lowercase())
    }

    /// This route's row. Every identifier has one (a test counts).
    pub fn route(self) -> Option<&'static Route> {
        all().find(|route| route.id == self)
    }
}

/// Who may call a route. The order of roles is the order in which the first that
/// qualifies names the act (PA choice §17.20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Liveness alone.
    Anonymous,
    /// Any authenticated credential, one with no role included.
    Credential,
    /// Any authenticated principal that holds a role.
    AnyRole,
    Roles(&'static [Role]),
}

impl Access {
    /// The roles that qualify, in order; empty where none is asked for.
    pub fn roles(self) -> &'static [Role] {
        match self {
            Access::Anonymous | Access::Credential => &[],
            Access::AnyRole => &Role::ALL,
            Access::Roles(roles) => roles,
        }
    }
}

/// What a process started with the recovery-start flag serves (PA §12.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Always, also before the entry.
    Any,
    /// Under the flag alone, and before the entry.
    RecoveryStart,
    /// Under the flag once the entry has committed; always without the flag.
    AfterEntry,
    /// Without the flag alone.
    Normal,
}

impl Start {
    pub const fn as_str(self) -> &'static str {
        match self {
            Start::Any => "any",
            Start::RecoveryStart => "recovery-start",
            Start::AfterEntry => "after-entry",
            Start::Normal => "normal",
        }
    }
}

/// A body's type, as the schema generator sees it.
#[derive(Clone, Copy)]
pub struct Body {
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    pub name: fn() -> std::borrow::Cow<'static, str>,
}

impl Body {
    pub const fn of<T: JsonSchema>() -> Self {
        Self {
            schema: |generator| generator.subschema_for::<T>(),
            name: T::schema_name,
        }
    }
}

/// The answer of success.
#[derive(Clone, Copy)]
pub struct Success {
    pub status: StatusCode,
    /// None: an answer without a described body (liveness, the document itself).
    pub body: Option<Body>,
    pub etag: bool,
    pub location: bool,
}

/// A query parameter a route lists; any other is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A filter by identifier of one of these prefixes; empty does not filter.
    Identifier(&'static str, &'static [&'static str]),
    /// A filter by one of these values; empty does not filter.
    OneOf(&'static str, &'static [&'static str]),
    /// One of these values; empty is refused.
    Choice(&'static str, &'static [&'static str]),
    /// 1 to 100 identifiers, the one parameter that repeats.
    Identifiers(&'static str, &'static [&'static str]),
}

impl Parameter {
    pub const fn name(self) -> &'static str {
        match self {
            Parameter::Identifier(name, _)
            | Parameter::OneOf(name, _)
            | Parameter::Choice(name, _)
            | Parameter::Identifiers(name, _) => name,
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy)]
pub struct Route {
    pub id: RouteId,
    pub method: Verb,
    /// The whole path, parameters in braces.
    pub path: &'static str,
    pub access: Access,
    pub human_only: bool,
    pub if_match: bool,
    /// The fingerprint is keyed: the body can carry unextracted input (PA §7.1).
    pub keyed_fingerprint: bool,
    pub request: Option<Body>,
    pub success: Success,
    pub paginated: bool,
    pub parameters: &'static [Parameter],
    pub start: Start,
    /// False: answers 501 `not-implemented` after authentication and role check.
    pub implemented: bool,
}

/// The methods routes have. `http::Method` is not `Copy`, which a table row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    pub fn http(self) -> Method {
        match self {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
            Verb::Put => Method::PUT,
            Verb::Delete => Method::DELETE,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Put => "PUT",
            Verb::Delete => "DELETE",
        }
    }
}

impl Route {
    /// Whether it writes: every such request carries an Idempotency-Key.
    pub fn mutates(&self) -> bool {
        self.method != Verb::Get
    }

    /// The names in braces, in order.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

/// Every route of the table.
pub fn all() -> impl Iterator<Item = &'static Route> {
    reads::ROUTES.iter().chain(writes::ROUTES)
}

const fn route(id: RouteId, method: Verb, path: &'static str, success: Success) -> Route {
    Route {
        id,
        method,
        path,
        access: Access::AnyRole,
        human_only: false,
        if_match: false,
        keyed_fingerprint: false,
        request: None,
        success,
        paginated: false,
        parameters: &[],
        start: Start::AfterEntry,
        implemented: true,
    }
}

const fn gives(status: StatusCode, body: Body) -> Success {
    Success {
        status,
        body: Some(body),
        etag: false,
        location: false,
    }
}

/// The words the two files write the table in.
impl Route {
    const fn by(mut self, roles: &'static [Role]) -> Self {
        self.access = Access::Roles(roles);
        self
    }

    const fn by_human(mut self, roles: &'static [Role]) -> Self {
        self.human_only = true;
        self.by(roles)
    }

    const fn open_to(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    const fn takes(mut self, body: Body) -> Self {
        self.request = Some(body);
        self
    }

    const fn if_match(mut self) -> Self {
        self.if_match = true;
        self
    }

    const fn keyed(mut self) -> Self {
        self.keyed_fingerprint = true;
        self
    }

    const fn status(mut self, status: StatusCode) -> Self {
        self.success.status = status;
        self
    }

    const fn etag(mut self) -> Self {
        self.success.etag = true;
        self
    }

    const fn located(mut self) -> Self {
        self.success.location = true;
        self
    }

    const fn paged(mut self, parameters: &'static [Parameter]) -> Self {
        self.paginated = true;
        self.parameters = parameters;
        self
    }

    const fn query(mut self, parameters: &'static [Parameter]) -> Self {
        self.parameters = parameters;
        self
    }

    const fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    const fn later(mut self) -> Self {
        self.implemented = false;
        self
    }
}
