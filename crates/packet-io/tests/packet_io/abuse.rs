//! An enforcer under malformed frames: headers broken anywhere, options cut off, odd lengths, checksums right and wrong. Nothing panics,
//! memory stays bounded, and a connection among them continues. Packets whose options forbid changes pass unchanged.
//!
//! `ENFORCER_FUZZ` sets more frames, `ENFORCER_SEED` others.

use crate::support::{Plan, slow_pseudo_sum};
use congestion::Algorithm;
use enforcer::{Action, Direction, Enforcer, Limits, Packet, Rule};
use packet_io::{OwnedFrame, TcpFlags, VnetHeader, complete};
use std::sync::Arc;
use tcp::Config;
use testkit::{Random, asked};
use units::Time;

const SERVER_ISS: u32 = 5_000;
const CLIENT_ISS: u32 = 90_000;
/// Clients, of which number 0 is real.
const CLIENTS: u64 = 8;
const FLOWS_MAX: usize = 6;
const CAP: usize = 1 << 20;
const PAYLOAD: usize = 100;
/// Timestamps; then a SYN's options: MSS, SACK, scale 7.
const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
const OPENING: [u8; 20] = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
/// Two SACK blocks.
const SACKED: [u8; 20] = [1, 1, 5, 18, 0, 1, 0x16, 0, 0, 1, 0x17, 0, 0, 1, 0x18, 0, 0, 1, 0x19, 0];

/// A packet between the server and a client; even clients have IPv6, and every third a tag.
fn plan(client: u64, by_server: bool, seq: u32, ack: u32) -> Plan {
    let (near, far) = ((1, 80), (2 + client as u8, 40_000 + client as u16));
    let ((from, source), (to, destination)) = if by_server { (near, far) } else { (far, near) };
    Plan {
        v6: client.is_multiple_of(2),
        tags: usize::from(client.is_multiple_of(3)),
        hosts: (from, to),
        ports: (source, destination),
        seq,
        ack,
        options: TIMESTAMPS.to_vec(),
        ..Plan::default()
    }
}

/// Its frame with a whole checksum.
fn frame(plan: &Plan) -> Vec<u8> {
    let (header, mut bytes) = plan.packet();
    complete(&header, &mut bytes);
    bytes
}

struct Rig {
    enforcer: Enforcer<OwnedFrame>,
    now: Time,
}

impl Rig {
    /// Passes a frame in; returns the frames that leave to the other side because of it, itself first.
    fn put(&mut self, direction: Direction, bytes: &[u8]) -> Vec<OwnedFrame> {
        let action = self.enforcer.on_packet(self.now, direction, OwnedFrame::received(bytes, false));
        let mut got: Vec<OwnedFrame> = match action {
            Action::Forward(packet) | Action::Rewritten(packet) => vec![packet],
            Action::Held | Action::Dropped => Vec::new(),
        };
        while let Some((_, packet)) = self.enforcer.poll_transmit() {
            got.push(packet);
        }
        got
    }

    fn open(&mut self, client: u64) {
        let syn = Plan { flags: TcpFlags::SYN, options: OPENING.to_vec(), ..plan(client, false, CLIENT_ISS, 0) };
        let flags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
        let answer =
            Plan { flags, options: OPENING.to_vec(), ..plan(client, true, SERVER_ISS, CLIENT_ISS.wrapping_add(1)) };
        self.put(Direction::In, &frame(&syn));
        self.put(Direction::Out, &frame(&answer));
        self.put(Direction::In, &frame(&plan(client, false, CLIENT_ISS + 1, SERVER_ISS + 1)));
    }

    fn wait(&mut self, by: Time) {
        self.now += by;
        self.enforcer.on_timer(self.now);
        while self.enforcer.poll_transmit().is_some() {}
    }

    /// The real server sends a packet, and the real client acknowledges it.
    fn exchange(&mut self, number: u32) {
        let seq = (SERVER_ISS + 1).wrapping_add(number.wrapping_mul(PAYLOAD as u32));
        let payload: Vec<u8> = (0..PAYLOAD).map(|at| (at as u32 + number) as u8).collect();
        let got =
            self.put(Direction::Out, &frame(&Plan { payload: payload.clone(), ..plan(0, true, seq, CLIENT_ISS + 1) }));
        let has = |packet: &OwnedFrame| {
            packet.header().is_some_and(|header| header.segment.seq == seq) && packet.to_vec().ends_with(&payload)
        };
        assert!(got.iter().any(has), "packet {number} reaches the client");
        let end = seq.wrapping_add(PAYLOAD as u32);
        let got = self.put(Direction::In, &frame(&plan(0, false, CLIENT_ISS + 1, end)));
        let acked = got.first().and_then(Packet::header).map(|header| header.segment.ack);
        assert_eq!(acked, Some(end), "and its acknowledgment the server");
    }
}

/// A nearly plausible packet; those with the real connection's addresses are from an off-path attacker.
fn nonsense(random: &mut Random, reached: u32) -> (Direction, Vec<u8>) {
    let (client, by_server) = (random.below(CLIENTS), random.below(2) == 0);
    let (seq, ack) = if by_server { (SERVER_ISS, CLIENT_ISS) } else { (CLIENT_ISS, SERVER_ISS) };
    let near = |random: &mut Random, base: u32| match random.below(3) {
        0 => random.next() as u32,
        1 => base + 1,
        _ => base.wrapping_add(random.below(100_000) as u32).wrapping_sub(20_000),
    };
    let any = [TcpFlags(random.next() as u16 & 0xff), TcpFlags::ACK, TcpFlags::ACK, TcpFlags(0x18), TcpFlags(0x11)];
    let mut options = [Vec::new(), TIMESTAMPS.to_vec(), [&TIMESTAMPS[..], &SACKED].concat(), OPENING.to_vec()]
        [random.below(4) as usize]
        .clone();
    for _ in 0..random.below(3).min(options.len() as u64) {
        let at = random.below(options.len() as u64) as usize;
        options[at] = random.next() as u8;
    }
    let mut plan = Plan {
        window: random.next() as u16,
        ecn: random.below(4) as u8,
        flags: any[random.below(5) as usize],
        options,
        payload: vec![0; [0, 1, PAYLOAD, random.below(1400) as usize][random.below(4) as usize]],
        ..plan(client, by_server, near(random, seq), near(random, ack))
    };
    if client == 0 {
        let far = |random: &mut Random, base: u32| base.wrapping_add(0x1000_0000 + random.below(0xe000_0000) as u32);
        (plan.seq, plan.ack) = if by_server {
            (far(random, SERVER_ISS.wrapping_add(reached)), far(random, CLIENT_ISS))
        } else {
            (far(random, CLIENT_ISS), far(random, SERVER_ISS.wrapping_add(reached)))
        };
    }
    let direction = if by_server { Direction::Out } else { Direction::In };
    (direction, broken(random, &plan))
}

/// Its frame, broken in half of the cases: bytes changed, cut off, appended; half of these with new checksums.
fn broken(random: &mut Random, plan: &Plan) -> Vec<u8> {
    let mut bytes = frame(plan);
    if random.below(2) == 0 {
        return bytes;
    }
    let (tcp, is_real) = (plan.tcp_at(), plan.hosts.0 == 2 || plan.hosts.1 == 2);
    // an off-path attacker does not hit the real numbers by changes either
    let from = if is_real { tcp + 12 } else { 12 };
    for _ in 0..=random.below(3) {
        let at = from + random.below((bytes.len() - from) as u64) as usize;
        bytes[at] = random.next() as u8;
    }
    match random.below(4) {
        0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
        1 => bytes.extend_from_within(..random.below(20) as usize),
        _ => {}
    }
    if random.below(2) == 0 && bytes.len() > tcp + 20 {
        let partial = slow_pseudo_sum(&bytes[plan.ip_at()..], plan.v6, bytes.len() - tcp);
        bytes[tcp + 16..tcp + 18].copy_from_slice(&partial.to_be_bytes());
        complete(&VnetHeader::partial(tcp as u16, 16), &mut bytes);
    }
    bytes
}

#[test]
fn frames_that_make_no_sense_are_survived_and_a_connection_goes_on() {
    let frames = asked("ENFORCER_FUZZ").unwrap_or(100_000);
    let limits = Limits { flows: FLOWS_MAX, half_open: 64, buffer_bytes: CAP, ..Limits::default() };
    let config = Arc::new(Config::linux(Algorithm::named("newreno").expect("built in")));
    let mut rig = Rig { enforcer: Enforcer::new(limits, vec![Rule::all(&config)], 7), now: Time::from_secs(1) };
    let mut random = Random(asked("ENFORCER_SEED").unwrap_or(1));
    rig.open(0);
    let mut exchanged = 0;
    for n in 0..frames {
        if n % 100 == 50 {
            rig.open(1 + random.below(CLIENTS - 1));
        }
        let (direction, bytes) = nonsense(&mut random, exchanged * PAYLOAD as u32);
        rig.put(direction, &bytes);
        if n % 10 == 0 {
            rig.wait(Time::from_us(random.below(20_000)));
        }
        if n % 50 == 0 {
            rig.exchange(exchanged);
            exchanged += 1;
        }
        assert!(rig.enforcer.buffered_bytes() <= CAP && rig.enforcer.flows() <= FLOWS_MAX);
        while rig.enforcer.poll_record().is_some() {}
    }
    let counters = *rig.enforcer.counters();
    println!("{exchanged} packets of the connection went through; {counters:?}");
    // all kinds of packets occurred
    assert!(counters.passed_malformed * 10 > frames && counters.data_taken > u64::from(exchanged), "{counters:?}");
    assert!(
        counters.beyond_window_dropped > 0 && counters.outside_window > 0 && counters.flows_reset > 0,
        "{counters:?}"
    );
}

/// An option of `length` bytes, and what fills its last word.
fn option(kind: u8, length: u8) -> Vec<u8> {
    let mut bytes = vec![kind, length];
    bytes.resize(usize::from(length), 7);
    bytes.resize(bytes.len().next_multiple_of(4), 1);
    bytes
}

#[test]
fn connections_whose_acknowledgments_are_signed_or_say_more_pass_untouched() {
    // TCP-MD5, TCP-AO, Multipath TCP; accurate ECN is requested by flags alone
    let (ecn, none) = (TcpFlags::AE | TcpFlags::CWR | TcpFlags::ECE, TcpFlags(0));
    for (added, asked) in [(option(19, 18), none), (option(29, 16), none), (option(30, 12), none), (vec![], ecn)] {
        let config = Arc::new(Config::linux(Algorithm::named("newreno").expect("built in")));
        let mut rig = Rig { enforcer: Enforcer::new(Limits::default(), vec![Rule::all(&config)], 7), now: Time::ZERO };
        let mut put = |direction: Direction, plan: Plan| {
            let bytes = frame(&Plan { options: [plan.options.clone(), added.clone()].concat(), ..plan });
            let got: Vec<_> = rig.put(direction, &bytes).iter().map(OwnedFrame::to_vec).collect();
            assert_eq!(got, [bytes]);
            (rig.enforcer.flows(), rig.enforcer.counters().passed_by_option)
        };
        let opening = || OPENING.to_vec();
        let (client, server) = (CLIENT_ISS + 1, SERVER_ISS + 1);
        let syn = Plan { flags: TcpFlags::SYN | asked, options: opening(), ..plan(0, false, CLIENT_ISS, 0) };
        put(Direction::In, syn);
        let answer = TcpFlags::SYN | TcpFlags::ACK;
        put(Direction::Out, Plan { flags: answer, options: opening(), ..plan(0, true, SERVER_ISS, client) });
        put(Direction::In, plan(0, false, client, server));
        put(Direction::Out, Plan { payload: vec![0; PAYLOAD], ..plan(0, true, server, client) });
        // with the window that is the client's, not the algorithm's
        let (flows, passed) = put(Direction::In, plan(0, false, client, server + PAYLOAD as u32));
        assert!(flows == 0 && passed > 0, "{added:?}: {flows} {passed}");
    }
}

#[test]
fn a_signed_packet_of_an_enforced_connection_passes_untouched() {
    let config = Arc::new(Config::linux(Algorithm::named("newreno").expect("built in")));
    let mut rig = Rig { enforcer: Enforcer::new(Limits::default(), vec![Rule::all(&config)], 7), now: Time::ZERO };
    rig.open(0);
    for kind in [19, 29] {
        let ack = plan(0, false, CLIENT_ISS + 1, SERVER_ISS + 1);
        // its window is more than the algorithm's
        let signed = frame(&Plan { options: option(kind, 18), window: 60_000, ..ack.clone() });
        assert_eq!(rig.put(Direction::In, &signed).iter().map(OwnedFrame::to_vec).collect::<Vec<_>>(), [signed]);
        let plain = frame(&Plan { window: 60_000, ..ack });
        assert_ne!(rig.put(Direction::In, &plain).iter().map(OwnedFrame::to_vec).collect::<Vec<_>>(), [plain]);
    }
    assert_eq!(rig.enforcer.flows(), 1);
}
