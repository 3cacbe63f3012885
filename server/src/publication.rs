//! The publish worker's parts, as a configuration names them.
//!
//! `run` composes the server with it. Never in here: what the worker does.

use std::sync::Arc;

use bronzeward_core::rules::Rules;
use bronzeward_core::time::Span;
use bronzeward_engine::ports::provider::KeyName;
use bronzeward_engine::ports::renderer::Renderer;
use bronzeward_engine::publish::{Settings, Worker};
use bronzeward_engine::world::Db;
use bronzeward_openbao::{Compiler, Metadata};

use crate::config::Config;
use crate::parts::{Bells, Real, SystemTimer};
use crate::run::{ServeError, endpoint, part};

/// The worker, in a process with a provider, ingestion timers and a renderer.
pub fn worker<R: Rules, D: Renderer + 'static>(
    config: &Config,
    db: &Db<Real<R, D>>,
    renderer: Option<&Arc<D>>,
    notifier: &Arc<Bells>,
) -> Result<Option<Worker<Real<R, D>>>, ServeError> {
    let (Some(provider), Some(timers), Some(renderer)) =
        (&config.provider, &config.ingestion, renderer)
    else {
        return Ok(None);
    };
    let address = endpoint(provider)?;
    let artifact_key = KeyName::parse(&provider.keys.artifact)
        .ok_or(part("provider.keys", "is a Transit key's name"))?;
    let compiler = Compiler::new(
        &address,
        &provider.compiler_token_file,
        artifact_key.clone(),
    );
    Ok(Some(Worker {
        db: db.clone(),
        compiler: Arc::new(compiler),
        metadata: Arc::new(Metadata::new(&address, &provider.metadata_token_file)),
        renderer: Arc::clone(renderer),
        observer: crate::execution::observer(provider, db)?,
        notifier: Arc::clone(notifier),
        timer: Arc::new(SystemTimer),
        artifact_key,
        settings: Settings {
            lease: Span::from(timers.lease.0),
            heartbeat: timers.heartbeat.0,
        },
    }))
}
