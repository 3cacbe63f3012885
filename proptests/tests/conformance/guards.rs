//! Guarded updates: a wait, then a second look; and where there is none.

use bronzeward_engine::ports::store::LockMode::{KeyShare, Share, Update};

use crate::check;
use crate::op::If::{Always, False, Generation, Lapsed, Live, Revision, State, Unexpired};
use crate::op::Lease::{Future, Past, Soon};
use crate::op::Op::*;
use crate::op::Row::{self, Claim, Draft, Head, Machine, Operation};
use crate::op::Who::{A, B};
use crate::op::{Op, Who};

/// A change by A that B's guarded update waits for, then A's end, then what stands;
/// twice: A's rollback first.
fn after(name: &str, change: Op, waits: Op, row: Row) {
    let mut steps: Vec<(Who, Op)> = Vec::new();
    for end in [Rollback, Commit] {
        steps.extend([
            (A, Begin),
            (B, Begin),
            (A, change.clone()),
            (B, waits.clone()),
            (A, end.clone()),
            (B, end),
            (A, Begin),
            (A, Read(row)),
            (A, Rollback),
        ]);
    }
    check(name, steps);
}

#[test]
fn a_guard_that_a_commit_makes_false_is_looked_at_again_after_the_wait() {
    let one = Advance(1, Always);
    after("revision", one.clone(), Advance(1, Revision(1)), Draft(1));
    after(
        "head",
        AdvanceHead(1, Always),
        AdvanceHead(1, Revision(1)),
        Head(1),
    );
    after(
        "state",
        Discard(1, Always),
        Advance(1, State("open")),
        Draft(1),
    );
    after("kept", one, Advance(1, State("open")), Draft(1));
    after("no guard", Discard(1, Always), Advance(1, Always), Draft(1));
}

#[test]
fn a_fence_is_looked_at_again_after_the_wait() {
    for end in [Commit, Rollback] {
        for guard in [Generation(1), Generation(2), Live, Lapsed, State("queued")] {
            let name = format!("{guard:?} and {end:?}");
            let own = Own(1, Always, 1);
            let steps = [
                (A, Begin),
                (A, own),
                (A, Commit),
                (A, Begin),
                (B, Begin),
                (A, Own(1, Generation(1), 2)),
                (B, Own(1, guard, 3)),
                (A, end.clone()),
                (B, Commit),
                (A, Begin),
                (A, Read(Operation(1))),
            ];
            check(&name, steps);
        }
    }
}

#[test]
fn a_guard_that_does_not_hold_at_first_answers_without_a_wait() {
    for guard in [Revision(2), State("discarded"), False] {
        after("at once", Advance(1, Always), Advance(1, guard), Draft(1));
    }
    after(
        "lapsed",
        Extend(1, Always, Past),
        Extend(1, Lapsed, Future),
        Claim(1),
    );
    after("no row", Advance(1, Always), Advance(99, Always), Draft(99));
}

#[test]
fn an_update_waits_for_who_only_locked_the_row_and_does_not_look_again() {
    for mode in [Share, Update, KeyShare] {
        after(
            "a lock",
            Lock(Draft(1), mode),
            Advance(1, Revision(1)),
            Draft(1),
        );
    }
}

#[test]
fn times_of_a_guard_are_read_when_it_is_looked_at() {
    for guard in [Live, Lapsed, Unexpired] {
        after(
            "future",
            Extend(1, Always, Past),
            Extend(1, guard, Future),
            Claim(1),
        );
    }
    check(
        "past",
        [
            (A, Begin),
            (A, Extend(1, Always, Past)),
            (A, Extend(1, Live, Future)),
            (A, Extend(1, Lapsed, Future)),
            (A, Extend(1, Live, Past)),
            (A, Rollback),
        ],
    );
}

/// B's guard on a short lease holds when its update begins; the lease ends while it waits.
fn lapses(name: &str, change: Op, end: Op) {
    check(
        name,
        [
            (A, Begin),
            (A, Extend(1, Always, Soon)),
            (A, Commit),
            (A, Begin),
            (B, Begin),
            (A, change),
            (B, Extend(1, Live, Future)),
            (A, Lapse),
            (A, end),
            (B, Commit),
            (A, Begin),
            (A, Read(Claim(1))),
        ],
    );
}

#[test]
fn a_lease_that_ends_during_the_wait_counts_where_the_row_was_changed() {
    lapses("changed", EndClaim(1, Always), Commit);
}

#[test]
fn a_lease_that_ends_during_the_wait_does_not_count_where_the_change_was_rolled_back() {
    lapses("rolled back", EndClaim(1, Always), Rollback);
}

#[test]
fn a_lease_that_ends_during_the_wait_does_not_count_where_the_row_was_only_locked() {
    lapses("locked", Lock(Claim(1), Update), Commit);
}

#[test]
fn an_own_change_is_seen_by_the_next_guard() {
    check(
        "own changes",
        [
            (A, Begin),
            (A, Advance(1, Revision(1))),
            (A, Advance(1, Revision(1))),
            (A, Advance(1, Revision(2))),
            (A, Read(Draft(1))),
            (B, Begin),
            (B, Read(Draft(1))),
            (A, Discard(1, State("open"))),
            (A, Advance(1, State("open"))),
            (A, Rollback),
            (B, Read(Draft(1))),
            (B, Advance(1, Revision(1))),
            (B, Commit),
        ],
    );
}

#[test]
fn a_change_that_a_check_refuses_is_told_after_the_wait() {
    after(
        "resumed",
        Extend(1, Always, Future),
        TakeOver(1, Always, 2),
        Claim(1),
    );
    check(
        "a job that failed does not run again",
        [
            (A, Begin),
            (A, Fail(1, Always)),
            (B, Begin),
            (B, Own(1, Always, 1)),
            (A, Commit),
            (B, Rollback),
        ],
    );
}

#[test]
fn updates_that_return_a_row_wait_and_count_on_what_was_committed() {
    after("entries", Append(1, None), Append(1, None), Machine(1));
    after("events", Event(1), Event(1), Operation(1));
    after(
        "a lock",
        Lock(Machine(1), Share),
        Append(1, None),
        Machine(1),
    );
}

#[test]
fn a_display_name_is_written_where_it_differs_when_it_is_looked_at() {
    for (first, second) in [("ada", "ada"), ("ada", "bob")] {
        for end in [Commit, Rollback] {
            check(
                &format!("{first} and {second} and {end:?}"),
                [
                    (A, Begin),
                    (B, Begin),
                    (A, Display(1, first)),
                    (B, Display(1, second)),
                    (A, end),
                    (A, Begin),
                    (A, Display(1, second)),
                    (B, Commit),
                    (A, Commit),
                ],
            );
        }
    }
}
