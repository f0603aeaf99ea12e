//! The packets under way: their segments in slots that are used again, the last freed first.

mod pool;

use memory::reserve_in_large_pages;
pub use pool::Pool;
use pool::Share;
use std::sync::Arc;
use tcp::Segment;
use units::Time;

/// Free slots that a part keeps at most; and how many go to the other parts, and come from them, at once.
const FREE_MAX: usize = 1024;
const BATCH: usize = 256;

/// A pool of segments. An event carries a slot's number, not the segment: a switch never looks at one.
pub struct Packets {
    kept: Kept,
    free: Vec<u32>,
    free_max: usize,
    measure_delay: bool,
}

/// Where the segments are.
enum Kept {
    /// Of a whole network; and when each packet was sent, if delays are measured.
    Here(Vec<Segment>, Vec<Time>),
    /// Of a part: with those of all parts, so that a packet that crosses stays where it is.
    Shared(Share),
}

impl Packets {
    /// An empty pool of a whole network, which remembers, if asked, when each packet was sent.
    pub fn new(measure_delay: bool) -> Packets {
        let kept = Kept::Here(Vec::new(), Vec::new());
        Packets { kept, free: Vec::new(), free_max: usize::MAX, measure_delay }
    }

    /// The packets of a part of a network, which has this number.
    pub fn of_part(pool: Arc<Pool>, number: u32) -> Packets {
        let share = Share::new(pool, number);
        let measure_delay = share.measures_delay();
        Packets { kept: Kept::Shared(share), free: Vec::new(), free_max: FREE_MAX, measure_delay }
    }

    /// A free slot; it stays free until it is [taken](Packets::take).
    #[inline]
    pub fn free_slot(&mut self) -> u32 {
        if self.free.is_empty() {
            self.grow();
        }
        self.free[self.free.len() - 1]
    }

    /// Takes the slot that [`Packets::free_slot`] named, for a packet that is sent at `now`.
    #[inline]
    pub fn take(&mut self, slot: u32, now: Time) {
        self.free.pop();
        if self.measure_delay {
            match &mut self.kept {
                Kept::Here(_, sent) => sent[slot as usize] = now,
                Kept::Shared(share) => share.set_sent(slot, now),
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        match &mut self.kept {
            Kept::Here(segments, sent) => {
                self.free.push(segments.len() as u32);
                reserve_in_large_pages(segments, 1);
                segments.push(Segment::default());
                if self.measure_delay {
                    sent.push(Time::ZERO);
                }
            }
            Kept::Shared(share) => share.hand_out(&mut self.free, BATCH as u32),
        }
    }

    /// `slot` is free again.
    #[inline]
    pub fn give_back(&mut self, slot: u32) {
        if let Kept::Shared(share) = &self.kept {
            share.check(slot);
        }
        self.free.push(slot);
        if self.free.len() >= self.free_max {
            self.share();
        }
    }

    /// Lets other parts have the slots that have been free for longest: more packets may come from there than go there.
    #[cold]
    #[inline(never)]
    fn share(&mut self) {
        if let Kept::Shared(share) = &self.kept {
            share.take_back(self.free.drain(..BATCH));
        }
    }

    /// The packet in `slot` goes to the part of this number.
    #[inline]
    pub fn pass(&mut self, slot: u32, to: u32) {
        if let Kept::Shared(share) = &mut self.kept {
            share.pass(slot, to);
        }
    }

    /// Prefetches the segment in `slot`, some packets ahead of [`Packets::segment`].
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        match &self.kept {
            Kept::Here(segments, _) => memory::prefetch(segments, slot as usize),
            Kept::Shared(share) => share.prefetch(slot),
        }
    }

    /// The segment in `slot`: of a packet under way here, or to be written before the slot is taken.
    #[inline]
    pub fn segment(&mut self, slot: u32) -> &mut Segment {
        match &mut self.kept {
            Kept::Here(segments, _) => &mut segments[slot as usize],
            Kept::Shared(share) => share.segment(slot),
        }
    }

    /// When the packet in `slot` was sent, if delays are measured.
    #[inline]
    pub fn sent(&self, slot: u32) -> Option<Time> {
        self.measure_delay.then(|| match &self.kept {
            Kept::Here(_, sent) => sent[slot as usize],
            Kept::Shared(share) => share.sent(slot),
        })
    }

    /// Whether it remembers when each packet was sent.
    pub fn measures_delay(&self) -> bool {
        self.measure_delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two parts.
    fn parts() -> [Packets; 2] {
        let pool = Arc::new(Pool::new(true));
        [0, 1].map(|number| Packets::of_part(pool.clone(), number))
    }

    /// A packet from one part to the other; its slot.
    fn send([from, to]: [&mut Packets; 2], receiver: u32, seq: u32) -> u32 {
        let slot = from.free_slot();
        *from.segment(slot) = Segment { seq, ..Segment::default() };
        from.take(slot, Time::from_us(u64::from(seq)));
        from.pass(slot, receiver);
        assert_eq!((to.segment(slot).seq, to.sent(slot)), (seq, Some(Time::from_us(u64::from(seq)))));
        slot
    }

    #[test]
    fn slots_go_back_to_the_part_that_sends() {
        let [mut a, mut b] = parts();
        let mut most = 0;
        // as many as a block has, and all one way
        for seq in 0..1 << 18 {
            let slot = send([&mut a, &mut b], 1, seq);
            b.give_back(slot);
            most = most.max(slot);
        }
        assert!((most as usize) < 2 * FREE_MAX, "slot {most}, though one packet at a time was under way");
    }

    #[test]
    fn packets_under_way_keep_their_segments_in_many_blocks() {
        let [mut a, mut b] = parts();
        let sent: Vec<(u32, u32)> = (0..300_000).map(|seq| (seq, send([&mut a, &mut b], 1, seq))).collect();
        for (seq, slot) in sent {
            assert_eq!(b.segment(slot).seq, seq);
            b.give_back(slot);
        }
    }

    #[test]
    #[cfg_attr(not(debug_assertions), ignore = "it is checked in builds with assertions")]
    #[should_panic(expected = "the owner of slot")]
    fn a_part_cannot_read_a_packet_that_has_left() {
        let [mut a, mut b] = parts();
        let slot = send([&mut a, &mut b], 1, 1);
        a.segment(slot);
    }

    #[test]
    #[cfg_attr(not(debug_assertions), ignore = "it is checked in builds with assertions")]
    #[should_panic(expected = "the owner of slot")]
    fn a_packet_that_was_not_passed_cannot_be_read_elsewhere() {
        let [mut a, mut b] = parts();
        let slot = a.free_slot();
        a.take(slot, Time::ZERO);
        b.segment(slot);
    }
}
