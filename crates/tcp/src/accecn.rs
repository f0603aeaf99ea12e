//! AccECN (RFC 9768): the receiver counts what arrives with CE, and each of its segments carries the count modulo 8 in the
//! three flags AE, CWR and ECE. The byte counters of its option are not sent.

use crate::ack::{Ack, found};
use crate::endpoint::Endpoint;
use crate::segment::{Ecn, Segment};
use congestion::sock::{ack_pending, ecn};

/// Marks a [`Segment::ace`] that is in use.
const USED: u8 = 8;
/// Of a SYN: AccECN is asked for.
pub(crate) const REQUEST: u8 = USED | 0b111;
/// Both counts begin here, so that a path which clears the flags is not taken for a count (3.2.2.1).
const FIRST: u8 = 5;
const COUNT: u8 = 7;
/// The most segments of an ACK whose count is not ambiguous.
const UNAMBIGUOUS: u32 = 7;
/// An ACK leaves after so many new marks (3.2.2.5.1).
const MARKS_PER_ACK: u8 = 2;

/// [`congestion::TcpSock::cc_accecn_rx`], above the count: the last segment carried CE,
const LAST_CE: u8 = 1 << 3;
/// the next segment answers a SYN-ACK: it carries what the SYN-ACK arrived with (3.1.2),
const ANSWERS: u8 = 1 << 4;
/// and segments with CE since the last segment that left.
const SINCE_SHIFT: u8 = 5;
/// [`congestion::TcpSock::cc_accecn_tx`], above the count: how the handshake's segment arrived.
const ARRIVED_SHIFT: u8 = 3;

/// What the flags of a handshake say of the ECN field that the segment answered arrived with (3.1.1, table 3).
fn code(arrived: Ecn) -> u8 {
    match arrived {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// Marks reported by `ace` after `seen`, by an ACK of `newly` segments: of all numbers that are possible the largest, unless
/// few segments were acknowledged (A.2.1).
pub(crate) fn marks(ace: u8, seen: u8, newly: u32) -> u32 {
    let least = u32::from(ace.wrapping_sub(seen) & COUNT);
    if newly <= UNAMBIGUOUS || newly < least { least } else { newly - (newly - least) % 8 }
}

impl Endpoint {
    /// AccECN was negotiated by a segment that arrived so.
    pub(crate) fn begin_accurate(&mut self, arrived: Ecn, answers: bool) {
        self.sock.ecn_flags = ecn::OK | ecn::ACCURATE;
        self.sock.cc_accecn_rx = FIRST | if answers { ANSWERS } else { 0 };
        self.sock.cc_accecn_tx = FIRST | code(arrived) << ARRIVED_SHIFT;
    }

    /// The flags of a SYN-ACK: CWR and ECE, and all three.
    pub(crate) fn accurate_answer(&self) -> (u8, u8) {
        let code = self.sock.cc_accecn_tx >> ARRIVED_SHIFT & COUNT;
        ((code & 0b011) << 6, USED | code)
    }

    /// The client's answer to the SYN-ACK: what that arrived with.
    pub(crate) fn accurate_answered(&mut self, segment: &Segment) {
        if segment.ace == USED | code(Ecn::Ce) {
            self.sock.cc_accecn_tx = (self.sock.cc_accecn_tx & !COUNT) | (FIRST + 1);
        }
    }

    /// A segment leaves.
    #[cold]
    pub(crate) fn fill_accurate(&mut self, out: &mut Segment) {
        let sock = &mut self.sock;
        let count =
            if sock.cc_accecn_rx & ANSWERS == 0 { sock.cc_accecn_rx } else { sock.cc_accecn_tx >> ARRIVED_SHIFT };
        out.ace = USED | (count & COUNT);
        sock.cc_accecn_rx &= COUNT | LAST_CE;
        if out.ecn == Ecn::Ect0 && self.ops().sends_ect1() {
            out.ecn = Ecn::Ect1;
        }
    }

    /// A segment has arrived. The second new mark, and one after a segment without, is reported at once.
    pub(crate) fn count_ce(&mut self, segment: &Segment) {
        let rx = self.sock.cc_accecn_rx;
        if segment.ecn != Ecn::Ce {
            self.sock.cc_accecn_rx = rx & !LAST_CE;
            return;
        }
        self.rare_mut().stats.ce_received += 1;
        let since = ((rx >> SINCE_SHIFT) + 1).min(COUNT);
        self.sock.cc_accecn_rx = (rx + 1) & COUNT | LAST_CE | rx & ANSWERS | since << SINCE_SHIFT;
        if segment.len > 0 && (rx & LAST_CE == 0 || since >= MARKS_PER_ACK) {
            self.sock.icsk_ack_pending |= ack_pending::NOW;
        }
    }

    /// An ACK that acknowledges `newly` segments, or moves the left edge; older ones may report an older count.
    pub(crate) fn accurate_ack(&mut self, ack: &mut Ack, segment: &Segment, newly: u32) {
        if segment.ace == 0 || (newly == 0 && ack.found & found::UNA_ADVANCED == 0) {
            return;
        }
        let tx = self.sock.cc_accecn_tx;
        let marked = marks(segment.ace, tx, newly);
        self.sock.cc_accecn_tx = (tx & !COUNT) | (segment.ace & COUNT);
        self.sock.delivered_ce = self.sock.delivered_ce.wrapping_add(marked);
        if marked > 0 {
            ack.found |= found::ECE;
            self.rare_mut().stats.ece_acks += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::marks;

    #[test]
    fn the_count_wraps_and_is_ambiguous_beyond_seven_segments() {
        assert_eq!(marks(5, 5, 2), 0);
        assert_eq!(marks(7, 5, 2), 2);
        assert_eq!(marks(1, 6, 4), 3, "6, 7, 0, 1");
        // ten segments and a count of one more: one mark or nine
        assert_eq!(marks(6, 5, 10), 9);
        assert_eq!(marks(5, 5, 10), 8);
        assert_eq!(marks(5, 5, 7), 0);
        // more marks than segments: ACKs of the peer were marked too
        assert_eq!(marks(3, 5, 2), 6);
        // the upper bits of `seen` and of a used field do not count
        assert_eq!(marks(8 | 6, 0b110_101, 1), 1);
    }
}
