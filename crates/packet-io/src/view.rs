//! Ethernet and IP headers, read in place.
//!
//! `parse` returns `None` for headers that are truncated or contradict themselves, so accessors never fail. Checksums are
//! not verified: between a host and us nothing is damaged, and they may be partial.

use crate::bytes::{put_word, word};
use crate::checksum;
use crate::transport::{Tcp, Udp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Numbers of IP protocols (IANA).
pub mod protocol {
    /// Transmission Control Protocol.
    pub const TCP: u8 = 6;
    /// User Datagram Protocol.
    pub const UDP: u8 = 17;
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// IEEE 802.1Q and 802.1ad tags.
const ETHERTYPE_TAGS: [u16; 2] = [0x8100, 0x88a8];
const ADDRESSES_BYTES: usize = 12;
const TAG_BYTES: usize = 4;
const TAGS_MAX: usize = 2;

/// An Ethernet frame, without its frame check sequence.
#[derive(Clone, Copy, Debug)]
pub struct Ethernet<'a> {
    bytes: &'a [u8],
    /// Where the ethertype is, after the tags.
    ethertype_at: usize,
}

impl<'a> Ethernet<'a> {
    /// The frame that starts with `bytes`; up to two VLAN tags are stepped over.
    pub fn parse(bytes: &'a [u8]) -> Option<Ethernet<'a>> {
        let mut at = ADDRESSES_BYTES;
        for _ in 0..TAGS_MAX {
            if ETHERTYPE_TAGS.contains(&u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?)) {
                at += TAG_BYTES;
            }
        }
        (bytes.len() >= at + 2).then_some(Ethernet { bytes, ethertype_at: at })
    }

    /// The destination.
    pub fn destination(&self) -> Mac {
        [0, 1, 2, 3, 4, 5].map(|at| self.bytes[at])
    }

    /// The source.
    pub fn source(&self) -> Mac {
        [6, 7, 8, 9, 10, 11].map(|at| self.bytes[at])
    }

    /// Its VLAN, 0 for none; `None` if it has more than one 802.1Q tag.
    pub fn vlan(&self) -> Option<u16> {
        match self.ethertype_at - ADDRESSES_BYTES {
            0 => Some(0),
            // what follows three bits of priority and one of eligibility
            TAG_BYTES if word(self.bytes, ADDRESSES_BYTES) == ETHERTYPE_TAGS[0] => {
                Some(word(self.bytes, ADDRESSES_BYTES + 2) & 0xfff)
            }
            _ => None,
        }
    }

    /// The type of its payload.
    pub fn ethertype(&self) -> u16 {
        word(self.bytes, self.ethertype_at)
    }

    /// Whether its type is IP, malformed or not.
    pub fn is_ip(&self) -> bool {
        [ETHERTYPE_IPV4, ETHERTYPE_IPV6].contains(&self.ethertype())
    }

    /// Length of the header: 14, and 4 for each tag.
    pub fn headers_bytes(&self) -> usize {
        self.ethertype_at + 2
    }

    /// The payload, with padding of a short frame.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.headers_bytes()..]
    }

    /// Its IP packet; `None` if it has none or a malformed one.
    pub fn ip(&self) -> Option<Ip<'a>> {
        match self.ethertype() {
            ETHERTYPE_IPV4 => Ipv4::parse(self.payload()).map(Ip::V4),
            ETHERTYPE_IPV6 => Ipv6::parse(self.payload()).map(Ip::V6),
            _ => None,
        }
    }
}

/// The two ECN bits (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// 00: Not-ECT.
    NotEct,
    /// 01: ECT(1), for L4S.
    Ect1,
    /// 10: ECT(0), the common one.
    Ect0,
    /// 11: CE, marked.
    Ce,
}

impl Ecn {
    /// The meaning of the two lowest bits.
    pub fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Whether a queue may mark it instead of dropping it.
    pub fn is_capable(self) -> bool {
        self != Ecn::NotEct
    }
}

/// An IP packet of either version.
#[derive(Clone, Copy, Debug)]
pub enum Ip<'a> {
    /// Version 4.
    V4(Ipv4<'a>),
    /// Version 6.
    V6(Ipv6<'a>),
}

impl<'a> Ip<'a> {
    /// The source.
    pub fn source(&self) -> IpAddr {
        match self {
            Ip::V4(ip) => ip.source().into(),
            Ip::V6(ip) => ip.source().into(),
        }
    }

    /// The destination.
    pub fn destination(&self) -> IpAddr {
        match self {
            Ip::V4(ip) => ip.destination().into(),
            Ip::V6(ip) => ip.destination().into(),
        }
    }

    /// Its ECN bits.
    pub fn ecn(&self) -> Ecn {
        match self {
            Ip::V4(ip) => ip.ecn(),
            Ip::V6(ip) => ip.ecn(),
        }
    }

    /// The protocol of its payload; for version 6 that behind its extension headers.
    pub fn protocol(&self) -> u8 {
        match self {
            Ip::V4(ip) => ip.protocol(),
            Ip::V6(ip) => ip.protocol(),
        }
    }

    /// Whether it is a fragment, and so has no transport header.
    pub fn is_fragment(&self) -> bool {
        match self {
            Ip::V4(ip) => ip.is_fragment(),
            Ip::V6(ip) => ip.is_fragment(),
        }
    }

    /// The whole packet, without padding of a short frame.
    pub fn bytes(&self) -> &'a [u8] {
        match self {
            Ip::V4(ip) => ip.bytes,
            Ip::V6(ip) => ip.bytes,
        }
    }

    /// Bytes before the transport header.
    pub fn headers_bytes(&self) -> usize {
        match self {
            Ip::V4(ip) => ip.headers_bytes(),
            Ip::V6(ip) => ip.headers_bytes,
        }
    }

    /// From the transport header on.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes()[self.headers_bytes()..]
    }

    /// Its TCP segment; `None` if it is no TCP, a fragment, or malformed.
    pub fn tcp(&self) -> Option<Tcp<'a>> {
        (self.protocol() == protocol::TCP && !self.is_fragment()).then(|| Tcp::parse(self.payload()))?
    }

    /// Its UDP datagram; `None` if it is no UDP, a fragment, or malformed.
    pub fn udp(&self) -> Option<Udp<'a>> {
        (self.protocol() == protocol::UDP && !self.is_fragment()).then(|| Udp::parse(self.payload()))?
    }
}

/// An IPv4 packet (RFC 791).
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a> {
    bytes: &'a [u8],
}

impl<'a> Ipv4<'a> {
    /// The packet that starts with `bytes`; what follows it is left out.
    pub fn parse(bytes: &'a [u8]) -> Option<Ipv4<'a>> {
        if bytes.len() < 20 || bytes[0] >> 4 != 4 {
            return None;
        }
        let (headers, total) = ((bytes[0] & 15) as usize * 4, word(bytes, 2) as usize);
        (headers >= 20 && total >= headers).then(|| bytes.get(..total).map(|bytes| Ipv4 { bytes }))?
    }

    /// The whole packet.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The source.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from([12, 13, 14, 15].map(|at| self.bytes[at]))
    }

    /// The destination.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from([16, 17, 18, 19].map(|at| self.bytes[at]))
    }

    /// Its ECN bits.
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.bytes[1])
    }

    /// The identification, for reassembly.
    pub fn id(&self) -> u16 {
        word(self.bytes, 4)
    }

    /// It is a fragment.
    pub fn is_fragment(&self) -> bool {
        word(self.bytes, 6) & 0x3fff != 0
    }

    /// The protocol of its payload.
    pub fn protocol(&self) -> u8 {
        self.bytes[9]
    }

    /// Bytes of the header with its options.
    pub fn headers_bytes(&self) -> usize {
        (self.bytes[0] & 15) as usize * 4
    }
}

/// An IPv6 packet (RFC 8200).
#[derive(Clone, Copy, Debug)]
pub struct Ipv6<'a> {
    bytes: &'a [u8],
    headers_bytes: usize,
    protocol: u8,
    is_fragment: bool,
}

impl<'a> Ipv6<'a> {
    /// The packet that starts with `bytes`; what follows it is left out. Extension headers that every router may read
    /// (hop-by-hop, routing, destination options, fragment) are stepped over.
    pub fn parse(bytes: &'a [u8]) -> Option<Ipv6<'a>> {
        if bytes.len() < 40 || bytes[0] >> 4 != 6 {
            return None;
        }
        let bytes = bytes.get(..40 + word(bytes, 4) as usize)?;
        let mut ip = Ipv6 { bytes, headers_bytes: 40, protocol: bytes[6], is_fragment: false };
        loop {
            let (length, is_fragment) = match ip.protocol {
                0 | 43 | 60 => (8 + *bytes.get(ip.headers_bytes + 1)? as usize * 8, false),
                44 => (8, true),
                _ => return Some(ip),
            };
            // Each header is at least 8 bytes long, so this ends with the packet.
            let extension = bytes.get(ip.headers_bytes..ip.headers_bytes + length)?;
            ip.protocol = extension[0];
            ip.headers_bytes += length;
            // An atomic fragment (RFC 6946) is a whole packet.
            if is_fragment && word(extension, 2) & 0xfff9 != 0 {
                ip.is_fragment = true;
                return Some(ip);
            }
        }
    }

    /// The whole packet.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The source.
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|at| self.bytes[8 + at]))
    }

    /// The destination.
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|at| self.bytes[24 + at]))
    }

    /// Its ECN bits.
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.bytes[1] >> 4)
    }

    /// The protocol behind the extension headers.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// It is a fragment.
    pub fn is_fragment(&self) -> bool {
        self.is_fragment
    }
}

/// The key of a flow, in one direction. Ports are zero where there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tuple {
    /// The source.
    pub source: IpAddr,
    /// The destination.
    pub destination: IpAddr,
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The protocol's number ([`protocol`]).
    pub protocol: u8,
}

/// The flow of an Ethernet frame; `None` if it carries no IP.
pub fn tuple(frame: &[u8]) -> Option<Tuple> {
    let ip = Ethernet::parse(frame)?.ip()?;
    let ports = || {
        let tcp = ip.tcp().map(|tcp| (tcp.source_port(), tcp.destination_port()));
        tcp.or_else(|| ip.udp().map(|udp| (udp.source_port(), udp.destination_port())))
    };
    let (source_port, destination_port) = ports().unwrap_or_default();
    Some(Tuple {
        source: ip.source(),
        destination: ip.destination(),
        source_port,
        destination_port,
        protocol: ip.protocol(),
    })
}

/// Marks a frame (RFC 3168: Congestion Experienced), if its sender supports ECN. Returns whether it now has the
/// mark; a frame that must not be marked, or is no IP, is left as it is. Of a super-segment every packet is marked.
pub fn set_ce(frame: &mut [u8]) -> bool {
    let Some(ethernet) = Ethernet::parse(frame) else { return false };
    let Some(ip) = ethernet.ip() else { return false };
    if !ip.ecn().is_capable() {
        return false;
    }
    let (is_v4, at) = (matches!(ip, Ip::V4(_)), ethernet.headers_bytes());
    let ip = &mut frame[at..];
    if is_v4 {
        let old = word(ip, 0);
        ip[1] |= 3;
        let checksum = checksum::updated(word(ip, 10), old, word(ip, 0));
        put_word(ip, 10, checksum);
    } else {
        // No checksum covers the traffic class.
        ip[1] |= 0x30;
    }
    true
}
