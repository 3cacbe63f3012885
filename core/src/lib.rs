//! Bronzeward's pure decisions: identifiers, states, and the rules over them.
//!
//! Everything here is data in, decision out (architecture "core"). Never in this
//! crate: async, I/O, a clock, randomness, serde derives of wire bodies, Diesel
//! or prost types. Each edge has its own form and converts by hand.

pub mod act;
pub mod authority;
pub mod dependency;
pub mod digest;
pub mod document;
pub mod epoch;
pub mod fence;
pub mod id;
pub mod idempotency;
pub mod installation;
pub mod inventory;
pub mod principal;
pub mod problem;
pub mod release;
pub mod revision;
pub mod rules;
pub mod scope;
pub mod time;
