//! The event set: lookahead buckets.
//!
//! A packet that a link accepts arrives no sooner than the smallest propagation plus the smallest serialization of the
//! network. Time is cut into buckets of the largest power of two that fits that lookahead, so what happens in a bucket
//! never adds a packet to it: a bucket is drained by sorting it once and walking it, and no heap is needed. Events of
//! the same instant happen in the order in which they were scheduled.
//!
//! A bucket has two lanes, because what they touch is disjoint and each becomes a tight loop: packets that arrive at
//! switches, and whatever concerns hosts. Only hosts can schedule into the bucket that is being drained (a timer that is
//! due within it); such events go to a small heap that the host lane's walk merges.
//!
//! Lanes are lists of fixed chunks from one pool, so memory follows the number of pending events. Events beyond the
//! ring of buckets, mostly retransmission timers, wait in a heap until the ring reaches them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use units::Time;

/// What an event is, in the upper bits of [`Event::tag`]; the lower two are the packet's ECN field.
pub mod kind {
    /// A packet reaches a node.
    pub const PACKET: u8 = 0;
    /// An endpoint's timer.
    pub const TIMER: u8 = 1 << 2;
    /// An endpoint that was held back may send again.
    pub const WAKE: u8 = 2 << 2;
    /// An application acts.
    pub const APP: u8 = 3 << 2;
    /// The bits of the kind.
    pub const MASK: u8 = 0b1111_1100;
}

/// One pending event: 16 bytes, by value, in two words so that it is made and copied in registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Event {
    /// Bits 0–31 [`Event::offset`], 32–63 [`Event::what`].
    first: u64,
    /// Bits 0–31 [`Event::place`], 32–47 [`Event::len`], 48–55 [`Event::tag`], 56–63 [`Event::epoch`].
    second: u64,
}

impl Event {
    /// A packet of `len` bytes on the wire in slot `what`, at `place` on its route.
    #[inline]
    pub fn packet(what: u32, place: u32, len: u16, ecn: u8) -> Event {
        Event { first: u64::from(what) << 32, second: u64::from(place) | u64::from(len) << 32 | u64::from(ecn) << 48 }
    }

    /// Something of `kind` at a host.
    #[inline]
    pub fn host(kind: u8, what: u32, place: u32) -> Event {
        Event { first: u64::from(what) << 32, second: u64::from(place) | u64::from(kind) << 48 }
    }

    /// The packet one place further on its route, under the epoch of the link that takes it there, marked if that link
    /// did so.
    #[inline]
    pub fn onward(self, epoch: u8, marked: bool) -> Event {
        let kept = self.second & (u64::MAX >> 8);
        // CE is both bits of the ECN field
        Event { second: (kept + 1) | (u64::from(epoch) << 56) | (u64::from(marked) * (3 << 48)), ..self }
    }

    /// Picoseconds after the start of its bucket.
    #[inline]
    pub fn offset(self) -> u32 {
        self.first as u32
    }

    #[inline]
    fn at_offset(self, offset: u32) -> Event {
        Event { first: self.first >> 32 << 32 | u64::from(offset), ..self }
    }

    /// The packet's slot; or what the event concerns.
    #[inline]
    pub fn what(self) -> u32 {
        (self.first >> 32) as u32
    }

    /// A packet's place in the table of routes; or the endpoint.
    #[inline]
    pub fn place(self) -> u32 {
        self.second as u32
    }

    /// A packet's bytes on the wire.
    #[inline]
    pub fn len(self) -> u16 {
        (self.second >> 32) as u16
    }

    /// [`kind`] and ECN field.
    #[inline]
    pub fn tag(self) -> u8 {
        (self.second >> 48) as u8
    }

    /// The epoch of the link that the packet is on.
    #[inline]
    pub fn epoch(self) -> u8 {
        (self.second >> 56) as u8
    }
}

/// Which lane of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Packets arriving at switches.
    Switches = 0,
    /// Everything that concerns hosts.
    Hosts = 1,
}

/// Buckets in the ring.
const RING_LOG2: u32 = 14;
const RING: usize = 1 << RING_LOG2;
/// Events in a chunk: 512 bytes.
const CHUNK: usize = 32;
/// Events up to which a lane is sorted by insertion alone.
const FEW: usize = 8;
/// An offset must fit 32 bits.
const WIDTH_LOG2_MAX: u32 = 31;
/// Most bins of the sort.
const BINS_LOG2_MAX: u32 = 16;

const NONE: u32 = u32::MAX;

/// Where a lane's next event goes in the pool; at the start of a chunk, or nowhere yet, a chunk is taken first. All
/// chunks of a lane but the newest are full.
type Cursor = u32;

const EMPTY: Cursor = 0;

/// Pending events by bucket.
pub struct Calendar {
    /// A bucket is `1 << width_log2` picoseconds.
    width_log2: u32,
    /// The bits of a time that are the offset in its bucket.
    offset_mask: u64,
    /// The bucket being drained; all earlier ones are empty. Time begins with bucket 1, so that what is scheduled for
    /// time zero has a bucket ahead of it.
    current: u64,
    ring: Box<[[Cursor; 2]; RING]>,
    /// One bit a bucket of the ring: has events.
    occupied: Box<[u64; RING / 64]>,
    /// Chunks of [`CHUNK`] events.
    pool: Vec<Event>,
    /// For each chunk of the pool the one that was filled before it in its lane.
    before: Vec<u32>,
    free: Vec<u32>,
    /// Events beyond the ring.
    far: BinaryHeap<Waiting>,
    /// Host events that were scheduled into the current bucket while it was drained.
    late: BinaryHeap<Waiting>,
    scheduled: u64,
    /// Scratch of the sort: one counter a bin, and what is to be sorted.
    bins: Vec<u32>,
    unsorted: Vec<Event>,
}

/// An event outside the ring, ordered so that a heap gives the earliest first, and of one instant the first scheduled.
#[derive(Clone, Copy)]
struct Waiting {
    /// Its bucket; in the heap of late events its offset.
    when: u64,
    scheduled: u64,
    lane: Lane,
    event: Event,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        (other.when, other.scheduled).cmp(&(self.when, self.scheduled))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl Calendar {
    /// An empty calendar. `lookahead` is the least time between a packet's acceptance by a link and its arrival;
    /// `horizon` is how far ahead packets are usually scheduled; `density` is how many events a second to expect.
    ///
    /// Buckets of some hundred events are sorted fastest and stay in the first cache, so they are made shorter than the
    /// lookahead where the ring still reaches the horizon.
    pub fn new(lookahead: Time, horizon: Time, density: f64) -> Calendar {
        let mut width_log2 = lookahead.as_ps().max(1).ilog2().min(WIDTH_LOG2_MAX);
        let events = |width_log2: u32| density * Time::from_ps(1 << width_log2).as_secs_f64();
        while events(width_log2) > 1000.0 && horizon.as_ps() >> (width_log2 - 1) < RING as u64 {
            width_log2 -= 1;
        }
        Calendar {
            width_log2,
            offset_mask: (1 << width_log2) - 1,
            current: 0,
            ring: vec![[EMPTY; 2]; RING].try_into().unwrap_or_else(|_| unreachable!("it has that length")),
            occupied: Box::new([0; RING / 64]),
            pool: Vec::new(),
            before: Vec::new(),
            free: Vec::new(),
            far: BinaryHeap::new(),
            late: BinaryHeap::new(),
            scheduled: 0,
            bins: vec![0; 1 << BINS_LOG2_MAX],
            unsorted: Vec::new(),
        }
    }

    /// Start of the current bucket.
    pub fn bucket_start(&self) -> Time {
        Time::from_ps((self.current - 1) << self.width_log2)
    }

    /// End of the current bucket.
    pub fn bucket_end(&self) -> Time {
        Time::from_ps(self.current << self.width_log2)
    }

    /// Schedules `event` at `at`, which sets its offset. For the lane of switches, `at` is after the current bucket.
    #[inline]
    pub fn push(&mut self, lane: Lane, at: Time, event: Event) {
        let bucket = (at.as_ps() >> self.width_log2) + 1;
        let event = event.at_offset((at.as_ps() & self.offset_mask) as u32);
        if bucket.wrapping_sub(self.current + 1) < RING as u64 - 1 {
            self.push_ring(lane, bucket, event);
        } else {
            self.push_aside(lane, bucket, event.first, event.second);
        }
    }

    #[inline]
    fn push_ring(&mut self, lane: Lane, bucket: u64, event: Event) {
        let slot = bucket as usize % RING;
        let cursor = &mut self.ring[slot][lane as usize];
        if (*cursor as usize).is_multiple_of(CHUNK) {
            *cursor = Self::take_chunk(&mut self.pool, &mut self.before, &mut self.free, *cursor);
            self.occupied[slot / 64] |= 1 << (slot % 64);
        }
        let entry = &mut self.pool[*cursor as usize];
        entry.first = event.first;
        entry.second = event.second;
        *cursor += 1;
    }

    /// Start of an unused chunk, to follow the one that ends at `end`.
    #[inline(never)]
    fn take_chunk(pool: &mut Vec<Event>, before: &mut Vec<u32>, free: &mut Vec<u32>, end: Cursor) -> Cursor {
        let chunk = free.pop().unwrap_or_else(|| {
            pool.resize(pool.len() + CHUNK, Event::default());
            before.push(NONE);
            (before.len() - 1) as u32
        });
        before[chunk as usize] = if end == EMPTY { NONE } else { chunk_of(end) };
        chunk * CHUNK as u32
    }

    /// Schedules into the current bucket, or beyond the ring.
    #[cold]
    #[inline(never)]
    fn push_aside(&mut self, lane: Lane, bucket: u64, first: u64, second: u64) {
        // taken apart, because an event that is passed in memory would live there on the quick path too
        let event = Event { first, second };
        self.scheduled += 1;
        if bucket <= self.current {
            assert!(lane == Lane::Hosts, "no packet arrives within the lookahead");
            // what is overdue happens now, that is after what has been scheduled for the same instant
            let offset = if bucket < self.current { 0 } else { event.offset() };
            let event = event.at_offset(offset);
            self.late.push(Waiting { when: u64::from(offset), scheduled: self.scheduled, lane, event });
        } else {
            self.far.push(Waiting { when: bucket, scheduled: self.scheduled, lane, event });
        }
    }

    /// Moves to the first bucket with events that starts before `end`; false if there is none.
    pub fn advance(&mut self, end: Time) -> bool {
        debug_assert!(self.late.is_empty(), "a bucket is drained before the next is looked for");
        let last = (end.as_ps().saturating_sub(1) >> self.width_log2) + 1;
        let mut next = self.next_occupied();
        if let Some(first) = self.far.peek() {
            next = next.min(first.when);
        }
        self.current = next.min(last).max(self.current);
        // what the ring now reaches goes there before anything is scheduled there directly: order is kept
        while let Some(&Waiting { when: bucket, lane, event, .. }) = self.far.peek() {
            if bucket >= self.current + RING as u64 {
                break;
            }
            self.far.pop();
            self.push_ring(lane, bucket, event);
        }
        next <= last
    }

    /// The first bucket after the current one that the ring has events for; `u64::MAX` if none.
    fn next_occupied(&self) -> u64 {
        let words = self.occupied.len();
        let from = self.current + 1;
        let start = from as usize % RING;
        for i in 0..=words {
            let word = (start / 64 + i) % words;
            let mut bits = self.occupied[word];
            if i == 0 {
                bits &= u64::MAX << (start % 64);
            } else if i == words {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                return from + (slot.wrapping_sub(start) % RING) as u64;
            }
        }
        u64::MAX
    }

    /// Moves the current bucket's events of `lane` to `out`, sorted by time and, within an instant, by scheduling.
    #[inline]
    pub fn drain(&mut self, lane: Lane, out: &mut Vec<Event>) {
        let slot = self.current as usize % RING;
        let cursor = std::mem::replace(&mut self.ring[slot][lane as usize], EMPTY);
        out.clear();
        if cursor == EMPTY {
            return;
        }
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        let newest = chunk_of(cursor);
        let start = newest as usize * CHUNK;
        if self.before[newest as usize] == NONE {
            self.free.push(newest);
            sort_into(&self.pool[start..cursor as usize], out, &mut self.bins, self.width_log2);
        } else {
            self.gather(cursor);
            sort_into(&self.unsorted, out, &mut self.bins, self.width_log2);
        }
    }

    /// Copies a lane of several chunks to `unsorted`, in the order of scheduling.
    fn gather(&mut self, cursor: Cursor) {
        let mut chunk = chunk_of(cursor);
        let first = self.free.len();
        while chunk != NONE {
            self.free.push(chunk);
            chunk = self.before[chunk as usize];
        }
        self.unsorted.clear();
        for &chunk in self.free[first + 1..].iter().rev() {
            let start = chunk as usize * CHUNK;
            self.unsorted.extend_from_slice(&self.pool[start..start + CHUNK]);
        }
        let newest = self.free[first] as usize * CHUNK;
        self.unsorted.extend_from_slice(&self.pool[newest..cursor as usize]);
    }

    /// The first late event of the current bucket if it is before `offset`.
    #[inline]
    pub fn pop_late_before(&mut self, offset: u32) -> Option<Event> {
        if self.late.is_empty() { None } else { self.pop_late(offset) }
    }

    #[cold]
    fn pop_late(&mut self, before: u32) -> Option<Event> {
        if self.late.peek()?.when >= u64::from(before) {
            return None;
        }
        self.late.pop().map(|waiting| waiting.event)
    }

    /// Are there late events of the current bucket?
    pub fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Every pending event, in no particular order.
    pub fn for_each_pending(&self, mut f: impl FnMut(&Event)) {
        for &cursor in self.ring.iter().flatten().filter(|cursor| **cursor != EMPTY) {
            let (mut chunk, mut end) = (chunk_of(cursor), cursor as usize);
            while chunk != NONE {
                self.pool[chunk as usize * CHUNK..end].iter().for_each(&mut f);
                chunk = self.before[chunk as usize];
                end = (chunk as usize).wrapping_add(1).wrapping_mul(CHUNK);
            }
        }
        self.far.iter().chain(&self.late).for_each(|waiting| f(&waiting.event));
    }
}

/// The chunk that holds the event before `cursor`.
#[inline]
fn chunk_of(cursor: Cursor) -> u32 {
    (cursor - 1) / CHUNK as u32
}

/// A stable counting sort by the upper bits of the offset, then what insertion is left.
fn sort_into(unsorted: &[Event], out: &mut Vec<Event>, bins: &mut [u32], width_log2: u32) {
    let len = unsorted.len();
    if len <= FEW {
        out.extend_from_slice(unsorted);
        return insertion_sort(out);
    }
    // one to two bins an event: most hold one or none
    let bin_log2 = (len.ilog2() + 1).min(width_log2).min(BINS_LOG2_MAX);
    let shift = width_log2 - bin_log2;
    let bins = &mut bins[..1 << bin_log2];
    let mask = bins.len() - 1;
    bins.fill(0);
    for event in unsorted {
        bins[(event.offset() >> shift) as usize & mask] += 1;
    }
    let mut start = 0;
    for bin in &mut *bins {
        start += std::mem::replace(bin, start);
    }
    out.resize(len, Event::default());
    for event in unsorted {
        let bin = &mut bins[(event.offset() >> shift) as usize & mask];
        let entry = &mut out[*bin as usize];
        entry.first = event.first;
        entry.second = event.second;
        *bin += 1;
    }
    insertion_sort(out);
}

/// Stable insertion sort by offset, of what is nearly sorted.
#[inline]
fn insertion_sort(events: &mut [Event]) {
    for i in 1..events.len() {
        if events[i - 1].offset() <= events[i].offset() {
            continue;
        }
        let event = events[i];
        let mut j = i;
        while j > 0 && events[j - 1].offset() > event.offset() {
            events[j] = events[j - 1];
            j -= 1;
        }
        events[j] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(what: u32) -> Event {
        Event::host(kind::APP, what, 0)
    }

    /// Drains everything before `end`, giving (time in ps, what).
    fn drain_all(calendar: &mut Calendar, end: Time) -> Vec<(u64, u32)> {
        let (mut all, mut lane) = (Vec::new(), Vec::new());
        while calendar.advance(end) {
            let start = calendar.bucket_start().as_ps();
            calendar.drain(Lane::Hosts, &mut lane);
            all.extend(lane.iter().map(|e| (start + u64::from(e.offset()), e.what())));
        }
        all
    }

    proptest! {
        #[test]
        fn events_come_in_order_of_time_then_of_scheduling(
            times in proptest::collection::vec(2_000_000u64..40_000_000_000, 1..2000), crowd in 1u64..1000,
        ) {
            let mut calendar = Calendar::new(Time::from_us(1), Time::from_us(100), 1e6);
            // a crowd makes instants coincide
            let times: Vec<u64> = times.into_iter().map(|t| t / (crowd * 1000) * (crowd * 1000) + 1_000_000).collect();
            for (i, &t) in times.iter().enumerate() {
                calendar.push(Lane::Hosts, Time::from_ps(t), event(i as u32));
            }
            let mut expected: Vec<(u64, u32)> = times.iter().enumerate().map(|(i, &t)| (t, i as u32)).collect();
            expected.sort_unstable();
            prop_assert_eq!(drain_all(&mut calendar, Time::from_secs(1)), expected);
        }
    }

    #[test]
    fn far_events_keep_their_order_when_the_ring_reaches_them() {
        let mut calendar = Calendar::new(Time::from_us(1), Time::from_us(100), 1e6);
        let far = Time::from_secs(1);
        calendar.push(Lane::Hosts, far, event(1));
        calendar.push(Lane::Hosts, far - Time::from_us(100), event(0));
        let mut lane = Vec::new();
        assert!(calendar.advance(Time::from_secs(2)));
        calendar.drain(Lane::Hosts, &mut lane);
        assert_eq!(lane[0].what(), 0);
        calendar.push(Lane::Hosts, far, event(2));
        assert_eq!(drain_all(&mut calendar, Time::from_secs(2)), [(far.as_ps(), 1), (far.as_ps(), 2)]);
    }

    #[test]
    fn nothing_at_or_after_the_end_happens() {
        let mut calendar = Calendar::new(Time::from_us(1), Time::from_us(100), 1e6);
        calendar.push(Lane::Hosts, Time::from_ms(5), event(0));
        assert!(!calendar.advance(Time::from_ms(4)));
        assert!(!calendar.advance(Time::from_ps(calendar.bucket_start().as_ps())));
        assert!(calendar.advance(Time::from_ms(6)));
    }
}
