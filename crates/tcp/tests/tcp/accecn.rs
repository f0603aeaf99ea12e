//! AccECN (RFC 9768): the sender's count of marks is the receiver's, whatever becomes of segments and ACKs; and a peer without it
//! gets what it knows.

use crate::wire::Pair;
use congestion::Algorithm;
use congestion::sock::ecn;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tcp::{Config, Ecn, EcnMode, Endpoint, Segment, flags};
use testkit::Random;
use units::Time;

const ONE_WAY: Time = Time::from_ms(5);
const BYTES: u64 = 3_000_000;

/// What a wire does, in cases of 1000.
#[derive(Clone, Copy, Default)]
struct Faults {
    mark: u64,
    loss: u64,
    duplicate: u64,
    /// Of so many pure ACKs the last one arrives; 0: all.
    ack_of: u64,
}

/// What it saw.
#[derive(Default)]
struct Seen {
    /// Data segments that arrived marked.
    marked: u32,
    /// The most segments that an ACK acknowledged.
    most: u32,
    last_ack: u32,
    /// Segments of the established connection with a classic flag.
    classic: u32,
}

fn config(mode: EcnMode) -> Config {
    Config { ecn: mode, ..Config::linux(Algorithm::named("dctcp").expect("built in")) }
}

fn ends(modes: [EcnMode; 2]) -> [Endpoint; 2] {
    let [client, server] = modes.map(|mode| Arc::new(config(mode)));
    // sequence numbers that wrap
    [Endpoint::connect(&client, u32::MAX - 400_000, 1), Endpoint::listen(&server, 80_000, 2)]
}

/// Sends [`BYTES`] over such a wire; what the sender has counted, and what the wire has seen.
fn transfer(seed: u64, faults: Faults) -> (u32, Seen) {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let mut random = Random(seed);
    let watched = Rc::clone(&seen);
    let mut acks = 0;
    let wire = move |now: Time, from: usize, segment: &Segment| {
        let mut seen = watched.borrow_mut();
        let mut happens = |permille| random.below(1000) < permille;
        let mut segment = *segment;
        let mut arrivals = vec![now + ONE_WAY];
        if segment.flags & flags::SYN != 0 {
            return vec![(arrivals[0], segment)];
        }
        seen.classic += u32::from(segment.flags & (flags::ECE | flags::CWR) != 0);
        if from == 1 {
            acks += 1;
            if faults.ack_of > 0 && acks % faults.ack_of != 0 && segment.flags == flags::ACK {
                return Vec::new();
            }
            let newly = segment.ack.wrapping_sub(seen.last_ack);
            if seen.last_ack != 0 && newly < 1 << 30 {
                seen.most = seen.most.max(newly.div_ceil(1448));
            }
            seen.last_ack = segment.ack;
            return vec![(arrivals[0], segment)];
        }
        if segment.len == 0 {
            return vec![(arrivals[0], segment)];
        }
        if happens(faults.loss) {
            return Vec::new();
        }
        if segment.ecn != Ecn::NotEct && happens(faults.mark) {
            segment.ecn = Ecn::Ce;
        }
        if happens(faults.duplicate) {
            arrivals.push(now + ONE_WAY + Time::from_us(50));
        }
        seen.marked += if segment.ecn == Ecn::Ce { arrivals.len() as u32 } else { 0 };
        arrivals.into_iter().map(|at| (at, segment)).collect()
    };
    let mut pair = Pair::new(ends([EcnMode::Accurate; 2]), Time::from_secs(1), wire, |_, _| {});
    pair.act(0, |end, now| end.write_all(now, BYTES));
    while pair.ends[0].acked() < BYTES {
        assert!(pair.step(), "{} bytes are acknowledged", pair.ends[0].acked());
    }
    // later ACKs of duplicates
    while pair.next_time() < pair.now + Time::from_ms(500) && pair.step() {}
    let counted = pair.ends[0].sock().delivered_ce;
    assert_eq!(pair.ends[1].stats().ce_received, seen.borrow().marked, "the receiver counts what arrived");
    drop(pair);
    (counted, Rc::into_inner(seen).expect("the wire is gone").into_inner())
}

#[test]
fn the_senders_count_is_the_receivers() {
    let calm = Faults { mark: 100, ..Faults::default() };
    let cases = [
        ("delayed ACKs", calm),
        ("all marked", Faults { mark: 1000, ..calm }),
        ("losses", Faults { loss: 20, ..calm }),
        ("losses and duplicates", Faults { loss: 20, duplicate: 20, ..calm }),
        ("every third ACK", Faults { ack_of: 3, ..calm }),
        ("every third ACK, many marks", Faults { ack_of: 3, mark: 500, ..calm }),
        ("every third ACK, losses", Faults { ack_of: 3, loss: 10, ..calm }),
    ];
    for (name, faults) in cases {
        for seed in 1..=5 {
            let (counted, seen) = transfer(seed, faults);
            println!("{name}: {counted} of {} marks, at most {} segments an ACK", seen.marked, seen.most);
            assert!(seen.marked > 50 && seen.classic == 0);
            assert_eq!(counted, seen.marked, "{name}, seed {seed}");
        }
    }
}

/// Beyond seven segments an ACK is ambiguous: the count is never too low.
#[test]
fn with_one_ack_in_eight_no_mark_is_missed() {
    for seed in 1..=5 {
        let (counted, seen) = transfer(seed, Faults { mark: 50, ack_of: 8, ..Faults::default() });
        println!("{counted} of {} marks, at most {} segments an ACK", seen.marked, seen.most);
        assert!(counted >= seen.marked);
    }
}

/// The flags of SYN and SYN-ACK, the ecn_flags of both ends when the connection is open, and the third segment's count.
fn handshake(modes: [EcnMode; 2], syn_ack: Ecn) -> (Vec<(u8, u8)>, [u8; 2], u8) {
    let seen = Rc::new(RefCell::new((Vec::new(), 0)));
    let watched = Rc::clone(&seen);
    let wire = move |now: Time, from: usize, segment: &Segment| {
        let mut segment = *segment;
        if segment.flags & flags::SYN != 0 {
            let ecn_flags = segment.flags & (flags::ECE | flags::CWR);
            watched.borrow_mut().0.push((ecn_flags, segment.ace));
            if from == 1 {
                segment.ecn = syn_ack;
            }
        } else if from == 0 && watched.borrow().1 == 0 {
            watched.borrow_mut().1 = segment.ace;
        }
        vec![(now + ONE_WAY, segment)]
    };
    let mut pair = Pair::new(ends(modes), Time::from_secs(1), wire, |_, _| {});
    while !(pair.ends[0].is_established() && pair.ends[1].is_established()) {
        assert!(pair.step());
    }
    let flags = [0, 1].map(|end| pair.ends[end].sock().ecn_flags & (ecn::OK | ecn::ACCURATE));
    drop(pair);
    let (syns, third) = Rc::into_inner(seen).expect("the wire is gone").into_inner();
    (syns, flags, third)
}

#[test]
fn a_peer_without_it_gets_what_it_knows() {
    const ACCURATE: u8 = ecn::OK | ecn::ACCURATE;
    const BOTH: u8 = flags::ECE | flags::CWR;
    use EcnMode::{Accurate, Off, On};
    // all three flags ask; CWR alone says that the SYN was not ECT (table 2)
    let all = handshake([Accurate, Accurate], Ecn::NotEct);
    assert_eq!(all, (vec![(BOTH, 8 | 7), (flags::CWR, 8 | 2)], [ACCURATE; 2], 8 | 2));
    let classic_server = handshake([Accurate, On], Ecn::NotEct);
    assert_eq!(classic_server, (vec![(BOTH, 8 | 7), (flags::ECE, 0)], [ecn::OK; 2], 0));
    let classic_client = handshake([On, Accurate], Ecn::NotEct);
    assert_eq!(classic_client, (vec![(BOTH, 0), (flags::ECE, 0)], [ecn::OK; 2], 0));
    let none = handshake([Accurate, Off], Ecn::NotEct);
    assert_eq!(none, (vec![(BOTH, 8 | 7), (0, 0)], [0; 2], 0));
}

#[test]
fn the_client_says_how_the_syn_ack_arrived() {
    let third = |arrived| handshake([EcnMode::Accurate; 2], arrived).2;
    assert_eq!([Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].map(third), [8 | 2, 8 | 3, 8 | 4, 8 | 6]);
}
