//! The class table of EaR 3.5, written again from the contract and compared as a whole.

use bronzeward_core::attempt::ResponseClass;
use bronzeward_engine::ports::node::UnreadClass;
use tonic::Code;

use crate::classify::{Accepted, Ended, response_class, unread_status};

const IMMEDIATE: &str =
    "this config change can't be applied in immediate mode\ndiff: --- a\n+++ b\n1 error occurred:";

/// The contract's table: code, text, class, and whether it accounts.
fn table() -> Vec<(Code, &'static str, ResponseClass, bool)> {
    use ResponseClass::{Answered, RefusedImmediate, RefusedValidation, Transport};
    let invalid = Code::InvalidArgument;
    let validating = "1 error occurred:\n\t* v1alpha1.Config: 2 errors occurred:\n";
    vec![
        (
            invalid,
            "error decoding document /v1alpha1/ (line 1): x",
            RefusedValidation,
            true,
        ),
        (invalid, "decode error: x", RefusedValidation, true),
        (invalid, "duplicate document: x", RefusedValidation, true),
        (invalid, "config not found", RefusedValidation, true),
        (
            invalid,
            "the applied machine configuration doesn't contain v1alpha1 config, did you mean",
            RefusedValidation,
            true,
        ),
        (invalid, validating, RefusedValidation, true),
        (
            invalid,
            "2 errors occurred:\n\t* a\n\t* b\n",
            RefusedValidation,
            true,
        ),
        (invalid, IMMEDIATE, RefusedImmediate, true),
        (
            invalid,
            "node metadata must be single-valued",
            Answered,
            true,
        ),
        (invalid, "", Answered, true),
        // A text that only quotes the words of another proves nothing.
        (invalid, "unrecognised\n1 error occurred:", Answered, true),
        (invalid, "unrecognised decode error", Answered, true),
        (Code::PermissionDenied, "not authorized", Answered, true),
        (Code::FailedPrecondition, "another apply", Answered, true),
        (Code::Unimplemented, "", Answered, true),
        (Code::Unknown, "1 error occurred:", Answered, true),
        (Code::Internal, "", Answered, true),
        (Code::Unavailable, "", Transport, false),
        (Code::DeadlineExceeded, "", Transport, false),
        (Code::Cancelled, "", Transport, false),
        (Code::Aborted, "", Transport, false),
        (Code::ResourceExhausted, "", Transport, false),
        // Not in the table: nothing is known, so nothing is accounted for.
        (Code::Ok, "", Transport, false),
        (Code::NotFound, "", Transport, false),
        (Code::AlreadyExists, "", Transport, false),
        (Code::OutOfRange, "", Transport, false),
        (Code::DataLoss, "", Transport, false),
        (Code::Unauthenticated, "", Transport, false),
    ]
}

/// The rows that a classifier gets wrong.
fn wrong(classify: impl Fn(&Ended<'_>) -> ResponseClass) -> Vec<(Code, &'static str)> {
    table()
        .into_iter()
        .filter(|(code, text, class, accounts)| {
            let found = classify(&Ended::Refusal {
                code: *code as i32,
                text,
            });
            found != *class || found.accounts() != *accounts
        })
        .map(|(code, text, _, _)| (code, text))
        .collect()
}

// covers: EaR-RSP-1
#[test]
fn every_status_of_the_node_has_its_class_and_moving_one_is_noticed() {
    assert_eq!(wrong(response_class), []);
    // Control: each row moved to each other class is found wrong, and it alone.
    for (code, text, right, _) in table() {
        for moved in ResponseClass::ALL
            .into_iter()
            .filter(|class| *class != right)
        {
            let found = wrong(|ended| match ended {
                Ended::Refusal {
                    code: asked,
                    text: said,
                } if *asked == code as i32 && *said == text => moved,
                Ended::Refusal { .. } | Ended::Accepted(_) | Ended::Ours => response_class(ended),
            });
            assert_eq!(found, [(code, text)]);
        }
    }
}

#[test]
fn an_acceptance_is_one_message_of_this_node_in_the_mode_asked_for() {
    let sound = Accepted {
        messages: 1,
        failed_node: false,
        mode_as_asked: true,
    };
    let class = |accepted| response_class(&Ended::Accepted(accepted));
    assert_eq!(class(sound), ResponseClass::Accepted);
    for unsound in [
        Accepted {
            messages: 0,
            ..sound
        },
        Accepted {
            messages: 2,
            ..sound
        },
        Accepted {
            failed_node: true,
            ..sound
        },
        Accepted {
            mode_as_asked: false,
            ..sound
        },
    ] {
        assert_eq!(class(unsound), ResponseClass::Transport);
    }
    assert_eq!(response_class(&Ended::Ours), ResponseClass::Transport);
}

#[test]
fn only_unavailable_and_deadline_exceeded_are_a_node_out_of_reach() {
    for number in 0..17 {
        let class = match Code::from_i32(number) {
            Code::Unavailable | Code::DeadlineExceeded => UnreadClass::Unreachable,
            Code::PermissionDenied | Code::Unauthenticated => UnreadClass::Denied,
            Code::NotFound => UnreadClass::Absent,
            Code::Ok => UnreadClass::Malformed,
            _ => UnreadClass::Failed,
        };
        assert_eq!(unread_status(number).class, class);
    }
}
