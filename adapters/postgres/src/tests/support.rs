//! A database per test, and the few rows that other rows need.

use bronzeward_core::id::EpochId;
use bronzeward_harness::postgres::{Database, Template};
use bronzeward_harness::shared;
use tokio::sync::OnceCell;
use tokio_postgres::Client;

use crate::migrate::{Founding, MIGRATIONS, Migrator};
use crate::session::{Pool, Settings};

/// The epoch that databases of these tests are founded in.
pub fn epoch() -> EpochId {
    EpochId::from_bits(1)
}

pub fn founding() -> Founding {
    Founding {
        epoch: epoch(),
        cursor_key: [7; 32],
    }
}

/// An identifier of a prefix: the number is in its first character.
pub fn id(prefix: &str, number: u8) -> String {
    format!("{prefix}_{}{}", char::from(b'a' + number), "a".repeat(25))
}

pub fn settings(database: &Database) -> Settings {
    Settings::parse(&database.dsn()).expect("the harness gives an address")
}

pub fn pool(database: &Database, connections: usize) -> Pool {
    let mut settings = settings(database);
    settings.connections = connections;
    Pool::new(settings).expect("a pool")
}

/// A database with nothing in it.
pub async fn empty() -> Database {
    shared()
        .postgres()
        .expect("PostgreSQL")
        .empty()
        .await
        .expect("a database")
}

/// A freshly migrated database of the test's own.
pub async fn migrated() -> Database {
    static TEMPLATE: OnceCell<Template> = OnceCell::const_new();
    let template = TEMPLATE
        .get_or_init(|| async {
            let checksum = MIGRATIONS[0].checksum();
            let key = format!(
                "plumbing_{:02x}{:02x}{:02x}{:02x}",
                checksum[0], checksum[1], checksum[2], checksum[3]
            );
            let postgres = shared().postgres().expect("PostgreSQL");
            postgres
                .template(&key, async |dsn: &str| {
                    let settings = Settings::parse(dsn).map_err(|error| error.to_string())?;
                    let run = Migrator::new(settings).run(&founding()).await;
                    run.map(drop).map_err(|error| error.to_string())
                })
                .await
                .expect("the migration runs")
        })
        .await;
    template.fresh().await.expect("a database")
}

/// Behind the product's back.
pub async fn session(database: &Database) -> Client {
    database.session().await.expect("a session")
}

pub async fn run(client: &Client, sql: &str) {
    if let Err(error) = client.batch_execute(sql).await {
        panic!("{sql}: {error:?}");
    }
}

/// The SQLSTATE and the constraint of a statement that must be refused.
pub async fn refused(client: &Client, sql: &str) -> (String, String) {
    let error = client.batch_execute(sql).await.expect_err(sql);
    let error = error
        .as_db_error()
        .unwrap_or_else(|| panic!("{sql}: {error}"));
    (
        error.code().code().to_owned(),
        error.constraint().unwrap_or("").to_owned(),
    )
}

pub async fn count(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.expect(query).get(0)
}

/// Waits until `count` sessions of the database wait for a lock.
pub async fn until_waiting(client: &Client, waiting: i64) {
    let query = "SELECT count(*) FROM pg_stat_activity \
                 WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while count(client, query).await != waiting {
        assert!(
            std::time::Instant::now() < deadline,
            "{waiting} sessions never waited"
        );
    }
}

/// A human, a cluster, two machines, a draft and a claim that revisions name.
pub async fn inventory(client: &Client) {
    let (who, epoch, cluster) = (id("idn", 0), epoch().to_string(), id("cl", 0));
    run(
        client,
        &format!(
        "INSERT INTO principal (id, kind, iss, sub) VALUES ('{who}', 'human', 'https://i', 's');
         INSERT INTO cluster (id, name, endpoint, talos_cluster_id, contract, created_by,
             created_role, epoch)
         VALUES ('{cluster}', 'c', 'https://c:6443', '{talos}=', 'v1.13', '{who}', 'author',
             '{epoch}');",
        talos = "A".repeat(43),
    ),
    )
    .await;
    for number in [0, 1] {
        run(client, &machine(number, number)).await;
    }
    run(
        client,
        &format!(
            "INSERT INTO draft (id, cluster_id, title, etag_token, created_by, created_role, epoch)
         VALUES ('{draft}', '{cluster}', 't', '{token}', '{who}', 'author', '{epoch}');
         INSERT INTO staging_claim (id, kind, mode, source, state, cluster_id, draft_id,
             principal_id, role, idempotency_key, owner, owner_gen, owner_epoch, epoch,
             lease_until, expires_at, created_at)
         VALUES ('{claim}', 'draft-update', 'transient', 'document', 'held', '{cluster}',
             '{draft}', '{who}', 'author', 'key-key-key-key-', 'i/1/a', 1, '{epoch}',
             '{epoch}', now() + interval '1 hour', now() + interval '2 hours', now());",
            draft = id("drf", 0),
            claim = id("ing", 0),
            token = "a".repeat(26),
        ),
    )
    .await;
}

/// Inventories machine `number` under the SMBIOS UUID `uuid`.
pub fn machine(number: u8, uuid: u8) -> String {
    format!(
        "INSERT INTO machine (id, cluster_id, smbios_uuid, talos_endpoint, platform, created_by,
             created_role, epoch)
         VALUES ('{}', '{}', '00000000-0000-0000-0000-0000000000{uuid:02x}', '10.0.0.1:50000',
             'metal', '{}', 'author', '{}');",
        id("mch", number),
        id("cl", 0),
        id("idn", 0),
        epoch(),
    )
}
