//! What an operator asks the Oracle about members, and what it answers.

use crate::nkey::{Nkey, NkeyKind};
use crate::registry::{Entry, Registry};
use crate::{Role, UnixTime};
use serde::{Deserialize, Serialize};

/// Most members of one answer: the longest names and an enforcer's hosts fit into a message.
pub const MEMBERS_PAGE: usize = 64;
/// Hosts of an enforcer that are listed.
const HOSTS_SHOWN: usize = 1;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// The next members behind a key, or the first ones.
    List {
        /// The last key of the answer before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
    /// Revoke a member.
    Revoke {
        /// Its name, or its key.
        name: String,
        /// Its role, if several members have the name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
    },
    /// Revoke a token: nobody enrols with it any more.
    RevokeToken {
        /// Its ticket, the JWT: without its secret key.
        ticket: String,
    },
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Members.
    Members {
        /// They.
        members: Vec<MemberLine>,
        /// With which key to ask for more; none if there are no more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        more: Option<String>,
    },
    /// It was revoked; a token is called `token`.
    Revoked(MemberLine),
    /// Neither.
    Refused(String),
}

/// A member, or one that was revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberLine {
    /// Its public key.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The first host behind it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// How many hosts are behind it.
    #[serde(default)]
    pub hosts_count: usize,
    /// When its JWT was issued; 0 of a revoked one.
    pub issued: UnixTime,
    /// When its JWT expires; of a revoked one, when it was revoked.
    pub until: UnixTime,
    /// Whether it was revoked.
    #[serde(default)]
    pub revoked: bool,
}

/// The members behind a key.
pub fn page(registry: &Registry, after: Option<&str>) -> Reply {
    let after = match after.map(|text| Nkey::parse(text, NkeyKind::User)).transpose() {
        Ok(after) => after,
        Err(error) => return Reply::Refused(format!("`after`: {error}")),
    };
    let mut members: Vec<MemberLine> =
        registry.after(after.as_ref()).take(MEMBERS_PAGE + 1).map(|(key, entry)| line(key, entry)).collect();
    let more = members.len() > MEMBERS_PAGE;
    members.truncate(MEMBERS_PAGE);
    let more = more.then(|| members.last().map(|last| last.key.clone())).flatten();
    Reply::Members { members, more }
}

/// The member that a name, or a key, means.
///
/// # Errors
/// None, several, or one that was revoked already; in words.
pub fn find(registry: &Registry, name: &str, role: Option<Role>) -> Result<(Nkey, MemberLine), String> {
    let found: Vec<MemberLine> = registry
        .entries()
        .map(|(key, entry)| line(key, entry))
        .filter(|one| (one.name == name || one.key == name) && role.is_none_or(|role| one.role == role))
        .collect();
    let mut members = found.iter().filter(|one| !one.revoked);
    match (members.next(), members.next()) {
        (Some(one), None) => {
            let key = Nkey::parse(&one.key, NkeyKind::User).map_err(|error| error.to_string())?;
            Ok((key, one.clone()))
        }
        (Some(one), Some(other)) => {
            let (a, b) = (one.role, other.role);
            Err(format!(
                "{name} is the name of several members, such as an {a} and an {b}: say which with --role, or give the key"
            ))
        }
        (None, _) if found.is_empty() => Err(format!("no member is called {name}; `opentcp fleet list` prints all")),
        (None, _) => Err(format!("{name} is revoked already")),
    }
}

/// An entry as it is listed.
pub fn line(key: &Nkey, entry: &Entry) -> MemberLine {
    match entry {
        Entry::Member(enrolled) => MemberLine {
            key: key.to_string(),
            name: enrolled.member.name.clone(),
            role: enrolled.member.role,
            hosts: enrolled.member.hosts.iter().take(HOSTS_SHOWN).cloned().collect(),
            hosts_count: enrolled.member.hosts.len(),
            issued: enrolled.issued,
            until: enrolled.expires,
            revoked: false,
        },
        Entry::Revoked(revoked) => MemberLine {
            key: key.to_string(),
            name: revoked.name.clone(),
            role: revoked.role,
            hosts: Vec::new(),
            hosts_count: 0,
            issued: 0,
            until: revoked.at,
            revoked: true,
        },
    }
}
