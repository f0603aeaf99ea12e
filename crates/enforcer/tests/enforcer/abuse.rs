//! Floods, storms and nonsense: memory stays bounded, nothing panics, and real connections continue.

use crate::rig::{CLIENT_ISS, SERVER_ISS, STACK, config, ends, rig, segment};
use congestion::Algorithm;
use enforcer::{Action, Direction, End, Enforcer, Limits, Rule, Simulated};
use tcp::{Ecn, SACK_BLOCKS_MAX, SackBlock, Segment, flags};
use testkit::{Random, asked};
use units::Time;

const S: u32 = SERVER_ISS + 1;
const C: u32 = CLIENT_ISS + 1;

/// A flood of SYNs, each answered, then acknowledged with a guessed number.
struct Flood {
    syns: u64,
    /// Interval of the SYNs.
    every: Time,
    /// RTT of the real clients, which send every thousandth SYN.
    rtt: Time,
    /// The SYNs come from the side of the servers.
    by_servers: bool,
    /// Each real handshake is joined by a SYN in its name.
    in_their_name: bool,
}

/// Whether 99 of 100 real connections that open during the flood are enforced, and nothing else is.
fn is_withstood(flood: &Flood) {
    let mut rig = rig("bbr", Limits::default(), STACK);
    let mut random = Random(5);
    let (syn, answer) = (rig.syn(CLIENT_ISS), rig.answer());
    let theirs = Segment { ack: SERVER_ISS + 1, ..rig.syn(SERVER_ISS) };
    let mut opening: std::collections::VecDeque<(Time, u32)> = std::collections::VecDeque::new();
    let mut real = 0;
    for n in 0..flood.syns {
        rig.now += flood.every;
        if n % 1000 == 0 {
            opening.push_back((rig.now + flood.rtt, real));
            rig.client(real, syn);
            if flood.in_their_name {
                rig.client(real, rig.syn(random.next() as u32));
            }
            rig.server(real, answer);
            real += 1;
        } else {
            // from anywhere
            let spoofed = 0x0100_0000 + random.below(1 << 30) as u32;
            let guess = random.next() as u32;
            if flood.by_servers {
                rig.server(spoofed, Segment { ack: 0, ..theirs });
                rig.client(spoofed, Segment { ack: SERVER_ISS + 1, flags: flags::SYN | flags::ACK, ..syn });
                rig.server(spoofed, segment(SERVER_ISS + 1, guess, 0));
            } else {
                rig.client(spoofed, syn);
                rig.server(spoofed, answer);
                rig.client(spoofed, segment(C, guess, 0));
            }
        }
        while let Some(&(at, connection)) = opening.front().filter(|(at, _)| *at <= rig.now) {
            opening.pop_front();
            rig.now = rig.now.max(at);
            rig.client(connection, segment(C, S, 0));
        }
    }
    let ended = real - opening.len() as u32;
    let enforced = rig.enforcer.flows() as u32;
    println!("{enforced} of {ended} are enforced; counters {:?}", rig.enforcer.counters());
    assert!(u64::from(ended) >= flood.syns / 2000 && enforced <= ended, "{enforced} of {ended}");
    assert!(enforced * 100 >= ended * 99, "{enforced} of {ended}");
}

const FLOOD: Flood = Flood {
    syns: 1_000_000,
    every: Time::from_us(1),
    rtt: Time::from_ms(200),
    by_servers: false,
    in_their_name: false,
};

#[test]
fn connections_opened_during_a_flood_of_syns_are_enforced() {
    is_withstood(&FLOOD);
}

#[test]
fn connections_opened_during_a_faster_flood_are_enforced() {
    // three packets for each SYN, more than a core takes
    is_withstood(&Flood { every: Time::from_ns(700), ..FLOOD });
}

#[test]
fn connections_opened_during_a_flood_from_the_servers_are_enforced() {
    is_withstood(&Flood { by_servers: true, ..FLOOD });
}

#[test]
fn a_spoofed_syn_does_not_evict_the_real_handshake() {
    is_withstood(&Flood { syns: 200_000, rtt: Time::from_ms(20), in_their_name: true, ..FLOOD });
}

#[test]
fn a_client_that_repeats_its_syn_amid_a_flood_is_enforced() {
    let mut rig = rig("bbr", Limits { half_open: 64, ..Limits::default() }, STACK);
    let (syn, answer) = (rig.syn(CLIENT_ISS), rig.answer());
    rig.client(0, syn);
    (1..10_000).for_each(|n| {
        rig.client(n, syn);
    });
    // its SYN is forgotten, or the answer was lost
    rig.now += Time::from_secs(1);
    rig.client(0, syn);
    rig.server(0, answer);
    rig.client(0, segment(C, S, 0));
    assert_eq!(rig.enforcer.flows(), 1);
}

#[test]
fn a_flow_continues_during_a_flood() {
    let mut rig = rig("newreno", Limits::default(), STACK);
    rig.open(0);
    let syn = rig.syn(CLIENT_ISS);
    for n in 0..1000 {
        for spoofed in 0..100 {
            rig.client(1 + n * 100 + spoofed, syn);
        }
        // also spoofed with its own addresses
        rig.client(0, rig.syn(n));
        let data = segment(S + n * 1448, C, 1448);
        assert_eq!(rig.server(0, data).iter().map(|s| s.seq).collect::<Vec<_>>(), [data.seq]);
        let end = data.seq + 1448;
        assert_eq!(rig.client(0, segment(C, end, 0)).map(|s| s.ack), Some(end));
    }
    assert_eq!(rig.enforcer.flows(), 1);
}

#[test]
fn flows_beyond_the_limit_pass_untouched() {
    let mut rig = rig("newreno", Limits { flows: 100, ..Limits::default() }, STACK);
    for n in 0..150 {
        rig.open(n);
    }
    assert_eq!((rig.enforcer.flows(), rig.enforcer.counters().passed_table_full), (100, 50));
    let untouched = segment(S, C, 1448);
    assert_eq!(rig.server(149, untouched), [untouched]);
}

#[test]
fn clients_that_give_up_at_once_do_not_fill_the_table() {
    // twenty a second; closed ones are forgotten after two minutes, so 2,400 are expected, and those that
    // the search has not reached yet
    let mut rig = rig("newreno", Limits { flows: 5000, ..Limits::default() }, STACK);
    for n in 0..30_000 {
        rig.open(n);
        rig.client(n, segment(C, S, 10));
        rig.client(n, Segment { flags: flags::RST, ..segment(C + 10, 0, 0) });
        rig.wait(Time::from_ms(40));
    }
    assert_eq!(rig.enforcer.counters().passed_table_full, 0);
}

#[test]
fn stalled_clients_do_not_exceed_the_cap_of_buffers() {
    const CAP: usize = 1 << 20;
    let mut rig = rig("newreno", Limits { buffer_bytes: CAP, ..Limits::default() }, STACK);
    for n in 0..200 {
        rig.open(n);
        for i in 0..60 {
            rig.server(n, segment(S + i * 1448, C, 1448));
            assert!(rig.enforcer.buffered_bytes() <= CAP);
        }
    }
    let counters = *rig.enforcer.counters();
    assert!(rig.enforcer.buffered_bytes() > CAP / 2);
    assert!(counters.passed_buffers_full > 0 && counters.buffers_full_dropped > 0, "{counters:?}");
    // the server must retransmit what has no copy here, so it sees the duplicates
    let mut duplicate = segment(C, S, 0);
    duplicate.sack[0] = SackBlock { start: S + 1448, end: S + 2896 };
    duplicate.sack_count = 1;
    assert_eq!(rig.client(199, duplicate).map(|s| s.sack_count), Some(1));
    // the clients answer: all memory is freed
    for n in 0..200 {
        rig.client(n, segment(C, S + 10 * 1448, 0));
        rig.leaves();
    }
    rig.wait(Time::from_secs(2000));
    assert_eq!((rig.enforcer.flows(), rig.enforcer.buffered_bytes()), (0, 0), "closed as unanswered");
}

#[test]
fn a_storm_of_acknowledgments_neither_reaches_the_server_nor_moves_the_window() {
    let mut rig = rig("newreno", Limits::default(), STACK);
    let third = rig.open(0);
    for n in 0..30 {
        rig.server(0, segment(S + n * 1448, C, 1448));
    }
    let mut passed = 0;
    for n in 0..10_000_u32 {
        // duplicates, old ones, ones of what has not left yet
        let ack = [S, S - 1000, S.wrapping_sub(1 << 20), S + 20 * 1448 + n][n as usize % 4];
        passed += u32::from(rig.client(0, segment(C, ack, 0)).is_some());
        rig.leaves();
    }
    assert!(passed < 10, "{passed}");
    // with data in them they have to pass
    let carried = (0..1000).map(|n| rig.client(0, segment(C, S - n % 2 * 1000, 1)).expect("it has data"));
    let furthest = carried.map(|s| s.ack + s.window).max();
    assert!(furthest <= Some(third.ack + third.window + 256), "{furthest:?} {third:?}");
    let divided: Vec<_> = (1..=1448).filter_map(|n| rig.client(0, segment(C, S + n, 0))).collect();
    let edge = divided.last().map(|s| s.ack + s.window);
    // a segment acknowledged in 1448 parts is one segment acknowledged (RFC 3465 2.1)
    assert!(edge <= Some(third.ack + third.window + 2 * 1448 + 256), "{edge:?} {third:?}");
}

#[test]
fn a_storm_of_duplicates_over_a_gap_does_not_move_the_window() {
    let mut rig = rig("newreno", Limits::default(), STACK);
    rig.open(0);
    rig.server(0, segment(S, C, 1448));
    rig.server(0, segment(S + 2 * 1448, C, 1448));
    let una = S + 1448;
    let first = rig.client(0, segment(C, una, 0)).expect("it is the first");
    let duplicates =
        (0..1000).map(|n| rig.client(0, segment(C, una - n % 2 * 1000, 0)).expect("the server is to recover"));
    let furthest = duplicates.map(|s| s.ack + s.window).max();
    assert!(furthest <= Some(first.ack + first.window + 256), "{furthest:?} {first:?}");
}

#[test]
fn optimistic_acknowledgments_do_not_reach_the_server() {
    let mut rig = rig("newreno", Limits::default(), STACK);
    rig.open(0);
    for n in 0..30 {
        rig.server(0, segment(S + n * 1448, C, 1448));
    }
    // the server has sent thirty, of which the client can have ten
    assert_eq!(rig.client(0, segment(C, S + 20 * 1448, 0)), None);
    assert_eq!(rig.enforcer.counters().optimistic_dropped, 1);
    assert_eq!(rig.client(0, segment(C, S + 10 * 1448, 0)).map(|s| s.ack), Some(S + 10 * 1448));
}

#[test]
fn a_client_may_shrink_its_window() {
    let mut rig = rig("newreno", Limits::default(), STACK);
    rig.open(0);
    for n in 0..4 {
        rig.server(0, segment(S + n * 1448, C, 1448));
    }
    for window in [65_536, 4096, 256, 0, 2048, 65_536] {
        let shrunk = Segment { window, ..segment(C, S + 1448, 10) };
        let seen = rig.client(0, shrunk).expect("it carries data");
        assert!(seen.window <= window, "{window}: {seen:?}");
    }
}

#[test]
fn stalled_clients_leave_memory_to_others() {
    const CAP: usize = 8 << 20;
    let mut rig =
        rig("newreno", Limits { buffer_bytes: CAP, beyond_window_bytes: 1 << 24, ..Limits::default() }, STACK);
    // servers that send far more than they may, to clients that are gone
    for n in 1..20 {
        rig.open(n);
        for i in 0..600 {
            rig.server(n, segment(S + i * 1448, C, 1448));
        }
    }
    let full = rig.enforcer.buffered_bytes();
    assert!(full > CAP - 4096, "{full}");
    // retransmitted data that was not buffered is not buffered now either
    for n in 1..20 {
        for i in 0..600 {
            rig.server(n, segment(S + i * 1448, C, 1448));
            assert!(rig.enforcer.buffered_bytes() <= CAP);
        }
    }
    rig.wait(Time::from_secs(10));
    let counters = *rig.enforcer.counters();
    assert!(rig.enforcer.buffered_bytes() <= CAP / 2 && counters.flows_silent > 0, "{counters:?}");
    assert!(rig.enforcer.flows() > 5, "the rest may be kept");
    // another flow continues, at the rate of its own window
    rig.open(0);
    for n in 0..100 {
        let end = S + (n + 1) * 1448;
        assert_eq!(rig.server(0, segment(end - 1448, C, 1448)).len(), 1);
        let seen = rig.client(0, segment(C, end, 0)).expect("it acknowledges");
        assert!(seen.window > 10 * 1448, "{seen:?}");
    }
}

/// Random headers, about half of them nearly plausible.
fn nonsense(random: &mut Random, n: u32) -> (Direction, Simulated) {
    let out = random.below(2) == 0;
    let [server, client] = ends(n);
    let near = |random: &mut Random, base: u32| match random.below(4) {
        0 => random.next() as u32,
        1 => base,
        2 => base.wrapping_add(1448 * random.below(40) as u32),
        _ => base.wrapping_add(random.below(100_000) as u32).wrapping_sub(20_000),
    };
    let (seq, ack) = if out { (S, C) } else { (C, S) };
    let mut segment = Segment {
        seq: near(random, seq),
        ack: near(random, ack),
        window: [0, 1, 1000, 65_535, random.next() as u32 >> random.below(32)][random.below(5) as usize],
        tsval: random.next() as u32,
        tsecr: random.next() as u32,
        len: [0, 1, 1448, 1460, random.next() as u16][random.below(5) as usize],
        mss: [0, 1, 536, 1460, random.next() as u16][random.below(5) as usize],
        // rarely what ends or begins a connection
        flags: if random.below(20) == 0 { random.next() as u8 } else { random.next() as u8 & 0xf8 | flags::ACK },
        ecn: [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][random.below(4) as usize],
        has_timestamp: random.below(4) > 0,
        sack_permitted: random.below(2) > 0,
        window_scale: random.next() as u8,
        sack_count: random.below(SACK_BLOCKS_MAX as u64 + 1) as u8,
        ..Segment::default()
    };
    for block in &mut segment.sack {
        let start = near(random, ack);
        *block = SackBlock { start, end: start.wrapping_add(random.next() as u32 >> random.below(32)) };
    }
    let (source, destination): (End, End) = if out { (server, client) } else { (client, server) };
    let direction = if out { Direction::Out } else { Direction::In };
    (direction, Simulated { source, destination, dscp: 0, corrupt: random.below(50) == 0, segment })
}

#[test]
fn nonsense_is_survived_within_bounds() {
    const FLOWS: u32 = 40;
    const CAP: usize = 4 << 20;
    let packets = asked("ENFORCER_FUZZ").unwrap_or(100_000);
    let limits = Limits { flows: 30, half_open: 256, buffer_bytes: CAP, ..Limits::default() };
    let algorithms = Algorithm::builtins();
    let rounds = 10;
    let mut taken = 0;
    for round in 0..rounds {
        let mut random = Random(asked("ENFORCER_SEED").unwrap_or(1) ^ (round << 40));
        let mut rig = rig("bbr", limits, STACK);
        let rules = (0..FLOWS).map(|n| Rule {
            clients: policy::Prefix::new(ends(n)[1].ip(), 32),
            ..Rule::all(&config(algorithms[n as usize % algorithms.len()].name()))
        });
        rig.enforcer = Enforcer::new(limits, rules.chain([Rule::all(&config("bbr"))]).collect(), round);
        for n in 0..packets / rounds {
            let flow = random.below(FLOWS.into()) as u32;
            if n % 500 == 0 {
                let (syn, answer) = (rig.syn(CLIENT_ISS), rig.answer());
                rig.client(flow, syn);
                rig.server(flow, answer);
                rig.client(flow, segment(C, S, 0));
            }
            let (direction, packet) = nonsense(&mut random, flow);
            let action = rig.put_packet(direction, packet);
            if let (true, Action::Rewritten(_)) = (packet.corrupt, action) {
                panic!("a corrupt packet was changed");
            }
            rig.leaves();
            rig.wait(Time::from_ps(random.next() >> (24 + random.below(30))));
            assert!(rig.enforcer.buffered_bytes() <= CAP && rig.enforcer.flows() <= 30);
        }
        taken += rig.enforcer.counters().data_taken;
        while rig.enforcer.poll_record().is_some() {}
    }
    assert!(taken > packets / 1000, "some of it makes sense: {taken}");
}
