//! A Talos node, as the workflows see it: what can be observed of it, and the one
//! request that may change it (EaR 3.5, PA §3.3).
//!
//! Observations, publication and ingestion hold a [`NodeReader`]; only dispatch holds a
//! [`NodeWriter`], whose request takes a committed attempt by value. Both dial the
//! endpoint they are given and nothing else. Never in this module: a text that a node
//! sent, a method that could change a node beside `apply`, or a credential that can be
//! shown.

use std::future::Future;
use std::time::Duration;

use bronzeward_core::attempt::ResponseClass;
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::inventory::Endpoint;
use bronzeward_core::observation::{
    self, AccessVersion, ConfigurationRead, Health, NodeIdentity, Read, RunningVersion, Values,
};
use zeroize::Zeroizing;

/// The three parts of a talosconfig that are used (PA §3.3), DER-encoded. It lives as
/// long as the one use it was read for, and has no form that could be shown or copied:
///
/// ```compile_fail
/// # use bronzeward_engine::ports::node::TalosAccess;
/// fn shown(access: &TalosAccess) -> String { format!("{access:?}") }
/// ```
///
/// ```
/// # use bronzeward_engine::ports::node::TalosAccess;
/// fn shown(access: &TalosAccess) -> String { format!("{:?}", access.authorities().len()) }
/// ```
pub struct TalosAccess {
    authorities: Vec<Vec<u8>>,
    certificates: Vec<Vec<u8>>,
    key: Zeroizing<Vec<u8>>,
}

impl TalosAccess {
    /// `authorities` are the only roots that a node's certificate may lead to;
    /// `certificates` is the client's chain, its own first; `key` is its PKCS#8 key.
    pub fn new(authorities: Vec<Vec<u8>>, certificates: Vec<Vec<u8>>, key: Vec<u8>) -> Self {
        Self {
            authorities,
            certificates,
            key: Zeroizing::new(key),
        }
    }

    pub fn authorities(&self) -> &[Vec<u8>] {
        &self.authorities
    }

    pub fn certificates(&self) -> &[Vec<u8>] {
        &self.certificates
    }

    /// The private key. Whoever calls this answers for where it goes.
    pub fn expose_key(&self) -> &[u8] {
        &self.key
    }
}

/// A document that is no usable talosconfig: which member failed, and by what rule.
/// Never a text of the document or of its parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a usable talosconfig: {member} {rule}")]
pub struct NotUsable {
    pub member: &'static str,
    pub rule: &'static str,
}

/// What a call came to, from a closed list: a gRPC status by name, or one of the
/// failures of our own side. Safe to store and to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeCode(&'static str);

impl NodeCode {
    /// No connection was made.
    pub const DIAL_FAILED: NodeCode = NodeCode("dial-failed");
    /// The handshake failed: another authority, or a certificate that one side refused.
    pub const TLS_FAILED: NodeCode = NodeCode("tls-failed");
    /// No answer within our deadline.
    pub const NO_ANSWER: NodeCode = NodeCode("no-answer");
    /// The connection ended, or carried something that is not gRPC.
    pub const CONNECTION_LOST: NodeCode = NodeCode("connection-lost");
    /// An answer that is not what the call answers.
    pub const MALFORMED: NodeCode = NodeCode("malformed");

    const OURS: [NodeCode; 5] = [
        Self::DIAL_FAILED,
        Self::TLS_FAILED,
        Self::NO_ANSWER,
        Self::CONNECTION_LOST,
        Self::MALFORMED,
    ];

    const GRPC: [&'static str; 17] = [
        "ok",
        "cancelled",
        "unknown",
        "invalid-argument",
        "deadline-exceeded",
        "not-found",
        "already-exists",
        "permission-denied",
        "resource-exhausted",
        "failed-precondition",
        "aborted",
        "out-of-range",
        "unimplemented",
        "internal",
        "unavailable",
        "data-loss",
        "unauthenticated",
    ];

    /// The name of a gRPC status; a number that gRPC does not have is malformed.
    pub fn grpc(number: i32) -> NodeCode {
        usize::try_from(number)
            .ok()
            .and_then(|index| Self::GRPC.get(index))
            .map_or(Self::MALFORMED, |name| NodeCode(name))
    }

    /// A stored code, read back.
    pub fn parse(text: &str) -> Option<NodeCode> {
        Self::OURS
            .iter()
            .map(|code| code.0)
            .chain(Self::GRPC)
            .find(|name| *name == text)
            .map(NodeCode)
    }

    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The gRPC status by number, as responses are recorded: the one that Go's client would
    /// have made where the failure is ours.
    pub fn number(self) -> i32 {
        let ours = match self {
            Self::NO_ANSWER => "deadline-exceeded",
            Self::MALFORMED => "internal",
            Self::DIAL_FAILED | Self::TLS_FAILED | Self::CONNECTION_LOST => "unavailable",
            NodeCode(name) => name,
        };
        (0_i32..)
            .zip(Self::GRPC)
            .find(|(_, name)| *name == ours)
            .map_or(2, |(number, _)| number)
    }
}

/// Why a value was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnreadClass {
    /// Unavailable or DeadlineExceeded, whichever side ended the call, and every failure
    /// of the connection: how an endpoint that does not answer and a certificate that the
    /// node does not accept look (PA §3.3).
    Unreachable,
    /// The node accepted the certificate and not the call.
    Denied,
    /// The node has no such value. (For the SMBIOS UUID that is a reading, not this.)
    Absent,
    /// Any other status of the node's.
    Failed,
    /// The node answered and its answer is not what the call answers.
    Malformed,
}

/// A value that was asked for and not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unread {
    pub class: UnreadClass,
    pub code: NodeCode,
}

/// What an ingestion fails with when a read fails (PA §3.3 "Identity before use" and
/// "Failure").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFailure {
    /// `talos-access-unavailable`.
    AccessUnavailable,
    /// `machine-identity-mismatch`.
    IdentityUnread,
}

impl Unread {
    /// For one of the three identity reads: any error but Unavailable and
    /// DeadlineExceeded is an identity that could not be read.
    pub const fn of_identity(self) -> ReadFailure {
        match self.class {
            UnreadClass::Unreachable => ReadFailure::AccessUnavailable,
            UnreadClass::Denied
            | UnreadClass::Absent
            | UnreadClass::Failed
            | UnreadClass::Malformed => ReadFailure::IdentityUnread,
        }
    }

    /// For the configuration: a credential that may not read it is one Talos refused,
    /// and no other problem of PA §9.4 names a configuration that could not be read.
    pub const fn of_configuration(self) -> ReadFailure {
        ReadFailure::AccessUnavailable
    }

    /// As an observation records it.
    pub const fn cause(self) -> observation::Unread {
        match self.class {
            UnreadClass::Unreachable => observation::Unread::TalosAccessUnavailable,
            UnreadClass::Denied | UnreadClass::Failed => observation::Unread::Refused,
            UnreadClass::Absent => observation::Unread::Absent,
            UnreadClass::Malformed => observation::Unread::Malformed,
        }
    }

    /// The same for the configuration, where a refused credential is a cause of
    /// `talos-access-unavailable`.
    pub const fn cause_of_configuration(self) -> observation::Unread {
        match self.class {
            UnreadClass::Denied => observation::Unread::TalosAccessUnavailable,
            UnreadClass::Unreachable
            | UnreadClass::Absent
            | UnreadClass::Failed
            | UnreadClass::Malformed => self.cause(),
        }
    }
}

/// One value of an observation.
pub type Reading<T> = Result<T, Unread>;

/// The configuration in force: its exact bytes, wiped on drop, and what is recorded of
/// it. The resource's version is in the node's memory and restarts at 1 when the node
/// reboots (T7), so it is evidence only beside the creation time. No Debug, Display or
/// Clone.
pub struct NodeConfiguration {
    bytes: Zeroizing<Vec<u8>>,
    read: ConfigurationRead,
}

impl NodeConfiguration {
    pub fn new(bytes: Vec<u8>, resource_version: String, resource_created: String) -> Self {
        Self {
            read: ConfigurationRead {
                digest: ConfigDigest::of(&bytes),
                resource_version,
                resource_created,
            },
            bytes: Zeroizing::new(bytes),
        }
    }

    pub const fn read(&self) -> &ConfigurationRead {
        &self.read
    }

    /// The bytes, for the reader of an ingestion to wrap at once.
    pub fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes)
    }
}

/// What to read beside the identity and the running version, which are always read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub configuration: bool,
    pub health: bool,
}

impl Asked {
    pub const EVERYTHING: Asked = Asked {
        configuration: true,
        health: true,
    };
    pub const CONFIGURATION: Asked = Asked {
        configuration: true,
        health: false,
    };
    pub const IDENTITY: Asked = Asked {
        configuration: false,
        health: false,
    };
}

/// How long to wait: for a connection with its handshake, and for each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    pub connect: Duration,
    pub call: Duration,
}

/// What one connection showed. Identity is read first, so that a configuration is used
/// only beside the identity that the same connection showed. Once a read finds the node
/// unreachable, the rest is unread for the same cause and not called.
pub struct NodeObservation {
    /// All three reads of it, or why the first that failed did. A node that reports no
    /// SMBIOS UUID is a reading like any other.
    pub identity: Reading<NodeIdentity>,
    pub version: Reading<RunningVersion>,
    /// `None` where it was not asked for.
    pub configuration: Option<Reading<NodeConfiguration>>,
    pub health: Option<Reading<Health>>,
}

impl NodeObservation {
    /// An observation of which nothing could be read.
    pub fn unread(asked: Asked, unread: Unread) -> Self {
        Self {
            identity: Err(unread),
            version: Err(unread),
            configuration: asked.configuration.then_some(Err(unread)),
            health: asked.health.then_some(Err(unread)),
        }
    }

    /// What is recorded of it, beside the access it was made with; the configuration's
    /// bytes end here.
    pub fn into_values(self, access: AccessVersion) -> Values {
        Values {
            access: Read::Value(access),
            identity: recorded(self.identity, Unread::cause),
            running_version: recorded(self.version, Unread::cause),
            configuration: self.configuration.map_or(NOT_ASKED, |reading| {
                recorded(
                    reading.map(|configuration| configuration.read),
                    Unread::cause_of_configuration,
                )
            }),
            health: self
                .health
                .map_or(NOT_ASKED_HEALTH, |reading| recorded(reading, Unread::cause)),
        }
    }
}

const NOT_ASKED: Read<ConfigurationRead> = Read::Unread(observation::Unread::NotAsked);
const NOT_ASKED_HEALTH: Read<Health> = Read::Unread(observation::Unread::NotAsked);

fn recorded<T>(reading: Reading<T>, cause: fn(Unread) -> observation::Unread) -> Read<T> {
    match reading {
        Ok(value) => Read::Value(value),
        Err(unread) => Read::Unread(cause(unread)),
    }
}

/// The read-only client. Its calls are a closed list, and none of them changes a node.
pub trait NodeReader: Send + Sync + 'static {
    /// Reads a talosconfig document in memory. Its endpoints and nodes are ignored.
    fn access(&self, talosconfig: &[u8]) -> Result<TalosAccess, NotUsable>;

    /// Observes the node at `endpoint` over one connection.
    fn observe(
        &self,
        access: &TalosAccess,
        endpoint: Endpoint,
        asked: Asked,
        limits: ReadLimits,
    ) -> impl Future<Output = NodeObservation> + Send;
}

/// What came of a request: its class and its code, and no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplyAnswer {
    pub class: ResponseClass,
    pub code: NodeCode,
}

/// The mutating client: ApplyConfiguration in mode no-reboot, once, and nothing else.
pub trait NodeWriter: Send + Sync + 'static {
    /// The proof that an attempt was committed. The engine binds it to the type that only
    /// `transact` can make, so that no request is sent on another path (EaR 3.3); the
    /// adapter knows nothing about it and consumes it.
    type Permit: Send + 'static;

    /// Sends the request on a connection of its own and waits at most `deadline`, dialling
    /// included. The end of the wait is not the end of the request: it may still land.
    fn apply(
        &self,
        permit: Self::Permit,
        access: &TalosAccess,
        endpoint: Endpoint,
        configuration: &[u8],
        deadline: Duration,
    ) -> impl Future<Output = ApplyAnswer> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_back_as_it_was_written() {
        for number in 0..17 {
            let code = NodeCode::grpc(number);
            assert_eq!(NodeCode::parse(code.as_str()), Some(code));
            assert_eq!(code.number(), number);
        }
        for code in NodeCode::OURS {
            assert_eq!(NodeCode::parse(code.as_str()), Some(code));
        }
        assert_eq!(NodeCode::grpc(-1), NodeCode::MALFORMED);
        assert_eq!(NodeCode::grpc(17), NodeCode::MALFORMED);
        assert_eq!(NodeCode::parse("rpc error: code = Unknown"), None);
        assert_eq!(NodeCode::NO_ANSWER.number(), 4);
        assert_eq!(NodeCode::MALFORMED.number(), 13);
        assert_eq!(NodeCode::DIAL_FAILED.number(), 14);
    }

    #[test]
    fn only_unreachable_is_not_an_identity_failure() {
        for (class, failure) in [
            (UnreadClass::Unreachable, ReadFailure::AccessUnavailable),
            (UnreadClass::Denied, ReadFailure::IdentityUnread),
            (UnreadClass::Absent, ReadFailure::IdentityUnread),
            (UnreadClass::Failed, ReadFailure::IdentityUnread),
            (UnreadClass::Malformed, ReadFailure::IdentityUnread),
        ] {
            let unread = Unread {
                class,
                code: NodeCode::MALFORMED,
            };
            assert_eq!(unread.of_identity(), failure);
            assert_eq!(unread.of_configuration(), ReadFailure::AccessUnavailable);
        }
    }
}
