//! One worker process: started confined, asked over its socket, killed and reaped.
//!
//! The pool alone calls this. A request goes through the socket and nowhere else: the
//! process has no argument, an environment of two Go settings, `/` as its folder, and a
//! standard error whose content is counted and dropped. Never in this module: a text of
//! a request or an answer in an error or a log line.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(test)]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bronzeward_engine::ports::renderer::Unavailable;
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use zeroize::Zeroizing;

use crate::confine::Cage;
use crate::settings::Settings;

/// Where the worker finds its end of the socket pair.
const SOCKET: i32 = 3;
/// Descriptors a worker may have open, its own runtime's included.
const DESCRIPTORS: u64 = 64;
/// How often a busy worker's memory is looked at. It can take up some tens of
/// megabytes more than its limit in between.
const MEMORY_TICK: Duration = Duration::from_millis(10);
/// The largest answer. The worker's own limits keep below it.
const FRAME_BYTES: u32 = 128 << 20;

pub(crate) struct Worker {
    child: Child,
    socket: UnixStream,
    stderr: JoinHandle<()>,
    pid: u32,
}

impl Worker {
    pub(crate) fn start(
        settings: &Settings,
        cage: &Arc<Cage>,
        printed: &Arc<Printed>,
    ) -> io::Result<Worker> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut child = command(settings, cage, theirs.into()).spawn()?;
        let pid = child
            .id()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let stderr = child.stderr.take();
        let printed = Arc::clone(printed);
        Ok(Worker {
            child,
            socket: UnixStream::from_std(ours)?,
            stderr: tokio::spawn(async move {
                if let Some(stderr) = stderr {
                    printed.drain(stderr).await;
                }
            }),
            pid,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// True while the process has not ended; an ended one is reaped by this.
    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends one frame and reads one. After any error the worker's state is unknown and
    /// it must be [ended](Worker::end).
    pub(crate) async fn exchange(
        &mut self,
        frame: &[u8],
        deadline: Duration,
        memory: u64,
    ) -> Result<Zeroizing<Vec<u8>>, Unavailable> {
        let overrun = Instant::now() + deadline;
        let pid = self.pid;
        let conversation = converse(&mut self.socket, frame);
        tokio::pin!(conversation);
        let mut tick = interval(MEMORY_TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // Biased: an answer that is there counts, however late it is looked at.
            tokio::select! {
                biased;
                answer = &mut conversation => return answer,
                () = sleep_until(overrun) => return Err(Unavailable::Deadline),
                _ = tick.tick() => {
                    if resident(pid).is_some_and(|bytes| bytes > memory) {
                        return Err(Unavailable::Memory);
                    }
                }
            }
        }
    }

    /// Kills and reaps the process and closes everything that led to it.
    pub(crate) async fn end(mut self) {
        // An error means that it has ended already; waiting reaps it either way.
        let _ = self.child.start_kill();
        let _ = self.child.wait().await;
        drop(self.socket);
        let _ = self.stderr.await;
    }
}

#[allow(unsafe_code)]
fn command(settings: &Settings, cage: &Arc<Cage>, socket: OwnedFd) -> Command {
    let mut command = std::process::Command::new(&settings.worker);
    command
        .env_clear()
        // Go collects before it reaches the limit we kill at; a crash prints no stack.
        .env("GOMEMLIMIT", (settings.memory / 4 * 3).to_string())
        .env("GOTRACEBACK", "none")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let cage = Arc::clone(cage);
    // SAFETY: the closure runs in the child between fork and exec. It makes system
    // calls on values built before the fork and allocates nothing; `cage` and `socket`
    // live in the command, which outlives the spawn.
    unsafe {
        command.pre_exec(move || {
            place_socket(&socket)?;
            let none = Rlimit {
                current: Some(0),
                maximum: Some(0),
            };
            setrlimit(Resource::Core, none)?;
            setrlimit(Resource::Fsize, none)?;
            setrlimit(
                Resource::Nofile,
                Rlimit {
                    current: Some(DESCRIPTORS),
                    maximum: Some(DESCRIPTORS),
                },
            )?;
            cage.enter()
        });
    }
    let mut command = Command::from(command);
    command.kill_on_drop(true);
    command
}

/// Puts the socket at its place and marks every other descriptor to be closed by exec:
/// not closed here, since the standard library still has one to report a failure by.
#[allow(unsafe_code)]
fn place_socket(socket: &OwnedFd) -> io::Result<()> {
    let socket = socket.as_raw_fd();
    // SAFETY: system calls on plain numbers, after fork, in the only thread there is.
    let failed = unsafe {
        let placed = if socket == SOCKET {
            libc::fcntl(SOCKET, libc::F_SETFD, 0)
        } else {
            libc::dup2(socket, SOCKET)
        };
        placed < 0
            || libc::syscall(
                libc::SYS_close_range,
                SOCKET + 1,
                u32::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            ) < 0
    };
    if failed {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

async fn converse(
    socket: &mut UnixStream,
    frame: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Unavailable> {
    let gone = |_: io::Error| Unavailable::Crashed;
    let length = u32::try_from(frame.len()).map_err(|_| Unavailable::Protocol)?;
    socket
        .write_all(&length.to_be_bytes())
        .await
        .map_err(gone)?;
    socket.write_all(frame).await.map_err(gone)?;
    let length = socket.read_u32().await.map_err(gone)?;
    if length > FRAME_BYTES {
        return Err(Unavailable::Protocol);
    }
    let mut answer = Zeroizing::new(vec![0; length as usize]);
    socket.read_exact(&mut answer).await.map_err(gone)?;
    Ok(answer)
}

/// What workers print on standard error. A dying Go program can quote anything, so not
/// one byte of it is kept.
#[derive(Default)]
pub(crate) struct Printed {
    bytes: AtomicU64,
    /// Tests look for values in it.
    #[cfg(test)]
    kept: Mutex<Vec<u8>>,
}

impl Printed {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> Vec<u8> {
        let kept = self.kept.lock();
        kept.unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn drain(&self, mut stderr: ChildStderr) {
        let mut buffer = Zeroizing::new([0; 4096]);
        while let Ok(read @ 1..) = stderr.read(&mut *buffer).await {
            self.bytes.fetch_add(read as u64, Ordering::Relaxed);
            #[cfg(test)]
            self.kept
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend_from_slice(&buffer[..read]);
        }
    }
}

/// What a process has in memory, in bytes. Go maps far more than it uses.
pub(crate) fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
