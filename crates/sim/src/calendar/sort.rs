//! Sorting a bucket's events.

use super::Event;

/// Events up to which insertion alone is quicker.
const FEW: usize = 8;
const BINS_LOG2: u32 = 16;
/// Most bins of the sort.
pub const BINS: usize = 1 << BINS_LOG2;

/// Writes `unsorted`, whose offsets are below `1 << width_log2`, to `out`, sorted by offset; those of one offset keep their
/// order. It is a counting sort by the upper bits of the offset, then what insertion is left. `bins` are scratch, [`BINS`]
/// of them.
pub fn sort_into(unsorted: &[Event], out: &mut Vec<Event>, bins: &mut [u32], width_log2: u32) {
    let len = unsorted.len();
    if len <= FEW {
        out.clear();
        out.extend_from_slice(unsorted);
        return insertion_sort(out);
    }
    // one to two bins an event: most hold one or none
    let bin_log2 = (len.ilog2() + 1).min(width_log2).min(BINS_LOG2);
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
