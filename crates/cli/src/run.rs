//! `opentcp run`: a scenario file becomes a folder of results.

use crate::emu::{self, Origin};
use crate::failure::Failure;
use crate::options::Options;
use crate::policy::algorithm_facts;
use crate::stop::Stop;
use crate::sweep::{Job, algorithm_names, check_algorithm_files, run_all};
use crate::table::{Table, number, optional};
use crate::terminal::{print, print_json};
use results::{RunInfo, RunResults, RunSummary, SelfCheck, Story, Summary, SweepWriter, write_run};
use scenario::{Known, Loaded, Run, Scenario};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  opentcp run scenarios/dumbbell.toml
  opentcp run scenarios/dumbbell.toml --set traffic.old.cc=vegas --set \"duration=5 s\"
  opentcp run scenarios/incast.toml --jobs 4 --out incast --json > incast.json
  opentcp run opentcp-results/dumbbell/scenario.toml      the same run again, byte for byte
  opentcp run scenarios/dctcp-star.toml --backend emu     in real time, with real Linux hosts (as root)

In the results folder: report.html for the eye; summary.json, flows.parquet, links.parquet and, if the scenario asks
for them, link_series.parquet and cwnd.parquet for programs; scenario.toml, every default written out, and files/,
copies of the files that it names; run.json, how fast it went. A sweep has one folder for each run.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The scenario file (TOML); docs/scenarios.md has the reference
    scenario: PathBuf,
    /// Set a key of the scenario, dotted; may be given many times. A swept key is swept no more
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    options: Options,
    /// What runs the scenario
    #[arg(long, value_enum, default_value_t = Backend::Sim)]
    backend: Backend,
    /// Emulator: take a run's results although the machine was too slow for what it measures
    #[arg(long)]
    allow_distorted: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Backend {
    /// The simulator: virtual clock, simulated hosts
    Sim,
    /// The emulator: real time, Linux hosts in network namespaces; needs root
    Emu,
}

/// Does the runs of a scenario.
///
/// # Errors
/// What is wrong with the input, or that a run failed, or that the user stopped it.
pub fn run(args: &Args) -> Result<(), Failure> {
    let ours = algorithm_names();
    let of_emulator = emu::algorithm_names(&ours);
    let names: Vec<&str> = match args.backend {
        Backend::Sim => ours,
        Backend::Emu => of_emulator.iter().map(String::as_str).collect(),
    };
    let facts = algorithm_facts();
    let known = Known { algorithms: &names, policy: policy::Known { algorithms: &facts } };
    let loaded =
        Scenario::load(&args.scenario, &args.sets, known).map_err(|diagnostic| Failure::located(&diagnostic))?;
    let jobs = jobs_of(loaded);
    check_algorithm_files(&jobs)?;
    let scenario = &jobs[0].scenario;
    let out = args.options.folder(&scenario.name);
    let title = scenario.title.clone().unwrap_or_else(|| scenario.name.clone());
    let done = match args.backend {
        Backend::Sim => execute(&jobs, &out, &title, &Simulated { workers: args.options.workers() })?,
        Backend::Emu => {
            let origin = Origin { path: &args.scenario, sets: &args.sets };
            execute(&jobs, &out, &title, &Emulated { origin })?
        }
    };
    let report = out.join("report.html");
    if args.options.json {
        let runs = done.runs.iter().map(Kept::summary).collect();
        print_json(&Output { scenario: &scenario.name, out: &out, report: &report, runs, run: &done.info })?;
    } else {
        print(&table(&done.runs))?;
    }
    eprintln!("{}", done.info.words());
    eprintln!("report: {}", report.display());
    emu::judge(&done.info.emulations, args.allow_distorted)
}

/// What does the runs, and hands on each one's results and self-check, if it has one.
trait Runner {
    fn run_all(&self, jobs: &[Job], stop: &Stop, take: Take<'_>) -> Result<(), Failure>;
    /// Runs at the same time.
    fn workers(&self) -> usize;
}

type Take<'a> = &'a mut dyn FnMut(RunResults, Option<SelfCheck>) -> Result<(), Failure>;

struct Simulated {
    workers: usize,
}

impl Runner for Simulated {
    fn run_all(&self, jobs: &[Job], stop: &Stop, take: Take<'_>) -> Result<(), Failure> {
        run_all(jobs, self.workers, stop, |run| take(run, None))
    }

    fn workers(&self) -> usize {
        self.workers
    }
}

struct Emulated<'a> {
    origin: Origin<'a>,
}

impl Runner for Emulated<'_> {
    fn run_all(&self, jobs: &[Job], stop: &Stop, take: Take<'_>) -> Result<(), Failure> {
        emu::run_all(jobs, self.origin, stop, 0, |run, check| take(run, Some(check)))
    }

    fn workers(&self) -> usize {
        1
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Output<'a> {
    scenario: &'a str,
    out: &'a Path,
    report: &'a Path,
    runs: Vec<RunSummary<'a>>,
    run: &'a RunInfo,
}

/// What stays of a run after its tables are written.
struct Kept {
    name: String,
    parameters: Vec<(String, String)>,
    summary: Summary,
}

impl Kept {
    fn of(run: RunResults) -> Kept {
        Kept { name: run.name, parameters: run.parameters, summary: run.summary }
    }

    fn summary(&self) -> RunSummary<'_> {
        RunSummary { name: &self.name, folder: None, parameters: &self.parameters, summary: &self.summary }
    }
}

struct Done {
    runs: Vec<Kept>,
    info: RunInfo,
}

/// The runs of a scenario with the parameters that reports tell them apart by.
fn jobs_of(loaded: Loaded) -> Vec<Job> {
    let job = |run: Run| {
        let short = |key: &str| match key {
            "tcp.cc" => "algorithm".to_string(),
            _ => key.rsplit('.').next().filter(|last| is_only(last, key, &run.parameters)).unwrap_or(key).to_string(),
        };
        let swept = run.parameters.iter().filter(|(key, _)| key != "tcp.cc" && key != "seed");
        let mut parameters = vec![("algorithm".to_string(), algorithms(&run.scenario))];
        parameters.extend(swept.map(|(key, value)| (short(key), value.clone())));
        parameters.push(("seed".to_string(), run.scenario.seed.to_string()));
        Job { name: run.name, parameters, scenario: run.scenario }
    };
    loaded.runs.into_iter().map(job).collect()
}

/// Whether no other swept key ends like this one.
fn is_only(last: &str, key: &str, swept: &[(String, String)]) -> bool {
    !["algorithm", "seed"].contains(&last)
        && swept.iter().all(|(other, _)| other == key || other.rsplit('.').next() != Some(last))
}

/// The algorithms of a scenario's flows: `cubic`, or `cubic + newreno`.
fn algorithms(scenario: &Scenario) -> String {
    let mut names: Vec<&str> = Vec::new();
    for entry in &scenario.traffic {
        let name = entry.cc.as_ref().unwrap_or(&scenario.tcp.cc).label();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" + ")
}

/// Runs and writes.
fn execute(jobs: &[Job], out: &Path, title: &str, runner: &dyn Runner) -> Result<Done, Failure> {
    // Begun before the first run, so that a bad --out is told at once; dropped unfinished, it leaves nothing.
    let mut sweep = SweepWriter::create(out).map_err(|error| Failure::bad_out(&error))?;
    let stop = Stop::on_signals();
    let began = Instant::now();
    let mut runs = Vec::new();
    let mut single = None;
    let mut emulations = Vec::new();
    runner.run_all(jobs, &stop, &mut |run, check| {
        emulations.extend(check);
        if jobs.len() > 1 {
            sweep.add(&run).map_err(|error| Failure::writing(&error))?;
            runs.push(Kept::of(run));
        } else {
            single = Some(run);
        }
        Ok(())
    })?;
    let hops = runs.iter().map(|run| run.summary.packet_hops).sum::<u64>();
    let hops = hops + single.as_ref().map_or(0, |run| run.summary.packet_hops);
    let info = RunInfo { emulations, ..speed(began, hops, runner.workers().min(jobs.len())) };
    let written = match &single {
        Some(run) => {
            drop(sweep);
            write_run(out, run, Some(&info))
        }
        None => sweep.finish(&Story::new(title), Some(&info)),
    };
    written.map_err(|error| Failure::writing(&error))?;
    runs.extend(single.map(Kept::of));
    Ok(Done { runs, info })
}

/// What `run.json` says.
pub fn speed(began: Instant, packet_hops: u64, jobs: usize) -> RunInfo {
    let wall_s = began.elapsed().as_secs_f64();
    RunInfo {
        wall_s,
        packet_hops_per_s: packet_hops as f64 / wall_s.max(1e-9),
        peak_rss_bytes: peak_rss_bytes(),
        jobs,
        // a run that breaks it does not end with results
        checks: vec!["packet conservation on every link".to_string()],
        emulations: Vec::new(),
    }
}

/// Peak resident set, where Linux says it.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// A line about speed for people.
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

/// A column: its heading and its value of a run; left out if no run has one.
type Column = (&'static str, fn(&Summary) -> Option<f64>);

const COLUMNS: [Column; 8] = [
    ("goodput Mbit/s", |s| s.goodput_bps.map(|bps| bps / 1e6)),
    ("delay ms", |s| s.mean_packet_delay_ns.map(|ns| ns / 1e6)),
    ("FCT median ms", |s| s.median_fct_ns.map(|ns| ns as f64 / 1e6)),
    ("FCT p99 ms", |s| s.p99_fct_ns.map(|ns| ns as f64 / 1e6)),
    ("drops", |s| Some((s.drops_at_switches + s.drops_at_hosts + s.drops_by_failure) as f64)),
    ("marks", |s| (s.marks > 0).then_some(s.marks as f64)),
    ("retransmits", |s| Some(s.retransmits as f64)),
    ("RTOs", |s| Some(s.rtos as f64)),
];

fn table(runs: &[Kept]) -> String {
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|(_, value)| runs.iter().any(|run| value(&run.summary).is_some())).collect();
    let mut table = Table::new(["run", "flows", "finished"].into_iter().chain(columns.iter().map(|(name, _)| *name)));
    for run in runs {
        let counts = [run.summary.flows, run.summary.flows_completed].map(|count| number(count as f64));
        let values = columns.iter().map(|(_, value)| optional(value(&run.summary)));
        table.row(std::iter::once(run.name.clone()).chain(counts).chain(values).collect());
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swept_key_is_named_by_its_end_unless_two_end_alike() {
        let keys = |keys: &[&str]| keys.iter().map(|key| (key.to_string(), String::new())).collect::<Vec<_>>();
        assert!(is_only("rto_min", "tcp.rto_min", &keys(&["tcp.rto_min", "network.rate"])));
        assert!(!is_only("rate", "network.rate", &keys(&["network.rate", "network.tier.core.rate"])));
        assert!(!is_only("seed", "other.seed", &keys(&["other.seed"])), "that name is the scenario's seed");
    }
}
