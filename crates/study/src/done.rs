//! What is left of runs whose tables are written.

use results::{RunInfo, RunResults, RunSummary, Summary};
use std::path::PathBuf;

/// A scenario's results.
#[derive(Clone, Debug)]
pub struct Done {
    /// Its name.
    pub scenario: String,
    /// The results folder; it contains `report.html`.
    pub out: PathBuf,
    /// Its runs, in order.
    pub runs: Vec<Kept>,
    /// Speed, and the emulator's self-checks.
    pub info: RunInfo,
}

/// The part of a run that is kept after its tables are written.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Unique among the runs.
    pub name: String,
    /// Its parameters.
    pub parameters: Vec<(String, String)>,
    /// Its measurements.
    pub summary: Summary,
}

impl Kept {
    /// Without the tables.
    pub fn of(run: &RunResults) -> Kept {
        let RunResults { name, parameters, summary, .. } = run;
        Kept { name: name.clone(), parameters: parameters.clone(), summary: summary.clone() }
    }

    /// As JSON.
    pub fn summary(&self) -> RunSummary<'_> {
        RunSummary { name: &self.name, folder: None, parameters: &self.parameters, summary: &self.summary }
    }
}
