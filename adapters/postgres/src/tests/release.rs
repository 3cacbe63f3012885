//! A release is complete or absent: the checks of PA §6.2 that are made at commit.

use super::support::{self, epoch, id};

/// The statements of one complete release, by name, in the order of T3.
fn release() -> Vec<(&'static str, String)> {
    let (cluster, draft, who, epoch) = (id("cl", 0), id("drf", 0), id("idn", 0), epoch());
    let (machine, release, op, obs) = (id("mch", 0), id("rel", 0), id("op", 0), id("obs", 0));
    let (base, fragment, pinned) = (id("ibr", 0), id("frv", 0), id("frv", 1));
    let (profile, assignment) = (id("prv", 0), id("asr", 0));
    let generation = format!("gen/{cluster}/{}/{}", id("ing", 0), "v".repeat(26));
    let digest = "sha256(convert_to('d', 'UTF8'))";
    let ciphertext = format!("vault:v1:{}", "A".repeat(64));
    let token = "a".repeat(26);
    let source = |head: &str, kind: &str, subject: &str, revision: &str| {
        format!(
            "INSERT INTO release_source VALUES ('{release}', '{head}', '{kind}', '{subject}',
                 '{revision}', 1)"
        )
    };
    let head = |head: &str, kind: &str, subject: &str, layer: &str, revision: &str| {
        format!(
            "INSERT INTO head (id, kind, cluster_id, subject, layer, revision_id, etag_token)
             VALUES ('{head}', '{kind}', '{cluster}', '{subject}', {layer}, '{revision}', '{token}')"
        )
    };
    let reproduction = |revision: &str| {
        format!(
            "INSERT INTO dependency_reproduction VALUES ('{release}', '{machine}', '{revision}', 0,
                 {digest}, 'doc[0]/a', 'a/b', 1, '{generation}', 'c')"
        )
    };
    let (frg0, frg1) = (id("frg", 0), id("frg", 1));
    let (prf, asg) = (id("prf", 0), id("asg", 0));
    vec![
        ("revisions", super::revisions::all()),
        (
            "operation",
            format!(
                "INSERT INTO operation (id, kind, state, cluster_id, draft_id, draft_revision,
                     created_by, created_role, epoch, created_at, owner, owner_gen, owner_epoch,
                     lease_until)
                 VALUES ('{op}', 'publish', 'running', '{cluster}', '{draft}', 1, '{who}',
                     'publisher', '{epoch}', now(), 'i/1/a', 1, '{epoch}', now())"
            ),
        ),
        (
            "observation",
            format!(
                "INSERT INTO observation_start (id, machine_id, basis, purpose, operation_id,
                     publication_generation, endpoint, controller, epoch, started_at)
                 VALUES ('{obs}', '{machine}', 1, 'publication', '{op}', 1, '10.0.0.1:50000',
                     'i/1/a', '{epoch}', now());
                 INSERT INTO observation (id, machine_id, revision, unread, recorded_at)
                 VALUES ('{obs}', '{machine}', 2, '{{}}', now())"
            ),
        ),
        (
            "statuses",
            format!(
                "INSERT INTO dependency_status (id, provider, provider_object, version, created,
                     class, observed_from, recorded_at)
                 VALUES ('{}', 'kv', '{generation}', 1, 'c', 'retained', now(), now()),
                        ('{}', 'transit', 'artifact', 1, 'k', 'retained', now(), now()),
                        ('{}', 'transit', 'artifact', 2, 'k', 'retained', now(), now())",
                id("dep", 0),
                id("dep", 1),
                id("dep", 2)
            ),
        ),
        (
            "release",
            format!(
                "INSERT INTO release (id, cluster_id, draft_id, draft_revision, operation_id,
                     digest, contract, machinery_version, machinery_checksum, kubernetes_version,
                     published_by, published_role, epoch, published_at)
                 VALUES ('{release}', '{cluster}', '{draft}', 1, '{op}', {digest}, 'v1.13',
                     'v1.13.6', 'h1:x', 'v1.36.0', '{who}', 'publisher', '{epoch}', now())"
            ),
        ),
        (
            "machine",
            format!(
                "INSERT INTO release_machine (release_id, machine_id, import_base_revision_id,
                     assignment_head_id, assignment_revision_id, machine_type, platform,
                     configuration_digest, ciphertext, ciphertext_digest, key_name, key_version,
                     review_configuration, validation_result, validated_at, observation_id)
                 VALUES ('{release}', '{machine}', '{base}', '{asg}', '{assignment}', 'worker',
                     'metal', {digest}, '{ciphertext}',
                     sha256(convert_to('{ciphertext}', 'UTF8')), 'artifact', 1, 'r', 'passed',
                     now(), '{obs}')"
            ),
        ),
        (
            "selected fragment",
            source(&frg0, "fragment", "f", &fragment),
        ),
        ("pinned fragment", source(&frg1, "fragment", "g", &pinned)),
        ("profile", source(&prf, "profile", "p", &profile)),
        (
            "assignment",
            source(&asg, "assignment", &machine, &assignment),
        ),
        ("base's occurrence", reproduction(&base)),
        ("fragment's occurrence", reproduction(&fragment)),
        (
            "effective",
            format!(
                "INSERT INTO dependency_effective
                 VALUES ('{release}', '{machine}', 'a/b', 1, '{generation}', 'c')"
            ),
        ),
        (
            "encryption",
            format!(
                "INSERT INTO dependency_encryption
                 VALUES ('{release}', '{machine}', 'artifact', 1, 'k')"
            ),
        ),
        (
            "heads",
            [
                head(&frg0, "fragment", "f", "'cluster'", &fragment),
                head(&frg1, "fragment", "g", "'cluster'", &pinned),
                head(&prf, "profile", "p", "NULL", &profile),
                head(&asg, "assignment", &machine, "NULL", &assignment),
            ]
            .join(";"),
        ),
    ]
}

/// Commits the statements in one transaction; the SQLSTATE, the constraint and the text of
/// what refused them.
async fn commit(statements: &[(&str, String)]) -> Result<(), (String, String, String)> {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    support::run(&client, "BEGIN").await;
    for (_, statement) in statements {
        support::run(&client, statement).await;
    }
    client.batch_execute("COMMIT").await.map_err(|error| {
        let error = error.as_db_error().expect("the server's answer");
        (
            error.code().code().to_owned(),
            error.constraint().unwrap_or("").to_owned(),
            error.message().to_owned(),
        )
    })
}

#[tokio::test]
async fn a_complete_release_is_committed() {
    assert_eq!(commit(&release()).await, Ok(()));
}

/// A statement's name, what is changed in it (or it is left out), and the refusal's words.
type Case<'a> = (&'a str, Option<(&'a str, &'a str)>, &'a str);

#[tokio::test]
async fn an_incomplete_release_is_refused_at_commit() {
    let ibr1 = id("ibr", 1);
    let cases: [Case<'_>; 8] = [
        ("pinned fragment", None, "pinned fragment is not among"),
        ("selected fragment", None, "selected name is not among"),
        ("profile", None, "selected name is not among"),
        ("assignment", None, "not its assignment source"),
        ("encryption", None, "no encryption dependency"),
        (
            "encryption",
            Some(("'artifact', 1", "'artifact', 2")),
            "no encryption dependency",
        ),
        (
            "fragment's occurrence",
            Some((&id("frv", 0), &ibr1)),
            "not in its machine's composition",
        ),
        (
            "observation",
            Some(("'publication', '", "'recovery', '")),
            "observation is not of its own publication",
        ),
    ];
    for (name, change, says) in cases {
        let mut statements = release();
        let at = statements
            .iter()
            .position(|(known, _)| *known == name)
            .expect("a statement of that name");
        match change {
            None => drop(statements.remove(at)),
            Some((from, to)) => {
                let mut changed = statements[at].1.replace(from, to);
                if name == "observation" {
                    changed =
                        changed.replace(&format!("'{}', 1, '10", id("op", 0)), "NULL, NULL, '10");
                }
                assert_ne!(changed, statements[at].1, "{name}");
                statements[at].1 = changed;
            }
        }
        let (code, constraint, message) = commit(&statements).await.expect_err(name);
        assert_eq!(
            (code.as_str(), constraint.as_str()),
            ("BW003", "release_complete"),
            "{name}"
        );
        assert!(message.contains(says), "{name}: {message}");
    }
}

#[tokio::test]
async fn an_effective_dependency_needs_its_reproduction_dependency() {
    let mut statements = release();
    statements.retain(|(name, _)| !name.ends_with("occurrence"));
    let (code, _, message) = commit(&statements).await.expect_err("it is refused");
    assert_eq!(code, "BW003");
    assert!(message.contains("no reproduction dependency"), "{message}");
}

#[tokio::test]
async fn a_release_covers_a_machine_and_takes_no_row_later() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    for (_, statement) in release().iter().filter(|(name, _)| {
        matches!(
            *name,
            "revisions" | "operation" | "observation" | "statuses" | "heads"
        )
    }) {
        support::run(&client, &format!("BEGIN; {statement}; COMMIT")).await;
    }
    let mut parts = release();
    parts.retain(|(name, _)| {
        !matches!(
            *name,
            "revisions" | "operation" | "observation" | "statuses" | "heads"
        )
    });
    let refused = support::refused(&client, &parts[0].1).await;
    assert_eq!(refused, ("BW003".into(), "release_complete".into()));
    // One occurrence comes after the commit of the others.
    let late = parts
        .iter()
        .position(|(name, _)| *name == "fragment's occurrence")
        .expect("an occurrence");
    let (_, late) = parts.remove(late);
    let whole: Vec<_> = parts.into_iter().map(|(_, statement)| statement).collect();
    support::run(&client, &format!("BEGIN; {}; COMMIT", whole.join(";"))).await;
    let refused = support::refused(&client, &late).await;
    assert_eq!(
        refused,
        ("BW002".into(), "dependency_reproduction_same_writer".into())
    );
}
