//! The running network: events, links, packets and the sockets at both ends. Its caller opens flows and writes data.
//!
//! [`Core::run_to`] takes events off the calendar. Packets that arrive at switches are offered to their next link; packets
//! and timers at hosts go to a socket's TCP, and what that has to send is offered to the host's own link. Whatever an
//! application reacts to goes to a [`Hear`], which answers by [`Requests`].

use crate::calendar::{Calendar, Event, kind};
use crate::fabric::{Fabric, Hop, Routes};
use crate::nic::Nic;
use crate::packets::Packets;
use crate::requests::{Request, Requests};
use crate::spread::Spread;
use memory::prefetch_bytes;
use net::{Ecn, LinkId, LinkTable, Way};
use std::collections::BTreeMap;
use tcp::Endpoint;
use units::Time;

/// Cache lines of a socket.
const SOCKET_LINES: usize = size_of::<Socket>().div_ceil(64);
/// Bytes at the beginning and at the end of a socket that data which arrives touches.
const DATA_HEAD: usize = 128;
const DATA_TAIL: usize = 120;

/// How many events at hosts pass between one step of prefetching and the next.
const AHEAD: usize = 2;
/// So many sockets, with their data, do not fit the second cache.
const MANY_SOCKETS: usize = 1000;
/// Bytes of an IP and a UDP header.
pub const UDP_HEADERS: u32 = 28;
/// A packet of at most so many bytes on the wire counts as an ACK in prefetching.
const ACK_BYTES: u16 = 128;

/// Calls to applications while an event is being handled, and effects of their requests.
pub trait Hear {
    /// The socket has delivered as many bytes as [`Core::notify_at`] asked for, by `now`.
    fn on_received(&mut self, requests: &mut Requests, socket: u32, now: Time);
    /// The socket's send buffer, which was full when [`Core::has_room_or_tells`] was asked, has room.
    fn on_room(&mut self, requests: &mut Requests, socket: u32);
    /// What [`Requests::schedule`] scheduled.
    fn on_app(&mut self, requests: &mut Requests, application: u32, which: u32);
    /// A request takes effect at this socket, if it is for one.
    fn on_request(&mut self, core: &mut Core, request: Request, socket: u32);
}

/// One end of a flow. What data that arrives touches is at both ends of it.
#[repr(C)]
pub struct Socket {
    received_ip_bytes: u64,
    received_packets: u32,
    /// Where its route starts in the table.
    route: u32,
    /// What stands there: the host's own link.
    first: Hop,
    sending: Sending,
    /// Tell the application when so many bytes have been delivered.
    notify_at: u64,
    /// The pending timer event that counts; others of this socket are stale.
    armed: Time,
    pub tcp: Endpoint,
}

// 100,000 idle flows, both ends, in under 1 KB each
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Socket>() == 464);

impl Socket {
    /// What has reached it from the network.
    pub fn received(&self) -> Received {
        Received { ip_bytes: self.received_ip_bytes, packets: self.received_packets }
    }

    /// Bytes of [`Core::notify_at`] that have not arrived; `u64::MAX` for none.
    pub fn awaited(&self) -> u64 {
        self.notify_at
    }
}

/// How a socket stands with its host's interface and its application, in a word: how many of its data bytes wait in the
/// interface, and four flags.
#[derive(Clone, Copy)]
struct Sending(u32);

impl Sending {
    /// It waits for the interface, and a wake-up is scheduled.
    const HELD_BACK: u32 = 1 << 31;
    /// It is subject to back-pressure.
    const LIMITED: u32 = 1 << 30;
    /// The application is to be called when there is room in the send buffer.
    const WANTS_ROOM: u32 = 1 << 29;
    /// Its packets are spread over several routes.
    const SPREAD: u32 = 1 << 28;

    #[inline]
    fn is(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    fn set(&mut self, flag: u32, on: bool) {
        self.0 = if on { self.0 | flag } else { self.0 & !flag };
    }

    #[inline]
    fn bytes(self) -> u32 {
        self.0 % Sending::SPREAD
    }

    /// A segment more. Far fewer bytes than a quarter of a gigabyte wait, because back-pressure begins at a few megabytes.
    #[inline]
    fn add(&mut self, len: u32) {
        debug_assert!(self.bytes() + len < Sending::SPREAD, "the bytes keep clear of the flags");
        self.0 += len;
    }

    #[inline]
    fn take(&mut self, len: u32) {
        self.0 -= len;
    }
}

/// What reached a socket from the network.
#[derive(Clone, Copy, Default)]
pub struct Received {
    pub ip_bytes: u64,
    pub packets: u32,
}

impl Received {
    /// What came after `earlier`.
    pub fn since(&self, earlier: &Received) -> Received {
        Received { ip_bytes: self.ip_bytes - earlier.ip_bytes, packets: self.packets - earlier.packets }
    }
}

/// Bytes that framing adds to an IP packet.
#[derive(Clone, Copy)]
pub struct Framing(pub u32);

pub struct Core {
    pub fabric: Fabric,
    pub sockets: Vec<Socket>,
    /// Requests of applications.
    pub requests: Requests,
    /// For each socket the sum of the delays of what it received; empty unless delays are measured.
    pub delays: Vec<Time>,
    /// For each socket its routes; empty unless packets are spread.
    spreads: Vec<Spread>,
    /// Datagrams sent so far, by socket; of sockets of UDP alone.
    pub datagrams: BTreeMap<u32, u64>,
    nics: Vec<Nic>,
    framing: Framing,
    /// The open bucket, if the calendar lays it out: packets at switches, and what concerns hosts.
    switches: Lane,
    hosts: Lane,
    now: Time,
}

/// Events in order: those up to `end`, of which those up to `next` have happened.
#[derive(Default)]
struct Lane {
    events: Vec<Event>,
    next: usize,
    end: usize,
}

impl Lane {
    /// What is still to happen.
    fn rest(&self) -> &[Event] {
        &self.events[self.next..self.end]
    }
}

impl Core {
    /// An idle network, or a part of one, without a packet in `packets`.
    pub fn new(links: LinkTable, calendar: Calendar, requests: Requests, framing: Framing, packets: Packets) -> Core {
        Core {
            nics: (0..links.len()).map(|_| Nic::default()).collect(),
            fabric: Fabric {
                links,
                packets,
                calendar,
                routes: Routes::default(),
                framing: framing.0,
                gates: Vec::new(),
                dropped: Vec::new(),
                outbox: None,
            },
            sockets: Vec::new(),
            requests,
            delays: Vec::new(),
            spreads: Vec::new(),
            datagrams: BTreeMap::new(),
            framing,
            switches: Lane::default(),
            hosts: Lane::default(),
            now: Time::ZERO,
        }
    }

    /// Makes room for `flows` more flows with routes of about `hops` links: growing by doubling would take twice the
    /// memory at its peak.
    pub fn reserve(&mut self, flows: usize, hops: usize) {
        memory::reserve_in_large_pages(&mut self.sockets, 2 * flows);
        self.fabric.routes.reserve(2 * flows * (hops + 1));
    }

    /// Adds a socket whose packets take `route` to the socket `peer`; its number.
    pub fn add_socket(&mut self, tcp: Endpoint, route: &[LinkId], peer: u32, limited: bool) -> u32 {
        let start = self.fabric.routes.add(route, peer);
        self.add_socket_at(tcp, start, limited)
    }

    /// The same with a route that is in the table already, where it starts at `start`.
    pub fn add_socket_at(&mut self, tcp: Endpoint, start: u32, limited: bool) -> u32 {
        if self.fabric.packets.measures_delay() {
            self.delays.push(Time::ZERO);
        }
        self.sockets.push(Socket {
            tcp,
            notify_at: u64::MAX,
            armed: Time::NEVER,
            route: start,
            first: self.fabric.routes.hop(start)[0],
            sending: Sending(u32::from(limited) * Sending::LIMITED),
            received_ip_bytes: 0,
            received_packets: 0,
        });
        (self.sockets.len() - 1) as u32
    }

    /// The links from `socket` to its peer.
    pub fn route(&self, socket: u32) -> impl Iterator<Item = LinkId> {
        let is_gate = |link: &LinkId| self.fabric.gates.iter().flatten().any(|gate| gate.link() == *link);
        self.fabric.routes.links(self.sockets[socket as usize].route).filter(move |link| !is_gate(link))
    }

    /// From now on packets of `socket` take `route`; those under way stay on the old one.
    pub fn reroute(&mut self, socket: u32, route: &[LinkId]) {
        let start = self.fabric.routes.add(route, socket ^ 1);
        self.reroute_at(socket, start);
    }

    /// The same with a route that is in the table already.
    pub fn reroute_at(&mut self, socket: u32, start: u32) {
        let first = self.fabric.routes.hop(start)[0];
        let moved = &mut self.sockets[socket as usize];
        if moved.first.link() != first.link() {
            // what waits in the earlier interface no longer counts against it
            let waiting = self.nics[moved.first.link().index()].forget(socket);
            moved.sending.take(waiting);
        }
        (moved.route, moved.first) = (start, first);
    }

    /// The packets of the newest socket are spread over `ways`; see [`Spread::new`]. Of such a network every socket is spread.
    pub fn spread(&mut self, ways: &[Way], gap: Time, random: net::SplitMix64) {
        let socket = self.spreads.len() as u32;
        let routes = self.routes_of(socket, ways);
        self.spreads.push(Spread::new(routes.into_iter(), gap, random));
        self.sockets[socket as usize].sending.set(Sending::SPREAD, true);
    }

    /// From now on packets of `socket` are spread over `ways`.
    pub fn spread_again(&mut self, socket: u32, ways: &[Way]) {
        let routes = self.routes_of(socket, ways);
        let spread = &mut self.spreads[socket as usize];
        *spread = spread.moved_to(routes.into_iter());
    }

    /// Adds the ways to the table: where each starts, and its share.
    fn routes_of(&mut self, socket: u32, ways: &[Way]) -> Vec<(u32, f64)> {
        let routes = &mut self.fabric.routes;
        ways.iter().map(|way| (routes.add(&way.links, socket ^ 1), way.share)).collect()
    }

    /// The application of `socket` has `bytes` more to send, which block until taken.
    pub fn write(&mut self, socket: u32, bytes: u64) {
        self.sockets[socket as usize].tcp.write_all(self.now, bytes);
        self.pump(socket);
    }

    /// Writes what fits into the send buffer at once: how many bytes that are, and whether there is room for more; if not,
    /// [`Hear::on_room`] is called when there is.
    pub fn write_what_fits(&mut self, socket: u32, bytes: u64) -> (u64, bool) {
        let tcp = &mut self.sockets[socket as usize].tcp;
        // a whole segment that could not be sent before this will not be sent because of what is written behind it
        let held_up = tcp.unsent() >= u64::from(tcp.sock().mss_cache);
        let taken = tcp.write(self.now, bytes);
        if !held_up {
            self.pump(socket);
        }
        (taken, self.has_room_or_tells(socket))
    }

    /// The application of `socket` stops writing; returns how much of the `bytes` that it was to send it has written.
    pub fn stop_writing(&mut self, socket: u32, bytes: u64) -> u64 {
        if self.datagrams.contains_key(&socket) {
            return bytes;
        }
        let tcp = &mut self.sockets[socket as usize].tcp;
        tcp.stop_writing();
        let written = bytes.min(tcp.acked() + tcp.queued());
        self.pump(socket);
        written
    }

    /// Nothing more will be written to `socket`.
    pub fn close(&mut self, socket: u32) {
        self.sockets[socket as usize].tcp.close(self.now);
        self.pump(socket);
    }

    /// The application hears of it when `socket` has delivered `bytes` in all.
    pub fn notify_at(&mut self, socket: u32, bytes: u64) {
        self.sockets[socket as usize].notify_at = bytes;
    }

    /// Whether the send buffer of `socket` has room; if not, [`Hear::on_room`] is called when it has.
    fn has_room_or_tells(&mut self, socket: u32) -> bool {
        let socket = &mut self.sockets[socket as usize];
        let room = socket.tcp.send_room() > 0;
        socket.sending.set(Sending::WANTS_ROOM, !room);
        room
    }

    /// Puts applications' requests on the calendar.
    pub fn post_requests(&mut self) {
        for (at, event) in self.requests.take_asked() {
            self.fabric.calendar.push(at, event);
        }
    }

    /// The time of the event being handled.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Handles every event before `end`. Events at `end` and later stay.
    pub fn run_to(&mut self, end: Time, hear: &mut impl Hear) {
        loop {
            let (start, bucket_end) = (self.fabric.calendar.start(), self.fabric.calendar.end());
            let until = if end >= bucket_end { u32::MAX } else { end.saturating_sub(start).as_ps() as u32 };
            if self.fabric.calendar.sorts() {
                self.walk_lanes(until, hear);
            } else {
                self.walk_mixed(until, hear);
            }
            if end < bucket_end || !self.fabric.calendar.advance(end) {
                break;
            }
            if self.fabric.calendar.sorts() {
                let lanes = [&mut self.switches.events, &mut self.hosts.events];
                [self.switches.end, self.hosts.end] = self.fabric.calendar.drain(lanes);
                (self.switches.next, self.hosts.next) = (0, 0);
            }
        }
        self.now = end;
    }

    /// Whatever the open bucket holds, up to the offset `until`.
    fn walk_mixed(&mut self, until: u32, hear: &mut impl Hear) {
        let start = self.fabric.calendar.start();
        while let Some(event) = self.fabric.calendar.pop(until) {
            let now = event.time(start);
            if event.is_at_switch() {
                self.fabric.forward(now, event);
            } else {
                self.now = now;
                self.at_host(event, hear);
            }
        }
    }

    /// The two lanes of the open bucket, up to the offset `until`: first the packets at switches, to which hosts add nothing.
    fn walk_lanes(&mut self, until: u32, hear: &mut impl Hear) {
        let rest = self.switches.rest();
        let due = match until {
            u32::MAX => rest.len(),
            _ => rest.partition_point(|event| event.offset() < until),
        };
        self.fabric.walk(&rest[..due]);
        self.switches.next += due;

        let lane = std::mem::take(&mut self.hosts);
        let (events, mut next) = (&lane.events[..lane.end], lane.next);
        let start = self.fabric.calendar.start();
        // as with links: where all are in the second cache, prefetching costs more than it gives
        let many = self.sockets.len() >= MANY_SOCKETS || self.fabric.outbox.is_some();
        loop {
            if many {
                self.prefetch(&events[next..]);
            }
            let event = events.get(next).filter(|event| event.offset() < until);
            // what was scheduled earlier comes first at the same offset
            let late = self.fabric.calendar.pop(event.map_or(until, |event| event.offset()));
            let event = match (late, event) {
                (Some(late), _) => late,
                (None, Some(event)) => {
                    next += 1;
                    *event
                }
                (None, None) => break,
            };
            self.now = event.time(start);
            self.at_host(event, hear);
        }
        self.hosts = Lane { next, ..lane };
    }

    /// Prefetches what packets at their hosts touch, of which `events` are to come. It goes in steps: data prefetched now
    /// holds the addresses to prefetch some events later.
    #[inline]
    fn prefetch(&self, events: &[Event]) {
        let delivery = |ahead: usize| {
            let event = events.get(ahead).filter(|event| event.tag() & kind::MASK == kind::DELIVERY)?;
            Some((event, self.fabric.routes.hop(event.place())[1].socket() as usize))
        };
        if let Some((event, socket)) = delivery(3 * AHEAD) {
            self.fabric.packets.prefetch(event.what());
            let ask = |bytes| prefetch_bytes(&self.sockets, socket, bytes);
            if event.len() <= ACK_BYTES {
                (0..SOCKET_LINES).for_each(|line| ask(line * 64));
            } else {
                [0, DATA_HEAD / 2, DATA_HEAD - 1].into_iter().for_each(ask);
                for back in [DATA_TAIL, DATA_TAIL / 2, 1] {
                    ask(size_of::<Socket>() - back);
                }
            }
        }
        if let Some((_, socket)) = delivery(2 * AHEAD) {
            let socket = &self.sockets[socket];
            self.fabric.links.prefetch(socket.first.link());
            socket.tcp.prefetch_work();
        }
        if let Some((event, socket)) = delivery(AHEAD) {
            let socket = &self.sockets[socket];
            self.fabric.links.prefetch_ring(socket.first.link());
            if event.len() <= ACK_BYTES {
                socket.tcp.prefetch_ring();
            }
        }
    }

    #[inline(never)]
    fn at_host(&mut self, event: Event, hear: &mut impl Hear) {
        match event.tag() & kind::MASK {
            kind::DELIVERY => self.deliver(event, hear),
            kind::TIMER => self.on_timer(event.place(), hear),
            kind::WAKE => {
                self.sockets[event.place() as usize].sending.set(Sending::HELD_BACK, false);
                self.pump(event.place());
            }
            kind::GATE => self.fabric.on_gate_timer(self.now, event.place() as usize),
            kind::LINK => self.fabric.depart(self.now, LinkId(event.place())),
            kind::APP => self.ask(|requests| hear.on_app(requests, event.place(), event.what())),
            _ => {
                let request = self.requests.take(event.what());
                hear.on_request(self, request, event.place());
                self.tell(event.place(), hear);
            }
        }
    }

    /// An application hears of something now.
    pub fn ask(&mut self, heard: impl FnOnce(&mut Requests)) {
        self.requests.begin(self.now);
        heard(&mut self.requests);
        self.post_requests();
    }

    /// A packet reaches its host.
    #[inline]
    fn deliver(&mut self, event: Event, hear: &mut impl Hear) {
        let now = self.now;
        let [link, socket] = self.fabric.routes.hop(event.place());
        if !self.fabric.links.arrived(link.link(), event.epoch()) {
            return self.fabric.packets.give_back(event.what());
        }
        let id = socket.socket();
        let socket = &mut self.sockets[id as usize];
        let segment = self.fabric.packets.segment(event.what());
        if event.tag() & 3 == Ecn::Ce as u8 {
            segment.ecn = tcp::Ecn::Ce;
        }
        socket.received_packets += 1;
        socket.received_ip_bytes += u64::from(u32::from(event.len()) - self.framing.0);
        socket.tcp.on_segment(now, segment);
        if let Some(sent) = self.fabric.packets.sent(event.what()) {
            self.delays[id as usize] += now - sent;
        }
        self.fabric.packets.give_back(event.what());
        self.pump(id);
        self.tell(id, hear);
    }

    /// Tells the application if it is time to.
    #[inline]
    fn tell(&mut self, id: u32, hear: &mut impl Hear) {
        let Some(socket) = self.sockets.get(id as usize) else { return };
        if socket.sending.is(Sending::WANTS_ROOM) | (socket.tcp.received() >= socket.notify_at) {
            self.tell_what_is(id, hear);
        }
    }

    #[inline(never)]
    fn tell_what_is(&mut self, id: u32, hear: &mut impl Hear) {
        let socket = &mut self.sockets[id as usize];
        if socket.tcp.received() >= socket.notify_at {
            socket.notify_at = u64::MAX;
            let now = self.now;
            self.ask(|requests| hear.on_received(requests, id, now));
        }
        let socket = &mut self.sockets[id as usize];
        if socket.sending.is(Sending::WANTS_ROOM) && socket.tcp.send_room() > 0 {
            socket.sending.set(Sending::WANTS_ROOM, false);
            self.ask(|requests| hear.on_room(requests, id));
        }
    }

    fn on_timer(&mut self, id: u32, hear: &mut impl Hear) {
        let socket = &mut self.sockets[id as usize];
        if socket.armed != self.now {
            return;
        }
        socket.armed = Time::NEVER;
        if socket.tcp.poll_timeout() <= self.now {
            socket.tcp.on_timer(self.now);
        }
        self.pump(id);
        self.tell(id, hear);
    }

    /// Sends what `id` has to send, as far as back-pressure lets it, and sees to its timer. Call it after every input to
    /// the socket's TCP.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the call would be half of the work where nothing is sent")]
    pub fn pump(&mut self, id: u32) {
        // most data that arrives makes nothing be sent
        if self.sockets[id as usize].tcp.wants_transmit() {
            self.transmit(id);
        }
        let socket = &mut self.sockets[id as usize];
        let deadline = socket.tcp.poll_timeout();
        if deadline < socket.armed {
            self.arm(id, deadline);
        }
    }

    #[inline(never)]
    fn arm(&mut self, id: u32, deadline: Time) {
        let at = deadline.max(self.now);
        self.sockets[id as usize].armed = at;
        self.fabric.calendar.push(at, Event::host(kind::TIMER, 0, id));
    }

    /// Offers what `id` has to send to its host's own link.
    #[inline(never)]
    fn transmit(&mut self, id: u32) {
        let now = self.now;
        let mut socket = &mut self.sockets[id as usize];
        loop {
            if socket.sending.bytes() > 0 {
                if self.holds_back(id) {
                    break;
                }
                socket = &mut self.sockets[id as usize];
            }
            let slot = self.fabric.packets.free_slot();
            let segment = self.fabric.packets.segment(slot);
            if !socket.tcp.poll_transmit(now, segment) {
                break;
            }
            let (payload, ecn) = (segment.len, segment.ecn);
            let len = (segment.ip_bytes() + self.framing.0) as u16;
            self.fabric.packets.take(slot, now);
            if socket.sending.is(Sending::SPREAD)
                && let Some(route) = self.spreads[id as usize].next(now)
            {
                (socket.route, socket.first) = (route, self.fabric.routes.hop(route)[0]);
            }
            let departs = self.fabric.offer(now, socket.first, Event::packet(slot, socket.route, len, ecn as u8));
            if socket.sending.is(Sending::LIMITED)
                && payload > 0
                && let Some(departs) = departs
            {
                socket.sending.add(u32::from(len));
                self.nics[socket.first.link().index()].push(id, u32::from(len), departs);
            }
            if !socket.tcp.wants_transmit() {
                break;
            }
        }
    }

    /// Sends a datagram of `payload` bytes from `id`, whatever waits in the host's interface. Where it arrives it is counted: the TCP there
    /// listens for ever, and takes no notice of a segment without flags.
    pub fn send_datagram(&mut self, id: u32, payload: u64) {
        let now = self.now;
        *self.datagrams.entry(id).or_default() += 1;
        let slot = self.fabric.packets.free_slot();
        *self.fabric.packets.segment(slot) = tcp::Segment::default();
        self.fabric.packets.take(slot, now);
        let socket = &mut self.sockets[id as usize];
        if socket.sending.is(Sending::SPREAD)
            && let Some(route) = self.spreads[id as usize].next(now)
        {
            (socket.route, socket.first) = (route, self.fabric.routes.hop(route)[0]);
        }
        let len = (payload + u64::from(UDP_HEADERS + self.framing.0)) as u16;
        let (first, route) = (socket.first, socket.route);
        self.fabric.offer(now, first, Event::packet(slot, route, len, Ecn::NotEct as u8));
    }

    /// Has `id` as much in its host's interface as it may? Then it is woken when half of that has left.
    fn holds_back(&mut self, id: u32) -> bool {
        let now = self.now;
        let socket = &self.sockets[id as usize];
        if socket.sending.is(Sending::HELD_BACK) {
            return true;
        }
        let nic = &mut self.nics[socket.first.link().index()];
        let sockets = &mut self.sockets;
        nic.release(now, |id, len| sockets[id as usize].sending.take(len));
        let socket = &mut self.sockets[id as usize];
        let limit = socket.tcp.output_limit_bytes();
        if socket.sending.bytes() < limit {
            return false;
        }
        socket.sending.set(Sending::HELD_BACK, true);
        let at = nic.drained_to(id, socket.sending.bytes(), limit / 2).max(now);
        self.fabric.calendar.push(at, Event::host(kind::WAKE, 0, id));
        true
    }

    /// Packets under way on each link.
    pub fn in_flight(&self) -> Vec<u64> {
        let drained = [&self.switches, &self.hosts].into_iter().flat_map(Lane::rest);
        self.fabric.in_flight(drained)
    }
}
