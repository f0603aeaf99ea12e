//! What happens to packets on their way.

use crate::random::Random;
use std::collections::VecDeque;
use units::{Rate, Time};

/// How much later than its turn a packet may come that is reordered or duplicated, µs.
const LATE_US: u64 = 5_000;

/// What a wire does to packets: probabilities where nothing else is said.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// From one end to the other.
    pub delay: Time,
    /// Bottleneck and its queue in packets, the one in service included.
    pub rate: Option<(Rate, usize)>,
    /// It is gone.
    pub loss: f64,
    /// It comes later than its turn.
    pub reorder: f64,
    /// It comes a second time.
    pub duplicate: f64,
    /// A bit of it is flipped.
    pub corrupt: f64,
    /// It is marked with CE.
    pub mark: f64,
}

impl Faults {
    /// None, but for the time that it takes.
    pub fn clean(delay: Time) -> Faults {
        Faults { delay, ..Faults::default() }
    }
}

/// One direction of a wire. What corrupting and marking mean is its owner's, who knows what a packet is.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// What it does.
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

    /// When a packet that comes at `now` leaves its bottleneck; `None`: it is lost.
    pub fn pass(&mut self, now: Time, random: &mut Random, bytes: u64) -> Option<Time> {
        let sent = self.faults.rate.map_or(Some(now), |rate| self.bottleneck.pass(now, rate, bytes))?;
        let is_lost = random.chance(self.faults.loss) || self.cut;
        (!is_lost).then_some(sent)
    }

    /// When copies of a packet arrive that left the bottleneck at `sent`.
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

/// The queue at the slowest place of a wire: when the packets that are in it will have left.
#[derive(Clone, Debug, Default)]
pub struct Bottleneck(VecDeque<Time>);

impl Bottleneck {
    /// When a packet that comes at `now` has left, at this rate; `None`: `most` are there already, the one in service included.
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
