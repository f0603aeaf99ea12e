//! From agents' reports to the view of a network.
//!
//! Whoever reaches the bus can send reports, so what they leave here is bounded: hosts, links and pairs of racks by their number,
//! groups of flows by the rules of the policy in force. What is beyond is refused, or counted as `other`, and counted in [`Intake`].
//! What a host says counts for others as [`crate::robust`] has it.

use crate::ended::{Counted, Ended, Names};
use crate::fleet::Agents;
use crate::robust::{
    Outliers, Part, arms, connections, cut_hosts, cut_links, is_own, known_epoch, liars, percentiles, retransmit_rate,
};
use crate::transfers::Sent;
use bus::{Peer, Report, Telemetry, Tripped};
use policy::{ArmObservation, End, FlowGroup, GROUPS, Host, Link, NetworkView, Policy, Question};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::{Rate, Time};

/// Most hosts that are kept: as many as a fleet has members.
pub const HOSTS_MAX: usize = fleet::MEMBERS_MAX;
/// Most links of all hosts.
pub const HOST_LINKS_MAX: usize = 4 * HOSTS_MAX;
/// Periods of which reports are still awaited: the current one and the one before.
const PERIODS: usize = 2;

/// What was reported, of each host the last.
#[derive(Debug, Default)]
pub struct Gathered {
    hosts: BTreeMap<String, Heard>,
    /// Links of all hosts.
    links: usize,
    /// Groups that are kept apart, and pairs of racks.
    names: Names,
    /// To which end connections belong.
    counted_at: End,
    /// By host: its connections of which reports came since the last view.
    ended: BTreeMap<String, Ended>,
    /// The last is the current one.
    periods: VecDeque<Period>,
    /// Of the hosts, for the verdict.
    groups: Groups,
    sent: Sent,
    intake: Intake,
    outliers: Outliers,
    /// Hosts whose guards have reverted rules since the last call, how often, and what they hold reverted.
    reverted: BTreeMap<String, (u64, Vec<Tripped>)>,
    /// What agents say of themselves.
    agents: Agents,
}

/// A period between two decisions, for the verdict.
#[derive(Debug, Default)]
struct Period {
    /// The decision at its begin; `None`: before the first.
    epoch: Option<u64>,
    /// Hosts that this decision treated.
    treated: BTreeSet<String>,
    /// What hosts did in it.
    did: BTreeMap<String, Counted>,
}

/// In which group of its side each host is: the same in all periods, and each group has as many hosts.
#[derive(Debug, Default)]
struct Groups {
    of: BTreeMap<(String, usize), usize>,
    /// Of each side.
    hosts: [usize; 2],
}

impl Groups {
    /// That of a host. Hosts beyond those that are kept are all in one.
    fn of(&mut self, host: &str, side: usize) -> usize {
        if let Some(group) = self.of.get(&(host.to_string(), side)) {
            return *group;
        }
        let group = self.hosts[side] % GROUPS;
        if self.of.len() < 2 * HOSTS_MAX {
            self.of.insert((host.to_string(), side), group);
            self.hosts[side] += 1;
        }
        group
    }
}

/// What has become of reports since the Oracle began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Intake {
    /// Reports that were taken.
    pub taken: u64,
    /// Refused: not a report, or with a text, list or number out of range.
    pub refused: u64,
    /// Refused: of a host as which the sender may not report.
    pub impostors: u64,
    /// Refused: of more hosts than are kept.
    pub hosts_beyond: u64,
    /// Links that were left out: more than are kept.
    pub links_beyond: u64,
    /// Links that were left out: not the host's own.
    pub links_foreign: u64,
    /// Kinds of connections counted as `other`: of rules that are not in the policy, or more of one host than are kept.
    pub groups_other: u64,
    /// Kinds of connections counted as from rack `other` to rack `other`: more pairs than are kept.
    pub racks_other: u64,
    /// Reports whose connections are on neither side of the verdict: they ended in a period that is over or of another Oracle, or in
    /// several.
    pub of_other_periods: u64,
}

/// A host's last report.
#[derive(Debug)]
struct Heard {
    at: Time,
    host: Host,
    links: Vec<Link>,
    /// The highest epoch that it knows of.
    epoch: Option<u64>,
    /// How often its guards have reverted rules.
    reverted: u64,
}

impl Gathered {
    /// Nothing yet, on hosts that follow `policy`.
    pub fn new(policy: &Policy) -> Gathered {
        let mut agents = Agents::default();
        agents.follow(policy);
        Gathered {
            names: Names::of(policy),
            counted_at: policy.counted_at(),
            periods: [Period::default()].into(),
            agents,
            ..Gathered::default()
        }
    }

    /// Another policy is followed from now on; what was counted under the other one is forgotten.
    pub fn adopt(&mut self, policy: &Policy) {
        self.names = Names::of(policy);
        self.counted_at = policy.counted_at();
        self.agents.follow(policy);
        self.ended.clear();
        self.groups = Groups::default();
        self.stand_by();
    }

    /// Forgets the periods: another Oracle decides.
    pub fn stand_by(&mut self) {
        self.periods = [Period::default()].into();
    }

    /// One more report that came at `now`, and the question in it.
    pub fn take(&mut self, now: Time, from: &Peer, bytes: &[u8]) -> Option<Question> {
        let Ok(report) = Report::from_bytes(bytes) else {
            self.intake.refused += 1;
            return None;
        };
        if !from.may_report_as(&report.host.name) {
            self.intake.impostors += 1;
            return None;
        }
        if self.hosts.len() >= HOSTS_MAX && !self.hosts.contains_key(&report.host.name) {
            self.intake.hosts_beyond += 1;
            return None;
        }
        self.intake.taken += 1;
        let question = report.question;
        self.count(&report.host, report.of_epoch, &report.telemetry);
        self.agents.take(now, &report);
        self.keep(now, report);
        question
    }

    /// Adds up connections that ended.
    fn count(&mut self, host: &Host, of_epoch: Option<u64>, telemetry: &[Telemetry]) {
        if telemetry.is_empty() {
            return;
        }
        // what names no epoch ended before the first decision, or was counted by an agent of an earlier version over several
        match self.periods.iter_mut().find(|period| period.epoch == of_epoch) {
            Some(period) => {
                let did = period.did.entry(host.name.clone()).or_default();
                for kind in telemetry {
                    did.add_own(kind, self.counted_at);
                }
            }
            None => self.intake.of_other_periods += 1,
        }
        let ended = self.ended.entry(host.name.clone()).or_default();
        for kind in telemetry {
            self.sent.add(&host.rack, kind);
            let others = ended.add(&host.rack, kind, &mut self.names);
            self.intake.groups_other += u64::from(others.group);
            self.intake.racks_other += u64::from(others.racks);
        }
    }

    /// Keeps a host's report in place of its last one.
    fn keep(&mut self, now: Time, report: Report) {
        let Report { host, mut links, epoch, counts, reverted: tripped, .. } = report;
        let reverted = counts.reverted;
        // a restarted agent counts from 0
        let was = self.hosts.get(&host.name).map_or(reverted, |heard| heard.reverted);
        if reverted > was {
            let (times, rules) = self.reverted.entry(host.name.clone()).or_default();
            (*times, *rules) = (*times + reverted - was, tripped);
        }
        let said = links.len();
        links.retain(|link| is_own(&host, link));
        self.intake.links_foreign += (said - links.len()) as u64;
        // a host does not know whether a switch marks
        for link in &mut links {
            link.marks = None;
        }
        let before = self.hosts.get(&host.name).map_or(0, |heard| heard.links.len());
        let others = self.links - before;
        let room = HOST_LINKS_MAX.saturating_sub(others);
        self.intake.links_beyond += links.len().saturating_sub(room) as u64;
        links.truncate(room);
        links.shrink_to_fit();
        self.links = others + links.len();
        self.hosts.insert(host.name.clone(), Heard { at: now, host, links, epoch, reverted });
    }

    /// Begins the period of a decision, which treats these hosts.
    pub fn begin<'a>(&mut self, epoch: u64, treated: impl Iterator<Item = &'a str>) {
        let treated = treated.map(str::to_string).collect();
        self.periods.push_back(Period { epoch: Some(epoch), treated, did: BTreeMap::new() });
    }

    /// At the end of a period, before the next begins: of those on which no more reports are awaited, the epoch, and what the treated hosts
    /// did in it and the others.
    pub fn take_arms(&mut self) -> Vec<(Option<u64>, [ArmObservation; 2])> {
        let liars = liars(self.hosts.len());
        let over = self.periods.len().saturating_sub(PERIODS - 1);
        let Gathered { periods, groups, .. } = self;
        let arms_of = |Period { epoch, treated, did }: Period| {
            let place = |host: &String| {
                let side = usize::from(!treated.contains(host));
                (side, groups.of(host, side))
            };
            let places: Vec<(usize, usize)> = did.keys().map(place).collect();
            let parts: Vec<Part<'_>> =
                did.values().zip(places).map(|(did, (side, group))| did.part(side, group)).collect();
            (epoch, arms(&parts, liars))
        };
        periods.drain(..over).map(arms_of).collect()
    }

    /// Hosts whose guards have reverted rules since the last call, how often, and what they hold reverted.
    pub fn take_reverted(&mut self) -> BTreeMap<String, (u64, Vec<Tripped>)> {
        std::mem::take(&mut self.reverted)
    }

    /// What agents say of themselves.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// Whether the last decision treats a host.
    pub fn treats(&self, host: &str) -> bool {
        self.periods.back().is_some_and(|period| period.treated.contains(host))
    }

    /// How many hosts are kept.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// What has become of reports.
    pub fn intake(&self) -> Intake {
        self.intake
    }

    /// Who says what no other host does.
    pub fn outliers(&self) -> &Outliers {
        &self.outliers
    }

    /// The highest epoch that the fleet knows of: that of more hosts than may lie of those that have reported, and of the `register`: so
    /// many hosts may report at all, as far as that is known.
    pub fn epoch(&self, register: usize) -> Option<u64> {
        known_epoch(self.hosts.values().filter_map(|heard| heard.epoch).collect(), self.hosts.len(), register)
    }

    /// The view at the end of a period that lasted `period`, with what else is known of the network in `base`; then a new one begins.
    /// A host that has not reported for two periods is no longer there. Where `base` has a link of a host, the host's own word on its links
    /// does not count.
    pub fn view(&mut self, now: Time, period: Time, base: NetworkView) -> NetworkView {
        self.hosts.retain(|_, heard| now.saturating_sub(heard.at) <= period * 2);
        self.agents.forget(now, period * 2);
        self.links = self.hosts.values().map(|heard| heard.links.len()).sum();
        self.outliers.begin();
        let mut view = NetworkView { at: now, ..base };
        self.add_links(&mut view);
        let mut hosts: Vec<Host> = self.hosts.values().map(|heard| heard.host.clone()).collect();
        fix_texts(&mut hosts, &view.hosts);
        // a host's own report counts more than the file
        view.hosts.retain(|host| !self.hosts.contains_key(&host.name));
        let own = cut_hosts(&mut hosts, &mut self.outliers);
        let before = view.hosts.len();
        view.own = own.into_iter().map(|(place, host)| (before + place, host)).collect();
        view.hosts.extend(hosts);
        let ended = std::mem::take(&mut self.ended);
        self.add_groups(&mut view, &ended, period);
        self.add_matrix(&mut view, &ended, period);
        view.transfers.extend(self.sent.at_end_of(period));
        view
    }

    fn add_links(&mut self, view: &mut NetworkView) {
        let host_of = |name: &str| name.strip_prefix("host ").unwrap_or(name).to_string();
        let seen: BTreeSet<String> =
            view.links.iter().flat_map(|link| [host_of(&link.from), host_of(&link.to)]).collect();
        let mut names: BTreeSet<String> = view.links.iter().map(|link| link.name.clone()).collect();
        let unseen = self.hosts.iter().filter(|(host, heard)| !seen.contains(*host) && !heard.links.is_empty());
        let mut claims: Vec<(String, Vec<Link>)> =
            unseen.map(|(host, heard)| (host.clone(), heard.links.clone())).collect();
        cut_links(&mut claims, self.hosts.len(), &mut self.outliers);
        let claims = claims.into_iter().flat_map(|(_, links)| links);
        view.links.extend(claims.filter(|link| names.insert(link.name.clone())));
    }

    fn add_groups(&self, view: &mut NetworkView, ended: &BTreeMap<String, Ended>, period: Time) {
        let liars = liars(self.hosts.len());
        for (number, name) in self.names.groups() {
            let of_hosts: Vec<&Counted> = ended.values().filter_map(|ended| ended.group(number)).collect();
            if of_hosts.is_empty() {
                continue;
            }
            let parts: Vec<Part<'_>> = of_hosts.iter().map(|counted| counted.part(0, 0)).collect();
            let mut flows: Vec<f64> = of_hosts.iter().map(|counted| counted.flows as f64).collect();
            let flow_starts = Some(connections(&mut flows, liars) / period.as_secs_f64());
            let (retransmit_rate, fct) = (retransmit_rate(&parts, liars), percentiles(&parts, liars));
            view.groups.retain(|other| other.name != name);
            let name = name.to_string();
            view.groups.push(FlowGroup { name, flow_starts, retransmit_rate, fct, ..FlowGroup::default() });
        }
        let all: Vec<Counted> = ended.values().map(Ended::all).collect();
        let fct = percentiles(&all.iter().map(|counted| counted.part(0, 0)).collect::<Vec<_>>(), liars);
        if fct.p50.is_some() {
            view.fct = fct;
        }
    }

    fn add_matrix(&mut self, view: &mut NetworkView, ended: &BTreeMap<String, Ended>, period: Time) {
        let counted = self.names.racks(ended, liars(self.hosts.len()));
        // switches count all that passes, hosts only what has ended
        let measured: BTreeSet<(String, String)> =
            view.matrix.iter().map(|pair| (pair.from.clone(), pair.to.clone())).collect();
        for ((from, to), bytes) in counted.into_iter().filter(|(pair, _)| !measured.contains(pair)) {
            let rate = Rate::from_bps((8.0 * bytes / period.as_secs_f64()) as u64);
            view.matrix.push(policy::RackPair { from, to, rate });
        }
    }
}

/// Gives hosts the rack and the labels that the file has for them: texts cannot be outvoted as numbers are, and where a host is the operator
/// knows better than it.
fn fix_texts(hosts: &mut [Host], file: &[Host]) {
    let file: BTreeMap<&str, &Host> = file.iter().map(|host| (host.name.as_str(), host)).collect();
    for host in hosts {
        let Some(known) = file.get(host.name.as_str()) else { continue };
        if !known.rack.is_empty() {
            host.rack.clone_from(&known.rack);
        }
        if !known.labels.is_empty() {
            host.labels.clone_from(&known.labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::FctTimes;

    fn report(host: &str, sent: u64) -> Vec<u8> {
        let mut times = FctTimes::default();
        (0..sent).for_each(|_| times.record(1000 * sent));
        let telemetry = Telemetry {
            group: "default".into(),
            remote_rack: "r2".into(),
            size: "under 10 kB".into(),
            received: false,
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

    fn gathered() -> Gathered {
        let text = "name = \"p\"\nmode = \"enforce\"\nperiod = \"10 s\"\n[[rule]]\nname = \"r\"\nwhen = \"true\"\nset = { initial_cwnd = 20 }\n";
        Gathered::new(&Policy::parse("p.toml", text, policy::Known::default()).unwrap())
    }

    fn in_epoch(epoch: u64, report: &[u8]) -> Vec<u8> {
        Report { of_epoch: Some(epoch), ..Report::from_bytes(report).unwrap() }.to_bytes()
    }

    fn take(gathered: &mut Gathered, at: u64, bytes: &[u8]) {
        gathered.take(s(at), &Peer::Local, bytes);
    }

    #[test]
    fn of_each_host_the_last_report_counts_and_what_ended_is_added_up() {
        let mut gathered = gathered();
        take(&mut gathered, 1, &report("h1", 1));
        take(&mut gathered, 2, &report("h1", 3));
        take(&mut gathered, 2, &report("h2", 4));
        take(&mut gathered, 2, b"nonsense");
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
        assert_eq!(gathered.take_arms().len(), 0, "reports on the period are still awaited");
        gathered.begin(1, ["h2"].into_iter());
        take(&mut gathered, 11, &in_epoch(1, &report("h1", 2)));
        take(&mut gathered, 12, &in_epoch(1, &report("h2", 4)));
        let [(None, all)] = &gathered.take_arms()[..] else { panic!("of the period before the first decision") };
        assert_eq!((all[0].segments, all[1].segments), (0, 3000), "nobody was treated");
        gathered.begin(2, std::iter::empty());
        let [(Some(1), [treated, control])] = &gathered.take_arms()[..] else { panic!("of the first decision") };
        assert_eq!((treated.segments, treated.retransmits, treated.fct_ns.len()), (1000, 5, 4));
        assert_eq!((control.segments, control.fct_ns.len()), (1000, 2));
        // four times 4 ms, twice 2 ms, in steps of a sixteenth
        let p50_us = |arm: &ArmObservation| arm.fct_ns.value_at_percentile(50.0) / 1000;
        assert!((4000..4300).contains(&p50_us(treated)), "{} us", p50_us(treated));
        assert!((2000..2150).contains(&p50_us(control)), "{} us", p50_us(control));

        let next = gathered.view(s(20), s(10), NetworkView::default());
        assert_eq!((next.hosts.len(), next.groups[0].flow_starts), (2, Some(0.6)), "a new period");
        assert!(gathered.view(s(33), s(10), NetworkView::default()).hosts.is_empty(), "they are gone");
    }

    #[test]
    fn what_a_host_says_of_itself_counts_more_than_what_others_say_of_it() {
        let mut gathered = gathered();
        take(&mut gathered, 1, &report("h1", 3));
        let named = |name: &str| Host { name: name.into(), ..Host::default() };
        let link = Link { name: "a".into(), utilization: Some(0.5), ..Link::default() };
        let base = NetworkView { hosts: vec![named("h1"), named("h9")], links: vec![link], ..NetworkView::default() };
        let view = gathered.view(s(2), s(10), base);
        assert_eq!(view.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["h9", "h1"]);
        assert_eq!((view.hosts[1].sent_segments, view.links[0].utilization), (Some(3), Some(0.5)));
    }

    #[test]
    fn a_rack_and_labels_that_the_file_has_count_more_than_the_hosts_word() {
        let mut gathered = gathered();
        take(&mut gathered, 1, &report("h1", 3));
        take(&mut gathered, 1, &report("h2", 3));
        let labels: BTreeMap<String, String> = [("role".to_string(), "web".to_string())].into();
        let h1 = Host { name: "h1".into(), rack: "r9".into(), labels: labels.clone(), ..Host::default() };
        let h2 = Host { name: "h2".into(), ..Host::default() };
        let view = gathered.view(s(2), s(10), NetworkView { hosts: vec![h1, h2], ..NetworkView::default() });
        let texts: Vec<_> = view.hosts.iter().map(|host| (host.rack.as_str(), host.labels.clone())).collect();
        assert_eq!(texts, [("r9", labels), ("r1", BTreeMap::new())]);
        assert_eq!(view.hosts[0].sent_segments, Some(3), "numbers are the host's");
    }

    #[test]
    fn what_switches_say_of_the_traffic_between_racks_counts_more_than_what_hosts_do() {
        let mut gathered = gathered();
        take(&mut gathered, 1, &report("h1", 1));
        let pair = |to: &str, bps| policy::RackPair { from: "r1".into(), to: to.into(), rate: Rate::from_bps(bps) };
        let measured = |matrix| NetworkView { matrix, ..NetworkView::default() };
        let view = gathered.view(s(10), s(10), measured(vec![pair("r2", 7), pair("r3", 8)]));
        assert_eq!(view.matrix, [pair("r2", 7), pair("r3", 8)]);
        take(&mut gathered, 11, &report("h1", 1));
        let view = gathered.view(s(20), s(10), measured(vec![pair("r3", 8)]));
        assert_eq!(view.matrix, [pair("r3", 8), pair("r2", 800_000)]);
    }

    #[test]
    fn what_a_switch_says_of_a_hosts_links_counts_more_than_the_hosts_word() {
        let link = |name: &str, from: &str, to: &str, utilization| Link {
            name: name.into(),
            from: from.into(),
            to: to.into(),
            utilization: Some(utilization),
            marks: Some(true),
            ..Link::default()
        };
        let says = |host: &str| {
            let links = vec![
                link(&format!("{host} eth0 out"), host, "r1", 1.0),
                link(&format!("{host} eth0 in"), "r1", host, 1.0),
                link("leaf1 1 out", "leaf1", "spine", 1.0),
                link("h7 eth0 out", "h7", "r1", 1.0),
            ];
            let host = Host { name: host.into(), rack: "r1".into(), ..Host::default() };
            Report { host, links, ..Report::default() }.to_bytes()
        };
        for named in ["h1", "host h1"] {
            let mut gathered = gathered();
            take(&mut gathered, 1, &says("h1"));
            take(&mut gathered, 1, &says("h2"));
            let links = vec![link("leaf1 2 out", "leaf1", named, 0.2)];
            let view = gathered.view(s(2), s(10), NetworkView { links, ..NetworkView::default() });
            let links: Vec<(&str, Option<bool>)> =
                view.links.iter().map(|link| (link.name.as_str(), link.marks)).collect();
            assert_eq!(links, [("leaf1 2 out", Some(true)), ("h2 eth0 out", None), ("h2 eth0 in", None)]);
            assert_eq!(gathered.intake().links_foreign, 4);
        }
    }

    #[test]
    fn who_reports_as_another_is_refused() {
        let member = |name: &str, role, hosts: &[&str]| {
            let (name, hosts) = (name.to_string(), hosts.iter().map(ToString::to_string).collect());
            Peer::Member(std::sync::Arc::new(bus::Member { name, role, hosts }))
        };
        let mut gathered = gathered();
        gathered.take(s(1), &member("h2", bus::Role::Agent, &[]), &report("h1", 1));
        gathered.take(s(1), &member("h1", bus::Role::Collector, &[]), &report("h1", 1));
        gathered.take(s(1), &member("e", bus::Role::Enforcer, &["h2"]), &report("h1", 1));
        assert_eq!((gathered.hosts(), gathered.intake().impostors, gathered.intake().taken), (0, 3, 0));
        gathered.take(s(1), &member("h1", bus::Role::Agent, &[]), &report("h1", 1));
        gathered.take(s(1), &member("e", bus::Role::Enforcer, &["h3", "h2"]), &report("h2", 1));
        assert_eq!((gathered.hosts(), gathered.intake().taken), (2, 2));
    }

    /// What each side of a split is said to have taken, of hosts of which half is treated and all send to all; `set` halves the times of
    /// connections on which the treated hosts' `end` is.
    fn compared(set: &str, end: usize) -> [ArmObservation; 2] {
        let text = format!(
            "name = \"p\"\nmode = \"enforce\"\nperiod = \"10 s\"\n[[rule]]\nname = \"r\"\nwhen = \"true\"\nset = {set}\n"
        );
        let mut gathered = Gathered::new(&Policy::parse("p.toml", &text, policy::Known::default()).unwrap());
        let names = ["h1", "h2", "h3", "h4"];
        gathered.begin(1, ["h1", "h2"].into_iter());
        let pairs = names.iter().enumerate().flat_map(|(from, _)| (0..4).map(move |to| [from, to]));
        for ends in pairs.filter(|[from, to]| from != to) {
            let mut times = FctTimes::default();
            (0..100).for_each(|_| times.record(if ends[end] < 2 { 5000 } else { 10_000 }));
            // either end reports it, the one as sent and the other as received
            for (here, received) in [(ends[0], false), (ends[1], true)] {
                let (segments, fct_us) = (if received { 100 } else { 4000 }, times.bins());
                let kind = Telemetry {
                    group: "default".into(),
                    flows: 100,
                    segments,
                    received,
                    fct_us,
                    ..Telemetry::default()
                };
                let host = Host { name: names[here].into(), ..Host::default() };
                let report = Report { host, telemetry: vec![kind], of_epoch: Some(1), ..Report::default() };
                take(&mut gathered, 1, &report.to_bytes());
            }
        }
        gathered.take_arms();
        gathered.begin(2, std::iter::empty());
        let mut arms = gathered.take_arms();
        assert_eq!(arms.len(), 1);
        arms.remove(0).1
    }

    #[test]
    fn a_connection_counts_where_what_is_set_acts_on_it() {
        for (set, end) in [
            ("{ initial_cwnd = 20 }", 0),
            ("{ rto_min = \"20 ms\", delayed_ack_max = \"5 ms\" }", 0),
            ("{ window_total = \"200 kB\" }", 1),
            ("{ delayed_ack_max = \"5 ms\", window_clamp = \"64 kB\" }", 1),
        ] {
            let arms = compared(set, end);
            for (arm, us) in arms.iter().zip([5000, 10_000]) {
                for percentile in [1.0, 50.0, 99.0] {
                    let took = arm.fct_ns.value_at_percentile(percentile) / 1000;
                    // a time may be anywhere in its bin
                    assert!((us * 15 / 16..us * 17 / 16).contains(&took), "{set}: {took} us at {percentile} %");
                }
                // six pairs of hosts each: none counts twice
                assert_eq!((arm.fct_ns.len(), arm.segments), (600, if end == 0 { 24_000 } else { 0 }), "{set}");
            }
        }
    }

    #[test]
    fn connections_of_a_period_that_is_not_known_are_on_neither_side() {
        let mut gathered = gathered();
        gathered.begin(7, ["h1"].into_iter());
        for of_epoch in [0, 6, 8, u64::MAX >> 1] {
            take(&mut gathered, 1, &in_epoch(of_epoch, &report("h1", 3)));
        }
        take(&mut gathered, 1, &report("h1", 3));
        assert_eq!(gathered.intake().of_other_periods, 4, "and one ended before the first decision");
        assert!(matches!(&gathered.take_arms()[..], [(None, _)]));
        gathered.begin(8, std::iter::empty());
        let [(Some(7), [treated, control])] = &gathered.take_arms()[..] else { panic!("of the first decision") };
        assert_eq!((treated.segments, control.segments), (0, 0));
    }
}
