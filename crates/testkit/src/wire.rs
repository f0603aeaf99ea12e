//! Simulated faults of a link.

use crate::random::Random;
use std::collections::VecDeque;
use units::{Rate, Time};

/// Largest extra delay of a packet that is reordered or duplicated, µs.
const LATE_US: u64 = 5_000;

/// The faults of a link: probabilities unless noted.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Delay, one way.
    pub delay: Time,
    /// Bottleneck and its queue in packets, the one in service included.
    pub rate: Option<(Rate, usize)>,
    /// Loss.
    pub loss: f64,
    /// Extra delay.
    pub reorder: f64,
    /// Duplication.
    pub duplicate: f64,
    /// A bit is flipped.
    pub corrupt: f64,
    /// A CE mark.
    pub mark: f64,
}

impl Faults {
    /// No faults, only a delay.
    pub fn clean(delay: Time) -> Faults {
        Faults { delay, ..Faults::default() }
    }
}

/// One direction of a link. Its owner, who knows the packet's type, implements corruption and marks.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// Its faults.
    pub faults: Faults,
    /// Nothing gets through.
    pub cut: bool,
    bottleneck: Bottleneck,
}

impl Wire {
    /// A wire with these faults.
    pub fn new(faults: Faults) -> Wire {
        Wire { faults, cut: false, bottleneck: Bottleneck::default() }
    }

    /// When a packet that arrives at `now` leaves the bottleneck; `None`: it is lost.
    pub fn pass(&mut self, now: Time, random: &mut Random, bytes: u64) -> Option<Time> {
        let sent = self.faults.rate.map_or(Some(now), |rate| self.bottleneck.pass(now, rate, bytes))?;
        let is_lost = random.chance(self.faults.loss) || self.cut;
        (!is_lost).then_some(sent)
    }

    /// Arrival times of the copies of a packet that left the bottleneck at `sent`.
    pub fn arrivals(&self, sent: Time, random: &mut Random) -> Vec<Time> {
        let late = |random: &mut Random| Time::from_us(random.below(LATE_US));
        let arrival = sent + self.faults.delay;
        let first = if random.chance(self.faults.reorder) { arrival + late(random) } else { arrival };
        let mut copies = vec![first];
        if random.chance(self.faults.duplicate) {
            copies.push(arrival + late(random));
        }
        copies
    }
}

/// The queue at a link's bottleneck: when its packets will have left.
#[derive(Clone, Debug, Default)]
pub struct Bottleneck(VecDeque<Time>);

impl Bottleneck {
    /// When a packet that arrives at `now` will have left, at this rate; `None`: the queue has `most` packets, the one in service included.
    pub fn pass(&mut self, now: Time, (rate, most): (Rate, usize), bytes: u64) -> Option<Time> {
        while self.0.front().is_some_and(|&at| at <= now) {
            self.0.pop_front();
        }
        if self.0.len() >= most {
            return None;
        }
        let free = self.0.back().copied().unwrap_or(Time::ZERO);
        let left = free.max(now) + rate.serialization(bytes);
        self.0.push_back(left);
        Some(left)
    }
}
