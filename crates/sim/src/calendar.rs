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
        Event { second: (kept + 1) | u64::from(epoch) << 56 | u64::from(marked) * (3 << 48), ..self }
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
/// Events up to which a lane is sorted by insertion,
const FEW: usize = 8;
/// and up to which by comparing all with all.
const SMALL: usize = 48;
/// An offset and a place among [`SMALL`] must fit 31 bits, so that one signed comparison orders both.
const WIDTH_LOG2_MAX: u32 = 25;

const NONE: u32 = u32::MAX;

#[derive(Clone)]
#[repr(align(64))]
struct Chunk([Event; CHUNK]);

/// The chunks of a lane, newest first.
#[derive(Clone, Copy)]
struct List {
    newest: u32,
    len: u32,
}

const EMPTY: List = List { newest: NONE, len: 0 };

/// Pending events by bucket.
pub struct Calendar {
    /// A bucket is `1 << width_log2` picoseconds.
    width_log2: u32,
    /// The bits of a time that are the offset in its bucket.
    offset_mask: u64,
    /// The bucket being drained; all earlier ones are empty. Time begins with bucket 1, so that what is scheduled for
    /// time zero has a bucket ahead of it.
    current: u64,
    ring: Box<[[List; 2]; RING]>,
    /// One bit a bucket of the ring: has events.
    occupied: Box<[u64; RING / 64]>,
    pool: Vec<Chunk>,
    /// For each chunk of the pool the one that was filled before it in its lane.
    before: Vec<u32>,
    free: Vec<u32>,
    /// Events beyond the ring.
    far: BinaryHeap<Waiting>,
    /// Host events that were scheduled into the current bucket while it was drained.
    late: BinaryHeap<Waiting>,
    scheduled: u64,
    bins: Vec<u32>,
    chunk_order: Vec<u32>,
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
    /// Buckets of a dozen events are sorted fastest, so they are made shorter than the lookahead where the ring still
    /// reaches the horizon.
    pub fn new(lookahead: Time, horizon: Time, density: f64) -> Calendar {
        let mut width_log2 = lookahead.as_ps().max(1).ilog2().min(WIDTH_LOG2_MAX);
        let events = |width_log2: u32| density * Time::from_ps(1 << width_log2).as_secs_f64();
        while events(width_log2) > 16.0 && horizon.as_ps() >> (width_log2 - 1) < RING as u64 {
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
            bins: Vec::new(),
            chunk_order: Vec::new(),
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
            self.push_aside(lane, bucket, event);
        }
    }

    #[inline(always)]
    fn push_ring(&mut self, lane: Lane, bucket: u64, event: Event) {
        let slot = bucket as usize % RING;
        let list = &mut self.ring[slot][lane as usize];
        let at = list.len as usize % CHUNK;
        list.len += 1;
        if at == 0 {
            list.newest = Self::take_chunk(&mut self.pool, &mut self.before, &mut self.free, list.newest);
            self.occupied[slot / 64] |= 1 << (slot % 64);
        }
        self.pool[list.newest as usize].0[at] = event;
    }

    /// An unused chunk, to follow `before`.
    #[inline(never)]
    fn take_chunk(pool: &mut Vec<Chunk>, links: &mut Vec<u32>, free: &mut Vec<u32>, before: u32) -> u32 {
        let chunk = free.pop().unwrap_or_else(|| {
            pool.push(Chunk([Event::default(); CHUNK]));
            links.push(NONE);
            (pool.len() - 1) as u32
        });
        links[chunk as usize] = before;
        chunk
    }

    /// Schedules into the current bucket, or beyond the ring.
    #[cold]
    #[inline(never)]
    fn push_aside(&mut self, lane: Lane, bucket: u64, event: Event) {
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
        let list = std::mem::replace(&mut self.ring[slot][lane as usize], EMPTY);
        out.clear();
        if list.len == 0 {
            return;
        }
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        let len = list.len as usize;
        if len <= CHUNK {
            self.free.push(list.newest);
            sort_small(&self.pool[list.newest as usize].0[..len], out);
            return;
        }
        self.chunk_order.clear();
        let mut chunk = list.newest;
        while chunk != NONE {
            self.chunk_order.push(chunk);
            chunk = self.before[chunk as usize];
        }
        self.free.extend_from_slice(&self.chunk_order);
        self.chunk_order.reverse();
        if len <= SMALL {
            let mut both = [Event::default(); 2 * CHUNK];
            for (part, &chunk) in both.chunks_exact_mut(CHUNK).zip(&self.chunk_order) {
                part.copy_from_slice(&self.pool[chunk as usize].0);
            }
            sort_small(&both[..len], out);
        } else {
            self.sort_large(len, out);
        }
    }

    /// A stable counting sort by the upper bits of the offset, then what insertion is left.
    fn sort_large(&mut self, len: usize, out: &mut Vec<Event>) {
        // about one event a bin
        let bin_log2 = len.ilog2().min(self.width_log2);
        let shift = self.width_log2 - bin_log2;
        let Calendar { bins, pool, chunk_order, .. } = self;
        bins.clear();
        bins.resize(1 << bin_log2, 0);
        for_each_event(pool, chunk_order, len, |event| bins[(event.offset() >> shift) as usize] += 1);
        let mut start = 0;
        for bin in &mut *bins {
            start += std::mem::replace(bin, start);
        }
        out.resize(len, Event::default());
        for_each_event(pool, chunk_order, len, |event| {
            let bin = &mut bins[(event.offset() >> shift) as usize];
            out[*bin as usize] = *event;
            *bin += 1;
        });
        insertion_sort(out);
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
        for list in self.ring.iter().flatten() {
            let mut chunk = list.newest;
            let mut len = list.len as usize;
            while chunk != NONE {
                let here = (len - 1) % CHUNK + 1;
                self.pool[chunk as usize].0[..here].iter().for_each(&mut f);
                len -= here;
                chunk = self.before[chunk as usize];
            }
        }
        self.far.iter().chain(&self.late).for_each(|waiting| f(&waiting.event));
    }
}

#[inline]
fn for_each_event(pool: &[Chunk], order: &[u32], len: usize, mut f: impl FnMut(&Event)) {
    let (last, full) = order.split_last().expect("a long lane has chunks");
    for &chunk in full {
        pool[chunk as usize].0.iter().for_each(&mut f);
    }
    let rest = len - full.len() * CHUNK;
    pool[*last as usize].0[..rest].iter().for_each(&mut f);
}

/// Sorts up to [`SMALL`] events by offset, stably: each goes to the place that is the number of those before it. All are
/// compared with all, which has no branch to mispredict and compiles to vector instructions.
#[inline]
fn sort_small(events: &[Event], out: &mut Vec<Event>) {
    if events.len() <= FEW {
        out.extend_from_slice(events);
        insertion_sort(out);
        return;
    }
    // keys beyond the events are larger than any
    let mut keys = [i32::MAX; SMALL.next_multiple_of(4)];
    for (i, (key, event)) in keys.iter_mut().zip(events).enumerate() {
        *key = (event.offset() as i32) << 6 | i as i32;
    }
    out.resize(events.len(), Event::default());
    let compared = &keys[..events.len().next_multiple_of(4)];
    for (key, event) in keys.iter().zip(events) {
        let place: i32 = compared.iter().map(|other| i32::from(other < key)).sum();
        out[place as usize] = *event;
    }
}

/// Stable insertion sort by offset, of what is nearly sorted.
#[inline]
fn insertion_sort(events: &mut [Event]) {
    for i in 1..events.len() {
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
            expected.sort();
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
