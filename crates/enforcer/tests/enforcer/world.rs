//! A server, an enforcer, a client, and the links between them: in virtual time, from a seed.

use enforcer::{Action, Direction, End, Enforcer, Simulated};
use std::collections::BTreeMap;
use tcp::{Ecn, Endpoint, Segment, flags};
use testkit::{Random, Wire};
use units::Time;

/// Arrival times of the copies of a packet that is sent now.
fn carry(wire: &mut Wire, now: Time, random: &mut Random, packet: &mut Simulated) -> Vec<Time> {
    let Some(sent) = wire.pass(now, random, u64::from(packet.segment.ip_bytes())) else { return Vec::new() };
    if random.chance(wire.faults.corrupt) {
        corrupt(random, packet);
    }
    if packet.segment.ecn != Ecn::NotEct && random.chance(wire.faults.mark) {
        packet.segment.ecn = Ecn::Ce;
    }
    wire.arrivals(sent, random)
}

/// Bits flip anywhere: the checksum does not fit any more.
fn corrupt(random: &mut Random, packet: &mut Simulated) {
    packet.corrupt = true;
    let segment = &mut packet.segment;
    match random.below(4) {
        0 => segment.seq ^= 1 << random.below(32),
        1 => segment.ack ^= 1 << random.below(32),
        2 => segment.window ^= 1 << random.below(16),
        _ => segment.flags ^= 1 << random.below(8),
    }
}

/// Where a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Server,
    Client,
    /// At the enforcer, going this way.
    Middle(Direction),
}

/// An observer at both ends; holds the first violation.
#[derive(Debug, Default)]
pub struct Watch {
    /// The highest number that the client acknowledged, that the server sent, and the server's newest timestamp.
    client_ack: Option<u32>,
    server_end: Option<u32>,
    server_tsval: Option<u32>,
    /// The right edges that the client has shrunk, and that the server was offered.
    client_edge: Option<u32>,
    pub server_edge: Option<u32>,
    /// Acknowledgment number and edge of the newest ACK forwarded to the server, and the furthest edge.
    forwarded: Option<(u32, u32)>,
    /// The newest timestamp of a segment in sequence that the client holds (RFC 7323 4.3).
    client_recent: Option<u32>,
    /// The client's last segment.
    client_last: Segment,
    pub complaint: Option<String>,
}

fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

fn raise(mark: &mut Option<u32>, to: u32) {
    if mark.is_none_or(|old| after(to, old)) {
        *mark = Some(to);
    }
}

impl Watch {
    fn complain(&mut self, now: Time, what: &str, segment: &Segment) {
        self.complaint.get_or_insert_with(|| format!("{now}: {what}: {segment:?}"));
    }

    /// Another enforcer does not know what the server was offered last.
    #[allow(dead_code, reason = "some tests have one alone")]
    pub fn forget_offers(&mut self) {
        self.forwarded = None;
    }

    fn on_sent(&mut self, by_server: bool, segment: &Segment) {
        if by_server {
            raise(&mut self.server_end, segment.end_seq());
            if segment.has_timestamp {
                raise(&mut self.server_tsval, segment.tsval);
            }
        } else if segment.flags & flags::ACK != 0 {
            self.client_last = *segment;
            raise(&mut self.client_ack, segment.ack);
            raise(&mut self.client_edge, segment.ack.wrapping_add(segment.window));
        }
    }

    /// An ACK is forwarded to the server, perhaps changed.
    fn on_answer(&mut self, now: Time, sent: &Segment, seen: &Segment) {
        let edge = |segment: &Segment| segment.ack.wrapping_add(segment.window);
        let is_newest = self.forwarded.is_none_or(|(ack, _)| !after(ack, seen.ack));
        if seen.flags & (flags::ACK | flags::SYN | flags::RST) != flags::ACK || !is_newest {
            return;
        }
        let mut furthest = self.forwarded.map_or(edge(seen), |(_, edge)| edge);
        if after(furthest, edge(seen)) && after(edge(sent), edge(seen)) {
            self.complain(now, "the server is offered less than before, though not by the client", seen);
        }
        if after(edge(seen), furthest) {
            furthest = edge(seen);
        }
        self.forwarded = Some((seen.ack, furthest));
    }

    /// Whether the client refuses a segment for its timestamp (PAWS, RFC 7323 5), which an endpoint does not.
    fn is_refused(&mut self, segment: &Segment) -> bool {
        if !segment.has_timestamp || segment.flags & (flags::SYN | flags::RST) != 0 {
            return false;
        }
        if self.client_recent.is_some_and(|recent| after(recent, segment.tsval)) {
            return true;
        }
        if self.client_ack.is_some_and(|ack| !after(segment.seq, ack) && !after(ack, segment.end_seq())) {
            self.client_recent = Some(segment.tsval);
        }
        false
    }

    fn on_arrival(&mut self, now: Time, at_server: bool, segment: &Segment) {
        if at_server && segment.flags & flags::ACK != 0 {
            raise(&mut self.server_edge, segment.ack.wrapping_add(segment.window));
            if self.client_ack.is_none_or(|sent| after(segment.ack, sent)) {
                self.complain(now, "the server sees acknowledged what the client did not acknowledge", segment);
            }
            if self.client_edge.is_none_or(|sent| after(segment.ack.wrapping_add(segment.window), sent)) {
                self.complain(now, "the server is offered more than the client offered", segment);
            }
            if segment.has_timestamp
                && segment.tsecr != 0
                && self.server_tsval.is_none_or(|sent| after(segment.tsecr, sent))
            {
                self.complain(now, "the server sees a timestamp echoed that it did not send", segment);
            }
        }
        if !at_server && segment.len > 0 && self.server_end.is_none_or(|sent| after(segment.end_seq(), sent)) {
            self.complain(now, "the client gets what the server did not send", segment);
        }
    }
}

/// The world.
pub struct World {
    pub now: Time,
    /// Server, client.
    pub ends: [Endpoint; 2],
    pub enforcer: Option<Enforcer<Simulated>>,
    /// Another at the client, which echoes marks in its place.
    pub echo: Option<Enforcer<Simulated>>,
    /// Server to enforcer, enforcer to client.
    pub out: [Wire; 2],
    /// Client to enforcer, enforcer to server.
    pub back: [Wire; 2],
    pub random: Random,
    pub watch: Watch,
    /// Time does not go beyond.
    pub alarm: Time,
    addresses: [End; 2],
    flying: BTreeMap<(Time, u64), (Place, Simulated)>,
    order: u64,
}

impl World {
    pub fn new(ends: [Endpoint; 2], out: [Wire; 2], back: [Wire; 2], seed: u64) -> World {
        let addresses =
            [End::new([192, 0, 2, 1].into(), 80), End::new([203, 0, 113, 7].into(), 40_000 + (seed % 20_000) as u16)];
        World {
            now: Time::ZERO,
            ends,
            enforcer: None,
            echo: None,
            out,
            back,
            random: Random(seed ^ 0x5eed),
            watch: Watch::default(),
            alarm: Time::NEVER,
            addresses,
            flying: BTreeMap::new(),
            order: 0,
        }
    }

    /// Runs the next event; false: there is none.
    pub fn step(&mut self) -> bool {
        let arrival = self.flying.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        let timers = self.enforcer.as_ref().map_or(Time::NEVER, Enforcer::poll_timeout);
        let next = arrival.min(timers).min(self.ends[0].poll_timeout()).min(self.ends[1].poll_timeout());
        if self.alarm < next {
            self.now = self.now.max(self.alarm);
            return true;
        }
        if next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        if arrival <= self.now {
            let ((_, _), (place, packet)) = self.flying.pop_first().expect("just seen");
            self.arrive(place, packet);
        } else if timers <= self.now {
            self.enforcer.as_mut().expect("it has timers").on_timer(self.now);
            self.drain();
        } else {
            let end = usize::from(self.ends[0].poll_timeout() > self.now);
            self.act(end, Endpoint::on_timer);
        }
        true
    }

    /// Calls one end now, and sends its packets.
    pub fn act<R>(&mut self, end: usize, action: impl FnOnce(&mut Endpoint, Time) -> R) -> R {
        let result = action(&mut self.ends[end], self.now);
        let mut segment = Segment::default();
        while self.ends[end].poll_transmit(self.now, &mut segment) {
            self.send(end, segment);
        }
        result
    }

    /// A segment leaves the server (0) or the client (1).
    pub fn send(&mut self, end: usize, segment: Segment) {
        self.watch.on_sent(end == 0, &segment);
        self.inject(end, segment);
    }

    /// The same, of a spoofer with its address.
    pub fn inject(&mut self, end: usize, segment: Segment) {
        let (source, destination) = (self.addresses[end], self.addresses[1 - end]);
        let mut packet = Simulated { source, destination, dscp: 0, corrupt: false, segment };
        let direction = if end == 0 { Direction::Out } else { Direction::In };
        if end == 1 {
            packet = self.pass_echo(direction, packet);
        }
        self.carry(end, 0, Place::Middle(direction), packet);
    }

    fn carry(&mut self, from: usize, hop: usize, to: Place, mut packet: Simulated) {
        let wire = if from == 0 { &mut self.out[hop] } else { &mut self.back[hop] };
        for at in carry(wire, self.now, &mut self.random, &mut packet) {
            self.flying.insert((at, self.order), (to, packet));
            self.order += 1;
        }
    }

    /// At the client's enforcer, which only changes packets.
    fn pass_echo(&mut self, direction: Direction, packet: Simulated) -> Simulated {
        let Some(echo) = &mut self.echo else { return packet };
        match echo.on_packet(self.now, direction, packet) {
            Action::Forward(packet) | Action::Rewritten(packet) => packet,
            Action::Held | Action::Dropped => panic!("it delays or drops {packet:?}"),
        }
    }

    fn arrive(&mut self, place: Place, packet: Simulated) {
        let packet = if place == Place::Client { self.pass_echo(Direction::Out, packet) } else { packet };
        match place {
            Place::Middle(direction) => {
                let Some(enforcer) = &mut self.enforcer else { return self.leave(direction, packet) };
                let (sent, outside) = (packet.segment, enforcer.counters().outside_window);
                match enforcer.on_packet(self.now, direction, packet) {
                    Action::Forward(packet) | Action::Rewritten(packet) => {
                        // the server refuses what is outside of its window
                        let is_outside = packet.corrupt || enforcer.counters().outside_window > outside;
                        if direction == Direction::In && !is_outside {
                            self.watch.on_answer(self.now, &sent, &packet.segment);
                        }
                        self.leave(direction, packet);
                    }
                    Action::Held | Action::Dropped => {}
                }
                self.drain();
            }
            Place::Server | Place::Client if packet.corrupt => {}
            Place::Client if self.watch.is_refused(&packet.segment) => {
                let (last, sock) = (self.watch.client_last, self.ends[1].sock());
                let (seq, ack) = (sock.snd_nxt, sock.rcv_nxt);
                self.send(1, Segment { seq, ack, len: 0, flags: flags::ACK, sack_count: 0, ..last });
            }
            Place::Server | Place::Client => {
                let end = usize::from(place == Place::Client);
                self.watch.on_arrival(self.now, end == 0, &packet.segment);
                self.act(end, |endpoint, now| endpoint.on_segment(now, &packet.segment));
            }
        }
    }

    /// Sends the enforcer's packets.
    pub fn drain(&mut self) {
        while let Some((direction, packet)) = self.enforcer.as_mut().and_then(Enforcer::poll_transmit) {
            self.leave(direction, packet);
        }
    }

    fn leave(&mut self, direction: Direction, packet: Simulated) {
        match direction {
            Direction::Out => self.carry(0, 1, Place::Client, packet),
            Direction::In => self.carry(1, 1, Place::Server, packet),
        }
    }
}
