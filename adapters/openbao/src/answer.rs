//! What an answer that is not a success means: the only place that reads a status for it.
//!
//! Called by every client. The classes are those of facts §8. Never in this module: the
//! provider's text beyond the comparison with a known one.

use bronzeward_engine::ports::provider::{Creation, Failure, TokenState};
use serde::Deserialize;

use crate::transport::Reply;

/// The two refusals of facts §6.2: of a token that is not valid, and of one that is but may not.
const NOT_VALID: &str = "permission denied";
const NOT_GRANTED: &str = "1 error occurred:\n\t* permission denied\n\n";

/// Answers of 500 in which the whole node fails and not the request: no leader yet or any
/// more, and an audit device that cannot be written. With the second the call may have been
/// executed.
const NODE_FAILS: [&str; 2] = [
    "local node not active but active cluster node not found",
    "internal error",
];

#[derive(Deserialize)]
struct Errors {
    errors: Vec<String>,
}

fn errors(reply: &Reply) -> Option<Vec<String>> {
    serde_json::from_slice::<Errors>(&reply.body)
        .ok()
        .map(|body| body.errors)
}

/// The failure of any answer but 200. A 200 that gets here has not been understood.
///
/// 307 is a standby's: a node that becomes active sends some calls to itself that way for
/// some milliseconds after an unseal. (The other 307, for a path that needs cleaning, is
/// never provoked: such a path is not sent.)
pub(crate) fn failure(reply: &Reply) -> Failure {
    match reply.status {
        400 | 405 | 413 | 415 => Failure::Refused,
        403 => Failure::Denied,
        404 => Failure::Absent,
        307 | 429 | 503 => Failure::Unavailable,
        500 if says_one_of(reply, &NODE_FAILS) => Failure::Unavailable,
        _ => Failure::Unreadable,
    }
}

/// What a create-only write's answer other than 200 means.
///
/// The policy refuses an existing path (403) like an ungranted one, and a lost race is a
/// conflict (400): in both the path may exist. An answer that failed leaves it open whether
/// the write was done; only an answer that names the request's own fault is a refusal.
pub(crate) fn creation(reply: &Reply) -> Creation {
    match reply.status {
        400 | 403 => Creation::MayExist,
        404 | 405 | 413 | 415 => Creation::Refused(failure(reply)),
        _ => Creation::Unknown(failure(reply)),
    }
}

/// The absence of a directory: 404 without a word. With one, the mount itself is absent.
pub(crate) fn is_empty_listing(reply: &Reply) -> bool {
    reply.status == 404 && errors(reply).is_some_and(|errors| errors.is_empty())
}

/// What the refusal of a route that no policy grants says of the token itself.
pub(crate) fn token_state(reply: &Reply) -> TokenState {
    match reply.status {
        200 => TokenState::Valid,
        403 if says_one_of(reply, &[NOT_GRANTED]) => TokenState::Valid,
        403 if says_one_of(reply, &[NOT_VALID]) => TokenState::Dead,
        _ => TokenState::Undecided(failure(reply)),
    }
}

fn says_one_of(reply: &Reply, texts: &[&str]) -> bool {
    match errors(reply).as_deref() {
        Some([only]) => texts.contains(&only.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        Reply {
            status,
            date: None,
            body: body.as_bytes().to_vec().into(),
        }
    }

    /// facts §8, and B7, B8: not every outage is 503.
    #[test]
    fn an_answer_is_classified_by_status_and_two_known_texts() {
        use Failure::*;
        let none = r#"{"errors":[]}"#;
        let standby = r#"{"errors":["local node not active but active cluster node not found"]}"#;
        let audit = r#"{"errors":["internal error"]}"#;
        let own = r#"{"errors":["1 error occurred:\n\t* internal error\n\n"]}"#;
        for (status, body, class) in [
            (403, none, Denied),
            (404, none, Absent),
            (400, none, Refused),
            (405, "", Refused),
            (413, none, Refused),
            (503, r#"{"errors":["Vault is sealed"]}"#, Unavailable),
            (429, none, Unavailable),
            (500, standby, Unavailable),
            (500, audit, Unavailable),
            (500, own, Unreadable),
            (500, "", Unreadable),
            (502, "<html>", Unreadable),
            (307, "", Unavailable),
            (302, "<a href>", Unreadable),
            (200, "not JSON", Unreadable),
            (204, "", Unreadable),
        ] {
            assert_eq!(failure(&reply(status, body)), class, "{status} {body}");
        }
    }

    #[test]
    fn a_write_that_was_answered_by_a_failure_is_unknown_and_never_not_done() {
        let body = r#"{"errors":["internal error"]}"#;
        for status in [500, 502, 503, 504, 429, 307, 204, 200] {
            let outcome = creation(&reply(status, body));
            assert!(matches!(outcome, Creation::Unknown(_)), "{status}");
        }
        for status in [400, 403] {
            assert_eq!(creation(&reply(status, body)), Creation::MayExist);
        }
        for status in [404, 405, 413] {
            assert!(
                matches!(creation(&reply(status, body)), Creation::Refused(_)),
                "{status}"
            );
        }
    }

    #[test]
    fn only_a_wordless_404_is_an_empty_directory() {
        assert!(is_empty_listing(&reply(404, r#"{"errors":[]}"#)));
        for (status, body) in [
            (
                404,
                r#"{"errors":["no handler for route \"x\". route entry not found."]}"#,
            ),
            (404, ""),
            (404, "{}"),
            (404, "<html>"),
            (403, r#"{"errors":[]}"#),
        ] {
            assert!(!is_empty_listing(&reply(status, body)), "{status} {body}");
        }
    }
}
