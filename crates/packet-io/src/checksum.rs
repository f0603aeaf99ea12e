//! The Internet checksum: RFC 1071, and its incremental update: RFC 1624.

/// The sum of 16-bit big-endian words, folded. An odd last byte counts as if a zero followed it.
///
/// It is summed in the machine's byte order, which swaps the bytes of the sum too (RFC 1071 2 (B)), and by double words: 2^16 is 1
/// modulo 2^16 - 1. At most 64 KB are added: 2^14 × 2^32 fits in 64 bits.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let whole: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    u64::from(u16::from_be_bytes(fold(whole + u64::from(u32::from_ne_bytes(last))).to_ne_bytes()))
}

/// Adds the carries back in until 16 bits are left.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum after one of the words that it covers has changed (RFC 1624, equation 3: `HC' = ~(~HC + ~m + m')`).
pub(crate) fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}
