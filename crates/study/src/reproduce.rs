//! Reproduces a paper's tables and figures and compares them with the paper's.
//!
//! Each study is a module of its own below this one and an entry of [`STUDIES`]; the rest is the same for all.

mod cfi16;
mod data_centers;
mod dctcp;
mod ecn;
mod fast;
mod opentcp;
mod parity;
mod pathologies;
mod sets;
mod simulated;
mod tcon;

pub use dctcp::Options as DctcpOptions;
pub use parity::Options as ParityOptions;
pub use tcon::Options as TconOptions;

use crate::failure::Failure;
use crate::monitor::Monitor;
use crate::request::{all_cores, results_folder};
use crate::slower::Slower;
use results::Comparison;
use std::path::PathBuf;

/// A study: its name, what it is, and its function.
#[derive(Debug)]
pub struct Study {
    /// Its name in requests.
    pub name: &'static str,
    /// One line: the paper, its figures, the requirements.
    pub about: &'static str,
    reproduce: fn(&Request, Monitor<'_>) -> Result<Reproduced, Failure>,
}

/// All studies, in the order in which they run.
pub const STUDIES: &[Study] = &[
    cfi16::STUDY,
    data_centers::STUDY,
    dctcp::STUDY,
    ecn::STUDY,
    fast::STUDY,
    opentcp::STUDY,
    parity::STUDY,
    pathologies::STUDY,
    tcon::STUDY,
];

/// The algorithms of studies that compare many, in the order of their tables.
pub(crate) const VARIANTS: [&str; 10] =
    ["newreno", "vegas", "highspeed", "scalable", "westwood", "bic", "cubic", "yeah", "dctcp", "bbr"];

impl Study {
    /// The study of this name.
    pub fn named(name: &str) -> Option<&'static Study> {
        STUDIES.iter().find(|study| study.name == name)
    }

    /// Whether it supports `backend`.
    pub fn has_kernels(&self) -> bool {
        [dctcp::STUDY.name, opentcp::STUDY.name, tcon::STUDY.name].contains(&self.name)
    }
}

/// A request for a study.
#[derive(Clone, Debug)]
pub struct Request {
    /// The study's name.
    pub study: String,
    /// Seeds 1 to N, at least 1; numbers are then medians with ranges.
    pub seeds: u32,
    /// Add the sweeps and experiments beyond the paper's own settings.
    pub full: bool,
    /// Overrides of the study's scenario, dotted: `KEY=VALUE`.
    pub sets: Vec<String>,
    /// Folder of the results; replaced if an earlier run made it.
    pub out: PathBuf,
    /// Simulations in parallel. Results do not depend on it.
    pub workers: usize,
    /// The backend, if the study supports real kernels.
    pub backend: Wanted,
    /// How slowly `dctcp` and `opentcp` are emulated.
    pub slower: Slower,
    /// Options of `dctcp`.
    pub dctcp: DctcpOptions,
    /// Options of `parity`.
    pub parity: ParityOptions,
    /// Options of `tcon`.
    pub tcon: TconOptions,
}

impl Request {
    /// The paper's own settings, one seed, on all CPUs, into `opentcp-results/STUDY`.
    pub fn new(study: &str) -> Request {
        Request {
            study: study.to_string(),
            seeds: 1,
            full: false,
            sets: Vec::new(),
            out: results_folder(study),
            workers: all_cores(),
            backend: Wanted::default(),
            slower: Slower::default(),
            dctcp: DctcpOptions::default(),
            parity: ParityOptions::default(),
            tcon: TconOptions::default(),
        }
    }
}

/// The backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The simulator and, if possible, real kernels.
    #[default]
    Both,
    /// The simulator.
    Sim,
    /// Real kernels; without the rights to emulate, an error.
    Kernel,
}

impl Wanted {
    /// The reason why nothing runs on real kernels, if so: not requested, or the reason that `absent` returns, which is reported.
    ///
    /// # Errors
    /// Only real kernels are requested, and there are none.
    fn absent_kernels(
        self,
        absent: impl FnOnce() -> Option<String>,
        monitor: Monitor<'_>,
    ) -> Result<Option<String>, Failure> {
        if self == Wanted::Sim {
            return Ok(Some("not requested".to_string()));
        }
        let Some(reason) = absent() else { return Ok(None) };
        if self == Wanted::Kernel {
            return Err(Failure::Input(format!("cannot run on real kernels: {reason}")));
        }
        monitor.note(&format!("no run on real kernels: {reason}"));
        Ok(Some(reason))
    }
}

/// Rows of a report: their notes are in the JSON rows and the tables, and would be repeated under each figure.
fn without_notes(comparisons: &[Comparison]) -> Vec<Comparison> {
    comparisons.iter().map(|row| Comparison { note: String::new(), ..row.clone() }).collect()
}

/// A study's results.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// Text with tables.
    pub tables: String,
    /// Sentences, computed from the data.
    pub findings: Vec<String>,
    /// Our values and the paper's.
    pub comparisons: Vec<Comparison>,
    /// Wall-clock time, in seconds.
    pub wall_s: f64,
}

/// Runs the requested study.
///
/// # Errors
/// The request is wrong, a run failed, or the user stopped it.
pub fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    let study = Study::named(&request.study).ok_or_else(|| {
        let names: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
        Failure::Input(format!("there is no study `{}`; there are {}", request.study, names.join(", ")))
    })?;
    if request.seeds == 0 {
        return Err(Failure::Input("a study needs at least one seed".to_string()));
    }
    (study.reproduce)(request, monitor)
}
