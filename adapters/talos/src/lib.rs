//! Talos, over its own API: the read-only client behind [`NodeReader`] and the mutating
//! client behind [`NodeWriter`] (EaR 3.5, PA §3.3).
//!
//! The server makes one of each and hands them to the workflows. A use opens one
//! connection to the one endpoint it was given and closes it at its end; nothing is
//! pooled, retried or forwarded, and no request carries node routing metadata. What a
//! node answered leaves this crate as values, classes and codes: never as text, in no
//! error, no log and no Debug.
//!
//! Never in this crate: a file (a talosconfig is parsed in memory), a call outside the
//! two lists in `connection`, a configuration applied in another mode than no-reboot.
//!
//! [`NodeReader`]: bronzeward_engine::ports::node::NodeReader
//! [`NodeWriter`]: bronzeward_engine::ports::node::NodeWriter

mod access;
mod classify;
mod connection;
mod dial;
mod organization;
mod reader;
mod wire;
mod writer;

pub use reader::ReadOnlyTalos;
pub use writer::MutatingTalos;

#[cfg(test)]
mod tests;
