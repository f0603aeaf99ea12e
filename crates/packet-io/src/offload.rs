//! Checksums that a host leaves to its network card, as Linux does for TCP and UDP.

use crate::checksum::{fold, sum};
use crate::view::{Ethernet, Ip};
use crate::vnet::VnetHeader;

/// Offset of UDP's checksum in its header.
const UDP_CHECKSUM_AT: u16 = 6;

/// The folded sum of the pseudo-header of TCP or UDP over `ip`, for `length` bytes from the transport header on. A partial
/// checksum holds this value.
pub(crate) fn pseudo_header(ip: &Ip<'_>, protocol: u8, length: usize) -> u16 {
    let addresses = match ip {
        Ip::V4(ip) => sum(&ip.bytes()[12..20]),
        Ip::V6(ip) => sum(&ip.bytes()[8..40]),
    };
    fold(addresses + u64::from(protocol) + length as u64)
}

/// Completes the checksum of TCP or UDP as `header` requires. Any other frame stays as it is, and so does one that
/// `header` does not fit. A super-segment gets the checksum of the one long packet that it looks like.
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
