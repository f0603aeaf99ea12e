//! The segments of a network in parts, which run on several threads.
//!
//! A packet's segment is written where it is sent, and read where it arrives, mostly in another part and on another core. In between, its
//! event alone goes from part to part. To copy the segment too, into an outbox and out of it, took a tenth of the whole time; to copy it out
//! of here, instead of lending it, still a twentieth. Both are what safe Rust has, so this file is the one of the simulator that has `unsafe`.
//!
//! A slot is one part's at a time: of the part to which it was handed out; of the part that has the packet's event; and, once it is free,
//! again of that part, until it takes it back to here. It passes from part to part behind a lock ([`crate::parts`], or the one in this
//! file), so what one has written the next one reads. Builds with assertions keep each slot's owner, and check it at every access.

use memory::{prefetch, reserve_in_large_pages};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tcp::Segment;
use units::Time;

/// Slots of a block: 16 MB, in large pages.
const BLOCK: usize = 1 << 18;
/// Blocks for every number that a slot can have.
const BLOCKS: usize = 1 << (32 - BLOCK.ilog2());
/// The owner of a slot that no part has.
const NOBODY: u32 = u32::MAX;

/// Slots for the packets of all parts.
pub struct Pool {
    blocks: Box<[OnceLock<Block>; BLOCKS]>,
    /// This slot and all after it were never used.
    next: AtomicU32,
    /// Free slots that no part has.
    free: Mutex<Vec<u32>>,
    measure_delay: bool,
}

/// Some slots.
struct Block {
    segments: Box<[UnsafeCell<Segment>; BLOCK]>,
    /// When each packet was sent, if delays are measured.
    sent: Box<[AtomicU64]>,
    /// The part that has each slot, in builds with assertions.
    owners: Box<[AtomicU32]>,
}

// SAFETY: of what it has, segments alone are not `Sync`. A reference to one is made only by `Pool::segment`, whose caller has the slot.
#[allow(unsafe_code, reason = "see the head of this file")]
unsafe impl Sync for Block {}

impl Block {
    #[cold]
    fn new(measure_delay: bool) -> Block {
        let mut segments = Vec::new();
        reserve_in_large_pages(&mut segments, BLOCK);
        segments.resize_with(BLOCK, UnsafeCell::default);
        let slots = |asked: bool| 0..if asked { BLOCK } else { 0 };
        Block {
            segments: all(segments),
            sent: slots(measure_delay).map(|_| AtomicU64::new(0)).collect(),
            owners: slots(cfg!(debug_assertions)).map(|_| AtomicU32::new(NOBODY)).collect(),
        }
    }
}

/// As an array, whose places need no bounds checks.
#[expect(clippy::unnecessary_box_returns, reason = "megabytes are nothing for a stack")]
fn all<T, const N: usize>(list: Vec<T>) -> Box<[T; N]> {
    list.into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("the list has this length"))
}

impl Pool {
    /// An empty one, which remembers, if asked, when each packet was sent.
    pub fn new(measure_delay: bool) -> Pool {
        let blocks = all((0..BLOCKS).map(|_| OnceLock::new()).collect());
        Pool { blocks, next: AtomicU32::new(0), free: Mutex::new(Vec::new()), measure_delay }
    }

    /// Whether it remembers when each packet was sent.
    pub fn measures_delay(&self) -> bool {
        self.measure_delay
    }

    fn free(&self) -> MutexGuard<'_, Vec<u32>> {
        // a thread that panics ends the run
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds `n` free slots to `to`, which are the part `owner`'s from now on.
    pub fn hand_out(&self, owner: u32, to: &mut Vec<u32>, n: u32) {
        let mut free = self.free();
        while (free.len() as u32) < n {
            let first = self.next.fetch_add(n, Relaxed);
            for slot in [first, first + n - 1] {
                self.blocks[slot as usize / BLOCK].get_or_init(|| Block::new(self.measure_delay));
            }
            free.extend((first..first + n).rev());
        }
        let rest = free.len() - n as usize;
        free[rest..].iter().for_each(|slot| self.change_owner(*slot, NOBODY, owner));
        to.extend(free.drain(rest..));
    }

    /// Takes free slots of the part `owner`.
    pub fn take_back(&self, owner: u32, slots: impl Iterator<Item = u32>) {
        self.free().extend(slots.inspect(|slot| self.change_owner(*slot, owner, NOBODY)));
    }

    /// The slot was the part `from`'s, and is `to`'s from now on.
    #[inline]
    pub fn change_owner(&self, slot: u32, from: u32, to: u32) {
        if cfg!(debug_assertions) {
            let (block, at) = self.find(slot);
            assert_eq!(block.owners[at].swap(to, Relaxed), from, "the owner of slot {slot}, which goes to {to}");
        }
    }

    /// The slot's block, and its place there.
    #[inline]
    fn find(&self, slot: u32) -> (&Block, usize) {
        let slot = slot as usize;
        let block = self.blocks[slot / BLOCK].get().expect("a slot that was handed out has a block");
        (block, slot % BLOCK)
    }

    /// Prefetches the segment in `slot`.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        let (block, at) = self.find(slot);
        prefetch(&block.segments[..], at);
    }

    /// The segment in `slot`, for the part `owner`.
    ///
    /// # Safety
    /// That part has the slot, and there is no other reference to the segment.
    #[inline]
    #[allow(unsafe_code, clippy::mut_from_ref, reason = "see the head of this file")]
    pub unsafe fn segment(&self, slot: u32, owner: u32) -> &mut Segment {
        self.change_owner(slot, owner, owner);
        let (block, at) = self.find(slot);
        // SAFETY: so the caller has promised.
        unsafe { &mut *block.segments[at].get() }
    }

    /// When the packet in `slot` was sent; only if delays are measured.
    pub fn sent(&self, slot: u32) -> Time {
        let (block, at) = self.find(slot);
        Time::from_ps(block.sent[at].load(Relaxed))
    }

    /// The packet in `slot` is sent at `now`; only if delays are measured.
    pub fn set_sent(&self, slot: u32, now: Time) {
        let (block, at) = self.find(slot);
        block.sent[at].store(now.as_ps(), Relaxed);
    }
}
