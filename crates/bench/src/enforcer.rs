//! Cost of the enforcer without I/O: packets per second through its core on one core, and memory of an idle flow.
//!
//! Packets are those that come in: full segments of servers, and an acknowledgment for every two.

use crate::{Row, in_own_process, peak_memory};
use congestion::Algorithm;
use enforcer::{Action, Direction, End, Enforcer, Limits, Rule, Simulated};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;
use tcp::{Config, Segment, flags};
use units::Time;

const PACKETS: u64 = 10_000_000;
const ROUND_TRIP: Time = Time::from_ms(20);
const MSS: u32 = 1448;
const IDLE: &str = "enforcer: memory of an idle flow";
const IDLE_FLOWS: u32 = 100_000;
/// Of a client and its server; the bytes that follow are the first.
const ISS: [u32; 2] = [7_000, 90_000];

/// One bulk flow per row, and as many as a busy server has.
const BULK: [(&str, u32); 4] = [("cubic", 1), ("bbr", 1), ("cubic", 20_000), ("bbr", 20_000)];

pub fn cases() -> Vec<String> {
    BULK.iter().map(|&(algorithm, flows)| bulk_name(algorithm, flows)).chain([IDLE.into()]).collect()
}

fn bulk_name(algorithm: &str, flows: u32) -> String {
    format!("enforcer: {algorithm}, {flows} bulk flows")
}

pub fn run(name: &str) -> Option<Vec<Row>> {
    if name == IDLE {
        return idle();
    }
    if let Some(flows) = name.strip_prefix("enforcer idle ") {
        return flows.parse().ok().map(peak_with_idle);
    }
    let &(algorithm, flows) = BULK.iter().find(|(algorithm, flows)| bulk_name(algorithm, *flows) == name)?;
    Some(vec![Row::new(name, bulk(algorithm, flows), "packets/s")])
}

/// The ends of the flow of that number.
fn ends(n: u32) -> [End; 2] {
    let client = Ipv4Addr::from_bits(0xcb00_0000 + (n >> 14));
    [End::new([192, 0, 2, 1].into(), 80), End::new(client.into(), 40_000 + (n & 0x3fff) as u16)]
}

fn number(client: End) -> u32 {
    let bits = client.address.to_ipv4_mapped().map_or(0, Ipv4Addr::to_bits);
    ((bits - 0xcb00_0000) << 14) + u32::from(client.port - 40_000)
}

struct Flow {
    /// The next that the server sends, the last that it may, and what the client has.
    nxt: u32,
    edge: u32,
    received: u32,
    acked: u32,
}

struct Bench {
    now: Time,
    enforcer: Enforcer<Simulated>,
    flows: Vec<Flow>,
    packets: u64,
}

impl Bench {
    fn new(algorithm: &str, flows: u32) -> Bench {
        let algorithm = Algorithm::named(algorithm).expect("it is built in");
        let config = Arc::new(Config::linux(algorithm));
        let mut bench = Bench {
            now: Time::from_secs(1),
            enforcer: Enforcer::new(Limits::default(), vec![Rule::all(&config)], 1),
            flows: Vec::new(),
            packets: 0,
        };
        for n in 0..flows {
            let syn = Segment {
                seq: ISS[1],
                flags: flags::SYN,
                mss: 1460,
                window_scale: 8,
                sack_permitted: true,
                has_timestamp: true,
                ..Segment::default()
            };
            bench.put(n, Direction::In, syn);
            let answer = Segment { seq: ISS[0], ack: ISS[1] + 1, flags: flags::SYN | flags::ACK, ..syn };
            bench.put(n, Direction::Out, answer);
            bench.now += ROUND_TRIP;
            bench.flows.push(Flow { nxt: ISS[0] + 1, edge: 0, received: ISS[0] + 1, acked: ISS[0] + 1 });
            bench.acknowledge(n);
        }
        bench
    }

    fn put(&mut self, n: u32, direction: Direction, segment: Segment) -> Action<Simulated> {
        let [server, client] = ends(n);
        let (source, destination) = if direction == Direction::Out { (server, client) } else { (client, server) };
        self.packets += 1;
        let packet = Simulated { source, destination, dscp: 0, corrupt: false, segment };
        self.enforcer.on_packet(self.now, direction, packet)
    }

    /// Clients take what leaves.
    fn deliver(&mut self) {
        while let Some((_, packet)) = self.enforcer.poll_transmit() {
            self.flows[number(packet.destination) as usize].received = packet.segment.end_seq();
        }
    }

    fn acknowledge(&mut self, n: u32) {
        let ack = self.flows[n as usize].received;
        let segment = Segment {
            seq: ISS[1] + 1,
            ack,
            flags: flags::ACK,
            window: 1 << 20,
            has_timestamp: true,
            ..Segment::default()
        };
        if let Action::Forward(seen) | Action::Rewritten(seen) = self.put(n, Direction::In, segment) {
            self.flows[n as usize].edge = seen.segment.ack.wrapping_add(seen.segment.window);
        }
        self.flows[n as usize].acked = ack;
        self.deliver();
    }

    /// The turn of one flow: two segments if the window lets them, one acknowledgment if something came.
    fn turn(&mut self, n: u32) {
        for _ in 0..2 {
            let Flow { nxt, edge, .. } = self.flows[n as usize];
            if (edge.wrapping_sub(nxt.wrapping_add(MSS)) as i32) < 0 {
                break;
            }
            let data = Segment {
                seq: nxt,
                ack: ISS[1] + 1,
                len: MSS as u16,
                flags: flags::ACK,
                window: 65_536,
                has_timestamp: true,
                ..Segment::default()
            };
            self.put(n, Direction::Out, data);
            self.flows[n as usize].nxt = nxt.wrapping_add(MSS);
            self.deliver();
        }
        while self.enforcer.poll_timeout() <= self.now {
            self.enforcer.on_timer(self.now);
            self.deliver();
        }
        let Flow { received, acked, .. } = self.flows[n as usize];
        if received != acked {
            self.acknowledge(n);
        }
    }
}

/// Packets per second; every flow has its turn once a round trip.
fn bulk(algorithm: &str, flows: u32) -> f64 {
    let mut bench = Bench::new(algorithm, flows);
    let step = ROUND_TRIP / u64::from(flows.max(1_000));
    let mut n = 0;
    let mut some = |bench: &mut Bench, packets: u64| {
        let end = bench.packets + packets;
        while bench.packets < end {
            bench.turn(n);
            bench.now += step;
            n = (n + 1) % flows;
        }
    };
    some(&mut bench, PACKETS / 10);
    let start = Instant::now();
    some(&mut bench, PACKETS);
    let wall = start.elapsed().as_secs_f64();
    let counters = bench.enforcer.counters();
    assert!(counters.retransmitted == 0 && counters.beyond_window_held == 0, "nothing is lost: {counters:?}");
    PACKETS as f64 / wall
}

/// A flow that has sent something, all of which is acknowledged: the difference that 100,000 of them make.
fn idle() -> Option<Vec<Row>> {
    let peak = |flows: u32| Some(in_own_process(&format!("enforcer idle {flows}"))?.first()?.value);
    let per_flow = (peak(2 * IDLE_FLOWS)? - peak(IDLE_FLOWS)?) / f64::from(IDLE_FLOWS);
    Some(vec![Row::new(IDLE, per_flow, "bytes")])
}

fn peak_with_idle(flows: u32) -> Vec<Row> {
    // handshakes have room for all, and take it at once
    let mut bench = Bench::new("cubic", flows);
    for n in 0..flows {
        bench.turn(n);
        bench.now += Time::from_ms(1);
    }
    // pads this program's own table: its memory is then the same for any number
    bench.flows.extend((flows..2 * IDLE_FLOWS).map(|_| Flow { nxt: 1, edge: 1, received: 1, acked: 1 }));
    bench.now += Time::from_secs(200);
    while bench.enforcer.poll_timeout() <= bench.now {
        bench.enforcer.on_timer(bench.now);
    }
    assert_eq!((bench.enforcer.flows(), bench.enforcer.buffered_bytes()), (flows as usize, 0));
    vec![Row::new("peak", peak_memory().expect("/proc tells") as f64, "bytes")]
}
