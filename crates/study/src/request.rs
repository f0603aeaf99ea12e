//! What all requests have in common.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

/// The backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The simulator: virtual clock, simulated hosts.
    #[default]
    Sim,
    /// The emulator: real time, Linux hosts in network namespaces; needs root.
    Emu,
}

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
