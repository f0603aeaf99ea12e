//! Options of every command that runs simulations.

use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder of the results [default: opentcp-results/NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// One JSON object on stdout instead of tables
    #[arg(long)]
    pub json: bool,
    /// Cores [default: the number of CPUs]: so many runs in parallel; cores left over share large networks. Results do not depend on it
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl Options {
    /// The folder of the results of `name`.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| study::results_folder(name))
    }

    /// Cores: `--jobs`, or the number of CPUs.
    pub fn workers(&self) -> usize {
        workers(self.jobs)
    }
}

/// Cores: as asked for, or the number of CPUs.
pub fn workers(jobs: Option<NonZeroUsize>) -> usize {
    jobs.map_or_else(study::all_cores, NonZeroUsize::get)
}
