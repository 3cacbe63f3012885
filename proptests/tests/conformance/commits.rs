//! Ends of transactions: checks at the commit, failures, lost connections, snapshots.

use bronzeward_engine::ports::store::LockMode::Update;

use crate::check;
use crate::op::If::Always;
use crate::op::Op::*;
use crate::op::Row::{Draft, Machine};
use crate::op::Who::{A, B};

#[test]
fn an_entry_that_names_an_act_is_checked_at_the_commit() {
    for (name, append) in [
        ("entry", Append(1, Some(9))),
        ("record", Record(9, 9)),
        ("endpoint", Endpoint(1, 9)),
    ] {
        check(
            &format!("{name} without its act"),
            [
                (A, Begin),
                (A, append.clone()),
                (A, Read(Machine(1))),
                (A, Commit),
                (A, Begin),
                (A, Read(Machine(1))),
                (A, ReadTimeline(1)),
                (A, Rollback),
            ],
        );
        check(
            &format!("{name} with its act"),
            [
                (A, Begin),
                (A, append),
                (A, NewAct(9)),
                (A, Commit),
                (A, Begin),
                (A, ReadTimeline(1)),
                (A, Read(Machine(1))),
            ],
        );
    }
}

#[test]
fn a_refused_commit_frees_its_locks_and_undoes_its_work() {
    check(
        "refused",
        [
            (A, Begin),
            (B, Begin),
            (A, Advance(1, Always)),
            (A, Append(1, Some(9))),
            (B, Lock(Draft(1), Update)),
            (A, Commit),
            (B, Commit),
        ],
    );
}

#[test]
fn the_first_check_that_fails_is_the_one_that_is_named() {
    check(
        "two",
        [
            (A, Begin),
            (A, Record(9, 9)),
            (A, Append(1, Some(8))),
            (A, Commit),
        ],
    );
    check(
        "two the other way round",
        [
            (A, Begin),
            (A, Append(1, Some(8))),
            (A, Record(9, 9)),
            (A, Commit),
        ],
    );
}

#[test]
fn after_a_failure_every_statement_and_the_commit_are_faults() {
    check(
        "failed",
        [
            (A, Begin),
            (A, NewDraft(1, 1)),
            (A, Read(Draft(1))),
            (A, Advance(2, Always)),
            (A, Commit),
            (A, Begin),
            (A, Read(Draft(2))),
            (A, NewDraft(1, 1)),
            (A, Rollback),
            (A, Begin),
            (A, Now),
            (A, Commit),
        ],
    );
}

#[test]
fn a_lost_connection_is_told_once_and_leaves_nothing() {
    check(
        "cut before a statement",
        [
            (A, Begin),
            (A, Advance(1, Always)),
            (A, Cut),
            (A, Read(Draft(1))),
            (A, Read(Draft(1))),
            (A, Commit),
            (A, Begin),
            (A, Read(Draft(1))),
            (A, Commit),
        ],
    );
    check(
        "cut before a rollback",
        [
            (A, Begin),
            (A, Advance(1, Always)),
            (A, Cut),
            (A, Rollback),
            (A, Begin),
            (A, Read(Draft(1))),
        ],
    );
    check(
        "cut while it waits",
        [
            (A, Begin),
            (B, Begin),
            (A, Lock(Draft(1), Update)),
            (B, Advance(1, Always)),
            (B, Cut),
            (B, Rollback),
            (A, Commit),
        ],
    );
}

#[test]
fn a_snapshot_goes_with_its_connection() {
    check(
        "cut before the first statement, and after it",
        [
            (A, Snapshot),
            (A, Cut),
            (A, ReadDrafts),
            (A, Close),
            (A, Snapshot),
            (A, ReadDrafts),
            (A, Cut),
            (A, ReadDrafts),
            (A, Read(Draft(1))),
            (A, Close),
            (A, Snapshot),
            (A, ReadDrafts),
            (A, Close),
        ],
    );
}

#[test]
fn a_commit_on_a_lost_connection_leaves_its_outcome_unknown() {
    check(
        "cut before the commit",
        [
            (A, Begin),
            (A, Advance(1, Always)),
            (A, Cut),
            (A, Commit),
            (A, Begin),
            (A, Read(Draft(1))),
        ],
    );
}

#[test]
fn a_transaction_sees_what_committed_between_its_statements() {
    check(
        "read committed",
        [
            (A, Begin),
            (A, ReadDrafts),
            (B, Begin),
            (B, NewDraft(9, 1)),
            (B, Advance(1, Always)),
            (A, ReadDrafts),
            (B, ReadDrafts),
            (B, Commit),
            (A, ReadDrafts),
            (A, Commit),
        ],
    );
}

#[test]
fn a_snapshot_sees_one_state_from_its_first_statement_on() {
    check(
        "a commit after the first statement",
        [
            (A, Snapshot),
            (A, ReadDrafts),
            (B, Begin),
            (B, NewDraft(9, 1)),
            (B, Advance(1, Always)),
            (B, Commit),
            (A, ReadDrafts),
            (A, Read(Draft(1))),
            (A, Close),
            (A, Snapshot),
            (A, ReadDrafts),
            (A, Close),
        ],
    );
}

#[test]
fn a_snapshots_state_is_that_of_its_first_statement_and_not_of_its_beginning() {
    check(
        "a commit before the first statement",
        [
            (A, Snapshot),
            (B, Begin),
            (B, NewDraft(9, 1)),
            (B, Commit),
            (A, ReadDrafts),
            (A, Close),
        ],
    );
}

#[test]
fn a_snapshot_waits_for_nobody_and_sees_nothing_uncommitted() {
    check(
        "beside a lock",
        [
            (B, Begin),
            (B, Lock(Draft(1), Update)),
            (B, Advance(1, Always)),
            (A, Snapshot),
            (A, Read(Draft(1))),
            (B, Commit),
            (A, Read(Draft(1))),
            (A, Close),
        ],
    );
}

#[test]
fn entries_are_numbered_without_a_gap_whoever_rolls_back() {
    check(
        "numbers",
        [
            (A, Begin),
            (A, Append(1, None)),
            (A, Rollback),
            (B, Begin),
            (B, Append(1, None)),
            (B, Append(1, None)),
            (B, ReadTimeline(1)),
            (A, Begin),
            (A, ReadTimeline(1)),
            (B, Commit),
            (A, ReadTimeline(1)),
        ],
    );
}
