//! The identity keys of inventory (PA §7.3), raced.

use super::support;

/// Two sessions record the same key: the second waits for the first, which commits. How
/// the second ends, by SQLSTATE and constraint, or none when it was accepted.
async fn race(column: &str, drop_index: bool) -> Option<(String, String)> {
    let database = support::migrated().await;
    let first = support::session(&database).await;
    let second = support::session(&database).await;
    let watcher = support::session(&database).await;
    support::inventory(&first).await;
    if drop_index {
        let drop = format!("ALTER TABLE machine DROP CONSTRAINT machine_{column}_key");
        support::run(&first, &drop).await;
    }
    let insert = |number| {
        let node = format!("NULL, '{}'", "n".repeat(44));
        let insert = support::machine(number, 9);
        match column {
            "smbios_uuid" => insert,
            _ => insert
                .replace(
                    "smbios_uuid, talos_endpoint",
                    "smbios_uuid, talos_node_id, talos_endpoint",
                )
                .replace("'00000000-0000-0000-0000-000000000009'", &node),
        }
    };
    support::run(&first, &format!("BEGIN; {}", insert(2))).await;
    let insert_second = insert(3);
    let late = tokio::spawn(async move { second.batch_execute(&insert_second).await });
    if !drop_index {
        support::until_waiting(&watcher, 1).await;
    }
    support::run(&first, "COMMIT").await;
    let error = late.await.expect("the second session ends").err()?;
    let error = error.as_db_error().expect("the server's answer");
    let constraint = error.constraint().unwrap_or("").to_owned();
    Some((error.code().code().to_owned(), constraint))
}

// covers-part: PA-INV-1 (the index; what the request answers is the route's)
#[tokio::test]
async fn of_two_concurrent_inventories_of_one_key_the_index_refuses_one() {
    for column in ["smbios_uuid", "talos_node_id"] {
        let refused = race(column, false).await;
        assert_eq!(
            refused,
            Some(("23505".into(), format!("machine_{column}_key")))
        );
        // Control: without the index both are recorded.
        assert_eq!(race(column, true).await, None);
    }
}

#[tokio::test]
async fn a_machine_has_one_identity_key_and_not_both_or_neither() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    let both = support::machine(2, 2)
        .replace("smbios_uuid, talos", "smbios_uuid, talos_node_id, talos")
        .replace("'10.0.0.1", "'node', '10.0.0.1");
    let neither = support::machine(2, 2).replace("'00000000-0000-0000-0000-000000000002'", "NULL");
    for insert in [both, neither] {
        let refused = support::refused(&client, &insert).await;
        assert_eq!(refused, ("23514".into(), "machine_one_identity_key".into()));
    }
}

#[tokio::test]
async fn a_cluster_brings_its_rollout_row() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    assert_eq!(
        support::count(&client, "SELECT count(*) FROM rollout").await,
        1
    );
}
