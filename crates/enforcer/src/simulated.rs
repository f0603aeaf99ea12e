//! A packet of the simulator: addresses and a segment whose payload is counted, not carried.

use crate::packet::{End, Header, Packet};
use tcp::{Ecn, SackBlock, Segment, flags};

/// A simulated packet.
#[derive(Clone, Copy, Debug)]
pub struct Simulated {
    /// The sender.
    pub source: End,
    /// The receiver.
    pub destination: End,
    /// The differentiated services code point.
    pub dscp: u8,
    /// A bit of it was flipped on the way: its checksum is wrong.
    pub corrupt: bool,
    /// The segment, whose window has the scale applied.
    pub segment: Segment,
}

impl Packet for Simulated {
    fn header(&self) -> Option<Header> {
        let Simulated { source, destination, dscp, segment, .. } = *self;
        (!self.corrupt).then_some(Header { source, destination, vlan: 0, dscp, untouchable: false, segment })
    }

    fn window(&self, _scale: u8) -> u32 {
        self.segment.window
    }

    fn set_window(&mut self, written: u16, scale: u8) {
        self.segment.window = u32::from(written) << scale;
    }

    fn set_seq(&mut self, seq: u32) {
        self.segment.seq = seq;
    }

    fn set_ack(&mut self, ack: u32) {
        self.segment.ack = ack;
    }

    fn set_timestamps(&mut self, tsval: u32, tsecr: u32) {
        self.segment.tsval = tsval;
        self.segment.tsecr = tsecr;
    }

    fn set_flags(&mut self, flags: u8) {
        self.segment.flags = flags;
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.segment.ecn = ecn;
    }

    fn each(&self) -> u32 {
        self.segment.len.into()
    }

    fn link(&self) -> [u8; 12] {
        [0; 12]
    }

    fn set_link(&mut self, _link: [u8; 12]) {}

    fn strip_sack(&mut self) {
        self.segment.sack_count = 0;
    }

    fn set_sack(&mut self, block: SackBlock) -> bool {
        if self.segment.len > 0 {
            return false;
        }
        self.segment.sack[0] = block;
        self.segment.sack_count = 1;
        true
    }

    fn part(&self, from: u32, len: u32) -> Simulated {
        let mut part = *self;
        let segment = &mut part.segment;
        segment.seq = segment.seq.wrapping_add(from);
        let payload = u32::from(self.segment.len);
        segment.len = (from + len).min(payload).saturating_sub(from) as u16;
        if from + len < self.segment.seq_len() {
            segment.flags &= !(flags::FIN | flags::PSH);
        }
        part
    }

    fn bare(&self) -> Simulated {
        let mut bare = *self;
        bare.segment.len = 0;
        bare.segment.flags = flags::ACK;
        bare.segment.ecn = Ecn::NotEct;
        bare
    }

    fn bytes(&self) -> usize {
        size_of::<Simulated>() + usize::from(self.segment.len)
    }
}
