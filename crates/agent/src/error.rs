//! Why an agent cannot start or continue.

#[cfg(test)]
mod tests;

use bus::files::FileError;
use kernel::bpffs::MountError;
use kernel::retune::RetuneError;
use std::io;
use std::path::PathBuf;

/// Why an agent ends.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A key, an epoch or a journal.
    #[error(transparent)]
    File(#[from] FileError),
    /// The BPF program.
    #[error(transparent)]
    Retune(#[from] RetuneError),
    /// The kernel refuses the BPF program, or there is no place for its pinned files.
    #[error("{}\nwithout BPF: --means routes", .0.trim_end())]
    Bpf(String),
    /// Pinned files would not outlive the agent where it was started; starting it elsewhere is better than doing without BPF.
    #[error("{0}\nwithout BPF: --means routes")]
    Mounts(#[from] MountError),
    /// The process may not set TCP.
    #[error(
        "setting this host's TCP needs root, or the capability CAP_NET_ADMIN, and for open connections CAP_BPF, CAP_PERFMON and \
         CAP_SYS_ADMIN: run it with `sudo`"
    )]
    NotRoot,
    /// Another agent runs.
    #[error("{}: another agent is running; a second one on this host needs its own --state, --pins and --cgroup", .0.display())]
    Running(PathBuf),
    /// A name, a label or a list from the operator does not fit a report.
    #[error("this host cannot be reported: {0}")]
    Host(String),
    /// The guardian does not start.
    #[error("the guardian, which restores settings if the agent dies, cannot be started: {0}")]
    Guardian(io::Error),
    /// Deadlines count on the kernel's clock, and this process has another.
    #[error(
        "this process is in a time namespace, whose clocks are not those of the kernel's deadlines: run the agent outside of it"
    )]
    Clock,
    /// Something that was changed is not as it was before.
    #[error("not all settings were restored: {0}")]
    Left(String),
    /// Metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] metrics::MetricsError),
    /// A system error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl AgentError {
    /// Whether the operator can fix it, as opposed to a kernel or a disk that failed.
    pub fn is_input(&self) -> bool {
        match self {
            AgentError::Running(_)
            | AgentError::Bpf(_)
            | AgentError::Mounts(_)
            | AgentError::NotRoot
            | AgentError::Clock
            | AgentError::Metrics(_)
            | AgentError::Host(_) => true,
            AgentError::File(error) => {
                !matches!(error, FileError::Io { source, .. } if source.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error()))
            }
            AgentError::Retune(error) => !matches!(error, RetuneError::Map(_)),
            AgentError::Guardian(_) | AgentError::Left(_) | AgentError::Io(_) => false,
        }
    }
}
