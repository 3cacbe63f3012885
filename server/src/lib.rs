//! The `bronzeward` server: configuration, composition and subcommands.
//!
//! A library, so that the harness can run the same server over gated ports and with a
//! rule dropped; the binary names the real world. Never in this crate: a decision.

pub mod config;
