//! A checked scenario: plain values, every default filled in, every name known to exist.
//!
//! The keys of the file are the field names here; `read` makes these types from a file, and their `Serialize` writes
//! a file that gives the same values. No other crate needs to check a value of these types again.

mod aqm;
mod balancing;
mod control;
mod enforcer;
mod job;
mod measure;
mod network;
mod tcp;
mod traffic;

pub use aqm::*;
pub use balancing::*;
pub use control::*;
pub use enforcer::*;
pub use job::*;
pub use measure::*;
pub use network::*;
pub use tcp::*;
pub use traffic::*;

use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use units::Time;

/// One run: a network, the traffic on it, how its hosts speak TCP, and what is measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// Short name: the file's stem unless the file says otherwise.
    pub name: String,
    /// A sentence for the top of a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The only source of randomness; default 1. At most `i64::MAX`, the largest integer of TOML.
    pub seed: u64,
    /// How long the network runs; more than zero and at most [`Scenario::DURATION_MAX`].
    pub duration: Time,
    /// Topology, links, queues, routing.
    pub network: Network,
    /// How hosts speak TCP unless a traffic entry overrides it.
    pub tcp: Tcp,
    /// What is recorded besides flow records and link totals, which are always recorded.
    pub measure: Measure,
    /// Enforcers, for hosts that are not changed; each at another node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enforcer: Vec<Enforcer>,
    /// The policy that adapts its hosts' TCP while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Control>,
    /// Who sends what to whom; never empty.
    pub traffic: Vec<Traffic>,
}

impl Scenario {
    /// 100 days: far below the clock's range of 213 days.
    pub const DURATION_MAX: Time = Time::from_secs(8_640_000);
}

/// A percentage, stored as written so that it prints as it was read.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Percent(pub(crate) f64);

impl Percent {
    /// As a fraction of one.
    pub fn fraction(self) -> f64 {
        self.0 / 100.0
    }
}

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} %", self.0)
    }
}

impl Serialize for Percent {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// A file that the scenario names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileRef {
    /// As written in the scenario.
    pub written: String,
    /// Where it is: the scenario's folder joined with `written`.
    pub path: PathBuf,
}

impl FileRef {
    /// The name without folders.
    pub fn base_name(&self) -> &str {
        self.written.rsplit('/').next().unwrap_or(&self.written)
    }
}

/// A file that was read when the scenario was loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataFile {
    /// Where.
    pub file: FileRef,
    /// Its text, so that a run's folder can keep a copy.
    pub text: Arc<str>,
}

impl Serialize for DataFile {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.file.written)
    }
}
