//! The ingestion workflow's parts, as a configuration names them.
//!
//! `run` composes the server with it. Never in here: what the workflow does.

use std::sync::Arc;
use std::time::Duration;

use bronzeward_core::claim::Timers;
use bronzeward_core::rules::Rules;
use bronzeward_core::time::Span;
use bronzeward_engine::ingest::{Ingester, Settings};
use bronzeward_engine::ports::node::ReadLimits;
use bronzeward_engine::ports::renderer::Renderer;
use bronzeward_engine::world::Db;
use bronzeward_machinery::{Confinement, MachineryRenderer, Settings as Workers};
use bronzeward_openbao::Ingestion;
use bronzeward_talos::ReadOnlyTalos;

use crate::config::{self, Config};
use crate::parts::{Real, SystemTasks, SystemTimer};
use crate::run::{ServeError, part};

/// How long a node may take to accept a connection, and to answer a call.
const LIMITS: ReadLimits = ReadLimits {
    connect: Duration::from_secs(5),
    call: Duration::from_secs(10),
};

/// The renderer's workers, where a configuration names them.
pub async fn renderer(config: &Config) -> Result<Option<MachineryRenderer>, ServeError> {
    let Some(named) = &config.renderer else {
        return Ok(None);
    };
    let mut workers = Workers::new(&named.worker);
    workers.count = named.workers;
    workers.deadline = named.deadline.0;
    workers.memory = named.memory.0;
    workers.confinement = match named.confinement {
        config::Confinement::Required => Confinement::Required,
        config::Confinement::BestEffort => Confinement::BestEffort,
    };
    let started = MachineryRenderer::start(workers).await.map_err(|error| {
        tracing::error!(event = "renderer-not-started", %error, "the renderer did not start");
        part("renderer", "did not start; the log says why")
    })?;
    Ok(Some(started))
}

/// The workflow, in a process with a provider and a renderer.
pub fn ingester<R: Rules, D: Renderer + 'static>(
    config: &Config,
    db: &Db<Real<R, D>>,
    ingestion: Option<&Arc<Ingestion>>,
    renderer: Option<&Arc<D>>,
) -> Result<Option<Ingester<Real<R, D>>>, ServeError> {
    let (Some(named), Some(ingestion), Some(renderer)) = (&config.ingestion, ingestion, renderer)
    else {
        return Ok(None);
    };
    let timers = Timers::ordered(
        Span::from(named.heartbeat.0),
        Span::from(named.lease.0),
        Span::from(named.absolute_expiry.0),
    );
    Ok(Some(Ingester {
        db: db.clone(),
        ingestion: Arc::clone(ingestion),
        reader: Arc::new(ReadOnlyTalos),
        renderer: Arc::clone(renderer),
        timer: Arc::new(SystemTimer),
        tasks: Arc::new(SystemTasks),
        settings: Settings {
            timers: timers.ok_or(part(
                "ingestion",
                "heartbeat, lease and absoluteExpiry are in this order",
            ))?,
            limits: LIMITS,
        },
    }))
}
