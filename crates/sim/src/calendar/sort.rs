//! Sorting a bucket's events.

use super::Event;
use std::ops::AddAssign;

/// Events that are ranked by comparing each with each.
const FEW: usize = 8;
/// Fewer than these are counted in bytes.
const SOME: usize = 1 << u8::BITS;
/// From so many events on, positions do not fit a bin.
const MANY: usize = 1 << 16;
/// Bins are counted together, as many as a word holds.
const TOGETHER: usize = 8;

/// Scratch of the sort: it is kept so that no bucket has to ask for memory.
#[derive(Default)]
pub struct Sorter {
    narrow: Vec<u8>,
    wide: Vec<u16>,
}

impl Sorter {
    /// Writes `unsorted`, whose offsets are below `1 << width_log2`, to the beginning of `out`, sorted by offset; those of one
    /// offset keep their order. What `out` holds behind them means nothing.
    ///
    /// What costs most in sorting a few dozen events is the mispredicted branches, so there are next to none:
    /// it is a counting sort by the upper bits of the offset, with several bins an event, so that little is left to
    /// insertion. The sums over the bins, which are more than the events, are taken a word at a time.
    pub fn sort_into(&mut self, unsorted: &[Event], out: &mut Vec<Event>, width_log2: u32) {
        let len = unsorted.len();
        if out.len() < len.max(FEW) {
            out.resize(len.max(FEW), Event::default());
        }
        if len <= FEW {
            rank(unsorted, out);
        } else if len < SOME {
            distribute(unsorted, &mut out[..len], &mut self.narrow, width_log2, 4);
        } else if len < MANY {
            distribute(unsorted, &mut out[..len], &mut self.wide, width_log2, 2);
        } else {
            out[..len].copy_from_slice(unsorted);
            out[..len].sort_by_key(|event| event.offset());
        }
    }
}

/// Each event goes where as many are as precede it.
#[inline]
fn rank(unsorted: &[Event], out: &mut [Event]) {
    // all are compared, whether there or not, because to stop at the last one is an unpredictable branch
    let mut offsets = [u32::MAX; FEW];
    for (offset, event) in offsets.iter_mut().zip(unsorted) {
        *offset = event.offset();
    }
    let mut ranks = [0u32; FEW];
    for (i, rank) in ranks.iter_mut().enumerate() {
        for (j, offset) in offsets.iter().enumerate() {
            *rank += u32::from(if j < i { *offset <= offsets[i] } else { *offset < offsets[i] });
        }
    }
    for (event, rank) in unsorted.iter().zip(ranks) {
        let entry = &mut out[rank as usize % FEW];
        entry.first = event.first;
        entry.second = event.second;
    }
}

/// A bin of the counting sort: how many events it gets, then where its next one goes.
trait Bin: Copy + Default + AddAssign + From<bool> + Into<usize> {
    /// Replaces counts by the sums of those before.
    fn sum_up(bins: &mut [Self]);
}

impl Bin for u8 {
    #[inline]
    fn sum_up(bins: &mut [u8]) {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let mut before = 0u64;
        for word in bins.as_chunks_mut::<8>().0 {
            let sums = u64::from_le_bytes(*word).wrapping_mul(ONES);
            *word = (sums << 8).wrapping_add(before).to_le_bytes();
            before = before.wrapping_add((sums >> 56).wrapping_mul(ONES));
        }
    }
}

impl Bin for u16 {
    #[inline]
    fn sum_up(bins: &mut [u16]) {
        const ONES: u64 = 0x0001_0001_0001_0001;
        let mut before = 0u64;
        for word in bins.as_chunks_mut::<4>().0 {
            let [a, b, c, d] = word.map(u64::from);
            let sums = (a | b << 16 | c << 32 | d << 48).wrapping_mul(ONES);
            let starts = (sums << 16).wrapping_add(before);
            *word = [starts as u16, (starts >> 16) as u16, (starts >> 32) as u16, (starts >> 48) as u16];
            before = before.wrapping_add((sums >> 48).wrapping_mul(ONES));
        }
    }
}

#[inline]
fn distribute<B: Bin>(unsorted: &[Event], out: &mut [Event], bins: &mut Vec<B>, width_log2: u32, per_event: usize) {
    let wanted = (unsorted.len() * per_event).next_power_of_two().max(TOGETHER);
    if bins.len() < wanted {
        bins.resize(wanted, B::default());
    }
    let bins = &mut bins[..wanted];
    let mask = wanted - 1;
    let shift = width_log2.saturating_sub(wanted.ilog2());
    bins.fill(B::default());
    for event in unsorted {
        bins[(event.offset() >> shift) as usize & mask] += B::from(true);
    }
    B::sum_up(bins);
    for event in unsorted {
        let bin = &mut bins[(event.offset() >> shift) as usize & mask];
        let position: usize = (*bin).into();
        let entry = &mut out[position];
        entry.first = event.first;
        entry.second = event.second;
        *bin += B::from(true);
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
    use crate::calendar::kind;

    /// However many there are, and however they crowd, the result is that of a stable sort: the reference is the standard
    /// library's.
    #[test]
    fn it_sorts_as_a_stable_sort_does() {
        let mut sorter = Sorter::default();
        let mut out = Vec::new();
        for len in [0, 1, 2, 7, 8, 9, 30, 255, 256, 1000, MANY - 1, MANY, MANY + 1] {
            for (width_log2, crowd_log2) in [(1, 0), (5, 0), (19, 0), (19, 4), (31, 0), (31, 20)] {
                let offset = |i: u32| (i.wrapping_mul(2_654_435_761) >> (32 - width_log2)) >> crowd_log2 << crowd_log2;
                let event = |i: u32| Event::host(kind::APP, i, 0).at_offset(offset(i));
                let unsorted: Vec<Event> = (0..len as u32).map(event).collect();
                sorter.sort_into(&unsorted, &mut out, width_log2);
                let mut expected = unsorted;
                expected.sort_by_key(|event| event.offset());
                assert!(
                    out[..len] == expected[..],
                    "{len} events, 2^{width_log2} ps, instants 2^{crowd_log2} ps apart"
                );
            }
        }
    }
}
