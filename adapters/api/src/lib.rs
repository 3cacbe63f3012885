//! What a Bronzeward server and its clients both speak: wire bodies, the route
//! table, and the OpenAPI document made of the two (PA §9).
//!
//! `http` parses requests and writes answers with these types; `client` does the
//! reverse. The route table is the only place that ties a route to its roles.
//! Never in this crate: a core type, a decision, I/O, or a status of a problem
//! code (that table is `http`'s). It imports nothing of ours, so that a client
//! links no server.

pub mod bodies;
pub mod id;
mod json;
pub mod openapi;
pub mod routes;
mod tree;
mod value;
mod yaml;

pub use json::{BodyError, Checked, Json, MAX_BODY_BYTES, parse_body};
pub use value::{InputText, Text, TextForm, Timestamp, Whole, form};

/// The API revision this table and these bodies describe (PA §9.1's table).
pub const API_REVISION: u32 = 5;

#[cfg(test)]
mod tests;
