//! What the database refuses to change, and to whom it refuses a row.

use std::collections::BTreeSet;

use super::revisions;
use super::support::{self, id};
use tokio_postgres::Client;

/// PA §3: these are insert only.
const IMMUTABLE: [&str; 43] = [
    "accounting",
    "act",
    "adoption_record",
    "approval",
    "approval_revocation",
    "assignment_fragment",
    "assignment_profile",
    "assignment_revision",
    "attempt",
    "decommission",
    "dependency_alert",
    "dependency_alert_release",
    "dependency_effective",
    "dependency_encryption",
    "dependency_reproduction",
    "fragment_revision",
    "idempotency_record",
    "identity_revocation",
    "import_base_revision",
    "machine_endpoint_change",
    "observation",
    "observation_start",
    "plan",
    "plan_cancellation",
    "profile_pin",
    "profile_revision",
    "provenance",
    "recovery_epoch",
    "recovery_exit",
    "reference_row",
    "release",
    "release_machine",
    "release_source",
    "response",
    "restored_backup",
    "schema_migrations",
    "scope_accounting",
    "scope_freeze",
    "scope_mark",
    "scope_release",
    "scope_unfreeze",
    "timeline_event",
    "use_time_check",
];

/// These change in place and are never deleted from.
const MUTABLE: [&str; 16] = [
    "automation_token",
    "cluster",
    "dependency_monitor",
    "dependency_status",
    "draft",
    "draft_entry",
    "drift_record",
    "head",
    "installation_state",
    "machine",
    "machine_state",
    "operation",
    "plan_state",
    "principal",
    "rollout",
    "staging_claim",
];

#[tokio::test]
async fn every_table_is_known_as_immutable_or_mutable() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    let query = "SELECT relname::text FROM pg_class \
                 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')";
    let rows = client.query(query, &[]).await.expect("tables");
    let tables: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    let known = IMMUTABLE
        .iter()
        .chain(&MUTABLE)
        .map(|table| (*table).to_owned());
    assert_eq!(tables, known.collect());
}

async fn first_column(client: &Client, table: &str) -> String {
    let query = "SELECT attname::text FROM pg_attribute \
                 WHERE attrelid = $1::text::regclass AND attnum > 0 AND attidentity = '' \
                 ORDER BY attnum LIMIT 1";
    client
        .query_one(query, &[&table])
        .await
        .expect("a column")
        .get(0)
}

// covers: PA-IMM-1
#[tokio::test]
async fn an_immutable_table_refuses_update_delete_and_truncate() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    for table in IMMUTABLE {
        let column = first_column(&client, table).await;
        let update = format!("UPDATE {table} SET {column} = {column}");
        let delete = format!("DELETE FROM {table}");
        let truncate = format!("TRUNCATE {table} CASCADE");
        let trigger = format!("{table}_immutable");
        for statement in [&update, &delete] {
            let refused = support::refused(&client, statement).await;
            assert_eq!(refused, ("BW001".into(), trigger.clone()), "{statement}");
        }
        let (code, _) = support::refused(&client, &truncate).await;
        assert_eq!(code, "BW001", "{truncate}");
        // A lock is not a change (PA §10.4).
        support::run(&client, &format!("SELECT 1 FROM {table} FOR UPDATE")).await;
        // Control: with the trigger gone the same statements are accepted.
        support::run(
            &client,
            &format!("BEGIN; DROP TRIGGER {trigger} ON {table}; {update}"),
        )
        .await;
        if !matches!(table, "recovery_epoch") {
            support::run(&client, &delete).await;
        }
        support::run(&client, "ROLLBACK").await;
    }
}

#[tokio::test]
async fn a_mutable_table_refuses_delete_and_truncate() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    for table in MUTABLE {
        let refused = support::refused(&client, &format!("DELETE FROM {table}")).await;
        assert_eq!(refused, ("BW001".into(), format!("{table}_kept")));
        let truncate = format!("TRUNCATE {table} CASCADE");
        assert_eq!(
            support::refused(&client, &truncate).await.0,
            "BW001",
            "{truncate}"
        );
    }
}

/// A revision of each kind, with the statement that adds a row to it.
fn with_rows() -> [(&'static str, String, String); 5] {
    let (profile, selected, layered) = (id("prv", 0), id("asr", 0), id("asr", 1));
    [
        (
            "reference_row",
            revisions::fragment(0),
            revisions::reference(&id("frv", 0)),
        ),
        (
            "reference_row",
            revisions::import_base(0),
            revisions::reference(&id("ibr", 0)),
        ),
        (
            "profile_pin",
            format!("{}; {}", revisions::fragment(1), revisions::profile(0)),
            format!(
                "INSERT INTO profile_pin VALUES ('{profile}', 0, '{}')",
                id("frv", 1)
            ),
        ),
        (
            "assignment_profile",
            revisions::assignment(0),
            format!("INSERT INTO assignment_profile VALUES ('{selected}', 0, 'p')"),
        ),
        (
            "assignment_fragment",
            revisions::assignment(1),
            format!("INSERT INTO assignment_fragment VALUES ('{layered}', 'site', 0, 'f')"),
        ),
    ]
}

// covers: PA-IMM-2
#[tokio::test]
async fn a_revision_takes_rows_of_the_transaction_that_wrote_it_and_no_other() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    let other = support::session(&database).await;
    support::inventory(&client).await;
    for (table, revision, row) in with_rows() {
        let trigger = format!("{table}_same_writer");
        // The transaction that writes the revision writes its rows, also in a savepoint.
        let own = format!("BEGIN; {revision}; SAVEPOINT s; {row}; RELEASE s; ROLLBACK");
        support::run(&client, &own).await;
        // A revision that is not visible is missing, at once and without a wait.
        support::run(&client, &format!("BEGIN; {revision}")).await;
        let refused = support::refused(&other, &row).await;
        assert_eq!(refused, ("23503".into(), trigger.clone()), "{row}");
        support::run(&client, "COMMIT").await;
        // A committed one takes no more.
        let refused = support::refused(&other, &row).await;
        assert_eq!(refused, ("BW002".into(), trigger.clone()), "{row}");
        // Control: with the writer check gone the row is added.
        let control = format!("BEGIN; DROP TRIGGER {trigger} ON {table}; {row}; ROLLBACK");
        support::run(&other, &control).await;
    }
}

#[tokio::test]
async fn a_writer_cannot_be_claimed_by_the_caller() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    let epoch = id("ep", 5);
    support::run(
        &client,
        &format!(
            "INSERT INTO recovery_epoch (id, origin, entered_at, writer)
         VALUES ('{epoch}', 'installation', now(), '1'::xid8)"
        ),
    )
    .await;
    let own = format!("SELECT count(*) FROM recovery_epoch WHERE id = '{epoch}' AND writer = '1'");
    assert_eq!(support::count(&client, &own).await, 0);
}
