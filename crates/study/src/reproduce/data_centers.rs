//! Data-center networks, algorithms and traffic, each with each: {fat tree, leaf–spine, VL2, BCube, DCell} × {ten algorithms} × {on–off, web
//! search, MapReduce, incast}.
//!
//! Runs the scenarios `scenarios/data-centers-*.toml`, which are compiled in. The results folder is a dataset to which each run is added
//! when it is done, so that an interrupted study goes on where it was.

mod cases;
mod findings;
mod measured;
mod rows;
mod tell;

use super::{Reproduced, Request, Study};
use crate::dataset::Sweep;
use crate::failure::Failure;
use crate::monitor::Monitor;
use crate::run::Words as _;

/// The study.
pub const STUDY: Study = Study {
    name: "data-centers",
    about: "five data-center networks, ten algorithms, four kinds of traffic, each with each",
    reproduce,
};

/// Runs the study.
fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    let cases = cases::all(request)?;
    let jobs = cases.iter().map(|case| case.job.clone()).collect();
    let sweep = Sweep::of(jobs, &request.out, measured::complete)?;
    let done = sweep.run(request.workers, monitor)?;
    let rows = rows::of(&cases, &done.runs);
    let findings = findings::findings(&rows);
    sweep.report(&tell::report(&rows, &findings))?;
    monitor.note(&done.info.words());
    let tables = tell::text(&rows, &findings);
    Ok(Reproduced { tables, findings, comparisons: rows::comparisons(&rows), wall_s: done.info.wall_s })
}
