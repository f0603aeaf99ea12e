//! The ideal completion time of a flow: what slowdown is measured against (pFabric, SIGCOMM 2013; HPCC, SIGCOMM 2019).

#[cfg(test)]
mod tests;

use crate::{FlowName, forwarding_delay, framing_bytes, routing};
use net::{LinkId, NodeId, Router, Routing, Topology};
use scenario::{Connections, Scenario, Tcp, TrafficKind, Workload};
use units::Time;

/// The scenario's part of its flows' ideal completion times.
///
/// The ideal flow has an idle path to itself. It opens the connection with a SYN and a SYN-ACK, then its packets leave the
/// sender back to back, and each link forwards a packet when it has all of it. Windows, ACKs and the receiver cost
/// nothing, so no completion time is shorter. The path is the one that routing gives while all links are up; of a flow that is
/// spread over several, one of them.
pub struct Ideal {
    routing: Routing,
    forwarding_delay: Time,
    /// By traffic entry: its name.
    names: Vec<String>,
    /// By traffic entry: each of its flows is one transfer, of a size that is known when the flow opens.
    one_transfer: Vec<bool>,
    packets: Packets,
}

/// [`Ideal`] on the scenario's network.
pub struct IdealTimes<'a> {
    ideal: &'a Ideal,
    topology: &'a Topology,
    /// By flow.
    names: Vec<FlowName>,
    router: Router,
    path: Vec<LinkId>,
}

/// A flow that sends a number of bytes and ends.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The traffic entry that opened it.
    pub entry: u32,
    /// Its number.
    pub flow: u32,
    /// Sending and receiving host.
    pub hosts: (NodeId, NodeId),
    /// Application bytes.
    pub bytes: u64,
}

/// Bytes of packets on the wire.
#[derive(Clone, Copy)]
struct Packets {
    /// SYN and SYN-ACK, framing included.
    syn: u64,
    /// Headers of a data packet, framing included.
    headers: u64,
    /// Payload of a full packet.
    mss: u64,
}

impl Ideal {
    /// Of `scenario`.
    pub fn of(scenario: &Scenario) -> Ideal {
        Ideal {
            routing: routing(scenario),
            forwarding_delay: forwarding_delay(scenario),
            names: scenario.traffic.iter().map(|entry| entry.name.clone()).collect(),
            one_transfer: scenario.traffic.iter().map(|entry| is_one_transfer(&entry.kind)).collect(),
            packets: Packets::of(&scenario.tcp, framing_bytes(scenario)),
        }
    }

    /// On the scenario's network, all links up. `flows` has the entry of each flow, in the order of their numbers.
    pub fn on<'a>(&'a self, topology: &'a Topology, flows: impl Iterator<Item = u32>) -> IdealTimes<'a> {
        let mut opened = vec![0; self.names.len()];
        let name = |entry: u32| {
            let number = &mut opened[entry as usize];
            *number += 1;
            FlowName::new(&self.names[entry as usize], *number - 1)
        };
        let names = flows.map(name).collect();
        IdealTimes { ideal: self, topology, names, router: Router::new(topology, self.routing), path: Vec::new() }
    }
}

impl IdealTimes<'_> {
    /// The ideal completion time, nanoseconds, rounded down so that a slowdown is at least 1. None for a flow whose entry has
    /// no size for it, or sends several messages on a connection.
    pub fn fct_ns(&mut self, transfer: Transfer) -> Option<u64> {
        let Transfer { entry, flow, hosts: (src, dst), bytes } = transfer;
        if bytes == 0 || !self.ideal.one_transfer[entry as usize] {
            return None;
        }
        let Packets { syn, headers, mss } = self.ideal.packets;
        let count = bytes.div_ceil(mss);
        let last = headers + bytes - (count - 1) * mss;
        let full = headers + mss;
        let name = self.names[flow as usize];
        let there = self.links(src, dst, name.path_hash(true))?;
        let (syn_there, data) = (there.of_one(syn), there.of_burst(count, full, last));
        let syn_back = self.links(dst, src, name.path_hash(false))?.of_one(syn);
        u64::try_from((syn_there + syn_back + data) / 1000).ok()
    }

    /// The path of a direction of a flow.
    fn links(&mut self, from: NodeId, to: NodeId, hash: u32) -> Option<IdlePath<'_>> {
        self.router.path(from, to, hash, &mut self.path).ok()?;
        let forwarding_delay = self.ideal.forwarding_delay;
        Some(IdlePath { topology: self.topology, forwarding_delay, links: &self.path })
    }
}

/// Links that carry nothing else. Times are picoseconds.
struct IdlePath<'a> {
    topology: &'a Topology,
    /// In each server that forwards.
    forwarding_delay: Time,
    links: &'a [LinkId],
}

impl IdlePath<'_> {
    fn propagation(&self) -> u128 {
        let of_links: u128 = self.links.iter().map(|link| u128::from(self.topology.link(*link).delay.as_ps())).sum();
        let is_host = |link: &&LinkId| self.topology.link(**link).from.index() < self.topology.n_hosts();
        let servers = self.links.iter().skip(1).filter(is_host).count() as u128;
        of_links + servers * u128::from(self.forwarding_delay.as_ps())
    }

    /// Serialization of `bytes`, link by link.
    fn serialization(&self, bytes: u64) -> impl DoubleEndedIterator<Item = u128> + Clone {
        self.links.iter().map(move |link| u128::from(self.topology.link(*link).rate.serialization(bytes).as_ps()))
    }

    /// From the first bit sent of a packet to its last bit received.
    fn of_one(&self, bytes: u64) -> u128 {
        self.propagation() + self.serialization(bytes).sum::<u128>()
    }

    /// From the first bit sent of `count` packets to the last bit received: all have `full` bytes but the last, which has `last`.
    ///
    /// A packet begins on a link when it has arrived there and its predecessor has left. So the last packet arrives after the
    /// longest chain of serializations: of the first packet up to some link k, of each further full packet on the slowest link up
    /// to k, and of the last packet from k on. That is
    /// max over k of (sum of full/rate up to k) + (count - 2) (max of full/rate up to k) + (sum of last/rate from k).
    fn of_burst(&self, count: u64, full: u64, last: u64) -> u128 {
        if count == 1 {
            return self.of_one(last);
        }
        let (mut before, mut slowest, mut longest) = (0, 0, 0);
        let mut from_here: u128 = self.serialization(last).sum();
        for (of_full, of_last) in self.serialization(full).zip(self.serialization(last)) {
            before += of_full;
            slowest = of_full.max(slowest);
            longest = longest.max(before + u128::from(count - 2) * slowest + from_here);
            from_here -= of_last;
        }
        self.propagation() + longest
    }
}

impl Packets {
    fn of(tcp: &Tcp, framing: u32) -> Packets {
        const IP_AND_TCP: u32 = 40;
        const MSS_OPTION: u32 = 4;
        const WINDOW_SCALE: u32 = 4;
        const TIMESTAMPS: u32 = 12;
        // with timestamps it takes the place of their padding
        const SACK_PERMITTED: u32 = 4;
        let scale = if tcp.window_scaling { WINDOW_SCALE } else { 0 };
        let rest = match (tcp.timestamps, tcp.sack) {
            (true, _) => TIMESTAMPS,
            (false, true) => SACK_PERMITTED,
            (false, false) => 0,
        };
        Packets {
            syn: u64::from(framing + IP_AND_TCP + MSS_OPTION + scale + rest),
            headers: u64::from(framing + tcp.mtu() - tcp.mss),
            mss: u64::from(tcp.mss),
        }
    }
}

/// Whether each flow is one transfer of a size that is known when it opens.
fn is_one_transfer(kind: &TrafficKind) -> bool {
    let sized = |workload: &Workload| matches!(workload, Workload::Bulk { bytes: Some(_) });
    match kind {
        TrafficKind::RandomPairs { workload, .. } | TrafficKind::Permutation { workload, .. } => sized(workload),
        TrafficKind::Bulk { bytes, .. } => bytes.is_some(),
        TrafficKind::AllToAll(collective) | TrafficKind::Exchange(collective) => {
            collective.connections == Connections::New
        }
        TrafficKind::Job(job) => job.connections == Connections::New,
        TrafficKind::Poisson { .. } | TrafficKind::Trace { .. } => true,
        TrafficKind::Incast { .. } | TrafficKind::Udp { .. } | TrafficKind::Idle { .. } => false,
    }
}
