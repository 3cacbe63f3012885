//! Composition: a configuration becomes a running server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bronzeward_api::bodies::server::PlanDefaults as ServedDefaults;
use bronzeward_core::epoch::ProcessEpoch;
use bronzeward_core::fence::Owner;
use bronzeward_core::id::PrincipalId;
use bronzeward_core::principal::Role;
use bronzeward_core::rules::Rules;
use bronzeward_core::time::Span;
use bronzeward_engine::authenticate::{Access, Denied};
use bronzeward_engine::ports::Entropy;
use bronzeward_engine::ports::provider::KeyName;
use bronzeward_engine::ports::renderer::Renderer;
use bronzeward_engine::ports::store::{PrincipalReads, RequestReads, Snapshot, Store};
use bronzeward_engine::world::{Db, Process};
use bronzeward_http::app::{App, Served, router};
use bronzeward_http::cursor::CursorKey;
use bronzeward_machinery::MachineryRenderer;
use bronzeward_openbao::{Ingestion, IngestionKeys};
use bronzeward_postgres::migrate;
use bronzeward_postgres::session::{Pool, Settings as Sessions};
use bronzeward_postgres::store::PgStore;
use bronzeward_wake::Shutdown;
use tokio::net::TcpListener;

use crate::config::{Config, Database, Provider};
use crate::parts::{Bells, Humans, Real, SystemEntropy};

/// How long starting may take, and how long a stop waits for open requests.
const STARTING: Duration = Duration::from_secs(15);
const STOPPING: Duration = Duration::from_secs(10);

/// Why the server did not start or did not stop well. No value of the configuration or of
/// a peer is in it.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{0}")]
    Config(#[from] crate::config::ConfigError),
    #[error("{0}")]
    Schema(#[from] migrate::MigrateError),
    #[error("{place}: {rule}")]
    Part {
        place: &'static str,
        rule: &'static str,
    },
    #[error("starting took longer than {}s", STARTING.as_secs())]
    Slow,
    #[error("the listener failed")]
    Listener,
    #[error("orphans: {0}")]
    Orphans(bronzeward_engine::orphans::Failed),
    #[error("token: {0}")]
    Token(bronzeward_engine::tokens::Refusal),
}

pub(crate) fn part(place: &'static str, rule: &'static str) -> ServeError {
    ServeError::Part { place, rule }
}

/// The database sessions a configuration names.
pub fn sessions(database: &Database) -> Result<Sessions, ServeError> {
    let mut settings = Sessions::parse(&database.dsn)
        .map_err(|_| part("database.dsn", "is not a PostgreSQL connection string"))?;
    settings.connections = database.connections;
    if let Some(file) = &database.password_file {
        let password =
            std::fs::read(file).map_err(|_| part("database.passwordFile", "cannot be read"))?;
        let end = password
            .iter()
            .rposition(|byte| *byte != b'\n')
            .map_or(0, |at| at + 1);
        settings = settings.with_password(&password[..end]);
    }
    Ok(settings)
}

/// How a server is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starting {
    Normal,
    /// After a restore: nothing is served but liveness and recovery entry until that has
    /// committed, and nothing is carried out until a restart without it (PA §12.2).
    Recovery,
}

/// Runs a server until a shutdown is asked for. `around` is what stands before the renderer:
/// nothing, or a test's gate.
pub async fn serve<R: Rules, D: Renderer + 'static>(
    config: Config,
    rules: R,
    starting: Starting,
    around: impl FnOnce(MachineryRenderer) -> D,
    shutdown: Shutdown,
) -> Result<(), ServeError> {
    let started = start(&config, rules, starting, around, &shutdown);
    let (app, listener) = tokio::time::timeout(STARTING, started)
        .await
        .map_err(|_| ServeError::Slow)??;
    let address = listener.local_addr().map_err(|_| ServeError::Listener)?;
    tracing::info!(event = "serving", %address, "bronzeward serves");
    let asked = shutdown.clone();
    let serving = axum::serve(listener, router(app))
        .with_graceful_shutdown(async move { asked.wait().await });
    let stopped = async {
        shutdown.wait().await;
        tokio::time::sleep(STOPPING).await;
    };
    tokio::select! {
        biased;
        served = async { serving.await } => served.map_err(|_| ServeError::Listener)?,
        () = stopped => tracing::warn!(event = "stopped-late", "requests were still open"),
    }
    tracing::info!(event = "stopped", "bronzeward stopped");
    Ok(())
}

async fn start<R: Rules, D: Renderer + 'static>(
    config: &Config,
    rules: R,
    starting: Starting,
    around: impl FnOnce(MachineryRenderer) -> D,
    shutdown: &Shutdown,
) -> Result<(Arc<App<Real<R, D>>>, TcpListener), ServeError> {
    let pool = Pool::new(sessions(&config.database)?)
        .map_err(|_| part("database", "gives no sessions"))?;
    migrate::check(&pool).await?;
    let store = Arc::new(PgStore::new(pool));
    let entropy = Arc::new(SystemEntropy);
    let (epoch, cursor_key) = read_installation(&store)
        .await
        .map_err(|_| part("database", "could not be read"))?;
    let process = Process {
        owner: owner(config, entropy.bits())?,
        epoch: ProcessEpoch(epoch),
    };
    let db: Db<Real<R, D>> = Db::new(store, Arc::clone(&entropy), rules, process);
    let db = match starting {
        Starting::Normal => db,
        Starting::Recovery => db.for_recovery(),
    };
    let ingestion = config.provider.as_ref().map(ingestion).transpose()?;
    let ingestion = ingestion.map(Arc::new);
    let renderer = crate::ingestion::renderer(config).await?;
    let renderer = renderer.map(|started| Arc::new(around(started)));
    let ingester = crate::ingestion::ingester(config, &db, ingestion.as_ref(), renderer.as_ref())?;
    if let (Some(ingester), Some(named)) = (ingester.clone(), &config.ingestion) {
        let every = named.sweep.0;
        tokio::spawn(async move { ingester.sweeps(every).await });
    }
    let notifier = Arc::new(Bells::default());
    let worker = crate::publication::worker(config, &db, renderer.as_ref(), &notifier)?;
    // A recovery start runs no job worker; its controller only observes.
    if let Some(worker) = worker.filter(|_| starting == Starting::Normal) {
        let stop = shutdown.clone();
        tokio::spawn(async move { worker.run(stop.wait()).await });
    }
    let controller = crate::execution::controller(config, &db, &notifier)?;
    let executes = controller.is_some();
    if let Some(controller) = controller {
        let stop = shutdown.clone();
        let controller = Arc::new(controller);
        tokio::spawn(async move { controller.run(stop.wait()).await });
    }
    let app = App {
        db,
        entropy,
        humans: Arc::new(Humans(identity_provider(config, rules)?)),
        access: access(config)?,
        ingestion,
        ingester,
        renderer,
        notifier,
        cursor_key: CursorKey::new(cursor_key),
        controller_lease: config
            .execution
            .as_ref()
            .filter(|_| executes)
            .map(|part| Span::from(part.lease.0)),
        served: served(config, executes),
    };
    let listener = TcpListener::bind(config.listen)
        .await
        .map_err(|_| part("listen", "cannot be bound"))?;
    Ok((Arc::new(app), listener))
}

async fn read_installation(
    store: &PgStore,
) -> Result<(bronzeward_core::id::EpochId, [u8; 32]), bronzeward_engine::ports::store::StoreError> {
    let mut snapshot = store.snapshot().await?;
    let installation = snapshot.installation().await?;
    let key = snapshot.cursor_key().await?;
    snapshot.close().await;
    Ok((installation.epoch, key))
}

/// `<instance>/<pid>/<start token>`: a restart is another owner (EaR 3.4).
fn owner(config: &Config, token: u128) -> Result<Owner, ServeError> {
    let instance = config
        .execution
        .as_ref()
        .map(|execution| execution.instance.as_str())
        .or(config
            .ingestion
            .as_ref()
            .map(|ingestion| ingestion.instance.as_str()))
        .unwrap_or("bronzeward");
    Owner::new(instance, std::process::id(), token)
        .map_err(|_| part("execution.instance", "is no part of an owner string"))
}

fn identity_provider<R: Rules>(
    config: &Config,
    rules: R,
) -> Result<bronzeward_oidc::Provider<R>, ServeError> {
    let oidc = &config.auth.oidc;
    let settings = bronzeward_oidc::Settings {
        issuer: oidc.issuer.clone(),
        audience: oidc.audience.clone(),
        groups_claim: oidc.groups_claim.clone(),
        display_claim: oidc.display_claim.clone(),
        max_token_lifetime: Span::seconds(seconds(oidc.max_token_lifetime.0)),
        plain_http_hosts: oidc.plain_http_hosts.iter().cloned().collect(),
    };
    bronzeward_oidc::Provider::with_rules(settings, rules)
        .map_err(|_| part("auth.oidc.issuer", "may not be reached"))
}

pub(crate) fn access(config: &Config) -> Result<Access, ServeError> {
    let groups = &config.auth.roles;
    let roles = [
        (Role::Viewer, &groups.viewer),
        (Role::Author, &groups.author),
        (Role::Publisher, &groups.publisher),
        (Role::Approver, &groups.approver),
        (Role::RecoveryAdmin, &groups.recovery_admin),
    ];
    let denied = config.auth.denied_subjects.iter().map(|entry| {
        Ok(match (&entry.iss, &entry.sub) {
            (Some(issuer), Some(subject)) => Denied::Human {
                issuer: issuer.clone(),
                subject: subject.clone(),
            },
            _ => Denied::Service {
                identity: match &entry.identity {
                    Some(text) => Some(PrincipalId::parse(text).map_err(|_| {
                        part("auth.deniedSubjects", "an identity is an idn identifier")
                    })?),
                    None => None,
                },
                name: entry.name.clone(),
            },
        })
    });
    Ok(Access {
        denied: denied.collect::<Result<_, ServeError>>()?,
        roles: roles
            .into_iter()
            .map(|(role, groups)| (role, groups.iter().cloned().collect::<BTreeSet<_>>()))
            .collect(),
    })
}

/// The provider's endpoint, as every identity reaches it.
pub fn endpoint(provider: &Provider) -> Result<bronzeward_openbao::Endpoint, ServeError> {
    let mut settings = bronzeward_openbao::Settings::new(&provider.address);
    settings.plain_http_hosts = provider.plain_http_hosts.clone();
    if let Some(file) = &provider.ca_file {
        let authority =
            std::fs::read(file).map_err(|_| part("provider.caFile", "cannot be read"))?;
        settings.ca = Some(authority);
    }
    bronzeward_openbao::Endpoint::new(&settings)
        .map_err(|_| part("provider.address", "may not be reached or is malformed"))
}

fn key(name: &str) -> Result<KeyName, ServeError> {
    KeyName::parse(name).ok_or(part("provider.keys", "is a Transit key's name"))
}

fn ingestion(provider: &Provider) -> Result<Ingestion, ServeError> {
    let keys = IngestionKeys {
        baseline: key(&provider.keys.baseline)?,
        staging: key(&provider.keys.staging)?,
        digest: key(&provider.keys.digest)?,
    };
    Ok(Ingestion::new(
        &endpoint(provider)?,
        &provider.ingestion_token_file,
        keys,
    ))
}

fn seconds(length: Duration) -> i64 {
    i64::try_from(length.as_secs()).unwrap_or(i64::MAX)
}

fn served(config: &Config, executes: bool) -> Served {
    let execution = config.execution.clone();
    let defaults = execution
        .as_ref()
        .map(|execution| execution.plan_defaults.clone())
        .unwrap_or_default();
    Served {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        max_token_lifetime_seconds: config.auth.oidc.max_token_lifetime.0.as_secs(),
        settle_floor_seconds: execution
            .as_ref()
            .map_or(crate::config::LEAST_SETTLE_FLOOR, |part| {
                part.settle_floor.0
            })
            .as_secs(),
        max_transport_deadline_seconds: execution
            .as_ref()
            .map_or(0, |part| part.max_transport_deadline.0.as_secs()),
        ingestion_claim: config
            .ingestion
            .as_ref()
            .map(|part| (part.lease.0.as_secs(), part.absolute_expiry.0.as_secs())),
        plan_defaults: ServedDefaults {
            expires_in_seconds: defaults.expires_in.0.as_secs(),
            max_observation_age_seconds: defaults.max_observation_age.0.as_secs(),
            check_validity_seconds: defaults.check_validity.0.as_secs(),
            transport_deadline_seconds: defaults.transport_deadline.0.as_secs(),
            verification_deadline_seconds: defaults.verification_deadline.0.as_secs(),
            max_attempts: u64::from(defaults.max_attempts),
        },
        execution: executes,
    }
}
