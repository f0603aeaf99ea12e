//! Sets the host's TCP: the program in the kernel, routes and sysctls.

use crate::config::{Config, Means, Places};
use crate::error::AgentError;
use crate::journal::Journal;
use crate::namespaces::{each_below, in_each};
use crate::plan::Plan;
use crate::reconcile::{FOLLOW, Reconciler};
use crate::routes::Table;
use kernel::bpffs::MountError;
use kernel::retune::{Counts, Record, RetuneError, Retuner};
use kernel::{PinError, Pins};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use units::Time;

/// What lacks without BPF.
const WITHOUT_BPF: &str = "without BPF only routes and sysctls are set: open connections keep what they have, rules with a port, pacing, \
                           max_pacing_rate and delayed_ack_max are not set, ended connections are not reported";

/// The means in use.
#[derive(Debug)]
pub struct Tuner {
    retuner: Option<Retuner>,
    reconciler: Reconciler,
    means: Means,
    /// What cannot be set without BPF, and why there is none.
    lacking: Option<String>,
    cgroup: PathBuf,
    pins: PathBuf,
    /// Rules are set on connections.
    has_rules: bool,
    /// When it is looked next whether the program is still attached.
    attached_at: Time,
    /// Why no connection is set just now.
    detached: Option<String>,
    notes: Vec<String>,
}

impl Tuner {
    /// Replaces an earlier agent: its settings are restored, since nobody has watched their guards. Where [`Means::Both`] are
    /// requested and BPF is not available, routes and sysctls remain.
    ///
    /// # Errors
    /// The kernel refuses the program that was requested, or files cannot be used.
    pub fn take_over(config: &Config) -> Result<(Tuner, Vec<String>), AgentError> {
        let mut journal = Journal::open(&config.places.journal())?;
        let notes = journal.undo()?;
        let (cgroup, pins) = (config.cgroup.clone(), config.places.pins.clone());
        // a program that is already loaded has settings that only BPF restores
        let may_lack = config.means == Means::Both && !pins.exists();
        let (mut retuner, mut means, mut lacking) = (None, config.means, None);
        if means.bpf() {
            match attached(&cgroup, &config.places) {
                Ok(attached) => retuner = Some(attached),
                Err(AgentError::Bpf(reason)) if may_lack => {
                    means = Means::Routes;
                    lacking =
                        Some(format!("{WITHOUT_BPF}: {}", reason.split_whitespace().collect::<Vec<_>>().join(" ")));
                }
                Err(error) => return Err(error),
            }
        }
        let mut tuner = Tuner {
            retuner,
            reconciler: Reconciler::new(journal),
            means,
            lacking,
            cgroup,
            pins,
            has_rules: false,
            attached_at: Time::ZERO,
            detached: None,
            notes: Vec::new(),
        };
        tuner.set_rules(&Plan::default())?;
        Ok((tuner, notes))
    }

    /// How TCP is changed in effect.
    pub fn means(&self) -> Means {
        self.means
    }

    /// The numbers of the cgroups whose connections are set, as the kernel names them; `None`: those of all.
    pub fn cgroups(&self) -> Option<BTreeSet<u64>> {
        let is_root = kernel::cgroup_mounts().contains(&self.cgroup);
        (self.retuner.is_some() && !is_root).then(|| {
            let mut numbers = BTreeSet::new();
            each_below(&self.cgroup, &mut |folder| numbers.extend(fs::metadata(folder).map(|folder| folder.ino())));
            numbers
        })
    }

    /// What this host lacks, as text.
    pub fn lacking(&self) -> Option<&str> {
        self.lacking.as_deref()
    }

    /// Sets the host as the plan says.
    ///
    /// # Errors
    /// The kernel or the journal fails: it is unknown then what is set.
    pub fn apply(&mut self, plan: &Plan) -> Result<(), AgentError> {
        if self.means.routes() {
            self.reconciler.set(plan)?;
        }
        self.set_rules(plan)?;
        self.note();
        Ok(())
    }

    /// Sets again what others have changed, and attaches the program anew where its cgroup was made anew; whether there was anything to do.
    /// `spent` is the CPU time that this thread has had.
    ///
    /// # Errors
    /// As of [`Tuner::apply`].
    pub fn follow(&mut self, now: Time, spent: impl Fn() -> Time) -> Result<bool, AgentError> {
        let mut is_news = self.reconciler.follow(now, spent)?;
        if self.has_rules && now >= self.attached_at {
            self.attached_at = now + FOLLOW;
            let why = self.stay_attached().err();
            is_news |= why != self.detached;
            self.detached = why;
        }
        self.note();
        Ok(is_news)
    }

    /// Or why no connection is set.
    fn stay_attached(&mut self) -> Result<(), String> {
        let Some(retuner) = &mut self.retuner else { return Ok(()) };
        if !self.cgroup.exists() {
            return Err(format!("{}: there is no such cgroup: no connection is set", self.cgroup.display()));
        }
        let is_new = retuner.stay_attached(&self.cgroup).map_err(|error| error.to_string())?;
        if is_new { adopt(retuner, &self.cgroup).map_err(|error| error.to_string()) } else { Ok(()) }
    }

    /// When to call [`Tuner::follow`] at the latest.
    pub fn next(&self, now: Time) -> Time {
        if self.reconciler.is_active() || self.has_rules { now + FOLLOW } else { Time::NEVER }
    }

    /// What could not be set.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn note(&mut self) {
        self.notes = self.reconciler.notes().iter().chain(&self.detached).cloned().collect();
    }

    /// The routes, if they are known.
    pub fn routes(&self) -> Option<&Table> {
        self.reconciler.table()
    }

    fn set_rules(&mut self, plan: &Plan) -> Result<(), RetuneError> {
        let Some(retuner) = &mut self.retuner else { return Ok(()) };
        self.has_rules = !plan.rules.is_empty();
        self.attached_at = Time::ZERO;
        retuner.set(&plan.rules)?;
        adopt(retuner, &self.cgroup)
    }

    /// The program's counters.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn counts(&self) -> Result<Option<Counts>, RetuneError> {
        self.retuner.as_ref().map(Retuner::counts).transpose()
    }

    /// Connections that have ended since the last call.
    ///
    /// # Errors
    /// The kernel's.
    pub fn ended(&self, take: impl FnMut(Record)) -> Result<(), RetuneError> {
        self.retuner.as_ref().map_or(Ok(()), |retuner| retuner.ended(take))
    }

    /// Restores everything and removes what is in the kernel. Returns what was left because it has been changed by others, and what cannot be
    /// restored now.
    ///
    /// # Errors
    /// The kernel's, or the journal's.
    pub fn restore(mut self) -> Result<(Vec<String>, Option<String>), AgentError> {
        let rules = self.set_rules(&Plan::default());
        let restored = self.reconciler.undo()?;
        rules?;
        drop(self.retuner.take());
        remove(&self.pins)?;
        Ok(restored)
    }
}

/// Applies the rules to open connections of every namespace in the cgroup.
fn adopt(retuner: &mut Retuner, cgroup: &Path) -> Result<(), RetuneError> {
    let mut outcome = Ok(());
    in_each(cgroup, || {
        if let Err(error) = retuner.adopt() {
            outcome = Err(error);
        }
    });
    outcome
}

/// The program, pinned.
pub fn attached(cgroup: &Path, places: &Places) -> Result<Retuner, AgentError> {
    // opening mounts bpffs where it is missing; its lock, for loading algorithms, is not needed
    drop(Pins::open().map_err(|error| match error {
        PinError::Mount(error @ (MountError::NetworkNamespace { .. } | MountError::PrivateMounts)) => error.into(),
        error => AgentError::Bpf(error.to_string()),
    })?);
    let was_there = places.pins.exists();
    Retuner::attach_for_good(cgroup, &places.pins).map_err(|error| {
        if !was_there {
            let _ = remove(&places.pins);
        }
        match error {
            RetuneError::Map(_) => error.into(),
            _ => AgentError::Bpf(error.to_string()),
        }
    })
}

/// Removes the pinned files, and the folder above if it is empty.
pub fn remove(pins: &Path) -> Result<bool, RetuneError> {
    let was_there = Retuner::remove(pins)?;
    if was_there && let Some(folder) = pins.parent() {
        let _ = fs::remove_dir(folder);
    }
    Ok(was_there)
}

/// Restores what a pinned program has set, and removes it; whether there was one.
///
/// # Errors
/// The kernel's.
pub fn reset(places: &Places, cgroup: &Path) -> Result<bool, AgentError> {
    if !places.pins.exists() {
        return Ok(false);
    }
    // the quick part first; an agent that was killed at its start may not have got there
    let _ = Retuner::end_rules(&places.pins);
    // with its cgroup the connections have gone, too
    if !cgroup.exists() {
        return Ok(remove(&places.pins)?);
    }
    let mut retuner = attached(cgroup, places)?;
    retuner.set(&[])?;
    adopt(&mut retuner, cgroup)?;
    drop(retuner);
    Ok(remove(&places.pins)?)
}
