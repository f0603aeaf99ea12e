//! What is known of a network at one instant: the same type from a simulated, an emulated and a live network.
//!
//! Everything measured may be missing (`None`): a collector reports what it knows, and an expression over an
//! unknown value is unknown. Rates and shares are over the collector's last period unless a field says otherwise.
//!
//! A view and a report come from outside the process. [`NetworkView::from_json`], [`Host::check`] and [`Link::check`] bound every
//! text, list and number in them, so that no sum over a network overflows and no name takes more than [`TEXT_MAX`] bytes.

use crate::algorithm::is_plain;
use crate::cue::{TEXT_MAX, clipped};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use units::{Bytes, Rate, Time};

/// The fewest segments over which a share of retransmissions means anything.
pub const SEGMENTS_MIN: u64 = 1000;
/// Largest count, and largest number per second: a floating-point number holds each integer up to here.
pub const COUNT_MAX: u64 = 1 << 53;
/// Most labels of a host.
pub const LABELS_MAX: usize = 16;
/// Most algorithms of a host.
pub const ALGORITHMS_MAX: usize = 64;
/// Most steps of the histogram of a host's RTTs.
pub const RTT_STEPS_MAX: usize = 256;

/// A network at one instant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkView {
    /// When, on the Oracle's monotonic clock.
    pub at: Time,
    /// Time of day in the policy's time zone, in hours from midnight (0 to 24).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hour: Option<f64>,
    /// Day of the week in that zone, 1 is Monday.
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
    /// What hosts send to each other, by racks and size. Policies do not ask for it; a scenario of the network is made from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfers>,
    /// What hosts say of themselves, by their place in `hosts`, where what counts for the others was cut to what the rest of the fleet says:
    /// a rule that is decided host by host goes by it.
    #[serde(skip)]
    pub own: BTreeMap<usize, Host>,
}

/// One direction of a cable and the queue in front of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
    /// How long ago this was measured; from two periods on, what was measured is unknown ([`NetworkView::without_stale`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<Time>,
}

/// A host and its TCP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
    /// The algorithms that its connections can be given, by their names in policies; empty: not reported, and not checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub algorithms: Vec<String>,
    /// Open connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_flows: Option<f64>,
    /// Connections begun, a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_starts: Option<f64>,
    /// Other hosts from which data came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fan_in: Option<f64>,
    /// Data segments sent, retransmissions included: in the last second, or in as much longer as it took to send [`SEGMENTS_MIN`], up to a
    /// minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_segments: Option<u64>,
    /// Of these, retransmissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// Smoothed RTTs of the open connections, or where none is open just now, of those that ended lately: microseconds, and how many
    /// connections are at or under it and above the entry before.
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
#[serde(default)]
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
#[serde(default)]
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
pub struct RackPair {
    /// The sending rack.
    pub from: String,
    /// The receiving rack.
    pub to: String,
    /// How much.
    pub rate: Rate,
}

/// Transfers of about the same size from one rack to another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfers {
    /// The sending rack; empty: of hosts without a rack.
    pub from: String,
    /// The receiving rack; empty: not known.
    pub to: String,
    /// How many begin, a second.
    pub starts: f64,
    /// Mean size.
    pub size: Bytes,
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
        /// The JSON reader's message.
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
        let broken = |error: serde_json::Error| {
            let message = error.to_string();
            // its place, which serde_json puts at the end, stands in front here
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(front, _)| front).to_string();
            ViewError::Json { line: error.line(), column: error.column(), message }
        };
        let mut reader = serde_json::Deserializer::from_str(text);
        // a report may have fields of a later version; in a view, which people and their programs write, one is a mistake
        let mut unknown = None;
        let view: NetworkView = serde_ignored::deserialize(&mut reader, |path| {
            unknown.get_or_insert_with(|| path.to_string());
        })
        .map_err(broken)?;
        reader.end().map_err(broken)?;
        if let Some(field) = unknown {
            let name = field.rsplit('.').next().unwrap_or_default();
            let (line, column) = place_of_key(text, name);
            return Err(ViewError::Json { line, column, message: format!("unknown field `{field}`") });
        }
        view.check()?;
        Ok(view)
    }

    /// The view as JSON, which [`NetworkView::from_json`] reads again.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a view is plain data")
    }

    /// The view without what was measured more than `most` ago: of such a link its name, its ends, its rate and whether it marks are known, and
    /// its age.
    pub fn without_stale(&self, most: Time) -> Cow<'_, NetworkView> {
        let is_stale = |link: &Link| link.age.is_some_and(|age| age > most);
        if !self.links.iter().any(is_stale) {
            return Cow::Borrowed(self);
        }
        let mut view = self.clone();
        for link in view.links.iter_mut().filter(|link| is_stale(link)) {
            (link.utilization, link.drop_rate, link.mark_rate) = (None, None, None);
            (link.queue, link.up) = (None, None);
        }
        Cow::Owned(view)
    }

    fn check(&self) -> Result<(), ViewError> {
        let at = |place: String| move |message| ViewError::Value { place, message };
        let of_clock = number("hour", self.hour, 24.0).and_then(|()| match self.weekday {
            Some(day) if !(1..=7).contains(&day) => Err(format!("`weekday` is {day}; 1 is Monday, 7 is Sunday")),
            _ => Ok(()),
        });
        of_clock.map_err(at("clock".to_string()))?;
        for (i, link) in self.links.iter().enumerate() {
            link.check().map_err(at(format!("links[{i}] ({})", clipped(&link.name))))?;
        }
        for (i, host) in self.hosts.iter().enumerate() {
            host.check().map_err(at(format!("hosts[{i}] ({})", clipped(&host.name))))?;
        }
        for (i, group) in self.groups.iter().enumerate() {
            group.check().map_err(at(format!("groups[{i}] ({})", clipped(&group.name))))?;
        }
        for (i, pair) in self.matrix.iter().enumerate() {
            pair.check().map_err(at(format!("matrix[{i}]")))?;
        }
        for (i, transfers) in self.transfers.iter().enumerate() {
            transfers.check().map_err(at(format!("transfers[{i}]")))?;
        }
        unique("hosts", self.hosts.iter().map(|host| host.name.as_str()))?;
        unique("links", self.links.iter().map(|link| link.name.as_str()))?;
        unique("groups", self.groups.iter().map(|group| group.name.as_str()))
    }
}

impl Link {
    /// Whether its texts and numbers are in range.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), String> {
        name("name", &self.name)?;
        text("from", &self.from)?;
        text("to", &self.to)?;
        count("rate", self.rate.map(Rate::as_bps))?;
        count("queue", self.queue.map(Bytes::get))?;
        fraction("utilization", self.utilization)?;
        fraction("drop_rate", self.drop_rate)?;
        fraction("mark_rate", self.mark_rate)
    }
}

impl Host {
    /// Whether its texts, lists and numbers are in range.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), String> {
        name("name", &self.name)?;
        text("rack", &self.rack)?;
        text("cc", &self.cc)?;
        length("labels", self.labels.len(), LABELS_MAX)?;
        for (label, value) in &self.labels {
            name("label", label)?;
            text("label", value)?;
        }
        length("algorithms", self.algorithms.len(), ALGORITHMS_MAX)?;
        if let Some(odd) = self.algorithms.iter().find(|name| !is_plain(name)) {
            return Err(format!("`{}` is not the name of an algorithm", clipped(odd).escape_debug()));
        }
        number("live_flows", self.live_flows, COUNT_MAX as f64)?;
        number("flow_starts", self.flow_starts, COUNT_MAX as f64)?;
        number("fan_in", self.fan_in, COUNT_MAX as f64)?;
        count("sent_segments", self.sent_segments)?;
        count("send_rate", self.send_rate.map(Rate::as_bps))?;
        if self.retransmitted_segments > self.sent_segments {
            return Err("more segments were retransmitted than were sent".to_string());
        }
        length("srtt_us", self.srtt_us.len(), RTT_STEPS_MAX)?;
        if !self.srtt_us.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Err("`srtt_us` is not in ascending order".to_string());
        }
        Ok(())
    }
}

impl FlowGroup {
    fn check(&self) -> Result<(), String> {
        name("name", &self.name)?;
        number("live_flows", self.live_flows, COUNT_MAX as f64)?;
        number("flow_starts", self.flow_starts, COUNT_MAX as f64)?;
        fraction("retransmit_rate", self.retransmit_rate)
    }
}

impl Transfers {
    fn check(&self) -> Result<(), String> {
        text("from", &self.from)?;
        text("to", &self.to)?;
        number("starts", Some(self.starts), COUNT_MAX as f64)?;
        count("size", Some(self.size.get()))
    }
}

impl RackPair {
    /// Whether its texts and its number are in range.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), String> {
        text("from", &self.from)?;
        text("to", &self.to)?;
        count("rate", Some(self.rate.as_bps()))
    }
}

/// Line and column of the first key of this name in a text of JSON.
fn place_of_key(text: &str, name: &str) -> (usize, usize) {
    let quoted = format!("\"{name}\"");
    let is_key = |at: &usize| text[at + quoted.len()..].trim_start().starts_with(':');
    let at = text.match_indices(&quoted).map(|(at, _)| at).find(is_key).unwrap_or(0);
    let line = text[..at].matches('\n').count() + 1;
    (line, at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1)
}

/// A text in one line; it may be empty.
fn text(what: &str, value: &str) -> Result<(), String> {
    if value.len() > TEXT_MAX {
        return Err(format!("its `{what}` has more than {TEXT_MAX} bytes"));
    }
    if value.contains(char::is_control) {
        return Err(format!("its `{what}` has a control character"));
    }
    Ok(())
}

fn name(what: &str, value: &str) -> Result<(), String> {
    if value.is_empty() { Err(format!("it has no {what}")) } else { text(what, value) }
}

fn length(what: &str, length: usize, most: usize) -> Result<(), String> {
    if length > most { Err(format!("it has {length} `{what}`; at most {most}")) } else { Ok(()) }
}

fn count(what: &str, value: Option<u64>) -> Result<(), String> {
    match value {
        Some(value) if value > COUNT_MAX => Err(format!("`{what}` is {value}; at most {COUNT_MAX}")),
        _ => Ok(()),
    }
}

fn number(what: &str, value: Option<f64>, most: f64) -> Result<(), String> {
    match value {
        Some(value) if !(0.0..=most).contains(&value) => Err(format!("`{what}` is {value}; it is from 0 to {most}")),
        _ => Ok(()),
    }
}

fn fraction(what: &str, value: Option<f64>) -> Result<(), String> {
    match value {
        Some(value) if !(0.0..=1.0).contains(&value) => Err(format!("`{what}` is {value}; it is a share, from 0 to 1")),
        _ => Ok(()),
    }
}

fn unique<'a>(list: &str, names: impl Iterator<Item = &'a str>) -> Result<(), ViewError> {
    let mut seen = std::collections::BTreeSet::new();
    for (i, name) in names.enumerate() {
        if !seen.insert(name) {
            return Err(ViewError::Value { place: format!("{list}[{i}]"), message: format!("a second `{name}`") });
        }
    }
    Ok(())
}
