//! Matches of OpenFlow 1.3 (OXM, ONF TS-006 7.2.3): the few fields that are read.

use super::Error;
use super::wire::Cursor;
use policy::Prefix;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of the standard's own fields.
const BASIC: u16 = 0x8000;
const IN_PORT: u8 = 0;
const ETH_TYPE: u8 = 5;
const IPV4_SRC: u8 = 11;
const IPV4_DST: u8 = 12;
const IPV6_SRC: u8 = 26;
const IPV6_DST: u8 = 27;

/// Matches LLDP: Ethernet type 0x88cc.
pub(super) const LLDP: [u8; 6] = [0x80, 0x00, ETH_TYPE << 1, 2, 0x88, 0xcc];

/// What is read of a match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Match {
    /// The port by which the packet came.
    pub in_port: Option<u32>,
    /// The sender's address, or its prefix.
    pub source: Option<Prefix>,
    /// The receiver's.
    pub destination: Option<Prefix>,
}

/// Reads the fields of a match. A mask that is no prefix tells nothing of the address.
///
/// # Errors
/// A field is cut short.
pub(super) fn read(fields: &[u8]) -> Result<Match, Error> {
    let mut cursor = Cursor::new("match", fields);
    let mut found = Match::default();
    while !cursor.is_empty() {
        let class = cursor.u16()?;
        let field = cursor.u8()?;
        let length = usize::from(cursor.u8()?);
        let content = cursor.take(length)?;
        if class != BASIC {
            continue;
        }
        let (value, mask) = if field & 1 == 0 { (content, None) } else { halves(content, &cursor)? };
        match field >> 1 {
            IN_PORT => found.in_port = value.try_into().ok().map(u32::from_be_bytes),
            IPV4_SRC => found.source = prefix::<4>(value, mask),
            IPV4_DST => found.destination = prefix::<4>(value, mask),
            IPV6_SRC => found.source = prefix::<16>(value, mask),
            IPV6_DST => found.destination = prefix::<16>(value, mask),
            _ => {}
        }
    }
    Ok(found)
}

/// Value and mask, which have the same length.
fn halves<'a>(content: &'a [u8], at: &Cursor<'_>) -> Result<(&'a [u8], Option<&'a [u8]>), Error> {
    if !content.len().is_multiple_of(2) {
        return Err(at.error(format!("a value and its mask of {} bytes together", content.len())));
    }
    let (value, mask) = content.split_at(content.len() / 2);
    Ok((value, Some(mask)))
}

/// The prefix of `N` bytes of address; `None` if they are not that many, or the mask has a gap.
fn prefix<const N: usize>(value: &[u8], mask: Option<&[u8]>) -> Option<Prefix> {
    let wide = |bytes: &[u8]| {
        let bytes: [u8; N] = bytes.try_into().ok()?;
        let mut all = [0; 16];
        all[..N].copy_from_slice(&bytes);
        Some(u128::from_be_bytes(all))
    };
    let (value, mask) = (wide(value)?, mask.map_or(Some(u128::MAX << (128 - 8 * N)), wide)?);
    let bits = mask.leading_ones();
    if mask.count_ones() != bits {
        return None;
    }
    let address = (value & mask).to_be_bytes();
    let address = if N == 4 {
        IpAddr::from(Ipv4Addr::new(address[0], address[1], address[2], address[3]))
    } else {
        IpAddr::from(Ipv6Addr::from(address))
    };
    Prefix::new(address, bits as u8)
}
