//! The packets under way: their segments in slots that are used again, the last freed first.

use tcp::Segment;
use units::Time;

/// A pool of segments. An event carries a slot's number, not the segment: a switch never looks at one.
#[derive(Default)]
pub struct Packets {
    segments: Vec<Segment>,
    /// When each packet was sent; empty unless delays are measured.
    sent: Vec<Time>,
    free: Vec<u32>,
    measure_delay: bool,
}

impl Packets {
    /// An empty pool that remembers, if asked, when each packet was sent.
    pub fn new(measure_delay: bool) -> Packets {
        Packets { measure_delay, ..Packets::default() }
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
            self.sent[slot as usize] = now;
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.free.push(self.segments.len() as u32);
        memory::reserve_in_large_pages(&mut self.segments, 1);
        self.segments.push(Segment::default());
        if self.measure_delay {
            self.sent.push(Time::ZERO);
        }
    }

    /// When the packet in `slot` was sent, if delays are measured.
    pub fn sent(&self, slot: u32) -> Time {
        self.sent.get(slot as usize).copied().unwrap_or_default()
    }

    /// `slot` is free again.
    #[inline]
    pub fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Prefetches the segment in `slot`, some packets ahead of [`Packets::segment`].
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        memory::prefetch(&self.segments, slot as usize);
    }

    /// The segment in `slot`.
    #[inline]
    pub fn segment(&mut self, slot: u32) -> &mut Segment {
        &mut self.segments[slot as usize]
    }

    /// How long the packet in `slot` has been under way; `None` unless delays are measured.
    #[inline]
    pub fn delay(&self, slot: u32, now: Time) -> Option<Time> {
        if self.measure_delay { Some(now - self.sent[slot as usize]) } else { None }
    }
}
