//! Measurements: samples during the run, rows at its end.

use crate::core::{Received, UDP_HEADERS};
use crate::flows::{Flow, receiver, sender};
use crate::network::Network;
use crate::traffic::Traffic;
use net::Topology;
use plan::{Ideal, Series, Transfer, UNLIMITED};
use results::{CaState, CwndSample, FlowRow};
use scenario::Scenario;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Time;

/// What is sampled, how often, and what has been.
pub struct Recorder {
    pub links: Series,
    link_interval: Option<Time>,
    cwnd_interval: Option<Time>,
    pub cwnd: Vec<CwndSample>,
}

impl Recorder {
    pub fn new(scenario: &Scenario, topology: &Topology) -> Recorder {
        let (links, link_interval) = plan::sampled(scenario, topology);
        Recorder {
            links: Series::new(&links, topology),
            link_interval,
            cwnd_interval: scenario.measure.cwnd,
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
    pub fn sample(&mut self, network: &Network, now: Time) {
        let due =
            |interval: Option<Time>| interval.is_some_and(|interval| now.as_ps().is_multiple_of(interval.as_ps()));
        if due(self.link_interval) {
            self.links.sample(network, now);
        }
        if due(self.cwnd_interval) {
            self.sample_cwnd(network, now);
        }
    }

    fn sample_cwnd(&mut self, network: &Network, now: Time) {
        self.cwnd.extend((0..network.flows()).filter_map(|flow| cwnd_sample(network, flow, now)));
    }
}

/// The window of a flow that is established.
pub fn cwnd_sample(network: &Network, flow: usize, now: Time) -> Option<CwndSample> {
    let tcp = &network.socket(sender(flow as u32)).tcp;
    if !tcp.is_established() {
        return None;
    }
    let sock = tcp.sock();
    let infinite = congestion::sock::TCP_INFINITE_SSTHRESH;
    Some(CwndSample {
        time_ns: now.as_ns(),
        flow: flow as u64,
        cwnd: sock.snd_cwnd,
        ssthresh: (sock.snd_ssthresh < infinite).then_some(sock.snd_ssthresh),
        srtt_us: (sock.srtt_us > 0).then_some(sock.srtt_us >> 3),
        in_flight: sock.packets_in_flight(),
        state: ca_state(sock.icsk_ca_state),
        pacing_rate_bps: (sock.sk_pacing_status != 0).then(|| sock.sk_pacing_rate.saturating_mul(8)),
    })
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

/// Sockets' counters as they stood when the warm-up ended; results are what came after.
#[derive(Default)]
pub struct Baseline {
    /// By socket.
    sockets: Vec<SocketBase>,
    /// By flow; of flows of datagrams alone.
    datagrams: BTreeMap<u32, u64>,
}

#[derive(Clone, Copy, Default)]
struct SocketBase {
    received: Received,
    delay: Time,
    delivered: u64,
    stats: tcp::Stats,
}

impl Baseline {
    /// The counters of `network` now.
    pub fn of(network: &Network) -> Baseline {
        let base = |number: u32| {
            let socket = network.socket(number);
            let (received, delivered, stats) = (socket.received(), socket.tcp.received(), socket.tcp.stats());
            SocketBase { received, delay: network.delay(number), delivered, stats }
        };
        let flows = network.flows() as u32;
        Baseline {
            sockets: (0..2 * flows).map(base).collect(),
            datagrams: (0..flows).filter_map(|flow| Some((flow, network.datagrams(flow)?))).collect(),
        }
    }
}

/// What stands in an algorithm's place for a flow of datagrams.
pub const UDP: &str = "udp";

/// One row a flow.
pub fn flow_rows(
    network: &Network,
    traffic: &Traffic,
    base: &Baseline,
    ideal: &Ideal,
    measure_delay: bool,
) -> Vec<FlowRow> {
    let topology = &traffic.flows.topology;
    let mut ideal = ideal.on(topology, traffic.flows.list.iter().map(|flow| flow.entry));
    let mut names = Names::default();
    let mean = |sum: Time, n: u64| (measure_delay && n > 0).then(|| sum.as_ps() / n / 1000);
    let mut row = |(i, flow): (usize, &Flow)| {
        let ends = [sender(i as u32), receiver(i as u32)];
        let [from, to] = network.ends(i as u32);
        let [from_base, to_base] = ends.map(|id| base.sockets.get(id as usize).copied().unwrap_or_default());
        let hosts = (topology.host(flow.src as usize), topology.host(flow.dst as usize));
        let transfer = Transfer { entry: flow.entry, flow: i as u32, hosts, bytes: flow.bytes };
        // an application that was stopped wrote less than the receiver awaits
        let whole = flow.end != Time::NEVER || flow.bytes == to.awaited();
        let (sock, stats, stats_base) = (from.tcp.sock(), from.tcp.stats(), from_base.stats);
        let [ack_delay, data_delay] = ends.map(|id| network.delay(id));
        let (data, acks) = (to.received().since(&to_base.received), from.received().since(&from_base.received));
        let datagrams = network.datagrams(i as u32).map(|sent| {
            let before = base.datagrams.get(&(i as u32)).copied().unwrap_or_default();
            // an IP packet without its headers
            (sent - before, data.ip_bytes - u64::from(data.packets) * u64::from(UDP_HEADERS))
        });
        let algorithm = if datagrams.is_some() { UDP } else { from.tcp.config().algorithm.name() };
        let (sent, delivered) = datagrams.unwrap_or((
            u64::from(stats.data_segments_sent - stats_base.data_segments_sent),
            to.tcp.received() - to_base.delivered,
        ));
        FlowRow {
            flow: i as u64,
            src: names.shared(&topology.node(hosts.0).name),
            dst: names.shared(&topology.node(hosts.1).name),
            algorithm: names.shared(algorithm),
            group: names.shared(traffic.label(flow)),
            arm: flow.arm,
            start_ns: flow.start.as_ns(),
            end_ns: (flow.end != Time::NEVER).then(|| flow.end.as_ns()),
            ideal_fct_ns: whole.then(|| ideal.fct_ns(transfer)).flatten(),
            bytes: (flow.bytes < UNLIMITED).then_some(flow.bytes),
            delivered_bytes: delivered,
            data_packets_sent: sent,
            retransmits: u64::from(stats.retransmits - stats_base.retransmits),
            rtos: u64::from(stats.rtos - stats_base.rtos),
            tlp_probes: datagrams.is_none().then_some(u64::from(stats.tlp_probes - stats_base.tlp_probes)),
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
            final_cwnd: if datagrams.is_some() { 0 } else { sock.snd_cwnd },
        }
    };
    traffic.flows.list.iter().enumerate().map(&mut row).collect()
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
