//! The segments of a network in parts, which run on several threads.
//!
//! A packet's segment is written where it is sent, and read where it arrives, mostly in another part and on another core. In between, its
//! event alone goes from part to part. To copy the segment too, into an outbox and out of it, cost two threads up to 12 % of their speed; to
//! copy it out of here, instead of lending it, still 4 %. That is what safe Rust allows, so this file has the only `unsafe` of the simulator.
//!
//! A slot is one part's at a time: of the part to which it was handed out; of the part that has the packet's event; and, once it is free,
//! again of that part, until it takes it back to here. It passes from part to part behind a lock ([`crate::parts`], or the one in this
//! file), so what one has written the next one reads. Builds with assertions keep each slot's owner, and check it at every access.

use memory::{prefetch, reserve_in_large_pages};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    nobodys: Mutex<Nobodys>,
    measure_delay: bool,
}

/// Slots that no part has.
#[derive(Default)]
struct Nobodys {
    /// Those that were used.
    free: Vec<u32>,
    /// This one and all after it were never used.
    next: u32,
}

/// The pool for one part: what it may do with the slots that it has.
pub struct Share {
    pool: Arc<Pool>,
    /// The part's number.
    owner: u32,
}

/// Some slots.
struct Block {
    segments: Box<[UnsafeCell<Segment>; BLOCK]>,
    /// When each packet was sent, if delays are measured.
    sent: Box<[AtomicU64]>,
    /// The part that has each slot, in builds with assertions.
    owners: Box<[AtomicU32]>,
}

// SAFETY: of what it has, segments alone are not `Sync`. A reference to one is made only by `Share::segment`.
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
        Pool { blocks, nobodys: Mutex::default(), measure_delay }
    }

    fn nobodys(&self) -> MutexGuard<'_, Nobodys> {
        // a thread that panics ends the run
        self.nobodys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot was the part `from`'s, and is `to`'s from now on.
    #[inline]
    fn change_owner(&self, slot: u32, from: u32, to: u32) {
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
}

impl Share {
    /// That of the part of this number. There is one of each part.
    pub fn new(pool: Arc<Pool>, owner: u32) -> Share {
        Share { pool, owner }
    }

    /// Whether the pool remembers when each packet was sent.
    pub fn measures_delay(&self) -> bool {
        self.pool.measure_delay
    }

    /// Adds `n` free slots to `to`.
    pub fn hand_out(&self, to: &mut Vec<u32>, n: u32) {
        let mut nobodys = self.pool.nobodys();
        while (nobodys.free.len() as u32) < n {
            let slots = nobodys.next..nobodys.next + n;
            for slot in [slots.start, slots.end - 1] {
                self.pool.blocks[slot as usize / BLOCK].get_or_init(|| Block::new(self.pool.measure_delay));
            }
            nobodys.next = slots.end;
            nobodys.free.extend(slots.rev());
        }
        let rest = nobodys.free.len() - n as usize;
        to.extend(nobodys.free.drain(rest..).inspect(|slot| self.pool.change_owner(*slot, NOBODY, self.owner)));
    }

    /// Takes free slots back.
    pub fn take_back(&self, slots: impl Iterator<Item = u32>) {
        let returned = slots.inspect(|slot| self.pool.change_owner(*slot, self.owner, NOBODY));
        self.pool.nobodys().free.extend(returned);
    }

    /// The slot is the part `to`'s from now on.
    #[inline]
    pub fn pass(&mut self, slot: u32, to: u32) {
        self.pool.change_owner(slot, self.owner, to);
    }

    /// Asserts, in builds with assertions, that the part has the slot.
    #[inline]
    pub fn check(&self, slot: u32) {
        self.pool.change_owner(slot, self.owner, self.owner);
    }

    /// Prefetches the segment in `slot`.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        let (block, at) = self.pool.find(slot);
        prefetch(&block.segments[..], at);
    }

    /// The segment in `slot`, which the part has.
    #[inline]
    #[allow(unsafe_code, reason = "see the head of this file")]
    pub fn segment(&mut self, slot: u32) -> &mut Segment {
        self.check(slot);
        let (block, at) = self.pool.find(slot);
        // SAFETY: a slot's number comes to a part as a free one or in an event, and with it the slot; it leaves in the same way. So no other
        // part has it, and of this one's segments there is one reference at a time, because it borrows the part's only share.
        unsafe { &mut *block.segments[at].get() }
    }

    /// When the packet in `slot` was sent; only if delays are measured.
    pub fn sent(&self, slot: u32) -> Time {
        let (block, at) = self.pool.find(slot);
        Time::from_ps(block.sent[at].load(Relaxed))
    }

    /// The packet in `slot` is sent at `now`; only if delays are measured.
    pub fn set_sent(&mut self, slot: u32, now: Time) {
        let (block, at) = self.pool.find(slot);
        block.sent[at].store(now.as_ps(), Relaxed);
    }
}
