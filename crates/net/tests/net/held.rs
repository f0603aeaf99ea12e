//! Links that hold their packets: CoDel, FQ-CoDel and DualPI2 against the arithmetic of their RFCs, written down again.

use crate::common::{self, LINK, one_link};
use net::{
    Aqm, CodelSpec, DualPi2Spec, Ecn, FqCodelSpec, LinkTable, NetError, Outcome, QueueSpec, QueuedPacket,
    SchedulerSpec, Topology,
};
use std::collections::VecDeque;
use units::{Bytes, Rate, Time};

/// A link of 8 Mbit/s, where 1000 bytes last 1 ms, with arrivals at given times.
struct Bench {
    links: LinkTable,
    due: Option<Time>,
    /// Tokens that left, when they began to, and whether they were marked.
    sent: Vec<(u64, Time, bool)>,
    dropped: Vec<u64>,
}

impl Bench {
    fn new(spec: SchedulerSpec, queue: QueueSpec) -> Bench {
        let links = one_link(Rate::from_mbps(8), queue.with(Aqm::Held(spec)));
        Bench { links, due: None, sent: Vec::new(), dropped: Vec::new() }
    }

    /// Departures up to `until`, that instant excluded.
    fn run(&mut self, until: Time) {
        while let Some(at) = self.due.filter(|at| *at < until) {
            self.due = None;
            if let Some(departure) = self.links.depart(LINK, at, &mut self.dropped) {
                self.sent.push((departure.packet.token, at, departure.marked));
                self.due = departure.next;
                assert!(self.links.arrived(LINK, departure.sent.epoch));
            }
        }
    }

    fn arrive(&mut self, at: Time, packet: QueuedPacket) {
        self.run(at);
        assert_eq!(self.links.offer(LINK, at, packet.len, packet.ecn), Outcome::Held);
        if let Some(due) = self.links.hold(LINK, at, packet, &mut self.dropped) {
            assert_eq!(self.due, None, "a departure is named once");
            self.due = Some(due);
        }
    }

    /// What came has gone, was dropped, or is there.
    fn check(&self, came: u64) {
        let (counters, held) = (self.links.counters(LINK), self.links.held(LINK));
        assert!(counters.conserves(held), "{counters:?} with {held}");
        assert_eq!(counters.accepted + counters.dropped, came);
        assert_eq!(self.dropped.len() as u64, counters.dropped);
    }
}

fn packet(token: u64, flow: u64, ecn: Ecn) -> QueuedPacket {
    QueuedPacket { token, flow, len: 1000, ecn }
}

fn codel() -> CodelSpec {
    CodelSpec { max_packet: 1000, ..CodelSpec::default() }
}

/// The pseudo-code of RFC 8289 section 5, in microseconds, 0 standing for "none" as there.
#[derive(Default)]
struct ReferenceCodel {
    queue: VecDeque<(u64, u64)>,
    first_above: u64,
    drop_next: f64,
    count: u32,
    last_count: u32,
    dropping: bool,
    dropped: Vec<u64>,
}

impl ReferenceCodel {
    fn take(&mut self, now: u64) -> (Option<u64>, bool) {
        let Some((token, since)) = self.queue.pop_front() else {
            self.first_above = 0;
            return (None, false);
        };
        if now - since < 5_000 || self.queue.len() <= 1 {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now + 100_000;
        } else if now >= self.first_above {
            return (Some(token), true);
        }
        (Some(token), false)
    }

    fn law(from: f64, count: u32) -> f64 {
        from + 100_000.0 / f64::from(count).sqrt()
    }

    fn dequeue(&mut self, now: u64) -> Option<u64> {
        let (mut token, mut ok) = self.take(now);
        if self.dropping {
            if !ok {
                self.dropping = false;
            }
            while now as f64 >= self.drop_next && self.dropping {
                self.dropped.extend(token);
                self.count += 1;
                (token, ok) = self.take(now);
                if ok {
                    self.drop_next = Self::law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            self.dropped.extend(token);
            (token, _) = self.take(now);
            self.dropping = true;
            let delta = self.count - self.last_count;
            self.count = if delta > 1 && now as f64 - self.drop_next < 1_600_000.0 { delta } else { 1 };
            self.drop_next = Self::law(now as f64, self.count);
            self.last_count = self.count;
        }
        token
    }
}

/// Arrivals of load phases: (until ms, gap in us, 0 for none).
fn phases(phases: &[(u64, u64)]) -> Vec<u64> {
    let (mut at, mut arrivals) = (0, Vec::new());
    for &(until_ms, gap) in phases {
        while gap > 0 && at < until_ms * 1000 {
            arrivals.push(at);
            at += gap;
        }
        at = until_ms * 1000;
    }
    arrivals
}

#[test]
fn codel_drops_what_the_rfcs_pseudo_code_drops() {
    let arrivals = phases(&[(3000, 801), (3500, 2003), (5000, 701), (9000, 0), (12_000, 903), (13_000, 5003)]);
    let mut bench = Bench::new(SchedulerSpec::Codel(codel()), QueueSpec::drop_tail(100_000));
    for (token, at) in arrivals.iter().enumerate() {
        bench.arrive(Time::from_us(*at), packet(token as u64, 0, Ecn::NotEct));
    }
    bench.run(Time::from_secs(100));

    let mut reference = ReferenceCodel::default();
    let (mut sent, mut free, mut next) = (Vec::new(), 0, 0);
    while next < arrivals.len() || !reference.queue.is_empty() {
        // departures before arrivals, as long as something waits; an arrival at an idle link leaves at once
        if !reference.queue.is_empty() && (next == arrivals.len() || free < arrivals[next]) {
            let now = free;
            if let Some(token) = reference.dequeue(now) {
                sent.push((token, Time::from_us(now), false));
                free = now + 1000;
            }
        } else {
            reference.queue.push_back((next as u64, arrivals[next]));
            free = free.max(arrivals[next]);
            next += 1;
        }
    }
    assert!(reference.dropped.len() > 100, "{} drops are no test", reference.dropped.len());
    assert_eq!(bench.dropped, reference.dropped);
    assert_eq!(bench.sent, sent);
    bench.check(arrivals.len() as u64);
}

#[test]
fn codel_marks_instead_and_by_its_threshold() {
    let run = |spec: CodelSpec, ecn: Ecn| {
        let mut bench = Bench::new(SchedulerSpec::Codel(spec), QueueSpec::drop_tail(100_000));
        for n in 0..2000 {
            bench.arrive(Time::from_us(n * 900), packet(n, 0, ecn));
        }
        bench.run(Time::from_secs(1));
        (bench.links.counters(LINK).marked, bench.dropped.len())
    };
    let ecn = CodelSpec { ecn: true, ..codel() };
    let (marked, dropped) = run(ecn, Ecn::Ect0);
    assert!(marked > 10 && dropped == 0, "{marked} marks, {dropped} drops");
    let (marked, dropped) = run(ecn, Ecn::NotEct);
    assert!(marked == 0 && dropped > 10, "{marked} marks, {dropped} drops");
    assert_eq!(run(ecn, Ecn::Ce), (0, 0), "a packet that is marked already needs no mark, and no drop");
    // the packet n waits for n * 0.1 ms: more than 1 ms from 11 on; 1800 have begun to leave when the last arrives at 1.8 s
    let threshold = CodelSpec { interval: Time::from_secs(60), ce_threshold: Some(Time::from_ms(1)), ..codel() };
    let (marked, _) = run(threshold, Ecn::Ect1);
    assert_eq!(marked, 1800 - 11);
}

#[test]
fn a_thin_flow_waits_for_no_fat_one_under_fq_codel() {
    let spec = FqCodelSpec { codel: codel(), quantum: 1000, ..FqCodelSpec::default() };
    let mut bench = Bench::new(SchedulerSpec::FqCodel(spec), QueueSpec::unlimited());
    let mut came = 0;
    for n in 0..4000u64 {
        let at = Time::from_us(n * 500);
        // two flows, each of the rate of the link, and one packet every 100 ms of a third
        bench.arrive(at, packet(n, 1 + n % 2, Ecn::NotEct));
        came += 1;
        if n % 200 == 100 {
            bench.arrive(at, packet(1_000_000 + n, 3, Ecn::NotEct));
            came += 1;
        }
    }
    bench.check(came);
    let waits = bench
        .sent
        .iter()
        .filter(|(token, ..)| *token >= 1_000_000)
        .map(|(token, at, _)| *at - Time::from_us((token - 1_000_000) * 500));
    let worst = waits.max().unwrap();
    assert!(worst <= Time::from_ms(2), "{worst}: the packet being sent, and at most one round");
    let of_flow = |flow| bench.sent.iter().filter(|(t, ..)| *t < 1_000_000 && t % 2 == flow).count() as i64;
    assert!((of_flow(0) - of_flow(1)).abs() < 20, "{} and {}", of_flow(0), of_flow(1));
}

#[test]
fn rounds_of_fq_codel_go_by_bytes() {
    let spec = FqCodelSpec { codel: codel(), quantum: 1000, ..FqCodelSpec::default() };
    let mut bench = Bench::new(SchedulerSpec::FqCodel(spec), QueueSpec::unlimited());
    bench.arrive(Time::ZERO, packet(0, 9, Ecn::NotEct));
    for n in 0..40 {
        bench.arrive(Time::from_us(1), QueuedPacket { len: 250, ..packet(100 + n, 1, Ecn::NotEct) });
    }
    for n in 0..10 {
        bench.arrive(Time::from_us(2), packet(200 + n, 2, Ecn::NotEct));
    }
    bench.run(Time::from_secs(1));
    let flows: Vec<u64> = bench.sent.iter().map(|(token, ..)| token / 100).collect();
    // a quantum each: four short packets, then a long one
    assert_eq!(flows[1..11], [1, 1, 1, 1, 2, 1, 1, 1, 1, 2]);
}

#[test]
fn fq_codel_over_its_limits_drops_from_the_fattest() {
    let limits = [
        FqCodelSpec { codel: codel(), limit: 100, ..FqCodelSpec::default() },
        FqCodelSpec { codel: codel(), memory: Bytes::new(100_000), ..FqCodelSpec::default() },
    ];
    for spec in limits {
        let mut bench = Bench::new(SchedulerSpec::FqCodel(spec), QueueSpec::unlimited());
        for n in 0..10 {
            bench.arrive(Time::ZERO, packet(n, 1, Ecn::NotEct));
        }
        for n in 100..300 {
            bench.arrive(Time::from_us(1), packet(n, 2, Ecn::NotEct));
        }
        assert!(bench.dropped.iter().all(|token| *token >= 100), "{:?}", bench.dropped);
        // of its 91 packets the first half, 46 of them, at once, then of the 91 that are there again
        assert_eq!(bench.dropped[..46], (100..146).collect::<Vec<u64>>());
        assert!(bench.links.queue_len(LINK, Time::from_us(1)).packets <= 101);
        bench.check(210);
    }
}

fn dualpi2() -> DualPi2Spec {
    DualPi2Spec { max_packet: 1000, ..DualPi2Spec::default() }
}

/// C is offered 1.25 times the rate, L a packet every 20 ms: L never has a queue of its own.
fn both_queues() -> Vec<(u64, Ecn)> {
    let mut arrivals: Vec<(u64, Ecn)> = (0..25_000).map(|n| (n * 800, Ecn::NotEct)).collect();
    arrivals.extend((0..1000).map(|n| (n * 20_000 + 7, Ecn::Ect1)));
    arrivals.sort_by_key(|(at, _)| *at);
    arrivals
}

#[test]
fn dualpi2_couples_its_queues_as_the_rfcs_arithmetic_says() {
    let mut bench = Bench::new(SchedulerSpec::DualPi2(dualpi2()), QueueSpec::drop_tail(100_000));
    let arrivals = both_queues();
    for (token, (at, ecn)) in arrivals.iter().enumerate() {
        bench.arrive(Time::from_us(*at), packet(token as u64, 0, *ecn));
    }
    bench.check(arrivals.len() as u64);

    // the same, in microseconds: p' every 15 ms by the delay of C's first packet
    let (alpha, beta) = (0.1 * 0.015 / 0.01, 0.3 / 0.1);
    let (mut p, mut old, mut tick, mut free, mut next) = (0.0f64, 0.0, 15_000u64, 0u64, 0);
    let (mut low, mut classic) = (VecDeque::new(), VecDeque::new());
    let (mut sum_low, mut sum_classic) = (0.0, 0.0);
    let (mut marked, mut dropped) = (Vec::new(), Vec::new());
    let end = arrivals.last().unwrap().0;
    loop {
        let waits = !low.is_empty() || !classic.is_empty();
        let departs = waits && (next == arrivals.len() || free < arrivals[next].0);
        let now = if departs {
            free
        } else if next < arrivals.len() {
            arrivals[next].0
        } else {
            break;
        };
        if now >= end {
            break;
        }
        while tick <= now {
            let since = |queue: &VecDeque<(usize, u64)>| queue.front().map_or(0.0, |(_, at)| (tick - at) as f64 / 1e6);
            let delay = since(&classic).max(since(&low));
            p = (p + alpha * (delay - 0.015) + beta * (delay - old)).clamp(0.0, 1.0);
            old = delay;
            tick += 15_000;
        }
        if !departs {
            let queue = if arrivals[next].1 == Ecn::Ect1 { &mut low } else { &mut classic };
            queue.push_back((next, now));
            free = free.max(now);
            next += 1;
            continue;
        }
        // L goes first: one packet every 20 ms never uses up its part of the link
        if let Some((token, _)) = low.pop_front() {
            // overload: L drops as C does, and marks all the others
            let overload = 2.0 * p >= 1.0;
            sum_low += if overload { p * p } else { 2.0 * p };
            let due = sum_low > 1.0;
            sum_low -= if due { 1.0 } else { 0.0 };
            if overload && due {
                dropped.push(token as u64);
                continue;
            }
            if overload || due {
                marked.push(token as u64);
            }
            free = now + 1000;
        } else {
            while let Some((token, _)) = classic.pop_front() {
                sum_classic += p * p;
                if sum_classic > 1.0 {
                    sum_classic -= 1.0;
                    dropped.push(token as u64);
                } else {
                    free = now + 1000;
                    break;
                }
            }
        }
    }
    let ours: Vec<u64> = bench.sent.iter().filter(|(.., marked)| *marked).map(|(token, ..)| *token).collect();
    assert!(p * p < 0.25, "below overload, p' {p}");
    assert!(dropped.len() > 1000 && marked.len() > 100, "{} drops and {} marks", dropped.len(), marked.len());
    // the last departure of the two may differ
    assert_eq!(bench.dropped[..dropped.len() - 1], dropped[..dropped.len() - 1]);
    assert_eq!(ours[..marked.len() - 1], marked[..marked.len() - 1]);
}

#[test]
fn the_classic_queue_of_dualpi2_has_its_share() {
    let mut bench = Bench::new(SchedulerSpec::DualPi2(dualpi2()), QueueSpec::drop_tail(100_000));
    for n in 0..200 {
        bench.arrive(Time::ZERO, packet(n, 0, if n % 2 == 0 { Ecn::Ect1 } else { Ecn::Ect0 }));
    }
    bench.run(Time::from_ms(100));
    let classic = bench.sent.iter().filter(|(token, ..)| token % 2 == 1).count();
    assert!((9..=11).contains(&classic), "{classic} of 100");
}

#[test]
fn what_waits_alone_in_the_low_latency_queue_is_not_marked_by_the_step() {
    let mut bench = Bench::new(SchedulerSpec::DualPi2(dualpi2()), QueueSpec::drop_tail(100_000));
    // behind a packet of 1 ms and another, the third waits for 2 ms
    for n in 0..3 {
        bench.arrive(Time::ZERO, packet(n, 0, Ecn::Ect1));
    }
    for n in 3..5 {
        bench.arrive(Time::from_ms(1), packet(n, 0, Ecn::Ect1));
    }
    bench.run(Time::from_secs(1));
    let marked: Vec<bool> = bench.sent.iter().map(|(.., marked)| *marked).collect();
    assert_eq!(marked, [false, false, true, true, false], "1, 2, 2 and 3 ms, and the last alone");
}

#[test]
fn a_failure_loses_what_a_link_holds_and_gives_it_back() {
    let mut bench = Bench::new(SchedulerSpec::Codel(codel()), QueueSpec::drop_tail(4));
    for n in 0..6 {
        bench.arrive(Time::ZERO, packet(n, 0, Ecn::NotEct));
    }
    assert_eq!(bench.dropped, [4, 5], "the limit counts the packet being sent, which has not begun to be");
    bench.run(Time::from_us(500));
    bench.links.fail(LINK, Time::from_us(500));
    assert_eq!(bench.links.offer(LINK, Time::from_us(600), 1000, Ecn::NotEct), Outcome::Dropped);
    bench.links.restore(LINK);
    bench.arrive(Time::from_us(700), packet(9, 0, Ecn::NotEct));
    bench.run(Time::from_secs(1));
    assert_eq!(bench.dropped, [4, 5, 1, 2, 3]);
    assert_eq!(bench.sent.iter().map(|(token, ..)| *token).collect::<Vec<_>>(), [0, 9]);
    let counters = bench.links.counters(LINK);
    assert_eq!((counters.lost, counters.dropped, counters.refused), (3, 2, 1));
    assert!(counters.conserves(0));
}

#[test]
fn impossible_parameters_are_named() {
    let refuse = |spec| {
        let queue = QueueSpec::drop_tail(10).with(Aqm::Held(spec));
        let topology = Topology::star(1, |_| common::params(Rate::from_mbps(8), queue)).unwrap();
        LinkTable::new(&topology, 1).unwrap_err()
    };
    let specs = [
        (SchedulerSpec::Codel(CodelSpec { interval: Time::ZERO, ..codel() }), "interval"),
        (SchedulerSpec::FqCodel(FqCodelSpec { flows: 0, ..FqCodelSpec::default() }), "flows"),
        (SchedulerSpec::DualPi2(DualPi2Spec { coupling: 0.5, ..dualpi2() }), "coupling"),
        (SchedulerSpec::DualPi2(DualPi2Spec { classic_share: 1.0, ..dualpi2() }), "classic_share"),
        (SchedulerSpec::DualPi2(DualPi2Spec { target: Time::ZERO, ..dualpi2() }), "target"),
    ];
    for (spec, word) in specs {
        let NetError::Queue { why, .. } = refuse(spec) else { panic!("{word} is refused") };
        assert!(why.contains(word), "{why}");
    }
}
