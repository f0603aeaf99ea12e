//! What the Oracle answers to a dashboard beside its status: long lists, part by part.

use crate::overview::{HostLine, LinkLine, OVERVIEW_MAX};
use serde::{Deserialize, Serialize};

/// A part of a list. The parts of spans, and of events, belong together if they have the same epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Board {
    /// The last decision's.
    pub epoch: u64,
    /// Entries of the whole list.
    pub total: usize,
    /// Hosts, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostLine>,
    /// Links, those between switches first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkLine>,
    /// What became of rules, in the order in which that began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<Span>,
    /// What happened beside, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventLine>,
}

/// A time in which the same became of a rule in each decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Span {
    /// The rule.
    pub rule: String,
    /// `on`: CUEs were sent; `paused` and `observed`: they would have been; `withheld`, `unknown`, `flapping`, `off`.
    pub state: String,
    /// Why it was withheld, or what its condition was made of, by the last decision.
    pub why: String,
    /// Hosts to which CUEs went, or would have, by the last decision.
    pub hosts: usize,
    /// Decisions.
    pub decisions: u64,
    /// Since, in seconds since the Unix epoch.
    pub from_unix_s: f64,
    /// The next decision was another, at this time; `None`: it has not come yet.
    pub to_unix_s: Option<f64>,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventLine {
    /// When, in seconds since the Unix epoch.
    pub unix_s: f64,
    /// `operator`, `guard`, `rollout`, `fleet` or `oracle`.
    pub kind: String,
    /// In a line.
    pub words: String,
}

impl Board {
    /// An empty one of this decision.
    pub(crate) fn of(epoch: u64) -> Board {
        Board { epoch, ..Board::default() }
    }
}

/// As much of a list from `from` on as a message has room for.
pub(crate) fn part<T: Clone + Serialize>(all: &[T], from: usize) -> Vec<T> {
    let mut room = OVERVIEW_MAX;
    let fits = |entry: &&T| {
        let length = serde_json::to_vec(entry).map_or(usize::MAX, |json| json.len() + 1);
        room.checked_sub(length).inspect(|left| room = *left).is_some()
    };
    all.get(from..).unwrap_or_default().iter().take_while(fits).cloned().collect()
}
