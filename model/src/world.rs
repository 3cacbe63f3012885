//! The world that the simulator gives the engine's workflows.
//!
//! Never in this module: a port's behaviour.

use std::sync::Arc;

use bronzeward_engine::world::World;
use bronzeward_without::Without;

use crate::pg::session::SimStore;
use crate::ports::node::{SimReader, SimWriter};
use crate::ports::provider::{SimCompiler, SimExecutor, SimIngestion, SimMetadata, SimOrphans};
use crate::ports::renderer::SimRenderer;
use crate::ports::runtime::{SimAlerts, SimBells, SimEntropy, SimHumans, SimTasks, SimTimer};
use crate::sched::ProcessId;
use crate::sim::Sim;

/// The simulated world's type per port.
pub struct Model;

impl World for Model {
    type Rules = Without;
    type Store = SimStore;
    type Entropy = SimEntropy;
    type Timer = SimTimer;
    type Tasks = SimTasks;
    type Notifier = SimBells;
    type Alerts = SimAlerts;
    type Humans = SimHumans;
    type Ingestion = SimIngestion;
    type Compiler = SimCompiler;
    type Executor = SimExecutor;
    type Metadata = SimMetadata;
    type Reader = SimReader;
    type Writer = SimWriter;
    type Renderer = SimRenderer;
}

/// The ports of one process.
pub struct Ports {
    pub store: Arc<SimStore>,
    pub entropy: Arc<SimEntropy>,
    pub timer: Arc<SimTimer>,
    pub tasks: Arc<SimTasks>,
    pub notifier: Arc<SimBells>,
    pub alerts: Arc<SimAlerts>,
    pub humans: Arc<SimHumans>,
    pub ingestion: Arc<SimIngestion>,
    pub compiler: Arc<SimCompiler>,
    pub executor: Arc<SimExecutor>,
    pub metadata: Arc<SimMetadata>,
    pub orphans: Arc<SimOrphans>,
    pub reader: Arc<SimReader>,
    pub writer: Arc<SimWriter>,
    pub renderer: Arc<SimRenderer>,
}

impl Ports {
    pub fn of(sim: &Arc<Sim>, process: ProcessId) -> Self {
        Self {
            store: Arc::new(SimStore::new(sim, process)),
            entropy: Arc::new(SimEntropy::new(sim, process)),
            timer: Arc::new(SimTimer::new(sim, process)),
            tasks: Arc::new(SimTasks::new(sim, process)),
            notifier: Arc::new(SimBells::new(sim, process)),
            alerts: Arc::new(SimAlerts::new(sim, process)),
            humans: Arc::new(SimHumans::new(sim, process)),
            ingestion: Arc::new(SimIngestion::new(sim, process)),
            compiler: Arc::new(SimCompiler::new(sim, process)),
            executor: Arc::new(SimExecutor::new(sim, process)),
            metadata: Arc::new(SimMetadata::new(sim, process)),
            orphans: Arc::new(SimOrphans::new(sim, process)),
            reader: Arc::new(SimReader::new(sim, process)),
            writer: Arc::new(SimWriter::new(sim, process)),
            renderer: Arc::new(SimRenderer::new(sim, process)),
        }
    }
}
