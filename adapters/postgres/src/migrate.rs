//! Migrations: embedded, numbered, forward only (PA §11).
//!
//! `bronzeward migrate` calls [`Migrator::run`], with the service stopped; a server's start
//! calls [`check`] and refuses to go on where the schema is not its own. Never in here: a
//! provider, a downgrade, or a change of rows that a migration did not make.

use std::fmt;
use std::time::Duration;

use bronzeward_core::id::EpochId;
use bronzeward_engine::ports::store::StoreError;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use sha2::{Digest, Sha256};

use crate::advisory::{AdvisoryLock, Class, Hold};
use crate::schema::{dependency_monitor, installation_state, schema_migrations};
use crate::session::{Limits, Pool, Session, Settings};
use crate::time::clock_timestamp;
use crate::tx::{Mode, Transaction};

/// One step of the schema.
#[derive(Clone, Copy)]
pub struct Migration {
    pub version: i32,
    pub name: &'static str,
    pub sql: &'static str,
}

/// The binary's migrations, in order.
pub const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "schema",
    sql: include_str!("../../../migrations/0001_schema.sql"),
}];

impl Migration {
    pub fn checksum(&self) -> Vec<u8> {
        Sha256::digest(self.sql.as_bytes()).to_vec()
    }
}

/// What a new installation is given by the caller's entropy, and no other run uses.
#[derive(Clone)]
pub struct Founding {
    /// The installation's own epoch (PA §12.1).
    pub epoch: EpochId,
    /// What cursors are sealed with. It has no Debug.
    pub cursor_key: [u8; 32],
}

/// How the database's schema differs from the binary's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// No migration was ever applied.
    Absent {
        binary: i32,
    },
    Older {
        database: i32,
        binary: i32,
    },
    Newer {
        database: i32,
        binary: i32,
    },
    /// The applied migration of this version is not the binary's: its text was edited.
    Edited {
        version: i32,
        binary: i32,
    },
    /// A version below the newest was never applied.
    Gap {
        version: i32,
        binary: i32,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { binary } => write!(
                f,
                "the database has no schema and this binary needs version {binary}: run migrate"
            ),
            Self::Older { database, binary } => write!(
                f,
                "the database has schema version {database}, older than this binary's version \
                 {binary}: run migrate"
            ),
            Self::Newer { database, binary } => write!(
                f,
                "the database has schema version {database}, newer than this binary's version \
                 {binary}: start the binary it belongs to"
            ),
            Self::Edited { version, binary } => write!(
                f,
                "the database's migration {version} is not the one in this binary, whose schema \
                 is version {binary}: it was edited since it was applied"
            ),
            Self::Gap { version, binary } => write!(
                f,
                "the database lacks migration {version} of this binary's version {binary}"
            ),
        }
    }
}

impl std::error::Error for Mismatch {}

/// Why a run or a check did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    #[error("{0}")]
    Mismatch(Mismatch),
    #[error("the database failed the migration")]
    Store(#[from] StoreError),
}

/// Applies migrations.
pub struct Migrator<'a> {
    settings: Settings,
    migrations: &'a [Migration],
    /// False in the control of the lock's own test only.
    one_at_a_time: bool,
}

impl<'a> Migrator<'a> {
    pub fn new(settings: Settings) -> Self {
        Self::with(settings, MIGRATIONS)
    }

    fn with(settings: Settings, migrations: &'a [Migration]) -> Self {
        // A migration may take its time, and waits for another run.
        let limits = Limits {
            lock: Duration::ZERO,
            statement: Duration::ZERO,
            ..Limits::default()
        };
        Self {
            settings: settings.limited(limits),
            migrations,
            one_at_a_time: true,
        }
    }

    /// Applies what is missing, each migration in a transaction of its own; answers the
    /// versions that this run applied.
    pub async fn run(&self, founding: &Founding) -> Result<Vec<i32>, MigrateError> {
        let mut session = Session::connect(&self.settings).await?;
        let mut applied = Vec::new();
        for migration in self.migrations {
            let mut tx = session.begin(Mode::Write).await?;
            if self.one_at_a_time {
                tx.lock(AdvisoryLock::of(Class::Migration), Hold::Exclusive)
                    .await?;
            }
            let known = applied_rows(&mut tx).await?;
            match compare(&known, self.migrations) {
                Ok(()) => {}
                Err(Mismatch::Absent { .. } | Mismatch::Older { .. }) => {
                    if known.iter().all(|row| row.version != migration.version) {
                        apply(&mut tx, migration, founding).await?;
                        applied.push(migration.version);
                    }
                }
                Err(mismatch) => return Err(MigrateError::Mismatch(mismatch)),
            }
            session = tx.commit_pinned().await?;
        }
        Ok(applied)
    }
}

async fn apply(
    tx: &mut Transaction,
    migration: &Migration,
    founding: &Founding,
) -> Result<(), StoreError> {
    tx.batch(migration.sql).await?;
    let row = (
        schema_migrations::version.eq(migration.version),
        schema_migrations::name.eq(migration.name),
        schema_migrations::checksum.eq(migration.checksum()),
        schema_migrations::applied_at.eq(diesel::dsl::now),
    );
    tx.execute(diesel::insert_into(schema_migrations::table).values(row))
        .await?;
    if migration.version == 1 {
        found(tx, founding).await?;
    }
    let version = installation_state::schema_version.eq(migration.version);
    tx.execute(diesel::update(installation_state::table).set(version))
        .await?;
    Ok(())
}

/// The rows an installation begins with (PA §12.1, DM §5).
async fn found(tx: &mut Transaction, founding: &Founding) -> Result<(), StoreError> {
    let epoch = founding.epoch.to_string();
    // The writer is the trigger's to fill in.
    let insert = diesel::sql_query(
        "INSERT INTO recovery_epoch (id, origin, entered_at) \
         VALUES ($1, 'installation', clock_timestamp())",
    )
    .bind::<diesel::sql_types::Text, _>(epoch.clone());
    tx.execute(insert).await?;
    let state = (
        installation_state::current_epoch.eq(epoch),
        installation_state::recovery_mode.eq(false),
        installation_state::schema_version.eq(1),
        installation_state::cursor_key.eq(founding.cursor_key.to_vec()),
    );
    tx.execute(diesel::insert_into(installation_state::table).values(state))
        .await?;
    let monitor = dependency_monitor::progress.eq(clock_timestamp());
    tx.execute(diesel::insert_into(dependency_monitor::table).values(monitor))
        .await?;
    Ok(())
}

#[derive(Queryable, Clone)]
struct Applied {
    version: i32,
    checksum: Vec<u8>,
}

#[derive(QueryableByName)]
struct Exists {
    #[diesel(sql_type = Bool)]
    exists: bool,
}

async fn applied_rows(tx: &mut Transaction) -> Result<Vec<Applied>, StoreError> {
    let query = "SELECT to_regclass('schema_migrations') IS NOT NULL AS exists";
    let table: Exists = tx.one(diesel::sql_query(query)).await?;
    if !table.exists {
        return Ok(Vec::new());
    }
    let rows = schema_migrations::table
        .select((schema_migrations::version, schema_migrations::checksum))
        .order(schema_migrations::version);
    tx.load(rows).await
}

/// What the applied rows say of a binary with these migrations (PA §11 rule 2).
fn compare(applied: &[Applied], migrations: &[Migration]) -> Result<(), Mismatch> {
    let binary = migrations.last().map_or(0, |last| last.version);
    let Some(newest) = applied.last().map(|row| row.version) else {
        return Err(Mismatch::Absent { binary });
    };
    if newest > binary {
        return Err(Mismatch::Newer {
            database: newest,
            binary,
        });
    }
    for migration in migrations.iter().filter(|one| one.version <= newest) {
        let version = migration.version;
        match applied.iter().find(|row| row.version == version) {
            None => return Err(Mismatch::Gap { version, binary }),
            Some(row) if row.checksum != migration.checksum() => {
                return Err(Mismatch::Edited { version, binary });
            }
            Some(_) => {}
        }
    }
    if newest < binary {
        return Err(Mismatch::Older {
            database: newest,
            binary,
        });
    }
    Ok(())
}

/// Refuses a database whose schema is not exactly the binary's.
pub async fn check(pool: &Pool) -> Result<(), MigrateError> {
    check_against(pool, MIGRATIONS).await
}

async fn check_against(pool: &Pool, migrations: &[Migration]) -> Result<(), MigrateError> {
    let mut tx = pool.begin(Mode::Snapshot).await?;
    let applied = applied_rows(&mut tx).await?;
    tx.rollback().await;
    compare(&applied, migrations).map_err(MigrateError::Mismatch)
}

#[cfg(test)]
#[path = "tests/migrate.rs"]
mod tests;
