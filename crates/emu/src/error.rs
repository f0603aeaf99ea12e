//! Why a scenario is not emulated.

use crate::cgroup::CgroupError;
use crate::hosts;
use kernel::retune::RetuneError;
use net::NetError;
use scenario::Objection;
use std::io;

/// Why a scenario cannot be emulated, or could not.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// It asks for what this machine or Linux cannot do.
    #[error("{}", .0.iter().map(|o| o.message.as_str()).collect::<Vec<_>>().join("; "))]
    Asked(Vec<Objection>),
    /// The network model refuses it.
    #[error(transparent)]
    Model(#[from] NetError),
    /// This machine's kernel does not take algorithms.
    #[error("{0}; the kernel's own algorithms need nothing: `cc = \"kernel:cubic\"`")]
    Kernel(#[from] kernel::Missing),
    /// An algorithm is not one, or the kernel refuses it.
    #[error("{0}")]
    Algorithm(String),
    /// A host cannot be made.
    #[error(transparent)]
    Hosts(#[from] hosts::Error),
    /// Something failed on the way.
    #[error("{0}: {1}")]
    Io(&'static str, #[source] io::Error),
    /// There is no control group for the run's sockets.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The kernel does not let a policy retune TCP.
    #[error(transparent)]
    Retune(#[from] RetuneError),
    /// The traffic could not be made.
    #[error("{0} flows could not be opened; the first: {1}")]
    Traffic(u64, String),
    /// A thread of ours panicked: a broken invariant.
    #[error("the emulator broke an invariant of its own, see above")]
    Broken,
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}
