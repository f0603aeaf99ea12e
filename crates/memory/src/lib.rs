//! Memory hints of the simulator: prefetching of cache lines, and large pages.
//!
//! A large simulated network does not fit the second-level cache, and every packet-hop touches a link, a ring and often
//! a socket that were last touched a microsecond of simulated time ago. The event loop knows which come next and
//! prefetches them a few events ahead: about a fifth faster at 1024 hosts (median of six pairs of runs on a noisy machine).
//! Data scattered over tens of megabytes also causes fewer TLB misses in pages of 2 MB than of 4 KB: another twentieth, a
//! tenth where the host is busy.

#![allow(
    unsafe_code,
    reason = "neither has a safe form; both are hints, and read or write nothing that the program can see"
)]

#[cfg(unix)]
use rustix::mm::{Advice, madvise};

/// A page, and a large one, bytes. Where they have other sizes, the system refuses the hint.
#[cfg(unix)]
const PAGE: usize = 1 << 12;
#[cfg(any(unix, test))]
const LARGE_PAGE: usize = 1 << 21;

/// Prefetches the cache line that holds the beginning of `slice[index]`; nothing happens if there is no such element, or
/// where the CPU has no such instruction.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    prefetch_bytes(slice, index, 0);
}

/// The same for the line that is `bytes` behind the beginning of `slice[index]`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a call would cost more than the instruction saves")]
pub fn prefetch_bytes<T>(slice: &[T], index: usize, bytes: usize) {
    let address = slice.as_ptr().wrapping_add(index).cast::<i8>().wrapping_add(bytes);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it never faults, whatever the address, and changes no value. SSE is part of x86-64.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Makes room for `more` more elements if there is less, as `Vec::reserve` does, but in large pages as far as the system gives
/// them. All elements move to new memory, because pages that have been touched stay small.
pub fn reserve_in_large_pages<T>(vec: &mut Vec<T>, more: usize) {
    if vec.capacity() - vec.len() >= more {
        return;
    }
    let mut larger = Vec::<T>::with_capacity((vec.len() + more).max(2 * vec.len()));
    #[cfg(unix)]
    ask_for_large_pages(&mut larger);
    larger.append(vec);
    *vec = larger;
}

#[cfg(unix)]
fn ask_for_large_pages<T>(vec: &mut Vec<T>) {
    let start = vec.as_mut_ptr().cast::<u8>();
    let to_page = start.align_offset(PAGE);
    let bytes = vec.capacity() * size_of::<T>();
    if bytes >= LARGE_PAGE {
        // SAFETY: all of these pages are the vector's alone, and the advice changes no value in them.
        let _ = unsafe {
            madvise(start.wrapping_add(to_page).cast(), (bytes - to_page) / PAGE * PAGE, Advice::LinuxHugepage)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_kept_and_room_is_made_only_if_there_is_none() {
        for len in [0usize, 1, 1000, LARGE_PAGE] {
            let mut vec: Vec<u32> = (0..len as u32).collect();
            reserve_in_large_pages(&mut vec, len + 1);
            assert!(vec.capacity() > 2 * len && vec.iter().copied().eq(0..len as u32));
            let before = vec.as_ptr();
            reserve_in_large_pages(&mut vec, 1);
            assert_eq!(vec.as_ptr(), before);
        }
    }
}
