//! From agents' reports to the view of a network.
//!
//! Whoever reaches the bus can send reports, so what they leave here is bounded: hosts, links and pairs of racks by their number,
//! groups of flows by the rules of the policy in force. What is beyond is refused, or counted as `other`, and counted in [`Intake`].

use bus::{FctTimes, LINKS_MAX, Report, Telemetry};
use policy::{ArmObservation, FlowGroup, Host, Link, NetworkView, Policy, QUESTIONS_MAX, Question};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use units::{Rate, Time};

/// Most hosts that are kept.
pub const HOSTS_MAX: usize = bus::AGENTS_MAX;
/// Most links of all hosts.
const ALL_LINKS_MAX: usize = 256 * LINKS_MAX;
/// Most pairs of racks.
const RACK_PAIRS_MAX: usize = 4096;
/// The group of connections that no rule has touched.
const DEFAULT: &str = "default";
/// The group, and the rack, of what is not kept apart.
const OTHER: &str = "other";

/// What was reported, of each host the last.
#[derive(Debug, Default)]
pub struct Gathered {
    hosts: BTreeMap<String, Heard>,
    /// Links of all hosts.
    links: usize,
    /// Groups that are kept apart: `policy/rule`.
    known_groups: BTreeSet<String>,
    /// Of the connections that ended in this period.
    groups: BTreeMap<String, Group>,
    /// Bytes.
    racks: BTreeMap<(String, String), u64>,
    /// Hosts that the last decision treated.
    treated: BTreeSet<String>,
    /// Of this period: what they did, and the others.
    arms: [ArmObservation; 2],
    intake: Intake,
    /// Of agents that wait for an answer.
    questions: Vec<Question>,
}

/// What has become of reports since the Oracle began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Intake {
    /// Reports that were taken.
    pub taken: u64,
    /// Refused: not a report, or with a text, list or number out of range.
    pub refused: u64,
    /// Refused: of more hosts than are kept.
    pub hosts_beyond: u64,
    /// Links that were left out: more than are kept.
    pub links_beyond: u64,
    /// Kinds of connections counted as `other`: of rules that are not in the policy.
    pub groups_other: u64,
    /// Kinds of connections counted as from rack `other` to rack `other`: more pairs than are kept.
    pub racks_other: u64,
}

/// A host's last report.
#[derive(Debug)]
struct Heard {
    at: Time,
    host: Host,
    links: Vec<Link>,
}

#[derive(Debug, Default)]
struct Group {
    flows: u64,
    segments: u64,
    retransmits: u64,
    times: FctTimes,
}

impl Gathered {
    /// Nothing yet, on hosts that follow `policy`.
    pub fn new(policy: &Policy) -> Gathered {
        let of_rules = policy.rules.iter().map(|rule| format!("{}/{}", policy.name, rule.name));
        let known_groups = of_rules.chain([DEFAULT, OTHER].map(str::to_string)).collect();
        Gathered { known_groups, ..Gathered::default() }
    }

    /// One more report that came at `now`.
    pub fn take(&mut self, now: Time, bytes: &[u8]) {
        let Ok(report) = Report::from_bytes(bytes) else {
            self.intake.refused += 1;
            return;
        };
        if self.hosts.len() >= HOSTS_MAX && !self.hosts.contains_key(&report.host.name) {
            self.intake.hosts_beyond += 1;
            return;
        }
        self.intake.taken += 1;
        if self.questions.len() < QUESTIONS_MAX {
            self.questions.extend(report.question);
        }
        for kind in &report.telemetry {
            self.add(&report.host, kind);
        }
        self.keep(now, report.host, report.links);
    }

    /// Adds up connections that ended.
    fn add(&mut self, host: &Host, kind: &Telemetry) {
        let arm = &mut self.arms[usize::from(!self.treated.contains(&host.name))];
        for (us, count) in &kind.fct_us {
            // counts saturate, and the histogram reaches to the largest number of microseconds
            let recorded = arm.fct_ns.record_n(u64::from(*us) * 1000, u64::from(*count));
            recorded.expect("a histogram grows as it must");
        }
        arm.segments = arm.segments.saturating_add(kind.segments);
        arm.retransmits = arm.retransmits.saturating_add(kind.retransmits);
        let is_known = self.known_groups.contains(&kind.group);
        self.intake.groups_other += u64::from(!is_known);
        let name = if is_known { &kind.group } else { OTHER };
        if !self.groups.contains_key(name) {
            self.groups.insert(name.to_string(), Group::default());
        }
        let group = self.groups.get_mut(name).expect("it was made");
        group.flows = group.flows.saturating_add(kind.flows);
        group.segments = group.segments.saturating_add(kind.segments);
        group.retransmits = group.retransmits.saturating_add(kind.retransmits);
        group.times.add(&kind.fct_us);
        if host.rack.is_empty() || kind.remote_rack.is_empty() {
            return;
        }
        let mut pair = (host.rack.clone(), kind.remote_rack.clone());
        if self.racks.len() >= RACK_PAIRS_MAX && !self.racks.contains_key(&pair) {
            self.intake.racks_other += 1;
            pair = (OTHER.to_string(), OTHER.to_string());
        }
        let bytes = self.racks.entry(pair).or_default();
        *bytes = bytes.saturating_add(kind.bytes);
    }

    /// Keeps a host's report in place of its last one.
    fn keep(&mut self, now: Time, host: Host, mut links: Vec<Link>) {
        let before = self.hosts.get(&host.name).map_or(0, |heard| heard.links.len());
        let others = self.links - before;
        let room = ALL_LINKS_MAX.saturating_sub(others);
        self.intake.links_beyond += links.len().saturating_sub(room) as u64;
        links.truncate(room);
        links.shrink_to_fit();
        self.links = others + links.len();
        self.hosts.insert(host.name.clone(), Heard { at: now, host, links });
    }

    /// What the hosts that the last decision treated did in this period, and the others; then a new one begins.
    pub fn take_arms(&mut self) -> [ArmObservation; 2] {
        std::mem::take(&mut self.arms)
    }

    /// What agents have asked since the last call; an agent that is left out asks again.
    pub fn take_questions(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.questions)
    }

    /// Sets which hosts are treated from now on.
    pub fn treat<'a>(&mut self, treated: impl Iterator<Item = &'a str>) {
        self.treated = treated.map(str::to_string).collect();
    }

    /// How many hosts are kept.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// What has become of reports.
    pub fn intake(&self) -> Intake {
        self.intake
    }

    /// The view at the end of a period that lasted `period`, with what else is known of the network in `base`; then a new one begins.
    /// A host that has not reported for two periods is no longer there.
    pub fn view(&mut self, now: Time, period: Time, base: NetworkView) -> NetworkView {
        self.hosts.retain(|_, heard| now.saturating_sub(heard.at) <= period * 2);
        self.links = self.hosts.values().map(|heard| heard.links.len()).sum();
        let mut view = NetworkView { at: now, ..base };
        // a host's own report counts more than the file
        view.hosts.retain(|host| !self.hosts.contains_key(&host.name));
        view.hosts.extend(self.hosts.values().map(|heard| heard.host.clone()));
        let mut names: BTreeSet<String> = view.links.iter().map(|link| link.name.clone()).collect();
        let reported = self.hosts.values().flat_map(|heard| &heard.links);
        view.links.extend(reported.filter(|link| names.insert(link.name.clone())).cloned());
        let seconds = period.as_secs_f64();
        let mut all = FctTimes::default();
        for (name, group) in std::mem::take(&mut self.groups) {
            all.add(&group.times.bins());
            let retransmit_rate =
                (group.segments > 0).then(|| (group.retransmits as f64 / group.segments as f64).min(1.0));
            view.groups.retain(|other| other.name != name);
            let flow_starts = Some(group.flows as f64 / seconds);
            let fct = group.times.percentiles();
            view.groups.push(FlowGroup { name, flow_starts, retransmit_rate, fct, ..FlowGroup::default() });
        }
        if all.percentiles().p50.is_some() {
            view.fct = all.percentiles();
        }
        let counted = std::mem::take(&mut self.racks);
        let is_counted = |pair: &policy::RackPair| counted.contains_key(&(pair.from.clone(), pair.to.clone()));
        view.matrix.retain(|pair| !is_counted(pair));
        for ((from, to), bytes) in counted {
            let rate = Rate::from_bps((8.0 * bytes as f64 / seconds) as u64);
            view.matrix.push(policy::RackPair { from, to, rate });
        }
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(host: &str, sent: u64) -> Vec<u8> {
        let mut times = FctTimes::default();
        (0..sent).for_each(|_| times.record(1000 * sent));
        let telemetry = Telemetry {
            group: "default".into(),
            remote_rack: "r2".into(),
            size: "under 10 kB".into(),
            flows: sent,
            bytes: 1_000_000,
            segments: 1000,
            retransmits: 5,
            fct_us: times.bins(),
        };
        let host = Host { name: host.into(), rack: "r1".into(), sent_segments: Some(sent), ..Host::default() };
        Report { host, telemetry: vec![telemetry], ..Report::default() }.to_bytes()
    }

    fn s(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn of_each_host_the_last_report_counts_and_what_ended_is_added_up() {
        let mut gathered = Gathered::default();
        gathered.take(s(1), &report("h1", 1));
        gathered.take(s(2), &report("h1", 3));
        gathered.take(s(2), &report("h2", 4));
        gathered.take(s(2), b"nonsense");
        let view = gathered.view(s(10), s(10), NetworkView::default());
        let hosts: Vec<(&str, Option<u64>)> =
            view.hosts.iter().map(|host| (host.name.as_str(), host.sent_segments)).collect();
        assert_eq!(hosts, [("h1", Some(3)), ("h2", Some(4))]);
        // 1 + 3 + 4 flows in 10 s; of 3000 segments 15 again; of eight times the fifth is one of 4 ms
        assert_eq!((view.groups[0].flow_starts, view.groups[0].retransmit_rate), (Some(0.8), Some(0.005)));
        let p50 = view.fct.p50.unwrap();
        assert!(p50 >= Time::from_ms(3) && p50 < Time::from_us(3200), "{p50}");
        // 3 MB in 10 s
        assert_eq!(view.matrix[0].rate, Rate::from_bps(2_400_000));
        assert_eq!((gathered.intake().taken, gathered.intake().refused), (3, 1));
        gathered.treat(["h2"].into_iter());
        let all = gathered.take_arms();
        assert_eq!((all[0].segments, all[1].segments), (0, 3000), "nobody was treated");
        gathered.take(s(11), &report("h1", 2));
        gathered.take(s(12), &report("h2", 4));
        let [treated, control] = gathered.take_arms();
        assert_eq!((treated.segments, treated.retransmits, treated.fct_ns.len()), (1000, 5, 4));
        assert_eq!((control.segments, control.fct_ns.len()), (1000, 2));
        // four times 4 ms, twice 2 ms, in steps of a sixteenth
        let p50_us = |arm: &ArmObservation| arm.fct_ns.value_at_percentile(50.0) / 1000;
        assert!((4000..4300).contains(&p50_us(&treated)), "{} us", p50_us(&treated));
        assert!((2000..2150).contains(&p50_us(&control)), "{} us", p50_us(&control));

        let next = gathered.view(s(20), s(10), NetworkView::default());
        assert_eq!((next.hosts.len(), next.groups[0].flow_starts), (2, Some(0.6)), "a new period");
        assert!(gathered.view(s(33), s(10), NetworkView::default()).hosts.is_empty(), "they are gone");
    }

    #[test]
    fn what_a_host_says_of_itself_counts_more_than_what_others_say_of_it() {
        let mut gathered = Gathered::default();
        gathered.take(s(1), &report("h1", 3));
        let named = |name: &str| Host { name: name.into(), ..Host::default() };
        let link = Link { name: "a".into(), utilization: Some(0.5), ..Link::default() };
        let base = NetworkView { hosts: vec![named("h1"), named("h9")], links: vec![link], ..NetworkView::default() };
        let view = gathered.view(s(2), s(10), base);
        assert_eq!(view.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["h9", "h1"]);
        assert_eq!((view.hosts[1].sent_segments, view.links[0].utilization), (Some(3), Some(0.5)));
    }
}
