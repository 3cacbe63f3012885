//! No ring is lost, and a shutdown ends every wait.

use std::sync::Arc;

use bronzeward_wake::{Bell, Flaw, Shutdown};
use loom::future::block_on;
use loom::thread;

use super::{STUCK, holds, try_once};

const TAKEN: &str = "a wait ended and nobody asks for it any more";

// covers: MOD-5
#[test]
fn a_ring_before_or_during_a_wait_ends_it() {
    let model = || {
        let bell = Arc::new(Bell::default());
        let ringing = Arc::clone(&bell);
        let ringer = thread::spawn(move || ringing.ring());
        block_on(bell.rung());
        ringer.join().expect("joined");
        assert_eq!(try_once(bell.rung()), None, "one ring woke twice");
    };
    holds(
        model,
        &[
            (Flaw::ChangeWakesNobody, STUCK),
            (Flaw::LooksBeforeItStandsInLine, STUCK),
            (Flaw::WaitForgetsEarlierRings, STUCK),
        ],
    );
}

// covers: MOD-5
#[test]
fn a_ring_that_met_one_who_gave_up_wakes_another() {
    let model = || {
        let bell = Arc::new(Bell::default());
        let other = Arc::clone(&bell);
        let gives_up = thread::spawn(move || {
            if try_once(other.rung()).is_some() {
                other.ring();
            }
        });
        let ringing = Arc::clone(&bell);
        let ringer = thread::spawn(move || ringing.ring());
        block_on(bell.rung());
        gives_up.join().expect("joined");
        ringer.join().expect("joined");
    };
    holds(
        model,
        &[(Flaw::LeaverWakesNobody, STUCK), (Flaw::LeaverStays, STUCK)],
    );
}

// covers: MOD-5
#[test]
fn a_shutdown_ends_every_wait() {
    let model = || {
        let shutdown = Shutdown::new();
        let waits = [shutdown.clone(), shutdown.clone()].map(|shutdown| {
            thread::spawn(move || {
                block_on(shutdown.wait());
                assert!(shutdown.asked(), "{TAKEN}");
            })
        });
        shutdown.ask();
        for wait in waits {
            wait.join().expect("joined");
        }
        assert_eq!(try_once(shutdown.wait()), Some(()), "a late wait goes on");
    };
    holds(
        model,
        &[
            (Flaw::ChangeWakesNobody, STUCK),
            (Flaw::LooksBeforeItStandsInLine, STUCK),
            (Flaw::TakerWakesNobody, STUCK),
            (Flaw::ShutdownIsTaken, TAKEN),
        ],
    );
}

// covers: MOD-5
#[test]
fn one_who_stops_waiting_for_a_shutdown_keeps_it_from_nobody() {
    let model = || {
        let shutdown = Shutdown::new();
        let other = shutdown.clone();
        let gives_up = thread::spawn(move || try_once(other.wait()));
        let asking = shutdown.clone();
        let asks = thread::spawn(move || asking.ask());
        block_on(shutdown.wait());
        gives_up.join().expect("joined");
        asks.join().expect("joined");
    };
    holds(
        model,
        &[(Flaw::LeaverWakesNobody, STUCK), (Flaw::LeaverStays, STUCK)],
    );
}
