//! From what the server answered to the store's error: one classification for all
//! statements (style 12).
//!
//! The SQLSTATE and the constraint's name come from [`super::wire`]. Called by this
//! folder. Never in here, and never out of here: the server's text, which can quote values.

use std::collections::BTreeSet;
use std::sync::Mutex;

use bronzeward_engine::ports::store::StoreError;

use super::wire::{ServerError, Wire};

/// Classifies a failed statement; `error` is diesel's, and only its kind is used.
pub fn statement(error: &diesel::result::Error, wire: &Wire) -> StoreError {
    use diesel::result::{DatabaseErrorKind, Error};
    match (wire.error(), error) {
        (Some(server), _) => server_error(&server),
        (None, Error::DatabaseError(kind, _)) => match kind {
            DatabaseErrorKind::UnableToSendCommand | DatabaseErrorKind::ClosedConnection => {
                tracing::warn!("the database connection was lost");
                StoreError::Unavailable
            }
            _ => fault("an answer without its SQLSTATE"),
        },
        // The row did not have the form the schema gives it, or the query could not be built.
        (None, _) => fault("a query or a row of an unexpected form"),
    }
}

/// Classifies a failed COMMIT. Only an ordinary error says that nothing was committed: a
/// session that ends meanwhile may have committed first (PA §5 rule 6).
pub fn commit(wire: &Wire) -> StoreError {
    match wire.error() {
        Some(server) if !server.fatal => server_error(&server),
        Some(_) | None => {
            tracing::warn!("the answer to a COMMIT was lost");
            StoreError::CommitUnknown
        }
    }
}

pub fn fault(what: &'static str) -> StoreError {
    tracing::error!(what, "database fault");
    StoreError::Fault
}

fn server_error(error: &ServerError) -> StoreError {
    let code = error.code.as_str();
    let constraint = error.constraint.as_deref();
    tracing::warn!(
        sqlstate = code,
        constraint,
        "the database refused a statement"
    );
    match code {
        "40P01" => StoreError::Deadlock,
        "23505" => StoreError::Unique(constraint.map_or("unique", interned)),
        // Integrity violations, and the refusals of our own triggers.
        _ if code.starts_with("23") || code.starts_with("BW") => {
            StoreError::Integrity(constraint.map_or("unnamed", interned))
        }
        // No lock or no answer within the session's limits, no room, or the server is
        // stopping: nothing of this transaction committed and it may work later.
        "55P03" | "57014" | "25P03" | "57P05" | "53300" => StoreError::Unavailable,
        _ if code.starts_with("57P") || code.starts_with("08") || code.starts_with("53") => {
            StoreError::Unavailable
        }
        _ => StoreError::Fault,
    }
}

/// The names of the schema's own constraints, kept for the life of the process so that an
/// error can carry one by reference. There are as many as the schema has.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(|held| held.into_inner());
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}
