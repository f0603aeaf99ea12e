//! Whether the server's own window limits the algorithm's: losses behind the enforcer, even longer than the
//! server's RTO, must not collapse it.
//!
//! Three downloads a path; `ENFORCER_REPETITIONS` sets more, `ENFORCER_BYTES` longer ones.

use crate::world::World;
use congestion::Algorithm;
use enforcer::{Enforcer, Limits, Rule};
use std::sync::Arc;
use tcp::{Config, Endpoint};
use testkit::{Faults, Wire, asked};
use units::{Rate, Time};

const RTT: Time = Time::from_ms(180);
const LOSS: f64 = 0.01;
/// Packets that the bottleneck's queue holds.
const QUEUE: usize = 50;
/// The server's first slow start: until then its window is small, and grows no faster than the client acknowledges.
const GROWTH: Time = Time::from_secs(8);

/// How long the server had data and receive window, but was limited by its own window.
#[derive(Debug, Default)]
struct Limited {
    since: Option<Time>,
    /// The longest such time: while its window first grows, and after that.
    longest: [Time; 2],
    total: Time,
}

impl Limited {
    fn note(&mut self, world: &World) {
        let (server, now) = (&world.ends[0], world.now);
        let sock = server.sock();
        let room = world.watch.server_edge.map_or(0, |edge| edge.wrapping_sub(sock.snd_nxt) as i32);
        let is_limited =
            server.unsent() > 0 && sock.packets_in_flight() >= sock.snd_cwnd && room >= sock.mss_cache as i32;
        let since = match (is_limited, self.since) {
            (true, None) => return self.since = Some(now),
            (false, Some(since)) => since,
            _ => return,
        };
        self.since = None;
        let longest = &mut self.longest[usize::from(since > GROWTH)];
        *longest = (*longest).max(now.saturating_sub(since));
        self.total += now.saturating_sub(since);
    }
}

fn linux(name: &str) -> Config {
    Config::linux(Algorithm::named(name).expect("built in"))
}

/// A CUBIC server's download over a path of this rate, BBR enforced.
fn download(rate: Rate, bytes: u64, server: Config, seed: u64) -> Limited {
    let near = Wire::new(Faults::clean(Time::from_us(100)));
    let back = Wire::new(Faults::clean(RTT / 2));
    let far = Wire::new(Faults { rate: Some((rate, QUEUE)), loss: LOSS, ..back.faults.clone() });
    let client = Arc::new(linux("cubic"));
    let ends = [Endpoint::listen(&Arc::new(server), seed as u32, 5), Endpoint::connect(&client, !(seed as u32), 3)];
    let mut world = World::new(ends, [near.clone(), far], [back, near], seed);
    world.enforcer = Some(Enforcer::new(Limits::default(), vec![Rule::all(&Arc::new(linux("bbr")))], seed));
    world.act(1, |_, _| ());
    while !world.ends[0].is_established() {
        assert!(world.step(), "the handshake stalls");
    }
    world.act(0, |end, now| end.write_all(now, bytes));
    let mut limited = Limited::default();
    while world.ends[1].received() < bytes {
        limited.note(&world);
        assert!(world.step(), "the download stops at {} bytes", world.ends[1].received());
    }
    // a D-SACK for what the server sent twice comes with its last ACKs
    while world.ends[0].sock().packets_out > 0 {
        assert!(world.step(), "the last ACKs do not reach the server");
    }
    let (stats, counters) = (world.ends[0].stats(), *world.enforcer.as_ref().expect("there is one").counters());
    println!(
        "{rate:?}, seed {seed}, {:.1} s: limited {limited:?}; the server: {} probes, {} timeouts, ssthresh {}; absorbed {}, \
         of these timeouts {}, probes {}, reported {}",
        world.now.as_secs_f64(),
        stats.tlp_probes,
        stats.rtos,
        world.ends[0].sock().snd_ssthresh,
        counters.absorbed,
        counters.absorbed_oldest,
        counters.absorbed_last,
        counters.undos,
    );
    assert!(counters.absorbed == 0 || counters.undos > 0, "{counters:?}");
    assert_eq!(world.watch.complaint, None);
    limited
}

/// Once the server's window has grown, it is the limit for no longer than an RTT at a time, which includes a full queue.
fn is_not_the_limit(change: impl Fn(&mut Config)) {
    for rate in [2_500_000, 10_000_000] {
        for seed in 1..=asked("ENFORCER_REPETITIONS").unwrap_or(3) {
            let mut server = linux("cubic");
            change(&mut server);
            let limited = download(Rate::from_bps(rate), asked("ENFORCER_BYTES").unwrap_or(20_000_000), server, seed);
            let full_queue = Rate::from_bps(rate).serialization(1500) * QUEUE as u64;
            assert!(limited.longest[1] <= RTT + full_queue, "{rate} bit/s, seed {seed}: {limited:?}");
        }
    }
}

#[test]
fn the_servers_window_does_not_limit_the_algorithms() {
    is_not_the_limit(|_| ());
}

#[test]
fn the_window_of_a_server_without_timestamps_does_not_limit_the_algorithms() {
    is_not_the_limit(|server| server.timestamps = false);
}
