//! What is measured: samples while the run goes on, rows when it ends.

use crate::core::{Core, Received, Socket};
use crate::flows::{Flow, receiver, sender};
use crate::traffic::Traffic;
use net::{LinkCounters, LinkId, NodeKind, Topology};
use plan::{UNLIMITED, find_links, tier_name};
use results::{CaState, CwndSample, FlowRow, LinkRow, LinkSample};
use scenario::{Queues, Scenario};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Rate, Time};

/// What is sampled, how often, and what has been.
pub struct Recorder {
    /// Links in the series, and the interval.
    links: Vec<LinkId>,
    link_interval: Option<Time>,
    cwnd_interval: Option<Time>,
    /// Counters and bytes sent at the last sample, and when that was.
    last: Vec<(LinkCounters, u64)>,
    last_at: Time,
    pub link_series: Vec<LinkSample>,
    pub cwnd: Vec<CwndSample>,
}

impl Recorder {
    pub fn new(scenario: &Scenario, topology: &Topology) -> Recorder {
        let measure = &scenario.measure;
        let all = || (0..topology.links().len() as u32).map(LinkId).collect::<Vec<_>>();
        let (links, link_interval) = match (&measure.links, &measure.queues) {
            (Some(interval), _) => (all(), Some(*interval)),
            (None, Queues::All) => (all(), Some(measure.queue_sample)),
            (None, Queues::Links(named)) if named.is_empty() => (Vec::new(), None),
            (None, Queues::Links(named)) => {
                (named.iter().flat_map(|link| find_links(topology, link)).collect(), Some(measure.queue_sample))
            }
        };
        Recorder {
            last: vec![(LinkCounters::default(), 0); links.len()],
            links,
            link_interval,
            cwnd_interval: measure.cwnd,
            last_at: Time::ZERO,
            link_series: Vec::new(),
            cwnd: Vec::new(),
        }
    }

    /// When the first sample after `now` is due.
    pub fn next_after(&self, now: Time) -> Time {
        let next = |interval: Option<Time>| match interval {
            Some(interval) => interval * (now.as_ps() / interval.as_ps() + 1),
            None => Time::NEVER,
        };
        next(self.link_interval).min(next(self.cwnd_interval))
    }

    /// Takes the samples that are due at `now`.
    pub fn sample(&mut self, core: &Core, topology: &Topology, now: Time) {
        let due =
            |interval: Option<Time>| interval.is_some_and(|interval| now.as_ps().is_multiple_of(interval.as_ps()));
        if due(self.link_interval) {
            self.sample_links(core, topology, now);
        }
        if due(self.cwnd_interval) {
            self.sample_cwnd(core, now);
        }
    }

    fn sample_links(&mut self, core: &Core, topology: &Topology, now: Time) {
        let span = now - self.last_at;
        self.last_at = now;
        for (link, (last, last_sent)) in self.links.iter().zip(&mut self.last) {
            let counters = core.fabric.links.counters(*link);
            let queue = core.fabric.links.queue_len(*link, now);
            let sent = counters.accepted_bytes - queue.bytes;
            let drops = |c: &LinkCounters| c.dropped + c.dropped_by_failure();
            self.link_series.push(LinkSample {
                time_ns: now.as_ns(),
                link: link.0,
                queue_packets: queue.packets,
                queue_bytes: queue.bytes,
                utilization: utilization(sent.saturating_sub(*last_sent), topology.link(*link).rate, span),
                drops: (drops(&counters) - drops(last)) as u32,
                marks: (counters.marked - last.marked) as u32,
            });
            (*last, *last_sent) = (counters, sent);
        }
    }

    fn sample_cwnd(&mut self, core: &Core, now: Time) {
        for (flow, socket) in core.sockets.iter().step_by(2).enumerate() {
            let tcp = &socket.tcp;
            if !tcp.is_established() {
                continue;
            }
            let sock = tcp.sock();
            let infinite = congestion::sock::TCP_INFINITE_SSTHRESH;
            self.cwnd.push(CwndSample {
                time_ns: now.as_ns(),
                flow: flow as u64,
                cwnd: sock.snd_cwnd,
                ssthresh: (sock.snd_ssthresh < infinite).then_some(sock.snd_ssthresh),
                srtt_us: (sock.srtt_us > 0).then_some(sock.srtt_us >> 3),
                in_flight: sock.packets_in_flight(),
                state: ca_state(sock.icsk_ca_state),
                pacing_rate_bps: (sock.sk_pacing_status != 0).then(|| sock.sk_pacing_rate.saturating_mul(8)),
            });
        }
    }
}

/// Share of `span` that sending `bytes` took.
fn utilization(bytes: u64, rate: Rate, span: Time) -> f64 {
    if span == Time::ZERO { 0.0 } else { (bytes as f64 * 8.0 / rate.as_bps() as f64 / span.as_secs_f64()).min(1.0) }
}

fn ca_state(state: u8) -> CaState {
    use congestion::sock::{TCP_CA_CWR, TCP_CA_DISORDER, TCP_CA_LOSS, TCP_CA_RECOVERY};
    match state {
        TCP_CA_DISORDER => CaState::Disorder,
        TCP_CA_CWR => CaState::Cwr,
        TCP_CA_RECOVERY => CaState::Recovery,
        TCP_CA_LOSS => CaState::Loss,
        _ => CaState::Open,
    }
}

/// Counters as they stood when the warm-up ended; results are what came after.
#[derive(Default)]
pub struct Baseline {
    at: Time,
    links: Vec<LinkCounters>,
    /// By socket.
    sockets: Vec<SocketBase>,
}

#[derive(Clone, Copy, Default)]
struct SocketBase {
    received: Received,
    delay: Time,
    delivered: u64,
    stats: tcp::Stats,
}

impl Baseline {
    /// The counters of `core` now.
    pub fn of(core: &Core) -> Baseline {
        let base = |(i, socket): (usize, &Socket)| SocketBase {
            received: socket.received,
            delay: core.delays.get(i).copied().unwrap_or_default(),
            delivered: socket.tcp.received(),
            stats: socket.tcp.stats(),
        };
        Baseline {
            at: core.now(),
            links: (0..core.fabric.links.len() as u32).map(|i| core.fabric.links.counters(LinkId(i))).collect(),
            sockets: core.sockets.iter().enumerate().map(base).collect(),
        }
    }
}

/// One row a flow.
pub fn flow_rows(core: &Core, traffic: &Traffic, base: &Baseline, measure_delay: bool) -> Vec<FlowRow> {
    let topology = &traffic.flows.topology;
    let mut names = Names::default();
    let mean = |sum: Time, n: u64| (measure_delay && n > 0).then(|| sum.as_ps() / n / 1000);
    let mut row = |(i, flow): (usize, &Flow)| {
        let ends = [sender(i as u32), receiver(i as u32)].map(|id| id as usize);
        let [from, to] = ends.map(|id| &core.sockets[id]);
        let [from_base, to_base] = ends.map(|id| base.sockets.get(id).copied().unwrap_or_default());
        let (algorithm, group) = traffic.names(flow);
        let (sock, stats, stats_base) = (from.tcp.sock(), from.tcp.stats(), from_base.stats);
        let [ack_delay, data_delay] = ends.map(|id| core.delays.get(id).copied().unwrap_or_default());
        let (data, acks) = (to.received.since(&to_base.received), from.received.since(&from_base.received));
        FlowRow {
            flow: i as u64,
            src: names.shared(&topology.node(traffic.flows.host_of(core, ends[0])).name),
            dst: names.shared(&topology.node(traffic.flows.host_of(core, ends[1])).name),
            algorithm: names.shared(algorithm),
            group: names.shared(group),
            start_ns: flow.start.as_ns(),
            end_ns: (flow.end != Time::NEVER).then(|| flow.end.as_ns()),
            bytes: (flow.bytes < UNLIMITED).then_some(flow.bytes),
            delivered_bytes: to.tcp.received() - to_base.delivered,
            data_packets_sent: u64::from(stats.data_segments_sent - stats_base.data_segments_sent),
            retransmits: u64::from(stats.retransmits - stats_base.retransmits),
            rtos: u64::from(stats.rtos - stats_base.rtos),
            tlp_probes: u64::from(stats.tlp_probes - stats_base.tlp_probes),
            ce_marks: u64::from(to.tcp.stats().ce_received - to_base.stats.ce_received),
            ece_acks: u64::from(stats.ece_acks - stats_base.ece_acks),
            packets_received: u64::from(data.packets),
            ip_bytes_received: data.ip_bytes,
            mean_packet_delay_ns: mean(data_delay - to_base.delay, u64::from(data.packets)),
            acks_received: u64::from(acks.packets),
            ack_ip_bytes_received: acks.ip_bytes,
            mean_ack_delay_ns: mean(ack_delay - from_base.delay, u64::from(acks.packets)),
            min_rtt_us: (sock.min_rtt_us() != u32::MAX && sock.srtt_us > 0).then(|| u64::from(sock.min_rtt_us())),
            srtt_us: (sock.srtt_us > 0).then(|| u64::from(sock.srtt_us >> 3)),
            final_cwnd: sock.snd_cwnd,
        }
    };
    traffic.flows.list.iter().enumerate().map(&mut row).collect()
}

/// One row a link; the network must conserve packets.
///
/// # Panics
/// If a link has lost count of a packet: then nothing that the run measured can be believed.
pub fn link_rows(core: &Core, topology: &Topology, base: &Baseline) -> Vec<LinkRow> {
    let mut names = Names::default();
    let in_flight = core.in_flight();
    let span = core.now() - base.at;
    let mut row = |(i, spec): (usize, &net::LinkSpec)| {
        let (id, in_flight) = (LinkId(i as u32), in_flight[i]);
        let (end, start) = (core.fabric.links.counters(id), base.links.get(i).copied().unwrap_or_default());
        assert!(
            end.conserves(in_flight),
            "link {}: {end:?} with {in_flight} in flight does not add up",
            topology.link_name(id)
        );
        let queued = core.fabric.links.queue_len(id, core.now()).bytes;
        let sent = (end.accepted_bytes - start.accepted_bytes).saturating_sub(queued);
        LinkRow {
            link: topology.link_name(id).into(),
            from: names.shared(&topology.node(spec.from).name),
            to: names.shared(&topology.node(spec.to).name),
            tier: names.shared(tier_name(spec.tier)),
            from_host: topology.node(spec.from).kind == NodeKind::Host,
            rate_bps: spec.rate.as_bps(),
            packets: end.accepted - start.accepted,
            bytes: end.accepted_bytes - start.accepted_bytes,
            delivered: end.delivered - start.delivered,
            dropped: end.dropped - start.dropped,
            dropped_bytes: end.dropped_bytes - start.dropped_bytes,
            dropped_by_failure: end.dropped_by_failure() - start.dropped_by_failure(),
            marked: end.marked - start.marked,
            in_flight,
            max_queue_packets: u64::from(end.queue_max),
            utilization: utilization(sent, spec.rate, span),
        }
    };
    topology.links().iter().enumerate().map(&mut row).collect()
}

/// Strings that many rows hold, each kept once.
#[derive(Default)]
struct Names(BTreeMap<String, Arc<str>>);

impl Names {
    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let shared: Arc<str> = name.into();
        self.0.insert(name.to_string(), shared.clone());
        shared
    }
}
