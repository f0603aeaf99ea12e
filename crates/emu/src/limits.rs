//! What a machine can emulate: limits that are checked before anything starts.

use crate::address::ENTRIES_MAX;
use crate::slowdown::Slowdown;
use net::{LinkId, NodeId, Router, Topology};
use plan::{Pairing, Random};
use scenario::{LimitOutput, Objection, Scenario, TrafficKind, Workload};
use std::collections::BTreeSet;
use units::Rate;

/// Faster links cannot be emulated: the forwarder takes as long for a packet as the link.
pub const RATE_MAX: Rate = Rate::from_gbps(10);
/// If any link has a higher rate, packets that leave together are joined.
pub const GLUE_ABOVE: Rate = Rate::from_mbps(2500);
/// The most hosts: each is a namespace with an interface of its own.
pub const HOSTS_MAX: usize = 128;
/// The most connections that a scenario may open at its start: each is two of the process's files.
pub const CONNECTIONS_MAX: u64 = 4000;

/// Seconds of the forwarder's CPU for reading and writing a packet, and for each link that it passes. Measured
/// at 3 GHz; a slower machine is caught by the self-check.
const IO_S: f64 = 1.5e-6;
/// The same where packets are joined.
const GLUED_IO_S: f64 = 0.35e-6;
/// The same with the receiving half of the hosts' TCP, packet by packet.
const RECEIVING_S: f64 = 2.5e-6;
/// See `IO_S`.
const HOP_S: f64 = 0.15e-6;
/// ACKs per packet.
const ACKS: f64 = 0.5;

/// Share of the forwarder's CPU that traffic may require.
const SHARE_MAX: f64 = 0.9;
/// Up to this share the forwarder does the hosts' receiving half as well.
const RECEIVING_SHARE_MAX: f64 = 0.5;

/// Connections between two hosts that send as fast as they can, or at most at a rate.
struct Demand {
    src: NodeId,
    dst: NodeId,
    bps: f64,
}

/// Whether packets are joined in this network.
pub fn glues(topology: &Topology, slowdown: Slowdown) -> bool {
    topology.links().iter().any(|link| slowdown.real_rate(link.rate) > GLUE_ABOVE)
}

/// Where the network exceeds the limits.
pub fn of_network(scenario: &Scenario, topology: &Topology, slowdown: Slowdown) -> Vec<Objection> {
    let mut found = Vec::new();
    let mut object = |key: &str, message: String, help: &str| {
        found.push(Objection { key: key.to_string(), message, help: Some(help.to_string()) });
    };
    if let Some(link) = topology.links().iter().find(|link| slowdown.real_rate(link.rate) > RATE_MAX) {
        let key = rate_key(scenario, link.rate);
        let message = format!("links of {} cannot be emulated; the bound is {RATE_MAX}", link.rate);
        object(&key, message, "lower the rate, emulate the network more slowly (--slower), or use --backend sim");
    }
    if topology.servers_forward() {
        let message = "networks whose servers forward cannot be emulated".to_string();
        object("network.topology", message, "take a network of switches, or use --backend sim");
    }
    if !scenario.network.balancing.is_by_flow() {
        let message = "the emulator keeps the packets of a flow on one path".to_string();
        object("network.balancing", message, "write \"flow\", or use --backend sim");
    }
    if let Some(key) = held_queue(scenario) {
        let message = "a queue that decides when a packet departs cannot be emulated".to_string();
        object(&key, message, "take `pie`, `red` or `threshold_ecn`, or use --backend sim");
    }
    if topology.n_hosts() > HOSTS_MAX {
        let message =
            format!("{} hosts cannot be emulated on one machine; the bound is {HOSTS_MAX}", topology.n_hosts());
        object("network.topology", message, "take a smaller network, or use --backend sim");
    }
    found
}

/// Where the traffic exceeds the limits.
pub fn objections(scenario: &Scenario, topology: &Topology, router: &Router, slowdown: Slowdown) -> Vec<Objection> {
    let mut found = of_network(scenario, topology, slowdown);
    let mut object = |key: &str, message: String, help: &str| {
        found.push(Objection { key: key.to_string(), message, help: Some(help.to_string()) });
    };
    if scenario.traffic.len() > ENTRIES_MAX {
        object("traffic", format!("at most {ENTRIES_MAX} entries can be emulated"), "merge entries");
    }
    for (number, entry) in scenario.traffic.iter().enumerate().filter(|(_, entry)| entry.kind.datagrams().is_some()) {
        let message = format!("the traffic `{}` is UDP, which cannot be emulated", entry.name);
        object(&format!("traffic.{number}"), message, "take it out, or use --backend sim");
    }
    let connections: u64 = scenario.traffic.iter().map(|entry| connections(&entry.kind, topology)).sum();
    if connections > CONNECTIONS_MAX {
        let message = format!("{connections} connections at once cannot be emulated; the bound is {CONNECTIONS_MAX}");
        object("traffic", message, "open fewer, or use --backend sim");
    }
    if found.is_empty() {
        // packets that are not joined are acknowledged one by one, or every second one
        let (per_packet, acks) = if glues(topology, slowdown) { (GLUED_IO_S, 0.1) } else { (IO_S, ACKS) };
        let (share, bps) = load(scenario, topology, router, per_packet, acks);
        let share = share / f64::from(slowdown.times());
        if share > SHARE_MAX {
            let bound = Rate::from_mbps((bps * SHARE_MAX / share / 1e8) as u64 * 100);
            let asked = Rate::from_mbps((bps / 1e8) as u64 * 100);
            let message = format!(
                "this traffic needs about {asked} in all, more than one machine forwards in real time; \
                 the bound for this network is about {bound}"
            );
            found.push(Objection {
                key: "traffic".to_string(),
                message,
                help: Some(
                    "lower the links' rates or the number of senders, emulate the network more slowly (--slower), or use \
                     --backend sim"
                        .to_string(),
                ),
            });
        }
    }
    found
}

/// Whether the other CPUs are to do the hosts' receiving half.
///
/// The forwarder's thread is the better place for it while it has the time: an interrupt that moves the work can take
/// longer than the work, and there no kernel skips BPF's hooks, as some do where an interrupt finds process 1.
pub fn needs_help(scenario: &Scenario, topology: &Topology, router: &Router, slowdown: Slowdown) -> bool {
    load(scenario, topology, router, RECEIVING_S, ACKS).0 > RECEIVING_SHARE_MAX * f64::from(slowdown.times())
}

/// The key of a queue that decides when a packet departs: the engine asks a link only as packets arrive.
fn held_queue(scenario: &Scenario) -> Option<String> {
    let network = &scenario.network;
    if network.nic_queue.is_held() && scenario.tcp.limit_output == LimitOutput::Off {
        return Some("network.nic_queue".to_string());
    }
    if let scenario::Topology::Explicit { links, .. } = &network.topology {
        let i = links.iter().position(|cable| cable.queue.is_held())?;
        return Some(format!("network.topology.explicit.links.{i}.queue"));
    }
    // a tier without a queue of its own has the network's
    let (tier, settings) = network.tier.iter().find(|(_, tier)| tier.queue.is_held())?;
    let is_own = settings.queue != network.queue;
    Some(if is_own { format!("network.tier.{}.queue", tier.key()) } else { "network.queue".to_string() })
}

/// The key by which the rate of the fastest links was set.
fn rate_key(scenario: &Scenario, rate: Rate) -> String {
    if let scenario::Topology::Explicit { links, .. } = &scenario.network.topology
        && let Some(i) = links.iter().position(|cable| cable.rate == rate)
    {
        return format!("network.topology.explicit.links.{i}.rate");
    }
    if scenario.network.rate == rate {
        return "network.rate".to_string();
    }
    let tier = scenario.network.tier.iter().find(|(_, settings)| settings.rate == rate);
    tier.map_or("network.rate".to_string(), |(tier, _)| format!("network.tier.{}.rate", tier.key()))
}

/// The ranks of a job that send to one another; `n`: the network's hosts.
fn job_pairs(job: &scenario::Job, n: u64) -> BTreeSet<(u32, u32)> {
    let hosts = job.hosts.as_ref().map_or(n, |hosts| hosts.len() as u64);
    let tasks = job.shape.graph(hosts as u32).tasks.into_iter();
    let pair = |task: scenario::Task| match task.work {
        scenario::Work::Send { from, to, .. } => Some((from, to)),
        scenario::Work::Compute { .. } => None,
    };
    tasks.filter_map(pair).collect()
}

fn connections(kind: &TrafficKind, topology: &Topology) -> u64 {
    let n = topology.n_hosts() as u64;
    match kind {
        TrafficKind::RandomPairs { flows, .. } | TrafficKind::Idle { flows } => u64::from(*flows),
        TrafficKind::Permutation { .. } => n,
        TrafficKind::Bulk { count, .. } => u64::from(*count),
        TrafficKind::Incast { senders: scenario::Senders::First(n), .. } => u64::from(*n),
        TrafficKind::Incast { senders: scenario::Senders::Named(names), .. } => names.len() as u64,
        TrafficKind::AllToAll(all) | TrafficKind::Exchange(all) => {
            let n = all.hosts.as_ref().map_or(n, |hosts| hosts.len() as u64).div_ceil(u64::from(all.jobs));
            let of_each = if matches!(kind, TrafficKind::Exchange(_)) { 2 } else { n.saturating_sub(1) };
            n * of_each * u64::from(all.jobs)
        }
        TrafficKind::Job(job) if job.connections == scenario::Connections::Reuse => job_pairs(job, n).len() as u64,
        TrafficKind::Udp { .. } | TrafficKind::Poisson { .. } | TrafficKind::Trace { .. } | TrafficKind::Job(_) => 0,
    }
}

/// Share of the forwarder's CPU that the traffic requires, and its bits a second, if every link is fully used;
/// with seconds for reading and writing a packet, and ACKs per packet.
fn load(scenario: &Scenario, topology: &Topology, router: &Router, per_packet: f64, acks: f64) -> (f64, f64) {
    let mut carried = vec![0.0; topology.links().len()];
    let mut flows: Vec<(f64, Vec<LinkId>)> = Vec::new();
    for demand in demands(scenario, topology) {
        let mut path = Vec::new();
        if router.path(demand.src, demand.dst, flows.len() as u32, &mut path).is_err() {
            continue;
        }
        let least = path.iter().map(|link| topology.link(*link).rate.as_bps() as f64).fold(demand.bps, f64::min);
        for link in &path {
            carried[link.index()] += least;
        }
        flows.push((least, path));
    }
    let packet_bits = 8.0 * f64::from(scenario.tcp.mtu() + plan::framing_bytes(scenario));
    let (mut share, mut total) = (0.0, 0.0);
    for (bps, path) in &flows {
        let over = |link: &LinkId| carried[link.index()] / topology.link(*link).rate.as_bps() as f64;
        let bps = bps / path.iter().map(over).fold(1.0, f64::max);
        share += bps / packet_bits * (1.0 + acks) * (per_packet + HOP_S * path.len() as f64);
        total += bps;
    }
    (share, total)
}

/// The known sender–receiver pairs, each at most at the rate of the sender's link.
fn demands(scenario: &Scenario, topology: &Topology) -> Vec<Demand> {
    let pairing = Pairing::of(scenario, topology);
    let seconds = scenario.duration.as_secs_f64();
    let mut demands = Vec::new();
    for entry in &scenario.traffic {
        let mut random = Random::of_entry(scenario.seed, &entry.name);
        let (pairs, bps) = match &entry.kind {
            TrafficKind::RandomPairs { flows, workload } => {
                ((0..*flows).map(|_| pairing.random_pair(&mut random)).collect(), bps_of(workload, seconds))
            }
            TrafficKind::Permutation { across, workload } => {
                (pairing.permutation(*across, &mut random), bps_of(workload, seconds))
            }
            TrafficKind::Bulk { from, to, count, bytes } => {
                let pair = (pairing.host(from), pairing.host(to));
                let bps = bytes.map_or(f64::MAX, |bytes| bytes.get() as f64 * 8.0 / seconds);
                (vec![pair; *count as usize], bps)
            }
            TrafficKind::Incast { senders, receiver, .. } => (pairing.incast(senders, receiver), f64::MAX),
            TrafficKind::AllToAll(_) | TrafficKind::Exchange(_) => {
                (pairing.jobs(&entry.kind, &mut random).concat(), f64::MAX)
            }
            TrafficKind::Poisson { arrivals, sizes, from, to, .. } => {
                let [senders, receivers] = [from, to].map(|names| pairing.listed(names.as_deref()));
                let gap = plan::mean_gap(arrivals, sizes.distribution.mean(), (topology, &senders)).as_secs_f64();
                let all = senders.iter().flat_map(|src| receivers.iter().map(move |dst| (*src, *dst)));
                let pairs: Vec<_> = all.filter(|(src, dst)| src != dst).collect();
                let bps = sizes.distribution.mean() * 8.0 / gap / pairs.len() as f64;
                (pairs, bps)
            }
            TrafficKind::Trace { flows, .. } => {
                for flow in flows.iter() {
                    let (src, dst) = (pairing.host(&flow.from), pairing.host(&flow.to));
                    demands.push(Demand { src, dst, bps: flow.bytes.get() as f64 * 8.0 / seconds });
                }
                continue;
            }
            TrafficKind::Job(job) => {
                let hosts = pairing.listed(job.hosts.as_deref());
                let pairs = job_pairs(job, hosts.len() as u64).into_iter();
                (pairs.map(|(from, to)| (hosts[from as usize], hosts[to as usize])).collect(), f64::MAX)
            }
            TrafficKind::Udp { .. } | TrafficKind::Idle { .. } => continue,
        };
        demands.extend(pairs.into_iter().map(|(src, dst)| Demand { src, dst, bps }));
    }
    demands
}

/// Bits a second of one connection.
fn bps_of(workload: &Workload, seconds: f64) -> f64 {
    match workload {
        Workload::Bulk { bytes: Some(bytes) } => bytes.get() as f64 * 8.0 / seconds,
        Workload::Bulk { bytes: None } => f64::MAX,
        Workload::Udp(datagrams) => datagrams.rate.as_bps() as f64,
        Workload::OnOff { rate, on, off, .. } => {
            let (on, off) = (on.as_secs_f64(), off.as_secs_f64());
            rate.as_bps() as f64 * on / (on + off)
        }
    }
}
