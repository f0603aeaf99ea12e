//! What a run is at the moment, for whoever watches it. Nothing here changes it.

use crate::Simulation;
use crate::flows::sender;
use crate::record;
use net::{LinkId, LinkTable, Topology};
use results::CwndSample;
use units::Time;

/// A flow's ends, and how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnds<'a> {
    /// Number of the host that sends.
    pub src: u32,
    /// Number of the host that receives.
    pub dst: u32,
    /// The sender's algorithm.
    pub algorithm: &'a str,
    /// The name of its traffic entry.
    pub entry: &'a str,
    /// Has its last byte arrived?
    pub ended: bool,
}

/// Sums over all links since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets accepted.
    pub packet_hops: u64,
    /// Packets dropped or lost.
    pub drops: u64,
    /// Packets marked congestion-experienced.
    pub marks: u64,
}

impl Simulation {
    /// The simulated time.
    pub fn now(&self) -> Time {
        self.core.now()
    }

    /// The network.
    pub fn topology(&self) -> &Topology {
        &self.traffic.flows.topology
    }

    /// Its links: queues and counters.
    pub fn links(&self) -> &LinkTable {
        &self.core.fabric.links
    }

    /// Sums over the links of the network.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { packet_hops: self.packet_hops(), ..Totals::default() };
        for link in (0..self.topology().links().len() as u32).map(LinkId) {
            let counters = self.links().counters(link);
            totals.drops += counters.dropped + counters.dropped_by_failure();
            totals.marks += counters.marked;
        }
        totals
    }

    /// Number of flows that have been opened.
    pub fn flows(&self) -> usize {
        self.traffic.flows.list.len()
    }

    /// The ends of a flow; the first one is 0.
    pub fn flow(&self, flow: usize) -> FlowEnds<'_> {
        let of = &self.traffic.flows.list[flow];
        let socket = &self.core.sockets[sender(flow as u32) as usize];
        let is_udp = self.core.datagrams.contains_key(&sender(flow as u32));
        FlowEnds {
            src: of.src,
            dst: of.dst,
            algorithm: if is_udp { record::UDP } else { socket.tcp.config().algorithm.name() },
            entry: self.traffic.label(of),
            ended: of.end != Time::NEVER,
        }
    }

    /// A flow's window now, as [`results::RunResults::cwnd`] has it; `None` while it is not established.
    pub fn window(&self, flow: usize) -> Option<CwndSample> {
        record::cwnd_sample(&self.core, flow, self.now())
    }
}
