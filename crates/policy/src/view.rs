//! What is known of a network at one instant: the same type from a simulated, an emulated and a live network.
//!
//! Everything measured may be missing (`None`): a collector says what it knows, and an expression over what nobody knows is
//! itself unknown. Rates and shares are over the collector's last period unless a field says otherwise.

use crate::cue::TEXT_MAX;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::{Bytes, Rate, Time};

/// The fewest segments over which a share of retransmissions means anything.
pub const SEGMENTS_MIN: u64 = 1000;

/// A network at one instant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkView {
    /// When, on the Oracle's monotonic clock.
    pub at: Time,
    /// Local time of day, in hours from midnight (0 to 24), for policies that follow the day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hour: Option<f64>,
    /// Day of the week, 1 is Monday.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weekday: Option<u8>,
    /// One-way links between switches, and between switches and hosts.
    pub links: Vec<Link>,
    /// Hosts with an agent.
    pub hosts: Vec<Host>,
    /// Flows that belong together: an application, a port, a class of sizes.
    pub groups: Vec<FlowGroup>,
    /// Completion times of all flows that ended in the period.
    pub fct: Percentiles,
    /// Traffic from rack to rack; pairs without traffic may be left out.
    pub matrix: Vec<RackPair>,
}

/// One direction of a cable and the queue in front of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// Unique.
    pub name: String,
    /// The switch or host that sends.
    pub from: String,
    /// The switch or host that receives.
    pub to: String,
    /// Capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Share of the capacity that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// Share of the offered packets that were dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_rate: Option<f64>,
    /// Share of the sent packets that were marked (ECN CE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark_rate: Option<f64>,
    /// Mean length of the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// Whether the queue marks instead of dropping, for packets that allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<bool>,
    /// Whether packets can take it; one that has failed parts what it joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

/// A host and its TCP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Host {
    /// Unique.
    pub name: String,
    /// The rack that it is in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rack: String,
    /// What the operator calls it: `role = "storage"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The congestion control that its connections have without a policy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cc: String,
    /// Open connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_flows: Option<f64>,
    /// Connections begun, a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_starts: Option<f64>,
    /// Data segments sent, retransmissions included: in the last second, or in as much longer as it took to send [`SEGMENTS_MIN`], up to a
    /// minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_segments: Option<u64>,
    /// Of these, retransmissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// Smoothed round-trip times of the open connections: microseconds, and how many connections are at or under it
    /// and above the entry before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub srtt_us: Vec<(u32, u32)>,
    /// What it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_rate: Option<Rate>,
    /// Completion times of its flows.
    #[serde(skip_serializing_if = "Percentiles::is_empty")]
    pub fct: Percentiles,
}

impl Host {
    /// Retransmitted over sent segments; not known under [`SEGMENTS_MIN`] sent segments, where one loss would be a
    /// large share.
    pub fn drop_rate(&self) -> Option<f64> {
        let (sent, again) = (self.sent_segments?, self.retransmitted_segments?);
        (sent >= SEGMENTS_MIN).then(|| again as f64 / sent as f64)
    }
}

/// Flows that belong together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowGroup {
    /// Unique.
    pub name: String,
    /// Open connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_flows: Option<f64>,
    /// Connections begun, a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_starts: Option<f64>,
    /// Share of its data segments that were retransmissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmit_rate: Option<f64>,
    /// Completion times.
    #[serde(skip_serializing_if = "Percentiles::is_empty")]
    pub fct: Percentiles,
}

/// Points of a distribution of times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Percentiles {
    /// Median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<Time>,
    /// 90 % are at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90: Option<Time>,
    /// 99 % are at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<Time>,
}

impl Percentiles {
    fn is_empty(&self) -> bool {
        *self == Percentiles::default()
    }
}

/// Traffic from one rack to another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackPair {
    /// The sending rack.
    pub from: String,
    /// The receiving rack.
    pub to: String,
    /// How much.
    pub rate: Rate,
}

/// Why a text is not a view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// Not JSON, or not of this shape.
    #[error("{line}:{column}: {message}")]
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the reader says.
        message: String,
    },
    /// A value that cannot be.
    #[error("{place}: {message}")]
    Value {
        /// `hosts[3] (h4)`.
        place: String,
        /// What is wrong.
        message: String,
    },
}

impl NetworkView {
    /// Reads and checks a view.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn from_json(text: &str) -> Result<NetworkView, ViewError> {
        let view: NetworkView = serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            // its place, which serde_json puts at the end, stands in front here
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(front, _)| front).to_string();
            ViewError::Json { line: error.line(), column: error.column(), message }
        })?;
        view.check()?;
        Ok(view)
    }

    /// The view as JSON, which [`NetworkView::from_json`] reads again.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a view is plain data")
    }

    fn check(&self) -> Result<(), ViewError> {
        for (i, link) in self.links.iter().enumerate() {
            let place = || format!("links[{i}] ({})", link.name);
            fraction("utilization", link.utilization, place)?;
            fraction("drop_rate", link.drop_rate, place)?;
            fraction("mark_rate", link.mark_rate, place)?;
        }
        for (i, host) in self.hosts.iter().enumerate() {
            let place = || format!("hosts[{i}] ({})", host.name);
            if host.retransmitted_segments > host.sent_segments {
                let message = "more segments were sent again than were sent".to_string();
                return Err(ViewError::Value { place: place(), message });
            }
        }
        for (i, group) in self.groups.iter().enumerate() {
            fraction("retransmit_rate", group.retransmit_rate, || format!("groups[{i}] ({})", group.name))?;
        }
        unique("hosts", self.hosts.iter().map(|host| host.name.as_str()))?;
        unique("links", self.links.iter().map(|link| link.name.as_str()))?;
        unique("groups", self.groups.iter().map(|group| group.name.as_str()))
    }
}

fn fraction(what: &str, value: Option<f64>, place: impl Fn() -> String) -> Result<(), ViewError> {
    match value {
        Some(value) if !(0.0..=1.0).contains(&value) => {
            let message = format!("`{what}` is {value}; it is a share, from 0 to 1");
            Err(ViewError::Value { place: place(), message })
        }
        _ => Ok(()),
    }
}

fn unique<'a>(list: &str, names: impl Iterator<Item = &'a str>) -> Result<(), ViewError> {
    let mut seen = std::collections::BTreeSet::new();
    for (i, name) in names.enumerate() {
        let place = || format!("{list}[{i}]");
        if name.is_empty() {
            return Err(ViewError::Value { place: place(), message: "it has no name".to_string() });
        }
        if name.len() > TEXT_MAX {
            let message = format!("its name has more than {TEXT_MAX} bytes");
            return Err(ViewError::Value { place: place(), message });
        }
        if !seen.insert(name) {
            return Err(ViewError::Value { place: place(), message: format!("a second `{name}`") });
        }
    }
    Ok(())
}
