//! Circles of waits: one of those in it is the victim, the others go on.

use bronzeward_engine::ports::store::LockMode::{KeyShare, Share, Update};

use crate::op::If::Always;
use crate::op::Op::*;
use crate::op::Row::{Draft, Machine};
use crate::op::Who::{A, B, C};
use crate::{check, check_choice};

#[test]
fn of_two_who_wait_for_each_other_one_is_the_victim() {
    check_choice(
        "two rows",
        [
            (A, Begin),
            (B, Begin),
            (A, Lock(Draft(1), Update)),
            (B, Lock(Draft(2), Update)),
            (A, Lock(Draft(2), Update)),
            (B, Lock(Draft(1), Update)),
            (A, Now),
            (B, Now),
            (A, Commit),
            (B, Commit),
        ],
    );
}

#[test]
fn of_three_in_a_circle_one_is_the_victim() {
    check_choice(
        "three rows",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (A, Advance(1, Always)),
            (B, Advance(2, Always)),
            (C, Advance(3, Always)),
            (A, Lock(Draft(2), Share)),
            (B, Lock(Draft(3), Share)),
            (C, Lock(Draft(1), Share)),
            (A, Rollback),
            (B, Rollback),
            (C, Rollback),
        ],
    );
}

#[test]
fn of_two_who_share_a_row_and_want_it_alone_one_is_the_victim() {
    for (shared, wanted) in [(Share, Update), (KeyShare, Update)] {
        check_choice(
            "two upgrades",
            [
                (A, Begin),
                (B, Begin),
                (A, Lock(Machine(1), shared)),
                (B, Lock(Machine(1), shared)),
                (A, Lock(Machine(1), wanted)),
                (B, Lock(Machine(1), wanted)),
                (A, Rollback),
                (B, Rollback),
            ],
        );
    }
}

#[test]
fn a_row_an_index_and_an_advisory_lock_close_a_circle_alike() {
    check_choice(
        "a row and an index",
        [
            (A, Begin),
            (B, Begin),
            (A, NewDraft(9, 1)),
            (B, Lock(Machine(1), Update)),
            (B, NewDraft(9, 1)),
            (A, Lock(Machine(1), Update)),
            (A, Commit),
            (B, Commit),
        ],
    );
    check_choice(
        "a row and acts",
        [
            (A, Begin),
            (B, Begin),
            (A, LockActs),
            (B, Lock(Machine(1), Update)),
            (B, LockActs),
            (A, Lock(Machine(1), Update)),
            (A, Commit),
            (B, Commit),
        ],
    );
    check_choice(
        "a key and the installation",
        [
            (A, Begin),
            (B, Begin),
            (A, LockKey(1)),
            (B, LockInstallation(Update)),
            (B, LockKey(1)),
            (A, LockInstallation(Share)),
            (A, Commit),
            (B, Commit),
        ],
    );
}

#[test]
fn a_circle_that_another_order_of_a_queue_undoes_has_no_victim() {
    check(
        "the installation's queue",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (A, LockInstallation(Share)),
            (B, LockInstallation(Update)),
            (C, Lock(Draft(1), Update)),
            (A, Lock(Draft(1), Update)),
            (C, LockInstallation(Share)),
            (C, Commit),
            (A, Commit),
            (B, Commit),
        ],
    );
}

#[test]
fn of_two_who_share_an_advisory_lock_the_second_to_want_it_alone_is_the_victim_at_once() {
    check(
        "the installation",
        [
            (A, Begin),
            (B, Begin),
            (A, LockInstallation(Share)),
            (B, LockInstallation(Share)),
            (A, LockInstallation(Update)),
            (B, LockInstallation(Update)),
            (A, Commit),
            (B, Rollback),
        ],
    );
}

#[test]
fn who_waits_for_two_waits_for_one_after_the_other_and_a_circle_closes_only_then() {
    check_choice(
        "two who share",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (A, Lock(Machine(1), Share)),
            (B, Lock(Machine(1), Share)),
            (C, Lock(Draft(1), Update)),
            (C, Lock(Machine(1), Update)),
            (B, Lock(Draft(1), Share)),
            (A, Commit),
            (B, Commit),
            (C, Commit),
        ],
    );
}

#[test]
fn a_victims_work_is_undone_and_the_other_sees_none_of_it() {
    check_choice(
        "what stands after",
        [
            (A, Begin),
            (B, Begin),
            (A, Advance(1, Always)),
            (B, Advance(2, Always)),
            (A, Advance(2, Always)),
            (B, Advance(1, Always)),
            (A, Commit),
            (B, Commit),
            (C, Begin),
            (C, ReadDrafts),
        ],
    );
}

#[test]
fn who_waits_in_a_row_without_a_circle_is_no_victim() {
    check(
        "a chain",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (A, Lock(Draft(1), Update)),
            (B, Lock(Draft(2), Update)),
            (B, Lock(Draft(1), Update)),
            (C, Lock(Draft(2), Update)),
            (A, Commit),
            (B, Commit),
            (C, Commit),
        ],
    );
}
