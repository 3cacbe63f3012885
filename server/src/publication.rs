//! The publish worker's parts, as a configuration names them.
//!
//! `run` composes the server with it. Never in here: what the worker does.

use std::sync::Arc;
use std::time::Duration;

use bronzeward_core::rules::Rules;
use bronzeward_core::time::Span;
use bronzeward_engine::observe::Observer;
use bronzeward_engine::ports::node::ReadLimits;
use bronzeward_engine::ports::provider::KeyName;
use bronzeward_engine::publish::{Settings, Worker};
use bronzeward_engine::world::Db;
use bronzeward_machinery::MachineryRenderer;
use bronzeward_openbao::{Compiler, Executor, Metadata};
use bronzeward_talos::ReadOnlyTalos;

use crate::config::Config;
use crate::parts::{Bells, Real, SystemTimer};
use crate::run::{ServeError, endpoint, part};

/// How long a node may take to accept a connection, and to answer a call.
const LIMITS: ReadLimits = ReadLimits {
    connect: Duration::from_secs(5),
    call: Duration::from_secs(10),
};

/// The worker, in a process with a provider, ingestion timers and a renderer.
pub fn worker<R: Rules>(
    config: &Config,
    db: &Db<Real<R>>,
    renderer: Option<&Arc<MachineryRenderer>>,
    notifier: &Arc<Bells>,
) -> Result<Option<Worker<Real<R>>>, ServeError> {
    let (Some(provider), Some(timers), Some(renderer)) =
        (&config.provider, &config.ingestion, renderer)
    else {
        return Ok(None);
    };
    let address = endpoint(provider)?;
    let artifact_key = KeyName::parse(&provider.keys.artifact)
        .ok_or(part("provider.keys", "is a Transit key's name"))?;
    let executor = Executor::new(
        &address,
        &provider.executor_token_file,
        artifact_key.clone(),
    );
    let compiler = Compiler::new(
        &address,
        &provider.compiler_token_file,
        artifact_key.clone(),
    );
    let lease = i64::try_from(timers.lease.0.as_millis()).unwrap_or(i64::MAX);
    Ok(Some(Worker {
        db: db.clone(),
        compiler: Arc::new(compiler),
        metadata: Arc::new(Metadata::new(&address, &provider.metadata_token_file)),
        renderer: Arc::clone(renderer),
        observer: Observer::new(
            db.clone(),
            Arc::new(executor),
            Arc::new(ReadOnlyTalos),
            LIMITS,
        ),
        notifier: Arc::clone(notifier),
        timer: Arc::new(SystemTimer),
        artifact_key,
        settings: Settings {
            lease: Span::millis(lease),
            heartbeat: timers.heartbeat.0,
        },
    }))
}
