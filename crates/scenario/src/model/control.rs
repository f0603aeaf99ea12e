//! The policy of a network.

use super::DataFile;
use policy::Policy;
use serde::Serialize;
use std::collections::BTreeMap;
use units::Time;

/// An Oracle in the network of a scenario, and an agent on each of its hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Control {
    /// The policy's file.
    pub file: DataFile,
    /// T in this run, by which every other time of the policy's own is scaled; the policy's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<Time>,
    /// Labels of hosts; of two entries for a host and a label, the later applies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub label: Vec<HostLabels>,
    /// Length of the policy's day in this run, scaled as well. The run begins on a Monday at 00:00.
    #[serde(skip)]
    pub day: Time,
    /// The policy, scaled to that period.
    #[serde(skip)]
    pub policy: Policy,
}

/// Labels of hosts, by which a policy's rules and its rollout can choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostLabels {
    /// Patterns of their names, in which `*` is any text; each matches a host.
    pub hosts: Vec<String>,
    /// Label and value.
    pub set: BTreeMap<String, String>,
}
