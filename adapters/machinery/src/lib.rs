//! The renderer port over Talos's own Go machinery, run as confined worker processes.
//!
//! `server` starts a [`MachineryRenderer`] and hands it to ingestion and publication as
//! their `Renderer`. The Go side is in `worker/`; what is said between the two is
//! `proto/renderer.proto`. This departs from IC §10.1, which links the machinery into the
//! compiling process: a Go runtime inside ours would share its end with every panic.
//! Never in this crate: a merge, a YAML library, or a text of a configuration in an
//! error, a log line, a file, an argument or an environment variable.

mod client;
mod confine;
mod convert;
mod pool;
mod process;
mod settings;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use client::MachineryRenderer;
pub use confine::Confined;
pub use settings::{Confinement, Settings};

/// Generated from `proto/renderer.proto`.
#[allow(rust_2018_idioms, clippy::all)]
pub(crate) mod wire {
    include!(concat!(env!("OUT_DIR"), "/bronzeward.renderer.v1.rs"));
}

/// The number of `proto/renderer.proto` as this crate speaks it.
pub(crate) const PROTOCOL: u32 = 1;

/// Why no renderer started. Says what an operator can do about it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the renderer worker {} is missing; build it with `CGO_ENABLED=0 go build -trimpath` in adapters/machinery/worker", .0.display())]
    Missing(PathBuf),
    #[error(
        "renderer workers cannot be confined: {0}; `renderer.confinement: best-effort` starts without what is missing"
    )]
    Confinement(&'static str),
    #[error(
        "the renderer worker could not be started ({0}): is it the static program that `CGO_ENABLED=0 go build` makes?"
    )]
    Spawn(std::io::ErrorKind),
    #[error(
        "the program started as renderer worker does not answer as one of this version: was it built from the same checkout, with CGO_ENABLED=0?"
    )]
    NotAWorker,
    #[error("the renderer worker's own record of the machinery cannot be read")]
    Undescribed,
}
