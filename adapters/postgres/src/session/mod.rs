//! Sessions with the database: settings, connecting, the pool, and sessions out of it.
//!
//! [`crate::tx`] begins transactions on them. Never in here: a table.

pub mod error;
pub mod wire;

use std::time::Duration;

use bronzeward_engine::ports::store::StoreError;
use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::NoTls;
use tokio_postgres::config::Host;
use wire::{Watched, Wire};

/// How the store uses the database. It holds the password, so it has no Debug.
#[derive(Clone)]
pub struct Settings {
    address: tokio_postgres::Config,
    /// Connections of the pool.
    pub connections: usize,
    /// How long a transaction may wait for a connection.
    pub wait: Duration,
    /// How long connecting may take.
    pub connect: Duration,
    pub limits: Limits,
}

/// What the server enforces on a session. Zero is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For one wait for a lock.
    pub lock: Duration,
    pub statement: Duration,
    /// For an open transaction between two statements: a paused process must not keep locks.
    pub idle_in_transaction: Duration,
    pub idle_session: Duration,
    /// How often the server looks whether a waiting client is still there, so that a
    /// cancelled wait gives its locks back.
    pub connection_check: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lock: Duration::from_secs(30),
            statement: Duration::from_secs(60),
            idle_in_transaction: Duration::from_secs(60),
            idle_session: Duration::ZERO,
            connection_check: Duration::from_secs(1),
        }
    }
}

/// The database's address cannot be read. Its text is withheld: it holds the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the database address is not a PostgreSQL connection string")]
pub struct AddressError;

impl Settings {
    /// From a connection string (`postgres://…`, or key=value pairs), with defaults.
    pub fn parse(address: &str) -> Result<Self, AddressError> {
        Ok(Self {
            address: address.parse().map_err(|_| AddressError)?,
            connections: 16,
            wait: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            limits: Limits::default(),
        })
    }

    /// With a password that does not stand in the connection string.
    #[must_use]
    pub fn with_password(mut self, password: &[u8]) -> Self {
        self.address.password(password);
        self
    }

    /// The same database under other limits.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

/// One connection. Dropping it ends the session at the server.
pub struct Session {
    pub(crate) connection: AsyncPgConnection,
    pub(crate) wire: Wire,
}

trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket for S {}

impl Session {
    /// Connects to the first host that answers, and sets the session's limits.
    pub async fn connect(settings: &Settings) -> Result<Self, StoreError> {
        let connecting = Self::connect_unbounded(settings);
        match tokio::time::timeout(settings.connect, connecting).await {
            Ok(result) => result,
            Err(_) => {
                tracing::warn!("no connection to the database in time");
                Err(StoreError::Unavailable)
            }
        }
    }

    async fn connect_unbounded(settings: &Settings) -> Result<Self, StoreError> {
        let hosts = settings.address.get_hosts();
        for (at, host) in hosts.iter().enumerate() {
            let ports = settings.address.get_ports();
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
            match socket(host, port).await {
                Ok(socket) => return Self::on(socket, settings).await,
                Err(error) => tracing::warn!(kind = ?error.kind(), "the database does not answer"),
            }
        }
        Err(StoreError::Unavailable)
    }

    async fn on(socket: Box<dyn Socket>, settings: &Settings) -> Result<Self, StoreError> {
        let wire = Wire::default();
        let stream = Watched::new(socket, wire.clone());
        let (client, driver) = settings
            .address
            .connect_raw(stream, NoTls)
            .await
            .map_err(|_| refused(&wire))?;
        let closing = wire.clone();
        tokio::spawn(async move {
            // The session sees the same end at its next statement.
            let _seen_by_the_session = driver.await;
            closing.close();
        });
        let mut connection = AsyncPgConnection::try_from(client)
            .await
            .map_err(|_| refused(&wire))?;
        let set = settings.limits.statements();
        connection
            .batch_execute(&set)
            .await
            .map_err(|error| error::statement(&error, &wire))?;
        Ok(Self { connection, wire })
    }
}

fn refused(wire: &Wire) -> StoreError {
    let code = wire.error().map(|error| error.code);
    tracing::warn!(sqlstate = code, "the database refused the connection");
    StoreError::Unavailable
}

async fn socket(host: &Host, port: u16) -> std::io::Result<Box<dyn Socket>> {
    match host {
        Host::Tcp(name) => {
            let stream = TcpStream::connect((name.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        Host::Unix(folder) => {
            let path = folder.join(format!(".s.PGSQL.{port}"));
            Ok(Box::new(UnixStream::connect(path).await?))
        }
    }
}

impl Limits {
    fn statements(&self) -> String {
        [
            ("lock_timeout", self.lock),
            ("statement_timeout", self.statement),
            (
                "idle_in_transaction_session_timeout",
                self.idle_in_transaction,
            ),
            ("idle_session_timeout", self.idle_session),
            ("client_connection_check_interval", self.connection_check),
        ]
        .map(|(name, limit)| format!("SET {name} = {};", limit.as_millis()))
        .concat()
    }
}

/// Makes and checks the pool's sessions.
pub struct Manager {
    settings: Settings,
}

impl managed::Manager for Manager {
    type Type = Session;
    type Error = StoreError;

    async fn create(&self) -> Result<Session, StoreError> {
        Session::connect(&self.settings).await
    }

    /// A session goes back only with no transaction open on it; [`crate::tx`] takes others
    /// out, and this looks again.
    async fn recycle(&self, session: &mut Session, _: &Metrics) -> RecycleResult<StoreError> {
        if session.wire.idle() {
            Ok(())
        } else {
            Err(RecycleError::message("not idle"))
        }
    }
}

/// The sessions transactions run on.
#[derive(Clone)]
pub struct Pool {
    sessions: managed::Pool<Manager>,
    settings: Settings,
}

pub(crate) type Pooled = managed::Object<Manager>;

impl Pool {
    /// Connects to nothing yet.
    pub fn new(settings: Settings) -> Result<Self, StoreError> {
        let manager = Manager {
            settings: settings.clone(),
        };
        let sessions = managed::Pool::builder(manager)
            .max_size(settings.connections)
            .wait_timeout(Some(settings.wait))
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|_| error::fault("the pool's settings"))?;
        Ok(Self { sessions, settings })
    }

    pub(crate) async fn session(&self) -> Result<Pooled, StoreError> {
        self.sessions.get().await.map_err(|error| match error {
            managed::PoolError::Backend(error) => error,
            _ => {
                tracing::warn!("no database connection became free in time");
                StoreError::Unavailable
            }
        })
    }

    /// A session out of the pool, with limits of its own: the dependency monitor's, which
    /// holds an advisory lock across transactions (DM §6).
    pub async fn pinned(&self, limits: Limits) -> Result<Session, StoreError> {
        Session::connect(&self.settings.clone().limited(limits)).await
    }

    /// How many sessions exist, and how many of them are in use.
    pub fn in_use(&self) -> (usize, usize) {
        let status = self.sessions.status();
        (status.size, status.size.saturating_sub(status.available))
    }
}
