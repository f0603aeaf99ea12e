//! The open bucket, laid out in slots of time so finely that one seldom holds more than one event.

use super::Event;

/// Slots, and numbers that a [`Bits`] can hold.
pub const SLOTS: usize = 64 * 64;

/// Events by slot. They can be added while they are taken.
pub struct Slots {
    /// A slot is `1 << width_log2` picoseconds.
    width_log2: u32,
    /// In the order of their coming; forgotten when all have been taken.
    events: Vec<Event>,
    /// For each event the one after it in its slot; after the last, the first.
    after: Vec<u32>,
    /// For each slot that holds any, the last.
    last: Box<[u32; SLOTS]>,
    /// Which slots hold any.
    held: Bits,
}

impl Slots {
    /// Empty slots for offsets below `1 << bucket_log2`.
    pub fn new(bucket_log2: u32) -> Slots {
        Slots {
            width_log2: bucket_log2.saturating_sub(SLOTS.ilog2()),
            events: Vec::new(),
            after: Vec::new(),
            last: Box::new([0; SLOTS]),
            held: Bits::default(),
        }
    }

    /// Are there none?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Puts `event` behind those that are not later.
    #[inline]
    pub fn insert(&mut self, event: Event) {
        let slot = (event.offset() >> self.width_log2) as usize % SLOTS;
        let index = self.events.len() as u32;
        self.events.push(event);
        if self.held.insert(slot) {
            self.after.push(index);
            self.last[slot] = index;
        } else {
            self.insert_among(slot, index);
        }
    }

    #[inline(never)]
    fn insert_among(&mut self, slot: usize, index: u32) {
        let offset = |index: u32| self.events[index as usize].offset();
        let mut ahead = self.last[slot];
        if offset(ahead) <= offset(index) {
            self.last[slot] = index;
        } else {
            while offset(self.after[ahead as usize]) <= offset(index) {
                ahead = self.after[ahead as usize];
            }
        }
        self.after.push(self.after[ahead as usize]);
        self.after[ahead as usize] = index;
    }

    /// Takes the next event if its offset is below `until`.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "once a packet-hop, and the call would be half of the work")]
    pub fn pop(&mut self, until: u32) -> Option<Event> {
        let slot = self.held.first()?;
        let last = self.last[slot];
        let first = self.after[last as usize];
        let event = self.events[first as usize];
        if event.offset() >= until {
            return None;
        }
        if first == last {
            self.held.remove_first();
        } else {
            self.after[last as usize] = self.after[first as usize];
        }
        Some(event)
    }

    /// Forgets what has been taken; all must have been.
    pub fn clear(&mut self) {
        debug_assert!(self.is_empty(), "a bucket is walked before the next is opened");
        self.events.clear();
        self.after.clear();
    }

    /// Calls `f` for every event that has not been taken.
    pub fn for_each(&self, mut f: impl FnMut(&Event)) {
        for slot in (0..SLOTS).filter(|slot| self.held.contains(*slot)) {
            let last = self.last[slot];
            let mut index = last;
            loop {
                index = self.after[index as usize];
                f(&self.events[index as usize]);
                if index == last {
                    break;
                }
            }
        }
    }
}

/// A set of numbers below [`SLOTS`] that finds its least without a loop.
pub struct Bits {
    /// Bit `w`: word `w` is not zero.
    summary: u64,
    words: [u64; 64],
}

impl Default for Bits {
    fn default() -> Bits {
        Bits { summary: 0, words: [0; 64] }
    }
}

impl Bits {
    /// True if `n` was not in.
    #[inline]
    pub fn insert(&mut self, n: usize) -> bool {
        let (word, bit) = (n / 64 % 64, 1 << (n % 64));
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.summary |= 1 << word;
        new
    }

    #[inline]
    pub fn remove(&mut self, n: usize) {
        let word = n / 64 % 64;
        self.words[word] &= !(1 << (n % 64));
        self.summary &= !(u64::from(self.words[word] == 0) << word);
    }

    /// Removes the least; there is one.
    #[inline]
    pub fn remove_first(&mut self) {
        let word = self.summary.trailing_zeros() as usize % 64;
        let rest = self.words[word] & self.words[word].wrapping_sub(1);
        self.words[word] = rest;
        self.summary ^= u64::from(rest == 0) << word;
    }

    pub fn contains(&self, n: usize) -> bool {
        self.words[n / 64 % 64] >> (n % 64) & 1 != 0
    }

    pub fn is_empty(&self) -> bool {
        self.summary == 0
    }

    /// The least.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        if self.summary == 0 {
            return None;
        }
        let word = self.summary.trailing_zeros() as usize % 64;
        Some(word * 64 + self.words[word].trailing_zeros() as usize % 64)
    }

    /// The least from `n` on; if there is none, the least of all.
    pub fn first_from(&self, n: usize) -> Option<usize> {
        let word = n / 64 % 64;
        let rest = self.words[word] & u64::MAX << (n % 64);
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros() as usize);
        }
        let later = self.summary & (u64::MAX << word << 1);
        if later == 0 {
            return self.first();
        }
        let word = later.trailing_zeros() as usize;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}
