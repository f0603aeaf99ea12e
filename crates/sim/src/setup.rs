//! From a scenario to the things that move: topology, links, stacks.

use crate::SimError;
use crate::calendar::Calendar;
use congestion::Algorithm;
use net::{
    Aqm, BufferSpec, Cable, Depth, Limit, LinkParams, LinkSpec, LinkTier, QueueSpec, RedSpec, Routing, Topology,
};
use scenario::{self as file, Scenario};
use std::sync::Arc;
use units::{Bytes, Time};

/// Ethernet's header, preamble, check sequence and gap.
const ETHERNET_BYTES: u32 = 14 + 24;

/// Bytes that the scenario's framing adds to an IP packet.
pub fn framing_bytes(scenario: &Scenario) -> u32 {
    match scenario.network.framing {
        file::Framing::Ethernet => ETHERNET_BYTES,
        file::Framing::Ip => 0,
    }
}

/// The network's routing.
pub fn routing(scenario: &Scenario) -> Routing {
    match scenario.network.routing {
        file::Routing::SinglePath => Routing::SinglePath,
        file::Routing::Ecmp => Routing::Ecmp,
    }
}

/// The topology with its links' rates, delays and queues.
///
/// # Errors
/// What the network model refuses.
pub fn topology(scenario: &Scenario) -> Result<Topology, SimError> {
    let network = &scenario.network;
    let params = |tier: LinkTier| {
        let settings = tier_of(tier).and_then(|tier| network.tier.get(&tier));
        let (rate, delay, queue) = match settings {
            Some(settings) => (settings.rate, settings.delay, settings.queue),
            None => (network.rate, network.delay, network.queue),
        };
        let queue = if tier == LinkTier::FromHost { nic_queue(scenario) } else { queue_spec(scenario, queue) };
        LinkParams { rate, delay, queue }
    };
    let mut topology = match &network.topology {
        file::Topology::FatTree { k } => Topology::fat_tree(u64::from(*k), params),
        file::Topology::LeafSpine { leaves, spines, hosts_per_leaf } => {
            Topology::leaf_spine(u64::from(*leaves), u64::from(*spines), u64::from(*hosts_per_leaf), params)
        }
        file::Topology::Star { hosts } => Topology::star(u64::from(*hosts), params),
        file::Topology::Dumbbell { pairs } => Topology::dumbbell(u64::from(*pairs), params),
        file::Topology::Explicit { nodes, links } => explicit(scenario, nodes, links),
    }?;
    if let file::Buffer::Shared { bytes, alpha } = network.buffer {
        topology.set_switch_buffers(BufferSpec::Shared { total: bytes, alpha });
    }
    Ok(topology)
}

fn explicit(scenario: &Scenario, nodes: &[file::Node], links: &[file::Cable]) -> Result<Topology, net::NetError> {
    let names = |kind: file::NodeKind| -> Vec<String> {
        nodes.iter().filter(|node| node.kind == kind).map(|node| node.name.clone()).collect()
    };
    let (hosts, switches) = (names(file::NodeKind::Host), names(file::NodeKind::Switch));
    let end = |cable: &file::Cable, from: &String| {
        let queue = if hosts.contains(from) { nic_queue(scenario) } else { queue_spec(scenario, cable.queue) };
        LinkParams { rate: cable.rate, delay: cable.delay, queue }
    };
    let cables: Vec<Cable> = links
        .iter()
        .map(|cable| Cable {
            a: cable.a.clone(),
            b: cable.b.clone(),
            forward: end(cable, &cable.a),
            backward: end(cable, &cable.b),
        })
        .collect();
    Topology::explicit(&hosts, &switches, &cables)
}

fn tier_of(tier: LinkTier) -> Option<file::Tier> {
    match tier {
        LinkTier::FromHost | LinkTier::ToHost => Some(file::Tier::Host),
        LinkTier::EdgeAggregation => Some(file::Tier::Aggregation),
        LinkTier::AggregationCore => Some(file::Tier::Core),
        LinkTier::LeafSpine => Some(file::Tier::Spine),
        LinkTier::Bottleneck => Some(file::Tier::Bottleneck),
        LinkTier::Switches => None,
    }
}

/// A host with back-pressure never drops in its own queue: what does not fit waits in the socket.
fn nic_queue(scenario: &Scenario) -> QueueSpec {
    match scenario.tcp.limit_output {
        file::LimitOutput::Auto => QueueSpec::unlimited(),
        file::LimitOutput::Off => queue_spec(scenario, scenario.network.nic_queue),
    }
}

fn queue_spec(scenario: &Scenario, queue: file::Queue) -> QueueSpec {
    let limit_of = |limit: file::Limit| match limit {
        file::Limit::Packets(n) => Limit::Packets(n),
        file::Limit::Bytes(n) => Limit::Bytes(n),
    };
    match queue {
        file::Queue::DropTail(limit) => QueueSpec { limit: limit_of(limit), aqm: Aqm::None },
        file::Queue::ThresholdEcn { mark, limit } => {
            let depth = match mark {
                file::Limit::Packets(n) => Depth::Packets(n),
                file::Limit::Bytes(n) => Depth::Bytes(n),
            };
            QueueSpec { limit: limit_of(limit), aqm: Aqm::Threshold(depth) }
        }
        file::Queue::Red(red) => QueueSpec::drop_tail(red.packets).red(RedSpec {
            min_th: red.min,
            max_th: red.max,
            max_p: red.max_probability.fraction(),
            w_q: red.weight,
            gentle: red.gentle,
            ecn: red.ecn,
            hard_drop: false,
            mean_packet: (scenario.tcp.mtu() + framing_bytes(scenario)) as u16,
        }),
    }
}

/// An event set that suits the network.
pub fn calendar(topology: &Topology, framing_bytes: u32) -> Calendar {
    const BARE_ACK_BYTES: u64 = 40;
    const FULL_BYTES: u64 = 1500;
    let framing = u64::from(framing_bytes);
    let links = topology.links();
    let least = |link: &LinkSpec| link.delay + link.rate.serialization(BARE_ACK_BYTES + framing);
    let most = |link: &LinkSpec| match link.queue.limit {
        Limit::Packets(n) => link.delay + link.rate.serialization(u64::from(n.min(1000)) * (FULL_BYTES + framing)),
        Limit::Bytes(n) => link.delay + link.rate.serialization(n.get().min(1_500_000)),
        // what back-pressure lets a flow have in its host's own queue
        Limit::Unlimited => link.delay + Time::from_ms(1),
    };
    // full packets one way on every link
    let density: f64 = links.iter().map(|link| link.rate.as_bps() as f64 / 8.0 / FULL_BYTES as f64).sum();
    let lookahead = links.iter().map(least).min().unwrap_or(Time::from_us(1));
    let horizon = links.iter().map(most).max().unwrap_or(Time::from_us(1));
    Calendar::new(lookahead, horizon, density)
}

/// The stack of each traffic entry, shared by those with the same algorithm.
///
/// # Errors
/// [`SimError::Algorithm`] for a file that does not compile or keep the contract.
pub fn stacks(scenario: &Scenario) -> Result<Vec<Arc<tcp::Config>>, SimError> {
    let mut made: Vec<(&file::Algorithm, Arc<tcp::Config>)> = Vec::new();
    let mut stacks = Vec::new();
    for entry in &scenario.traffic {
        let cc = entry.cc.as_ref().unwrap_or(&scenario.tcp.cc);
        let known = made.iter().find(|(made, _)| *made == cc).map(|(_, config)| config.clone());
        let config = match known {
            Some(config) => config,
            None => Arc::new(stack(&scenario.tcp, algorithm(cc)?)),
        };
        made.push((cc, config.clone()));
        stacks.push(config);
    }
    Ok(stacks)
}

fn algorithm(cc: &file::Algorithm) -> Result<&'static Algorithm, SimError> {
    match cc {
        file::Algorithm::BuiltIn(name) => {
            Algorithm::named(name).ok_or_else(|| SimError::Algorithm(format!("there is no algorithm `{name}`")))
        }
        file::Algorithm::File(data) => {
            Algorithm::load(&data.file.path).map_err(|error| SimError::Algorithm(error.to_string()))
        }
    }
}

fn stack(tcp: &file::Tcp, algorithm: &'static Algorithm) -> tcp::Config {
    let bytes = |b: Bytes| u32::try_from(b.get()).unwrap_or(u32::MAX >> 1);
    tcp::Config {
        algorithm,
        mtu: tcp.mtu(),
        initial_cwnd: tcp.initial_cwnd,
        initial_ssthresh: match tcp.initial_ssthresh {
            Some(b) => u32::try_from(b.get() / u64::from(tcp.mss)).unwrap_or(u32::MAX >> 1).max(2),
            None => congestion::sock::TCP_INFINITE_SSTHRESH,
        },
        rto_min: tcp.rto_min,
        rto_max: tcp.rto_max,
        syn_rto: tcp.syn_rto,
        rto_initial: tcp.rto_initial,
        syn_retries: tcp.syn_retries,
        sack: tcp.sack,
        timestamps: tcp.timestamps,
        window_scaling: tcp.window_scaling,
        delayed_ack: tcp::DelayedAck {
            segments: tcp.delayed_ack.segments,
            timeout: tcp.delayed_ack.timeout,
            timeout_max: tcp.delayed_ack.timeout_max,
            quickack: tcp.delayed_ack.quickack,
        },
        rack: tcp.rack,
        tlp: tcp.tlp,
        prr: tcp.prr,
        frto: tcp.frto,
        ecn: match tcp.ecn {
            file::Ecn::Auto => tcp::EcnMode::Auto,
            file::Ecn::Off => tcp::EcnMode::Off,
            file::Ecn::On => tcp::EcnMode::On,
        },
        slow_start_after_idle: tcp.slow_start_after_idle,
        send_buffer: bytes(tcp.send_buffer),
        receive_buffer: bytes(tcp.receive_buffer),
        pacing: match tcp.pacing {
            file::Pacing::Auto => tcp::PacingMode::Auto,
            file::Pacing::Off => tcp::PacingMode::Off,
            file::Pacing::On => tcp::PacingMode::On,
        },
        tso_segments: tcp.tso_segments,
        limit_output: tcp.limit_output == file::LimitOutput::Auto,
    }
}
