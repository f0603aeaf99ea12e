//! Hosts with ECN slowed without an enforced window: their data is marked as if a queue had formed.
//!
//! What a host makes of marks is its own affair (RFC 3168: what it makes of losses), so all that is chosen is the share of
//! packets that are marked. Nothing is buffered or delayed, and nothing is known of a flow: the ECN field says whether its
//! ends agreed on ECN.

use crate::packet::{Header, Packet};
use tcp::Ecn;

/// Which packets are marked: each with the same probability, independently of the others.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// How many were decided on.
    decided: u64,
}

impl Marks {
    /// Marks a packet with the probability `share`, if it may be marked. True: it was.
    pub fn put_on<P: Packet>(&mut self, seed: u64, share: f64, header: &Header, packet: &mut P) -> bool {
        if !matches!(header.segment.ecn, Ecn::Ect0 | Ecn::Ect1) || header.segment.len == 0 {
            return false;
        }
        self.decided += 1;
        let is_marked = (uniform(seed ^ self.decided) as f64) < share * 2_f64.powi(64);
        if is_marked {
            packet.set_ecn(Ecn::Ce);
        }
        is_marked
    }
}

/// 64 bits of which each number gives others: the finalizer of SplitMix64 (Steele et al., OOPSLA 2014).
fn uniform(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
