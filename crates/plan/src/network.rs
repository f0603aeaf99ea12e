//! The network of a scenario, in the types of the network model.

#[cfg(test)]
mod tests;

use crate::aqm;
use net::{
    Aqm, BufferSpec, Cable, Depth, Limit, LinkId, LinkParams, LinkTable, LinkTier, NetError, QueueSpec, RedSpec,
    Routing, SchedulerSpec, SharedSpec, Topology,
};
use scenario::{self as file, LinkRef, Scenario};
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
        file::Routing::WeightedEcmp => Routing::Weighted,
        file::Routing::Valiant => Routing::Valiant,
        file::Routing::ScaledFatTree { k } => Routing::ScaledFatTree { k },
    }
}

/// What a packet waits in each server that forwards it.
pub fn forwarding_delay(scenario: &Scenario) -> Time {
    match &scenario.network.topology {
        file::Topology::Shaped(shape) => shape.forwarding_delay(),
        _ => Time::ZERO,
    }
}

/// The topology with its links' rates, delays and queues.
///
/// # Errors
/// What the network model refuses.
pub fn topology(scenario: &Scenario) -> Result<Topology, NetError> {
    let network = &scenario.network;
    let params = |tier: LinkTier| {
        let settings = tier_of(tier).and_then(|tier| network.tier.get(&tier));
        let (rate, delay, queue) = match settings {
            Some(settings) => (settings.rate, settings.delay, settings.queue),
            None => (network.rate, network.delay, network.queue),
        };
        let queue = match tier {
            LinkTier::FromHost | LinkTier::HostToHost => nic_queue(scenario),
            _ => queue_spec(scenario, queue),
        };
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
        file::Topology::Shaped(shape) => Topology::shaped(*shape, params),
    }?;
    if let file::Buffer::Shared(shared) = network.buffer {
        topology.set_switch_buffers(BufferSpec::Shared(SharedSpec {
            total: shared.bytes,
            alpha: shared.alpha,
            alpha_not_ect: shared.alpha_not_ect.unwrap_or(shared.alpha),
            reserve: shared.reserve.unwrap_or(Bytes::new(0)),
            headroom: shared.headroom.map_or(0.0, file::Percent::fraction),
        }));
    }
    Ok(topology)
}

/// The links of `topology`, idle; some of them lose packets, those to hosts may have jitter.
///
/// # Errors
/// What the network model refuses.
pub fn links(scenario: &Scenario, topology: &Topology) -> Result<LinkTable, NetError> {
    let mut links = LinkTable::new(topology, scenario.seed)?;
    for loss in &scenario.network.loss {
        for link in find_links(topology, &loss.link) {
            links.lose(link, loss.probability.fraction(), scenario.seed);
        }
    }
    if let Some(most) = scenario.network.host_jitter {
        let all = (0..topology.links().len() as u32).map(LinkId);
        for link in all.filter(|link| topology.link(*link).to.index() < topology.n_hosts()) {
            links.vary(link, most, scenario.seed);
        }
    }
    Ok(links)
}

fn explicit(scenario: &Scenario, nodes: &[file::Node], links: &[file::Cable]) -> Result<Topology, NetError> {
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

/// The part of a scenario's `network.tier` that a link belongs to.
pub fn tier_of(tier: LinkTier) -> Option<file::Tier> {
    match tier {
        LinkTier::FromHost | LinkTier::ToHost => Some(file::Tier::Host),
        LinkTier::EdgeAggregation => Some(file::Tier::Aggregation),
        LinkTier::AggregationCore => Some(file::Tier::Core),
        LinkTier::LeafSpine => Some(file::Tier::Spine),
        LinkTier::Bottleneck => Some(file::Tier::Bottleneck),
        LinkTier::AggregationIntermediate => Some(file::Tier::Intermediate),
        LinkTier::HostToHost => Some(file::Tier::Server),
        LinkTier::Local => Some(file::Tier::Local),
        LinkTier::Global => Some(file::Tier::Global),
        LinkTier::Switches => Some(file::Tier::Switch),
    }
}

/// A host with back-pressure never drops in its own queue: what does not fit stays in the socket. One that forwards may.
fn nic_queue(scenario: &Scenario) -> QueueSpec {
    match scenario.tcp.limit_output {
        file::LimitOutput::Auto if !scenario.network.topology.servers_forward() => QueueSpec::unlimited(),
        _ => queue_spec(scenario, scenario.network.nic_queue),
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
            mean_packet: full_packet(scenario),
        }),
        file::Queue::Pie(pie) => aqm::pie(&pie, full_packet(scenario)),
        file::Queue::Codel(codel) => aqm::codel(&codel, full_packet(scenario)),
        file::Queue::FqCodel(fq_codel) => aqm::fq_codel(&fq_codel, full_packet(scenario)),
        file::Queue::DualPi2(dualpi2) => aqm::dualpi2(&dualpi2, full_packet(scenario)),
    }
}

/// Length of a full packet on the wire.
fn full_packet(scenario: &Scenario) -> u16 {
    (scenario.tcp.mtu() + framing_bytes(scenario)) as u16
}

/// Whether a link's queue marks packets that allow it.
pub fn marks(link: &net::LinkSpec) -> bool {
    match link.queue.aqm {
        Aqm::None => false,
        Aqm::Threshold(_) | Aqm::Held(SchedulerSpec::DualPi2(_)) => true,
        Aqm::Red(red) => red.ecn,
        Aqm::Pie(pie) => pie.ecn,
        Aqm::Held(SchedulerSpec::Codel(codel)) => codel.ecn || codel.ce_threshold.is_some(),
        Aqm::Held(SchedulerSpec::FqCodel(fq)) => fq.codel.ecn || fq.codel.ce_threshold.is_some(),
    }
}

/// The one or two links that `link` names.
pub fn find_links(topology: &Topology, link: &LinkRef) -> Vec<LinkId> {
    let find = |from: &str, to: &str| topology.find_link(&format!("{from}->{to}"));
    let there = find(&link.from, &link.to);
    let back = if link.both { find(&link.to, &link.from) } else { None };
    there.into_iter().chain(back).collect()
}

/// The name of a tier in result tables.
pub fn tier_name(tier: LinkTier) -> &'static str {
    match tier {
        LinkTier::FromHost => "from-host",
        LinkTier::ToHost => "to-host",
        LinkTier::EdgeAggregation => "edge-aggregation",
        LinkTier::AggregationCore => "aggregation-core",
        LinkTier::LeafSpine => "leaf-spine",
        LinkTier::Bottleneck => "bottleneck",
        LinkTier::AggregationIntermediate => "aggregation-intermediate",
        LinkTier::HostToHost => "host-host",
        LinkTier::Local => "local",
        LinkTier::Global => "global",
        LinkTier::Switches => "switches",
    }
}

/// Failures and repairs, latest first: when, which links, does it fail.
pub fn failures(scenario: &Scenario, topology: &Topology) -> Vec<(Time, Vec<LinkId>, bool)> {
    let mut list = Vec::new();
    for failure in &scenario.network.failure {
        let links = find_links(topology, &failure.link);
        list.extend(failure.until.map(|until| (until, links.clone(), false)));
        list.push((failure.at, links, true));
    }
    list.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    list
}
