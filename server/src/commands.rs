//! The subcommands of the binary.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use bronzeward_core::id::EpochId;
use bronzeward_core::rules::Rules;
use bronzeward_engine::ports::Entropy;
use bronzeward_engine::ports::renderer::Renderer;
use bronzeward_engine::ports::store::{RequestReads, Snapshot, Store};
use bronzeward_machinery::MachineryRenderer;
use bronzeward_postgres::migrate::{Founding, MIGRATIONS, Migrator};
use bronzeward_postgres::session::Pool;
use bronzeward_postgres::store::PgStore;
use bronzeward_wake::Shutdown;
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::fmt::format::FmtSpan;

use crate::config::Config;
use crate::orphans;
use crate::parts::SystemEntropy;
use crate::run::{self, ServeError, Starting};
use crate::tokens::{self, TokenCommand};

#[derive(Debug, Parser)]
#[command(
    name = "bronzeward",
    version,
    about = "Change control for Talos Linux clusters"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API until a SIGTERM or SIGINT.
    Serve {
        #[arg(long)]
        config: PathBuf,
        /// After a restore: serve nothing but recovery entry until that has committed, and
        /// carry nothing out until a restart without this.
        #[arg(long)]
        recovery_start: bool,
    },
    /// Bring the database to this binary's schema, with the service stopped.
    Migrate {
        #[arg(long)]
        config: PathBuf,
    },
    /// Report generations that no committed reference names. Changes nothing.
    Orphans {
        #[arg(long)]
        config: PathBuf,
        /// One cluster's; all that the provider lists without it.
        #[arg(long)]
        cluster: Option<String>,
    },
    /// Automation tokens, with access to the database.
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
}

/// The whole process: arguments, the log on standard error, a command, an exit code. Called
/// by `main`, and by the harness's program under other rules and with a gate `around` the
/// renderer.
pub async fn process<R: Rules, D: Renderer + 'static>(
    rules: R,
    around: impl FnOnce(MachineryRenderer) -> D,
) -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .json()
        .with_writer(std::io::stderr)
        // How long a span took; spans are of level debug, which an operator asks for.
        .with_span_events(FmtSpan::CLOSE)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| "info,tower=warn,hyper=warn".into()),
        )
        .init();
    match run(cli, rules, around).await {
        Ok(lines) => {
            let mut out = std::io::stdout().lock();
            for line in lines {
                if writeln!(out, "{line}").is_err() {
                    return ExitCode::FAILURE;
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            // Its text names places and rules only.
            let _nobody_reads = writeln!(std::io::stderr(), "bronzeward: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command under `rules`; the lines it prints are what a person asked for.
pub async fn run<R: Rules, D: Renderer + 'static>(
    cli: Cli,
    rules: R,
    around: impl FnOnce(MachineryRenderer) -> D,
) -> Result<Vec<String>, ServeError> {
    match cli.command {
        Command::Serve {
            config,
            recovery_start,
        } => {
            let starting = match recovery_start {
                true => Starting::Recovery,
                false => Starting::Normal,
            };
            let config = Config::read(&config)?;
            let shutdown = Shutdown::new();
            stop_on_signal(shutdown.clone())?;
            run::serve(config, rules, starting, around, shutdown).await?;
            Ok(Vec::new())
        }
        Command::Migrate { config } => migrate(&Config::read(&config)?).await,
        Command::Orphans { config, cluster } => {
            orphans::run(&Config::read(&config)?, cluster.as_deref(), rules).await
        }
        Command::Token { command } => tokens::run(command, rules).await,
    }
}

fn stop_on_signal(shutdown: Shutdown) -> Result<(), ServeError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|_| ServeError::Listener)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|_| ServeError::Listener)?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        shutdown.ask();
    });
    Ok(())
}

/// Applied versions, the installation's epoch, and the schema version.
async fn migrate(config: &Config) -> Result<Vec<String>, ServeError> {
    let sessions = run::sessions(&config.database)?;
    let founding = Founding {
        epoch: EpochId::from_bits(SystemEntropy.bits()),
        cursor_key: SystemEntropy::bytes(),
    };
    let applied = Migrator::new(sessions.clone()).run(&founding).await?;
    let unread = |_| ServeError::Part {
        place: "database",
        rule: "could not be read",
    };
    let store = PgStore::new(Pool::new(sessions).map_err(unread)?);
    let mut snapshot = store.snapshot().await.map_err(unread)?;
    let installation = snapshot.installation().await.map_err(unread)?;
    snapshot.close().await;
    let newest = MIGRATIONS.last().map_or(0, |migration| migration.version);
    let mut lines: Vec<String> = applied
        .iter()
        .map(|version| format!("applied {version}"))
        .collect();
    lines.push(format!("epoch {}", installation.epoch));
    lines.push(format!("schema {newest}"));
    Ok(lines)
}
