//! The program that ships, as cargo built it: every rule is in force in it, and what lets a
//! rule go is not linked into it.

use bronzeward_core::rules::{Enforced, Rule};
use bronzeward_without::Without;

/// Whether a program's file names the crate that lets rules go, as symbols and paths do.
fn can_drop_rules(program: &[u8]) -> bool {
    // Joined here, so that this test's own text is not what is found.
    let name = ["bronzeward", "without"].join("_");
    program
        .windows(name.len())
        .any(|part| part == name.as_bytes())
}

#[test]
fn the_program_holds_no_way_to_drop_a_rule() {
    assert_eq!(size_of::<Enforced>(), 0, "nothing to configure");
    let shipped = std::fs::read(env!("CARGO_BIN_EXE_bronzeward")).unwrap();
    assert!(!can_drop_rules(&shipped));
    // The control: this program can.
    assert!(Without::rule(Rule::LeaseLive).drops(Rule::LeaseLive));
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(can_drop_rules(&own));
}
