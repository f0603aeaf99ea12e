//! A host's connections that ended: counted, in bounded memory.

use crate::robust::{Bins, Part, factors};
use bus::Telemetry;
use policy::{End, Policy};
use std::collections::BTreeMap;

/// Most pairs of racks of all hosts.
const RACK_PAIRS_MAX: usize = 4096;
/// Most pairs of racks of one host.
const RACK_PAIRS_OF_HOST_MAX: usize = 256;
/// Most bins of completion times of one host, of all its groups but `other`.
const BINS_OF_HOST_MAX: usize = 1024;
/// The group of connections that no rule has touched.
const DEFAULT: &str = "default";
/// The group, and the rack, of what is not kept apart.
const OTHER: &str = "other";

/// Connections of one kind.
#[derive(Debug, Default)]
pub struct Counted {
    pub flows: u64,
    segments: u64,
    retransmits: u64,
    times: Bins,
}

impl Counted {
    /// Adds the connections of which the host is this end. Retransmissions are counted by senders alone.
    pub fn add_own(&mut self, kind: &Telemetry, end: End) {
        match (kind.received, end) {
            (false, End::Sender) => self.add(kind),
            (true, End::Receiver) => self.add(&Telemetry { segments: 0, retransmits: 0, ..kind.clone() }),
            _ => {}
        }
    }

    /// Adds connections. Sums saturate.
    pub fn add(&mut self, kind: &Telemetry) {
        self.flows = self.flows.saturating_add(kind.flows);
        self.segments = self.segments.saturating_add(kind.segments);
        self.retransmits = self.retransmits.saturating_add(kind.retransmits);
        for (us, count) in &kind.fct_us {
            self.times.add(*us, *count);
        }
    }

    fn add_counted(&mut self, other: &Counted) {
        self.flows = self.flows.saturating_add(other.flows);
        self.segments = self.segments.saturating_add(other.segments);
        self.retransmits = self.retransmits.saturating_add(other.retransmits);
        self.times.add_all(&other.times);
    }

    /// As a part of what all hosts did.
    pub fn part(&self, side: usize, group: usize) -> Part<'_> {
        let Counted { segments, retransmits, ref times, .. } = *self;
        Part { side, group, times, segments, retransmits }
    }
}

/// What of a kind was counted as `other`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    pub group: bool,
    pub racks: bool,
}

/// Of one host.
#[derive(Debug, Default)]
pub struct Ended {
    groups: BTreeMap<u16, Counted>,
    /// Bytes, by the number of the pair of racks.
    racks: BTreeMap<u16, u64>,
}

impl Ended {
    /// Adds connections of a host in `rack`.
    pub fn add(&mut self, rack: &str, kind: &Telemetry, names: &mut Names) -> Others {
        let known = names.group(&kind.group);
        let group = known.filter(|group| self.has_room(*group, kind)).unwrap_or(Names::OTHER);
        self.groups.entry(group).or_default().add(kind);
        let mut others = Others { group: group == Names::OTHER && kind.group != OTHER, racks: false };
        if rack.is_empty() || kind.remote_rack.is_empty() {
            return others;
        }
        let is_full = self.racks.len() >= RACK_PAIRS_OF_HOST_MAX;
        let pair =
            names.pair(rack, &kind.remote_rack, is_full).filter(|pair| !is_full || self.racks.contains_key(pair));
        others.racks = pair.is_none();
        let bytes = self.racks.entry(pair.unwrap_or(Names::OTHER)).or_default();
        *bytes = bytes.saturating_add(kind.bytes);
        others
    }

    fn has_room(&self, group: u16, kind: &Telemetry) -> bool {
        let known = self.groups.get(&group);
        let new = kind.fct_us.iter().filter(|(us, _)| known.is_none_or(|known| !known.times.has(*us))).count();
        let apart = self.groups.iter().filter(|(group, _)| **group != Names::OTHER);
        apart.map(|(_, counted)| counted.times.len()).sum::<usize>() + new <= BINS_OF_HOST_MAX
    }

    /// Of one group.
    pub fn group(&self, number: u16) -> Option<&Counted> {
        self.groups.get(&number)
    }

    /// Of all groups.
    pub fn all(&self) -> Counted {
        let mut all = Counted::default();
        for counted in self.groups.values() {
            all.add_counted(counted);
        }
        all
    }
}

/// Numbers for names: of groups (`policy/rule`), and of pairs of racks in a period.
#[derive(Debug, Default)]
pub struct Names {
    groups: BTreeMap<String, u16>,
    pairs: BTreeMap<(String, String), u16>,
}

impl Names {
    /// The number of `other`.
    const OTHER: u16 = 0;

    /// With the groups of a policy's rules.
    pub fn of(policy: &Policy) -> Names {
        let rules = policy.rules.iter().map(|rule| format!("{}/{}", policy.name, rule.name));
        let groups = [OTHER, DEFAULT].map(str::to_string).into_iter().chain(rules).zip(0..).collect();
        Names { groups, pairs: BTreeMap::new() }
    }

    fn group(&self, name: &str) -> Option<u16> {
        self.groups.get(name).copied()
    }

    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = (u16, &str)> {
        self.groups.iter().map(|(name, number)| (*number, name.as_str()))
    }

    /// The number of a pair; `None`: it has none, and gets none if `known` ones are asked for or there are too many.
    fn pair(&mut self, from: &str, to: &str, known: bool) -> Option<u16> {
        let pair = (from.to_string(), to.to_string());
        if let Some(number) = self.pairs.get(&pair) {
            return Some(*number);
        }
        if known || self.pairs.len() >= RACK_PAIRS_MAX {
            return None;
        }
        let number = self.pairs.len() as u16 + 1;
        self.pairs.insert(pair, number);
        Some(number)
    }

    /// Bytes from rack to rack; of each host at most as many as of the largest that must be honest. Then pairs are numbered anew.
    pub fn racks(&mut self, ended: &BTreeMap<String, Ended>, liars: usize) -> BTreeMap<(String, String), f64> {
        let sums: Vec<f64> =
            ended.values().map(|ended| ended.racks.values().map(|bytes| *bytes as f64).sum()).collect();
        let mut all: BTreeMap<u16, f64> = BTreeMap::new();
        for (ended, factor) in ended.values().zip(factors(&sums, liars)) {
            for (pair, bytes) in &ended.racks {
                *all.entry(*pair).or_default() += *bytes as f64 * factor;
            }
        }
        let names = std::mem::take(&mut self.pairs);
        let mut named: BTreeMap<u16, (String, String)> =
            names.into_iter().map(|(pair, number)| (number, pair)).collect();
        let mut racks = BTreeMap::new();
        for (number, bytes) in all {
            let pair = named.remove(&number).unwrap_or_else(|| (OTHER.to_string(), OTHER.to_string()));
            *racks.entry(pair).or_default() += bytes;
        }
        racks
    }
}
