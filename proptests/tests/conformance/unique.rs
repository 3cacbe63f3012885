//! Unique indexes: they wait for whoever may yet take or free a value, then refuse or pass.

use bronzeward_engine::ports::store::LockMode::Update;

use crate::check;
use crate::op::If::Always;
use crate::op::Op::*;
use crate::op::Row::{Claim, Draft, Operation};
use crate::op::Who::{A, B, C};
use crate::op::{Op, Who};

/// A writes, B inserts and may have to wait, A ends, B ends; once for each end of A, the
/// commit last, and then once more, so that what was left behind is seen.
fn meets(name: &str, first: Op, second: Op) {
    let mut steps: Vec<(Who, Op)> = Vec::new();
    for end in [Rollback, Cut, Commit] {
        steps.extend([
            (A, Begin),
            (B, Begin),
            (A, first.clone()),
            (B, second.clone()),
            (A, end.clone()),
            (B, if end == Commit { Commit } else { Rollback }),
        ]);
        if end == Cut {
            // It hears of the cut.
            steps.extend([(A, Read(Draft(1))), (A, Rollback)]);
        }
    }
    steps.extend([(C, Begin), (C, second), (C, Rollback)]);
    check(name, steps);
}

#[test]
fn a_primary_key_is_taken_by_one() {
    meets("drafts", NewDraft(9, 1), NewDraft(9, 2));
    meets("machines", NewMachine(9, 8), NewMachine(9, 9));
    meets("claims", NewClaim(9, 1, 8), NewClaim(9, 1, 9));
    meets("jobs", NewJob(9, 1, 8), NewJob(9, 1, 9));
    meets("acts", NewAct(9), NewAct(9));
    meets("records", Record(9, 1), Record(9, 2));
}

#[test]
fn a_unique_value_is_taken_by_one() {
    meets("UUIDs", NewMachine(8, 9), NewMachine(9, 9));
    meets("Talos clusters", NewCluster(8, 'C'), NewCluster(9, 'C'));
    meets("names", NewService(8, "other"), NewService(9, "other"));
    meets("live keys", NewClaim(8, 1, 9), NewClaim(9, 2, 9));
    meets("heads", NewHead(8, 9), NewHead(9, 9));
    meets("drift", NewDrift(1, 5), NewDrift(1, 6));
    meets("publications", NewJob(8, 1, 2), NewJob(9, 1, 2));
}

#[test]
fn a_value_that_stands_is_refused_at_once() {
    for insert in [
        NewDraft(1, 1),
        NewMachine(9, 1),
        NewCluster(9, 'A'),
        NewService(9, "service"),
        NewClaim(9, 1, 1),
        NewJob(9, 1, 1),
        NewToken(9, 4),
        NewHead(9, 1),
    ] {
        let steps = [
            (A, Begin),
            (A, insert.clone()),
            (A, Read(Draft(1))),
            (A, Commit),
        ];
        check(&format!("{insert:?}"), steps);
    }
}

#[test]
fn the_primary_key_is_the_first_index_that_refuses() {
    for insert in [
        NewMachine(1, 2),
        NewMachine(1, 1),
        NewCluster(1, 'B'),
        NewService(4, "service"),
        NewClaim(1, 1, 1),
        NewJob(1, 1, 1),
        NewJob(1, 2, 1),
        NewToken(1, 4),
        NewHead(1, 2),
    ] {
        let steps = [(A, Begin), (A, insert.clone()), (A, Rollback)];
        check(&format!("{insert:?}"), steps);
    }
    check(
        "drift",
        [
            (A, Begin),
            (A, NewDrift(1, 5)),
            (A, NewDrift(1, 5)),
            (A, Rollback),
        ],
    );
    check(
        "commitments",
        [
            (A, Begin),
            (A, NewOperation(9, 1, 1)),
            (A, NewOperation(9, 1, 1)),
            (A, Rollback),
        ],
    );
}

#[test]
fn who_leaves_a_partial_index_frees_the_value_when_it_commits() {
    meets("an ended claim", EndClaim(1, Always), NewClaim(9, 2, 1));
    meets("a failed publication", Fail(1, Always), NewJob(9, 1, 1));
    meets("a revoked token", RevokeToken(1), NewToken(9, 4));
}

#[test]
fn who_stays_in_a_partial_index_refuses_after_the_wait() {
    let future = Extend(1, Always, crate::op::Lease::Future);
    meets("an extended claim", future, NewClaim(9, 2, 1));
    meets("an owned publication", Own(1, Always, 1), NewJob(9, 1, 1));
    meets("an event", Event(1), NewJob(9, 1, 1));
}

#[test]
fn who_only_locks_a_row_refuses_at_once() {
    meets("a locked claim", Lock(Claim(1), Update), NewClaim(9, 2, 1));
    meets("a locked job", Lock(Operation(1), Update), NewJob(9, 1, 1));
}

#[test]
fn a_plan_a_machine_and_a_cluster_have_one_holder() {
    meets("plan", NewOperation(8, 1, 1), NewOperation(9, 1, 1));
    meets("machine", NewOperation(8, 1, 1), NewOperation(9, 11, 2));
    meets("cluster", NewOperation(8, 1, 1), NewOperation(9, 2, 1));
    meets("neither", NewOperation(8, 1, 1), NewOperation(9, 2, 2));
}

#[test]
fn a_holder_that_ends_frees_machine_and_cluster_and_not_its_plan() {
    for (second, name) in [
        (NewOperation(9, 1, 1), "plan"),
        (NewOperation(9, 11, 2), "machine"),
        (NewOperation(9, 2, 1), "cluster"),
    ] {
        for state in ["completed", "verifying"] {
            for end in [Commit, Rollback] {
                check(
                    &format!("{name}, {state}, {end:?}"),
                    [
                        (A, Begin),
                        (A, NewOperation(8, 1, 1)),
                        (A, Commit),
                        (A, Begin),
                        (B, Begin),
                        (A, Move(8, Always, state)),
                        (B, second.clone()),
                        (A, end),
                        (B, Commit),
                    ],
                );
            }
        }
    }
}

#[test]
fn a_row_that_comes_back_into_a_partial_index_waits_and_is_refused_alike() {
    for end in [Commit, Rollback] {
        check(
            &format!("back, {end:?}"),
            [
                (A, Begin),
                (A, NewOperation(8, 1, 1)),
                (A, Move(8, Always, "completed")),
                (A, Commit),
                (A, Begin),
                (B, Begin),
                (A, NewOperation(9, 11, 2)),
                (B, Move(8, Always, "unresolved")),
                (A, end),
                (B, Commit),
            ],
        );
    }
}

#[test]
fn a_drift_record_that_is_closed_makes_room_for_the_next() {
    for end in [Commit, Rollback] {
        check(
            &format!("closed, {end:?}"),
            [
                (A, Begin),
                (A, NewDrift(1, 5)),
                (A, Commit),
                (A, Begin),
                (B, Begin),
                (A, CloseDrift(1, 5)),
                (B, NewDrift(1, 7)),
                (A, end),
                (B, Commit),
            ],
        );
    }
}

#[test]
fn two_who_close_one_drift_record_do_so_once() {
    for end in [Commit, Rollback] {
        check(
            &format!("twice, {end:?}"),
            [
                (A, Begin),
                (A, NewDrift(1, 5)),
                (A, Commit),
                (A, Begin),
                (B, Begin),
                (A, CloseDrift(1, 5)),
                (B, CloseDrift(1, 5)),
                (A, end),
                (B, Rollback),
            ],
        );
    }
}

#[test]
fn on_conflict_do_nothing_waits_and_then_does_nothing_or_inserts() {
    meets("humans", Human(8, "new"), Human(9, "new"));
    meets(
        "a human that stands",
        Display(1, "ada"),
        Human(9, "human-1"),
    );
    meets("statuses", Seed(1, &[1, 2]), Seed(11, &[2, 3]));
    meets("statuses of other versions", Seed(1, &[1]), Seed(11, &[2]));
}

#[test]
fn on_conflict_do_nothing_of_another_key_is_still_refused() {
    meets(
        "a human under an identifier that is taken",
        Human(8, "new"),
        Human(8, "other"),
    );
    check(
        "a human under an identifier that stands",
        [(A, Begin), (A, Human(1, "other")), (A, Rollback)],
    );
}

#[test]
fn on_conflict_do_update_waits_for_the_insert_and_for_the_row() {
    meets("entries of a draft", Entry(1, "name"), Entry(1, "name"));
    meets(
        "entries of other names",
        Entry(1, "name"),
        Entry(1, "other"),
    );
    check(
        "an entry that stands",
        [
            (A, Begin),
            (A, Entry(1, "name")),
            (A, Commit),
            (A, Begin),
            (B, Begin),
            (A, Entry(1, "name")),
            (B, Entry(1, "name")),
            (A, Commit),
            (B, Commit),
        ],
    );
}

#[test]
fn a_value_of_the_transactions_own_is_refused_without_a_wait() {
    check(
        "twice in one",
        [
            (A, Begin),
            (A, NewDraft(9, 1)),
            (A, NewDraft(9, 1)),
            (A, Rollback),
            (A, Begin),
            (A, EndClaim(1, Always)),
            (A, NewClaim(9, 1, 1)),
            (A, NewClaim(8, 1, 1)),
            (A, Commit),
            (A, Begin),
            (A, Read(Claim(1))),
            (A, Human(8, "new")),
            (A, Human(9, "new")),
            (A, Commit),
        ],
    );
}
