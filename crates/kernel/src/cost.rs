//! The cost of an algorithm as a BPF program: throughput compared with another algorithm, and time in each hook.
//!
//! Both are measured over a cable between two network namespaces without names, with no rate limit, so that the
//! CPU is the bottleneck. They vanish with the measurement, however it ends. Needs root and iproute2's `ip`.

mod cable;
mod retuning;

pub use retuning::{BULK_BYTES, RetuneTime, Taken, retune_time};

use crate::error::Error;
use crate::load::Loaded;
use crate::sys;
use cable::Cable;
use libbpf_rs::query::ProgInfoIter;
use std::io;
use std::time::Duration;

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The algorithm is not in the kernel.
    #[error(transparent)]
    Load(#[from] Error),
    /// The namespaces could not be made.
    #[error("no pair of network namespaces to measure in: {0}")]
    Cable(String),
    /// A connection could not be opened, or broke.
    #[error("{algorithm}: {source}")]
    Transfer {
        /// The connection's algorithm.
        algorithm: String,
        /// The system call's error.
        source: io::Error,
    },
    /// The kernel does not count the run times of BPF programs.
    #[error("the kernel does not count run times of BPF programs (Linux 5.8 or newer, as root): {0}")]
    Statistics(io::Error),
}

/// How long to measure, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Pairs of runs, one of each algorithm, at least 1. Which of the two goes first alternates.
    pub pairs: usize,
    /// Length of a run.
    pub run: Duration,
}

/// Two algorithms, run alternately.
#[derive(Clone, Debug)]
pub struct Throughput {
    /// Goodput (ours, theirs) of each pair, Mbit/s.
    pub pairs_mbit: Vec<(f64, f64)>,
    /// CPU time of both ends (ours, theirs) of each pair, ns per 1000 bytes received. On a busy machine, goodput mostly
    /// shows what other programs left; this still shows the algorithm's cost.
    pub pairs_cpu_ns_per_kb: Vec<(f64, f64)>,
}

impl Throughput {
    /// The median over the pairs of ours ÷ theirs in goodput: 0.98 is a cost of 2 %.
    pub fn median_ratio(&self) -> f64 {
        median_ratio(&self.pairs_mbit)
    }

    /// The same of CPU time: 1.02 is a cost of 2 %.
    pub fn median_cpu_ratio(&self) -> f64 {
        median_ratio(&self.pairs_cpu_ns_per_kb)
    }
}

/// The ratio of the first of each pair to the second.
fn median_ratio(pairs: &[(f64, f64)]) -> f64 {
    let mut ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours / theirs).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.len() / 2;
    if ratios.len() % 2 == 1 { ratios[middle] } else { f64::midpoint(ratios[middle - 1], ratios[middle]) }
}

/// Goodput and CPU time of one connection that uses `ours`, and of one that uses `theirs`, alternately. Both are kernel names of loaded
/// algorithms.
///
/// # Errors
/// No namespaces, or no connection.
pub fn throughput(ours: &str, theirs: &str, plan: Plan) -> Result<Throughput, CostError> {
    assert!(plan.pairs > 0, "a median needs a pair");
    let cable = Cable::new().map_err(CostError::Cable)?;
    let carry = |algorithm: &str| {
        let carried = cable.carry(algorithm, plan.run);
        carried.map_err(|source| CostError::Transfer { algorithm: algorithm.to_string(), source })
    };
    // Not counted: the first connection finds caches and neighbour tables cold.
    carry(theirs)?;
    let mut measured = Throughput { pairs_mbit: Vec::new(), pairs_cpu_ns_per_kb: Vec::new() };
    for pair in 0..plan.pairs {
        let (ours, theirs) = if pair % 2 == 0 {
            let ours = carry(ours)?;
            (ours, carry(theirs)?)
        } else {
            let theirs = carry(theirs)?;
            (carry(ours)?, theirs)
        };
        measured.pairs_mbit.push((ours.mbit, theirs.mbit));
        measured.pairs_cpu_ns_per_kb.push((ours.cpu_ns_per_kb, theirs.cpu_ns_per_kb));
    }
    Ok(measured)
}

/// The cost of a hook.
#[derive(Clone, Debug)]
pub struct HookTime {
    /// The C function's name, of which the kernel keeps 15 characters.
    pub program: String,
    /// Calls counted.
    pub calls: u64,
    /// Mean time of a call, ns; about 60 ns of it are the cost of an empty program.
    pub mean_ns: f64,
}

/// Time in each hook that was called while a connection sent for the length of `run`, counted by the kernel.
///
/// # Errors
/// No namespaces, no connection, or the kernel does not count.
pub fn hook_times(algorithm: &Loaded, run: Duration) -> Result<Vec<HookTime>, CostError> {
    let cable = Cable::new().map_err(CostError::Cable)?;
    let counting = sys::count_run_times().map_err(CostError::Statistics)?;
    let carried = cable.carry(algorithm.name(), run);
    carried.map_err(|source| CostError::Transfer { algorithm: algorithm.name().to_string(), source })?;
    drop(counting);
    let ours = algorithm.programs();
    let called = ProgInfoIter::default().filter(|program| ours.contains(&program.id) && program.run_cnt > 0);
    Ok(called
        .map(|program| HookTime {
            program: program.name.to_string_lossy().into_owned(),
            calls: program.run_cnt,
            mean_ns: program.run_time_ns as f64 / program.run_cnt as f64,
        })
        .collect())
}
