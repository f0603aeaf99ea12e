//! The addresses of a sampled packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of an IPv4 header without options, and of an IPv6 header.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// Most VLAN tags.
const TAGS_MAX: usize = 2;

/// From, to, and the length that the IP header says, bytes; `None` where it says zero, as in a packet of segmentation offload.
pub(super) type Ends = (IpAddr, IpAddr, Option<u64>);

/// Of an Ethernet frame, and where its IP header begins.
pub(super) fn of_frame(frame: &[u8]) -> Option<(Ends, usize)> {
    let mut at = 12;
    for _ in 0..=TAGS_MAX {
        match u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?) {
            0x8100 | 0x88a8 => at += 4,
            0x0800 | 0x86dd => return Some((of_ip(frame.get(at + 2..)?)?, at + 2)),
            _ => return None,
        }
    }
    None
}

/// Of an IP packet.
pub(super) fn of_ip(packet: &[u8]) -> Option<Ends> {
    match packet.first()? >> 4 {
        4 => {
            let header: &[u8; IPV4_HEADER] = packet.first_chunk()?;
            let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
            let length = u64::from(u16::from_be_bytes([header[2], header[3]]));
            Some((address(12).into(), address(16).into(), Some(length).filter(|length| *length > 0)))
        }
        6 => {
            let header: &[u8; IPV6_HEADER] = packet.first_chunk()?;
            let address = |at: usize| Some(Ipv6Addr::from(*header.get(at..at + 16)?.first_chunk::<16>()?));
            let length = u64::from(u16::from_be_bytes([header[4], header[5]]));
            let length = Some(length + IPV6_HEADER as u64).filter(|_| length > 0);
            Some((address(8)?.into(), address(24)?.into(), length))
        }
        _ => None,
    }
}
