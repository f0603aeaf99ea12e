//! The CUE, the congestion update epistle: "these sessions: set these parameters, unless this guard, for so long".

use crate::select::{Sessions, fits};
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::Time;

/// Longest text in a CUE, bytes.
pub const TEXT_MAX: usize = 255;
/// Most hosts that one CUE names.
pub const NAMED_MAX: usize = 64;

/// A message from the Oracle to agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cue {
    /// The Oracle's decision that it comes from; grows by one each period.
    pub epoch: u64,
    /// Unique within its epoch.
    pub id: u32,
    /// The policy's name.
    pub policy: String,
    /// The rule's name.
    pub rule: String,
    /// The rule's place in the policy from 0: where two CUEs set the same of a session, the lower one counts.
    pub rank: u16,
    /// How long it lasts from when it is received, on the agent's monotonic clock.
    pub lifetime: Time,
    /// Whom it is for.
    pub scope: CueScope,
    /// What to set.
    pub set: Settings,
    /// What ends it at the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<CueGuard>,
    /// Why, for people.
    pub reason: String,
}

/// Hosts, and sessions on them. By default all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CueScope {
    /// Which hosts.
    pub hosts: Addressees,
    /// Of these, the ones whose name fits a pattern; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Of these, the ones with all of these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Which sessions.
    #[serde(default)]
    pub sessions: Sessions,
}

/// Which hosts a CUE is for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addressees {
    /// Every host that hears it.
    #[default]
    All,
    /// Hosts whose [`place_of`] in the policy's order is at most this: the treated share in a few bytes.
    UpTo(u64),
    /// These.
    Named(Vec<String>),
}

/// A condition that the agent watches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CueGuard {
    /// An expression over `host.…`.
    pub revert_if: String,
    /// How long the host then stays at its defaults.
    pub hold: Time,
}

impl Cue {
    /// Whether it is for this host.
    pub fn is_for(&self, host: &str, labels: &BTreeMap<String, String>) -> bool {
        let addressed = match &self.scope.hosts {
            Addressees::All => true,
            Addressees::UpTo(place) => place_of(&self.policy, host) <= *place,
            Addressees::Named(names) => names.iter().any(|name| name == host),
        };
        addressed
            && (self.scope.names.is_empty() || self.scope.names.iter().any(|pattern| fits(pattern, host)))
            && self.scope.labels.iter().all(|(label, value)| labels.get(label) == Some(value))
    }

    /// As JSON, for people and programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a CUE is plain data")
    }
}

/// A host's place in the order in which a policy treats hosts: FNV-1a of both names, spread by splitmix64's finisher. It is the
/// same at the Oracle and at every agent, on every machine, and no property of the host has to do with it.
pub fn place_of(policy: &str, host: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    let mut hash = policy.bytes().chain([0]).chain(host.bytes()).fold(OFFSET, step);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// At most [`TEXT_MAX`] bytes of a text, whole characters.
pub(crate) fn clipped(text: &str) -> String {
    let end = (0..=TEXT_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_string()
}
