//! Bronzeward's pure decisions: identifiers, states, and the rules over them.
//!
//! Everything here is data in, decision out (architecture "core"). Never in this
//! crate: async, I/O, a clock, randomness, serde derives of wire bodies, Diesel
//! or prost types. Each edge has its own form and converts by hand.

pub mod document;
