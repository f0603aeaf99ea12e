//! What a view draws once.

use crate::link_ids;
use net::{Limit, LinkId, LinkTier, NodeKind, Topology};
use plan::find_links;
use scenario::{Queues, Run};
use serde::Serialize;
use sketch::{Map, Sketch};

/// A packet of this many bytes on the wire, where a queue's limit in bytes is shown in packets.
const FULL_PACKET: u64 = 1500;

/// What a view draws once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// The run's name.
    pub name: String,
    /// A sentence, or the name.
    pub title: String,
    /// `16 hosts, 20 switches, 48 cables`.
    pub size: String,
    /// When it ends, ns.
    pub duration_ns: u64,
    /// When counting begins, ns.
    pub warmup_ns: u64,
    /// The network, unless it is too large for a picture.
    pub map: Option<Map>,
    /// Links by number.
    pub links: Vec<Link>,
    /// Numbers of the links whose queues the scenario asks for.
    pub watched: Vec<u32>,
    /// Names of the traffic's entries.
    pub entries: Vec<String>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// `s1->s2`.
    pub name: String,
    /// bit/s.
    pub rate_bps: u64,
    /// Packets that its queue holds at most, full ones where the limit is in bytes; `None`: no limit.
    pub limit: Option<u64>,
    /// Packets from which it marks.
    pub mark: Option<u64>,
    /// Is it a host's own?
    pub from_host: bool,
}

/// The stage of a run.
pub fn stage(run: &Run, topology: &Topology) -> Stage {
    let scenario = &run.scenario;
    let sketch = Sketch::of(scenario).expect("the network of a run that is set up");
    let watched = match &scenario.measure.queues {
        Queues::Links(named) => named.iter().flat_map(|link| find_links(topology, link)).map(|id| id.0).collect(),
        Queues::All => Vec::new(),
    };
    Stage {
        name: run.name.clone(),
        title: scenario.title.clone().unwrap_or_else(|| scenario.name.clone()),
        size: sketch.size(),
        duration_ns: scenario.duration.as_ns(),
        warmup_ns: scenario.measure.warmup.as_ns(),
        map: sketch.map(),
        links: link_ids(topology.links().len()).map(|id| link(topology, id)).collect(),
        watched,
        entries: scenario.traffic.iter().map(|entry| entry.name.clone()).collect(),
    }
}

fn link(topology: &Topology, id: LinkId) -> Link {
    let spec = topology.link(id);
    let packets = |depth: &net::Depth| match depth {
        net::Depth::Packets(packets) => u64::from(*packets),
        net::Depth::Bytes(bytes) => bytes.get() / FULL_PACKET,
    };
    Link {
        name: topology.link_name(id),
        rate_bps: spec.rate.as_bps(),
        limit: match spec.queue.limit {
            Limit::Unlimited => None,
            Limit::Packets(packets) => Some(u64::from(packets)),
            Limit::Bytes(bytes) => Some((bytes.get() / FULL_PACKET).max(1)),
        },
        mark: match &spec.queue.aqm {
            net::Aqm::Threshold(depth) => Some(packets(depth)),
            net::Aqm::None | net::Aqm::Red(_) | net::Aqm::Pie(_) | net::Aqm::Held(_) => None,
        },
        from_host: spec.tier == LinkTier::FromHost || topology.node(spec.from).kind == NodeKind::Host,
    }
}
