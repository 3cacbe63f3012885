//! The provider's faults that no call draws: a seal, and hands that delete or rewrite.
//!
//! Struck by [`super::super::disturb`]. Never in this module: a call.

use bronzeward_core::time::DbTime;

use super::{Data, Key, KvPath, OUTAGE, span_below};
use crate::sim::State;

/// The provider is sealed for a while.
pub fn seal(state: &mut State) {
    let until = state.sched.now() + span_below(state, OUTAGE);
    state.outside.vault.seal(until);
}

/// Somebody deletes, destroys or rewrites a generation, or touches the artifact key.
pub fn spoil(state: &mut State) {
    let paths = state.outside.vault.generations().count();
    let back = state.sched.now() + span_below(state, OUTAGE);
    if paths == 0 || state.rng.u8(0..6) == 0 {
        return spoil_key(state, back);
    }
    let nth = state.rng.usize(0..paths);
    let Some(path) = state.outside.vault.generations().nth(nth) else {
        return;
    };
    let kind = state.rng.u8(0..6);
    let now = state.sched.now();
    let kv = KvPath::Generation(path);
    let vault = &mut state.outside.vault;
    match kind {
        0 => vault.set_deletion(kv, 1, Some(back)),
        1 | 2 => {
            vault.set_deletion(kv, 1, Some(now));
            let undelete = move |state: &mut State| state.outside.vault.set_deletion(kv, 1, None);
            state.sched.at(back, Box::new(undelete));
        }
        3 => vault.destroy(kv, 1),
        4 => vault.delete_metadata(kv),
        _ => {
            let value = vault.holds(path, 1).cloned();
            vault.delete_metadata(kv);
            let data = value.map_or(Data::Foreign, Data::Generation);
            vault.write(kv, data, now);
        }
    }
}

fn spoil_key(state: &mut State, back: DbTime) {
    let now = state.sched.now();
    let kind = state.rng.u8(0..3);
    let vault = &mut state.outside.vault;
    match kind {
        0 => vault.rotate(Key::Artifact, now),
        1 => {
            vault.soft_delete_key(Key::Artifact, true);
            let undo = |state: &mut State| {
                state.outside.vault.soft_delete_key(Key::Artifact, false);
            };
            state.sched.at(back, Box::new(undo));
        }
        _ => {
            vault.rotate(Key::Artifact, now);
            vault.set_decryption_floor(Key::Artifact, 2);
            let undo = |state: &mut State| {
                state.outside.vault.set_decryption_floor(Key::Artifact, 1);
            };
            state.sched.at(back, Box::new(undo));
        }
    }
}
