//! The `bronzeward` server: configuration, composition and subcommands.
//!
//! A library, so that the harness can run the same server with a rule dropped or with
//! gates before its ports; the binary names the enforced rules. Never in this crate: a
//! decision.

pub mod commands;
pub mod config;
mod execution;
mod ingestion;
mod orphans;
pub mod parts;
mod publication;
pub mod run;
mod tokens;
