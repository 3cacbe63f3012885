//! The store on PostgreSQL: migrations, sessions, transactions, and the statements
//! behind the store port.
//!
//! The server builds it and hands it to the engine. No business decision is made here:
//! what a write may depend on arrives as values, and becomes a WHERE clause. Never in
//! this crate: a rule of its own, a provider call, a secret in an error or a log.

mod adoptions;
pub mod advisory;
mod claims;
mod convert;
mod drafts;
mod freezes;
pub mod guard;
mod inventory;
mod jobs;
pub mod lock;
mod locks;
pub mod migrate;
mod observations;
mod operations;
mod plans;
mod principals;
mod records;
mod recovery;
mod releases;
mod requests;
#[rustfmt::skip]
pub mod schema;
pub mod session;
mod source_writes;
mod sources;
mod standing;
mod statuses;
pub mod store;
pub mod time;
mod timeline;
mod tokens;
pub mod tx;

#[cfg(test)]
mod tests;
