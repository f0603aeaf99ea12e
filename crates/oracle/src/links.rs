//! From collectors' measurements to the links of a view.
//!
//! Of each collector the last measurement of each link is kept, with the time since. What has not been measured for
//! [`FORGET_PERIODS`] is forgotten. A link that two collectors measure has the values of the one that measured it last. Collectors,
//! links and pairs of racks are bounded by their number; what is beyond is left out, and counted in [`MeasurementIntake`]. Where there is no room,
//! it is the collector with the most that loses: one that invents links leaves the others theirs.

use bus::{Measurement, Peer, Role};
use policy::{Link, NetworkView, RackPair};
use serde::Serialize;
use std::collections::BTreeMap;
use units::{Rate, Time};

/// Most collectors.
pub const COLLECTORS_MAX: usize = 256;
/// Most links of all collectors.
pub const SWITCH_LINKS_MAX: usize = 262_144;
/// Most pairs of racks of all collectors.
pub const PAIRS_MAX: usize = 65_536;
/// A link that was not measured for so many periods is forgotten.
pub const FORGET_PERIODS: u64 = 10;

/// What collectors have measured.
#[derive(Debug, Default)]
pub struct Links {
    sources: BTreeMap<String, Source>,
    /// Of all collectors.
    kept: usize,
    kept_pairs: usize,
    intake: MeasurementIntake,
}

/// What has become of measurements since the Oracle began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MeasurementIntake {
    /// Messages that were taken.
    pub taken: u64,
    /// Refused: not a measurement, or with a text, list or number out of range.
    pub refused: u64,
    /// Refused: of somebody who is no collector.
    pub not_allowed: u64,
    /// Refused: of more collectors than are kept.
    pub collectors_beyond: u64,
    /// Links that were left out: more than are kept.
    pub links_beyond: u64,
    /// Pairs of racks that were left out: more than are kept.
    pub pairs_beyond: u64,
}

/// A collector.
#[derive(Debug, Default)]
struct Source {
    /// Its last message.
    at: Time,
    round: u64,
    /// By name, which is not kept twice, and when they came.
    links: BTreeMap<String, (Time, Link)>,
    /// Of the last round that had any.
    matrix: BTreeMap<(String, String), Rate>,
    matrix_round: u64,
    matrix_at: Time,
    problems: Vec<String>,
    /// Whether its problems are others than were last said.
    news: bool,
}

impl Links {
    /// A message that came at `now`.
    pub fn take(&mut self, now: Time, from: &Peer, bytes: &[u8]) {
        if !from.is(Role::Collector) {
            self.intake.not_allowed += 1;
            return;
        }
        let Ok(measurement) = Measurement::from_bytes(bytes) else {
            self.intake.refused += 1;
            return;
        };
        // a member speaks for itself alone
        let name = match from {
            Peer::Member(member) => member.name.clone(),
            Peer::Local => measurement.source.clone(),
        };
        if self.sources.len() >= COLLECTORS_MAX && !self.sources.contains_key(&name) {
            self.intake.collectors_beyond += 1;
            return;
        }
        self.intake.taken += 1;
        // apart from the others, of which one may have to make room
        let mut source = self.sources.remove(&name).unwrap_or_default();
        source.at = now;
        if measurement.round != source.round || !measurement.problems.is_empty() {
            source.news |= source.problems != measurement.problems;
            source.problems = measurement.problems;
        }
        source.round = measurement.round;
        for mut link in measurement.links {
            let name = std::mem::take(&mut link.name);
            let is_new = !source.links.contains_key(&name);
            if is_new && self.kept >= SWITCH_LINKS_MAX {
                self.intake.links_beyond += 1;
                if !self.make_room(source.links.len(), |other| &mut other.links) {
                    continue;
                }
                self.kept -= 1;
            }
            self.kept += usize::from(is_new);
            source.links.insert(name, (now, link));
        }
        if !measurement.matrix.is_empty() && source.matrix_round != measurement.round {
            self.kept_pairs -= source.matrix.len();
            source.matrix.clear();
            source.matrix_round = measurement.round;
        }
        for pair in measurement.matrix {
            let key = (pair.from, pair.to);
            let is_new = !source.matrix.contains_key(&key);
            if is_new && self.kept_pairs >= PAIRS_MAX {
                self.intake.pairs_beyond += 1;
                if !self.make_room(source.matrix.len(), |other| &mut other.matrix) {
                    continue;
                }
                self.kept_pairs -= 1;
            }
            self.kept_pairs += usize::from(is_new);
            source.matrix_at = now;
            source.matrix.insert(key, pair.rate);
        }
        self.sources.insert(name, source);
    }

    /// Takes one entry from whichever other collector has the most; false if none has more than `own` and one.
    fn make_room<K: Ord, V>(&mut self, own: usize, of: impl Fn(&mut Source) -> &mut BTreeMap<K, V>) -> bool {
        let most = self.sources.values_mut().map(of).max_by_key(|entries| entries.len());
        most.filter(|entries| entries.len() > own + 1).is_some_and(|entries| entries.pop_last().is_some())
    }

    /// Adds what is known at `now`, with its age, to a view. A link of the view that a collector has measured within two periods is replaced.
    pub fn add_to(&mut self, now: Time, period: Time, mut view: NetworkView) -> NetworkView {
        self.forget(now, period);
        let stale = period * policy::STALE_PERIODS;
        let mut links: BTreeMap<&str, (Time, &Link)> = BTreeMap::new();
        for (name, (at, link)) in self.sources.values().flat_map(|source| &source.links) {
            let age = age(now, *at, link);
            if links.get(name.as_str()).is_none_or(|(other, _)| age < *other) {
                links.insert(name, (age, link));
            }
        }
        view.links.retain(|link| links.get(link.name.as_str()).is_none_or(|(age, _)| *age > stale));
        for link in &view.links {
            links.remove(link.name.as_str());
        }
        let named = |(name, (age, link)): (&str, (Time, &Link))| Link {
            name: name.to_string(),
            age: Some(age),
            ..link.clone()
        };
        view.links.extend(links.into_iter().map(named));
        // two collectors may count the same packets, so their rates are not added
        let mut pairs: BTreeMap<&(String, String), Rate> = BTreeMap::new();
        for source in self.sources.values().filter(|source| now.saturating_sub(source.matrix_at) <= stale) {
            for (pair, rate) in &source.matrix {
                let most = pairs.entry(pair).or_insert(*rate);
                *most = (*most).max(*rate);
            }
        }
        view.matrix.retain(|pair| !pairs.contains_key(&(pair.from.clone(), pair.to.clone())));
        let pairs = pairs.into_iter().map(|((from, to), rate)| RackPair { from: from.clone(), to: to.clone(), rate });
        view.matrix.extend(pairs);
        view
    }

    fn forget(&mut self, now: Time, period: Time) {
        let longest = period * FORGET_PERIODS;
        for source in self.sources.values_mut() {
            source.links.retain(|_, (at, link)| age(now, *at, link) <= longest);
            if now.saturating_sub(source.matrix_at) > longest {
                source.matrix.clear();
            }
        }
        self.sources.retain(|_, source| now.saturating_sub(source.at) <= longest);
        self.kept = self.sources.values().map(|source| source.links.len()).sum();
        self.kept_pairs = self.sources.values().map(|source| source.matrix.len()).sum();
    }

    /// What collectors could not measure, a line of each collector whose problems have changed since the last call.
    pub fn news(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, source) in self.sources.iter_mut().filter(|(_, source)| source.news) {
            source.news = false;
            lines.push(match &source.problems[..] {
                [] => format!("collector {name}: all is measured again"),
                [one] => format!("collector {name}: {one}"),
                [first, rest @ ..] => format!("collector {name}: {first}, and {} more", rest.len()),
            });
        }
        lines
    }

    /// How many collectors are kept.
    pub fn collectors(&self) -> usize {
        self.sources.len()
    }

    /// What has become of measurements.
    pub fn intake(&self) -> MeasurementIntake {
        self.intake
    }
}

/// How old a link's values are that came at `at`.
fn age(now: Time, at: Time, link: &Link) -> Time {
    now.saturating_sub(at).saturating_add(link.age.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::Member;
    use std::sync::Arc;

    const T: Time = Time::from_secs(10);

    fn s(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    fn link(name: &str, utilization: f64, age: u64) -> Link {
        Link { name: name.into(), utilization: Some(utilization), age: Some(s(age)), ..Link::default() }
    }

    fn pair(from: &str, to: &str, mbps: u64) -> RackPair {
        RackPair { from: from.into(), to: to.into(), rate: Rate::from_mbps(mbps) }
    }

    fn sent(links: &mut Links, at: u64, measurement: Measurement) {
        for message in measurement.to_messages() {
            links.take(s(at), &Peer::Local, &message);
        }
    }

    fn of(source: &str, round: u64, links: Vec<Link>) -> Measurement {
        Measurement { source: source.into(), round, links, ..Measurement::default() }
    }

    fn seen(view: &NetworkView) -> Vec<(&str, Option<f64>, u64)> {
        let seconds = |link: &Link| link.age.map_or(999, |age| age.as_secs_f64() as u64);
        view.links.iter().map(|link| (link.name.as_str(), link.utilization, seconds(link))).collect()
    }

    #[test]
    fn ages_grow_and_what_is_not_measured_is_forgotten() {
        let mut links = Links::default();
        sent(&mut links, 1, of("c", 1, vec![link("a", 0.5, 2), link("b", 0.6, 0)]));
        sent(&mut links, 11, of("c", 2, vec![link("a", 0.7, 1)]));
        let view = links.add_to(s(14), T, NetworkView::default());
        assert_eq!(seen(&view), [("a", Some(0.7), 4), ("b", Some(0.6), 13)]);
        // b is 100 s old at 101 s, and older at 102 s
        assert_eq!(links.add_to(s(101), T, NetworkView::default()).links.len(), 2);
        assert_eq!(seen(&links.add_to(s(102), T, NetworkView::default())), [("a", Some(0.7), 92)]);
        assert_eq!(links.collectors(), 1);
        assert!(links.add_to(s(112), T, NetworkView::default()).links.is_empty());
        assert_eq!((links.collectors(), links.kept), (0, 0));
    }

    #[test]
    fn of_two_collectors_the_fresher_counts_and_a_stale_one_gives_way_to_the_file() {
        let mut links = Links::default();
        sent(&mut links, 0, of("c", 1, vec![link("a", 0.5, 1)]));
        sent(&mut links, 5, of("d", 1, vec![link("a", 0.9, 7)]));
        let file = || NetworkView { links: vec![link("a", 0.1, 0), link("f", 0.2, 0)], ..NetworkView::default() };
        assert_eq!(seen(&links.add_to(s(5), T, file())), [("f", Some(0.2), 0), ("a", Some(0.5), 6)]);
        assert_eq!(seen(&links.add_to(s(20), T, file())), [("a", Some(0.1), 0), ("f", Some(0.2), 0)]);
    }

    #[test]
    fn a_newer_round_replaces_the_pairs_of_racks_and_two_collectors_are_not_added_up() {
        let mut links = Links::default();
        let matrix = |source: &str, round, matrix| Measurement { matrix, ..of(source, round, Vec::new()) };
        sent(&mut links, 1, matrix("c", 1, vec![pair("r1", "r2", 10), pair("r2", "r1", 5)]));
        sent(&mut links, 2, matrix("c", 2, vec![pair("r1", "r2", 20)]));
        sent(&mut links, 2, matrix("d", 9, vec![pair("r1", "r2", 30), pair("r3", "r1", 1)]));
        let base = NetworkView { matrix: vec![pair("r1", "r2", 99), pair("r4", "r1", 4)], ..NetworkView::default() };
        let view = links.add_to(s(3), T, base);
        assert_eq!(view.matrix, [pair("r4", "r1", 4), pair("r1", "r2", 30), pair("r3", "r1", 1)]);
        assert!(links.add_to(s(23), T, NetworkView::default()).matrix.is_empty(), "stale");
    }

    #[test]
    fn only_collectors_are_heard_and_each_speaks_for_itself() {
        let member = |name: &str, role| Peer::Member(Arc::new(Member { name: name.into(), role, hosts: Vec::new() }));
        let mut links = Links::default();
        let message = &of("c", 1, vec![link("a", 0.5, 0)]).to_messages()[0];
        for role in [Role::Agent, Role::Enforcer, Role::Operator] {
            links.take(s(1), &member("c", role), message);
        }
        assert_eq!((links.intake().not_allowed, links.collectors()), (3, 0));
        links.take(s(1), &member("x", Role::Collector), message);
        links.take(s(1), &Peer::Local, message);
        links.take(s(1), &Peer::Local, b"opentcp measurement\0nonsense");
        assert_eq!((links.intake().taken, links.intake().refused), (2, 1));
        assert_eq!(links.sources.keys().collect::<Vec<_>>(), ["c", "x"]);
    }

    #[test]
    fn a_collector_that_fills_the_table_leaves_others_their_share() {
        let mut links = Links::default();
        let invented = |from: usize| (from..from + 1000).map(|n| link(&format!("x{n}"), 1.0, 0)).collect();
        for round in 0..300 {
            sent(&mut links, 1, of("liar", round, invented(1000 * round as usize)));
        }
        assert_eq!((links.kept, links.intake().links_beyond), (SWITCH_LINKS_MAX, 300_000 - SWITCH_LINKS_MAX as u64));
        let honest = |n: usize| link(&format!("leaf{n} 1 out"), 0.5, 0);
        sent(&mut links, 2, of("honest", 1, (0..2000).map(honest).collect()));
        sent(&mut links, 2, of("liar", 300, invented(300_000)));
        let counts = |links: &Links| links.sources.values().map(|source| source.links.len()).collect::<Vec<_>>();
        assert_eq!(counts(&links), [2000, SWITCH_LINKS_MAX - 2000]);
        // two that invent have the same
        for round in 0..300 {
            sent(&mut links, 3, of("second", round, invented(400_000 + 1000 * round as usize)));
        }
        let [honest, liar, second] = counts(&links)[..] else { panic!("three collectors") };
        assert!(honest == 2000 && liar.abs_diff(second) <= 1 && honest + liar + second == SWITCH_LINKS_MAX);

        let mut links = Links::default();
        let racks = |from: u64, count: u64| (from..from + count).map(|n| pair(&format!("r{n}"), "r", 1)).collect();
        let matrix = |source: &str, matrix| Measurement { matrix, ..of(source, 1, Vec::new()) };
        sent(&mut links, 1, matrix("liar", racks(0, 70_000)));
        sent(&mut links, 1, matrix("honest", racks(100_000, 500)));
        let pairs: Vec<usize> = links.sources.values().map(|source| source.matrix.len()).collect();
        assert_eq!((pairs, links.kept_pairs), (vec![500, PAIRS_MAX - 500], PAIRS_MAX));
    }

    #[test]
    fn problems_are_said_once() {
        let mut links = Links::default();
        let problems = |round, list: &[&str]| Measurement {
            problems: list.iter().map(|text| (*text).to_string()).collect(),
            ..of("c", round, Vec::new())
        };
        sent(&mut links, 1, problems(1, &["s1: no answer", "s2: no answer"]));
        assert_eq!(links.news(), ["collector c: s1: no answer, and 1 more"]);
        sent(&mut links, 2, problems(2, &["s1: no answer", "s2: no answer"]));
        assert!(links.news().is_empty());
        sent(&mut links, 3, problems(3, &[]));
        assert_eq!(links.news(), ["collector c: all is measured again"]);
    }
}
