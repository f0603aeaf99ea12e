//! The Internet checksum: RFC 1071, and RFC 1624 for changing a word of what was summed.

use crate::view::{Ethernet, Ip};
use crate::vnet::VnetHeader;

/// Where UDP's checksum is, from its header on.
const UDP_CHECKSUM_AT: u16 = 6;

/// The sum of 16-bit big-endian words, folded. An odd last byte counts as if a zero followed it.
///
/// It is summed in the machine's order of bytes, which swaps them in the sum too (RFC 1071 2 (B)), and by double words: 2^16 is 1
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

/// The folded sum of the pseudo-header of TCP or UDP over `ip`, for `length` bytes from the transport header on. It is what
/// stands in a partial checksum's place.
pub(crate) fn pseudo_header(ip: &Ip<'_>, protocol: u8, length: usize) -> u16 {
    let addresses = match ip {
        Ip::V4(ip) => sum(&ip.bytes()[12..20]),
        Ip::V6(ip) => sum(&ip.bytes()[8..40]),
    };
    fold(addresses + u64::from(protocol) + length as u64)
}

/// Fills in what `header` says is missing: the checksum of TCP or UDP. Anything else is left as it is, and so is a frame that
/// `header` does not fit. A super-frame gets the checksum of the one long packet that it looks like.
pub fn complete(header: &VnetHeader, frame: &mut [u8]) {
    let (start, at) = (header.csum_start as usize, header.csum_start as usize + header.csum_offset as usize);
    if !header.needs_csum() {
        return;
    }
    // What pads a short frame is not summed.
    let end = Ethernet::parse(frame).and_then(|ethernet| Some(ethernet.headers_bytes() + ethernet.ip()?.bytes().len()));
    let end = end.unwrap_or(frame.len());
    if start > end || at + 2 > end {
        return;
    }
    // Zero means "no checksum" in UDP; its complement is the same number.
    let checksum = match !fold(sum(&frame[start..end])) {
        0 if header.csum_offset == UDP_CHECKSUM_AT => 0xffff,
        checksum => checksum,
    };
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}
