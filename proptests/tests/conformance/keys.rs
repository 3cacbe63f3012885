//! Advisory locks: the installation's fair queue, requests' keys, the order of acts.

use bronzeward_engine::ports::store::LockMode::{NoKeyUpdate, Share, Update};

use crate::check;
use crate::op::Op::*;
use crate::op::Who::{A, B, C, D};

#[test]
fn the_installation_is_shared_and_nobody_passes_who_waits_for_it_alone() {
    check(
        "the installation's queue",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (D, Begin),
            (A, LockInstallation(Share)),
            (B, LockInstallation(Share)),
            (C, LockInstallation(Update)),
            (D, LockInstallation(Share)),
            (A, Commit),
            (B, Commit),
            (C, Commit),
            (D, Commit),
        ],
    );
}

#[test]
fn who_shares_the_installation_already_passes_who_waits_for_it() {
    check(
        "again in the same transaction",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (A, LockInstallation(Share)),
            (B, LockInstallation(Update)),
            (A, LockInstallation(Share)),
            (C, LockInstallation(NoKeyUpdate)),
            (A, Rollback),
            (B, Rollback),
            (C, Rollback),
        ],
    );
}

#[test]
fn who_waits_for_the_installation_and_goes_lets_the_next_pass() {
    check(
        "a waiter is cut",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (A, LockInstallation(Share)),
            (B, LockInstallation(Update)),
            (C, LockInstallation(Share)),
            (B, Cut),
            (C, Commit),
            (A, Commit),
        ],
    );
}

#[test]
fn a_key_is_used_by_one_request_at_a_time_and_another_key_beside_it() {
    check(
        "keys",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (A, LockKey(1)),
            (B, LockKey(1)),
            (C, LockKey(2)),
            (C, LockKey(1)),
            (A, LockKey(1)),
            (A, Commit),
            (B, Rollback),
            (C, Commit),
        ],
    );
}

#[test]
fn acts_are_recorded_one_after_the_other_at_times_in_that_order() {
    check(
        "acts",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (C, Now),
            (A, LockActs),
            (B, LockActs),
            (C, LockActs),
            (A, Now),
            (A, NewAct(7)),
            (A, Commit),
            (B, NewAct(8)),
            (B, Began),
            (B, Commit),
            (C, Began),
            (C, LockActs),
            (C, Commit),
        ],
    );
}

#[test]
fn a_transactions_beginning_stands_still_and_the_clock_goes_on() {
    check(
        "began and now",
        [
            (A, Begin),
            (A, Began),
            (A, Now),
            (B, Begin),
            (B, Now),
            (B, Began),
            (A, Began),
            (A, Now),
            (A, Commit),
            (A, Begin),
            (A, Began),
            (B, Began),
        ],
    );
}
