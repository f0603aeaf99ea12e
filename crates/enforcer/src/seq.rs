//! Sequence numbers compare modulo 2^32 (RFC 9293 3.4).

/// Whether `a` is before `b`.
#[inline]
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `a` is after `b`.
#[inline]
pub(crate) fn after(a: u32, b: u32) -> bool {
    before(b, a)
}

/// The later of both.
#[inline]
pub(crate) fn later(a: u32, b: u32) -> u32 {
    if after(a, b) { a } else { b }
}
