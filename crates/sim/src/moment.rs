//! What a run is at the moment, for whoever watches it. Nothing here changes it.

use crate::Simulation;
use crate::flows::sender;
use crate::record;
use net::{LinkCounters, LinkId, QueueLength, Topology};
use plan::Links;
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
        self.network.now()
    }

    /// The network.
    pub fn topology(&self) -> &Topology {
        &self.traffic.flows.topology
    }

    /// What a link has done.
    pub fn counters(&self, link: LinkId) -> LinkCounters {
        self.network.counters(link)
    }

    /// What is queued in front of a link.
    pub fn queue_len(&self, link: LinkId) -> QueueLength {
        self.network.queue_len(link, self.now())
    }

    /// Whether a link works.
    pub fn is_up(&self, link: LinkId) -> bool {
        self.network.is_up(link)
    }

    /// Sums over the links of the network.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { packet_hops: self.packet_hops(), ..Totals::default() };
        for link in (0..self.topology().links().len() as u32).map(LinkId) {
            let counters = self.counters(link);
            totals.drops += counters.dropped + counters.dropped_by_failure();
            totals.marks += counters.marked;
        }
        totals
    }

    /// Number of flows that have been opened.
    pub fn flows(&self) -> usize {
        self.network.flows()
    }

    /// The ends of a flow; the first one is 0.
    pub fn flow(&self, flow: usize) -> FlowEnds<'_> {
        let of = &self.traffic.flows.list[flow];
        let socket = self.network.socket(sender(flow as u32));
        let is_udp = self.network.datagrams(flow as u32).is_some();
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
        record::cwnd_sample(&self.network, flow, self.now())
    }
}
