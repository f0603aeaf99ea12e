//! Who is in the fleet, and what each may do.

use serde::{Deserialize, Serialize};

/// A member of the fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name; an agent's is its host's in policies.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Hosts that an enforcer may report for; empty for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// What a member of the fleet may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Takes CUEs, and reports as itself.
    Agent,
    /// The same, for the hosts behind it.
    Enforcer,
    /// Reports links and traffic.
    Collector,
    /// Changes the policy.
    Operator,
}
