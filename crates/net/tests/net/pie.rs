//! PIE against the arithmetic of RFC 8033, written down again with a timer of its own.

use crate::common::{LINK, one_link};
use net::{Aqm, Ecn, LinkTable, Outcome, PieSpec, QueueSpec, SplitMix64};
use units::{Rate, Time};

/// 1000 bytes at 8 Mbit/s last 1 ms.
const PACKET_MS: u64 = 1;

fn pie(spec: PieSpec, packets: u32) -> LinkTable {
    one_link(Rate::from_mbps(8), QueueSpec::drop_tail(packets).with(Aqm::Pie(spec)))
}

fn spec() -> PieSpec {
    PieSpec { mean_packet: 1000, ..PieSpec::default() }
}

/// The RFC's state, in seconds and with an update every 15 ms whether anything arrives or not.
struct Reference {
    p: f64,
    accu: f64,
    burst_ms: i64,
    old_s: f64,
    random: SplitMix64,
}

impl Reference {
    fn tick(&mut self, delay_s: f64) {
        let mut d = 0.125 * (delay_s - 0.015) + 1.25 * (delay_s - self.old_s);
        d /= match self.p {
            p if p < 1e-6 => 2048.0,
            p if p < 1e-5 => 512.0,
            p if p < 1e-4 => 128.0,
            p if p < 1e-3 => 32.0,
            p if p < 1e-2 => 8.0,
            p if p < 1e-1 => 2.0,
            _ => 1.0,
        };
        if self.p >= 0.1 && d > 0.02 {
            d = 0.02;
        }
        self.p = (self.p + d).clamp(0.0, 1.0);
        if delay_s == 0.0 && self.old_s == 0.0 {
            self.p *= 0.98;
        }
        self.burst_ms = (self.burst_ms - 15).max(0);
        self.old_s = delay_s;
    }

    /// Whether a packet that finds `bytes` and a delay is dropped early.
    fn drops(&mut self, delay_s: f64, bytes: u64) -> bool {
        if self.p == 0.0 && delay_s < 0.0075 && self.old_s < 0.0075 {
            self.burst_ms = 150;
        }
        if self.burst_ms > 0 || (self.old_s < 0.0075 && self.p < 0.2) || bytes <= 2000 {
            return false;
        }
        if self.p == 0.0 {
            self.accu = 0.0;
        }
        self.accu += self.p;
        let drop = self.accu >= 8.5 || (self.accu >= 0.85 && self.random.unit() < self.p);
        if drop {
            self.accu = 0.0;
        }
        drop
    }
}

#[test]
fn every_decision_is_that_of_the_rfc_over_load_and_idle_time() {
    let mut links = pie(spec(), 100_000);
    // the stream of link 0 of a table with the seed 42
    let mut reference = Reference { p: 0.0, accu: 0.0, burst_ms: 150, old_s: 0.0, random: SplitMix64::new(42, 0) };
    let mut arrivals = Vec::new();
    let mut at_us = 0;
    // 4 s at 1.5 times the rate, 1 s of nothing, 3 s at 1.1 times, 1 s at half, 3 s at twice the rate
    for (until_us, gap_us) in [(4_000_000, 667), (5_000_000, 0), (8_000_000, 909), (9_000_000, 2000), (12_000_000, 500)]
    {
        while gap_us > 0 && at_us < until_us {
            arrivals.push(at_us);
            at_us += gap_us;
        }
        at_us = until_us;
    }
    let (mut dropped, mut free_us, mut next_tick_us) = (0, 0u64, 15_000u64);
    for &at in &arrivals {
        while next_tick_us <= at {
            reference.tick(free_us.saturating_sub(next_tick_us) as f64 / 1e6);
            next_tick_us += 15_000;
        }
        let backlog_us = free_us.saturating_sub(at);
        // the packet being sent counts whole
        let bytes = backlog_us.div_ceil(1000) * 1000;
        let drops = reference.drops(backlog_us as f64 / 1e6, bytes);
        let outcome = links.offer(LINK, Time::from_us(at), 1000, Ecn::NotEct);
        assert_eq!(outcome == Outcome::Dropped, drops, "at {at} us, p {}", reference.p);
        let p = links.pie_probability(LINK).unwrap();
        assert!((p - reference.p).abs() < 1e-12, "at {at} us: {p} and {}", reference.p);
        if drops {
            dropped += 1;
        } else {
            free_us = free_us.max(at) + PACKET_MS * 1000;
        }
    }
    assert!(dropped > 1000, "{dropped} drops are no test");
}

#[test]
fn twice_the_rate_for_long_is_cut_to_the_target() {
    let mut links = pie(spec(), 100_000);
    let mut delays = Vec::new();
    // 2000 packets a second offered, 1000 leave: half must be dropped
    for n in 0..120_000u64 {
        let now = Time::from_us(n * 500);
        links.offer(LINK, now, 1000, Ecn::NotEct);
        if n >= 60_000 {
            delays.push(f64::from(links.queue_len(LINK, now).packets));
        }
    }
    let mean_ms = delays.iter().sum::<f64>() / delays.len() as f64;
    println!("PIE: mean delay {mean_ms:.2} ms; the target is 15 ms");
    assert!((13.0..17.0).contains(&mean_ms), "{mean_ms}");
    let share = links.counters(LINK).dropped as f64 / 120_000.0;
    assert!((share - 0.5).abs() < 0.01, "{share}");
}

#[test]
fn capable_packets_are_marked_up_to_a_probability_and_dropped_above() {
    let marks = |offered_per_ms: u64| {
        let mut links = pie(PieSpec { ecn: true, ..spec() }, 100_000);
        for n in 0..60_000 * offered_per_ms / 10 {
            links.offer(LINK, Time::from_us(n * 10_000 / offered_per_ms), 1000, Ecn::Ect0);
        }
        let counters = links.counters(LINK);
        (counters.marked, counters.dropped)
    };
    // marks do not slow this traffic down, so the probability rises above 10 % and drops follow
    let (marked, dropped) = marks(11);
    assert!(marked > 0 && dropped > 0, "{marked} marks, {dropped} drops");
    assert_eq!(marks(9), (0, 0), "below the rate of the link nothing stands");
}

#[test]
fn a_burst_after_idle_time_passes() {
    let mut links = pie(spec(), 100_000);
    for n in 0..100 {
        assert_ne!(links.offer(LINK, Time::from_secs(5) + Time::from_us(n), 1000, Ecn::NotEct), Outcome::Dropped);
    }
    assert_eq!(links.pie_probability(LINK), Some(0.0));
}
