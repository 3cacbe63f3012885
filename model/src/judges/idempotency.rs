//! Requests under keys: one record beside one effect, one answer however often it is asked
//! for (PA §7, §12.4, EaR 8.13).

use std::collections::BTreeMap;

use bronzeward_core::id::{EpochId, PrincipalId};
use bronzeward_core::idempotency::{Fingerprint, IdempotencyKey};

use super::case::Case;
use super::{Verdict, violation};
use crate::change::{Answered, Change};

/// What a key was answered, whether a restore has erased it since or not.
#[derive(Clone, Debug)]
struct Stored {
    fingerprint: Fingerprint,
    status: u16,
    body: String,
    epoch: EpochId,
}

#[derive(Clone, Debug, Default)]
pub struct Idempotency {
    stored: BTreeMap<(PrincipalId, IdempotencyKey), Vec<Stored>>,
}

impl Idempotency {
    pub fn look(&mut self, case: &Case<'_>) -> Verdict {
        let mut records = Vec::new();
        let mut acts = Vec::new();
        for change in case.changes {
            match change {
                Change::Idempotency(changed) => {
                    if let Some(after) = &changed.after {
                        let stored = Stored {
                            fingerprint: after.record.fingerprint.clone(),
                            status: after.record.status,
                            body: after.record.body.clone(),
                            epoch: after.record.epoch,
                        };
                        let of = (after.principal, after.key.clone());
                        self.stored.entry(of).or_default().push(stored);
                        records.push(&after.record);
                    }
                }
                Change::Act(changed) => acts.extend(changed.after.as_ref().map(|act| &act.row)),
                _ => {}
            }
        }
        const WORDS: &str = "an effect has its act and its record";
        let asked = acts.iter().filter(|act| act.request.is_some());
        if asked.count() != records.len() || records.len() > 1 {
            return violation(WORDS, format!("{} records", records.len()));
        }
        for record in records {
            let own = |act: &&&bronzeward_engine::ports::store::ActRow| {
                act.id == record.act
                    && act.epoch == record.epoch
                    && act.request == Some(record.request)
            };
            if acts.iter().find(own).is_none() {
                return violation(WORDS, format!("request {}", record.request));
            }
        }
        Ok(())
    }

    /// Whoever asks under a key is answered what was stored under it, for that request, in
    /// this epoch.
    pub fn answered(&self, answered: &Answered) -> Verdict {
        let of = (answered.principal, answered.key.clone());
        let said = || format!("key {}", answered.key.as_str());
        let stored = self.stored.get(&of).map_or(&[][..], Vec::as_slice);
        let same = |one: &&Stored| one.status == answered.status && one.body == answered.body;
        let Some(stored) = stored.iter().rev().find(same) else {
            return violation("a key answers what was stored under it", said());
        };
        if stored.fingerprint != answered.fingerprint {
            return violation("a key answers its own request", said());
        }
        match !answered.replayed || stored.epoch == answered.epoch {
            true => Ok(()),
            false => violation("no answer of another epoch is given again", said()),
        }
    }
}
