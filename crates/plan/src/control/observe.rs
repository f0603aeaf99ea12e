//! From counters to a view: what happened in a period, and in the last second.

#[cfg(test)]
mod tests;

use super::{Managed, Segments};
use crate::network;
use net::{LinkCounters, LinkId, NodeKind, Topology};
use policy::{ArmObservation, End, FlowGroup, GuardWindow, Host, Link, NetworkView, Percentiles, RackPair, fits};
use scenario::Scenario;
use std::collections::{BTreeMap, BTreeSet};
use units::{Bytes, Rate, Time};

/// What the flows of a host or of a traffic entry have done in a period.
#[derive(Default, Clone)]
struct Sum {
    open: u32,
    begun: u32,
    bytes: u64,
    segments: Segments,
    srtt_us: BTreeMap<u32, u32>,
}

/// What has been counted so far, and the view of the last period.
pub struct Observer {
    view: NetworkView,
    /// By link: counters and bytes sent when the last period ended.
    links: Vec<(LinkCounters, u64)>,
    /// By host: the counts for its guards.
    windows: Vec<GuardWindow>,
    /// By host, now.
    segments: Vec<Segments>,
    /// By flow: bytes and segments when the last period ended.
    flows: Vec<(u64, Segments)>,
    /// Of the last period: the treated hosts and the control group.
    arms: [ArmObservation; 2],
    /// To which end connections belong. As live, receivers count no retransmissions.
    counted_at: End,
    /// By traffic entry: its label's place among the groups.
    groups: Vec<usize>,
    /// By host: its rack's place among the racks.
    racks: Vec<usize>,
    rack_names: Vec<String>,
    /// Failures and repairs to come, latest first: when, which links, does it fail.
    failures: Vec<(Time, Vec<LinkId>, bool)>,
    /// How long a day is.
    day: Time,
}

impl Observer {
    pub fn new(scenario: &Scenario, topology: &Topology) -> Observer {
        let n = topology.n_hosts();
        // the hosts at one switch are a rack
        let switch_of = |host: usize| topology.link(topology.nic(topology.host(host))).to;
        let mut switches: Vec<_> = (0..n).map(switch_of).collect();
        switches.sort_unstable();
        switches.dedup();
        let rack_of = |host: usize| switches.binary_search(&switch_of(host)).unwrap_or_default();
        let rack_names: Vec<String> = switches.iter().map(|switch| topology.node(*switch).name.clone()).collect();
        let cc = scenario.tcp.cc.label();
        let hosts = (0..n).map(|i| Host {
            name: topology.node(topology.host(i)).name.clone(),
            rack: rack_names[rack_of(i)].clone(),
            labels: labels_of(scenario, &topology.node(topology.host(i)).name),
            cc: cc.strip_prefix("kernel:").unwrap_or(cc).to_string(),
            ..Host::default()
        });
        let link = |(i, spec): (usize, &net::LinkSpec)| Link {
            name: topology.link_name(LinkId(i as u32)),
            from: topology.node(spec.from).name.clone(),
            to: topology.node(spec.to).name.clone(),
            rate: Some(spec.rate),
            // a host's own queue uses back-pressure and needs no marks
            marks: Some(network::marks(spec) || topology.node(spec.from).kind == NodeKind::Host),
            up: Some(true),
            age: Some(Time::ZERO),
            ..Link::default()
        };
        let mut entries: Vec<&str> = scenario.traffic.iter().map(|entry| entry.label.as_str()).collect();
        entries.sort_unstable();
        entries.dedup();
        let group = |entry: &scenario::Traffic| entries.binary_search(&entry.label.as_str()).unwrap_or_default();
        let groups = scenario.traffic.iter().map(group).collect();
        let view = NetworkView {
            links: topology.links().iter().enumerate().map(link).collect(),
            hosts: hosts.collect(),
            groups: entries
                .iter()
                .map(|label| FlowGroup { name: (*label).to_string(), ..FlowGroup::default() })
                .collect(),
            ..NetworkView::default()
        };
        Observer {
            view,
            links: vec![(LinkCounters::default(), 0); topology.links().len()],
            windows: vec![GuardWindow::default(); n],
            segments: vec![Segments::default(); n],
            flows: Vec::new(),
            arms: Default::default(),
            counted_at: scenario.policy.as_ref().map_or(End::Sender, |control| control.policy.counted_at()),
            groups,
            racks: (0..n).map(rack_of).collect(),
            rack_names,
            failures: network::failures(scenario, topology),
            day: scenario.policy.as_ref().map_or(Time::from_secs(86_400), |control| control.day),
        }
    }

    /// The hosts, in the order of their numbers.
    pub fn hosts(&self) -> &[Host] {
        &self.view.hosts
    }

    /// The guards of `host` count from here on.
    pub fn begin_guarding(&mut self, host: usize) {
        self.windows[host].begin();
    }

    /// Records what hosts have sent by now, for their guards.
    pub fn look(&mut self, now: Time, network: &mut impl Managed) {
        self.segments.fill(Segments::default());
        network.segments(&mut self.segments);
        for (window, segments) in self.windows.iter_mut().zip(&self.segments) {
            window.add(now, segments.sent, segments.retransmitted);
        }
    }

    /// What `host` knows of itself at a check.
    pub fn measured(&self, host: usize) -> Host {
        let counts = self.windows[host].counts();
        let (sent_segments, retransmitted_segments) = (counts.map(|(sent, _)| sent), counts.map(|(_, again)| again));
        Host { sent_segments, retransmitted_segments, ..self.view.hosts[host].clone() }
    }

    /// Results of treated hosts and of the control group in the period of the last view; empty at a second call.
    pub fn take_arms(&mut self) -> [ArmObservation; 2] {
        std::mem::take(&mut self.arms)
    }

    /// The network over the last period.
    pub fn view(&self) -> &NetworkView {
        &self.view
    }

    /// Records the period that ends at `now`.
    pub fn see(&mut self, now: Time, network: &mut impl Managed) {
        let span = now.saturating_sub(self.view.at).as_secs_f64();
        self.view.at = now;
        let days = now.as_secs_f64() / self.day.as_secs_f64();
        self.view.hour = Some(days.fract() * 24.0);
        self.view.weekday = Some((days as u64 % 7) as u8 + 1);
        while let Some((_, links, fails)) = self.failures.pop_if(|(at, ..)| *at <= now) {
            for link in links {
                self.view.links[link.index()].up = Some(!fails);
            }
        }
        if span > 0.0 {
            self.see_links(span, network);
            self.see_flows(span, network);
            self.see_completed(network);
        }
    }

    fn see_links(&mut self, span: f64, network: &impl Managed) {
        for (i, (link, (last, last_sent))) in self.view.links.iter_mut().zip(&mut self.links).enumerate() {
            let (counters, queue) = network.link(LinkId(i as u32));
            let sent = counters.accepted_bytes.saturating_sub(queue.bytes);
            let capacity = link.rate.map_or(0.0, |rate| rate.as_bps() as f64 / 8.0 * span);
            let of = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
            // what a link held and then dropped no longer counts
            let accepted = counters.accepted.saturating_sub(last.accepted);
            let dropped = counters.dropped - last.dropped;
            link.utilization = Some((sent.saturating_sub(*last_sent) as f64 / capacity).min(1.0));
            link.drop_rate = Some(of(dropped, accepted + dropped));
            link.mark_rate = Some(of(counters.marked - last.marked, accepted));
            link.queue = Some(Bytes::new(queue.bytes));
            (*last, *last_sent) = (counters, sent);
        }
    }

    fn see_flows(&mut self, span: f64, network: &mut impl Managed) {
        let mut hosts = vec![Sum::default(); self.view.hosts.len()];
        let mut groups = vec![Sum::default(); self.view.groups.len()];
        let mut matrix: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut heard: BTreeSet<(u32, u32)> = BTreeSet::new();
        let Observer { flows, groups: group_of, racks, arms, counted_at, .. } = self;
        network.flows(&mut |flow| {
            let begun = flows.len() <= flow.flow as usize;
            if begun {
                flows.resize(flow.flow as usize + 1, (0, Segments::default()));
            }
            let (bytes, segments) = &mut flows[flow.flow as usize];
            let more = flow.bytes - *bytes;
            let sent = Segments {
                sent: flow.segments.sent - segments.sent,
                retransmitted: flow.segments.retransmitted - segments.retransmitted,
            };
            (*bytes, *segments) = (flow.bytes, flow.segments);
            for sum in [&mut hosts[flow.src as usize], &mut groups[group_of[flow.entry as usize]]] {
                sum.open += u32::from(flow.open);
                sum.begun += u32::from(begun);
                sum.bytes += more;
                sum.segments.sent += sent.sent;
                sum.segments.retransmitted += sent.retransmitted;
            }
            if more > 0 {
                heard.insert((flow.dst, flow.src));
            }
            if *counted_at == End::Sender {
                arms[flow.arm as usize].add_segments(sent.sent, sent.retransmitted);
            }
            if let Some(srtt_us) = flow.srtt_us.filter(|_| flow.open) {
                *hosts[flow.src as usize].srtt_us.entry(srtt_us).or_default() += 1;
            }
            *matrix.entry((racks[flow.src as usize], racks[flow.dst as usize])).or_default() += more;
        });
        let rate = |bytes: u64| Rate::from_bps((bytes as f64 * 8.0 / span) as u64);
        for (host, sum) in self.view.hosts.iter_mut().zip(hosts) {
            host.live_flows = Some(f64::from(sum.open));
            host.flow_starts = Some(f64::from(sum.begun) / span);
            host.sent_segments = Some((sum.segments.sent as f64 / span) as u64);
            host.retransmitted_segments = Some((sum.segments.retransmitted as f64 / span) as u64);
            host.srtt_us = sum.srtt_us.into_iter().collect();
            host.send_rate = Some(rate(sum.bytes));
            host.fan_in = Some(0.0);
        }
        for (to, _) in heard {
            let fan_in = &mut self.view.hosts[to as usize].fan_in;
            *fan_in = fan_in.map(|from| from + 1.0);
        }
        for (group, sum) in self.view.groups.iter_mut().zip(groups) {
            group.live_flows = Some(f64::from(sum.open));
            group.flow_starts = Some(f64::from(sum.begun) / span);
            let Segments { sent, retransmitted } = sum.segments;
            group.retransmit_rate = (sent > 0).then(|| retransmitted as f64 / sent as f64);
        }
        let pair = |((from, to), bytes): ((usize, usize), u64)| RackPair {
            from: self.rack_names[from].clone(),
            to: self.rack_names[to].clone(),
            rate: rate(bytes),
        };
        self.view.matrix = matrix.into_iter().filter(|(_, bytes)| *bytes > 0).map(pair).collect();
    }

    fn see_completed(&mut self, network: &mut impl Managed) {
        let mut all = Vec::new();
        let mut hosts = vec![Vec::new(); self.view.hosts.len()];
        let mut groups = vec![Vec::new(); self.view.groups.len()];
        network.completed(&mut |done| {
            all.push(done.took);
            self.arms[done.arm as usize].fct_ns.record(done.took.as_ns()).expect("a histogram grows as it must");
            hosts[done.src as usize].push(done.took);
            groups[self.groups[done.entry as usize]].push(done.took);
        });
        self.view.fct = percentiles(all);
        for (host, took) in self.view.hosts.iter_mut().zip(hosts) {
            host.fct = percentiles(took);
        }
        for (group, took) in self.view.groups.iter_mut().zip(groups) {
            group.fct = percentiles(took);
        }
    }
}

/// A host's labels in the scenario.
fn labels_of(scenario: &Scenario, host: &str) -> BTreeMap<String, String> {
    let entries = scenario.policy.iter().flat_map(|control| &control.label);
    let of_host = entries.filter(|entry| entry.hosts.iter().any(|pattern| fits(pattern, host)));
    of_host.flat_map(|entry| entry.set.clone()).collect()
}

/// By nearest rank.
fn percentiles(mut took: Vec<Time>) -> Percentiles {
    took.sort_unstable();
    let at = |percent: usize| took.get((took.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    Percentiles { p50: at(50), p90: at(90), p99: at(99) }
}
