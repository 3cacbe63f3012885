//! What the kernel holds a worker to: no new privileges, a system call filter, Landlock.
//!
//! [`Cage::prepare`] builds everything once, before any fork; [`Cage::enter`] runs
//! between fork and exec and makes system calls only. A worker can then create no
//! socket and no process, open nothing but its own program, and write to nothing but
//! the descriptors it was given. Never in this module: a path that a worker may write.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::StartError;
use crate::settings::Confinement;

/// The Landlock version without which nothing counts as confined: the first that
/// covers every way to change a file, truncation included.
const LANDLOCK_LEAST: ABI = ABI::V3;

/// What this kernel gives, for the line the server logs at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confined {
    pub filter: bool,
    pub landlock: bool,
}

impl Confined {
    pub fn wholly(self) -> bool {
        self.filter && self.landlock
    }
}

pub(crate) struct Cage {
    filter: Option<BpfProgram>,
    ruleset: Option<OwnedFd>,
}

impl Cage {
    /// Builds the confinement for workers started from `program`. Where the kernel
    /// lacks a part, `Required` refuses and `BestEffort` goes on without it.
    pub(crate) fn prepare(program: &Path, policy: Confinement) -> Result<Cage, StartError> {
        let filter = kernel_filters()
            .then(filter)
            .transpose()
            .map_err(|_| StartError::Confinement("the system call filter cannot be built"))?;
        let ruleset = ruleset(program)?;
        let cage = Cage { filter, ruleset };
        let confined = cage.confined();
        if policy == Confinement::Required {
            if !confined.filter {
                return Err(StartError::Confinement("the kernel has no seccomp filters"));
            }
            if !confined.landlock {
                return Err(StartError::Confinement(
                    "the kernel has no Landlock (version 3)",
                ));
            }
        }
        Ok(cage)
    }

    pub(crate) fn confined(&self) -> Confined {
        Confined {
            filter: self.filter.is_some(),
            landlock: self.ruleset.is_some(),
        }
    }

    /// Confines the calling process for good. Called in the child, between fork and
    /// exec, where only async-signal-safe calls may be made: it allocates nothing.
    #[allow(unsafe_code)]
    pub(crate) fn enter(&self) -> io::Result<()> {
        rustix::thread::set_no_new_privs(true)?;
        if let Some(ruleset) = &self.ruleset {
            // SAFETY: a system call on a descriptor that is open as long as `self` is;
            // no memory is passed.
            let answer =
                unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
            if answer != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        if let Some(filter) = &self.filter {
            seccompiler::apply_filter(filter)
                .map_err(|_| io::Error::from_raw_os_error(libc::EPERM))?;
        }
        Ok(())
    }
}

/// Whether the kernel was built with filters; it lists the actions that they may take.
fn kernel_filters() -> bool {
    fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").is_ok_and(|actions| {
        actions
            .split_ascii_whitespace()
            .any(|action| action == "errno")
    })
}

fn ruleset(program: &Path) -> Result<Option<OwnedFd>, StartError> {
    let unbuildable = |_| StartError::Confinement("the Landlock rules cannot be built");
    let least = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LANDLOCK_LEAST));
    let Ok(ruleset) = least else {
        return Ok(None);
    };
    let own = PathFd::new(program).map_err(|_| StartError::Missing(program.to_path_buf()))?;
    let created = ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V6)))
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .and_then(Ruleset::create)
        .and_then(|rules| {
            rules.add_rule(PathBeneath::new(
                own,
                AccessFs::Execute | AccessFs::ReadFile,
            ))
        })
        .map_err(unbuildable)?;
    Ok(created.into())
}

/// What a Go program needs to run and to answer on descriptors it has. Everything else
/// answers EPERM.
fn filter() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in CALLS {
        rules.insert(*call, Vec::new());
    }
    #[cfg(target_arch = "x86_64")]
    for call in [
        libc::SYS_arch_prctl,
        libc::SYS_epoll_wait,
        libc::SYS_getrlimit,
    ] {
        rules.insert(call, Vec::new());
    }
    // A thread and no process.
    let thread = libc::CLONE_THREAD as u64;
    rules.insert(
        libc::SYS_clone,
        vec![when(0, SeccompCmpOp::MaskedEq(thread), thread)?],
    );
    // To read and not to write: a second fence beside Landlock.
    let writing = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64;
    rules.insert(
        libc::SYS_openat,
        vec![when(2, SeccompCmpOp::MaskedEq(writing), 0)?],
    );
    rules.insert(
        libc::SYS_prctl,
        vec![
            when(0, SeccompCmpOp::Eq, libc::PR_SET_DUMPABLE as u64)?,
            when(0, SeccompCmpOp::Eq, libc::PR_SET_VMA as u64)?,
        ],
    );
    SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
        TargetArch::try_from(std::env::consts::ARCH)?,
    )?
    .try_into()
    .map_err(seccompiler::Error::from)
}

fn when(
    argument: u8,
    compare: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::Error> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}

const CALLS: &[i64] = &[
    // The program itself: exec is Landlock's to bound, and the filter is there before it.
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    // Descriptors it has.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_readlinkat,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_madvise,
    libc::SYS_mincore,
    // Threads, signals and time.
    libc::SYS_futex,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    // What it asks about itself and the machine.
    libc::SYS_getrandom,
    libc::SYS_prlimit64,
    libc::SYS_uname,
];
