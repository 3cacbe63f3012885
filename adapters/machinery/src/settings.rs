//! How many workers, from which program, and what each of them may use.

use std::path::PathBuf;
use std::time::Duration;

/// What happens where the kernel lacks a part of the confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Confinement {
    /// The pool does not start.
    #[default]
    Required,
    /// The pool starts without that part and logs which.
    BestEffort,
}

/// `renderer.*` of the server's configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The worker program. Built with `CGO_ENABLED=0`.
    pub worker: PathBuf,
    pub count: usize,
    /// Per request, and the longest a request waits for a free worker.
    pub deadline: Duration,
    /// Resident bytes of one worker.
    pub memory: u64,
    pub confinement: Confinement,
}

impl Settings {
    /// Two workers, thirty seconds, 512 MiB, confined.
    pub fn new(worker: impl Into<PathBuf>) -> Settings {
        Settings {
            worker: worker.into(),
            count: 2,
            deadline: Duration::from_secs(30),
            memory: 512 << 20,
            confinement: Confinement::Required,
        }
    }
}
