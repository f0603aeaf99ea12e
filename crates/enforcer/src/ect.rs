//! ECN for servers that know none: their data leaves as ECN-capable where marks are echoed.

use crate::counters::Counters;
use crate::echo::Echoing;
use crate::enforcer::Enforcer;
use crate::flow::{Flow, bit};
use crate::packet::{Direction, Packet};
use congestion::sock::TCP_CA_RECOVERY;
use tcp::{Ecn, Leave, Relay, Segment, flags};

/// The ECN field with which data of a flow with these `bits` leaves; `None`: the server's own.
pub(crate) fn ecn_of(bits: u16, relay: &Relay, leave: Leave) -> Option<Ecn> {
    if !leave.fresh && !relay.config().algorithm.needs_ecn() {
        // RFC 3168 6.1.5
        return Some(Ecn::NotEct);
    }
    (bits & bit::SETS_ECT != 0).then_some(Ecn::Ect0)
}

impl<P: Packet> Enforcer<P> {
    /// ECN was agreed on in a server's place, and a client with DCTCP takes that for both directions: marks on what it sends are echoed to it.
    pub fn speak(&mut self, direction: Direction, slot: u32, segment: &Segment, packet: &mut P) {
        let is_marked = direction == Direction::In && segment.ecn == Ecn::Ce;
        if self.uploads.is_empty() && !is_marked {
            return;
        }
        let agreed = self.flows[slot as usize].as_ref().is_some_and(|flow| flow.has(bit::SETS_ECT));
        if is_marked && agreed {
            self.uploads.entry(slot).or_insert_with(|| Echoing::of_data_from(segment.seq));
        }
        let Some(marks) = self.uploads.get_mut(&slot) else { return };
        match direction {
            Direction::In => marks.take(&mut self.counters, segment, packet),
            // data is dressed anew when it leaves
            Direction::Out if segment.len > 0 => {}
            Direction::Out => _ = marks.echo(&mut self.counters, segment, packet),
        }
    }
}

impl<P> Flow<P> {
    /// The client has acknowledged something.
    pub fn note_ece(&mut self, segment: &Segment) {
        if segment.flags & flags::ECE != 0 {
            self.bits |= bit::MARKED;
        }
        if self.relay.sock().icsk_ca_state < TCP_CA_RECOVERY {
            self.bits &= !bit::LOSING;
        }
    }

    /// A loss is being repaired. If no mark came before, either whoever echoed marks is gone, or no queue marks: then
    /// data is sent as its server sends it, or queues would spare it while other flows react.
    pub fn note_loss(&mut self, counters: &mut Counters) {
        let is_probe = self.relay.sock().icsk_ca_state < TCP_CA_RECOVERY;
        if is_probe || self.bits & (bit::SETS_ECT | bit::LOSING) != bit::SETS_ECT {
            return;
        }
        self.bits |= bit::LOSING;
        if self.bits & bit::MARKED == 0 {
            self.bits &= !bit::SETS_ECT;
            counters.ecn_stopped += 1;
        }
        self.bits &= !bit::MARKED;
    }
}
