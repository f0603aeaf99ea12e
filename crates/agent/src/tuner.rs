//! The host's TCP in our hands: the program in the kernel, routes and sysctls.

use crate::config::{Config, Means, Places};
use crate::daemon::AgentError;
use crate::journal::Journal;
use crate::namespaces::in_each;
use crate::plan::Plan;
use kernel::Pins;
use kernel::retune::{Counts, Record, RetuneError, Retuner};
use std::fs;
use std::path::{Path, PathBuf};

/// What sets.
#[derive(Debug)]
pub struct Tuner {
    retuner: Option<Retuner>,
    journal: Journal,
    means: Means,
    cgroup: PathBuf,
    pins: PathBuf,
}

impl Tuner {
    /// Takes the place of an earlier agent: what it left is given back, since nobody has watched its guards.
    ///
    /// # Errors
    /// The kernel does not take the program, or files cannot be used.
    pub fn take_over(config: &Config) -> Result<(Tuner, Vec<String>), AgentError> {
        let mut journal = Journal::open(&config.places.journal())?;
        let notes = journal.undo()?;
        let retuner = if config.means.bpf() { Some(attached(&config.cgroup, &config.places)?) } else { None };
        let (cgroup, pins) = (config.cgroup.clone(), config.places.pins.clone());
        let mut tuner = Tuner { retuner, journal, means: config.means, cgroup, pins };
        tuner.set_rules(&Plan::default())?;
        Ok((tuner, notes))
    }

    /// Makes the host what the plan says. Returns what could not be done.
    ///
    /// # Errors
    /// The kernel's, or the journal's: it is not known then what is set.
    pub fn apply(&mut self, plan: &Plan) -> Result<Vec<String>, AgentError> {
        let notes = if self.means.routes() { self.journal.apply(plan)? } else { Vec::new() };
        self.set_rules(plan)?;
        Ok(notes)
    }

    fn set_rules(&mut self, plan: &Plan) -> Result<(), RetuneError> {
        let Some(retuner) = &mut self.retuner else { return Ok(()) };
        retuner.set(&plan.rules)?;
        adopt(retuner, &self.cgroup)
    }

    /// What the program has done.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn counts(&self) -> Result<Option<Counts>, RetuneError> {
        self.retuner.as_ref().map(Retuner::counts).transpose()
    }

    /// Connections that have ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn ended(&self, take: impl FnMut(Record)) -> Result<(), RetuneError> {
        self.retuner.as_ref().map_or(Ok(()), |retuner| retuner.ended(take))
    }

    /// Gives everything back and takes out what is in the kernel. Returns what was left because somebody else has changed it.
    ///
    /// # Errors
    /// The kernel's, or the journal's.
    pub fn give_back(mut self) -> Result<Vec<String>, AgentError> {
        let rules = self.set_rules(&Plan::default());
        let notes = self.journal.undo()?;
        rules?;
        drop(self.retuner.take());
        remove(&self.pins)?;
        Ok(notes)
    }
}

/// Lets open connections of every namespace in the cgroup follow the rules.
fn adopt(retuner: &mut Retuner, cgroup: &Path) -> Result<(), RetuneError> {
    let mut outcome = Ok(());
    in_each(cgroup, || {
        if let Err(error) = retuner.adopt() {
            outcome = Err(error);
        }
    });
    outcome
}

/// The program, as it stays.
pub fn attached(cgroup: &Path, places: &Places) -> Result<Retuner, AgentError> {
    // opening mounts bpffs where it is missing; the lock is for who loads algorithms, and is let go
    drop(Pins::open().map_err(|error| AgentError::Bpffs(error.to_string()))?);
    Ok(Retuner::attach_for_good(cgroup, &places.pins)?)
}

/// Takes out what stays in the kernel, and the folder above if it is empty.
pub fn remove(pins: &Path) -> Result<bool, RetuneError> {
    let was_there = Retuner::remove(pins)?;
    if was_there && let Some(folder) = pins.parent() {
        let _ = fs::remove_dir(folder);
    }
    Ok(was_there)
}

/// Gives back what a program that stays has set, and takes it out; whether there was one.
///
/// # Errors
/// The kernel's.
pub fn reset(places: &Places, cgroup: &Path) -> Result<bool, AgentError> {
    if !places.pins.exists() {
        return Ok(false);
    }
    // first what takes no time; what an agent that was killed while it began has left may lack it
    let _ = Retuner::end_rules(&places.pins);
    let mut retuner = attached(cgroup, places)?;
    retuner.set(&[])?;
    adopt(&mut retuner, cgroup)?;
    drop(retuner);
    Ok(remove(&places.pins)?)
}
