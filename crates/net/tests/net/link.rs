//! Departures, limits, counters and failures of a single link.

use crate::common::{self, LINK, gbps8, offer, offer_ecn, one_link};
use net::{BufferSpec, Depth, Ecn, LinkTable, Outcome, QueueLength, QueueSpec, RedSpec, SharedSpec, Topology};
use proptest::prelude::*;
use std::collections::VecDeque;
use units::{Bytes, Rate, Time};

const ZERO: Time = Time::ZERO;

fn ns(n: u64) -> Time {
    Time::from_ns(n)
}

#[test]
fn a_packet_leaves_when_those_before_it_have_left() {
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(100));
    // Idle: 0 + 1000 ns. Behind it: 1000 + 500. A gap, then idle again: 3000 + 64.
    assert_eq!(offer(&mut links, LINK, ZERO, 1000), Some(ns(1000)));
    assert_eq!(offer(&mut links, LINK, ns(10), 500), Some(ns(1500)));
    let last = links.offer(LINK, ns(3000), 64, Ecn::NotEct);
    let arrives = ns(3064) + Time::from_us(5);
    assert_eq!(last, Outcome::Accepted { departs: ns(3064), arrives, marked: false, epoch: 0 });
    assert_eq!(links.delay(LINK), Time::from_us(5));
}

#[test]
fn the_packet_limit_is_exact_at_the_instant_of_a_departure() {
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(100));
    for i in 1..=100 {
        assert_eq!(offer(&mut links, LINK, ZERO, 1000), Some(ns(1000 * i)));
    }
    assert_eq!(offer(&mut links, LINK, ZERO, 1000), None, "the 101st");
    assert_eq!(offer(&mut links, LINK, Time::from_ps(999_999), 1000), None, "a picosecond before the first departure");
    assert_eq!(offer(&mut links, LINK, ns(1000), 1000), Some(ns(101_000)));
    assert_eq!(offer(&mut links, LINK, ns(1000), 1000), None);
    // Three have left at 4000 ns; three fit.
    let accepted = (0..5).filter(|_| offer(&mut links, LINK, ns(4000), 1000).is_some()).count();
    assert_eq!(accepted, 3);
    let counters = links.counters(LINK);
    assert_eq!((counters.accepted, counters.dropped, counters.queue_max), (104, 5, 100));
    assert_eq!((counters.accepted_bytes, counters.dropped_bytes), (104_000, 5_000));
}

#[test]
fn a_limit_of_one_packet_is_no_queue_at_all() {
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(1));
    assert!(offer(&mut links, LINK, ZERO, 100).is_some());
    assert!(offer(&mut links, LINK, ns(99), 100).is_none());
    assert!(offer(&mut links, LINK, ns(100), 100).is_some());
}

#[test]
fn a_byte_limit_counts_the_bytes_that_have_not_left() {
    let mut links = one_link(gbps8(), QueueSpec::drop_tail_bytes(Bytes::new(3000)));
    assert_eq!(offer(&mut links, LINK, ZERO, 1500), Some(ns(1500)));
    assert_eq!(offer(&mut links, LINK, ZERO, 1000), Some(ns(2500)));
    assert_eq!(offer(&mut links, LINK, ZERO, 501), None, "2500 + 501 > 3000");
    assert_eq!(offer(&mut links, LINK, ZERO, 500), Some(ns(3000)), "2500 + 500 fits");
    assert_eq!(offer(&mut links, LINK, ns(1499), 1), None, "the head counts whole until its last bit has left");
    assert_eq!(offer(&mut links, LINK, ns(1500), 1500), Some(ns(4500)));
}

#[test]
fn an_unlimited_queue_grows_and_keeps_its_order() {
    let mut links = one_link(gbps8(), QueueSpec::unlimited());
    let mut busy = 0;
    for i in 0..100_000u64 {
        let len = 64 + (i % 1400) as u16;
        busy += u64::from(len);
        assert_eq!(offer(&mut links, LINK, ZERO, len), Some(ns(busy)));
    }
    assert_eq!(links.queue_len(LINK, ZERO), QueueLength { packets: 100_000, bytes: busy });
    // The first two are 64 and 65 bytes long.
    assert_eq!(links.queue_len(LINK, ns(64 + 65)), QueueLength { packets: 99_998, bytes: busy - 129 });
    assert_eq!(links.counters(LINK).queue_max, 100_000);
}

#[test]
fn a_rate_of_uneven_picoseconds_rounds_each_packet_up() {
    // 8e12 / 3e6 = 2666666.67 ps per byte: 100 bytes are 266666666.67 ps, each rounded up.
    let mut links = one_link(Rate::from_mbps(3), QueueSpec::drop_tail(2));
    assert_eq!(offer(&mut links, LINK, ZERO, 100), Some(Time::from_ps(266_666_667)));
    assert_eq!(offer(&mut links, LINK, ZERO, 100), Some(Time::from_ps(533_333_334)));
    assert_eq!(offer(&mut links, LINK, Time::from_ps(266_666_666), 100), None);
    assert_eq!(offer(&mut links, LINK, Time::from_ps(266_666_667), 100), Some(Time::from_ps(800_000_001)));
    // One bit a second: a byte lasts 8e12 ps, more than 32 bits.
    let mut slow = one_link(Rate::from_bps(1), QueueSpec::drop_tail(2));
    assert_eq!(offer(&mut slow, LINK, ZERO, 1500), Some(Time::from_secs(12_000)));
}

#[test]
fn capable_packets_that_find_k_packets_are_marked() {
    let queue = QueueSpec::drop_tail(6).marking(Depth::Packets(3));
    let mut links = one_link(gbps8(), queue);
    let mut offer = |ecn| offer_ecn(&mut links, LINK, ZERO, 1000, ecn);
    assert_eq!([offer(Ecn::Ect0), offer(Ecn::Ect0), offer(Ecn::Ect1)], [Some(false); 3], "these find 0, 1 and 2");
    assert_eq!(offer(Ecn::Ect0), Some(true), "finds 3");
    assert_eq!(offer(Ecn::NotEct), Some(false), "not capable: left to the limit");
    assert_eq!(offer(Ecn::Ce), Some(false), "marked already");
    assert_eq!(offer(Ecn::Ect1), None, "the limit holds for all");
    // At 4000 ns four have left: the next finds 2, the one after it 3.
    assert_eq!(offer_ecn(&mut links, LINK, ns(4000), 1000, Ecn::Ect1), Some(false));
    assert_eq!(offer_ecn(&mut links, LINK, ns(4000), 1000, Ecn::Ect1), Some(true));
    assert_eq!(links.counters(LINK).marked, 2);
}

#[test]
fn a_threshold_in_bytes_looks_at_the_bytes_found() {
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(100).marking(Depth::Bytes(Bytes::new(2000))));
    assert_eq!(offer_ecn(&mut links, LINK, ZERO, 1999, Ecn::Ect0), Some(false));
    assert_eq!(offer_ecn(&mut links, LINK, ZERO, 1, Ecn::Ect0), Some(false), "finds 1999");
    assert_eq!(offer_ecn(&mut links, LINK, ZERO, 1, Ecn::Ect0), Some(true), "finds 2000");
    assert_eq!(offer_ecn(&mut links, LINK, ns(1999), 1000, Ecn::Ect0), Some(false), "finds 2");
}

#[test]
fn a_failure_loses_packets_under_way_and_refuses_new_ones() {
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(100));
    let before = links.epoch(LINK);
    for _ in 0..3 {
        assert!(offer(&mut links, LINK, ZERO, 1000).is_some());
    }
    assert!(links.arrived(LINK, before));
    links.fail(LINK, ns(1500));
    links.fail(LINK, ns(1600));
    assert!(!links.is_up(LINK));
    assert_eq!(links.queue_len(LINK, ns(1600)), QueueLength::default());
    assert_eq!(offer(&mut links, LINK, ns(1700), 1000), None);
    assert!(!links.arrived(LINK, before), "the second was on the wire");
    links.restore(LINK);
    assert_eq!(offer(&mut links, LINK, ns(1800), 1000), Some(ns(2800)), "the old queue is gone");
    let after = links.epoch(LINK);
    assert_ne!(before, after);
    assert!(!links.arrived(LINK, before), "the third was queued");
    let counters = links.counters(LINK);
    assert!(counters.conserves(1) && !counters.conserves(0));
    assert!(links.arrived(LINK, after));
    let counters = links.counters(LINK);
    assert!(counters.conserves(0));
    assert_eq!((counters.accepted, counters.delivered, counters.lost, counters.refused), (4, 2, 2, 1));
    assert_eq!((counters.dropped, counters.dropped_by_failure()), (0, 3));
}

#[test]
fn the_limit_still_holds_after_a_failure() {
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(4));
    let fill = |links: &mut LinkTable, now| (0..9).filter(|_| offer(links, LINK, now, 1000).is_some()).count();
    assert_eq!(fill(&mut links, ZERO), 4);
    links.fail(LINK, ns(10));
    assert_eq!(fill(&mut links, ns(10)), 0);
    links.restore(LINK);
    assert_eq!(fill(&mut links, ns(20)), 4);
}

#[test]
fn impossible_links_are_refused_by_name() {
    let red = |min_th, max_th, max_p, w_q, mean_packet| {
        let spec = RedSpec { min_th, max_th, max_p, w_q, gentle: true, ecn: true, hard_drop: false, mean_packet };
        QueueSpec::drop_tail(10).red(spec)
    };
    let build = |rate, queue, buffer| {
        let mut topology = Topology::star(1, |_| common::params(rate, queue)).unwrap();
        topology.set_switch_buffers(buffer);
        LinkTable::new(&topology, 1).map(|_| ()).unwrap_err().to_string()
    };
    let shared = |total, alpha| BufferSpec::Shared(SharedSpec::new(Bytes::new(total), alpha));
    let parted = |reserve, headroom| {
        let pool = SharedSpec::new(Bytes::new(1000), 1.0);
        BufferSpec::Shared(SharedSpec { reserve: Bytes::new(reserve), headroom, ..pool })
    };
    let plain = QueueSpec::drop_tail(1);
    for (rate, queue, buffer, expected) in [
        (Rate::from_bps(0), plain, BufferSpec::Private, "link h1->s1: its rate is zero"),
        (gbps8(), QueueSpec::drop_tail(0), BufferSpec::Private, "queue limit is zero"),
        (gbps8(), QueueSpec::drop_tail_bytes(Bytes::new(0)), BufferSpec::Private, "queue limit is zero"),
        (gbps8(), red(15.0, 5.0, 0.1, 0.002, 1500), BufferSpec::Private, "min_th < max_th"),
        (gbps8(), red(5.0, f64::NAN, 0.1, 0.002, 1500), BufferSpec::Private, "min_th < max_th"),
        (gbps8(), red(5.0, 15.0, 0.0, 0.002, 1500), BufferSpec::Private, "max_p"),
        (gbps8(), red(5.0, 15.0, 0.1, 1.5, 1500), BufferSpec::Private, "w_q"),
        (gbps8(), red(5.0, 15.0, 0.1, 0.002, 0), BufferSpec::Private, "mean_packet"),
        (gbps8(), plain, shared(0, 1.0), "switch s1: a shared buffer of zero bytes"),
        (gbps8(), plain, shared(1000, 0.0), "switch s1: alpha"),
        (gbps8(), plain, shared(1000, f64::NAN), "switch s1: alpha"),
        (gbps8(), plain, parted(1001, 0.0), "switch s1: its ports' reserves"),
        (gbps8(), plain, parted(u64::MAX, 0.0), "switch s1: its ports' reserves"),
        (gbps8(), plain, parted(10, 1.0), "switch s1: the headroom"),
        (gbps8(), plain, parted(10, f64::NAN), "switch s1: the headroom"),
    ] {
        let message = build(rate, queue, buffer);
        assert!(message.contains(expected), "{message}");
    }
}

/// A queue that keeps everything: departures and lengths of all accepted packets.
#[derive(Default)]
struct Model {
    queue: VecDeque<(Time, u64)>,
    busy: Time,
}

impl Model {
    fn length(&self, now: Time) -> QueueLength {
        let left = self.queue.iter().filter(|(departs, _)| *departs > now);
        QueueLength { packets: left.clone().count() as u32, bytes: left.map(|(_, len)| len).sum() }
    }

    fn accept(&mut self, now: Time, len: u64, rate: Rate) -> Time {
        self.busy = self.busy.max(now) + rate.serialization(len);
        self.queue.push_back((self.busy, len));
        self.busy
    }
}

fn any_queue() -> impl Strategy<Value = QueueSpec> {
    prop_oneof![
        (1u32..40).prop_map(QueueSpec::drop_tail),
        (1u64..40_000).prop_map(|n| QueueSpec::drop_tail_bytes(Bytes::new(n))),
        Just(QueueSpec::unlimited()),
    ]
}

proptest! {
    #[test]
    fn a_link_behaves_as_a_list_of_departures(
        queue in any_queue(),
        mark_at in 0u32..40,
        bps in prop_oneof![Just(8_000_000_000u64), Just(400_000_000_000), 1_000_000u64..10_000_000_000],
        // Gaps from none to several packets, in units of a 1000-byte packet divided by 16.
        steps in prop::collection::vec((0u64..48, 1u16..=2000, 0u64..20), 1..300),
    ) {
        let rate = Rate::from_bps(bps);
        let unit = rate.serialization(1000) / 16;
        let mut links = one_link(rate, queue.marking(Depth::Packets(mark_at)));
        let mut model = Model::default();
        let (mut now, mut accepted, mut dropped, mut longest) = (Time::ZERO, 0u64, 0u64, 0);
        for (gap, len, look_ahead) in steps {
            // A gap of 47 stops at the instant of the oldest departure, where off-by-one errors would show.
            let oldest = model.queue.iter().map(|(departs, _)| *departs).find(|departs| *departs > now);
            now = if gap == 47 { oldest.unwrap_or(now) } else { now + unit * gap };
            let found = model.length(now);
            let fits = match queue.limit {
                net::Limit::Unlimited => true,
                net::Limit::Packets(limit) => found.packets < limit,
                net::Limit::Bytes(limit) => found.bytes + u64::from(len) <= limit.get(),
            };
            let outcome = links.offer(LINK, now, len, Ecn::Ect0);
            if fits {
                let departs = model.accept(now, u64::from(len), rate);
                let marked = found.packets >= mark_at;
                prop_assert_eq!(outcome, Outcome::Accepted { departs, arrives: departs + links.delay(LINK), marked, epoch: 0 });
                accepted += 1;
                longest = longest.max(found.packets + 1);
            } else {
                prop_assert_eq!(outcome, Outcome::Dropped);
                dropped += 1;
            }
            let later = now + unit * (look_ahead * look_ahead);
            prop_assert_eq!(links.queue_len(LINK, later), model.length(later));
            prop_assert_eq!(links.queue_len(LINK, now), model.length(now));
        }
        let counters = links.counters(LINK);
        prop_assert_eq!((counters.accepted, counters.dropped, counters.queue_max), (accepted, dropped, longest));
        prop_assert!(counters.conserves(accepted));
    }
}
