//! Defaults of all requests.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

/// The default parent of results folders.
const RESULTS_FOLDER: &str = "opentcp-results";

/// The default results folder of `name`: `opentcp-results/NAME`.
pub fn results_folder(name: &str) -> PathBuf {
    Path::new(RESULTS_FOLDER).join(name)
}

/// Runs in parallel: the number of CPUs.
pub fn all_cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
