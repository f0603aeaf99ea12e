//! A paper's tables and figures, made again and laid beside the paper's.
//!
//! Each study is a module of its own below this one and an entry of [`STUDIES`]; the rest is the same for all.

mod cfi16;
mod dctcp;
mod opentcp;
mod parity;
mod tcon;

pub use dctcp::Options as DctcpOptions;
pub use parity::Options as ParityOptions;
pub use tcon::Options as TconOptions;

use crate::failure::Failure;
use crate::monitor::Monitor;
use crate::request::{all_cores, results_folder};
use results::Comparison;
use std::path::PathBuf;

/// A study: its name, what it is, how it is made again.
#[derive(Debug)]
pub struct Study {
    /// What it is asked for by.
    pub name: &'static str,
    /// In a line: the paper, its figures, what is needed.
    pub about: &'static str,
    reproduce: fn(&Request, Monitor<'_>) -> Result<Reproduced, Failure>,
}

/// A study a line, in the order in which all of them run.
pub const STUDIES: &[Study] = &[cfi16::STUDY, dctcp::STUDY, opentcp::STUDY, parity::STUDY, tcon::STUDY];

impl Study {
    /// The study that is called so.
    pub fn named(name: &str) -> Option<&'static Study> {
        STUDIES.iter().find(|study| study.name == name)
    }

    /// Whether `backend` means something to it.
    pub fn has_kernels(&self) -> bool {
        [dctcp::STUDY.name, opentcp::STUDY.name, tcon::STUDY.name].contains(&self.name)
    }
}

/// What a study is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The study's name.
    pub study: String,
    /// Seeds 1 to N; the numbers are then medians, with their ranges. At least 1.
    pub seeds: u32,
    /// Also the sweeps and experiments beside the paper's own settings.
    pub full: bool,
    /// Keys of the study's scenario that are set, dotted: `KEY=VALUE`.
    pub sets: Vec<String>,
    /// Folder of the results; replaced if an earlier run made it.
    pub out: PathBuf,
    /// Simulations at the same time. Results do not depend on it.
    pub workers: usize,
    /// What runs it, if it can run on kernels.
    pub backend: Wanted,
    /// What only `dctcp` has.
    pub dctcp: DctcpOptions,
    /// What only `parity` has.
    pub parity: ParityOptions,
    /// What only `tcon` has.
    pub tcon: TconOptions,
}

impl Request {
    /// The paper's own settings, one seed, on all cores, into `opentcp-results/STUDY`.
    pub fn new(study: &str) -> Request {
        Request {
            study: study.to_string(),
            seeds: 1,
            full: false,
            sets: Vec::new(),
            out: results_folder(study),
            workers: all_cores(),
            backend: Wanted::default(),
            dctcp: DctcpOptions::default(),
            parity: ParityOptions::default(),
            tcon: TconOptions::default(),
        }
    }
}

/// Which backends are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The simulator and, if possible, kernels.
    #[default]
    Both,
    /// The simulator.
    Sim,
    /// Kernels: without rights to emulate, an error.
    Kernel,
}

impl Wanted {
    /// Why nothing runs on kernels, if nothing does: they are not wanted, or for the reason that `absent` gives, which is told.
    ///
    /// # Errors
    /// Only kernels are wanted, and there are none.
    fn absent_kernels(
        self,
        absent: impl FnOnce() -> Option<String>,
        monitor: Monitor<'_>,
    ) -> Result<Option<String>, Failure> {
        if self == Wanted::Sim {
            return Ok(Some("not asked for".to_string()));
        }
        let Some(reason) = absent() else { return Ok(None) };
        if self == Wanted::Kernel {
            return Err(Failure::Input(format!("there are no kernels to run on: {reason}")));
        }
        monitor.note(&format!("nothing on kernels: {reason}"));
        Ok(Some(reason))
    }
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// For people.
    pub tables: String,
    /// In words, computed from the data.
    pub findings: Vec<String>,
    /// Ours beside the paper's.
    pub comparisons: Vec<Comparison>,
    /// Simulated and written in, seconds.
    pub wall_s: f64,
}

/// Does the study that is asked for.
///
/// # Errors
/// What is wrong with the request, or that a run failed, or that the user stopped it.
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
