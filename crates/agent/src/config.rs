//! What the operator configures of a host.

use bus::Address;
use policy::{Identity, Prefix};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use units::Rate;

/// How an agent changes TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The BPF program for connections, and routes and sysctls for what it cannot set; these alone where BPF is not available.
    Both,
    /// Only the BPF program.
    Bpf,
    /// Only routes and sysctls, for kernels without BPF.
    Routes,
}

impl Means {
    /// Whether the program is used.
    pub fn bpf(self) -> bool {
        self != Means::Routes
    }

    /// Whether routes and sysctls are used.
    pub fn routes(self) -> bool {
        self != Means::Bpf
    }
}

/// What an agent leaves on disk and in bpffs, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Its folder: highest epoch, what guards have reverted, journal, status.
    pub state: PathBuf,
    /// The folder in bpffs of what stays in the kernel.
    pub pins: PathBuf,
}

impl Places {
    pub(crate) fn epoch(&self) -> PathBuf {
        self.state.join("epoch")
    }

    pub(crate) fn reverted(&self) -> PathBuf {
        self.state.join("reverted.json")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.state.join("journal.json")
    }

    pub(crate) fn status(&self) -> PathBuf {
        self.state.join("status.json")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.state.join("lock")
    }
}

/// An agent's whole configuration.
#[derive(Debug)]
pub struct Config {
    /// Its name and its labels.
    pub identity: Identity,
    /// The rack that the host is in; empty: none.
    pub rack: String,
    /// The Oracle's public key.
    pub key: PathBuf,
    /// Where it meets the Oracle.
    pub bus: Address,
    /// Where its files are.
    pub places: Places,
    /// It changes the connections of this cgroup (version 2) and of those below.
    pub cgroup: PathBuf,
    /// How it changes them.
    pub means: Means,
    /// Which rack an address is in; the longest prefix counts.
    pub racks: Vec<(Prefix, String)>,
    /// The host's interfaces and what they can carry.
    pub links: Vec<(String, Rate)>,
    /// Algorithms, by their names in policies, whose connections must have agreed on ECN.
    pub needs_ecn: BTreeSet<String>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The command of the guardian, which undoes settings if the agent dies. It gets a pipe that closes with the agent.
    pub guardian: Option<Command>,
}

/// This host's name, as the kernel has it.
pub fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_string()
}

/// Where cgroups of version 2 are mounted, or would be.
pub fn cgroup_mount() -> PathBuf {
    kernel::cgroup_mounts().into_iter().next().unwrap_or_else(|| "/sys/fs/cgroup".into())
}
