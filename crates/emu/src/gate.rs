//! An enforcer at a node of the emulated network: the simulator's, with real packets.
//!
//! It is driven by the model's time, as the links are: the machine's lateness does not change what it does.

use crate::port::{FlowPacket, Head};
use enforcer::{Action, Annotated, Counters, Direction, End, Enforcer, Header, Packet as _, Record};
use net::{NodeId, Topology};
use packet_io::OwnedFrame;
use plan::{Enforcement, RECEIVER_PORT, SENDER_PORT, SENDER_PORTS};
use results::{EnforcerRow, Summary};
use tcp::Ecn;
use units::Time;

/// Ethernet's header.
const ETHERNET_BYTES: usize = 14;

/// An enforcer and where it is.
pub struct Gate {
    topology: Topology,
    enforcement: Enforcement,
    enforcer: Enforcer<Passing>,
    records: Vec<Record>,
}

/// A packet's position on its way.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// When it was read.
    pub sent: Time,
    /// The engine's description of it.
    pub head: Head,
    /// Number of its route, and index of its next link; one past the last: its host.
    pub route: u32,
    /// See `route`.
    pub hop: u16,
}

/// A packet at the enforcer: its bytes, and its position and description when it arrived.
pub type Passing = Annotated<OwnedFrame, Way>;

/// The position and description of a packet as it leaves.
pub fn leaving(passing: &Passing) -> Way {
    let way = passing.note;
    let Some(Header { segment, .. }) = passing.header() else { return way };
    let flow = way.head.flow.map(|flow| FlowPacket { payload: segment.len, ..flow });
    let ip_len = (passing.packet.frame_bytes() - ETHERNET_BYTES) as u16;
    let ecn = match segment.ecn {
        Ecn::NotEct => net::Ecn::NotEct,
        Ecn::Ect1 => net::Ecn::Ect1,
        Ecn::Ect0 => net::Ecn::Ect0,
        Ecn::Ce => net::Ecn::Ce,
    };
    Way { head: Head { ip_len, ecn, flow, ..way.head }, ..way }
}

impl Gate {
    /// An enforcer in the network `topology`.
    pub fn new(enforcement: Enforcement, topology: Topology) -> Gate {
        Gate { enforcer: enforcement.enforcer(), enforcement, topology, records: Vec::new() }
    }

    /// Whether it is at `node`.
    pub fn is_at(&self, node: NodeId) -> bool {
        self.enforcement.at == node
    }

    /// The nodes at both ends of a link.
    pub fn ends(&self, link: net::LinkId) -> [NodeId; 2] {
        let link = self.topology.link(link);
        [link.from, link.to]
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        self.enforcer.counters()
    }

    /// When [`Gate::on_timer`] is due.
    pub fn next_due(&self) -> Time {
        self.enforcer.poll_timeout()
    }

    /// A packet has arrived; returns what is forwarded of it at once.
    pub fn on_packet(&mut self, now: Time, passing: Passing) -> Option<Passing> {
        let Some(direction) = self.direction(&passing) else { return Some(passing) };
        let action = self.enforcer.on_packet(now, direction, passing);
        self.settle();
        match action {
            Action::Forward(passing) | Action::Rewritten(passing) => Some(passing),
            Action::Held | Action::Dropped => None,
        }
    }

    /// The time of [`Gate::next_due`] has come.
    pub fn on_timer(&mut self, now: Time) {
        self.enforcer.on_timer(now);
        self.settle();
    }

    /// The next packet that leaves.
    pub fn poll_transmit(&mut self) -> Option<Passing> {
        self.enforcer.poll_transmit().map(|(_, passing)| passing)
    }

    /// From the data sender to the receiver, or back: known for the scenario's flows; of another connection the server is the end that a
    /// rule names, and if rules name both, the end with the lower port.
    fn direction(&self, passing: &Passing) -> Option<Direction> {
        let head = &passing.note.head;
        let forward = if let Some(flow) = head.flow {
            flow.forward
        } else {
            let Some(Header { source, destination, .. }) = passing.header() else {
                // passes and is counted, whatever its direction
                return Some(Direction::Out);
            };
            let out = self.enforcer.is_for(source, destination);
            let back = self.enforcer.is_for(destination, source);
            if out && back { source.port < destination.port } else { out }
        };
        let server = if forward { head.src } else { head.dst };
        self.enforcement.direction(&self.topology, server, forward)
    }

    fn settle(&mut self) {
        while let Some(record) = self.enforcer.poll_record() {
            self.records.push(record);
        }
    }

    /// What it has done up to `now`, the run having had `flows` flows of `entries` traffic entries: counters into `summary`, and a row
    /// for each flow.
    pub fn results(&self, now: Time, (flows, entries): (usize, usize), summary: &mut Summary) -> Vec<EnforcerRow> {
        let is_entry = |port: u16| port.checked_sub(RECEIVER_PORT).is_some_and(|entry| usize::from(entry) < entries);
        // after port numbers have wrapped around, several flows share one
        let known = flows as u64 <= u64::from(SENDER_PORTS);
        let number = |server: End| server.port.checked_sub(SENDER_PORT).map(u32::from);
        let flow_of = |record: &Record| {
            number(record.server).filter(|flow| known && is_entry(record.client.port) && (*flow as usize) < flows)
        };
        let ended = self.records.iter().map(|record| (record.clone(), flow_of(record))).collect();
        plan::summarize((&self.enforcement, &self.enforcer, now), &self.topology, ended, flow_of, summary)
    }
}
