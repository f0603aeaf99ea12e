//! What all requests have in common.

use crate::slower::Slower;
use crate::source::Source;
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

/// A scenario to run, and how.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The scenario.
    pub scenario: Source,
    /// Overrides of the scenario, dotted: `KEY=VALUE`.
    pub sets: Vec<String>,
    /// Folder of the results [default: by the scenario's name]. One that an earlier run made is replaced by a repetition of that run.
    pub out: Option<PathBuf>,
    /// Replace results of another content as well.
    pub replace: bool,
    /// Cores: simulations in parallel, and threads of one where the network is large and there are cores left. Results do not depend
    /// on it.
    pub workers: usize,
    /// The backend.
    pub backend: Backend,
    /// How slowly the emulator runs.
    pub slower: Slower,
}

impl RunRequest {
    /// Without overrides, simulated.
    pub fn new(scenario: impl Into<Source>) -> RunRequest {
        let scenario = scenario.into();
        let (backend, slower) = (Backend::Sim, Slower::default());
        RunRequest { scenario, sets: Vec::new(), out: None, replace: false, workers: all_cores(), backend, slower }
    }
}
