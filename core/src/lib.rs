//! Bronzeward's pure decisions: identifiers, states, and the rules over them.
//!
//! Everything here is data in, decision out (architecture "core"). Never in this
//! crate: async, I/O, a clock, randomness, serde derives of wire bodies, Diesel
//! or prost types. Each edge has its own form and converts by hand.

pub mod act;
pub mod adopt;
pub mod attempt;
pub mod authoring;
pub mod authority;
pub mod canonical;
pub mod claim;
pub mod classify;
pub mod comparison;
pub mod compile;
pub mod dependency;
pub mod digest;
pub mod document;
pub mod draft;
pub mod drift;
pub mod envelope;
pub mod epoch;
pub mod extract;
pub mod fence;
pub mod forms;
pub mod generation;
pub mod guard;
pub mod head;
pub mod id;
pub mod idempotency;
pub mod installation;
pub mod inventory;
pub mod job;
pub mod machinery;
pub mod observation;
pub mod operation;
pub mod output_check;
pub mod path;
pub mod plan;
pub mod principal;
pub mod problem;
pub mod provenance;
pub mod redact;
pub mod reference;
pub mod refusal;
pub mod refused;
pub mod release;
pub mod reserved;
pub mod resolve;
pub mod revision;
pub mod rules;
pub mod sanitized;
pub mod scope;
pub mod secret;
pub mod source;
pub mod standin;
pub mod time;
pub mod timeline;
pub mod token;
