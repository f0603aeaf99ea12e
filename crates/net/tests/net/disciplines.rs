//! Random early detection against its own formulas, and switches that share their memory.

use crate::common::{self, LINK, gbps8, offer, offer_ecn, one_link};
use net::{BufferSpec, Ecn, LinkId, LinkTable, Outcome, QueueSpec, RedSpec, SharedSpec, Topology};
use units::{Bytes, Time};

/// 1000 bytes at 8 Gbit/s.
const PACKET: Time = Time::from_us(1);

fn red() -> RedSpec {
    let (min_th, max_th, max_p, w_q) = (5.0, 15.0, 0.1, 0.002);
    RedSpec { min_th, max_th, max_p, w_q, gentle: false, ecn: true, hard_drop: false, mean_packet: 1000 }
}

/// Puts `depth` packets into the queue, then offers `n` packets, one per departure, each finding `depth`. The weight is
/// 1, so that the average is the queue. Returns which were marked (None: dropped).
fn at_constant_queue(spec: &RedSpec, depth: u32, n: u64, ecn: Ecn) -> Vec<Option<bool>> {
    let quiet = RedSpec { w_q: 1.0, ..*spec };
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(1000).red(quiet));
    // Capable packets are marked and not dropped on the way up.
    for _ in 0..depth {
        links.offer(LINK, Time::ZERO, 1000, Ecn::Ce);
    }
    let mut now = Time::ZERO;
    let mut outcomes = Vec::new();
    for _ in 0..n {
        assert_eq!(links.queue_len(LINK, now).packets, depth);
        let outcome = offer_ecn(&mut links, LINK, now, 1000, ecn);
        assert_eq!(links.red_average(LINK), Some(f64::from(depth)));
        outcomes.push(outcome);
        if outcome.is_some() {
            now += PACKET;
        }
    }
    outcomes
}

#[test]
fn the_average_follows_the_queue_and_decays_over_idle_time() {
    let spec = RedSpec { w_q: 0.1, min_th: 100.0, max_th: 200.0, ..red() };
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(1000).red(spec));
    let mut average = 0.0;
    // A burst of 20 at time 0: the packet number i finds i, and (1 - w) avg + w i.
    for i in 0..20 {
        links.offer(LINK, Time::ZERO, 1000, Ecn::Ect0);
        average = if i == 0 { 0.0 } else { 0.9 * average + 0.1 * f64::from(i) };
        assert!((links.red_average(LINK).unwrap() - average).abs() < 1e-12);
    }
    // All have left at 20 us. At 27.5 us the link has been idle for 7.5 packet times: 0.9^7.5.
    links.offer(LINK, Time::from_ns(27_500), 1000, Ecn::Ect0);
    average *= (7.5 * 0.9f64.ln()).exp();
    assert!((links.red_average(LINK).unwrap() - average).abs() < 1e-12);
    // That one leaves at 28.5 us; an arrival at this instant finds the queue empty after no idle time.
    links.offer(LINK, Time::from_ns(28_500), 1000, Ecn::Ect0);
    assert!((links.red_average(LINK).unwrap() - average).abs() < 1e-12);
}

#[test]
fn gaps_between_marks_are_uniform() {
    // avg 10: p_b = 0.1 (10 - 5) / (15 - 5) = 1/20. After a mark the count is 1, 2, ...: p_a = 1/19, 1/18, ..., 1/1, so
    // the gap is uniform over 1..=19, with a mean of 10.
    let outcomes = at_constant_queue(&red(), 10, 200_000, Ecn::Ect0);
    let marks: Vec<usize> = (0..outcomes.len()).filter(|i| outcomes[*i] == Some(true)).collect();
    let mut seen = [0u32; 20];
    for pair in marks.windows(2) {
        seen[pair[1] - pair[0]] += 1;
    }
    let gaps = (marks.len() - 1) as f64;
    // 20,000 gaps of variance (19² - 1) / 12 = 30: the number of marks has a standard deviation of about 77.
    assert!((gaps - 20_000.0).abs() < 350.0, "{gaps} gaps");
    let expected = gaps / 19.0;
    let chi_square: f64 = seen[1..].iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
    // 18 degrees of freedom: 99.9 % lie below 42.3.
    assert!(chi_square < 42.3, "{chi_square}: {seen:?}");
}

#[test]
fn gentle_rises_from_max_p_to_one_at_twice_max_th() {
    let rate = |spec: &RedSpec, depth| {
        let outcomes = at_constant_queue(spec, depth, 60_000, Ecn::Ect0);
        outcomes.iter().filter(|outcome| **outcome == Some(true)).count() as f64 / 60_000.0
    };
    let gentle = RedSpec { gentle: true, ..red() };
    // avg 20: p_b = 0.1 + 0.9 (20 - 15) / 15 = 0.4. count 1: 0.4 / 0.6 = 2/3; count 2: 0.4 / 0.2 > 1. Mean gap 4/3.
    assert!((rate(&gentle, 20) - 0.75).abs() < 0.01);
    assert!((rate(&gentle, 30) - 1.0).abs() < 1e-9);
    assert!((rate(&red(), 20) - 1.0).abs() < 1e-9, "without it everything is marked from max_th on");
    assert!(rate(&gentle, 4) < 1e-9, "and nothing below min_th");
}

#[test]
fn packets_that_cannot_be_marked_are_dropped() {
    let is_drop = |outcome: &Option<bool>| outcome.is_none();
    let incapable = at_constant_queue(&red(), 10, 20_000, Ecn::NotEct);
    let drops = incapable.iter().filter(|outcome| is_drop(outcome)).count();
    // Mean gap 10 as above; 2000 drops, standard deviation about 24.
    assert!((1900..2100).contains(&drops), "{drops}");
    let without_ecn = at_constant_queue(&RedSpec { ecn: false, ..red() }, 0, 1, Ecn::Ect0);
    assert_eq!(without_ecn, [Some(false)]);
    assert!(at_constant_queue(&red(), 20, 100, Ecn::NotEct).iter().all(is_drop));
    assert!(at_constant_queue(&red(), 20, 100, Ecn::Ect1).iter().all(|outcome| *outcome == Some(true)));
}

#[test]
fn hard_drop_drops_every_packet_from_max_th_on() {
    let spec = RedSpec { hard_drop: true, w_q: 1.0, ..red() };
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(1000).red(spec));
    let accepted = (0..100).filter(|_| offer_ecn(&mut links, LINK, Time::ZERO, 1000, Ecn::Ect0).is_some()).count();
    assert_eq!(accepted, 15, "the 16th finds 15");
    assert_eq!(links.counters(LINK).dropped, 85);
}

#[test]
fn the_limit_holds_above_random_early_detection() {
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(8).red(red()));
    let accepted = (0..100).filter(|_| offer_ecn(&mut links, LINK, Time::ZERO, 1000, Ecn::Ect0).is_some()).count();
    assert_eq!(accepted, 8);
}

#[test]
fn a_seed_gives_the_same_marks_and_each_link_its_own() {
    let params = common::params(gbps8(), QueueSpec::unlimited().red(RedSpec { w_q: 1.0, ..red() }));
    let topology = Topology::star(2, |_| params).unwrap();
    let marks = |seed, link| {
        let mut links = LinkTable::new(&topology, seed).unwrap();
        let mut offer = || offer_ecn(&mut links, LinkId(link), Time::ZERO, 1000, Ecn::Ect0);
        (0..14).map(|_| offer().unwrap()).fold(0u32, |bits, marked| bits << 1 | u32::from(marked))
    };
    assert_eq!(marks(1, 0), marks(1, 0));
    let different = (0..20).filter(|seed| marks(*seed, 0) != marks(*seed, 2)).count();
    assert!(different > 5, "{different} of 20 seeds");
}

/// A switch with three hosts and one memory: the table, and its three ports.
fn shared_as(spec: SharedSpec, queue: QueueSpec) -> (LinkTable, [LinkId; 3]) {
    let params = common::params(gbps8(), queue);
    let mut topology = Topology::star(3, |_| params).unwrap();
    topology.set_switch_buffers(BufferSpec::Shared(spec));
    let ports = ["s1->h1", "s1->h2", "s1->h3"].map(|name| topology.find_link(name).unwrap());
    (LinkTable::new(&topology, 1).unwrap(), ports)
}

fn shared(total: u64, alpha: f64, queue: QueueSpec) -> (LinkTable, [LinkId; 3]) {
    shared_as(SharedSpec::new(Bytes::new(total), alpha), queue)
}

fn fill(links: &mut LinkTable, port: LinkId, now: Time) -> usize {
    (0..50).take_while(|_| offer(links, port, now, 1000).is_some()).count()
}

#[test]
fn a_port_may_take_alpha_times_what_is_free() {
    let (mut links, [first, second, third]) = shared(10_000, 1.0, QueueSpec::unlimited());
    // q + 1000 <= 10000 - q: up to 5000.
    assert_eq!(fill(&mut links, first, Time::ZERO), 5);
    // q + 1000 <= 5000 - q: up to 3000. Then q + 1000 <= 2000 - q: 1000.
    assert_eq!(fill(&mut links, second, Time::ZERO), 3);
    assert_eq!(fill(&mut links, third, Time::ZERO), 1);
    assert_eq!(links.counters(first).dropped, 1);
    // 1 us later each port has sent one: 4000, 2000 and 0 remain, 4000 are free.
    assert_eq!(fill(&mut links, third, PACKET), 2, "1000 <= 4000, 2000 <= 3000, but not 3000 <= 2000");
}

#[test]
fn alpha_decides_how_much_a_port_may_take() {
    // 8 (10000 - q) >= q + 1000 holds up to q = 8777.
    let (mut links, [first, ..]) = shared(10_000, 8.0, QueueSpec::unlimited());
    assert_eq!(fill(&mut links, first, Time::ZERO), 9);
    // q + 1000 <= (10000 - q) / 4 holds up to q = 1200.
    let (mut links, [first, ..]) = shared(10_000, 0.25, QueueSpec::unlimited());
    assert_eq!(fill(&mut links, first, Time::ZERO), 2);
    // With a huge alpha the pool itself is the limit.
    let (mut links, [first, second, _]) = shared(10_000, 1e9, QueueSpec::unlimited());
    assert_eq!(fill(&mut links, first, Time::ZERO), 10);
    assert_eq!(fill(&mut links, second, Time::ZERO), 0);
}

#[test]
fn memory_is_free_at_the_instant_of_a_departure_elsewhere() {
    let (mut links, [first, second, _]) = shared(10_000, 1e9, QueueSpec::unlimited());
    assert_eq!(fill(&mut links, first, Time::ZERO), 10);
    assert_eq!(fill(&mut links, second, Time::from_ps(999_999)), 0);
    assert_eq!(fill(&mut links, second, PACKET), 1);
}

#[test]
fn a_ports_own_limit_holds_within_the_pool() {
    let (mut links, [first, ..]) = shared(1_000_000, 1.0, QueueSpec::drop_tail(7));
    assert_eq!(fill(&mut links, first, Time::ZERO), 7);
    // Hosts do not share it: their own link accepts what its queue accepts.
    assert_eq!(fill(&mut links, LINK, Time::ZERO), 7);
}

/// The same with a memory of 12,000 bytes in all.
fn parted(spec: SharedSpec) -> (LinkTable, [LinkId; 3]) {
    shared_as(SharedSpec { total: Bytes::new(12_000), ..spec }, QueueSpec::unlimited())
}

#[test]
fn a_port_has_its_reserve_whatever_others_hold() {
    let spec = SharedSpec { reserve: Bytes::new(2000), ..SharedSpec::new(Bytes::new(0), 1e9) };
    let (mut links, [first, second, third]) = parted(spec);
    // 3 x 2000 are reserved, so a port may have 2000 + 6000
    assert_eq!(fill(&mut links, first, Time::ZERO), 8);
    assert_eq!(fill(&mut links, second, Time::ZERO), 2);
    assert_eq!(fill(&mut links, third, Time::ZERO), 2);
    // alpha counts the pool alone: p + 1000 <= 6000 - p holds up to 2500
    let (mut links, [first, ..]) = parted(SharedSpec { alpha: 1.0, alpha_not_ect: 1.0, ..spec });
    assert_eq!(fill(&mut links, first, Time::ZERO), 2 + 3);
}

#[test]
fn headroom_is_free_for_a_burst_at_another_port() {
    let pool = SharedSpec::new(Bytes::new(0), 1e9);
    let (mut links, [first, second, _]) = parted(pool);
    assert_eq!([fill(&mut links, first, Time::ZERO), fill(&mut links, second, Time::ZERO)], [12, 0]);
    // a quarter is 3000; an equal share 4000
    let (mut links, [first, second, third]) = parted(SharedSpec { headroom: 0.25, ..pool });
    assert_eq!([fill(&mut links, first, Time::ZERO), fill(&mut links, second, Time::ZERO)], [9, 3]);
    assert_eq!(fill(&mut links, third, Time::ZERO), 0, "the memory is full");
}

#[test]
fn a_class_has_a_threshold_of_its_own() {
    let spec = SharedSpec { alpha_not_ect: 0.25, ..SharedSpec::new(Bytes::new(0), 1.0) };
    let (mut links, [first, ..]) = parted(spec);
    // q + 1000 <= (12000 - q) / 4 holds up to 1600
    assert_eq!(fill(&mut links, first, Time::ZERO), 2);
    let capable = (0..50).take_while(|_| offer_ecn(&mut links, first, Time::ZERO, 1000, Ecn::Ect0).is_some()).count();
    assert_eq!(capable, 4, "to 6000");
}

#[test]
fn a_line_loses_its_share_and_other_packets_are_unaffected() {
    let mut links = one_link(gbps8(), QueueSpec::drop_tail(10));
    links.lose(LINK, 0.03, 7);
    let (n, mut now, mut lost) = (100_000_u64, Time::ZERO, 0_u64);
    let mut again = one_link(gbps8(), QueueSpec::drop_tail(10));
    again.lose(LINK, 0.03, 7);
    for _ in 0..n {
        match offer(&mut links, LINK, now, 1000) {
            None => lost += 1,
            Some(departs) => assert_eq!(departs, now + PACKET),
        }
        offer(&mut again, LINK, now, 1000);
        now += PACKET;
    }
    let expected = 0.03 * n as f64;
    // four standard deviations of a binomial distribution
    assert!((lost as f64 - expected).abs() < 4.0 * (expected * 0.97).sqrt(), "{lost} of {n}");
    let counters = links.counters(LINK);
    assert_eq!((counters.dropped, counters.accepted), (lost, n - lost));
    assert_eq!(counters, again.counters(LINK), "the same seed loses the same");
}

#[test]
fn jitter_delays_arrivals_uniformly_and_in_order_and_leaves_departures_alone() {
    const MOST: Time = Time::from_us(20);
    let n = 100_000_u64;
    // a packet time of 1 us, so that many draws would change the order; and one of 50 us, where none can
    for gap in [Time::from_us(1), Time::from_us(50)] {
        let mut links = one_link(gbps8(), QueueSpec::unlimited());
        links.vary(LINK, MOST, 7);
        let (mut last, mut sum) = (Time::ZERO, Time::ZERO);
        for i in 0..n {
            let now = gap * i;
            let Outcome::Accepted { departs, arrives, .. } = links.offer(LINK, now, 1000, Ecn::NotEct) else {
                panic!("the queue has no limit")
            };
            assert_eq!(departs, now + PACKET);
            let late = arrives - departs - links.delay(LINK);
            assert!(late <= MOST && arrives >= last, "{late} late");
            (last, sum) = (arrives, sum + late);
        }
        let mean = (sum / n).as_ns() as f64;
        if gap > MOST {
            assert!((mean / 10_000.0 - 1.0).abs() < 0.02, "half of the largest: {mean} ns");
        } else {
            assert!(mean > 12_500.0, "the latest so far delays those behind it: {mean} ns");
        }
    }
}

#[test]
fn a_closed_link_takes_nothing() {
    let mut links = one_link(gbps8(), QueueSpec::unlimited());
    let closed = links.add_closed();
    assert_eq!(closed.index() + 1, links.len());
    assert!(links.offer_short(closed, Time::ZERO, 1000).is_none());
    assert_eq!(offer(&mut links, closed, Time::ZERO, 1000), None);
    assert_eq!(links.counters(closed).accepted, 0);
    assert!(offer(&mut links, LINK, Time::ZERO, 1000).is_some());
}
