//! The engine on a clock that the test sets, with ports in memory.

use emu::agenda::Agenda;
use emu::driver::drive;
use emu::engine::Engine;
use emu::port::{Clock, FlowPacket, Head, Ports};
use emu::routes::Routes;
use net::{Depth, Ecn, LinkId, LinkParams, LinkTable, QueueSpec, Router, Routing, Topology};
use packet_io::OwnedFrame;
use plan::Series;
use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use units::{Rate, Time};

/// Bytes on the wire of a full packet: 1500 and Ethernet's 38.
const FULL: u64 = 1538;
const FRAMING: u32 = 38;

struct FakeClock(Cell<Time>);

impl Clock for FakeClock {
    fn now(&self) -> Time {
        self.0.get()
    }
}

/// A clock that advances by a microsecond per reading, but jumps once, as if the machine had been paused.
struct Jumping {
    shows: Rc<Cell<Time>>,
    /// When it jumps, and where to.
    jump: (Time, Time),
}

impl Clock for Jumping {
    fn now(&self) -> Time {
        let old = self.shows.get();
        let next = old + Time::from_us(1);
        let (from, to) = self.jump;
        self.shows.set(if old < from && next >= from { to } else { next });
        self.shows.get()
    }
}

/// A clock 32 times slower than real time; each reading takes a real microsecond.
struct Slow(Rc<Cell<Time>>);

impl Clock for Slow {
    fn now(&self) -> Time {
        self.0.set(self.0.get() + self.of_real(Time::from_us(1)));
        self.0.get()
    }

    fn of_real(&self, span: Time) -> Time {
        span / 32
    }
}

/// Packets are numbers.
#[derive(Default)]
struct Memory {
    marked: BTreeSet<u32>,
    released: Vec<(u32, u32)>,
    discarded: Vec<u32>,
    holds_back: bool,
    flushes: Vec<u32>,
    /// The packets that hosts send, with their times; and the clock.
    to_come: VecDeque<(Time, u32, Head)>,
    shows: Rc<Cell<Time>>,
}

impl Ports for Memory {
    type Packet = u32;

    fn mark(&mut self, packet: &mut u32) {
        self.marked.insert(*packet);
    }

    fn lift(&mut self, _: u32) -> OwnedFrame {
        unreachable!("there is no enforcer here")
    }

    fn lower(&mut self, _: OwnedFrame) -> u32 {
        unreachable!("there is no enforcer here")
    }

    fn release(&mut self, host: u32, packet: u32) {
        self.released.push((host, packet));
    }

    fn discard(&mut self, packet: u32) {
        self.discarded.push(packet);
    }

    fn holds_back(&self) -> bool {
        self.holds_back
    }

    fn flush(&mut self, host: u32) {
        self.flushes.push(host);
    }

    fn receive(&mut self, take: &mut impl FnMut(&mut Self, u32, Head)) -> bool {
        let Some(_) = self.to_come.front().filter(|(at, ..)| *at <= self.shows.get()) else { return false };
        let (_, packet, head) = self.to_come.pop_front().expect("there is one");
        take(self, packet, head);
        true
    }
}

struct Bench {
    engine: Engine<u32>,
    ports: Memory,
    clock: FakeClock,
    topology: Topology,
    sent: u32,
}

impl Bench {
    /// Two or more hosts around one switch, 1 Gbit/s, 10 us a link; `queue` at the switch's ports.
    fn star(hosts: u64, queue: QueueSpec, agenda: Agenda) -> Bench {
        let params = |tier| LinkParams {
            rate: Rate::from_gbps(1),
            delay: Time::from_us(10),
            queue: if tier == net::LinkTier::FromHost { QueueSpec::unlimited() } else { queue },
        };
        let topology = Topology::star(hosts, params).expect("a star");
        let links = LinkTable::new(&topology, 1).expect("good links");
        let all: Vec<LinkId> = (0..topology.links().len() as u32).map(LinkId).collect();
        let series = Series::new(&all, &topology);
        let routes = Routes::new(Router::new(&topology, Routing::Ecmp));
        let engine = Engine::new(links, routes, FRAMING, agenda, series);
        Bench { engine, ports: Memory::default(), clock: FakeClock(Cell::new(Time::ZERO)), topology, sent: 0 }
    }

    /// Host `src` sends a full packet to host `dst` at `at`, when the machine sees it.
    fn send(&mut self, at: Time, src: u32, dst: u32) -> u32 {
        self.clock.0.set(at);
        self.sent += 1;
        self.engine.enter(at, self.sent, full(src, dst), &mut self.ports, &self.clock);
        self.sent
    }

    /// The machine reads the clock when it shows `at`.
    fn look(&mut self, at: Time) {
        self.clock.0.set(at);
        self.engine.run_to(at, &mut self.ports, &self.clock);
        self.engine.flush_if_due(&mut self.ports, &self.clock);
    }
}

/// A full packet of the flow of host `src`.
fn full(src: u32, dst: u32) -> Head {
    let flow = Some(FlowPacket { flow: src, forward: true, payload: 1448, ece: false });
    Head { src, dst, hash: 0, ip_len: 1500, ecn: Ecn::Ect0, flow }
}

fn quiet() -> Agenda {
    Agenda::new(Vec::new(), None, Time::ZERO)
}

fn serialization(packets: u64) -> Time {
    Rate::from_gbps(1).serialization(FULL * packets)
}

/// Two links: twice 10 us and twice a packet's serialization.
fn one_way() -> Time {
    Time::from_us(20) + serialization(2)
}

#[test]
fn a_packet_is_released_at_the_models_time_and_not_before() {
    let mut bench = Bench::star(2, QueueSpec::drop_tail(10), quiet());
    let at = Time::from_us(7);
    let packet = bench.send(at, 0, 1);
    bench.look(at + one_way() - Time::from_ps(1));
    assert!(bench.ports.released.is_empty());
    bench.look(at + one_way());
    assert_eq!(bench.ports.released, [(1, packet)]);
    assert_eq!(bench.engine.lateness().release.max(), Time::ZERO);
}

#[test]
fn lateness_is_the_time_of_release_minus_the_models_arrival() {
    let mut bench = Bench::star(2, QueueSpec::drop_tail(10), quiet());
    bench.send(Time::ZERO, 0, 1);
    bench.look(one_way() + Time::from_us(5));
    assert_eq!(bench.engine.lateness().release.count(), 1);
    let late = bench.engine.lateness().release.max();
    assert!(late >= Time::from_us(5) && late < Time::from_ns(5010), "{late}");
}

#[test]
fn packets_are_delayed_only_for_those_right_after_them() {
    let mut bench = Bench::star(3, QueueSpec::drop_tail(10), quiet());
    bench.ports.holds_back = true;
    // one after the other on a link of 1 Gbit/s: 12 us apart, which is too long to wait
    bench.send(Time::ZERO, 0, 1);
    bench.send(Time::ZERO, 0, 1);
    // with an acknowledgment's length, as close as can be: they leave together
    for _ in 0..3 {
        bench.clock.0.set(Time::ZERO);
        bench.engine.enter(Time::ZERO, 0, Head { ip_len: 52, ..full(2, 0) }, &mut bench.ports, &bench.clock);
    }
    for us in 0..60 {
        bench.look(Time::from_us(us));
    }
    assert_eq!(bench.ports.flushes, [0, 1, 1]);
    let lateness = &bench.engine.lateness().release;
    assert_eq!(lateness.count(), 5);
    assert!(lateness.max() >= Time::from_us(1) && lateness.max() < Time::from_us(4), "{}", lateness.max());
}

#[test]
fn packets_that_wait_for_a_lost_one_are_delivered_in_time() {
    // two packets of 90 bytes reach the far end of two links at 21.44 and 22.16 us
    let first = Time::from_ns(21_440);
    let last_link = Bench::star(2, QueueSpec::drop_tail(10), quiet()).topology.find_link("s1->h2").expect("a link");
    let failures = vec![(first + Time::from_ns(300), vec![last_link], true)];
    let mut bench = Bench::star(2, QueueSpec::drop_tail(10), Agenda::new(failures, None, Time::ZERO));
    bench.ports.holds_back = true;
    for packet in 1..=2 {
        bench.engine.enter(Time::ZERO, packet, Head { ip_len: 52, ..full(0, 1) }, &mut bench.ports, &bench.clock);
    }
    bench.look(first + Time::from_us(9));
    assert_eq!((&bench.ports.released[..], &bench.ports.flushes[..]), (&[(1, 1)][..], &[][..]));
    bench.look(first + Time::from_us(10));
    assert_eq!(bench.ports.flushes, [1]);
    assert_eq!(bench.engine.lateness().release.count(), 1);
}

#[test]
fn a_machine_that_stalls_does_not_change_what_the_model_computes() {
    let run = |looks: &[u64]| {
        let sample = Some(Time::from_us(5));
        let mut bench = Bench::star(3, QueueSpec::drop_tail(6), Agenda::new(Vec::new(), sample, Time::ZERO));
        let mut looks = looks.iter().map(|us| Time::from_us(*us)).peekable();
        for i in 0..40 {
            let at = Time::from_ns(i * 7100);
            while looks.next_if(|look| *look < at).is_some_and(|look| {
                bench.look(look);
                true
            }) {}
            bench.send(at, (i % 2) as u32, 2);
        }
        bench.look(Time::from_ms(2));
        let samples = bench.engine.finish(&mut bench.ports).series.samples().to_vec();
        (bench.ports.released, bench.ports.discarded, samples)
    };
    let smooth = run(&(0..300).collect::<Vec<_>>());
    assert!(!smooth.1.is_empty(), "two senders into one port: the queue overflows");
    assert_eq!(run(&[]), smooth);
    assert_eq!(run(&[100]), smooth);
}

#[test]
fn a_host_at_its_cards_rate_fills_no_queue_during_a_pause_of_the_reader() {
    let run = |jump: (Time, Time)| {
        let agenda = Agenda::new(Vec::new(), Some(Time::from_us(20)), Time::ZERO);
        let mut bench = Bench::star(3, QueueSpec::unlimited(), agenda);
        let n = 1500;
        let full_card = (0..n).map(|i| (serialization(i), i as u32, full(0, 2)));
        let seldom = (0..n / 50).map(|i| (serialization(50 * i), (n + i) as u32, full(1, 2)));
        bench.ports.to_come = full_card.chain(seldom).collect();
        bench.ports.to_come.make_contiguous().sort_by_key(|(at, ..)| *at);
        let clock = Jumping { shows: Rc::clone(&bench.ports.shows), jump };
        drive(&mut bench.engine, &mut bench.ports, &clock, serialization(n), &AtomicBool::new(false));
        let card = bench.topology.find_link("h1->s1").expect("a card");
        let reading = bench.engine.lateness().reading.max();
        let released = bench.ports.released.len();
        let samples = bench.engine.finish(&mut bench.ports).series.samples().to_vec();
        let longest = samples.iter().filter(|s| s.link == card.0).map(|s| s.queue_packets).max();
        (longest.expect("it was sampled"), released, reading)
    };
    let smooth = run((Time::ZERO, Time::ZERO));
    // one in service, and the arrivals within a poll or two
    assert!((1..=3).contains(&smooth.0), "{smooth:?}");
    assert!(smooth.1 > 1400 && smooth.2 < Time::from_us(30), "{smooth:?}");
    // wherever it pauses
    for begin in 0..20 {
        let stalled = run((Time::from_us(2000 + begin), Time::from_ms(12)));
        // and the arrivals within the longest tolerated gap
        assert!((1..=5).contains(&stalled.0), "eight hundred packets came during the pause: {stalled:?}");
        assert!(stalled.1.abs_diff(smooth.1) <= 2, "{smooth:?}, {stalled:?}");
        assert!(stalled.2 >= Time::from_ms(9), "the pause is reported: {stalled:?}");
    }
}

/// In a slow network the machine has time to look at the hosts between any two packets.
#[test]
fn a_slow_network_reads_its_hosts_between_all_packets() {
    let (pairs, n) = (8, 200);
    let mut bench = Bench::star(2 * pairs, QueueSpec::unlimited(), quiet());
    let sends = |pair: u64| {
        let phase = serialization(1) / pairs * pair;
        (0..n).map(move |i| (phase + serialization(i), (pair * n + i) as u32, full(pair as u32, (pairs + pair) as u32)))
    };
    bench.ports.to_come = (0..pairs).flat_map(sends).collect();
    bench.ports.to_come.make_contiguous().sort_by_key(|(at, ..)| *at);
    let clock = Slow(Rc::clone(&bench.ports.shows));
    let end = serialization(n) + Time::from_us(100);
    drive(&mut bench.engine, &mut bench.ports, &clock, end, &AtomicBool::new(false));
    let reading = bench.engine.lateness().reading.max();
    assert_eq!((bench.ports.released.len() as u64, bench.ports.to_come.len()), (pairs * n, 0));
    assert!(reading < Time::from_ns(500), "{reading}");
}

#[test]
fn every_packet_is_released_dropped_lost_or_in_flight_and_leaves_once() {
    let mut bench = Bench::star(4, QueueSpec::drop_tail(5), quiet());
    for i in 0..200u64 {
        bench.send(Time::from_us(i), (i % 3) as u32, 3);
    }
    let totals = bench.engine.totals();
    let under_way: u64 = bench.engine.under_way().iter().sum();
    assert!(under_way > 0 && totals.dropped > 0);
    assert_eq!(totals.entered, totals.released + totals.dropped + totals.lost + totals.no_route + under_way);
    bench.look(Time::from_ms(1));
    let mut seen: Vec<u32> = bench.ports.released.iter().map(|(_, packet)| *packet).collect();
    seen.extend(&bench.ports.discarded);
    seen.sort_unstable();
    assert_eq!(seen, (1..=200).collect::<Vec<_>>());
}

#[test]
fn a_sampled_queue_is_arrivals_minus_departures() {
    // Both senders' links hold the switch port's queue at its growth of one packet per packet time.
    let every = Time::from_us(3);
    let mut bench = Bench::star(3, QueueSpec::drop_tail(1000), Agenda::new(Vec::new(), Some(every), Time::ZERO));
    let n = 30;
    for i in 0..n {
        for src in [0, 1] {
            bench.send(serialization(i), src, 2);
        }
    }
    bench.look(Time::from_ms(2));
    let port = bench.topology.find_link("s1->h3").expect("a port");
    let samples = bench.engine.finish(&mut bench.ports).series.samples().to_vec();
    // Each sender's packet number i (from 0) arrives at the switch at serialization(i + 1) + 10 us; the port sends one
    // after the other from the first arrival on.
    let first = serialization(1) + Time::from_us(10);
    for sample in samples.iter().filter(|sample| sample.link == port.0) {
        let at = Time::from_ns(sample.time_ns);
        let came = (0..n).filter(|i| first + serialization(*i) < at).count() as u64 * 2;
        let went = (1..=2 * n).filter(|i| first + serialization(*i) <= at).count() as u64;
        assert_eq!(u64::from(sample.queue_packets), came - went.min(came), "at {at}");
    }
    let longest = samples.iter().filter(|s| s.link == port.0).map(|s| s.queue_packets).max();
    assert!(longest > Some(20), "{longest:?}");
}

#[test]
fn a_threshold_marks_the_real_packet_from_k_on() {
    let queue = QueueSpec::drop_tail(100).marking(Depth::Packets(3));
    let mut bench = Bench::star(3, queue, quiet());
    for i in 0..10 {
        bench.send(serialization(i), 0, 2);
        bench.send(serialization(i), 1, 2);
    }
    bench.look(Time::from_ms(1));
    let port = bench.topology.find_link("s1->h3").expect("a port");
    assert_eq!(bench.engine.counters(port).marked, bench.ports.marked.len() as u64);
    assert!(bench.ports.marked.len() > 5 && !bench.ports.marked.contains(&1));
    let counted = bench.engine.finish(&mut bench.ports);
    let signals: u64 = (0..2).map(|flow| counted.flows.of(flow).forward.signals).sum();
    assert_eq!(signals, bench.ports.marked.len() as u64, "the flows saw the marks");
}

#[test]
fn a_failed_link_loses_its_queue_and_all_arrivals_until_it_is_repaired() {
    let (fails, repaired) = (Time::from_us(15), Time::from_us(100));
    let bench = Bench::star(2, QueueSpec::drop_tail(10), quiet());
    let nic = bench.topology.find_link("h1->s1").expect("a link");
    let failures = vec![(repaired, vec![nic], false), (fails, vec![nic], true)];
    let mut bench = Bench::star(2, QueueSpec::drop_tail(10), Agenda::new(failures, None, Time::ZERO));
    bench.send(Time::ZERO, 0, 1);
    bench.send(Time::from_us(50), 0, 1);
    let third = bench.send(Time::from_us(101), 0, 1);
    bench.look(Time::from_ms(1));
    assert_eq!(bench.ports.released, [(1, third)]);
    let totals = bench.engine.totals();
    assert_eq!((totals.lost, totals.no_route), (1, 1), "{totals:?}");
    let counted = bench.engine.finish(&mut bench.ports);
    let rows = counted.series.rows(&counted.links, &bench.topology, &counted.under_way, counted.ended);
    assert_eq!(rows[nic.index()].dropped_by_failure, 1);
}

#[test]
fn counting_begins_when_the_warm_up_ends() {
    let warmup = Time::from_us(100);
    let mut bench = Bench::star(2, QueueSpec::drop_tail(10), Agenda::new(Vec::new(), None, warmup));
    bench.send(Time::ZERO, 0, 1);
    bench.send(Time::from_us(200), 0, 1);
    bench.look(Time::from_ms(1));
    let counted = bench.engine.finish(&mut bench.ports);
    let rows = counted.series.rows(&counted.links, &bench.topology, &counted.under_way, counted.ended);
    let port = bench.topology.find_link("s1->h2").expect("a port");
    assert_eq!((rows[port.index()].packets, rows[port.index()].delivered), (1, 1));
    assert_eq!(counted.flows.of(0).forward.packets, 1);
    assert_eq!(counted.flows.of(0).forward.delay, one_way());
}
