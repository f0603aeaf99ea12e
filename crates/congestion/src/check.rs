//! [`check_invariants`]: the operation model in a process of its own, so that a file that traps ends only itself.

use crate::confine;
use crate::guard;
use crate::hook::{HOOKS, Hook};
use crate::model::{self, CPU_SECONDS_MAX, Fault, Progress, Violation};
use crate::registry::Algorithm;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

/// Number of sequences.
const SEEDS: u64 = 64;
/// Operations per sequence.
const OPERATIONS: u32 = 2_000;
/// Wall-clock time before a check counts as hanging, for a child that waits for something.
const WALL_SECONDS_MAX: u32 = 120;
/// Memory of a check, the process's own included.
const DATA_BYTES_MAX: libc::rlim_t = 1 << 30;

/// What a file passed without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Operations: ACKs, losses, timeouts and so on.
    pub operations: u64,
    /// Calls of each hook that it has, in the order of [`Hook::ALL`].
    pub calls: [u64; HOOKS],
    /// The largest window reached, segments.
    pub window_max: u32,
}

impl fmt::Display for Report {
    /// One line: `128000 operations, windows up to 1000000 segments; calls: ssthresh 812, cong_avoid 53110, …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} operations, windows up to {} segments; calls:", self.operations, self.window_max)?;
        let called = Hook::ALL.iter().zip(self.calls).filter(|&(_, calls)| calls > 0);
        for (i, (hook, calls)) in called.enumerate() {
            write!(f, "{} {} {calls}", if i == 0 { "" } else { "," }, hook.name())?;
        }
        Ok(())
    }
}

/// Runs sequences of operations with `algorithm` in a child process and looks for violations: see
/// [`Fault`] for the list. Sequences are the same at every call. One that is not C is run in this process, since it cannot trap and
/// what it is written in may not survive a fork; each sequence runs once, since what it keeps is not in the private state.
///
/// # Errors
/// The first [`Violation`], which can be that the child died of a signal or did not return.
pub fn check_invariants(algorithm: &Algorithm) -> Result<Report, Violation> {
    if algorithm.is_registered() {
        return play(algorithm, &Progress::default(), false);
    }
    let shared = Shared::new();
    // SAFETY: the child touches only memory that it owns after the fork (its stack, `shared`, the algorithm's code and
    // constants) and calls nothing that takes a lock which another thread of the parent may hold; it ends by _exit.
    match unsafe { libc::fork() } {
        -1 => panic!("cannot fork: {}", std::io::Error::last_os_error()),
        0 => child(algorithm, &shared),
        pid => shared.verdict(wait_for(pid)),
    }
}

/// What the child writes and the parent reads. Both have the same image, so a `&'static str` in it is valid in both.
#[derive(Default)]
struct Board {
    progress: Progress,
    outcome: Option<Result<Report, Violation>>,
}

/// A board in memory that stays shared over a fork.
struct Shared(NonNull<Board>);

impl Shared {
    fn new() -> Shared {
        // SAFETY: an anonymous mapping at an address of the system's choice aliases nothing.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<Board>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert!(memory != libc::MAP_FAILED, "no page of memory to share: {}", std::io::Error::last_os_error());
        let board = NonNull::new(memory.cast::<Board>()).expect("mmap does not answer with null");
        // SAFETY: page-aligned, large enough, ours alone until the fork.
        unsafe { board.write(Board::default()) };
        Shared(board)
    }

    /// What the child wrote, once it has ended with `status`.
    fn verdict(&self, status: libc::c_int) -> Result<Report, Violation> {
        // SAFETY: the child has ended; there is no writer any more.
        let board = unsafe { self.0.as_ref() };
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            let fault = match signal {
                libc::SIGXCPU | libc::SIGALRM => Fault::TimedOut,
                _ => Fault::Signal { signal },
            };
            return Err(board.progress.violation(fault));
        }
        board.outcome.unwrap_or_else(|| Err(board.progress.violation(Fault::Ended)))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped in new() with this size; no reference into it outlives self. Board has nothing to drop.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Board>()) };
    }
}

fn child(algorithm: &Algorithm, shared: &Shared) -> ! {
    limit_child();
    guard::forget();
    confine::to_computing();
    // SAFETY: the parent reads only after this process has ended; progress is atomics, outcome is written once below.
    let board = unsafe { &mut *shared.0.as_ptr() };
    let progress = &board.progress;
    if let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| play(algorithm, progress, true))) {
        board.outcome = Some(outcome);
    }
    // SAFETY: ends the process without running the parent's exit handlers a second time.
    unsafe { libc::_exit(0) }
}

/// No endless loop, no core file, no gigabytes.
fn limit_child() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let seconds = libc::rlim_t::from(CPU_SECONDS_MAX);
    let some = libc::rlimit { rlim_cur: seconds, rlim_max: seconds + 1 };
    let memory = libc::rlimit { rlim_cur: DATA_BYTES_MAX, rlim_max: DATA_BYTES_MAX };
    // SAFETY: plain system calls on values of our own; dispositions and mask may have been inherited.
    unsafe {
        let mut ends: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut ends);
        for signal in [libc::SIGALRM, libc::SIGXCPU] {
            libc::signal(signal, libc::SIG_DFL);
            libc::sigaddset(&raw mut ends, signal);
        }
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const ends, ptr::null_mut());
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::setrlimit(libc::RLIMIT_FSIZE, &raw const none);
        libc::setrlimit(libc::RLIMIT_NPROC, &raw const none);
        libc::setrlimit(libc::RLIMIT_DATA, &raw const memory);
        libc::setrlimit(libc::RLIMIT_CPU, &raw const some);
        libc::alarm(WALL_SECONDS_MAX);
    }
}

fn play(algorithm: &Algorithm, progress: &Progress, twice: bool) -> Result<Report, Violation> {
    let mut report = Report { operations: 0, calls: [0; HOOKS], window_max: 0 };
    for seed in 0..SEEDS {
        let run = model::run_watched(algorithm, seed, OPERATIONS, progress)?;
        if twice && model::run_watched(algorithm, seed, OPERATIONS, progress)?.digest != run.digest {
            return Err(progress.violation(Fault::Irreproducible));
        }
        report.operations += u64::from(run.operations);
        report.window_max = report.window_max.max(run.window_max);
        for (sum, calls) in report.calls.iter_mut().zip(run.calls) {
            *sum += calls;
        }
    }
    Ok(report)
}

fn wait_for(pid: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: `status` is ours; `pid` is the child that was just forked.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } == -1 {
        let error = std::io::Error::last_os_error();
        assert!(error.kind() == std::io::ErrorKind::Interrupted, "cannot wait for the check: {error}");
    }
    status
}
