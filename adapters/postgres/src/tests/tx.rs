use diesel::sql_types::{BigInt, Text};

use super::*;
use crate::advisory::{AdvisoryLock, Class, Hold};
use crate::session::Limits;
use crate::tests::support::{self, id};

#[derive(diesel::QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

async fn number(tx: &mut Transaction, sql: &str) -> Result<i64, StoreError> {
    let row: Number = tx.one(diesel::sql_query(sql.to_owned())).await?;
    Ok(row.number)
}

async fn begin(pool: &Pool) -> Transaction {
    pool.begin(Mode::Write).await.expect("a transaction")
}

fn machine_lock(number: u8) -> String {
    format!(
        "SELECT 1 FROM machine WHERE id = '{}' FOR UPDATE",
        id("mch", number)
    )
}

#[tokio::test]
async fn a_deadlock_is_told_from_other_failures() {
    let database = support::migrated().await;
    support::inventory(&support::session(&database).await).await;
    let watcher = support::session(&database).await;
    let pool = support::pool(&database, 2);
    let (mut first, mut second) = (begin(&pool).await, begin(&pool).await);
    first.batch(&machine_lock(0)).await.expect("a lock");
    second.batch(&machine_lock(1)).await.expect("a lock");
    let crossing = tokio::spawn(async move {
        let outcome = first.batch(&machine_lock(1)).await;
        first.rollback().await;
        outcome
    });
    support::until_waiting(&watcher, 1).await;
    let outcome = second.batch(&machine_lock(0)).await;
    second.rollback().await;
    let outcomes = [outcome, crossing.await.expect("the other side ends")];
    assert!(
        outcomes.contains(&Err(StoreError::Deadlock)),
        "{outcomes:?}"
    );
    assert!(outcomes.contains(&Ok(())), "{outcomes:?}");
}

#[tokio::test]
async fn a_refusal_names_the_index_or_the_trigger() {
    let database = support::migrated().await;
    support::inventory(&support::session(&database).await).await;
    let pool = support::pool(&database, 1);
    let cases = [
        (
            support::machine(2, 0),
            StoreError::Unique("machine_smbios_uuid_key"),
        ),
        (
            "DELETE FROM act".to_owned(),
            StoreError::Integrity("act_immutable"),
        ),
        (
            support::machine(2, 2).replace("'metal'", "'desktop'"),
            StoreError::Integrity("machine_platform_check"),
        ),
        ("SELECT 1 / 0".to_owned(), StoreError::Fault),
    ];
    for (statement, expected) in cases {
        let mut tx = begin(&pool).await;
        assert_eq!(tx.batch(&statement).await, Err(expected), "{statement}");
        tx.rollback().await;
    }
}

#[tokio::test]
async fn a_transaction_dropped_open_frees_its_locks_and_leaves_the_pool() {
    let database = support::migrated().await;
    support::inventory(&support::session(&database).await).await;
    let pool = support::pool(&database, 1);
    let mut dropped = begin(&pool).await;
    let first = number(&mut dropped, "SELECT pg_backend_pid()::bigint AS number").await;
    dropped.batch(&machine_lock(0)).await.expect("a lock");
    drop(dropped);
    // The pool has room for one session: this is another one, and its lock is granted.
    let mut next = begin(&pool).await;
    let second = number(&mut next, "SELECT pg_backend_pid()::bigint AS number").await;
    assert_ne!(first.expect("a pid"), second.expect("a pid"));
    next.batch(&machine_lock(0)).await.expect("a lock");
    next.commit().await.expect("a commit");
    // One that ended is used again.
    let mut again = begin(&pool).await;
    let third = number(&mut again, "SELECT pg_backend_pid()::bigint AS number").await;
    assert_eq!(second, third);
    again.rollback().await;
    assert_eq!(pool.in_use(), (1, 0));
}

#[tokio::test]
async fn a_read_alone_gives_its_session_back_and_a_failed_one_ends_it() {
    let database = support::migrated().await;
    let pool = support::pool(&database, 1);
    let pid = "SELECT pg_backend_pid()::bigint AS number";
    let alone = async |sql: &str| {
        let row = pool.read_one::<Number, _>(diesel::sql_query(sql.to_owned()));
        row.await.map(|row| row.number)
    };
    let first = alone(pid).await.expect("a pid");
    assert_eq!(alone(pid).await, Ok(first));
    assert_eq!(pool.in_use(), (1, 0));
    let failed = alone("SELECT 1 / 0 AS number").await;
    assert_eq!(failed, Err(StoreError::Fault));
    assert_eq!(pool.in_use(), (0, 0));
    assert_ne!(alone(pid).await, Ok(first));
}

#[tokio::test]
async fn a_cancelled_wait_gives_its_locks_back() {
    let database = support::migrated().await;
    support::inventory(&support::session(&database).await).await;
    let watcher = support::session(&database).await;
    let pool = support::pool(&database, 3);
    let mut holder = begin(&pool).await;
    holder.batch(&machine_lock(0)).await.expect("a lock");
    let mut waiter = begin(&pool).await;
    waiter.batch(&machine_lock(1)).await.expect("a lock");
    let waiting = tokio::spawn(async move { waiter.batch(&machine_lock(0)).await });
    support::until_waiting(&watcher, 1).await;
    waiting.abort();
    assert!(waiting.await.expect_err("it was cancelled").is_cancelled());
    // The server notices that the client has gone and rolls back.
    let mut next = begin(&pool).await;
    next.batch(&machine_lock(1)).await.expect("a lock");
    next.rollback().await;
    holder.rollback().await;
}

#[tokio::test]
async fn a_transaction_that_saw_an_error_never_commits() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    let pool = support::pool(&database, 1);
    let mut tx = begin(&pool).await;
    tx.batch(&support::machine(2, 2)).await.expect("a row");
    tx.batch("SELECT 1 / 0").await.expect_err("a fault");
    assert_eq!(tx.batch("SELECT 1").await, Err(StoreError::Fault));
    assert_eq!(tx.commit().await, Err(StoreError::Fault));
    assert_eq!(
        support::count(&client, "SELECT count(*) FROM machine").await,
        2
    );
}

#[tokio::test]
async fn a_commit_answered_by_rollback_is_not_a_commit() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    let pool = support::pool(&database, 1);
    let mut tx = begin(&pool).await;
    tx.batch(&support::machine(2, 2)).await.expect("a row");
    tx.batch("SELECT 1 / 0").await.expect_err("a fault");
    // As if the error had not been seen: what is left is the tag of the answer.
    tx.progress = Progress::Open;
    assert_eq!(tx.commit().await, Err(StoreError::Fault));
    assert_eq!(
        support::count(&client, "SELECT count(*) FROM machine").await,
        2
    );
    // The session ended its transaction and is used again.
    begin(&pool).await.rollback().await;
    assert_eq!(pool.in_use(), (1, 0));
}

#[tokio::test]
async fn a_check_at_commit_is_a_refusal_and_not_an_unknown_outcome() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    let pool = support::pool(&database, 1);
    let mut tx = begin(&pool).await;
    let who = id("idn", 0);
    let (epoch, act) = (id("ep", 4), id("act", 0));
    tx.batch(&format!(
        "INSERT INTO recovery_epoch (id, origin, entered_at, principal_id, role, reason,
             stopped_at, act_id)
         VALUES ('{epoch}', 'entry', now(), '{who}', 'recovery-admin', 'r', now(), '{act}');
         INSERT INTO act (id, principal_id, principal_kind, action, subjects, epoch, at)
         VALUES ('{act}', '{who}', 'human', 'recovery-entered', '[]', '{epoch}', now());"
    ))
    .await
    .expect("nothing is checked before the commit");
    let refused = tx.commit().await;
    assert_eq!(
        refused,
        Err(StoreError::Integrity("recovery_epoch_complete"))
    );
}

/// The backend of a session whose next COMMIT waits: its deferred trigger wants a lock that
/// `client` holds.
async fn slow_commit(client: &tokio_postgres::Client) {
    support::run(
        client,
        "
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock(99); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON machine
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow();
        SELECT pg_advisory_lock(99);",
    )
    .await;
}

#[tokio::test]
async fn a_session_lost_during_commit_leaves_the_outcome_unknown() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    let watcher = support::session(&database).await;
    support::inventory(&client).await;
    slow_commit(&client).await;
    let pool = support::pool(&database, 1);
    let mut tx = begin(&pool).await;
    let pid = number(&mut tx, "SELECT pg_backend_pid()::bigint AS number")
        .await
        .expect("a pid");
    tx.batch(&support::machine(2, 2)).await.expect("a row");
    let commit = tokio::spawn(tx.commit());
    support::until_waiting(&watcher, 1).await;
    support::run(&watcher, &format!("SELECT pg_terminate_backend({pid})")).await;
    let outcome = commit.await.expect("the commit ends");
    assert_eq!(outcome, Err(StoreError::CommitUnknown));
    assert_eq!(pool.in_use(), (0, 0));
}

#[tokio::test]
async fn a_session_lost_before_commit_is_unavailable_and_nothing_committed() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    let pool = support::pool(&database, 1);
    let mut tx = begin(&pool).await;
    let pid = number(&mut tx, "SELECT pg_backend_pid()::bigint AS number")
        .await
        .expect("a pid");
    tx.batch(&support::machine(2, 2)).await.expect("a row");
    support::run(
        &client,
        &format!("SELECT pg_terminate_backend({pid}, 10000)"),
    )
    .await;
    assert_eq!(tx.batch("SELECT 1").await, Err(StoreError::Unavailable));
    tx.rollback().await;
    assert_eq!(
        support::count(&client, "SELECT count(*) FROM machine").await,
        2
    );
    // The pool makes a new session.
    begin(&pool).await.rollback().await;
}

#[tokio::test]
async fn a_snapshot_reads_one_state_and_writes_nothing() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    let pool = support::pool(&database, 1);
    let mut snapshot = pool.begin(Mode::Snapshot).await.expect("a snapshot");
    let query = "SELECT count(*) AS number FROM machine";
    assert_eq!(number(&mut snapshot, query).await, Ok(2));
    support::run(&client, &support::machine(2, 2)).await;
    assert_eq!(number(&mut snapshot, query).await, Ok(2));
    let write = snapshot.batch("UPDATE cluster SET name = name").await;
    assert_eq!(write, Err(StoreError::Fault));
    snapshot.rollback().await;
}

#[tokio::test]
async fn a_pinned_session_keeps_its_lock_across_transactions() {
    let database = support::migrated().await;
    let pool = support::pool(&database, 1);
    let limits = Limits::default();
    let mut one = pool.pinned(limits).await.expect("a session");
    let mut two = pool.pinned(limits).await.expect("a session");
    let lock = AdvisoryLock::named(Class::Dependency, &["dep"]);
    assert_eq!(one.try_lock(lock).await, Ok(true));
    let mut tx = one.begin(Mode::Write).await.expect("a transaction");
    let query = diesel::sql_query("SELECT 1::bigint AS number WHERE $1 <> ''").bind::<Text, _>("a");
    tx.one::<Number, _>(query).await.expect("a row");
    let mut one = tx.commit_pinned().await.expect("a commit");
    assert_eq!(two.try_lock(lock).await, Ok(false));
    assert_eq!(one.unlock(lock).await, Ok(true));
    assert_eq!(two.try_lock(lock).await, Ok(true));
}

#[tokio::test]
async fn an_exclusive_advisory_lock_waits_for_the_shared_ones() {
    let database = support::migrated().await;
    let watcher = support::session(&database).await;
    let pool = support::pool(&database, 3);
    let lock = AdvisoryLock::of(Class::Installation);
    let (mut first, mut second) = (begin(&pool).await, begin(&pool).await);
    first.lock(lock, Hold::Shared).await.expect("a lock");
    second.lock(lock, Hold::Shared).await.expect("a lock");
    let mut third = begin(&pool).await;
    assert_eq!(third.try_lock(lock).await, Ok(false));
    let exclusive = tokio::spawn(async move {
        third.lock(lock, Hold::Exclusive).await?;
        third.commit().await
    });
    support::until_waiting(&watcher, 1).await;
    first.commit().await.expect("a commit");
    second.commit().await.expect("a commit");
    assert_eq!(exclusive.await.expect("it ends"), Ok(()));
}

#[test]
fn classes_have_numbers_of_their_own() {
    let numbers: std::collections::BTreeSet<_> = Class::ALL.map(Class::number).into();
    assert_eq!(numbers.len(), Class::ALL.len());
    let named = |parts: &[&str]| AdvisoryLock::named(Class::IdempotencyKey, parts);
    assert_ne!(named(&["ab", "c"]), named(&["a", "bc"]));
}
