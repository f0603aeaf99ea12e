//! An agent's report to the Oracle: what it measured, what is in force on its host, and with what effect.

use crate::MESSAGE_MAX;
use hdrhistogram::Histogram;
use policy::{AgentCounts, COUNT_MAX, EPOCH_MAX, Host, Link, Percentiles, Question, Reverted};
use serde::{Deserialize, Serialize};
use units::Time;

/// Longest completion time that the histogram resolves, microseconds: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// Most links of one host: 32 interfaces, both directions.
pub const LINKS_MAX: usize = 64;
/// Most kinds of connections in a report.
pub const KINDS_MAX: usize = 257;
/// Most rules in force, and most notes.
const LIST_MAX: usize = 256;
/// Most steps of a histogram of completion times: 16 for each of 28 doublings, and 32 below.
const STEPS_MAX: usize = 512;
/// Longest name of a group, bytes: a policy's and a rule's.
const GROUP_MAX: usize = 512;
/// Most rules that guards have reverted.
const TRIPPED_MAX: usize = 4;
/// Longest other name, bytes.
const NAME_MAX: usize = 255;

/// For [`Report::of_epoch`]: no decision has this number.
pub const SEVERAL: u64 = 0;

/// A host's report, as JSON of at most [`MESSAGE_MAX`] bytes. Fields that this version does not know are ignored, so that agents may be
/// newer than their Oracle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Who it is, and what it measured of itself.
    pub host: Host,
    /// Its own links.
    pub links: Vec<Link>,
    /// The highest epoch that it knows of.
    pub epoch: Option<u64>,
    /// The epoch in whose period the connections of `telemetry` ended; [`SEVERAL`] if in more than one. `None`: the Oracle announces no
    /// periods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_epoch: Option<u64>,
    /// To be answered before any CUE is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// What became of CUEs.
    pub counts: AgentCounts,
    /// In the order of the rules.
    pub in_force: Vec<InForce>,
    /// Rules that guards have reverted and hold so, at most four.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reverted: Vec<Tripped>,
    /// Connections that ended since the last report.
    pub telemetry: Vec<Telemetry>,
    /// Kinds of connections, and links, for which there was no room here.
    pub left_out: usize,
    /// What could not be set, or not as asked, for people.
    pub notes: Vec<String>,
}

/// A rule that is in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InForce {
    /// The policy's name.
    pub policy: String,
    /// The rule's name.
    pub rule: String,
    /// How long it lasts unless it is renewed.
    pub left: Time,
    /// Of every setting, what came of it.
    pub effective: Vec<Effective>,
}

/// A rule that a guard has reverted, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tripped {
    /// The rule's name.
    pub rule: String,
    /// What its guard saw: `host.drop_rate = 0.042`; empty if the agent was restarted since.
    pub why: String,
    /// How long it stays reverted, from this report on.
    pub left: Time,
    /// How long in all.
    pub hold: Time,
}

impl Tripped {
    /// The first of what an agent's guards have reverted, at `now`.
    pub fn of(reverted: &[Reverted], now: Time) -> Vec<Tripped> {
        let tripped = |of: &Reverted| Tripped {
            rule: of.rule.clone(),
            why: clipped(&of.why),
            left: of.until.saturating_sub(now),
            hold: of.hold,
        };
        reverted.iter().take(TRIPPED_MAX).map(tripped).collect()
    }
}

/// The beginning of a text that fits a report.
fn clipped(text: &str) -> String {
    let end = (0..=NAME_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_string()
}

/// A setting, and what the kernel made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Effective {
    /// Its name in policies.
    pub setting: String,
    /// The CUE's value.
    pub asked: String,
    /// What was read back, and where; `None`: nothing there from which to read it.
    pub found: Option<String>,
    /// Of so many connections.
    pub connections: usize,
    /// Connections for which it was set, and that certainly do not have it.
    #[serde(skip_serializing_if = "is_zero")]
    pub differing: usize,
    /// It stays on connections that have it until they close.
    pub until_close: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Connections of one kind that have ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Telemetry {
    /// `policy/rule` of the first rule that they had, `default` without one.
    pub group: String,
    /// The rack of the other end.
    pub remote_rack: String,
    /// How much they carried: `under 10 kB`.
    pub size: String,
    /// Whether more came than went: settings of the other end decided how long they took. An agent that does not say so counts both.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub received: bool,
    /// How many.
    pub flows: u64,
    /// Bytes sent and acknowledged.
    pub bytes: u64,
    /// Segments sent with data.
    pub segments: u64,
    /// Of these, retransmissions.
    pub retransmits: u64,
    /// From the first to the last packet: microseconds, and how many took about so long.
    pub fct_us: Vec<(u32, u32)>,
}

/// Why bytes are no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Not JSON, or not of this shape.
    #[error("not a report: {0}")]
    Json(#[from] serde_json::Error),
    /// A list, a text or a number is larger than an agent sends.
    #[error("a report out of range: {0}")]
    Range(String),
}

impl Report {
    /// The bytes. Kinds of connections for which there is no room are left out, those with the fewest first; then notes, rules in
    /// force, and links.
    ///
    /// # Panics
    /// If the host alone is too long: an agent refuses to start with names and labels beyond [`Host::check`]'s limits.
    pub fn to_bytes(mut self) -> Vec<u8> {
        self.left_out += self.links.len().saturating_sub(LINKS_MAX);
        self.links.truncate(LINKS_MAX);
        self.in_force.truncate(LIST_MAX);
        self.notes.truncate(LIST_MAX);
        self.reverted.truncate(TRIPPED_MAX);
        self.telemetry.sort_by_key(|kind| std::cmp::Reverse(kind.flows));
        self.keep_kinds(KINDS_MAX);
        loop {
            let bytes = serde_json::to_vec(&self).expect("a report is plain data");
            if bytes.len() <= MESSAGE_MAX {
                return bytes;
            }
            if !self.telemetry.is_empty() {
                self.keep_kinds(self.telemetry.len() / 2);
            } else if !self.notes.is_empty() {
                self.notes.clear();
            } else if self.in_force.pop().is_none() {
                assert!(self.links.pop().is_some(), "a host alone is short");
                self.left_out += 1;
            }
        }
    }

    fn keep_kinds(&mut self, most: usize) {
        self.left_out += self.telemetry.len().saturating_sub(most);
        self.telemetry.truncate(most);
    }

    /// Reads what [`Report::to_bytes`] wrote. What it gives can be added up and kept: every list, text and number is in range.
    ///
    /// # Errors
    /// It is something else, or something is out of range.
    pub fn from_bytes(bytes: &[u8]) -> Result<Report, ReportError> {
        let report: Report = serde_json::from_slice(bytes)?;
        report.check().map_err(ReportError::Range)?;
        Ok(report)
    }

    fn check(&self) -> Result<(), String> {
        self.host.check()?;
        if [self.epoch, self.of_epoch].into_iter().flatten().any(|epoch| epoch > EPOCH_MAX) {
            return Err(format!("an epoch of more than {EPOCH_MAX}"));
        }
        let lists = [
            ("links", self.links.len(), LINKS_MAX),
            ("kinds of connections", self.telemetry.len(), KINDS_MAX),
            ("rules in force", self.in_force.len(), LIST_MAX),
            ("notes", self.notes.len(), LIST_MAX),
            ("reverted rules", self.reverted.len(), TRIPPED_MAX),
        ];
        if let Some((what, length, most)) = lists.into_iter().find(|(_, length, most)| length > most) {
            return Err(format!("{length} {what}; at most {most}"));
        }
        self.links.iter().try_for_each(Link::check)?;
        let is_long = |of: &Tripped| of.rule.len() > GROUP_MAX || of.why.len() > NAME_MAX;
        if self.reverted.iter().any(is_long) {
            return Err("a reverted rule with a text too long".to_string());
        }
        self.telemetry.iter().try_for_each(Telemetry::check)
    }
}

impl Telemetry {
    fn check(&self) -> Result<(), String> {
        let texts = [(&self.group, GROUP_MAX), (&self.remote_rack, NAME_MAX), (&self.size, NAME_MAX)];
        if texts.iter().any(|(text, most)| text.len() > *most || text.contains(char::is_control)) {
            return Err("a kind of connections with a name too long, or with a control character".to_string());
        }
        if [self.flows, self.bytes, self.segments].iter().any(|count| *count > COUNT_MAX) {
            return Err(format!("a count of more than {COUNT_MAX}"));
        }
        if self.retransmits > self.segments {
            return Err("more segments were retransmitted than were sent".to_string());
        }
        if self.fct_us.len() > STEPS_MAX {
            return Err(format!("a histogram of {} steps; at most {STEPS_MAX}", self.fct_us.len()));
        }
        Ok(())
    }
}

/// Completion times: a histogram with about 16 steps for each doubling, in two kilobytes.
#[derive(Clone, Debug)]
pub struct FctTimes(Histogram<u32>);

impl Default for FctTimes {
    fn default() -> FctTimes {
        FctTimes(Histogram::new_with_bounds(1, LONGEST_US, 1).expect("these bounds are a histogram's"))
    }
}

impl FctTimes {
    /// One more.
    pub fn record(&mut self, us: u64) {
        self.0.saturating_record(us.max(1));
    }

    /// Adds a report's bins.
    pub fn add(&mut self, bins: &[(u32, u32)]) {
        for (us, count) in bins {
            self.0.saturating_record_n(u64::from(*us).max(1), *count);
        }
    }

    /// The bins, for a report.
    pub fn bins(&self) -> Vec<(u32, u32)> {
        let recorded = self.0.iter_recorded();
        recorded.map(|step| (step.value_iterated_to() as u32, step.count_at_value())).collect()
    }

    /// Its percentiles; `None` of an empty one.
    pub fn percentiles(&self) -> Percentiles {
        let at = |share: f64| (!self.0.is_empty()).then(|| Time::from_us(self.0.value_at_quantile(share)));
        Percentiles { p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    }
}
