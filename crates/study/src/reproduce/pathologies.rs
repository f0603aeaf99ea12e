//! Pathologies of TCP in data centers, each with one number for every algorithm: incast (FAST 2008, SIGCOMM 2009), outcast (NSDI 2012),
//! queue build-up and buffer pressure (DCTCP, SIGCOMM 2010), unfairness by RTT, minimum window, ACK-path congestion.
//!
//! Runs the scenarios `scenarios/pathology-*.toml`, which are compiled in, in the simulator.

mod cases;
mod measured;
mod rows;

use super::{Reproduced, Request, Study};
use crate::failure::Failure;
use crate::known::check_algorithm_files;
use crate::monitor::Monitor;
use crate::run::{Words as _, speed};
use crate::sweep::{Job, run_all};
use results::{Comparison, Story, SweepWriter};
use rows::Measurements;
use std::time::Instant;

/// The study.
pub const STUDY: Study = Study {
    name: "pathologies",
    about: "incast, outcast, queue build-up, buffer pressure and others (FAST 2008, SIGCOMM 2009 and 2010, NSDI 2012)",
    reproduce,
};

/// Runs the study.
fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    let cases = cases::all(request)?;
    let jobs: Vec<Job> = cases.iter().map(|case| case.job.clone()).collect();
    check_algorithm_files(&jobs, monitor)?;
    let mut writer = SweepWriter::create(&request.out).map_err(|error| Failure::bad_out(&error))?;
    let began = Instant::now();
    let (mut measurements, mut hops) = (Measurements::default(), 0);
    // results come in the order of the jobs
    let mut order = cases.iter();
    run_all(&jobs, request.workers, monitor, |run| {
        let case = order.next().expect("one result for each job");
        hops += run.summary.packet_hops;
        measurements.add(case, (case.pathology.measure)(&run));
        writer.add(&run).map_err(|error| Failure::writing(&error))
    })?;
    let comparisons = rows::comparisons(&measurements);
    let findings = rows::findings(&comparisons);
    let info = speed(began, hops, request.workers.min(jobs.len()));
    writer.finish(&story(&comparisons, &findings), Some(&info)).map_err(|error| Failure::writing(&error))?;
    monitor.note(&info.words());
    let tables = rows::render(&comparisons, &findings);
    Ok(Reproduced { tables, findings, comparisons, wall_s: info.wall_s })
}

/// The report's text. The notes are in the JSON rows and the tables.
fn story(comparisons: &[Comparison], findings: &[String]) -> Story {
    let without_note = |row: &Comparison| Comparison { note: String::new(), ..row.clone() };
    Story {
        title: "Pathologies of TCP in data centers".to_string(),
        lead: "Incast, outcast, queue build-up, buffer pressure, unfairness by RTT, the minimum window, and ACK-path \
               congestion, each with every algorithm at 1 Gbit/s, beside what was published."
            .to_string(),
        paragraphs: findings.to_vec(),
        comparisons: comparisons.iter().map(without_note).collect(),
        ..Story::default()
    }
}
