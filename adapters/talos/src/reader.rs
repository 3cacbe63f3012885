//! The read-only client: one connection per observation, two calls (PA §3.3, EaR 3.5).
//!
//! Every observation and every ingestion goes through here. The generated clients that
//! this module can name have no call that changes a node, and the connection lets no
//! other through. Values that a node sends are taken only in the form that such a value
//! has; anything else is malformed.

use std::future::Future;
use std::time::Duration;

use bronzeward_core::inventory::{Endpoint, SmbiosUuid, TalosClusterId, TalosNodeId};
use bronzeward_core::observation::{Health, NodeIdentity, RunningVersion};
use bronzeward_engine::ports::node::{
    Asked, NodeCode, NodeConfiguration, NodeObservation, NodeReader, NotUsable, ReadLimits,
    Reading, TalosAccess, Unread, UnreadClass,
};
use prost::Message;
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::connection::{Connection, MAX_MESSAGE_BYTES, Outcome, READ_CALLS};
use crate::wire::read::cosi::resource::state_client::StateClient;
use crate::wire::read::cosi::resource::{GetRequest, GetResponse, Metadata};
use crate::wire::read::machine::VersionResponse;
use crate::wire::read::machine::machine_service_client::MachineServiceClient;
use crate::wire::read::specs;
use crate::{access, classify, dial};

/// The read-only client. It holds nothing: each observation brings its own access.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOnlyTalos;

impl NodeReader for ReadOnlyTalos {
    fn access(&self, talosconfig: &[u8]) -> Result<TalosAccess, NotUsable> {
        access::parse(talosconfig)
    }

    async fn observe(
        &self,
        access: &TalosAccess,
        endpoint: Endpoint,
        asked: Asked,
        limits: ReadLimits,
    ) -> NodeObservation {
        let connected = timeout(limits.connect, async {
            let stream = dial::dial(access, endpoint).await?;
            Connection::open(stream, endpoint, READ_CALLS).await
        });
        let connection = match connected.await {
            Ok(Ok(connection)) => connection,
            Ok(Err(code)) => return NodeObservation::unread(asked, classify::unread(code)),
            Err(_) => return NodeObservation::unread(asked, classify::unread(NodeCode::NO_ANSWER)),
        };
        Session {
            connection,
            call: limits.call,
            lost: None,
        }
        .observe(asked)
        .await
    }
}

/// Which resource is read: namespace, type and id, exactly as the node names them.
struct Resource {
    namespace: &'static str,
    kind: &'static str,
    id: &'static str,
}

const SYSTEM_INFORMATION: Resource = Resource {
    namespace: "hardware",
    kind: "SystemInformations.hardware.talos.dev",
    id: "systeminformation",
};
const IDENTITY: Resource = Resource {
    namespace: "cluster",
    kind: "Identities.cluster.talos.dev",
    id: "local",
};
const CLUSTER: Resource = Resource {
    namespace: "cluster",
    kind: "Infos.cluster.talos.dev",
    id: "current",
};
/// The configuration in force. The saved one may not exist (T8) and is never read.
const CONFIGURATION: Resource = Resource {
    namespace: "config",
    kind: "MachineConfigs.config.talos.dev",
    id: "v1alpha1",
};
const STATUS: Resource = Resource {
    namespace: "runtime",
    kind: "MachineStatuses.runtime.talos.dev",
    id: "machine",
};

/// The years 1970 to 9999, in which a time has one text form.
const EARLIEST_SECONDS: i64 = 0;
const LATEST_SECONDS: i64 = 253_402_300_800;

const MALFORMED: Unread = Unread {
    class: UnreadClass::Malformed,
    code: NodeCode::MALFORMED,
};

struct Session {
    connection: Connection,
    call: Duration,
    /// Set by the first read that found the node unreachable.
    lost: Option<Unread>,
}

impl Session {
    async fn observe(mut self, asked: Asked) -> NodeObservation {
        NodeObservation {
            identity: self.identity().await,
            version: self.version().await,
            configuration: if asked.configuration {
                Some(self.configuration().await)
            } else {
                None
            },
            health: if asked.health {
                Some(self.health().await)
            } else {
                None
            },
        }
    }

    async fn identity(&mut self) -> Reading<NodeIdentity> {
        Ok(NodeIdentity {
            smbios_uuid: self.smbios_uuid().await?,
            node_id: self.node_id().await?,
            talos_cluster: self.cluster_id().await?,
        })
    }

    /// Absent, or present without a UUID: the node reports none.
    async fn smbios_uuid(&mut self) -> Reading<Option<SmbiosUuid>> {
        let spec: specs::SystemInformation = match self.read(&SYSTEM_INFORMATION).await {
            Ok((spec, _)) => spec,
            Err(unread) if unread.class == UnreadClass::Absent => return Ok(None),
            Err(unread) => return Err(unread),
        };
        if spec.uuid.is_empty() {
            return Ok(None);
        }
        SmbiosUuid::parse(&spec.uuid)
            .map(Some)
            .map_err(|_| MALFORMED)
    }

    async fn node_id(&mut self) -> Reading<TalosNodeId> {
        let (spec, _) = self.read::<specs::Identity>(&IDENTITY).await?;
        TalosNodeId::parse(&spec.node_id).map_err(|_| MALFORMED)
    }

    async fn cluster_id(&mut self) -> Reading<TalosClusterId> {
        let (spec, _) = self.read::<specs::ClusterInfo>(&CLUSTER).await?;
        TalosClusterId::parse(&spec.cluster_id).map_err(|_| MALFORMED)
    }

    async fn configuration(&mut self) -> Reading<NodeConfiguration> {
        let (spec, metadata) = self.read::<specs::MachineConfig>(&CONFIGURATION).await?;
        let bytes = spec.yaml_marshalled;
        let version = metadata.version.parse::<i64>().ok().filter(|it| *it > 0);
        let created = metadata.created.filter(|at| {
            let years = EARLIEST_SECONDS..LATEST_SECONDS;
            years.contains(&at.seconds) && (0..1_000_000_000).contains(&at.nanos)
        });
        let (Some(version), Some(created)) = (version, created) else {
            drop(Zeroizing::new(bytes));
            return Err(MALFORMED);
        };
        Ok(NodeConfiguration::new(
            bytes,
            version.to_string(),
            created.to_string(),
        ))
    }

    async fn health(&mut self) -> Reading<Health> {
        use specs::machine_status::Stage;
        let (spec, _) = self.read::<specs::MachineStatus>(&STATUS).await?;
        let stage = Stage::try_from(spec.stage).map_err(|_| MALFORMED)?;
        Ok(Health {
            running: matches!(stage, Stage::Running),
            ready: spec.status.is_some_and(|status| status.ready),
        })
    }

    async fn version(&mut self) -> Reading<RunningVersion> {
        let mut client =
            MachineServiceClient::with_origin(self.connection.clone(), self.connection.origin());
        let answer = self.called(client.version(())).await?;
        running_version(&answer).ok_or(MALFORMED)
    }

    /// Reads one resource and checks that it is the one that was asked for.
    async fn read<S: Message + Default>(&mut self, wanted: &Resource) -> Reading<(S, Metadata)> {
        let mut client =
            StateClient::with_origin(self.connection.clone(), self.connection.origin())
                .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let request = GetRequest {
            namespace: wanted.namespace.to_owned(),
            r#type: wanted.kind.to_owned(),
            id: wanted.id.to_owned(),
        };
        let answer: GetResponse = self.called(client.get(request)).await?;
        let resource = answer.resource.ok_or(MALFORMED)?;
        let metadata = resource.metadata.ok_or(MALFORMED)?;
        let spec = Zeroizing::new(resource.spec.ok_or(MALFORMED)?.proto_spec);
        let as_asked = metadata.namespace == wanted.namespace
            && metadata.r#type == wanted.kind
            && metadata.id == wanted.id;
        if !as_asked {
            return Err(MALFORMED);
        }
        let spec = S::decode(spec.as_slice()).map_err(|_| MALFORMED)?;
        Ok((spec, metadata))
    }

    /// Waits for a call within the deadline of a call.
    async fn called<T>(
        &mut self,
        call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    ) -> Reading<T> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        let unread = match timeout(self.call, call).await {
            Err(_) => classify::unread(NodeCode::NO_ANSWER),
            Ok(result) => match self.connection.outcome(result) {
                Outcome::Answer(answer) => return Ok(answer),
                Outcome::Refusal(refusal) => classify::unread_status(refusal.code),
                Outcome::Ours(code) => classify::unread(code),
            },
        };
        if unread.class == UnreadClass::Unreachable {
            self.lost = Some(unread);
        }
        Err(unread)
    }
}

/// One message, of the node itself, with a tag like `v1.13.6` or `v1.14.0-beta.1`.
fn running_version(answer: &VersionResponse) -> Option<RunningVersion> {
    let [message] = answer.messages.as_slice() else {
        return None;
    };
    if message
        .metadata
        .as_ref()
        .is_some_and(|it| !it.error.is_empty())
    {
        return None;
    }
    let tag = message.version.as_ref()?.tag.as_str();
    parse_tag(tag)
}

/// A version in the characters that versions have; core says which minor it is.
fn parse_tag(tag: &str) -> Option<RunningVersion> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
    if tag.len() > 64 || !tag.bytes().all(known) {
        return None;
    }
    RunningVersion::parse(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_version_has_a_minor_and_only_the_characters_of_versions() {
        for (tag, minor) in [
            ("v1.13.6", Some("v1.13")),
            ("v1.14.0-beta.1", Some("v1.14")),
            ("v1.13.6+build-5", Some("v1.13")),
            ("v1.13", None),
            ("", None),
            ("v1.13.6 ", None),
            ("v1.13.6\n", None),
            ("v1.13.6<b>", None),
        ] {
            let parsed = parse_tag(tag).map(|it| it.contract.to_string());
            assert_eq!(parsed.as_deref(), minor, "{tag}");
        }
        assert!(parse_tag(&format!("v1.13.6-{}", "x".repeat(64))).is_none());
    }
}
