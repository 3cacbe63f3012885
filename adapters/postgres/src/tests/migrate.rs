use std::time::Duration;

use super::*;
use crate::tests::support::{self, founding};

const SECOND: Migration = Migration {
    version: 2,
    name: "second",
    sql: "CREATE TABLE second (id bigint PRIMARY KEY)",
};

fn both() -> [Migration; 2] {
    [MIGRATIONS[0], SECOND]
}

async fn run(
    settings: Settings,
    migrations: &[Migration],
    locked: bool,
) -> Result<Vec<i32>, MigrateError> {
    let mut migrator = Migrator::with(settings, migrations);
    migrator.one_at_a_time = locked;
    migrator.run(&founding()).await
}

/// Four runs that all reach the schema at the same time: a type that the first migration
/// makes is held back by a session that has made it and not committed.
async fn four_runs(locked: bool) -> (Vec<Result<Vec<i32>, MigrateError>>, i64) {
    let database = support::empty().await;
    let holder = support::session(&database).await;
    support::run(&holder, "BEGIN; CREATE DOMAIN cl_id AS text").await;
    let runs = (0..4).map(|_| {
        let settings = support::settings(&database);
        tokio::spawn(async move { run(settings, &both(), locked).await })
    });
    let runs: Vec<_> = runs.collect();
    let watcher = support::session(&database).await;
    support::until_waiting(&watcher, 4).await;
    support::run(&holder, "ROLLBACK").await;
    let mut results = Vec::new();
    for run in runs {
        results.push(run.await.expect("a run ends"));
    }
    let rows = support::count(&watcher, "SELECT count(*) FROM schema_migrations").await;
    (results, rows)
}

// covers: PA-TX-4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_concurrent_runs_apply_each_version_once() {
    let (results, rows) = four_runs(true).await;
    let mut applied: Vec<i32> = results
        .into_iter()
        .flat_map(|run| run.expect("every run succeeds"))
        .collect();
    applied.sort_unstable();
    assert_eq!((applied, rows), (vec![1, 2], 2));
    // Control: without the lock, the runs that found no schema fail on the catalogue.
    let (results, _) = four_runs(false).await;
    let failed = results.iter().filter(|run| run.is_err()).count();
    assert_eq!(failed, 3, "{results:?}");
}

#[tokio::test]
async fn a_second_run_applies_nothing() {
    let database = support::empty().await;
    let settings = support::settings(&database);
    let first = Migrator::new(settings.clone()).run(&founding()).await;
    assert_eq!(first, Ok(vec![1]));
    let other = Founding {
        epoch: EpochId::from_bits(9),
        cursor_key: [9; 32],
    };
    assert_eq!(Migrator::new(settings).run(&other).await, Ok(vec![]));
    let client = support::session(&database).await;
    let state = client
        .query_one(
            "SELECT current_epoch::text, cursor_key, recovery_mode FROM installation_state",
            &[],
        )
        .await
        .expect("the installation's row");
    assert_eq!(state.get::<_, String>(0), support::epoch().to_string());
    assert_eq!(state.get::<_, Vec<u8>>(1), [7; 32]);
    assert!(!state.get::<_, bool>(2));
}

#[tokio::test]
async fn a_failed_migration_leaves_nothing_of_itself() {
    let database = support::empty().await;
    let broken = Migration {
        sql: "CREATE TABLE second (id bigint PRIMARY KEY); SELECT 1 / 0",
        ..SECOND
    };
    let settings = support::settings(&database);
    let failed = run(settings.clone(), &[MIGRATIONS[0], broken], true).await;
    assert_eq!(failed, Err(MigrateError::Store(StoreError::Fault)));
    let client = support::session(&database).await;
    let left = "SELECT count(*) FROM pg_class WHERE relname = 'second'";
    assert_eq!(support::count(&client, left).await, 0);
    assert_eq!(run(settings, &both(), true).await, Ok(vec![2]));
    let version = "SELECT schema_version::bigint FROM installation_state";
    assert_eq!(support::count(&client, version).await, 2);
}

// covers: PA-MIG-1
#[tokio::test]
async fn a_start_is_refused_on_an_absent_older_newer_or_edited_schema() {
    let database = support::empty().await;
    let settings = support::settings(&database);
    let pool = support::pool(&database, 1);
    let refused = async |migrations: &[Migration]| match check_against(&pool, migrations).await {
        Err(MigrateError::Mismatch(mismatch)) => (mismatch, mismatch.to_string()),
        other => panic!("{other:?}"),
    };
    let (mismatch, text) = refused(&both()).await;
    assert_eq!(mismatch, Mismatch::Absent { binary: 2 });
    assert!(text.contains("version 2"), "{text}");

    assert_eq!(run(settings.clone(), &both()[..1], true).await, Ok(vec![1]));
    assert_eq!(check(&pool).await, Ok(()));
    let (mismatch, text) = refused(&both()).await;
    assert_eq!(
        mismatch,
        Mismatch::Older {
            database: 1,
            binary: 2
        }
    );
    assert!(
        text.contains("version 1") && text.contains("version 2"),
        "{text}"
    );

    assert_eq!(run(settings.clone(), &both(), true).await, Ok(vec![2]));
    let (mismatch, text) = refused(MIGRATIONS).await;
    assert_eq!(
        mismatch,
        Mismatch::Newer {
            database: 2,
            binary: 1
        }
    );
    assert!(
        text.contains("version 2") && text.contains("version 1"),
        "{text}"
    );

    let edited = Migration {
        sql: "CREATE TABLE second (id integer PRIMARY KEY)",
        ..SECOND
    };
    let (mismatch, text) = refused(&[MIGRATIONS[0], edited]).await;
    assert_eq!(
        mismatch,
        Mismatch::Edited {
            version: 2,
            binary: 2
        }
    );
    assert!(text.contains("migration 2"), "{text}");
    // A run refuses it as a start does, and changes nothing.
    let again = run(settings, &[MIGRATIONS[0], edited], true).await;
    assert_eq!(again, Err(MigrateError::Mismatch(mismatch)));
}

#[tokio::test]
async fn an_unreachable_database_is_unavailable() {
    let mut settings = Settings::parse("postgres://nobody@127.0.0.1:1/none").expect("an address");
    settings.connect = Duration::from_secs(5);
    let refused = Migrator::new(settings).run(&founding()).await;
    assert_eq!(refused, Err(MigrateError::Store(StoreError::Unavailable)));
}
