use bronzeward_core::inventory::{SmbiosUuid, TalosClusterId, TalosNodeId};
use bronzeward_core::observation::NodeIdentity;

use super::super::testing::{PROCESS, kill_at, now, run, sim};
use super::*;
use crate::faults::Faults;
use crate::journal::Event;

const TEXT: &str = "{\"machine\":{\"type\":\"worker\"}}\n";
const NEXT: &str = "{\"machine\":{\"type\":\"worker\",\"debug\":true}}\n";

fn endpoint() -> Endpoint {
    Endpoint::parse("10.5.0.3").expect("an endpoint")
}

fn world(seed: u64, faults: Faults) -> Arc<Sim> {
    let sim = sim(seed, faults);
    let cluster = "A".repeat(43) + "=";
    let identity = NodeIdentity {
        smbios_uuid: SmbiosUuid::parse(&uuid_text(1)).ok(),
        node_id: TalosNodeId::parse(&node_id_text(1)).expect("a node id"),
        talos_cluster: TalosClusterId::parse(&cluster).expect("a cluster id"),
    };
    let at = now(&sim);
    let node = Node::new(identity, Plaintext::new(TEXT.to_owned()), at);
    sim.state().outside.nodes.place(endpoint(), node);
    sim
}

fn access(sim: &Arc<Sim>) -> TalosAccess {
    let reader = SimReader::new(sim, PROCESS);
    let cluster = bronzeward_core::id::ClusterId::from_bits(1);
    let text = crate::ports::provider::talosconfig(cluster, 1);
    assert!(reader.access(b"something else").is_err());
    reader.access(text.expose().as_bytes()).expect("usable")
}

const LIMITS: ReadLimits = ReadLimits {
    connect: Duration::from_secs(5),
    call: Duration::from_secs(10),
};
const ASKED: Asked = Asked::EVERYTHING;

fn observed(sim: &Arc<Sim>) -> NodeObservation {
    let (reader, access) = (SimReader::new(sim, PROCESS), access(sim));
    run(sim, async move {
        reader.observe(&access, endpoint(), ASKED, LIMITS).await
    })
}

/// A request as the writer gives it to the network; its permit is the engine's to make.
fn request(
    sim: &Arc<Sim>,
    state: &mut State,
    until: DbTime,
) -> (Leaf<'static>, Arc<OnceLock<ApplyAnswer>>) {
    // The leaf lives as long as the test's world, which is never taken down.
    let sim: &'static Arc<Sim> = Box::leak(Box::new(Arc::clone(sim)));
    let (leaf, caller) = Leaf::until(sim, &mut state.sched, until);
    let answer = Arc::new(OnceLock::new());
    let request = Request {
        endpoint: endpoint(),
        attempt: AttemptId::from_bits(5),
        configuration: Plaintext::new(NEXT.to_owned()),
        until,
        answer: Arc::clone(&answer),
        caller,
        unanswered: false,
        reset: false,
    };
    send(state, request);
    (leaf, answer)
}

const DEADLINE: Span = Span::seconds(60);

/// Sends, waits as the writer does, and lets the world come to rest.
fn sent(sim: &Arc<Sim>) -> ApplyAnswer {
    let world = Arc::clone(sim);
    run(sim, async move {
        let (leaf, answer) = {
            let mut state = world.state();
            let until = state.sched.now() + DEADLINE;
            request(&world, &mut state, until)
        };
        leaf.await;
        let given = answer.get().copied();
        given.unwrap_or_else(|| transport(NodeCode::NO_ANSWER))
    })
}

/// What came into force, in the journal's order: by an attempt or not.
fn in_force(sim: &Arc<Sim>) -> Vec<bool> {
    let events = sim.state().journal.take().into_iter();
    let landed = events.filter_map(|event| match event {
        Event::Outside(Outside::InForce { attempt, .. }) => Some(attempt.is_some()),
        _ => None,
    });
    landed.collect()
}

fn runs(sim: &Arc<Sim>, text: &str) -> bool {
    let state = sim.state();
    let node = state.outside.nodes.at(endpoint()).expect("a node");
    node.configuration().expose() == text
}

#[test]
fn a_reading_shows_who_and_what_a_node_is() {
    let sim = world(1, Faults::none());
    let seen = observed(&sim);
    assert!(seen.identity.is_ok());
    assert_eq!(seen.version.expect("read").text, RUNNING);
    let configuration = seen.configuration.and_then(Result::ok).expect("read");
    assert_eq!(configuration.read().resource_version, "1");
    assert_eq!(configuration.into_bytes(), TEXT.as_bytes());
    assert!(seen.health.expect("asked").expect("read").is_bound());
}

#[test]
fn an_accepted_request_is_in_force_and_counted_by_the_resource() {
    let sim = world(1, Faults::none());
    assert_eq!(sent(&sim), answered(ResponseClass::Accepted, 0));
    assert!(runs(&sim, NEXT));
    assert_eq!(in_force(&sim), [true]);
    let read = observed(&sim)
        .configuration
        .and_then(Result::ok)
        .expect("read");
    assert_eq!(read.read().resource_version, "2");
}

#[test]
fn a_held_request_lands_after_its_caller_gave_up() {
    let sim = world(1, Faults::none().with(Fault::NodeHeld, 10_000));
    let sent_at = now(&sim);
    assert_eq!(sent(&sim), transport(NodeCode::NO_ANSWER));
    assert!(runs(&sim, NEXT));
    assert_eq!(sim.state().outside.seen.late_landings, 1);
    assert!(now(&sim) >= sent_at + DEADLINE);
}

#[test]
fn a_request_lands_though_its_process_dies() {
    let sim = world(1, Faults::none());
    let at = now(&sim);
    let world = Arc::clone(&sim);
    kill_at(&sim, at, async move {
        let leaf = request(&world, &mut world.state(), at + DEADLINE).0;
        leaf.await;
    });
    assert!(!runs(&sim, NEXT), "it was dropped before it was polled");
    let world = Arc::clone(&sim);
    kill_at(&sim, at + Span::micros(1), async move {
        let leaf = request(&world, &mut world.state(), at + DEADLINE).0;
        leaf.await;
        panic!("a process that died goes on");
    });
    assert!(runs(&sim, NEXT));
}

#[test]
fn a_lost_answer_a_reset_and_a_refusal_are_what_the_client_would_tell() {
    let lost = world(1, Faults::none().with(Fault::NodeAnswerLost, 10_000));
    assert_eq!(sent(&lost), transport(NodeCode::NO_ANSWER));
    assert!(runs(&lost, NEXT));
    let mut landed = [0, 0];
    let mut classes = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let reset = world(seed, Faults::none().with(Fault::NodeReset, 10_000));
        assert_eq!(sent(&reset), transport(NodeCode::CONNECTION_LOST));
        landed[usize::from(runs(&reset, NEXT))] += 1;
        let refuses = world(seed, Faults::none().with(Fault::NodeRefuses, 10_000));
        let refused = sent(&refuses);
        assert!(runs(&refuses, TEXT) && in_force(&refuses).is_empty());
        assert!(refused.class.accounts() && refused.class != ResponseClass::Accepted);
        classes.insert(refused.class);
    }
    assert!(landed[0] > 5 && landed[1] > 5, "{landed:?}");
    assert_eq!(classes.len(), 3);
}

#[test]
fn a_boot_begins_the_resource_anew_and_is_unreachable_meanwhile() {
    let sim = world(1, Faults::none());
    assert_eq!(sent(&sim).class, ResponseClass::Accepted);
    let before = observed(&sim)
        .configuration
        .and_then(Result::ok)
        .expect("read");
    reboot(&mut sim.state(), endpoint());
    let down = observed(&sim);
    let unread = Unread {
        class: UnreadClass::Unreachable,
        code: NodeCode::DIAL_FAILED,
    };
    assert_eq!(down.identity.err(), Some(unread));
    assert_eq!(sent(&sim), transport(NodeCode::CONNECTION_LOST));
    sim.state().outside.nodes.heal();
    let after = observed(&sim)
        .configuration
        .and_then(Result::ok)
        .expect("read");
    assert_eq!(after.read().resource_version, "1");
    assert_ne!(
        after.read().resource_created,
        before.read().resource_created
    );
    assert_eq!(after.read().digest, before.read().digest);
}

#[test]
fn a_hand_changes_the_configuration_or_puts_the_one_before_back() {
    let (mut back, mut other) = (0, 0);
    for seed in 0..30 {
        let sim = world(seed, Faults::none());
        assert_eq!(sent(&sim).class, ResponseClass::Accepted);
        edit(&mut sim.state(), endpoint());
        assert_eq!(in_force(&sim), [true, false]);
        match runs(&sim, TEXT) {
            true => back += 1,
            false => other += 1,
        }
        assert!(!runs(&sim, NEXT));
    }
    assert!(back > 3 && other > 3);
}

#[test]
fn a_replaced_node_is_somebody_else() {
    let sim = world(1, Faults::none());
    let before = observed(&sim).identity.expect("read");
    replace(&mut sim.state(), endpoint());
    let after = observed(&sim).identity.expect("read");
    assert!(before.node_id != after.node_id && before.smbios_uuid != after.smbios_uuid);
    assert_eq!(before.talos_cluster, after.talos_cluster);
}

#[test]
fn an_unreachable_node_is_not_asked_further_and_every_class_of_failure_is_met() {
    let mut classes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let sim = world(seed, Faults::none().with(Fault::NodeSilent, 3_000));
        let seen = observed(&sim);
        let failures = [
            seen.identity.err(),
            seen.version.err(),
            seen.configuration.and_then(Result::err),
            seen.health.and_then(Result::err),
        ];
        let unreachable =
            |it: &Option<Unread>| it.is_some_and(|unread| unread.class == UnreadClass::Unreachable);
        if let Some(first) = failures.iter().position(unreachable) {
            assert!(failures[first..].iter().all(|it| *it == failures[first]));
        }
        classes.extend(failures.into_iter().flatten().map(|unread| unread.class));
    }
    assert_eq!(classes.len(), 5);
}
