//! The readable trace of one seed.
//!
//! A sweep keeps none: a failing seed is run again for it. Never in this module: anything a
//! decision reads.

use std::fmt::Write as _;

use bronzeward_core::time::DbTime;

use crate::faults::Fault;
use crate::pg::Lockable;
use crate::sched::ProcessId;

#[derive(Debug, Default)]
pub struct Trace {
    text: Option<String>,
}

impl Trace {
    pub fn new(kept: bool) -> Self {
        Self {
            text: kept.then(String::new),
        }
    }

    pub fn kept(&self) -> bool {
        self.text.is_some()
    }

    fn line(&mut self, now: DbTime, line: std::fmt::Arguments<'_>) {
        if let Some(text) = &mut self.text {
            let (seconds, micros) = (now.as_micros() / 1_000_000, now.as_micros() % 1_000_000);
            // Writing to a string does not fail.
            let _infallible = writeln!(text, "{seconds:>6}.{micros:06} {line}");
        }
    }

    pub fn step(&mut self, now: DbTime, process: ProcessId, what: &str) {
        self.line(now, format_args!("{process} {what}"));
    }

    pub fn waits(&mut self, now: DbTime, process: ProcessId, what: Lockable) {
        self.line(now, format_args!("{process} waits for {what:?}"));
    }

    pub fn fault(&mut self, now: DbTime, fault: Fault) {
        self.line(now, format_args!("!! {}", fault.name()));
    }

    pub fn say(&mut self, now: DbTime, what: std::fmt::Arguments<'_>) {
        self.line(now, what);
    }

    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or("")
    }
}

impl std::fmt::Display for ProcessId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::WORLD => f.write_str("world"),
            Self(number) => write!(f, "p{number}"),
        }
    }
}
