//! An enforcer alone: tests pass in packets by hand, and examine the results.

use congestion::Algorithm;
use enforcer::{Action, Direction, End, Enforcer, Limits, Rule, Simulated};
use std::sync::Arc;
use tcp::{Config, Segment, flags};
use units::Time;

pub const SERVER_ISS: u32 = 5_000;
pub const CLIENT_ISS: u32 = 90_000;

/// The ends' options.
#[derive(Clone, Copy)]
pub struct Stack {
    pub mss: u16,
    pub scale: u8,
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
}

pub const STACK: Stack = Stack { mss: 1460, scale: 7, sack: true, timestamps: true, ecn: false };

pub struct Rig {
    pub now: Time,
    pub enforcer: Enforcer<Simulated>,
    pub stack: Stack,
    /// The code point of every packet.
    pub dscp: u8,
    /// Packets that were passed in, and that left later.
    given: u64,
    left: u64,
}

pub fn config(algorithm: &str) -> Arc<Config> {
    Arc::new(Config::linux(Algorithm::named(algorithm).expect("built in")))
}

pub fn rig(algorithm: &str, limits: Limits, stack: Stack) -> Rig {
    let rules = vec![Rule::all(&config(algorithm))];
    Rig { now: Time::from_ms(1000), enforcer: Enforcer::new(limits, rules, 42), stack, dscp: 0, given: 0, left: 0 }
}

/// The ends of connection number `n`.
pub fn ends(n: u32) -> [End; 2] {
    let client = std::net::Ipv4Addr::from_bits(0xcb00_7100 + (n >> 14));
    [End::new([192, 0, 2, 1].into(), 80), End::new(client.into(), 40_000 + (n & 0x3fff) as u16)]
}

/// A segment with ACK, timestamps and a window of 64 kB.
pub fn segment(seq: u32, ack: u32, len: u16) -> Segment {
    let tsval = 100_000;
    Segment { seq, ack, len, flags: flags::ACK, window: 65_536, has_timestamp: true, tsval, ..Segment::default() }
}

impl Rig {
    fn put(&mut self, n: u32, direction: Direction, segment: Segment) -> Action<Simulated> {
        let [server, client] = ends(n);
        let out = direction == Direction::Out;
        let (source, destination) = if out { (server, client) } else { (client, server) };
        self.put_packet(direction, Simulated { source, destination, dscp: self.dscp, corrupt: false, segment })
    }

    /// Another enforcer from now on.
    #[allow(dead_code, reason = "some tests have one alone")]
    pub fn replace(&mut self, enforcer: Enforcer<Simulated>) {
        self.enforcer = enforcer;
        (self.given, self.left) = (0, 0);
    }

    pub fn put_packet(&mut self, direction: Direction, packet: Simulated) -> Action<Simulated> {
        self.given += 1;
        self.enforcer.on_packet(self.now, direction, packet)
    }

    /// The server of connection `n` sends; returns what the client gets, delayed packets included.
    pub fn server(&mut self, n: u32, segment: Segment) -> Vec<Segment> {
        let action = self.put(n, Direction::Out, segment);
        let mut got: Vec<Segment> = forwarded(action).into_iter().collect();
        got.extend(self.leaves());
        got
    }

    /// The client sends; returns what the server gets.
    pub fn client(&mut self, n: u32, segment: Segment) -> Option<Segment> {
        forwarded(self.put(n, Direction::In, segment))
    }

    /// What the enforcer sends to clients now.
    pub fn leaves(&mut self) -> Vec<Segment> {
        let mut got = Vec::new();
        while let Some((direction, packet)) = self.enforcer.poll_transmit() {
            assert_eq!(direction, Direction::Out);
            got.push(packet.segment);
        }
        self.left += got.len() as u64;
        got
    }

    pub fn wait(&mut self, by: Time) -> Vec<Segment> {
        let end = self.now + by;
        let mut got = Vec::new();
        while self.enforcer.poll_timeout() <= end {
            self.now = self.now.max(self.enforcer.poll_timeout());
            self.enforcer.on_timer(self.now);
            got.extend(self.leaves());
        }
        self.now = end;
        got
    }

    pub fn syn(&self, seq: u32) -> Segment {
        let stack = self.stack;
        let bits = if stack.ecn { flags::ECE | flags::CWR } else { 0 };
        Segment {
            seq,
            flags: flags::SYN | bits,
            window: 65_535,
            mss: stack.mss,
            window_scale: stack.scale + 1,
            sack_permitted: stack.sack,
            has_timestamp: stack.timestamps,
            ..Segment::default()
        }
    }

    pub fn answer(&self) -> Segment {
        let bits = if self.stack.ecn { flags::ECE } else { 0 };
        Segment { ack: CLIENT_ISS + 1, flags: flags::SYN | flags::ACK | bits, ..self.syn(SERVER_ISS) }
    }

    /// The client of connection `n` opens it, 10 ms away; returns its last segment as the server gets it.
    pub fn open(&mut self, n: u32) -> Segment {
        self.open_at(n, Time::from_ms(10))
    }

    pub fn open_at(&mut self, n: u32, rtt: Time) -> Segment {
        let syn = self.syn(CLIENT_ISS);
        assert_eq!(self.client(n, syn), Some(syn), "a SYN passes as it is");
        let answer = self.answer();
        assert_eq!(self.server(n, answer), [answer]);
        self.now += rtt;
        self.client(n, segment(CLIENT_ISS + 1, SERVER_ISS + 1, 0)).expect("the handshake ends")
    }
}

impl Drop for Rig {
    /// In every test, each packet was counted exactly once.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.leaves();
        let c = self.enforcer.counters();
        assert_eq!(c.forwarded + c.rewritten + c.held + c.dropped, self.given, "{c:?}");
        let passed = c.passed_malformed + c.passed_unknown + c.passed_by_rule + c.passed_by_option;
        let for_want_of_room = c.passed_table_full + c.passed_buffers_full;
        assert_eq!(passed + for_want_of_room + c.handshakes + c.unchanged + c.others_forwarded, c.forwarded, "{c:?}");
        let from_clients = c.hidden + c.thinned + c.optimistic_dropped;
        assert_eq!(from_clients + c.beyond_window_dropped + c.buffers_full_dropped, c.dropped, "{c:?}");
        assert_eq!(c.sent + c.retransmitted + c.acks_ahead, self.left, "{c:?}");
    }
}

fn forwarded(action: Action<Simulated>) -> Option<Segment> {
    match action {
        Action::Forward(packet) | Action::Rewritten(packet) => Some(packet.segment),
        Action::Held | Action::Dropped => None,
    }
}
