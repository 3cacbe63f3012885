//! Foreign keys: they take KEY SHARE on the row they name, and need it to stand.

use bronzeward_engine::ports::store::LockMode::{self, KeyShare, NoKeyUpdate, Share, Update};

use crate::check;
use crate::op::If::Always;
use crate::op::Op::*;
use crate::op::Row::{self, Claim, Draft, Head, Machine, Operation, Principal};
use crate::op::Who::{A, B};
use crate::op::{Op, Who};

const MODES: [LockMode; 4] = [KeyShare, Share, NoKeyUpdate, Update];

/// A holds the parent in each mode, B inserts the child; then the other way round.
fn child(parent: Row, insert: &Op) {
    let mut steps: Vec<(Who, Op)> = Vec::new();
    for mode in MODES {
        let (held, asked) = (Lock(parent, mode), insert.clone());
        for (first, second) in [(held.clone(), asked.clone()), (asked, held)] {
            steps.extend([
                (A, Begin),
                (B, Begin),
                (A, first),
                (B, second),
                (A, Rollback),
                (B, Rollback),
            ]);
        }
    }
    check(&format!("{insert:?} and locks of {parent:?}"), steps);
}

#[test]
fn a_drafts_children_wait_for_who_holds_it_for_update() {
    child(Draft(1), &NewClaim(9, 1, 9));
    child(Draft(1), &NewJob(9, 1, 9));
    child(Draft(1), &Entry(1, "name"));
    child(Head(1), &EntryOf(2, 1));
}

#[test]
fn a_principals_children_wait_for_who_holds_it_for_update() {
    child(Principal(2), &NewDraft(9, 2));
    child(Principal(4), &NewToken(9, 4));
    child(Principal(1), &NewAct(9));
}

#[test]
fn a_machines_children_wait_for_who_holds_it_for_update() {
    child(Machine(1), &NewDrift(1, 5));
    child(Machine(1), &NewOperation(9, 1, 1));
}

#[test]
fn a_machines_and_an_operations_entries_wait_for_their_row() {
    child(Machine(1), &Append(1, None));
    child(Operation(1), &Event(1));
}

#[test]
fn a_change_of_the_parent_is_in_no_childs_way() {
    for (change, insert) in [
        (Advance(1, Always), NewClaim(9, 1, 9)),
        (Discard(1, Always), NewJob(9, 1, 9)),
        (Append(1, None), NewDrift(1, 5)),
        (Display(1, "ada"), NewDraft(9, 1)),
    ] {
        let steps: [(Who, Op); 6] = [
            (A, Begin),
            (B, Begin),
            (A, change.clone()),
            (B, insert.clone()),
            (A, Commit),
            (B, Commit),
        ];
        check(&format!("{change:?} and {insert:?}"), steps);
    }
}

#[test]
fn a_parent_that_is_not_committed_is_not_there() {
    for (parent, insert) in [
        (NewDraft(9, 1), NewClaim(9, 9, 9)),
        (NewDraft(9, 1), NewJob(9, 9, 1)),
        (NewDraft(9, 1), Entry(9, "name")),
        (NewMachine(9, 9), NewDrift(9, 5)),
        (Human(9, "new"), NewDraft(9, 9)),
    ] {
        check(
            &format!("{insert:?} beside {parent:?}"),
            [
                (A, Begin),
                (B, Begin),
                (A, parent),
                (B, insert.clone()),
                (A, Commit),
                (B, Commit),
                (B, Begin),
                (B, insert.clone()),
                (B, Rollback),
            ],
        );
    }
}

#[test]
fn a_parent_that_was_never_there_refuses_its_child() {
    let refused = [
        NewDraft(9, 9),
        NewClaim(9, 9, 9),
        NewJob(9, 9, 1),
        Entry(9, "name"),
        NewDrift(9, 5),
        NewOperation(9, 9, 9),
        NewToken(9, 9),
        NewAct(9),
    ];
    for insert in refused {
        let steps = [(A, Begin), (A, insert.clone()), (A, Commit)];
        check(&format!("{insert:?} of nothing"), steps);
    }
}

#[test]
fn a_drift_record_is_extended_by_a_reading_that_is_there_only() {
    check(
        "an extension",
        [
            (A, Begin),
            (A, NewDrift(1, 5)),
            (A, ExtendDrift(1, 5, 2)),
            (A, ExtendDrift(1, 5, 9)),
            (A, Commit),
        ],
    );
}

#[test]
fn the_first_wait_of_an_insert_holds_what_it_has_taken() {
    check(
        "a claim between two holders",
        [
            (A, Begin),
            (B, Begin),
            (A, Lock(Principal(1), Update)),
            (B, NewClaim(9, 1, 9)),
            (crate::op::Who::C, Begin),
            (crate::op::Who::C, Lock(Draft(1), Update)),
            (A, Commit),
            (B, Commit),
            (crate::op::Who::C, Commit),
        ],
    );
}

#[test]
fn a_claim_that_ends_keeps_its_locks_from_its_children() {
    check(
        "a child of a claim",
        [
            (A, Begin),
            (B, Begin),
            (A, EndClaim(1, Always)),
            (B, Lock(Claim(1), KeyShare)),
            (B, Lock(Claim(1), Share)),
            (A, Commit),
            (B, Commit),
        ],
    );
}
