//! What was sent and not yet acknowledged: one compact record per segment, in a ring.

use congestion::TcpSock;

/// Bits of [`Record::flags`].
pub(crate) mod mark {
    /// Selectively acknowledged.
    pub const SACKED: u8 = 1;
    /// Inferred lost.
    pub const LOST: u8 = 2;
    /// A retransmission of it is in the network.
    pub const RETRANS: u8 = 4;
    /// It was retransmitted at least once: its RTT is ambiguous.
    pub const EVER_RETRANS: u8 = 8;
    /// Sent while the application limited the flow.
    pub const APP_LIMITED: u8 = 16;
    /// A SYN.
    pub const SYN: u8 = 32;
    /// Carries FIN after its payload.
    pub const FIN: u8 = 64;
    /// Gives no rate sample (any more): a SYN, or sampled when it was SACKed.
    pub const SAMPLED: u8 = 128;
}

/// One segment in the retransmission queue. Times are the low 32 bits of a µs clock: differences are what counts.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))] // half a cache line, never on two
pub(crate) struct Record {
    /// First sequence number.
    pub seq: u32,
    /// When it was last sent, µs.
    pub sent_us: u32,
    /// `first_tx_mstamp` when it was last sent, µs. Once SACKed: how many records, this one included, are known to be
    /// SACKed in a row, so that walks skip them at once.
    pub first_tx_us: u32,
    /// `delivered_mstamp` when it was last sent, µs.
    pub delivered_us: u32,
    /// `delivered` when it was last sent, segments.
    pub delivered: u32,
    /// `delivered_ce` when it was last sent, segments.
    pub delivered_ce: u32,
    /// Payload bytes.
    pub len: u16,
    /// [`mark`].
    pub flags: u8,
}

const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    /// The sequence number after the segment, its SYN or FIN included.
    #[inline]
    pub fn end_seq(&self) -> u32 {
        let control = (self.flags & (mark::SYN | mark::FIN) != 0) as u32;
        self.seq.wrapping_add(self.len as u32 + control)
    }

    /// Is it lost, and not retransmitted yet?
    #[inline]
    pub fn awaits_retransmission(&self) -> bool {
        self.flags & (mark::LOST | mark::RETRANS) == mark::LOST
    }

    /// Does the record bear one of these marks?
    #[inline]
    pub fn is(&self, marks: u8) -> bool {
        self.flags & marks != 0
    }
}

/// Least capacity of a ring that is not empty: an initial window of Linux fits.
const RING_MIN: usize = 16;

/// The records in sequence order; how many there are is the socket's `packets_out`, which the caller passes.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    /// Capacity: a power of two, or 0.
    slots: Box<[Record]>,
    head: u32,
}

impl Ring {
    #[inline]
    fn slot(&self, index: u32) -> usize {
        (self.head.wrapping_add(index)) as usize & (self.slots.len() - 1)
    }

    /// Prefetches the oldest record, and the place of the next after `len`.
    #[inline]
    pub fn prefetch(&self, len: u32) {
        if !self.slots.is_empty() {
            memory::prefetch(&self.slots, self.slot(0));
            memory::prefetch(&self.slots, self.slot(len));
        }
    }

    /// The record `index` places after the oldest.
    #[inline]
    pub fn at(&self, index: u32) -> &Record {
        &self.slots[self.slot(index)]
    }

    /// The same, to change.
    #[inline]
    pub fn at_mut(&mut self, index: u32) -> &mut Record {
        let slot = self.slot(index);
        &mut self.slots[slot]
    }

    /// Appends after `len` records.
    #[inline]
    pub fn push(&mut self, len: u32, record: Record) {
        if len as usize == self.slots.len() {
            self.grow(len);
        }
        *self.at_mut(len) = record;
    }

    /// How many of the `len` records end by `ack`, oldest first, and the marks that any of them bears.
    #[inline]
    pub fn acknowledged(&self, len: u32, ack: u32) -> (u32, u8) {
        let (mut n, mut marks) = (0, 0);
        while n < len {
            let record = self.at(n);
            if crate::seq::after(record.end_seq(), ack) {
                break;
            }
            marks |= record.flags;
            n += 1;
        }
        (n, marks)
    }

    /// Forgets the `n` oldest.
    #[inline]
    pub fn drop_front(&mut self, n: u32) {
        self.head = self.head.wrapping_add(n);
    }

    /// Gives the memory back; only for an empty ring.
    pub fn free(&mut self) {
        self.slots = Box::default();
        self.head = 0;
    }

    #[cold]
    fn grow(&mut self, len: u32) {
        let capacity = (self.slots.len() * 2).max(RING_MIN);
        let mut slots = Vec::with_capacity(capacity);
        slots.extend((0..len).map(|index| *self.at(index)));
        slots.resize(capacity, Record::default());
        self.slots = slots.into_boxed_slice();
        self.head = 0;
    }

    /// Index of the first of `len` records that ends after `seq`; `len` if there is none.
    pub fn find(&self, len: u32, seq: u32) -> u32 {
        if let Some(index) = self.find_among_equals(len, seq) {
            return index;
        }
        let (mut low, mut high) = (0, len);
        while low < high {
            let middle = low + (high - low) / 2;
            if crate::seq::after(self.at(middle).end_seq(), seq) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// The same where all records up to there are as long as the oldest, as they are in a bulk transfer: no search, whose
    /// every step is mispredicted half of the time. None: they are not, or `seq` lies in no record.
    #[inline]
    fn find_among_equals(&self, len: u32, seq: u32) -> Option<u32> {
        let oldest = if len > 0 { self.at(0) } else { return None };
        let index = seq.wrapping_sub(oldest.seq).checked_div(oldest.len as u32).filter(|&index| index < len)?;
        let record = self.at(index);
        (seq.wrapping_sub(record.seq) < record.len as u32).then_some(index)
    }

    /// How many records from `index` on, of `len`, are SACKed in a row; 0 if this one is not. Remembered for the next walk.
    pub fn sacked_run(&mut self, len: u32, index: u32) -> u32 {
        let mut end = index;
        while end < len && self.at(end).is(mark::SACKED) {
            end += self.at(end).first_tx_us.max(1);
        }
        if end > index {
            self.at_mut(index).first_tx_us = end - index;
        }
        end - index
    }
}

/// Marks the record as lost and counts that; nothing for one that arrived. True if it was not yet known to be lost.
pub(crate) fn mark_lost(sock: &mut TcpSock, record: &mut Record) -> bool {
    if record.is(mark::SACKED) {
        return false;
    }
    if record.is(mark::LOST) {
        if !record.is(mark::RETRANS) {
            return false;
        }
        // the retransmission is lost too
        record.flags &= !mark::RETRANS;
        sock.retrans_out -= 1;
    } else {
        record.flags |= mark::LOST;
        sock.lost_out += 1;
    }
    sock.lost = sock.lost.wrapping_add(1);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(n: u32) -> Ring {
        let mut ring = Ring::default();
        for i in 0..n {
            ring.push(i, Record { seq: i.wrapping_mul(100).wrapping_sub(500), len: 100, ..Record::default() });
        }
        ring
    }

    #[test]
    fn finds_across_the_sequence_wrap_and_after_growing() {
        let mut ring = ring(40);
        assert_eq!(ring.find(40, 0u32.wrapping_sub(500)), 0);
        assert_eq!(ring.find(40, 0), 5, "record 5 is [0, 100)");
        assert_eq!(ring.find(40, 99), 5);
        assert_eq!(ring.find(40, 100), 6);
        assert_eq!(ring.find(40, 4000), 40);
        ring.drop_front(10);
        assert_eq!(ring.at(0).seq, 500);
        assert_eq!(ring.find(30, 650), 1);
        assert_eq!(ring.find(30, 400), 0, "what was acknowledged long ago lies before the oldest");
        ring.at_mut(0).len = 50;
        ring.at_mut(1).seq -= 50;
        ring.at_mut(1).len = 150;
        assert_eq!(ring.find(30, 660), 1, "one of another length leads the search astray, not its result");
        assert_eq!(ring.find(30, 700), 2);
    }

    #[test]
    fn a_run_of_sacked_records_is_skipped_and_grows() {
        let mut ring = ring(10);
        for i in [2, 3, 4, 6] {
            *ring.at_mut(i) = Record { flags: mark::SACKED, first_tx_us: 0, ..*ring.at(i) };
        }
        assert_eq!(ring.sacked_run(10, 1), 0);
        assert_eq!(ring.sacked_run(10, 2), 3);
        assert_eq!(ring.at(2).first_tx_us, 3);
        *ring.at_mut(5) = Record { flags: mark::SACKED, first_tx_us: 0, ..*ring.at(5) };
        assert_eq!(ring.sacked_run(10, 2), 5);
    }

    #[test]
    fn a_lost_retransmission_leaves_the_network_again() {
        let mut sock = TcpSock { packets_out: 1, ..TcpSock::default() };
        let mut record = Record::default();
        assert!(mark_lost(&mut sock, &mut record));
        assert!(!mark_lost(&mut sock, &mut record));
        record.flags |= mark::RETRANS;
        sock.retrans_out = 1;
        assert!(mark_lost(&mut sock, &mut record));
        assert_eq!((sock.lost_out, sock.retrans_out, sock.lost), (1, 0, 2));
    }
}
