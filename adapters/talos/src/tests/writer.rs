//! Requests: the effect on the node beside the class that came back.

use std::time::Duration;

use bronzeward_core::attempt::ResponseClass;
use bronzeward_engine::ports::node::ApplyAnswer;
use bronzeward_harness::node::{Action, At, Fault, Network, Options, TalosNode};
use bronzeward_harness::run_dir::RunDir;

use super::{DEADLINE, Machine, commented, in_machine, of_the_shared_cluster};

const SHORT: Duration = Duration::from_millis(800);

async fn strike(machine: &Machine, at: At, action: Action) -> bronzeward_harness::node::FaultId {
    let fault = Fault::of_the_next_apply(at, action);
    machine.node.control().fault(&fault).await.unwrap()
}

fn is(answer: ApplyAnswer, class: ResponseClass, code: &str) {
    assert_eq!((answer.class, answer.code.as_str()), (class, code));
}

// T1
#[tokio::test]
async fn an_applied_configuration_takes_effect_without_a_reboot_and_reads_back_byte_for_byte() {
    let machine = Machine::worker();
    let wanted = commented(&machine.text().await, "applied");
    is(machine.apply(&wanted).await, ResponseClass::Accepted, "ok");
    assert_eq!(machine.text().await, wanted);
    let counters = machine.node.control().counters().await.unwrap();
    assert_eq!(counters.of("apply-mode:NO_REBOOT"), 1);
    for other in ["REBOOT", "AUTO", "STAGED", "TRY"] {
        assert_eq!(counters.of(&format!("apply-mode:{other}")), 0);
    }
    for never in [
        "apply-dry-run",
        "reboots",
        "forbidden",
        "routing-metadata",
        "pings",
    ] {
        assert_eq!(counters.of(never), 0, "{never}");
    }
    assert_eq!(counters.of("landed"), 1);
}

// T6
#[tokio::test]
async fn applying_the_same_bytes_again_raises_the_version_all_the_same() {
    let machine = Machine::worker();
    let text = machine.text().await;
    for version in ["2", "3"] {
        is(machine.apply(&text).await, ResponseClass::Accepted, "ok");
        let active = machine.node.control().configs().await.unwrap().active;
        assert_eq!(active.version, version);
    }
}

// T2, T5
#[tokio::test]
async fn a_change_that_needs_a_reboot_is_refused_and_its_diff_stays_in_the_adapter() {
    let machine = Machine::worker();
    let text = machine.text().await;
    let secret = "synthetic-value-91c4";
    let wanted = in_machine(&text, &format!("    env: {{A: {secret}}}\n"));
    let answer = machine.apply(&wanted).await;
    is(answer, ResponseClass::RefusedImmediate, "invalid-argument");
    assert!(!format!("{answer:?}").contains(secret));
    assert_eq!(machine.text().await, text);
    assert_eq!(machine.count("reboots").await, 0);
    assert_eq!(machine.count("landed").await, 0);
}

/// The refusal's text is its status, and a status travels in a header: one that is larger
/// than HTTP/2's usual limit is still an answer of the node.
#[tokio::test]
async fn a_refusal_with_a_large_diff_is_still_the_nodes_own_answer() {
    let machine = Machine::worker();
    let lines = "        some line of a file\n".repeat(8_000);
    let file = format!(
        "    files:\n    - path: /var/etc/large\n      op: create\n      permissions: 0o600\n      content: |\n{lines}"
    );
    let wanted = in_machine(&machine.text().await, &file);
    let answer = machine.apply(&wanted).await;
    is(answer, ResponseClass::RefusedImmediate, "invalid-argument");
}

// T19
#[tokio::test]
async fn dropping_an_empty_list_is_refused_although_its_diff_is_empty() {
    let dir = RunDir::new("empty-list").unwrap();
    let options = Options {
        state: Some(dir.path().join("state")),
        ..of_the_shared_cluster()
    };
    let first = TalosNode::start(&options).unwrap();
    first.stop();
    let saved = dir.path().join("state/config.yaml");
    let text = std::fs::read_to_string(&saved).unwrap();
    std::fs::write(&saved, in_machine(&text, "    files: []\n")).unwrap();
    let machine = Machine::start(&options);
    assert!(machine.text().await.contains("files: []"));
    let answer = machine.apply(&text).await;
    is(answer, ResponseClass::RefusedImmediate, "invalid-argument");
    // Control: with the empty list kept, the same change is accepted.
    let kept = commented(&machine.text().await, "kept");
    is(machine.apply(&kept).await, ResponseClass::Accepted, "ok");
}

/// covers-part: EaR-RSP-1 (each validation step of facts 4.1, by the node's own text)
#[tokio::test]
async fn each_validation_step_before_the_mode_is_a_definitive_refusal() {
    let machine = Machine::worker();
    let text = machine.text().await;
    let too_new = text.replacen("kubelet:v1.36", "kubelet:v1.40", 1);
    assert_ne!(too_new, text);
    for (step, refused) in [
        ("not YAML", "machine: [".to_owned()),
        ("unknown key", in_machine(&text, "    planted-key: 1\n")),
        ("a document twice", format!("{text}---\n{text}")),
        ("nothing", String::new()),
        (
            "no machine document",
            "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n".to_owned(),
        ),
        (
            "machine type",
            text.replacen("type: worker", "type: impossible", 1),
        ),
        ("two errors", {
            let network = "    network: {interfaces: [{interface: a, addresses: [nope]}, {}]}\n";
            in_machine(&text, network)
        }),
        ("running version", too_new),
    ] {
        let answer = machine.apply(&refused).await;
        assert_eq!(answer.class, ResponseClass::RefusedValidation, "{step}");
        assert!(answer.class.accounts());
    }
    assert_eq!(machine.text().await, text);
    assert_eq!(machine.count("landed").await, 0);
}

/// covers-part: EaR-RSP-1 (answers of the node that end nothing by themselves)
#[tokio::test]
async fn other_answers_of_the_node_account_and_decide_nothing() {
    let machine = Machine::worker();
    let text = machine.text().await;
    let wanted = commented(&text, "wanted");
    let denied = machine.apply_as("reader", &wanted, DEADLINE).await;
    is(denied, ResponseClass::Answered, "permission-denied");
    strike(&machine, At::Before, Action::Panic).await;
    is(
        machine.apply(&wanted).await,
        ResponseClass::Answered,
        "internal",
    );
    // Talos's own panic on a null element, turned into Internal by the server.
    let null = in_machine(&text, "    network: {interfaces: [null]}\n");
    is(
        machine.apply(&null).await,
        ResponseClass::Answered,
        "internal",
    );
    // Saved, and not in force: an answer that says nothing about what happened.
    strike(&machine, At::During, Action::ActivationFails).await;
    is(
        machine.apply(&wanted).await,
        ResponseClass::Answered,
        "unknown",
    );
    let configs = machine.node.control().configs().await.unwrap();
    assert_ne!(configs.active.sha256, configs.saved.sha256);
    let agent = Machine::start(&Options {
        platform: "metal-agent",
        ..of_the_shared_cluster()
    });
    is(
        agent.apply(&wanted).await,
        ResponseClass::Answered,
        "unimplemented",
    );
}

#[tokio::test]
async fn a_second_request_while_one_is_applied_is_answered_and_the_first_goes_on() {
    let machine = Machine::worker();
    let wanted = commented(&machine.text().await, "first");
    let held = strike(&machine, At::During, Action::Hold).await;
    let control = machine.node.control();
    let second = async {
        control.wait_for(&held.met(), 1).await.unwrap();
        let answer = machine.apply(&wanted).await;
        control.release(&held).await.unwrap();
        answer
    };
    let (first, second) = tokio::join!(machine.apply(&wanted), second);
    is(second, ResponseClass::Answered, "failed-precondition");
    is(first, ResponseClass::Accepted, "ok");
}

#[tokio::test]
async fn an_endpoint_that_refuses_or_is_silent_is_transport() {
    let machine = Machine::worker();
    let text = machine.text().await;
    machine
        .node
        .control()
        .network(Network::Refuse)
        .await
        .unwrap();
    is(
        machine.apply(&text).await,
        ResponseClass::Transport,
        "dial-failed",
    );
    machine
        .node
        .control()
        .network(Network::Silent)
        .await
        .unwrap();
    let answer = machine.apply_as("admin", &text, SHORT).await;
    is(answer, ResponseClass::Transport, "no-answer");
    machine.node.control().network(Network::Open).await.unwrap();
    strike(&machine, At::Before, Action::Unavailable).await;
    is(
        machine.apply(&text).await,
        ResponseClass::Transport,
        "unavailable",
    );
    assert_eq!(machine.count("landed").await, 0);
}

#[tokio::test]
async fn a_reset_is_transport_whether_or_not_the_request_took_effect() {
    for (at, landed) in [(At::Before, 0), (At::After, 1)] {
        let machine = Machine::worker();
        let wanted = commented(&machine.text().await, "reset");
        strike(&machine, at, Action::Reset).await;
        let answer = machine.apply(&wanted).await;
        is(answer, ResponseClass::Transport, "connection-lost");
        let counters = machine.node.control().counters().await.unwrap();
        assert_eq!(counters.of("landed"), landed);
        // Sent once: a lost connection is not dialled again.
        let calls = counters.calls("/machine.MachineService/ApplyConfiguration");
        assert_eq!(calls, 1);
    }
}

#[tokio::test]
async fn a_lost_answer_is_transport_and_the_configuration_is_in_force() {
    let machine = Machine::worker();
    let wanted = commented(&machine.text().await, "lost");
    strike(&machine, At::After, Action::Drop).await;
    let answer = machine.apply_as("admin", &wanted, SHORT).await;
    is(answer, ResponseClass::Transport, "no-answer");
    assert_eq!(machine.text().await, wanted);
}

#[tokio::test]
async fn a_held_request_lands_after_its_caller_gave_up() {
    let machine = Machine::worker();
    let text = machine.text().await;
    let wanted = commented(&text, "late");
    let held = strike(&machine, At::Before, Action::Hold).await;
    let answer = machine.apply_as("admin", &wanted, SHORT).await;
    is(answer, ResponseClass::Transport, "no-answer");
    assert_eq!(machine.text().await, text);
    let control = machine.node.control();
    control.release(&held).await.unwrap();
    control.wait_for("landed", 1).await.unwrap();
    assert_eq!(machine.text().await, wanted);
}

#[tokio::test]
async fn an_access_that_the_node_does_not_trust_sends_nothing() {
    let machine = Machine::worker();
    let other = Machine::start(&Options::default());
    let text = machine.text().await;
    let calls = machine.count("calls").await;
    let foreign = Machine {
        node: other.node,
        endpoint: machine.endpoint,
    };
    is(
        foreign.apply(&text).await,
        ResponseClass::Transport,
        "tls-failed",
    );
    assert_eq!(machine.count("calls").await, calls);
}
