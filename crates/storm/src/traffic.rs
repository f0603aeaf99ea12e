//! Servers without an agent, their clients, and the path between them, on which the enforcer is. A server has one connection at a time.

use enforcer::{Action, Direction, End, Enforcer, Simulated};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tcp::{Config, Endpoint, Segment, flags};
use testkit::Random;
use units::Time;

/// From the server to the enforcer, and from there to the client.
const NEAR: Time = Time::from_us(100);
const FAR: Time = Time::from_ms(5);
/// A usual connection, bytes; and what is written in a tick while the path loses segments, if the enforcer is to see it: about 1400
/// segments a second.
const USUAL: u64 = 30_000;
const MUCH: u64 = 200_000;
/// Loses so many of a hundred data segments.
const LOSES: u64 = 8;
/// A connection without progress for so long has ended: a lost retransmission is repeated after twice the time.
const STILL: Time = Time::from_secs(60);
/// Both ends have closed by then.
const CLOSED_WITHIN: Time = Time::from_secs(1);
/// A guard has judged losses that were so heavy for so many seconds: segments in each, and lost of a hundred.
const HEAVY: (u64, u64) = (1000, 6);
const JUDGED_AFTER: u32 = 3;

/// Where a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Server,
    Client,
    /// At the enforcer, going this way.
    Middle(Direction),
}

/// All of it.
pub struct Traffic {
    now: Time,
    config: Arc<Config>,
    paths: Vec<Path>,
    /// What must not be.
    pub complaints: Vec<String>,
}

/// A server, and the way to its clients.
struct Path {
    server: IpAddr,
    random: Random,
    connection: Option<Connection>,
    /// When the next one is opened.
    next_at: Time,
    is_losing: bool,
    ports: u16,
    /// Data segments for the client in this second, and lost ones; and how many seconds were heavy until now.
    sent: (u64, u64),
    heavy: u32,
}

struct Connection {
    /// Server, client.
    ends: [Endpoint; 2],
    client: End,
    flying: BTreeMap<(Time, u64), (Place, Simulated)>,
    order: u64,
    written: u64,
    /// What the client has acknowledged, and the server sent, at most.
    client_ack: Option<u32>,
    server_end: Option<u32>,
    received: u64,
    progress_at: Time,
    /// Everything has arrived.
    done_at: Option<Time>,
}

fn after(one: u32, other: u32) -> bool {
    (other.wrapping_sub(one) as i32) < 0
}

fn raise(mark: &mut Option<u32>, to: u32) {
    if mark.is_none_or(|mark| after(to, mark)) {
        *mark = Some(to);
    }
}

/// What happens next on a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Enforcer,
    Arrival(usize),
    End(usize, usize),
}

impl Traffic {
    /// Of servers with these addresses.
    pub fn new(servers: &[IpAddr], random: &mut Random) -> Traffic {
        let algorithm = congestion::Algorithm::named("cubic").expect("it is built in");
        let path = |server: &IpAddr| Path {
            server: *server,
            random: Random(random.next()),
            connection: None,
            next_at: Time::ZERO,
            is_losing: false,
            ports: 40_000,
            sent: (0, 0),
            heavy: 0,
        };
        Traffic {
            now: Time::ZERO,
            config: Arc::new(Config::linux(algorithm)),
            paths: servers.iter().map(path).collect(),
            complaints: Vec::new(),
        }
    }

    /// Whether a server's path loses segments.
    pub fn lose(&mut self, server: usize, is_losing: bool) {
        self.paths[server].is_losing = is_losing;
    }

    /// Whether a guard must have seen by now that a server's segments are lost: for so long they were, and enforced.
    pub fn is_judged(&self, server: usize) -> bool {
        self.paths[server].heavy > JUDGED_AFTER
    }

    /// Goes on until then. Servers of which `enforced` is true have a rule.
    pub fn run(&mut self, until: Time, mut core: Option<&mut Enforcer<Simulated>>, enforced: &[bool]) {
        for (server, is_enforced) in enforced.iter().enumerate() {
            self.demand(server, *is_enforced);
        }
        self.drain(core.as_deref_mut());
        while let Some((at, next)) = self.next(core.as_deref()).filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            match next {
                Next::Enforcer => core.as_deref_mut().expect("it has timers").on_timer(self.now),
                Next::Arrival(path) => self.arrive(path, core.as_deref_mut()),
                Next::End(path, end) => self.act(path, end, Endpoint::on_timer),
            }
            self.drain(core.as_deref_mut());
        }
        self.now = until;
    }

    /// What a second has shown of losses; to be called once in each.
    pub fn look(&mut self, enforced: &[bool]) {
        for (path, is_enforced) in self.paths.iter_mut().zip(enforced) {
            let (sent, lost) = std::mem::take(&mut path.sent);
            let is_heavy = *is_enforced && sent >= HEAVY.0 && lost * 100 >= sent * HEAVY.1;
            path.heavy = if is_heavy { path.heavy + 1 } else { 0 };
        }
    }

    /// Opens and closes a server's connection, and writes.
    fn demand(&mut self, server: usize, is_enforced: bool) {
        let (now, path) = (self.now, &mut self.paths[server]);
        let much = path.is_losing && is_enforced;
        let Some(connection) = &mut path.connection else {
            if now >= path.next_at {
                path.open(now, &self.config);
                self.act(server, 1, |_, _| ());
            }
            return;
        };
        let received = connection.ends[1].received();
        if received > connection.received {
            (connection.received, connection.progress_at) = (received, now);
        }
        if connection.done_at.is_none() && now > connection.progress_at + STILL {
            let what = format!("a connection of {} stands still at {received} of {}", path.server, connection.written);
            self.complaints.push(what);
            path.close(now);
            return;
        }
        if connection.done_at.is_some_and(|at| now > at + CLOSED_WITHIN) {
            path.close(now);
            return;
        }
        let is_complete = connection.ends[0].is_established() && received == connection.written && received > 0;
        let writes = if much { MUCH } else { USUAL.saturating_sub(connection.written) };
        if is_complete && !much && connection.done_at.is_none() {
            connection.done_at = Some(now);
            self.act(server, 0, Endpoint::close);
            self.act(server, 1, Endpoint::close);
        } else if connection.ends[0].is_established() && connection.done_at.is_none() && writes > 0 {
            // what waits is enough for a while
            if connection.written - received < 4 * MUCH {
                connection.written += writes;
                self.act(server, 0, |end, now| end.write_all(now, writes));
            }
        }
    }

    /// The earliest event.
    fn next(&self, core: Option<&Enforcer<Simulated>>) -> Option<(Time, Next)> {
        let of = |(at, path): (usize, &Path)| {
            let connection = path.connection.as_ref()?;
            let arrival = connection.flying.first_key_value().map(|((time, _), _)| (*time, Next::Arrival(at)));
            let timer = |end: usize| (connection.ends[end].poll_timeout(), Next::End(at, end));
            arrival.into_iter().chain([timer(0), timer(1)]).min()
        };
        let timer = core.map(|core| (core.poll_timeout(), Next::Enforcer));
        self.paths.iter().enumerate().filter_map(of).chain(timer).min().filter(|(at, _)| *at < Time::NEVER)
    }

    /// Calls one end of a connection, and sends what it has.
    fn act(&mut self, path: usize, end: usize, action: impl FnOnce(&mut Endpoint, Time)) {
        let (now, path) = (self.now, &mut self.paths[path]);
        let server = End::new(path.server, 80);
        let Some(connection) = &mut path.connection else { return };
        action(&mut connection.ends[end], now);
        let mut segment = Segment::default();
        while connection.ends[end].poll_transmit(now, &mut segment) {
            let (source, destination, direction, delay) = if end == 0 {
                raise(&mut connection.server_end, segment.end_seq());
                (server, connection.client, Direction::Out, NEAR)
            } else {
                if segment.flags & flags::ACK != 0 {
                    raise(&mut connection.client_ack, segment.ack);
                }
                (connection.client, server, Direction::In, FAR)
            };
            let packet = Simulated { source, destination, dscp: 0, corrupt: false, segment };
            connection.fly(now + delay, Place::Middle(direction), packet);
        }
    }

    fn arrive(&mut self, path: usize, core: Option<&mut Enforcer<Simulated>>) {
        let Some(connection) = &mut self.paths[path].connection else { return };
        let Some((_, (place, packet))) = connection.flying.pop_first() else { return };
        match place {
            Place::Middle(direction) => match core.map(|core| core.on_packet(self.now, direction, packet)) {
                // without an enforcer the bridge carries it
                None => self.leave(direction, packet),
                Some(Action::Forward(packet) | Action::Rewritten(packet)) => self.leave(direction, packet),
                Some(Action::Held | Action::Dropped) => {}
            },
            Place::Server => {
                let segment = packet.segment;
                if segment.flags & flags::ACK != 0 && connection.client_ack.is_none_or(|ack| after(segment.ack, ack)) {
                    self.complaints
                        .push(format!("{} sees acknowledged what no client has: {segment:?}", packet.destination.ip()));
                }
                self.act(path, 0, |end, now| end.on_segment(now, &segment));
            }
            Place::Client => {
                let segment = packet.segment;
                if segment.len > 0 && connection.server_end.is_none_or(|end| after(segment.end_seq(), end)) {
                    self.complaints
                        .push(format!("a client gets what {} has not sent: {segment:?}", packet.source.ip()));
                }
                self.act(path, 1, |end, now| end.on_segment(now, &segment));
            }
        }
    }

    /// Sends what the enforcer has.
    fn drain(&mut self, core: Option<&mut Enforcer<Simulated>>) {
        let Some(core) = core else { return };
        while let Some((direction, packet)) = core.poll_transmit() {
            self.leave(direction, packet);
        }
    }

    /// A packet leaves the enforcer.
    fn leave(&mut self, direction: Direction, packet: Simulated) {
        let (server, client) = match direction {
            Direction::Out => (packet.source, packet.destination),
            Direction::In => (packet.destination, packet.source),
        };
        let Some(path) = self.paths.iter_mut().find(|path| path.server == server.ip()) else { return };
        if direction == Direction::Out && packet.segment.len > 0 {
            path.sent.0 += 1;
            if path.is_losing && path.random.below(100) < LOSES {
                path.sent.1 += 1;
                return;
            }
        }
        // what comes late, of a connection that was closed, is lost
        let Some(connection) = path.connection.as_mut().filter(|connection| connection.client == client) else {
            return;
        };
        let (place, delay) = if direction == Direction::Out { (Place::Client, FAR) } else { (Place::Server, NEAR) };
        connection.fly(self.now + delay, place, packet);
    }
}

impl Path {
    fn open(&mut self, now: Time, config: &Arc<Config>) {
        self.ports += 1;
        let (iss, seed) = (self.random.next() as u32, self.random.next() as u32);
        self.connection = Some(Connection {
            ends: [Endpoint::listen(config, iss, seed), Endpoint::connect(config, !iss, !seed)],
            client: End::new(Ipv4Addr::new(192, 0, 2, 1).into(), self.ports),
            flying: BTreeMap::new(),
            order: 0,
            written: 0,
            client_ack: None,
            server_end: None,
            received: 0,
            progress_at: now,
            done_at: None,
        });
    }

    fn close(&mut self, now: Time) {
        self.connection = None;
        self.next_at = now + Time::from_ms(self.random.below(1000));
    }
}

impl Connection {
    fn fly(&mut self, at: Time, place: Place, packet: Simulated) {
        self.order += 1;
        self.flying.insert((at, self.order), (place, packet));
    }
}
