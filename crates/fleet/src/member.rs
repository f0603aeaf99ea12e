//! Who is in the fleet, and what each may do.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest name of a member or a host, bytes: a DNS name.
pub const NAME_MAX: usize = 253;
/// Most hosts behind an enforcer, or of a token.
pub const HOSTS_MAX: usize = 256;
/// Most bytes of their names together: a user JWT must fit into a line of NATS's protocol.
pub(crate) const HOSTS_BYTES_MAX: usize = 6144;

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
    /// Decides, sends CUEs, admits members.
    Oracle,
}

impl Role {
    /// Every role that a token can give.
    pub const ENROLLED: [Role; 4] = [Role::Agent, Role::Enforcer, Role::Collector, Role::Operator];

    /// Its word in files, tokens and options.
    pub fn word(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::Enforcer => "enforcer",
            Role::Collector => "collector",
            Role::Operator => "operator",
            Role::Oracle => "oracle",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        let all = [Role::Agent, Role::Enforcer, Role::Collector, Role::Operator, Role::Oracle];
        let found = all.into_iter().find(|role| role.word() == text);
        found.ok_or_else(|| "not a role: agent, enforcer, collector or operator".to_string())
    }
}

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// None at all.
    #[error("the name is empty")]
    Empty,
    /// Too long.
    #[error("the name has {0} bytes; at most {NAME_MAX}")]
    Long(usize),
    /// A character that host names do not have.
    #[error("the name {0:?} has a character other than letters, digits, `.`, `-` and `_`")]
    Letter(String),
    /// Too many names.
    #[error("{0} hosts, or very long names: at most {HOSTS_MAX} hosts, and {HOSTS_BYTES_MAX} bytes together")]
    Many(usize),
    /// A name twice.
    #[error("the host {0:?} is named twice")]
    Twice(String),
}

/// Whether a text can be the name of a host or a member.
///
/// # Errors
/// Why not.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > NAME_MAX {
        return Err(NameError::Long(name.len()));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.chars().all(allowed) { Ok(()) } else { Err(NameError::Letter(name.to_string())) }
}

/// Whether these can be hosts of an enforcer or a token.
///
/// # Errors
/// Why not.
pub(crate) fn check_hosts(hosts: &[String]) -> Result<(), NameError> {
    if hosts.len() > HOSTS_MAX || hosts.iter().map(String::len).sum::<usize>() > HOSTS_BYTES_MAX {
        return Err(NameError::Many(hosts.len()));
    }
    hosts.iter().try_for_each(|host| check_name(host))?;
    let mut seen = std::collections::BTreeSet::new();
    match hosts.iter().find(|host| !seen.insert(*host)) {
        Some(twice) => Err(NameError::Twice(twice.clone())),
        None => Ok(()),
    }
}
