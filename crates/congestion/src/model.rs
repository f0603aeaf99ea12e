//! The operation model: runs an algorithm, ours or a user's, on one host whose operations come in random order.
//!
//! A seed determines a sequence of operations: ACKs of one segment or of a window, duplicate ACKs, losses, timeouts,
//! marks, undo, idle times, RTTs from 1 µs to 2^31 µs, windows up to 10^6 segments, a state that `init` never saw. After
//! each call of a hook it looks for violations ([`Fault`]). The tests drive the built-in algorithms with
//! it; [`crate::check_invariants`] a user's.

mod host;
mod rng;

use crate::hook::{HOOKS, Hook};
use crate::registry::Algorithm;
use host::Host;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The largest window of the model, segments: the range that the files' arithmetic is made for.
pub const WINDOW_MAX: u32 = 1_000_000;

/// CPU time of a check before a hook counts as hanging; a check usually takes a tenth of a second.
pub(crate) const CPU_SECONDS_MAX: u32 = 5;

/// A violation by an algorithm. Windows and thresholds in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The window is 0 or above its clamp.
    Window {
        /// The window.
        cwnd: u32,
        /// Its clamp.
        clamp: u32,
    },
    /// One call more than doubled the window, beyond what was acknowledged.
    Jump {
        /// Before the call.
        from: u32,
        /// After it.
        to: u32,
        /// Segments acknowledged by it.
        acked: u32,
    },
    /// The threshold is under 2.
    Threshold {
        /// The threshold.
        ssthresh: u32,
    },
    /// `undo_cwnd` returned 0 or more than the clamp.
    Undo {
        /// The value returned.
        cwnd: u32,
        /// The clamp.
        clamp: u32,
    },
    /// It wrote a field that belongs to the host; the kernel would refuse to load it.
    HostField {
        /// The field.
        field: &'static str,
    },
    /// The same operations had another outcome: it keeps state outside its private state.
    Irreproducible,
    /// The process died of a signal.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// A hook did not return.
    TimedOut,
    /// A hook ended the process.
    Ended,
}

/// What a signal says of the code that got it.
pub(crate) fn signal_words(signal: i32) -> String {
    let words = match signal {
        libc::SIGFPE => "it divided by zero (SIGFPE)",
        libc::SIGILL => "it reached code that the compiler considered unreachable, such as a division by zero (SIGILL)",
        libc::SIGSEGV => "it accessed memory outside its own (SIGSEGV)",
        libc::SIGABRT => "it gave up (SIGABRT)",
        libc::SIGSYS => "it made a system call (SIGSYS); hooks only compute",
        _ => return format!("it died of signal {signal}"),
    };
    words.to_string()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Window { cwnd: 0, .. } => write!(f, "it set snd_cwnd to 0; a window is at least 1"),
            Fault::Window { cwnd, clamp } => write!(f, "it set snd_cwnd to {cwnd}, above snd_cwnd_clamp {clamp}"),
            Fault::Jump { from, to, acked } => {
                write!(f, "one call raised snd_cwnd from {from} to {to} with {acked} segments acknowledged")
            }
            Fault::Threshold { ssthresh } => write!(f, "the slow-start threshold is {ssthresh}; it is at least 2"),
            Fault::Undo { cwnd, clamp } => write!(f, "it restored the window to {cwnd}, which is outside 1 to {clamp}"),
            Fault::HostField { field } => {
                write!(f, "it wrote {field}, which belongs to the host, or beyond its 104 bytes of private state")
            }
            Fault::Irreproducible => {
                write!(f, "the same operations gave another outcome: it remembers something outside its private state")
            }
            Fault::Signal { signal } => write!(f, "{}", signal_words(signal)),
            Fault::Ended => write!(f, "it ended the process"),
            Fault::TimedOut => write!(f, "it did not return within {CPU_SECONDS_MAX} s of CPU time"),
        }
    }
}

/// A fault, and where it occurred: the same seed reproduces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {fault} (operation {operation} of seed {seed})", hook.name())]
pub struct Violation {
    /// What happened.
    pub fault: Fault,
    /// In which hook.
    pub hook: Hook,
    /// At which operation, from 0.
    pub operation: u32,
    /// Of the sequence that this seed determines.
    pub seed: u64,
}

/// Result of one sequence of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Operations done.
    pub operations: u32,
    /// Calls of each hook that the algorithm has, in the order of [`Hook::ALL`].
    pub calls: [u64; HOOKS],
    /// The largest window, segments.
    pub window_max: u32,
    /// A hash of window, threshold, pacing rate and private state after every call.
    pub digest: u64,
}

/// Where a run is, written before each call so that another process can see where it ended.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    seed: AtomicU64,
    operation: AtomicU32,
    hook: AtomicU32,
}

impl Progress {
    fn begin(&self, seed: u64) {
        self.seed.store(seed, Ordering::Relaxed);
    }

    fn at(&self, operation: u32) {
        self.operation.store(operation, Ordering::Relaxed);
    }

    fn enter(&self, hook: Hook) {
        self.hook.store(hook as u32, Ordering::Relaxed);
    }

    /// A violation where the run is now.
    pub(crate) fn violation(&self, fault: Fault) -> Violation {
        Violation {
            fault,
            hook: Hook::ALL[self.hook.load(Ordering::Relaxed) as usize % HOOKS],
            operation: self.operation.load(Ordering::Relaxed),
            seed: self.seed.load(Ordering::Relaxed),
        }
    }
}

/// Runs `operations` operations of `seed` with `algorithm`, in this process: a division by zero ends it.
///
/// # Errors
/// The first [`Violation`].
pub fn run(algorithm: &Algorithm, seed: u64, operations: u32) -> Result<Run, Violation> {
    run_watched(algorithm, seed, operations, &Progress::default())
}

pub(crate) fn run_watched(
    algorithm: &Algorithm,
    seed: u64,
    operations: u32,
    progress: &Progress,
) -> Result<Run, Violation> {
    progress.begin(seed);
    progress.at(0);
    let mut host = Host::new(algorithm, seed, progress)?;
    for operation in 0..operations {
        progress.at(operation);
        host.operate()?;
    }
    host.finish(operations)
}
