//! What arrived beyond a gap, until the gap is filled (RFC 9293 3.10.7.4), and which of it SACK options report (RFC 2018).

use crate::segment::SackBlock;
use crate::seq::{after, before};

/// Blocks remembered for SACK options: Linux's four.
const RECENT_MAX: usize = 4;

/// The blocks of sequence numbers beyond rcv_nxt that have arrived.
#[derive(Debug, Default)]
pub(crate) struct OutOfOrder {
    /// Sorted, disjoint, not adjacent.
    blocks: Vec<SackBlock>,
    /// Bytes in them.
    held: u32,
    /// Of them, those that grew last, the last one first (RFC 2018 4); behind them empty ones.
    recent: [SackBlock; RECENT_MAX],
}

impl OutOfOrder {
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Bytes that wait for a gap to be filled.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// The blocks to report, most recent first.
    #[inline]
    pub fn recent(&self) -> impl Iterator<Item = &SackBlock> {
        self.recent.iter().take_while(|block| len(**block) > 0)
    }

    /// Enters what has arrived; returns what of it was there already, in the lowest block that it overlaps.
    #[inline]
    pub fn insert(&mut self, new: SackBlock) -> Option<SackBlock> {
        let (grown, twice) = match self.blocks.last_mut() {
            // mostly it follows what arrived last, or another gap
            Some(last) if last.end == new.start => {
                last.end = new.end;
                self.held += len(new);
                (*last, None)
            }
            Some(last) if !after(new.start, last.end) => self.merge(new),
            _ => {
                self.blocks.push(new);
                self.held += len(new);
                (new, None)
            }
        };
        self.note_recent(grown);
        twice
    }

    /// Enters `new` below the end of the highest block: that and all blocks that it touches become one.
    fn merge(&mut self, new: SackBlock) -> (SackBlock, Option<SackBlock>) {
        let first = self.blocks.partition_point(|block| before(block.end, new.start));
        let last = self.blocks.partition_point(|block| !after(block.start, new.end));
        let touched = &self.blocks[first..last];
        let overlaps = |block: &&SackBlock| before(new.start, block.end) && before(block.start, new.end);
        let twice = touched
            .iter()
            .find(overlaps)
            .map(|block| SackBlock { start: later(new.start, block.start), end: earlier(new.end, block.end) });
        let merged = touched.iter().fold(new, |merged, block| SackBlock {
            start: earlier(merged.start, block.start),
            end: later(merged.end, block.end),
        });
        self.held += len(merged) - touched.iter().copied().map(len).sum::<u32>();
        if first == last {
            self.blocks.insert(first, merged);
        } else {
            self.blocks[first] = merged;
            self.blocks.drain(first + 1..last);
        }
        (merged, twice)
    }

    /// `grown` is the most recent block; those that it took in are none any more.
    #[inline]
    fn note_recent(&mut self, grown: SackBlock) {
        let within = |block: &SackBlock| !before(block.start, grown.start) && before(block.start, grown.end);
        self.retain_recent(grown, |block| !within(block));
    }

    /// The recent blocks that are kept, behind `front` unless that is empty.
    #[inline]
    fn retain_recent(&mut self, front: SackBlock, keep: impl Fn(&SackBlock) -> bool) {
        let mut kept = [SackBlock::default(); RECENT_MAX];
        kept[0] = front;
        let first = usize::from(len(front) > 0);
        let retained = self.recent.iter().filter(|block| len(**block) > 0 && keep(block));
        kept[first..].iter_mut().zip(retained).for_each(|(place, block)| *place = *block);
        self.recent = kept;
    }

    /// All up to `edge` is in order: takes the blocks that continue it, and returns how far they go.
    pub fn take(&mut self, edge: u32) -> u32 {
        let mut end = edge;
        let mut taken = 0;
        for block in &self.blocks {
            if after(block.start, end) {
                break;
            }
            end = later(block.end, end);
            self.held -= len(*block);
            taken += 1;
        }
        if taken > 0 {
            self.blocks.drain(..taken);
            self.retain_recent(SackBlock::default(), |block| after(block.start, end));
        }
        end
    }
}

fn len(block: SackBlock) -> u32 {
    block.end.wrapping_sub(block.start)
}

fn later(a: u32, b: u32) -> u32 {
    if after(a, b) { a } else { b }
}

fn earlier(a: u32, b: u32) -> u32 {
    if before(a, b) { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(start: u32, end: u32) -> SackBlock {
        SackBlock { start, end }
    }

    fn filled(blocks: &[(u32, u32)]) -> OutOfOrder {
        let mut queue = OutOfOrder::default();
        for &(start, end) in blocks {
            assert_eq!(queue.insert(block(start, end)), None);
        }
        queue
    }

    fn recent(queue: &OutOfOrder) -> Vec<(u32, u32)> {
        queue.recent().map(|block| (block.start, block.end)).collect()
    }

    #[test]
    fn the_block_that_grew_last_is_reported_first() {
        let mut queue = filled(&[(100, 200), (300, 400), (500, 600)]);
        assert_eq!(recent(&queue), [(500, 600), (300, 400), (100, 200)]);
        queue.insert(block(400, 450));
        assert_eq!(recent(&queue), [(300, 450), (500, 600), (100, 200)]);
        queue.insert(block(450, 500));
        assert_eq!(recent(&queue), [(300, 600), (100, 200)], "two blocks have become one");
        assert_eq!((queue.take(100), queue.held()), (200, 300));
        assert_eq!(recent(&queue), [(300, 600)]);
        assert_eq!((queue.take(300), queue.held(), queue.is_empty()), (600, 0, true));
    }

    #[test]
    fn of_five_blocks_the_oldest_is_not_reported_again_until_it_grows() {
        let mut queue = filled(&[(100, 200), (300, 400), (500, 600), (700, 800), (900, 1000)]);
        assert_eq!(recent(&queue), [(900, 1000), (700, 800), (500, 600), (300, 400)]);
        queue.insert(block(200, 250));
        assert_eq!(recent(&queue), [(100, 250), (900, 1000), (700, 800), (500, 600)]);
    }

    #[test]
    fn what_arrives_twice_is_reported_as_the_part_in_the_lowest_block() {
        let mut queue = filled(&[(100, 200), (300, 400)]);
        assert_eq!(queue.insert(block(150, 350)), Some(block(150, 200)));
        assert_eq!(queue.insert(block(350, 500)), Some(block(350, 400)));
        assert_eq!((recent(&queue), queue.held()), (vec![(100, 500)], 400));
    }

    proptest! {
        /// Against a map of the bytes, across the wrap of the sequence space.
        #[test]
        fn it_holds_the_bytes_that_arrived(segments in prop::collection::vec((1u32..300, 1u32..60), 1..60), edge in 0u32..400) {
            let origin = u32::MAX - 150;
            let mut queue = OutOfOrder::default();
            let mut bytes = [false; 400];
            for (start, len) in segments {
                let end = start + len;
                let twice = queue.insert(block(origin.wrapping_add(start), origin.wrapping_add(end)));
                let known = (start..end).find(|&at| bytes[at as usize]);
                prop_assert_eq!(twice.map(|twice| twice.start.wrapping_sub(origin)), known);
                bytes[start as usize..end as usize].fill(true);
                let held = bytes.iter().filter(|byte| **byte).count();
                prop_assert_eq!(queue.held() as usize, held);
                let grown = queue.recent().next().expect("it has just grown");
                let (first, last) = (grown.start.wrapping_sub(origin), grown.end.wrapping_sub(origin));
                prop_assert!(first <= start && end <= last && bytes[first as usize..last as usize].iter().all(|byte| *byte));
                prop_assert!(!bytes[first as usize - 1] && !bytes[last as usize]);
            }
            bytes[..edge as usize].fill(true);
            let reached = bytes.iter().position(|byte| !byte).unwrap_or(bytes.len());
            prop_assert_eq!(queue.take(origin.wrapping_add(edge)).wrapping_sub(origin) as usize, reached);
            let held = bytes[reached..].iter().filter(|byte| **byte).count();
            prop_assert_eq!(queue.held() as usize, held);
        }
    }
}
