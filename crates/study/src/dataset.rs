//! A sweep into a dataset: resumed where it was stopped, on the cores of this machine or, by a front end, on others.
//!
//! ```text
//! Sweep::open ──pending──▶ run_one ──▶ PackedRun ──Sweep::add──▶ Dataset
//!                 └──ship──▶ Shipped::run, elsewhere ──▶ files ──┘
//! ```
//!
//! A run is done if the dataset has it with the same scenario, every default written out, the same files that it names, and the same
//! version of the program. What has these has the same bytes wherever it is simulated.

use crate::done::{Done, Kept};
use crate::failure::Failure;
use crate::monitor::{Monitor, Progress};
use crate::request::RunRequest;
use crate::request::{Backend, results_folder};
use crate::run::{prepare, speed};
use crate::stop::Stop;
use crate::sweep::{Job, run_one, threads_of};
use crate::unvaried::unvaried;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use results::{Dataset, PackedRun, RunResults, RunSummary, StoredRun, Summary};
use scenario::Bundle;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// How often a run that fails is tried.
const ATTEMPTS: u32 = 2;
/// How many failed runs a message names.
const NAMED: usize = 5;

/// Runs of a sweep, and the dataset that they go into.
#[derive(Debug)]
pub struct Sweep {
    jobs: Vec<Job>,
    dataset: Dataset,
    /// By run; none if it is not done.
    done: Mutex<Vec<Option<Summary>>>,
    /// Runs that were done before, and their packet-hops.
    before: (usize, u64),
    began: Instant,
    /// Adds to a run's results before they go into the dataset.
    complete: fn(&mut RunResults),
    /// On the dataset's folder: a second sweep into it would take this one's unfinished parts for remains.
    _lock: Flock<File>,
}

/// A run for another process: what it needs to know of the sweep.
#[derive(Clone, Debug)]
pub struct Shipped {
    /// As in [`Job`].
    pub name: String,
    /// As in [`Job`].
    pub parameters: Vec<(String, String)>,
    /// The scenario, and the files that it names.
    pub bundle: Bundle,
}

/// Does the sweep of a request on this machine. A run that fails is tried once more, and then left out; the others go on.
///
/// # Errors
/// The input is wrong; runs failed; or it was stopped, which [`Failure::Paused`] says. What is done stays in the dataset, and the same
/// request does the rest.
pub fn sweep(request: &RunRequest, monitor: Monitor<'_>) -> Result<Done, Failure> {
    let sweep = Sweep::open(request, monitor)?;
    sweep.run(request.workers, monitor)
}

impl Sweep {
    /// Checks the request, and opens its dataset: `out`, by default `opentcp-results/NAME-sweep`. The backend is the simulator.
    ///
    /// # Errors
    /// The scenario is wrong; the folder holds something else or runs of another sweep; or another process sweeps into it.
    pub fn open(request: &RunRequest, monitor: Monitor<'_>) -> Result<Sweep, Failure> {
        let jobs = prepare(&RunRequest { backend: Backend::Sim, ..request.clone() }, monitor)?;
        let default = || results_folder(&format!("{}-sweep", jobs[0].scenario.name));
        let out = request.out.clone().unwrap_or_else(default);
        Sweep::of(jobs, &out, |_| ())
    }

    /// Opens the dataset `out` of these runs. `complete` adds to each run's results before they go into it.
    ///
    /// # Errors
    /// As [`Sweep::open`], but for the scenario's mistakes.
    pub(crate) fn of(jobs: Vec<Job>, out: &Path, complete: fn(&mut RunResults)) -> Result<Sweep, Failure> {
        let mut dataset = Dataset::open(out).map_err(|error| Failure::bad_out(&error))?;
        let lock = lock(dataset.folder())?;
        let done = done(&dataset, &jobs)?;
        dataset.clean().map_err(|error| Failure::writing(&error))?;
        let before = (done.iter().flatten().count(), done.iter().flatten().map(|summary| summary.packet_hops).sum());
        Ok(Sweep { jobs, dataset, done: Mutex::new(done), before, began: Instant::now(), complete, _lock: lock })
    }

    /// All runs: names and parameters.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Numbers of the runs that are to be done, from 0.
    pub fn pending(&self) -> Vec<usize> {
        self.lock().iter().enumerate().filter(|(_, done)| done.is_none()).map(|(number, _)| number).collect()
    }

    /// A run for another process.
    pub fn ship(&self, number: usize) -> Shipped {
        let Job { name, parameters, scenario } = &self.jobs[number];
        Shipped { name: name.clone(), parameters: parameters.clone(), bundle: scenario.bundle() }
    }

    /// Takes a run's files into the dataset. A run that is done already is left as it is.
    ///
    /// # Errors
    /// They are not this run's, or the system refuses.
    pub fn add(&self, number: usize, packed: &PackedRun) -> Result<(), Failure> {
        let name = &self.jobs[number].name;
        let summary = summary_of(packed).ok_or_else(|| Failure::Run(format!("{name}: its summary cannot be read")))?;
        if self.lock()[number].is_some() {
            return Ok(());
        }
        self.dataset.add(name, packed).map_err(|error| Failure::writing(&error))?;
        self.lock()[number] = Some(summary);
        Ok(())
    }

    /// Writes the table of the runs that are done: call it last, also after a failure. The answer lists them, in order; its speed is
    /// that since the sweep was opened, with `workers` runs at a time.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(&self, workers: usize) -> Result<Done, Failure> {
        let done = self.lock();
        let kept = |(job, summary): (&Job, &Option<Summary>)| {
            let summary = summary.clone()?;
            Some(Kept { name: job.name.clone(), parameters: job.parameters.clone(), summary })
        };
        let runs: Vec<Kept> = self.jobs.iter().zip(&*done).filter_map(kept).collect();
        if !runs.is_empty() {
            let rows: Vec<RunSummary<'_>> = runs.iter().map(Kept::summary).collect();
            self.dataset.finish(&rows).map_err(|error| Failure::writing(&error))?;
        }
        let hops = runs.iter().map(|run| run.summary.packet_hops).sum::<u64>() - self.before.1;
        let out = self.dataset.folder().to_path_buf();
        Ok(Done { scenario: self.jobs[0].scenario.name.clone(), out, runs, info: speed(self.began, hops, workers) })
    }

    /// Writes a report over all runs into the dataset.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn report(&self, html: &str) -> Result<(), Failure> {
        self.dataset.write_report(html).map_err(|error| Failure::writing(&error))
    }

    /// The outcome of a sweep in which these runs failed: their names and why.
    ///
    /// # Errors
    /// There are some.
    pub fn judge(&self, done: Done, failed: &[(String, String)]) -> Result<Done, Failure> {
        if failed.is_empty() {
            return Ok(done);
        }
        let shown = failed.iter().take(NAMED).map(|(name, why)| format!("\n  {name}: {}", why.trim()));
        let more = if failed.len() > NAMED { format!("\n  and {} more", failed.len() - NAMED) } else { String::new() };
        Err(Failure::Run(format!(
            "{} of {} runs failed; the others are in {}, and the same sweep tries these again{}{more}",
            failed.len(),
            self.jobs.len(),
            self.dataset.folder().display(),
            shown.collect::<String>()
        )))
    }

    /// That some runs were done before, if so.
    pub fn resumed(&self) -> Option<String> {
        let (before, all) = (self.before.0, self.jobs.len());
        (before > 0).then(|| format!("{before} of {all} runs were done before"))
    }

    /// That it was stopped, and how far it came.
    pub fn paused(&self) -> Failure {
        let done = self.lock().iter().flatten().count();
        if done == 0 {
            return Failure::Interrupted;
        }
        Failure::Paused(format!(
            "interrupted: {done} of {} runs are done; the same command does the rest",
            self.jobs.len()
        ))
    }

    /// Does what is pending on `workers` cores, as many runs at a time.
    ///
    /// # Errors
    /// As [`sweep`].
    pub fn run(&self, workers: usize, monitor: Monitor<'_>) -> Result<Done, Failure> {
        let pending = self.pending();
        if let Some(words) = self.resumed() {
            monitor.note(&words);
        }
        let progress = Progress::of(monitor, pending.len());
        let (stop, next) = (monitor.stop().of_batch(), AtomicUsize::new(0));
        let (failed, broken) = (Mutex::new(Vec::new()), Mutex::new(None));
        let threads = threads_of(workers, pending.len());
        let work = || {
            while let Some(&number) = pending.get(next.fetch_add(1, Ordering::Relaxed)) {
                match self.run_one(number, threads, &progress, &stop) {
                    Ok(()) => {}
                    Err(Outcome::Failed(why)) => guard(&failed).push((number, why)),
                    Err(Outcome::Ended(failure)) => {
                        stop.fail();
                        guard(&broken).get_or_insert(failure);
                        break;
                    }
                }
            }
        };
        let workers = workers.min(pending.len());
        thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
        drop(progress);
        let done = self.finish(workers)?;
        if monitor.stop().interrupted() {
            return Err(self.paused());
        }
        if let Some(failure) = broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(failure);
        }
        let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        for words in unvaried(&done.runs) {
            monitor.warn(&words);
        }
        failed.sort_unstable();
        let failed: Vec<_> = failed.into_iter().map(|(number, why)| (self.jobs[number].name.clone(), why)).collect();
        self.judge(done, &failed)
    }

    fn run_one(&self, number: usize, threads: usize, progress: &Progress<'_>, stop: &Stop) -> Result<(), Outcome> {
        let job = &self.jobs[number];
        let mut attempt = 1;
        loop {
            if stop.is_set() {
                return Err(Outcome::Ended(Failure::Interrupted));
            }
            let why = match run_one(job, threads, progress, stop) {
                Ok(mut results) => {
                    (self.complete)(&mut results);
                    match PackedRun::of(&results) {
                        Ok(packed) => return self.add(number, &packed).map_err(Outcome::Ended),
                        Err(error) => error.to_string(),
                    }
                }
                Err(Failure::Run(why)) => why,
                // what is wrong with the input is wrong the second time as well
                Err(failure @ (Failure::Input(_) | Failure::Located(_))) => {
                    return Err(Outcome::Failed(failure.to_string()));
                }
                Err(failure) => return Err(Outcome::Ended(failure)),
            };
            if attempt == ATTEMPTS {
                return Err(Outcome::Failed(why));
            }
            progress.repeated(&job.name, &why);
            attempt += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Summary>>> {
        guard(&self.done)
    }
}

/// Why a run has no results.
enum Outcome {
    /// The others go on.
    Failed(String),
    /// So must the others.
    Ended(Failure),
}

fn guard<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shipped {
    /// Simulates it here. The files that its scenario names are in the folder `base`, under the bundle's names.
    ///
    /// # Errors
    /// The scenario is wrong, the run failed, or it was stopped.
    pub fn run(&self, base: &Path, monitor: Monitor<'_>) -> Result<PackedRun, Failure> {
        let Shipped { name, parameters, bundle } = self;
        let text = crate::Source::Text { name: "scenario.toml".into(), text: bundle.toml.clone(), base: base.into() };
        let jobs = prepare(&RunRequest::new(text), monitor)?;
        let [job] = &jobs[..] else { return Err(Failure::Input(format!("{name} is not one run"))) };
        let job = Job { name: name.clone(), parameters: parameters.clone(), scenario: job.scenario.clone() };
        let progress = Progress::of(monitor, 1);
        let results = run_one(&job, 1, &progress, monitor.stop())?;
        PackedRun::of(&results).map_err(|error| Failure::writing(&error))
    }
}

/// The lock on a dataset's folder.
fn lock(folder: &Path) -> Result<Flock<File>, Failure> {
    let refused = |why: String| Failure::Input(format!("{}: {why}", folder.display()));
    let file = File::open(folder).map_err(|error| refused(error.to_string()))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
        Errno::EWOULDBLOCK => {
            refused("another sweep goes on in this folder: wait for its end, or choose another (--out)".into())
        }
        other => refused(format!("it cannot be locked: {other}")),
    })
}

/// The runs that the dataset has, by number.
fn done(dataset: &Dataset, jobs: &[Job]) -> Result<Vec<Option<Summary>>, Failure> {
    let known: BTreeSet<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let folder = dataset.folder().display();
    let other = |name: &str, why: &str| {
        Failure::Input(format!("{folder} has the run {name} {why}: choose another folder (--out), or remove this one"))
    };
    for name in dataset.done().map_err(|error| Failure::bad_out(&error))? {
        if !known.contains(name.as_str()) {
            return Err(other(&name, "which is not one of this sweep's"));
        }
    }
    let of = |job: &Job| {
        let stored = dataset.stored(&job.name).map_err(|error| Failure::bad_out(&error))?;
        let Some(StoredRun { scenario_toml, files, summary }) = stored else { return Ok(None) };
        let Bundle { toml, files: own } = job.scenario.bundle();
        if summary.version != env!("CARGO_PKG_VERSION") {
            return Err(other(
                &job.name,
                &format!("of version {}, and this is {}", summary.version, env!("CARGO_PKG_VERSION")),
            ));
        }
        let same = toml == scenario_toml
            && own
                .iter()
                .map(|(name, text)| (name.as_str(), &**text))
                .eq(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        if same { Ok(Some(summary)) } else { Err(other(&job.name, "of another scenario")) }
    };
    jobs.iter().map(of).collect()
}

/// The numbers among a run's files.
fn summary_of(packed: &PackedRun) -> Option<Summary> {
    #[derive(Deserialize)]
    struct Numbers {
        summary: Summary,
    }
    let (_, bytes) = packed.files.iter().find(|(name, _)| name == "summary.json")?;
    serde_json::from_slice::<Numbers>(bytes).ok().map(|numbers| numbers.summary)
}
