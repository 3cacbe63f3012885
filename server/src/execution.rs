//! The controller's parts, as a configuration names them.
//!
//! `run` composes the server with it. Never in here: what the controller does.

use std::sync::Arc;
use std::time::Duration;

use bronzeward_core::rules::Rules;
use bronzeward_core::time::Span;
use bronzeward_engine::dispatch::{Controller, Parts, Settings};
use bronzeward_engine::observe::Observer;
use bronzeward_engine::ports::node::ReadLimits;
use bronzeward_engine::ports::provider::KeyName;
use bronzeward_engine::ports::renderer::Renderer;
use bronzeward_engine::world::Db;
use bronzeward_openbao::{Executor, Metadata};
use bronzeward_talos::{MutatingTalos, ReadOnlyTalos};

use crate::config::{Config, Provider};
use crate::parts::{Bells, LoggedAlerts, Real, SystemTasks, SystemTimer};
use crate::run::{ServeError, endpoint, part};

/// How long a node may take to accept a connection, and to answer a call.
const LIMITS: ReadLimits = ReadLimits {
    connect: Duration::from_secs(5),
    call: Duration::from_secs(10),
};

/// How often approved plans are looked for where no wake-up says so.
const INTERVAL: Duration = Duration::from_secs(5);

/// How long an accepted configuration is left to settle between two looks at its node.
const SETTLING: Duration = Duration::from_secs(1);

fn executor(provider: &Provider) -> Result<Arc<Executor>, ServeError> {
    let artifact_key = KeyName::parse(&provider.keys.artifact)
        .ok_or(part("provider.keys", "is a Transit key's name"))?;
    let token_file = &provider.executor_token_file;
    let executor = Executor::new(&endpoint(provider)?, token_file, artifact_key);
    Ok(Arc::new(executor))
}

/// The reader of nodes, with the executor's read of their access.
pub fn observer<R: Rules, D: Renderer + 'static>(
    provider: &Provider,
    db: &Db<Real<R, D>>,
) -> Result<Observer<Real<R, D>>, ServeError> {
    Ok(observing(executor(provider)?, db))
}

fn observing<R: Rules, D: Renderer + 'static>(
    executor: Arc<Executor>,
    db: &Db<Real<R, D>>,
) -> Observer<Real<R, D>> {
    Observer::new(db.clone(), executor, Arc::new(ReadOnlyTalos), LIMITS)
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
    let metadata = Metadata::new(&endpoint(provider)?, &provider.metadata_token_file);
    // One client of the provider serves the readings and the artifacts.
    let executor = executor(provider)?;
    let parts = Parts {
        db: db.clone(),
        observer: observing(Arc::clone(&executor), db),
        executor,
        metadata: Arc::new(metadata),
        writer: Arc::new(MutatingTalos::new()),
        timer: Arc::new(SystemTimer),
        tasks: Arc::new(SystemTasks),
        notifier: Arc::clone(notifier),
        alerts: Arc::new(LoggedAlerts),
    };
    // A pass extends what this process only keeps, and looks where a reading is due.
    let lease = execution.lease.0;
    let interval = INTERVAL.min(execution.recovery_interval.0).min(lease / 3);
    let settings = Settings {
        interval,
        longest_pause: execution.drift_interval.0.max(INTERVAL),
        lease: Span::from(lease),
        recovery_interval: execution.recovery_interval.0,
        drift_interval: execution.drift_interval.0,
        settling: SETTLING,
    };
    Ok(Some(Controller::new(parts, settings)))
}
