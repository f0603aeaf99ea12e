//! What an Oracle needs, and what it reports.

use crate::lease::LeaseError;
use crate::status::Status;
use audit::Kind;
use bus::files::FileError;
use bus::{Address, BusError};
use policy::{Decision, Policy, VerdictReport};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Reads the text of a policy: the file's name, its text, and the algorithms that hosts have reported; the error is for people.
pub type Parse = Box<dyn Fn(&str, &str, &[String]) -> Result<Policy, String>>;
/// Takes each event before what follows from it is sent, and returns how many lines of the audit log could not be written so far and are not
/// recorded as missing; an error ends the Oracle.
pub type Record = Box<dyn FnMut(&Event<'_>) -> io::Result<u64>>;

/// What an Oracle needs.
pub struct Config {
    /// By which it decides.
    pub policy: Policy,
    /// The name of its file, for messages.
    pub file: String,
    /// The text of its file.
    pub text: String,
    /// The secret key.
    pub key: PathBuf,
    /// Where it meets its agents.
    pub bus: Address,
    /// Its folder: the last epoch, and how far the rollout has come.
    pub state: PathBuf,
    /// A view of the network in a file that a collector rewrites each period.
    pub view: Option<PathBuf>,
    /// Its number; Oracles of one fleet have different ones.
    pub number: u8,
    /// Where the lease is, if there are several Oracles.
    pub lease: Option<LeaseAt>,
    /// Reads policies that come while it runs.
    pub parse: Parse,
    /// What happens.
    pub record: Option<Record>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
}

/// Where Oracles have their lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAt {
    /// A folder that all of them reach.
    Folder(PathBuf),
    /// The bus's own store.
    Bus,
}

impl Config {
    /// Of an Oracle that decides alone, without a view in a file.
    pub fn new(policy: Policy, text: String, (key, state): (PathBuf, PathBuf), bus: Address, parse: Parse) -> Config {
        let (view, number, lease, record, metrics) = (None, 0, None, None, None);
        let file = policy.name.clone();
        Config { policy, file, text, key, bus, state, view, number, lease, parse, record, metrics }
    }
}

/// Something that an Oracle did.
#[derive(Debug)]
pub enum Event<'a> {
    /// A decision at the end of a period.
    Decided {
        /// The policy by which it was made.
        policy: &'a Policy,
        /// The first digits of the hash of the policy's text.
        hash: &'a str,
        /// Its CUEs are not sent.
        paused: bool,
        /// It.
        decision: &'a Decision,
        /// The verdict so far.
        verdict: &'a VerdictReport,
        /// The Oracle's.
        status: &'a Status,
    },
    /// A signed CUE is sent to all.
    Sent {
        /// Its epoch.
        epoch: u64,
        /// The bytes.
        message: &'a [u8],
    },
    /// From now on this Oracle decides.
    Leads {
        /// In this term.
        term: u32,
    },
    /// Another decides, or nobody.
    Follows {
        /// Why.
        why: &'a str,
    },
    /// Something else: an operator's request, a host's guards, a member.
    Noted {
        /// What it is about.
        kind: Kind,
        /// What happened.
        body: serde_json::Value,
    },
}

/// Why an Oracle ends.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// A key or an epoch.
    #[error(transparent)]
    File(#[from] FileError),
    /// The bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The lease.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The policy that the fleet follows cannot be read here.
    #[error(
        "the policy in force, which another Oracle has shared, cannot be read: {0}\nthis Oracle may be of an earlier version, or lack an algorithm"
    )]
    Policy(String),
    /// Metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] metrics::MetricsError),
    /// The system's.
    #[error(transparent)]
    Io(#[from] io::Error),
}
