//! ECN by the enforcer: DCTCP for hosts that know no ECN, by two enforcers (TCon, NPC 2017; AC/DC TCP, SIGCOMM 2016), and hosts with ECN
//! slowed by marks alone (OpenTCP, HotNets 2012: changed feedback in place of an agent).
//!
//! Runs the scenarios `scenarios/ecn-*.toml`, which are compiled in, in the simulator.

mod cases;
mod findings;
mod measured;
mod rows;

use super::{Reproduced, Request, Study};
use crate::failure::Failure;
use crate::known::check_algorithm_files;
use crate::monitor::Monitor;
use crate::run::{Words as _, speed};
use crate::sweep::{Job, run_all};
use measured::Measured;
use results::{Comparison, Story, SweepWriter};
use std::time::Instant;

/// The study.
pub const STUDY: Study = Study {
    name: "ecn",
    about: "enforcers and ECN: DCTCP for hosts without ECN by two of them; hosts with ECN slowed by marks, without an agent",
    reproduce,
};

/// Runs the study.
fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    let cases = cases::all(request)?;
    let jobs: Vec<Job> = cases.iter().map(|case| case.job.clone()).collect();
    check_algorithm_files(&jobs, monitor)?;
    let mut writer = SweepWriter::create(&request.out).map_err(|error| Failure::bad_out(&error))?;
    let began = Instant::now();
    let (mut measured, mut hops) = (Vec::new(), 0);
    // results come in the order of the jobs
    let mut order = cases.iter();
    run_all(&jobs, request.workers, monitor, |run| {
        let case = order.next().expect("one result for each job");
        hops += run.summary.packet_hops;
        measured.push(Measured::of(case, &run));
        writer.add(&run).map_err(|error| Failure::writing(&error))
    })?;
    let comparisons = rows::comparisons(&measured);
    let findings = findings::findings(&comparisons);
    let info = speed(began, hops, request.workers.min(jobs.len()));
    let story = story(&measured, &comparisons, &findings);
    writer.finish(&story, Some(&info)).map_err(|error| Failure::writing(&error))?;
    monitor.note(&info.words());
    let tables = rows::render(&comparisons, &findings);
    Ok(Reproduced { tables, findings, comparisons, wall_s: info.wall_s })
}

/// The report's text and figures. The notes are in the JSON rows and the tables.
fn story(measured: &[Measured], comparisons: &[Comparison], findings: &[String]) -> Story {
    let without_note = |row: &Comparison| Comparison { note: String::new(), ..row.clone() };
    Story {
        title: "ECN by the enforcer".to_string(),
        lead: "CUBIC hosts that know no ECN, between two enforcers, one of which runs DCTCP and the other echoes marks, beside \
               CUBIC and DCTCP hosts without enforcers. And what NewReno, CUBIC and DCTCP hosts with ECN make of marks that an \
               enforcer puts on a share of their data, beside the equations; all in the simulator."
            .to_string(),
        paragraphs: findings.to_vec(),
        figures: rows::figures(measured, comparisons),
        comparisons: comparisons.iter().map(without_note).collect(),
    }
}
