//! The HTTP face of the server (PA §9).
//!
//! A handler is parse, authorise, engine, answer; these are the pieces of the first,
//! second and last step: headers, query, body, cursor and fingerprint input, the
//! authorisation check over the route table, the one table of problems, and the
//! headers every answer carries. Never in this crate: a rule of the product, a
//! transaction, or text of a peer in an answer.

pub mod answer;
pub mod app;
pub mod authorise;
pub mod body;
pub mod call;
pub mod cursor;
pub mod fingerprint;
mod handlers;
pub mod headers;
pub mod problem;
pub mod query;

#[cfg(test)]
mod tests;
