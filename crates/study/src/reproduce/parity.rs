//! Compares the simulator with this machine's kernel: the same scenarios on both backends, number by number.
//!
//! Each case is one bottleneck (`scenarios/parity.toml`, which is compiled in). The simulator runs it; the kernel runs it with the same
//! algorithm source, and with its own implementation of the algorithm if it has one. Records of kernel runs are kept in the output
//! folder; `--full` takes hours, and a later run continues from them.

mod case;
mod compare;
mod grid;
mod record;

use super::{Reproduced, Request, Study};
use crate::emu::{self, Attempts, Origin};
use crate::failure::Failure;
use crate::known::algorithm_names;
use crate::monitor::Monitor;
use crate::slower::Slower;
use crate::source::Source;
use crate::sweep::{self, Job};
use case::{Case, Host};
use compare::Outcome;
use kernel::Kernel;
use record::Record;
use results::{RunResults, Story, SweepWriter, write_run};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use units::Time;

/// The study.
pub const STUDY: Study = Study {
    name: "parity",
    about: "the simulator compared with real kernels on one bottleneck; needs root",
    reproduce,
};

/// Options of this study alone.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Instead of the cases: newreno, cubic and bbr over a grid of twenty bottlenecks, compared with the kernel's own.
    pub grid: bool,
}

/// Minimum number of repetitions of each case of the full study.
const FULL_SEEDS: u32 = 3;

/// How often the runs that are not valid are repeated.
const ROUNDS: usize = 2;

/// The folder of records, in the output folder.
const KEPT: &str = "kept";

/// Our algorithms, and the kernel's own implementations of them.
const OWN: [(&str, &str); 4] =
    [("newreno", "kernel:reno"), ("cubic", "kernel:cubic"), ("dctcp", "kernel:dctcp"), ("bbr", "kernel:bbr")];

/// Runs the study.
fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    Kernel::probe()
        .map_err(|missing| Failure::Input(format!("parity compares with this machine's kernel: {missing}")))?;
    case::check_sets(&request.sets)?;
    if request.parity.grid {
        return grid::reproduce(request, monitor);
    }
    let seeds = if request.full { request.seeds.max(FULL_SEEDS) } else { request.seeds };
    let cases = case::cases(request.full, &algorithm_names());
    let runs = runs(request, &cases, &Host::ALL, seeds)?;
    let folder = Folder::open(&request.out)?;
    let began = Instant::now();
    let mut records = folder.find_all(&runs, monitor);
    simulate(&runs, request.workers, &folder, monitor, &mut records)?;
    emulate(&runs, &request.sets, &folder, monitor, &mut records)?;
    let outcomes = outcomes(&cases, &runs, records);
    let rows = compare::rows(&outcomes);
    let findings = compare::findings(&outcomes, &rows);
    folder.publish(&outcomes, &rows, &findings)?;
    let wall_s = began.elapsed().as_secs_f64();
    let tables = compare::render(&rows, &findings);
    Ok(Reproduced { tables, findings, comparisons: compare::comparisons(&rows), wall_s })
}

/// One run of the study.
struct Run {
    /// Number of its case.
    case: usize,
    host: Host,
    job: Job,
    /// A longer pause of the machine invalidates it.
    pause_max: Time,
}

/// Every run: case by case, in each all `hosts`.
fn runs(request: &Request, cases: &[Case], hosts: &[Host], seeds: u32) -> Result<Vec<Run>, Failure> {
    let of_kernel = emu::algorithm_names(&[]);
    let mut runs = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        for &host in hosts {
            let Some(algorithm) = algorithm_on(host, case.algorithm, &of_kernel) else { continue };
            for seed in 1..=seeds {
                let job = case.job(request, host, algorithm, seed)?;
                runs.push(Run { case: number, host, job, pause_max: case.pause_max() });
            }
        }
    }
    Ok(runs)
}

/// The name on `host` of our `algorithm`; `None` if the host has none.
fn algorithm_on<'a>(host: Host, algorithm: &'a str, of_kernel: &[String]) -> Option<&'a str> {
    if host != Host::Own {
        return Some(algorithm);
    }
    let (_, own) = OWN.iter().find(|(ours, _)| *ours == algorithm)?;
    of_kernel.iter().any(|name| name == own).then_some(*own)
}

/// Runs on the simulator what has no record.
fn simulate(
    runs: &[Run],
    workers: usize,
    folder: &Folder,
    monitor: Monitor<'_>,
    records: &mut BTreeMap<usize, Record>,
) -> Result<(), Failure> {
    let (numbers, jobs) = missing(runs, records, Host::is_simulated);
    let mut numbers = numbers.into_iter();
    sweep::run_all(&jobs, workers, monitor, |run| {
        // results come in the order of the jobs
        let number = numbers.next().expect("one result for each job");
        records.insert(number, folder.take(Record::of(&run, None), &run)?);
        Ok(())
    })
}

/// Runs on the kernel what has no valid record, one run after the other. What is still not valid after some rounds stays so.
fn emulate(
    runs: &[Run],
    sets: &[String],
    folder: &Folder,
    monitor: Monitor<'_>,
    records: &mut BTreeMap<usize, Record>,
) -> Result<(), Failure> {
    let source = Source::built_in(case::NAME, case::TEXT);
    let origin = Origin { source: &source, sets };
    for round in 0..=ROUNDS {
        let (numbers, jobs) = missing(runs, records, |host| !host.is_simulated());
        if jobs.is_empty() {
            break;
        }
        if round > 0 {
            monitor
                .note(&format!("the machine disturbed {} runs; they are repeated ({round} of {ROUNDS})", jobs.len()));
        }
        let mut numbers = numbers.into_iter();
        let attempts = Attempts { slower: Slower::default(), repeats: 0 };
        emu::run_all(&jobs, origin, monitor, attempts, |run, check| {
            let number = numbers.next().expect("one result for each job");
            let record = Record::of(&run, Some(check)).without_pauses_over(runs[number].pause_max);
            records.insert(number, folder.take(record, &run)?);
            Ok(())
        })?;
    }
    Ok(())
}

/// The runs on some hosts that have no valid record: their numbers and jobs.
fn missing(runs: &[Run], records: &BTreeMap<usize, Record>, on: impl Fn(Host) -> bool) -> (Vec<usize>, Vec<Job>) {
    let missing = runs
        .iter()
        .enumerate()
        .filter(|(number, run)| on(run.host) && !records.get(number).is_some_and(Record::is_valid));
    missing.map(|(number, run)| (number, run.job.clone())).unzip()
}

/// The records by case and host.
fn outcomes(cases: &[Case], runs: &[Run], mut records: BTreeMap<usize, Record>) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> =
        cases.iter().map(|case| Outcome { case: case.clone(), records: <[Vec<Record>; 3]>::default() }).collect();
    for (number, run) in runs.iter().enumerate() {
        outcomes[run.case].records[run.host as usize].extend(records.remove(&number));
    }
    outcomes
}

/// The output folder: a folder for each run, the records of all, and at the end the report.
struct Folder {
    out: PathBuf,
    kept: PathBuf,
}

impl Folder {
    /// An empty folder, or one that this study has made.
    fn open(out: &Path) -> Result<Folder, Failure> {
        let kept = out.join(KEPT);
        let is_empty = fs::read_dir(out).map_or(true, |mut entries| entries.next().is_none());
        if !is_empty && !kept.is_dir() {
            let text =
                format!("{} exists and was not made by this study: choose another folder (--out)", out.display());
            return Err(Failure::Input(text));
        }
        let made = fs::create_dir_all(&kept);
        made.map_err(|error| Failure::Input(format!("cannot make {}: {error}", kept.display())))?;
        Ok(Folder { out: out.to_path_buf(), kept })
    }

    /// The records of `runs`, by their numbers.
    fn find_all(&self, runs: &[Run], monitor: Monitor<'_>) -> BTreeMap<usize, Record> {
        let found = runs.iter().enumerate().filter_map(|(number, run)| Some((number, self.find(run)?)));
        let records: BTreeMap<usize, Record> = found.collect();
        if !records.is_empty() {
            let (kept, all, out) = (records.len(), runs.len(), self.out.display());
            monitor.note(&format!("{kept} of {all} runs were done before; remove {out} to repeat them"));
        }
        records
    }

    /// The record of a run. The simulator's runs take seconds and are always repeated, by the current program.
    fn find(&self, run: &Run) -> Option<Record> {
        let scenario = run.job.scenario.bundle().toml;
        let kept = || Record::find(&self.kept, &run.job.name, &scenario, run.pause_max);
        (!run.host.is_simulated()).then(kept).flatten()
    }

    /// Writes a run's tables and its record.
    fn take(&self, record: Record, run: &RunResults) -> Result<Record, Failure> {
        write_run(&self.out.join(&run.name), run, None).map_err(|error| Failure::writing(&error))?;
        record.keep(&self.kept)?;
        Ok(record)
    }

    /// Writes the comparison and the report, which draws the first repetition of each case.
    fn publish(&self, outcomes: &[Outcome], rows: &[impl Serialize], findings: &[String]) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(rows).map_err(|error| Failure::Run(error.to_string()))?;
        self.write("comparisons.json", format!("{json}\n").as_bytes())?;
        let pages = self.out.join(".report");
        let mut writer = SweepWriter::create(&pages).map_err(|error| Failure::writing(&error))?;
        for record in outcomes.iter().flat_map(|outcome| &outcome.records).filter_map(|records| records.first()) {
            writer.add(&record.drawn()).map_err(|error| Failure::writing(&error))?;
        }
        writer.finish(&story(findings), None).map_err(|error| Failure::writing(&error))?;
        for file in ["report.html", "summary.json"] {
            let moved = fs::rename(pages.join(file), self.out.join(file));
            moved.map_err(|error| Failure::Run(format!("cannot write {file}: {error}")))?;
        }
        // the rest there are thinned copies of the runs' own tables
        fs::remove_dir_all(&pages).map_err(|error| Failure::Run(format!("cannot remove {}: {error}", pages.display())))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.out.join(name);
        fs::write(&path, bytes).map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))
    }
}

/// The report's text.
fn story(findings: &[String]) -> Story {
    Story {
        title: "The simulator compared with real kernels".to_string(),
        lead: "Long flows through one bottleneck: simulated, on this machine’s kernel with the same algorithm source, and \
               with the kernel’s own implementation if it has one. All numbers, with \
               errors, are in comparisons.json."
            .to_string(),
        paragraphs: findings.to_vec(),
        comparisons: Vec::new(),
        figures: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_kernel_that_has_an_algorithm_of_its_own_is_asked_for_it() {
        let of_kernel = ["kernel:reno".to_string(), "kernel:cubic".to_string()];
        assert_eq!(algorithm_on(Host::Own, "newreno", &of_kernel), Some("kernel:reno"));
        assert_eq!(algorithm_on(Host::Own, "dctcp", &of_kernel), None);
        assert_eq!(algorithm_on(Host::Own, "vegas", &of_kernel), None);
        assert_eq!(algorithm_on(Host::Kernel, "vegas", &of_kernel), Some("vegas"));
    }

    #[test]
    fn the_folder_holds_the_comparison_and_the_report_and_takes_a_second_one() {
        let folder = tempfile::tempdir().expect("there is room");
        let out = folder.path().join("parity");
        let case = case::cases(false, &[]).remove(0);
        let record = |host| Record::example(&case.run_name(host, 1), case.algorithm);
        let records = [vec![record(Host::Simulator)], vec![record(Host::Kernel)], Vec::new()];
        let outcomes = [Outcome { case: case.clone(), records }];
        let rows = compare::rows(&outcomes);
        let findings = compare::findings(&outcomes, &rows);
        for _ in 0..2 {
            let folder = Folder::open(&out).expect("it is this study's");
            folder.publish(&outcomes, &rows, &findings).expect("there is room");
        }
        let read = |name: &str| fs::read_to_string(out.join(name)).expect("it was written");
        assert!(read("comparisons.json").contains("\"quantity\": \"mean queue\""));
        assert!(read("report.html").contains("Queue over time") && read("summary.json").contains("queue.mean"));
        assert!(!out.join(".report").exists());
    }

    #[test]
    fn a_folder_of_something_else_is_refused() {
        let folder = tempfile::tempdir().expect("there is room");
        fs::write(folder.path().join("thesis.txt"), "").expect("there is room");
        assert!(matches!(Folder::open(folder.path()), Err(Failure::Input(_))));
        let own = folder.path().join("own");
        assert!(Folder::open(&own).is_ok());
        assert!(Folder::open(&own).is_ok(), "a second time");
    }
}
