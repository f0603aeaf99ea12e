//! What the operator says of a host.

use policy::{Identity, Prefix};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use units::Rate;

/// By what an agent changes TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The BPF program for connections, and routes and sysctls where they reach further; these alone where BPF cannot be had.
    Both,
    /// The BPF program alone.
    Bpf,
    /// Routes and sysctls alone, on kernels without BPF.
    Routes,
}

impl Means {
    /// Whether the program is used.
    pub fn bpf(self) -> bool {
        self != Means::Routes
    }

    /// Whether routes and sysctls are.
    pub fn routes(self) -> bool {
        self != Means::Bpf
    }
}

/// What an agent leaves behind it, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Its folder: the highest epoch, the journal, the status.
    pub state: PathBuf,
    /// The folder in bpffs of what stays in the kernel.
    pub pins: PathBuf,
}

impl Places {
    pub(crate) fn epoch(&self) -> PathBuf {
        self.state.join("epoch")
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

/// All that an agent is told.
#[derive(Debug)]
pub struct Config {
    /// Its name and its labels.
    pub identity: Identity,
    /// The rack that the host is in; empty: none.
    pub rack: String,
    /// The Oracle's public key.
    pub key: PathBuf,
    /// Where the Oracle listens.
    pub socket: PathBuf,
    /// Where things stay.
    pub places: Places,
    /// Whose connections it changes: those of this cgroup (version 2) and below.
    pub cgroup: PathBuf,
    /// By what.
    pub means: Means,
    /// Which rack an address is in; the longest prefix counts.
    pub racks: Vec<(Prefix, String)>,
    /// The host's interfaces and what they can carry.
    pub links: Vec<(String, Rate)>,
    /// Algorithms, by their names in policies, whose connections must have agreed on ECN.
    pub needs_ecn: BTreeSet<String>,
    /// What is started to undo things should the agent die; it is given a pipe that ends with the agent.
    pub guardian: Option<Command>,
}

/// This host's name, as the kernel has it.
pub fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_string()
}

/// Where cgroups of version 2 are mounted, or would be.
pub fn cgroup_mount() -> PathBuf {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let place = mounts.lines().find_map(|line| line.strip_prefix("cgroup2 ")?.split(' ').next());
    place.unwrap_or("/sys/fs/cgroup").into()
}
