//! [`Topology`]: what nodes there are, and which one-way links connect them.

mod build;
mod shape;

use crate::{BufferSpec, QueueSpec};
use units::{Rate, Time};

pub use build::Cable;
pub(crate) use shape::dcell_servers;
pub use shape::{Joined, Shape};

/// A node: its index among all nodes. Hosts come first, so a host's number is also its index among hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A one-way link: its index among all links. The other direction of its cable is its neighbour, `id ^ 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl NodeId {
    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The other direction of the same cable.
    #[inline]
    #[must_use]
    pub const fn reverse(self) -> LinkId {
        LinkId(self.0 ^ 1)
    }
}

/// Whether a node is an end of connections or forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// An end of connections. It forwards nothing, but in a network where servers forward ([`Shape::servers_forward`]).
    Host,
    /// Forwards what it receives.
    Switch,
}

/// A node's place in its kind of network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// A host of any network.
    Host,
    /// Fat tree: the switch that hosts are attached to.
    Edge,
    /// Fat tree: between edge and core. VL2: between ToR and intermediate switches.
    Aggregation,
    /// Fat tree: between the pods.
    Core,
    /// Leaf-spine: the switch that hosts are attached to.
    Leaf,
    /// Leaf-spine: between the leaves.
    Spine,
    /// VL2: the switch that hosts are attached to.
    Tor,
    /// VL2: what flows are spread over.
    Intermediate,
    /// BCube: a switch of this level.
    Level(u8),
    /// A switch of any other network.
    Switch,
}

/// Which part of a network a link belongs to, so that rates and queues can be given per part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkTier {
    /// Out of a host: its own interface.
    FromHost,
    /// From a switch down to a host.
    ToHost,
    /// Fat tree, between edge and aggregation, either direction; VL2, between ToR and aggregation.
    EdgeAggregation,
    /// Fat tree, between aggregation and core, either direction.
    AggregationCore,
    /// Leaf-spine, either direction.
    LeafSpine,
    /// Dumbbell: the link between its two switches, either direction.
    Bottleneck,
    /// VL2, between aggregation and intermediate, either direction.
    AggregationIntermediate,
    /// DCell, between two hosts, either direction.
    HostToHost,
    /// Dragonfly, within a group.
    Local,
    /// Dragonfly, between groups.
    Global,
    /// Between switches of a Jellyfish, or of a network given node by node.
    Switches,
}

/// A link's properties.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkParams {
    /// Bits per second on the wire.
    pub rate: Rate,
    /// Propagation from the near to the far end.
    pub delay: Time,
    /// The queue in front of it.
    pub queue: QueueSpec,
}

/// A node of a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Unique.
    pub name: String,
    /// Host or switch.
    pub kind: NodeKind,
    /// Its place.
    pub tier: Tier,
    /// How the ports of a switch share its memory.
    pub buffer: BufferSpec,
}

/// A one-way link of a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSpec {
    /// Its near end.
    pub from: NodeId,
    /// Its far end.
    pub to: NodeId,
    /// Bits per second on the wire.
    pub rate: Rate,
    /// Propagation.
    pub delay: Time,
    /// The queue in front of it.
    pub queue: QueueSpec,
    /// Its place.
    pub tier: LinkTier,
}

/// A network: hosts, switches, and the links between them, all connected. A host has one cable, but where servers forward.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    nodes: Vec<Node>,
    n_hosts: usize,
    shape: Option<Shape>,
    links: Vec<LinkSpec>,
    /// Links out of node `i`, in their order: `out[first_out[i]..first_out[i + 1]]`.
    out: Vec<LinkId>,
    first_out: Vec<u32>,
}

impl Topology {
    /// All nodes, hosts first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All links; those of one cable are next to each other.
    pub fn links(&self) -> &[LinkSpec] {
        &self.links
    }

    /// How many of the nodes are hosts.
    pub fn n_hosts(&self) -> usize {
        self.n_hosts
    }

    /// Host number `i`, counted from 0.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn host(&self, i: usize) -> NodeId {
        assert!(i < self.n_hosts, "host {i} of {}", self.n_hosts);
        NodeId(i as u32)
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// A link.
    pub fn link(&self, id: LinkId) -> &LinkSpec {
        &self.links[id.index()]
    }

    /// The links out of `node`, in their order.
    pub fn out_links(&self, node: NodeId) -> &[LinkId] {
        let (first, end) = (self.first_out[node.index()], self.first_out[node.index() + 1]);
        &self.out[first as usize..end as usize]
    }

    /// Its shape, if it was made from one.
    pub fn shape(&self) -> Option<Shape> {
        self.shape
    }

    /// Whether hosts forward, and may have several interfaces.
    pub fn servers_forward(&self) -> bool {
        self.shape.is_some_and(|shape| shape.servers_forward())
    }

    /// Bits per second of all interfaces of a host.
    pub fn host_rate(&self, host: NodeId) -> u64 {
        self.out_links(host).iter().map(|link| self.link(*link).rate.as_bps()).sum()
    }

    /// The link out of a host to its switch: its interface, or the first of several. Which of several a packet takes, its
    /// route says.
    ///
    /// # Panics
    /// If `host` is a switch.
    pub fn nic(&self, host: NodeId) -> LinkId {
        assert!(host.index() < self.n_hosts, "{} is not a host", self.nodes[host.index()].name);
        self.out_links(host)[0]
    }

    /// `"a->b"`.
    pub fn link_name(&self, id: LinkId) -> String {
        let link = self.link(id);
        format!("{}->{}", self.node(link.from).name, self.node(link.to).name)
    }

    /// The node called `name`; looks at all of them.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(|i| NodeId(i as u32))
    }

    /// The link called `name` (`"a->b"`).
    pub fn find_link(&self, name: &str) -> Option<LinkId> {
        let (from, to) = name.split_once("->")?;
        let (from, to) = (self.find_node(from)?, self.find_node(to)?);
        self.out_links(from).iter().copied().find(|id| self.link(*id).to == to)
    }

    /// Gives every switch this kind of buffer.
    pub fn set_switch_buffers(&mut self, buffer: BufferSpec) {
        for node in &mut self.nodes[self.n_hosts..] {
            node.buffer = buffer;
        }
    }

    /// Number of nodes by tier, for a description of the network.
    pub fn count(&self, tier: Tier) -> usize {
        self.nodes.iter().filter(|node| node.tier == tier).count()
    }
}
