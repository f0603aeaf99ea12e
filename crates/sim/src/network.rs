//! The network of a run, whole or in parts: what measuring asks of either.

use crate::core::{Core, Socket};
use crate::flows::{receiver, sender};
use crate::managed::Still;
use crate::parts::Parts;
use crate::traffic::Traffic;
use net::{LinkCounters, LinkId, QueueLength, Topology};
use plan::{Control, Links};
use units::Time;

/// The hosts and all between them.
pub enum Network {
    /// On one core.
    Whole(Box<Core>),
    /// On as many as there are threads.
    Parts(Box<Parts>),
}

impl Network {
    pub fn now(&self) -> Time {
        match self {
            Network::Whole(core) => core.now(),
            Network::Parts(parts) => parts.now(),
        }
    }

    /// Handles every event before `end`.
    pub fn run_to(&mut self, end: Time, traffic: &mut Traffic) {
        match self {
            Network::Whole(core) => core.run_to(end, traffic),
            Network::Parts(parts) => parts.run_to(end, traffic),
        }
    }

    /// A link fails at `at`, or works again.
    pub fn fail(&mut self, link: LinkId, at: Time, fails: bool) {
        match self {
            Network::Whole(core) if fails => core.fabric.links.fail(link, at),
            Network::Whole(core) => core.fabric.links.restore(link),
            Network::Parts(parts) => parts.fail(link, at, fails),
        }
    }

    /// Gives every open flow whose path has a link that is down a new path, if there is one.
    pub fn reroute(&mut self, traffic: &mut Traffic) {
        match self {
            Network::Whole(core) => traffic.reroute(core),
            Network::Parts(parts) => parts.reroute(traffic),
        }
    }

    /// The Oracle's turn.
    pub fn take_turn(&mut self, control: &mut Control, now: Time, traffic: &mut Traffic) {
        let Network::Whole(core) = self else { unreachable!("a network with a policy is whole") };
        control.on_time(now, &mut Still { core, traffic });
    }

    /// Number of flows that have been opened.
    pub fn flows(&self) -> usize {
        match self {
            Network::Whole(core) => core.sockets.len() / 2,
            Network::Parts(parts) => parts.flows(),
        }
    }

    /// Brings what `traffic` knows of the flows up to date.
    pub fn settle(&mut self, traffic: &mut Traffic) {
        let Network::Parts(parts) = self else { return };
        let flows = &mut traffic.flows;
        flows.list.truncate(parts.flows());
        for (flow, known) in flows.list.iter_mut().enumerate() {
            known.bytes = parts.bytes(sender(flow as u32));
        }
        if let Some(messages) = &mut flows.messages {
            *messages = parts.take_messages();
        }
    }

    fn place(&self, socket: u32) -> (&Core, u32) {
        match self {
            Network::Whole(core) => (core, socket),
            Network::Parts(parts) => parts.place(socket),
        }
    }

    /// A socket of a flow that has been opened.
    pub fn socket(&self, number: u32) -> &Socket {
        let (core, number) = self.place(number);
        &core.sockets[number as usize]
    }

    /// The sum of the delays of what `socket` has received, if they are measured.
    pub fn delay(&self, socket: u32) -> Time {
        let (core, number) = self.place(socket);
        core.delays.get(number as usize).copied().unwrap_or_default()
    }

    /// Datagrams that the sender of `flow` has sent; none if it is one of TCP.
    pub fn datagrams(&self, flow: u32) -> Option<u64> {
        let (core, number) = self.place(sender(flow));
        core.datagrams.get(&number).copied()
    }

    /// The ends of a flow: its sender, then its receiver.
    pub fn ends(&self, flow: u32) -> [&Socket; 2] {
        [sender(flow), receiver(flow)].map(|socket| self.socket(socket))
    }

    /// Whether `link` works.
    pub fn is_up(&self, link: LinkId) -> bool {
        match self {
            Network::Whole(core) => core.fabric.links.is_up(link),
            Network::Parts(parts) => parts.is_up(link),
        }
    }

    /// Packets under way on each link.
    pub fn in_flight(&self) -> Vec<u64> {
        match self {
            Network::Whole(core) => core.in_flight(),
            Network::Parts(parts) => parts.in_flight(),
        }
    }

    /// Packets that the links of `topology` have accepted.
    pub fn packet_hops(&self, topology: &Topology) -> u64 {
        (0..topology.links().len() as u32).map(|link| self.accepted(LinkId(link))).sum()
    }

    fn accepted(&self, link: LinkId) -> u64 {
        match self {
            Network::Whole(core) => core.fabric.links.counters(link).accepted,
            Network::Parts(parts) => parts.accepted(link),
        }
    }
}

impl Links for Network {
    fn counters(&self, link: LinkId) -> LinkCounters {
        match self {
            Network::Whole(core) => core.fabric.links.counters(link),
            Network::Parts(parts) => parts.counters(link),
        }
    }

    fn queue_len(&self, link: LinkId, at: Time) -> QueueLength {
        match self {
            Network::Whole(core) => core.fabric.links.queue_len(link, at),
            Network::Parts(parts) => parts.queue_len(link, at),
        }
    }
}
