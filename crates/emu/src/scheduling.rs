//! CPU affinity and priority: the engine has a CPU of its own, and the run has priority over other programs.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use rustix::process::setpriority_process;
use std::fs::{self, File};
use std::io::Write;

/// The highest-priority niceness.
const HIGHEST_PRIORITY: i32 = -20;
/// Linux shares CPUs between sessions first, whatever their programs' niceness: this file holds the niceness of this
/// process's session as a whole (`sched(7)`).
const SESSION: &str = "/proc/self/autogroup";

/// Holds the longest time in microseconds that a CPU may take to wake up; in force while the file is open.
const WAKE_UP_LATENCY: &str = "/dev/cpu_dma_latency";

/// The CPUs that this process may use: one for the engine, the others for hosts and traffic.
#[derive(Clone)]
pub struct Cpus {
    engine: Option<usize>,
    others: Vec<usize>,
}

impl Cpus {
    /// As the system reports them.
    pub fn of_this_process() -> Cpus {
        let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let mut all: Vec<usize> = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect();
        let engine = if all.len() > 1 { all.pop() } else { None };
        Cpus { engine, others: all }
    }

    /// The others, a bit each; none if there is only one.
    pub fn others_mask(&self) -> Option<u64> {
        self.engine?;
        Some(self.others.iter().filter(|cpu| **cpu < 64).fold(0, |mask, cpu| mask | 1 << cpu))
    }

    /// Moves the calling thread to the engine's CPU, with the highest priority.
    pub fn take_engine(&self) {
        pin(self.engine.as_slice());
        go_first();
    }

    /// Moves the calling thread to the other CPUs.
    pub fn take_others(&self) {
        if self.engine.is_some() {
            pin(&self.others);
        }
    }
}

/// Gives the calling thread the highest priority that Linux allows. Not a real-time class: those are stopped for
/// 50 ms of every second.
pub fn go_first() {
    let _ = setpriority_process(None, HIGHEST_PRIORITY);
}

/// Gives the calling thread priority over other programs, but below threads that [go first](go_first).
pub fn go_second() {
    let _ = setpriority_process(None, HIGHEST_PRIORITY / 2);
}

/// Restricts the calling thread to these CPUs. Where that is refused, the self-check shows the effect.
fn pin(cpus: &[usize]) {
    let mut set = CpuSet::new();
    let known = cpus.iter().all(|cpu| set.set(*cpu).is_ok());
    if known && !cpus.is_empty() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// While this lives, no CPU of the machine sleeps (`PM QoS`), so that waking a thread on one is a write to its
/// memory: in some virtual machines, an interrupt instead takes 10 us of its sender, and that is the engine.
pub struct Awake {
    _request: Option<File>,
}

impl Awake {
    /// Requests it. Where Linux lacks it, the self-check shows the effect.
    pub fn ask() -> Awake {
        let granted = |mut file: File| file.write_all(&0_i32.to_ne_bytes()).is_ok().then_some(file);
        Awake { _request: File::options().write(true).open(WAKE_UP_LATENCY).ok().and_then(granted) }
    }
}

/// While this lives, this process's session has priority over others. Where sessions have no niceness, nothing is
/// done: the self-check shows the effect.
pub struct Precedence {
    before: Option<i32>,
}

impl Precedence {
    /// Sets it, unless another run of the session already has.
    pub fn take() -> Precedence {
        let before = session_niceness().filter(|nice| *nice != HIGHEST_PRIORITY);
        let taken = before.is_some() && fs::write(SESSION, HIGHEST_PRIORITY.to_string()).is_ok();
        Precedence { before: before.filter(|_| taken) }
    }

    /// Restores it after a run that was killed in this session.
    pub fn forget() {
        if session_niceness() == Some(HIGHEST_PRIORITY) {
            let _ = fs::write(SESSION, "0");
        }
    }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = fs::write(SESSION, before.to_string());
        }
    }
}

/// "/autogroup-51 nice 0"
fn session_niceness() -> Option<i32> {
    fs::read_to_string(SESSION).ok()?.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_goes_first_only_as_long_as_the_run_lasts() {
        let Some(before) = session_niceness() else {
            eprintln!("skipped: sessions have no niceness on this machine");
            return;
        };
        let first = Precedence::take();
        if session_niceness() != Some(HIGHEST_PRIORITY) {
            eprintln!("skipped: this user may not raise its priority");
            return;
        }
        drop(Precedence::take());
        assert_eq!(session_niceness(), Some(HIGHEST_PRIORITY), "the first run still has it");
        drop(first);
        assert_eq!(session_niceness(), Some(before));
    }
}
