//! The event set: a calendar of buckets.
//!
//! Time is cut into buckets of some hundred events. What is scheduled goes to the end of its bucket, unsorted; when a
//! bucket's time comes, it is opened. How depends on the network. A packet that a link accepts arrives no sooner than the
//! smallest propagation plus the smallest serialization of the network, its lookahead.
//!
//! Where enough happens within the lookahead, buckets are no longer than that. Then no packet is added to an open bucket:
//! it is sorted once and walked, in two lanes, because what they touch is disjoint and each becomes a tight loop: packets
//! that arrive at switches, and whatever concerns hosts. Only hosts add to an open bucket (a timer that is due within it).
//!
//! Elsewhere buckets are longer, and laid out in slots of time ([`Slots`]) where events can be added.
//!
//! Events of the same instant and lane happen in the order in which they were scheduled. Buckets are lists of fixed
//! chunks from one pool, so memory follows the number of pending events. Events beyond the ring of buckets, mostly
//! retransmission timers, wait in a heap until the ring reaches them.

mod event;
mod slots;
mod sort;

pub use event::{Event, kind};
use slots::{Bits, SLOTS, Slots};
use sort::Sorter;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use units::Time;

/// Buckets in the ring.
const RING: usize = SLOTS;
/// Events in a chunk: 512 bytes.
const CHUNK: usize = 32;
/// Events that a bucket is to hold at most: they stay in the first cache.
const BUCKET_EVENTS: f64 = 1000.0;
/// From so many events on, a bucket is worth sorting.
const SORTED_EVENTS: f64 = 16.0;
/// An offset must fit 32 bits.
const WIDTH_LOG2_MAX: u32 = 31;

const NONE: u32 = u32::MAX;

/// Where a lane's next event goes in the pool; at the start of a chunk, or nowhere yet, a chunk is taken first. All
/// chunks of a lane but the newest are full.
type Cursor = u32;

const EMPTY: Cursor = 0;

/// Pending events by time.
pub struct Calendar {
    /// A bucket is `1 << width_log2` picoseconds.
    width_log2: u32,
    /// The bits of a time that are the offset in its bucket.
    offset_mask: u32,
    /// The open bucket; all earlier ones are empty.
    open: u64,
    /// By bucket, then by [`Event::lane`].
    ring: Box<[[Cursor; 2]; RING]>,
    /// Which buckets of the ring have chunks.
    used: Bits,
    pool: Pool,
    /// Events beyond the ring.
    far: BinaryHeap<Waiting>,
    scheduled: u64,
    /// Is an open bucket sorted?
    sorts: bool,
    /// Scratch of the sort.
    sorter: Sorter,
    /// What was added to an open bucket; all of it, if it is not sorted.
    slots: Slots,
    /// Scratch: a lane of several chunks.
    gathered: Vec<Event>,
}

/// Chunks of [`CHUNK`] events.
#[derive(Default)]
struct Pool {
    events: Vec<Event>,
    /// For each chunk the one that was filled before it in its lane.
    before: Vec<u32>,
    free: Vec<u32>,
}

impl Pool {
    /// Start of an unused chunk, to follow the one that ends at `end`.
    #[inline(never)]
    fn take_chunk(&mut self, end: Cursor) -> Cursor {
        let chunk = self.free.pop().unwrap_or_else(|| {
            memory::reserve_in_large_pages(&mut self.events, CHUNK);
            self.events.resize(self.events.len() + CHUNK, Event::default());
            self.before.push(NONE);
            (self.before.len() - 1) as u32
        });
        self.before[chunk as usize] = if end == EMPTY { NONE } else { chunk_of(end) };
        chunk * CHUNK as u32
    }
}

/// An event beyond the ring, ordered so that a heap gives the earliest bucket first, and of one bucket the first scheduled.
#[derive(Clone, Copy)]
struct Waiting {
    bucket: u64,
    scheduled: u64,
    event: Event,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        (other.bucket, other.scheduled).cmp(&(self.bucket, self.scheduled))
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
    pub fn new(lookahead: Time, horizon: Time, density: f64) -> Calendar {
        let events = |width_log2: u32| density * Time::from_ps(1 << width_log2).as_secs_f64();
        let lookahead_log2 = lookahead.as_ps().max(1).ilog2().min(WIDTH_LOG2_MAX);
        let sorts = events(lookahead_log2) >= SORTED_EVENTS;
        let mut width_log2 = if sorts { lookahead_log2 } else { WIDTH_LOG2_MAX };
        let ring_reaches = |width_log2: u32| horizon.as_ps() >> width_log2 < RING as u64;
        while width_log2 > 1 && events(width_log2) > BUCKET_EVENTS && ring_reaches(width_log2 - 1) {
            width_log2 -= 1;
        }
        Calendar {
            width_log2,
            offset_mask: (1 << width_log2) - 1,
            open: 0,
            ring: vec![[EMPTY; 2]; RING].try_into().unwrap_or_else(|_| unreachable!("it has that length")),
            used: Bits::default(),
            pool: Pool::default(),
            far: BinaryHeap::new(),
            scheduled: 0,
            sorts,
            sorter: Sorter::default(),
            slots: Slots::new(width_log2),
            gathered: Vec::new(),
        }
    }

    /// Is an open bucket sorted? Then [`Calendar::drain`] gives its events, and [`Calendar::pop`] what is added.
    #[inline]
    pub fn sorts(&self) -> bool {
        self.sorts
    }

    /// Start of the open bucket.
    #[inline]
    pub fn start(&self) -> Time {
        Time::from_ps(self.open << self.width_log2)
    }

    /// Its end.
    #[inline]
    pub fn end(&self) -> Time {
        Time::from_ps((self.open + 1) << self.width_log2)
    }

    /// How long a bucket is.
    pub fn width(&self) -> Time {
        Time::from_ps(1 << self.width_log2)
    }

    /// Before this time nothing is pending; `now` is in the open bucket, or at its end.
    pub fn next_from(&self, now: Time) -> Time {
        if !self.slots.is_empty() {
            return now;
        }
        let next = self.used.first_from((self.open + 1) as usize % RING);
        let next =
            next.map_or(u64::MAX, |slot| self.open + 1 + (slot as u64).wrapping_sub(self.open + 1) % RING as u64);
        let next = self.far.peek().map_or(next, |first| next.min(first.bucket));
        if next == u64::MAX { Time::NEVER } else { Time::from_ps(next << self.width_log2) }
    }

    /// Schedules what concerns a host, but packets, at `at`, which must not be before the event that happens now.
    #[inline]
    pub fn push(&mut self, at: Time, event: Event) {
        self.push_packet(at, event, true);
    }

    /// Schedules a packet's arrival at `at`: at its host if `last`.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "once a packet-hop, and the call would be half of the work")]
    pub fn push_packet(&mut self, at: Time, event: Event, last: bool) {
        let bucket = at.as_ps() >> self.width_log2;
        let event = event.at_offset(at.as_ps() as u32 & self.offset_mask);
        if bucket.wrapping_sub(self.open + 1) < RING as u64 - 1 {
            self.append(bucket, event, usize::from(last));
        } else {
            self.push_aside(bucket, event.first, event.second);
        }
    }

    /// Puts `event` at the end of `lane` of `bucket`.
    #[inline]
    fn append(&mut self, bucket: u64, event: Event, lane: usize) {
        let slot = bucket as usize % RING;
        let cursor = &mut self.ring[slot][lane];
        if (*cursor as usize).is_multiple_of(CHUNK) {
            *cursor = self.pool.take_chunk(*cursor);
            self.used.insert(slot);
        }
        let entry = &mut self.pool.events[*cursor as usize];
        entry.first = event.first;
        entry.second = event.second;
        *cursor += 1;
    }

    /// Schedules into the open bucket, or beyond the ring.
    #[inline(never)]
    fn push_aside(&mut self, bucket: u64, first: u64, second: u64) {
        // taken apart, because an event that is passed in memory would live there on the quick path too
        let event = Event { first, second };
        if bucket == self.open {
            return self.slots.insert(event);
        }
        assert!(bucket > self.open, "an event is scheduled in the past");
        self.scheduled += 1;
        self.far.push(Waiting { bucket, scheduled: self.scheduled, event });
    }

    /// Takes the next event of the open bucket if its offset is below `until`; if buckets are sorted, only of what was
    /// added.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "once a packet-hop, and the call would be half of the work")]
    pub fn pop(&mut self, until: u32) -> Option<Event> {
        self.slots.pop(until)
    }

    /// Opens the first bucket with events that starts before `end`; false if there is none. Nothing may be left in the open
    /// one.
    pub fn advance(&mut self, end: Time) -> bool {
        self.slots.clear();
        let last = end.as_ps().saturating_sub(1) >> self.width_log2;
        let next = match self.used.first_from((self.open + 1) as usize % RING) {
            Some(slot) => self.open + 1 + (slot as u64).wrapping_sub(self.open + 1) % RING as u64,
            None => u64::MAX,
        };
        let next = self.far.peek().map_or(next, |first| next.min(first.bucket));
        self.open = next.min(last).max(self.open);
        // what the ring now reaches goes there before anything is scheduled there directly: order is kept
        while let Some(&Waiting { bucket, event, .. }) = self.far.peek() {
            if bucket >= self.open + RING as u64 {
                break;
            }
            self.far.pop();
            self.append(bucket, event, event.lane());
        }
        if next > last {
            return false;
        }
        if !self.sorts {
            self.lay_out();
        }
        true
    }

    /// Moves what the open bucket holds to the slots.
    fn lay_out(&mut self) {
        let slot = self.open as usize % RING;
        self.used.remove(slot);
        for cursor in std::mem::replace(&mut self.ring[slot], [EMPTY; 2]) {
            if cursor == EMPTY {
                continue;
            }
            let single = self.give_back(cursor);
            let events =
                if let Some(start) = single { &self.pool.events[start..cursor as usize] } else { &self.gathered[..] };
            for event in events {
                self.slots.insert(*event);
            }
        }
    }

    /// Moves what the open bucket holds to the beginnings of `lanes`, sorted; how many events each gets. What a lane holds
    /// behind them means nothing.
    pub fn drain(&mut self, [switches, hosts]: [&mut Vec<Event>; 2]) -> [usize; 2] {
        let slot = self.open as usize % RING;
        self.used.remove(slot);
        let cursors = std::mem::replace(&mut self.ring[slot], [EMPTY; 2]);
        [self.drain_lane(cursors[0], switches), self.drain_lane(cursors[1], hosts)]
    }

    fn drain_lane(&mut self, cursor: Cursor, lane: &mut Vec<Event>) -> usize {
        if cursor == EMPTY {
            return 0;
        }
        let single = self.give_back(cursor);
        let events =
            if let Some(start) = single { &self.pool.events[start..cursor as usize] } else { &self.gathered[..] };
        self.sorter.sort_into(events, lane, self.width_log2);
        events.len()
    }

    /// Frees the chunks of the lane that ends at `cursor`. Its events stay where they are if that is one chunk, whose start
    /// is returned; else they are copied to `gathered`, in the order of scheduling.
    fn give_back(&mut self, cursor: Cursor) -> Option<usize> {
        let newest = chunk_of(cursor);
        let start = newest as usize * CHUNK;
        if self.pool.before[newest as usize] == NONE {
            self.pool.free.push(newest);
            return Some(start);
        }
        let first = self.pool.free.len();
        let mut chunk = newest;
        while chunk != NONE {
            self.pool.free.push(chunk);
            chunk = self.pool.before[chunk as usize];
        }
        self.gathered.clear();
        for &chunk in self.pool.free[first + 1..].iter().rev() {
            let start = chunk as usize * CHUNK;
            self.gathered.extend_from_slice(&self.pool.events[start..start + CHUNK]);
        }
        self.gathered.extend_from_slice(&self.pool.events[start..cursor as usize]);
        None
    }

    /// Calls `f` for every pending event but those that [`Calendar::drain`] has moved, in no particular order.
    pub fn for_each_pending(&self, mut f: impl FnMut(&Event)) {
        for &cursor in self.ring.iter().flatten().filter(|cursor| **cursor != EMPTY) {
            let (mut chunk, mut end) = (chunk_of(cursor), cursor as usize);
            while chunk != NONE {
                self.pool.events[chunk as usize * CHUNK..end].iter().for_each(&mut f);
                chunk = self.pool.before[chunk as usize];
                end = (chunk as usize).wrapping_add(1).wrapping_mul(CHUNK);
            }
        }
        self.slots.for_each(&mut f);
        self.far.iter().for_each(|waiting| f(&waiting.event));
    }
}

/// The chunk that holds the event before `cursor`.
#[inline]
fn chunk_of(cursor: Cursor) -> u32 {
    (cursor - 1) / CHUNK as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(what: u32) -> Event {
        Event::host(kind::APP, what, 0)
    }

    /// A calendar, and the open bucket's events if it sorts them, the next one last.
    struct Walk {
        calendar: Calendar,
        drained: Vec<Event>,
    }

    impl Walk {
        fn new(density: f64) -> Walk {
            Walk { calendar: Calendar::new(Time::from_us(1), Time::from_us(100), density), drained: Vec::new() }
        }

        fn push(&mut self, at: Time, what: u32) {
            self.calendar.push(at, event(what));
        }

        /// The next event before `end`: (time, what).
        fn next(&mut self, end: Time) -> Option<(Time, u32)> {
            loop {
                let start = self.calendar.start();
                let until = end.saturating_sub(start).as_ps().min(u64::from(u32::MAX)) as u32;
                let drained = self.drained.last().map(|event| event.offset()).filter(|offset| *offset < until);
                let event =
                    self.calendar.pop(drained.unwrap_or(until)).or_else(|| drained.and_then(|_| self.drained.pop()));
                if let Some(event) = event {
                    return Some((event.time(start), event.what()));
                }
                if end < self.calendar.end() || !self.calendar.advance(end) {
                    return None;
                }
                if self.calendar.sorts() {
                    let [_, drained] = self.calendar.drain([&mut Vec::new(), &mut self.drained]);
                    self.drained.truncate(drained);
                    self.drained.reverse();
                }
            }
        }
    }

    /// Densities at which buckets are sorted, and at which they are not.
    fn densities() -> impl Strategy<Value = f64> {
        prop_oneof![1e3..1e6, 1e8..1e10]
    }

    #[test]
    fn the_densities_of_the_tests_cover_both_ways() {
        assert!(!Walk::new(1e6).calendar.sorts());
        assert!(Walk::new(1e8).calendar.sorts());
    }

    proptest! {
        #[test]
        fn events_come_in_order_of_time_then_of_scheduling(
            times in proptest::collection::vec(0u64..40_000_000_000, 1..2000), crowd in 1u64..1000, density in densities(),
        ) {
            let mut walk = Walk::new(density);
            // a crowd makes instants coincide; the first bucket is open already
            let times: Vec<u64> = times.into_iter().map(|t| t / (crowd * 1000) * (crowd * 1000)).collect();
            for (i, &t) in times.iter().enumerate() {
                walk.push(Time::from_ps(t), i as u32);
            }
            let mut expected: Vec<(Time, u32)> =
                times.iter().enumerate().map(|(i, &t)| (Time::from_ps(t), i as u32)).collect();
            expected.sort_unstable();
            let all: Vec<_> = std::iter::from_fn(|| walk.next(Time::from_secs(1))).collect();
            prop_assert_eq!(all, expected);
        }

        #[test]
        fn what_is_scheduled_meanwhile_finds_its_place(
            delays in proptest::collection::vec(0u64..3_000_000, 1..2000), density in densities(),
        ) {
            let mut walk = Walk::new(density);
            walk.push(Time::ZERO, 0);
            let (mut last, mut happened, mut scheduled) = (Time::ZERO, 0, 1);
            let mut delays = delays.into_iter();
            while let Some((now, _)) = walk.next(Time::from_secs(1)) {
                prop_assert!(now >= last);
                (last, happened) = (now, happened + 1);
                for delay in delays.by_ref().take(2) {
                    walk.push(now + Time::from_ps(delay), scheduled);
                    scheduled += 1;
                }
            }
            prop_assert_eq!(happened, scheduled);
        }
    }

    #[test]
    fn far_events_keep_their_order_when_the_ring_reaches_them() {
        for density in [1e6, 1e9] {
            let mut walk = Walk::new(density);
            let (far, end) = (Time::from_secs(20), Time::from_secs(30));
            walk.push(far, 1);
            walk.push(far - Time::from_us(100), 0);
            assert_eq!(walk.next(end), Some((far - Time::from_us(100), 0)));
            walk.push(far, 2);
            assert_eq!(walk.next(end), Some((far, 1)));
            assert_eq!(walk.next(end), Some((far, 2)));
        }
    }

    #[test]
    fn nothing_at_or_after_the_end_happens() {
        for density in [1e6, 1e9] {
            let mut walk = Walk::new(density);
            walk.push(Time::from_ms(5), 0);
            assert_eq!(walk.next(Time::from_ms(4)), None);
            assert_eq!(walk.next(Time::from_ms(5)), None);
            assert_eq!(walk.next(Time::from_ms(5) + Time::from_ps(1)), Some((Time::from_ms(5), 0)));
        }
    }

    #[test]
    fn pending_events_are_those_that_have_not_happened() {
        for density in [1e6, 1e9] {
            let mut walk = Walk::new(density);
            for (i, us) in [1, 1, 2, 50, 90_000_000].into_iter().enumerate() {
                walk.push(Time::from_us(us), i as u32);
            }
            assert_eq!(walk.next(Time::from_us(10)).map(|(_, what)| what), Some(0));
            let mut pending: Vec<u32> = walk.drained.iter().map(|event| event.what()).collect();
            walk.calendar.for_each_pending(|event| pending.push(event.what()));
            pending.sort_unstable();
            assert_eq!(pending, [1, 2, 3, 4]);
        }
    }
}
