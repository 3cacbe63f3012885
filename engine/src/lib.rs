//! Bronzeward's workflows, written once over ports.
//!
//! The server gives the ports PostgreSQL, OpenBao, Talos and a clock; the
//! simulator gives them its own. Never in this crate: a runtime, a socket, a
//! clock, randomness, a `dyn` port, or an await on anything that is not a port.

mod artifact;
pub mod authenticate;
pub mod decide;
pub mod dispatch;
pub mod fingerprints;
pub mod ingest;
pub mod observe;
pub mod orphans;
pub mod plan_evidence;
pub mod ports;
pub mod publish;
pub mod recover;
pub mod request;
pub mod rows;
mod start;
pub mod tokens;
pub mod tx;
pub mod world;
