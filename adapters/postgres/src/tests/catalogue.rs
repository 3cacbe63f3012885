//! The schema's files against the catalogue of a migrated database.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::rules::{Carrier, Rule};

use super::support::{self, id};

/// Columns of each table, as `name -> Type`.
type Tables = BTreeMap<String, Vec<String>>;

/// Reads the tables of the file that Diesel printed.
fn printed() -> Tables {
    let mut tables = Tables::new();
    let mut table: Option<String> = None;
    let mut inside = false;
    for line in include_str!("../schema.rs").lines().map(str::trim) {
        if line == "diesel::table! {" {
            inside = true;
        } else if !inside || line.starts_with("use ") || line.is_empty() {
            continue;
        } else if let Some((name, _)) = line.split_once(" (").filter(|_| line.ends_with('{')) {
            table = Some(name.to_owned());
            tables.insert(name.to_owned(), Vec::new());
        } else if line == "}" {
            inside = table.take().is_some();
        } else if let Some(name) = &table {
            let column = line.trim_end_matches(',').to_owned();
            tables.entry(name.clone()).or_default().push(column);
        }
    }
    tables
}

fn diesel_type(postgres: &str) -> &str {
    match postgres {
        "text" => "Text",
        "int2" => "Int2",
        "int4" => "Int4",
        "int8" => "Int8",
        "bool" => "Bool",
        "bytea" => "Bytea",
        "jsonb" => "Jsonb",
        "timestamptz" => "Timestamptz",
        "xid8" => "Xid8",
        "_text" => "Array<Nullable<Text>>",
        other => panic!("{other} has no Diesel type in this test"),
    }
}

#[tokio::test]
async fn the_printed_schema_is_the_migrated_catalogue() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    let query = "SELECT table_name::text, column_name::text, udt_name::text, \
                        is_nullable::text = 'YES' \
                 FROM information_schema.columns WHERE table_schema = 'public' \
                 ORDER BY table_name, ordinal_position";
    let mut catalogue = Tables::new();
    for row in client.query(query, &[]).await.expect("columns") {
        let (table, column): (String, String) = (row.get(0), row.get(1));
        let kind = diesel_type(row.get(2)).to_owned();
        let kind = if row.get(3) {
            format!("Nullable<{kind}>")
        } else {
            kind
        };
        catalogue
            .entry(table)
            .or_default()
            .push(format!("{column} -> {kind}"));
    }
    assert_eq!(
        printed(),
        catalogue,
        "print src/schema.rs again, as diesel.toml says"
    );
}

// covers-part: PA-ID-1 (the database's own refusal of any other form)
#[tokio::test]
async fn an_identifier_column_takes_its_own_form_only() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    let prefixes = [
        "cl", "mch", "frv", "prv", "asr", "ibr", "drf", "rel", "dep", "dal", "ep", "pln", "apr",
        "op", "att", "obs", "idn", "tok", "ing", "act", "req",
    ];
    for prefix in prefixes {
        let own = id(prefix, 3);
        support::run(&client, &format!("SELECT '{own}'::{prefix}_id")).await;
        let other = if prefix == "cl" {
            id("mch", 3)
        } else {
            id("cl", 3)
        };
        let wrong = [
            "7".to_owned(),
            format!("{prefix}_7"),
            format!("{own}a"),
            own.to_uppercase(),
            format!("{}b", &own[..own.len() - 1]),
            format!("{own}\n"),
            other,
        ];
        for text in wrong {
            let (code, _) =
                support::refused(&client, &format!("SELECT '{text}'::{prefix}_id")).await;
            assert_eq!(code, "23514", "{text} as {prefix}");
        }
    }
    for prefix in ["frg", "prf", "asg"] {
        support::run(&client, &format!("SELECT '{}'::head_id", id(prefix, 3))).await;
    }
}

// covers-part: PA-ID-1 (no identifier column without the form, no sequence number as one)
#[tokio::test]
async fn every_identifier_column_has_an_identifier_domain() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    let query = "SELECT table_name || '.' || column_name FROM information_schema.columns \
                 WHERE table_schema = 'public' \
                   AND (column_name = 'id' OR column_name LIKE '%\\_id' OR column_name = 'epoch') \
                   AND domain_name IS DISTINCT FROM 'head_id' \
                   AND coalesce(domain_name, '') !~ '^[a-z]{2,3}_id$' \
                   AND udt_name <> 'xid8'";
    let rows = client.query(query, &[]).await.expect("columns");
    let found: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    // Talos's own identifiers, and columns that hold one of several kinds: their generated
    // companions have the domain.
    let allowed = [
        "cluster.talos_cluster_id",
        "dependency_reproduction.source_revision_id",
        "draft_entry.revision_id",
        "head.revision_id",
        "machine.talos_node_id",
        "observation.talos_cluster_id",
        "observation.talos_node_id",
        "plan.talos_cluster_id",
        "plan.talos_node_id",
        "provenance.source_revision_id",
        "reference_row.revision_id",
        "release_source.revision_id",
    ];
    assert_eq!(found, allowed.into_iter().map(str::to_owned).collect());
}

#[tokio::test]
async fn every_object_that_carries_a_rule_exists() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    let query = "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace \
                 UNION SELECT conname::text FROM pg_constraint \
                 UNION SELECT tgname::text FROM pg_trigger";
    let rows = client.query(query, &[]).await.expect("objects");
    let objects: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    let missing: Vec<_> = Rule::all()
        .iter()
        .filter_map(|rule| match rule.carrier() {
            Carrier::Schema(object) => Some(object),
            _ => None,
        })
        .filter(|object| !objects.contains(*object))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}
