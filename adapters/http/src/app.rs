//! The application: what every handler may use, and the router over the route table.
//!
//! The composition root builds an [`App`] and serves [`router`]. Each route of the table
//! runs the same steps in one order (api-choices "order of refusals"): credential, role,
//! recovery start, headers and body, then its handler. Never in this module: what a
//! particular route does.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use bronzeward_api::routes::{self, RouteId, Verb};
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::time::Span;
use bronzeward_engine::authenticate::{Access, Authenticated, Authenticator, NotAuthenticated};
use bronzeward_engine::ingest::Ingester;
use bronzeward_engine::ports::Entropy;
use bronzeward_engine::world::{Db, World};
use http::{HeaderMap, StatusCode};

use crate::answer::{self, EpochReads, RequestIds};
use crate::authorise;
use crate::call::Call;
use crate::cursor::CursorKey;
use crate::handlers;
use crate::problem::{Challenge, Refused};

/// What of the configuration `GET /server` serves (PA §9.2).
#[derive(Clone, Debug)]
pub struct Served {
    pub version: String,
    pub max_token_lifetime_seconds: u64,
    pub settle_floor_seconds: u64,
    pub max_transport_deadline_seconds: u64,
    /// Lease and absolute expiry, with the ingestion block.
    pub ingestion_claim: Option<(u64, u64)>,
    pub plan_defaults: bronzeward_api::bodies::server::PlanDefaults,
    /// Whether this process has an executor.
    pub execution: bool,
}

/// Everything handlers share.
pub struct App<W: World> {
    pub db: Db<W>,
    pub entropy: Arc<W::Entropy>,
    pub humans: Arc<W::Humans>,
    pub access: Access,
    /// None in a process without a provider.
    pub ingestion: Option<Arc<W::Ingestion>>,
    /// The workflow behind ingestions and fragments; none in a process without a provider.
    pub ingester: Option<Ingester<W>>,
    /// What a plan's diff is read with; none in a process without a renderer.
    pub renderer: Option<Arc<W::Renderer>>,
    pub notifier: Arc<W::Notifier>,
    pub cursor_key: CursorKey,
    /// The lease an operation is taken over with; none in a process without a controller.
    pub controller_lease: Option<Span>,
    pub served: Served,
}

impl<W: World> App<W> {
    pub fn authenticator(&self) -> Authenticator<'_, W> {
        Authenticator {
            db: &self.db,
            humans: &self.humans,
            access: &self.access,
        }
    }

    /// The bearer credential's principal. What it read of the installation is reported, so
    /// that a refusal after it carries the epoch (PA §9.1).
    async fn authenticate(
        &self,
        headers: &HeaderMap,
        reads: &EpochReads,
    ) -> Result<Authenticated, Refused> {
        let Some(header) = headers.get(http::header::AUTHORIZATION) else {
            return Err(Refused::unauthenticated(Challenge::None));
        };
        let credential = header
            .to_str()
            .ok()
            .and_then(|text| text.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, credential)| credential.trim())
            .filter(|credential| !credential.is_empty())
            .ok_or_else(|| Refused::unauthenticated(Challenge::InvalidToken))?;
        match self.authenticator().authenticate(credential).await {
            Ok(who) => {
                reads.report(who.read);
                Ok(who)
            }
            Err(NotAuthenticated::Refused) => {
                Err(Refused::unauthenticated(Challenge::InvalidToken))
            }
            Err(NotAuthenticated::Revoked) => Err(Problem::new(ProblemCode::IdentityRevoked)
                .say("The identity is revoked.")
                .into()),
            Err(NotAuthenticated::Unavailable(problem)) => Err(problem.into()),
        }
    }
}

fn filter(verb: Verb) -> MethodFilter {
    match verb {
        Verb::Get => MethodFilter::GET,
        Verb::Post => MethodFilter::POST,
        Verb::Put => MethodFilter::PUT,
        Verb::Delete => MethodFilter::DELETE,
    }
}

/// The router over the whole table. An unknown route or method authenticates first.
pub fn router<W: World>(app: Arc<App<W>>) -> Router {
    let mut router = Router::new();
    for route in routes::all() {
        let method = if route.id == RouteId::Liveness {
            on(filter(route.method), async || StatusCode::NO_CONTENT)
        } else {
            let app = Arc::clone(&app);
            on(
                filter(route.method),
                move |params: RawPathParams, request: Request| {
                    let params = params
                        .iter()
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .collect();
                    serve(Arc::clone(&app), route, params, request)
                },
            )
        };
        router = router.route(route.path, method);
    }
    let entropy = Arc::clone(&app.entropy);
    let unknown = move |request: Request| {
        let app = Arc::clone(&app);
        unknown(app, request)
    };
    router
        .fallback(unknown.clone())
        .method_not_allowed_fallback(unknown)
        .layer(axum::middleware::from_fn_with_state(
            RequestIds::new(move || entropy.bits()),
            answer::finish,
        ))
}

/// The request's reads, which the outermost layer put there.
fn reads_of(extensions: &http::Extensions) -> EpochReads {
    extensions.get::<EpochReads>().cloned().unwrap_or_default()
}

async fn unknown<W: World>(app: Arc<App<W>>, request: Request) -> Response {
    // A body is not Sync, so a reference to a request may not be held over an await.
    let (parts, _body) = request.into_parts();
    let reads = reads_of(&parts.extensions);
    match app.authenticate(&parts.headers, &reads).await {
        Ok(_) => Refused::from(Problem::not_found("There is no such route.")).into_response(),
        Err(refused) => refused.into_response(),
    }
}

async fn serve<W: World>(
    app: Arc<App<W>>,
    route: &'static routes::Route,
    params: BTreeMap<String, String>,
    request: Request,
) -> Response {
    let reads = reads_of(request.extensions());
    match answered(&app, route, params, request).await {
        Ok(response) => response,
        Err(NotServed::Before(refused)) => refused.into_response(),
        Err(NotServed::Handler(refused)) => {
            if let Some(read) = refused.read {
                reads.report(read);
            }
            Refused::from(refused.problem).into_response()
        }
    }
}

enum NotServed {
    Before(Refused),
    Handler(bronzeward_engine::request::Refused),
}

impl From<Refused> for NotServed {
    fn from(refused: Refused) -> Self {
        Self::Before(refused)
    }
}

impl From<Problem> for NotServed {
    fn from(problem: Problem) -> Self {
        Self::Before(problem.into())
    }
}

async fn answered<W: World>(
    app: &App<W>,
    route: &'static routes::Route,
    params: BTreeMap<String, String>,
    request: Request,
) -> Result<Response, NotServed> {
    let (parts, body) = request.into_parts();
    let reads = reads_of(&parts.extensions);
    let who = app.authenticate(&parts.headers, &reads).await?;
    let rules = app.db.rules();
    let role = authorise::authorise(&rules, route, who.kind, &who.roles)?;
    authorise::serves(&rules, route, app.db.start_mode())?;
    authorise::implemented(route)?;
    let call = Call::new(app, route, params, who, role, parts, body)?;
    handlers::dispatch(call).await.map_err(NotServed::Handler)
}
