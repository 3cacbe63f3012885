//! Request and response bodies, one file per resource (PA §9.3).
//!
//! `http` converts between these and core types by hand; `client` sends and reads
//! them. Requests refuse unknown members; responses do not, since v1 only ever adds.
//! Never here: a digest of a configuration, artifact or release, a generation path,
//! ciphertext, or a response's text (PA choice §17.38).

pub mod act;
pub mod approval;
pub mod cluster;
pub mod common;
pub mod dependency;
pub mod draft;
pub mod identity;
pub mod ingestion;
pub mod machine;
pub mod operation;
pub mod plan;
pub mod problem;
pub mod recovery;
pub mod release;
pub mod server;
pub mod source;
pub mod timeline;

/// Every member name a request body declares, sorted: the names a refusal may
/// quote. A test holds it to the schemas.
pub(crate) const MEMBERS: &[&str] = &[
    "backup",
    "checkValiditySeconds",
    "cluster",
    "contract",
    "declarations",
    "document",
    "draft",
    "embedded",
    "encoding",
    "end",
    "endpoint",
    "expiresInSeconds",
    "facts",
    "family",
    "format",
    "fragments",
    "generation",
    "identity",
    "iss",
    "kind",
    "layer",
    "machine",
    "marks",
    "maxAttempts",
    "maxObservationAgeSeconds",
    "mode",
    "name",
    "operation",
    "path",
    "platform",
    "profiles",
    "reason",
    "references",
    "releaseId",
    "restored",
    "review",
    "scopes",
    "serial",
    "smbiosUuid",
    "source",
    "staging",
    "start",
    "stoppedAt",
    "sub",
    "takenAt",
    "talosClusterId",
    "talosEndpoint",
    "talosNodeId",
    "title",
    "to",
    "transportDeadlineSeconds",
    "verificationDeadlineSeconds",
    "version",
];
