//! Runs a scenario file and writes a folder of results.

use crate::done::{Done, Kept};
use crate::emu::{self, Attempts, Origin};
use crate::failure::Failure;
use crate::known::{check_algorithm_files, read_scenario, unused};
use crate::monitor::Monitor;
use crate::place::{place_of, refuse_other};
use crate::request::{Backend, RunRequest};
use crate::sweep::{Job, run_all};
use crate::unvaried::unvaried;
use results::{Content, Maker, RunInfo, RunResults, SelfCheck, Story, SweepWriter, WriteError, write_run};
use scenario::{Run, Scenario};
use std::path::Path;
use std::time::Instant;

/// Runs the scenario.
///
/// # Errors
/// The input is wrong, a run failed, or the user stopped it.
pub fn run(request: &RunRequest, monitor: Monitor<'_>) -> Result<Done, Failure> {
    let jobs = prepare(request, monitor)?;
    let scenario = &jobs[0].scenario;
    let maker = if request.backend == Backend::Emu { Maker::Emulator } else { Maker::Simulator };
    let out = place_of(request, &jobs, maker, monitor)?;
    let (runs, info) = execute(request, &jobs, &out, monitor)?;
    for words in unvaried(&runs) {
        monitor.warn(&words);
    }
    Ok(Done { scenario: scenario.name.clone(), out, runs, info })
}

/// The runs of a scenario as a whole.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The scenario's name.
    pub scenario: String,
    /// The heading of its report.
    pub title: String,
    /// Speed.
    pub info: RunInfo,
}

/// Simulates the scenario and passes the results to `take`, in order; at most a few wait in memory. Nothing is written: `out` and
/// `backend` of the request do not count.
///
/// # Errors
/// As [`run`], and what `take` returns.
pub fn simulate(
    request: &RunRequest,
    monitor: Monitor<'_>,
    mut take: impl FnMut(RunResults) -> Result<(), Failure>,
) -> Result<Batch, Failure> {
    let jobs = prepare(&RunRequest { backend: Backend::Sim, ..request.clone() }, monitor)?;
    let scenario = &jobs[0].scenario;
    let (scenario, title) = (scenario.name.clone(), title(scenario).to_string());
    let (began, mut hops, mut kept) = (Instant::now(), 0, Vec::new());
    run_all(&jobs, request.workers, monitor, |run| {
        hops += run.summary.packet_hops;
        kept.push(Kept::of(&run));
        take(run)
    })?;
    for words in unvaried(&kept) {
        monitor.warn(&words);
    }
    Ok(Batch { scenario, title, info: speed(began, hops, request.workers.min(jobs.len())) })
}

/// Writes all results of a [`simulate`] into the folder `out`, as [`run`] does: the same bytes but for `run.json`, which has the speed.
/// Results of another content are replaced only if `replace` says so.
///
/// # Errors
/// The folder cannot be made, or holds something else.
pub fn write(out: &Path, batch: &Batch, runs: &[&RunResults], replace: bool) -> Result<(), Failure> {
    if !replace {
        refuse_other(&Content::of(runs), out)?;
    }
    let written = match runs {
        [run] => write_run(out, run, Some(&batch.info)),
        runs => write_sweep(out, runs, &batch.title, &batch.info),
    };
    written.map_err(|error| match error {
        WriteError::Io { .. } | WriteError::Table { .. } => Failure::writing(&error),
        refused => Failure::bad_out(&refused),
    })
}

fn write_sweep(out: &Path, runs: &[&RunResults], title: &str, info: &RunInfo) -> Result<(), WriteError> {
    let mut sweep = SweepWriter::create(out)?;
    runs.iter().try_for_each(|run| sweep.add(run))?;
    sweep.finish(&Story::new(title), Some(info))
}

/// The checked runs of a request.
pub(crate) fn prepare(request: &RunRequest, monitor: Monitor<'_>) -> Result<Vec<Job>, Failure> {
    let runs = read_scenario(&request.scenario, &request.sets, request.backend)?;
    for words in unused(&request.scenario, &request.sets, request.backend, &runs) {
        monitor.warn(&words);
    }
    let jobs = jobs_of(runs);
    check_algorithm_files(&jobs, monitor)?;
    Ok(jobs)
}

/// The heading of a report.
pub(crate) fn title(scenario: &Scenario) -> &str {
    scenario.title.as_ref().unwrap_or(&scenario.name)
}

/// The runs of a scenario with the parameters by which reports distinguish them.
pub(crate) fn jobs_of(runs: Vec<Run>) -> Vec<Job> {
    let job = |run: Run| Job { parameters: plan::parameters(&run), name: run.name, scenario: run.scenario };
    runs.into_iter().map(job).collect()
}

/// Executes the runs and writes the results.
fn execute(
    request: &RunRequest,
    jobs: &[Job],
    out: &Path,
    monitor: Monitor<'_>,
) -> Result<(Vec<Kept>, RunInfo), Failure> {
    // Created before the first run, so that a bad --out is reported at once; dropped unfinished, it leaves nothing.
    let mut sweep = SweepWriter::create(out).map_err(|error| Failure::bad_out(&error))?;
    let began = Instant::now();
    let mut runs = Vec::new();
    let mut single = None;
    let mut emulations = Vec::new();
    let mut take = |run: RunResults, check: Option<SelfCheck>| {
        emulations.extend(check);
        if jobs.len() > 1 {
            sweep.add(&run).map_err(|error| Failure::writing(&error))?;
            runs.push(Kept::of(&run));
        } else {
            single = Some(run);
        }
        Ok(())
    };
    let workers = match request.backend {
        Backend::Sim => {
            run_all(jobs, request.workers, monitor, |run| take(run, None))?;
            request.workers.min(jobs.len())
        }
        Backend::Emu => {
            let origin = Origin { source: &request.scenario, sets: &request.sets };
            let attempts = Attempts { slower: request.slower, repeats: 0 };
            emu::run_all(jobs, origin, monitor, attempts, |run, check| take(run, Some(check)))?;
            1
        }
    };
    let hops = runs.iter().map(|run| run.summary.packet_hops).sum::<u64>();
    let hops = hops + single.as_ref().map_or(0, |run| run.summary.packet_hops);
    let info = RunInfo { emulations, ..speed(began, hops, workers) };
    let written = if let Some(run) = &single {
        drop(sweep);
        write_run(out, run, Some(&info))
    } else {
        sweep.finish(&Story::new(title(&jobs[0].scenario)), Some(&info))
    };
    written.map_err(|error| Failure::writing(&error))?;
    runs.extend(single.as_ref().map(Kept::of));
    Ok((runs, info))
}

/// The contents of `run.json`.
pub fn speed(began: Instant, packet_hops: u64, jobs: usize) -> RunInfo {
    let wall_s = began.elapsed().as_secs_f64();
    RunInfo {
        wall_s,
        packet_hops_per_s: packet_hops as f64 / wall_s.max(1e-9),
        peak_rss_bytes: peak_rss_bytes(),
        jobs,
        // a run that breaks this has no results
        checks: vec!["packet conservation on every link".to_string()],
        emulations: Vec::new(),
    }
}

/// Peak resident set size, if Linux reports it.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// A line about speed, for the user.
pub trait Words {
    /// `done in 3.2 s: 25.1 M packet-hops/s with 2 jobs`.
    fn words(&self) -> String;
}

impl Words for RunInfo {
    fn words(&self) -> String {
        let plural = if self.jobs == 1 { "" } else { "s" };
        let rate = crate::table::scaled(self.packet_hops_per_s);
        format!("done in {:.1} s: {rate} packet-hops/s with {} job{plural}", self.wall_s, self.jobs)
    }
}
