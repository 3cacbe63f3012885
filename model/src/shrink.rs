//! The least of a seed's world that still fails as the seed does.
//!
//! Steps first, then faults and acts one by one: what can be left out is left out. Never in
//! this module: how a failure is told from another.

use crate::faults::Fault;
use crate::people::Doing;
use crate::seed::Setting;

/// `fails` says whether a setting still fails in the wanted way.
pub fn shrink(setting: &Setting, fails: &dyn Fn(&Setting) -> bool) -> Setting {
    let mut least = setting.clone();
    let mut cut = least.steps / 2;
    while cut > 0 {
        let fewer = Setting {
            steps: least.steps.saturating_sub(cut),
            ..least.clone()
        };
        match fails(&fewer) {
            true => least = fewer,
            false => cut /= 2,
        }
    }
    for fault in Fault::ALL {
        let mut without = least.clone();
        without.off.insert(fault);
        if fails(&without) {
            least = without;
        }
    }
    for doing in Doing::ALL {
        let mut without = least.clone();
        without.idle.insert(doing);
        if fails(&without) {
            least = without;
        }
    }
    least
}
