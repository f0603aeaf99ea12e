//! Why a scenario cannot be emulated.

use crate::cgroup::CgroupError;
use crate::hosts;
use kernel::retune::RetuneError;
use net::NetError;
use scenario::Objection;
use std::io;

/// Why a scenario cannot be emulated, or why it failed.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// It needs what this machine or Linux cannot do.
    #[error("{}", .0.iter().map(|o| o.message.as_str()).collect::<Vec<_>>().join("; "))]
    Asked(Vec<Objection>),
    /// The network model refuses it.
    #[error(transparent)]
    Model(#[from] NetError),
    /// This machine's kernel takes no algorithms.
    #[error("{0}; the kernel's own algorithms need nothing: `cc = \"kernel:cubic\"`")]
    Kernel(#[from] kernel::Missing),
    /// No such algorithm, or the kernel refuses it.
    #[error("{0}")]
    Algorithm(String),
    /// A host cannot be made.
    #[error(transparent)]
    Hosts(#[from] hosts::Error),
    /// A system call failed.
    #[error("{0}: {1}")]
    Io(&'static str, #[source] io::Error),
    /// There is no cgroup for the run's sockets.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The kernel does not let a policy retune TCP.
    #[error(transparent)]
    Retune(#[from] RetuneError),
    /// The traffic's connections could not be opened.
    #[error("{0} flows could not be opened; the first: {1}")]
    Traffic(u64, String),
    /// A thread of ours panicked: a broken invariant.
    #[error("the emulator broke one of its invariants, see above")]
    Broken,
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}
