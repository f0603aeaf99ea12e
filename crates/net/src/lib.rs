//! The network between the hosts: [`Topology`], [`Router`], and [`LinkTable`] with its queue disciplines and switch
//! buffers.
//!
//! Nothing here reads a clock, does I/O or draws randomness other than from a given seed: the simulator drives it with
//! virtual time, the emulator with wall-clock time. A topology has the nodes and links, a router finds the links between a
//! pair of hosts, and the link table computes for each packet offered to a link when it leaves, or that it is dropped.
//!
//! ```
//! use net::{Ecn, LinkParams, LinkTable, Outcome, QueueSpec, Router, Routing, Topology};
//! use units::{Rate, Time};
//!
//! let params = LinkParams { rate: Rate::from_gbps(10), delay: Time::from_us(1), queue: QueueSpec::drop_tail(100) };
//! let topology = Topology::star(2, |_| params)?;
//! let router = Router::new(&topology, Routing::SinglePath);
//! let mut links = LinkTable::new(&topology, 1)?;
//!
//! let mut path = Vec::new();
//! router.path(topology.host(0), topology.host(1), 0, &mut path)?;
//! let outcome = links.offer(path[0], Time::ZERO, 1538, Ecn::NotEct);
//! // 1538 bytes of 800 ps each, then 1 us of propagation.
//! assert!(matches!(outcome, Outcome::Accepted { arrives, .. } if arrives == Time::from_ps(2_230_400)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod codel;
mod dualpi2;
mod ecn;
mod error;
mod fifo;
mod fq_codel;
mod link;
mod mix;
mod pie;
mod queue;
mod routing;
mod scheduler;
mod topology;
mod verdict;

pub use codel::CodelSpec;
pub use dualpi2::DualPi2Spec;
pub use ecn::Ecn;
pub use error::{NetError, NoPath};
pub use fifo::QueuedPacket;
pub use fq_codel::FqCodelSpec;
pub use link::hold::Departure;
pub use link::{LinkCounters, LinkTable, Outcome, QueueLength, Sent};
pub use mix::{SplitMix64, mix64};
pub use pie::PieSpec;
pub use queue::{Aqm, BufferSpec, Depth, Limit, QueueSpec, RedSpec, SharedSpec};
pub use routing::{Router, Routing, Way};
pub use scheduler::SchedulerSpec;
pub use topology::{
    Cable, Joined, LinkId, LinkParams, LinkSpec, LinkTier, Node, NodeId, NodeKind, Shape, Tier, Topology,
};
