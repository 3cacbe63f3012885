//! Row locks: which modes conflict, who passes whom, what a lock call gives after a wait.

use bronzeward_engine::ports::store::LockMode::{self, KeyShare, NoKeyUpdate, Share, Update};

use crate::op::If::{Always, State};
use crate::op::Op::*;
use crate::op::Row::{self, Claim, Draft, Head, Machine, Operation, Plan, Principal};
use crate::op::Who::{A, B, C, D};
use crate::op::{Op, Who};
use crate::{check, check_choice};

const MODES: [LockMode; 4] = [KeyShare, Share, NoKeyUpdate, Update];

/// Every pair of modes on a row: one holds it, the other asks for it.
fn pairs(row: Row) {
    let mut steps: Vec<(Who, Op)> = Vec::new();
    for held in MODES {
        for asked in MODES {
            steps.extend([
                (A, Begin),
                (B, Begin),
                (A, Lock(row, held)),
                (B, Lock(row, asked)),
                (A, Commit),
                (B, Commit),
            ]);
        }
    }
    check(&format!("pairs on {row:?}"), steps);
}

#[test]
fn every_pair_of_modes_conflicts_or_does_not_on_a_machine_and_its_state() {
    pairs(Machine(1));
    pairs(Row::State(1));
}

#[test]
fn every_pair_of_modes_conflicts_or_does_not_on_a_draft_and_a_claim() {
    pairs(Draft(1));
    pairs(Claim(1));
}

#[test]
fn every_pair_of_modes_conflicts_or_does_not_on_a_principal_and_an_operation() {
    pairs(Principal(2));
    pairs(Operation(1));
}

#[test]
fn every_pair_of_modes_conflicts_or_does_not_on_a_head_and_a_plans_state() {
    pairs(Head(1));
    pairs(Plan(1));
}

#[test]
fn a_transactions_own_locks_are_in_nobodys_way_but_others() {
    let mut steps = vec![(A, Begin)];
    for first in MODES {
        for second in MODES {
            steps.extend([(A, Lock(Draft(1), first)), (A, Lock(Draft(1), second))]);
        }
    }
    steps.push((A, Commit));
    check("own locks", steps);
}

#[test]
fn a_compatible_request_passes_one_that_waits() {
    for (held, waits, passes) in [
        (Share, Update, Share),
        (Share, NoKeyUpdate, Share),
        (KeyShare, Update, KeyShare),
        (KeyShare, Update, NoKeyUpdate),
        (NoKeyUpdate, Share, KeyShare),
        (NoKeyUpdate, Update, KeyShare),
        (Share, Update, KeyShare),
    ] {
        check(
            &format!("{passes:?} passes {waits:?} behind {held:?}"),
            [
                (A, Begin),
                (B, Begin),
                (C, Begin),
                (A, Lock(Machine(1), held)),
                (B, Lock(Machine(1), waits)),
                (C, Lock(Machine(1), passes)),
                (A, Commit),
                (C, Commit),
                (B, Commit),
            ],
        );
    }
}

#[test]
fn conflicting_requests_go_on_in_the_order_of_their_coming() {
    for (first, second) in [
        (Update, Update),
        (NoKeyUpdate, Share),
        (Share, NoKeyUpdate),
        (Share, Share),
        (KeyShare, Update),
        (Update, KeyShare),
    ] {
        check(
            &format!("{first:?} before {second:?}"),
            [
                (A, Begin),
                (B, Begin),
                (C, Begin),
                (A, Lock(Draft(1), Update)),
                (B, Lock(Draft(1), first)),
                (C, Lock(Draft(1), second)),
                (A, Rollback),
                (B, Rollback),
                (C, Rollback),
            ],
        );
    }
}

#[test]
fn who_waits_behind_a_waiter_in_conflict_with_it_does_not_pass_it_later() {
    for (first, second, third) in [
        (NoKeyUpdate, Update, KeyShare),
        (Share, NoKeyUpdate, Share),
        (KeyShare, Update, KeyShare),
        (Share, Update, KeyShare),
    ] {
        check(
            &format!("{first:?}, {second:?}, {third:?}"),
            [
                (A, Begin),
                (B, Begin),
                (C, Begin),
                (D, Begin),
                (A, Lock(Machine(1), Update)),
                (B, Lock(Machine(1), first)),
                (C, Lock(Machine(1), second)),
                (D, Lock(Machine(1), third)),
                (A, Rollback),
                (B, Rollback),
                (C, Rollback),
                (D, Rollback),
            ],
        );
    }
}

#[test]
fn who_strengthens_its_lock_waits_for_holders_and_not_for_waiters() {
    for (weak, strong) in [(Share, Update), (KeyShare, Update), (Share, NoKeyUpdate)] {
        check(
            &format!("{weak:?} to {strong:?}"),
            [
                (A, Begin),
                (B, Begin),
                (C, Begin),
                (A, Lock(Machine(1), weak)),
                (B, Lock(Machine(1), weak)),
                (C, Lock(Machine(1), Update)),
                (A, Lock(Machine(1), strong)),
                (B, Commit),
                (A, Commit),
                (C, Commit),
            ],
        );
    }
}

#[test]
fn a_lock_after_a_wait_gives_the_version_that_was_committed_meanwhile() {
    for mode in MODES {
        check(
            &format!("{mode:?} after a change"),
            [
                (A, Begin),
                (B, Begin),
                (A, Lock(Draft(1), Update)),
                (A, Advance(1, Always)),
                (B, Read(Draft(1))),
                (B, Lock(Draft(1), mode)),
                (B, Read(Draft(2))),
                (A, Commit),
                (B, Read(Draft(1))),
                (B, Commit),
            ],
        );
    }
}

#[test]
fn an_update_is_in_the_way_of_share_and_not_of_key_share() {
    for mode in MODES {
        check(
            &format!("{mode:?} beside an update"),
            [
                (A, Begin),
                (B, Begin),
                (A, Advance(1, Always)),
                (B, Lock(Draft(1), mode)),
                (A, Commit),
                (B, Commit),
            ],
        );
        check(
            &format!("an update beside {mode:?}"),
            [
                (A, Begin),
                (B, Begin),
                (A, Lock(Draft(1), mode)),
                (B, Advance(1, Always)),
                (A, Commit),
                (B, Commit),
                (A, Begin),
                (A, Read(Draft(1))),
            ],
        );
    }
}

#[test]
fn several_rows_are_locked_one_after_the_other_by_identifier() {
    check(
        "machines by number",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (D, Begin),
            (A, Lock(Machine(2), Update)),
            (B, LockMachines(&[1, 2, 3], Update)),
            (C, Lock(Machine(1), Share)),
            (D, Lock(Machine(3), Share)),
            (A, Commit),
            (D, Commit),
            (B, Commit),
            (C, Commit),
        ],
    );
}

#[test]
fn a_locking_select_finds_the_rows_that_stood_when_it_began() {
    check(
        "a machine is added during the wait",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (A, Lock(Machine(1), Update)),
            (B, LockCluster(Share)),
            (C, NewMachine(9, 9)),
            (C, Commit),
            (A, Append(1, None)),
            (A, Commit),
            (B, LockCluster(Share)),
            (B, Commit),
        ],
    );
}

#[test]
fn principals_are_locked_each_in_a_mode_of_its_own() {
    check(
        "modes by principal",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (
                A,
                LockPrincipals(&[(1, KeyShare), (2, Share), (3, Update), (4, Share)]),
            ),
            (B, LockPrincipals(&[(1, NoKeyUpdate), (2, Share)])),
            (B, LockPrincipals(&[(3, KeyShare)])),
            (C, LockPrincipals(&[(1, Share), (2, Update)])),
            (A, Commit),
            (B, Commit),
            (C, Commit),
        ],
    );
}

#[test]
fn what_is_not_there_is_locked_by_nobody() {
    check(
        "no row",
        [
            (A, Begin),
            (B, Begin),
            (A, Lock(Draft(99), Update)),
            (B, Lock(Draft(99), Update)),
            (A, NewDraft(99, 1)),
            (B, Lock(Draft(99), Update)),
            (A, Commit),
            (B, Lock(Draft(99), Update)),
            (B, Commit),
        ],
    );
}

#[test]
fn the_rollout_row_is_held_by_one() {
    check(
        "rollout",
        [
            (A, Begin),
            (B, Begin),
            (A, LockRollout),
            (B, LockRollout),
            (A, Commit),
            (B, Commit),
        ],
    );
}

#[test]
fn a_lock_goes_with_its_transaction_however_that_ends() {
    for end in [Commit, Rollback, Cut] {
        check(
            &format!("{end:?}"),
            [
                (A, Begin),
                (B, Begin),
                (A, Lock(Machine(1), Update)),
                (B, Lock(Machine(1), Update)),
                (A, end),
                (B, Commit),
            ],
        );
    }
    check(
        "a statement that fails",
        [
            (A, Begin),
            (B, Begin),
            (A, Lock(Machine(1), Update)),
            (B, Lock(Machine(1), Update)),
            (A, NewDraft(1, 1)),
            (B, Commit),
            (A, Rollback),
        ],
    );
}

#[test]
fn a_waiter_that_goes_leaves_the_queue() {
    for end in [Rollback, Cut] {
        let released = end == Cut;
        let mut steps = vec![
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (A, Lock(Machine(1), Share)),
            (B, Lock(Machine(1), Update)),
        ];
        if released {
            steps.push((B, Cut));
        }
        steps.extend([(C, Lock(Machine(1), Update)), (A, Commit), (C, Commit)]);
        check(&format!("a waiter and {end:?}"), steps);
    }
}

#[test]
fn two_who_wait_for_one_update_go_on_one_after_the_other() {
    check_choice(
        "two updates behind a third",
        [
            (A, Begin),
            (B, Begin),
            (C, Begin),
            (A, Lock(Draft(1), Update)),
            (B, Advance(1, State("open"))),
            (C, Advance(1, State("open"))),
            (A, Rollback),
            (B, Commit),
            (C, Commit),
            (A, Begin),
            (A, Read(Draft(1))),
        ],
    );
}
