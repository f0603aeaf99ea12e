//! The links with the packets on them: what happens between two hosts.

use crate::calendar::{Calendar, Event, kind};
use crate::gate::{Gate, Passing};
use crate::packets::Packets;
use crate::parts::{Crossing, Outbox};
use net::{Ecn, LinkId, LinkTable, Outcome, QueuedPacket, Sent, mix64};
use units::Time;

/// How many events ahead memory is prefetched.
const AHEAD: usize = 8;
/// Networks of so many links are not near the first cache.
const MANY_LINKS: usize = 1000;
/// Nor are routes of so many entries.
const MANY_HOPS: usize = 16_384;

/// Links, packets and what is to happen to them.
pub struct Fabric {
    pub links: LinkTable,
    pub packets: Packets,
    pub calendar: Calendar,
    pub routes: Routes,
    /// Bytes that framing adds to an IP packet.
    pub framing: u32,
    /// The enforcers; one that handles a packet is taken out meanwhile.
    pub gates: Vec<Option<Box<Gate>>>,
    /// Tokens of packets that a link has just dropped.
    pub dropped: Vec<u64>,
    /// Packets that have left for another part of the network; none if this is all of it.
    pub outbox: Option<Outbox<Crossing>>,
}

impl Fabric {
    /// The packets at switches among `events`, sorted, of the open bucket.
    pub fn walk(&mut self, events: &[Event]) {
        // a function each, because each is a tight loop; in a whole network no hop asks whether its packet leaves
        if self.outbox.is_some() {
            self.walk_far::<true>(events);
        } else if self.links.len() < MANY_LINKS && self.routes.0.len() < MANY_HOPS {
            self.walk_near(events);
        } else {
            self.walk_far::<false>(events);
        }
    }

    /// Where all is near the first cache, and prefetching costs more than it gives.
    #[inline(never)]
    fn walk_near(&mut self, events: &[Event]) {
        let start = self.calendar.start();
        for &event in events {
            self.forward_along::<false>(self.routes.hop(event.place()), event.time(start), event);
        }
    }

    /// Elsewhere, in a network that is, or is not, a part of a larger one.
    #[inline(never)]
    fn walk_far<const PART: bool>(&mut self, events: &[Event]) {
        let start = self.calendar.start();
        // the hops of the events to come, which are looked up once: for prefetching now, and for when they happen
        let mut hops = [Hops::default(); AHEAD];
        for (hops, event) in hops.iter_mut().zip(events) {
            *hops = self.ask_for(event);
        }
        for (i, &event) in events.iter().enumerate() {
            let hop = &mut hops[i % AHEAD];
            let now = std::mem::replace(hop, events.get(i + AHEAD).map_or(*hop, |soon| self.ask_for(soon)));
            self.forward_along::<PART>(now, event.time(start), event);
        }
    }

    /// Prefetches what `event` touches; returns its hops.
    #[inline]
    fn ask_for(&self, event: &Event) -> Hops {
        let hops = self.routes.hop(event.place());
        self.links.prefetch_far(hops[0].link());
        self.links.prefetch(hops[1].link());
        hops
    }

    /// A packet reaches a switch at `now`: the next link of its route takes it on.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop that everything else waits for")]
    pub fn forward(&mut self, now: Time, event: Event) {
        self.forward_along::<true>(self.routes.hop(event.place()), now, event);
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop that everything else waits for")]
    fn forward_along<const PART: bool>(&mut self, [link, next]: Hops, now: Time, event: Event) {
        if self.links.arrived(link.link(), event.epoch()) {
            self.offer_in::<PART>(now, next, event.onward());
        } else {
            self.packets.give_back(event.what());
        }
    }

    /// Offers the packet of `event` to the link at its place on the route, which is `hop`; when it departs.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop that everything else waits for")]
    pub fn offer(&mut self, now: Time, hop: Hop, event: Event) -> Option<Time> {
        self.offer_in::<true>(now, hop, event)
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop that everything else waits for")]
    fn offer_in<const PART: bool>(&mut self, now: Time, hop: Hop, event: Event) -> Option<Time> {
        let Some(Sent { departs, arrives, epoch }) = self.links.offer_short(hop.link(), now, event.len()) else {
            return self.offer_exact(now, hop, event.first, event.second);
        };
        self.send::<PART>(arrives, event.accepted(epoch, false, hop.is_last()), hop);
        Some(departs)
    }

    /// The packet of `event`, which `hop` has accepted, arrives at its far end at `arrives`.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "once a packet-hop, and the call would be half of the work")]
    fn send<const PART: bool>(&mut self, arrives: Time, event: Event, hop: Hop) {
        if PART && hop.crosses() {
            self.leave(arrives, event.first, event.second);
        } else {
            self.calendar.push_packet(arrives, event, hop.is_last());
        }
    }

    /// A packet leaves for another part of the network, where it arrives at `arrives`.
    #[inline(never)]
    fn leave(&mut self, arrives: Time, first: u64, second: u64) {
        // taken apart, because an event that is passed in memory would live there on the quick path too
        let event = Event { first, second };
        let (part, place) = self.routes.exit(event.place());
        self.packets.pass(event.what(), part);
        let crossing = Crossing { arrives, event: event.moved_to(place) };
        self.outbox.as_mut().expect("only parts have such routes").push(part, crossing);
    }

    /// A packet comes from another part of the network.
    #[inline]
    pub fn enter(&mut self, crossing: &Crossing) {
        self.calendar.push_packet(crossing.arrives, crossing.event, false);
    }

    /// The same at a queue that may mark the packet, or drop it.
    #[inline(never)]
    fn offer_exact(&mut self, now: Time, hop: Hop, first: u64, second: u64) -> Option<Time> {
        // taken apart, because an event that is passed in memory would live there on the quick path too
        let event = Event { first, second };
        match self.links.offer_exact(hop.link(), now, event.len(), ecn_of(event.tag())) {
            Outcome::Accepted { departs, arrives, marked, epoch } => {
                self.send::<true>(arrives, event.accepted(epoch, marked, hop.is_last()), hop);
                Some(departs)
            }
            Outcome::Held => {
                self.hold(now, hop.link(), event);
                None
            }
            Outcome::Dropped => {
                let at = self.gates.iter().position(|gate| gate.as_ref().is_some_and(|gate| gate.link() == hop.link()));
                match at {
                    Some(gate) => self.at_gate(now, gate, event),
                    None => self.packets.give_back(event.what()),
                }
                None
            }
        }
    }

    /// Hands the packet of `event` to a link that holds its packets.
    fn hold(&mut self, now: Time, link: LinkId, event: Event) {
        let packet = QueuedPacket {
            token: u64::from(event.what()) << 32 | u64::from(event.place()),
            flow: mix64(u64::from(self.routes.flow(event.place()))),
            len: event.len(),
            ecn: ecn_of(event.tag()),
        };
        let due = self.links.hold(link, now, packet, &mut self.dropped);
        self.take_back_dropped();
        match due {
            Some(at) if at <= now => self.depart(now, link),
            Some(at) => self.calendar.push(at, Event::host(kind::LINK, 0, link.0)),
            None => {}
        }
    }

    /// A link that holds its packets may send the next.
    pub fn depart(&mut self, now: Time, link: LinkId) {
        let departure = self.links.depart(link, now, &mut self.dropped);
        self.take_back_dropped();
        let Some(departure) = departure else { return };
        let QueuedPacket { token, len, ecn, .. } = departure.packet;
        let (slot, place) = ((token >> 32) as u32, token as u32);
        let [hop, _] = self.routes.hop(place);
        let event = Event::packet(slot, place, len, ecn as u8);
        let event = event.accepted(departure.sent.epoch, departure.marked, hop.is_last());
        self.send::<true>(departure.sent.arrives, event, hop);
        if let Some(at) = departure.next {
            self.calendar.push(at, Event::host(kind::LINK, 0, link.0));
        }
    }

    fn take_back_dropped(&mut self) {
        for token in self.dropped.drain(..) {
            self.packets.give_back((token >> 32) as u32);
        }
    }

    /// A packet was offered to the link that stands for an enforcer.
    fn at_gate(&mut self, now: Time, index: usize, event: Event) {
        let slot = event.what();
        let Some(mut gate) = self.gates[index].take() else { return self.packets.give_back(slot) };
        let socket = self.routes.socket(event.place());
        let segment = self.packets.segment(slot);
        if ecn_of(event.tag()) == Ecn::Ce {
            segment.ecn = tcp::Ecn::Ce;
        }
        let segment = *segment;
        match gate.on_segment(now, socket, segment, event.place(), self.packets.sent(slot).unwrap_or_default()) {
            Some(passing) => {
                *self.packets.segment(slot) = passing.packet.segment;
                self.pass(now, slot, &passing);
            }
            None => self.packets.give_back(slot),
        }
        self.leave_gate(now, index, gate);
    }

    /// The clock has come to what an enforcer waits for, or waited for once.
    pub fn on_gate_timer(&mut self, now: Time, index: usize) {
        let Some(mut gate) = self.gates[index].take() else { return };
        gate.on_timer(now);
        self.leave_gate(now, index, gate);
    }

    /// Sends what an enforcer has to send.
    fn leave_gate(&mut self, now: Time, index: usize, mut gate: Box<Gate>) {
        while let Some(passing) = gate.poll_transmit() {
            let slot = self.packets.free_slot();
            *self.packets.segment(slot) = passing.packet.segment;
            self.packets.take(slot, passing.note.sent);
            self.pass(now, slot, &passing);
        }
        gate.settle(now, index, &mut self.calendar);
        self.gates[index] = Some(gate);
    }

    /// A packet continues along its route.
    fn pass(&mut self, now: Time, slot: u32, passing: &Passing) {
        let (segment, place) = (&passing.packet.segment, passing.note.place);
        let len = (segment.ip_bytes() + self.framing) as u16;
        let event = Event::packet(slot, place, len, segment.ecn as u8);
        let [_, next] = self.routes.hop(place);
        if next.is_socket() {
            self.calendar.push(now, event.accepted(0, false, true));
        } else {
            self.offer(now, next, event.onward());
        }
    }

    /// Packets under way on each link, or to each far end: those whose arrival there is pending, `drained` ones
    /// included, and those that a link holds. Those in the outbox are not counted.
    pub fn in_flight<'a>(&self, drained: impl Iterator<Item = &'a Event>) -> Vec<u64> {
        let mut count: Vec<u64> = (0..self.links.len() as u32).map(|i| self.links.held(LinkId(i))).collect();
        count.resize(self.links.ends(), 0);
        let mut add = |event: &Event| {
            if event.is_packet() {
                count[self.routes.hop(event.place())[0].link().index()] += 1;
            }
        };
        self.calendar.for_each_pending(&mut add);
        drained.for_each(add);
        count
    }
}

/// The routes of all sockets, one after the other: links, then the socket at the end. Of a network in parts: the pieces of
/// routes in this part. Behind the last link of a piece that is continued elsewhere stand the part and the place there, where the
/// next piece begins with that link's far end.
#[derive(Default)]
pub struct Routes(Vec<Hop>);

/// An entry of a route: a link, with a mark on one that leads to the host or into another part; or the socket at the host.
#[derive(Clone, Copy, Default)]
pub struct Hop(u32);

/// The entry at a packet's place, and what comes after it.
pub type Hops = [Hop; 2];

const SOCKET: u32 = 1 << 31;
const LAST: u32 = 1 << 30;
const CROSSES: u32 = 1 << 29;

impl Routes {
    /// Makes room for `entries` more.
    pub fn reserve(&mut self, entries: usize) {
        self.0.reserve_exact(entries);
    }

    /// Adds a route of at least one link to the socket `peer`; where it starts.
    pub fn add(&mut self, links: &[LinkId], peer: u32) -> u32 {
        let start = self.0.len() as u32;
        self.0.extend(links.iter().map(|link| Hop(link.0)));
        if let Some(last) = self.0.last_mut() {
            last.0 |= LAST;
        }
        self.0.push(Hop(SOCKET | peer));
        start
    }

    /// Adds a piece of a route: links, or first a far end, up to the socket `peer`; where it starts.
    pub fn add_piece(&mut self, links: &[LinkId], onward: Onward) -> u32 {
        let start = match onward {
            Onward::Socket(peer) => return self.add(links, peer),
            Onward::Part { .. } => self.0.len() as u32,
        };
        self.0.extend(links.iter().map(|link| Hop(link.0)));
        if let (Some(last), Onward::Part { part, place }) = (self.0.last_mut(), onward) {
            last.0 |= CROSSES;
            self.0.extend([Hop(part), Hop(place)]);
        }
        start
    }

    /// Where the route goes on behind a link that crosses, which is at `place`: the part, and the place there.
    pub fn exit(&self, place: u32) -> (u32, u32) {
        let place = place as usize;
        (self.0[place + 1].0, self.0[place + 2].0)
    }

    /// The piece that starts at `place`: its links, and what comes after them.
    pub fn piece(&self, place: u32) -> (impl Iterator<Item = LinkId>, Onward) {
        let start = place as usize;
        let ends = |hop: &Hop| hop.0 & (LAST | CROSSES) != 0;
        let last = start + self.0[start..].iter().position(ends).expect("a piece of a route has an end");
        let onward = if self.0[last].crosses() {
            let (part, place) = self.exit(last as u32);
            Onward::Part { part, place }
        } else {
            Onward::Socket(self.0[last + 1].socket())
        };
        (self.0[start..=last].iter().map(|hop| hop.link()), onward)
    }

    /// The links of the route that starts at `place`.
    pub fn links(&self, place: u32) -> impl Iterator<Item = LinkId> {
        self.0[place as usize..].iter().take_while(|hop| hop.0 & SOCKET == 0).map(|hop| hop.link())
    }

    /// The socket at the end of the route on which `place` is.
    pub fn socket(&self, place: u32) -> u32 {
        let end = self.0[place as usize..].iter().find(|hop| hop.is_socket());
        end.expect("a route ends with a socket").socket()
    }

    /// What tells the packets on the route of `place` from others here: the socket at its end or, if that is in another part, a number
    /// that no socket has.
    fn flow(&self, place: u32) -> u32 {
        let ends = |(_, hop): &(usize, &Hop)| hop.is_socket() || hop.crosses();
        let end = self.0[place as usize..].iter().enumerate().find(ends);
        let (distance, hop) = end.expect("a route has an end");
        if hop.is_socket() { hop.socket() } else { SOCKET | (place + distance as u32) }
    }

    /// The link at `place`, and what comes after it.
    #[inline]
    pub fn hop(&self, place: u32) -> Hops {
        let place = place as usize;
        // a route ends with a socket, so there is always a next entry; its bounds check, done first, covers both
        let next = self.0[place + 1];
        [self.0[place], next]
    }
}

impl Hop {
    /// The link.
    #[inline]
    pub fn link(self) -> LinkId {
        LinkId(self.0 & !(LAST | CROSSES))
    }

    /// The socket, if it is one.
    #[inline]
    pub fn socket(self) -> u32 {
        self.0 & !SOCKET
    }

    /// Is it the socket at the end?
    pub fn is_socket(self) -> bool {
        self.0 & SOCKET != 0
    }

    #[inline]
    fn is_last(self) -> bool {
        self.0 & LAST != 0
    }

    /// Does it lead into another part of the network?
    #[inline]
    fn crosses(self) -> bool {
        self.0 & CROSSES != 0
    }
}

/// What comes after a piece of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// The socket at its end.
    Socket(u32),
    /// Another piece.
    Part { part: u32, place: u32 },
}

/// The ECN field of a packet event's tag.
#[inline]
fn ecn_of(tag: u8) -> Ecn {
    match tag & 3 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}
