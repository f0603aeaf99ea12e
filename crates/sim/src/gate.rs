//! The place of an enforcer on the routes of flows.
//!
//! On a route it stands as a link that takes nothing ([`net::LinkTable::add_closed`]), so that packets of other flows, and networks
//! without an enforcer, are not affected: packets offered to that link come here. Packets that leave continue on the
//! same route, to the next link or, at a receiver's host, to its socket.

use crate::calendar::{Calendar, Event, kind};
use crate::requests::Opened;
use enforcer::{Action, Annotated, Direction, End, Enforcer, Record, Simulated};
use net::{LinkId, Topology};
use plan::{Enforcement, RECEIVER_PORT, address, sender_port};
use std::collections::BTreeMap;
use std::net::IpAddr;
use tcp::Segment;
use units::Time;

/// Where a packet at the enforcer is on its route, and when it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    pub place: u32,
    pub sent: Time,
}

/// A packet at the enforcer.
pub type Passing = Annotated<Simulated, Position>;

/// An enforcer, and the flows that pass it.
pub struct Gate {
    /// What stands for it on routes.
    link: LinkId,
    enforcement: Enforcement,
    enforcer: Enforcer<Passing>,
    /// By flow: the ends of the data's sender and receiver.
    ends: BTreeMap<u32, [End; 2]>,
    /// The last flow between two ends.
    flows: BTreeMap<[End; 2], u32>,
    /// When it is next called by the clock.
    timer_at: Time,
    /// Flows that have ended.
    records: Vec<(Record, Option<u32>)>,
}

impl Gate {
    /// An enforcer that stands as `link` on routes.
    pub fn new(enforcement: Enforcement, link: LinkId) -> Gate {
        Gate {
            link,
            enforcer: enforcement.enforcer(),
            enforcement,
            ends: BTreeMap::new(),
            flows: BTreeMap::new(),
            timer_at: Time::NEVER,
            records: Vec::new(),
        }
    }

    pub fn link(&self) -> LinkId {
        self.link
    }

    /// Puts itself on the routes of a new flow, of its data and of its acknowledgments, if both pass it.
    pub fn stand_on(&mut self, topology: &Topology, opened: &mut Opened) {
        let (src, dst) = (opened.pair.src.0, opened.pair.dst.0);
        let places = [0, 1].map(|way| self.place(topology, src, way == 0, &opened.routes[way]));
        let [Some(out), Some(back)] = places else { return };
        opened.routes[0].insert(out, self.link);
        opened.routes[1].insert(back, self.link);
        let end = |host: u32, port: u16| End::new(IpAddr::V4(address(host)), port);
        let server = end(src, sender_port(opened.flow));
        let ends = [server, end(dst, RECEIVER_PORT + opened.pair.entry as u16)];
        self.ends.insert(opened.flow, ends);
        self.flows.insert(ends, opened.flow);
    }

    /// The same for one way of a flow that takes another.
    pub fn stand_on_again(&self, topology: &Topology, flow: u32, (src, forward): (u32, bool), route: &mut Vec<LinkId>) {
        if let Some(place) = self.place(topology, src, forward, route)
            && self.ends.contains_key(&flow)
        {
            route.insert(place, self.link);
        }
    }

    /// Where on a route of links it has its place.
    fn place(&self, topology: &Topology, src: u32, forward: bool, route: &[LinkId]) -> Option<usize> {
        self.enforcement.direction(topology, src, forward)?;
        let at = self.enforcement.at;
        // another enforcer's place is a link, but none of the topology
        let link = |id: &LinkId| topology.links().get(id.index());
        if route.iter().find_map(link).is_some_and(|first| first.from == at) {
            return Some(0);
        }
        route.iter().position(|id| link(id).is_some_and(|link| link.to == at)).map(|before| before + 1)
    }

    /// A segment comes to it on the way to `socket`, at `place` of its route, and was sent at `sent`; what is forwarded at once.
    pub fn on_segment(&mut self, now: Time, socket: u32, segment: Segment, place: u32, sent: Time) -> Option<Passing> {
        // a sender's socket is even, and the peer of the receiver's
        let (flow, forward) = (socket / 2, socket % 2 == 1);
        let [server, client] = self.ends[&flow];
        let (direction, source, destination) =
            if forward { (Direction::Out, server, client) } else { (Direction::In, client, server) };
        let packet = Simulated { source, destination, dscp: 0, corrupt: false, segment };
        match self.enforcer.on_packet(now, direction, Annotated { packet, note: Position { place, sent } }) {
            Action::Forward(passing) | Action::Rewritten(passing) => Some(passing),
            Action::Held | Action::Dropped => None,
        }
    }

    /// The clock has come to what the enforcer waits for, or waited for once.
    pub fn on_timer(&mut self, now: Time) {
        if self.timer_at == now {
            self.timer_at = Time::NEVER;
            self.enforcer.on_timer(now);
        }
    }

    /// What it has to send.
    pub fn poll_transmit(&mut self) -> Option<Passing> {
        self.enforcer.poll_transmit().map(|(_, passing)| passing)
    }

    /// What it has done, its clock showing `now`: counters into `summary`, and a row for each flow.
    pub fn results(self, now: Time, topology: &Topology, summary: &mut results::Summary) -> Vec<results::EnforcerRow> {
        let flow_of = |record: &Record| self.flows.get(&[record.server, record.client]).copied();
        plan::summarize((&self.enforcement, &self.enforcer, now), topology, self.records, flow_of, summary)
    }

    /// Sees to its next call by the clock, `index` being its number, and takes the records of flows that have ended.
    pub fn settle(&mut self, now: Time, index: usize, calendar: &mut Calendar) {
        let at = self.enforcer.poll_timeout().max(now);
        if at < self.timer_at {
            self.timer_at = at;
            calendar.push(at, Event::host(kind::GATE, 0, index as u32));
        }
        while let Some(record) = self.enforcer.poll_record() {
            let flow = self.flows.get(&[record.server, record.client]).copied();
            self.records.push((record, flow));
        }
    }
}
