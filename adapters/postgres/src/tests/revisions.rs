//! Revisions that a release can be made of: two import bases, two fragments, a profile
//! that pins the second and an assignment that selects the first and the profile.

use super::support::{epoch, id};

const DIGEST: &str = "sha256(convert_to('d', 'UTF8'))";
const COLUMNS: &str = "draft_id, author_id, author_role, epoch";

fn by() -> String {
    format!(
        "'{}', '{}', 'author', '{}'",
        id("drf", 0),
        id("idn", 0),
        epoch()
    )
}

/// The declaration of `a/b` in a revision.
pub fn reference(revision: &str) -> String {
    let (cluster, claim) = (id("cl", 0), id("ing", 0));
    format!(
        "INSERT INTO reference_row (revision_id, name, kind, version, cluster_id,
             generation_path, keyed_digest, digest_key)
         VALUES ('{revision}', 'a/b', 'string', 1, '{cluster}', 'gen/{cluster}/{claim}/{}',
             {DIGEST}, 'transit/digest@v1')",
        "v".repeat(26)
    )
}

pub fn fragment(number: u8) -> String {
    format!(
        "INSERT INTO fragment_revision (id, cluster_id, name, layer, document,
             document_sha256, canonical, embedded, claim_id, {COLUMNS})
         VALUES ('{}', '{}', 'f', 'cluster', 'd', {DIGEST}, 'd', '[]', '{}', {})",
        id("frv", number),
        id("cl", 0),
        id("ing", 0),
        by()
    )
}

pub fn import_base(number: u8) -> String {
    format!(
        "INSERT INTO import_base_revision (id, cluster_id, machine_id, kind, document,
             document_sha256, canonical, embedded, baseline_ciphertext,
             baseline_keyed_digest, baseline_digest_key, configuration_digest, claim_id,
             {COLUMNS})
         VALUES ('{}', '{}', '{}', 'import', 'd', {DIGEST}, 'd', '[]', 'vault:v1:{}',
             {DIGEST}, 'transit/digest@v1', {DIGEST}, '{}', {})",
        id("ibr", number),
        id("cl", 0),
        id("mch", 0),
        "A".repeat(64),
        id("ing", 0),
        by()
    )
}

pub fn profile(number: u8) -> String {
    format!(
        "INSERT INTO profile_revision (id, cluster_id, name, {COLUMNS})
         VALUES ('{}', '{}', 'p', {})",
        id("prv", number),
        id("cl", 0),
        by()
    )
}

pub fn assignment(number: u8) -> String {
    format!(
        "INSERT INTO assignment_revision (id, cluster_id, machine_id, {COLUMNS})
         VALUES ('{}', '{}', '{}', {})",
        id("asr", number),
        id("cl", 0),
        id("mch", 0),
        by()
    )
}

/// All of them, for one transaction.
pub fn all() -> String {
    let (profile_id, assignment_id) = (id("prv", 0), id("asr", 0));
    [
        import_base(0),
        reference(&id("ibr", 0)),
        import_base(1),
        reference(&id("ibr", 1)),
        fragment(0),
        reference(&id("frv", 0)),
        fragment(1),
        profile(0),
        format!(
            "INSERT INTO profile_pin VALUES ('{profile_id}', 0, '{}')",
            id("frv", 1)
        ),
        assignment(0),
        format!("INSERT INTO assignment_profile VALUES ('{assignment_id}', 0, 'p')"),
        format!("INSERT INTO assignment_fragment VALUES ('{assignment_id}', 'cluster', 0, 'f')"),
    ]
    .join(";")
}
