//! KV calls that several identities make: Talos access, and the two forms of stored data.
//!
//! Called by the clients of ingestion, compiler and executor. Never in this module: a read
//! without a version but the one of Talos access, a write that is not create-only.

use bronzeward_core::generation::{self, GenerationPath};
use bronzeward_core::id::ClusterId;
use bronzeward_core::secret::{Plaintext, Value};
use bronzeward_engine::ports::provider::{
    AccessVersion, Creation, Failure, Generation, TalosAccess,
};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::answer;
use crate::transit::{self, Wiped};
use crate::transport::{Reply, Transport};

/// The provider keeps a value in one entry of 1 MiB, measured in its own escaped form, and
/// answers a larger one by a status that says nothing. Some bytes are the frame's.
const VALUE_LIMIT: usize = 1_048_000;

#[derive(Deserialize)]
struct Read<T> {
    data: T,
    metadata: VersionBody,
}

#[derive(Deserialize)]
struct VersionBody {
    version: u64,
    created_time: String,
}

#[derive(Deserialize)]
struct TalosData {
    talosconfig: Wiped,
}

/// What ingestion writes and the compiler reads, and nothing more beside it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GenerationData {
    kind: String,
    value: Wiped,
}

/// Reads the answer's data in its form. An answer that is whole but holds another form is an
/// integrity failure, not an unreadable answer.
fn read<T: DeserializeOwned>(reply: &Reply) -> Result<Read<T>, Failure> {
    match transit::data::<Read<T>>(reply) {
        Err(Failure::Unreadable) if transit::data::<Read<IgnoredAny>>(reply).is_ok() => {
            Err(Failure::Integrity)
        }
        read => read,
    }
}

/// A version whose identity can be recorded.
fn identified<T>(read: Read<T>) -> Result<(T, u64, String), Failure> {
    let VersionBody {
        version,
        created_time,
    } = read.metadata;
    if version < 1 || created_time.is_empty() {
        return Err(Failure::Unreadable);
    }
    Ok((read.data, version, created_time))
}

/// The latest version of a cluster's Talos access: the only read that names no version.
pub(crate) async fn talos_access(
    transport: &Transport,
    cluster: ClusterId,
) -> Result<TalosAccess, Failure> {
    let path = format!("access/talos/{cluster}");
    let reply = transport
        .get("talos-access", &format!("secret/data/{path}"))
        .await?;
    let (data, version, created) = identified(read::<TalosData>(&reply)?)?;
    let talosconfig = plaintext(data.talosconfig);
    Ok(TalosAccess {
        talosconfig,
        version: AccessVersion {
            path,
            version,
            created,
        },
    })
}

/// One generation's pinned version. Version 0 would read the latest (B13) and is refused.
pub(crate) async fn generation(
    transport: &Transport,
    path: &GenerationPath,
    version: u64,
) -> Result<Generation, Failure> {
    if version < 1 {
        return Err(Failure::Refused);
    }
    let path = format!("secret/data/{path}");
    let reply = transport.get_version("generation", &path, version).await?;
    let (data, given, created) = identified(read::<GenerationData>(&reply)?)?;
    if given != version {
        return Err(Failure::Unreadable);
    }
    let value = generation::read_stored(&data.kind, plaintext(data.value));
    let value = value.map_err(|_| Failure::Integrity)?;
    Ok(Generation { value, created })
}

fn plaintext(mut text: Wiped) -> Plaintext {
    Plaintext::new(std::mem::take(&mut *text.0))
}

#[derive(Serialize)]
struct Create<'a> {
    options: CreateOnly,
    data: Stored<'a>,
}

#[derive(Serialize)]
struct CreateOnly {
    cas: u8,
}

#[derive(Serialize)]
struct Stored<'a> {
    kind: &'static str,
    value: &'a str,
}

#[derive(Deserialize)]
struct Created {
    version: u64,
    created_time: String,
    deletion_time: String,
    destroyed: bool,
}

/// Writes a generation, once. Both the policy and `cas: 0` are needed: with the policy
/// alone, writers racing for a new path all pass (B9).
pub(crate) async fn create(
    transport: &Transport,
    path: &GenerationPath,
    value: &Value,
) -> Creation {
    let text = generation::stored_text(value);
    let size = escaped_length(text.expose());
    if size > VALUE_LIMIT {
        return Creation::Refused(Failure::TooLarge);
    }
    let body = Create {
        options: CreateOnly { cas: 0 },
        data: Stored {
            kind: value.kind().name(),
            value: text.expose(),
        },
    };
    match transport
        .post("create", &format!("secret/data/{path}"), &body, size + 256)
        .await
    {
        Ok(reply) if reply.status == 200 => created(&reply),
        Ok(reply) => answer::creation(&reply),
        Err(failure @ (Failure::Credential | Failure::TooLarge | Failure::Refused)) => {
            Creation::Refused(failure)
        }
        Err(failure) => Creation::Unknown(failure),
    }
}

/// A create-only write is version 1 and stays; a deletion time would mean that the mount or
/// the path deletes versions by age (B29), and no release may depend on such a version.
fn created(reply: &Reply) -> Creation {
    match transit::data::<Created>(reply) {
        Ok(v) if v.created_time.is_empty() => Creation::Unknown(Failure::Unreadable),
        Ok(v) if v.version == 1 && v.deletion_time.is_empty() && !v.destroyed => {
            Creation::Created {
                created: v.created_time,
            }
        }
        Ok(_) => Creation::Unknown(Failure::Integrity),
        Err(failure) => Creation::Unknown(failure),
    }
}

/// How long the provider's own escaping makes a string (B24).
fn escaped_length(text: &str) -> usize {
    let length = |c: char| match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => 6,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    };
    text.chars().map(length).sum()
}
