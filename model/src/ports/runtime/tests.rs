use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bronzeward_core::id::{MachineId, ObservationId};
use bronzeward_core::time::Span;

use super::super::testing::{PROCESS, now, run, sim};
use super::*;
use crate::faults::Faults;
use crate::journal::Event;

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_sleep_takes_its_length_and_a_seed_gives_the_same_bits() {
    let world = sim(4, Faults::none());
    let before = now(&world);
    let timer = SimTimer::new(&world, PROCESS);
    run(&world, async move {
        timer.sleep(Duration::from_millis(1_500)).await
    });
    assert_eq!(now(&world), before + Span::millis(1_500));
    let bits = |seed| SimEntropy::new(&sim(seed, Faults::none()), PROCESS).bits();
    assert_eq!(bits(5), bits(5));
    assert_ne!(bits(5), bits(6));
}

#[test]
fn a_ring_wakes_its_own_process_and_no_ring_is_lost_to_a_wait_that_comes_after() {
    let world = sim(4, Faults::none());
    let before = now(&world);
    let bells = Arc::new(SimBells::new(&world, PROCESS));
    let rings = SimTasks::new(&world, PROCESS);
    let (timer, ringer) = (SimTimer::new(&world, PROCESS), Arc::clone(&bells));
    run(&world, async move {
        ringer.wake(Wake::Dispatch);
        ringer.wake(Wake::Dispatch);
        ringer.wait(Wake::Dispatch, LONG).await;
        let ringing = Arc::clone(&ringer);
        rings.spawn(async move {
            timer.sleep(Duration::from_secs(1)).await;
            ringing.wake(Wake::Dispatch);
        });
        ringer.wait(Wake::Dispatch, LONG).await;
    });
    assert_eq!(now(&world), before + Span::seconds(1));
    let other = SimBells::new(&world, ProcessId(2));
    other.wake(Wake::Dispatch);
    bells.wake(Wake::Publication);
    run(
        &world,
        async move { bells.wait(Wake::Dispatch, LONG).await },
    );
    assert_eq!(now(&world), before + Span::seconds(601));
}

#[test]
fn spawned_work_runs_beside_its_caller() {
    let world = sim(4, Faults::none());
    let tasks = SimTasks::new(&world, PROCESS);
    let done = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&done);
    run(&world, async move {
        let inner = Arc::clone(&count);
        tasks.spawn(async move {
            inner.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(done.load(Ordering::Relaxed), 1);
}

#[test]
fn a_human_is_who_the_token_names_until_it_ends() {
    let world = sim(4, Faults::none());
    let made = now(&world);
    let token = human_token("ann", &["operators", "approvers"], made);
    let verify = |token: String, at| {
        let humans = SimHumans::new(&world, PROCESS);
        run(&world, async move { humans.verify(&token, at).await })
    };
    let claims = verify(token.clone(), made).expect("verified");
    assert_eq!((claims.subject.as_str(), claims.groups.len()), ("ann", 2));
    let refused = Err(HumanTokenRefusal::Refused);
    assert_eq!(verify(token, made + Span::seconds(3_600)), refused);
    assert_eq!(verify("human::operators:1".to_owned(), made), refused);
    assert_eq!(verify("ann".to_owned(), made), refused);
}

#[test]
fn an_alert_is_told_to_the_journal() {
    let world = sim(4, Faults::none());
    let alert = Alert::DigestMismatch {
        machine: MachineId::from_bits(1),
        observation: ObservationId::from_bits(2),
        late_landing: None,
    };
    SimAlerts::new(&world, PROCESS).raise(alert.clone());
    let told = world.state().journal.take();
    let [Event::Outside(Outside::Alerted { alert: heard, .. })] = told.as_slice() else {
        panic!("one alert was raised");
    };
    assert_eq!(*heard, alert);
}
