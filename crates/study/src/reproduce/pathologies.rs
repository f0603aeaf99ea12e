//! Pathologies of TCP in data centers, each with one number for every algorithm: incast (FAST 2008, SIGCOMM 2009), outcast (NSDI 2012),
//! queue build-up and buffer pressure (DCTCP, SIGCOMM 2010), unfairness by RTT, minimum window, ACK-path congestion.
//!
//! Runs the scenarios `scenarios/pathology-*.toml`, which are compiled in, in the simulator.

mod cases;
mod measured;
mod rows;

use super::simulated::{Simulated, Texts};
use super::{Reproduced, Request, Study};
use crate::failure::Failure;
use crate::monitor::Monitor;
use crate::sweep::Job;
use results::Story;
use rows::Measurements;

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
    let mut measurements = Measurements::default();
    let simulated = Simulated::run(request, &jobs, monitor, |number, run| {
        let case = &cases[number];
        measurements.add(case, (case.pathology.measure)(run));
    })?;
    let comparisons = rows::comparisons(&measurements);
    let findings = rows::findings(&comparisons);
    let tables = rows::render(&comparisons, &findings);
    simulated.write(Texts { story: story(), tables, findings, comparisons })
}

/// The report's beginning.
fn story() -> Story {
    Story {
        title: "Pathologies of TCP in data centers".to_string(),
        lead: "Incast, outcast, queue build-up, buffer pressure, unfairness by RTT, the minimum window, and ACK-path \
               congestion, each with every algorithm at 1 Gbit/s, beside what was published."
            .to_string(),
        ..Story::default()
    }
}
