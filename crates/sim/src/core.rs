//! The network in motion: events, links, packets and the sockets at both ends. What traffic there is, it is told.
//!
//! [`Core::run_to`] walks the calendar. Packets that arrive at switches are offered to their next link; packets and
//! timers at hosts go to a socket's TCP, and what that has to send is offered to the host's own link. Whatever an
//! application should know of is handed to a [`Hear`].

use crate::calendar::{Calendar, Event, Lane, kind};
use crate::nic::Nic;
use crate::packets::Packets;
use net::{Ecn, LinkId, LinkTable, Outcome};
use prefetch::prefetch_bytes;
use tcp::{Endpoint, Segment};
use units::Time;

/// In the table of routes: not a link but the socket where the route ends.
const SOCKET: u32 = 1 << 31;

/// How many events ahead memory is asked for.
const AHEAD: usize = 5;
/// Cache lines of a socket.
const SOCKET_LINES: usize = size_of::<Socket>().div_ceil(64);

/// What applications are told, while an event is being handled.
pub trait Hear {
    /// The socket has delivered as many bytes as [`Core::notify_at`] asked for.
    fn on_received(&mut self, core: &mut Core, socket: u32, now: Time);
    /// An event that [`Core::schedule_app`] scheduled.
    fn on_app(&mut self, core: &mut Core, what: u32, which: u32, now: Time);
}

/// One end of a flow.
pub struct Socket {
    pub tcp: Endpoint,
    /// Tell the application when so many bytes have been delivered.
    notify_at: u64,
    /// The pending timer event that counts; others of this socket are stale.
    armed: Time,
    /// Where its route starts in the table.
    route: u32,
    /// Data bytes waiting in the host's interface.
    nic_bytes: u32,
    /// Waiting for the interface, and a wake-up is scheduled.
    held_back: bool,
    /// Subject to back-pressure.
    limited: bool,
    pub received: Received,
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
    pub links: LinkTable,
    pub sockets: Vec<Socket>,
    /// For each socket the sum of the delays of what it received; empty unless delays are measured.
    pub delays: Vec<Time>,
    calendar: Calendar,
    packets: Packets,
    /// For each socket the links of its route, then `SOCKET | peer`.
    routes: Vec<u32>,
    nics: Vec<Nic>,
    framing: Framing,
    measure_delay: bool,
    lanes: [Drained; 2],
    now: Time,
}

/// A drained lane, and how far it has been walked.
#[derive(Default)]
struct Drained {
    events: Vec<Event>,
    next: usize,
}

impl Core {
    /// An idle network.
    pub fn new(links: LinkTable, calendar: Calendar, framing: Framing, measure_delay: bool) -> Core {
        Core {
            nics: (0..links.len()).map(|_| Nic::default()).collect(),
            links,
            sockets: Vec::new(),
            delays: Vec::new(),
            measure_delay,
            calendar,
            packets: Packets::new(measure_delay),
            routes: Vec::new(),
            framing,
            lanes: [Drained::default(), Drained::default()],
            now: Time::ZERO,
        }
    }

    /// Makes room for `flows` more flows with routes of about `hops` links: growing by doubling would take twice the
    /// memory at its peak.
    pub fn reserve(&mut self, flows: usize, hops: usize) {
        self.sockets.reserve_exact(2 * flows);
        self.routes.reserve_exact(2 * flows * (hops + 1));
    }

    /// Adds a socket whose packets take `route` to the socket `peer`; its number.
    pub fn add_socket(&mut self, tcp: Endpoint, route: &[LinkId], peer: u32, limited: bool) -> u32 {
        let start = self.add_route(route, peer);
        if self.measure_delay {
            self.delays.push(Time::ZERO);
        }
        self.sockets.push(Socket {
            tcp,
            notify_at: u64::MAX,
            armed: Time::NEVER,
            route: start,
            nic_bytes: 0,
            held_back: false,
            limited,
            received: Received::default(),
        });
        (self.sockets.len() - 1) as u32
    }

    fn add_route(&mut self, route: &[LinkId], peer: u32) -> u32 {
        let start = self.routes.len() as u32;
        self.routes.extend(route.iter().map(|link| link.0));
        self.routes.push(SOCKET | peer);
        start
    }

    /// The links from `socket` to its peer.
    pub fn route(&self, socket: u32) -> impl Iterator<Item = LinkId> {
        let start = self.sockets[socket as usize].route as usize;
        self.routes[start..].iter().take_while(|&&hop| hop & SOCKET == 0).map(|&hop| LinkId(hop))
    }

    /// From now on packets of `socket` take `route`; those under way stay on the old one.
    pub fn reroute(&mut self, socket: u32, route: &[LinkId]) {
        let peer = socket ^ 1;
        self.sockets[socket as usize].route = self.add_route(route, peer);
    }

    /// The application hears of it when `socket` has delivered `bytes` in all.
    pub fn notify_at(&mut self, socket: u32, bytes: u64) {
        self.sockets[socket as usize].notify_at = bytes;
    }

    /// Calls [`Hear::on_app`] at `at`.
    pub fn schedule_app(&mut self, at: Time, what: u32, which: u32) {
        self.calendar.push(Lane::Hosts, at, Event::host(kind::APP, what, which));
    }

    /// The time of the event being handled.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Handles every event before `end`. Events at `end` and later stay.
    pub fn run_to(&mut self, end: Time, hear: &mut impl Hear) {
        loop {
            let bucket_end = self.calendar.bucket_end();
            if self.bucket_is_open() {
                let until = if end >= bucket_end { u32::MAX } else { self.offset_of(end) };
                self.walk_switches(until);
                self.walk_hosts(until, hear);
            }
            if end < bucket_end || !self.calendar.advance(end) {
                break;
            }
            for (lane, drained) in [Lane::Switches, Lane::Hosts].into_iter().zip(&mut self.lanes) {
                self.calendar.drain(lane, &mut drained.events);
                drained.next = 0;
            }
        }
        self.now = end;
    }

    /// Is a bucket drained and not yet walked to its end?
    fn bucket_is_open(&self) -> bool {
        self.lanes.iter().any(|lane| lane.next < lane.events.len()) || self.calendar.has_late()
    }

    fn offset_of(&self, at: Time) -> u32 {
        at.saturating_sub(self.calendar.bucket_start()).as_ps() as u32
    }

    /// Packets at switches, up to the offset `until`.
    fn walk_switches(&mut self, until: u32) {
        let Core { lanes: [lane, _], links, calendar, routes, packets, .. } = self;
        let start = calendar.bucket_start();
        let ahead = &lane.events[lane.next..];
        let due = if until == u32::MAX { ahead.len() } else { ahead.partition_point(|event| event.offset() < until) };
        for (i, &event) in ahead[..due].iter().enumerate() {
            if let Some(soon) = ahead.get(i + 2 * AHEAD) {
                links.prefetch(LinkId(routes[soon.place() as usize]));
                links.prefetch_far(LinkId(routes[soon.place() as usize - 1]));
            }
            if let Some(next) = ahead.get(i + AHEAD) {
                links.prefetch_ring(LinkId(routes[next.place() as usize]));
            }
            let now = start + Time::from_ps(u64::from(event.offset()));
            let place = event.place() as usize;
            let [before, link, next] = routes[place - 1..place + 2] else { unreachable!("a slice of three") };
            if !links.arrived(LinkId(before), event.epoch()) {
                packets.give_back(event.what());
                continue;
            }
            match links.offer(LinkId(link), now, event.len(), ecn_of(event.tag())) {
                Outcome::Accepted { arrives, marked, epoch, .. } => {
                    calendar.push(lane_of(next), arrives, event.onward(epoch, marked));
                }
                Outcome::Dropped => packets.give_back(event.what()),
            }
        }
        lane.next += due;
    }

    /// Offers the packet of `event` to the link at its place on the route; when it departs.
    #[inline]
    fn offer(&mut self, event: Event) -> Option<Time> {
        let place = event.place() as usize;
        let [link, next] = self.routes[place..place + 2] else { unreachable!("a slice of two") };
        match self.links.offer(LinkId(link), self.now, event.len(), ecn_of(event.tag())) {
            Outcome::Accepted { departs, arrives, marked, epoch } => {
                self.calendar.push(lane_of(next), arrives, event.onward(epoch, marked));
                Some(departs)
            }
            Outcome::Dropped => {
                self.packets.give_back(event.what());
                None
            }
        }
    }

    /// What concerns hosts, up to the offset `until`.
    fn walk_hosts(&mut self, until: u32, hear: &mut impl Hear) {
        let Drained { events, mut next } = std::mem::take(&mut self.lanes[Lane::Hosts as usize]);
        let start = self.calendar.bucket_start();
        loop {
            if let Some(soon) = events.get(next + AHEAD) {
                self.prefetch(*soon);
            }
            let event = events.get(next).filter(|event| event.offset() < until);
            // what was scheduled earlier comes first at the same offset
            let late = self.calendar.pop_late_before(event.map_or(until, |event| event.offset()));
            let event = match (late, event) {
                (Some(late), _) => late,
                (None, Some(event)) => {
                    next += 1;
                    *event
                }
                (None, None) => break,
            };
            self.now = start + Time::from_ps(u64::from(event.offset()));
            self.at_host(event, hear);
        }
        self.lanes[Lane::Hosts as usize] = Drained { events, next };
    }

    /// Asks for what a packet at its host will touch.
    #[inline]
    fn prefetch(&self, event: Event) {
        if event.tag() & kind::MASK == kind::PACKET {
            self.packets.prefetch(event.what());
            let socket = (self.routes[event.place() as usize] & !SOCKET) as usize;
            for line in 0..SOCKET_LINES {
                prefetch_bytes(&self.sockets, socket, line * 64);
            }
        }
    }

    #[inline]
    fn at_host(&mut self, event: Event, hear: &mut impl Hear) {
        match event.tag() & kind::MASK {
            kind::PACKET => self.deliver(event, hear),
            kind::TIMER => self.on_timer(event.place(), hear),
            kind::WAKE => {
                self.sockets[event.place() as usize].held_back = false;
                self.pump(event.place());
            }
            _ => hear.on_app(self, event.what(), event.place(), self.now),
        }
    }

    /// A packet reaches its host.
    #[inline]
    fn deliver(&mut self, event: Event, hear: &mut impl Hear) {
        let now = self.now;
        let at = event.place() as usize;
        if !self.links.arrived(LinkId(self.routes[at - 1]), event.epoch()) {
            self.packets.give_back(event.what());
            return;
        }
        let id = self.routes[at] & !SOCKET;
        let socket = &mut self.sockets[id as usize];
        let segment = self.packets.segment(event.what());
        if event.tag() & 3 == Ecn::Ce as u8 {
            segment.ecn = tcp::Ecn::Ce;
        }
        socket.received.packets += 1;
        socket.received.ip_bytes += u64::from(u32::from(event.len()) - self.framing.0);
        socket.tcp.on_segment(now, segment);
        if let Some(delay) = self.packets.delay(event.what(), now) {
            self.delays[id as usize] += delay;
        }
        self.packets.give_back(event.what());
        self.pump(id);
        self.tell(id, hear);
    }

    /// Tells the application if it is time to.
    #[inline]
    fn tell(&mut self, id: u32, hear: &mut impl Hear) {
        let socket = &mut self.sockets[id as usize];
        if socket.tcp.received() >= socket.notify_at {
            socket.notify_at = u64::MAX;
            hear.on_received(self, id, self.now);
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
    #[inline]
    pub fn pump(&mut self, id: u32) {
        let now = self.now;
        loop {
            let socket = &mut self.sockets[id as usize];
            if socket.nic_bytes > 0 && self.holds_back(id) {
                break;
            }
            let slot = self.packets.take();
            let socket = &mut self.sockets[id as usize];
            if !socket.tcp.poll_transmit(now, self.packets.segment(slot)) {
                self.packets.give_back(slot);
                break;
            }
            self.send(id, slot);
        }
        let socket = &mut self.sockets[id as usize];
        let deadline = socket.tcp.poll_timeout();
        if deadline < socket.armed {
            let at = deadline.max(now);
            socket.armed = at;
            self.calendar.push(Lane::Hosts, at, Event::host(kind::TIMER, 0, id));
        }
    }

    /// Offers the segment in `slot` to the host's own link.
    #[inline]
    fn send(&mut self, id: u32, slot: u32) {
        let now = self.now;
        let socket = &mut self.sockets[id as usize];
        let segment: &Segment = self.packets.segment(slot);
        let (payload, ecn) = (segment.len, segment.ecn);
        let len = (segment.ip_bytes() + self.framing.0) as u16;
        let (place, limited) = (socket.route, socket.limited && payload > 0);
        self.packets.sent_at(slot, now);
        let departs = self.offer(Event::packet(slot, place, len, ecn as u8));
        if limited && let Some(departs) = departs {
            self.sockets[id as usize].nic_bytes += u32::from(len);
            self.nics[self.routes[place as usize] as usize].push(id, u32::from(len), departs);
        }
    }

    /// Has `id` as much in its host's interface as it may? Then it is woken when half of that has left.
    fn holds_back(&mut self, id: u32) -> bool {
        let now = self.now;
        let socket = &self.sockets[id as usize];
        if socket.held_back {
            return true;
        }
        let nic = &mut self.nics[self.routes[socket.route as usize] as usize];
        let sockets = &mut self.sockets;
        nic.release(now, |id, len| sockets[id as usize].nic_bytes -= len);
        let socket = &mut self.sockets[id as usize];
        let limit = socket.tcp.output_limit_bytes();
        if socket.nic_bytes < limit {
            return false;
        }
        socket.held_back = true;
        let at = nic.drained_to(id, socket.nic_bytes, limit / 2).max(now);
        self.calendar.push(Lane::Hosts, at, Event::host(kind::WAKE, 0, id));
        true
    }

    /// Packets under way on each link: those whose arrival at its far end is pending.
    pub fn in_flight(&self) -> Vec<u64> {
        let mut count = vec![0; self.links.len()];
        let mut add = |event: &Event| {
            if event.tag() & kind::MASK == kind::PACKET {
                count[self.routes[event.place() as usize - 1] as usize] += 1;
            }
        };
        self.calendar.for_each_pending(&mut add);
        for lane in &self.lanes {
            lane.events[lane.next..].iter().for_each(&mut add);
        }
        count
    }
}

/// Where a packet's arrival belongs whose next hop is this entry of the table of routes.
#[inline]
fn lane_of(next: u32) -> Lane {
    if next & SOCKET == 0 { Lane::Switches } else { Lane::Hosts }
}

/// The ECN field of a packet event's tag.
#[inline]
fn ecn_of(tag: u8) -> Ecn {
    const FIELD: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
    FIELD[usize::from(tag & 3)]
}
