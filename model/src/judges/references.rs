//! What a source revision refers to, against what the provider was given (PA §6.4, §15.6).

use super::case::Case;
use super::{Verdict, violation};
use crate::change::Change;
use crate::ports::provider::Vault;

/// No committed row refers to a value that was not created before.
pub fn look(case: &Case<'_>, vault: &Vault) -> Verdict {
    for change in case.changes {
        let Change::References(changed) = change else {
            continue;
        };
        let rows = changed.after.iter().flat_map(|after| after.rows.values());
        for row in rows {
            if !vault.ever_held(row.kept.generation) {
                return violation(
                    "a value is created before it is referred to",
                    row.kept.generation.to_string(),
                );
            }
        }
    }
    Ok(())
}
