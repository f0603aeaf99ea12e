//! From agents' reports to the view of a network.

use bus::{FctTimes, Report};
use policy::{ArmObservation, FlowGroup, Link, NetworkView, QUESTIONS_MAX, Question};
use std::collections::{BTreeMap, BTreeSet};
use units::{Bytes, Rate, Time};

/// Most hosts that are kept.
pub const HOSTS_MAX: usize = bus::AGENTS_MAX;

/// What was reported, of each host the last.
#[derive(Debug, Default)]
pub struct Gathered {
    hosts: BTreeMap<String, (Time, Report)>,
    /// Of the connections that ended in this period.
    groups: BTreeMap<String, Group>,
    racks: BTreeMap<(String, String), Bytes>,
    /// Hosts that the last decision treated.
    treated: BTreeSet<String>,
    /// Of this period: what they did, and the others.
    arms: [ArmObservation; 2],
    /// Reports that were none, or of too many hosts.
    refused: u64,
    /// Of agents that wait for an answer.
    questions: Vec<Question>,
}

#[derive(Debug, Default)]
struct Group {
    flows: u64,
    segments: u64,
    retransmits: u64,
    times: FctTimes,
}

impl Gathered {
    /// One more report that came at `now`.
    pub fn take(&mut self, now: Time, bytes: &[u8]) {
        let report = match Report::from_bytes(bytes) {
            Ok(report) if self.has_room_for(&report.host.name) => report,
            _ => {
                self.refused += 1;
                return;
            }
        };
        if self.questions.len() < QUESTIONS_MAX {
            self.questions.extend(report.question);
        }
        let arm = &mut self.arms[usize::from(!self.treated.contains(&report.host.name))];
        for kind in &report.telemetry {
            for (us, count) in &kind.fct_us {
                // what saturates does not grow, and an empty histogram reaches to two microseconds
                let recorded = arm.fct_ns.record_n(u64::from(*us) * 1000, u64::from(*count));
                recorded.expect("a histogram grows as it must");
            }
            arm.segments = arm.segments.saturating_add(kind.segments);
            arm.retransmits = arm.retransmits.saturating_add(kind.retransmits);
            let group = self.groups.entry(kind.group.clone()).or_default();
            group.flows += kind.flows;
            group.segments += kind.segments;
            group.retransmits += kind.retransmits;
            group.times.add(&kind.fct_us);
            if !report.host.rack.is_empty() && !kind.remote_rack.is_empty() {
                let racks = (report.host.rack.clone(), kind.remote_rack.clone());
                let bytes = self.racks.entry(racks).or_default();
                *bytes = Bytes::new(bytes.get() + kind.bytes);
            }
        }
        self.hosts.insert(report.host.name.clone(), (now, report));
    }

    fn has_room_for(&self, host: &str) -> bool {
        !host.is_empty() && (self.hosts.len() < HOSTS_MAX || self.hosts.contains_key(host))
    }

    /// What the hosts that the last decision treated did in this period, and the others; then a new one begins.
    pub fn take_arms(&mut self) -> [ArmObservation; 2] {
        std::mem::take(&mut self.arms)
    }

    /// What agents have asked since this was last looked at; who is left out asks again.
    pub fn take_questions(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.questions)
    }

    /// These are the treated hosts from now on.
    pub fn treat<'a>(&mut self, treated: impl Iterator<Item = &'a str>) {
        self.treated = treated.map(str::to_string).collect();
    }

    /// Reports that were refused.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The view at the end of a period that lasted `period`, with what else is known of the network in `base`; then a new one begins.
    /// A host that has not reported for two periods is no longer there.
    pub fn view(&mut self, now: Time, period: Time, base: NetworkView) -> NetworkView {
        self.hosts.retain(|_, (at, _)| now.saturating_sub(*at) <= period * 2);
        let mut view = NetworkView { at: now, ..base };
        let reported: Vec<&Report> = self.hosts.values().map(|(_, report)| report).collect();
        // what the hosts say of themselves counts more
        view.hosts.retain(|host| !self.hosts.contains_key(&host.name));
        view.hosts.extend(reported.iter().map(|report| report.host.clone()));
        let known = |link: &&Link| !view.links.iter().any(|other| other.name == link.name);
        let links: Vec<Link> = reported.iter().flat_map(|report| &report.links).filter(known).cloned().collect();
        view.links.extend(links);
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
        for ((from, to), bytes) in std::mem::take(&mut self.racks) {
            view.matrix.retain(|pair| (pair.from != from) || (pair.to != to));
            let rate = Rate::from_bps((8.0 * bytes.get() as f64 / seconds) as u64);
            view.matrix.push(policy::RackPair { from, to, rate });
        }
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::Telemetry;
    use policy::Host;

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
        assert_eq!(gathered.refused(), 1);
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
