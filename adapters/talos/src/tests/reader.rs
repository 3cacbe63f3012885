//! Observations: what is read, and how each way of not reading is told apart.

use std::time::Duration;

use bronzeward_core::observation;
use bronzeward_engine::ports::node::{
    NodeCode, NodeObservation, NodeReader as _, ReadFailure, Unread, UnreadClass,
};
use bronzeward_harness::node::{Action, At, Fault, MachineType, Network, Options, TalosNode};
use bronzeward_harness::run_dir::RunDir;
use serde_json::json;

use super::{
    Asked, EVERYTHING, IMPATIENT, Machine, PATIENT, ReadOnlyTalos, commented, of_the_shared_cluster,
};

fn unread(class: UnreadClass, code: &str) -> Unread {
    Unread {
        class,
        code: NodeCode::parse(code).unwrap(),
    }
}

/// Every value of an observation is unread for one cause.
fn all_unread(seen: &NodeObservation, cause: Unread) {
    assert_eq!(seen.identity, Err(cause));
    assert_eq!(seen.version, Err(cause));
    assert_eq!(configuration_unread(seen), Some(cause));
    assert_eq!(cause.cause(), observation::Unread::TalosAccessUnavailable);
    assert_eq!(seen.health, Some(Err(cause)));
    assert_eq!(cause.of_identity(), ReadFailure::AccessUnavailable);
}

fn configuration_unread(seen: &NodeObservation) -> Option<Unread> {
    seen.configuration.as_ref().unwrap().as_ref().err().copied()
}

fn fault_on_get(resource: Option<&'static str>, at: At, action: Action) -> Fault {
    Fault {
        method: "Get",
        resource,
        at,
        action,
        count: None,
    }
}

#[tokio::test]
async fn one_connection_shows_identity_version_configuration_and_health() {
    let machine = Machine::worker();
    let seen = machine.observe().await;
    let ready = machine.node.ready();
    let identity = seen.identity.unwrap();
    assert_eq!(identity.smbios_uuid, None);
    assert_eq!(identity.node_id.as_str(), ready.node_id);
    assert_eq!(identity.talos_cluster.as_str(), ready.cluster_id);
    assert_eq!(seen.version.unwrap().text, "v1.13.6");
    assert!(seen.health.unwrap().unwrap().is_bound());
    let configuration = seen.configuration.unwrap().ok().unwrap();
    assert_eq!(configuration.read().resource_version, "1");
    assert!(configuration.read().resource_created.ends_with('Z'));
    let active = machine.node.control().configs().await.unwrap().active;
    assert_eq!(configuration.into_bytes().len() as u64, active.bytes);
    assert_eq!(machine.count("connections").await, 1);
}

#[tokio::test]
async fn what_is_not_asked_for_is_not_called() {
    let machine = Machine::worker();
    let asked = Asked {
        configuration: false,
        health: false,
    };
    let seen = ReadOnlyTalos
        .observe(&machine.access("admin"), machine.endpoint, asked, PATIENT)
        .await;
    assert!(seen.configuration.is_none() && seen.health.is_none());
    assert_eq!(machine.count("calls").await, 4);
}

#[tokio::test]
async fn the_bytes_read_are_the_bytes_applied() {
    let machine = Machine::worker();
    let odd = commented(&machine.text().await, "a trailing blank \t and no line end");
    let odd = odd.trim_end_matches('\n').replace('\n', "\r\n");
    let control = machine.node.control();
    control.edit_whole(odd.clone().into_bytes()).await.unwrap();
    assert_eq!(machine.text().await, odd);
}

#[tokio::test]
async fn a_configuration_larger_than_the_usual_message_limit_is_read() {
    let machine = Machine::worker();
    let line = format!("# {}\n", "x".repeat(98));
    let large = machine.text().await + &line.repeat(60_000);
    assert!(large.len() > 5 << 20);
    let control = machine.node.control();
    control
        .edit_whole(large.clone().into_bytes())
        .await
        .unwrap();
    assert_eq!(machine.text().await.len(), large.len());
}

// covers-part: PA-TAL-3 (what a read shows for each form of another identity)
#[tokio::test]
async fn another_machine_at_the_address_shows_as_another_identity() {
    let options = Options {
        platform: "metal",
        machine_type: MachineType::ControlPlane,
        smbios_uuid: Some("2A8B0D7C-3e61-4f0e-9d55-0c1b2a394857".to_owned()),
        ..of_the_shared_cluster()
    };
    let machine = Machine::start(&options);
    let seen = machine.observe().await;
    let uuid = seen.identity.unwrap().smbios_uuid.unwrap();
    assert_eq!(uuid.as_str(), "2a8b0d7c-3e61-4f0e-9d55-0c1b2a394857");
    let control = machine.node.control();
    let cluster = data_encoding::BASE64URL.encode(&[7; 32]);
    let node = "Z".repeat(43);
    let other = json!({ "smbiosUuid": null, "nodeId": node, "clusterId": cluster });
    control.identity(&other).await.unwrap();
    let identity = machine.observe().await.identity.unwrap();
    assert_eq!(identity.smbios_uuid, None);
    assert_eq!(identity.node_id.as_str(), node);
    assert_eq!(identity.talos_cluster.as_str(), cluster);
    // A UUID that comes and one that is present and empty.
    for (uuid, seen) in [
        (json!("11111111-2222-3333-4444-555555555555"), true),
        (json!(""), false),
    ] {
        control
            .identity(&json!({ "smbiosUuid": uuid }))
            .await
            .unwrap();
        let identity = machine.observe().await.identity.unwrap();
        assert_eq!(identity.smbios_uuid.is_some(), seen);
    }
    // What has no form of an identity is one that could not be read.
    let malformed = unread(UnreadClass::Malformed, "malformed");
    let whole = json!({ "smbiosUuid": null, "nodeId": node, "clusterId": cluster });
    for (member, formless) in [
        ("smbiosUuid", "not-a-uuid"),
        ("nodeId", "a b"),
        ("clusterId", "x"),
    ] {
        let mut other = whole.clone();
        other[member] = json!(formless);
        control.identity(&other).await.unwrap();
        assert_eq!(machine.observe().await.identity, Err(malformed), "{member}");
    }
    assert_eq!(malformed.of_identity(), ReadFailure::IdentityUnread);
}

// covers-part: PA-TAL-3 (an identity read that fails; its control reads an absent one)
#[tokio::test]
async fn a_failed_system_information_read_is_not_a_node_without_one() {
    let machine = Machine::worker();
    let control = machine.node.control();
    let system = "SystemInformations.hardware.talos.dev";
    let fault = fault_on_get(Some(system), At::Before, Action::Panic);
    let set = control.fault(&fault).await.unwrap();
    let seen = machine.observe().await;
    let failed = unread(UnreadClass::Failed, "internal");
    assert_eq!(seen.identity, Err(failed));
    assert_eq!(failed.of_identity(), ReadFailure::IdentityUnread);
    assert!(seen.version.is_ok() && configuration_unread(&seen).is_none());
    control.release(&set).await.unwrap();
    let identity = machine.observe().await.identity.unwrap();
    assert_eq!(identity.smbios_uuid, None);
}

#[tokio::test]
async fn a_running_version_and_health_are_read_as_reported() {
    let machine = Machine::worker();
    let control = machine.node.control();
    control.version("v1.14.0-beta.1").await.unwrap();
    control.health("booting", false).await.unwrap();
    let seen = machine.observe().await;
    let version = seen.version.unwrap();
    assert_eq!(version.contract.to_string(), "v1.14");
    let health = seen.health.unwrap().unwrap();
    assert_eq!((health.running, health.ready), (false, false));
    assert!(!health.is_bound());
    control.health("running", false).await.unwrap();
    assert!(!machine.observe().await.health.unwrap().unwrap().is_bound());
    control.version("a version of another kind").await.unwrap();
    let malformed = unread(UnreadClass::Malformed, "malformed");
    assert_eq!(machine.observe().await.version, Err(malformed));
}

#[tokio::test]
async fn a_reader_reads_all_but_the_configuration_and_an_etcd_role_nothing() {
    let machine = Machine::worker();
    let denied = unread(UnreadClass::Denied, "permission-denied");
    for caller in ["reader", "operator"] {
        let seen = machine.observe_as(caller, PATIENT).await;
        assert!(seen.identity.is_ok() && seen.version.is_ok());
        assert!(seen.health.as_ref().unwrap().is_ok());
        assert_eq!(configuration_unread(&seen), Some(denied));
    }
    let seen = machine.observe_as("etcd-backup", PATIENT).await;
    assert_eq!(seen.identity, Err(denied));
    assert_eq!(seen.version, Err(denied));
    assert_eq!(denied.cause(), observation::Unread::Refused);
    let cause = denied.cause_of_configuration();
    assert_eq!(cause, observation::Unread::TalosAccessUnavailable);
    assert_eq!(denied.of_identity(), ReadFailure::IdentityUnread);
    assert_eq!(denied.of_configuration(), ReadFailure::AccessUnavailable);
}

#[tokio::test]
async fn another_clusters_access_and_a_refused_port_are_access_unavailable() {
    let machine = Machine::worker();
    let other = TalosNode::start(&Options::default()).unwrap();
    let document = other.talosconfig("admin").unwrap();
    let foreign = ReadOnlyTalos.access(&document).unwrap();
    let seen = ReadOnlyTalos
        .observe(&foreign, machine.endpoint, EVERYTHING, PATIENT)
        .await;
    all_unread(&seen, unread(UnreadClass::Unreachable, "tls-failed"));
    machine
        .node
        .control()
        .network(Network::Refuse)
        .await
        .unwrap();
    let seen = machine.observe().await;
    all_unread(&seen, unread(UnreadClass::Unreachable, "dial-failed"));
    // Control: the same observation succeeds once the port answers.
    machine.node.control().network(Network::Open).await.unwrap();
    assert!(machine.observe().await.identity.is_ok());
}

/// The node trusts our authority for itself, and does not accept our certificate: it was
/// made by another authority than the one that signs the node's.
#[tokio::test]
async fn a_certificate_that_the_node_refuses_is_access_unavailable() {
    let machine = Machine::worker();
    let other = TalosNode::start(&Options::default()).unwrap();
    let (mine, theirs) = (
        machine.access("admin"),
        ReadOnlyTalos
            .access(&other.talosconfig("admin").unwrap())
            .unwrap(),
    );
    let mixed = bronzeward_engine::ports::node::TalosAccess::new(
        mine.authorities().to_vec(),
        theirs.certificates().to_vec(),
        theirs.expose_key().to_vec(),
    );
    let seen = ReadOnlyTalos
        .observe(&mixed, machine.endpoint, EVERYTHING, PATIENT)
        .await;
    let cause = seen.identity.unwrap_err();
    assert_eq!(cause.class, UnreadClass::Unreachable);
    assert_eq!(cause.of_identity(), ReadFailure::AccessUnavailable);
    assert_eq!(machine.count("calls").await, 0);
    assert_eq!(machine.count("handshakes-failed").await, 1);
}

#[tokio::test]
async fn a_silent_endpoint_is_access_unavailable_at_the_deadline() {
    let machine = Machine::worker();
    machine
        .node
        .control()
        .network(Network::Silent)
        .await
        .unwrap();
    let seen = machine.observe_as("admin", IMPATIENT).await;
    all_unread(&seen, unread(UnreadClass::Unreachable, "no-answer"));
}

#[tokio::test]
async fn a_silent_call_ends_at_its_deadline_and_no_further_call_is_made() {
    let machine = Machine::worker();
    let control = machine.node.control();
    let drop = fault_on_get(None, At::Before, Action::Drop);
    control.fault(&drop).await.unwrap();
    let seen = machine.observe_as("admin", IMPATIENT).await;
    all_unread(&seen, unread(UnreadClass::Unreachable, "no-answer"));
    assert_eq!(machine.count("calls").await, 1);
}

#[tokio::test]
async fn a_reset_and_an_unavailable_node_are_access_unavailable() {
    for (action, code) in [
        (Action::Reset, "connection-lost"),
        (Action::Unavailable, "unavailable"),
    ] {
        let machine = Machine::worker();
        let fault = fault_on_get(None, At::Before, action);
        machine.node.control().fault(&fault).await.unwrap();
        let seen = machine.observe().await;
        all_unread(&seen, unread(UnreadClass::Unreachable, code));
    }
}

#[tokio::test]
async fn a_configuration_read_that_fails_leaves_the_identity_read() {
    let machine = Machine::worker();
    let configs = "MachineConfigs.config.talos.dev";
    let fault = fault_on_get(Some(configs), At::Before, Action::Unavailable);
    machine.node.control().fault(&fault).await.unwrap();
    let seen = machine.observe().await;
    assert!(seen.identity.is_ok() && seen.version.is_ok());
    let cause = configuration_unread(&seen).unwrap();
    assert_eq!(cause.of_configuration(), ReadFailure::AccessUnavailable);
}

// T7, T8
#[tokio::test]
async fn a_version_restarts_at_a_reboot_and_the_active_configuration_needs_no_saved_one() {
    let machine = Machine::worker();
    let control = machine.node.control();
    let resource = async || {
        let seen = machine.observe().await.configuration.unwrap();
        seen.ok().unwrap().read().clone()
    };
    let first = resource().await;
    control.edit("one").await.unwrap();
    let second = resource().await;
    assert_eq!(first.resource_version, "1");
    assert_eq!(second.resource_version, "2");
    assert_eq!(second.resource_created, first.resource_created);
    assert_ne!(control.configs().await.unwrap().saved.version, "");
    control.reboot().await.unwrap();
    let after = resource().await;
    assert_eq!(after.resource_version, "1");
    assert_ne!(after.resource_created, first.resource_created);
    assert_eq!(after.digest, second.digest);
    assert_eq!(control.configs().await.unwrap().saved.version, "");
    assert!(machine.text().await.ends_with("# one\n"));
}

#[tokio::test]
async fn a_node_started_again_on_its_folder_is_the_same_machine() {
    let dir = RunDir::new("again").unwrap();
    let options = Options {
        state: Some(dir.path().join("state")),
        ..of_the_shared_cluster()
    };
    let first = Machine::start(&options);
    first.node.control().edit("kept").await.unwrap();
    let (id, text) = (first.node.ready().node_id.clone(), first.text().await);
    first.node.stop();
    let again = Machine::start(&options);
    assert_eq!(again.node.ready().node_id, id);
    assert_eq!(again.text().await, text);
}

#[tokio::test]
async fn a_machine_file_is_in_the_configuration() {
    let machine = Machine::start(&Options {
        machine_file: Some((
            "/var/etc/a.conf".to_owned(),
            "planted: content\n".to_owned(),
        )),
        ..of_the_shared_cluster()
    });
    assert!(machine.text().await.contains("planted: content"));
    let control = machine.node.control();
    control.add_file("/var/etc/b.conf", "second").await.unwrap();
    let text = machine.text().await;
    assert!(text.contains("planted: content") && text.contains("/var/etc/b.conf"));
}

#[tokio::test]
async fn a_suspended_node_is_silent_and_then_answers_again() {
    let machine = Machine::worker();
    let pause = rustix::process::Signal::STOP;
    machine.node.signal(pause).unwrap();
    let limits = bronzeward_engine::ports::node::ReadLimits {
        connect: Duration::from_millis(500),
        call: Duration::from_millis(500),
    };
    let seen = machine.observe_as("admin", limits).await;
    assert_eq!(seen.identity.unwrap_err().class, UnreadClass::Unreachable);
    machine.node.signal(rustix::process::Signal::CONT).unwrap();
    assert!(machine.observe().await.identity.is_ok());
}
