//! Tests of the schema and of the plumbing on a real PostgreSQL.

mod catalogue;
mod guards;
mod immutable;
mod inventory;
mod jobs;
mod release;
mod revisions;
pub mod support;
pub mod world;
