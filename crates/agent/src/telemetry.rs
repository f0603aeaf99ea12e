//! Ended connections, by kind: rule, the remote end's rack, size, and which end sent more. Memory is bounded: each kind takes two
//! kilobytes, and there are at most [`KINDS_MAX`] of them.

use bus::{FctTimes, Telemetry};
use kernel::retune::Record;
use policy::{COUNT_MAX, Prefix};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Kinds that are kept apart; further ones count as one kind, `other`.
pub const KINDS_MAX: usize = 256;
/// Names of rules that are remembered.
const NAMES_MAX: usize = 1024;

/// Size classes, by the bytes of the larger direction.
const SIZES: [(u64, &str); 4] =
    [(10_000, "under 10 kB"), (100_000, "under 100 kB"), (1_000_000, "under 1 MB"), (10_000_000, "under 10 MB")];
const LARGEST: &str = "10 MB and more";
/// Steps of RTTs for each doubling.
const STEPS_OF_A_DOUBLING: f64 = 4.0;
/// Of a connection to which no rule applied.
const DEFAULT: &str = "default";
/// Of further kinds.
const OTHER: &str = "other";

/// Numbers for rules, so that a connection's record names the rule at its start. A number is never reused.
#[derive(Debug, Default)]
pub struct Names(Vec<String>);

impl Names {
    /// The number of a rule, from 1; 0 when there are too many.
    pub fn number(&mut self, policy: &str, rule: &str) -> u32 {
        let name = format!("{policy}/{rule}");
        let known = self.0.iter().position(|known| *known == name);
        if known.is_none() && self.0.len() >= NAMES_MAX {
            return 0;
        }
        let at = known.unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        });
        at as u32 + 1
    }

    /// The rule of a number.
    pub fn name(&self, number: u32) -> &str {
        match number.checked_sub(1) {
            None => DEFAULT,
            Some(at) => self.0.get(at as usize).map_or(OTHER, String::as_str),
        }
    }
}

/// Smoothed RTTs in steps of a factor of 2^(1/4).
#[derive(Debug, Default)]
pub struct RttSteps(BTreeMap<u32, u32>);

impl RttSteps {
    /// One more, in microseconds; 0: not known.
    pub fn add(&mut self, us: u32) {
        if us > 0 {
            let step = (f64::from(us).log2() * STEPS_OF_A_DOUBLING).ceil() / STEPS_OF_A_DOUBLING;
            let count = self.0.entry(step.exp2().round() as u32).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Microseconds, and how many are at most there.
    pub fn steps(&self) -> Vec<(u32, u32)> {
        self.0.iter().map(|(us, count)| (*us, *count)).collect()
    }
}

/// Connections of one kind.
#[derive(Debug, Default)]
struct Kind {
    flows: u64,
    bytes: u64,
    segments: u64,
    retransmits: u64,
    times: FctTimes,
}

/// Rule, rack, size, and whether more came than went.
type Key = (String, String, &'static str, bool);

/// What has ended since the last report.
#[derive(Debug, Default)]
pub struct Ended {
    kinds: BTreeMap<Key, Kind>,
    all: FctTimes,
    /// Smoothed RTTs: steps, and how many connections had each.
    rtts: RttSteps,
    /// By rule: observed initial windows, and how many connections had each.
    windows: BTreeMap<u32, BTreeMap<u32, usize>>,
}

impl Ended {
    /// Adds one.
    pub fn add(&mut self, record: &Record, names: &Names, racks: &[(Prefix, String)]) {
        let us = record.ended.saturating_sub(record.began).as_micros() as u64;
        let carried = record.bytes_acked.max(record.bytes_received);
        let size = SIZES.iter().find(|(under, _)| carried < *under).map_or(LARGEST, |(_, name)| name);
        let received = record.bytes_received > record.bytes_acked;
        let mut key = (names.name(record.rule).to_string(), rack_of(record.remote, racks).to_string(), size, received);
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&key) {
            key = (OTHER.to_string(), OTHER.to_string(), OTHER, received);
        }
        let kind = self.kinds.entry(key).or_default();
        kind.flows += 1;
        // the kernel counts retransmissions of the handshake too, and an Oracle refuses more of them than segments
        let retransmits = u64::from(record.retransmits.min(record.data_segs_out));
        kind.bytes = kind.bytes.saturating_add(record.bytes_acked).min(COUNT_MAX);
        kind.segments += u64::from(record.data_segs_out);
        kind.retransmits += retransmits;
        kind.times.record(us);
        self.all.record(us);
        self.rtts.add(record.srtt_us);
        let is_known = record.rule as usize <= NAMES_MAX;
        if let Some(segments) = record.initial_cwnd.filter(|_| is_known) {
            let windows = self.windows.entry(record.rule).or_default();
            if windows.len() < SIZES.len() || windows.contains_key(&segments) {
                *windows.entry(segments).or_default() += 1;
            }
        }
    }

    /// Their smoothed RTTs.
    pub fn rtts(&self) -> &RttSteps {
        &self.rtts
    }

    /// All completion times.
    pub fn all(&self) -> &FctTimes {
        &self.all
    }

    /// Initial windows of connections that started under a rule, and how many had each.
    pub fn windows(&self, rule: u32) -> Option<&BTreeMap<u32, usize>> {
        self.windows.get(&rule)
    }

    /// For the report.
    pub fn telemetry(&self) -> Vec<Telemetry> {
        let row = |((group, rack, size, received), kind): (&Key, &Kind)| Telemetry {
            group: group.clone(),
            remote_rack: rack.clone(),
            size: (*size).to_string(),
            received: *received,
            flows: kind.flows,
            bytes: kind.bytes,
            segments: kind.segments,
            retransmits: kind.retransmits,
            fct_us: kind.times.bins(),
        };
        self.kinds.iter().map(row).collect()
    }
}

/// The rack with the longest prefix that holds the address.
fn rack_of(address: IpAddr, racks: &[(Prefix, String)]) -> &str {
    let holding = racks.iter().filter(|(prefix, _)| prefix.contains(address));
    holding.max_by_key(|(prefix, _)| prefix.bits()).map_or("", |(_, rack)| rack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn record(rule: u32, bytes: u64) -> Record {
        Record {
            netns: 1,
            began: Duration::from_secs(1),
            ended: Duration::from_millis(1010),
            bytes_acked: bytes,
            bytes_received: 1,
            remote: "10.1.2.3".parse().unwrap(),
            local_port: 1,
            remote_port: 2,
            active: true,
            rule,
            segs_out: 3,
            data_segs_out: 2,
            retransmits: 1,
            delivered: 2,
            delivered_ce: 0,
            srtt_us: 100,
            min_rtt_us: 90,
            cwnd: 10,
            initial_cwnd: Some(20),
            algorithm: "cubic".to_string(),
        }
    }

    #[test]
    fn connections_are_counted_by_rule_rack_and_size() {
        let mut names = Names::default();
        assert_eq!((names.number("p", "calm"), names.number("p", "busy"), names.number("p", "calm")), (1, 2, 1));
        let racks = [("10.0.0.0/8", "far"), ("10.1.0.0/16", "near")];
        let racks = racks.map(|(prefix, rack)| (prefix.parse().unwrap(), rack.to_string()));
        let mut ended = Ended::default();
        for record in [record(1, 9_999), record(1, 10_000), record(0, 50_000_000), record(1, 5)] {
            ended.add(&record, &names, &racks);
        }
        let rows = ended.telemetry();
        let kinds: Vec<(&str, &str, &str, u64)> =
            rows.iter().map(|row| (&*row.group, &*row.remote_rack, &*row.size, row.flows)).collect();
        assert_eq!(
            kinds,
            [
                ("default", "near", "10 MB and more", 1),
                ("p/calm", "near", "under 10 kB", 2),
                ("p/calm", "near", "under 100 kB", 1)
            ]
        );
        assert_eq!((rows[1].bytes, rows[1].segments, rows[1].retransmits), (10_004, 4, 2));
        assert_eq!(ended.windows(1).unwrap(), &BTreeMap::from([(20, 3)]));
        // 100 us lies between 2^6.5 = 90.5 and 2^6.75 = 107.6
        assert_eq!(ended.rtts().steps(), [(108, 4)]);
    }

    #[test]
    fn connections_are_counted_apart_by_the_end_that_sent_more() {
        let mut ended = Ended::default();
        for bytes_received in [0, 50_000, 50_001, 60_000] {
            ended.add(&Record { bytes_received, ..record(0, 50_000) }, &Names::default(), &[]);
        }
        let flows: BTreeMap<bool, u64> = ended.telemetry().iter().map(|row| (row.received, row.flows)).collect();
        assert_eq!(flows, BTreeMap::from([(false, 2), (true, 2)]));
    }

    #[test]
    fn the_number_of_kinds_is_bounded() {
        let mut names = Names::default();
        let mut ended = Ended::default();
        for rule in 0..2000 {
            let number = names.number("p", &rule.to_string());
            assert_eq!(number, if rule < 1024 { rule + 1 } else { 0 });
            ended.add(&record(number, 1), &names, &[]);
        }
        let rows = ended.telemetry();
        assert_eq!(rows.len(), KINDS_MAX + 1);
        assert_eq!(rows.iter().map(|row| row.flows).sum::<u64>(), 2000);
    }

    #[test]
    fn records_that_no_kernel_writes_stay_in_range() {
        let names = Names::default();
        let mut ended = Ended::default();
        for i in 0..100_000u32 {
            let odd = Record {
                began: Duration::from_secs(u64::MAX),
                ended: Duration::ZERO,
                bytes_acked: u64::MAX,
                bytes_received: u64::MAX,
                data_segs_out: i % 2 * u32::MAX,
                retransmits: u32::MAX,
                initial_cwnd: Some(i),
                ..record(u32::MAX - i, 1)
            };
            ended.add(&odd, &names, &[]);
        }
        let rows = ended.telemetry();
        assert_eq!((rows.len(), rows[0].flows, rows[0].bytes), (1, 100_000, COUNT_MAX));
        assert!(ended.windows.is_empty(), "no rule has such a number");
        let host = policy::Host { name: "h".into(), ..policy::Host::default() };
        let report = bus::Report { host, telemetry: rows, ..bus::Report::default() };
        assert!(bus::Report::from_bytes(&report.clone().to_bytes()).is_ok());
    }
}
