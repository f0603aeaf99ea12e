//! Flags that every command which runs simulations has.

use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder of the results; replaced if an earlier run made it [default: opentcp-results/NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// One JSON object on stdout instead of tables
    #[arg(long)]
    pub json: bool,
    /// Runs at the same time [default: as many as there are cores]. Results do not depend on it
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl Options {
    /// The folder of the results of `name`.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| study::results_folder(name))
    }

    /// Runs at the same time: `--jobs`, or as many as there are cores.
    pub fn workers(&self) -> usize {
        workers(self.jobs)
    }
}

/// Runs at the same time: as asked for, or as many as there are cores.
pub fn workers(jobs: Option<NonZeroUsize>) -> usize {
    jobs.map_or_else(study::all_cores, NonZeroUsize::get)
}
