//! What every request has unless it says otherwise.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

/// Where results go unless the user says otherwise.
const RESULTS_FOLDER: &str = "opentcp-results";

/// The folder of the results of `name`: `opentcp-results/NAME`.
pub fn results_folder(name: &str) -> PathBuf {
    Path::new(RESULTS_FOLDER).join(name)
}

/// Runs at the same time: as many as there are cores.
pub fn all_cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
