//! One direction of a wire, with all that may befall a frame on it.

use crate::case::Random;
use packet_io::{Ethernet, Ip, set_ce};
use std::collections::VecDeque;
use units::{Rate, Time};

/// What a wire does to frames: probabilities where nothing else is said.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub delay: Time,
    /// Bottleneck and its queue in packets, the one in service included.
    pub rate: Option<(Rate, usize)>,
    pub loss: f64,
    pub reorder: f64,
    pub duplicate: f64,
    pub corrupt: f64,
    pub mark: f64,
}

/// How much later than its turn a frame may come, us.
const LATE_US: u64 = 5_000;

#[derive(Default)]
pub struct Wire {
    faults: Faults,
    departures: VecDeque<Time>,
}

impl Wire {
    pub fn new(faults: Faults) -> Wire {
        Wire { faults, departures: VecDeque::new() }
    }

    /// When copies of a frame that is sent now arrive.
    pub fn carry(&mut self, now: Time, random: &mut Random, frame: &mut [u8]) -> Vec<Time> {
        let faults = &self.faults;
        let mut sent = now;
        if let Some((rate, queue)) = faults.rate {
            while self.departures.front().is_some_and(|&at| at <= now) {
                self.departures.pop_front();
            }
            if self.departures.len() >= queue {
                return Vec::new();
            }
            let free = self.departures.back().copied().unwrap_or(Time::ZERO);
            sent = free.max(now) + rate.serialization(frame.len() as u64);
            self.departures.push_back(sent);
        }
        if random.chance(faults.loss) {
            return Vec::new();
        }
        if random.chance(faults.mark) {
            set_ce(frame);
        }
        if random.chance(faults.corrupt) {
            flip(random, frame);
        }
        let late = |random: &mut Random| Time::from_us(random.below(LATE_US));
        let arrival = sent + faults.delay;
        let first = if random.chance(faults.reorder) { arrival + late(random) } else { arrival };
        let mut copies = vec![first];
        if random.chance(faults.duplicate) {
            copies.push(arrival + late(random));
        }
        copies
    }
}

/// Flips a bit that a checksum covers: from IPv4's header on, and from what follows IPv6's.
fn flip(random: &mut Random, frame: &mut [u8]) {
    let Some(ethernet) = Ethernet::parse(frame) else { return };
    let from = ethernet.headers_bytes() + if matches!(ethernet.ip(), Some(Ip::V6(_))) { 40 } else { 0 };
    let at = from + random.below((frame.len() - from) as u64) as usize;
    frame[at] ^= 1 << random.below(8);
}
