//! Restoring settings without an agent: after it has died, and at boot.

#[cfg(test)]
mod tests;

use crate::config::Places;
use crate::error::AgentError;
use crate::journal::Journal;
use crate::lock::lock;
use crate::tuner;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How often, and after which pauses, the guardian tries: two seconds in all. An agent that holds the lock for longer is a new one.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// What [`reset`] has done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reset {
    /// A program was in the kernel.
    pub program: bool,
    /// Routes or sysctls were to be restored.
    pub routes: bool,
    /// What was left because it has been changed by others since.
    pub notes: Vec<String>,
    /// What cannot be restored now.
    pub left: Option<String>,
}

/// Restores all that a dead agent has changed. Repeating it does no harm.
///
/// # Errors
/// An agent runs, or the kernel or a file fails.
pub fn reset(places: &Places, cgroup: &Path) -> Result<Reset, AgentError> {
    if !places.state.exists() && !places.pins.exists() {
        return Ok(Reset::default());
    }
    let Some(_lock) = lock(places)? else { return Err(AgentError::Running(places.state.clone())) };
    let mut journal = Journal::open(&places.journal())?;
    let routes = !journal.is_empty();
    // routes first: they have no deadline
    let notes = journal.undo()?;
    let left = journal.left();
    let program = tuner::reset(places, cgroup)?;
    let _ = fs::remove_file(places.status());
    Ok(Reset { program, routes, notes, left })
}

/// The guardian's main function: waits until the agent that started it ends (which closes `pipe`), and restores its changes, unless
/// another agent has taken its place.
///
/// # Errors
/// As [`reset`].
pub fn guard(mut pipe: impl Read, places: &Places, cgroup: &Path) -> Result<Reset, AgentError> {
    // a signal is not the pipe's end
    while !matches!(pipe.read(&mut [0]), Ok(0)) {}
    // the kernel closes a dying process's files one after the other, so its lock may outlive the pipe for a moment
    for _ in 0..TRIES {
        match reset(places, cgroup) {
            Err(AgentError::Running(_)) => thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
    Ok(Reset::default())
}
