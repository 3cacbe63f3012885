//! Bronzeward's pure decisions: identifiers, states, and the rules over them.
//!
//! Everything here is data in, decision out (architecture "core"). Never in this
//! crate: async, I/O, a clock, randomness, serde derives of wire bodies, Diesel
//! or prost types. Each edge has its own form and converts by hand.

pub mod act;
pub mod adopt;
pub mod attempt;
pub mod authority;
pub mod classify;
pub mod comparison;
pub mod dependency;
pub mod digest;
pub mod document;
pub mod drift;
pub mod epoch;
pub mod fence;
pub mod id;
pub mod idempotency;
pub mod installation;
pub mod inventory;
pub mod observation;
pub mod operation;
pub mod plan;
pub mod principal;
pub mod problem;
pub mod release;
pub mod revision;
pub mod rules;
pub mod scope;
pub mod time;
