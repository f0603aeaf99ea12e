//! Data Center TCP (SIGCOMM 2010) and its reproduction on an emulated network (CS244, 2016): Figures 1, 12 and 16.
//!
//! Runs three scenarios, which are compiled in, in the simulator and, with the rights to emulate, on real kernels in real time. Compares
//! them with the paper's equations. Computes from the numbers which of the paper's statements hold.

mod analysis;
mod cases;
mod figures;
mod findings;
mod kernel;
mod measured;
mod rows;
mod tables;
mod theory;

use super::{Reproduced, Request, Study, Wanted, without_notes};
use crate::failure::Failure;
use crate::known::check_algorithm_files;
use crate::monitor::Monitor;
use crate::run::{Words as _, speed};
use crate::sweep::run_all;
use cases::{Backend, Case};
use measured::Measured;
use results::{Comparison, RunInfo, RunResults, SelfCheck, Story, SweepWriter};
use std::ops::RangeInclusive;
use std::time::Instant;
use units::Time;

/// The study.
pub const STUDY: Study = Study {
    name: "dctcp",
    about: "DCTCP's queue, sawtooth and convergence (SIGCOMM 2010): Figures 1, 12 and 16; simulated, as root also on kernels",
    reproduce,
};

/// Options of this study.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Only these figures, of [`Options::FIGURES`]; all of them, if empty.
    pub figures: Vec<u32>,
    /// Time between two starts or stops in Figure 16: within [`Options::STAGE`]. By default 10 s, with `full` 30 s.
    pub stage: Option<Time>,
}

impl Options {
    /// The figures that the study has.
    pub const FIGURES: [u32; 3] = [1, 12, 16];
    /// Shorter stages end during slow start; with much longer ones a run takes hours.
    pub const STAGE: RangeInclusive<Time> = Time::from_ms(100)..=Time::from_secs(300);

    /// Validates the options.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self) -> Result<(), String> {
        if self.figures.iter().any(|figure| !Options::FIGURES.contains(figure)) {
            return Err("the study has the figures 1, 12 and 16".to_string());
        }
        if self.stage.is_some_and(|stage| !Options::STAGE.contains(&stage)) {
            return Err(format!("a stage lasts {} to {}", Options::STAGE.start(), Options::STAGE.end()));
        }
        Ok(())
    }

    fn wants(&self, figure: u32) -> bool {
        self.figures.is_empty() || self.figures.contains(&figure)
    }
}

/// The results so far.
struct Progressing {
    writer: SweepWriter,
    measured: Vec<Measured>,
    checks: Vec<SelfCheck>,
    hops: u64,
}

impl Progressing {
    /// Measures and writes a run's results, then drops them.
    fn take(&mut self, case: &Case, run: &RunResults, check: Option<SelfCheck>) -> Result<(), Failure> {
        self.hops += run.summary.packet_hops;
        self.measured.push(Measured::of(case, run, check.clone()));
        self.checks.extend(check);
        self.writer.add(run).map_err(|error| Failure::writing(&error))
    }
}

/// Runs the study.
fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    request.dctcp.check().map_err(Failure::Input)?;
    let wanted = request.backend;
    let absent = wanted.absent_kernels(crate::emu::absent, monitor)?;
    let mut cases = cases::all(request)?;
    cases.retain(|case| match case.backend {
        Backend::Sim => wanted != Wanted::Kernel,
        Backend::Kernel => absent.is_none(),
    });
    let (simulated, emulated): (Vec<Case>, Vec<Case>) =
        cases.into_iter().partition(|case| case.backend == Backend::Sim);
    let jobs: Vec<_> = simulated.iter().map(Case::job).collect();
    check_algorithm_files(&jobs, monitor)?;
    let writer = SweepWriter::create(&request.out).map_err(|error| Failure::bad_out(&error))?;
    let mut so_far = Progressing { writer, measured: Vec::new(), checks: Vec::new(), hops: 0 };
    let began = Instant::now();
    if !jobs.is_empty() {
        // results come in the order of the jobs
        let mut order = simulated.iter();
        let mut take = |run: RunResults| {
            let case = order.next().expect("one result for each job");
            so_far.take(case, &run, None)
        };
        run_all(&jobs, request.workers, monitor, &mut take)?;
    }
    let failed =
        kernel::run_all(&emulated, request.slower, monitor, |case, run, check| so_far.take(case, run, Some(check)))?;
    let Progressing { writer, measured, checks, hops } = so_far;
    let lines = rows::lines(&measured);
    let mut findings = findings::findings(&measured, absent.as_deref(), wanted != Wanted::Sim);
    findings.extend(failed);
    let comparisons = rows::comparisons(&lines);
    let info = RunInfo { emulations: checks, ..speed(began, hops, request.workers.min(jobs.len().max(1))) };
    let story = story(&measured, &comparisons, &findings);
    writer.finish(&story, Some(&info)).map_err(|error| Failure::writing(&error))?;
    monitor.note(&info.words());
    let tables = tables::render(&lines, &findings);
    Ok(Reproduced { tables, findings, comparisons, wall_s: info.wall_s })
}

/// The report's text and figures.
fn story(measured: &[Measured], comparisons: &[Comparison], findings: &[String]) -> Story {
    Story {
        title: "Data Center TCP: queue, sawtooth, convergence".to_string(),
        lead: "Long flows from N senders to one receiver through one switch, after “Data Center TCP (DCTCP)” (SIGCOMM 2010) \
               and its reproduction on an emulated network at 100 Mbit/s (CS244, 2016): the queue and that of TCP (Figure 1), \
               its sawtooth and that of the equations (Figure 12), convergence and fairness (Figure 16); in the simulator (sim) \
               and with real kernels in real time (kernel). The paper’s values follow from its equations or its text."
            .to_string(),
        paragraphs: findings.to_vec(),
        figures: figures::figures(measured),
        comparisons: without_notes(comparisons),
    }
}
