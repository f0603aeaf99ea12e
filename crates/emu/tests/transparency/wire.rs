//! One direction of a wire, with all that may befall a frame on it.

#[path = "../../../enforcer/tests/support/bottleneck.rs"]
mod bottleneck;

use crate::case::Random;
use bottleneck::Bottleneck;
use packet_io::{Ethernet, Ip, set_ce};
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

pub struct Wire {
    faults: Faults,
    /// Which bits of a byte it flips.
    bits: Bits,
    bottleneck: Bottleneck,
}

impl Wire {
    pub fn new(faults: Faults, bits: Bits) -> Wire {
        Wire { faults, bits, bottleneck: Bottleneck::default() }
    }

    /// When copies of a frame that is sent now arrive.
    pub fn carry(&mut self, now: Time, random: &mut Random, frame: &mut [u8]) -> Vec<Time> {
        let faults = &self.faults;
        let bytes = frame.len() as u64;
        let left = faults.rate.map_or(Some(now), |rate| self.bottleneck.pass(now, rate, bytes));
        let Some(sent) = left else { return Vec::new() };
        if random.chance(faults.loss) {
            return Vec::new();
        }
        if random.chance(faults.mark) {
            set_ce(frame);
        }
        if random.chance(faults.corrupt) {
            flip(random, self.bits, frame);
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

/// Of a byte. Two wires in a row flip different ones, since two flips of bits that a checksum adds up may cancel each other.
#[derive(Clone, Copy)]
pub enum Bits {
    Even,
    Odd,
}

/// Flips a bit that a checksum covers: from IPv4's header on, and from what follows IPv6's.
fn flip(random: &mut Random, bits: Bits, frame: &mut [u8]) {
    let Some(ethernet) = Ethernet::parse(frame) else { return };
    let from = ethernet.headers_bytes() + if matches!(ethernet.ip(), Some(Ip::V6(_))) { 40 } else { 0 };
    let at = from + random.below((frame.len() - from) as u64) as usize;
    frame[at] ^= 1 << (2 * random.below(4) + bits as u64);
}
