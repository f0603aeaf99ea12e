//! The faults of a link.

use packet_io::{Ethernet, Ip, set_ce};
use testkit::{Random, Wire};
use units::Time;

/// When copies of a frame that is sent now arrive; `bits`: which bits of a byte the link flips.
pub fn carry(wire: &mut Wire, now: Time, random: &mut Random, bits: Bits, frame: &mut [u8]) -> Vec<Time> {
    let Some(sent) = wire.pass(now, random, frame.len() as u64) else { return Vec::new() };
    if random.chance(wire.faults.mark) {
        set_ce(frame);
    }
    if random.chance(wire.faults.corrupt) {
        flip(random, bits, frame);
    }
    wire.arrivals(sent, random)
}

/// Bit masks. Two links in a row flip different bits, since two flips of bits that a checksum adds up may cancel each other.
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
