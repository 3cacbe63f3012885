//! The controller's parts, as a configuration names them.
//!
//! `run` composes the server with it. Never in here: what the controller does.

use std::sync::Arc;
use std::time::Duration;

use bronzeward_core::rules::Rules;
use bronzeward_engine::dispatch::{Controller, Settings};
use bronzeward_engine::observe::Observer;
use bronzeward_engine::ports::node::ReadLimits;
use bronzeward_engine::ports::provider::KeyName;
use bronzeward_engine::ports::renderer::Renderer;
use bronzeward_engine::world::Db;
use bronzeward_openbao::Executor;
use bronzeward_talos::ReadOnlyTalos;

use crate::config::{Config, Provider};
use crate::parts::{Bells, Real};
use crate::run::{ServeError, endpoint, part};

/// How long a node may take to accept a connection, and to answer a call.
const LIMITS: ReadLimits = ReadLimits {
    connect: Duration::from_secs(5),
    call: Duration::from_secs(10),
};

/// How often approved plans are looked for where no wake-up says so.
const INTERVAL: Duration = Duration::from_secs(5);

/// The reader of nodes, with the executor's read of their access.
pub fn observer<R: Rules, D: Renderer + 'static>(
    provider: &Provider,
    db: &Db<Real<R, D>>,
) -> Result<Observer<Real<R, D>>, ServeError> {
    let artifact_key = KeyName::parse(&provider.keys.artifact)
        .ok_or(part("provider.keys", "is a Transit key's name"))?;
    let executor = Executor::new(
        &endpoint(provider)?,
        &provider.executor_token_file,
        artifact_key,
    );
    let (executor, reader) = (Arc::new(executor), Arc::new(ReadOnlyTalos));
    Ok(Observer::new(db.clone(), executor, reader, LIMITS))
}

/// The controller, in a process with a provider that executes.
pub fn controller<R: Rules, D: Renderer + 'static>(
    config: &Config,
    db: &Db<Real<R, D>>,
    notifier: &Arc<Bells>,
) -> Result<Option<Controller<Real<R, D>>>, ServeError> {
    let (Some(provider), Some(execution)) = (&config.provider, &config.execution) else {
        return Ok(None);
    };
    Ok(Some(Controller {
        db: db.clone(),
        observer: observer(provider, db)?,
        notifier: Arc::clone(notifier),
        settings: Settings {
            interval: INTERVAL,
            longest_pause: execution.drift_interval.0.max(INTERVAL),
        },
    }))
}
