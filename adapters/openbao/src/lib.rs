//! OpenBao behind the provider ports: one client type per identity (IC §1).
//!
//! The composition root makes an [`Endpoint`] and from it a client for each identity the
//! process acts as. A client has the methods its policy grants, reads its own token file
//! at every call, and gives typed outcomes. Never in this crate: a method that a policy
//! refuses, a followed redirect, a proxy, a retry of a write, and the provider's text in an
//! error or a log.
//!
//! # The provider's traps (facts B1 to B34) and where they are met
//!
//! Tests name the trap they show. These do not reach this crate:
//!
//! * B19 to B23 (tokens, token lifetime, audit devices) are the operator's and the
//!   fixture's: see `fixtures/openbao` and the operator guide.
//! * B14 (`cas: null`) and B28, B29 (`max_versions`, undelete): this crate always sends
//!   `cas: 0` as a number, and neither writes metadata nor undeletes.
//! * B30 (stale reads of a standby): the installation has one node. An operator with several
//!   sets `disable_standby_reads` on each; nothing here could tell a stale answer.
//! * B33 (`exportable` is for good): no identity configures keys.
//! * B17 (a key made again in the same second): undetectable; publication refuses a key
//!   version of the current second instead (`bronzeward_core::dependency::proven_created`).
//! * B5 and B6 (what a restore does) are the operator's, and the recovery procedure's.

mod answer;
mod compiler;
mod executor;
mod ingestion;
mod kv;
mod metadata;
mod orphans;
mod settings;
mod token;
mod transit;
mod transport;

pub use compiler::Compiler;
pub use executor::Executor;
pub use ingestion::{Ingestion, IngestionKeys};
pub use metadata::Metadata;
pub use orphans::OrphanReport;
pub use settings::{Endpoint, Settings, SettingsError};
