//! What can be wrong with a network, with the names of its description.

use crate::NodeId;

/// The most nodes that a topology may have.
pub const NODES_MAX: u64 = 1 << 20;

/// The most cables: more than the largest fat tree of [`NODES_MAX`] nodes has.
pub const CABLES_MAX: u64 = 1 << 22;

/// Why a topology cannot be built or its links cannot be set up.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NetError {
    /// A fat tree's number of ports per switch is odd or zero.
    #[error("a fat tree needs an even number of ports per switch, at least 2; k is {0}")]
    FatTreePorts(u64),
    /// A count that must be one or more is zero.
    #[error("the number of {0} is zero; there must be at least one")]
    Zero(&'static str),
    /// More nodes than [`NODES_MAX`].
    #[error("the topology would have {0} nodes; the most is {NODES_MAX}")]
    TooManyNodes(u128),
    /// More cables than [`CABLES_MAX`].
    #[error("the topology would have {0} cables; the most is {CABLES_MAX}")]
    TooManyCables(u128),
    /// Numbers that make no network of a [`Shape`](crate::Shape).
    #[error("{0}")]
    Shape(String),
    /// A cable names a node that does not exist.
    #[error("a cable ends at `{0}`, which is not among the nodes")]
    UnknownNode(String),
    /// Two nodes have one name.
    #[error("two nodes are called `{0}`")]
    DuplicateName(String),
    /// A cable from a node to itself.
    #[error("a cable connects `{0}` to itself")]
    Loop(String),
    /// Two cables between one pair of nodes.
    #[error("two cables connect `{0}` and `{1}`; describe them as one with the sum of their rates")]
    ParallelCables(String, String),
    /// A host with no cable, or with several.
    #[error("host `{name}` has {cables} cables; a host has exactly one")]
    HostCables {
        /// The host.
        name: String,
        /// How many it has.
        cables: usize,
    },
    /// A node that others cannot reach.
    #[error("there is no path from `{0}` to `{1}`; every node must reach every other")]
    Disconnected(String, String),
    /// A link that could never send.
    #[error("link {0}: its rate is zero")]
    ZeroRate(String),
    /// A queue that could never hold a packet.
    #[error("link {0}: its queue limit is zero; the packet being sent counts, so the least is one packet")]
    ZeroLimit(String),
    /// Random early detection with impossible parameters.
    #[error("link {link}: {why}")]
    Red {
        /// The link.
        link: String,
        /// What is wrong and what would be right.
        why: &'static str,
    },
    /// Another discipline with impossible parameters.
    #[error("link {link}: {why}")]
    Queue {
        /// The link.
        link: String,
        /// What is wrong and what would be right.
        why: &'static str,
    },
    /// A shared buffer with impossible parameters.
    #[error("switch {switch}: {why}")]
    Buffer {
        /// The switch.
        switch: String,
        /// What is wrong and what would be right.
        why: &'static str,
    },
}

/// No chain of working links leads from one host to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no path from node {} to node {}", src.0, dst.0)]
pub struct NoPath {
    /// Where the path would start.
    pub src: NodeId,
    /// Where it would end.
    pub dst: NodeId,
}
