//! ECN by the enforcer: DCTCP for hosts that know no ECN, by two enforcers (TCon, NPC 2017; AC/DC TCP, SIGCOMM 2016), and hosts with ECN
//! slowed by marks alone (OpenTCP, HotNets 2012: changed feedback in place of an agent).
//!
//! Runs the scenarios `scenarios/ecn-*.toml`, which are compiled in, in the simulator.

mod cases;
mod findings;
mod measured;
mod rows;

use super::simulated::{Simulated, Texts};
use super::{Reproduced, Request, Study};
use crate::failure::Failure;
use crate::monitor::Monitor;
use crate::sweep::Job;
use measured::Measured;
use results::Story;

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
    let mut measured = Vec::new();
    let simulated = Simulated::run(request, &jobs, monitor, |number, run| {
        measured.push(Measured::of(&cases[number], run));
    })?;
    let comparisons = rows::comparisons(&measured);
    let findings = findings::findings(&comparisons);
    let story = Story { figures: rows::figures(&measured, &comparisons), ..story() };
    simulated.write(Texts { story, tables: rows::render(&comparisons, &findings), findings, comparisons })
}

/// The report's beginning.
fn story() -> Story {
    Story {
        title: "ECN by the enforcer".to_string(),
        lead: "CUBIC hosts that know no ECN, between two enforcers, one of which runs DCTCP and the other echoes marks, beside \
               CUBIC and DCTCP hosts without enforcers. And what NewReno, CUBIC and DCTCP hosts with ECN make of marks that an \
               enforcer puts on a share of their data, beside the equations; all in the simulator."
            .to_string(),
        ..Story::default()
    }
}
