//! Data Center TCP (SIGCOMM 2010) and its reproduction on an emulated network (CS244, 2016): Figures 1, 12 and 16.
//!
//! Runs three scenarios, which are parts of this program, in the simulator and, where this process may, with real kernels
//! in real time; lays what they show beside the paper's equations; and says in words, computed from the numbers, what
//! agrees and what does not.

mod analysis;
mod cases;
mod figures;
mod findings;
mod kernel;
mod measured;
mod rows;
mod tables;
mod theory;

use super::{Reproduced, Request, Study};
use crate::failure::Failure;
use crate::run::{Words as _, speed};
use crate::stop::Stop;
use crate::sweep::{check_algorithm_files, run_all};
use cases::{Backend, Case};
use measured::Measured;
use results::{Comparison, RunInfo, RunResults, SelfCheck, Story, SweepWriter};
use std::time::Instant;
use units::Time;

/// The study.
pub const STUDY: Study = Study {
    name: "dctcp",
    about: "DCTCP's queue, sawtooth and convergence (SIGCOMM 2010): Figures 1, 12 and 16; simulated, and as root on kernels",
    reproduce,
};

/// What only this study can be asked for, but for the backend, which is opentcp's too.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "dctcp, and of opentcp and tcon the backend")]
#[group(id = "dctcp")] // every set of flags needs a name of its own
pub struct Args {
    /// Only this figure; may be given many times
    #[arg(long = "figure", value_name = "1|12|16", value_parser = figure)]
    figures: Vec<u32>,
    /// What runs it; without rights to emulate, `both` is the simulator
    #[arg(long, value_enum, default_value_t = Wanted::Both)]
    backend: Wanted,
    /// Time between two starts or stops in Figure 16 [default: 10 s, with --full 30 s]
    #[arg(long, value_name = "TIME", value_parser = stage)]
    stage: Option<Time>,
}

/// Which backends are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Wanted {
    /// The simulator and, if possible, kernels
    #[default]
    Both,
    /// The simulator
    Sim,
    /// Kernels: without rights to emulate, an error
    Kernel,
}

impl Wanted {
    /// Why nothing runs on kernels, if nothing does: they are not wanted, or for the reason that `absent` gives, which is told.
    ///
    /// # Errors
    /// Only kernels are wanted, and there are none.
    pub fn absent_kernels(self, absent: impl FnOnce() -> Option<String>) -> Result<Option<String>, Failure> {
        if self == Wanted::Sim {
            return Ok(Some("not asked for".to_string()));
        }
        let Some(reason) = absent() else { return Ok(None) };
        if self == Wanted::Kernel {
            return Err(Failure::Input(format!("there are no kernels to run on: {reason}")));
        }
        eprintln!("nothing on kernels: {reason}");
        Ok(Some(reason))
    }
}

/// Stages much longer make one run take hours.
const STAGE_MAX: Time = Time::from_secs(300);
/// Shorter ones end before slow start does.
const STAGE_MIN: Time = Time::from_ms(100);

fn figure(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ (1 | 12 | 16)) => Ok(number),
        _ => Err("the study makes the figures 1, 12 and 16".to_string()),
    }
}

fn stage(text: &str) -> Result<Time, String> {
    let time: Time = text.parse().map_err(|error: units::UnitError| error.to_string())?;
    if (STAGE_MIN..=STAGE_MAX).contains(&time) {
        return Ok(time);
    }
    Err(format!("a stage lasts {STAGE_MIN} to {STAGE_MAX}"))
}

impl Args {
    /// Whether anything was asked that only this study knows.
    pub fn is_given(&self) -> bool {
        !self.figures.is_empty() || self.stage.is_some()
    }

    /// What is to run the studies that can run on kernels.
    pub fn backend(&self) -> Wanted {
        self.backend
    }

    fn wants(&self, figure: u32) -> bool {
        self.figures.is_empty() || self.figures.contains(&figure)
    }
}

/// What has been run so far.
struct Progressing {
    writer: SweepWriter,
    measured: Vec<Measured>,
    checks: Vec<SelfCheck>,
    hops: u64,
}

impl Progressing {
    /// Takes a run's results: measures them, writes them, and lets them go.
    fn take(&mut self, case: &Case, run: &RunResults, check: Option<SelfCheck>) -> Result<(), Failure> {
        self.hops += run.summary.packet_hops;
        self.measured.push(Measured::of(case, run, check.clone()));
        self.checks.extend(check);
        self.writer.add(run).map_err(|error| Failure::writing(&error))
    }
}

/// Runs the study.
fn reproduce(request: &Request) -> Result<Reproduced, Failure> {
    let wanted = request.dctcp.backend;
    let absent = wanted.absent_kernels(crate::emu::absent)?;
    let mut cases = cases::all(request)?;
    cases.retain(|case| match case.backend {
        Backend::Sim => wanted != Wanted::Kernel,
        Backend::Kernel => absent.is_none(),
    });
    let (simulated, emulated): (Vec<Case>, Vec<Case>) =
        cases.into_iter().partition(|case| case.backend == Backend::Sim);
    let jobs: Vec<_> = simulated.iter().map(Case::job).collect();
    check_algorithm_files(&jobs)?;
    let writer = SweepWriter::create(&request.out).map_err(|error| Failure::bad_out(&error))?;
    let mut so_far = Progressing { writer, measured: Vec::new(), checks: Vec::new(), hops: 0 };
    let (began, stop) = (Instant::now(), Stop::on_signals());
    if !jobs.is_empty() {
        // results come in the order of the jobs
        let mut order = simulated.iter();
        let mut take = |run: RunResults| {
            let case = order.next().expect("one result for each job");
            so_far.take(case, &run, None)
        };
        run_all(&jobs, request.workers, &stop, &mut take)?;
    }
    let failed = kernel::run_all(&emulated, &stop, |case, run, check| so_far.take(case, run, Some(check)))?;
    let Progressing { writer, measured, checks, hops } = so_far;
    let lines = rows::lines(&measured);
    let mut findings = findings::findings(&measured, absent.as_deref(), wanted != Wanted::Sim);
    findings.extend(failed);
    let comparisons = rows::comparisons(&lines);
    let info = RunInfo { emulations: checks, ..speed(began, hops, request.workers.min(jobs.len().max(1))) };
    let story = story(&measured, &comparisons, &findings);
    writer.finish(&story, Some(&info)).map_err(|error| Failure::writing(&error))?;
    eprintln!("{}", info.words());
    let tables = tables::render(&lines, &findings);
    Ok(Reproduced { tables, findings, comparisons, wall_s: info.wall_s })
}

/// The report's words and pictures. The notes stand in the JSON rows and the tables.
fn story(measured: &[Measured], comparisons: &[Comparison], findings: &[String]) -> Story {
    let without_note = |row: &Comparison| Comparison { note: String::new(), ..row.clone() };
    Story {
        title: "Data Center TCP: queue, sawtooth, convergence".to_string(),
        lead: "Long flows from N senders to one receiver through one switch, after “Data Center TCP (DCTCP)” (SIGCOMM 2010) \
               and its reproduction on an emulated network at 100 Mbit/s (CS244, 2016): the queue beside TCP’s (Figure 1), \
               its sawtooth beside the equations (Figure 12), convergence and fairness (Figure 16); in the simulator (sim) \
               and with real kernels in real time (kernel). What stands for the paper is what its equations or its text say."
            .to_string(),
        paragraphs: findings.to_vec(),
        figures: figures::figures(measured),
        comparisons: comparisons.iter().map(without_note).collect(),
    }
}
