//! The network: topology, links, queues, routing, failures.

use super::aqm::{Codel, DualPi2, FqCodel, Pie};
use super::{Balancing, Percent};
use net::Shape;
use serde::Serialize;
use std::collections::BTreeMap;
use units::{Bytes, Rate, Time};

/// The network: its shape, its links and its routing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Network {
    /// The shape, which also names the nodes (see [`Topology`]).
    pub topology: Topology,
    /// Rate of every link without a setting of its own.
    pub rate: Rate,
    /// Propagation delay of every link without a setting of its own; at least 1 ns.
    pub delay: Time,
    /// Queue of every switch port without a setting of its own.
    pub queue: Queue,
    /// Queue of a host's network card; default: drop-tail, 1000 packets (Linux's transmit queue length).
    pub nic_queue: Queue,
    /// A host takes a time for each packet that it receives, drawn uniformly from zero to this; it keeps their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_jitter: Option<Time>,
    /// How a path is chosen.
    pub routing: Routing,
    /// What takes one path together.
    #[serde(skip_serializing_if = "Balancing::is_by_flow")]
    pub balancing: Balancing,
    /// Which bytes of a packet take time on a link.
    pub framing: Framing,
    /// Whether the ports of a switch share memory.
    pub buffer: Buffer,
    /// For each tier that the topology has: its settings, complete. Empty for an explicit topology.
    pub tier: BTreeMap<Tier, LinkSettings>,
    /// Links that fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failure: Vec<Failure>,
    /// Links that lose packets by chance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<Loss>,
}

/// Rate, delay and queue of a cable: the rate and the delay in each direction, the queue at each *switch* port
/// (a host's port always has [`Network::nic_queue`]).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkSettings {
    /// Bit rate; more than zero.
    pub rate: Rate,
    /// Propagation delay; at least 1 ns.
    pub delay: Time,
    /// Queue of the switch port in front.
    pub queue: Queue,
}

/// The shape of the network. Numbers in names start at 1; nodes are numbered hosts first, then switches in the order
/// in which they are named here.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// A k-ary fat tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches, k³/4 hosts.
    ///
    /// With m = k/2, everything counted from 0 in this formula and named from 1: hosts `h`, edge switches `e`,
    /// aggregation switches `a`, core switches `c`. Host `x` hangs off edge `x / m`; edge `i` and aggregation `j`
    /// are in pods `i / m` and `j / m` and linked if these agree; aggregation `j` is linked to the cores
    /// `(j % m) · m .. (j % m) · m + m`.
    FatTree {
        /// Ports of a switch: even, at least 2.
        k: u32,
    },
    /// Hosts `h`, leaves `l`, spines `s`: each leaf linked to each spine; host `x` (from 0) hangs off leaf
    /// `x / hosts_per_leaf`.
    LeafSpine {
        /// Number of leaf switches.
        leaves: u32,
        /// Number of spine switches.
        spines: u32,
        /// Hosts under each leaf.
        hosts_per_leaf: u32,
    },
    /// Hosts `h` around the switch `s1`.
    Star {
        /// Number of hosts.
        hosts: u32,
    },
    /// Hosts `left1`… on the switch `s1`, as many `right1`… on `s2`, one cable between the two switches.
    Dumbbell {
        /// Hosts on each side.
        pairs: u32,
    },
    /// Nodes and cables as listed.
    Explicit {
        /// All nodes; names are unique.
        nodes: Vec<Node>,
        /// All cables; at most one between two nodes, both of which exist. Every host has exactly one.
        links: Vec<Cable>,
    },
    /// A data-center network of a few numbers.
    #[serde(untagged)]
    Shaped(Shape),
}

/// A node of an explicit topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Letters, digits, `_` and `.`.
    pub name: String,
    /// Host or switch.
    pub kind: NodeKind,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// Speaks TCP, forwards nothing.
    Host,
    /// Forwards.
    Switch,
}

/// A cable of an explicit topology: a link in each direction, complete.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cable {
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Bit rate in each direction.
    pub rate: Rate,
    /// Propagation delay in each direction.
    pub delay: Time,
    /// Queue at each end that is a switch.
    pub queue: Queue,
}

/// A class of cables, named after its upper end; `host` cables join a host and the switch above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Host to first switch, in every topology.
    Host,
    /// Fat tree: edge to aggregation. VL2: ToR to aggregation.
    Aggregation,
    /// Fat tree: aggregation to core.
    Core,
    /// Leaf–spine: leaf to spine.
    Spine,
    /// Dumbbell: between the two switches.
    Bottleneck,
    /// VL2: aggregation to intermediate.
    Intermediate,
    /// DCell: between two hosts.
    Server,
    /// Jellyfish: between two switches.
    Switch,
    /// Dragonfly: within a group.
    Local,
    /// Dragonfly: between two groups.
    Global,
}

/// The queue of a port.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// First in, first out; what does not fit is dropped.
    DropTail(Limit),
    /// Drop-tail that marks ECN-capable packets arriving at or above a threshold (DCTCP's K).
    ThresholdEcn {
        /// K: a packet that finds at least this much is marked (RFC 8257 section 3.1).
        #[serde(flatten, with = "mark_keys")]
        mark: Limit,
        /// The queue's limit, in the same unit as the mark.
        #[serde(flatten)]
        limit: Limit,
    },
    /// Random early detection, Floyd and Jacobson 1993, in packets.
    Red(Red),
    /// RFC 8033.
    Pie(Pie),
    /// RFC 8289.
    Codel(Codel),
    /// RFC 8290.
    FqCodel(FqCodel),
    /// RFC 9332.
    #[serde(rename = "dualpi2")]
    DualPi2(DualPi2),
}

impl Queue {
    /// Whether it decides at a packet's departure, and so holds what it queues: CoDel, FQ-CoDel and DualPI2.
    pub fn is_held(&self) -> bool {
        matches!(self, Queue::Codel(_) | Queue::FqCodel(_) | Queue::DualPi2(_))
    }
}

/// A queue's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Packets, the one being sent included; at least 1.
    Packets(u32),
    /// Bytes as `framing` counts them, the packet being sent included.
    Bytes(Bytes),
}

/// Writes a mark as `mark_packets` or `mark_bytes`.
mod mark_keys {
    use super::Limit;
    use serde::{Serializer, ser::SerializeMap};

    pub fn serialize<S: Serializer>(mark: &Limit, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(1))?;
        match mark {
            Limit::Packets(n) => map.serialize_entry("mark_packets", n)?,
            Limit::Bytes(n) => map.serialize_entry("mark_bytes", n)?,
        }
        map.end()
    }
}

/// Parameters of random early detection; thresholds in packets of average queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Red {
    /// Below: no drop. Default 5.
    pub min: f64,
    /// Above: every packet (unless `gentle`); more than `min`. Default 15.
    pub max: f64,
    /// Probability at `max`, more than 0. Default 10 %.
    pub max_probability: Percent,
    /// Weight of the newest sample in the average, more than 0 and at most 1. Default 0.002.
    pub weight: f64,
    /// Hard limit in packets, at least `max`. Default 100.
    pub packets: u32,
    /// Mark ECN-capable packets instead of dropping them (below the hard limit). Default false.
    pub ecn: bool,
    /// Between `max` and 2·`max` the probability rises to one instead of jumping. Default true.
    pub gentle: bool,
}

/// How a path is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// The first path that a breadth-first search finds: one core switch carries all.
    SinglePath,
    /// Among the shortest paths, by a hash of the flow. The default.
    Ecmp,
    /// The same, each next hop as often as the rate of its link says.
    WeightedEcmp,
    /// Over a switch that the flow's hash chooses among the highest. VL2's default.
    Valiant,
    /// Of a scale model, which no file asks for: the fat tree stands for one with switches of `k` ports, and flows meet as there.
    ScaledFatTree {
        /// Of the large tree.
        k: u32,
    },
}

/// Which bytes of a packet count on a link, and in a queue counted in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Ethernet header (14) and preamble, check sequence and gap (24) added to the IP packet. The default.
    Ethernet,
    /// The IP packet alone.
    Ip,
}

/// How the ports of a switch share its memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffer {
    /// Each port its own, as large as its queue's limit. The default.
    Private,
    /// One memory for all ports of a switch. The queue's own limit holds as well.
    Shared(SharedBuffer),
}

/// A switch's memory: a reserve for each port, and a pool of which a port may hold `alpha` times what is free (Choudhury and Hahne
/// 1998).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SharedBuffer {
    /// Memory of one switch.
    pub bytes: Bytes,
    /// Share of the pool's free part that a port may take, more than 0. Default 1.
    pub alpha: f64,
    /// The same for packets that are not ECN-capable. Default: `alpha`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha_not_ect: Option<f64>,
    /// Of each port alone. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Bytes>,
    /// Share of the pool that ports with more than an equal share leave free. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Percent>,
}

/// A failure of one link or of both links of a cable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Which direction or directions; written `"a->b"` or `"a-b"`.
    pub link: LinkRef,
    /// When it stops working; at most `duration`.
    pub at: Time,
    /// When it works again; never, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// Random loss on one link, or both of a cable: each packet independently, before the queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loss {
    /// Which direction or directions; written `"a->b"` or `"a-b"`.
    pub link: LinkRef,
    /// The share of packets.
    pub probability: Percent,
}

/// A link named by its ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkRef {
    /// Sending end.
    pub from: String,
    /// Receiving end.
    pub to: String,
    /// The opposite direction as well.
    pub both: bool,
}

impl std::fmt::Display for LinkRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", self.from, if self.both { "-" } else { "->" }, self.to)
    }
}

impl Serialize for LinkRef {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
