//! What studies that only simulate have in common: each run is measured when it ends, and then written and dropped.

use super::{Reproduced, Request, without_notes};
use crate::failure::Failure;
use crate::known::check_algorithm_files;
use crate::monitor::Monitor;
use crate::run::{Words as _, speed};
use crate::sweep::{Job, run_all};
use results::{Comparison, RunInfo, RunResults, Story, SweepWriter};
use std::time::Instant;

/// The runs of a study, measured and written; what they say is not written yet.
pub struct Simulated<'a> {
    writer: SweepWriter,
    info: RunInfo,
    monitor: Monitor<'a>,
}

/// What the runs say, for the report and the page.
pub struct Texts {
    /// The report's title, lead and figures; the rest is added.
    pub story: Story,
    /// The text.
    pub tables: String,
    /// Sentences, computed from the data.
    pub findings: Vec<String>,
    /// Our values and the published ones, with notes.
    pub comparisons: Vec<Comparison>,
}

impl<'a> Simulated<'a> {
    /// Simulates `jobs` into the request's folder, and passes each one's number and results to `measure`, in order.
    ///
    /// # Errors
    /// An algorithm's file is wrong, a run failed, the user stopped it, or the results cannot be written.
    pub fn run(
        request: &Request,
        jobs: &[Job],
        monitor: Monitor<'a>,
        mut measure: impl FnMut(usize, &RunResults),
    ) -> Result<Simulated<'a>, Failure> {
        check_algorithm_files(jobs, monitor)?;
        let mut writer = SweepWriter::create(&request.out).map_err(|error| Failure::bad_out(&error))?;
        let (began, mut hops, mut numbers) = (Instant::now(), 0, 0..jobs.len());
        run_all(jobs, request.workers, monitor, |run| {
            hops += run.summary.packet_hops;
            measure(numbers.next().expect("one result for each job"), &run);
            writer.add(&run).map_err(|error| Failure::writing(&error))
        })?;
        let info = speed(began, hops, request.workers.min(jobs.len()));
        Ok(Simulated { writer, info, monitor })
    }

    /// Writes the report, and with that the folder is complete.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self, Texts { story, tables, findings, comparisons }: Texts) -> Result<Reproduced, Failure> {
        let Simulated { writer, info, monitor } = self;
        let story = Story { paragraphs: findings.clone(), comparisons: without_notes(&comparisons), ..story };
        writer.finish(&story, Some(&info)).map_err(|error| Failure::writing(&error))?;
        monitor.note(&info.words());
        Ok(Reproduced { tables, findings, comparisons, wall_s: info.wall_s })
    }
}
